#include "link/outputs.h"

#include "core/clock.h"
#include "link/stream_limits.h"

#include <errno.h>
#include <stdlib.h>

int outputs_init(struct outputs *o, uint32_t capacity, uint64_t seed, const struct outputs_hooks *hooks)
{
    *o = (struct outputs){.capacity = capacity, .rests_ns = NEVER, .random = {seed}, .hooks = *hooks};
    scheduler_init(&o->scheduler, OUTPUT_QUANTUM_BYTES);
    o->list = calloc(capacity, sizeof *o->list);
    return o->list ? 0 : -ENOMEM;
}

void outputs_dispose(struct outputs *o)
{
    free(o->list);
    o->list = NULL;
}

static void see_holding(struct outputs *o, struct link_output *output)
{
    const struct record_queue *q = &output->stream.outlet->queue;
    bool holds = output->state != OUTPUT_DISABLED && q->published_seen.bytes > q->freed.bytes;
    o->holding += (uint32_t)holds - (uint32_t)output->holds;
    output->holds = holds;
}

static bool streaming(const struct link_output *output)
{
    return output->state == OUTPUT_OPENING || output->state == OUTPUT_OPEN;
}

/* Joins the line if there may be something to send: whoever gets its turn in vain just leaves it again. */
static void line_up(struct outputs *o, struct link_output *output)
{
    if (o->begun && streaming(output) && (output->holds || send_stream_has_lost(&output->stream)))
        scheduler_add(&o->scheduler, &output->scheduled);
}

/* --- lives of streams --- */

static bool has_place(const struct outputs *o, const struct link_output *output)
{
    return o->begun && output->place < o->places &&
           (uint64_t)output->place + (uint64_t)output->life * o->places <= FRAME_STREAM_MAX;
}

static void begin(struct outputs *o, struct link_output *output)
{
    if (!has_place(o, output)) {
        output->state = OUTPUT_IDLE;
        return;
    }
    const struct outlet *outlet = output->stream.outlet;
    output->state = OUTPUT_OPENING;
    output->opened_in = UINT64_MAX;
    output->asking = output->ask_due = outlet_contact(outlet) == OUTLET_ASKING;
    output->asks = output->asking ? outlet->contact.reach + 1 : 0;
    send_stream_begin(&output->stream, output->place + output->life * o->places, LINK_STREAM_CREDIT);
    line_up(o, output);
}

static void end(struct outputs *o, struct link_output *output)
{
    output->state = OUTPUT_ENDING;
    output->end = send_stream_end(&output->stream);
    output->end_due = true;
    o->ends_due++;
}

/* A stream that is broken makes way for its next life, without a rest. One whose OPEN was never sent is
 * nobody's yet. (Of one whose OPEN was, the receiver knows: it has stored what there was when that was sent.)
 */
static void mend(struct outputs *o, struct link_output *output)
{
    if (!output->stream.broken)
        return;
    if (output->opened_in == UINT64_MAX) {
        begin(o, output);
        return;
    }
    end(o, output);
    output->for_ever = false;
    output->rest_until_ns = 0;
}

int outputs_add(struct outputs *o, struct link_output *output, struct outlet *outlet,
                const uint8_t epoch[FRAME_EPOCH_BYTES], struct span target, struct span event)
{
    if (o->count == o->capacity)
        return PE_FULL;
    *output = (struct link_output){.target = target, .event = event, .place = o->count};
    memcpy(output->epoch, epoch, FRAME_EPOCH_BYTES);
    send_stream_init(&output->stream, outlet);
    o->list[o->count++] = output;
    send_stream_look(&output->stream);
    see_holding(o, output);
    begin(o, output);
    return 0;
}

static void end_rest(struct outputs *o, struct link_output *output)
{
    output->life++;
    begin(o, output);
}

static void see_rests(struct outputs *o)
{
    o->rests_ns = NEVER;
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->list[i]->state == OUTPUT_RESTING)
            o->rests_ns = min_u64(o->rests_ns, o->list[i]->rest_until_ns);
    }
}

