/* Backlogs far beyond the queue, and the segments that hold them: whole hosts whose receivers are away.
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

static void add_hosts(uint64_t seed, const char *output_keys)
{
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "segment = 256K\n"
                         "[app a]\nmodule = /sim/ledger\n"
                         "[app d]\nmodule = /sim/ledger\n"
                         "[output a.next]\nlink = 10.0.0.2:7071\nkey = %s\napp = b\n%s"
                         "[output a.cloud]\nwire = http://10.0.0.2\nmode = pure\napp = c\ntoken = t\n%s"
                         "[output a.log]\ninner = d\n%s",
                         world.keys[1], output_keys, output_keys, output_keys);
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
    assert_true(output_await(one, "a", "log", count, PATIENCE_NS));
}

/* What was delivered goes: what is left is no more than each owner's current segment and the next, and those
 * since the last snapshots. */
static void assert_segments_go(struct world_host *h)
{
    sim_run_for(world.sim, 10 * NS_PER_S);
    unsigned count = store_files(h, ".journal", NULL);
    if (count > 2 * (2 + SNAPSHOT_SEGMENTS + 1))
        fprintf(stderr, "%u segments are left\n", count);
    assert_true(count <= 2 * (2 + SNAPSHOT_SEGMENTS + 1));
}

static void end_randomly(struct world_host *h, uint64_t seed)
{
    if (seed % 3 == 0)
        assert_true(world_stop(h) < 5 * NS_PER_S);
    else if (seed % 3 == 1)
        world_kill(h);
    else
        world_crash(h);
}

/* --- a receiver that is away --- */

static void a_backlog_beyond_the_queue_outlives_restarts(const char *queue, size_t bytes)
{
    for (uint64_t seed = 1; seed <= FEWER(3); seed++) {
        add_hosts(seed, queue);
        world_start(one);
        uint64_t all = 0;
        for (unsigned life = 0; life < 3; life++) {
            assert_int_equal(
                numbers_post_all(one, "a", (struct numbers){all + 1, 1000, bytes}, 100, PATIENCE_NS), 1000);
            all += 1000;
            assert_true(ledger_await(one, "d", all, PATIENCE_NS));
            assert_true(world_within_limits(one));
            end_randomly(one, seed + life);
            world_start(one);
            assert_true(ledger_is(one, "a", all));
            assert_true(world_within_limits(one));
        }
        assert_int_equal(output_stored(one, "a", "next"), 0);
        world_start(two);
        assert_all_have(all);
        assert_segments_go(one);
        assert_segments_go(two);
        hosts_world_close(&world);
    }
}

static void thousands_of_records_behind_a_queue_of_4_kib(void **state)
{
    (void)state;
    a_backlog_beyond_the_queue_outlives_restarts("queue = 4K\nmax_record = 1K\n", 900);
}

static void thousands_of_records_behind_a_queue_of_64_kib(void **state)
{
    (void)state;
    a_backlog_beyond_the_queue_outlives_restarts("queue = 64K\n", 300);
}

/* While it drains, too, both ends may end at any time. */
static void a_backlog_drains_through_ends_of_both_hosts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(5); seed++) {
        add_hosts(seed, "queue = 16K\n");
        world_start(one);
        assert_int_equal(numbers_post_all(one, "a", (struct numbers){1, 2000, 200}, 100, PATIENCE_NS), 2000);
        world_start(two);
        for (unsigned i = 0; i < 12; i++) {
            sim_run_for(world.sim, random_below(sim_random(world.sim), 300 * NS_PER_MS));
            struct world_host *h = random_below(sim_random(world.sim), 2) ? one : two;
            end_randomly(h, seed + i);
            world_start(h);
        }
        assert_all_have(2000);
        assert_segments_go(one);
        hosts_world_close(&world);
    }
}

/* --- the limit --- */

static bool waits(const struct world_host *h, const char *app)
{
    return atomic_load(&world_app(h, app)->report.condition) == APP_WAITING;
}

