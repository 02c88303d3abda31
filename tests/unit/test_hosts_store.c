/* Whole hosts with a store: what is acknowledged outlives every end of a process, and nothing takes effect
 * before the disk has it.
 *
 *     client ──HTTP──▶ one: a ──next, link───▶ two: b
 *                           a ──cloud, wire──▶ two: c
 *                           a ──log, inner───▶ one: d         all of them /sim/ledger
 */
#include "tests/sim/ledgers.h"

#include "host/host_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define PATIENCE_NS (60 * NS_PER_S)

static struct hosts_world world;
static struct world_host *one, *two;

static void add_hosts(uint64_t seed, const char *app_keys)
{
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "segment = 256K\n"
                         "[app a]\nmodule = /sim/ledger\n%s"
                         "[app d]\nmodule = /sim/ledger\n"
                         "[output a.next]\nlink = 10.0.0.2:7071\nkey = %s\napp = b\n"
                         "[output a.cloud]\nwire = http://10.0.0.2\nmode = pure\napp = c\ntoken = t\n"
                         "[output a.log]\ninner = d\n",
                         app_keys, world.keys[1]);
    two = world_add_host(&world, "two", "10.0.0.2",
                         "segment = 256K\nlink = 0.0.0.0:7071\n"
                         "[app b]\nmodule = /sim/ledger\n[app c]\nmodule = /sim/ledger\n"
                         "[peer one]\nkey = %s\napps = b\n",
                         world.keys[0]);
    world_add_disk(one);
    world_add_disk(two);
}

static void open_hosts(uint64_t seed)
{
    add_hosts(seed, "");
    world_start(one);
    world_start(two);
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

static void text_of(struct sim_connection *c, char text[2048])
{
    struct span bytes = sim_received(c);
    snprintf(text, 2048, "%.*s", (int)bytes.size, (const char *)bytes.data);
    char *date = strstr(text, "Date: ");
    if (date)
        memset(date, ' ', strcspn(date, "\r"));
}

/* --- what survives --- */

static void stop(struct world_host *h)
{
    assert_true(world_stop(h) < 5 * NS_PER_S);
}

static void state_keys_and_numbers_survive(void (*end)(struct world_host *h))
{
    char answer[2][2048], state[2][2048];
    for (uint64_t seed = 1; seed <= 6; seed++) {
        open_hosts(seed);
        struct sim_connection *c = numbers_begin(one, "a", "first", (struct numbers){1, 20, 30});
        assert_int_equal(answer_await(&world, c, PATIENCE_NS), 200);
        sim_run_for(world.sim, NS_PER_S);
        text_of(c, answer[0]);
        text_of(world_ask(one, "/apps/a/state", NULL), state[0]);
        assert_all_have(20);
        end(one);
        end(two);
        world_start(one);
        world_start(two);
        text_of(world_ask(one, "/apps/a/state", NULL), state[1]);
        assert_string_equal(state[0], state[1]);
        c = numbers_begin(one, "a", "first", (struct numbers){1, 20, 30});
        assert_int_equal(answer_await(&world, c, PATIENCE_NS), 200);
        sim_run_for(world.sim, NS_PER_S);
        text_of(c, answer[1]);
        assert_string_equal(answer[0], answer[1]);
        assert_all_have(20);
        assert_int_equal(numbers_post(one, "a", "second", (struct numbers){21, 20, 30}, PATIENCE_NS), 200);
        assert_all_have(40);
        assert_int_equal(world_logged(two, "began anew"), 0);
        assert_int_equal(world_logged(two, "is new here"), 0);
        assert_int_equal(world_logged(one, "lost"), 0);
        hosts_world_close(&world);
    }
}

static void all_survives_a_stop_in_order(void **state)
{
    (void)state;
    state_keys_and_numbers_survive(stop);
}

static void all_survives_a_kill(void **state)
{
    (void)state;
    state_keys_and_numbers_survive(world_kill);
}

static void all_survives_a_crash(void **state)
{
    (void)state;
    state_keys_and_numbers_survive(world_crash);
}

/* --- a slow disk --- */

static void slow_syncs(struct world_host *h, uint64_t ns)
{
    struct sim_disk_policy slow = sim_disk_default;
    slow.sync_min_ns = slow.sync_max_ns = ns;
    sim_disk_set(h->disk, &slow);
}

static uint64_t count_of(const struct world_host *h, const char *app)
{
    return ((const struct ledger *)world_app_state(h, app))->count;
}

static void nothing_takes_effect_before_it_is_durable(void **state)
{
    (void)state;
    open_hosts(1);
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){1, 1, 0}, PATIENCE_NS), 200);
    assert_all_have(1);
    sim_run_for(world.sim, 5 * NS_PER_S);
    slow_syncs(one, 2 * NS_PER_S);
    struct sim_connection *c = numbers_begin(one, "a", NULL, (struct numbers){2, 9, 0});
    sim_run_for(world.sim, 1900 * NS_PER_MS);
    assert_true(ledger_is(one, "a", 10)); /* its turn is over; */
    assert_int_equal(world_status(c), 0);
    assert_int_equal(count_of(two, "b"), 1);
    assert_int_equal(count_of(two, "c"), 1);
    assert_int_equal(count_of(one, "d"), 1);
    sim_run_for(world.sim, 200 * NS_PER_MS);
    assert_int_equal(world_status(c), 200); /* and now it counts. */
    assert_true(ledger_is(two, "b", 10));
    assert_true(ledger_is(two, "c", 10));
    assert_int_equal(output_stored(one, "a", "next"), 10);
    assert_int_equal(output_stored(one, "a", "log"), 1); /* d has it, but not on the disk */
    sim_run_for(world.sim, 3 * NS_PER_S);
    assert_all_have(10);
    hosts_world_close(&world);
}

