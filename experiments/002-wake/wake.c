/* Two threads wake each other in turn, by eventfd and by MSG_RING. */
#include <assert.h>
#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WAKES = 100000, ROUNDS = 7 };
enum { DATA_WAKE = 1, DATA_SENT = 2 };

struct player {
    struct io_uring ring;
    struct player *other;
    int fd; /* an eventfd */
    uint64_t count;
    bool by_ring, first;
};

static pthread_barrier_t both_ready;

static void arm(struct player *p)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&p->ring);
    io_uring_prep_read(sqe, p->fd, &p->count, sizeof p->count, (uint64_t)-1);
    io_uring_sqe_set_data64(sqe, DATA_WAKE);
}

static void wake_other(struct player *p)
{
    if (p->by_ring) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&p->ring);
        io_uring_prep_msg_ring(sqe, p->other->ring.ring_fd, 0, DATA_WAKE, 0);
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
        io_uring_sqe_set_data64(sqe, DATA_SENT);
        return;
    }
    uint64_t one = 1;
    assert(write(p->other->fd, &one, sizeof one) == sizeof one);
}

static void sleep_until_woken(struct player *p)
{
    bool woken = false;
    if (!p->by_ring)
        arm(p);
    while (!woken) {
        io_uring_submit_and_wait(&p->ring, 1);
        struct io_uring_cqe *cqe;
        while (io_uring_peek_cqe(&p->ring, &cqe) == 0) {
            assert(cqe->res >= 0);
            woken |= cqe->user_data == DATA_WAKE;
            io_uring_cqe_seen(&p->ring, cqe);
        }
    }
}

static void *play(void *argument)
{
    struct player *p = argument;
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    assert(io_uring_queue_init_params(8, &p->ring, &params) == 0);
    pthread_barrier_wait(&both_ready);
    for (int i = 0; i < WAKES; i++) {
        if (p->first)
            wake_other(p);
        sleep_until_woken(p);
        if (!p->first)
            wake_other(p);
    }
    io_uring_submit(&p->ring);
    pthread_barrier_wait(&both_ready);
    io_uring_queue_exit(&p->ring);
    return NULL;
}

static double cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* CPU microseconds a wake, both sides together. */
static double run(bool by_ring)
{
    struct player players[2] = {{.other = &players[1], .by_ring = by_ring, .first = true},
                                {.other = &players[0], .by_ring = by_ring}};
    pthread_t threads[2];
    pthread_barrier_init(&both_ready, NULL, 2);
    double start = cpu_us();
    for (int i = 0; i < 2; i++)
        players[i].fd = eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, play, &players[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        close(players[i].fd);
    pthread_barrier_destroy(&both_ready);
    return (cpu_us() - start) / (2 * WAKES);
}

int main(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int by_ring = 0; by_ring < 2; by_ring++) {
            printf("%s %.3f us/wake\n", by_ring ? "msg_ring" : "eventfd ", run(by_ring));
            fflush(stdout);
        }
    }
    return 0;
}
