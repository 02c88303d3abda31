#include "link/indices.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int indices_init(struct indices *t, uint32_t limit)
{
    assert(limit > 0 && limit <= 1u << 24);
    uint32_t slots = 2;
    while (slots < 2 * limit)
        slots *= 2;
    *t = (struct indices){
        .slots = calloc(slots, sizeof(struct indices_slot)), .mask = slots - 1, .limit = limit};
    return t->slots ? 0 : -ENOMEM;
}

void indices_dispose(struct indices *t)
{
    free(t->slots);
    *t = (struct indices){0};
}

void indices_mark(struct indices *t, uint8_t mark)
{
    assert(t->count == 0 && t->mask < 1u << 24);
    t->fixed = UINT32_C(0xff) << 24;
    t->mark = (uint32_t)mark << 24;
}

uint32_t indices_add(struct indices *t, const struct noise_random *random, void *owner)
{
    assert(owner && t->count < t->limit);
    uint32_t drawn = ((uint32_t)noise_random_u64(random) & ~t->fixed) | t->mark;
    uint32_t slot = drawn & t->mask;
    while (t->slots[slot].owner) /* ends: half of them are free */
        slot = (slot + 1) & t->mask;
    uint32_t index = (drawn & ~t->mask) | slot;
    t->slots[slot] = (struct indices_slot){owner, index};
    t->count++;
    return index;
}

void indices_remove(struct indices *t, uint32_t index)
{
    assert(indices_find(t, index));
    t->slots[index & t->mask] = (struct indices_slot){0};
    t->count--;
}