static void a_receiver_says_stored_once_it_is_durable(void **state)
{
    (void)state;
    open_hosts(2);
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){1, 1, 0}, PATIENCE_NS), 200);
    assert_all_have(1);
    sim_run_for(world.sim, 5 * NS_PER_S);
    slow_syncs(two, 2 * NS_PER_S);
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){2, 9, 0}, PATIENCE_NS), 200);
    sim_run_for(world.sim, 1900 * NS_PER_MS);
    assert_int_equal(output_stored(one, "a", "next"), 1);
    assert_int_equal(output_stored(one, "a", "cloud"), 1);
    assert_true(ledger_is(two, "b", 10));
    sim_run_for(world.sim, 3 * NS_PER_S);
    assert_int_equal(output_stored(one, "a", "next"), 10);
    assert_int_equal(output_stored(one, "a", "cloud"), 10);
    hosts_world_close(&world);
}

/* No retransmission storm, no session that is given up, no handshake anew: nobody waits for a disk. */
static void a_disk_of_two_seconds_a_sync_silences_no_link(void **state)
{
    (void)state;
    open_hosts(3);
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){1, 1, 0}, PATIENCE_NS), 200);
    assert_all_have(1);
    slow_syncs(one, 2 * NS_PER_S);
    slow_syncs(two, 2 * NS_PER_S);
    uint64_t handshakes = counter_read(&world_link(one, 0)->report.handshakes);
    uint64_t lost = counter_read(&world_link(one, 0)->report.lost);
    assert_int_equal(numbers_post_all(one, "a", (struct numbers){2, 400, 100}, 20, PATIENCE_NS), 400);
    assert_all_have(401);
    assert_int_equal(counter_read(&world_link(one, 0)->report.handshakes), handshakes);
    assert_true(counter_read(&world_link(one, 0)->report.lost) <= lost + 2);
    assert_true(world_logged(one, "\n") < 40);
    assert_true(world_stop(one) < 5 * NS_PER_S);
    assert_true(world_stop(two) < 5 * NS_PER_S);
    world_start(one);
    world_start(two);
    assert_all_have(401);
    hosts_world_close(&world);
}

/* --- durability = interval --- */

