/* Operations on files. Readiness says nothing of a disk, so each is a call that blocks, made when the
 * operation is handed over; its result comes with the others of the wait. */
#include "experiments/epoll/entries.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static ssize_t write_durably(const struct io_op *op)
{
    struct iovec part = {op->data, op->size};
    return pwritev2(op->fd, &part, 1, (off_t)op->file.offset, RWF_DSYNC);
}

/* As the system calls: -1 and errno. */
static ssize_t call(const struct io_op *op)
{
    switch (op->kind) {
    case IO_FILE_OPEN:
        return openat(op->fd, op->file.name, op->file.flags | O_CLOEXEC, (mode_t)op->file.mode);
    case IO_FILE_ALLOCATE:
        return fallocate(op->fd, 0, 0, (off_t)op->file.offset);
    case IO_FILE_READ:
        return pread(op->fd, op->data, op->size, (off_t)op->file.offset);
    case IO_FILE_WRITE:
        return write_durably(op);
    case IO_FILE_SYNC:
        return fsync(op->fd);
    default:
        return unlinkat(op->fd, op->file.name, 0);
    }
}

bool epoll_run_file(struct epoll_io *e, struct io_op *op)
{
    if (op->kind < IO_FILE_OPEN || op->kind > IO_FILE_UNLINK)
        return false;
    epoll_count_call(e);
    ssize_t result = TEMP_FAILURE_RETRY(call(op));
    epoll_result(e, op, result < 0 ? -errno : (int)result);
    return true;
}
