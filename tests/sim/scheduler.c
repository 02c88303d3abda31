/* Who runs next: one of the loops that have something to do, by the seed; when none has, time jumps. */
#include "tests/sim/world.h"

void sim_add_loop(struct sim *sim, struct loop *loop)
{
    size_t room;
    sim->loops = sim_grow(sim->loops, sizeof(struct loop *), sim->loop_count, sim->loop_room, &room);
    sim->loop_room = (unsigned)room;
    sim->loops[sim->loop_count++] = loop;
}

void sim_remove_loop(struct sim *sim, struct loop *loop)
{
    unsigned i = 0;
    while (i < sim->loop_count && sim->loops[i] != loop)
        i++;
    assert(i < sim->loop_count && "the loop is of this world");
    sim->loop_count--;
    memmove(sim->loops + i, sim->loops + i + 1, (sim->loop_count - i) * sizeof(struct loop *));
}

static struct sim_thread *thread_of(struct io *io)
{
    return container_of(io, struct sim_thread, io);
}

/* Whether its wait, if it is in one, would end now. */
static bool awake(const struct sim *sim, struct sim_thread *t)
{
    int sleep = atomic_load_explicit(&t->io.sleep, memory_order_relaxed);
    return sleep != IO_ASLEEP || t->deadline_ns <= sim->now_ns || thread_ready(t);
}

/* A test may use a sleeping loop's things between runs, as its thread would: that counts, too. */
static bool runnable(const struct sim *sim, const struct loop *loop)
{
    return awake(sim, thread_of(loop->io)) || loop->first || loop->io->first || loop->io->cancels ||
           timers_next_ns(&loop->timers) <= sim->now_ns;
}

/* Its wait ends, and the loop goes round to the next one. */
static int step(struct sim *sim, struct loop *loop)
{
    struct sim_thread *t = thread_of(loop->io);
    t->deadline_ns = NEVER;
    io_woke(&t->io);
    loop->now_ns = sim->now_ns;
    return loop_step(loop);
}

/* One of the runnable, each with the same chance; NULL: none is. */
static struct loop *choose(struct sim *sim)
{
    struct loop *chosen = NULL;
    uint64_t seen = 0;
    for (unsigned i = 0; i < sim->loop_count; i++) {
        if (runnable(sim, sim->loops[i]) && random_below(&sim->random, ++seen) == 0)
            chosen = sim->loops[i];
    }
    return chosen;
}

/* When something happens next, if nobody does anything before. A deadline that has passed is that of a loop
 * which is paused. */
static uint64_t next_ns(const struct sim *sim)
{
    uint64_t next = sim_next_event_ns(sim);
    for (const struct sim_thread *t = sim->threads; t; t = t->next) {
        if (t->deadline_ns > sim->now_ns)
            next = min_u64(next, t->deadline_ns);
        next = min_u64(next, thread_next_ns(t));
    }
    for (unsigned i = 0; i < sim->loop_count; i++)
        next = min_u64(next, timers_next_ns(&sim->loops[i]->timers));
    return next;
}

enum sim_end sim_run(struct sim *sim, uint64_t until_ns, bool (*until)(void *context), void *context,
                     uint64_t max_steps)
{
    for (uint64_t steps = 0;;) {
        sim_happen(sim);
        if (until && until(context))
            return SIM_DONE;
        if (sim->now_ns >= until_ns)
            return SIM_TIME;
        struct loop *loop = choose(sim);
        if (loop) {
            if (steps++ == max_steps)
                return SIM_STEPS;
            if (step(sim, loop) < 0)
                return SIM_ERROR;
            continue;
        }
        uint64_t next = next_ns(sim);
        if (next == NEVER)
            return SIM_STUCK;
        sim->now_ns = max_u64(sim->now_ns, min_u64(next, until_ns));
    }
}

enum sim_end sim_run_until(struct sim *sim, bool (*until)(void *context), void *context)
{
    return sim_run(sim, sim->now_ns + 24 * 3600 * NS_PER_S, until, context, 10000000);
}

enum sim_end sim_run_for(struct sim *sim, uint64_t ns)
{
    uint64_t until_ns = sim->now_ns + ns;
    enum sim_end end = sim_run(sim, until_ns, NULL, NULL, 10000000);
    if (end != SIM_STUCK)
        return end;
    sim->now_ns = until_ns;
    return SIM_TIME;
}

void sim_pass(struct sim *sim, uint64_t ns)
{
    sim->now_ns += ns;
}

bool sim_advance(struct sim *sim)
{
    uint64_t next = next_ns(sim);
    for (struct sim_thread *t = sim->threads; t; t = t->next) {
        if (awake(sim, t))
            next = sim->now_ns;
    }
    if (next == NEVER)
        return false;
    sim->now_ns = max_u64(sim->now_ns, next);
    for (struct sim_thread *t = sim->threads; t; t = t->next) {
        if (t->deadline_ns <= sim->now_ns)
            t->deadline_ns = NEVER;
        io_woke(&t->io);
    }
    sim_happen(sim);
    return true;
}
