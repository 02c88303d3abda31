/* The dead letters of one output: records that its receiver always refused, set aside until somebody has them
 * replayed or dropped (docs/http-front.md).
 *
 * A letter is a reference: the record stays among the sends of the segment that it was journaled in, and the
 * letter holds that segment. So a dead letter keeps a whole segment on the disk. The letter itself is in the
 * journal from its DEAD section on until its DEAD_GONE; snapshots repeat those that are kept.
 *
 * Letters that are gone stay in the list until their DEAD_GONE is durable; only then is the segment released.
 */
#ifndef PURE_HOST_DEAD_LETTERS_H
#define PURE_HOST_DEAD_LETTERS_H

#include "core/outlet.h"
#include "host/text.h"
#include "journal/store.h"

enum dead_stage {
    DEAD_KEPT,
    DEAD_GONE_FILLED,  /* its DEAD_GONE is in the batch that fills */
    DEAD_GONE_WRITING, /* in the one that is being written */
};

struct dead_letter {
    uint64_t number;          /* of the record in the output's stream */
    uint64_t time_ms;         /* wall clock: when it was set aside */
    uint64_t segment, offset; /* where to look for the record; `segment` is held if `held` */
    uint32_t bytes;           /* of the record */
    uint8_t stage;            /* enum dead_stage */
    bool held;                /* false: before dead_letters_hold, or its segment is not there any more */
    char reason[OUTLET_REASON_MAX];
};

struct dead_letters {
    struct dead_letter *letters; /* by number, upwards, each once */
    uint32_t count, room;
    uint32_t filled, writing; /* letters of these stages: filled + writing <= count */
};

void dead_letters_dispose(struct dead_letters *d);

/* How many are kept. */
static inline uint32_t dead_letters_kept(const struct dead_letters *d)
{
    return d->count - d->filled - d->writing;
}

/* One more; a number that is there already stays as it is. `reason` is cut at OUTLET_REASON_MAX - 1. 0 or
 * -ENOMEM. */
int dead_letters_add(struct dead_letters *d, const struct dead_letter *letter, struct span reason);

/* The first that is kept and has at least this number. NULL: there is none. Valid until letters are added or
 * removed. */
struct dead_letter *dead_letters_from(const struct dead_letters *d, uint64_t number);

/* --- a start, before the loops run: nothing is held yet --- */

void dead_letters_clear(struct dead_letters *d);
void dead_letters_forget(struct dead_letters *d, uint64_t number);
/* All that was found is found: holds the segments. Returns how many letters have lost theirs. */
uint32_t dead_letters_hold(struct dead_letters *d, struct store *store);

/* --- frames, as struct journal_member has it --- */

void dead_letters_frame(const struct dead_letter *letter, const char *output, struct frame_buffer *frames);
void dead_letters_frame_all(const struct dead_letters *d, const char *output, struct frame_buffer *frames);
/* Puts its DEAD_GONE. */
void dead_letters_frame_gone(struct dead_letters *d, struct dead_letter *letter, const char *output,
                             struct frame_buffer *frames);
void dead_letters_placed(struct dead_letters *d);
/* Removes those whose DEAD_GONE is durable, and releases their segments. */
void dead_letters_durable(struct dead_letters *d, struct store *store);

/* --- for people --- */

/* {"dead":[…],"more":…}: those kept from number `from` on, as many as go into `most` bytes. */
void dead_letters_list(const struct dead_letters *d, uint64_t from, size_t most, struct text *t);

#endif
