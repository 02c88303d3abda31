#include "link/path.h"

#define ASKS_PER_WINDOW    8
#define PROBES_PER_TIMEOUT 2 /* RFC 9002 section 6.2.4 */

static void set_pace(struct path *p, uint64_t now_ns)
{
    pacer_set(&p->pacer, p->congestion.cubic.window_bytes, congestion_slow_start(&p->congestion),
              p->loss.rtt.smoothed_ns, p->congestion.datagram_bytes, now_ns);
}

static void begin(struct path *p, uint32_t mtu_limit, uint64_t now_ns)
{
    loss_init(&p->loss);
    mtu_init(&p->mtu, mtu_limit, now_ns);
    congestion_init(&p->congestion, p->mtu.current);
    pacer_init(&p->pacer, p->congestion.cubic.window_bytes, p->loss.rtt.smoothed_ns, p->mtu.current, now_ns);
    p->unasked_bytes = 0;
    p->probes = 0;
}

int path_init(struct path *p, uint32_t packets, uint64_t first, uint32_t mtu_limit, uint64_t now_ns)
{
    *p = (struct path){0};
    begin(p, mtu_limit, now_ns);
    return sent_init(&p->sent, packets, first);
}

void path_restart(struct path *p, uint64_t first, uint32_t mtu_limit, uint64_t now_ns)
{
    struct sent sent = p->sent;
    *p = (struct path){.sent = sent, .lost_packets = p->lost_packets};
    sent_restart(&p->sent, first);
    begin(p, mtu_limit, now_ns);
}

void path_dispose(struct path *p)
{
    sent_dispose(&p->sent);
}

void path_moved(struct path *p, uint32_t mtu_limit, uint64_t now_ns)
{
    uint32_t unanswered = p->loss.pto_count;
    begin(p, mtu_limit, now_ns);
    p->loss.pto_count = unanswered;
    p->loss.pto_base_ns = now_ns;
    p->congestion.recovery_ns = now_ns; /* what is lost of the old path says nothing about this one */
    p->moved_at = p->sent.next;
}

uint32_t path_datagram(const struct path *p)
{
    return p->loss.pto_count > 0 ? MTU_BASE : p->mtu.current;
}

/* What the pacer gathers before it lets go on: whatever wakes the owner meanwhile, it sends batches, not
 * datagrams. */
static uint64_t enough(const struct path *p)
{
    return max_u64(p->pacer.burst_bytes / 2, path_datagram(p));
}

uint64_t path_room(const struct path *p, uint64_t now_ns)
{
    uint32_t datagram = path_datagram(p);
    if (!sent_room(&p->sent))
        return 0;
    if (p->probes > 0)
        return datagram;
    uint64_t window = congestion_room(&p->congestion, p->sent.bytes_in_flight);
    uint64_t paced = pacer_room(&p->pacer, now_ns);
    if (window < datagram || paced < datagram || (p->gathering && paced < enough(p) - enough(p) / 8))
        return 0;
    return min_u64(window, paced);
}

bool path_asks(const struct path *p)
{
    uint64_t window = p->congestion.cubic.window_bytes, datagram = p->congestion.datagram_bytes;
    return window / ASKS_PER_WINDOW < ACK_EVERY * datagram &&
           p->sent.bytes_in_flight + datagram >= window / 2 &&
           p->unasked_bytes + datagram >= window / ASKS_PER_WINDOW;
}

uint64_t path_when_ns(const struct path *p, uint64_t now_ns)
{
    if (path_room(p, now_ns) > 0)
        return now_ns;
    if (!sent_room(&p->sent) || congestion_room(&p->congestion, p->sent.bytes_in_flight) < path_datagram(p))
        return NEVER;
    return max_u64(now_ns + 1, pacer_when_ns(&p->pacer, enough(p), now_ns));
}

/* Data keeps the window full: a probe goes beyond it, by less than once, and what follows waits for it. */
uint32_t path_mtu_probe(struct path *p, uint64_t now_ns)
{
    uint64_t window = p->congestion.cubic.window_bytes;
    if (p->loss.pto_count > 0 || !rtt_known(&p->loss.rtt) || !sent_room(&p->sent))
        return 0;
    uint32_t size = mtu_probe_size(&p->mtu, now_ns);
    return size <= window && p->sent.bytes_in_flight <= window ? size : 0;
}

