/* Whole hosts: an event on its way through every kind of outlet, and apps that fail beside those that do not.
 *
 *     client 10.0.0.9 ──HTTP──▶ one: src ──out: pure wire──▶ two 10.0.0.2: dst
 *                                        ──cloud: webhook──▶ sink 10.0.0.3:80, scripted
 *                                        ──log: inner─────▶ one: near (dst)
 */
#include "tests/sim/hosts_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define SINK "10.0.0.3:80"

static struct hosts_world world;
static struct world_host *one, *two;
static struct tally near, far;

/* What the sink got: bodies in order, each one number. */
static struct {
    unsigned requests, wrong;
} sink;

static bool body_is(struct span message, unsigned number)
{
    char expected[32];
    int size = snprintf(expected, sizeof expected, "\r\n\r\n%u", number);
    return message.size > (size_t)size &&
           memcmp(message.data + message.size - size, expected, (size_t)size) == 0;
}

static void note(struct sim_connection *c, void *context)
{
    (void)context;
    sink.wrong += !body_is(sim_taken(c), ++sink.requests);
}

static const struct sim_step take[] = {SIM_EXPECT_HTTP, SIM_CALL(note, NULL),
                                       SIM_SEND("HTTP/1.1 204 No Content\r\n\r\n"), SIM_AGAIN};

static void open_hosts(uint64_t seed)
{
    memset(&near, 0, sizeof near);
    memset(&far, 0, sizeof far);
    memset(&sink, 0, sizeof sink);
    hosts_world_open(&world, seed);
    sim_server(world.sim, SINK, take, ARRAY_SIZE(take));
    one = world_add_host(&world, "one", "10.0.0.1",
                         "[app src]\nmodule = /sim/src\n"
                         "[app near]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n"
                         "[output src.out]\nwire = http://10.0.0.2\nmode = pure\napp = dst\ntoken = t\n"
                         "[output src.cloud]\nwire = http://10.0.0.3/hook\n"
                         "[output src.log]\ninner = near\n",
                         (void *)&near);
    two = world_add_host(&world, "two", "10.0.0.2", "[app dst]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n",
                         (void *)&far);
    world_start(one);
    world_start(two);
}

static uint64_t awaited;

static bool all_consumed(void *context)
{
    (void)context;
    return near.records >= awaited && far.records >= awaited && sink.requests >= awaited &&
           world_host_empty(one) && world_host_empty(two);
}

static void run_until_consumed(uint64_t records)
{
    awaited = records;
    assert_int_equal(sim_run_until(world.sim, all_consumed, NULL), SIM_DONE);
    sim_run_for(world.sim, 10 * NS_PER_S);
}

static void assert_in_order(const struct tally *t, uint64_t records)
{
    assert_int_equal(t->records, records);
    assert_int_equal(t->first, 1);
    assert_int_equal(t->last, records);
    assert_int_equal(t->disorder, 0);
}

#define EVENTS 50

static void an_event_goes_through_every_kind_of_outlet_to_its_last_consumer(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        open_hosts(seed);
        for (unsigned i = 1; i <= EVENTS; i++) {
            char text[16], stored[32];
            snprintf(text, sizeof text, "%u", i);
            snprintf(stored, sizeof stored, "{\"stored\":%u}", i);
            struct sim_connection *c = world_ask(one, "/apps/src/events/count", text);
            assert_int_equal(world_status(c), 200);
            assert_true(world_reply_has(c, stored));
        }
        run_until_consumed(EVENTS);
        assert_in_order(&near, EVENTS);
        assert_in_order(&far, EVENTS);
        assert_int_equal(sink.requests, EVENTS);
        assert_int_equal(sink.wrong, 0);
        hosts_world_close(&world);
    }
}

