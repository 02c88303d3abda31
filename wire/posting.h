/* Modes webhook and batch: requests that stand for themselves, each on a lane that has no other in flight.
 * slots.h has which is sent when; here it is put on a lane, and its answer is settled. Parts of the wire.
 *
 * Lanes are opened as they are needed: one for each slot that is ready and finds none, up to `concurrency`.
 * After a failure of the destination one request at a time tries it; each success lets one more, so that
 * their number doubles with each round of exchanges, until all may again. A wire begins like that, too.
 *
 * What is true of which lane is kept in bit sets: bit n is lanes[n]'s. */
#ifndef PURE_WIRE_POSTING_H
#define PURE_WIRE_POSTING_H

#include "wire/answer.h"
#include "wire/gzip.h"
#include "wire/lane.h"
#include "wire/rate.h"
#include "wire/slots.h"

struct wire;

struct posting {
    struct slots slots;
    struct rate rate;
    uint64_t ready;   /* may send a request now */
    uint64_t opening; /* on its way to a connection */
    uint64_t flying;  /* has a slot in flight: its `slot` */
    uint64_t current; /* what it does was begun after the destination's last failure: only of that it tells */
    unsigned allowed; /* how many of the current may be opening or flying */
    uint64_t
        suspect; /* number: one of the records behind the last slot, up to this, is refused; else below */
    struct gzip *gzip; /* owned; NULL: bodies are sent as they are */
    uint64_t batch_wait_ns;
    uint64_t seen_ns; /* when the first record behind the last slot was seen, or became the first; NEVER */
    size_t order_by_size; /* 0: no order */
    char order_by[WIRE_MEMBER_MAX];
};

/* As struct wire_ways says. */
void posting_look(struct wire *w, uint64_t now_ns);
void posting_go_on(struct wire *w, uint64_t now_ns);
void posting_answered(struct wire *w, uint64_t now_ns, struct lane *lane, uint64_t number,
                      const struct answer *answer);
bool posting_closed(struct wire *w, uint64_t now_ns, struct lane *lane);
void posting_rewind(struct wire *w);
void posting_settle_dead(struct wire *w);
uint64_t posting_due_ns(const struct wire *w, uint64_t now_ns);

/* Takes the options that are its own, but for slots. */
void posting_set(struct posting *p, const struct wire_options *options);

/* Goes on with what `made` (slots_init) has room for; `made` is to be disposed of then. Nothing is in flight.
 * In another mode than before all that is not freed begins anew. */
void posting_change(struct wire *w, struct slots *made, bool same_mode);

#endif
