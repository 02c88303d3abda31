/* At most so many requests in a time: a token bucket, kept as the moment at which it would be full again
 * (the generic cell rate algorithm of ITU-T I.371). Pure: the time is given. */
#ifndef PURE_WIRE_RATE_H
#define PURE_WIRE_RATE_H

#include "core/bytes.h"
#include "core/clock.h"

struct rate {
    uint64_t interval_ns; /* between requests in the mean; 0: no limit */
    uint64_t slack_ns; /* so much earlier than in the mean one may come: a second's worth of them, or one */
    uint64_t full_ns;  /* when all that were made are made up for; never decreases */
};

/* `rate_mhz`: requests in 1000 s; 0: no limit. Rounded so that it is never exceeded. */
static inline void rate_init(struct rate *r, uint64_t rate_mhz)
{
    uint64_t span_ns = 1000 * NS_PER_S;
    *r = (struct rate){.interval_ns = rate_mhz ? span_ns / rate_mhz + (span_ns % rate_mhz != 0) : 0};
    uint64_t burst = max_u64(rate_mhz / 1000, 1);
    r->slack_ns = (burst - 1) * r->interval_ns;
}

/* When the next request may be made: now if that is past. */
static inline uint64_t rate_due_ns(const struct rate *r)
{
    return r->full_ns > r->slack_ns ? r->full_ns - r->slack_ns : 0;
}

/* A request is made. */
static inline void rate_take(struct rate *r, uint64_t now_ns)
{
    if (r->interval_ns > 0)
        r->full_ns = max_u64(r->full_ns, now_ns) + r->interval_ns;
}

#endif
