/* A store under a configuration that changes between starts, and snapshots.
 *
 *     client ──HTTP──▶ one: a ──next, link───▶ two: b
 *                           a ──cloud, wire──▶ two: c
 *                           a ──log, inner───▶ one: d, or e   all of them /sim/ledger
 */
#include "tests/sim/ledgers.h"

#include "host/host_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define PATIENCE_NS (300 * NS_PER_S)

#define OF_A  "[app a]\nmodule = /sim/ledger\n"
#define OF_D  "[app d]\nmodule = /sim/ledger\n"
#define NEXT  "[output a.next]\nlink = 10.0.0.2:7071\nkey = %s\napp = b\nqueue = 16K\n"
#define CLOUD "[output a.cloud]\nwire = http://10.0.0.2\nmode = pure\napp = c\ntoken = t\nqueue = 16K\n"
#define LOG   "[output a.log]\ninner = d\nqueue = 16K\n"

static struct hosts_world world;
static struct world_host *one, *two;

static void configure_one(const char *head, const char *sections)
{
    char text[4096];
    int size = snprintf(text, sizeof text, "segment = 256K\n%s", head);
    snprintf(text + size, sizeof text - (size_t)size, sections, world.keys[1]);
    memcpy(one->text, text, sizeof text);
}

static void open_hosts(uint64_t seed)
{
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1", "%s", "");
    configure_one("", OF_A OF_D NEXT CLOUD LOG);
    two = world_add_host(&world, "two", "10.0.0.2",
                         "segment = 256K\nlink = 0.0.0.0:7071\n"
                         "[app b]\nmodule = /sim/ledger\n[app c]\nmodule = /sim/ledger\n"
                         "[peer one]\nkey = %s\napps = b\n",
                         world.keys[0]);
    world_add_disk(one);
    world_add_disk(two);
}

static uint64_t posted;

static void post(uint64_t count)
{
    assert_int_equal(numbers_post_all(one, "a", (struct numbers){posted + 1, count, 200}, 20, PATIENCE_NS),
                     count);
    posted += count;
}

/* A backlog of `count` in all three, and the host is stopped. */
static void leave_backlog(uint64_t seed, uint64_t count)
{
    posted = 0;
    open_hosts(seed);
    one->without = NULL;
    world_start(one);
    post(count);
    assert_true(world_stop(one) < 5 * NS_PER_S);
}

static void assert_remote_have(uint64_t count)
{
    assert_true(ledger_await(one, "a", count, PATIENCE_NS));
    assert_true(ledger_await(two, "b", count, PATIENCE_NS));
    assert_true(ledger_await(two, "c", count, PATIENCE_NS));
    assert_true(output_await(one, "a", "next", count, PATIENCE_NS));
    assert_true(output_await(one, "a", "cloud", count, PATIENCE_NS));
}

static void assert_all_have(uint64_t count)
{
    assert_remote_have(count);
    assert_true(ledger_await(one, "d", count, PATIENCE_NS));
}

/* --- owners, outputs, apps --- */

static void the_number_of_owners_may_change(void **state)
{
    (void)state;
    static const char *const owners[] = {"owners = 1\n", "owners = 3\n", "owners = 2\n", "owners = 4\n"};
    leave_backlog(1, 500);
    for (unsigned i = 0; i < ARRAY_SIZE(owners); i++) {
        configure_one(owners[i], OF_A OF_D NEXT CLOUD LOG);
        world_start(one);
        assert_true(ledger_is(one, "a", posted));
        post(200);
        if (i % 2)
            world_kill(one);
        else
            world_crash(one);
    }
    world_start(one);
    world_start(two);
    assert_all_have(1300);
    assert_int_equal(world_logged(one, "lost"), 0);
    hosts_world_close(&world);
}

