#include "wire/sealing.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

/* --- names --- */

#define APPS    "/apps/"
#define RECORDS "/records"

/* Of a target ".../apps/APP/records": the bytes in front of it, and APP. False: it is no such. */
static bool split_target(const char *target, size_t *before, struct span *app)
{
    size_t size = strlen(target), tail = sizeof RECORDS - 1, head = sizeof APPS - 1;
    if (size < head + tail || memcmp(target + size - tail, RECORDS, tail) != 0)
        return false;
    size_t end = size - tail, begin = end;
    while (begin > 0 && target[begin - 1] != '/')
        begin--;
    if (begin < head || memcmp(target + begin - head, APPS, head) != 0)
        return false;
    *before = begin - head;
    *app = span_of(target + begin, end - begin);
    return app->size > 0 && app->size <= SEALED_NAME_MAX;
}

/* Of a source "HOST/APP/OUTPUT": APP and OUTPUT. HOST is the receiver's to say. */
static bool split_source(const char *source, struct span *from, struct span *output)
{
    const char *first = source ? strchr(source, '/') : NULL, *second = first ? strchr(first + 1, '/') : NULL;
    if (!second)
        return false;
    *from = span_of(first + 1, (size_t)(second - first - 1));
    *output = span_text(second + 1);
    return from->size > 0 && from->size <= SEALED_NAME_MAX && output->size > 0 &&
           output->size <= SEALED_NAME_MAX;
}

/* A point of low order gives zero with every scalar. */
static bool is_weak(const uint8_t public[HOST_KEY_BYTES])
{
    static const uint8_t scalar[HOST_KEY_BYTES] = {1};
    uint8_t product[HOST_KEY_BYTES];
    return crypto_scalarmult_curve25519(product, scalar, public) != 0;
}

const char *sealing_check(const struct wire_options *o)
{
    struct span app, from, output;
    size_t before;
    if (!o->seal_with || !o->seal_random.fill)
        return "a wire is sealed with the host's key, and there is none";
    if (is_weak(o->seal_to))
        return "no secret can be agreed on with the receiver's key";
    if (o->mode != WIRE_PURE)
        return "only mode pure is sealed";
    if (!split_target(o->url.target, &before, &app))
        return "a sealed wire's URL ends with /apps/APP/records";
    if (!split_source(o->source, &from, &output))
        return "the source of a sealed wire is HOST/APP/OUTPUT, with names of at most 63 bytes";
    return NULL;
}

static uint8_t keep(char *to, struct span name)
{
    memcpy(to, name.data, name.size);
    return (uint8_t)name.size;
}

/* --- its life --- */

static int write_fixed(struct sealing *s, const struct wire_options *o, size_t before)
{
    int size = asprintf(&s->fixed,
                        "POST %.*s/sealed HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n"
                        "Content-Type: " SEALED_TYPE "\r\nPure-Sealed: ",
                        (int)before, o->url.target, o->url.authority, o->agent);
    if (size < 0) {
        s->fixed = NULL;
        return -ENOMEM;
    }
    s->fixed_size = (size_t)size;
    return 0;
}

int sealing_init(struct sealing *s, const struct wire_options *o)
{
    struct span app = {0}, from = {0}, output = {0};
    size_t before = 0;
    bool named =
        split_target(o->url.target, &before, &app) && split_source(o->source, &from, &output) && o->seal_to;
    assert(named);
    (void)named;
    *s = (struct sealing){.with = o->seal_with, .random = o->seal_random};
    memcpy(s->to, o->seal_to, HOST_KEY_BYTES);
    s->app_size = keep(s->app, app);
    s->from_size = keep(s->from, from);
    s->output_size = keep(s->output, output);
    s->event_size = keep(s->event, span_text(o->event));
    sealing_set_epoch(s, o->epoch);
    return write_fixed(s, o, before);
}

void sealing_dispose(struct sealing *s)
{
    free(s->fixed);
    *s = (struct sealing){0};
}

