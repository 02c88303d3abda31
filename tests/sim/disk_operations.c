/* What operations on files do: as the system calls, with what may go wrong by the disk's policy. */
#include "tests/sim/disk_model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define EIO_LOST 500 /* of the sectors of a write back that failed, at least */

static bool writable(const struct open_file *file)
{
    return (file->flags & O_ACCMODE) != O_RDONLY;
}

/* Why something that is to be changed is not. 0: it is. */
static int refuse(const struct sim_disk *disk, bool takes_space)
{
    if (disk->cut_off)
        return -EIO;
    if (disk->policy.read_only)
        return -EROFS;
    if (takes_space && sim_chance(disk->sim, disk->policy.no_space))
        return -ENOSPC;
    return 0;
}

/* The same of what is done whole or not at all. */
static int refuse_whole(const struct sim_disk *disk, bool takes_space)
{
    int error = refuse(disk, takes_space);
    return error == 0 && sim_chance(disk->sim, disk->policy.write_error) ? -EIO : error;
}

/* Of `size` bytes at `offset`, how many there is room for. */
static uint64_t fitting(const struct inode *inode, uint64_t offset, uint64_t size)
{
    const struct sim_disk *disk = inode->disk;
    uint64_t used = sim_disk_used(disk), capacity = disk->policy.capacity_bytes;
    uint64_t room = capacity > used ? capacity - used : 0, end = inode->now.size + room;
    if (capacity == 0 || offset + size <= end)
        return size;
    return end > offset ? end - offset : 0;
}

/* The kernel could not write it: some of it is there, some is not. Its copy in memory counts as written from
 * then on, so that no later sync tries again. */
static void fail_to_settle(struct inode *inode, uint64_t from, uint64_t to)
{
    const struct sim_disk_policy *p = &inode->disk->policy;
    struct odds odds = {.lost = p->lost > EIO_LOST ? p->lost : EIO_LOST};
    odds.torn = p->torn < 1000 - odds.lost ? p->torn : 1000 - odds.lost;
    inode_settle(inode, from, to, &odds);
}

/* ---- Names ---- */

static int find_or_create(struct sim_disk *disk, struct inode *directory, const char *name, int flags,
                          struct inode **inode)
{
    struct place place;
    int error = disk->cut_off ? -EIO : disk_walk(directory, name, &place);
    if (error < 0)
        return error;
    *inode = place.found;
    if (place.found)
        return (flags & O_CREAT) && (flags & O_EXCL) ? -EEXIST : 0;
    if (!(flags & O_CREAT))
        return -ENOENT;
    if ((error = refuse_whole(disk, true)) < 0)
        return error;
    *inode = inode_new(disk, false);
    entry_set(place.directory, place.name, *inode);
    return 0;
}

static int may_open(const struct inode *inode, int flags)
{
    bool changes = (flags & O_ACCMODE) != O_RDONLY;
    if (inode->directory)
        return changes || (flags & O_CREAT) ? -EISDIR : 0;
    if (flags & O_DIRECTORY)
        return -ENOTDIR;
    return changes && inode->disk->policy.read_only ? -EROFS : 0;
}

int disk_open(struct sim_disk *disk, struct inode *directory, const char *name, int flags)
{
    int fd = descriptor_open(disk->sim, FD_SOCKET);
    if (fd < 0)
        return fd;
    struct inode *inode;
    int error = find_or_create(disk, directory, name, flags, &inode);
    if (error == 0)
        error = may_open(inode, flags);
    if (error < 0) {
        descriptor_close(disk->sim, fd);
        return error;
    }
    struct open_file *file = sim_allocate(sizeof *file);
    file->inode = inode;
    file->flags = flags;
    inode_hold(inode, true);
    struct descriptor *d = descriptor_get(disk->sim, fd);
    d->kind = FD_FILE;
    d->file = file;
    if ((flags & O_TRUNC) && writable(file))
        inode_cut(inode);
    return fd;
}

void file_close(struct open_file *file)
{
    if (file->locks)
        file->inode->locked = false;
    inode_release(file->inode, true);
    free(file);
}

