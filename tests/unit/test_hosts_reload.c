/* Changing a host while it runs.
 *
 *     client ──HTTP──▶ one 10.0.0.1: src ──cloud: webhook──▶ 10.0.0.3:80 at first, 10.0.0.4:80 after the
 * change
 */
#include "host/host_private.h"
#include "tests/sim/hosts_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct hosts_world world;
static struct world_host *one;
static unsigned got, wrong;

static void note(struct sim_connection *c, void *context)
{
    (void)context;
    struct span message = sim_taken(c);
    char expected[32];
    int size = snprintf(expected, sizeof expected, "\r\n\r\n%u", ++got);
    wrong += message.size < (size_t)size ||
             memcmp(message.data + message.size - size, expected, (size_t)size) != 0;
}

static const struct sim_step take[] = {SIM_EXPECT_HTTP, SIM_CALL(note, NULL),
                                       SIM_SEND("HTTP/1.1 204 No Content\r\n\r\n"), SIM_AGAIN};
static const struct sim_step gone_once[] = {SIM_EXPECT_HTTP,
                                            SIM_SEND("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"),
                                            SIM_EXPECT_HTTP,
                                            SIM_CALL(note, NULL),
                                            SIM_SEND("HTTP/1.1 204 No Content\r\n\r\n"),
                                            SIM_AGAIN};

#define APPS   "[app src]\nmodule = /sim/src\n"
#define OUTPUT "[output src.cloud]\nwire = http://%s/hook\n"

static void open_world(const char *text)
{
    got = wrong = 0;
    hosts_world_open(&world, 1);
    one = world_add_host(&world, "one", "10.0.0.1", "%s", text);
    world_start(one);
}

#define SAME_KEY "key = env:PURE_SIM_KEY_0\n" /* as the world has it */

static void reload(const char *format, ...)
{
    char text[4096];
    int size = snprintf(text, sizeof text, "[host]\nname = one\nhttp = %s\n%s%s", one->endpoint,
                        strstr(format, "\nstore = ") ? "" : "store = memory\n",
                        strstr(format, "[host] key") ? "" : SAME_KEY);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + size, sizeof text - (size_t)size, format, arguments);
    va_end(arguments);
    struct config *to = calloc(1, sizeof *to);
    char error[200] = "";
    config_load_text(to, "new.conf", span_text(text), error, sizeof error);
    assert_string_equal(error, "");
    host_take_config(one->host, to);
    sim_run_for(world.sim, 2 * NS_PER_S);
}

static void post_next(unsigned number)
{
    char body[16];
    snprintf(body, sizeof body, "%u", number);
    assert_int_equal(world_status(world_ask(one, "/apps/src/events/e", body)), 200);
}

static void a_new_url_takes_the_queue_along(void **state)
{
    (void)state;
    open_world(APPS "[output src.cloud]\nwire = http://10.0.0.3/hook\n");
    sim_server(world.sim, "10.0.0.4:80", take, ARRAY_SIZE(take));
    for (unsigned i = 1; i <= 10; i++)
        post_next(i);
    assert_int_equal(got, 0);
    reload("token = t\n" APPS OUTPUT, "10.0.0.4");
    assert_int_equal(got, 10);
    assert_int_equal(wrong, 0);
    assert_true(world_host_empty(one));
    assert_int_equal(world_logged(one, "reload: done; 1 wires changed, 0 changes wait"), 1);
    hosts_world_close(&world);
}

static void a_disabled_output_is_tried_again_when_it_is_configured_anew(void **state)
{
    (void)state;
    open_world(APPS "[output src.cloud]\nwire = http://10.0.0.4/hook\n");
    struct sim_server *server = sim_server(world.sim, "10.0.0.4:80", gone_once, ARRAY_SIZE(gone_once));
    (void)server;
    post_next(1);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(atomic_load(&world_outlet(one, "src", "cloud")->report.state), OUTLET_DISABLED);
    sim_server(world.sim, "10.0.0.5:80", take, ARRAY_SIZE(take));
    reload("token = t\n" APPS OUTPUT, "10.0.0.5");
    assert_int_equal(got, 1);
    assert_int_equal(atomic_load(&world_outlet(one, "src", "cloud")->report.state), OUTLET_OK);
    hosts_world_close(&world);
}