static void a_request_of_lines_is_delivered_line_by_line(void **state)
{
    (void)state;
    open_hosts(1);
    struct sim_connection *c =
        world_post(one, "/apps/src/events/line", "application/x-ndjson", "1\n2\r\n\n3\n4");
    run_until_consumed(4);
    assert_int_equal(world_status(c), 200);
    assert_in_order(&near, 4);
    assert_in_order(&far, 4);
    assert_int_equal(sink.wrong, 0);
    hosts_world_close(&world);
}

static void without_the_token_nothing_enters(void **state)
{
    (void)state;
    open_hosts(1);
    struct sim_connection *c = sim_client(world.sim, "10.0.0.9", one->endpoint, NULL, 0);
    static const char post[] = "POST /apps/src/events/e HTTP/1.1\r\nHost: one\r\nContent-Length: 1\r\n\r\n1";
    sim_peer_send(c, post, sizeof post - 1);
    sim_run_for(world.sim, 5 * NS_PER_S);
    assert_int_equal(world_status(c), 401);
    assert_int_equal(near.records + far.records + sink.requests, 0);
    hosts_world_close(&world);
}

/* --- apps that fail --- */

static struct tally good, picky;

/* one: good (dst), picky (bad), shut (does not open), gone (does not load). */
static void open_failing(void)
{
    memset(&good, 0, sizeof good);
    memset(&picky, 0, sizeof picky);
    hosts_world_open(&world, 5);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "[app good]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n"
                         "[app picky]\nmodule = /sim/bad\narg = " WORLD_TALLY "\n"
                         "[app shut]\nmodule = /sim/dst\narg = nonsense\n"
                         "[app gone]\nmodule = /sim/gone\n",
                         (void *)&good, (void *)&picky);
    world_start(one);
}

static unsigned status_of(const char *path, const char *body)
{
    return world_status(world_ask(one, path, body));
}

static void an_app_that_fails_events_costs_the_others_nothing(void **state)
{
    (void)state;
    open_failing();
    for (unsigned i = 1; i <= 7; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        assert_int_equal(status_of("/apps/picky/events/e", "bad"), 500);
        assert_int_equal(status_of("/apps/good/events/e", text), 200);
    }
    assert_int_equal(status_of("/apps/picky/events/e", "1"), 200);
    assert_in_order(&good, 7);
    assert_in_order(&picky, 1);
    struct sim_connection *c = world_ask(one, "/status", NULL);
    assert_true(world_reply_has(c, "{\"name\":\"picky\",\"condition\":\"running\",\"stored\":1,"
                                   "\"failures\":21,\"refused\":7,"));
    assert_true(world_reply_has(c, "{\"name\":\"good\",\"condition\":\"running\",\"stored\":7,"
                                   "\"failures\":0,\"refused\":0,"));
    assert_int_equal(
        world_logged(one, "app picky failed event 'e' number 1 of http 3 times and it is refused"), 7);
    hosts_world_close(&world);
}

static void an_app_that_is_suspended_answers_503_and_the_others_go_on(void **state)
{
    (void)state;
    open_failing();
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(status_of("/apps/picky/events/e", "bad"), 500);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(status_of("/apps/picky/events/e", "1"), 503);
    assert_int_equal(status_of("/apps/good/events/e", "1"), 200);
    assert_in_order(&good, 1);
    assert_int_equal(picky.records, 0);
    struct sim_connection *c = world_ask(one, "/status", NULL);
    static const char why[] = "\"it has failed 8 events in a row, the last 'e' number 1 of http\"";
    assert_true(world_reply_has(c, "{\"name\":\"picky\",\"condition\":\"suspended\",\"why\":"));
    assert_true(world_reply_has(c, why));
    assert_true(world_reply_has(world_ask(one, "/apps/picky/state", NULL), why));
    assert_true(world_reply_has(world_ask(one, "/apps/picky/events/e", "1"), why));
    assert_int_equal(world_logged(one, "it has failed 8 events in a row, the last 'e' number 1 of http"), 1);
    c = world_ask(one, "/metrics", NULL);
    assert_true(world_reply_has(c, "pure_app_turned_away_total{app=\"picky\"} 5\n"));
    assert_true(world_reply_has(c, "pure_app_turned_away_total{app=\"good\"} 0\n"));
    assert_true(world_reply_has(c, "pure_app_inbox_capacity_bytes{app=\"good\"} 4194304\n"));
    c = world_ask(one, "/status", NULL);
    assert_true(world_reply_has(c, "{\"name\":\"good\",\"condition\":\"running\","));
    assert_int_equal(status_of("/health", NULL), 503);
    assert_int_equal(world_logged(one, "app picky is suspended"), 1);
    hosts_world_close(&world);
}

