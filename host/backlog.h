/* The records of one output between the turn that sent them and the receiver that has stored them, where the
 * app's turns are journaled. All numbers are of records in the output's stream, from 1:
 *
 *     queue.freed <= queue.published <= durable <= placed <= sent
 *
 *     (.., freed]          stored at the receiver
 *     (freed, published]   in the queue: whoever delivers sees them
 *     (.., durable]        in the journal; only these may be published
 *     (durable, sent]      in a batch that is being written, or that fills
 *
 * Sends go into the queue while it has room, and into frames at the end of the turn. When it has none, the
 * output is *behind*: they go into frames only (what is `beyond` the queue, bounded by `limit`), and a
 * reader brings them back, in order, as the queue empties; until it has caught up, nothing goes past it. So
 * what is held in memory does not depend on the backlog.
 *
 * Segments are held while records in them are not stored, and that they are is durable (an OUTPUT section).
 * Records that the disk has lost are passed over once all before them are stored: the stream goes on behind
 * the hole, under the numbers it had. */
#ifndef PURE_HOST_BACKLOG_H
#define PURE_HOST_BACKLOG_H

#include "core/log.h"
#include "core/outlet.h"
#include "journal/reader.h"
#include "journal/writer.h"

struct backlog_segment {
    uint64_t segment, offset; /* where to begin to look */
    uint64_t first, last;     /* numbers of its records there */
    uint64_t begin;           /* the offset before anything of it was read back */
};

struct backlog_options {
    struct outlet *outlet;
    uint64_t limit; /* bytes beyond the queue; 0: none, sends wait for the queue */
    struct store *store;
    struct journal_reader *reader;
    struct log *log;
    struct loop *loop;
    struct task *task; /* the app's: wanted when there is news */
};

struct backlog {
    struct backlog_options options;
    struct stream_position framed; /* of the queue: what lies before is in frames */
    uint64_t sent, placed, durable;
    uint64_t beyond; /* framed bytes in frames that are not in the queue: about, after a start */
    /* sends of this turn that are not in the queue */
    uint8_t *spill;
    size_t spill_size, spill_room;
    uint64_t spill_records;
    /* positions of the queue to be published, as of the batch that fills and the one being written */
    struct stream_position filled, writing;
    uint64_t writing_sent;
    /* as of an OUTPUT section. `reach` is OUTPUT_REACH_ALL from when the deliverer's contact is clear, or
     * where it does not ask (core/outlet.h) */
    uint64_t reach;
    uint8_t epoch[JOURNAL_EPOCH_BYTES];
    uint64_t common; /* stored at the receiver, whatever the queue says; 0, or as the contact's */
    bool said;       /* an OUTPUT of this life is in a frame */
    /* what the receiver has stored, as said in frames: of the batch that fills, being written, durable */
    uint64_t stored_filled, stored_writing, stored_durable;
    struct backlog_segment *segments; /* [first_segment, segment_end): oldest first, each held */
    uint32_t first_segment, segment_end, segment_room;
    uint64_t oldest_placed; /* of the last of them: last number placed; for `placed` */
    struct read_request read;
    bool reading;
    unsigned read_failures; /* in a row */
    uint64_t read_after_ns; /* not before, after a failure */
    uint64_t lost_to;       /* numbers up to here are lost: the next that can be had is behind; 0: none */
};

int backlog_init(struct backlog *b, const struct backlog_options *options);
void backlog_dispose(struct backlog *b);

/* After a start: `sent` records were sent in all, of which `stored` are stored. The outlet starts there. 0
 * or -ENOMEM. Before the loops run. */
int backlog_start(struct backlog *b, uint64_t sent, uint64_t stored);

/* After that, and before the loops run: as the journal says of the output. None of its records behind `reach`
 * has left the host: the deliverer has to ask before more do. */
void backlog_ask(struct backlog *b, uint64_t reach);

/* --- a turn --- */

struct backlog_mark {
    struct stream_position tail;
    size_t spill_size;
    uint64_t spill_records;
};

static inline struct backlog_mark backlog_mark(const struct backlog *b)
{
    return (struct backlog_mark){b->options.outlet->queue.tail, b->spill_size, b->spill_records};
}

void backlog_undo(struct backlog *b, const struct backlog_mark *mark);

/* 0; PE_FULL: neither the queue nor the limit has room; -ENOMEM. `spare`: bytes to be left free. */
int backlog_send(struct backlog *b, const void *data, size_t size, uint64_t spare);

/* Whether sends go into frames only. */
static inline bool backlog_behind(const struct backlog *b)
{
    return b->spill_records > 0 || b->sent > b->options.outlet->queue.tail.records;
}

/* What counts for back-pressure: of the queue without a limit, else of what is beyond it. */
static inline uint64_t backlog_held(const struct backlog *b)
{
    return b->options.limit > 0 ? b->beyond + b->spill_size : record_queue_held(&b->options.outlet->queue);
}

static inline uint64_t backlog_capacity(const struct backlog *b)
{
    return b->options.limit > 0 ? b->options.limit : b->options.outlet->queue.capacity;
}

/* Whether at most `most` bytes are held; if not, and the queue is what counts, a notice follows once they
 * are; else the app's task runs whenever that changes. */
bool backlog_within(struct backlog *b, uint64_t most);

/* --- its commit --- */

/* Puts what was sent since the last call, and what is stored if that has moved, into the frame begun. */
bool backlog_has_news(struct backlog *b);
void backlog_frame(struct backlog *b, struct frame_buffer *frames);
/* The same for a snapshot, or after a change of `reach` or the epoch: the numbers alone. */
void backlog_frame_numbers(struct backlog *b, struct frame_buffer *frames);

/* Whether something that a frame could say would let a segment go. */
bool backlog_would_release(struct backlog *b);
/* Whether records wait to be stored, or that they are is not in a frame. */
bool backlog_outstanding(struct backlog *b);

/* As of journal_member. -ENOMEM: its records cannot be found again, the app cannot go on; or 0. */
int backlog_placed(struct backlog *b, uint64_t segment, uint64_t offset);
void backlog_durable(struct backlog *b);

/* Where a record lies that is not known to be stored: in which segment, and from which offset on to look for
 * it. False: that is not known. */
bool backlog_find(const struct backlog *b, uint64_t number, uint64_t *segment, uint64_t *offset);

/* Brings records back, if there are any and there is room. Any time on the owner's loop. */
void backlog_pump(struct backlog *b);

#endif