/* What is as it was is no reason to go on against what somebody wanted. */
static void what_a_command_has_disabled_stays_so_until_it_is_configured_anew(void **state)
{
    (void)state;
    open_world(APPS "[output src.cloud]\nwire = http://10.0.0.4/hook\n");
    sim_server(world.sim, "10.0.0.4:80", take, ARRAY_SIZE(take));
    assert_int_equal(world_status(world_ask(one, "/outputs/src.cloud/disable", "")), 200);
    post_next(1);
    reload("token = t\n" APPS "[output src.cloud]\nwire = http://10.0.0.4/%s\n", "hook");
    assert_int_equal(got, 0);
    reload("token = t\n" APPS "[output src.cloud]\nwire = http://10.0.0.4/%s\n", "other");
    assert_int_equal(got, 1);
    hosts_world_close(&world);
}

static void an_output_without_its_tls_files_rests_until_it_has_them(void **state)
{
    (void)state;
    open_world(APPS "[output src.cloud]\nwire = https://10.0.0.4/hook\nca = /nonexistent/ca.pem\n");
    struct sim_server *server = sim_server(world.sim, "10.0.0.4:443", take, ARRAY_SIZE(take));
    struct outlet *cloud = world_outlet(one, "src", "cloud");
    post_next(1);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(atomic_load(&cloud->report.state), OUTLET_RESTING);
    assert_int_equal(atomic_load(&cloud->report.error), PE_TLS_FILES);
    assert_int_equal(world_logged(one, "TLS: /nonexistent/ca.pem: "), 1);
    assert_true(sim_server_accepted(server) > 0);
    sim_server(world.sim, "10.0.0.4:80", take, ARRAY_SIZE(take));
    reload("token = t\n" APPS OUTPUT, "10.0.0.4");
    assert_int_equal(got, 1);
    hosts_world_close(&world);
}

static void what_cannot_change_is_named_and_stays(void **state)
{
    (void)state;
    open_world(APPS "[output src.cloud]\nwire = http://10.0.0.4/hook\n");
    sim_server(world.sim, "10.0.0.4:80", take, ARRAY_SIZE(take));
    reload("token = t\nowners = 3\nwithout = quotas\n" APPS "[app more]\nmodule = /sim/dst\n" OUTPUT
           "queue = 1M\n",
           "10.0.0.4");
    assert_int_equal(world_logged(one, "reload: [host] owners changes with the next start"), 1);
    assert_int_equal(world_logged(one, "reload: [host] without changes with the next start"), 1);
    assert_int_equal(world_logged(one, "reload: app more changes with the next start"), 1);
    assert_int_equal(world_logged(one, "reload: output src.cloud changes with the next start"), 1);
    assert_int_equal(world_status(world_ask(one, "/apps/more/events/e", "x")), 404);
    post_next(1);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(got, 1);
    hosts_world_close(&world);
}

/* Public keys; whose does not matter. */
#define KEY_A "PHeMdsnWZDJDbb7qWMobcZRzbIG/L3IcSe79r0PyFhg="
#define KEY_B "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="

static unsigned peer_waits(const char *name)
{
    char line[100];
    snprintf(line, sizeof line, "reload: peer %s changes with the next start", name);
    return world_logged(one, line);
}

static void links_and_peers_wait_for_a_restart(void **state)
{
    (void)state;
    static const char more[] = "[app more]\nmodule = /sim/dst\n";
    char text[1000];
    snprintf(text, sizeof text,
             APPS "%s[peer same]\nkey = " KEY_A "\napps = src, more\n[peer apps]\nkey = " KEY_B
                  "\napps = src\n"
                  "[peer gone]\nkey = EAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\napps = src\n",
             more);
    open_world(text);
    reload("; another [host] key\ntoken = t\nlink = 0.0.0.0:7071\nkey = host.key\nlink_window = 4M\n" APPS
           "%s[output src.cloud]\nlink = 10.0.0.9:7071\nkey = " KEY_B "\napp = a\n"
           "[peer same]\nkey = " KEY_A "\napps = more, src\n[peer apps]\nkey = " KEY_B "\napps = more\n"
           "[peer added]\nkey = EAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\napps = src\n",
           more);
    assert_int_equal(world_logged(one, "reload: [host] link changes with the next start"), 1);
    assert_int_equal(world_logged(one, "reload: [host] key: "), 1); /* no such file */
    assert_int_equal(world_logged(one, "reload: [host] link_window changes with the next start"), 1);
    assert_int_equal(world_logged(one, "reload: output src.cloud changes with the next start"), 1);
    assert_int_equal(peer_waits("same"), 0);
    assert_int_equal(peer_waits("apps"), 1);
    assert_int_equal(peer_waits("gone"), 1);
    assert_int_equal(peer_waits("added"), 1);
    assert_int_equal(world_logged(one, "reload: done; 0 wires changed, 7 changes wait for a restart"), 1);
    hosts_world_close(&world);
}

