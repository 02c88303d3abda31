/* The writer on disks that are full, slow, failing, or lose their power; and stopping in every state. */
#include "tests/unit/fewer.h"
#include "tests/unit/writer_world.h"

#include "core/error.h"

#include <errno.h>

#define KIB         1024
#define CRASH_SEEDS FEWER(200)

/* Commits until there is no room any more. */
static void fill_up(struct writer_world *w, size_t bytes)
{
    for (unsigned i = 0; i < 10000 && journal_room(&w->writer, &w->apps[0].waiter); i++) {
        world_commit(&w->apps[i % WORLD_APPS], bytes, 0);
        world_run(w, 20 * NS_PER_MS);
    }
}

/* --- full --- */

static void a_full_disk_makes_apps_wait_until_it_is_freed(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    w.policy.capacity_bytes = 7 * WORLD_SEGMENT / 2;
    world_set_policy(&w);
    fill_up(&w, 50 * KIB);
    world_run_ready(&w);
    fill_up(&w, 50 * KIB);
    assert_int_equal(world_condition(&w), JOURNAL_FULL);
    assert_int_equal(w.begun, 3);
    for (unsigned i = 0; i < WORLD_APPS; i++)
        assert_int_equal(w.apps[i].durable_sequence, w.apps[i].sequence);
    unsigned told = w.apps[0].told_room;
    world_run(&w, 60 * NS_PER_S);
    assert_int_equal(w.apps[0].told_room, told);
    assert_int_equal(world_log_lines(&w, "no place on the disk"), 1);
    assert_true(counter_read(&w.writer.counters.full) > 50);
    w.policy.capacity_bytes = 0;
    world_set_policy(&w);
    world_run(&w, 2 * NS_PER_S);
    assert_int_equal(world_condition(&w), JOURNAL_OK);
    assert_int_equal(w.apps[0].told_room, told + 1);
    assert_int_equal(world_log_lines(&w, "place on the disk again, after 6"), 1);
    assert_true(journal_room(&w.writer, &w.apps[0].waiter));
    world_commit(&w.apps[0], 50 * KIB, 0);
    world_run(&w, 20 * NS_PER_MS);
    assert_int_equal(w.apps[0].durable_sequence, w.apps[0].sequence);
    world_close(&w);
}

/* What frees space needs a little of it: the reserve. Then all goes on, with no help from outside. */
static void a_full_disk_empties_itself(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    w.policy.capacity_bytes = 7 * WORLD_SEGMENT / 2;
    world_set_policy(&w);
    world_run_ready(&w);
    fill_up(&w, 50 * KIB);
    assert_false(journal_room(&w.writer, &w.apps[0].waiter));
    unsigned small = 0;
    for (; journal_reserve(&w.writer, KIB) && small < 1000; small++) {
        world_commit(&w.apps[1], KIB - 200, 0);
        world_run(&w, 20 * NS_PER_MS);
        assert_int_equal(w.apps[1].durable_sequence, w.apps[1].sequence);
    }
    assert_true(small * KIB >= JOURNAL_RESERVE_BYTES / 2 - KIB && small < 1000);
    assert_int_equal(world_condition(&w), JOURNAL_FULL);
    store_release(&w.store, w.held[0]);
    journal_released(&w.writer);
    world_run(&w, 20 * NS_PER_MS); /* at once: not only at the next retry */
    assert_int_equal(world_condition(&w), JOURNAL_OK);
    assert_true(journal_room(&w.writer, &w.apps[0].waiter));
    world_stop(&w);
    sim_free(w.sim);
}

/* The disk has room for less than a segment when the process starts. */
static void a_start_on_a_full_disk_can_still_let_segments_go(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 4 * WORLD_SEGMENT);
    w.policy.capacity_bytes = 10 * WORLD_SEGMENT;
    world_set_policy(&w);
    world_run_ready(&w);
    fill_up(&w, 500 * KIB);
    assert_int_equal(w.begun, 2);
    world_stop(&w);
    world_start(&w);
    world_run(&w, 5 * NS_PER_S);
    assert_int_equal(world_condition(&w), JOURNAL_FULL);
    assert_false(journal_room(&w.writer, &w.apps[0].waiter));
    assert_true(journal_reserve(&w.writer, KIB));
    world_commit(&w.apps[1], KIB - 200, 0);
    world_run(&w, 20 * NS_PER_MS);
    assert_int_equal(w.apps[1].durable_sequence, w.apps[1].sequence);
    assert_int_equal(w.begun, 3);
    world_run(&w, 20 * NS_PER_S);
    assert_int_equal(world_condition(&w), JOURNAL_FULL);
    store_release(&w.store, w.held[0]);
    journal_released(&w.writer);
    world_run(&w, 100 * NS_PER_MS);
    assert_int_equal(world_condition(&w), JOURNAL_OK);
    assert_true(journal_room(&w.writer, &w.apps[0].waiter));
    world_stop(&w);
    sim_free(w.sim);
}

