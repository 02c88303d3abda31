#include "uring/buffers.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at; /* page aligned, as the kernel asks of the ring */
}

static size_t ring_bytes(const struct buffers *b)
{
    return b->count * sizeof(struct io_uring_buf);
}

static int register_ring(struct buffers *b, struct io_uring *ring)
{
    struct io_uring_buf_reg registration = {
        .ring_addr = (uintptr_t)b->ring, .ring_entries = b->count, .bgid = BUFFERS_GROUP};
    return io_uring_register_buf_ring(ring, &registration, 0);
}

int buffers_init(struct buffers *b, struct io_uring *ring, unsigned count, uint32_t bytes)
{
    assert((count & (count - 1)) == 0 && count <= 32768 && (count == 0 || bytes > 0));
    *b = (struct buffers){.count = count, .bytes = bytes};
    if (count == 0)
        return 0;
    b->ring = map(ring_bytes(b));
    b->memory = map((size_t)count * bytes);
    int error = b->ring && b->memory ? register_ring(b, ring) : -ENOMEM;
    if (error < 0) {
        buffers_dispose(b);
        return error;
    }
    io_uring_buf_ring_init(b->ring);
    for (unsigned id = 0; id < count; id++)
        buffers_return(b, id);
    buffers_publish(b);
    return 0;
}

void buffers_dispose(struct buffers *b)
{
    if (b->ring)
        munmap(b->ring, ring_bytes(b));
    if (b->memory)
        munmap(b->memory, (size_t)b->count * b->bytes);
    *b = (struct buffers){0};
}
