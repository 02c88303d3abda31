#include "wire/delivery.h"

#include "wire/retry_after.h"

#include <stdio.h>

void delivery_rewind(struct wire *w)
{
    w->next = w->outlet.queue.freed;
    w->series++;
}

/* --- saying so --- */

static void describe(const struct wire *w, int error, const struct answer *a, char *text, size_t size)
{
    if (!a)
        snprintf(text, size, "POST %s: %s", w->endpoint, pure_error_text(error));
    else if (error == PE_HTTP_REDIRECT)
        snprintf(text, size, "POST %.64s: %u redirects to \"%.90s\", not followed", w->endpoint, a->status,
                 a->location);
    else if (error == PE_HTTP_STATUS)
        snprintf(text, size, "POST %s: %u %s", w->endpoint, a->status, a->reason);
    else
        snprintf(text, size, "POST %s: %u, %s", w->endpoint, a->status, pure_error_text(error));
}

static bool power_of_two(uint64_t n)
{
    return (n & (n - 1)) == 0;
}

static void report(struct wire *w, enum outlet_state state, int error, const char *text)
{
    atomic_store_explicit(&w->outlet.report.failures, w->failures, memory_order_relaxed);
    outlet_report(&w->outlet, state, error, text, io_wall_ms(w->loop->io));
}

static void recover(struct wire *w)
{
    w->failures = 0;
    w->rest_until_ns = 0;
    backoff_reset(&w->backoff);
    report(w, OUTLET_OK, 0, "");
}

/* A try went well. One line if the one before did not. */
static void succeed(struct wire *w, uint64_t now_ns)
{
    w->refusals = 0;
    if (w->failures == 0)
        return;
    struct record_queue_glance held = record_queue_glance(&w->outlet.queue);
    log_line(w->log, LOG_NOTICE,
             "%s.%s: delivers again, after %.1f s and %llu failures; %u records (%u bytes) wait",
             w->outlet.app, w->outlet.output, (double)(now_ns - w->down_since_ns) / (double)NS_PER_S,
             (unsigned long long)w->failures, held.held_records, held.held_bytes);
    recover(w);
}

static void disable(struct wire *w, int error, const char *text)
{
    w->disabled = true;
    log_line(w->log, LOG_ERROR, "%s.%s: %s", w->outlet.app, w->outlet.output, text);
    report(w, OUTLET_DISABLED, error, text);
}

/* max(own back-off, what the peer asks for), the latter capped. */
static uint64_t rest_ns(struct wire *w, const struct answer *a)
{
    uint64_t own_ns = backoff_next(&w->backoff);
    if (!a || !a->retry_after[0])
        return own_ns;
    uint64_t asked_ns =
        retry_after_ns(span_text(a->retry_after), span_text(a->date), io_wall_ms(w->loop->io));
    return max_u64(own_ns, min_u64(asked_ns, own_ns + DELIVERY_RETRY_AFTER_MAX_NS));
}

static void rest(struct wire *w, uint64_t now_ns, int error, const struct answer *a, const char *text)
{
    uint64_t delay_ns = rest_ns(w, a);
    if (atomic_load_explicit(&w->hurried, memory_order_relaxed))
        delay_ns = min_u64(delay_ns, DELIVERY_HURRIED_REST_NS);
    w->rest_until_ns = now_ns + delay_ns;
    if (power_of_two(w->failures))
        log_line(w->log, LOG_WARNING, "%s.%s: %s (%llu in a row; again in %.1f s)", w->outlet.app,
                 w->outlet.output, text, (unsigned long long)w->failures,
                 (double)delay_ns / (double)NS_PER_S);
    report(w, OUTLET_RESTING, error, text);
}

void delivery_failed(struct wire *w, uint64_t now_ns, int error, const struct answer *a)
{
    char text[sizeof w->outlet.report.text];
    describe(w, error, a, text, sizeof text);
    if (w->failures++ == 0)
        w->down_since_ns = now_ns;
    counter_add(&w->outlet.report.failures_total, 1);
    delivery_rewind(w);
    if (error == PE_HTTP_GONE || error == PE_STREAM_RETIRED)
        disable(w, error, text);
    else
        rest(w, now_ns, error, a, text);
}

/* --- dead letters --- */

