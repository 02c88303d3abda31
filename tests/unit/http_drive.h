/* Drives the HTTP parsers over an input that comes in fragments, each in memory of its own and of exactly its
 * size, so that a sanitizer sees every byte read beyond it. Used by the unit tests and the fuzzers. */
#ifndef PURE_TESTS_HTTP_DRIVE_H
#define PURE_TESTS_HTTP_DRIVE_H

#include "wire/http.h"

#include <stdio.h>
#include <stdlib.h>

/* Where an input is cut: after at[0], after at[1] (ascending), or after every byte. */
struct cuts {
    size_t at[2];
    unsigned count;
    bool every;
};

/* All that an input did; two ways of cutting it must not differ in any of it. */
struct outcome {
    int error;    /* 0: complete. PE_INCOMPLETE: more bytes are wanted. Or what the parser or the end said */
    size_t used;  /* bytes of the input that belong to the message */
    size_t count; /* fields of the head */
    uint16_t status;
    bool reusable;
    size_t content; /* decoded bytes of the body */
    uint64_t hash;  /* of them */
};

static inline bool outcome_equal(const struct outcome *a, const struct outcome *b)
{
    return a->error == b->error && a->used == b->used && a->count == b->count && a->status == b->status &&
           a->reusable == b->reusable && a->content == b->content && a->hash == b->hash;
}

/* FNV-1a, going on from `hash`. */
static inline uint64_t drive_hash(uint64_t hash, struct span bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        hash = (hash ^ bytes.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#define DRIVE_HASH_START UINT64_C(0xcbf29ce484222325)

static inline void drive_content(struct outcome *o, struct span content)
{
    o->content += content.size;
    o->hash = drive_hash(o->hash, content);
}

/* The end of the fragment that begins at `from`. */
static inline size_t drive_cut(const struct cuts *cuts, size_t from, size_t size)
{
    if (cuts->every)
        return from + 1;
    for (unsigned i = 0; i < cuts->count; i++)
        if (cuts->at[i] > from && cuts->at[i] < size)
            return cuts->at[i];
    return size;
}

static inline uint8_t *drive_copy(struct span bytes)
{
    uint8_t *copy = malloc(bytes.size > 0 ? bytes.size : 1);
    assert(copy);
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    return copy;
}

/* The body's bytes of one fragment. */
static inline void drive_request_body(struct http_body *body, struct span bytes, struct outcome *o)
{
    uint8_t *copy = drive_copy(bytes);
    size_t at = 0;
    do {
        size_t used;
        struct span content;
        int done = http_body_take(body, span_of(copy + at, bytes.size - at), &used, &content);
        assert(used <= bytes.size - at && (done != 0 || used > 0 || bytes.size == at));
        at += used;
        drive_content(o, content);
        o->error = done < 0 ? done : done > 0 ? 0 : PE_INCOMPLETE;
    } while (o->error == PE_INCOMPLETE && at < bytes.size);
    o->used += at;
    free(copy);
}

static inline struct outcome drive_request(struct span input, const struct cuts *cuts, struct http_head *head)
{
    struct outcome o = {.error = PE_INCOMPLETE, .hash = DRIVE_HASH_START};
    struct http_body body;
    size_t scanned = 0, at = 0;
    int size = 0;
    while (at < input.size && o.error == PE_INCOMPLETE) {
        size_t end = drive_cut(cuts, at, input.size);
        if (size > 0) {
            drive_request_body(&body, span_of(input.data + at, end - at), &o);
            at = end;
            continue;
        }
        uint8_t *copy = drive_copy(span_of(input.data, end));
        size = http_request_head(span_of(copy, end), &scanned, head);
        assert(scanned <= end);
        at = end;
        if (size <= 0) {
            o.error = size;
        } else {
            o.count = head->count;
            o.error = http_request_body(head, &body);
            o.used = (size_t)size;
            if (o.error == 0)
                drive_request_body(&body, span_of(input.data + size, end - (size_t)size), &o);
        }
        free(copy);
    }
    return o;
}

/* `closes`: the peer ends the stream after the input. `reply` is zeroed, or was driven before. */
static inline struct outcome drive_reply(struct span input, const struct cuts *cuts, bool head_request,
                                         bool closes, struct http_reply *reply)
{
    struct outcome o = {.error = PE_INCOMPLETE, .hash = DRIVE_HASH_START};
    size_t at = 0;
    http_reply_dispose(reply);
    http_reply_init(reply, head_request);
    while (at < input.size && o.error == PE_INCOMPLETE) {
        struct span fragment = span_of(input.data + at, drive_cut(cuts, at, input.size) - at);
        uint8_t *copy = drive_copy(fragment);
        size_t taken = 0;
        while (taken < fragment.size && o.error == PE_INCOMPLETE) {
            size_t used;
            struct span content;
            int error = http_reply_take(reply, span_of(copy + taken, fragment.size - taken), &used, &content);
            assert(used <= fragment.size - taken && (used > 0 || error < 0));
            taken += used;
            drive_content(&o, content);
            o.error = error < 0 ? error : reply->state == HTTP_REPLY_DONE ? 0 : PE_INCOMPLETE;
        }
        free(copy);
        o.used += taken;
        at += fragment.size;
    }
    if (o.error == PE_INCOMPLETE && closes)
        o.error = http_reply_end(reply);
    if (o.error == PE_HTTP_REPLY) /* how much was taken before does not matter then */
        o.used = 0;
    o.status = reply->status;
    o.reusable = reply->reusable;
    o.count = reply->status > 0 ? reply->head.count : 0;
    return o;
}

#endif
