#include "link/inlets.h"

#include "link/stream_limits.h"

#include <errno.h>
#include <stdlib.h>

static void clear_lists(struct inlets *in)
{
    in->ready = in->due = NULL;
    in->due_tail = &in->due;
}

int inlets_init(struct inlets *in, const struct inlet_limits *limits, const struct link_consumer *consumer,
                void *peer, void (*wants)(struct inlets *))
{
    assert(limits->places >= 1 && limits->places <= LINK_STREAMS_MAX);
    *in = (struct inlets){.limits = *limits,
                          .consumer = consumer,
                          .peer = peer,
                          .wants = wants,
                          .session_credit = limits->session_window,
                          .look_ns = NEVER};
    in->limits.stream_window = min_u64(limits->stream_window, limits->session_window);
    clear_lists(in);
    in->list = calloc(limits->places, sizeof *in->list);
    return in->list ? 0 : -ENOMEM;
}

static void close_all(struct inlets *in)
{
    for (uint32_t i = 0; in->list && i < in->limits.places; i++) {
        if (in->list[i].state == INLET_OPEN)
            in->consumer->closed(in->consumer->context, &in->list[i]);
        in->list[i].state = INLET_FREE;
        receive_stream_end(&in->list[i].stream);
    }
}

void inlets_dispose(struct inlets *in)
{
    close_all(in);
    for (uint32_t i = 0; in->list && i < in->limits.places; i++)
        receive_stream_dispose(&in->list[i].stream);
    free(in->list);
    in->list = NULL;
}

void inlets_begin(struct inlets *in)
{
    close_all(in);
    for (uint32_t i = 0; i < in->limits.places; i++)
        in->list[i].used = in->list[i].ready = in->list[i].due = false;
    clear_lists(in);
    in->session_received = in->session_handed = in->session_freed = in->extra = in->promised = in->touched =
        0;
    in->look_ns = NEVER;
    in->session_credit = in->limits.session_window;
    in->credit_due = false;
}

/* --- what is due --- */

static void make_due(struct inlet *inlet)
{
    if (inlet->due)
        return;
    inlet->due = true;
    inlet->next_due = NULL;
    *inlet->inlets->due_tail = inlet;
    inlet->inlets->due_tail = &inlet->next_due;
    inlet->inlets->wants(inlet->inlets);
}

static struct inlet *take_due(struct inlets *in)
{
    struct inlet *inlet = in->due;
    in->due = inlet->next_due;
    if (!in->due)
        in->due_tail = &in->due;
    inlet->due = false;
    return inlet;
}

static uint64_t session_credit(const struct inlets *in)
{
    return max_u64(in->session_credit, in->session_freed + in->limits.session_window + in->extra);
}

static void make_credit_due(struct inlets *in)
{
    in->credit_due = true;
    in->wants(in);
}

/* Worth a frame when it is as much as the sender has left: less and less as the window fills. */
static void see_session_credit(struct inlets *in)
{
    uint64_t more = session_credit(in) - in->session_credit;
    if (more > 0 && more >= in->session_credit - in->session_received)
        make_credit_due(in);
}

/* How much may be promised to a stream. */
static uint64_t share(const struct inlet *inlet)
{
    const struct inlet_limits *limits = &inlet->inlets->limits;
    const struct receive_stream *s = &inlet->stream;
    uint64_t others = inlet->inlets->promised - (s->credit - s->freed);
    uint64_t left = limits->session_window - min_u64(others, limits->session_window);
    uint64_t part = left * limits->stream_window / limits->session_window; /* windows are below 2^32 */
    return max_u64(min_u64(part, LINK_STREAM_CREDIT + s->freed), LINK_STREAM_CREDIT);
}

static uint64_t stream_credit(const struct inlet *inlet)
{
    const struct receive_stream *s = &inlet->stream;
    uint64_t credit = max_u64(s->freed + share(inlet), receive_stream_need(s));
    return max_u64(s->credit, min_u64(credit, receive_stream_credit(s)));
}

