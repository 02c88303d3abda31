/* The disk that stores lie on: what it takes without a host. */
#ifndef PURE_EXPERIMENTS_BENCH_DISK_H
#define PURE_EXPERIMENTS_BENCH_DISK_H

#include <stddef.h>
#include <stdint.h>

/* A file that is written from its front on: into space set aside, as a segment of a journal is, or growing
 * with each write, as a file is that was just opened. */
struct disk_file {
    int fd;
    uint64_t at;
    char path[512];
};

/* In the directory, with `set_aside` bytes of space (0: it grows); -1, after a line on stderr, if that is
 * none of a disk (tmpfs). disk_close removes it. */
int disk_open(struct disk_file *file, const char *directory, const char *name, uint64_t set_aside);
void disk_close(struct disk_file *file);

/* One write and fdatasync behind the last; the nanoseconds it took, 0 after a line on stderr. `size` is at
 * most 1 MiB. */
uint64_t disk_write(struct disk_file *file, size_t size);

/* Bytes/s of 1 MiB at a time in the directory: the median of 64. 0 after a line on stderr. */
uint64_t disk_rate(const char *directory);

/* Removes a directory and all in it; that it is not there is no error. 0, or -1 after a line on stderr. */
int disk_remove(const char *directory);

#endif
