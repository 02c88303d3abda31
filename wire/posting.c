#include "wire/posting.h"

#include "wire/json_member.h"
#include "wire/wire.h"

#include <errno.h>

static uint64_t bit_of(const struct lane *lane)
{
    return UINT64_C(1) << lane->index;
}

static unsigned count(uint64_t set)
{
    return (unsigned)__builtin_popcountll(set);
}

static struct lane *first_of(const struct wire *w, uint64_t set)
{
    return w->lanes[__builtin_ctzll(set)];
}

void posting_set(struct posting *p, const struct wire_options *o)
{
    rate_init(&p->rate, o->rate_mhz);
    p->allowed = 1;
    p->batch_wait_ns = o->batch_wait_ns;
    p->seen_ns = NEVER;
    p->order_by_size = o->order_by ? strlen(o->order_by) : 0;
    assert(p->order_by_size <= sizeof p->order_by);
    memcpy(p->order_by, o->order_by ? o->order_by : "", p->order_by_size);
}

void posting_rewind(struct wire *w)
{
    w->posting.current = 0;
    w->posting.allowed = 1;
}

/* --- which records a slot has --- */

static bool waits(const struct wire *w)
{
    return w->outlet.queue.published_seen.bytes > w->posting.slots.end.bytes;
}

void posting_look(struct wire *w, uint64_t now_ns)
{
    struct posting *p = &w->posting;
    outlet_look(&w->outlet);
    if (slots_empty(&p->slots))
        slots_start(&p->slots, w->outlet.queue.freed); /* numbers that were lost are passed over */
    if (!waits(w))
        p->seen_ns = NEVER;
    else if (p->seen_ns == NEVER)
        p->seen_ns = now_ns;
}

static bool key_of(const struct wire *w, struct span record, uint64_t *key)
{
    const struct posting *p = &w->posting;
    struct span value;
    if (p->order_by_size == 0 || json_member(record, span_of(p->order_by, p->order_by_size), &value) < 0)
        return false;
    *key = json_text_hash(value);
    return true;
}

/* A dead letter that the mode before has asked for is not sent: its owner reads it where it lies. */
static uint64_t admit(struct wire *w, struct stream_position end, bool keyed, uint64_t key)
{
    const struct outlet_dead *dead = &w->outlet.dead;
    uint64_t n = slots_admit(&w->posting.slots, end, keyed, key);
    if (delivery_asking(w) && dead->start.bytes == slots_at(&w->posting.slots, n)->start.bytes)
        slots_ask(&w->posting.slots, n);
    return n;
}

static void admit_records(struct wire *w)
{
    struct slots *s = &w->posting.slots;
    while (!slots_full(s) && waits(w)) {
        struct batch one = batch_single(&w->outlet.queue, s->end);
        uint64_t key = 0;
        bool keyed = key_of(w, one.body, &key);
        admit(w, one.end, keyed, key);
    }
}

/* Of a batch that begins at `from`. While a record is sought that is refused, batches get shorter. */
static struct batch_limits limits_at(const struct wire *w, struct stream_position from)
{
    const struct outlet_dead *dead = &w->outlet.dead;
    struct batch_limits limits = w->limits;
    if (w->posting.suspect > from.records)
        limits.records = min_u64(limits.records, max_u64((w->posting.suspect - from.records) / 2, 1));
    if (delivery_asking(w) && dead->end.bytes > from.bytes)
        limits.records = min_u64(limits.records, max_u64(dead->start.records - from.records, 1));
    return limits;
}

/* Whether a batch is to be made of what waits: it has waited for long enough, or no more goes into it. A line
 * is never longer than the framed record, so that fewer framed bytes leave room. */
static bool batch_due(const struct wire *w, uint64_t now_ns)
{
    const struct posting *p = &w->posting;
    const struct record_queue *q = &w->outlet.queue;
    if (w->mode != WIRE_BATCH || slots_full(&p->slots) || !waits(w))
        return false;
    struct batch_limits limits = limits_at(w, p->slots.end);
    return p->batch_wait_ns == 0 || wire_hurried(w) || now_ns - p->seen_ns >= p->batch_wait_ns ||
           q->published_seen.bytes - p->slots.end.bytes >= limits.bytes ||
           q->published_seen.records - p->slots.end.records >= limits.records;
}