static void a_write_without_space_is_repeated_unchanged(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    w.policy.no_allocate = true;
    world_set_policy(&w);
    world_run_ready(&w);
    world_commit(&w.apps[0], 10, 0);
    world_run(&w, 20 * NS_PER_MS);
    uint64_t at = w.writer.at;
    w.policy.no_space = 1000;
    world_set_policy(&w);
    world_commit(&w.apps[1], 10, 0);
    world_run(&w, 20 * NS_PER_MS);
    world_commit(&w.apps[2], 10, 0);
    world_run(&w, 10 * NS_PER_S);
    assert_int_equal(world_condition(&w), JOURNAL_FULL);
    assert_int_equal(w.apps[1].placed, 1);
    assert_int_equal(w.apps[1].durable + w.apps[2].placed, 0);
    assert_false(journal_room(&w.writer, &w.apps[3].waiter));
    w.policy.no_space = 0;
    world_set_policy(&w);
    world_run(&w, 2 * NS_PER_S);
    assert_int_equal(w.apps[1].offset, at);
    assert_int_equal(w.apps[1].durable + w.apps[2].durable, 2);
    assert_int_equal(w.apps[3].told_room, 1);
    assert_int_equal(world_condition(&w), JOURNAL_OK);
    world_close(&w);
}

/* --- failing --- */

static void an_error_ends_the_store_for_good(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    world_commit(&w.apps[0], 10, 0);
    world_run(&w, 20 * NS_PER_MS);
    w.policy.write_error = 1000;
    world_set_policy(&w);
    world_commit(&w.apps[0], 10, 0);
    world_commit(&w.apps[1], 10, 0);
    world_run(&w, 500 * NS_PER_US);
    assert_int_equal(w.apps[1].placed, 1);
    world_commit(&w.apps[1], 10, 0);
    world_commit(&w.apps[2], 10, NEVER);
    world_run(&w, 20 * NS_PER_MS);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(w.apps[i].failed, 1);
        assert_int_equal(w.apps[i].error, PE_JOURNAL_FAILED);
    }
    assert_int_equal(w.apps[0].durable, 1);
    assert_int_equal(world_condition(&w), JOURNAL_FAILED);
    assert_int_equal(atomic_load(&w.writer.error), -EIO);
    assert_int_equal(world_log_lines(&w, "writing failed"), 1);
    w.policy.write_error = 0; /* it works again: too late */
    world_set_policy(&w);
    uint64_t syncs = sim_disk_syncs(w.disk);
    for (unsigned i = 0; i < WORLD_APPS; i++)
        assert_int_equal(w.apps[i].failed, 1); /* those that have never joined, too */
    journal_join(&w.writer, &w.apps[3].member, 0);
    journal_join(&w.writer, &w.apps[0].member, 0);
    assert_false(journal_room(&w.writer, &w.apps[3].waiter));
    assert_false(journal_reserve(&w.writer, 1));
    journal_released(&w.writer);
    world_run(&w, 100 * NS_PER_S);
    assert_int_equal(w.apps[3].failed, 1);
    assert_int_equal(w.apps[0].failed, 1);
    assert_int_equal(w.apps[3].told_room, 0);
    world_stop(&w);
    assert_int_equal(sim_disk_syncs(w.disk), syncs);
    world_check_store(&w);
    store_close(&w.store);
    sim_free(w.sim);
}

/* Nobody knows what is there: a start is to find all of it. */
static void nothing_is_unlinked_once_the_store_has_failed(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    world_run_ready(&w);
    for (unsigned i = 0; w.begun < 3 || !world_is_ready(&w); i++) {
        world_commit(&w.apps[0], 50 * KIB, 0);
        world_run(&w, 20 * NS_PER_MS);
        assert_true(i < 100);
    }
    unsigned files = world_files(&w);
    w.policy.write_error = 1000;
    world_set_policy(&w);
    world_commit(&w.apps[0], 10, 0);
    world_run(&w, 20 * NS_PER_MS);
    assert_int_equal(world_condition(&w), JOURNAL_FAILED);
    w.policy.write_error = 0;
    world_set_policy(&w);
    store_release(&w.store, w.held[0]);
    journal_released(&w.writer);
    world_run(&w, 10 * NS_PER_S);
    world_stop(&w);
    assert_int_equal(world_files(&w), files);
    sim_free(w.sim);
}

