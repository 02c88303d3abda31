/* Disks that are full, and disks that fail, under whole hosts.
 *
 *     client ──HTTP──▶ one: a ──next, link───▶ two: b
 *                           a ──cloud, wire──▶ two: c
 *                           a ──log, inner───▶ one: d         all of them /sim/ledger
 */
#include "tests/unit/fewer.h"
#include "tests/sim/ledgers.h"

#include "host/host_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define PATIENCE_NS (300 * NS_PER_S)

static struct hosts_world world;
static struct world_host *one, *two;

static void open_hosts(uint64_t seed)
{
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "segment = 256K\n"
                         "[app a]\nmodule = /sim/ledger\n"
                         "[app d]\nmodule = /sim/ledger\n"
                         "[output a.next]\nlink = 10.0.0.2:7071\nkey = %s\napp = b\nqueue = 16K\n"
                         "[output a.cloud]\nwire = http://10.0.0.2\nmode = pure\napp = c\ntoken = t\n"
                         "queue = 16K\n"
                         "[output a.log]\ninner = d\n",
                         world.keys[1]);
    two = world_add_host(&world, "two", "10.0.0.2",
                         "segment = 256K\nlink = 0.0.0.0:7071\n"
                         "[app b]\nmodule = /sim/ledger\n[app c]\nmodule = /sim/ledger\n"
                         "[peer one]\nkey = %s\napps = b\n",
                         world.keys[0]);
    world_add_disk(one);
    world_add_disk(two);
}

static void assert_all_have(uint64_t count)
{
    assert_true(ledger_await(one, "a", count, PATIENCE_NS));
    assert_true(ledger_await(one, "d", count, PATIENCE_NS));
    assert_true(ledger_await(two, "b", count, PATIENCE_NS));
    assert_true(ledger_await(two, "c", count, PATIENCE_NS));
    assert_true(output_await(one, "a", "next", count, PATIENCE_NS));
    assert_true(output_await(one, "a", "cloud", count, PATIENCE_NS));
}

/* --- full --- */

static void limit_disk(struct world_host *h, uint64_t bytes)
{
    struct sim_disk_policy policy = sim_disk_default;
    policy.capacity_bytes = bytes;
    sim_disk_set(h->disk, &policy);
}

/* Posts until nothing is taken any more. The last number that was acknowledged. */
static uint64_t fill(uint64_t from)
{
    uint64_t posted = numbers_post_all(one, "a", (struct numbers){from, 8000, 500}, 20, 5 * NS_PER_S);
    assert_true(posted < 8000);
    return from - 1 + posted;
}

/* The request that was given up last may have been stored: it goes again, with its key, as all do. */
static uint64_t go_on(uint64_t from, uint64_t count)
{
    assert_int_equal(numbers_post_all(one, "a", (struct numbers){from, count, 500}, 20, PATIENCE_NS), count);
    return from - 1 + count;
}

static void a_full_disk_holds_publishers_and_delivers_and_empties_itself(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(4); seed++) {
        open_hosts(seed);
        limit_disk(one, 3 << 20);
        world_start(one);
        uint64_t acked = fill(1);
        assert_true(acked > 500);
        sim_run_for(world.sim, NS_PER_S);
        assert_int_equal(world_logged(one, "no place on the disk"), 1);
        world_start(two); /* what was stored goes out, and what is delivered gives space */
        uint64_t all = go_on(acked + 1, 400);
        assert_all_have(all);
        assert_true(world_logged(one, "there is place on the disk again") > 0);
        assert_int_equal(world_logged(one, "lost"), 0);
        hosts_world_close(&world);
    }
}

static void restart_while_full(uint64_t bytes)
{
    for (uint64_t seed = 1; seed <= FEWER(6); seed++) {
        open_hosts(seed);
        limit_disk(one, bytes);
        world_start(one);
        uint64_t acked = fill(1);
        for (unsigned i = 0; i < 4; i++) {
            switch ((seed + i) % 3) {
            case 0:
                assert_true(world_stop(one) < 5 * NS_PER_S);
                break;
            case 1:
                world_kill(one);
                break;
            default:
                world_crash(one);
            }
            world_start(one);
            const struct ledger *a = world_app_state(one, "a");
            assert_true(a->count >= acked && a->count <= acked + 20 && a->disorder == 0);
            sim_run_for(world.sim, 3 * NS_PER_S);
            acked = fill(acked + 1);
        }
        world_start(two);
        uint64_t all = go_on(acked + 1, 200);
        assert_all_have(all);
        assert_int_equal(world_logged(one, "lost"), 0);
        hosts_world_close(&world);
    }
}