static void admit_batch(struct wire *w, uint64_t now_ns)
{
    struct posting *p = &w->posting;
    struct batch_limits limits = limits_at(w, p->slots.end);
    admit(w, batch_of_lines(&w->outlet.queue, p->slots.end, &limits).end, false, 0);
    p->seen_ns = waits(w) ? now_ns : NEVER;
}

/* --- sending --- */

static bool may_begin(const struct wire *w, uint64_t now_ns)
{
    const struct posting *p = &w->posting;
    return now_ns >= w->delivery.rest_until_ns && now_ns >= rate_due_ns(&p->rate) &&
           count(p->current & (p->opening | p->flying)) < p->allowed;
}

static struct batch body_of(struct wire *w, struct lane *lane, const struct slot *slot)
{
    if (w->mode == WIRE_WEBHOOK)
        return batch_single(&w->outlet.queue, slot->start);
    struct batch batch = {.start = slot->start, .end = slot->end};
    batch_write_lines(&w->outlet.queue, &batch, lane->body);
    return batch;
}

/* The body as it is sent: compressed, if that makes it smaller. */
static struct span pack(struct wire *w, struct lane *lane, struct span content)
{
    struct gzip *gzip = w->posting.gzip;
    size_t size = gzip ? gzip_write(gzip, content, lane->packed) : 0;
    return size > 0 ? span_of(lane->packed, size) : content;
}

static void send_slot(struct wire *w, uint64_t now_ns, struct lane *lane, uint64_t n)
{
    struct posting *p = &w->posting;
    struct slot *slot = slots_at(&p->slots, n);
    struct batch batch = body_of(w, lane, slot);
    struct request_numbers numbers = {.first = batch.start.records + 1,
                                      .count = batch_count(&batch),
                                      .wall_s = io_wall_ms(w->loop->io) / 1000,
                                      .attempt = ++slot->tries};
    struct span bytes = pack(w, lane, batch.body);
    struct request_body body = {
        .content = batch.body, .bytes = bytes.size, .gzip = bytes.data != batch.body.data};
    wire_send(w, now_ns, lane, &numbers, &body, bytes);
    rate_take(&p->rate, now_ns);
    slots_fly(&p->slots, n);
    lane->slot = n;
    lane->content_bytes = batch.body.size;
    p->ready &= ~bit_of(lane);
    p->flying |= bit_of(lane);
    p->current |= bit_of(lane);
}

/* The slot to be sent now; SLOTS_NONE. */
static uint64_t next_slot(struct wire *w, uint64_t now_ns)
{
    struct slots *s = &w->posting.slots;
    if (batch_due(w, now_ns))
        admit_batch(w, now_ns);
    return slots_next(s);
}

/* Hands to lanes that are ready what is. */
static void send_ready(struct wire *w, uint64_t now_ns)
{
    struct posting *p = &w->posting;
    while (p->ready && may_begin(w, now_ns)) {
        struct lane *lane = first_of(w, p->ready);
        uint64_t n = next_slot(w, now_ns);
        if (n == SLOTS_NONE)
            return;
        if (lane_prepare(lane) < 0) {
            delivery_failed(w, now_ns, -ENOMEM, NULL, "");
            return;
        }
        send_slot(w, now_ns, lane, n);
    }
}

/* A lane that is gone, made if it never was; NULL: there is none, or no memory for it. */
static struct lane *gone_lane(struct wire *w)
{
    for (unsigned n = 0; n < w->concurrency; n++) {
        if (!w->lanes[n] || lane_gone(w->lanes[n]))
            return wire_lane(w, n);
    }
    return NULL;
}

static unsigned wanted_lanes(struct wire *w, uint64_t now_ns)
{
    struct slots *s = &w->posting.slots;
    if (s->limit == 1)
        return slots_next(s) != SLOTS_NONE || batch_due(w, now_ns);
    return s->ready;
}

static void open_lanes(struct wire *w, uint64_t now_ns)
{
    struct posting *p = &w->posting;
    if (p->ready)
        return;
    unsigned wanted = wanted_lanes(w, now_ns);
    while (wanted > count(p->opening) && may_begin(w, now_ns)) {
        struct lane *lane = gone_lane(w);
        if (!lane)
            return;
        lane_open(lane, now_ns);
        p->opening |= bit_of(lane);
        p->current |= bit_of(lane);
    }
}

