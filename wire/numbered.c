#include "wire/numbered.h"

#include "wire/wire.h"

#include <errno.h>
#include <stdio.h>

void numbered_rewind(struct wire *w)
{
    w->numbered.next = w->outlet.queue.freed;
    w->numbered.series++;
}

/* What is published, with `next` at or behind `freed`. Numbers that were lost are passed over. */
void numbered_look(struct wire *w, uint64_t now_ns)
{
    (void)now_ns;
    outlet_look(&w->outlet);
    if (w->numbered.next.bytes <= w->outlet.queue.freed.bytes)
        w->numbered.next = w->outlet.queue.freed;
}

/* --- sending --- */

static bool waiting_records(const struct wire *w)
{
    return w->outlet.queue.published_seen.bytes > w->numbered.next.bytes && !delivery_asking(w);
}

static bool may_send(const struct wire *w)
{
    return outlet_may_send(&w->outlet) ||
           (outlet_contact(&w->outlet) == OUTLET_ASKING && !w->numbered.asking);
}

/* While a record is sought that is refused, batches get shorter. */
static struct batch_limits limits(const struct wire *w)
{
    const struct numbered *n = &w->numbered;
    struct batch_limits limits = w->limits;
    if (n->suspect > n->next.records)
        limits.records = min_u64(limits.records, max_u64((n->suspect - n->next.records) / 2, 1));
    return limits;
}

/* Sealed into the lane's memory; else the framed records go as they lie in the queue. */
static uint64_t send_sealed(struct wire *w, uint64_t now_ns, struct lane *lane,
                            const struct request_numbers *numbers, struct span body,
                            uint8_t reply_key[NOISE_KEY_BYTES])
{
    struct sealed_keys keys;
    size_t sealed = (size_t)sealed_size(body.size);
    size_t head = sealing_write(w->request.sealing, numbers, body.size, lane->head, &keys);
    assert(sealed <= w->shared.body_room);
    sealed_body(&keys, body, lane->body);
    memcpy(reply_key, keys.reply, NOISE_KEY_BYTES);
    sealed_keys_wipe(&keys);
    return wire_send_made(w, now_ns, lane, head, span_of(lane->body, sealed));
}

static void send_batch(struct wire *w, uint64_t now_ns, struct lane *lane, const struct batch *batch,
                       bool question)
{
    struct numbered *n = &w->numbered;
    struct request_numbers numbers = {.first = batch->start.records + 1,
                                      .count = batch_count(batch),
                                      .base = outlet_base(&w->outlet),
                                      .sent = w->outlet.contact.reach};
    struct request_body body = {.content = batch->body, .bytes = batch->body.size};
    struct numbered_flight flight = {.batch = *batch, .series = n->series, .question = question};
    uint64_t number = w->request.sealing
                          ? send_sealed(w, now_ns, lane, &numbers, batch->body, flight.reply_key)
                          : wire_send(w, now_ns, lane, &numbers, &body, batch->body);
    n->flights[number % CONNECTION_PIPELINE_MAX] = flight;
}

static void send_question(struct wire *w, uint64_t now_ns, struct lane *lane)
{
    struct batch none = {.start = w->numbered.next, .end = w->numbered.next};
    w->numbered.asking = true;
    send_batch(w, now_ns, lane, &none, true);
}

static void send_records(struct wire *w, uint64_t now_ns, struct lane *lane)
{
    struct numbered *n = &w->numbered;
    struct batch_limits most = limits(w);
    struct batch batch = batch_framed(&w->outlet.queue, n->next, &most);
    send_batch(w, now_ns, lane, &batch, false);
    n->next = batch.end;
    n->sent_records = max_u64(n->sent_records, batch.end.records);
}

void numbered_go_on(struct wire *w, uint64_t now_ns)
{
    struct lane *lane = w->lanes[0];
    if (now_ns < w->delivery.rest_until_ns || !waiting_records(w) || !may_send(w))
        return;
    if (lane_gone(lane))
        lane_open(lane, now_ns);
    else if (!lane_ready(lane, now_ns))
        return;
    else if (lane_prepare(lane) < 0)
        delivery_failed(w, now_ns, -ENOMEM, NULL, "");
    else if (!outlet_may_send(&w->outlet))
        send_question(w, now_ns, lane);
    else
        send_records(w, now_ns, lane);
}

uint64_t numbered_due_ns(const struct wire *w, uint64_t now_ns)
{
    (void)w, (void)now_ns;
    return NEVER;
}

/* --- dead letters --- */