/* Worth a frame when half of a share is to be had, or the sender cannot end a record. */
static void see_stream_credit(struct inlet *inlet)
{
    const struct receive_stream *s = &inlet->stream;
    uint64_t more = stream_credit(inlet) - s->credit;
    if (more > 0 && (more >= share(inlet) / 2 || receive_stream_need(s) > s->credit))
        make_due(inlet);
}

static void session_free(struct inlets *in, uint64_t bytes)
{
    in->session_freed += bytes;
    if (in->session_freed == in->session_received) /* what was promised stays so */
        in->extra =
            in->session_credit - min_u64(in->session_credit, in->session_freed + in->limits.session_window);
    see_session_credit(in);
}

/* --- frames of the sender --- */

/* What the ring holds is nobody's any more. */
static void give_up_bytes(struct inlet *inlet)
{
    struct receive_stream *s = &inlet->stream;
    inlet->inlets->session_handed += s->highest - s->handed;
    session_free(inlet->inlets, s->highest - s->freed);
    s->freed = s->handed = s->highest;
}

/* It is open no more. */
static void let_go(struct inlet *inlet, enum inlet_state state)
{
    inlet->inlets->promised -= inlet->stream.credit - inlet->stream.freed;
    inlet->inlets->touched -= inlet->stream.touched;
    inlet->state = state;
    give_up_bytes(inlet);
    receive_stream_end(&inlet->stream);
}

static void give_up(struct inlet *inlet, uint64_t reason, uint64_t stored)
{
    let_go(inlet, INLET_REFUSED);
    inlet->reason = reason;
    inlet->stream.stored = stored;
}

static void refuse(struct inlet *inlet, uint64_t reason, uint64_t stored)
{
    give_up(inlet, reason, stored);
    make_due(inlet);
}

/* Not at the consumer's wish: it is told. */
static void refuse_behind_stored(struct inlet *inlet, uint64_t reason)
{
    const struct link_consumer *consumer = inlet->inlets->consumer;
    inlet->reason = reason;
    consumer->closed(consumer->context, inlet);
    give_up(inlet, reason, inlet->stream.stored);
}

static int map_ring(struct inlet *inlet, const struct inlet_limits *limits)
{
    if (inlet->stream.ring.base)
        return 0;
    return receive_stream_init(&inlet->stream, limits->stream_window, limits->max_record);
}

static void admit(struct inlet *inlet, const struct frame_open *open)
{
    struct inlets *in = inlet->inlets;
    uint64_t stored = open->base;
    int reason = in->consumer->admit(in->consumer->context, in->peer, open, inlet, &stored);
    if (reason != 0) {
        refuse(inlet, (uint64_t)reason, stored);
        return;
    }
    inlet->state = INLET_OPEN;
    inlet->asked = open->asks > 0;
    make_due(inlet); /* the credit */
}

int inlets_open(struct inlets *in, const struct frame_open *open)
{
    struct inlet *inlet = &in->list[open->stream % in->limits.places];
    if (inlet->used && open->stream <= inlet->number)
        return 0;
    if (inlet->state != INLET_FREE || open->first < 1 || open->first > VARINT_MAX / 2)
        return PE_MALFORMED;
    *inlet = (struct inlet){.stream = inlet->stream,
                            .inlets = in,
                            .number = open->stream,
                            .used = true,
                            .due = inlet->due,
                            .next_due = inlet->next_due,
                            .ready = inlet->ready,
                            .next_ready = inlet->next_ready};
    int error = map_ring(inlet, &in->limits);
    uint64_t credit = error < 0 ? 0 : LINK_STREAM_CREDIT;
    receive_stream_begin(&inlet->stream, open->first, credit);
    in->promised += credit;
    if (error < 0)
        refuse(inlet, REFUSED_NO_ROOM, open->base);
    else
        admit(inlet, open);
    return 0;
}

/* Why `more` bytes are not taken that are over a credit with `left` left. */
static int over_credit(const struct inlets *in, uint64_t more, uint64_t left)
{
    return more - left <= in->limits.overpromise ? PE_FULL : PE_MALFORMED;
}

