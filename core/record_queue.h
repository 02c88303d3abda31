/* The record queue of an outlet: single producer (the app's owner), single consumer (whoever delivers).
 *
 * It is a stream of framed records (record.h) in a ring. Positions are counted from the stream's start and
 * never decrease; a position has a byte part and a record part, which always belong together:
 *
 *     freed <= published <= tail        tail.bytes - freed.bytes <= capacity
 *
 * The producer appends at `tail`, unseen until it publishes; the consumer reads [freed, published) as often
 * as it likes and frees from the front. Each side publishes its position as one 64-bit word (32 bits of bytes
 * and 32 of records, both modulo 2^32) so that the other never sees halves of two; each extends what it reads
 * to 64 bits from what it knew before, which is right as long as less than 2^32 lies between: capacity is at
 * most 2^30.
 *
 * Numbers that were lost are jumped over (record_queue_jump): a jump has a record part only. Its target is
 * shared in full, beside the published word. It is made when the queue is empty, so both sides know where it
 * is: at the last position that they know. There is at most one that the consumer has not seen.
 *
 * No call blocks or allocates. */
#ifndef PURE_CORE_RECORD_QUEUE_H
#define PURE_CORE_RECORD_QUEUE_H

#include "core/record.h"
#include "core/ring_memory.h"

#include <stdatomic.h>

#define CACHE_LINE 64

struct stream_position {
    uint64_t bytes;
    uint64_t records;
};

struct record_queue {
    struct ring_memory memory;
    uint64_t capacity; /* bytes of framed records, at most memory.size */
    /* the producer's */
    _Alignas(CACHE_LINE) struct stream_position tail; /* where the next record goes */
    struct stream_position published;                 /* what the consumer may see */
    struct stream_position freed_seen;                /* what the consumer was last seen to have freed */
    /* the consumer's */
    _Alignas(CACHE_LINE) struct stream_position
        published_seen; /* what the producer was last seen to publish */
    struct stream_position freed;
    /* shared: each written by one side only */
    _Alignas(CACHE_LINE) _Atomic uint64_t published_word;
    _Atomic uint64_t jump; /* records before the place where the last jump ended; 0: there was none */
    _Alignas(CACHE_LINE) _Atomic uint64_t freed_word;
};

/* `capacity`: the most bytes held (framed), 1 to 2^30. Returns 0 or a negative errno. */
int record_queue_init(struct record_queue *q, uint64_t capacity);
void record_queue_dispose(struct record_queue *q);

/* Before use: the stream's numbers begin behind `records`; that many count as freed. */
void record_queue_start(struct record_queue *q, uint64_t records);

/* --- the producer --- */

/* Appends `records` records that are framed already. They fit: the caller has seen to it. */
void record_queue_append_framed(struct record_queue *q, struct span framed, uint64_t records);

/* Takes back everything after `to`, a position at or after `published` that the tail once had. */
void record_queue_rollback(struct record_queue *q, struct stream_position to);

/* Lets the consumer see all before `to`, a position at or after `published` that the tail once had. */
void record_queue_publish_to(struct record_queue *q, struct stream_position to);

/* Lets the consumer see all that was appended. */
static inline void record_queue_publish(struct record_queue *q)
{
    record_queue_publish_to(q, q->tail);
}

/* Looks whether the consumer has freed all that was appended, and passed over the last jump. */
bool record_queue_empty(struct record_queue *q);

/* The records up to number `records` (above the tail's) are lost: the next one appended is the one behind
 * them. Published at once. Only when record_queue_empty was true, and nothing was appended since. */
void record_queue_jump(struct record_queue *q, uint64_t records);

/* Looks at what the consumer has freed. Bytes held: tail.bytes - freed_seen.bytes. */
void record_queue_see_freed(struct record_queue *q);

static inline uint64_t record_queue_held(const struct record_queue *q)
{
    return q->tail.bytes - q->freed_seen.bytes;
}

/* Whether `framed` bytes more fit, after a look at what the consumer has freed. */
bool record_queue_finds_room(struct record_queue *q, size_t framed);

/* Room for a record of `size` bytes at the tail: returns where its bytes go (the prefix is written already),
 * or NULL if it does not fit now. The bytes become part of the stream with record_queue_commit. The
 * consumer's cache line is looked at only if there seems to be no room: this is what every record pays. */
static inline uint8_t *record_queue_reserve(struct record_queue *q, size_t size)
{
    if (size > q->capacity)
        return NULL;
    size_t framed = record_framed_size(size);
    if (record_queue_held(q) + framed > q->capacity && !record_queue_finds_room(q, framed))
        return NULL;
    uint8_t *at = ring_memory_at(&q->memory, q->tail.bytes);
    return at + varint_put(at, size);
}

static inline void record_queue_commit(struct record_queue *q, size_t size)
{
    q->tail.bytes += record_framed_size(size);
    q->tail.records++;
}

/* gcc 12 takes each branch of varint_put for a size that a record of the caller's might have. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif

/* Appends a copy of a record. 0 or PE_FULL. */
static inline int record_queue_append(struct record_queue *q, const void *data, size_t size)
{
    uint8_t *at = record_queue_reserve(q, size);
    if (!at)
        return PE_FULL;
    if (size > 0)
        memcpy(at, data, size);
    record_queue_commit(q, size);
    return 0;
}

#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic pop
#endif

/* --- the consumer --- */

/* Looks at what the producer has published; returns the position. A jump is passed over: then `freed`, which
 * was all there had been, moves to its end. */
struct stream_position record_queue_see_published(struct record_queue *q);

/* The bytes [from, published), contiguous; `from` at or after `freed`. Valid until freed. */
static inline struct span record_queue_span(const struct record_queue *q, uint64_t from)
{
    return span_of(ring_memory_at(&q->memory, from), (size_t)(q->published_seen.bytes - from));
}

/* Everything before `to` is done with: `to` at or after `freed`, at or before `published_seen`. */
void record_queue_free_to(struct record_queue *q, struct stream_position to);

/* --- anyone: a glance for status, from any thread --- */

struct record_queue_glance {
    uint32_t held_bytes;
    uint32_t held_records;
};

/* Published and not yet freed, at about this moment; lost ones among them until the consumer has looked. */
struct record_queue_glance record_queue_glance(struct record_queue *q);

#endif
