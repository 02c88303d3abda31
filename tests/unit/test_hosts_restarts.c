/* Hosts that restart, their memory stores lost, while a stream runs between them (docs/records-protocol.md).
 *
 *     client ──HTTP──▶ one 10.0.0.1: src ──pure wire, one record a request──▶ two 10.0.0.2: dst
 */
#include "tests/sim/hosts_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define RECORDS 60
#define SEEDS   30

static struct hosts_world world;
static struct world_host *one, *two;
static struct tally tally;

static void open_hosts(uint64_t seed)
{
    memset(&tally, 0, sizeof tally);
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "[app src]\nmodule = /sim/src\n"
                         "[output src.out]\nwire = http://10.0.0.2\nmode = pure\napp = dst\ntoken = t\n"
                         "batch_records = 1\n");
    two = world_add_host(&world, "two", "10.0.0.2", "[app dst]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n",
                         (void *)&tally);
    world_start(one);
    world_start(two);
    struct sim_link slow = sim_link_default; /* so that replies are under way at any time */
    slow.latency_min_ns = slow.latency_max_ns = 20 * NS_PER_MS;
    sim_set_link(world.sim, "10.0.0.2", "10.0.0.1", &slow);
}

static void post_lines(unsigned first, unsigned count)
{
    char body[RECORDS * 8] = "";
    size_t size = 0;
    for (unsigned i = first; i < first + count; i++)
        size += (size_t)snprintf(body + size, sizeof body - size, "%u\n", i);
    struct sim_connection *c = world_post(one, "/apps/src/events/e", "application/x-ndjson", body);
    sim_run_for(world.sim, NS_PER_MS);
    while (world_status(c) == 0)
        sim_run_for(world.sim, NS_PER_MS);
    assert_int_equal(world_status(c), 200);
}

static uint64_t awaited;

static bool tallied(void *context)
{
    (void)context;
    return tally.last >= awaited;
}

static void run_until_last_is(uint64_t number)
{
    awaited = number;
    assert_int_equal(sim_run_until(world.sim, tallied, NULL), SIM_DONE);
}

static uint64_t acknowledged(void)
{
    return world_outlet(one, "src", "out")->queue.freed.records;
}

static void a_receiver_that_lost_its_store_goes_on_behind_what_it_acknowledged(void **state)
{
    (void)state;
    uint64_t unacknowledged = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        open_hosts(seed);
        post_lines(1, RECORDS);
        run_until_last_is(1 + random_below(sim_random(world.sim), RECORDS - 1));
        uint64_t stored = tally.last;
        world_kill(two);
        sim_run_for(world.sim, 30 * NS_PER_MS); /* replies that were under way have come */
        uint64_t base = acknowledged();
        assert_true(base <= stored);
        unacknowledged += stored - base;
        world_start(two);
        run_until_last_is(RECORDS);
        assert_int_equal(tally.lives, 2);
        assert_int_equal(tally.first, base + 1);
        assert_int_equal(tally.disorder, 0);
        for (uint64_t number = 1; number <= RECORDS; number++) {
            bool again = number > base && number <= stored;
            assert_int_equal(tally.times[number], again ? 2 : 1);
        }
        sim_run_for(world.sim, NS_PER_S);
        char line[80];
        snprintf(line, sizeof line, "app dst: one/src/out is new here and begins behind record %llu\n",
                 (unsigned long long)base);
        assert_int_equal(world_logged(two, line), base > 0);
        assert_int_equal(world_logged(two, "that are not here are lost"),
                         0); /* that is of a store that fell back */
        assert_int_equal(tally.records, RECORDS - base);
        assert_true(world_host_empty(one));
        hosts_world_close(&world);
    }
    assert_true(unacknowledged > 0); /* else the seeds did not show that part */
}

