#include "host/front_body.h"

#include <errno.h>
#include <stdlib.h>

#include "host/front_dead.h"
#include "host/front_reply.h"
#include "host/front_request.h"
#include "host/front_sealed.h"

/* --- kept bytes --- */

#define KEEP_LEAST 4096

int front_keep(struct front *front, uint8_t **bytes, uint32_t *room, uint64_t need)
{
    if (need <= *room)
        return 0;
    uint64_t larger = max_u64(*room, KEEP_LEAST / 2) * 2;
    while (larger < need)
        larger *= 2;
    if (larger > UINT32_MAX || front->kept_bytes + larger - *room > front->config->body_memory)
        return PE_FULL;
    uint8_t *grown = realloc(*bytes, larger);
    if (!grown)
        return -ENOMEM;
    front->kept_bytes += larger - *room;
    *bytes = grown;
    *room = (uint32_t)larger;
    return 0;
}

void front_forget(struct front *front, uint8_t **bytes, uint32_t *room)
{
    front->kept_bytes -= *room;
    free(*bytes);
    *bytes = NULL;
    *room = 0;
}

static int keep(struct client *c, struct span content)
{
    struct front_body *b = &c->body;
    if (content.size == 0)
        return 0;
    int error = front_keep(c->front, &b->bytes, &b->room, (uint64_t)b->size + content.size);
    if (error < 0)
        return error;
    memcpy(b->bytes + b->size, content.data, content.size);
    b->size += (uint32_t)content.size;
    return 0;
}

/* --- runs --- */

static struct run run_of(struct client *c, uint32_t records)
{
    struct front_body *b = &c->body;
    struct run run = {
        .kind = b->sink == SINK_RECORDS ? RUN_STREAM : RUN_EVENTS,
        .records = records,
        .first = b->next,
        .base = b->base,
        .asks = b->asks,
        .fresh_ns = b->fresh_ns,
        .time_ms = front_wall_ms(c->front),
        .event = span_of(b->event, b->event_size),
        .source = span_of(b->source, b->source_size),
        .identity = span_of(b->identity, b->identity_size),
        .key = span_of(b->key, b->key_size),
    };
    memcpy(run.epoch, b->epoch, EPOCH_BYTES);
    return run;
}

/* Where `size` bytes of the run's records go, or NULL: the inbox has no room for results, or there is no
 * memory. */
static uint8_t *begin(struct client *c, const struct run *run, size_t size)
{
    struct front_app *app = c->body.app;
    return waiters_prepare(&app->waiters) < 0 ? NULL : inbox_begin(&app->app->inbox, run, size);
}

static void commit(struct client *c, const struct run *run, size_t size)
{
    inbox_commit(&c->body.app->app->inbox, run, size);
    client_awaits(c, c->body.app);
}

static void refuse_full(struct client *c)
{
    client_refuse(c, 503, "the inbox is full");
}

/* --- one event, or lines of events, once they are whole --- */

static void put_event(struct client *c, struct span data)
{
    struct run run = run_of(c, 1);
    size_t size = record_framed_size(data.size);
    uint8_t *at = begin(c, &run, size);
    if (!at) {
        refuse_full(c);
        return;
    }
    at += varint_put(at, data.size);
    if (data.size > 0)
        memcpy(at, data.data, data.size);
    commit(c, &run, size);
}

/* Takes the next line that is not empty. A line ends with LF, or CR LF, or the text. */
static bool next_line(struct span *rest, struct span *line)
{
    while (rest->size > 0) {
        const uint8_t *lf = memchr(rest->data, '\n', rest->size);
        size_t size = lf ? (size_t)(lf - rest->data) : rest->size;
        size_t taken = size + (lf != NULL);
        *line = span_of(rest->data, size > 0 && rest->data[size - 1] == '\r' ? size - 1 : size);
        *rest = span_of(rest->data + taken, rest->size - taken);
        if (line->size > 0)
            return true;
    }
    return false;
}

static void put_lines(struct client *c, struct span lines)
{
    struct span rest = lines, line;
    size_t size = 0;
    uint32_t count = 0;
    for (; next_line(&rest, &line); count++)
        size += record_framed_size(line.size);
    if (count == 0) {
        client_decline(c, 400, "there is no line, so no event");
        return;
    }
    struct run run = run_of(c, count);
    uint8_t *at = begin(c, &run, size);
    if (!at) {
        refuse_full(c);
        return;
    }
    for (rest = lines; next_line(&rest, &line);) {
        at += varint_put(at, line.size);
        memcpy(at, line.data, line.size);
        at += line.size;
    }
    commit(c, &run, size);
}

/* What was asked at the head of the request, unless that is left out. */
static bool admit_late(struct client *c)
{
    const char *why = c->front->without.early ? front_request_refusal(c->front, c->body.app) : NULL;
    if (why)
        client_decline_full(c, c->body.app, 0, why);
    return !why;
}