static void an_interval_answers_before_the_disk_and_sends_behind_it(void **state)
{
    (void)state;
    add_hosts(4, "interval = 500ms\n");
    world_start(one);
    world_start(two);
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){1, 1, 0}, PATIENCE_NS), 200);
    assert_all_have(1);
    sim_run_for(world.sim, 5 * NS_PER_S);
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){2, 9, 0}, 10 * NS_PER_MS), 200);
    sim_run_for(world.sim, 400 * NS_PER_MS);
    assert_int_equal(count_of(two, "b"), 1);
    assert_int_equal(count_of(two, "c"), 1);
    assert_int_equal(count_of(one, "d"), 1);
    sim_run_for(world.sim, 300 * NS_PER_MS);
    assert_true(ledger_is(two, "b", 10));
    assert_true(ledger_is(two, "c", 10));
    assert_all_have(10);
    hosts_world_close(&world);
}

/* What was answered and is gone is posted again: no receiver has it twice, none had it before. */
static void what_an_interval_loses_was_not_sent(void **state)
{
    (void)state;
    unsigned lost = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        add_hosts(seed, "interval = 500ms\n");
        world_start(one);
        world_start(two);
        assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){1, 5, 0}, PATIENCE_NS), 200);
        assert_all_have(5);
        sim_run_for(world.sim, 5 * NS_PER_S);
        assert_int_equal(numbers_post(one, "a", "k", (struct numbers){6, 5, 0}, PATIENCE_NS), 200);
        sim_run_for(world.sim, random_below(sim_random(world.sim), 1000 * NS_PER_MS));
        world_crash(one);
        world_start(one);
        uint64_t there = count_of(one, "a");
        assert_true(there == 5 || there == 10);
        lost += there == 5;
        assert_true(count_of(two, "b") <= there);
        assert_int_equal(numbers_post(one, "a", "k", (struct numbers){6, 5, 0}, PATIENCE_NS), 200);
        assert_all_have(10);
        hosts_world_close(&world);
    }
    assert_true(lost > 0 && lost < 10);
}

/* A receiver of durability `interval` that loses what it had said is stored: it says how much, and goes on.
 */
static void a_receiver_of_an_interval_says_what_it_lost(void **state)
{
    (void)state;
    struct tally link, wire;
    memset(&link, 0, sizeof link);
    memset(&wire, 0, sizeof wire);
    add_hosts(5, "");
    snprintf(two->text, sizeof two->text,
             "segment = 256K\nlink = 0.0.0.0:7071\n"
             "[app b]\nmodule = /sim/dst\narg = " WORLD_TALLY "\ninterval = 2s\n"
             "[app c]\nmodule = /sim/dst\narg = " WORLD_TALLY "\ninterval = 2s\n"
             "[peer one]\nkey = %s\napps = b\n",
             (void *)&link, (void *)&wire, world.keys[0]);
    world_start(one);
    world_start(two);
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){1, 5, 0}, PATIENCE_NS), 200);
    sim_run_for(world.sim, 5 * NS_PER_S);
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){6, 5, 0}, PATIENCE_NS), 200);
    assert_true(output_await(one, "a", "next", 10, NS_PER_S));
    assert_true(output_await(one, "a", "cloud", 10, NS_PER_S));
    world_crash(two);
    world_start(two);
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){11, 5, 0}, PATIENCE_NS), 200);
    assert_true(tally_await(&world, &link, 15, PATIENCE_NS));
    assert_true(tally_await(&world, &wire, 15, PATIENCE_NS));
    assert_int_equal(tally_not_once(&link, 1, 15), 0);
    assert_int_equal(tally_not_once(&wire, 1, 15), 0);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(world_logged(two, "up to 10 that are not here are lost"), 2);
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_survives_a_stop_in_order),
        cmocka_unit_test(all_survives_a_kill),
        cmocka_unit_test(all_survives_a_crash),
        cmocka_unit_test(nothing_takes_effect_before_it_is_durable),
        cmocka_unit_test(a_receiver_says_stored_once_it_is_durable),
        cmocka_unit_test(a_disk_of_two_seconds_a_sync_silences_no_link),
        cmocka_unit_test(an_interval_answers_before_the_disk_and_sends_behind_it),
        cmocka_unit_test(what_an_interval_loses_was_not_sent),
        cmocka_unit_test(a_receiver_of_an_interval_says_what_it_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