/* Each value of a link in turn; nobody answers at its address. */
static void a_link_that_is_changed_waits_for_a_restart(void **state)
{
    (void)state;
    static const char *const changed[] = {
        "link = 10.0.0.8:7071\nkey = " KEY_A "\napp = a\nevent = e\nmtu = 1400\n",
        "link = 10.0.0.9:7072\nkey = " KEY_A "\napp = a\nevent = e\nmtu = 1400\n",
        "link = 10.0.0.9:7071\nkey = " KEY_B "\napp = a\nevent = e\nmtu = 1400\n",
        "link = 10.0.0.9:7071\nkey = " KEY_A "\napp = b\nevent = e\nmtu = 1400\n",
        "link = 10.0.0.9:7071\nkey = " KEY_A "\napp = a\nevent = f\nmtu = 1400\n",
        "link = 10.0.0.9:7071\nkey = " KEY_A "\napp = a\nevent = e\nmtu = 1401\n",
    };
    static const char host[] = APPS;
    static const char link[] =
        "[output src.cloud]\nlink = 10.0.0.9:7071\nkey = " KEY_A "\napp = a\nevent = e\nmtu = 1400\n";
    char text[500];
    snprintf(text, sizeof text, "%s%s", host, link);
    open_world(text);
    reload("token = t\n%s%s", host, link);
    assert_int_equal(world_logged(one, "changes with the next start"), 0);
    for (unsigned i = 0; i < ARRAY_SIZE(changed); i++) {
        reload("token = t\n%s[output src.cloud]\n%s", host, changed[i]);
        assert_int_equal(world_logged(one, "reload: output src.cloud changes with the next start"), i + 1);
    }
    hosts_world_close(&world);
}

static void a_store_and_what_it_keeps_wait_for_a_restart(void **state)
{
    (void)state;
    static const char *const changed[] = {"backlog = 2G\n", "attempts = 3\n", "dead = 5\n"};
    open_world(APPS "[output src.cloud]\nwire = http://10.0.0.4/hook\n");
    for (unsigned i = 0; i < ARRAY_SIZE(changed); i++) {
        reload("token = t\nstore = s\nsegment = 1M\n" APPS
               "[output src.cloud]\nwire = http://10.0.0.4/hook\n%s",
               changed[i]);
        assert_int_equal(world_logged(one, "reload: [host] store changes with the next start"), i + 1);
        assert_int_equal(world_logged(one, "reload: [host] segment changes with the next start"), i + 1);
        assert_int_equal(world_logged(one, "reload: app src changes with the next start"), i + 1);
        assert_int_equal(world_logged(one, "reload: output src.cloud changes with the next start"), i + 1);
    }
    hosts_world_close(&world);
}

static void a_file_that_is_wrong_changes_nothing(void **state)
{
    (void)state;
    open_world(APPS "[output src.cloud]\nwire = http://10.0.0.4/hook\n");
    sim_server(world.sim, "10.0.0.4:80", take, ARRAY_SIZE(take));
    for (int i = 0; i < 100; i++)
        assert_true(host_reload(one->host) < 0); /* the simulated host's file is not there */
    sim_run_for(world.sim, NS_PER_S);
    assert_true(world_logged(one, "the configuration in force stays") > 0);
    post_next(1);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(got, 1);
    hosts_world_close(&world);
}

static void a_hundred_changes_in_a_row_lose_nothing(void **state)
{
    (void)state;
    open_world(APPS "[output src.cloud]\nwire = http://10.0.0.4/hook\n");
    sim_server(world.sim, "10.0.0.4:80", take, ARRAY_SIZE(take));
    sim_server(world.sim, "10.0.0.5:80", take, ARRAY_SIZE(take));
    for (unsigned i = 1; i <= 100; i++) {
        post_next(i);
        reload("token = t\n" APPS OUTPUT, i % 2 ? "10.0.0.5" : "10.0.0.4");
    }
    assert_int_equal(got, 100);
    assert_int_equal(wrong, 0);
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_url_takes_the_queue_along),
        cmocka_unit_test(a_disabled_output_is_tried_again_when_it_is_configured_anew),
        cmocka_unit_test(what_a_command_has_disabled_stays_so_until_it_is_configured_anew),
        cmocka_unit_test(an_output_without_its_tls_files_rests_until_it_has_them),
        cmocka_unit_test(what_cannot_change_is_named_and_stays),
        cmocka_unit_test(links_and_peers_wait_for_a_restart),
        cmocka_unit_test(a_link_that_is_changed_waits_for_a_restart),
        cmocka_unit_test(a_store_and_what_it_keeps_wait_for_a_restart),
        cmocka_unit_test(a_file_that_is_wrong_changes_nothing),
        cmocka_unit_test(a_hundred_changes_in_a_row_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
