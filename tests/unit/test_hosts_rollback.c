/* A sender whose store is put back to an older copy, while its receivers have what it sent since.
 *
 *     client ──HTTP──▶ one: a ──next, link───▶ two: b     of /sim/ledger, all three
 *                           a ──cloud, wire──▶ two: c
 */
#include "tests/unit/fewer.h"
#include "tests/sim/datagrams.h"
#include "tests/sim/ledgers.h"

#include "host/host_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define PATIENCE_NS (300 * NS_PER_S)
#define COPIED      100  /* records sent when the copy was made */
#define OTHERS      1000 /* those sent under the same numbers afterwards are these, and so on */

static struct hosts_world world;
static struct world_host *one, *two;

static void open_hosts(uint64_t seed)
{
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1", "%s", "");
    two = world_add_host(&world, "two", "10.0.0.2",
                         "segment = 256K\nlink = 0.0.0.0:7071\n"
                         "[app b]\nmodule = /sim/ledger\n[app c]\nmodule = /sim/ledger\n"
                         "[peer one]\nkey = %s\napps = b\n",
                         world.keys[0]);
    snprintf(one->text, sizeof one->text,
             "segment = 256K\n[app a]\nmodule = /sim/ledger\n"
             "[output a.next]\nlink = 10.0.0.2:7071\nkey = %s\napp = b\nqueue = 16K\n"
             "[output a.cloud]\nwire = http://10.0.0.2\nmode = pure\napp = c\ntoken = t\nqueue = 16K\n",
             world.keys[1]);
    world_add_disk(one);
    world_add_disk(two);
    world_start(one);
    world_start(two);
}

static void post(uint64_t first, uint64_t count)
{
    assert_int_equal(numbers_post_all(one, "a", (struct numbers){first, count, 200}, 20, PATIENCE_NS), count);
}

static void await_stored(uint64_t count)
{
    assert_true(output_await(one, "a", "next", count, PATIENCE_NS));
    assert_true(output_await(one, "a", "cloud", count, PATIENCE_NS));
}

/* What an app is to have been given: runs of numbers, one behind the other. */
struct given {
    uint64_t first, count;
};

static struct ledger ledger_of(const struct given *runs, unsigned count)
{
    struct ledger all = {0};
    for (unsigned i = 0; i < count; i++) {
        all.disorder += runs[i].first != all.last + 1;
        for (uint64_t number = runs[i].first; number < runs[i].first + runs[i].count; number++)
            all.hash = ledger_hash(all.hash, number);
        all.count += runs[i].count;
        all.last = runs[i].first + runs[i].count - 1;
    }
    return all;
}

static bool has(const char *app, const struct ledger *wanted)
{
    const struct ledger *is = two->host ? world_app_state(two, app) : NULL;
    return is && is->count == wanted->count && is->last == wanted->last && is->hash == wanted->hash &&
           is->disorder == wanted->disorder;
}

/* Both apps, in order, each once; and nothing comes behind it. */
static void assert_given(const struct given *runs, unsigned count)
{
    struct ledger wanted = ledger_of(runs, count);
    for (unsigned i = 0; i < 300 && !(has("b", &wanted) && has("c", &wanted)); i++)
        sim_run_for(world.sim, NS_PER_S);
    sim_run_for(world.sim, 2 * NS_PER_S);
    assert_true(has("b", &wanted));
    assert_true(has("c", &wanted));
}

#define ASSERT_GIVEN(...)                           \
    do {                                            \
        const struct given runs_[] = {__VA_ARGS__}; \
        assert_given(runs_, ARRAY_SIZE(runs_));     \
    } while (0)

/* Sends COPIED records, has the store copied, sends `more`, which arrive, and puts the copy back. */
static struct sim_disk_copy *send_and_copy(uint64_t more)
{
    post(1, COPIED);
    await_stored(COPIED);
    sim_run_for(world.sim, 5 * NS_PER_S);
    struct sim_disk_copy *copy = sim_disk_save(one->disk);
    post(COPIED + 1, more);
    await_stored(COPIED + more);
    assert_true(world_stop(one) < 5 * NS_PER_S);
    sim_disk_restore(one->disk, copy);
    return copy;
}

/* --- */

/* With fewer and with more records before the receiver is there than those that it knows under their numbers.
 */
static void what_a_sender_sends_after_it_was_put_back_arrives_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(6); seed++) {
        open_hosts(seed);
        sim_disk_copy_free(send_and_copy(100));
        bool away = seed % 2, many = seed > 2;
        if (away)
            world_kill(two);
        world_start(one);
        uint64_t others = many ? 300 : 60;
        post(OTHERS + 1, others);
        if (away)
            world_start(two);
        ASSERT_GIVEN({1, COPIED + 100}, {OTHERS + 1, others});
        assert_int_equal(world_logged(one, "was it put back to an older copy?"), 2);
        assert_int_equal(world_logged(two, "its store was put back to an older copy"), 2);
        hosts_world_close(&world);
    }
}

/* Questions and answers get lost as anything does. */
static void it_finds_out_on_a_path_that_loses_much(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(16); seed++) {
        struct sim_path bad = sim_path_default;
        bad.loss = 300;
        open_hosts(seed);
        sim_disk_copy_free(send_and_copy(100));
        sim_set_path(world.sim, "10.0.0.1", "10.0.0.2", &bad);
        sim_set_path(world.sim, "10.0.0.2", "10.0.0.1", &bad);
        world_start(one);
        post(OTHERS + 1, 60);
        ASSERT_GIVEN({1, COPIED + 100}, {OTHERS + 1, 60});
        hosts_world_close(&world);
    }
}

