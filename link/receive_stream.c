#include "link/receive_stream.h"

#include "link/stream_limits.h"

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
    s->freed = s->handed = s->contiguous = s->highest = s->shift = 0;
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
    return 0;
}

struct received_records receive_stream_take(struct receive_stream *s)
{
    struct span come = span_of(at(s, s->handed), (size_t)(s->contiguous - s->handed));
    struct record_scan scan = record_scan(come, s->max_record, UINT64_MAX);
    struct received_records records = {span_of(come.data, scan.bytes), s->next, scan.records, scan.error};
    s->handed += scan.bytes;
    s->next += scan.records;
    return records;
}

struct span receive_stream_held(const struct receive_stream *s)
{
    return span_of(at(s, s->freed), (size_t)(s->handed - s->freed));
}

void receive_stream_free(struct receive_stream *s, uint64_t bytes)
{
    assert(bytes <= s->handed - s->freed);
    s->freed += bytes;
    if (s->freed == s->highest)
        s->shift = 0 - s->freed;
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
    if (s->highest > 0)
        ring_memory_release(&s->ring);
}

bool receive_stream_store(struct receive_stream *s, uint64_t number)
{
    number = min_u64(number, s->next - 1);
    if (number <= s->stored)
        return false;
    s->stored = number;
    return true;
}
