/* Back-pressure over two hosts: the destination behind the second is lost, and it is felt at the first's
 * front.
 *
 *     client ──HTTP──▶ one 10.0.0.1: src ──pure wire──▶ two 10.0.0.2: hub ──pure wire──▶ three 10.0.0.3: dst
 *                                                                               black hole, for a while
 *
 * What fills up, from the right: hub's outlet, hub's inbox (with what src's wire has in flight), src's
 * outlet, src's inbox; then clients get 503.
 */
#include "tests/sim/hosts_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define QUEUE_BYTES 16384
#define INBOX_BYTES 65536
#define EVENT_BYTES 400
#define POSTS_MAX   4000
#define SEEDS       5

static struct hosts_world world;
static struct world_host *one, *two, *three;
static struct tally tally;
static struct sim_connection *posts[POSTS_MAX]; /* of event i + 1 */
static unsigned posted;

static void open_hosts(uint64_t seed)
{
    memset(&tally, 0, sizeof tally);
    posted = 0;
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "[app src]\nmodule = /sim/src\ninbox = 64K\n"
                         "[output src.out]\nwire = http://10.0.0.2\nmode = pure\napp = hub\ntoken = t\n"
                         "queue = 16K\n");
    two = world_add_host(&world, "two", "10.0.0.2",
                         "[app hub]\nmodule = /sim/src\ninbox = 64K\n"
                         "[output hub.out]\nwire = http://10.0.0.3\nmode = pure\napp = dst\ntoken = t\n"
                         "queue = 16K\n");
    three = world_add_host(&world, "three", "10.0.0.3",
                           "[app dst]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n", (void *)&tally);
    world_start(one);
    world_start(two);
    world_start(three);
}

static void post_to(struct world_host *h, const char *path)
{
    char body[EVENT_BYTES + 1];
    assert_true(posted < POSTS_MAX);
    memset(body, '.', EVENT_BYTES);
    body[EVENT_BYTES] = '\0';
    body[snprintf(body, sizeof body, "%u", posted + 1)] = ' ';
    posts[posted++] = world_post(h, path, NULL, body);
    sim_run_for(world.sim, 20 * NS_PER_MS);
}

static void post(void)
{
    post_to(one, "/apps/src/events/e");
}

static void post_to_both(void)
{
    post();
    post_to(two, "/apps/hub/events/e");
}

static unsigned answered(unsigned status)
{
    unsigned count = 0;
    for (unsigned i = 0; i < posted; i++)
        count += world_status(posts[i]) == status;
    return count;
}

/* Until clients are refused. Those in between wait for their answer: their events are in the inbox. */
static void post_until_refused(void)
{
    while (answered(503) == 0)
        post();
}

static bool drained(void *context)
{
    (void)context;
    return world_host_empty(one) && world_host_empty(two) && answered(0) == 0;
}

static uint64_t held(const struct world_host *h, const char *app, const char *output)
{
    return record_queue_glance(&world_outlet(h, app, output)->queue).held_bytes;
}

static uint64_t held_in(const struct world_host *h, const char *app)
{
    return record_queue_glance(&world_app(h, app)->inbox.runs).held_bytes;
}

static int condition(const struct world_host *h, const char *app)
{
    return atomic_load(&world_app(h, app)->report.condition);
}

/* Every place on the way holds something, none more than its limit, and what waits for room has none yet. In
 * hub's inbox may be the rest of one request only: the next goes when that has its answer. */
static void assert_full_from_end_to_end(void)
{
    assert_true(held(two, "hub", "out") > QUEUE_BYTES * 3 / 4 && held(two, "hub", "out") <= QUEUE_BYTES);
    assert_int_equal(condition(two, "hub"), APP_WAITING);
    assert_true(held_in(two, "hub") > 0 && held_in(two, "hub") <= INBOX_BYTES * 3 / 4);
    assert_true(held(one, "src", "out") > QUEUE_BYTES / 4 && held(one, "src", "out") <= QUEUE_BYTES);
    assert_int_equal(condition(one, "src"), APP_WAITING);
    assert_true(held_in(one, "src") > INBOX_BYTES / 4 && held_in(one, "src") <= INBOX_BYTES * 3 / 4);
}

/* A 504 says that its event may still be stored: as no host goes down here, it is. */
static void assert_each_once_that_was_not_refused(void)
{
    uint64_t accepted = 0;
    for (unsigned i = 0; i < posted; i++) {
        unsigned status = world_status(posts[i]);
        assert_true(status == 200 || status == 503 || status == 504);
        assert_int_equal(tally.times[i + 1], status == 503 ? 0 : 1);
        accepted += status != 503;
        if (status == 503)
            assert_true(world_reply_has(posts[i], "\r\nRetry-After: 1\r\n"));
    }
    assert_int_equal(tally.records, accepted);
}

static void a_lost_destination_is_felt_at_the_first_front_and_loses_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        open_hosts(seed);
        sim_silence_host(world.sim, three->address, true);
        post_until_refused();
        for (unsigned i = 0; i < 20; i++)
            post();
        assert_full_from_end_to_end();
        uint64_t most = answered(200) + answered(0);
        assert_true(most * EVENT_BYTES < 2 * (QUEUE_BYTES + INBOX_BYTES)); /* bounded */
        assert_true(answered(503) >= 20);
        sim_silence_host(world.sim, three->address, false);
        for (unsigned i = 0; i < 50; i++)
            post();
        assert_int_equal(sim_run_until(world.sim, drained, NULL), SIM_DONE);
        post();
        assert_int_equal(sim_run_until(world.sim, drained, NULL), SIM_DONE);
        assert_int_equal(world_status(posts[posted - 1]), 200);
        assert_each_once_that_was_not_refused();
        hosts_world_close(&world);
    }
}

