/* Destinations that hurt: one process that listens on loopback ports, each wrong in a way of its own.
 *
 *     faults [-n ADDRESS]
 *
 *     garbage     answers the first bytes of a request with noise that is not HTTP
 *     drip        has a small receive buffer and reads one byte a second
 *     silent      reads everything, never answers
 *     blackhole   never accepts; its queue is full, so that a connect gets no answer at all
 *     names       with -n: takes queries on ADDRESS:53/udp and never answers one (needs the right to bind it)
 *
 * Prints "garbage PORT drip PORT silent PORT blackhole PORT names 0|1" once all listen; ends by a signal. */
#include "experiments/common/listener.h"
#include "experiments/reactor/reactor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DRIP_MAX   256
#define FILLERS    16
#define BUFFER_MIN 2048 /* bytes of drip's receive buffer; the kernel doubles it */

struct faults {
    struct reactor *reactor;
    int drips[DRIP_MAX]; /* connections read one byte a second; -1: free */
    time_t dripped;      /* the second of the last bytes */
};

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void drop(struct faults *f, int fd)
{
    reactor_deregister(f->reactor, fd);
    close(fd);
}

static void garbage(void *arg, int fd, uint32_t events)
{
    (void)events;
    static const char noise[] = "\x16\x03\x01 SSH-2.0 220 ready\r\n\xff\xfe\r\r\n: : :\r\n\r\n";
    char bytes[65536];
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0)
        n = send(fd, noise, sizeof noise - 1, MSG_NOSIGNAL);
    if (n <= 0)
        drop(arg, fd);
}

static void silent(void *arg, int fd, uint32_t events)
{
    (void)events;
    char bytes[65536];
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN))
        drop(arg, fd);
}

static int accept_one(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void accept_garbage(void *arg, int listener, uint32_t events)
{
    (void)events;
    struct faults *f = arg;
    int fd = accept_one(listener);
    if (fd >= 0 && reactor_register(f->reactor, fd, EPOLLIN, garbage, f) != 0)
        close(fd);
}

static void accept_silent(void *arg, int listener, uint32_t events)
{
    (void)events;
    struct faults *f = arg;
    int fd = accept_one(listener);
    if (fd >= 0 && reactor_register(f->reactor, fd, EPOLLIN, silent, f) != 0)
        close(fd);
}

static void accept_drip(void *arg, int listener, uint32_t events)
{
    (void)events;
    struct faults *f = arg;
    int fd = accept_one(listener);
    for (int i = 0; fd >= 0 && i < DRIP_MAX; i++)
        if (f->drips[i] < 0) {
            f->drips[i] = fd;
            return;
        }
    if (fd >= 0)
        close(fd);
}

/* Once a second: one byte of each. */
static void drip(struct faults *f)
{
    time_t now = now_s();
    if (now == f->dripped)
        return;
    f->dripped = now;
    for (int i = 0; i < DRIP_MAX; i++) {
        char byte;
        if (f->drips[i] < 0)
            continue;
        ssize_t n = recv(f->drips[i], &byte, 1, 0);
        if (n > 0 || (n < 0 && errno == EAGAIN))
            continue;
        close(f->drips[i]);
        f->drips[i] = -1;
    }
}

/* Fills the queue of a listener that nobody accepts from: further SYNs are dropped. */
static int open_blackhole(void)
{
    int listener = listener_open(0, 0, false);
    if (listener < 0)
        return listener;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(listener_port(listener)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < FILLERS; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return -errno;
        connect(fd, (struct sockaddr *)&address, sizeof address);
    }
    return listener;
}

static bool open_names(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(53)};
    if (!text || inet_pton(AF_INET, text, &address.sin_addr) != 1)
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
}

/* Returns the port, 0 if it could not be opened. */
static uint16_t open_mode(struct faults *f, reactor_callback *accepting, int receive_buffer)
{
    int listener = listener_open(0, 1024, false);
    if (listener < 0)
        return 0;
    if (receive_buffer)
        setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    return reactor_register(f->reactor, listener, EPOLLIN, accepting, f) == 0 ? listener_port(listener) : 0;
}

int main(int argc, char **argv)
{
    const char *names = argc == 3 && strcmp(argv[1], "-n") == 0 ? argv[2] : NULL;
    static struct faults f;
    f.reactor = reactor_new();
    memset(f.drips, -1, sizeof f.drips);
    if (!f.reactor)
        return 1;
    uint16_t garbage_port = open_mode(&f, accept_garbage, 0);
    uint16_t drip_port = open_mode(&f, accept_drip, BUFFER_MIN);
    uint16_t silent_port = open_mode(&f, accept_silent, 0);
    int blackhole = open_blackhole();
    if (!garbage_port || !drip_port || !silent_port || blackhole < 0) {
        fprintf(stderr, "faults: cannot listen\n");
        return 1;
    }
    printf("garbage %u drip %u silent %u blackhole %u names %d\n", garbage_port, drip_port, silent_port,
           listener_port(blackhole), open_names(names));
    fflush(stdout);
    while (reactor_run(f.reactor, 200) >= 0)
        drip(&f);
    return 1;
}