/* An answer that was no success. Of a batch the record is to be found that it is for. */
static void see_refusal(struct wire *w, const struct batch *batch, const struct answer *a)
{
    struct numbered *n = &w->numbered;
    if (!delivery_keeps_dead(w) || delivery_asking(w))
        return;
    if (!delivery_is_refusal(w, a->status) || batch->start.bytes != w->outlet.queue.freed.bytes)
        n->refusals = 0;
    else if (batch_count(batch) > 1)
        n->suspect = batch->end.records;
    else if (++n->refusals >= w->delivery.policy.attempts)
        delivery_ask(w, batch->start, batch->end, a->status, a->reason);
}

static void stored_to(struct wire *w, struct stream_position to)
{
    outlet_stored(&w->outlet, to);
    if (w->numbered.next.bytes < to.bytes)
        w->numbered.next = to;
}

/* A letter of before a change of the mode may be of a record that others were ahead of: it goes again. */
void numbered_settle_dead(struct wire *w)
{
    if (!delivery_taken(w))
        return;
    const struct outlet_dead *dead = &w->outlet.dead;
    if (dead->start.bytes == w->outlet.queue.freed.bytes)
        stored_to(w, dead->end);
    delivery_bury(w);
    w->numbered.refusals = 0;
    if (!w->delivery.disabled)
        delivery_recover(w);
}

/* --- what answers mean --- */

static void succeed(struct wire *w, uint64_t now_ns)
{
    w->numbered.refusals = 0;
    delivery_succeeded(w, now_ns);
}

/* The position behind record number `number`, which lies in [freed, published]. */
static struct stream_position behind(struct wire *w, const struct numbered_flight *flight, uint64_t number)
{
    const struct record_queue *q = &w->outlet.queue;
    if (number == flight->batch.end.records)
        return flight->batch.end;
    struct record_scan scan =
        record_scan(record_queue_span(q, q->freed.bytes), q->capacity, number - q->freed.records);
    return (struct stream_position){q->freed.bytes + scan.bytes, q->freed.records + scan.records};
}

/* The peer states that records up to number `stored` are stored, none that was not sent. What of them is not
 * published again after a restart will be known to it when it is sent. The memory of a request that is being
 * sent is not freed under the kernel's hands: its own answer does that. True if records became stored. */
static bool advance(struct wire *w, const struct numbered_flight *flight, uint64_t stored)
{
    const struct connection *c = &w->lanes[0]->connection;
    stored = min_u64(stored, w->outlet.queue.published_seen.records);
    if (c->phase == CONNECTION_OPEN && c->whole < c->begun) {
        const struct numbered_flight *sending = &w->numbered.flights[c->whole % CONNECTION_PIPELINE_MAX];
        stored = min_u64(stored, sending->batch.start.records);
    }
    struct stream_position freed = w->outlet.queue.freed;
    if (stored <= freed.records)
        return false;
    struct stream_position to = behind(w, flight, stored);
    counter_add(&w->outlet.report.bytes, to.bytes - freed.bytes);
    stored_to(w, to);
    return true;
}

static int error_of(const struct wire *w, const struct answer *a)
{
    bool behind_us = a->has_stored && a->stored < w->outlet.queue.freed.records;
    if (answer_success(a))
        return !a->has_stored ? PE_HTTP_UNSTORED : behind_us ? PE_STREAM_GAP : PE_HTTP_STORED;
    if (a->status == 409 && span_is(span_text(a->pure_error), "epoch-retired"))
        return PE_STREAM_RETIRED;
    return a->status == 409 && behind_us ? PE_STREAM_GAP : delivery_error_of(w, a);
}

/* 413: the peer may take in parts what it does not take whole. From now on batches are smaller; for good, as
 * what the peer has room for does not change with its mood. */
static void make_batches_smaller(struct wire *w, const struct numbered_flight *flight, const struct answer *a)
{
    if (a->status == 413 && batch_count(&flight->batch) > 1)
        w->limits.bytes = min_u64(w->limits.bytes, flight->batch.body.size / 2);
}

/* The stored number counts, whatever the status is. */
static void settle_records(struct wire *w, uint64_t now_ns, const struct numbered_flight *flight,
                           const struct answer *a)
{
    struct numbered *n = &w->numbered;
    uint64_t sent = max_u64(n->sent_records, w->outlet.sent_before);
    bool impossible = a->has_stored && a->stored > sent;
    bool moved = a->has_stored && !impossible && advance(w, flight, a->stored);
    if (flight->series != n->series)
        return; /* sent before `next` went back: its failure is known already */
    if (impossible) {
        delivery_failed(w, now_ns, PE_HTTP_STORED, a, "");
        return;
    }
    bool all = a->has_stored && a->stored >= flight->batch.end.records;
    if (moved || (answer_success(a) && all))
        succeed(w, now_ns);
    if (answer_success(a) && all)
        return;
    if (answer_success(a) && moved) {
        numbered_rewind(w); /* a part was stored: the rest goes again, at once */
        return;
    }
    make_batches_smaller(w, flight, a);
    see_refusal(w, &flight->batch, a);
    delivery_failed(w, now_ns, error_of(w, a), a, "");
}

