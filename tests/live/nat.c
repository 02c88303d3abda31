/* A NAT between the sender and the receiver of a link: each address that datagrams come from gets a mapping,
 * a socket from which they go on, and to which the answers come.
 *
 *     nat PORT TO_ADDRESS TO_PORT        listens on 127.0.0.1
 *
 *     sender :p ──→ 127.0.0.1:PORT  ── mapping of p, a socket of its own ──→ TO_ADDRESS:TO_PORT
 *
 * It prints "ready", then takes commands from standard input, a line each, and answers "ok", or a number:
 *
 *     rebind     each mapping gets another port; what comes to the one before is lost
 *     dead       the mappings there are pass nothing any more; a new source port gets a live one
 *     hole       nothing passes any more
 *     mappings   how many there were
 *     swallowed  datagrams that did not pass, from the sender
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAPPINGS       64
#define BUFFER_BYTES   (4 << 20)
#define DATAGRAM_BYTES 65536
#define QUOTA          64 /* datagrams of one socket before the next has its turn */

enum { CONTROL, LISTENER, FIRST_MAPPING };

struct mapping {
    struct sockaddr_in client;
    bool dead;
};

struct nat {
    struct sockaddr_in to;
    bool hole;
    unsigned count;
    unsigned long long swallowed;
    struct mapping mappings[MAPPINGS];
    struct pollfd fds[FIRST_MAPPING + MAPPINGS];
};

static int open_socket(struct sockaddr_in bind_to)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), bytes = BUFFER_BYTES;
    if (fd < 0 || bind(fd, (struct sockaddr *)&bind_to, sizeof bind_to) != 0) {
        perror("nat: a socket");
        exit(1);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    return fd;
}

static struct sockaddr_in address_of(const char *ip, const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    inet_pton(AF_INET, ip, &a.sin_addr);
    return a;
}

static int open_mapping(void)
{
    return open_socket((struct sockaddr_in){.sin_family = AF_INET});
}

/* Its index; a new one if there was none, -1 if there is no room for one. */
static int find_mapping(struct nat *n, const struct sockaddr_in *client)
{
    for (unsigned i = 0; i < n->count; i++) {
        const struct sockaddr_in *known = &n->mappings[i].client;
        if (known->sin_port == client->sin_port && known->sin_addr.s_addr == client->sin_addr.s_addr)
            return (int)i;
    }
    if (n->count == MAPPINGS)
        return -1;
    n->mappings[n->count] = (struct mapping){.client = *client};
    n->fds[FIRST_MAPPING + n->count] = (struct pollfd){.fd = open_mapping(), .events = POLLIN};
    return (int)n->count++;
}

/* A datagram that cannot be sent is one that is lost. */
static void outwards(struct nat *n)
{
    static char bytes[DATAGRAM_BYTES];
    for (int i = 0; i < QUOTA; i++) {
        struct sockaddr_in client;
        socklen_t len = sizeof client;
        ssize_t size =
            recvfrom(n->fds[LISTENER].fd, bytes, sizeof bytes, 0, (struct sockaddr *)&client, &len);
        if (size < 0)
            return;
        int at = find_mapping(n, &client);
        if (at < 0 || n->hole || n->mappings[at].dead)
            n->swallowed++;
        else
            (void)!sendto(n->fds[FIRST_MAPPING + at].fd, bytes, (size_t)size, 0, (struct sockaddr *)&n->to,
                          sizeof n->to);
    }
}

static void inwards(struct nat *n, unsigned at)
{
    static char bytes[DATAGRAM_BYTES];
    const struct mapping *m = &n->mappings[at];
    for (int i = 0; i < QUOTA; i++) {
        ssize_t size = recv(n->fds[FIRST_MAPPING + at].fd, bytes, sizeof bytes, 0);
        if (size < 0)
            return;
        if (!n->hole && !m->dead)
            (void)!sendto(n->fds[LISTENER].fd, bytes, (size_t)size, 0, (const struct sockaddr *)&m->client,
                          sizeof m->client);
    }
}

/* The new socket is opened before the old one is closed: its port is another. */
static void rebind(struct nat *n)
{
    for (unsigned i = 0; i < n->count; i++) {
        int before = n->fds[FIRST_MAPPING + i].fd;
        n->fds[FIRST_MAPPING + i].fd = open_mapping();
        close(before);
    }
}

static void obey(struct nat *n, const char *line)
{
    if (strcmp(line, "mappings\n") == 0) {
        printf("%u\n", n->count);
        return;
    }
    if (strcmp(line, "swallowed\n") == 0) {
        printf("%llu\n", n->swallowed);
        return;
    }
    if (strcmp(line, "rebind\n") == 0)
        rebind(n);
    else if (strcmp(line, "hole\n") == 0)
        n->hole = true;
    for (unsigned i = 0; strcmp(line, "dead\n") == 0 && i < n->count; i++)
        n->mappings[i].dead = true;
    puts("ok");
}

int main(int argc, char **argv)
{
    static struct nat n;
    char line[80];
    if (argc != 4) {
        fprintf(stderr, "usage: nat PORT TO_ADDRESS TO_PORT\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* so that poll sees whatever is not read yet */
    n.to = address_of(argv[2], argv[3]);
    n.fds[CONTROL] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    n.fds[LISTENER] = (struct pollfd){.fd = open_socket(address_of("127.0.0.1", argv[1])), .events = POLLIN};
    puts("ready");
    for (;;) {
        poll(n.fds, FIRST_MAPPING + n.count, -1);
        if (n.fds[CONTROL].revents) {
            if (!fgets(line, sizeof line, stdin))
                return 0;
            obey(&n, line);
        }
        outwards(&n);
        for (unsigned i = 0; i < n.count; i++)
            inwards(&n, i);
    }
}
