#include "link/ranges.h"

/* The first range that ends at or after `number` (that touches or follows it); r->count if there is none. */
static uint32_t first_reaching(const struct ranges *r, uint64_t number)
{
    if (r->count == 0 || r->item[r->count - 1].end < number)
        return r->count;
    if (r->count == 1 || r->item[r->count - 2].end < number)
        return r->count - 1;
    uint32_t low = 0, high = r->count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->item[middle].end < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Puts `count` ranges in the place of [from, to). 0 or PE_FULL. */
static int replace(struct ranges *r, uint32_t from, uint32_t to, const struct range *with, uint32_t count)
{
    uint32_t result = r->count - (to - from) + count;
    if (result > r->capacity)
        return PE_FULL;
    if (to < r->count && to != from + count)
        memmove(&r->item[from + count], &r->item[to], (r->count - to) * sizeof *r->item);
    for (uint32_t i = 0; i < count; i++)
        r->item[from + i] = with[i];
    r->count = result;
    return 0;
}

int ranges_add(struct ranges *r, uint64_t start, uint64_t end)
{
    assert(start <= end);
    if (start == end)
        return 0;
    if (r->count > 0 && r->item[r->count - 1].end == start) { /* the usual case: one more at the upper end */
        r->item[r->count - 1].end = end;
        return 0;
    }
    uint32_t from = first_reaching(r, start), to = from;
    struct range joined = {start, end};
    for (; to < r->count && r->item[to].start <= end; to++) {
        joined.start = min_u64(joined.start, r->item[to].start);
        joined.end = max_u64(joined.end, r->item[to].end);
    }
    return replace(r, from, to, &joined, 1);
}

int ranges_remove(struct ranges *r, uint64_t start, uint64_t end)
{
    assert(start <= end);
    if (start == end)
        return 0;
    uint32_t from = first_reaching(r, start + 1), to = from, left = 0;
    struct range rest[2];
    for (; to < r->count && r->item[to].start < end; to++) {
        struct range item = r->item[to];
        if (item.start < start)
            rest[left++] = (struct range){item.start, start};
        if (item.end > end)
            rest[left++] = (struct range){end, item.end};
    }
    return replace(r, from, to, rest, left);
}

void ranges_drop_below(struct ranges *r, uint64_t start)
{
    uint32_t gone = 0;
    while (gone < r->count && r->item[gone].end <= start)
        gone++;
    replace(r, 0, gone, NULL, 0);
    if (r->count > 0)
        r->item[0].start = max_u64(r->item[0].start, start);
}

void ranges_drop_first(struct ranges *r)
{
    assert(r->count > 0);
    replace(r, 0, 1, NULL, 0);
}

bool ranges_contain(const struct ranges *r, uint64_t start, uint64_t end)
{
    if (start >= end)
        return true;
    uint32_t at = first_reaching(r, end);
    return at < r->count && r->item[at].start <= start;
}
