/* Descriptors of memory. */
#include "tests/sim/world.h"

#include <errno.h>
#include <stdlib.h>

struct pipe {
    struct bytes bytes;
    size_t capacity;
    int error; /* 0, or what writes and reads fail with */
};

int sim_pipe(struct sim *sim, size_t capacity_bytes)
{
    assert(capacity_bytes > 0);
    int fd = descriptor_open(sim, FD_PIPE);
    if (fd < 0)
        return fd;
    struct pipe *pipe = sim_allocate(sizeof *pipe);
    pipe->capacity = capacity_bytes;
    descriptor_get(sim, fd)->pipe = pipe;
    return fd;
}

void pipe_free(struct pipe *pipe)
{
    bytes_free(&pipe->bytes);
    free(pipe);
}

bool pipe_writable(const struct pipe *pipe)
{
    return pipe->error || bytes_size(&pipe->bytes) < pipe->capacity;
}

bool pipe_readable(const struct pipe *pipe)
{
    return pipe->error || bytes_size(&pipe->bytes) > 0;
}

int pipe_write(struct pipe *pipe, const void *data, size_t size)
{
    if (pipe->error)
        return pipe->error;
    size = min_size(size, pipe->capacity - bytes_size(&pipe->bytes));
    bytes_add(&pipe->bytes, data, size);
    return (int)size;
}

int pipe_read(struct pipe *pipe, void *out, size_t size)
{
    if (pipe->error)
        return pipe->error;
    size = min_size(size, bytes_size(&pipe->bytes));
    if (size > 0)
        memcpy(out, pipe->bytes.data + pipe->bytes.start, size);
    bytes_drop(&pipe->bytes, size);
    return (int)size;
}

static struct pipe *pipe_of(struct sim *sim, int fd)
{
    struct descriptor *d = descriptor_get(sim, fd);
    assert(d->kind == FD_PIPE);
    return d->pipe;
}

size_t sim_pipe_put(struct sim *sim, int fd, const void *bytes, size_t size)
{
    int put = pipe_write(pipe_of(sim, fd), bytes, size);
    return put > 0 ? (size_t)put : 0;
}

size_t sim_pipe_take(struct sim *sim, int fd, void *out, size_t size)
{
    int taken = pipe_read(pipe_of(sim, fd), out, size);
    return taken > 0 ? (size_t)taken : 0;
}

void sim_pipe_fail(struct sim *sim, int fd, int error)
{
    pipe_of(sim, fd)->error = error;
}