/* What is full of segments that an app's newest snapshot is not in lets them go by a new one, which finds
 * room where nothing else does; and publishers are told at once. */
static void a_full_disk_takes_the_snapshots_that_free_it(void **state)
{
    (void)state;
    open_hosts(2);
    limit_disk(one, 2 << 20);
    world_start(one);
    uint64_t acked = fill(1);
    world_kill(one);
    limit_disk(one, sim_disk_used(one->disk) + 200 * 1024); /* not a whole segment */
    world_start(one);
    world_start(two);
    assert_true(output_await(one, "a", "next", acked, PATIENCE_NS));
    assert_true(output_await(one, "a", "cloud", acked, PATIENCE_NS));
    uint64_t all = go_on(acked + 1, 200);
    assert_all_have(all);
    hosts_world_close(&world);
}

static void a_full_disk_refuses_publishers_at_once(void **state)
{
    (void)state;
    open_hosts(3);
    limit_disk(one, 2 << 20);
    world_start(one);
    uint64_t acked = fill(1);
    sim_run_for(world.sim, 2 * NS_PER_S);
    struct numbers next = {acked + 1, 1, 500};
    assert_int_equal(numbers_post(one, "a", "other", next, 100 * NS_PER_MS), 503);
    hosts_world_close(&world);
}

static void a_full_disk_survives_restarts(void **state)
{
    (void)state;
    restart_while_full((3 << 20) + (300 << 10));
}

static void a_disk_full_to_its_last_block_survives_restarts(void **state)
{
    (void)state;
    restart_while_full(3 << 20);
}

static void space_that_is_freed_by_others_is_enough(void **state)
{
    (void)state;
    open_hosts(3);
    uint8_t *other = calloc(1, 2 << 20);
    assert_non_null(other);
    sim_disk_write(one->disk, "/other", other, 2 << 20);
    free(other);
    limit_disk(one, 4 << 20);
    world_start(one);
    uint64_t acked = fill(1);
    assert_true(sim_disk_remove(one->disk, "/other"));
    uint64_t posted = numbers_post_all(one, "a", (struct numbers){acked + 1, 20, 500}, 20, 5 * NS_PER_S);
    assert_int_equal(posted, 20); /* within seconds, without a restart */
    world_start(two);
    assert_all_have(acked + 20);
    hosts_world_close(&world);
}

/* A start makes small segments first; on a slow disk that takes longer than the pause between tries. */
static void space_on_a_slow_disk_is_noticed(void **state)
{
    (void)state;
    open_hosts(7);
    struct sim_disk_policy policy = sim_disk_default;
    policy.sync_min_ns = policy.sync_max_ns = 2 * NS_PER_S;
    policy.capacity_bytes = 200 << 10; /* not a whole one */
    sim_disk_set(one->disk, &policy);
    world_start(one);
    sim_run_for(world.sim, 30 * NS_PER_S);
    policy.capacity_bytes = 0;
    sim_disk_set(one->disk, &policy);
    sim_run_for(world.sim, 20 * NS_PER_S);
    assert_int_equal(numbers_post_all(one, "a", (struct numbers){1, 1, 0}, 1, 20 * NS_PER_S), 1);
    hosts_world_close(&world);
}

/* Both disks: the receiver cannot store, so it says nothing is stored; the sender keeps it. */
static void a_receiver_with_a_full_disk_takes_nothing_and_loses_nothing(void **state)
{
    (void)state;
    open_hosts(4);
    world_start(one);
    limit_disk(two, 600 << 10); /* two segments of its two owners: not the next ones */
    world_start(two);
    go_on(1, 4000);
    sim_run_for(world.sim, 20 * NS_PER_S);
    uint64_t b = ((const struct ledger *)world_app_state(two, "b"))->count;
    assert_true(b < 4000);
    assert_true(output_stored(one, "a", "next") <= b);
    world_crash(two);
    sim_disk_set(two->disk, &sim_disk_default);
    world_start(two);
    assert_all_have(4000);
    hosts_world_close(&world);
}

