/* What it takes to have bytes on the disk: ways to write and sync, files that grow or have their space
 * already, the page cache and around it. The README beside it says why. */
#include <fcntl.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { SIZES = 4, WRITES_MAX = 60, ROUNDS = 2, LARGEST = 4 << 20 };

static const struct {
    size_t bytes;
    unsigned writes;
} sizes[SIZES] = {{4096, 60}, {65536, 50}, {1 << 20, 30}, {LARGEST, 12}};

enum way { FDATASYNC, DSYNC, RING_LINKED, RING_DSYNC, RING_DSYNC_WORKER, WAYS };
static const char *const way_names[WAYS] = {"write, fdatasync", "RWF_DSYNC", "ring: both, linked",
                                            "ring: RWF_DSYNC", "ring: … on a worker"};

enum space { GROWING, SET_ASIDE, OLD_BLOCKS, SPACES };
static const char *const space_names[SPACES] = {"growing", "set aside", "old blocks"};

static struct io_uring ring;
static uint8_t *bytes;   /* LARGEST, aligned for O_DIRECT */
static double submit_us; /* the longest submit of a row */

static void check(bool holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- The ways ---- */

static unsigned prepare_entries(enum way way, int fd, size_t size, off_t offset)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    io_uring_prep_write(sqe, fd, bytes, (unsigned)size, (uint64_t)offset);
    if (way == RING_LINKED) {
        sqe->flags |= IOSQE_IO_LINK;
        io_uring_prep_fsync(io_uring_get_sqe(&ring), fd, IORING_FSYNC_DATASYNC);
        return 2;
    }
    sqe->rw_flags = RWF_DSYNC;
    if (way == RING_DSYNC_WORKER)
        sqe->flags |= IOSQE_ASYNC;
    return 1;
}

/* Submits first and waits then, as a loop with other work would. */
static void commit_on_ring(enum way way, int fd, size_t size, off_t offset)
{
    unsigned entries = prepare_entries(way, fd, size, offset);
    double before_us = now_us();
    check(io_uring_submit(&ring) == (int)entries, "submit");
    double took_us = now_us() - before_us;
    if (took_us > submit_us)
        submit_us = took_us;
    for (unsigned i = 0; i < entries; i++) {
        struct io_uring_cqe *cqe;
        check(io_uring_wait_cqe(&ring, &cqe) == 0, "wait");
        check(cqe->res == (i == 0 ? (int)size : 0), "write or sync on the ring");
        io_uring_cqe_seen(&ring, cqe);
    }
}

static void commit(enum way way, int fd, size_t size, off_t offset)
{
    struct iovec part = {bytes, size};
    if (way == FDATASYNC) {
        check(pwrite(fd, bytes, size, offset) == (ssize_t)size, "pwrite");
        check(fdatasync(fd) == 0, "fdatasync");
    } else if (way == DSYNC) {
        check(pwritev2(fd, &part, 1, offset, RWF_DSYNC) == (ssize_t)size, "pwritev2");
    } else {
        commit_on_ring(way, fd, size, offset);
    }
}

/* ---- The files ---- */

static void write_all_of(int fd, size_t size)
{
    for (size_t at = 0, part; at < size; at += part) {
        part = size - at < LARGEST ? size - at : LARGEST;
        check(pwrite(fd, bytes, part, (off_t)at) == (ssize_t)part, "pwrite");
    }
}

static int make_file(const char *path, enum space space, bool direct, size_t size)
{
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | (direct ? O_DIRECT : 0), 0600);
    check(fd >= 0, path);
    if (space == SET_ASIDE)
        check(fallocate(fd, 0, 0, (off_t)size) == 0, "fallocate");
    if (space == OLD_BLOCKS)
        write_all_of(fd, size);
    check(fsync(fd) == 0, "fsync");
    return fd;
}

/* ---- The measuring ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the writes of one size, each at the end of the one before. */
static double median_us(const char *path, enum way way, enum space space, bool direct, unsigned size)
{
    double took_us[WRITES_MAX];
    unsigned writes = sizes[size].writes;
    int fd = make_file(path, space, direct, writes * sizes[size].bytes);
    for (unsigned i = 0; i < writes; i++) {
        double before_us = now_us();
        commit(way, fd, sizes[size].bytes, (off_t)(i * sizes[size].bytes));
        took_us[i] = now_us() - before_us;
    }
    close(fd);
    unlink(path);
    qsort(took_us, writes, sizeof *took_us, compare);
    return took_us[writes / 2];
}

static void row(const char *path, enum way way, enum space space, bool direct)
{
    submit_us = 0;
    printf("%-6s  %-10s  %-19s", direct ? "direct" : "cached", space_names[space], way_names[way]);
    for (unsigned size = 0; size < SIZES; size++) {
        double us = median_us(path, way, space, direct, size);
        printf("  %7.0f us %5.0f MB/s", us, (double)sizes[size].bytes / us);
    }
    if (way >= RING_LINKED)
        printf("  %7.0f us", submit_us);
    puts("");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char path[4096];
    check(argc == 2 && snprintf(path, sizeof path, "%s/commit-file", argv[1]) < (int)sizeof path,
          "usage: commit DIRECTORY");
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    check(io_uring_queue_init_params(8, &ring, &params) == 0, "io_uring_queue_init_params");
    bytes = aligned_alloc(4096, LARGEST);
    check(bytes, "memory");
    memset(bytes, 0x5a, LARGEST);
    printf("%-40s%20s%20s%20s%20s  longest submit\n", "", "4 KiB", "64 KiB", "1 MiB", "4 MiB");
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 2 * SPACES * WAYS; i++)
            row(path, i % WAYS, i / WAYS % SPACES, i >= SPACES * WAYS);
    }
    io_uring_queue_exit(&ring);
    free(bytes);
    return 0;
}