static void a_full_backlog_makes_the_app_wait(const char *keys, uint64_t least, uint64_t most)
{
    add_hosts(1, keys);
    world_start(one);
    uint64_t posted = numbers_post_all(one, "a", (struct numbers){1, 2000, 500}, 10, 2 * NS_PER_S);
    if (posted < least || posted > most)
        fprintf(stderr, "%llu numbers were taken\n", (unsigned long long)posted);
    assert_true(posted >= least && posted <= most);
    assert_true(waits(one, "a"));
    char key[32];
    snprintf(key, sizeof key, "n%llu", (unsigned long long)posted + 1);
    assert_int_equal(numbers_post(one, "a", key, (struct numbers){posted + 1, 10, 500}, PATIENCE_NS), 503);
    world_kill(one);
    world_start(one); /* as full as before */
    sim_run_for(world.sim, NS_PER_S);
    uint64_t more = numbers_post_all(one, "a", (struct numbers){posted + 1, 500, 500}, 10, 2 * NS_PER_S);
    assert_true(posted + more <= most);
    world_start(two);
    posted += more;
    more = numbers_post_all(one, "a", (struct numbers){posted + 1, 1000, 500}, 10, PATIENCE_NS);
    assert_int_equal(more, 1000);
    assert_all_have(posted + more);
    hosts_world_close(&world);
}

static void the_app_goes_on_until_its_backlog_is_full(void **state)
{
    (void)state;
    a_full_backlog_makes_the_app_wait("queue = 16K\nbacklog = 256K\n", 256 * 1024 * 3 / 4 / 512,
                                      (256 + 32) * 1024 / 500);
}

static void without_a_backlog_the_queue_alone_counts(void **state)
{
    (void)state;
    a_full_backlog_makes_the_app_wait("queue = 64K\nbacklog = 0\n", 64 * 1024 / 2 / 512, 64 * 1024 / 500);
}

/* What can never have room is refused, and the app goes on; what has just room is taken. */
static void a_request_larger_than_the_backlog_is_refused(void **state)
{
    (void)state;
    add_hosts(2, "queue = 16K\nbacklog = 64K\n");
    world_start(one);
    unsigned status = numbers_post(one, "a", NULL, (struct numbers){1, 200, 500}, PATIENCE_NS);
    assert_true(status >= 400 && status != 503);
    assert_int_equal(world_logged(one, "it sends more to next than its backlog (65536 bytes) can ever hold"),
                     1);
    assert_true(ledger_is(one, "a", 0));
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){1, 100, 500}, PATIENCE_NS), 200);
    assert_true(world_within_limits(one));
    world_start(two);
    assert_all_have(100);
    hosts_world_close(&world);
}

/* --- one event, or one request, that sends much: 20 outputs, all of whose receivers are away --- */

#define FAN_QUEUE  "64K"
#define FAN_RECORD 50000

static void add_fan(void)
{
    char outputs[4096];
    size_t size = 0;
    for (unsigned i = 1; i <= 20; i++)
        size += (size_t)snprintf(outputs + size, sizeof outputs - size,
                                 "[output f.o%u]\nwire = http://10.0.0.9\nmode = pure\napp = x\ntoken = t\n"
                                 "queue = " FAN_QUEUE "\nmax_record = 60000\n",
                                 i);
    hosts_world_open(&world, 1);
    one = world_add_host(&world, "one", "10.0.0.1", "max_body = 4M\n[app f]\nmodule = /sim/fan\n%s", outputs);
    world_add_disk(one);
    world_start(one);
}

/* Memory that backlogs and batches hold, beyond queues. */
static uint64_t grown(const struct world_host *h)
{
    const struct host *host = h->host;
    uint64_t bytes = 0;
    for (const struct journal_output *o = host->apps[0].journal.outputs; o; o = o->next)
        bytes += o->backlog ? o->backlog->spill_room : 0;
    for (unsigned i = 0; i < host->owner_count; i++)
        bytes += host->journals[i].writer.buffers[0].capacity + host->journals[i].writer.buffers[1].capacity;
    return bytes;
}

