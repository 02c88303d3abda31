/* The sending side of one stream, over the record queue of an outlet.
 *
 * The queue is the stream's memory: records stay there until they are stored, and packets are filled from it.
 * Offset 0 lies at the queue position `origin`, so an offset's byte is at origin.bytes + offset:
 *
 *     freed <= sent <= credit, published          all as offsets; freed is where the queue begins
 *
 *     [freed, sent)        in flight, or received and not yet stored; but what `lost` names has to go again
 *     [sent, published)    waits
 *
 * A record's number says where it lies only by counting from a place known. Such places come for free: each
 * look at what the app has pushed gives one. STORED goes to the last of those marks before its number at once
 * and counts the rest, so that no record is counted twice, and none that is stored with its whole push.
 *
 * Offsets and numbers go together only as long as both go on without a gap. Where numbers were lost, or the
 * receiver has records that were not sent under this number, the stream is `broken`: it has to end, and to
 * begin anew. */
#ifndef PURE_LINK_SEND_STREAM_H
#define PURE_LINK_SEND_STREAM_H

#include "core/outlet.h"
#include "link/ranges.h"

#define SEND_STREAM_LOST  64 /* ranges; with more, gaps between them are sent again too */
#define SEND_STREAM_MARKS 64

struct send_stream {
    struct outlet *outlet;
    uint32_t number;               /* within the association */
    struct stream_position origin; /* of offset 0 */
    uint64_t sent;                 /* offset: all before was sent at least once; never decreases */
    uint64_t credit;               /* offset: as the receiver said last; never decreases */
    struct ranges lost;            /* offsets within [freed, sent) */
    struct range lost_memory[SEND_STREAM_LOST];
    uint64_t sent_ever; /* queue position: as `sent`, over all numbers and associations */
    bool live;          /* between begin and end */
    bool broken;        /* live, and of no more use: see above */
    /* publications seen that are not freed, oldest first: [marks_first, marks_end) modulo the array */
    struct stream_position marks[SEND_STREAM_MARKS];
    uint32_t marks_first, marks_end;
};

void send_stream_init(struct send_stream *s, struct outlet *outlet);

/* Begins at the queue's front, under a new number, or in a new association. */
void send_stream_begin(struct send_stream *s, uint32_t number, uint64_t credit);

/* Looks at what was pushed. Passing over numbers that were lost breaks a live stream. */
void send_stream_look(struct send_stream *s);

/* Bytes never sent that were seen by the last look and may be sent: none while outlet_may_send
 * says no. */
uint64_t send_stream_fresh(const struct send_stream *s);

static inline bool send_stream_has_lost(const struct send_stream *s)
{
    return s->lost.count > 0;
}

/* No more of it is sent under this number. Returns the offset where it ends. */
uint64_t send_stream_end(struct send_stream *s);

/* The next piece, from `*offset` on: what was lost first, else fresh bytes, at most `most_fresh` of them.
 * Returns how many bytes it may have; 0: nothing may be sent. */
uint64_t send_stream_next(const struct send_stream *s, uint64_t most_fresh, uint64_t *offset);

/* Takes `size` (> 0) bytes of that piece: they count as sent. They are the queue's; copy them at once. */
const uint8_t *send_stream_take(struct send_stream *s, uint64_t offset, size_t size);

/* A piece sent under this number was lost. */
void send_stream_lost(struct send_stream *s, uint64_t offset, uint64_t size);

/* The receiver has stored up to record `number`: the queue is freed to there. A receiver may remember more
 * than was sent under this number, but says so only of a stream that has ended. From an earlier life of this
 * host (outlet->sent_before) it may know more than is published: that is freed. If that is more than was
 * sent, a live stream is broken. 0; PE_STORED_NUMBER: it cannot have that, and nothing is done. */
int send_stream_stored(struct send_stream *s, uint64_t number);

/* Returns whether it moved. */
bool send_stream_credit(struct send_stream *s, uint64_t credit);

#endif
