/* How an output fares is known over restarts: failures in a row, and that it is disabled; who is to hear of
 * its end does so once; commands enable and disable it.
 *
 *     client ──HTTP──▶ one: src ──cloud, webhook──▶ 10.0.0.4:80, which answers as the test says
 *                               └─alarm, inner────▶ one: ears, /sim/dst: hears that cloud is disabled
 */
#include "host/host_private.h"
#include "tests/sim/hosts_world.h"
#include "tests/sim/ledgers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct hosts_world world;
static struct world_host *one;
static struct tally ears;
static struct sim_server *cloud;
static unsigned requests;

static void count(struct sim_connection *c, void *context)
{
    (void)c, (void)context;
    requests++;
}

#define ANSWERS(name, head)                                                                            \
    static const struct sim_step name[] = {SIM_EXPECT_HTTP, SIM_CALL(count, NULL),                     \
                                           SIM_SEND("HTTP/1.1 " head "\r\nContent-Length: 0\r\n\r\n"), \
                                           SIM_AGAIN}
ANSWERS(takes, "200 OK");
ANSWERS(fails, "500 No");
ANSWERS(gone, "410 Gone");

#define TEXT(keys)                                                                         \
    "[app src]\nmodule = /sim/src\n[app ears]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n" \
    "[output src.alarm]\ninner = ears\n"                                                   \
    "[output src.cloud]\nwire = http://10.0.0.4/hook\non_disable = alarm\n" keys

#define QUICK "backoff_max = 200ms\n"

static void open_world(uint64_t seed, bool disk, const char *keys, const struct sim_step *script)
{
    char format[1000];
    requests = 0;
    ears = (struct tally){0};
    hosts_world_open(&world, seed);
    snprintf(format, sizeof format, "%s" TEXT("%s"), disk ? "segment = 256K\n" : "", (void *)&ears, keys);
    one = world_add_host(&world, "one", "10.0.0.1", "%s", format);
    if (disk)
        world_add_disk(one);
    cloud = sim_server(world.sim, "10.0.0.4:80", script, 4);
    world_start(one);
}

static void answer_from_now_on(const struct sim_step *script)
{
    sim_server_script(cloud, script, 4);
    for (unsigned i = 0; i < sim_server_accepted(cloud); i++)
        sim_peer_close(sim_server_connection(cloud, i));
    sim_run_for(world.sim, NS_PER_MS);
}

static void restart(void (*end)(struct world_host *h))
{
    end(one);
    world_start(one);
    sim_run_for(world.sim, 3 * NS_PER_S);
}

static void stop(struct world_host *h)
{
    assert_true(world_stop(h) < 5 * NS_PER_S);
}

static void post(unsigned number)
{
    char body[16];
    snprintf(body, sizeof body, "%u", number);
    assert_int_equal(world_status(world_ask(one, "/apps/src/events/e", body)), 200);
}

static int state_of_cloud(void)
{
    return atomic_load(&world_outlet(one, "src", "cloud")->report.state);
}

static uint64_t failures_of_cloud(void)
{
    return atomic_load(&world_outlet(one, "src", "cloud")->report.failures);
}

/* Records that ears has stored, in all lives. */
static uint64_t heard(void)
{
    return counter_read(&world_app(one, "ears")->report.stored);
}

static bool status_has(const char *text)
{
    return world_reply_has(world_ask(one, "/status", NULL), text);
}

static void assert_disabled(void)
{
    unsigned before = requests;
    sim_run_for(world.sim, 5 * NS_PER_S);
    assert_int_equal(state_of_cloud(), OUTLET_DISABLED);
    assert_int_equal(requests, before);
    assert_int_equal(world_status(world_ask(one, "/health", NULL)), 503);
}

/* --- by itself --- */

static void failures_in_a_row_disable_and_one_output_hears_of_it_once(void **state)
{
    (void)state;
    for (unsigned disk = 0; disk < 2; disk++) {
        open_world(1, disk, QUICK "disable_after = 4\n", fails);
        post(1);
        sim_run_for(world.sim, 10 * NS_PER_S);
        assert_int_equal(requests, 4);
        assert_disabled();
        assert_int_equal(heard(), 1);
        assert_true(status_has("\"state\":\"disabled\""));
        assert_true(status_has("4 failures in a row"));
        hosts_world_close(&world);
    }
}

