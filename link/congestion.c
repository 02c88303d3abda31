#include "link/congestion.h"

/* RFC 9438: beta_cubic 0.7, C 0.4 (segments, seconds), alpha_cubic 3 * (1 - 0.7) / (1 + 0.7) = 9/17 */
#define BETA_TENTHS      7
#define RENO_SEVENTEENTH 9
#define MAX_SHIFT_MS     100000 /* |t - K|: beyond it the cube is larger than any window */

/* RFC 9406 section 4.3 */
#define HYSTART_MIN_NS      (4 * NS_PER_MS)
#define HYSTART_MAX_NS      (16 * NS_PER_MS)
#define HYSTART_SAMPLES     8
#define HYSTART_CSS_ROUNDS  5
#define HYSTART_CSS_DIVISOR 4

/* Packets are acknowledged 16 at once, so that the window is used though a few are not out. */
#define USED_SLACK_PACKETS 3

static uint64_t least_window(const struct congestion *c)
{
    return CONGESTION_MIN_PACKETS * c->datagram_bytes;
}

static uint64_t initial_window(const struct congestion *c)
{
    return CONGESTION_INITIAL_PACKETS * c->datagram_bytes;
}

static struct congestion_hystart first_round(void)
{
    return (struct congestion_hystart){.last_min_ns = NEVER, .round_min_ns = NEVER};
}

void congestion_init(struct congestion *c, uint64_t datagram_bytes)
{
    *c = (struct congestion){.datagram_bytes = datagram_bytes, .hystart = first_round()};
    c->cubic = (struct congestion_cubic){
        .window_bytes = initial_window(c), .threshold_bytes = UINT64_MAX, .epoch_ns = NEVER};
}

void congestion_set_datagram(struct congestion *c, uint64_t datagram_bytes)
{
    c->datagram_bytes = datagram_bytes;
    c->cubic.window_bytes = max_u64(c->cubic.window_bytes, least_window(c));
    c->cubic.epoch_ns = NEVER;
}

/* --- the cubic function --- */

static uint64_t cube_root(uint64_t value)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 20; bit > 0; bit >>= 1) {
        uint64_t next = root | bit;
        if (next * next * next <= value)
            root = next;
    }
    return root;
}

/* C * ms^3 in bytes; ms <= MAX_SHIFT_MS. One second is 0.4 datagrams. */
static uint64_t cubic_bytes(const struct congestion *c, uint64_t ms)
{
    return ms * ms * ms / 10000 * c->datagram_bytes * 4 / 1000000;
}

/* W_cubic at `t_ms` after the epoch. */
static uint64_t cubic_window(const struct congestion *c, uint64_t t_ms)
{
    const struct congestion_cubic *q = &c->cubic;
    if (t_ms >= q->k_ms)
        return q->max_bytes + cubic_bytes(c, min_u64(t_ms - q->k_ms, MAX_SHIFT_MS));
    uint64_t below = cubic_bytes(c, min_u64(q->k_ms - t_ms, MAX_SHIFT_MS));
    return q->max_bytes > below ? q->max_bytes - below : 0;
}

static void begin_epoch(struct congestion *c, uint64_t now_ns)
{
    struct congestion_cubic *q = &c->cubic;
    q->epoch_ns = now_ns;
    q->max_bytes = max_u64(q->max_bytes, q->window_bytes);
    /* K^3 = (W_max - cwnd) / C, in milliseconds: / 0.4 * 10^9 */
    uint64_t datagrams_1000 = min_u64((q->max_bytes - q->window_bytes) * 1000 / c->datagram_bytes, 1u << 31);
    q->k_ms = cube_root(datagrams_1000 * 2500000);
    q->reno_bytes = q->window_bytes;
    c->reno_rest = 0;
}

/* W_est: a datagram for each window acknowledged, byte by byte; 9/17 of one until it is where the last
 * reduction was. */
static void grow_reno(struct congestion *c, uint64_t bytes)
{
    struct congestion_cubic *q = &c->cubic;
    uint64_t share = q->reno_bytes < q->reno_prior_bytes ? RENO_SEVENTEENTH : 17;
    uint64_t growth = c->datagram_bytes * bytes * share + c->reno_rest;
    q->reno_bytes += growth / (17 * q->window_bytes);
    c->reno_rest = growth % (17 * q->window_bytes);
}

static void avoid_congestion(struct congestion *c, uint64_t bytes, const struct rtt *rtt, uint64_t now_ns)
{
    struct congestion_cubic *q = &c->cubic;
    if (q->epoch_ns == NEVER)
        begin_epoch(c, now_ns);
    grow_reno(c, bytes);
    uint64_t t_ms = (now_ns - q->epoch_ns) / NS_PER_MS, rtt_ms = rtt->smoothed_ns / NS_PER_MS;
    if (cubic_window(c, t_ms) < q->reno_bytes) {
        q->window_bytes = max_u64(q->window_bytes, q->reno_bytes);
        return;
    }
    uint64_t target = min_u64(cubic_window(c, t_ms + rtt_ms), q->window_bytes + q->window_bytes / 2);
    if (target > q->window_bytes)
        q->window_bytes += (target - q->window_bytes) * min_u64(bytes, q->window_bytes) / q->window_bytes;
}

/* --- slow start --- */

static void end_round(struct congestion *c, uint64_t next)
{
    struct congestion_hystart *h = &c->hystart;
    if (h->css_rounds > 0 && ++h->css_rounds > HYSTART_CSS_ROUNDS)
        c->cubic.threshold_bytes = c->cubic.window_bytes;
    h->round_end = next;
    h->last_min_ns = h->round_min_ns;
    h->round_min_ns = NEVER;
    h->samples = 0;
}