static void ended(struct outputs *o, struct link_output *output)
{
    output->state = output->for_ever ? OUTPUT_DISABLED : OUTPUT_RESTING;
    o->ends_due -= output->end_due;
    output->end_due = false;
    see_holding(o, output);
    see_rests(o);
}

void outputs_begin(struct outputs *o, uint32_t places, uint64_t session_credit)
{
    scheduler_clear(&o->scheduler);
    o->begun = true;
    o->places = places;
    o->session_credit = session_credit;
    o->session_sent = 0;
    o->starved = NULL;
    for (uint32_t i = 0; i < o->count; i++) {
        struct link_output *output = o->list[i];
        output->life = 0;
        if (output->state == OUTPUT_ENDING)
            ended(o, output);
        else if (output->state != OUTPUT_DISABLED)
            begin(o, output);
    }
    see_rests(o);
}

void outputs_expired(struct outputs *o, uint64_t now_ns)
{
    if (now_ns < o->rests_ns)
        return;
    for (uint32_t i = 0; i < o->count; i++) {
        struct link_output *output = o->list[i];
        if (output->state == OUTPUT_RESTING && output->rest_until_ns <= now_ns)
            end_rest(o, output);
    }
    see_rests(o);
}

static uint64_t rest_ns(struct outputs *o, uint32_t refusals)
{
    uint64_t rest = OUTPUT_REST_FIRST_NS << min_u64(refusals, 6);
    rest = min_u64(rest, OUTPUT_REST_LAST_NS);
    return rest - rest / 4 + random_below(&o->random, rest / 2);
}

static void stop(struct outputs *o, struct link_output *output, int error, bool for_ever, uint64_t now_ns)
{
    end(o, output);
    output->for_ever = for_ever;
    output->rest_until_ns = now_ns + rest_ns(o, output->refusals++);
    o->hooks.refused(o->hooks.context, output, error, for_ever);
}

/* --- what goes out --- */

/* It goes on under the new epoch. Of a stream that is opening, nobody has heard: it waited for this. */
static void see_renewed(struct outputs *o, struct link_output *output)
{
    if (!outlet_contact_renewed(output->stream.outlet, output->epoch))
        return;
    output->rest_until_ns = 0;
    if (output->state == OUTPUT_OPENING)
        begin(o, output);
    else if (output->state == OUTPUT_RESTING)
        end_rest(o, output);
    see_rests(o);
}

void outputs_pushed(struct outputs *o, struct link_output *output)
{
    see_renewed(o, output);
    send_stream_look(&output->stream);
    mend(o, output);
    see_holding(o, output);
    line_up(o, output);
}

enum put { PUT_DONE, PUT_NO_ROOM, PUT_NOTHING };

static size_t put_open(struct link_output *output, struct sent *sent, uint8_t *at, const uint8_t *end)
{
    const struct outlet *outlet = output->stream.outlet;
    struct frame_open open = {.stream = output->stream.number,
                              .base = outlet_base(outlet),
                              .first = output->stream.origin.records + 1,
                              .asks = output->asks,
                              .app = span_text(outlet->app),
                              .output = span_text(outlet->output),
                              .target = output->target,
                              .event = output->event};
    memcpy(open.epoch, output->epoch, FRAME_EPOCH_BYTES);
    size_t size = frame_put_open(at, end, &open);
    if (size == 0 || !sent_add(sent, (struct sent_item){.kind = SENT_OPEN, .stream = open.stream}))
        return 0;
    output->opened_in = sent->next;
    return size;
}

static enum put put_question(struct link_output *output, struct sent *sent, uint8_t **at, const uint8_t *end,
                             size_t *piece)
{
    *piece = put_open(output, sent, *at, end);
    if (*piece == 0)
        return PUT_NO_ROOM;
    *at += *piece;
    output->ask_due = false;
    return PUT_DONE;
}

/* OPEN if it has to go along, and one piece. On PUT_DONE `*at` has moved behind them; an OPEN without records
 * for want of room does no harm. */
