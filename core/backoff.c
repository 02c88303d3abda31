#include "core/backoff.h"

#include "core/bytes.h"

void backoff_init(struct backoff *b, uint64_t min_ns, uint64_t max_ns, uint64_t seed)
{
    assert(min_ns > 0);
    *b = (struct backoff){.min_ns = min_ns, .max_ns = max_u64(min_ns, max_ns), .random = {seed}};
    backoff_reset(b);
}

uint64_t backoff_next(struct backoff *b)
{
    b->ceiling_ns = b->ceiling_ns > b->max_ns / 2 ? b->max_ns : b->ceiling_ns * 2;
    return b->min_ns + random_below(&b->random, b->ceiling_ns - b->min_ns + 1);
}

void backoff_reset(struct backoff *b)
{
    b->ceiling_ns = b->min_ns;
}