static void another_address_queue_and_limit_keep_a_backlog(void **state)
{
    (void)state;
    leave_backlog(2, 500);
    world_move(two, "10.0.0.3");
    configure_one("", OF_A OF_D
                  "[output a.next]\nlink = 10.0.0.3:7072\nkey = %s\napp = b\nqueue = 4K\nmax_record = 1K\n"
                  "[output a.cloud]\nwire = http://10.0.0.3/\nmode = pure\napp = c\ntoken = t\n"
                  "batch_records = 7\nqueue = 1M\nbacklog = 0\n"
                  "[output a.log]\ninner = d\nqueue = 64K\nbacklog = 16K\n");
    char *port = strstr(two->text, "7071");
    assert_non_null(port);
    port[3] = '2';
    world_start(one);
    world_start(two);
    post(100);
    assert_all_have(600);
    hosts_world_close(&world);
}

/* What was a link is a wire now, and the other way round. */
static void another_kind_of_output_keeps_a_backlog(void **state)
{
    (void)state;
    leave_backlog(3, 500);
    configure_one("",
                  OF_A OF_D "[output a.cloud]\nlink = 10.0.0.2:7071\nkey = %s\napp = b\n"
                            "[output a.next]\nwire = http://10.0.0.2\nmode = pure\napp = c\ntoken = t\n" LOG);
    world_start(one);
    world_start(two);
    post(100);
    assert_all_have(600);
    hosts_world_close(&world);
}

static void an_output_that_is_left_out_keeps_its_backlog(void **state)
{
    (void)state;
    leave_backlog(4, 500);
    world_start(two);
    for (unsigned i = 0; i < 2; i++) {
        configure_one("", OF_A OF_D CLOUD "# %s\n" LOG);
        world_start(one);
        assert_true(ledger_await(two, "c", 500, PATIENCE_NS));
        sim_run_for(world.sim, NS_PER_S);
        assert_int_equal(world_logged(one, "output a.next is in the store and not in the configuration: 500 "
                                           "records"),
                         i + 1);
        sim_run_for(world.sim, 20 * NS_PER_S); /* snapshots come and go */
        world_kill(one);
    }
    configure_one("", OF_A OF_D NEXT CLOUD LOG);
    world_start(one);
    post(100);
    assert_all_have(600);
    hosts_world_close(&world);
}

/* Its events count on while an output is left out: those sends were never made. */
static void an_output_that_was_left_out_goes_on_behind_its_backlog(void **state)
{
    (void)state;
    struct tally tally;
    memset(&tally, 0, sizeof tally);
    leave_backlog(5, 500);
    snprintf(two->text, sizeof two->text,
             "link = 0.0.0.0:7071\n[app b]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n"
             "[app c]\nmodule = /sim/ledger\n[peer one]\nkey = %s\napps = b\n",
             (void *)&tally, world.keys[0]);
    configure_one("", OF_A OF_D CLOUD "# %s\n" LOG);
    world_start(one);
    post(1500); /* segments come and go */
    sim_run_for(world.sim, 10 * NS_PER_S);
    world_crash(one);
    configure_one("", OF_A OF_D NEXT CLOUD LOG);
    world_start(one);
    world_start(two);
    post(100);
    assert_true(tally_await(&world, &tally, 2100, PATIENCE_NS));
    assert_int_equal(tally_not_once(&tally, 1, 500), 0);
    assert_int_equal(tally_not_once(&tally, 2001, 2100), 0);
    assert_int_equal(tally.times[501], 0);
    assert_int_equal(world_logged(one, "are lost"), 0);
    hosts_world_close(&world);
}

static void an_app_that_is_left_out_is_kept(void **state)
{
    (void)state;
    leave_backlog(6, 500);
    configure_one("", OF_D "[app z]\nmodule = /sim/ledger\n# %s\n");
    for (unsigned i = 0; i < 2; i++) {
        world_start(one);
        sim_run_for(world.sim, NS_PER_S);
        assert_int_equal(world_logged(one, "app a is in the store and not in the configuration"), i + 1);
        assert_int_equal(
            numbers_post_all(one, "z", (struct numbers){1 + 2000 * i, 2000, 900}, 20, PATIENCE_NS), 2000);
        world_kill(one);
    }
    configure_one("", OF_A OF_D NEXT CLOUD LOG);
    world_start(one);
    world_start(two);
    assert_true(ledger_is(one, "a", 500));
    post(100);
    assert_all_have(600);
    hosts_world_close(&world);
}

