#include "uring/buffers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
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
    b->free = calloc(count, sizeof *b->free);
    int error = b->ring && b->memory && b->free ? register_ring(b, ring) : -ENOMEM;
    if (error < 0) {
        buffers_dispose(b);
        return error;
    }
    io_uring_buf_ring_init(b->ring);
    while (b->free_count < count)
        buffers_return(b, count - 1 - b->free_count);
    b->wanted = count < BUFFERS_WANTED ? count : BUFFERS_WANTED;
    buffers_offer(b);
    return 0;
}

static void see_demand(struct buffers *b)
{
    bool little = b->batch_bytes < (uint64_t)b->batch_buffers * b->bytes / 2;
    if (b->exhausted && little && b->wanted < b->count)
        b->wanted *= 2;
    else if (!little && b->batch_buffers > 0 && b->wanted > BUFFERS_WANTED)
        b->wanted /= 2;
    b->exhausted = false;
    b->batch_buffers = 0;
    b->batch_bytes = 0;
}

void buffers_offer(struct buffers *b)
{
    see_demand(b);
    int added = 0;
    for (; b->offered < b->wanted && b->free_count > 0; b->offered++) {
        unsigned id = b->free[--b->free_count];
        io_uring_buf_ring_add(b->ring, buffers_at(b, id), b->bytes, (unsigned short)id,
                              io_uring_buf_ring_mask(b->count), added++);
    }
    if (added > 0)
        io_uring_buf_ring_advance(b->ring, added);
}

void buffers_dispose(struct buffers *b)
{
    if (b->ring)
        munmap(b->ring, ring_bytes(b));
    if (b->memory)
        munmap(b->memory, (size_t)b->count * b->bytes);
    free(b->free);
    *b = (struct buffers){0};
}
