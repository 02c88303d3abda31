/* The loop: its phases, the fairness of its rounds, notices of other loops. On the simulated seam. */
#include "tests/sim/sim.h"

#include "core/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct world {
    struct sim *sim;
    struct loop loop;
};

static void world_open(struct world *w, uint32_t tasks)
{
    w->sim = sim_new(1);
    assert_int_equal(loop_init(&w->loop, sim_io(w->sim, NULL), tasks, 4), 0);
    sim_add_loop(w->sim, &w->loop);
}

static void world_close(struct world *w)
{
    sim_remove_loop(w->sim, &w->loop);
    loop_dispose(&w->loop);
    sim_free(w->sim);
}

/* A task that wants `rounds` rounds each time it is asked. */
struct worker {
    struct task task;
    unsigned rounds, made;
    uint64_t at_ns;
};

static bool work(struct task *task, uint64_t now_ns)
{
    struct worker *worker = container_of(task, struct worker, task);
    worker->made++;
    worker->at_ns = now_ns;
    return worker->rounds > 0 && --worker->rounds > 0;
}

static void worker_add(struct world *w, struct worker *worker, unsigned rounds)
{
    *worker = (struct worker){.task.run = work, .rounds = rounds};
    assert_int_equal(loop_add(&w->loop, &worker->task), 0);
}

static void each_task_gets_one_round_a_step(void **state)
{
    (void)state;
    struct world w;
    struct worker busy, brief;
    world_open(&w, 64);
    worker_add(&w, &busy, 10);
    worker_add(&w, &brief, 1);
    loop_want(&w.loop, &busy.task);
    loop_want(&w.loop, &busy.task); /* once is enough */
    loop_want(&w.loop, &brief.task);
    for (unsigned step = 1; step <= 12; step++) {
        assert_int_equal(loop_step(&w.loop), 0);
        assert_int_equal(busy.made, step < 10 ? step : 10);
        assert_int_equal(brief.made, 1);
    }
    assert_int_equal(counter_read(&w.loop.counters.rounds), 11);
    assert_int_equal(counter_read(&w.loop.counters.steps), 12);
    world_close(&w);
}

static void a_loop_whose_task_wants_a_round_does_not_sleep(void **state)
{
    (void)state;
    struct world w;
    struct worker busy;
    world_open(&w, 64);
    worker_add(&w, &busy, 3);
    loop_want(&w.loop, &busy.task);
    assert_int_equal(loop_step(&w.loop), 0);
    assert_int_equal(loop_step(&w.loop), 0);
    assert_int_equal(counter_read(&w.loop.io->counters.sleeps), 0);
    assert_int_equal(loop_step(&w.loop), 0);
    assert_int_equal(counter_read(&w.loop.io->counters.sleeps), 1);
    world_close(&w);
}

static void a_notice_makes_its_task_run_and_wakes_once_only_a_sleeper(void **state)
{
    (void)state;
    struct world w;
    struct worker workers[3];
    world_open(&w, 64);
    for (unsigned i = 0; i < 3; i++)
        worker_add(&w, &workers[i], 0);
    board_post(&w.loop.board, workers[0].task.slot); /* not asleep yet: no wake */
    assert_int_equal(counter_read(&w.loop.io->counters.wakes), 0);
    assert_int_equal(sim_run(w.sim, NEVER, NULL, NULL, 100), SIM_STUCK);
    assert_int_equal(workers[0].made, 1);
    for (unsigned i = 0; i < 1000; i++)
        board_post(&w.loop.board, workers[i % 2].task.slot);
    assert_int_equal(counter_read(&w.loop.io->counters.wakes), 1);
    assert_int_equal(sim_run(w.sim, NEVER, NULL, NULL, 100), SIM_STUCK);
    assert_int_equal(workers[0].made, 2);
    assert_int_equal(workers[1].made, 1);
    assert_int_equal(workers[2].made, 0);
    assert_int_equal(counter_read(&w.loop.counters.notices), 3);
    world_close(&w);
}

/* Two loops that post to each other in turn. */
struct player {
    struct loop loop;
    struct task task;
    struct player *other;
    unsigned hits;
};

static bool hit(struct task *task, uint64_t now_ns)
{
    struct player *p = container_of(task, struct player, task);
    (void)now_ns;
    if (++p->hits < 1000)
        board_post(&p->other->loop.board, p->other->task.slot);
    return false;
}

static bool game_over(void *context)
{
    return ((struct player *)context)->hits == 1000;
}

static void loops_wake_each_other_and_no_notice_is_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct sim *sim = sim_new(seed);
        struct player players[2];
        for (unsigned i = 0; i < 2; i++) {
            players[i] = (struct player){.task.run = hit, .other = &players[1 - i]};
            assert_int_equal(loop_init(&players[i].loop, sim_io(sim, NULL), 1, 1), 0);
            assert_int_equal(loop_add(&players[i].loop, &players[i].task), 0);
            sim_add_loop(sim, &players[i].loop);
        }
        board_post(&players[0].loop.board, players[0].task.slot);
        assert_int_equal(sim_run_until(sim, game_over, &players[0]), SIM_DONE);
        for (unsigned i = 0; i < 2; i++) {
            sim_remove_loop(sim, &players[i].loop);
            loop_dispose(&players[i].loop);
        }
        sim_free(sim);
    }
}

