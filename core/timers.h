/* Timers: a binary heap of deadlines, embedded in their owners. */
#ifndef PURE_CORE_TIMERS_H
#define PURE_CORE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    uint64_t due_ns; /* NEVER while not set */
    uint32_t place;  /* index in the heap + 1; 0 while not set */
    void (*fired)(struct timer *timer, uint64_t now_ns);
};

struct timers {
    struct timer **heap; /* heap[i] is due no later than heap[2i+1], heap[2i+2] */
    uint32_t count;
    uint32_t limit;
};

/* Room for `limit` timers, allocated here and never again. 0 or -ENOMEM. */
int timers_init(struct timers *t, uint32_t limit);
void timers_dispose(struct timers *t);

void timer_init(struct timer *timer, void (*fired)(struct timer *timer, uint64_t now_ns));

/* (Re)sets a timer; NEVER unsets it. A due time in the past is due now. Asserts that the limit is kept. */
void timer_set(struct timers *t, struct timer *timer, uint64_t due_ns);
void timer_unset(struct timers *t, struct timer *timer);

/* The earliest deadline, NEVER if there is none. */
uint64_t timers_next_ns(const struct timers *t);

/* Unsets and calls the timers due at `now_ns`, earliest first, at most as many as were set at the start: a
 * callback may set its timer again, even to a time in the past, without keeping this from returning. */
void timers_fire(struct timers *t, uint64_t now_ns);

#endif