static void a_request_that_sends_more_than_one_may_is_refused_and_what_it_took_is_given_back(void **state)
{
    (void)state;
    add_fan();
    unsigned status = numbers_post(one, "f", NULL, (struct numbers){1, 19, FAN_RECORD}, PATIENCE_NS);
    assert_int_equal(status, 500);
    assert_int_equal(world_logged(one, "it sends more than 18087936 bytes in all, the most for one event"),
                     1);
    assert_int_equal(world_app(one, "f")->report.sends, 0);
    uint64_t kept = grown(one);
    assert_true(kept <= 20 * (256u << 10) + 4 * JOURNAL_BATCH_BYTES);
    /* and that is all it keeps, however large what goes */
    for (uint64_t i = 0; i < 4; i++) {
        status = numbers_post(one, "f", NULL, (struct numbers){1 + 17 * i, 17, FAN_RECORD}, PATIENCE_NS);
        assert_int_equal(status, 200);
        sim_run_for(world.sim, NS_PER_S);
        assert_true(grown(one) <= 20 * (256u << 10) + 4 * JOURNAL_BATCH_BYTES);
    }
    assert_int_equal(world_app(one, "f")->report.sends, 4 * 17 * 20);
    assert_true(world_within_limits(one));
    hosts_world_close(&world);
}

/* --- segments go, and never too early --- */

/* Whatever of its unlinks a crash undoes, and whenever it comes: no record is delivered twice, none is lost.
 */
static void a_crash_while_segments_go_loses_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(6); seed++) {
        add_hosts(seed, "queue = 16K\n");
        struct sim_disk_policy disk = sim_disk_default;
        disk.unlink_undone = seed % 2 ? 500 : 0;
        disk.lost = 900, disk.torn = disk.garbled = 50;
        disk.name_lost = 1000;
        sim_disk_set(one->disk, &disk);
        world_start(one);
        assert_int_equal(numbers_post_all(one, "a", (struct numbers){1, 3000, 300}, 100, PATIENCE_NS), 3000);
        world_start(two);
        unsigned before = store_files(one, ".journal", NULL), now = before;
        for (unsigned i = 0; i < 6; i++) {
            for (unsigned step = 0; step < 20000 && now >= before; step++) {
                sim_run_for(world.sim, 200 * NS_PER_US);
                now = store_files(one, ".journal", NULL);
                if (now > before)
                    before = now;
            }
            world_crash(one);
            world_start(one);
            assert_true(ledger_is(one, "a", 3000));
            before = now = store_files(one, ".journal", NULL);
        }
        assert_all_have(3000);
        assert_int_equal(world_logged(one, "lost"), 0);
        assert_segments_go(one);
        hosts_world_close(&world);
    }
}

static void a_store_in_use_does_not_grow(void **state)
{
    (void)state;
    add_hosts(1, "");
    world_start(one);
    world_start(two);
    unsigned most = 0;
    for (uint64_t i = 0; i < 40; i++) {
        assert_int_equal(
            numbers_post_all(one, "a", (struct numbers){1 + 100 * i, 100, 900}, 100, PATIENCE_NS), 100);
        sim_run_for(world.sim, 100 * NS_PER_MS);
        unsigned count = store_files(one, ".journal", NULL);
        most = count > most ? count : most;
    }
    assert_all_have(4000);
    if (most > 20)
        fprintf(stderr, "up to %u segments\n", most);
    assert_true(most <= 20);
    assert_segments_go(one);
    assert_segments_go(two);
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thousands_of_records_behind_a_queue_of_4_kib),
        cmocka_unit_test(thousands_of_records_behind_a_queue_of_64_kib),
        cmocka_unit_test(a_backlog_drains_through_ends_of_both_hosts),
        cmocka_unit_test(the_app_goes_on_until_its_backlog_is_full),
        cmocka_unit_test(without_a_backlog_the_queue_alone_counts),
        cmocka_unit_test(a_request_larger_than_the_backlog_is_refused),
        cmocka_unit_test(a_request_that_sends_more_than_one_may_is_refused_and_what_it_took_is_given_back),
        cmocka_unit_test(a_crash_while_segments_go_loses_nothing),
        cmocka_unit_test(a_store_in_use_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