int disk_unlink(struct inode *directory, const char *name)
{
    struct place place;
    int error = disk_walk(directory, name, &place);
    if (error < 0)
        return error;
    if (!place.found)
        return -ENOENT;
    if (place.found->directory)
        return -EISDIR;
    if ((error = refuse_whole(directory->disk, false)) < 0)
        return error;
    entry_set(place.directory, place.name, NULL);
    return 0;
}

int disk_make_directory(struct inode *directory, const char *name)
{
    struct place place;
    int error = disk_walk(directory, name, &place);
    if (error < 0)
        return error;
    if (place.found)
        return -EEXIST;
    if ((error = refuse_whole(directory->disk, true)) < 0)
        return error;
    entry_set(place.directory, place.name, inode_new(directory->disk, true));
    return 0;
}

/* ---- Bytes ---- */

int64_t disk_read(struct open_file *file, void *data, uint64_t size, uint64_t offset, bool seam)
{
    const struct content *c = &file->inode->now;
    struct sim_disk *disk = file->inode->disk;
    if (file->inode->directory)
        return -EISDIR;
    if ((file->flags & O_ACCMODE) == O_WRONLY)
        return -EBADF;
    if (disk->cut_off || sim_chance(disk->sim, disk->policy.read_error))
        return -EIO;
    size = offset < c->size ? min_u64(size, c->size - offset) : 0;
    if (seam && size > 1 && sim_chance(disk->sim, disk->policy.short_read))
        size = 1 + random_below(&disk->sim->random, size - 1);
    if (size == 0)
        return 0;
    uint64_t held = offset < c->held ? min_u64(size, c->held - offset) : 0;
    if (held > 0)
        memcpy(data, c->bytes + offset, held);
    memset((uint8_t *)data + held, 0, size - held);
    return (int64_t)size;
}

int64_t disk_write(struct open_file *file, const void *data, uint64_t size, uint64_t offset, bool seam)
{
    struct inode *inode = file->inode;
    struct sim_disk *disk = inode->disk;
    if (!writable(file))
        return -EBADF;
    int error = refuse(disk, true);
    if (error < 0 || size == 0)
        return error;
    uint64_t fits = fitting(inode, offset, size);
    if (fits == 0)
        return -ENOSPC;
    if (seam && fits > 1 && sim_chance(disk->sim, disk->policy.short_write))
        fits = 1 + random_below(&disk->sim->random, fits - 1);
    inode_write(inode, data, fits, offset);
    if (sim_chance(disk->sim, disk->policy.write_error)) {
        fail_to_settle(inode, offset, offset + fits);
        return -EIO;
    }
    if (!seam)
        return fits == size ? (int64_t)size : -ENOSPC;
    inode_settle(inode, offset, offset + fits, NULL);
    disk->syncs++;
    return (int64_t)fits;
}

int disk_allocate(struct open_file *file, uint64_t size)
{
    const struct inode *inode = file->inode;
    if (!writable(file))
        return -EBADF;
    if (size == 0)
        return -EINVAL;
    if (inode->disk->policy.no_allocate)
        return -EOPNOTSUPP;
    int error = refuse_whole(inode->disk, true);
    if (error < 0)
        return error;
    if (fitting(inode, 0, size) < size)
        return -ENOSPC;
    inode_grow(file->inode, size);
    return 0;
}

int disk_truncate(struct open_file *file, uint64_t size)
{
    if (!writable(file))
        return -EBADF;
    int error = refuse_whole(file->inode->disk, false);
    if (error == 0)
        inode_shorten(file->inode, size);
    return error;
}

int disk_sync(struct open_file *file)
{
    struct sim_disk *disk = file->inode->disk;
    if (disk->cut_off)
        return -EIO;
    if (sim_chance(disk->sim, disk->policy.write_error)) {
        if (!file->inode->directory)
            fail_to_settle(file->inode, 0, UINT64_MAX);
        return -EIO;
    }
    inode_settle(file->inode, 0, UINT64_MAX, NULL);
    disk->syncs++;
    return 0;
}