/* Counts bytes up to `end` as received, if they are within the session's credit. */
static int count_received(struct inlet *inlet, uint64_t end)
{
    struct inlets *in = inlet->inlets;
    uint64_t more = end > inlet->stream.highest ? end - inlet->stream.highest : 0;
    uint64_t left = in->session_credit - in->session_received;
    if (more > left)
        return over_credit(in, more, left);
    in->session_received += more;
    return 0;
}

static int end_stream(struct inlet *inlet, uint64_t end)
{
    const struct link_consumer *consumer = inlet->inlets->consumer;
    int error = end < inlet->stream.highest ? PE_MALFORMED : count_received(inlet, end);
    if (error < 0)
        return error;
    if (inlet->state == INLET_OPEN) {
        consumer->closed(consumer->context, inlet);
        let_go(inlet, INLET_FREE);
    }
    inlet->stream.highest = end;
    give_up_bytes(inlet);
    inlet->state = INLET_FREE;
    return 0;
}

static int discard(struct inlet *inlet, uint64_t end)
{
    int error = count_received(inlet, end);
    if (error == 0 && end > inlet->stream.highest) {
        inlet->stream.highest = end;
        give_up_bytes(inlet);
    }
    return error;
}

/* Bytes that are within the credit; `more` of them are new at the end. */
static int put(struct inlet *inlet, uint64_t offset, struct span bytes, uint64_t more)
{
    uint64_t touched = inlet->stream.touched;
    int error = receive_stream_put(&inlet->stream, offset, bytes);
    if (error < 0)
        return error == PE_FULL ? PE_FULL : PE_MALFORMED;
    inlet->inlets->touched += inlet->stream.touched - touched;
    inlet->inlets->session_received += more;
    if (!inlet->ready && inlet->stream.contiguous > inlet->stream.handed) {
        inlet->ready = true;
        inlet->next_ready = inlet->inlets->ready;
        inlet->inlets->ready = inlet;
    }
    return 0;
}

/* Of what is promised and has no room, the part that has is kept, though it will come again: so both ends
 * come to the same credit, and no record's end is dropped each time because of what follows in its frame. */
static int keep(struct inlet *inlet, const struct frame_records *records)
{
    struct inlets *in = inlet->inlets;
    uint64_t offset = records->offset, end = offset + records->bytes.size, highest = inlet->stream.highest;
    uint64_t most = min_u64(inlet->stream.credit, highest + (in->session_credit - in->session_received));
    if (end <= most)
        return put(inlet, offset, records->bytes, end > highest ? end - highest : 0);
    if (over_credit(in, end, most) == PE_MALFORMED)
        return PE_MALFORMED;
    int error = 0;
    if (most > offset)
        error = put(inlet, offset, span_of(records->bytes.data, most - offset),
                    most > highest ? most - highest : 0);
    return error < 0 ? error : PE_FULL;
}

int inlets_records(struct inlets *in, const struct frame_records *records)
{
    struct inlet *inlet = &in->list[records->stream % in->limits.places];
    if (!inlet->used || records->stream > inlet->number)
        return PE_MALFORMED;
    if (records->stream < inlet->number || inlet->state == INLET_FREE)
        return 0; /* late: of a stream that has ended */
    if (records->bytes.size == 0)
        return end_stream(inlet, records->offset);
    if (inlet->state == INLET_REFUSED)
        return discard(inlet, records->offset + records->bytes.size);
    return keep(inlet, records);
}

/* --- relief --- */

/* Of the window, bytes that nobody holds. */
static uint64_t free_bytes(const struct inlets *in)
{
    uint64_t held = in->session_received - in->session_freed;
    return in->limits.session_window - min_u64(held, in->limits.session_window);
}

static bool crowded(const struct inlets *in)
{
    return free_bytes(in) < in->limits.session_window / INLETS_CROWDED;
}

static uint64_t held_bytes(const struct inlet *inlet)
{
    return inlet->stream.highest - inlet->stream.freed;
}

