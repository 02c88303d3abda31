#include "experiments/bench/disk.h"

#include "experiments/bench/process.h"
#include "experiments/bench/row.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LARGEST (1u << 20)
#define WRITES  64u
#define DEPTH   8 /* descriptors that a removal uses */

static int say(const char *path, const char *what)
{
    fprintf(stderr, "bench: %s: %s: %s\n", path, what, strerror(errno));
    return -1;
}

static bool is_disk(const char *directory)
{
    struct statfs fs;
    if (statfs(directory, &fs) != 0)
        return say(directory, "statfs") == 0;
    if (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)
        return true;
    fprintf(stderr, "bench: %s is in memory: what is durable cannot be measured there\n", directory);
    return false;
}

int disk_open(struct disk_file *file, const char *directory, const char *name, uint64_t set_aside)
{
    *file = (struct disk_file){.fd = -1};
    if (!is_disk(directory))
        return -1;
    snprintf(file->path, sizeof file->path, "%s/%s", directory, name);
    file->fd = open(file->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file->fd >= 0 && (set_aside == 0 || fallocate(file->fd, 0, 0, (off_t)set_aside) == 0) &&
        fsync(file->fd) == 0)
        return 0;
    say(file->path, "set aside");
    disk_close(file);
    return -1;
}

void disk_close(struct disk_file *file)
{
    if (file->fd < 0)
        return;
    close(file->fd);
    unlink(file->path);
    file->fd = -1;
}

uint64_t disk_write(struct disk_file *file, size_t size)
{
    static uint8_t bytes[LARGEST];
    if (bytes[0] == 0)
        memset(bytes, 'x', sizeof bytes);
    uint64_t start_ns = monotonic_ns();
    if (pwrite(file->fd, bytes, size, (off_t)file->at) != (ssize_t)size || fdatasync(file->fd) != 0) {
        say(file->path, "write and fdatasync");
        return 0;
    }
    file->at += size;
    return monotonic_ns() - start_ns;
}

uint64_t disk_rate(const char *directory)
{
    struct disk_file file;
    double took_ns[WRITES];
    unsigned count = 0;
    if (disk_open(&file, directory, "disk", (uint64_t)WRITES * LARGEST) != 0)
        return 0;
    while (count < WRITES && (took_ns[count] = (double)disk_write(&file, LARGEST)) > 0)
        count++;
    disk_close(&file);
    return count == WRITES ? (uint64_t)(LARGEST * 1e9 / row_median(took_ns, count)) : 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    return remove(path) == 0 || errno == ENOENT ? 0 : say(path, "remove");
}

int disk_remove(const char *directory)
{
    if (access(directory, F_OK) != 0)
        return 0;
    return nftw(directory, remove_one, DEPTH, FTW_DEPTH | FTW_PHYS) == 0 ? 0 : -1;
}