static void a_disabled_output_stays_so_over_restarts(void **state)
{
    (void)state;
    static void (*const ends[])(struct world_host *) = {stop, world_kill, world_crash};
    for (unsigned i = 0; i < ARRAY_SIZE(ends); i++) {
        open_world(i + 1, true, QUICK "", gone);
        post(1);
        sim_run_for(world.sim, 3 * NS_PER_S);
        assert_int_equal(state_of_cloud(), OUTLET_DISABLED);
        answer_from_now_on(takes);
        for (unsigned life = 0; life < 3; life++) {
            restart(ends[i]);
            assert_disabled();
            assert_int_equal(heard(), 1);
            assert_true(status_has("410"));
        }
        assert_int_equal(requests, 1);
        hosts_world_close(&world);
    }
}

static void failures_are_counted_on_after_a_restart(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        open_world(seed, true, "disable_after = 100\nbackoff_min = 2s\nbackoff_max = 2s\n", fails);
        post(1);
        sim_run_for(world.sim, 30 * NS_PER_S);
        uint64_t before = failures_of_cloud();
        assert_true(before > 10 && before < 20);
        restart(seed % 2 ? world_kill : world_crash);
        assert_true(failures_of_cloud() >= before && failures_of_cloud() <= before + 3);
        sim_run_for(world.sim, 300 * NS_PER_S);
        assert_disabled();
        assert_true(requests >= 100 && requests <= 101);
        assert_int_equal(heard(), 1);
        hosts_world_close(&world);
    }
}

static void a_success_ends_the_count_over_restarts_too(void **state)
{
    (void)state;
    open_world(1, true, QUICK "disable_after = 100\n", fails);
    post(1);
    sim_run_for(world.sim, 3 * NS_PER_S);
    assert_true(failures_of_cloud() > 3);
    answer_from_now_on(takes);
    sim_run_for(world.sim, 3 * NS_PER_S);
    assert_int_equal(failures_of_cloud(), 0);
    restart(world_crash);
    assert_int_equal(failures_of_cloud(), 0);
    assert_int_equal(state_of_cloud(), OUTLET_OK);
    hosts_world_close(&world);
}

static void another_configuration_tries_again(void **state)
{
    (void)state;
    open_world(1, true, QUICK "", gone);
    post(1);
    sim_run_for(world.sim, 3 * NS_PER_S);
    answer_from_now_on(takes);
    stop(one);
    strcat(one->text, "token = another\n");
    world_start(one);
    sim_run_for(world.sim, 3 * NS_PER_S);
    assert_int_equal(state_of_cloud(), OUTLET_OK);
    assert_int_equal(requests, 2);
    hosts_world_close(&world);
}

/* At whatever instant the machine loses power: in the end it is disabled, and heard of once. */
static void the_end_is_heard_of_once_whatever_crashes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        open_world(seed, true, QUICK "disable_after = 3\n", fails);
        post(1);
        for (unsigned i = 0; i < 10000 && requests < 3; i++)
            sim_run_for(world.sim, 100 * NS_PER_US);
        sim_run_for(world.sim, seed * 100 * NS_PER_US);
        restart(seed % 3 ? world_crash : world_kill);
        sim_run_for(world.sim, 10 * NS_PER_S);
        assert_int_equal(state_of_cloud(), OUTLET_DISABLED);
        assert_int_equal(heard(), 1);
        hosts_world_close(&world);
    }
}

