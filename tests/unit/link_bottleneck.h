/* A sender, a bottleneck and a receiver in virtual time, for the tests of congestion control.
 *
 *     sender --> [ queue | rate ] --> loss, delay, jitter --> receiver
 *        ^------------------ delay ------------------ ACKs -----'
 *
 * Two senders: `bulk_path` is the product's path.c and acks.c with endless data; `bulk_reference` is a plain
 * model of TCP with SACK, in floating point, unpaced, with an ACK for each packet: what to be measured
 * against. Both send packets of one size that each carry one numbered chunk. Deterministic by seed. */
#ifndef PURE_TESTS_LINK_BOTTLENECK_H
#define PURE_TESTS_LINK_BOTTLENECK_H

#include "core/clock.h"
#include "core/random.h"
#include "link/acks.h"
#include "link/path.h"

#include <stdlib.h>

/* There is room for no more, however long a run is: a day's worth would be more than a small machine gives.
 * What a run needs beyond is an assertion's. */
#define CHUNKS_MAX UINT64_C(16000000)

struct net {
    uint64_t rate;                     /* bytes a second */
    uint64_t delay_ns;                 /* each way, without the queue */
    uint64_t queue_bytes;              /* what the bottleneck holds */
    uint32_t loss_per_1000;            /* of data, at random */
    uint64_t jitter_ns;                /* data is late by up to this, at random, and so overtaken */
    uint64_t dark_from_ns, dark_to_ns; /* nothing passes either way */
    uint32_t mtu;                      /* larger datagrams vanish; 0 for no limit */
    uint32_t later_mtu;                /* the same, from later_ns on; 0 for no change */
    uint64_t later_ns;
};

struct result {
    uint64_t delivered_bytes; /* each chunk once */
    uint64_t chunks;          /* delivered, each once */
    uint64_t sent_packets;    /* that elicit */
    uint64_t lost_packets;    /* in the network, by whatever */
    uint64_t acks;
    uint64_t longest_gap_ns; /* between two sends */
    uint64_t sent_in_dark;
    uint32_t mtu, packet_threshold, unanswered;
    uint64_t last_delivered_ns;
};

#define START_NS (10 * NS_PER_S) /* no clock begins at 0 */

/* --- events --- */

struct event {
    uint64_t at_ns, order;
    uint64_t number, chunk;
    uint32_t bytes;
    bool is_ack;
    bool padding_only;
    bool asks;
    uint16_t frame_size;
    uint8_t *frame; /* of an ACK */
};

struct events {
    struct event *heap;
    uint32_t count, room;
    uint64_t order;
};