static void an_app_that_does_not_load_or_open_is_suspended_alone(void **state)
{
    (void)state;
    open_failing();
    assert_int_equal(status_of("/apps/gone/events/e", "1"), 503);
    assert_int_equal(status_of("/apps/shut/events/e", "1"), 503);
    assert_int_equal(status_of("/apps/good/events/e", "1"), 200);
    struct sim_connection *c = world_ask(one, "/status", NULL);
    assert_true(world_reply_has(
        c, "{\"name\":\"gone\",\"condition\":\"suspended\",\"why\":\"there is no such module\""));
    assert_true(world_reply_has(
        c, "{\"name\":\"shut\",\"condition\":\"suspended\",\"why\":\"its argument is no tally\""));
    assert_in_order(&good, 1);
    hosts_world_close(&world);
}

static bool refused_often(void *context)
{
    return counter_read(&((struct registry_app *)context)->report.refused) >= 3;
}

/* two's picky refuses the third record for ever; dst there, which another output of one feeds, goes on. */
static void a_record_that_is_always_refused_holds_its_own_stream_only(void **state)
{
    (void)state;
    memset(&good, 0, sizeof good);
    memset(&picky, 0, sizeof picky);
    hosts_world_open(&world, 5);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "[app src]\nmodule = /sim/src\n"
                         "[output src.out]\nwire = http://10.0.0.2\nmode = pure\napp = picky\ntoken = t\n"
                         "[output src.next]\nwire = http://10.0.0.2\nmode = pure\napp = good\ntoken = t\n");
    two = world_add_host(&world, "two", "10.0.0.2",
                         "[app good]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n"
                         "[app picky]\nmodule = /sim/bad\narg = " WORLD_TALLY "\n",
                         (void *)&good, (void *)&picky);
    world_start(one);
    world_start(two);
    assert_int_equal(status_of("/apps/src/events/e", "1"), 200);
    assert_int_equal(status_of("/apps/src/events/e", "2"), 200);
    assert_int_equal(status_of("/apps/src/events/e", "bad"), 200);
    assert_int_equal(sim_run_until(world.sim, refused_often, world_app(two, "picky")), SIM_DONE);
    assert_int_equal(status_of("/apps/src/events/e", "4"), 200);
    sim_run_for(world.sim, NS_PER_S);
    assert_in_order(&picky, 2);
    assert_int_equal(good.records, 4);
    assert_int_equal(good.last, 4);
    struct outlet *out = world_outlet(one, "src", "out");
    assert_int_equal(record_queue_glance(&out->queue).held_records, 2);
    struct sim_connection *c = world_ask(one, "/status", NULL);
    assert_true(world_reply_has(c, "\"output\":\"out\",\"kind\":\"wire\",\"state\":\"resting\""));
    assert_true(world_reply_has(c, "\"output\":\"next\",\"kind\":\"wire\",\"state\":\"ok\""));
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_goes_through_every_kind_of_outlet_to_its_last_consumer),
        cmocka_unit_test(a_request_of_lines_is_delivered_line_by_line),
        cmocka_unit_test(without_the_token_nothing_enters),
        cmocka_unit_test(an_app_that_fails_events_costs_the_others_nothing),
        cmocka_unit_test(an_app_that_is_suspended_answers_503_and_the_others_go_on),
        cmocka_unit_test(an_app_that_does_not_load_or_open_is_suspended_alone),
        cmocka_unit_test(a_record_that_is_always_refused_holds_its_own_stream_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