uint64_t path_sent(struct path *p, struct sent_commit_options options, uint64_t now_ns)
{
    if (options.eliciting) {
        congestion_sent(&p->congestion, p->sent.bytes_in_flight, &p->loss.rtt, now_ns);
        pacer_sent(&p->pacer, options.bytes, now_ns);
        p->gathering = pacer_room(&p->pacer, now_ns) < path_datagram(p);
        p->probes -= p->probes > 0;
        p->unasked_bytes = options.asks ? 0 : p->unasked_bytes + options.bytes;
    }
    uint64_t number = sent_commit(&p->sent, options, now_ns);
    if (options.mtu_probe)
        mtu_probe_sent(&p->mtu, number);
    return number;
}

/* --- what acknowledgements and time-outs bring about --- */

struct watcher {
    struct path *path;
    uint64_t now_ns;
    bool mtu_changed;
};

static void packet_acked(void *context, uint64_t number, const struct sent_packet *packet)
{
    struct watcher *w = context;
    if (number >= w->path->moved_at)
        w->mtu_changed |= mtu_acked(&w->path->mtu, number, packet->bytes, w->now_ns);
}

static void packet_lost(void *context, uint64_t number, const struct sent_packet *packet)
{
    struct watcher *w = context;
    w->path->lost_packets++;
    if (number >= w->path->moved_at)
        w->mtu_changed |= mtu_lost(&w->path->mtu, number, packet->bytes, w->now_ns);
}

static void tell_congestion(struct path *p, const struct loss_report *report, uint64_t now_ns)
{
    struct congestion *c = &p->congestion;
    if (report->spurious > 0)
        congestion_spurious(c, report->spurious);
    if (report->lost_packets > 0)
        congestion_lost(c, report->lost_packets, report->lost_newest_sent_ns, now_ns);
    if (report->persistent)
        congestion_persistent(c);
    if (report->acked_packets == 0)
        return;
    const struct congestion_ack ack = {.bytes = report->acked_bytes,
                                       .in_flight_before = report->in_flight_before,
                                       .newest_sent_ns = report->acked_newest_sent_ns,
                                       .largest = report->largest_newly_acked,
                                       .next = p->sent.next,
                                       .rtt_sampled = report->rtt_sampled};
    congestion_acked(c, &ack, &p->loss.rtt, now_ns);
}

static void settle(struct path *p, const struct loss_report *report, bool mtu_changed, uint64_t now_ns)
{
    if (mtu_changed)
        congestion_set_datagram(&p->congestion, p->mtu.current);
    tell_congestion(p, report, now_ns);
    set_pace(p, now_ns);
}

int path_acked(struct path *p, const struct frame_ack *ack, uint64_t now_ns,
               const struct sent_handler *handler)
{
    struct watcher watcher = {p, now_ns, false};
    const struct loss_watch watch = {packet_acked, packet_lost, &watcher};
    struct loss_report report;
    int error = loss_acked(&p->loss, &p->sent, ack, now_ns, handler, &watch, &report);
    if (error)
        return error;
    if (report.acked_packets > 0)
        p->probes = 0;
    settle(p, &report, watcher.mtu_changed, now_ns);
    return 0;
}

uint64_t path_deadline_ns(const struct path *p)
{
    return loss_deadline_ns(&p->loss, &p->sent);
}

void path_expired(struct path *p, uint64_t now_ns, const struct sent_handler *handler)
{
    struct watcher watcher = {p, now_ns, false};
    const struct loss_watch watch = {packet_acked, packet_lost, &watcher};
    struct loss_report report;
    if (loss_expired(&p->loss, &p->sent, now_ns, handler, &watch, &report))
        p->probes = PROBES_PER_TIMEOUT;
    settle(p, &report, watcher.mtu_changed, now_ns);
}

void path_found(struct path *p)
{
    if (p->loss.pto_count == 0)
        return;
    p->loss.pto_count = 0;
    p->probes = PROBES_PER_TIMEOUT;
}

void path_mtu_hint(struct path *p, uint32_t bytes, uint64_t now_ns)
{
    if (!mtu_hint(&p->mtu, bytes, now_ns))
        return;
    congestion_set_datagram(&p->congestion, p->mtu.current);
    set_pace(p, now_ns);
}
