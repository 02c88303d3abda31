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
                          .session_credit = limits->session_window};
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
    in->session_received = in->session_handed = in->session_freed = in->extra = 0;
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

/* Whenever it doubles what the sender may send: a stream whose consumer frees nothing may hold most of the
 * window, and what is left has to go round for the others. */
static void session_free(struct inlets *in, uint64_t bytes)
{
    in->session_freed += bytes;
    if (in->session_freed == in->session_received)
        in->extra = 0;
    uint64_t more = session_credit(in) - in->session_credit, left = in->session_credit - in->session_received;
    if (more > 0 && more >= left)
        make_credit_due(in);
}

/* The sender has used up its credit. What was freed is given to it; and if the window is full of records'
 * beginnings, more. */
static void see_spent(struct inlets *in)
{
    if (in->session_received < in->session_credit)
        return;
    if (session_credit(in) == in->session_credit) {
        if (in->session_handed > in->session_freed)
            return;
        in->extra += record_framed_size(in->limits.max_record);
    }
    make_credit_due(in);
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

static void give_up(struct inlet *inlet, uint64_t reason, uint64_t stored)
{
    give_up_bytes(inlet);
    inlet->state = INLET_REFUSED;
    inlet->reason = reason;
    inlet->stream.stored = stored;
}

static void refuse(struct inlet *inlet, uint64_t reason, uint64_t stored)
{
    give_up(inlet, reason, stored);
    make_due(inlet);
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
    receive_stream_begin(&inlet->stream, open->first, error < 0 ? 0 : LINK_STREAM_CREDIT);
    if (error < 0)
        refuse(inlet, REFUSED_TOO_MANY_STREAMS, open->base);
    else
        admit(inlet, open);
    return 0;
}

/* Counts bytes up to `end` as received; PE_MALFORMED if that is over the session's credit. */
static int count_received(struct inlet *inlet, uint64_t end)
{
    struct inlets *in = inlet->inlets;
    uint64_t more = end > inlet->stream.highest ? end - inlet->stream.highest : 0;
    if (more > in->session_credit - in->session_received)
        return PE_MALFORMED;
    in->session_received += more;
    return 0;
}

static int end_stream(struct inlet *inlet, uint64_t end)
{
    if (end < inlet->stream.highest || count_received(inlet, end) < 0)
        return PE_MALFORMED;
    inlet->stream.highest = end;
    give_up_bytes(inlet);
    if (inlet->state == INLET_OPEN)
        inlet->inlets->consumer->closed(inlet->inlets->consumer->context, inlet);
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

static int keep(struct inlet *inlet, const struct frame_records *records)
{
    uint64_t highest = inlet->stream.highest, end = records->offset + records->bytes.size;
    uint64_t more = end > highest ? end - highest : 0;
    if (more > inlet->inlets->session_credit - inlet->inlets->session_received)
        return PE_MALFORMED;
    int error = receive_stream_put(&inlet->stream, records->offset, records->bytes);
    if (error < 0)
        return error == PE_FULL ? PE_FULL : PE_MALFORMED;
    inlet->inlets->session_received += more;
    if (!inlet->ready && inlet->stream.contiguous > inlet->stream.handed) {
        inlet->ready = true;
        inlet->next_ready = inlet->inlets->ready;
        inlet->inlets->ready = inlet;
    }
    return 0;
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

static void deliver(struct inlet *inlet)
{
    const struct link_consumer *consumer = inlet->inlets->consumer;
    struct received_records records = receive_stream_take(&inlet->stream);
    inlet->inlets->session_handed += records.bytes.size;
    if (records.count > 0)
        consumer->records(consumer->context, inlet, records.first, records.bytes, records.count);
    if (records.error < 0 && inlet->state == INLET_OPEN) {
        inlet->too_large = true;
        make_due(inlet);
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
    see_spent(in);
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
    s->credit = receive_stream_credit(s);
    struct frame_stored stored = {inlet->number, s->stored, s->credit};
    sent_add(sent, (struct sent_item){.kind = SENT_STORED, .stream = inlet->number, .offset = s->stored});
    return frame_put_stored(at, end, &stored);
}

static size_t put_credit(struct inlets *in, struct sent *sent, uint8_t *at, const uint8_t *end)
{
    in->credit_due = false;
    in->session_credit = session_credit(in);
    sent_add(sent, (struct sent_item){.kind = SENT_CREDIT, .offset = in->session_credit});
    return frame_put_credit(at, end, in->session_credit);
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
    const struct link_consumer *consumer = inlet->inlets->consumer;
    if (inlet->state != INLET_OPEN || !inlet->too_large || inlet->stream.stored + 1 < inlet->stream.next)
        return;
    consumer->closed(consumer->context, inlet);
    give_up(inlet, REFUSED_RECORD_TOO_LARGE, inlet->stream.stored);
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
        else if (inlet->state == INLET_OPEN)
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
    receive_stream_free(&inlet->stream, bytes);
    session_free(inlet->inlets, bytes);
    if (receive_stream_credit_due(&inlet->stream))
        make_due(inlet);
}

void inlet_stored(struct inlet *inlet, uint64_t number)
{
    assert(inlet->state == INLET_OPEN);
    if (receive_stream_store(&inlet->stream, number))
        make_due(inlet);
}

void inlet_refuse(struct inlet *inlet, enum frame_refusal reason, uint64_t stored)
{
    assert(inlet->state == INLET_OPEN);
    refuse(inlet, reason, stored);
}
