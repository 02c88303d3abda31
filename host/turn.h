/* A turn: what an app sends while it is given a bounded batch of events, and how that takes effect or is
 * undone.
 *
 * A turn consists of units. A unit takes effect whole or not at all: one event, or all events of one request.
 * Its sends lie behind each outlet's published position, with a mark where the unit began; undoing a unit
 * sets the tail back to the mark. Committing the turn publishes and pushes each outlet it touched, once. */
#ifndef PURE_HOST_TURN_H
#define PURE_HOST_TURN_H

#include "host/app.h"
#include "host/backlog.h"

#define TURN_SENT_BYTES (1u << 20) /* of a journaled turn: it ends then */

/* What one unit of a journaled turn may send is what the queues of its app take together, and so much more.
 * Not a byte of it can be written before the unit has ended, so all of it is in memory at once, and once more
 * in the batch: a small board bears that, a backlog (1 GiB) it does not. The same whether receivers are there
 * or not, so that no event is refused for want of a receiver that it would not be refused for otherwise; and
 * no less than without a journal, where queues are all there is. */
#define UNIT_SENT_BYTES (16u << 20)
/* … but no more than this, which leaves room in the turn's frame for the turn's events. */
#define UNIT_SENT_MAX (FRAME_MAX - FRAME_MAX / 4)

struct turn_outlet {
    struct outlet *outlet;    /* NULL: the configuration leaves this output out */
    struct backlog *backlog;  /* NULL: the app's turns are not journaled */
    struct backlog_mark mark; /* its tail when unit `unit` first sent to it */
    uint64_t unit;
    bool touched; /* in this turn */
    bool waiting; /* it was over 75 %; until it is at 25 % its app is not run */
};

struct pure_turn {
    struct turn_outlet *outlets; /* by output index */
    uint32_t output_count;
    uint32_t waiting;    /* how many outlets are waited for */
    uint64_t unit;       /* counts up; never 0 in a turn */
    uint64_t sends;      /* of this turn */
    uint64_t sent_bytes; /* framed, of the turn, if it is journaled */
    uint64_t unit_sent;  /* framed, of the unit, likewise: at most turn_unit_most */
    uint64_t queues;     /* bytes that the queues of its outlets take */
    bool replaying;      /* events are given again to rebuild the state: nothing is sent */
    bool sparing;        /* its units must leave an eighth of each outlet free */
    bool over; /* an outlet this turn sent to is over 75 %, or it has sent enough: the turn should end */
    int error; /* the first failed send of the unit */
    uint32_t failed_output; /* of `error` */
    size_t failed_bytes;    /* of the record that `error` is about */
    uint64_t needs; /* PE_FULL: framed bytes that the unit sent to `full`, the failed record included */
    struct turn_outlet *full; /* that of a PE_FULL */
};

/* `output_count` outlets, all left out. 0 or -ENOMEM. */
int turn_init(struct pure_turn *turn, uint32_t output_count);
void turn_dispose(struct pure_turn *turn);

/* The output leads to the outlet. `backlog` NULL: the app's turns are not journaled. */
void turn_join(struct pure_turn *turn, uint32_t output, struct outlet *outlet, struct backlog *backlog);

/* The most framed bytes that one unit may send, if the app's turns are journaled. */
static inline uint64_t turn_unit_most(const struct pure_turn *turn)
{
    return min_u64(UNIT_SENT_BYTES + turn->queues, UNIT_SENT_MAX);
}

static inline void turn_begin_unit(struct pure_turn *turn)
{
    turn->unit++;
    turn->error = 0;
    turn->unit_sent = 0;
    turn->full = NULL;
}

/* What counts for back-pressure: held bytes, and the most there may be. */
static inline uint64_t turn_capacity(const struct turn_outlet *to)
{
    return to->backlog ? backlog_capacity(to->backlog) : to->outlet->queue.capacity;
}

/* The key of the configuration that says how much that is. */
static inline const char *turn_capacity_key(const struct turn_outlet *to)
{
    return to->backlog && to->backlog->options.limit > 0 ? "backlog" : "queue";
}

/* Whether at most `most` bytes are held; if not, the app's task runs once they may be. */
bool turn_within(struct turn_outlet *to, uint64_t most);

/* What the turn's units must leave free. */
static inline uint64_t turn_spare(const struct pure_turn *turn, const struct turn_outlet *to)
{
    return turn->sparing ? turn_capacity(to) / 8 : 0;
}

/* The most bytes that the outlet may hold by this turn's units. */
static inline uint64_t turn_room(const struct pure_turn *turn, const struct turn_outlet *to)
{
    return turn_capacity(to) - turn_spare(turn, to);
}

/* Takes back the unit's sends. */
void turn_undo_unit(struct pure_turn *turn);

/* Publishes and pushes what was sent, but for outlets with a backlog, and begins to wait for outlets that are
 * over 75 %. Returns to how many outlets the turn has sent. */
uint32_t turn_commit(struct pure_turn *turn);

/* Whether the app still has to wait for an outlet to come down to 25 %; a notice to the app follows if so. */
bool turn_waits(struct pure_turn *turn);

#endif