static void the_table_of_tasks_is_bounded_and_slots_are_reused(void **state)
{
    (void)state;
    struct world w;
    struct worker workers[65];
    world_open(&w, 1); /* rounded up to 64 */
    for (unsigned i = 0; i < 64; i++)
        worker_add(&w, &workers[i], 0);
    assert_int_equal(loop_add(&w.loop, &workers[64].task), PE_FULL);
    loop_remove(&w.loop, &workers[10].task);
    worker_add(&w, &workers[64], 0);
    assert_int_equal(workers[64].task.slot, 10);
    world_close(&w);
}

static void a_removed_task_does_not_run_and_its_notices_are_nothing(void **state)
{
    (void)state;
    struct world w;
    struct worker workers[3];
    world_open(&w, 64);
    for (unsigned i = 0; i < 3; i++) {
        worker_add(&w, &workers[i], 1);
        loop_want(&w.loop, &workers[i].task);
    }
    loop_remove(&w.loop, &workers[2].task); /* the last in line */
    loop_remove(&w.loop, &workers[0].task); /* the first */
    board_post(&w.loop.board, workers[0].task.slot);
    struct worker late;
    worker_add(&w, &late, 1); /* takes slot 0, and with it the notice: one round too many harms nobody */
    loop_want(&w.loop, &late.task);
    assert_int_equal(sim_run(w.sim, NEVER, NULL, NULL, 100), SIM_STUCK);
    assert_int_equal(workers[0].made, 0);
    assert_int_equal(workers[1].made, 1);
    assert_int_equal(workers[2].made, 0);
    assert_int_equal(late.made, 1);
    loop_remove(&w.loop, &workers[1].task);
    board_post(&w.loop.board, workers[1].task.slot);
    assert_int_equal(sim_run(w.sim, NEVER, NULL, NULL, 100), SIM_STUCK);
    assert_int_equal(workers[1].made, 1);
    world_close(&w);
}

/* A task that removes another one from inside its round. */
struct remover {
    struct task task;
    struct loop *loop;
    struct task *victim;
};

static bool remove_other(struct task *task, uint64_t now_ns)
{
    struct remover *r = container_of(task, struct remover, task);
    (void)now_ns;
    loop_remove(r->loop, r->victim);
    return false;
}

static void a_task_may_remove_one_that_waits_for_its_round(void **state)
{
    (void)state;
    struct world w;
    struct worker victim;
    world_open(&w, 64);
    struct remover remover = {.task.run = remove_other, .loop = &w.loop, .victim = &victim.task};
    assert_int_equal(loop_add(&w.loop, &remover.task), 0);
    worker_add(&w, &victim, 1);
    loop_want(&w.loop, &remover.task);
    loop_want(&w.loop, &victim.task);
    assert_int_equal(sim_run(w.sim, NEVER, NULL, NULL, 100), SIM_STUCK);
    assert_int_equal(victim.made, 0);
    world_close(&w);
}

/* A read that completes long after the loop fell asleep notes what time the loop believes it is. */
struct reader {
    struct io_op op;
    struct loop *loop;
    uint64_t seen_ns;
    uint8_t byte;
};

static void read_done(struct io_op *op, int result, bool more)
{
    struct reader *r = container_of(op, struct reader, op);
    assert_int_equal(result, 1);
    assert_false(more);
    r->seen_ns = r->loop->now_ns;
}

static void put_a_byte(void *context)
{
    struct world *w = context;
    sim_pipe_put(w->sim, SIM_FIRST_FD, "x", 1);
}

static void completions_see_the_time_of_the_end_of_the_wait(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, 1);
    struct reader r = {.loop = &w.loop};
    assert_int_equal(sim_pipe(w.sim, 10), SIM_FIRST_FD);
    io_prepare_memory(&r.op, IO_READ, SIM_FIRST_FD, &r.byte, 1, read_done);
    io_queue(w.loop.io, &r.op);
    sim_at(w.sim, SIM_START_NS + 3600 * NS_PER_S, put_a_byte, &w);
    assert_int_equal(sim_run(w.sim, NEVER, NULL, NULL, 100), SIM_STUCK);
    assert_int_equal(r.seen_ns, SIM_START_NS + 3600 * NS_PER_S);
    world_close(&w);
}

/* Without the scheduler's help: the seam itself tells the loop. */
static void the_seam_sets_the_loops_clock_before_completions(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, 1);
    struct reader r = {.loop = &w.loop};
    sim_pipe(w.sim, 10);
    io_prepare_memory(&r.op, IO_READ, SIM_FIRST_FD, &r.byte, 1, read_done);
    io_queue(w.loop.io, &r.op);
    assert_int_equal(loop_step(&w.loop), 0);
    sim_at(w.sim, SIM_START_NS + 5, put_a_byte, &w);
    assert_true(sim_advance(w.sim));
    w.loop.now_ns = 0;
    assert_int_equal(loop_step(&w.loop), 0);
    assert_int_equal(r.seen_ns, SIM_START_NS + 5);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_gets_one_round_a_step),
        cmocka_unit_test(a_loop_whose_task_wants_a_round_does_not_sleep),
        cmocka_unit_test(a_notice_makes_its_task_run_and_wakes_once_only_a_sleeper),
        cmocka_unit_test(loops_wake_each_other_and_no_notice_is_lost),
        cmocka_unit_test(the_table_of_tasks_is_bounded_and_slots_are_reused),
        cmocka_unit_test(a_removed_task_does_not_run_and_its_notices_are_nothing),
        cmocka_unit_test(a_task_may_remove_one_that_waits_for_its_round),
        cmocka_unit_test(completions_see_the_time_of_the_end_of_the_wait),
        cmocka_unit_test(the_seam_sets_the_loops_clock_before_completions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
