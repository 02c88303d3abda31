#include "core/timers.h"

#include "core/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int timers_init(struct timers *t, uint32_t limit)
{
    *t = (struct timers){.heap = calloc(limit, sizeof(struct timer *)), .limit = limit};
    return t->heap ? 0 : -ENOMEM;
}

void timers_dispose(struct timers *t)
{
    free(t->heap);
    *t = (struct timers){0};
}

void timer_init(struct timer *timer, void (*fired)(struct timer *, uint64_t))
{
    *timer = (struct timer){.due_ns = NEVER, .fired = fired};
}

static void put(struct timers *t, uint32_t at, struct timer *timer)
{
    t->heap[at] = timer;
    timer->place = at + 1;
}

static void sift_up(struct timers *t, uint32_t at, struct timer *timer)
{
    while (at > 0 && t->heap[(at - 1) / 2]->due_ns > timer->due_ns) {
        put(t, at, t->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(t, at, timer);
}

static void sift_down(struct timers *t, uint32_t at, struct timer *timer)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < t->count && t->heap[child + 1]->due_ns < t->heap[child]->due_ns)
            child++;
        if (child >= t->count || t->heap[child]->due_ns >= timer->due_ns)
            break;
        put(t, at, t->heap[child]);
        at = child;
    }
    put(t, at, timer);
}

/* Puts `timer` in the hole at `at`, whichever way it has to move. */
static void settle(struct timers *t, uint32_t at, struct timer *timer)
{
    if (at > 0 && t->heap[(at - 1) / 2]->due_ns > timer->due_ns)
        sift_up(t, at, timer);
    else
        sift_down(t, at, timer);
}

void timer_unset(struct timers *t, struct timer *timer)
{
    if (timer->place == 0)
        return;
    uint32_t at = timer->place - 1;
    timer->place = 0;
    timer->due_ns = NEVER;
    struct timer *moved = t->heap[--t->count];
    if (at < t->count)
        settle(t, at, moved);
}

void timer_set(struct timers *t, struct timer *timer, uint64_t due_ns)
{
    if (due_ns == NEVER) {
        timer_unset(t, timer);
        return;
    }
    if (timer->place == 0) {
        assert(t->count < t->limit);
        t->count++;
        timer->due_ns = due_ns;
        sift_up(t, t->count - 1, timer);
        return;
    }
    timer->due_ns = due_ns;
    settle(t, timer->place - 1, timer);
}

uint64_t timers_next_ns(const struct timers *t)
{
    return t->count ? t->heap[0]->due_ns : NEVER;
}

void timers_fire(struct timers *t, uint64_t now_ns)
{
    for (uint32_t most = t->count; most > 0 && t->count > 0 && t->heap[0]->due_ns <= now_ns; most--) {
        struct timer *timer = t->heap[0];
        timer_unset(t, timer);
        timer->fired(timer, now_ns);
    }
}