static bool is_syncing(void *context)
{
    const struct io_op *op = &((struct writer_world *)context)->writer.segments->making.op;
    return op->in_flight && op->kind == IO_FILE_SYNC;
}

static void a_sync_that_fails_ends_the_store_too(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_commit(&w.apps[0], 10, 0);
    assert_int_equal(sim_run_until(w.sim, is_syncing, &w), SIM_DONE);
    w.policy.write_error = 1000;
    world_set_policy(&w);
    world_run(&w, 20 * NS_PER_MS);
    assert_int_equal(world_condition(&w), JOURNAL_FAILED);
    assert_int_equal(w.apps[0].failed, 1);
    world_stop(&w);
    sim_free(w.sim);
}

static void whoever_waits_for_room_is_told_that_the_store_failed(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    world_commit(&w.apps[0], JOURNAL_BATCH_BYTES, 0);
    assert_false(journal_room(&w.writer, &w.apps[1].waiter));
    w.policy.write_error = 1000;
    w.policy.sync_min_ns = w.policy.sync_max_ns = NS_PER_S;
    world_set_policy(&w);
    world_run(&w, 20 * NS_PER_MS);
    assert_int_equal(w.apps[1].told_room, 1); /* handed over: the next batch has room */
    world_add(&w.apps[2], JOURNAL_BATCH_BYTES);
    assert_false(journal_room(&w.writer, &w.apps[1].waiter));
    world_run(&w, 2 * NS_PER_S);
    assert_int_equal(w.writer.failure, PE_JOURNAL_FAILED);
    assert_int_equal(w.apps[1].told_room, 2);
    world_stop(&w);
    sim_free(w.sim);
}

/* Whatever operation of the making fails, first with EIO, it says so, and apps never begin. */
static void a_disk_that_is_read_only_lets_nothing_begin(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    w.policy.read_only = true;
    world_set_policy(&w);
    assert_false(journal_room(&w.writer, &w.apps[0].waiter));
    world_run(&w, 10 * NS_PER_S);
    assert_int_equal(world_condition(&w), JOURNAL_FULL);
    assert_int_equal(atomic_load(&w.writer.error), -EROFS);
    w.policy.read_only = false;
    world_set_policy(&w);
    world_run(&w, 2 * NS_PER_S);
    assert_int_equal(world_condition(&w), JOURNAL_OK);
    assert_int_equal(w.apps[0].told_room, 1);
    world_close(&w);
}

/* In mid-life, too: what was being written is repeated when the file system is writable again. */
static void a_disk_that_becomes_read_only_goes_on_when_it_is_not(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    world_run_ready(&w);
    w.policy.read_only = true;
    world_set_policy(&w);
    world_commit(&w.apps[0], 50 * KIB, 0);
    world_run(&w, 10 * NS_PER_S);
    assert_int_equal(world_condition(&w), JOURNAL_FULL);
    assert_int_equal(w.apps[0].durable_sequence, 0);
    w.policy.read_only = false;
    world_set_policy(&w);
    world_run(&w, 2 * NS_PER_S);
    assert_int_equal(world_condition(&w), JOURNAL_OK);
    assert_int_equal(w.apps[0].durable_sequence, w.apps[0].sequence);
    world_close(&w);
}

static void nothing_is_left_of_segments_that_could_not_be_made(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(50); seed++) {
        struct writer_world w;
        world_open(&w, seed, WORLD_SEGMENT);
        w.policy.no_space = 600;
        world_set_policy(&w);
        world_run(&w, 20 * NS_PER_S);
        journal_stop(&w.writer);
        world_stop(&w);
        assert_int_equal(sim_disk_used(w.disk), 0);
        sim_free(w.sim);
    }
}

/* --- short, slow --- */

static void short_writes_go_on(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    w.policy.short_write = 800;
    world_set_policy(&w);
    world_run_ready(&w);
    for (unsigned i = 0; i < 60; i++) {
        world_commit(&w.apps[i % WORLD_APPS], 60 * KIB, 0);
        world_run(&w, 50 * NS_PER_MS);
    }
    assert_int_equal(world_writes(&w), 60);
    assert_true(w.begun > 3);
    world_close(&w);
}