/* ---- The seam's ---- */

static struct open_file *file_of(struct sim *sim, const struct io_op *op)
{
    return descriptor_get(sim, op->fd)->file;
}

struct sim_disk *file_disk(struct sim *sim, const struct io_op *op)
{
    return file_of(sim, op)->inode->disk;
}

static uint64_t between(struct sim *sim, uint64_t min, uint64_t max)
{
    return min + random_below(&sim->random, max - min + 1);
}

uint64_t file_ready_ns(struct sim *sim, const struct io_op *op)
{
    if (op->fd < 0)
        return sim->now_ns;
    const struct sim_disk_policy *p = &file_disk(sim, op)->policy;
    uint64_t takes = between(sim, p->operation_min_ns, p->operation_max_ns);
    bool transfers = op->kind == IO_FILE_READ || op->kind == IO_FILE_WRITE;
    if (transfers && p->bytes_s > 0)
        takes += op->size * NS_PER_S / p->bytes_s;
    if (op->kind == IO_FILE_WRITE || op->kind == IO_FILE_SYNC)
        takes +=
            sim_chance(sim, p->slow_sync) ? p->slow_sync_ns : between(sim, p->sync_min_ns, p->sync_max_ns);
    return sim->now_ns + takes;
}

int file_perform(struct sim *sim, struct io_op *op)
{
    if (op->fd < 0)
        return -EBADF;
    struct open_file *file = file_of(sim, op);
    struct inode *inode = file->inode;
    bool named = op->kind == IO_FILE_OPEN || op->kind == IO_FILE_UNLINK;
    if (named && !inode->directory)
        return -ENOTDIR;
    switch (op->kind) {
    case IO_FILE_OPEN:
        return disk_open(inode->disk, inode, op->file.name, op->file.flags);
    case IO_FILE_ALLOCATE:
        return disk_allocate(file, op->file.offset);
    case IO_FILE_READ:
        return (int)disk_read(file, op->data, op->size, op->file.offset, true);
    case IO_FILE_WRITE:
        return (int)disk_write(file, op->data, op->size, op->file.offset, true);
    case IO_FILE_SYNC:
        return disk_sync(file);
    default:
        assert(op->kind == IO_FILE_UNLINK);
        return disk_unlink(inode, op->file.name);
    }
}

/* The kernel writes a file from the front. */
static void abandon_write(struct open_file *file, const struct io_op *op)
{
    struct random *random = &file->inode->disk->sim->random;
    uint64_t most = fitting(file->inode, op->file.offset, op->size), size = most;
    if (!writable(file) || refuse(file->inode->disk, true) < 0)
        return;
    switch (random_below(random, 4)) {
    case 0:
        size = 0;
        break;
    case 1:
        size = random_below(random, most + 1);
        break;
    default:
        break; /* all of it */
    }
    inode_write(file->inode, op->data, size, op->file.offset);
}

void file_abandon(struct sim *sim, struct io_op *op)
{
    if (op->fd < 0)
        return;
    struct open_file *file = file_of(sim, op);
    if (op->kind == IO_FILE_WRITE) {
        abandon_write(file, op);
        return;
    }
    if (op->kind == IO_FILE_READ || sim_chance(sim, 500))
        return;
    int result = file_perform(sim, op);
    if (op->kind == IO_FILE_OPEN && result >= 0)
        descriptor_close(sim, result);
}

static void cut_off_thread(struct sim_thread *t, const struct sim_disk *disk)
{
    for (size_t i = 0; i < t->op_count; i++) {
        struct io_op *op = t->ops[i];
        if (file_kind(op) && op->fd >= 0 && file_disk(t->sim, op) == disk)
            file_abandon(t->sim, op);
    }
}

void sim_disk_cut_off(struct sim_disk *disk)
{
    for (struct sim_thread *t = disk->sim->threads; t; t = t->next)
        cut_off_thread(t, disk);
    disk->cut_off = true;
}