/* Its queue is full of what 10.0.0.5 does not take, until it does. */
static void who_has_no_room_hears_later(void **state)
{
    (void)state;
    for (unsigned disk = 0; disk < 2; disk++) {
        char text[2000];
        hosts_world_open(&world, 1);
        requests = 0;
        one = world_add_host(&world, "one", "10.0.0.1",
                             "[app src]\nmodule = /sim/src\n"
                             "[output src.out]\nwire = http://10.0.0.5/\nqueue = 4K\n%s"
                             "[output src.cloud]\nwire = http://10.0.0.4/\n" QUICK "on_disable = out\n",
                             disk ? "backlog = 0\n" : "");
        if (disk)
            world_add_disk(one);
        cloud = sim_server(world.sim, "10.0.0.4:80", takes, 4);
        struct sim_server *out = sim_server(world.sim, "10.0.0.5:80", takes, 4);
        sim_server_listen(out, false);
        world_start(one);
        memset(text, 'x', sizeof text);
        text[1000] = '\0';
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(world_status(world_ask(one, "/apps/src/events/e", text)), 200);
        sim_run_for(world.sim, NS_PER_S);
        answer_from_now_on(gone);
        assert_int_equal(world_status(world_ask(one, "/apps/src/events/e", text)), 200);
        sim_run_for(world.sim, 3 * NS_PER_S);
        assert_int_equal(state_of_cloud(), OUTLET_DISABLED);
        assert_int_equal(world_logged(one, "src.out does not hear of it yet"), 1);
        unsigned before = requests;
        sim_server_listen(out, true);
        sim_run_for(world.sim, 200 * NS_PER_S);
        assert_int_equal(requests, before + 5); /* four that the app has sent, and the word */
        hosts_world_close(&world);
    }
}

/* --- by command --- */

static void a_command_enables_and_that_outlives_a_crash(void **state)
{
    (void)state;
    for (unsigned disk = 0; disk < 2; disk++) {
        open_world(1, disk, QUICK "", gone);
        post(1);
        sim_run_for(world.sim, 3 * NS_PER_S);
        answer_from_now_on(takes);
        struct sim_connection *c = world_ask(one, "/outputs/src.cloud/enable", "");
        assert_int_equal(world_status(c), 200);
        assert_true(world_reply_has(c, "{\"output\":\"src.cloud\",\"disabled\":false}"));
        if (disk) {
            world_crash(one);
            world_start(one);
        }
        sim_run_for(world.sim, 3 * NS_PER_S);
        assert_int_equal(state_of_cloud(), OUTLET_OK);
        assert_true(requests >= 2);
        hosts_world_close(&world);
    }
}

static void a_command_disables_and_nobody_need_hear_of_it(void **state)
{
    (void)state;
    for (unsigned disk = 0; disk < 2; disk++) {
        open_world(1, disk, QUICK "", takes);
        post(1);
        struct sim_connection *c = world_ask(one, "/outputs/src.cloud/disable", "");
        assert_int_equal(world_status(c), 200);
        assert_true(world_reply_has(c, "\"disabled\":true"));
        if (disk)
            restart(world_crash);
        assert_disabled();
        assert_true(status_has("disabled by command"));
        post(2);
        sim_run_for(world.sim, 3 * NS_PER_S);
        assert_int_equal(requests, 1);
        assert_int_equal(heard(), 0);
        assert_int_equal(world_status(world_ask(one, "/outputs/src.cloud/enable", "")), 200);
        sim_run_for(world.sim, 3 * NS_PER_S);
        assert_int_equal(requests, 2);
        hosts_world_close(&world);
    }
}

static void what_changes_nothing_is_answered_too(void **state)
{
    (void)state;
    open_world(1, true, QUICK "", takes);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(world_status(world_ask(one, "/outputs/src.cloud/enable", "")), 200);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(world_status(world_ask(one, "/outputs/src.cloud/disable", "whatever")), 200);
    assert_int_equal(world_status(world_ask(one, "/outputs/src.cloud/enable", NULL)), 405);
    assert_int_equal(world_status(world_ask(one, "/outputs/src.alarm/disable", "")), 404);
    assert_int_equal(world_status(world_ask(one, "/outputs/src.nothing/disable", "")), 404);
    assert_int_equal(world_status(world_ask(one, "/outputs/nobody.cloud/disable", "")), 404);
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_in_a_row_disable_and_one_output_hears_of_it_once),
        cmocka_unit_test(a_disabled_output_stays_so_over_restarts),
        cmocka_unit_test(failures_are_counted_on_after_a_restart),
        cmocka_unit_test(a_success_ends_the_count_over_restarts_too),
        cmocka_unit_test(another_configuration_tries_again),
        cmocka_unit_test(the_end_is_heard_of_once_whatever_crashes),
        cmocka_unit_test(who_has_no_room_hears_later),
        cmocka_unit_test(a_command_enables_and_that_outlives_a_crash),
        cmocka_unit_test(a_command_disables_and_nobody_need_hear_of_it),
        cmocka_unit_test(what_changes_nothing_is_answered_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