/* Clients of the second host fill its inbox, too, so that it answers 503 to the first one's wire as well. */
static void a_wire_that_is_answered_503_frees_what_is_stored_and_nothing_else(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        open_hosts(seed);
        sim_silence_host(world.sim, three->address, true);
        for (unsigned i = 0; i < 300; i++)
            post_to_both();
        char text[200];
        sim_run_for(world.sim, 90 * NS_PER_S);
        outlet_error_text(world_outlet(one, "src", "out"), text, sizeof text);
        assert_string_equal(text, "POST http://10.0.0.2: 503 Service Unavailable");
        sim_silence_host(world.sim, three->address, false);
        for (unsigned i = 0; i < 100; i++)
            post_to_both();
        assert_int_equal(sim_run_until(world.sim, drained, NULL), SIM_DONE);
        assert_each_once_that_was_not_refused();
        hosts_world_close(&world);
    }
}

/* An outage of an hour is as one of a minute: nothing grows, nothing is forgotten. */
static void a_long_outage_exhausts_nothing(void **state)
{
    (void)state;
    open_hosts(9);
    sim_silence_host(world.sim, three->address, true);
    post_until_refused();
    sim_run_for(world.sim, 120 * NS_PER_S);
    unsigned descriptors = sim_open_descriptors(world.sim);
    uint64_t tries = counter_read(&world_outlet(two, "hub", "out")->report.failures_total);
    for (unsigned i = 0; i < 60; i++) {
        sim_run_for(world.sim, 60 * NS_PER_S);
        assert_true(sim_open_descriptors(world.sim) <= descriptors + 1); /* the try under way */
    }
    tries = counter_read(&world_outlet(two, "hub", "out")->report.failures_total) - tries;
    assert_true(tries >= 30 && tries <= 3600 / 10);
    assert_full_from_end_to_end();
    sim_silence_host(world.sim, three->address, false);
    assert_int_equal(sim_run_until(world.sim, drained, NULL), SIM_DONE);
    assert_each_once_that_was_not_refused();
    hosts_world_close(&world);
}

/* The receiver's inbox is smaller than the sender's batches. */
static void batches_larger_than_the_receivers_inbox_go_through_in_parts(void **state)
{
    (void)state;
    memset(&tally, 0, sizeof tally);
    hosts_world_open(&world, 4);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "[app src]\nmodule = /sim/src\n"
                         "[output src.out]\nwire = http://10.0.0.2\nmode = pure\napp = dst\ntoken = t\n"
                         "queue = 2M\n");
    two =
        world_add_host(&world, "two", "10.0.0.2",
                       "[app dst]\nmodule = /sim/dst\ninbox = 64K\narg = " WORLD_TALLY "\n", (void *)&tally);
    world_start(one);
    posted = 0;
    for (unsigned i = 0; i < 1000; i++)
        post();
    world_start(two);
    assert_int_equal(sim_run_until(world.sim, drained, NULL), SIM_DONE);
    assert_int_equal(answered(200), posted);
    assert_each_once_that_was_not_refused();
    hosts_world_close(&world);
}

/* --- a receiver of NDJSON that takes 10 lines at most --- */

static unsigned lines, refusals;

static void take_lines(struct sim_connection *c, void *context)
{
    (void)context;
    struct span message = sim_taken(c);
    unsigned count = 0;
    for (size_t i = message.size; i > 4 && memcmp(message.data + i - 4, "\r\n\r\n", 4) != 0; i--)
        count += message.data[i - 1] == '\n';
    static const char refusal[] = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
    static const char taken[] = "HTTP/1.1 204 No Content\r\n\r\n";
    if (count > 10)
        sim_peer_send(c, refusal, sizeof refusal - 1);
    else
        sim_peer_send(c, taken, sizeof taken - 1);
    refusals += count > 10;
    lines += count > 10 ? 0 : count;
}

static const struct sim_step ten_lines[] = {SIM_EXPECT_HTTP, SIM_CALL(take_lines, NULL), SIM_AGAIN};

static bool one_drained(void *context)
{
    (void)context;
    return world_host_empty(one);
}

static void batches_of_lines_that_are_refused_as_too_large_go_again_in_parts(void **state)
{
    (void)state;
    lines = refusals = posted = 0;
    hosts_world_open(&world, 4);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "[app src]\nmodule = /sim/src\n"
                         "[output src.out]\nwire = http://10.0.0.2/\nmode = batch\n");
    world_start(one);
    for (unsigned i = 0; i < 100; i++)
        post();
    sim_server(world.sim, "10.0.0.2:80", ten_lines, ARRAY_SIZE(ten_lines));
    assert_int_equal(sim_run_until(world.sim, one_drained, NULL), SIM_DONE);
    assert_int_equal(lines, 100);
    assert_true(refusals >= 1 && refusals <= 8);
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_destination_is_felt_at_the_first_front_and_loses_nothing),
        cmocka_unit_test(a_wire_that_is_answered_503_frees_what_is_stored_and_nothing_else),
        cmocka_unit_test(a_long_outage_exhausts_nothing),
        cmocka_unit_test(batches_larger_than_the_receivers_inbox_go_through_in_parts),
        cmocka_unit_test(batches_of_lines_that_are_refused_as_too_large_go_again_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