/* Which holds most of all, or of those that wait; NULL: there is none. */
static struct inlet *most_holding(const struct inlets *in, bool waiting)
{
    struct inlet *most = NULL;
    for (uint32_t i = 0; i < in->limits.places; i++) {
        struct inlet *inlet = &in->list[i];
        if (inlet->state == INLET_OPEN && (inlet->waits || !waiting) &&
            (!most || held_bytes(inlet) > held_bytes(most)))
            most = inlet;
    }
    return most;
}

static void relieve(struct inlets *in, bool waiting)
{
    struct inlet *inlet;
    while (free_bytes(in) < in->limits.session_window / INLETS_RELIEVED &&
           (inlet = most_holding(in, waiting))) {
        refuse_behind_stored(inlet, REFUSED_NO_ROOM);
        make_due(inlet);
    }
}

/* Whether the window is full of records' beginnings. */
static void see_stuck(struct inlets *in)
{
    if (in->session_received < in->session_credit || in->session_handed > in->session_freed)
        return;
    if (session_credit(in) == in->session_credit && in->extra >= in->limits.session_window)
        relieve(in, false);
    else if (session_credit(in) == in->session_credit)
        in->extra += record_framed_size(in->limits.max_record);
    make_credit_due(in);
}

/* --- what has come goes on --- */

static struct received_records deliver_piece(struct inlet *inlet)
{
    const struct link_consumer *consumer = inlet->inlets->consumer;
    struct received_records records = receive_stream_take(&inlet->stream);
    inlet->inlets->session_handed += records.bytes.size;
    inlet->more = records.more;
    if (records.count > 0)
        consumer->records(consumer->context, inlet, records.first, records.bytes, records.count);
    return records;
}

static void deliver(struct inlet *inlet)
{
    struct received_records records;
    do
        records = deliver_piece(inlet);
    while (records.more && inlet->state == INLET_OPEN);
    if (inlet->state != INLET_OPEN)
        return;
    see_stream_credit(inlet); /* of a record that is coming */
    if (records.error < 0) {
        inlet->too_large = true;
        make_due(inlet);
    }
}

/* What freed records have left behind in rings that are never empty, if it is much. */
static void trim(struct inlets *in)
{
    uint64_t held = in->session_received - in->session_freed;
    if (in->touched <= held + in->limits.session_window)
        return;
    in->touched = 0;
    for (uint32_t i = 0; i < in->limits.places; i++) {
        struct inlet *inlet = &in->list[i];
        if (inlet->state != INLET_OPEN)
            continue;
        receive_stream_trim(&inlet->stream);
        in->touched += inlet->stream.touched;
    }
}

void inlets_deliver(struct inlets *in)
{
    while (in->ready) {
        struct inlet *inlet = in->ready;
        in->ready = inlet->next_ready;
        inlet->ready = false;
        if (inlet->state == INLET_OPEN)
            deliver(inlet);
    }
    trim(in);
    see_session_credit(in);
    see_stuck(in);
}

/* --- looks --- */

static void mark_waiting(struct inlets *in)
{
    for (uint32_t i = 0; i < in->limits.places; i++) {
        struct inlet *inlet = &in->list[i];
        inlet->waits = inlet->state == INLET_OPEN && inlet->stream.handed > inlet->stream.freed;
    }
}

void inlets_relieve(struct inlets *in, uint64_t now_ns)
{
    bool looked = in->look_ns != NEVER;
    if (crowded(in) && looked && now_ns < in->look_ns)
        return;
    if (crowded(in) && looked) {
        relieve(in, true);
        see_stuck(in);
    }
    in->look_ns = NEVER;
    if (!crowded(in))
        return;
    mark_waiting(in);
    in->look_ns = now_ns + INLETS_PATIENCE_NS;
}

/* --- what goes out --- */

static size_t put_refused(struct inlet *inlet, struct sent *sent, uint8_t *at, const uint8_t *end)
{
    struct frame_refused refused = {inlet->number, inlet->reason, inlet->stream.stored};
    sent_add(sent, (struct sent_item){.kind = SENT_REFUSED, .stream = inlet->number});
    return frame_put_refused(at, end, &refused);
}

