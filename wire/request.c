#include "wire/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER_MAX 20                                       /* digits of a 64-bit number */
#define LINES_MAX  (480 + WIRE_SOURCE_MAX + WIRE_EVENT_MAX) /* bytes of all lines that request_write adds */

static void write_hex(char *to, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

static const char *content_type(const struct wire_options *o)
{
    if (o->mode == WIRE_PURE)
        return "application/vnd.pure.records";
    if (o->mode == WIRE_BATCH)
        return "application/x-ndjson";
    return o->content_type ? o->content_type : "application/json";
}

static void write_fixed(FILE *to, const struct wire_options *o)
{
    fprintf(to, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n", o->url.target, o->url.authority,
            o->agent);
    if (o->token)
        fprintf(to, "Authorization: Bearer %s\r\n", o->token);
    fprintf(to, "Content-Type: %s\r\n", content_type(o));
}

void request_set_epoch(struct request *r, const uint8_t epoch[WIRE_EPOCH_BYTES])
{
    write_hex(r->epoch, epoch, WIRE_EPOCH_BYTES);
    snprintf(r->id, sizeof r->id, "msg_%.16s_", r->epoch);
}

int request_init(struct request *r, const struct wire_options *o)
{
    *r = (struct request){.mode = o->mode};
    FILE *to = open_memstream(&r->fixed, &r->fixed_size);
    if (!to)
        return -ENOMEM;
    write_fixed(to, o);
    bool failed = ferror(to);
    failed |= fclose(to) != 0;
    if (failed) {
        request_dispose(r);
        return -ENOMEM;
    }
    if (o->mode == WIRE_PURE) {
        snprintf(r->stream, sizeof r->stream, "%s", o->source);
        snprintf(r->event, sizeof r->event, "%s", o->event);
    }
    r->room = r->fixed_size + LINES_MAX;
    request_set_epoch(r, o->epoch);
    return 0;
}

void request_dispose(struct request *r)
{
    free(r->fixed);
    *r = (struct request){0};
}

size_t request_room(const struct request *r)
{
    return r->room;
}

static char *put_text(char *to, const char *text)
{
    return stpcpy(to, text);
}

static char *put_number(char *to, uint64_t value)
{
    char digits[NUMBER_MAX];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    memcpy(to, digits + at, sizeof digits - at);
    return to + sizeof digits - at;
}

static char *put_line(char *to, const char *name, uint64_t value)
{
    return put_text(put_number(put_text(to, name), value), "\r\n");
}

/* docs/records-protocol.md */
static char *put_pure(const struct request *r, const struct request_numbers *n, char *to)
{
    to = put_text(put_text(to, "Pure-Stream: "), r->stream);
    to = put_text(put_text(to, "\r\nPure-Epoch: "), r->epoch);
    to = put_text(put_text(to, "\r\nPure-Event: "), r->event);
    to = put_line(to, "\r\nPure-First: ", n->first);
    to = put_line(to, "Pure-Count: ", n->count);
    to = put_line(to, "Pure-Base: ", n->base);
    if (n->count == 0)
        to = put_line(to, "Pure-Sent: ", n->sent);
    return to;
}

static char *put_webhook(const struct request *r, const struct request_numbers *n, char *to)
{
    if (r->mode == WIRE_BATCH) {
        to = put_line(to, "Pure-First: ", n->first);
        to = put_line(to, "Pure-Count: ", n->count);
    }
    to = put_text(put_text(to, "webhook-id: "), r->id);
    to = put_line(to, "", n->first);
    return put_line(to, "webhook-timestamp: ", n->wall_s);
}

size_t request_write(const struct request *r, const struct request_numbers *n,
                     const struct request_body *body, char *const start, size_t room)
{
    assert(room >= r->room);
    char *to = mempcpy(start, r->fixed, r->fixed_size);
    to = put_line(to, "Content-Length: ", body->bytes);
    if (body->gzip)
        to = put_text(to, "Content-Encoding: gzip\r\n");
    to = r->mode == WIRE_PURE ? put_pure(r, n, to) : put_webhook(r, n, to);
    to = put_text(to, "\r\n");
    assert(to <= start + r->room);
    return (size_t)(to - start);
}