/* A chunked body states no length, and one that was announced may have found no room to be set aside: it is
 * asked for once the body is there. */
static bool reserve_late(struct client *c, struct span data)
{
    struct front_body *b = &c->body;
    uint64_t cost = front_body_cost(b->sink, data.size);
    if (cost <= b->reserved)
        return true;
    struct inbox *inbox = &b->app->app->inbox;
    inbox_release(inbox, b->reserved);
    b->reserved = 0;
    int error = inbox_reserve(inbox, cost, c->front->loop->now_ns);
    if (error == 0)
        b->reserved = cost;
    else if (error == PE_TOO_LARGE)
        client_decline(c, 413, "the body is larger than the app's inbox takes");
    else
        client_decline_full(c, b->app, cost, "the inbox is full");
    return error == 0;
}

static void put_whole(struct client *c, struct span data)
{
    if (!admit_late(c) || !reserve_late(c, data))
        return;
    if (c->body.sink == SINK_EVENT)
        put_event(c, data);
    else
        put_lines(c, data);
}

static void take_event(struct client *c, struct span content, bool complete)
{
    struct front_body *b = &c->body;
    if (b->received > c->front->config->max_body) {
        client_refuse(c, 413, "the body is larger than max_body");
        return;
    }
    if (complete && b->size == 0) {
        put_whole(c, content);
        return;
    }
    if (keep(c, content) < 0) {
        client_refuse(c, 503, "too many bodies are coming in");
        return;
    }
    if (complete)
        put_whole(c, span_of(b->bytes, b->size));
}

/* --- records of a stream, while they come --- */

/* The kept bytes from `whole` on begin a record. How many more bytes complete it, as far as its prefix
 * shows. */
static size_t missing(const struct front_body *b)
{
    const uint8_t *at = b->bytes + b->whole, *end = b->bytes + b->size;
    size_t have = b->size - b->whole, prefix = (size_t)1 << (*at >> 6);
    uint64_t size;
    if (varint_get(at, end, &size) == 0)
        return prefix - have;
    return size > RECORD_MAX_BYTES ? 0 : prefix + (size_t)size - have;
}

/* Room for a piece of a body that has none set aside. */
static bool reserve_piece(struct client *c, uint64_t cost)
{
    struct front_body *b = &c->body;
    if (cost <= b->reserved)
        return true;
    int error = inbox_reserve(&b->app->app->inbox, cost - b->reserved, c->front->loop->now_ns);
    if (error == 0)
        b->reserved = cost;
    else if (error == PE_TOO_LARGE)
        client_decline(c, 413, "the records are larger than the app's inbox takes");
    else
        client_decline_full(c, b->app, cost, "the inbox is full");
    return error == 0;
}

/* Puts the kept whole records and those of `direct`, `records` in all, as one run. */
static bool put_piece(struct client *c, struct span direct, uint64_t records)
{
    struct front_body *b = &c->body;
    struct run run = run_of(c, (uint32_t)records);
    size_t size = b->whole + direct.size;
    uint64_t cost = inbox_cost(size);
    if (!admit_late(c) || !reserve_piece(c, cost))
        return false;
    uint8_t *at = begin(c, &run, size);
    if (!at) {
        refuse_full(c);
        return false;
    }
    if (b->whole > 0)
        memcpy(at, b->bytes, b->whole);
    if (direct.size > 0)
        memcpy(at + b->whole, direct.data, direct.size);
    commit(c, &run, size);
    inbox_release(&b->app->app->inbox, cost);
    b->reserved -= cost;
    b->next += records;
    b->left -= records;
    b->size -= b->whole;
    if (b->size > 0)
        memmove(b->bytes, b->bytes + b->whole, b->size);
    b->whole = 0;
    b->whole_records = 0;
    return true;
}

/* The next record is too large. The whole ones before it are put: what is stored must not depend on how the
 * bytes came. */
static void refuse_record(struct client *c, struct span direct, uint64_t records)
{
    if (records == 0 || put_piece(c, direct, records))
        client_decline(c, 413, "a record is larger than 1 MiB");
}

/* Completes the kept record from `content`, of which it takes no more than that record's bytes. False: the
 * request is refused. */
static bool complete_kept(struct client *c, struct span *content)
{
    struct front_body *b = &c->body;
    while (b->whole < b->size && content->size > 0) {
        size_t need = missing(b);
        struct span part = span_of(content->data, min_size(need, content->size));
        if (need > 0 && keep(c, part) < 0) {
            client_refuse(c, 503, "too many bodies are coming in");
            return false;
        }
        *content = span_of(content->data + part.size, content->size - part.size);
        struct record_scan scan = record_scan(span_of(b->bytes + b->whole, b->size - b->whole),
                                              RECORD_MAX_BYTES, b->left - b->whole_records);
        b->whole += (uint32_t)scan.bytes;
        b->whole_records += scan.records;
        if (scan.error < 0) {
            refuse_record(c, span_of(NULL, 0), b->whole_records);
            return false;
        }
        assert(need > 0 || scan.records > 0);
    }
    return true;
}