/* d has 500 of a's; then e is the receiver. It gets what d has not taken: all that comes now. */
static void an_inner_output_may_have_another_receiver(void **state)
{
    (void)state;
    struct tally tally;
    memset(&tally, 0, sizeof tally);
    leave_backlog(7, 500);
    char text[1024];
    snprintf(text, sizeof text,
             OF_A OF_D "[app e]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n# %%s\n"
                       "[output a.log]\ninner = e\n",
             (void *)&tally);
    configure_one("", text);
    world_start(one);
    assert_true(ledger_is(one, "d", 500));
    post(100);
    assert_true(tally_await(&world, &tally, 600, PATIENCE_NS));
    assert_int_equal(tally.first, 501);
    assert_int_equal(tally_not_once(&tally, 501, 600), 0);
    sim_run_for(world.sim, 2 * NS_PER_S);
    world_crash(one);
    configure_one("", OF_A OF_D LOG "# %s\n"); /* and back: d goes on, behind what e has */
    world_start(one);
    assert_true(ledger_is(one, "d", 500));
    assert_int_equal(numbers_post_all(one, "a", (struct numbers){601, 1, 0}, 1, PATIENCE_NS), 1);
    sim_run_for(world.sim, NS_PER_S);
    const struct ledger *d = world_app_state(one, "d");
    assert_int_equal(d->count, 501);
    assert_int_equal(d->last, 601);
    hosts_world_close(&world);
}

/* --- durability --- */

static void durability_may_change(void **state)
{
    (void)state;
    leave_backlog(8, 500);
    configure_one("", OF_A "durability = memory\n" OF_D NEXT CLOUD LOG);
    world_start(one);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(world_logged(one, "app a is in the store and has durability = memory now"), 1);
    assert_int_equal(((const struct ledger *)world_app_state(one, "a"))->count, 0);
    sim_run_for(world.sim, 5 * NS_PER_S);
    world_kill(one);
    configure_one("", OF_A "interval = 5ms\n" OF_D NEXT CLOUD LOG);
    world_start(one);
    assert_true(ledger_is(one, "a", 500));
    post(100);
    sim_run_for(world.sim, NS_PER_S);
    world_crash(one);
    configure_one("", OF_A OF_D NEXT CLOUD LOG);
    world_start(one);
    world_start(two);
    post(100);
    assert_all_have(700);
    hosts_world_close(&world);
}

/* m keeps nothing; it feeds a, which does, and is fed by it. */
static void memory_beside_journal(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        open_hosts(seed);
        configure_one("", "[app m]\nmodule = /sim/ledger\ndurability = memory\n" OF_A
                          "[app n]\nmodule = /sim/ledger\ndurability = memory\n"
                          "[output m.log]\ninner = a\n[output a.log]\ninner = n\n# %s\n");
        world_start(one);
        assert_int_equal(numbers_post(one, "m", NULL, (struct numbers){1, 20, 0}, PATIENCE_NS), 200);
        assert_true(ledger_await(one, "n", 20, PATIENCE_NS));
        assert_true(ledger_is(one, "a", 20));
        sim_run_for(world.sim, 3 * NS_PER_S);
        if (seed % 2)
            world_crash(one);
        else
            world_kill(one);
        world_start(one);
        assert_true(ledger_is(one, "a", 20));
        sim_run_for(world.sim, NS_PER_S);
        assert_int_equal(((const struct ledger *)world_app_state(one, "m"))->count, 0);
        /* m begins anew, in a new epoch: a takes it; n, which is new, gets what a sends from now on */
        assert_int_equal(numbers_post(one, "m", NULL, (struct numbers){21, 20, 0}, PATIENCE_NS), 200);
        assert_true(ledger_await(one, "a", 40, PATIENCE_NS));
        sim_run_for(world.sim, NS_PER_S);
        const struct ledger *n = world_app_state(one, "n");
        assert_int_equal(n->count, 20);
        assert_int_equal(n->last, 40);
        hosts_world_close(&world);
    }
}