static void a_stop_with_a_full_disk_ends_in_time(void **state)
{
    (void)state;
    open_hosts(5);
    limit_disk(one, 2 << 20);
    world_start(one);
    uint64_t acked = fill(1);
    struct sim_connection *waits = numbers_begin(one, "a", NULL, (struct numbers){acked + 1000, 20, 500});
    sim_run_for(world.sim, NS_PER_S);
    (void)waits;
    assert_true(world_stop(one) < 5 * NS_PER_S);
    hosts_world_close(&world);
}

/* A file system that was remounted read-only, under a host that runs and under one that starts. */
static void a_read_only_disk_delivers_and_loses_nothing(void **state)
{
    (void)state;
    for (unsigned restart = 0; restart < 2; restart++) {
        open_hosts(8 + restart);
        world_start(one);
        uint64_t acked = go_on(1, 500);
        sim_run_for(world.sim, 3 * NS_PER_S);
        if (restart)
            assert_true(world_stop(one) < 5 * NS_PER_S);
        struct sim_disk_policy policy = sim_disk_default;
        policy.read_only = true;
        sim_disk_set(one->disk, &policy);
        if (restart)
            world_start(one);
        unsigned status = numbers_post(one, "a", NULL, (struct numbers){acked + 1, 1, 500}, PATIENCE_NS);
        assert_true(status >= 500);
        world_start(two);
        assert_true(ledger_await(two, "b", acked, PATIENCE_NS));
        assert_true(ledger_await(two, "c", acked, PATIENCE_NS));
        assert_true(output_await(one, "a", "next", acked, PATIENCE_NS));
        assert_true(world_stop(one) < 5 * NS_PER_S);
        sim_disk_set(one->disk, &sim_disk_default);
        world_start(one);
        assert_true(ledger_is(one, "a", acked));
        assert_all_have(go_on(acked + 1, 20));
        assert_int_equal(world_logged(one, "lost"), 0);
        hosts_world_close(&world);
    }
}

/* --- failing --- */

static void fail_writes(struct world_host *h)
{
    struct sim_disk_policy policy = sim_disk_default;
    policy.write_error = 1000;
    sim_disk_set(h->disk, &policy);
}

static void a_write_that_fails_suspends_and_says_so_and_goes_on_delivering(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(4); seed++) {
        open_hosts(seed);
        world_start(one);
        uint64_t acked = go_on(1, 20);
        sim_run_for(world.sim, 3 * NS_PER_S);
        fail_writes(one);
        struct sim_connection *c[4];
        for (unsigned i = 0; i < 4; i++) /* on their way while it fails: */
            c[i] = numbers_begin(one, "a", NULL, (struct numbers){acked + 1 + i, 1, 500});
        for (unsigned i = 0; i < 4; i++) {
            unsigned status = answer_await(&world, c[i], 10 * NS_PER_S);
            assert_true(status >= 500); /* an error, not silence */
        }
        assert_true(atomic_load(&world_app(one, "a")->report.condition) == APP_SUSPENDED);
        assert_true(world_logged(one, "app a is suspended") > 0);
        assert_int_equal(world_logged(one, "journal: writing failed"), 1);
        assert_true(world_reply_has(world_ask(one, "/status", NULL), "suspended"));
        assert_int_equal(world_status(world_ask(one, "/health", NULL)), 503);
        world_start(two); /* what was published before the disk failed goes out all the same */
        assert_true(output_await(one, "a", "next", acked, PATIENCE_NS));
        assert_true(output_await(one, "a", "cloud", acked, PATIENCE_NS));
        assert_true(ledger_is(two, "b", acked));
        assert_true(ledger_is(two, "c", acked));
        assert_true(world_stop(one) < 5 * NS_PER_S);
        if (seed % 2)
            sim_disk_crash(one->disk);
        sim_disk_set(one->disk, &sim_disk_default);
        world_start(one);
        const struct ledger *a = world_app_state(one, "a");
        assert_true(a->count >= acked && a->disorder == 0); /* what got no answer may be there */
        uint64_t there = a->count;
        assert_all_have(go_on(there + 1, 20));
        hosts_world_close(&world);
    }
}