static void a_slow_disk_is_told_of_once_in_a_while(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    w.policy.sync_min_ns = w.policy.sync_max_ns = 2 * NS_PER_S;
    world_set_policy(&w);
    for (unsigned i = 0; i < 20; i++) {
        world_commit(&w.apps[0], 10, 0);
        world_run(&w, 3 * NS_PER_S);
    }
    assert_int_equal(world_log_lines(&w, "a write took 2.0 s (1 "), 1);
    world_commit(&w.apps[0], 10, 0);
    world_run(&w, 3 * NS_PER_S);
    assert_int_equal(world_log_lines(&w, "a write took 2.0 s (20 "), 1);
    assert_int_equal(world_log_lines(&w, "a write took"), 2);
    assert_int_equal(counter_read(&w.writer.counters.slowest_ns) / (2 * NS_PER_S), 1);
    assert_int_equal(counter_read(&w.writer.counters.wait_ns) / (42 * NS_PER_S), 1);
    world_close(&w);
}

/* --- stopping --- */

static void stopping_hands_over_what_there_is(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    world_commit(&w.apps[0], 10, NEVER);
    world_commit(&w.apps[1], 10, 0);
    world_run(&w, 500 * NS_PER_US);
    world_commit(&w.apps[2], 10, NEVER);
    world_stop(&w);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(w.apps[i].durable_sequence, w.apps[i].sequence);
    world_check_store(&w);
    assert_int_equal(w.store.count, 1); /* the next one is gone */
    assert_true(w.store.segments[0]->place.offset > 0);
    store_close(&w.store);
    sim_free(w.sim);
}

static void a_first_batch_waits_for_its_segment_though_the_writer_stops(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_add(&w.apps[0], 10);
    journal_join(&w.writer, &w.apps[0].member, 0);
    world_stop(&w);
    assert_int_equal(w.apps[0].durable, 1);
    world_check_store(&w);
    assert_int_equal(w.apps[0].replayed, 1);
    store_close(&w.store);
    sim_free(w.sim);
}

/* The write under way, and what is behind it: members hear nothing, and a start finds nothing damaged. */
static void a_stop_gives_up_what_finds_no_space(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    w.policy.no_allocate = true;
    world_set_policy(&w);
    world_run_ready(&w);
    world_commit(&w.apps[0], 10, 0);
    world_run(&w, 20 * NS_PER_MS);
    w.policy.no_space = 1000;
    world_set_policy(&w);
    world_commit(&w.apps[1], 10, 0);
    world_run(&w, 20 * NS_PER_MS);
    world_commit(&w.apps[2], 10, 0);
    world_stop(&w);
    assert_int_equal(w.apps[0].durable, 1);
    assert_int_equal(w.apps[1].durable + w.apps[2].durable + w.apps[2].placed, 0);
    assert_int_equal(w.apps[1].failed + w.apps[2].failed, 0);
    world_check_store(&w);
    store_close(&w.store);
    sim_free(w.sim);
}

static void a_stop_gives_up_what_finds_no_segment(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    w.policy.no_space = 1000;
    world_set_policy(&w);
    world_run(&w, 20 * NS_PER_MS);
    world_commit(&w.apps[0], 10, 0);
    world_stop(&w);
    assert_int_equal(w.apps[0].durable + w.apps[0].failed, 0);
    sim_free(w.sim);
}

/* At any moment of a life of making, writing, rotating: it ends, and nothing that was said is missing. */
static void it_stops_at_any_moment(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(300); seed++) {
        struct writer_world w;
        world_open(&w, seed, WORLD_SEGMENT);
        struct random *r = sim_random(w.sim);
        w.policy = sim_disk_default;
        world_set_policy(&w);
        for (uint64_t rounds = random_below(r, 60); rounds > 0; rounds--) {
            struct world_app *app = &w.apps[random_below(r, WORLD_APPS)];
            if (journal_room(&w.writer, &app->waiter))
                world_commit(app, random_below(r, 100 * KIB), world_due(&w, random_below(r, NS_PER_MS)));
            world_run(&w, random_below(r, NS_PER_MS));
        }
        world_stop(&w);
        for (unsigned i = 0; i < WORLD_APPS; i++)
            assert_int_equal(w.apps[i].durable_sequence, w.apps[i].sequence);
        world_check_store(&w);
        store_close(&w.store);
        sim_free(w.sim);
    }
}

