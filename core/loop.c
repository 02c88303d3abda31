#include "core/loop.h"

#include "core/error.h"

#include <errno.h>
#include <stdlib.h>

int loop_init(struct loop *loop, struct io *io, uint32_t tasks, uint32_t timers)
{
    *loop = (struct loop){.io = io};
    loop->last = &loop->first;
    int error = board_init(&loop->board, io, tasks);
    if (error == 0)
        error = timers_init(&loop->timers, timers);
    if (error == 0 && !(loop->tasks = calloc(loop->board.slots, sizeof *loop->tasks)))
        error = -ENOMEM;
    if (error < 0)
        loop_dispose(loop);
    else
        loop->now_ns = io_now_ns(io);
    io->clock_ns = error == 0 ? &loop->now_ns : NULL;
    return error;
}

void loop_dispose(struct loop *loop)
{
    free(loop->tasks);
    loop->tasks = NULL;
    timers_dispose(&loop->timers);
    board_dispose(&loop->board);
}

int loop_add(struct loop *loop, struct task *task)
{
    for (uint32_t slot = 0; slot < loop->board.slots; slot++) {
        if (loop->tasks[slot])
            continue;
        loop->tasks[slot] = task;
        task->slot = slot;
        task->wanting = false;
        return 0;
    }
    return PE_FULL;
}

void loop_remove(struct loop *loop, struct task *task)
{
    assert(loop->tasks[task->slot] == task);
    loop->tasks[task->slot] = NULL;
    if (!task->wanting)
        return;
    struct task **at = &loop->first;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    if (loop->last == &task->next)
        loop->last = at;
    loop->wanting--;
    task->wanting = false;
}

void loop_want(struct loop *loop, struct task *task)
{
    if (task->wanting)
        return;
    task->wanting = true;
    loop->wanting++;
    task->next = NULL;
    *loop->last = task;
    loop->last = &task->next;
}

static void take_notices(struct loop *loop)
{
    for (uint32_t word = 0; word < loop->board.slots / 64; word++) {
        for (uint64_t bits = board_take(&loop->board, word); bits; bits &= bits - 1) {
            struct task *task = loop->tasks[word * 64 + (uint32_t)__builtin_ctzll(bits)];
            if (!task)
                continue; /* removed since it was posted to */
            counter_add(&loop->counters.notices, 1);
            loop_want(loop, task);
        }
    }
}

static struct task *take_first(struct loop *loop)
{
    struct task *task = loop->first;
    loop->first = task->next;
    if (!loop->first)
        loop->last = &loop->first;
    loop->wanting--;
    task->wanting = false;
    return task;
}

/* Each task that wants a round now gets one; those that want another, or come to want one meanwhile, wait in
 * line for the next step, behind the completions of this one. */
static void run_rounds(struct loop *loop)
{
    for (uint32_t rounds = loop->wanting; rounds > 0 && loop->first; rounds--) {
        struct task *task = take_first(loop);
        counter_add(&loop->counters.rounds, 1);
        if (task->run(task, loop->now_ns))
            loop_want(loop, task);
    }
}

int loop_step(struct loop *loop)
{
    counter_add(&loop->counters.steps, 1);
    take_notices(loop);
    timers_fire(&loop->timers, loop->now_ns);
    run_rounds(loop);
    uint64_t deadline_ns = loop->first ? 0 : timers_next_ns(&loop->timers);
    int error = io_wait(loop->io, deadline_ns);
    return error < 0 ? error : 0;
}
