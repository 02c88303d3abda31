/* proxy PORT [LOGIN]: an HTTP proxy on 127.0.0.1 that makes tunnels (CONNECT), to IPv4 addresses and ports;
 * all others, too, are its own: any name leads to 127.0.0.1. With LOGIN (base64 of USER:PASSWORD) it wants
 * that and else answers 407. It prints "ready", and a line for each head: its fields separated by "|". */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES  16384
#define PIECE_BYTES 65536

static const char *login;

static bool say(int fd, const char *text)
{
    return write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* A byte at a time, so that what is behind the head stays for the tunnel. */
static bool read_head(int fd, char head[HEAD_BYTES])
{
    size_t used = 0;
    while (used < HEAD_BYTES - 1 && read(fd, head + used, 1) == 1) {
        head[++used] = 0;
        if (used >= 4 && memcmp(head + used - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

static void print_head(const char *head)
{
    flockfile(stdout);
    for (; *head; head++) {
        if (*head != '\r')
            putchar_unlocked(*head == '\n' ? '|' : *head);
    }
    putchar_unlocked('\n');
    fflush(stdout);
    funlockfile(stdout);
}

static int connect_to(const char *head)
{
    char host[256];
    unsigned port;
    struct sockaddr_in to = {.sin_family = AF_INET};
    if (sscanf(head, "CONNECT %255[^:]:%u HTTP/1.1", host, &port) != 2)
        return -1;
    to.sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool carry(int from, int to)
{
    char piece[PIECE_BYTES];
    ssize_t got = read(from, piece, sizeof piece), sent = 0;
    for (ssize_t n; sent < got; sent += n) {
        n = write(to, piece + sent, (size_t)(got - sent));
        if (n <= 0)
            return false;
    }
    return got > 0;
}

static void tunnel(int client, int target)
{
    struct pollfd fds[2] = {{.fd = client, .events = POLLIN}, {.fd = target, .events = POLLIN}};
    bool open = true;
    while (open && poll(fds, 2, -1) > 0)
        open = (!fds[0].revents || carry(client, target)) && (!fds[1].revents || carry(target, client));
}

static bool let_in(const char *head)
{
    char field[600];
    snprintf(field, sizeof field, "\r\nProxy-Authorization: Basic %s\r\n", login ? login : "");
    return !login || strcasestr(head, field);
}

static void *serve(void *arg)
{
    int client = (int)(long)arg, target = -1;
    char head[HEAD_BYTES] = "";
    if (read_head(client, head)) {
        print_head(head);
        if (!let_in(head))
            say(client, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
        else if ((target = connect_to(head)) < 0)
            say(client, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
        else if (say(client, "HTTP/1.1 200 Connection established\r\n\r\n"))
            tunnel(client, target);
    }
    if (target >= 0)
        close(target);
    close(client);
    return NULL;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    at.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0));
    login = argc > 2 ? argv[2] : NULL;
    signal(SIGPIPE, SIG_IGN);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (argc < 2 || bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 64) != 0) {
        perror("proxy PORT [LOGIN]");
        return 1;
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        pthread_t thread;
        int client = accept(listener, NULL, NULL);
        if (client >= 0 && pthread_create(&thread, NULL, serve, (void *)(long)client) == 0)
            pthread_detach(thread);
    }
}
