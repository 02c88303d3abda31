/* Which records go into one request, and its body. */
#ifndef PURE_WIRE_BATCH_H
#define PURE_WIRE_BATCH_H

#include "core/record_queue.h"

struct batch {
    struct stream_position start; /* its records are number start.records + 1 … */
    struct stream_position end;   /* … to end.records */
    struct span body;             /* in the queue's memory until freed, or in the caller's buffer */
};

static inline uint64_t batch_count(const struct batch *b)
{
    return b->end.records - b->start.records;
}

struct batch_limits {
    uint64_t bytes;   /* of the body, unless the first record alone is larger */
    uint64_t records; /* > 0 */
};

/* All of these begin at `from`, where at least one record was seen to be published. */

/* Framed records, as they lie in the queue. */
struct batch batch_framed(const struct record_queue *q, struct stream_position from,
                          const struct batch_limits *limits);

/* One record, bare. */
struct batch batch_single(const struct record_queue *q, struct stream_position from);

/* Records that will be lines: without a body yet, of which `limits` speak. */
struct batch batch_of_lines(const struct record_queue *q, struct stream_position from,
                            const struct batch_limits *limits);

/* The body of the records [batch->start, batch->end) as lines: a copy in `lines` (at least max(the bytes that
 * it was limited to, the largest record + 1) bytes), each record followed by LF. A CR or LF within a record
 * becomes a space: in JSON it can only be white space. */
void batch_write_lines(const struct record_queue *q, struct batch *batch, uint8_t *lines);

#endif
