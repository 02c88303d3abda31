/* How long an outlet rests after failures in a row: exponential back-off with full jitter above a minimum.
 *
 * After the n-th failure in a row the delay is uniform in [min, min(max, min * 2^n)]: many that failed
 * at the same moment do not come back at the same moment, and none comes back before `min`. */
#ifndef PURE_CORE_BACKOFF_H
#define PURE_CORE_BACKOFF_H

#include "core/random.h"

struct backoff {
    uint64_t min_ns;     /* > 0 */
    uint64_t max_ns;     /* >= min_ns */
    uint64_t ceiling_ns; /* of the last delay; in [min_ns, max_ns] */
    struct random random;
};

/* A `max_ns` below `min_ns` is taken as `min_ns`. */
void backoff_init(struct backoff *b, uint64_t min_ns, uint64_t max_ns, uint64_t seed);

/* One more failure: how long to rest. */
uint64_t backoff_next(struct backoff *b);

/* How long to rest after the n-th failure in a row of one of many that are counted elsewhere, n > 0. */
uint64_t backoff_nth(struct backoff *b, uint32_t n);

/* A success: the next failure is the first again. */
void backoff_reset(struct backoff *b);

#endif
