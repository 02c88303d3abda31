#include "core/record_queue.h"

static uint64_t pack(struct stream_position p)
{
    return (p.records & UINT32_MAX) << 32 | (p.bytes & UINT32_MAX);
}

/* `word` is at or after `known`, by less than 2^32 in both parts, not counting a jump in between. */
static struct stream_position extend(struct stream_position known, uint64_t word)
{
    known.bytes += (uint32_t)((uint32_t)word - (uint32_t)known.bytes);
    known.records += (uint32_t)((uint32_t)(word >> 32) - (uint32_t)known.records);
    return known;
}

/* What the other side's word says, from what was known. A jump that is not known begins at `known`: if the
 * word is another, it lies at or behind the jump's end. (If the jump is by a multiple of 2^32, its end looks
 * like its beginning, and is seen with the first record behind it.) */
static struct stream_position extend_over(struct stream_position known, uint64_t jump, uint64_t word)
{
    if (jump > known.records && word != pack(known))
        known.records = jump;
    return extend(known, word);
}

int record_queue_init(struct record_queue *q, uint64_t capacity)
{
    assert(capacity > 0 && capacity <= UINT64_C(1) << 30);
    *q = (struct record_queue){.capacity = capacity};
    return ring_memory_init(&q->memory, capacity);
}

void record_queue_start(struct record_queue *q, uint64_t records)
{
    struct stream_position start = {.records = records};
    assert(q->tail.bytes == 0);
    q->tail = q->published = q->freed_seen = q->published_seen = q->freed = start;
    atomic_store_explicit(&q->published_word, pack(start), memory_order_relaxed);
    atomic_store_explicit(&q->freed_word, pack(start), memory_order_relaxed);
}

void record_queue_dispose(struct record_queue *q)
{
    ring_memory_dispose(&q->memory);
}

bool record_queue_finds_room(struct record_queue *q, size_t framed)
{
    record_queue_see_freed(q);
    return record_queue_held(q) + framed <= q->capacity;
}

void record_queue_append_framed(struct record_queue *q, struct span framed, uint64_t records)
{
    assert(record_queue_held(q) + framed.size <= q->capacity);
    if (framed.size > 0)
        memcpy(ring_memory_at(&q->memory, q->tail.bytes), framed.data, framed.size);
    q->tail.bytes += framed.size;
    q->tail.records += records;
}

void record_queue_rollback(struct record_queue *q, struct stream_position to)
{
    assert(to.bytes >= q->published.bytes && to.bytes <= q->tail.bytes);
    assert(to.records >= q->published.records && to.records <= q->tail.records);
    q->tail = to;
}

void record_queue_publish_to(struct record_queue *q, struct stream_position to)
{
    assert(to.bytes >= q->published.bytes && to.bytes <= q->tail.bytes);
    assert(to.records >= q->published.records && to.records <= q->tail.records);
    q->published = to;
    atomic_store_explicit(&q->published_word, pack(to), memory_order_release);
}

void record_queue_see_freed(struct record_queue *q)
{
    q->freed_seen = extend_over(q->freed_seen, atomic_load_explicit(&q->jump, memory_order_relaxed),
                                atomic_load_explicit(&q->freed_word, memory_order_acquire));
}

bool record_queue_empty(struct record_queue *q)
{
    record_queue_see_freed(q);
    return q->freed_seen.bytes == q->tail.bytes && q->freed_seen.records == q->tail.records;
}

void record_queue_jump(struct record_queue *q, uint64_t records)
{
    assert(q->freed_seen.bytes == q->tail.bytes && q->freed_seen.records == q->tail.records);
    assert(records > q->tail.records);
    atomic_store_explicit(&q->jump, records, memory_order_relaxed);
    q->tail.records = records;
    record_queue_publish(q);
}

struct stream_position record_queue_see_published(struct record_queue *q)
{
    uint64_t word = atomic_load_explicit(&q->published_word, memory_order_acquire);
    uint64_t jump = atomic_load_explicit(&q->jump, memory_order_relaxed); /* the word's, or a later one */
    if (jump > q->published_seen.records && word != pack(q->published_seen)) {
        assert(q->freed.bytes == q->published_seen.bytes);
        q->published_seen.records = jump;
        record_queue_free_to(q, q->published_seen);
    }
    return q->published_seen = extend(q->published_seen, word);
}

void record_queue_free_to(struct record_queue *q, struct stream_position to)
{
    assert(to.bytes >= q->freed.bytes && to.bytes <= q->published_seen.bytes);
    assert(to.records >= q->freed.records && to.records <= q->published_seen.records);
    q->freed = to;
    atomic_store_explicit(&q->freed_word, pack(to), memory_order_release);
}

struct record_queue_glance record_queue_glance(struct record_queue *q)
{
    /* freed first: what is freed later than this look must not be seen as published earlier */
    uint64_t freed = atomic_load_explicit(&q->freed_word, memory_order_acquire);
    uint64_t published = atomic_load_explicit(&q->published_word, memory_order_acquire);
    return (struct record_queue_glance){(uint32_t)published - (uint32_t)freed,
                                        (uint32_t)(published >> 32) - (uint32_t)(freed >> 32)};
}