/* --- the question that a life begins with --- */

static void outgrown(struct wire *w, const struct answer *a)
{
    log_line(
        w->log, LOG_ERROR,
        "%s.%s: POST %s: the receiver has stored records up to %llu, and this store knows of %llu: was it "
        "put back to an older copy? Under a new epoch the output goes on; what the store had sent since the "
        "copy was made is at the receiver, and this host does not know of it",
        w->outlet.app, w->outlet.output, w->endpoint, (unsigned long long)a->stored,
        (unsigned long long)w->outlet.contact.reach);
    outlet_report(&w->outlet, OUTLET_RESTING, PE_STREAM_ROLLED_BACK, pure_error_text(PE_STREAM_ROLLED_BACK),
                  io_wall_ms(w->loop->io));
    outlet_contact_answered(&w->outlet, false);
}

void numbered_settle_contact(struct wire *w)
{
    if (!outlet_contact_renewed(&w->outlet, w->epoch))
        return;
    request_set_epoch(&w->request, w->epoch);
    if (!w->delivery.disabled)
        delivery_recover(w);
}

static void settle_question(struct wire *w, uint64_t now_ns, const struct numbered_flight *flight,
                            const struct answer *a)
{
    uint64_t freed = w->outlet.queue.freed.records, most = max_u64(freed, w->outlet.contact.reach);
    w->numbered.asking = false;
    if (flight->series != w->numbered.series)
        return;
    if (a->status == 409 && span_is(span_text(a->pure_error), "rolled-back")) {
        outgrown(w, a);
    } else if (delivery_is_refusal(w, a->status)) { /* records would be refused, too: so is the first */
        struct batch first = batch_single(&w->outlet.queue, w->outlet.queue.freed);
        see_refusal(w, &first, a);
        delivery_failed(w, now_ns, error_of(w, a), a, "");
    } else if (!answer_success(a) || !a->has_stored || a->stored < freed || a->stored > most) {
        delivery_failed(w, now_ns, error_of(w, a), a, "");
    } else {
        advance(w, flight, a->stored);
        succeed(w, now_ns);
        outlet_contact_answered(&w->outlet, true);
    }
}

/* --- answers --- */

/* Anybody's: nothing of it counts, but that the way has failed. */
static void settle_unproven(struct wire *w, uint64_t now_ns, const struct numbered_flight *flight,
                            uint16_t status)
{
    char of[24];
    snprintf(of, sizeof of, "status %u", status);
    if (flight->question)
        w->numbered.asking = false;
    if (flight->series == w->numbered.series)
        delivery_failed(w, now_ns, PE_UNPROVEN, NULL, of);
}

/* The receiver does not know our ticket and has given us one: the same goes again at once. */
static void settle_stale(struct wire *w, const struct numbered_flight *flight)
{
    if (flight->question)
        w->numbered.asking = false;
    if (flight->series == w->numbered.series)
        numbered_rewind(w);
}

static void settle(struct wire *w, uint64_t now_ns, const struct numbered_flight *flight,
                   const struct answer *a)
{
    if (flight->question)
        settle_question(w, now_ns, flight, a);
    else
        settle_records(w, now_ns, flight, a);
}

void numbered_answered(struct wire *w, uint64_t now_ns, struct lane *lane, uint64_t number,
                       const struct answer *a)
{
    (void)lane;
    const struct numbered_flight *flight = &w->numbered.flights[number % CONNECTION_PIPELINE_MAX];
    if (!w->request.sealing) {
        settle(w, now_ns, flight, a);
        return;
    }
    struct answer proven = *a;
    switch (sealing_prove(w->request.sealing, flight->reply_key, &proven)) {
    case SEALING_PROVEN:
        settle(w, now_ns, flight, &proven);
        return;
    case SEALING_STALE:
        settle_stale(w, flight);
        return;
    case SEALING_UNPROVEN:
        settle_unproven(w, now_ns, flight, a->status);
        return;
    }
}

/* What has no answer goes again: at once if a reused connection just was not there any more, else as a
 * failure, unless an answer before was the failure. */
bool numbered_closed(struct wire *w, uint64_t now_ns, struct lane *lane)
{
    (void)now_ns;
    struct numbered *n = &w->numbered;
    const struct connection *c = &lane->connection;
    const struct numbered_flight *oldest = &n->flights[c->answered % CONNECTION_PIPELINE_MAX];
    bool unanswered = connection_unanswered(c) && oldest->series == n->series;
    if (unanswered)
        numbered_rewind(w);
    n->asking = false;
    return c->begun == 0 || (unanswered && !connection_go_again(c));
}
