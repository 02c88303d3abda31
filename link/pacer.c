#include "link/pacer.h"

#define MIN_RATE    1000              /* bytes a second: no interval below overflows */
#define MAX_RATE    100000000000u     /* more than any memory gives */
#define MAX_DEBT_NS (100 * NS_PER_MS) /* carried over to another rate */
#define BURST_NS    (2 * NS_PER_MS)
#define BURST_LEAST 10 /* datagrams */

/* Rounded up, so that many small packets are not too many. */
static uint64_t time_for_ns(const struct pacer *p, uint64_t bytes)
{
    return (bytes * NS_PER_S + p->rate - 1) / p->rate;
}

/* The emptiest credit can be dated: what lies before would be more than the burst. */
static uint64_t empty_ns(const struct pacer *p, uint64_t now_ns)
{
    return max_u64(p->empty_ns, now_ns > p->full_ns ? now_ns - p->full_ns : 0);
}

static uint64_t burst_bytes(uint64_t rate, uint64_t datagram_bytes)
{
    uint64_t burst = max_u64(rate / (NS_PER_S / BURST_NS), BURST_LEAST * datagram_bytes);
    return max_u64(min_u64(burst, PACER_BATCH_BYTES), datagram_bytes);
}

void pacer_init(struct pacer *p, uint64_t window_bytes, uint64_t smoothed_ns, uint64_t datagram_bytes,
                uint64_t now_ns)
{
    *p = (struct pacer){.rate = MIN_RATE, .burst_bytes = 1};
    pacer_set(p, window_bytes, true, smoothed_ns, datagram_bytes, now_ns);
    p->empty_ns = 0;
}

static uint64_t rate_for(uint64_t window_bytes, bool slow_start, uint64_t smoothed_ns)
{
    uint64_t window = slow_start ? 2 * window_bytes : window_bytes + window_bytes / 4;
    double rate = (double)window * NS_PER_S / (double)max_u64(smoothed_ns, 1);
    return rate < MIN_RATE ? MIN_RATE : rate > MAX_RATE ? MAX_RATE : (uint64_t)rate;
}

void pacer_set(struct pacer *p, uint64_t window_bytes, bool slow_start, uint64_t smoothed_ns,
               uint64_t datagram_bytes, uint64_t now_ns)
{
    uint64_t credit = pacer_room(p, now_ns);
    uint64_t debt_ns = p->empty_ns > now_ns ? min_u64(p->empty_ns - now_ns, MAX_DEBT_NS) : 0;
    uint64_t debt = (p->rate * debt_ns + NS_PER_S - 1) / NS_PER_S;
    p->rate = rate_for(window_bytes, slow_start, smoothed_ns);
    p->burst_bytes = burst_bytes(p->rate, datagram_bytes);
    p->full_ns = time_for_ns(p, p->burst_bytes);
    uint64_t credit_ns = min_u64(credit, p->burst_bytes) * NS_PER_S / p->rate;
    p->empty_ns = now_ns + time_for_ns(p, debt) - min_u64(credit_ns, now_ns);
}

uint64_t pacer_room(const struct pacer *p, uint64_t now_ns)
{
    uint64_t empty = empty_ns(p, now_ns);
    if (empty >= now_ns)
        return 0;
    return min_u64((now_ns - empty) * p->rate / NS_PER_S, p->burst_bytes);
}

void pacer_sent(struct pacer *p, uint64_t bytes, uint64_t now_ns)
{
    p->empty_ns = empty_ns(p, now_ns) + time_for_ns(p, bytes);
}

uint64_t pacer_when_ns(const struct pacer *p, uint64_t bytes, uint64_t now_ns)
{
    uint64_t enough_ns = empty_ns(p, now_ns) + time_for_ns(p, min_u64(bytes, p->burst_bytes));
    return max_u64(now_ns, enough_ns);
}
