/* 100-byte messages to and fro over 16 connections on one ring, plain and registered descriptors in turn. */
#include <arpa/inet.h>
#include <assert.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CONNECTIONS = 16, ENDS = 2 * CONNECTIONS, SIZE = 100, REQUESTS = 400000, ROUNDS = 7, BUFFERS = 64 };

static uint8_t message[SIZE], memory[BUFFERS][256];
static int fds[ENDS]; /* 2i and 2i + 1 are connected */

static void *sleep_on(void *unused)
{
    pause();
    return unused;
}

static void connect_all(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    assert(bind(listener, (struct sockaddr *)&address, len) == 0 && listen(listener, ENDS) == 0);
    assert(getsockname(listener, (struct sockaddr *)&address, &len) == 0);
    for (int i = 0; i < ENDS; i += 2) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert(connect(fds[i], (struct sockaddr *)&address, len) == 0);
        fds[i + 1] = accept(listener, NULL, NULL);
        for (int end = 0; end < 2; end++)
            assert(setsockopt(fds[i + end], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
    }
    close(listener);
}

static struct io_uring_sqe *entry(struct io_uring *ring, int end, bool fixed, bool receive)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    int fd = fixed ? end : fds[end];
    if (receive)
        io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    else
        io_uring_prep_send(sqe, fd, message, SIZE, MSG_NOSIGNAL);
    sqe->flags |= (fixed ? IOSQE_FIXED_FILE : 0) | (receive ? IOSQE_BUFFER_SELECT : 0);
    io_uring_sqe_set_data64(sqe, (uint64_t)end * 2 + receive);
    return sqe;
}

static double cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* CPU microseconds a request. */
static double run(bool fixed)
{
    struct io_uring ring;
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    assert(io_uring_queue_init_params(256, &ring, &params) == 0);
    struct io_uring_buf_ring *buffers =
        aligned_alloc((size_t)sysconf(_SC_PAGESIZE), (size_t)sysconf(_SC_PAGESIZE));
    struct io_uring_buf_reg registration = {.ring_addr = (uintptr_t)buffers, .ring_entries = BUFFERS};
    assert(io_uring_register_buf_ring(&ring, &registration, 0) == 0);
    io_uring_buf_ring_init(buffers);
    for (int i = 0; i < BUFFERS; i++)
        io_uring_buf_ring_add(buffers, memory[i], sizeof memory[i], (unsigned short)i, BUFFERS - 1, i);
    io_uring_buf_ring_advance(buffers, BUFFERS);
    if (fixed)
        assert(io_uring_register_files(&ring, fds, ENDS) == 0);
    for (int end = 0; end < ENDS; end++)
        entry(&ring, end, fixed, true);
    for (int end = 0; end < ENDS; end += 2)
        entry(&ring, end, fixed, false);

    double start = cpu_us();
    unsigned in_play = CONNECTIONS, messages = 0;
    while (in_play > 0) {
        io_uring_submit_and_wait(&ring, 1);
        unsigned head, seen = 0;
        int returned = 0;
        struct io_uring_cqe *cqe;
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            seen++;
            assert(cqe->res == SIZE);
            if (!(cqe->user_data & 1))
                continue;
            assert(cqe->flags & IORING_CQE_F_MORE);
            unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
            io_uring_buf_ring_add(buffers, memory[id], sizeof memory[id], (unsigned short)id, BUFFERS - 1,
                                  returned++);
            if (++messages > 2 * REQUESTS - CONNECTIONS)
                in_play--;
            else
                entry(&ring, (int)(cqe->user_data / 2), fixed, false);
        }
        io_uring_cq_advance(&ring, seen);
        io_uring_buf_ring_advance(buffers, returned);
    }
    double used = cpu_us() - start;
    io_uring_queue_exit(&ring);
    free(buffers);
    return used / REQUESTS;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, sleep_on, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        for (int fixed = 0; fixed < 2; fixed++) {
            connect_all();
            printf("%s %.3f us/request\n", fixed ? "registered" : "plain     ", run(fixed));
            fflush(stdout);
            for (int end = 0; end < ENDS; end++)
                close(fds[end]);
        }
    }
    return 0;
}
