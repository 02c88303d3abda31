/* Pacing: spreads a window over the round trip.
 *
 *     bytes let out in any interval of t  <=  burst + rate * t + one datagram
 *     rate = 5/4 * window / smoothed RTT  (twice the window in slow start: it doubles each round)
 *     burst = what the rate gives in 2 ms, but from ten datagrams up to a segmentation batch, and at least
 * one
 *
 * The last packet may overdraw: what is missing is paid before the next. (A path does not let it, and gathers
 * half a burst before it goes on: path.h.) */
#ifndef PURE_LINK_PACER_H
#define PURE_LINK_PACER_H

#include "core/bytes.h"
#include "core/clock.h"

#define PACER_BATCH_BYTES 65536 /* the most that one send with segmentation offload takes */

struct pacer {
    uint64_t rate;        /* bytes a second, > 0 */
    uint64_t burst_bytes; /* > 0 */
    uint64_t full_ns;     /* the time in which a burst gathers */
    uint64_t empty_ns;    /* the time at which nothing is left to give: credit = rate * (now - empty_ns) */
};

/* Begins with a full burst. Arguments as of pacer_set. */
void pacer_init(struct pacer *p, uint64_t window_bytes, uint64_t smoothed_ns, uint64_t datagram_bytes,
                uint64_t now_ns);

/* New rate. Credit gathered so far is kept, up to the new burst; so is a debt. */
void pacer_set(struct pacer *p, uint64_t window_bytes, bool slow_start, uint64_t smoothed_ns,
               uint64_t datagram_bytes, uint64_t now_ns);

/* Bytes that may leave now. */
uint64_t pacer_room(const struct pacer *p, uint64_t now_ns);

void pacer_sent(struct pacer *p, uint64_t bytes, uint64_t now_ns);

/* When `bytes` (taken as at most the burst) may leave: now or later. */
uint64_t pacer_when_ns(const struct pacer *p, uint64_t bytes, uint64_t now_ns);

#endif