static enum put put_piece(struct outputs *o, struct link_output *output, struct sent *sent, uint8_t **at,
                          const uint8_t *end, size_t *piece)
{
    struct send_stream *s = &output->stream;
    uint64_t offset, session_room = o->session_credit - o->session_sent;
    if (output->ask_due)
        return put_question(output, sent, at, end, piece);
    if (!send_stream_has_lost(s) && send_stream_fresh(s) == 0) {
        send_stream_look(s);
        mend(o, output);
    }
    uint64_t want = send_stream_next(s, session_room, &offset);
    if (want == 0 && !o->starved && send_stream_fresh(s) > 0)
        o->starved = output;
    if (want == 0)
        return PUT_NOTHING;
    if (output->state == OUTPUT_OPENING && output->opened_in != sent->next) {
        size_t opened = put_open(output, sent, *at, end);
        if (opened == 0)
            return PUT_NO_ROOM;
        *at += opened;
    }
    size_t size = frame_records_fit((size_t)(end - *at), s->number, offset, (size_t)want);
    struct sent_item item = {.kind = SENT_RECORDS, .stream = s->number, .offset = offset, .size = size};
    if (size == 0 || !sent_add(sent, item))
        return PUT_NO_ROOM;
    if (offset == s->sent)
        o->session_sent += size;
    *at += frame_put_records_head(*at, s->number, offset, size);
    memcpy(*at, send_stream_take(s, offset, size), size);
    *at += size;
    *piece = size;
    return PUT_DONE;
}

/* An empty RECORDS frame ends a stream: it says how much was sent, which both ends have to agree on for the
 * session's credit. */
static size_t put_ends(struct outputs *o, struct sent *sent, uint8_t *at, const uint8_t *end)
{
    uint8_t *start = at;
    for (uint32_t i = 0; i < o->count && o->ends_due > 0; i++) {
        struct link_output *output = o->list[i];
        if (!output->end_due)
            continue;
        uint32_t number = output->stream.number;
        struct sent_item item = {.kind = SENT_END, .stream = number};
        if ((size_t)(end - at) < FRAME_RECORDS_MAX_HEAD || !sent_add(sent, item))
            break;
        at += frame_put_records_head(at, number, output->end, 0);
        output->end_due = false;
        o->ends_due--;
    }
    return (size_t)(at - start);
}

size_t outputs_fill(struct outputs *o, struct sent *sent, uint8_t *at, const uint8_t *end)
{
    uint8_t *start = at;
    if (!o->begun)
        return 0;
    at += put_ends(o, sent, at, end);
    struct scheduled *head;
    while ((head = scheduler_head(&o->scheduler))) {
        size_t piece;
        struct link_output *output = container_of(head, struct link_output, scheduled);
        enum put put = streaming(output) ? put_piece(o, output, sent, &at, end, &piece) : PUT_NOTHING;
        if (put == PUT_NO_ROOM)
            break;
        if (put == PUT_NOTHING)
            scheduler_remove_head(&o->scheduler);
        else
            scheduler_sent(&o->scheduler, piece);
    }
    return (size_t)(at - start);
}

/* --- what comes back --- */

static struct link_output *of_number(const struct outputs *o, uint32_t number)
{
    if (o->places == 0 || number % o->places >= o->count)
        return NULL;
    struct link_output *output = o->list[number % o->places];
    return output->state != OUTPUT_IDLE && output->stream.number == number ? output : NULL;
}

void outputs_acked(struct outputs *o, const struct sent_item *item)
{
    struct link_output *output = of_number(o, item->stream);
    if (!output)
        return;
    if (item->kind == SENT_OPEN && output->state == OUTPUT_OPENING)
        output->state = OUTPUT_OPEN;
    else if (item->kind == SENT_END && output->state == OUTPUT_ENDING)
        ended(o, output);
}

