/* The blocking calls (core/files.h) on a simulated disk. They take no time. */
#include "tests/sim/disk_model.h"

#include <errno.h>
#include <fcntl.h>

#define PLENTY (UINT64_C(1) << 40) /* free bytes of a disk without a limit */

static struct sim_disk *disk_of(struct files *f)
{
    return container_of(f, struct sim_disk, files);
}

static struct open_file *file_at(struct files *f, int fd)
{
    struct descriptor *d = descriptor_get(disk_of(f)->sim, fd);
    assert(d->kind == FD_FILE && d->file->inode->disk == disk_of(f));
    return d->file;
}

/* Whose working directory is the root. */
static struct inode *directory_at(struct files *f, int fd)
{
    return fd == AT_FDCWD ? disk_of(f)->root : file_at(f, fd)->inode;
}

static int files_open(struct files *f, int directory, const char *name, int flags, unsigned mode)
{
    (void)mode; /* nobody can tell */
    struct inode *from = directory_at(f, directory);
    return from->directory ? disk_open(disk_of(f), from, name, flags) : -ENOTDIR;
}

static int files_close(struct files *f, int fd)
{
    (void)file_at(f, fd);
    descriptor_close(disk_of(f)->sim, fd);
    return 0;
}

static int64_t files_size(struct files *f, int fd)
{
    return (int64_t)file_at(f, fd)->inode->now.size;
}

static int64_t files_read(struct files *f, int fd, void *data, uint64_t size, uint64_t offset)
{
    return disk_read(file_at(f, fd), data, size, offset, false);
}

static int64_t files_write(struct files *f, int fd, const void *data, uint64_t size, uint64_t offset)
{
    return disk_write(file_at(f, fd), data, size, offset, false);
}

static int files_sync(struct files *f, int fd)
{
    return disk_sync(file_at(f, fd));
}

static int files_refresh(struct files *f, int fd)
{
    struct inode *inode = file_at(f, fd)->inode;
    int error = disk_sync(file_at(f, fd));
    if (!inode->directory && !inode->first)
        content_copy(&inode->now, &inode->safe);
    return error;
}

static int files_make_directory(struct files *f, int directory, const char *name, unsigned mode)
{
    (void)mode;
    struct inode *from = directory_at(f, directory);
    return from->directory ? disk_make_directory(from, name) : -ENOTDIR;
}

static bool listed(const struct entry *entry, unsigned *index, unsigned from, unsigned to)
{
    bool here = entry->now && *index >= from && *index < to;
    *index += entry->now != NULL;
    return here;
}

static void list_part(const struct inode *directory, unsigned from, unsigned to,
                      void (*each)(void *context, const char *name), void *context)
{
    unsigned index = 0;
    for (const struct entry *entry = directory->entries; entry; entry = entry->next) {
        if (listed(entry, &index, from, to))
            each(context, entry->name);
    }
}

/* From anywhere round, so that nobody counts on an order. */
static int files_list(struct files *f, int fd, void (*each)(void *context, const char *name), void *context)
{
    struct sim_disk *disk = disk_of(f);
    const struct inode *directory = file_at(f, fd)->inode;
    if (!directory->directory)
        return -ENOTDIR;
    if (disk->cut_off || sim_chance(disk->sim, disk->policy.read_error))
        return -EIO;
    unsigned count = 0;
    for (const struct entry *entry = directory->entries; entry; entry = entry->next)
        count += entry->now != NULL;
    unsigned first = count > 0 ? (unsigned)random_below(&disk->sim->random, count) : 0;
    list_part(directory, first, count, each, context);
    list_part(directory, 0, first, each, context);
    return 0;
}

static int files_unlink(struct files *f, int directory, const char *name)
{
    struct inode *from = directory_at(f, directory);
    return from->directory ? disk_unlink(from, name) : -ENOTDIR;
}

static int files_truncate(struct files *f, int fd, uint64_t size)
{
    return disk_truncate(file_at(f, fd), size);
}

static int files_lock(struct files *f, int fd)
{
    struct open_file *file = file_at(f, fd);
    if (file->inode->locked && !file->locks)
        return -EWOULDBLOCK;
    file->inode->locked = file->locks = true;
    return 0;
}

static int files_space(struct files *f, int fd, uint64_t *free_bytes)
{
    const struct sim_disk *disk = disk_of(f);
    uint64_t used = sim_disk_used(disk), capacity = disk->policy.capacity_bytes;
    (void)file_at(f, fd);
    if (capacity == 0)
        *free_bytes = PLENTY;
    else
        *free_bytes = capacity > used ? capacity - used : 0;
    return 0;
}

const struct files_backend disk_files_backend = {.open = files_open,
                                                 .close = files_close,
                                                 .size = files_size,
                                                 .read = files_read,
                                                 .write = files_write,
                                                 .sync = files_sync,
                                                 .refresh = files_refresh,
                                                 .make_directory = files_make_directory,
                                                 .list = files_list,
                                                 .unlink = files_unlink,
                                                 .truncate = files_truncate,
                                                 .lock = files_lock,
                                                 .space = files_space};
