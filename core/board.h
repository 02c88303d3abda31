/* A notice board: how threads tell a loop which of its tasks have something new. One bit a task; posting a
 * bit that stands already costs nothing more, so a thousand pushes before the loop looks are one notice and
 * one wake. */
#ifndef PURE_CORE_BOARD_H
#define PURE_CORE_BOARD_H

#include "core/io.h"

struct board {
    struct io *io; /* whose sleeping owner is woken */
    _Atomic uint64_t *words;
    uint32_t slots; /* a multiple of 64 */
};

/* 0 or -ENOMEM. */
int board_init(struct board *b, struct io *io, uint32_t slots);
void board_dispose(struct board *b);

/* Any thread. What the caller wrote before is seen by whoever takes the notice. */
static inline void board_post(struct board *b, uint32_t slot)
{
    uint64_t bit = UINT64_C(1) << slot % 64;
    if (!(atomic_fetch_or(&b->words[slot / 64], bit) & bit))
        io_wake(b->io);
}

/* The owner: takes 64 slots' notices at once, as a bit set. */
static inline uint64_t board_take(struct board *b, uint32_t word)
{
    if (atomic_load_explicit(&b->words[word], memory_order_relaxed) == 0)
        return 0;
    return atomic_exchange(&b->words[word], 0);
}

#endif