void outputs_lost(struct outputs *o, const struct sent_item *item)
{
    struct link_output *output = of_number(o, item->stream);
    if (!output)
        return;
    if (item->kind == SENT_OPEN && output->state == OUTPUT_OPENING && output->asking) {
        output->ask_due = true;
        line_up(o, output);
    } else if (item->kind == SENT_RECORDS && streaming(output)) {
        send_stream_lost(&output->stream, item->offset, item->size);
        line_up(o, output);
    } else if (item->kind == SENT_END && output->state == OUTPUT_ENDING && !output->end_due) {
        output->end_due = true;
        o->ends_due++;
    }
}

/* Frees what is stored. */
static int store(struct outputs *o, struct link_output *output, uint64_t number)
{
    uint64_t before = output->stream.outlet->queue.freed.records;
    int error = send_stream_stored(&output->stream, number);
    if (error < 0 || output->stream.outlet->queue.freed.records == before)
        return error;
    mend(o, output);
    see_holding(o, output);
    output->refusals = 0;
    o->hooks.stored(o->hooks.context, output);
    return 0;
}

/* The first STORED of a stream that asks. No record has come on it yet that it could be about. */
static int agree(struct link_output *output, uint64_t stored)
{
    struct outlet *outlet = output->stream.outlet;
    if (stored > outlet->queue.freed.records)
        return PE_STORED_NUMBER;
    output->asking = output->ask_due = false;
    outlet_contact_answered(outlet, true);
    return 0;
}

void outputs_stored(struct outputs *o, const struct frame_stored *frame, uint64_t now_ns)
{
    struct link_output *output = of_number(o, frame->stream);
    if (!output || !streaming(output))
        return;
    bool asked = output->asking;
    int error = asked ? agree(output, frame->stored) : store(o, output, frame->stored);
    if (error < 0)
        stop(o, output, error, false, now_ns);
    else if (streaming(output) && (send_stream_credit(&output->stream, frame->credit) || asked))
        line_up(o, output);
}

/* What a reason means, and whether there is hope. */
static int refusal(uint64_t reason, bool *for_ever)
{
    *for_ever = reason == REFUSED_RETIRED; /* the others may be mended at the receiver */
    switch (reason) {
    case REFUSED_NO_APP:
        return PE_NO_APP;
    case REFUSED_NOT_ALLOWED:
        return PE_NOT_ALLOWED;
    case REFUSED_RETIRED:
        return PE_STREAM_RETIRED;
    case REFUSED_GAP:
        return PE_STREAM_GAP;
    case REFUSED_APP_FAILED:
        return PE_APP_FAILED;
    case REFUSED_APP_SUSPENDED:
        return PE_APP_SUSPENDED;
    case REFUSED_RECORD_TOO_LARGE:
        return PE_TOO_LARGE;
    case REFUSED_ROLLED_BACK:
        return PE_STREAM_ROLLED_BACK;
    default:
        return PE_NO_ROOM;
    }
}

void outputs_refused(struct outputs *o, const struct frame_refused *frame, uint64_t now_ns)
{
    struct link_output *output = of_number(o, frame->stream);
    if (!output || !streaming(output))
        return;
    bool for_ever, asked = output->asking;
    int error = refusal(frame->reason, &for_ever);
    stop(o, output, error, for_ever, now_ns);
    if (asked && error == PE_STREAM_ROLLED_BACK)
        outlet_contact_answered(output->stream.outlet, false);
    if (!asked)                          /* else the number may be of records that are not these */
        store(o, output, frame->stored); /* one that cannot be frees nothing; the stream has ended anyhow */
}

void outputs_credit(struct outputs *o, uint64_t session_credit)
{
    if (session_credit <= o->session_credit)
        return;
    o->session_credit = session_credit;
    uint32_t first = o->starved ? o->starved->place : 0;
    o->starved = NULL;
    for (uint32_t i = 0; i < o->count; i++)
        line_up(o, o->list[(first + i) % o->count]);
}

void outputs_hurry(struct outputs *o, uint64_t until_ns)
{
    for (uint32_t i = 0; i < o->count; i++)
        o->list[i]->rest_until_ns = min_u64(o->list[i]->rest_until_ns, until_ns);
    o->rests_ns = min_u64(o->rests_ns, until_ns);
}
