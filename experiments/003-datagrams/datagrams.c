/* What a datagram of 1400 bytes costs through the seam: bursts are sent on one io and then received on
 * another, by one thread, so that each half has its own CPU time and nothing is lost. */
#include "experiments/epoll/epoll.h"
#include "uring/uring.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SEGMENT = 1400, BATCH = 40, BATCHES = 2, BURST = BATCH * BATCHES, BURSTS = 400, ROUNDS = 7 };

struct way {
    const char *back_end;
    bool gso, gro;
    double send_us[ROUNDS], receive_us[ROUNDS]; /* CPU a datagram */
    double enters;                              /* a datagram, both halves: system calls */
};

struct run {
    struct io *sender, *receiver;
    int from, to;
    struct sockaddr_in address;
    struct io_op sends[BURST], receive;
    unsigned sends_left, datagrams; /* of this burst */
};

static uint8_t block[SEGMENT * BATCH];

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct run run; /* one at a time */

static void sent(struct io_op *op, int result, bool more)
{
    check(result == (int)op->size && !more, "a send");
    run.sends_left--;
}

static void received(struct io_op *op, int result, bool more)
{
    check(result > 0 || result == -ENOBUFS, "a receive");
    if (result > 0)
        run.datagrams += (op->size + op->datagram.segment - 1u) / op->datagram.segment;
    if (!more)
        io_queue(run.receiver, op);
}

static struct io *open_io(const char *back_end)
{
    struct io *io;
    bool uring = strcmp(back_end, "uring") == 0;
    check((uring ? uring_open(&io, NULL) : epoll_open(&io, NULL)) == 0, "an io");
    return io;
}

static int open_socket(struct io *io, struct sockaddr_in *at)
{
    struct io_datagram_options options = {.receive_bytes = 1 << 20, .send_bytes = 1 << 20};
    socklen_t len = sizeof *at;
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = io_datagram_socket(io, (struct sockaddr *)at, len, &options);
    check(fd >= 0 && getsockname(fd, (struct sockaddr *)at, &len) == 0, "a socket");
    return fd;
}

static void open_run(const struct way *way)
{
    struct sockaddr_in own;
    int gro = way->gro;
    run = (struct run){.sender = open_io(way->back_end), .receiver = open_io(way->back_end)};
    run.from = open_socket(run.sender, &own);
    run.to = open_socket(run.receiver, &run.address);
    check(setsockopt(run.to, IPPROTO_UDP, UDP_GRO, &gro, sizeof gro) == 0, "UDP_GRO");
    io_prepare_datagram_receive(&run.receive, run.to, received);
    io_queue(run.receiver, &run.receive);
    check(io_wait(run.receiver, 0) >= 0, "a wait");
}

static void send_burst(bool gso)
{
    run.sends_left = gso ? BATCHES : BURST;
    uint32_t size = gso ? SEGMENT * BATCH : SEGMENT;
    for (unsigned i = 0, count = run.sends_left; i < count; i++) {
        io_prepare_datagram_send(&run.sends[i], run.from, block, size, SEGMENT,
                                 (struct sockaddr *)&run.address, sizeof run.address, sent);
        io_queue(run.sender, &run.sends[i]);
    }
    while (run.sends_left > 0)
        check(io_wait(run.sender, 0) >= 0, "a wait");
}

static void receive_burst(void)
{
    for (unsigned waits = 0; run.datagrams < BURST; waits++)
        check(waits < 10000 && io_wait(run.receiver, 0) >= 0, "a wait");
    run.datagrams = 0;
}

static void measure(struct way *way, unsigned round)
{
    open_run(way);
    double sending_us = 0, receiving_us = 0;
    for (unsigned i = 0; i < BURSTS; i++) {
        double start = cpu_us();
        send_burst(way->gso);
        double middle = cpu_us();
        receive_burst();
        sending_us += middle - start;
        receiving_us += cpu_us() - middle;
    }
    way->send_us[round] = sending_us / (BURSTS * BURST);
    way->receive_us[round] = receiving_us / (BURSTS * BURST);
    way->enters =
        (double)(counter_read(&run.sender->counters.enters) + counter_read(&run.receiver->counters.enters)) /
        (BURSTS * BURST);
    io_dispose(run.sender);
    io_dispose(run.receiver);
    close(run.from);
    close(run.to);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

int main(void)
{
    struct way ways[] = {
        {.back_end = "uring"},
        {.back_end = "epoll"},
        {.back_end = "uring", .gro = true},
        {.back_end = "epoll", .gro = true},
        {.back_end = "uring", .gso = true},
        {.back_end = "epoll", .gso = true},
        {.back_end = "uring", .gso = true, .gro = true},
        {.back_end = "epoll", .gso = true, .gro = true},
    };
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
            measure(&ways[i], round);
    }
    printf("back end  GSO  GRO  send us  receive us  system calls   (a datagram of %d bytes)\n", SEGMENT);
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        struct way *w = &ways[i];
        printf("%-8s  %-3s  %-3s  %7.3f  %10.3f  %12.3f\n", w->back_end, w->gso ? "on" : "off",
               w->gro ? "on" : "off", median(w->send_us), median(w->receive_us), w->enters);
    }
    return 0;
}
