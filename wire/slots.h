/* What a wire in mode webhook or batch sends when: a window over the records of its queue. No socket, no
 * clock, no record in it: positions, states and times.
 *
 *     freed ──[slot][slot][slot]…[slot]── end ──▶ records that no slot has yet
 *              head                 tail
 *
 * A slot is a record, or a batch of some: [start, end), one behind the other without a gap. They are sent in
 * order of their numbers as far as they can be, and given back (slots_free) in that order always.
 *
 *     READY    to be sent; those of the lowest number go first
 *     BLOCKED  behind a slot with the same key that is not done
 *     FLYING   sent, and not answered yet
 *     RESTING  refused; READY again at due_ns
 *     DEAD     refused too often: its owner is to be asked for to take it
 *     ASKED    he is; one slot at a time is
 *     DONE     delivered or taken
 *
 * Slots with the same key are sent one after the other: the second when the first is DONE, whatever became of
 * it meanwhile. With a limit of one slot all are sent one after the other. */
#ifndef PURE_WIRE_SLOTS_H
#define PURE_WIRE_SLOTS_H

#include "core/clock.h"
#include "core/record_queue.h"

#define SLOTS_PER_LANE 16   /* so far may a record be ahead of one that is refused, in requests of a lane */
#define SLOTS_MAX      1024 /* whatever the number of lanes */
#define SLOTS_NONE     UINT64_MAX

enum slot_state { SLOT_READY, SLOT_BLOCKED, SLOT_FLYING, SLOT_RESTING, SLOT_DEAD, SLOT_ASKED, SLOT_DONE };

struct slot {
    struct stream_position start, end;
    enum slot_state state;
    bool keyed;
    uint64_t key;      /* if keyed */
    uint64_t older;    /* the slot admitted before it whose key falls into the same place; SLOTS_NONE */
    uint64_t follower; /* the slot that is BLOCKED by this one; SLOTS_NONE */
    uint64_t due_ns;   /* RESTING */
    /* its owner's */
    uint32_t tries;    /* how often it was sent */
    uint32_t refusals; /* in a row */
    uint16_t status;   /* DEAD: of the last answer, and what that said */
    char reason[48];
};

struct slots {
    struct slot *ring; /* slot n is at [n % capacity] */
    uint64_t *newest;  /* [key % capacity]: the slot with such a key that was admitted last; SLOTS_NONE */
    uint32_t capacity; /* slots allocated */
    uint32_t limit;    /* slots at a time, 1 to capacity */
    uint64_t head;     /* the first slot that was not given back; never decreases */
    uint64_t tail;     /* behind the last one; head <= tail <= head + capacity */
    uint64_t first;    /* no slot below it is READY; head <= first <= tail */
    uint32_t ready;    /* how many are READY, */
    uint32_t resting;  /* RESTING, */
    uint32_t dead;     /* DEAD or ASKED */
    uint64_t due_ns;   /* of none that is RESTING it is later; NEVER if none is */
    struct stream_position end; /* of the last slot, where the next one begins */
};

/* How many slots a wire with that many lanes has. */
static inline uint32_t slots_limit(unsigned lanes)
{
    return lanes <= 1 ? 1 : (uint32_t)min_u64((uint64_t)lanes * SLOTS_PER_LANE, SLOTS_MAX);
}

/* 0 or -ENOMEM. */
int slots_init(struct slots *s, uint32_t limit);
void slots_dispose(struct slots *s);

/* Goes on in the memory of `other`, made by slots_init, if it has not enough of its own; `other` is to be
 * disposed of then, whatever is in it. All that rest, are BLOCKED or DEAD are READY or BLOCKED anew, keyed as
 * `rekey` says (NULL: as before). */
void slots_change(struct slots *s, struct slots *other,
                  bool (*rekey)(void *context, const struct slot *slot, uint64_t *key), void *context);

static inline struct slot *slots_at(const struct slots *s, uint64_t n)
{
    assert(n >= s->head && n < s->tail);
    return &s->ring[n % s->capacity];
}

static inline bool slots_empty(const struct slots *s)
{
    return s->head == s->tail;
}

static inline bool slots_full(const struct slots *s)
{
    return s->tail - s->head >= s->limit;
}

/* There are no slots: the next one begins at `position`, or later. */
void slots_start(struct slots *s, struct stream_position position);

/* A slot more, from the last one's end to `end`. Not when full. Returns its number. */
uint64_t slots_admit(struct slots *s, struct stream_position end, bool keyed, uint64_t key);

/* The slot to be sent next; SLOTS_NONE. */
uint64_t slots_next(struct slots *s);

void slots_fly(struct slots *s, uint64_t n);                   /* READY → FLYING */
void slots_again(struct slots *s, uint64_t n);                 /* FLYING → READY */
void slots_rest(struct slots *s, uint64_t n, uint64_t due_ns); /* FLYING → RESTING */
void slots_bury(struct slots *s, uint64_t n);                  /* FLYING → DEAD */
void slots_done(struct slots *s, uint64_t n);                  /* FLYING, ASKED → DONE */
void slots_ask(struct slots *s, uint64_t n);                   /* READY, BLOCKED, DEAD → ASKED */

/* The first slot in that state; SLOTS_NONE. */
uint64_t slots_find(const struct slots *s, enum slot_state state);

/* The last slot ends earlier: the records behind go into others. */
void slots_shrink(struct slots *s, uint64_t n, struct stream_position end);

/* Those that have rested until `now_ns` are READY. */
void slots_wake(struct slots *s, uint64_t now_ns);

/* None rests for longer than until `due_ns`. */
void slots_hurry(struct slots *s, uint64_t due_ns);

/* Gives back what is DONE, from the head on. True if something was: then it ended at `*to`. */
bool slots_free(struct slots *s, struct stream_position *to);

#endif
