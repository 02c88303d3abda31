/* Who fills the outlet of raw-link, as an app in its owner would: batches of records, each batch one push,
 * and none while the outlet is over its mark. A task of a loop: of the sending one, or of one that has a
 * thread of its own. */
#ifndef PURE_EXPERIMENTS_RAW_PRODUCER_H
#define PURE_EXPERIMENTS_RAW_PRODUCER_H

#include "core/loop.h"
#include "core/outlet.h"
#include "experiments/raw/raw.h"

struct producer {
    struct task task;
    struct outlet *outlet;
    const struct raw_run *run;
    struct raw_sent *sent;
    /* Called on its loop, when the untimed records are stored and when all are. */
    void (*phase)(void *context, bool all);
    void *context;
    uint64_t queued;    /* records; <= goal */
    uint64_t goal;      /* of this phase: run->warm, then all */
    uint64_t pushed_ns; /* one in flight: when the last was; 0: none was */
    struct raw_trips trips;
    bool done;
    uint8_t record[RAW_RECORD_MAX];
};

/* Joins it to the loop, and the outlet to it. 0 or -1 after a line on stderr. */
int producer_init(struct producer *p, const struct raw_run *run, struct raw_sent *sent, struct outlet *outlet,
                  struct loop *loop);

#endif