static size_t put_stored(struct inlet *inlet, struct sent *sent, uint8_t *at, const uint8_t *end)
{
    struct receive_stream *s = &inlet->stream;
    uint64_t credit = stream_credit(inlet);
    inlet->inlets->promised += credit - s->credit;
    s->credit = credit;
    struct frame_stored stored = {inlet->number, s->stored, s->credit + inlet->inlets->limits.overpromise};
    sent_add(sent, (struct sent_item){.kind = SENT_STORED, .stream = inlet->number, .offset = s->stored});
    return frame_put_stored(at, end, &stored);
}

static size_t put_credit(struct inlets *in, struct sent *sent, uint8_t *at, const uint8_t *end)
{
    in->credit_due = false;
    in->session_credit = session_credit(in);
    sent_add(sent, (struct sent_item){.kind = SENT_CREDIT, .offset = in->session_credit});
    return frame_put_credit(at, end, in->session_credit + in->limits.overpromise);
}

/* A frame and its item surely fit. */
static bool room(const struct sent *sent, const uint8_t *at, const uint8_t *end)
{
    return end - at >= FRAME_STORED_MAX_BYTES && sent->items_added < SENT_ITEMS_PER_PACKET;
}

_Static_assert(FRAME_STORED_MAX_BYTES >= FRAME_REFUSED_MAX_BYTES, "room() is for the largest");
_Static_assert(FRAME_STORED_MAX_BYTES >= FRAME_CREDIT_MAX_BYTES, "room() is for the largest");

/* The records before one that is over the limit are good: it is refused behind them. */
static void see_too_large(struct inlet *inlet)
{
    if (inlet->state == INLET_OPEN && inlet->too_large && inlet->stream.stored + 1 >= inlet->stream.next)
        refuse_behind_stored(inlet, REFUSED_RECORD_TOO_LARGE);
}

size_t inlets_fill(struct inlets *in, struct sent *sent, uint8_t *at, const uint8_t *end)
{
    uint8_t *start = at;
    if (in->credit_due && room(sent, at, end))
        at += put_credit(in, sent, at, end);
    while (in->due && room(sent, at, end)) {
        struct inlet *inlet = take_due(in);
        see_too_large(inlet);
        if (inlet->state == INLET_REFUSED)
            at += put_refused(inlet, sent, at, end);
        else if (inlet->state == INLET_OPEN && !inlet->asked)
            at += put_stored(inlet, sent, at, end);
    }
    return (size_t)(at - start);
}

void inlets_lost(struct inlets *in, const struct sent_item *item)
{
    if (item->kind == SENT_CREDIT && item->offset == in->session_credit)
        make_credit_due(in);
    if (item->kind != SENT_STORED && item->kind != SENT_REFUSED)
        return;
    struct inlet *inlet = &in->list[item->stream % in->limits.places];
    if (inlet->used && inlet->number == item->stream && inlet->state != INLET_FREE)
        make_due(inlet);
}

/* --- the consumer's --- */

void inlet_freed(struct inlet *inlet, uint64_t bytes)
{
    assert(inlet->state == INLET_OPEN);
    if (bytes > 0)
        inlet->waits = false;
    uint64_t touched = inlet->stream.touched;
    receive_stream_free(&inlet->stream, bytes);
    inlet->inlets->touched -= touched - inlet->stream.touched;
    inlet->inlets->promised -= bytes;
    session_free(inlet->inlets, bytes);
    see_stream_credit(inlet);
}

void inlet_stored(struct inlet *inlet, uint64_t number)
{
    assert(inlet->state == INLET_OPEN);
    if (receive_stream_store(&inlet->stream, number))
        make_due(inlet);
}

void inlet_answer(struct inlet *inlet)
{
    assert(inlet->state == INLET_OPEN);
    inlet->asked = false;
    make_due(inlet);
}

void inlet_refuse(struct inlet *inlet, enum frame_refusal reason, uint64_t stored)
{
    assert(inlet->state == INLET_OPEN);
    refuse(inlet, reason, stored);
}