/* --- a module that does not load --- */

static void an_app_without_its_module_delivers_its_backlog(void **state)
{
    (void)state;
    leave_backlog(9, 500);
    one->without = "/sim/ledger";
    world_start(one);
    world_start(two);
    assert_true(ledger_await(two, "b", 500, PATIENCE_NS));
    assert_true(ledger_await(two, "c", 500, PATIENCE_NS));
    assert_int_equal(numbers_post(one, "a", NULL, (struct numbers){501, 1, 0}, PATIENCE_NS), 503);
    sim_run_for(world.sim, 5 * NS_PER_S);
    world_crash(one);
    one->without = NULL;
    world_start(one);
    assert_true(ledger_is(one, "a", 500)); /* its state is what it was */
    post(100);
    assert_all_have(600);
    hosts_world_close(&world);
}

/* --- a receiver's store from a backup --- */

/* It lacks 100 records that its sender has let go: both streams say so, once each, and go on behind them. */
static void a_receiver_put_back_says_what_it_lacks(void **state)
{
    (void)state;
    struct tally link, wire;
    memset(&link, 0, sizeof link);
    memset(&wire, 0, sizeof wire);
    open_hosts(1);
    snprintf(two->text, sizeof two->text,
             "segment = 256K\nlink = 0.0.0.0:7071\n"
             "[app b]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n"
             "[app c]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n"
             "[peer one]\nkey = %s\napps = b\n",
             (void *)&link, (void *)&wire, world.keys[0]);
    world_start(one);
    world_start(two);
    posted = 0;
    post(100);
    assert_true(output_await(one, "a", "next", 100, PATIENCE_NS));
    assert_true(output_await(one, "a", "cloud", 100, PATIENCE_NS));
    sim_run_for(world.sim, 40 * NS_PER_S);
    struct sim_disk_copy *copy = sim_disk_save(two->disk);
    post(100);
    assert_true(output_await(one, "a", "next", 200, PATIENCE_NS));
    assert_true(output_await(one, "a", "cloud", 200, PATIENCE_NS));
    assert_true(world_stop(two) < 5 * NS_PER_S);
    sim_disk_restore(two->disk, copy);
    sim_disk_copy_free(copy);
    world_start(two);
    post(100);
    assert_true(tally_await(&world, &link, 300, PATIENCE_NS));
    assert_true(tally_await(&world, &wire, 300, PATIENCE_NS));
    assert_int_equal(tally_not_once(&link, 1, 300), 0);
    assert_int_equal(tally_not_once(&wire, 1, 300), 0);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(world_logged(two, "up to 200 that are not here are lost"), 2);
    hosts_world_close(&world);
}

/* --- snapshots --- */

static void a_large_state_over_many_segments(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        open_hosts(seed);
        configure_one("", "[app a]\nmodule = /sim/wide\n# %s\n");
        char *segment = strstr(one->text, "256K");
        memcpy(segment, "4M  ", 4);
        world_start(one);
        posted = 0;
        for (unsigned i = 0; i < 6; i++) {
            post(2000);
            if (i % 2 == 0)
                world_crash(one);
            else
                assert_true(world_stop(one) < 5 * NS_PER_S);
            world_start(one);
            assert_true(ledger_is(one, "a", posted));
        }
        sim_run_for(world.sim, 5 * NS_PER_S);
        assert_true(store_files(one, ".journal", NULL) <= 2 * (2 + SNAPSHOT_SEGMENTS + 1));
        hosts_world_close(&world);
    }
}