/* The round trips grow: a queue builds up. Slow start goes on carefully, until it is sure. */
static void watch_delay(struct congestion *c)
{
    struct congestion_hystart *h = &c->hystart;
    if (h->samples < HYSTART_SAMPLES || h->last_min_ns == NEVER)
        return;
    if (h->css_rounds > 0) {
        if (h->round_min_ns < h->baseline_ns)
            h->css_rounds = 0;
        return;
    }
    uint64_t allowed_ns = min_u64(max_u64(h->last_min_ns / 8, HYSTART_MIN_NS), HYSTART_MAX_NS);
    if (h->round_min_ns >= h->last_min_ns + allowed_ns) {
        h->baseline_ns = h->round_min_ns;
        h->css_rounds = 1;
    }
}

static void slow_start(struct congestion *c, const struct congestion_ack *ack)
{
    c->cubic.window_bytes += c->hystart.css_rounds > 0 ? ack->bytes / HYSTART_CSS_DIVISOR : ack->bytes;
}

/* A packet of the next round is acknowledged first, so that its sample counts there. */
static void follow_rounds(struct congestion *c, const struct congestion_ack *ack, const struct rtt *rtt)
{
    struct congestion_hystart *h = &c->hystart;
    if (ack->largest >= h->round_end)
        end_round(c, ack->next);
    if (!ack->rtt_sampled)
        return;
    h->round_min_ns = min_u64(h->round_min_ns, rtt->latest_ns);
    h->samples++;
    watch_delay(c);
}

/* --- what the owner calls --- */

void congestion_sent(struct congestion *c, uint64_t in_flight_before, const struct rtt *rtt, uint64_t now_ns)
{
    struct congestion_cubic *q = &c->cubic;
    uint64_t pto_ns = rtt_pto_ns(rtt, 0);
    uint64_t silence_ns = now_ns - c->last_sent_ns;
    if (in_flight_before == 0 && c->last_sent_ns > 0 && silence_ns > pto_ns) {
        q->threshold_bytes = max_u64(q->threshold_bytes, q->window_bytes / 4 * 3);
        for (; silence_ns > pto_ns && q->window_bytes > initial_window(c); silence_ns -= pto_ns)
            q->window_bytes = max_u64(q->window_bytes / 2, initial_window(c));
        q->epoch_ns = NEVER;
        c->before.window_bytes = 0;
    }
    c->last_sent_ns = now_ns;
}

static bool window_used(const struct congestion *c, uint64_t in_flight)
{
    uint64_t window = c->cubic.window_bytes;
    if (congestion_slow_start(c))
        return in_flight >= window / 2;
    return in_flight + USED_SLACK_PACKETS * c->datagram_bytes >= window / 8 * 7;
}

void congestion_acked(struct congestion *c, const struct congestion_ack *ack, const struct rtt *rtt,
                      uint64_t now_ns)
{
    if (congestion_slow_start(c))
        follow_rounds(c, ack, rtt);
    if (ack->newest_sent_ns < c->recovery_ns)
        return;
    if (!window_used(c, ack->in_flight_before))
        c->cubic.epoch_ns = NEVER; /* time that is not used is not time to grow in: RFC 9438 section 5.8 */
    else if (congestion_slow_start(c))
        slow_start(c, ack);
    else
        avoid_congestion(c, ack->bytes, rtt, now_ns);
}

static void reduce(struct congestion *c, uint64_t now_ns)
{
    struct congestion_cubic *q = &c->cubic;
    uint64_t window = q->window_bytes;
    /* fast convergence: below the last maximum, somebody else wants a share */
    q->max_bytes = window < q->max_bytes ? window / 20 * (10 + BETA_TENTHS) : window;
    q->reno_prior_bytes = window;
    q->threshold_bytes = max_u64(window / 10 * BETA_TENTHS, least_window(c));
    q->window_bytes = q->threshold_bytes;
    q->epoch_ns = NEVER;
    c->hystart.css_rounds = 0;
    c->recovery_ns = now_ns + 1;
}

void congestion_lost(struct congestion *c, uint32_t packets, uint64_t newest_sent_ns, uint64_t now_ns)
{
    if (newest_sent_ns < c->recovery_ns) {
        c->undo_packets += packets;
        return;
    }
    c->before = c->cubic;
    c->undo_packets = packets;
    reduce(c, now_ns);
}

void congestion_marked(struct congestion *c, uint64_t sent_ns, uint64_t now_ns)
{
    if (sent_ns < c->recovery_ns)
        return;
    c->before.window_bytes = 0;
    reduce(c, now_ns);
}

void congestion_persistent(struct congestion *c)
{
    c->cubic.window_bytes = least_window(c);
    c->cubic.epoch_ns = NEVER;
    c->hystart = first_round();
    c->before.window_bytes = 0;
    c->recovery_ns = 0;
}

void congestion_spurious(struct congestion *c, uint32_t packets)
{
    c->undo_packets -= min_u64(c->undo_packets, packets);
    if (c->undo_packets > 0 || c->before.window_bytes == 0)
        return;
    uint64_t window = max_u64(c->cubic.window_bytes, c->before.window_bytes);
    c->cubic = c->before;
    c->cubic.window_bytes = window;
    c->cubic.epoch_ns = NEVER;
    c->before.window_bytes = 0;
    c->recovery_ns = 0;
}