bool delivery_asking(const struct wire *w)
{
    return atomic_load_explicit(&w->outlet.dead.state, memory_order_relaxed) != OUTLET_DEAD_NONE;
}

struct batch_limits delivery_limits(const struct wire *w)
{
    struct batch_limits limits = w->limits;
    if (w->suspect > w->next.records)
        limits.records = min_u64(limits.records, max_u64((w->suspect - w->next.records) / 2, 1));
    return limits;
}

static bool is_refusal(const struct wire *w, uint16_t status)
{
    switch (status) {
    case 401:
    case 403:
    case 407:
    case 408:
    case 410:
    case 425:
    case 429:
        return false;
    case 409:
        return w->mode != WIRE_PURE;
    default:
        return status / 100 == 4;
    }
}

static void ask(struct wire *w, const struct batch *batch, const struct answer *a)
{
    struct outlet_dead *dead = &w->outlet.dead;
    dead->start = batch->start;
    dead->end = batch->end;
    dead->status = a->status;
    snprintf(dead->reason, sizeof dead->reason, "%u %s", a->status, a->reason);
    atomic_store_explicit(&dead->state, OUTLET_DEAD_ASKED, memory_order_release);
    board_post(w->outlet.producer, w->outlet.producer_slot);
}

/* An answer that was no success. Of a batch the record is to be found that it is for. */
static void see_refusal(struct wire *w, const struct wire_flight *flight, const struct answer *a)
{
    const struct batch *batch = &flight->batch;
    if (w->attempts == 0 || !w->outlet.keeps_dead || delivery_asking(w))
        return;
    if (!is_refusal(w, a->status) || batch->start.bytes != w->outlet.queue.freed.bytes) {
        w->refusals = 0;
        return;
    }
    if (batch_count(batch) == 1 && ++w->refusals >= w->attempts) {
        ask(w, batch, a);
    } else if (batch_count(batch) > 1) {
        w->suspect = batch->end.records;
        w->promised = w->outlet.queue.freed;
    }
}

void delivery_settle_dead(struct wire *w)
{
    struct outlet_dead *dead = &w->outlet.dead;
    if (atomic_load_explicit(&dead->state, memory_order_acquire) != OUTLET_DEAD_TAKEN)
        return;
    uint64_t before = atomic_load_explicit(&w->outlet.report.dead, memory_order_relaxed);
    if (power_of_two(before + 1))
        log_line(w->log, LOG_WARNING, "%s.%s: record %llu is set aside, as it was refused: %s (%llu so far)",
                 w->outlet.app, w->outlet.output, (unsigned long long)dead->end.records, dead->reason,
                 (unsigned long long)before + 1);
    counter_add(&w->outlet.report.dead, 1);
    outlet_stored(&w->outlet, dead->end);
    atomic_store_explicit(&dead->state, OUTLET_DEAD_NONE, memory_order_relaxed);
    w->refusals = 0;
    if (!w->disabled)
        recover(w);
}

/* --- what answers mean --- */

static void stored_to(struct wire *w, struct stream_position to, uint64_t body_bytes)
{
    counter_add(&w->outlet.report.bytes, body_bytes);
    outlet_stored(&w->outlet, to);
    if (w->next.bytes < to.bytes)
        w->next = to;
}

/* The position behind record number `number`, which lies in [freed, published]. */
static struct stream_position behind(struct wire *w, const struct wire_flight *flight, uint64_t number)
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
static bool advance(struct wire *w, const struct wire_flight *flight, uint64_t stored)
{
    const struct connection *c = &w->connection;
    stored = min_u64(stored, w->outlet.queue.published_seen.records);
    if (c->phase == CONNECTION_OPEN && c->whole < c->begun) {
        const struct wire_flight *sending = &w->flights[c->whole % CONNECTION_PIPELINE_MAX];
        stored = min_u64(stored, sending->batch.start.records);
    }
    struct stream_position freed = w->outlet.queue.freed;
    if (stored <= freed.records)
        return false;
    struct stream_position to = behind(w, flight, stored);
    stored_to(w, to, to.bytes - freed.bytes);
    return true;
}

static int failure_of(const struct answer *a)
{
    return a->status == 410 ? PE_HTTP_GONE : a->status / 100 == 3 ? PE_HTTP_REDIRECT : PE_HTTP_STATUS;
}

