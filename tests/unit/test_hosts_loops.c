/* A host with several sending loops, to which its wires and links are dealt in turn.
 *
 *     client ──HTTP──▶ one 10.0.0.1: src ──out, log:  wires──▶ two 10.0.0.2: w1, w2   (dst)
 *                                        ──cloud, d1: a link─▶ two: a, b              (dst)
 *                                        ──next:      a link─▶ three 10.0.0.3: c      (dst)
 *
 *     loops = 2    pure-send: out, log            pure-send-2: cloud, d1, next
 *     loops = 3    pure-send: out, next           pure-send-2: cloud, d1        pure-send-3: log
 */
#include "host/host_private.h"
#include "tests/sim/datagrams.h"
#include "tests/sim/hosts_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum receiver { W1, W2, A, B, C, RECEIVERS };

static const char *const outputs[RECEIVERS] = {"out", "log", "cloud", "d1", "next"};

static struct hosts_world world;
static struct world_host *one, *two, *three;
static struct tally there[RECEIVERS];
static uint64_t posted;

static const char *sections(void)
{
    static char text[2048];
    snprintf(text, sizeof text,
             "[app src]\nmodule = /sim/src\n"
             "[output src.out]\nwire = http://two.local\nmode = pure\napp = w1\ntoken = t\n"
             "[output src.cloud]\nlink = two.local:7071\nkey = %s\napp = a\n"
             "[output src.log]\nwire = http://two.local\nmode = pure\napp = w2\ntoken = t\n"
             "[output src.next]\nlink = three.local:7071\nkey = %s\napp = c\n"
             "[output src.d1]\nlink = two.local:7071\nkey = %s\napp = b\n",
             world.keys[1], world.keys[2], world.keys[1]);
    return text;
}

static void set_name(const char *name, const char *address)
{
    sim_set_name(world.sim, name, &(struct sim_answer){.addresses = {address}, .delay_ns = NS_PER_MS});
}

static void open_world(uint64_t seed, unsigned loops)
{
    memset(there, 0, sizeof there);
    posted = 0;
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1", "loops = %u\n%s", loops, sections());
    two = world_add_host(
        &world, "two", "10.0.0.2",
        "link = 0.0.0.0:7071\n[app w1]\nmodule = /sim/dst\narg = " WORLD_TALLY
        "\n[app w2]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n[app a]\nmodule = /sim/dst\narg = " WORLD_TALLY
        "\n[app b]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n[peer one]\nkey = %s\napps = a, b\n",
        (void *)&there[W1], (void *)&there[W2], (void *)&there[A], (void *)&there[B], world.keys[0]);
    three = world_add_host(&world, "three", "10.0.0.3",
                           "link = 0.0.0.0:7071\n[app c]\nmodule = /sim/dst\narg = " WORLD_TALLY
                           "\n[peer one]\nkey = %s\napps = c\n",
                           (void *)&there[C], world.keys[0]);
    set_name("two.local", "10.0.0.2");
    set_name("three.local", "10.0.0.3");
    world_start(two);
    world_start(three);
    world_start(one);
}

static void post(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char text[16];
        snprintf(text, sizeof text, "%llu", (unsigned long long)++posted);
        assert_int_equal(world_status(world_ask(one, "/apps/src/events/e", text)), 200);
    }
}

static bool arrived(enum receiver at)
{
    return there[at].last == posted && there[at].disorder == 0;
}

static bool all_arrived(void *context)
{
    (void)context;
    bool all = world_host_empty(one);
    for (enum receiver at = 0; at < RECEIVERS; at++)
        all = all && arrived(at);
    return all;
}

static void assert_exact(void)
{
    for (enum receiver at = 0; at < RECEIVERS; at++) {
        assert_int_equal(there[at].records, posted);
        assert_int_equal(there[at].disorder, 0);
    }
}

static const char *loop_of(const char *output)
{
    const struct registry *r = host_registry(one->host);
    const struct outlet *o = world_outlet(one, "src", output);
    for (unsigned i = 0; i < r->loop_count; i++) {
        if (o->consumer == &r->loops[i].loop->board)
            return r->loops[i].name;
    }
    return "none";
}

static unsigned sending_loops(void)
{
    const struct registry *r = host_registry(one->host);
    unsigned count = 0;
    for (unsigned i = 0; i < r->loop_count; i++)
        count += strncmp(r->loops[i].name, "pure-send", strlen("pure-send")) == 0;
    return count;
}

