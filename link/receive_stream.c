#include "link/receive_stream.h"

#include "link/stream_limits.h"

#define REWIND_BYTES (32 * 1024)  /* that are moved, at most */
#define REWIND_FROM  (256 * 1024) /* from there on; > REWIND_BYTES, so that it is no move within itself */

int receive_stream_init(struct receive_stream *s, uint64_t window, size_t max_record)
{
    *s = (struct receive_stream){.max_record = max_record};
    ranges_init(&s->pieces, s->pieces_memory, RECEIVE_STREAM_PIECES);
    uint64_t least = max_u64(record_framed_size(max_record), LINK_STREAM_CREDIT);
    return ring_memory_init(&s->ring, max_u64(window, least));
}

void receive_stream_dispose(struct receive_stream *s)
{
    ring_memory_dispose(&s->ring);
}

void receive_stream_begin(struct receive_stream *s, uint64_t first, uint64_t credit)
{
    assert(first >= 1 && credit <= s->ring.size);
    s->freed = s->handed = s->contiguous = s->highest = s->shift = s->front = s->touched = 0;
    s->credit = credit;
    s->next = first;
    s->stored = first - 1;
    ranges_clear(&s->pieces);
}

static uint8_t *at(const struct receive_stream *s, uint64_t offset)
{
    return ring_memory_at(&s->ring, offset + s->shift);
}

/* Bytes up to `contiguous` are there; so may be what follows. */
static void join_pieces(struct receive_stream *s)
{
    while (s->pieces.count > 0 && s->pieces.item[0].start <= s->contiguous) {
        s->contiguous = max_u64(s->contiguous, s->pieces.item[0].end);
        ranges_drop_first(&s->pieces);
    }
}

int receive_stream_put(struct receive_stream *s, uint64_t offset, struct span bytes)
{
    uint64_t end = offset + bytes.size; /* both are below 2^62 */
    if (end > s->credit)
        return PE_TOO_LARGE;
    if (end <= s->contiguous)
        return 0;
    if (offset > s->contiguous) {
        if (ranges_add(&s->pieces, offset, end) < 0)
            return PE_FULL;
        memcpy(at(s, offset), bytes.data, bytes.size);
    } else {
        size_t known = (size_t)(s->contiguous - offset);
        memcpy(at(s, s->contiguous), bytes.data + known, bytes.size - known);
        s->contiguous = end;
        join_pieces(s);
    }
    s->highest = max_u64(s->highest, end);
    s->touched = max_u64(s->touched, min_u64(end + s->shift - s->front, s->ring.size));
    return 0;
}

struct received_records receive_stream_take(struct receive_stream *s)
{
    struct span come = span_of(at(s, s->handed), (size_t)(s->contiguous - s->handed));
    struct span piece = span_of(come.data, min_size(come.size, RECEIVE_STREAM_TAKE));
    struct record_scan scan = record_scan(piece, s->max_record, UINT64_MAX);
    if (scan.records == 0 && piece.size < come.size)
        scan = record_scan(come, s->max_record, 1);
    struct received_records records = {span_of(come.data, scan.bytes), s->next, scan.records, scan.error,
                                       piece.size < come.size && scan.records > 0 && scan.error == 0};
    s->handed += scan.bytes;
    s->next += scan.records;
    return records;
}

struct span receive_stream_held(const struct receive_stream *s)
{
    return span_of(at(s, s->freed), (size_t)(s->handed - s->freed));
}

/* The ring is empty: what comes next lies at its front. */
static void start_over(struct receive_stream *s)
{
    s->shift = 0 - s->freed;
    if (s->front == 0)
        return;
    ring_memory_release(&s->ring);
    s->front = s->touched = 0;
}

/* The consumer has nothing of it. What is left, the front of a record and perhaps pieces, is moved to the
 * ring's front if it is little, and far enough from there: so the memory that is in use stays small, and
 * warm. */
static void rewind_ring(struct receive_stream *s)
{
    uint64_t left = s->highest - s->freed, place = (s->freed + s->shift) & (s->ring.size - 1);
    if (left > REWIND_BYTES || place < REWIND_FROM || place + left > s->ring.size)
        return;
    memcpy(s->ring.base, at(s, s->freed), left);
    s->shift = 0 - s->freed;
    if (s->front > 0)
        s->touched = s->ring.size; /* at most */
    s->front = 0;
}

void receive_stream_free(struct receive_stream *s, uint64_t bytes)
{
    assert(bytes <= s->handed - s->freed);
    s->freed += bytes;
    if (s->freed == s->highest)
        start_over(s);
    else if (s->freed == s->handed)
        rewind_ring(s);
}

void receive_stream_trim(struct receive_stream *s)
{
    uint64_t held = s->highest - s->freed;
    s->front = s->freed + s->shift;
    s->touched = held;
    ring_memory_release_part(&s->ring, s->highest + s->shift, s->ring.size - held);
}

uint64_t receive_stream_need(const struct receive_stream *s)
{
    uint64_t size;
    if (s->freed < s->handed || s->handed == s->contiguous)
        return 0;
    const uint8_t *front = at(s, s->handed);
    size_t prefix = varint_get(front, front + (s->contiguous - s->handed), &size);
    return prefix > 0 && size <= s->max_record ? s->handed + prefix + size : 0;
}

void receive_stream_end(struct receive_stream *s)
{
    if (s->touched > 0)
        ring_memory_release(&s->ring);
    s->touched = 0;
}

bool receive_stream_store(struct receive_stream *s, uint64_t number)
{
    number = min_u64(number, s->next - 1);
    if (number <= s->stored)
        return false;
    s->stored = number;
    return true;
}
