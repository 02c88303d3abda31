/* Which session an index means: the table of the indices that one socket gave out. An index is random, but
 * its low bits are the number of a slot that was free, so that two never meet and a look-up is one access. */
#ifndef PURE_LINK_INDICES_H
#define PURE_LINK_INDICES_H

#include "noise/random.h"

struct indices_slot {
    void *owner; /* NULL: free */
    uint32_t index;
};

struct indices {
    struct indices_slot *slots;
    uint32_t mask; /* slots - 1; slots are a power of two, at least twice `limit` */
    uint32_t count, limit;
    uint32_t fixed, mark; /* bits that are the same in all: index & fixed == mark */
};

/* Room for `limit` indices (at most 2^24), allocated here and never again. 0 or -ENOMEM. */
int indices_init(struct indices *t, uint32_t limit);
void indices_dispose(struct indices *t);

/* All indices from now on have this top byte: by it a socket's filter knows them. Asserts that none was given
 * yet, and that slots are numbered below it. */
void indices_mark(struct indices *t, uint8_t mark);

/* A new index for `owner` (not NULL). Asserts that the limit is kept. */
uint32_t indices_add(struct indices *t, const struct noise_random *random, void *owner);

/* Asserts that it is there. */
void indices_remove(struct indices *t, uint32_t index);

/* Its owner, or NULL. */
static inline void *indices_find(const struct indices *t, uint32_t index)
{
    const struct indices_slot *slot = &t->slots[index & t->mask];
    return slot->index == index ? slot->owner : NULL;
}

#endif