static void outlets_are_dealt_to_the_loops_in_the_order_of_the_configuration(void **state)
{
    (void)state;
    static const struct {
        unsigned loops;
        const char *names[RECEIVERS];
    } cases[] = {
        {1, {"pure-send", "pure-send", "pure-send", "pure-send", "pure-send"}},
        {2, {"pure-send", "pure-send", "pure-send-2", "pure-send-2", "pure-send-2"}},
        {3, {"pure-send", "pure-send-3", "pure-send-2", "pure-send-2", "pure-send"}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        open_world(1, cases[i].loops);
        for (enum receiver at = 0; at < RECEIVERS; at++)
            assert_string_equal(loop_of(outputs[at]), cases[i].names[at]);
        assert_int_equal(sending_loops(), cases[i].loops);
        hosts_world_close(&world);
    }
}

static void no_loop_is_made_without_an_outlet(void **state)
{
    (void)state;
    open_world(1, 16);
    assert_int_equal(sending_loops(), 4); /* two wires, two links of three outputs */
    hosts_world_close(&world);
    hosts_world_open(&world, 1);
    one = world_add_host(&world, "one", "10.0.0.1", "loops = 16\n[app src]\nmodule = /sim/src\n");
    world_start(one);
    assert_int_equal(sending_loops(), 0);
    hosts_world_close(&world);
}

static void records_of_all_loops_arrive_once_and_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        open_world(seed, 2 + seed % 2);
        post(30);
        assert_int_equal(sim_run_until(world.sim, all_arrived, NULL), SIM_DONE);
        sim_run_for(world.sim, 5 * NS_PER_S);
        assert_exact();
        hosts_world_close(&world);
    }
}

static void a_loop_that_stands_still_holds_up_its_own_outlets_only(void **state)
{
    (void)state;
    for (unsigned loops = 2; loops <= 3; loops++) {
        open_world(1, loops);
        struct loop *still = world_loop(one, "pure-send-2");
        sim_remove_loop(world.sim, still);
        post(30);
        sim_run_for(world.sim, NS_PER_S);
        for (enum receiver at = 0; at < RECEIVERS; at++)
            assert_int_equal(arrived(at), strcmp(loop_of(outputs[at]), "pure-send-2") != 0);
        sim_add_loop(world.sim, still);
        assert_int_equal(sim_run_until(world.sim, all_arrived, NULL), SIM_DONE);
        assert_exact();
        hosts_world_close(&world);
    }
}

/* A name that is never answered, and a host that is silent. */
static void dead_endpoints_of_one_loop_do_no_harm_to_the_others(void **state)
{
    (void)state;
    open_world(1, 2);
    sim_silence_host(world.sim, "10.0.0.3", true);
    sim_set_name(world.sim, "two.local", &(struct sim_answer){.delay_ns = SIM_HANGS});
    world_kill(one);
    world_start(one); /* nothing is known of names */
    post(5);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(there[W1].last + there[A].last + there[C].last, 0);
    set_name("two.local", "10.0.0.2");
    world_kill(one);
    world_start(one);
    posted = 0;
    post(30);
    sim_run_for(world.sim, NS_PER_S);
    assert_true(arrived(W1) && arrived(W2) && arrived(A) && arrived(B) && !arrived(C));
    sim_silence_host(world.sim, "10.0.0.3", false);
    assert_int_equal(sim_run_until(world.sim, all_arrived, NULL), SIM_DONE);
    hosts_world_close(&world);
}

static bool stopped(void *context)
{
    (void)context;
    return host_stopped(one->host);
}

static void a_stop_delivers_what_each_loop_holds(void **state)
{
    (void)state;
    for (unsigned loops = 2; loops <= 3; loops++) {
        open_world(loops, loops);
        post(30);
        host_stop(one->host);
        assert_int_equal(sim_run_until(world.sim, stopped, NULL), SIM_DONE);
        assert_true(world_host_empty(one));
        world_kill(one); /* all loops end: their wires close, their links' sessions, too */
        sim_run_for(world.sim, 10 * NS_PER_S);
        assert_exact();
        assert_int_equal(world_logged(one, "were not delivered"), 0);
        hosts_world_close(&world);
    }
}

static void a_stop_ends_in_time_with_a_loop_whose_endpoints_are_dead(void **state)
{
    (void)state;
    open_world(1, 2);
    sim_silence_host(world.sim, "10.0.0.2", true);
    post(5);
    uint64_t began_ns = sim_now_ns(world.sim);
    host_stop(one->host);
    assert_int_equal(sim_run_until(world.sim, stopped, NULL), SIM_DONE);
    assert_true(sim_now_ns(world.sim) - began_ns < 5 * NS_PER_S);
    assert_int_equal(there[C].last, posted);
    sim_run_for(world.sim, 10 * NS_PER_MS);
    assert_int_equal(world_logged(one, "were not delivered"), 4);
    hosts_world_close(&world);
}

