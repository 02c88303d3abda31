/* The receiving side of one stream: bytes come in any order, whole records go out in theirs.
 *
 * The bytes lie in a ring, by offset:
 *
 *     freed <= handed <= contiguous <= highest <= credit <= freed + the ring's size
 *
 *     [freed, handed)         whole records that the consumer has and may still look at
 *     [handed, contiguous)    the front of the next record
 *     [contiguous, highest)   pieces, with holes: `pieces` says which
 *
 * A record is handed on once, as part of a span that is contiguous in memory whatever it was cut into on the
 * way. Memory is bounded by the ring; the sender may send no further than `credit`. The ring starts at its
 * front again whenever it is empty, or nearly so with nothing of it in the consumer's hands, so that a stream
 * whose consumer keeps up stays in the processor's cache.
 * What was freed of a ring that is never empty stays in use until receive_stream_trim: `touched` is how much
 * that may be, and what is held. */
#ifndef PURE_LINK_RECEIVE_STREAM_H
#define PURE_LINK_RECEIVE_STREAM_H

#include "core/record.h"
#include "core/ring_memory.h"
#include "link/ranges.h"

/* Pieces with holes between them that one stream keeps. A packet that would make more is not acknowledged. */
#define RECEIVE_STREAM_PIECES 128
#define RECEIVE_STREAM_TAKE   (64 * 1024)

struct receive_stream {
    struct ring_memory ring;
    size_t max_record; /* bytes; framed it fits in the ring */
    struct ranges pieces;
    struct range pieces_memory[RECEIVE_STREAM_PIECES];
    uint64_t freed;      /* offset; as all of these it never decreases within a stream's life */
    uint64_t handed;     /* offset, at a record's start */
    uint64_t contiguous; /* offset */
    uint64_t highest;    /* offset behind the last byte that came */
    uint64_t credit;     /* offset: what the sender was last told, or begins with */
    uint64_t shift;      /* offset 0 would lie at this position of the ring */
    uint64_t front;      /* position: memory that is in use lies in [front, front + touched) */
    uint64_t touched;    /* bytes, at most the ring's size */
    uint64_t next;       /* number of the record at `handed` */
    uint64_t stored;     /* number of the last record known to be stored; < next */
};

/* Maps the ring: as `window` bytes, or as a record of `max_record` and the first credit need. 0 or a negative
 * errno. */
int receive_stream_init(struct receive_stream *s, uint64_t window, size_t max_record);
void receive_stream_dispose(struct receive_stream *s);

/* A new stream in the same memory: record `first` (>= 1) is at offset 0, and the sender may send up to
 * `credit`. */
void receive_stream_begin(struct receive_stream *s, uint64_t first, uint64_t credit);

/* Bytes have come. 0; PE_TOO_LARGE: beyond the credit, nothing is kept; PE_FULL: too many holes, nothing is
 * kept. */
int receive_stream_put(struct receive_stream *s, uint64_t offset, struct span bytes);

struct received_records {
    struct span bytes; /* framed records, whole; in the ring until freed */
    uint64_t first;    /* number of the first */
    uint64_t count;    /* 0: there are none */
    int error;         /* PE_TOO_LARGE: the record after these is over the limit */
    bool more;         /* there may be whole ones behind these */
};

/* Whole records that were not handed on yet, from the first on: they are now. At most RECEIVE_STREAM_TAKE
 * bytes, so that whoever copies them finds them in the cache, and need not count them again to cut them; one
 * record may be more. */
struct received_records receive_stream_take(struct receive_stream *s);

/* What the consumer was handed and is not done with. */
struct span receive_stream_held(const struct receive_stream *s);

/* The consumer is done with `bytes` more of what it was handed. */
void receive_stream_free(struct receive_stream *s, uint64_t bytes);

/* The consumer has stored up to record `number`. Of records that did not come on this stream (the consumer
 * may know them from an earlier one) it says nothing: the sender has to send them, and would be left with a
 * hole. Returns whether `stored` has moved. */
bool receive_stream_store(struct receive_stream *s, uint64_t number);

/* The most that may be told now. */
static inline uint64_t receive_stream_credit(const struct receive_stream *s)
{
    return s->freed + s->ring.size;
}

/* Where the record that is coming ends, if all before are freed and its size is known, else 0: without so
 * much credit it stays half. */
uint64_t receive_stream_need(const struct receive_stream *s);

/* What was freed is in use no more. */
void receive_stream_trim(struct receive_stream *s);

/* The stream is over: its memory is not used until it begins again. */
void receive_stream_end(struct receive_stream *s);

#endif