/* Whole records that are too few for a run stay, with the beginning of the next. */
static bool keep_rest(struct client *c, struct span rest, struct record_scan scan)
{
    struct front_body *b = &c->body;
    if (keep(c, rest) < 0) {
        client_refuse(c, 503, "too many bodies are coming in");
        return false;
    }
    b->whole += (uint32_t)scan.bytes;
    b->whole_records += scan.records;
    return true;
}

static void end_records(struct client *c)
{
    struct front_body *b = &c->body;
    if (b->left > 0 || b->size > 0)
        client_decline(c, 400, "the body is not exactly Pure-Count whole records");
}

static void take_records(struct client *c, struct span content, bool complete)
{
    struct front_body *b = &c->body;
    if (client_last(c)->error < 0) {
        b->sink = SINK_DISCARD; /* an earlier run of this body was not stored: nor can the rest be */
        b->received = 0;
        front_body_release(c);
        return;
    }
    if (b->asks > 0) {
        put_piece(c, content, 0); /* a question: the body is empty */
        return;
    }
    if (!complete_kept(c, &content))
        return;
    struct record_scan scan = {0, 0, 0};
    if (b->whole == b->size)
        scan = record_scan(content, RECORD_MAX_BYTES, b->left - b->whole_records);
    uint64_t records = b->whole_records + scan.records;
    if (scan.error < 0) {
        refuse_record(c, span_of(content.data, scan.bytes), records);
        return;
    }
    size_t size = b->whole + scan.bytes;
    struct span rest = content;
    if (records > 0 && (complete || size >= FRONT_PIECE_BYTES || records == b->left)) {
        if (!put_piece(c, span_of(content.data, scan.bytes), records))
            return;
        rest = span_of(content.data + scan.bytes, content.size - scan.bytes);
        scan.bytes = 0;
        scan.records = 0;
    }
    if (b->left == 0 && rest.size > 0) {
        client_decline(c, 400, "the body is not exactly Pure-Count whole records");
        return;
    }
    if (keep_rest(c, rest, scan) && complete)
        end_records(c);
}

/* --- all sinks --- */

/* Framing of lines: the prefix takes the place of the line's end, and is one byte more from 64 bytes on,
 * three more from 16384 on. A records body is put in pieces, each with its head. */
uint64_t front_body_cost(enum body_sink sink, uint64_t size)
{
    switch (sink) {
    case SINK_EVENT:
        return inbox_cost(size + VARINT_MAX_BYTES);
    case SINK_LINES:
        return inbox_cost(size + size / 64 + VARINT_MAX_BYTES);
    case SINK_RECORDS:
        return size + (size / FRONT_PIECE_BYTES + 1) * inbox_cost(0) + VARINT_MAX_BYTES;
    case SINK_RANGE:
    case SINK_DISCARD:
        break;
    }
    return 0;
}

static void give(struct client *c, struct span content, bool complete)
{
    c->body.received += content.size;
    c->front->counters.body_bytes += content.size;
    switch (c->body.sink) {
    case SINK_EVENT:
    case SINK_LINES:
        take_event(c, content, complete);
        return;
    case SINK_RECORDS:
        take_records(c, content, complete);
        return;
    case SINK_RANGE:
        front_dead_take(c, content, complete);
        return;
    case SINK_DISCARD:
        if (c->body.received > FRONT_DISCARD_BYTES)
            client_finish(c);
        return;
    }
}

/* Chunk by chunk. What is refused on the way is discarded as it comes. */
static void give_sealed(struct client *c, struct span content)
{
    struct span plain;
    bool last = false;
    while (!last && c->body.sealed && front_sealed_take(c, &content, &plain, &last) > 0)
        give(c, plain, last);
}

int front_body_take(struct client *c, struct span bytes, size_t *used)
{
    struct span content;
    int complete = http_body_take(&c->body.framing, bytes, used, &content);
    if (complete < 0) {
        client_refuse(c, 400, "the chunked coding is malformed");
        return 1;
    }
    if (content.size > 0 || complete)
        c->body.sealed ? give_sealed(c, content) : give(c, content, complete);
    return complete || c->reading == READING_NOTHING;
}

void front_body_release(struct client *c)
{
    struct front_body *b = &c->body;
    if (b->reserved > 0)
        inbox_release(&b->app->app->inbox, b->reserved);
    b->reserved = 0;
    b->size = b->whole = 0;
    b->whole_records = 0;
    front_sealed_release(c);
    front_forget(c->front, &b->bytes, &b->room);
}
