/* A ring of bytes that reads and writes as if it never ended: the same memory is mapped twice, back to back,
 * so that every span of up to its size is contiguous wherever it starts. */
#ifndef PURE_CORE_RING_MEMORY_H
#define PURE_CORE_RING_MEMORY_H

#include <stdint.h>

struct ring_memory {
    uint8_t *base; /* 2 * size bytes of address space */
    uint64_t size; /* a power of two and a multiple of the page size */
};

/* Maps at least `bytes` (rounded up to a power of two, at least a page). Memory is used only once touched.
 * Returns 0 or a negative errno. */
int ring_memory_init(struct ring_memory *m, uint64_t bytes);
void ring_memory_dispose(struct ring_memory *m);

/* What it holds is forgotten, and uses no memory until it is touched again. */
void ring_memory_release(struct ring_memory *m);

/* The bytes at stream position `position`: m->size of them may be used from there. */
static inline uint8_t *ring_memory_at(const struct ring_memory *m, uint64_t position)
{
    return m->base + (position & (m->size - 1));
}

#endif