static void a_sender_that_lost_its_store_counts_anew_in_a_new_epoch(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        open_hosts(seed);
        post_lines(1, RECORDS);
        run_until_last_is(1 + random_below(sim_random(world.sim), RECORDS - 1));
        uint8_t epoch[16];
        memcpy(epoch, one->epoch, sizeof epoch);
        world_kill(one);
        sim_run_for(world.sim, NS_PER_S);
        uint64_t before = tally.last;
        world_start(one);
        assert_memory_not_equal(epoch, one->epoch, sizeof epoch);
        post_lines((unsigned)before + 1, RECORDS); /* the test's numbers go on; the stream's begin at 1 */
        run_until_last_is(before + RECORDS);
        assert_int_equal(tally.disorder, 0);
        sim_run_for(world.sim, NS_PER_S);
        assert_int_equal(world_logged(two, "one/src/out began anew"), 1);
        assert_int_equal(acknowledged(), RECORDS);
        assert_int_equal(counter_read(&world_app(two, "dst")->report.duplicates), 0);
        assert_true(world_host_empty(one));
        hosts_world_close(&world);
    }
}

/* A request as the old life of `one` made it: its record `first`, the text 9. */
static struct sim_connection *late_request(const uint8_t *epoch, unsigned first)
{
    char text[512], hex[33];
    for (unsigned i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", epoch[i]);
    int size = snprintf(text, sizeof text,
                        "POST /apps/dst/records HTTP/1.1\r\nHost: two\r\nAuthorization: Bearer t\r\n"
                        "Content-Type: application/vnd.pure.records\r\nPure-Stream: one/src/out\r\n"
                        "Pure-Epoch: %s\r\nPure-Event: out\r\nPure-First: %u\r\nPure-Count: 1\r\n"
                        "Content-Length: 2\r\n\r\n%c9",
                        hex, first, 1);
    struct sim_connection *c = sim_client(world.sim, "10.0.0.9", two->endpoint, NULL, 0);
    sim_peer_send(c, text, (size_t)size);
    sim_run_for(world.sim, NS_PER_S);
    return c;
}

static void a_late_request_of_an_old_epoch_is_refused(void **state)
{
    (void)state;
    open_hosts(1);
    post_lines(1, 3);
    run_until_last_is(3);
    uint8_t epoch[16];
    memcpy(epoch, one->epoch, sizeof epoch);
    world_kill(one);
    world_start(one);
    post_lines(4, 2);
    run_until_last_is(5);
    for (unsigned first = 1; first <= 4; first++) {
        struct sim_connection *c = late_request(epoch, first);
        assert_int_equal(world_status(c), 409);
        assert_true(world_reply_has(c, "Pure-Error: epoch-retired\r\n"));
    }
    post_lines(6, 1);
    run_until_last_is(6);
    assert_int_equal(tally.records, 6);
    assert_int_equal(tally.disorder, 0);
    hosts_world_close(&world);
}

/* Both, again and again, in the middle of it all. */
static void hosts_that_restart_again_and_again_lose_nothing_that_they_do_not_say(void **state)
{
    (void)state;
    open_hosts(3);
    unsigned number = 0;
    for (unsigned round = 0; round < 20; round++) {
        post_lines(number + 1, 10);
        run_until_last_is(number + 1 + random_below(sim_random(world.sim), 9));
        world_kill(two);
        sim_run_for(world.sim, random_below(sim_random(world.sim), 3 * NS_PER_S));
        world_start(two);
        run_until_last_is(number + 10);
        number += 10;
        if (round % 4 == 3) {
            sim_run_for(world.sim, NS_PER_S);
            assert_true(world_host_empty(one));
            world_kill(one);
            world_start(one);
        }
    }
    assert_int_equal(tally.disorder, 0);
    for (unsigned i = 1; i <= number; i++)
        assert_true(tally.times[i] >= 1);
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receiver_that_lost_its_store_goes_on_behind_what_it_acknowledged),
        cmocka_unit_test(a_sender_that_lost_its_store_counts_anew_in_a_new_epoch),
        cmocka_unit_test(a_late_request_of_an_old_epoch_is_refused),
        cmocka_unit_test(hosts_that_restart_again_and_again_lose_nothing_that_they_do_not_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
