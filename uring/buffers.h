/* A ring of provided buffers (IORING_REGISTER_PBUF_RING, 5.19): the kernel takes one for each receive that
 * has bytes, so that idle connections cost no memory.
 *
 * Each buffer is in one of three places:
 *
 *     free      a stack: the one used last, and so the one most likely still in the cache, is offered next
 *     offered   in the kernel's ring, or in a completion not taken yet: at most `wanted` of them
 *     ours      from buffers_taken to buffers_return
 *
 * The kernel takes the offered ones in turn. Were all offered, each receive would write to the memory that
 * was used longest ago; a few offered ones stay in the cache. Running out of them is ordinary (ENOBUFS; the
 * receive is armed again). `wanted` doubles when that happens though little came in each: many connections,
 * then, not much from one. It halves again, down to BUFFERS_WANTED, with each batch of well filled ones. */
#ifndef PURE_URING_BUFFERS_H
#define PURE_URING_BUFFERS_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#define BUFFERS_GROUP  0 /* a ring has one group */
#define BUFFERS_WANTED 8 /* the least; more runs of datagrams than a socket's own buffer mostly holds */

struct buffers {
    struct io_uring_buf_ring *ring; /* NULL: none */
    uint8_t *memory;                /* count * bytes */
    unsigned count;                 /* a power of two */
    uint32_t bytes;                 /* of each */
    uint16_t *free;                 /* the stack, free_count of them */
    unsigned free_count;
    unsigned offered, wanted;
    unsigned batch_buffers; /* taken since the last buffers_offer, and what came in them */
    uint64_t batch_bytes;
    bool exhausted; /* since then, a receive found none */
};

/* Maps and registers them, and offers the first; none if `count` is 0. 0 or a negative errno. */
int buffers_init(struct buffers *b, struct io_uring *ring, unsigned count, uint32_t bytes);

/* After the ring is gone. */
void buffers_dispose(struct buffers *b);

static inline uint8_t *buffers_at(const struct buffers *b, unsigned id)
{
    return b->memory + (size_t)id * b->bytes;
}

/* A completion with this many bytes in a buffer was taken. */
static inline void buffers_taken(struct buffers *b, uint32_t bytes)
{
    b->offered--;
    b->batch_buffers++;
    b->batch_bytes += bytes;
}

static inline void buffers_return(struct buffers *b, unsigned id)
{
    b->free[b->free_count++] = (uint16_t)id;
}

/* Once a batch of completions: offers buffers until `wanted` are. */
void buffers_offer(struct buffers *b);

#endif