static int pure_failure_of(const struct wire *w, const struct answer *a)
{
    bool behind_us = a->has_stored && a->stored < w->outlet.queue.freed.records;
    if (answer_success(a))
        return !a->has_stored ? PE_HTTP_UNSTORED : behind_us ? PE_STREAM_GAP : PE_HTTP_STORED;
    if (a->status == 409 && span_is(span_text(a->pure_error), "epoch-retired"))
        return PE_STREAM_RETIRED;
    return a->status == 409 && behind_us ? PE_STREAM_GAP : failure_of(a);
}

/* 413: the peer may take in parts what it does not take whole. From now on batches are smaller; for good, as
 * what the peer has room for does not change with its mood. Of this batch nothing was taken, so it need not
 * go again as it was. */
static void make_batches_smaller(struct wire *w, const struct wire_flight *flight, const struct answer *a)
{
    if (a->status != 413 || batch_count(&flight->batch) < 2)
        return;
    w->limits.bytes = min_u64(w->limits.bytes, flight->batch.body.size / 2);
    w->promised = w->outlet.queue.freed;
}

/* Mode pure: the stored number counts, whatever the status is. */
static void settle_numbered(struct wire *w, uint64_t now_ns, const struct wire_flight *flight,
                            const struct answer *a)
{
    uint64_t sent = max_u64(w->sent_records, w->outlet.sent_before);
    bool impossible = a->has_stored && a->stored > sent;
    bool moved = a->has_stored && !impossible && advance(w, flight, a->stored);
    if (flight->series != w->series)
        return; /* sent before `next` went back: its failure is known already */
    if (impossible) {
        delivery_failed(w, now_ns, PE_HTTP_STORED, a);
        return;
    }
    bool all = a->has_stored && a->stored >= flight->batch.end.records;
    if (moved || (answer_success(a) && all))
        succeed(w, now_ns);
    if (answer_success(a) && all)
        return;
    if (answer_success(a) && moved) {
        delivery_rewind(w); /* a part was stored: the rest goes again, at once */
        return;
    }
    make_batches_smaller(w, flight, a);
    see_refusal(w, flight, a);
    delivery_failed(w, now_ns, pure_failure_of(w, a), a);
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
    report(w, OUTLET_RESTING, PE_STREAM_ROLLED_BACK, pure_error_text(PE_STREAM_ROLLED_BACK));
    outlet_contact_answered(&w->outlet, false);
}

void delivery_settle_contact(struct wire *w)
{
    if (!outlet_contact_renewed(&w->outlet, w->epoch))
        return;
    request_set_epoch(&w->request, w->epoch);
    if (!w->disabled)
        recover(w);
}

static void settle_question(struct wire *w, uint64_t now_ns, const struct wire_flight *flight,
                            const struct answer *a)
{
    uint64_t freed = w->outlet.queue.freed.records, most = max_u64(freed, w->outlet.contact.reach);
    w->asking = false;
    if (flight->series != w->series)
        return;
    if (a->status == 409 && span_is(span_text(a->pure_error), "rolled-back")) {
        outgrown(w, a);
    } else if (is_refusal(w, a->status)) { /* records would be refused, too: so is the first of them */
        struct wire_flight first = {.batch = batch_single(&w->outlet.queue, w->outlet.queue.freed)};
        see_refusal(w, &first, a);
        delivery_failed(w, now_ns, pure_failure_of(w, a), a);
    } else if (!answer_success(a) || !a->has_stored || a->stored < freed || a->stored > most) {
        delivery_failed(w, now_ns, pure_failure_of(w, a), a);
    } else {
        advance(w, flight, a->stored);
        succeed(w, now_ns);
        outlet_contact_answered(&w->outlet, true);
    }
}

void delivery_answered(struct wire *w, uint64_t now_ns, const struct wire_flight *flight,
                       const struct answer *a)
{
    if (flight->question) {
        settle_question(w, now_ns, flight, a);
    } else if (w->mode == WIRE_PURE) {
        settle_numbered(w, now_ns, flight, a);
    } else if (answer_success(a)) {
        stored_to(w, flight->batch.end, flight->batch.body.size);
        succeed(w, now_ns);
    } else {
        make_batches_smaller(w, flight, a);
        see_refusal(w, flight, a);
        delivery_failed(w, now_ns, failure_of(a), a);
    }
}
