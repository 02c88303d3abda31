#include "wire/batch.h"

static struct batch batch_to(const struct record_queue *q, struct stream_position from, uint64_t bytes,
                             uint64_t records)
{
    return (struct batch){.start = from,
                          .end = {from.bytes + bytes, from.records + records},
                          .body = span_of(record_queue_span(q, from.bytes).data, bytes)};
}

struct batch batch_framed(const struct record_queue *q, struct stream_position from,
                          const struct batch_limits *limits)
{
    struct span rest = record_queue_span(q, from.bytes);
    uint64_t records = q->published_seen.records - from.records;
    if (rest.size <= limits->bytes && records <= limits->records)
        return batch_to(q, from, rest.size, records); /* all there is, uncounted */
    struct span within = span_of(rest.data, min_size(rest.size, limits->bytes));
    struct record_scan scan = record_scan(within, q->capacity, limits->records);
    if (scan.records == 0)
        scan = record_scan(rest, q->capacity, 1);
    assert(scan.records > 0);
    return batch_to(q, from, scan.bytes, scan.records);
}

struct batch batch_single(const struct record_queue *q, struct stream_position from)
{
    struct span rest = record_queue_span(q, from.bytes), record;
    size_t framed = record_get(rest.data, rest.data + rest.size, &record);
    assert(framed > 0);
    struct batch batch = batch_to(q, from, framed, 1);
    batch.body = record;
    return batch;
}

static void put_line(uint8_t *to, struct span record)
{
    for (size_t i = 0; i < record.size; i++)
        to[i] = record.data[i] == '\r' || record.data[i] == '\n' ? ' ' : record.data[i];
    to[record.size] = '\n';
}

struct batch batch_of_lines(const struct record_queue *q, struct stream_position from,
                            const struct batch_limits *limits)
{
    struct span rest = record_queue_span(q, from.bytes), record;
    const uint8_t *at = rest.data, *end = rest.data + rest.size;
    uint64_t size = 0, records = 0;
    while (records < limits->records) {
        size_t framed = record_get(at, end, &record);
        if (framed == 0 || (records > 0 && size + record.size + 1 > limits->bytes))
            break;
        size += record.size + 1;
        at += framed;
        records++;
    }
    assert(records > 0);
    struct batch batch = batch_to(q, from, (uint64_t)(at - rest.data), records);
    batch.body = span_of(NULL, 0);
    return batch;
}

void batch_write_lines(const struct record_queue *q, struct batch *batch, uint8_t *lines)
{
    struct span rest = record_queue_span(q, batch->start.bytes), record;
    const uint8_t *at = rest.data, *end = rest.data + (batch->end.bytes - batch->start.bytes);
    size_t size = 0;
    while (at < end) {
        size_t framed = record_get(at, end, &record);
        assert(framed > 0);
        put_line(lines + size, record);
        size += record.size + 1;
        at += framed;
    }
    batch->body = span_of(lines, size);
}
