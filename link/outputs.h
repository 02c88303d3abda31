/* The outputs that go over one link: the streams of the sender's association. Frames about them in and out;
 * packets, keys and time-outs are link_sender's.
 *
 *     IDLE -- begin --> OPENING -- OPEN acknowledged --> OPEN
 *      ^                   |                               |
 *      |                   +-- refused, or a stored number that cannot be --> ENDING -- end acknowledged --+
 *      |                                                                                                   |
 *      +---------------- the rest is over ---------------- RESTING <---------------------------------------+
 *                                                          DISABLED <-- after a refusal for ever ----------+
 *
 * A stream that is broken (send_stream.h) ends as well; its rest is over at once.
 *
 * Before the receiver was asked (struct outlet_contact), OPEN goes alone, and asks; its answer is the first
 * STORED. Where the receiver has more, it refuses, and the output rests until it has a new epoch.
 *
 * While OPENING, OPEN goes with every packet that carries records: whichever comes first, the receiver knows
 * the stream by it. An output keeps its place (its index) for good; a new life of its stream has a number
 * that is the number of places higher, so that nothing late is taken for a part of the new one. */
#ifndef PURE_LINK_OUTPUTS_H
#define PURE_LINK_OUTPUTS_H

#include "core/random.h"
#include "link/frames.h"
#include "link/scheduler.h"
#include "link/send_stream.h"
#include "link/sent.h"

#define OUTPUT_QUANTUM_BYTES 4096
#define OUTPUT_REST_FIRST_NS NS_PER_S /* after a refusal; twice as long after the next … */
#define OUTPUT_REST_LAST_NS \
    (60 * NS_PER_S) /* … at most, each ± 25 %; from the start when records are stored */

enum output_state {
    OUTPUT_IDLE,
    OUTPUT_OPENING,
    OUTPUT_OPEN,
    OUTPUT_ENDING,
    OUTPUT_RESTING,
    OUTPUT_DISABLED,
};

struct link_output {
    struct scheduled scheduled;
    struct send_stream stream;
    enum output_state state;
    /* what OPEN says besides the outlet's names; the owner's memory */
    uint8_t epoch[FRAME_EPOCH_BYTES];
    struct span target, event;
    uint32_t place;
    uint32_t life;          /* within the association: number = place + life * places */
    uint64_t opened_in;     /* the packet that OPEN went with last */
    uint64_t end;           /* ENDING: where it ends */
    bool end_due;           /* ENDING: has to be sent */
    bool for_ever;          /* ENDING: DISABLED comes next */
    uint64_t asks;          /* as OPEN's */
    bool asking;            /* that has no answer yet */
    bool ask_due;           /* it has to be sent */
    bool holds;             /* records that are not stored, as was seen last */
    uint32_t refusals;      /* in a row */
    uint64_t rest_until_ns; /* ENDING, RESTING */
};

/* Called within outputs_… calls; must not call back into them. */
struct outputs_hooks {
    /* The outlet was freed up to its queue's `freed`. */
    void (*stored)(void *context, struct link_output *output);
    /* It rests, or, `for_ever`, is disabled. */
    void (*refused)(void *context, struct link_output *output, int error, bool for_ever);
    void *context;
};

struct outputs {
    struct link_output **list; /* count of them, by place; NULL where one was removed */
    uint32_t count, capacity;
    struct scheduler scheduler;
    bool begun;                  /* an association is there */
    uint32_t places;             /* that the receiver gives; outputs beyond them wait for ever */
    uint64_t session_credit;     /* bytes from the association's start */
    uint64_t session_sent;       /* likewise; <= session_credit */
    struct link_output *starved; /* the first that found it spent, since there was some: its turn is next */
    uint32_t ends_due, holding;
    uint64_t rests_ns; /* when the next rest is over; NEVER if none is under way */
    struct random random;
    struct outputs_hooks hooks;
};

/* Room for `capacity` outputs; `seed` of the jitter. 0 or -ENOMEM. */
int outputs_init(struct outputs *o, uint32_t capacity, uint64_t seed, const struct outputs_hooks *hooks);
void outputs_dispose(struct outputs *o);

/* `output` is the owner's and outlives this; `target` and `event` do too. 0 or PE_FULL. */
int outputs_add(struct outputs *o, struct link_output *output, struct outlet *outlet,
                const uint8_t epoch[FRAME_EPOCH_BYTES], struct span target, struct span event);

/* An association begins, anew: all streams begin at the front of their queues; those that rest, too, as the
 * receiver is another than the one that refused them. */
void outputs_begin(struct outputs *o, uint32_t places, uint64_t session_credit);

/* Records were pushed, or the outlet's contact has come further. */
void outputs_pushed(struct outputs *o, struct link_output *output);

/* Whether outputs_fill would put something. */
static inline bool outputs_ready(const struct outputs *o)
{
    return o->begun && (o->scheduler.head || o->ends_due > 0);
}

/* Fills [at, end) with frames and notes them in `sent`. Returns the bytes used: 0 if there was nothing to
 * send after all, or no room for it. */
size_t outputs_fill(struct outputs *o, struct sent *sent, uint8_t *at, const uint8_t *end);

/* What became of an item that outputs_fill noted. */
void outputs_acked(struct outputs *o, const struct sent_item *item);
void outputs_lost(struct outputs *o, const struct sent_item *item);

/* Frames of the receiver. Those about streams that are no more are passed over. */
void outputs_stored(struct outputs *o, const struct frame_stored *frame, uint64_t now_ns);
void outputs_refused(struct outputs *o, const struct frame_refused *frame, uint64_t now_ns);
void outputs_credit(struct outputs *o, uint64_t session_credit);

/* Rests that are over end. */
void outputs_expired(struct outputs *o, uint64_t now_ns);

/* Rests end at `until_ns` at the latest. */
void outputs_hurry(struct outputs *o, uint64_t until_ns);

#endif