static void a_host_starts_again_with_another_number_of_loops(void **state)
{
    (void)state;
    open_world(1, 3);
    for (unsigned loops = 3; loops > 0; loops--) {
        post(10);
        assert_int_equal(sim_run_until(world.sim, all_arrived, NULL), SIM_DONE);
        assert_int_equal(sending_loops(), loops);
        world_kill(one);
        snprintf(one->text, sizeof one->text, "loops = %u\n%s", loops - 1 ? loops - 1 : 1, sections());
        world_start(one);
    }
    hosts_world_close(&world);
}

/* --- a reload --- */

static unsigned hooked;

static void note(struct sim_connection *c, void *context)
{
    (void)c, (void)context;
    hooked++;
}

static const struct sim_step hook[] = {SIM_EXPECT_HTTP, SIM_CALL(note, NULL),
                                       SIM_SEND("HTTP/1.1 204 No Content\r\n\r\n"), SIM_AGAIN};

static void reload(const char *text)
{
    char whole[4096], error[200] = "";
    snprintf(whole, sizeof whole,
             "[host]\nname = one\nhttp = %s\ntoken = t\nstore = memory\nkey = env:PURE_SIM_KEY_0\n%s",
             one->endpoint, text);
    struct config *to = calloc(1, sizeof *to);
    config_load_text(to, "new.conf", span_text(whole), error, sizeof error);
    assert_string_equal(error, "");
    host_take_config(one->host, to);
}

static void a_reload_changes_wires_of_all_loops_and_the_rest_waits_for_a_restart(void **state)
{
    (void)state;
    char text[2048] = "loops = 3\n";
    hooked = 0;
    hosts_world_open(&world, 1);
    sim_server(world.sim, "10.0.0.4:80", hook, ARRAY_SIZE(hook));
    one = world_add_host(&world, "one", "10.0.0.1",
                         "loops = 2\n[app src]\nmodule = /sim/src\n"
                         "[output src.out]\nwire = http://10.0.0.5/a\n"
                         "[output src.cloud]\nwire = http://10.0.0.5/b\n"
                         "[output src.log]\nwire = http://10.0.0.4/c\n");
    world_start(one);
    posted = 0;
    post(4);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(hooked, 4);
    strcat(text, "[app src]\nmodule = /sim/src\n"
                 "[output src.out]\nwire = http://10.0.0.4/a\n"
                 "[output src.cloud]\nwire = http://10.0.0.4/b\n"
                 "[output src.next]\nwire = http://10.0.0.4/c\n");
    reload(text);
    sim_run_for(world.sim, 2 * NS_PER_S);
    assert_int_equal(hooked, 12);
    assert_string_equal(loop_of("cloud"), "pure-send-2");
    assert_int_equal(world_logged(one, "reload: [host] loops changes with the next start"), 1);
    assert_int_equal(world_logged(one, "reload: output src.log changes with the next start"), 1);
    assert_int_equal(world_logged(one, "reload: output src.next changes with the next start"), 1);
    world_kill(one);
    snprintf(one->text, sizeof one->text, "%s", text);
    world_start(one);
    assert_int_equal(sending_loops(), 3);
    post(1);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(hooked, 15);
    hosts_world_close(&world);
}

static void each_loop_is_counted_by_its_name(void **state)
{
    (void)state;
    open_world(1, 3);
    post(3);
    struct sim_connection *metrics = world_ask(one, "/metrics", NULL);
    assert_true(world_reply_has(metrics, "pure_loop_steps_total{loop=\"pure-send\"} "));
    assert_true(world_reply_has(metrics, "pure_loop_steps_total{loop=\"pure-send-2\"} "));
    assert_true(world_reply_has(metrics, "pure_io_enters_total{loop=\"pure-send-3\"} "));
    assert_true(world_reply_has(metrics, "pure_log_dropped_total{loop=\"pure-send-3\"} 0"));
    assert_false(world_reply_has(metrics, "pure-send-4"));
    assert_int_equal(world_status(world_ask(one, "/health", NULL)), 200);
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outlets_are_dealt_to_the_loops_in_the_order_of_the_configuration),
        cmocka_unit_test(no_loop_is_made_without_an_outlet),
        cmocka_unit_test(records_of_all_loops_arrive_once_and_in_order),
        cmocka_unit_test(a_loop_that_stands_still_holds_up_its_own_outlets_only),
        cmocka_unit_test(dead_endpoints_of_one_loop_do_no_harm_to_the_others),
        cmocka_unit_test(a_stop_delivers_what_each_loop_holds),
        cmocka_unit_test(a_stop_ends_in_time_with_a_loop_whose_endpoints_are_dead),
        cmocka_unit_test(a_host_starts_again_with_another_number_of_loops),
        cmocka_unit_test(a_reload_changes_wires_of_all_loops_and_the_rest_waits_for_a_restart),
        cmocka_unit_test(each_loop_is_counted_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