static inline bool earlier(const struct event *a, const struct event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static inline void events_add(struct events *e, struct event event)
{
    if (e->count == e->room) {
        e->room = e->room ? 2 * e->room : 1024;
        e->heap = realloc(e->heap, e->room * sizeof *e->heap);
        assert(e->heap);
    }
    event.order = e->order++;
    uint32_t at = e->count++;
    for (; at > 0 && earlier(&event, &e->heap[(at - 1) / 2]); at = (at - 1) / 2)
        e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = event;
}

static inline struct event events_take(struct events *e)
{
    struct event first = e->heap[0], last = e->heap[--e->count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < e->count; at = child) {
        child += child + 1 < e->count && earlier(&e->heap[child + 1], &e->heap[child]);
        if (!earlier(&e->heap[child], &last))
            break;
        e->heap[at] = e->heap[child];
    }
    e->heap[at] = last;
    return first;
}

static inline uint64_t events_next_ns(const struct events *e)
{
    return e->count ? e->heap[0].at_ns : NEVER;
}

static inline void events_dispose(struct events *e)
{
    while (e->count > 0)
        free(events_take(e).frame);
    free(e->heap);
}

/* --- the network --- */

struct wire_side {
    const struct net *net;
    struct random random;
    struct events events;
    uint64_t free_ns; /* when the bottleneck has sent what it holds */
    struct result result;
};

static inline bool dark(const struct net *net, uint64_t now_ns)
{
    return now_ns >= START_NS + net->dark_from_ns && now_ns < START_NS + net->dark_to_ns;
}

static inline bool passes(struct wire_side *w, uint32_t bytes, uint64_t now_ns)
{
    const struct net *net = w->net;
    uint32_t mtu = net->later_mtu && now_ns >= START_NS + net->later_ns ? net->later_mtu : net->mtu;
    uint64_t queued_ns = w->free_ns > now_ns ? w->free_ns - now_ns : 0;
    if (mtu && bytes > mtu)
        return false;
    if (queued_ns * net->rate / NS_PER_S + bytes > max_u64(net->queue_bytes, bytes))
        return false;
    return !dark(net, now_ns);
}

static inline void send_data(struct wire_side *w, struct event data, uint64_t now_ns)
{
    w->result.sent_packets++;
    w->result.sent_in_dark += dark(w->net, now_ns);
    if (!passes(w, data.bytes, now_ns)) {
        w->result.lost_packets++;
        return;
    }
    w->free_ns = max_u64(w->free_ns, now_ns) + data.bytes * NS_PER_S / w->net->rate;
    if (random_below(&w->random, 1000) < w->net->loss_per_1000) {
        w->result.lost_packets++;
        return;
    }
    uint64_t late_ns = w->net->jitter_ns ? random_below(&w->random, w->net->jitter_ns) : 0;
    data.at_ns = w->free_ns + w->net->delay_ns + late_ns;
    events_add(&w->events, data);
}

static inline void deliver(struct wire_side *w, uint8_t *have, uint64_t most, const struct event *e)
{
    assert(e->chunk < most);
    if (have[e->chunk])
        return;
    have[e->chunk] = 1;
    w->result.chunks++;
    w->result.delivered_bytes += e->bytes;
    w->result.last_delivered_ns = e->at_ns;
}

/* --- the product --- */

struct bulk {
    struct wire_side wire;
    struct path path;
    struct acks acks;
    uint64_t next_chunk;
    uint64_t *again; /* chunks to send again */
    uint64_t again_from, again_to, most;
    uint64_t rest_bytes; /* that the app has to send; UINT64_MAX for endless */
    uint64_t last_send_ns;
    uint8_t *have;
};

static inline void bulk_chunk_acked(void *context, const struct sent_item *item)
{
    (void)context;
    (void)item;
}

static inline void bulk_chunk_lost(void *context, const struct sent_item *item)
{
    struct bulk *b = context;
    for (uint64_t i = 0; i < item->size && item->kind == SENT_RECORDS; i++) {
        assert(b->again_to < b->most);
        b->again[b->again_to++] = item->offset + i;
    }
}

static inline void bulk_send_one(struct bulk *b, uint32_t bytes, uint64_t now_ns)
{
    struct event data = {.bytes = bytes, .asks = path_asks(&b->path)};
    if (b->again_from < b->again_to) {
        data.chunk = b->again[b->again_from++];
    } else {
        data.chunk = b->next_chunk++;
        b->rest_bytes -= b->rest_bytes == UINT64_MAX ? 0 : min_u64(bytes, b->rest_bytes);
    }
    sent_add(&b->path.sent, (struct sent_item){.kind = SENT_RECORDS, .offset = data.chunk, .size = 1});
    data.number = path_sent(
        &b->path, (struct sent_commit_options){.bytes = bytes, .eliciting = true, .asks = data.asks}, now_ns);
    b->wire.result.longest_gap_ns = max_u64(b->wire.result.longest_gap_ns, now_ns - b->last_send_ns);
    b->last_send_ns = now_ns;
    send_data(&b->wire, data, now_ns);
}

static inline bool bulk_has_data(const struct bulk *b)
{
    return b->again_from < b->again_to || b->rest_bytes > 0;
}

static inline void bulk_send(struct bulk *b, uint64_t now_ns)
{
    while (path_room(&b->path, now_ns) > 0 && (bulk_has_data(b) || path_must_probe(&b->path))) {
        if (bulk_has_data(b)) {
            bulk_send_one(b, path_datagram(&b->path), now_ns);
            continue;
        }
        sent_add(&b->path.sent, (struct sent_item){.kind = SENT_PING});
        struct event ping = {.bytes = 60, .padding_only = true, .asks = true};
        ping.number = path_sent(
            &b->path, (struct sent_commit_options){.bytes = 60, .eliciting = true, .asks = true}, now_ns);
        send_data(&b->wire, ping, now_ns);
    }
    uint32_t probe = path_mtu_probe(&b->path, now_ns);
    if (probe > 0) {
        struct event data = {.bytes = probe, .padding_only = true, .asks = true};
        sent_add(&b->path.sent, (struct sent_item){.kind = SENT_PING});
        data.number = path_sent(
            &b->path,
            (struct sent_commit_options){.bytes = probe, .eliciting = true, .mtu_probe = true, .asks = true},
            now_ns);
        send_data(&b->wire, data, now_ns);
    }
}

static inline void bulk_ack(struct bulk *b, uint64_t now_ns)
{
    uint8_t frame[FRAME_ACK_MAX_BYTES] = {0};
    uint64_t largest;
    size_t size = acks_put(&b->acks, frame, frame + sizeof frame, now_ns, &largest);
    assert(size > 0);
    b->wire.result.acks++;
    if (dark(b->wire.net, now_ns))
        return;
    struct event ack = {
        .at_ns = now_ns + b->wire.net->delay_ns, .is_ack = true, .frame_size = (uint16_t)size};
    ack.frame = malloc(size);
    assert(ack.frame);
    memcpy(ack.frame, frame, size);
    events_add(&b->wire.events, ack);
}

static inline void bulk_event(struct bulk *b, struct event e)
{
    const struct sent_handler handler = {bulk_chunk_acked, bulk_chunk_lost, b};
    if (!e.is_ack) {
        acks_received(&b->acks, e.number, true, e.at_ns);
        if (e.asks)
            acks_hurry(&b->acks, e.at_ns);
        if (!e.padding_only)
            deliver(&b->wire, b->have, b->most, &e);
        return;
    }
    struct frame frame;
    ptrdiff_t size = frame_get(e.frame, e.frame + e.frame_size, &frame);
    assert(size == e.frame_size && frame.type == FRAME_ACK);
    int error = path_acked(&b->path, &frame.ack, e.at_ns, &handler);
    assert(error == 0);
    free(e.frame);
}

static inline uint64_t bulk_next_ns(struct bulk *b, uint64_t now_ns)
{
    uint64_t next = min_u64(events_next_ns(&b->wire.events), acks_due_ns(&b->acks));
    next = min_u64(next, path_deadline_ns(&b->path));
    return bulk_has_data(b) ? min_u64(next, path_when_ns(&b->path, now_ns)) : next;
}

/* Sends `bytes` (UINT64_MAX: endless) for `seconds` of virtual time. */
static inline struct result bulk_path(const struct net *net, uint64_t bytes, uint64_t seconds,
                                      uint32_t mtu_limit, uint64_t seed)
{
    static struct bulk b;
    const struct sent_handler handler = {bulk_chunk_acked, bulk_chunk_lost, &b};
    uint64_t now_ns = START_NS, end_ns = START_NS + seconds * NS_PER_S;
    b = (struct bulk){.wire = {.net = net, .random = {seed}}, .rest_bytes = bytes, .last_send_ns = START_NS};
    b.most = min_u64(4 * net->rate * seconds / 1000 + 100000, CHUNKS_MAX);
    b.again = calloc(b.most, sizeof *b.again);
    b.have = calloc(b.most, 1);
    int error = path_init(&b.path, SENT_PACKETS, 0, mtu_limit, now_ns);
    assert(b.again && b.have && error == 0);
    acks_init(&b.acks, 0);
    bulk_send(&b, now_ns);
    for (uint64_t next; (next = bulk_next_ns(&b, now_ns)) < end_ns;) {
        now_ns = max_u64(now_ns, next);
        while (events_next_ns(&b.wire.events) <= now_ns)
            bulk_event(&b, events_take(&b.wire.events));
        if (acks_due_ns(&b.acks) <= now_ns)
            bulk_ack(&b, now_ns);
        if (path_deadline_ns(&b.path) <= now_ns)
            path_expired(&b.path, now_ns, &handler);
        bulk_send(&b, now_ns);
    }
    b.wire.result.mtu = b.path.mtu.current;
    b.wire.result.packet_threshold = b.path.loss.packet_threshold;
    b.wire.result.unanswered = path_unanswered(&b.path);
    events_dispose(&b.wire.events);
    path_dispose(&b.path);
    free(b.again);
    free(b.have);
    return b.wire.result;
}

/* --- the reference --- */

struct reference {
    struct wire_side wire;
    bool cubic;
    double window, threshold; /* packets */
    double w_max, w_est, prior, k_s;
    uint64_t epoch_ns; /* NEVER while there is none */
    double rtt_s;
    uint64_t next, highest, first, recover; /* packet numbers; highest: acknowledged + 1 */
    uint64_t in_flight;
    struct {
        uint64_t sent_ns, chunk;
        bool acked, lost;
    } * packet;
    uint64_t most, next_chunk, *again, again_from, again_to;
    uint8_t *have;
};

static inline double cube_root_of(double value)
{
    double x = value > 1 ? value : 1;
    for (int i = 0; i < 100; i++)
        x -= (x * x * x - value) / (3 * x * x);
    return x;
}

static inline void reference_reduce(struct reference *r)
{
    r->w_max = r->cubic && r->window < r->w_max ? r->window * 0.85 : r->window;
    r->prior = r->window;
    r->window *= r->cubic ? 0.7 : 0.5;
    r->window = r->window < 2 ? 2 : r->window;
    r->threshold = r->window;
    r->epoch_ns = NEVER;
    r->recover = r->next;
}

static inline void reference_grow(struct reference *r, uint64_t now_ns)
{
    if (r->window < r->threshold) {
        r->window += 1;
        return;
    }
    if (!r->cubic) {
        r->window += 1 / r->window;
        return;
    }
    if (r->epoch_ns == NEVER) {
        r->epoch_ns = now_ns;
        r->w_max = r->w_max > r->window ? r->w_max : r->window;
        r->k_s = cube_root_of((r->w_max - r->window) / 0.4);
        r->w_est = r->window;
    }
    double t = (double)(now_ns - r->epoch_ns) / 1e9, d = t - r->k_s, later = d + r->rtt_s;
    r->w_est += (r->w_est < r->prior ? 9.0 / 17 : 1) / r->window;
    double target = 0.4 * later * later * later + r->w_max;
    if (0.4 * d * d * d + r->w_max < r->w_est)
        r->window = r->w_est > r->window ? r->w_est : r->window;
    else if (target > r->window)
        r->window += ((target < 1.5 * r->window ? target : 1.5 * r->window) - r->window) / r->window;
}

static inline void reference_lost(struct reference *r, uint64_t number)
{
    r->packet[number].lost = true;
    r->in_flight--;
    r->again[r->again_to++] = r->packet[number].chunk;
    if (number >= r->recover)
        reference_reduce(r);
}

static inline void reference_acked(struct reference *r, uint64_t number, uint64_t now_ns)
{
    if (r->packet[number].acked)
        return;
    r->packet[number].acked = true;
    if (!r->packet[number].lost)
        r->in_flight--;
    double rtt_s = (double)(now_ns - r->packet[number].sent_ns) / 1e9;
    r->rtt_s = r->rtt_s > 0 ? r->rtt_s * 7 / 8 + rtt_s / 8 : rtt_s;
    r->highest = max_u64(r->highest, number + 1);
    if (number >= r->recover)
        reference_grow(r, now_ns);
    for (; r->first + 3 < r->highest; r->first++) {
        if (!r->packet[r->first].acked && !r->packet[r->first].lost)
            reference_lost(r, r->first);
    }
}

/* Everything outstanding is given up: TCP's retransmission time-out. */
static inline void reference_timeout(struct reference *r)
{
    for (uint64_t n = r->first; n < r->next; n++) {
        if (!r->packet[n].acked && !r->packet[n].lost)
            reference_lost(r, n);
    }
    r->first = r->next;
    r->window = 2;
    r->recover = r->next;
}

static inline void reference_send(struct reference *r, uint32_t bytes, uint64_t now_ns)
{
    while ((double)r->in_flight + 1 <= r->window) {
        assert(r->next < r->most);
        struct event data = {.bytes = bytes, .number = r->next++};
        data.chunk = r->again_from < r->again_to ? r->again[r->again_from++] : r->next_chunk++;
        r->packet[data.number].sent_ns = now_ns;
        r->packet[data.number].chunk = data.chunk;
        r->in_flight++;
        send_data(&r->wire, data, now_ns);
    }
}

static inline struct result bulk_reference(const struct net *net, bool cubic, uint64_t seconds,
                                           uint32_t bytes, uint64_t seed)
{
    static struct reference r;
    uint64_t end_ns = START_NS + seconds * NS_PER_S, last_ns = START_NS;
    r = (struct reference){.wire = {.net = net, .random = {seed}},
                           .cubic = cubic,
                           .window = 10,
                           .threshold = 1e18,
                           .epoch_ns = NEVER};
    r.most = 4 * net->rate * seconds / 1000 + 100000;
    r.packet = calloc(r.most, sizeof *r.packet);
    r.again = calloc(r.most, sizeof *r.again);
    r.have = calloc(r.most, 1);
    assert(r.packet && r.again && r.have);
    reference_send(&r, bytes, START_NS);
    for (;;) {
        uint64_t rto_ns =
            last_ns + (r.rtt_s > 0 ? max_u64((uint64_t)(r.rtt_s * 2e9), 200 * NS_PER_MS) : NS_PER_S);
        uint64_t now_ns = min_u64(events_next_ns(&r.wire.events), rto_ns);
        if (now_ns >= end_ns)
            break;
        if (now_ns == rto_ns && now_ns < events_next_ns(&r.wire.events)) {
            reference_timeout(&r);
            last_ns = now_ns;
        } else {
            struct event e = events_take(&r.wire.events);
            if (e.is_ack) {
                reference_acked(&r, e.number, now_ns);
                last_ns = now_ns;
            } else {
                deliver(&r.wire, r.have, r.most, &e);
                e.at_ns = now_ns + net->delay_ns;
                e.is_ack = true;
                events_add(&r.wire.events, e);
            }
        }
        reference_send(&r, bytes, now_ns);
    }
    events_dispose(&r.wire.events);
    free(r.packet);
    free(r.again);
    free(r.have);
    return r.wire.result;
}

#endif