/* What the lanes that something happened to can do now. */
static void see_lanes(struct wire *w, uint64_t now_ns)
{
    struct posting *p = &w->posting;
    for (uint64_t rest = w->round; rest; rest &= rest - 1) {
        const struct lane *lane = first_of(w, rest);
        uint64_t bit = bit_of(lane);
        p->opening = lane_opening(lane) ? p->opening : p->opening & ~bit;
        p->ready = lane_ready(lane, now_ns) ? p->ready | bit : p->ready & ~bit;
    }
}

void posting_go_on(struct wire *w, uint64_t now_ns)
{
    see_lanes(w, now_ns);
    slots_wake(&w->posting.slots, now_ns);
    if (w->mode == WIRE_WEBHOOK)
        admit_records(w);
    send_ready(w, now_ns);
    open_lanes(w, now_ns);
}

uint64_t posting_due_ns(const struct wire *w, uint64_t now_ns)
{
    const struct posting *p = &w->posting;
    uint64_t due_ns = p->slots.due_ns;
    bool may_go = p->slots.ready > 0 || batch_due(w, now_ns); /* a batch gets its slot when it is sent */
    if (may_go && rate_due_ns(&p->rate) > now_ns)
        due_ns = min_u64(due_ns, rate_due_ns(&p->rate));
    else if (!may_go && w->mode == WIRE_BATCH && p->seen_ns != NEVER && !slots_full(&p->slots))
        due_ns = min_u64(due_ns, p->seen_ns + p->batch_wait_ns);
    return due_ns;
}

/* --- answers --- */

/* Is done with: delivered, or the owner's now. */
static void finish(struct wire *w, uint64_t n)
{
    struct stream_position to;
    slots_done(&w->posting.slots, n);
    if (slots_free(&w->posting.slots, &to))
        outlet_stored(&w->outlet, to);
}

static void delivered(struct wire *w, uint64_t now_ns, const struct lane *lane, bool current)
{
    struct posting *p = &w->posting;
    counter_add(&w->outlet.report.bytes, lane->content_bytes);
    finish(w, lane->slot);
    if (!current)
        return;
    p->allowed += p->allowed < w->concurrency;
    delivery_succeeded(w, now_ns);
}

/* The next dead letter is handed over once the one before is taken. */
static void ask_next(struct wire *w)
{
    struct slots *s = &w->posting.slots;
    uint64_t n = s->dead > 0 && !delivery_asking(w) ? slots_find(s, SLOT_DEAD) : SLOTS_NONE;
    if (n == SLOTS_NONE)
        return;
    struct slot *slot = slots_at(s, n);
    slots_ask(s, n);
    delivery_ask(w, slot->start, slot->end, slot->status, slot->reason);
}

void posting_settle_dead(struct wire *w)
{
    struct slots *s = &w->posting.slots;
    if (delivery_taken(w)) {
        uint64_t n = slots_find(s, SLOT_ASKED);
        delivery_bury(w);
        if (n != SLOTS_NONE)
            finish(w, n);
        if (s->limit == 1 && !w->delivery.disabled)
            delivery_recover(w);
    }
    ask_next(w);
}

static void bury(struct wire *w, uint64_t n, const struct answer *a)
{
    struct slot *slot = slots_at(&w->posting.slots, n);
    slot->status = a->status;
    memcpy(slot->reason, a->reason, sizeof slot->reason);
    slots_bury(&w->posting.slots, n);
    ask_next(w);
}

/* A batch that was answered so is not sent whole again: nothing of it was taken. 413: the peer may take in
 * parts what it does not take whole; from now on batches are smaller, for good, as what the peer has room for
 * does not change with its mood. A refusal: the record is to be found that it is for. */
static void halve(struct wire *w, const struct lane *lane, const struct answer *a)
{
    struct posting *p = &w->posting;
    struct slot *slot = slots_at(&p->slots, lane->slot);
    if (a->status == 413)
        w->limits.bytes = min_u64(w->limits.bytes, lane->content_bytes / 2);
    if (delivery_keeps_dead(w) && delivery_is_refusal(w, a->status))
        p->suspect = slot->end.records;
    else if (a->status != 413)
        return;
    struct batch_limits limits = limits_at(w, slot->start);
    limits.records = min_u64(limits.records, slot->end.records - slot->start.records);
    slots_shrink(&p->slots, lane->slot, batch_of_lines(&w->outlet.queue, slot->start, &limits).end);
}