static void a_start_replays_what_is_behind_the_last_snapshot_only(void **state)
{
    (void)state;
    open_hosts(1);
    configure_one("", OF_A OF_D NEXT "\n"); /* its backlog keeps all segments */
    world_start(one);
    posted = 0;
    post(4000);
    world_crash(one);
    uint64_t before = ledger_events_given();
    world_start(one);
    assert_true(ledger_is(one, "a", 4000));
    uint64_t replayed = ledger_events_given() - before;
    assert_true(replayed > 0);
    assert_true(replayed < (SNAPSHOT_SEGMENTS + 3) * 400); /* of some 300 a segment */
    sim_run_for(world.sim, 3 * NS_PER_S);
    world_crash(one); /* there is one from this start */
    before = ledger_events_given();
    world_start(one);
    assert_true(ledger_is(one, "a", 4000));
    assert_int_equal(ledger_events_given(), before);
    hosts_world_close(&world);
}

/* Flips a byte in each snapshot of app a; all of them, or in the newest segment that has one. How many? */
static unsigned harm_snapshots(bool all)
{
    char path[64];
    unsigned count = store_files(one, ".journal", NULL), harmed = 0;
    for (unsigned i = count; i-- > 0 && (all || harmed == 0);) {
        uint8_t *bytes;
        size_t size;
        assert_true(store_segment(one, i, path) && sim_disk_read(one->disk, path, &bytes, &size));
        for (size_t at = 0; at + 64 <= size; at += 8) { /* docs/journal-format.md, section 2 */
            if (memcmp(bytes + at, "PjF1", 4) != 0 || bytes[at + 12] != FRAME_SNAPSHOT ||
                memcmp(bytes + at + 48, "\1a", 2) != 0)
                continue;
            bytes[at + 60] ^= 4;
            harmed++;
        }
        sim_disk_write(one->disk, path, bytes, size);
        free(bytes);
    }
    return harmed;
}

static void damaged_snapshots_cost_no_state_while_the_commits_are_there(void **state)
{
    (void)state;
    for (unsigned all = 0; all < 2; all++) {
        open_hosts(2 + all);
        configure_one("", OF_A OF_D NEXT "\n");
        world_start(one);
        posted = 0;
        post(3000);
        assert_true(world_stop(one) < 5 * NS_PER_S);
        unsigned harmed = harm_snapshots(all);
        assert_true(all ? harmed > 2 : harmed > 0);
        world_start(one);
        assert_true(ledger_is(one, "a", 3000));
        sim_run_for(world.sim, NS_PER_S);
        assert_true(world_logged(one, "bytes are damaged") > 0);
        post(100);
        world_start(two);
        assert_true(ledger_await(two, "b", 3100, PATIENCE_NS));
        assert_int_equal(world_logged(one, "are lost"), 0);
        hosts_world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_of_owners_may_change),
        cmocka_unit_test(another_address_queue_and_limit_keep_a_backlog),
        cmocka_unit_test(another_kind_of_output_keeps_a_backlog),
        cmocka_unit_test(an_output_that_is_left_out_keeps_its_backlog),
        cmocka_unit_test(an_output_that_was_left_out_goes_on_behind_its_backlog),
        cmocka_unit_test(an_app_that_is_left_out_is_kept),
        cmocka_unit_test(an_inner_output_may_have_another_receiver),
        cmocka_unit_test(durability_may_change),
        cmocka_unit_test(memory_beside_journal),
        cmocka_unit_test(an_app_without_its_module_delivers_its_backlog),
        cmocka_unit_test(a_receiver_put_back_says_what_it_lacks),
        cmocka_unit_test(a_large_state_over_many_segments),
        cmocka_unit_test(a_start_replays_what_is_behind_the_last_snapshot_only),
        cmocka_unit_test(damaged_snapshots_cost_no_state_while_the_commits_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
