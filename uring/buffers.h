/* A ring of provided buffers (IORING_REGISTER_PBUF_RING, 5.19): the kernel takes one for each receive that
 * has bytes, so that idle connections cost no memory.
 *
 * A buffer is the kernel's, or, from its completion to buffers_return, ours; what was returned becomes the
 * kernel's with the next buffers_publish. */
#ifndef PURE_URING_BUFFERS_H
#define PURE_URING_BUFFERS_H

#include <liburing.h>
#include <stdint.h>

#define BUFFERS_GROUP 0 /* a ring has one group */

struct buffers {
    struct io_uring_buf_ring *ring; /* NULL: none */
    uint8_t *memory;                /* count * bytes */
    unsigned count;                 /* a power of two */
    uint32_t bytes;                 /* of each */
    int returned;                   /* since the last publication */
};

/* Maps and registers them, all the kernel's; none if `count` is 0. 0 or a negative errno. */
int buffers_init(struct buffers *b, struct io_uring *ring, unsigned count, uint32_t bytes);

/* After the ring is gone. */
void buffers_dispose(struct buffers *b);

static inline uint8_t *buffers_at(const struct buffers *b, unsigned id)
{
    return b->memory + (size_t)id * b->bytes;
}

static inline void buffers_return(struct buffers *b, unsigned id)
{
    io_uring_buf_ring_add(b->ring, buffers_at(b, id), b->bytes, (unsigned short)id,
                          io_uring_buf_ring_mask(b->count), b->returned++);
}

static inline void buffers_publish(struct buffers *b)
{
    if (b->returned == 0)
        return;
    io_uring_buf_ring_advance(b->ring, b->returned);
    b->returned = 0;
}

#endif