static bool dies(struct wire *w, struct slot *slot)
{
    slot->refusals++;
    return delivery_keeps_dead(w) && slot->refusals >= w->delivery.policy.attempts;
}

/* Others go on. */
static void refused(struct wire *w, uint64_t now_ns, uint64_t n, const struct answer *a)
{
    struct slots *s = &w->posting.slots;
    struct slot *slot = slots_at(s, n);
    if (dies(w, slot))
        bury(w, n, a);
    else
        slots_rest(s, n, now_ns + delivery_refusal_rest_ns(w, slot->refusals, a));
    delivery_refused(w, now_ns, a);
}

/* An answer that was no success, where nothing may go ahead of what it is for, or where it is the
 * destination's. */
static void failed(struct wire *w, uint64_t now_ns, const struct lane *lane, const struct answer *a,
                   bool current)
{
    struct slots *s = &w->posting.slots;
    struct slot *slot = slots_at(s, lane->slot);
    bool refusal = delivery_is_refusal(w, a->status), single = slot->end.records - slot->start.records == 1;
    if (!refusal)
        slot->refusals = 0;
    if (!single)
        halve(w, lane, a);
    if (single && refusal && dies(w, slot))
        bury(w, lane->slot, a);
    else
        slots_again(s, lane->slot);
    if (current)
        delivery_failed(w, now_ns, delivery_error_of(w, a), a, "");
}

void posting_answered(struct wire *w, uint64_t now_ns, struct lane *lane, uint64_t number,
                      const struct answer *a)
{
    (void)number;
    struct posting *p = &w->posting;
    bool current = (p->current & bit_of(lane)) != 0;
    assert(p->flying & bit_of(lane));
    p->flying &= ~bit_of(lane);
    if (wire_statuses_have(&w->delivery.policy.stored, a->status))
        delivered(w, now_ns, lane, current);
    else if (p->slots.limit > 1 && delivery_is_refusal(w, a->status))
        refused(w, now_ns, lane->slot, a);
    else
        failed(w, now_ns, lane, a, current);
}

/* The peer has closed a connection that it took for idle: the others are as old, so that what goes again now
 * goes on a fresh one. */
static void leave_idle(struct wire *w)
{
    struct posting *p = &w->posting;
    for (uint64_t rest = p->ready; rest; rest &= rest - 1) {
        struct lane *lane = first_of(w, rest);
        if (lane->connection.begun == 0 || !lane_idle(lane))
            continue;
        p->ready &= ~bit_of(lane);
        lane_leave(lane);
    }
}

/* A connection that never carried a request is a failure, whatever ended it, unless it was one too many and
 * has been idle for long. */
static bool useless(const struct lane *lane, uint64_t now_ns)
{
    const struct connection *c = &lane->connection;
    return c->begun == 0 && !(lane->usable && now_ns - lane->opened_ns >= c->limits.progress_ns);
}

bool posting_closed(struct wire *w, uint64_t now_ns, struct lane *lane)
{
    struct posting *p = &w->posting;
    uint64_t bit = bit_of(lane);
    bool flying = (p->flying & bit) != 0, current = (p->current & bit) != 0;
    bool again = connection_go_again(&lane->connection);
    p->opening &= ~bit;
    p->ready &= ~bit;
    p->flying &= ~bit;
    if (flying)
        slots_again(&p->slots, lane->slot);
    if (flying && again)
        leave_idle(w);
    return current && (useless(lane, now_ns) || (flying && !again));
}

/* --- change --- */

static bool rekey(void *context, const struct slot *slot, uint64_t *key)
{
    const struct wire *w = context;
    return key_of(w, batch_single(&w->outlet.queue, slot->start).body, key);
}

void posting_change(struct wire *w, struct slots *made, bool same_mode)
{
    struct posting *p = &w->posting;
    assert(p->flying == 0);
    p->opening = p->ready = p->current = 0;
    p->suspect = 0;
    if (same_mode) {
        slots_change(&p->slots, made, w->mode == WIRE_WEBHOOK ? rekey : NULL, w);
        return;
    }
    struct slots old = p->slots;
    p->slots = *made;
    *made = old;
    slots_start(&p->slots, w->outlet.queue.freed);
}