void sealing_set_epoch(struct sealing *s, const uint8_t epoch[SEALED_EPOCH_BYTES])
{
    memcpy(s->epoch, epoch, SEALED_EPOCH_BYTES);
}

/* --- requests --- */

#define TAIL     "\r\nContent-Length: "
#define TAIL_MAX (sizeof TAIL + 20 + 4) /* the digits of 64 bits, the end, a NUL */

size_t sealing_head_room(const struct sealing *s)
{
    return s->fixed_size + SEALED_TEXT_BYTES + TAIL_MAX;
}

static struct sealed_request request_of(const struct sealing *s, const struct request_numbers *n,
                                        uint64_t body_bytes)
{
    struct sealed_request request = {.first = n->first,
                                     .count = n->count,
                                     .base = n->base,
                                     .sent = n->sent,
                                     .body_bytes = body_bytes,
                                     .app = span_of(s->app, s->app_size),
                                     .from = span_of(s->from, s->from_size),
                                     .output = span_of(s->output, s->output_size),
                                     .event = span_of(s->event, s->event_size)};
    memcpy(request.ticket, s->ticket, SEALED_TICKET_BYTES);
    memcpy(request.epoch, s->epoch, SEALED_EPOCH_BYTES);
    return request;
}

size_t sealing_write(struct sealing *s, const struct request_numbers *numbers, uint64_t body_bytes, char *to,
                     struct sealed_keys *keys)
{
    struct sealed_request request = request_of(s, numbers, body_bytes);
    uint8_t e[NOISE_KEY_BYTES];
    noise_random_fill(&s->random, e, sizeof e);
    memcpy(to, s->fixed, s->fixed_size);
    int error = sealed_request_write(&request, s->with, s->to, e, to + s->fixed_size, keys);
    assert(error == 0); /* the receiver's key was checked */
    (void)error;
    sodium_memzero(e, sizeof e);
    size_t size = s->fixed_size + SEALED_TEXT_BYTES;
    return size + (size_t)snprintf(to + size, TAIL_MAX, TAIL "%llu\r\n\r\n",
                                   (unsigned long long)sealed_size(body_bytes));
}

size_t sealing_body_room(uint64_t batch_bytes, uint64_t max_record)
{
    return (size_t)sealed_size(max_u64(batch_bytes, max_record + VARINT_MAX_BYTES));
}

/* --- replies --- */

static const char *const error_names[] = {[SEALED_OK] = "",
                                          [SEALED_GAP] = "gap",
                                          [SEALED_ROLLED_BACK] = "rolled-back",
                                          [SEALED_RETIRED] = "epoch-retired",
                                          [SEALED_STALE] = "stale"};

static void tell(const struct sealed_reply *r, struct answer *a)
{
    *a = (struct answer){.status = r->status, .has_stored = r->has_stored, .stored = r->stored};
    if (answer_success(a))
        return;
    snprintf(a->reason, sizeof a->reason, "%.*s", (int)sizeof a->reason - 1, r->why);
    if (r->retry_after_s > 0)
        snprintf(a->retry_after, sizeof a->retry_after, "%u", r->retry_after_s);
    if (r->error < ARRAY_SIZE(error_names))
        snprintf(a->pure_error, sizeof a->pure_error, "%s", error_names[r->error]);
}

static void distrust(struct answer *a)
{
    *a = (struct answer){.status = a->status, .unproven = true};
}

enum sealing_verdict sealing_prove(struct sealing *s, const uint8_t reply_key[NOISE_KEY_BYTES],
                                   struct answer *answer)
{
    struct sealed_reply reply;
    if (sealed_reply_read(span_text(answer->proof), reply_key, &reply) < 0) {
        distrust(answer);
        return SEALING_UNPROVEN;
    }
    bool again = reply.status == 409 && reply.error == SEALED_STALE && !s->stale;
    memcpy(s->ticket, reply.ticket, SEALED_TICKET_BYTES);
    s->stale = reply.status == 409 && reply.error == SEALED_STALE;
    tell(&reply, answer);
    return again ? SEALING_STALE : SEALING_PROVEN;
}
