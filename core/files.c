#include "core/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int64_t result_of(int64_t result)
{
    return result < 0 ? -errno : result;
}

static int system_open(struct files *f, int directory, const char *name, int flags, unsigned mode)
{
    (void)f;
    return (int)result_of(TEMP_FAILURE_RETRY(openat(directory, name, flags | O_CLOEXEC, (mode_t)mode)));
}

/* Linux has closed the descriptor when it says EINTR: another close might hit somebody else's. */
static int system_close(struct files *f, int fd)
{
    (void)f;
    return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

static int64_t system_size(struct files *f, int fd)
{
    (void)f;
    struct stat status;
    return fstat(fd, &status) < 0 ? -errno : status.st_size;
}

static int64_t system_read(struct files *f, int fd, void *data, uint64_t size, uint64_t offset)
{
    (void)f;
    uint64_t done = 0;
    while (done < size) {
        ssize_t got =
            TEMP_FAILURE_RETRY(pread(fd, (uint8_t *)data + done, size - done, (off_t)(offset + done)));
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (uint64_t)got;
    }
    return (int64_t)done;
}

static int64_t system_write(struct files *f, int fd, const void *data, uint64_t size, uint64_t offset)
{
    (void)f;
    uint64_t done = 0;
    while (done < size) {
        ssize_t put =
            TEMP_FAILURE_RETRY(pwrite(fd, (const uint8_t *)data + done, size - done, (off_t)(offset + done)));
        if (put <= 0) /* a file that takes nothing, without a reason, would be asked for ever */
            return put < 0 ? -errno : -EIO;
        done += (uint64_t)put;
    }
    return (int64_t)done;
}

static int system_sync(struct files *f, int fd)
{
    (void)f;
    return (int)result_of(TEMP_FAILURE_RETRY(fsync(fd)));
}

/* The kernel drops pages that are not to be written: those of writes that failed among them. */
static int refresh(struct files *f, int fd)
{
    int error = system_sync(f, fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return error;
}

static int system_make_directory(struct files *f, int directory, const char *name, unsigned mode)
{
    (void)f;
    return (int)result_of(mkdirat(directory, name, (mode_t)mode));
}

/* Opened anew, as a duplicate would share its position with `fd`. */
static int open_list(int fd, DIR **list)
{
    int own = (int)TEMP_FAILURE_RETRY(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (own < 0)
        return -errno;
    *list = fdopendir(own);
    if (*list)
        return 0;
    int error = -errno;
    close(own);
    return error;
}

static int system_list(struct files *f, int fd, void (*each)(void *context, const char *name), void *context)
{
    (void)f;
    DIR *list;
    int error = open_list(fd, &list);
    if (error < 0)
        return error;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(list);
        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            each(context, entry->d_name);
    }
    error = -errno;
    closedir(list);
    return error;
}

static int system_unlink(struct files *f, int directory, const char *name)
{
    (void)f;
    return (int)result_of(unlinkat(directory, name, 0));
}

static int system_truncate(struct files *f, int fd, uint64_t size)
{
    (void)f;
    return (int)result_of(TEMP_FAILURE_RETRY(ftruncate(fd, (off_t)size)));
}

/* flock belongs to the open file, not to the process as fcntl's locks do: another descriptor of the same file
 * that somebody here closes does not end it. */
static int system_lock(struct files *f, int fd)
{
    (void)f;
    return (int)result_of(TEMP_FAILURE_RETRY(flock(fd, LOCK_EX | LOCK_NB)));
}

static int system_space(struct files *f, int fd, uint64_t *free_bytes)
{
    (void)f;
    struct statvfs status;
    if (TEMP_FAILURE_RETRY(fstatvfs(fd, &status)) < 0)
        return -errno;
    *free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
    return 0;
}

static const struct files_backend backend = {
    .open = system_open,
    .close = system_close,
    .size = system_size,
    .read = system_read,
    .write = system_write,
    .sync = system_sync,
    .refresh = refresh,
    .make_directory = system_make_directory,
    .list = system_list,
    .unlink = system_unlink,
    .truncate = system_truncate,
    .lock = system_lock,
    .space = system_space,
};

struct files *files_system(void)
{
    static struct files files = {.backend = &backend};
    return &files;
}
