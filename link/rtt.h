/* The round-trip time estimate: RFC 9002 section 5. All in nanoseconds. */
#ifndef PURE_LINK_RTT_H
#define PURE_LINK_RTT_H

#include "core/bytes.h"
#include "core/clock.h"

#define RTT_INITIAL_NS     (200 * NS_PER_MS)
#define RTT_GRANULARITY_NS NS_PER_MS

struct rtt {
    uint64_t latest_ns;
    uint64_t smoothed_ns;
    uint64_t variation_ns; /* mean deviation */
    uint64_t min_ns;       /* ignores the peer's ACK delay; NEVER before the first sample */
    uint64_t first_at_ns;  /* when the first sample was taken; NEVER before it */
};

static inline void rtt_init(struct rtt *r)
{
    *r = (struct rtt){.smoothed_ns = RTT_INITIAL_NS,
                      .variation_ns = RTT_INITIAL_NS / 2,
                      .min_ns = NEVER,
                      .first_at_ns = NEVER};
}

static inline bool rtt_known(const struct rtt *r)
{
    return r->first_at_ns != NEVER;
}

/* One sample: from the departure of the largest packet newly acknowledged to now. `delay_ns`, what the peer
 * says it waited, counts at most `max_delay_ns`, and never below the minimum. */
static inline void rtt_sample(struct rtt *r, uint64_t latest_ns, uint64_t delay_ns, uint64_t max_delay_ns,
                              uint64_t now_ns)
{
    r->latest_ns = latest_ns;
    if (!rtt_known(r)) {
        *r = (struct rtt){latest_ns, latest_ns, latest_ns / 2, latest_ns, now_ns};
        return;
    }
    r->min_ns = min_u64(r->min_ns, latest_ns);
    delay_ns = min_u64(delay_ns, max_delay_ns);
    uint64_t adjusted_ns = latest_ns - r->min_ns >= delay_ns ? latest_ns - delay_ns : latest_ns;
    uint64_t off_ns =
        r->smoothed_ns > adjusted_ns ? r->smoothed_ns - adjusted_ns : adjusted_ns - r->smoothed_ns;
    r->variation_ns = (3 * r->variation_ns + off_ns) / 4;
    r->smoothed_ns = (7 * r->smoothed_ns + adjusted_ns) / 8;
}

/* Probe time-out without its doubling: RFC 9002 section 6.2.1. */
static inline uint64_t rtt_pto_ns(const struct rtt *r, uint64_t max_delay_ns)
{
    return r->smoothed_ns + max_u64(4 * r->variation_ns, RTT_GRANULARITY_NS) + max_delay_ns;
}

#endif