/* Records that have not left the host are no part of what may have been sent: a restart does not change that.
 */
static void nor_do_restarts_before_it_meets_the_receiver_hide_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(4); seed++) {
        open_hosts(seed);
        sim_disk_copy_free(send_and_copy(100));
        world_kill(two);
        for (unsigned i = 0; i < 4; i++) {
            world_start(one);
            post(OTHERS + 1 + 100 * i, 100);
            if (i % 2 == seed % 2)
                sim_run_for(world.sim, 20 * NS_PER_S);
            if (seed > 2)
                world_crash(one);
            else
                world_kill(one);
        }
        world_start(one);
        world_start(two);
        ASSERT_GIVEN({1, COPIED + 100}, {OTHERS + 1, 400});
        hosts_world_close(&world);
    }
}

/* Both hosts fall at any moment while the one finds out. */
static void crashes_while_it_finds_out_lose_and_double_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(24); seed++) {
        open_hosts(seed);
        sim_disk_copy_free(send_and_copy(100));
        world_kill(two);
        world_start(one);
        post(OTHERS + 1, 200);
        world_start(two);
        for (unsigned i = 0; i < 8; i++) {
            sim_run_for(world.sim, (1 + (seed * 7919 + i * 104729) % 400) * NS_PER_MS);
            struct world_host *falls = (seed + i) % 3 ? one : two;
            if (seed % 2)
                world_crash(falls);
            else
                world_kill(falls);
            world_start(falls);
        }
        post(OTHERS + 201, 50);
        ASSERT_GIVEN({1, COPIED + 100}, {OTHERS + 1, 250});
        hosts_world_close(&world);
    }
}

/* The copy was made while half of what was sent lay in the queue: that half is no more than what is known. */
static void what_was_not_answered_when_the_copy_was_made_is_not_doubled(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 32; seed++) {
        uint64_t waiting = 50 + 100 * (seed % 4); /* more than the queue holds, too */
        open_hosts(seed + 1);
        post(1, 50);
        await_stored(50);
        sim_run_for(world.sim, 3 * NS_PER_S);
        world_kill(two);
        post(51, waiting);
        struct sim_disk_copy *copy = sim_disk_save(one->disk);
        world_start(two);
        post(51 + waiting, 100);
        ASSERT_GIVEN({1, 150 + waiting});
        world_kill(one);
        sim_disk_restore(one->disk, copy);
        sim_disk_copy_free(copy);
        world_start(one);
        if (seed >= 4) { /* it falls when it has found out, or nearly so */
            sim_run_for(world.sim, seed / 4 * 2 * NS_PER_MS);
            world_crash(one);
            world_start(one);
        }
        post(OTHERS + 1, 30);
        ASSERT_GIVEN({1, 150 + waiting}, {OTHERS + 1, 30});
        hosts_world_close(&world);
    }
}

/* Each time the stream has an epoch that it never had. */
static void it_may_be_put_back_again(void **state)
{
    (void)state;
    open_hosts(1);
    sim_disk_copy_free(send_and_copy(100));
    world_start(one);
    post(OTHERS + 1, 50);
    ASSERT_GIVEN({1, COPIED + 100}, {OTHERS + 1, 50});
    struct sim_disk_copy *copy = sim_disk_save(one->disk); /* it has a new epoch already */
    post(OTHERS + 51, 100);
    ASSERT_GIVEN({1, COPIED + 100}, {OTHERS + 1, 150});
    world_kill(one);
    sim_disk_restore(one->disk, copy);
    sim_disk_copy_free(copy);
    world_start(one);
    post(2 * OTHERS + 1, 200);
    ASSERT_GIVEN({1, COPIED + 100}, {OTHERS + 1, 150}, {2 * OTHERS + 1, 200});
    hosts_world_close(&world);
}

/* No restart, however its end was, is taken for one. */
static void ordinary_restarts_are_not_taken_for_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(12); seed++) {
        open_hosts(seed);
        uint64_t posted = 0;
        for (unsigned i = 0; i < 8; i++) {
            post(posted + 1, 60);
            posted += 60;
            sim_run_for(world.sim, (1 + (seed * 7919 + i * 104729) % 300) * NS_PER_MS);
            struct world_host *falls = (seed + i) % 3 ? one : two;
            if (i % 2)
                world_crash(falls);
            else
                world_kill(falls);
            world_start(falls);
        }
        post(posted + 1, 20);
        await_stored(posted + 20);
        ASSERT_GIVEN({1, posted + 20});
        assert_int_equal(world_logged(one, "older copy"), 0);
        assert_int_equal(world_logged(two, "older copy"), 0);
        hosts_world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_sender_sends_after_it_was_put_back_arrives_once),
        cmocka_unit_test(it_finds_out_on_a_path_that_loses_much),
        cmocka_unit_test(nor_do_restarts_before_it_meets_the_receiver_hide_it),
        cmocka_unit_test(crashes_while_it_finds_out_lose_and_double_nothing),
        cmocka_unit_test(what_was_not_answered_when_the_copy_was_made_is_not_doubled),
        cmocka_unit_test(it_may_be_put_back_again),
        cmocka_unit_test(ordinary_restarts_are_not_taken_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