/* ENOSPC, EIO, at any operation. What cannot be written is given up, without a word. */
static void it_stops_on_a_disk_that_is_full_or_failing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(300); seed++) {
        struct writer_world w;
        world_open(&w, seed, WORLD_SEGMENT);
        struct random *r = sim_random(w.sim);
        w.policy = sim_disk_default;
        world_set_policy(&w);
        for (uint64_t rounds = random_below(r, 40); rounds > 0; rounds--) {
            struct world_app *app = &w.apps[random_below(r, WORLD_APPS)];
            if (journal_room(&w.writer, &app->waiter))
                world_commit(app, random_below(r, 100 * KIB), 0);
            world_run(&w, random_below(r, NS_PER_MS));
            w.policy.no_space = seed % 2 ? (uint32_t)random_below(r, 1000) : 0;
            w.policy.write_error = seed % 2 ? 0 : (uint32_t)random_below(r, 100);
            world_set_policy(&w);
        }
        world_stop(&w);
        w.policy.no_space = w.policy.write_error = 0;
        world_set_policy(&w);
        world_check_store(&w);
        store_close(&w.store);
        sim_free(w.sim);
    }
}

/* --- crashing --- */

static void fault_at_random(struct writer_world *w, struct random *r)
{
    w->policy.short_write = random_below(r, 2) ? 300 : 0;
    w->policy.no_space = random_below(r, 5) ? 0 : 500;
    w->policy.no_allocate = random_below(r, 4) == 0;
    w->policy.slow_sync = 20;
    w->policy.slow_sync_ns = 100 * NS_PER_MS;
    world_set_policy(w);
}

static void live_a_while(struct writer_world *w)
{
    struct random *r = sim_random(w->sim);
    for (uint64_t rounds = random_below(r, 80); rounds > 0; rounds--) {
        for (uint64_t turns = random_below(r, 3); turns > 0; turns--) {
            struct world_app *app = &w->apps[random_below(r, WORLD_APPS)];
            app->again = random_below(r, 10) == 0;
            if (journal_room(&w->writer, &app->waiter))
                world_commit(app, random_below(r, random_below(r, 4) ? 2 * KIB : 300 * KIB),
                             world_due(w, random_below(r, 2 * NS_PER_MS)));
        }
        if (random_below(r, 10) == 0)
            fault_at_random(w, r);
        world_run(w, random_below(r, 3 * NS_PER_MS));
    }
}

/* What a crash took is not there any more for the apps either: they go on from what they find. */
static void apps_go_on_from_the_store(struct writer_world *w)
{
    for (unsigned i = 0; i < WORLD_APPS; i++) {
        struct world_app *app = &w->apps[i];
        app->sequence = app->durable_sequence = app->placed_sequence = app->replayed;
        app->placed = app->durable = 0;
        app->member.joined[0] = app->member.joined[1] = false;
        app->waiter.waiting = app->again = false;
    }
}

static void what_was_durable_is_found_after_a_crash_and_nothing_else(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CRASH_SEEDS; seed++) {
        struct writer_world w;
        world_open(&w, seed, seed % 2 ? WORLD_SEGMENT : SEGMENT_BYTES_MIN);
        for (unsigned life = 0; life < 3; life++) {
            w.policy = sim_disk_default;
            world_set_policy(&w);
            live_a_while(&w);
            world_crash(&w);
            w.policy = sim_disk_default;
            world_set_policy(&w);
            world_check_store(&w);
            store_close(&w.store);
            apps_go_on_from_the_store(&w);
            world_start(&w);
        }
        world_stop(&w);
        sim_free(w.sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_makes_apps_wait_until_it_is_freed),
        cmocka_unit_test(a_full_disk_empties_itself),
        cmocka_unit_test(a_start_on_a_full_disk_can_still_let_segments_go),
        cmocka_unit_test(a_write_without_space_is_repeated_unchanged),
        cmocka_unit_test(an_error_ends_the_store_for_good),
        cmocka_unit_test(nothing_is_unlinked_once_the_store_has_failed),
        cmocka_unit_test(a_sync_that_fails_ends_the_store_too),
        cmocka_unit_test(whoever_waits_for_room_is_told_that_the_store_failed),
        cmocka_unit_test(a_disk_that_is_read_only_lets_nothing_begin),
        cmocka_unit_test(a_disk_that_becomes_read_only_goes_on_when_it_is_not),
        cmocka_unit_test(nothing_is_left_of_segments_that_could_not_be_made),
        cmocka_unit_test(short_writes_go_on),
        cmocka_unit_test(a_slow_disk_is_told_of_once_in_a_while),
        cmocka_unit_test(stopping_hands_over_what_there_is),
        cmocka_unit_test(a_first_batch_waits_for_its_segment_though_the_writer_stops),
        cmocka_unit_test(a_stop_gives_up_what_finds_no_space),
        cmocka_unit_test(a_stop_gives_up_what_finds_no_segment),
        cmocka_unit_test(it_stops_at_any_moment),
        cmocka_unit_test(it_stops_on_a_disk_that_is_full_or_failing),
        cmocka_unit_test(what_was_durable_is_found_after_a_crash_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
