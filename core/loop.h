/* The loop: what every thread of the host is. It runs tasks; a task is an app in an owner, an outlet in the
 * sending loop, the front's queues in the front. One step, in this order:
 *
 *   1. take notices     other threads' posts make tasks runnable: before running, so that what was pushed
 * goes out in this step
 *   2. fire timers      which make tasks runnable, too
 *   3. run rounds       of the tasks that want one, in turn, each at most once a step and within its own
 * quota
 *   4. hand over, wait  all operations queued in 1-3 and 5 of the step before, and the wait until the
 * earliest timer, in one call; no wait while a task wants another round
 *   5. completions      into their owners' callbacks, a bounded batch: what is left makes the next wait
 * return at once
 *
 * Nothing waits anywhere else. A step is bounded: tasks x their quota + one batch of completions. */
#ifndef PURE_CORE_LOOP_H
#define PURE_CORE_LOOP_H

#include "core/board.h"
#include "core/timers.h"

struct task {
    /* One round, within the task's quota. True: it wants another without being asked. */
    bool (*run)(struct task *task, uint64_t now_ns);
    struct task *next;
    bool wanting; /* in the run list */
    uint32_t slot;
};

struct loop_counters {
    _Atomic uint64_t steps;
    _Atomic uint64_t rounds;
    _Atomic uint64_t notices; /* tasks made runnable by another thread */
};

struct loop {
    struct io *io;
    struct board board;
    struct timers timers;
    struct task **tasks;        /* by slot; NULL: free */
    struct task *first, **last; /* those that want a round */
    uint32_t wanting;           /* how many they are */
    uint64_t now_ns;            /* as of the last wait's end, also in the completions after it */
    struct loop_counters counters;
};

/* Room for `tasks` tasks and `timers` timers. 0 or -ENOMEM. */
int loop_init(struct loop *loop, struct io *io, uint32_t tasks, uint32_t timers);
void loop_dispose(struct loop *loop);

/* Gives the task a slot; posts to loop->board at task->slot then make it run. 0 or PE_FULL. Before the loop
 * runs, or on its thread. */
int loop_add(struct loop *loop, struct task *task);
void loop_remove(struct loop *loop, struct task *task);

/* On the loop's thread: the task's round is due in the next phase 3. */
void loop_want(struct loop *loop, struct task *task);

/* One step. 0 or the negative errno of a wait that cannot go on. */
int loop_step(struct loop *loop);

#endif
