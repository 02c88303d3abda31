/* Sets of numbers as sorted, disjoint ranges: packet numbers received, stream bytes that are lost or are
 * there.
 *
 * Ranges are half open, ascend, and neither overlap nor touch: item[i].end < item[i + 1].start. Capacity is
 * fixed and the memory the owner's; what does not fit is refused, and the set stays as it was. Adding at or
 * near the upper end, and dropping from the lower, take constant time while there are few ranges. */
#ifndef PURE_LINK_RANGES_H
#define PURE_LINK_RANGES_H

#include "core/bytes.h"
#include "core/error.h"

struct range {
    uint64_t start;
    uint64_t end; /* exclusive; > start */
};

struct ranges {
    struct range *item; /* the owner's, room for `capacity` */
    uint32_t count;     /* <= capacity */
    uint32_t capacity;
};

static inline void ranges_init(struct ranges *r, struct range *memory, uint32_t capacity)
{
    *r = (struct ranges){.item = memory, .capacity = capacity};
}

/* Adds [start, end), joining what it meets; an empty one adds nothing. 0 or PE_FULL. */
int ranges_add(struct ranges *r, uint64_t start, uint64_t end);

/* Takes [start, end) out; may split a range in two. 0 or PE_FULL. */
int ranges_remove(struct ranges *r, uint64_t start, uint64_t end);

/* Takes out everything below `start`. Cannot fail. */
void ranges_drop_below(struct ranges *r, uint64_t start);

/* Takes out the lowest range. The set is not empty. */
void ranges_drop_first(struct ranges *r);

/* Whether all of [start, end) is in the set; true if it is empty. */
bool ranges_contain(const struct ranges *r, uint64_t start, uint64_t end);

static inline bool ranges_have(const struct ranges *r, uint64_t number)
{
    return ranges_contain(r, number, number + 1);
}

static inline void ranges_clear(struct ranges *r)
{
    r->count = 0;
}

#endif