/* The store is gone for all of an owner's apps, also for one that has nothing in the journal's batches just
 * then. */
static void an_idle_app_hears_that_the_store_has_failed(void **state)
{
    (void)state;
    hosts_world_open(&world, 1);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "owners = 1\n[app a]\nmodule = /sim/ledger\n[app d]\nmodule = /sim/ledger\n");
    world_add_disk(one);
    world_start(one);
    assert_int_equal(numbers_post(one, "d", NULL, (struct numbers){1, 1, 500}, PATIENCE_NS), 200);
    sim_run_for(world.sim, 3 * NS_PER_S);
    fail_writes(one);
    assert_true(numbers_post(one, "a", NULL, (struct numbers){1, 1, 500}, PATIENCE_NS) >= 500);
    assert_true(atomic_load(&world_app(one, "a")->report.condition) == APP_SUSPENDED);
    assert_true(atomic_load(&world_app(one, "d")->report.condition) == APP_SUSPENDED);
    assert_int_equal(numbers_post(one, "d", NULL, (struct numbers){2, 1, 500}, NS_PER_S), 503);
    hosts_world_close(&world);
}

/* The receiver's disk fails: what it has not stored comes again after its restart. */
static void a_receiver_whose_disk_fails_gets_it_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(4); seed++) {
        open_hosts(seed);
        world_start(one);
        world_start(two);
        go_on(1, 100);
        struct sim_disk_policy policy = sim_disk_default;
        policy.write_error = 200;
        sim_disk_set(two->disk, &policy);
        go_on(101, 300);
        sim_run_for(world.sim, 10 * NS_PER_S);
        uint64_t next = output_stored(one, "a", "next"), cloud = output_stored(one, "a", "cloud");
        world_crash(two);
        sim_disk_set(two->disk, &sim_disk_default);
        world_start(two);
        assert_true(((const struct ledger *)world_app_state(two, "b"))->count >= next);
        assert_true(((const struct ledger *)world_app_state(two, "c"))->count >= cloud);
        assert_all_have(400);
        hosts_world_close(&world);
    }
}

/* A disk that cannot read what the queue lacks: it is tried again, and what was there is delivered. */
static void reads_that_fail_for_a_while_lose_nothing(void **state)
{
    (void)state;
    open_hosts(6);
    world_start(one);
    go_on(1, 500);
    struct sim_disk_policy policy = sim_disk_default;
    policy.read_error = 1000;
    sim_disk_set(one->disk, &policy);
    world_start(two);
    sim_run_for(world.sim, 1500 * NS_PER_MS);
    sim_disk_set(one->disk, &sim_disk_default);
    assert_all_have(500);
    assert_int_equal(world_logged(one, "are lost"), 0);
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_holds_publishers_and_delivers_and_empties_itself),
        cmocka_unit_test(a_full_disk_takes_the_snapshots_that_free_it),
        cmocka_unit_test(a_full_disk_refuses_publishers_at_once),
        cmocka_unit_test(a_full_disk_survives_restarts),
        cmocka_unit_test(a_disk_full_to_its_last_block_survives_restarts),
        cmocka_unit_test(space_that_is_freed_by_others_is_enough),
        cmocka_unit_test(space_on_a_slow_disk_is_noticed),
        cmocka_unit_test(a_receiver_with_a_full_disk_takes_nothing_and_loses_nothing),
        cmocka_unit_test(a_stop_with_a_full_disk_ends_in_time),
        cmocka_unit_test(a_read_only_disk_delivers_and_loses_nothing),
        cmocka_unit_test(a_write_that_fails_suspends_and_says_so_and_goes_on_delivering),
        cmocka_unit_test(an_idle_app_hears_that_the_store_has_failed),
        cmocka_unit_test(a_receiver_whose_disk_fails_gets_it_again),
        cmocka_unit_test(reads_that_fail_for_a_while_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
