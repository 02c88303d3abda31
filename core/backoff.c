#include "core/backoff.h"

#include "core/bytes.h"

void backoff_init(struct backoff *b, uint64_t min_ns, uint64_t max_ns, uint64_t seed)
{
    assert(min_ns > 0);
    *b = (struct backoff){.min_ns = min_ns, .max_ns = max_u64(min_ns, max_ns), .random = {seed}};
    backoff_reset(b);
}

static uint64_t twice_ns(const struct backoff *b, uint64_t ceiling_ns)
{
    return ceiling_ns > b->max_ns / 2 ? b->max_ns : ceiling_ns * 2;
}

static uint64_t delay_ns(struct backoff *b, uint64_t ceiling_ns)
{
    return b->min_ns + random_below(&b->random, ceiling_ns - b->min_ns + 1);
}

uint64_t backoff_next(struct backoff *b)
{
    b->ceiling_ns = twice_ns(b, b->ceiling_ns);
    return delay_ns(b, b->ceiling_ns);
}

uint64_t backoff_nth(struct backoff *b, uint32_t n)
{
    uint64_t ceiling_ns = b->min_ns;
    for (; n > 0 && ceiling_ns < b->max_ns; n--)
        ceiling_ns = twice_ns(b, ceiling_ns);
    return delay_ns(b, ceiling_ns);
}

void backoff_reset(struct backoff *b)
{
    b->ceiling_ns = b->min_ns;
}
