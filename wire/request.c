#include "wire/request.h"

#include "wire/put.h"
#include "wire/sealing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* --- what never changes --- */

static const char *content_type(const struct wire_options *o)
{
    if (o->mode == WIRE_PURE)
        return "application/vnd.pure.records";
    if (o->mode == WIRE_BATCH)
        return "application/x-ndjson";
    return o->content_type ? o->content_type : "application/json";
}

/* Whether a header of the configuration stands in for the wire's own. */
static bool replaced(const struct wire_options *o, const char *name)
{
    for (unsigned i = 0; i < o->header_count; i++) {
        if (strcasecmp(o->headers[i].name, name) == 0)
            return true;
    }
    return false;
}

/* A proxy is asked for the whole URL, but when it was asked by CONNECT for a tunnel to the host (RFC 9112
 * section 3.2.2). */
static void write_fixed(FILE *to, const struct wire_options *o)
{
    bool forwarded = o->proxied && !o->url.tls;
    fprintf(to, "POST %s%s%s HTTP/1.1\r\n", forwarded ? "http://" : "", forwarded ? o->url.authority : "",
            o->url.target);
    fprintf(to, "Host: %s\r\n", o->url.authority);
    if (forwarded && o->proxy.authorization)
        fprintf(to, "Proxy-Authorization: %s\r\n", o->proxy.authorization);
    if (!replaced(o, "User-Agent"))
        fprintf(to, "User-Agent: %s\r\n", o->agent);
    if (o->token)
        fprintf(to, "Authorization: Bearer %s\r\n", o->token);
    if (!replaced(o, "Content-Type"))
        fprintf(to, "Content-Type: %s\r\n", content_type(o));
}

static int init_fixed(struct request *r, const struct wire_options *o)
{
    FILE *to = open_memstream(&r->fixed, &r->fixed_size);
    if (!to)
        return -ENOMEM;
    write_fixed(to, o);
    bool failed = ferror(to);
    failed |= fclose(to) != 0;
    return failed ? -ENOMEM : 0;
}

static int init_headers(struct request *r, const struct wire_options *o)
{
    struct template_names names = {o->source, o->event, o->mode == WIRE_WEBHOOK};
    r->headers = calloc(o->header_count + 1, sizeof *r->headers);
    if (!r->headers)
        return -ENOMEM;
    for (unsigned i = 0; i < o->header_count; i++) {
        struct request_header *header = &r->headers[r->header_count++];
        header->name = strdup(o->headers[i].name);
        int error = template_init(&header->value, o->headers[i].value, &names);
        if (error < 0 || !header->name)
            return -ENOMEM;
    }
    return 0;
}

/* Bytes of all lines of one mode that request_write adds, but for the texts of the options in them. */
#define LINES_MAX 288

static size_t most(const struct request *r)
{
    size_t room = r->fixed_size + LINES_MAX + strlen(r->stream) + strlen(r->event) + signer_room(&r->signer);
    for (unsigned i = 0; i < r->header_count; i++)
        room += strlen(r->headers[i].name) + strlen(": \r\n") + r->headers[i].value.room;
    return room;
}

static int init_sealing(struct request *r, const struct wire_options *o)
{
    struct sealing *sealing = malloc(sizeof *sealing);
    int error = sealing ? sealing_init(sealing, o) : -ENOMEM;
    if (error == 0)
        r->sealing = sealing;
    else
        free(sealing);
    return error;
}

int request_init(struct request *r, const struct wire_options *o)
{
    *r = (struct request){.mode = o->mode};
    if (init_fixed(r, o) < 0 || init_headers(r, o) < 0) {
        request_dispose(r);
        return -ENOMEM;
    }
    signer_init(&r->signer, o->secrets, o->secret_count);
    if (o->mode == WIRE_PURE) {
        snprintf(r->stream, sizeof r->stream, "%s", o->source);
        snprintf(r->event, sizeof r->event, "%s", o->event);
    }
    if (o->seal_to && init_sealing(r, o) < 0) {
        request_dispose(r);
        return -ENOMEM;
    }
    r->room = r->sealing ? sealing_head_room(r->sealing) : most(r);
    request_set_epoch(r, o->epoch);
    return 0;
}

void request_dispose(struct request *r)
{
    for (unsigned i = 0; i < r->header_count; i++) {
        free(r->headers[i].name);
        template_dispose(&r->headers[i].value);
    }
    free(r->headers);
    free(r->fixed);
    signer_dispose(&r->signer);
    if (r->sealing)
        sealing_dispose(r->sealing);
    free(r->sealing);
    *r = (struct request){0};
}

void request_set_epoch(struct request *r, const uint8_t epoch[WIRE_EPOCH_BYTES])
{
    for (size_t i = 0; i < WIRE_EPOCH_BYTES; i++)
        snprintf(r->epoch + 2 * i, 3, "%02x", epoch[i]);
    snprintf(r->id, sizeof r->id, "msg_%.16s_", r->epoch);
    if (r->sealing)
        sealing_set_epoch(r->sealing, epoch);
}

size_t request_room(const struct request *r)
{
    return r->room;
}

/* --- what does --- */

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

static char *put_headers(const struct request *r, const struct template_values *values, char *to)
{
    for (unsigned i = 0; i < r->header_count; i++) {
        const struct request_header *header = &r->headers[i];
        char *value = put_text(put_text(to, header->name), ": ");
        size_t size = template_write(&header->value, values, value);
        if (size > 0)
            to = put_text(value + size, "\r\n");
    }
    return to;
}

/* docs/wires.md: who it is, the signatures, the headers of the configuration. */
static char *put_webhook(const struct request *r, const struct request_numbers *n, struct span content,
                         char *to)
{
    if (r->mode == WIRE_BATCH) {
        to = put_line(to, "Pure-First: ", n->first);
        to = put_line(to, "Pure-Count: ", n->count);
    }
    char *start = put_text(to, "webhook-id: ");
    to = put_number(put_text(start, r->id), n->first);
    if (r->mode == WIRE_BATCH)
        to = put_number(put_text(to, "-"), n->first + n->count - 1);
    struct span id = span_of(start, (size_t)(to - start));
    to = put_line(to, "\r\nwebhook-timestamp: ", n->wall_s);
    if (r->signer.count > 0) {
        to = put_text(to, "webhook-signature: ");
        to += signer_write(&r->signer, id, n->wall_s, content, to);
        to = put_text(to, "\r\n");
    }
    struct template_values values = {
        .id = id, .number = n->first, .timestamp_s = n->wall_s, .attempt = n->attempt, .record = content};
    return put_headers(r, &values, to);
}

size_t request_write(const struct request *r, const struct request_numbers *n,
                     const struct request_body *body, char *const start, size_t room)
{
    assert(room >= r->room);
    char *to = put_span(start, span_of(r->fixed, r->fixed_size));
    to = put_line(to, "Content-Length: ", body->bytes);
    if (body->gzip)
        to = put_text(to, "Content-Encoding: gzip\r\n");
    to = r->mode == WIRE_PURE ? put_pure(r, n, to) : put_webhook(r, n, body->content, to);
    to = put_text(to, "\r\n");
    assert(to <= start + r->room);
    return (size_t)(to - start);
}
