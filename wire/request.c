#include "wire/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER_MAX 20  /* digits of a 64-bit number */
#define LINES_MAX  320 /* bytes of the lines that change, with four numbers and an id */

static void write_hex(char *to, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

/* Returns where the epoch's digits begin, of mode pure. */
static size_t write_fixed(FILE *to, const struct wire_options *o)
{
    size_t digits = 0;
    fprintf(to, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n", o->url.target, o->url.authority,
            o->agent);
    if (o->token)
        fprintf(to, "Authorization: Bearer %s\r\n", o->token);
    if (o->mode == WIRE_PURE) {
        fprintf(to,
                "Content-Type: application/vnd.pure.records\r\nPure-Stream: %s\r\nPure-Epoch: ", o->source);
        digits = (size_t)ftello(to);
        fprintf(to, "%*s\r\nPure-Event: %s\r\n", 2 * WIRE_EPOCH_BYTES, "", o->event);
    } else if (o->mode == WIRE_BATCH) {
        fprintf(to, "Content-Type: application/x-ndjson\r\n");
    } else {
        fprintf(to, "Content-Type: %s\r\n", o->content_type ? o->content_type : "application/json");
    }
    fprintf(to, "Content-Length: ");
    return digits;
}

void request_set_epoch(struct request *r, const uint8_t epoch[WIRE_EPOCH_BYTES])
{
    char digits[2 * WIRE_EPOCH_BYTES + 1];
    write_hex(digits, epoch, WIRE_EPOCH_BYTES);
    snprintf(r->id, sizeof r->id, "msg_%.16s_", digits);
    if (r->mode == WIRE_PURE)
        memcpy(r->text + r->epoch, digits, 2 * WIRE_EPOCH_BYTES);
}

int request_init(struct request *r, const struct wire_options *o)
{
    *r = (struct request){.mode = o->mode};
    FILE *to = open_memstream(&r->text, &r->fixed);
    if (!to)
        return -ENOMEM;
    r->epoch = write_fixed(to, o);
    bool failed = ferror(to);
    failed |= fclose(to) != 0;
    r->largest = r->fixed + LINES_MAX;
    char *larger = failed ? NULL : realloc(r->text, r->largest);
    if (!larger) {
        request_dispose(r);
        return -ENOMEM;
    }
    r->text = larger;
    request_set_epoch(r, o->epoch);
    return 0;
}

void request_dispose(struct request *r)
{
    free(r->text);
    *r = (struct request){0};
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
    return put_number(put_text(to, name), value);
}

struct span request_head(struct request *r, const struct request_numbers *n)
{
    char *to = put_number(r->text + r->fixed, n->body_bytes);
    if (r->mode != WIRE_WEBHOOK) {
        to = put_line(to, "\r\nPure-First: ", n->first);
        to = put_line(to, "\r\nPure-Count: ", n->count);
    }
    if (r->mode == WIRE_PURE)
        to = put_line(to, "\r\nPure-Base: ", n->base);
    if (r->mode == WIRE_PURE && n->count == 0)
        to = put_line(to, "\r\nPure-Sent: ", n->sent);
    if (r->mode != WIRE_PURE) {
        to = put_text(put_text(to, "\r\nwebhook-id: "), r->id);
        to = put_number(to, n->first);
        to = put_line(to, "\r\nwebhook-timestamp: ", n->wall_s);
    }
    to = put_text(to, "\r\n\r\n");
    assert(to <= r->text + r->largest);
    return span_of(r->text, (size_t)(to - r->text));
}
