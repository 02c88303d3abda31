/* Whole hosts with links: which records come where, hosts that restart, move and stop, apps that are slow or
 * suspended, peers that are not let in. What paths and clocks do is in test_hosts_links_paths.c, and all of
 * it together in test_hosts_links_storm.c. */
#include "tests/unit/hosts_links.h"

/* --- records --- */

static void both_ways_seed(uint64_t seed)
{
    pair_open(seed, &(struct pair_options){.both = true});
    for (unsigned i = 0; i < 10; i++) {
        pair_post(100, 20 + 100 * i);
        pair_post_back(50, 2000);
    }
    pair_arrive_within(NS_PER_S);
    assert_all_exact();
    assert_int_equal(world_logged(pair.one, "\n") + world_logged(pair.two, "\n"), 0);
}

PAIR_TEST(records_go_both_ways_between_two_hosts_each_once_and_in_order, both_ways_seed)

static void four_seed(uint64_t seed)
{
    pair_open(seed, &(struct pair_options){.streams = 4});
    pair_post(2000, 300);
    pair_arrive_within(NS_PER_S);
    assert_all_exact();
    assert_int_equal(world_link_count(pair.one), 1);
    assert_int_equal(counter_read(&pair_report()->handshakes), 1);
}

PAIR_TEST(four_outputs_go_over_one_link, four_seed)

static void itself_seed(uint64_t seed)
{
    memset(&pair, 0, sizeof pair);
    hosts_world_open(&pair.world, seed);
    pair.sim = pair.world.sim;
    const char *key = pair.world.keys[0];
    pair.one =
        world_add_host(&pair.world, "one", "10.0.0.1",
                       "link = 0.0.0.0:7071\n[app src]\nmodule = /sim/src\n[app a]\nmodule = /sim/dst\n"
                       "arg = " WORLD_TALLY "\n[peer me]\nkey = %s\napps = a\n"
                       "[output src.out]\nlink = 10.0.0.1:7071\nkey = %s\napp = a\n",
                       (void *)&pair.there[0], key, key);
    world_start(pair.one);
    pair_post(1000, 100);
    pair_run(NS_PER_S);
    assert_exact(&pair.there[0], 1000);
    assert_true(world_host_empty(pair.one));
}

PAIR_TEST(a_host_may_be_linked_to_itself, itself_seed)

static struct world_host *add_third(void)
{
    struct world_host *three =
        world_add_host(&pair.world, "three", "10.0.0.3",
                       "[app src]\nmodule = /sim/src\n[output src.out]\nlink = two.local:7071\nkey = %s\n"
                       "app = b\n",
                       pair.world.keys[1]);
    return three;
}

/* Its configuration is read with the next start. */
static void let_third_in(void)
{
    size_t size = strlen(pair.two->text);
    world_kill(pair.two);
    snprintf(pair.two->text + size, sizeof pair.two->text - size, "[peer three]\nkey = %s\napps = b\n",
             pair.world.keys[2]);
    memset(pair.there, 0, sizeof pair.there);
    world_start(pair.two);
}

static void peers_seed(uint64_t seed)
{
    pair_open(seed, NULL);
    struct world_host *three = add_third();
    let_third_in();
    world_start(three);
    for (unsigned i = 0; i < 5; i++) {
        pair_post(500, 200);
        pair_post_some(three, 1 + 100 * i, 100, 1000);
    }
    pair_arrive_within(NS_PER_S);
    pair_run(NS_PER_S);
    assert_exact(&pair.there[0], 2500);
    assert_exact(&pair.there[1], 500);
}

PAIR_TEST(several_peers_send_to_one_receiver, peers_seed)

/* --- restarts --- */

/* Numbers up to `base` once, those of [base, stored] twice, the rest once: as records-protocol.md has it. */
static void assert_twice_between(const struct tally *t, uint64_t base, uint64_t stored)
{
    assert_int_equal(t->disorder, 0);
    for (uint64_t number = 1; number <= pair.posted; number++)
        assert_int_equal(t->times[number], number > base && number <= stored ? 2 : 1);
}

static void receiver_restarts(uint64_t seed, void (*end)(struct world_host *h))
{
    struct sim_path slow = pair_slow();
    pair_open(seed, NULL);
    pair_path(&slow);
    pair_post(2000, 300);
    pair_run_until(1 + random_below(sim_random(pair.sim), 1900));
    end(pair.two);
    uint64_t stored = pair.there[0].last;
    pair_run(NS_PER_S); /* what was under way has come */
    uint64_t base = pair_outlet("out")->queue.freed.records;
    assert_true(base <= stored);
    pair_run(random_below(sim_random(pair.sim), 20 * NS_PER_S));
    world_start(pair.two);
    pair_arrive_within(60 * NS_PER_S);
    assert_int_equal(pair.there[0].lives, 2);
    assert_int_equal(pair.there[0].first, base + 1);
    assert_int_equal(pair.there[0].last, pair.posted);
    assert_twice_between(&pair.there[0], base, stored);
    assert_int_equal(world_logged(pair.two, "is new here and begins behind record"), base > 0);
}

static void receiver_killed_seed(uint64_t seed)
{
    receiver_restarts(seed, world_kill);
}

static void receiver_crashed_seed(uint64_t seed)
{
    receiver_restarts(seed, world_crash);
}

PAIR_TEST(a_receiver_that_was_killed_goes_on_behind_what_it_said_is_stored, receiver_killed_seed)
PAIR_TEST(a_receiver_that_lost_power_goes_on_behind_what_it_said_is_stored, receiver_crashed_seed)

static void sender_restarts(uint64_t seed, void (*end)(struct world_host *h))
{
    struct sim_path slow = pair_slow();
    uint8_t epoch[16];
    pair_open(seed, NULL);
    pair_path(&slow);
    pair_post(2000, 300);
    pair_run_until(1 + random_below(sim_random(pair.sim), 1900));
    memcpy(epoch, pair.one->epoch, sizeof epoch);
    end(pair.one);
    pair_run(NS_PER_S);
    uint64_t before = pair.there[0].last;
    world_start(pair.one);
    assert_memory_not_equal(epoch, pair.one->epoch, sizeof epoch);
    pair_post(2000, 300);
    pair_arrive_within(60 * NS_PER_S);
    assert_int_equal(pair.there[0].lives, 1);
    assert_int_equal(pair.there[0].disorder, before < 2000);
    assert_int_equal(pair.there[0].records, before + 2000);
    assert_int_equal(pair.there[0].stream_last, 2000); /* counted anew */
    for (uint64_t number = 1; number <= pair.posted; number++)
        assert_int_equal(pair.there[0].times[number], number <= before || number > 2000);
}

static void sender_killed_seed(uint64_t seed)
{
    sender_restarts(seed, world_kill);
}

static void sender_crashed_seed(uint64_t seed)
{
    sender_restarts(seed, world_crash);
}

PAIR_TEST(a_sender_that_was_killed_counts_anew_in_a_new_epoch, sender_killed_seed)
PAIR_TEST(a_sender_that_lost_power_counts_anew_in_a_new_epoch, sender_crashed_seed)

static void moved_seed(uint64_t seed)
{
    pair_open(seed, NULL);
    pair_post(500, 300);
    pair_arrive_within(NS_PER_S);
    world_crash(pair.two);
    pair_post(500, 300);
    pair_run(30 * NS_PER_S);
    world_move(pair.two, "10.0.0.22");
    world_start(pair.two);
    pair_name("two.local", "10.0.0.22");
    pair_arrive_within(100 * NS_PER_S);
    for (uint64_t number = 1; number <= 1000; number++)
        assert_int_equal(pair.there[0].times[number], 1);
    assert_int_equal(pair.there[0].disorder, 0);
}

PAIR_TEST(a_receiver_whose_name_moves_to_another_address_is_found_there, moved_seed)

/* --- apps --- */

static void slow_app_seed(uint64_t seed)
{
    pair_open(seed, &(struct pair_options){.streams = 2, .output = "queue = 8M\n"});
    struct world_host *three = add_third();
    let_third_in();
    world_start(three);
    struct loop *owner = world_loop(pair.two, "pure-own-0"); /* of a, not of b */
    sim_remove_loop(pair.sim, owner);
    pair_post(5000, 1000); /* more than inbox and ring of a stream hold */
    pair_run(10 * NS_PER_S);
    assert_int_equal(pair.there[0].records, 0);
    assert_exact(&pair.there[1], pair.posted);
    assert_int_equal(pair_held("out"), pair.posted); /* nothing of it is stored */
    assert_int_equal(pair_held("cloud"), 0);
    assert_true(world_within_limits(pair.two));
    uint64_t packets = counter_read(&pair_report()->packets);
    pair_run(60 * NS_PER_S);
    assert_true(counter_read(&pair_report()->packets) - packets < 20); /* it waits, and does not try */
    sim_add_loop(pair.sim, owner);
    pair_arrive_within(5 * NS_PER_S);
    assert_exact(&pair.there[0], pair.posted);
    pair_post_some(three, pair.posted + 1, 100, 1000); /* numbers that b has not had */
    pair_run(NS_PER_S);
    assert_int_equal(pair.there[1].records, pair.posted + 100);
}

PAIR_TEST(an_app_that_takes_nothing_holds_up_its_own_stream_only, slow_app_seed)

static void other_peer_seed(uint64_t seed)
{
    pair_open(seed, &(struct pair_options){.output = "queue = 8M\n"});
    struct world_host *three = add_third();
    let_third_in();
    world_start(three);
    sim_remove_loop(pair.sim, world_loop(pair.two, "pure-own-0"));
    pair_post(5000, 1000);
    pair_run(NS_PER_S);
    pair_post_some(three, 1, 200, 1000);
    pair_run(100 * NS_PER_MS);
    assert_exact(&pair.there[1], 200);
    assert_int_equal(pair_held("out"), pair.posted);
    sim_add_loop(pair.sim, world_loop(pair.two, "pure-own-0"));
}

PAIR_TEST(an_app_that_takes_nothing_harms_no_other_peer, other_peer_seed)

static void suspended_seed(uint64_t seed)
{
    pair_open(seed, &(struct pair_options){.streams = 2, .module = "frail"});
    pair_post(100, 50);
    pair_arrive_within(NS_PER_S);
    struct sim_connection *c = world_post(pair.one, "/apps/src/events/e", NULL, "bad");
    pair_run(60 * NS_PER_S);
    assert_int_equal(world_status(c), 200);
    assert_int_equal(atomic_load(&world_app(pair.two, "a")->report.condition), APP_SUSPENDED);
    assert_int_equal(pair_held("out"), 1);
    assert_int_equal(pair_held("cloud"), 0);
    assert_resting("out", "the app is suspended");
    assert_int_equal(world_logged(pair.one, "the app is suspended"), 1);
    assert_int_equal(world_logged(pair.two, "a link from one to app 'a' is refused"), 1);
    pair.there[0].cured = true;
    world_kill(pair.two);
    world_start(pair.two);
    pair_run(80 * NS_PER_S);
    assert_int_equal(pair_held("out"), 0);
    assert_int_equal(pair.there[0].records, 1); /* of its second life */
    assert_int_equal(atomic_load(&pair_outlet("out")->report.state), OUTLET_OK);
}

PAIR_TEST(an_app_that_is_suspended_keeps_its_records_waiting_until_its_host_is_restarted, suspended_seed)

static void missing_module_seed(uint64_t seed)
{
    pair_open(seed, &(struct pair_options){.module = "bad"});
    world_kill(pair.two);
    pair.there[0].lives = 0;
    pair.two->without = "/sim/bad";
    world_start(pair.two);
    pair_post(100, 50);
    pair_run(100 * NS_PER_S);
    assert_resting("out", "the app is suspended");
    assert_int_equal(pair_held("out"), 100);
    world_kill(pair.two);
    pair.two->without = NULL;
    world_start(pair.two);
    pair_arrive_within(80 * NS_PER_S);
    assert_all_exact();
}

PAIR_TEST(an_app_whose_module_is_missing_gets_its_records_when_it_is_there, missing_module_seed)

/* --- refusals --- */

static void not_let_in_seed(uint64_t seed)
{
    pair_open(seed, &(struct pair_options){.streams = 2, .apps = "a", .nobody = true});
    pair_post(100, 50);
    pair_run(600 * NS_PER_S);
    assert_exact(&pair.there[0], 100);
    assert_int_equal(pair.there[1].records, 0);
    assert_resting("cloud", "this host may not send to that app");
    assert_resting("d1", "the receiver has no such app");
    assert_int_equal(pair_held("cloud"), 100);
    assert_int_equal(world_logged(pair.one, "output src.cloud: link to two.local:7071: refused"), 1);
    assert_int_equal(world_logged(pair.one, "output src.d1: link to two.local:7071: refused"), 1);
    assert_int_equal(world_logged(pair.one, "\n"), 2);
    assert_int_equal(world_logged(pair.two, "a link from one to app 'b' is refused: apps = "), 1);
    assert_int_equal(world_logged(pair.two, "a link from one to app 'nobody' is refused"), 1);
    assert_int_equal(world_logged(pair.two, "\n"), 2);
}

PAIR_TEST(outputs_that_are_refused_rest_and_say_why_once, not_let_in_seed)

static void unknown_seed(uint64_t seed)
{
    pair_open(seed, &(struct pair_options){.unknown = true});
    pair_post(100, 50);
    pair_run(600 * NS_PER_S);
    assert_int_equal(counter_read(&world_listener(pair.two)->report.sent), 0);
    assert_int_equal(counter_read(&pair_report()->received), 0);
    assert_resting("out", "the receiver does not answer");
    assert_int_equal(world_logged(pair.one, "\n"), 1);
    assert_in_range(world_logged(pair.two, "a host that is not let in tried to send here"), 1, 10);
    assert_true(world_logged(pair.two, pair.world.keys[0]) > 0);
    assert_int_equal(pair_held("out"), 100);
}

PAIR_TEST(an_unknown_key_gets_silence_and_a_line_a_minute, unknown_seed)

/* --- stopping --- */

static bool stopped(void *context)
{
    const struct world_host *h = context;
    return host_stopped(h->host);
}

/* As after SIGTERM. Returns how long it took. */
static uint64_t stop(struct world_host *h)
{
    uint64_t begun_ns = sim_now_ns(pair.sim);
    host_stop(h->host);
    assert_int_equal(sim_run_until(pair.sim, stopped, h), SIM_DONE);
    pair_run(NS_PER_MS); /* for its last lines */
    world_kill(h);
    return sim_now_ns(pair.sim) - begun_ns;
}

static void stop_dead_seed(uint64_t seed)
{
    pair_open(seed, &(struct pair_options){.streams = 4});
    pair_post(100, 50);
    pair_arrive_within(NS_PER_S);
    sim_silence_host(pair.sim, "10.0.0.2", true);
    pair_post(2000, 300);
    pair_run(random_below(sim_random(pair.sim), 100 * NS_PER_S));
    assert_true(stop(pair.one) < 5 * NS_PER_S);
    assert_int_equal(world_logged(pair.one, "output src.out: 2000 records were not delivered"), 1);
}

PAIR_TEST(a_host_stops_within_five_seconds_with_a_backlog_for_a_dead_peer, stop_dead_seed)

static void stop_sender_seed(uint64_t seed)
{
    struct sim_path slow = pair_slow();
    pair_open(seed, NULL);
    pair_path(&slow);
    pair_post(2000, 300); /* 1.2 s of the path */
    assert_true(stop(pair.one) < 5 * NS_PER_S);
    assert_exact(&pair.there[0], 2000);
    assert_int_equal(world_logged(pair.one, "were not delivered"), 0);
}

PAIR_TEST(a_host_that_stops_delivers_what_it_holds, stop_sender_seed)

/* It takes nothing more into its apps, and says of all that they have taken that it is stored. */
static void stop_receiver_seed(uint64_t seed)
{
    struct sim_path slow = pair_slow();
    pair_open(seed, NULL);
    pair_path(&slow);
    pair_post(3000, 300);
    pair_run_until(1 + random_below(sim_random(pair.sim), 2500));
    assert_true(stop(pair.two) < 5 * NS_PER_S);
    pair_run(NS_PER_S);
    assert_int_equal(pair_outlet("out")->queue.freed.records, pair.there[0].last);
    assert_true(pair_held("out") > 0);
    world_start(pair.two);
    pair_arrive_within(60 * NS_PER_S);
    assert_twice_between(&pair.there[0], 0, 0);
}

PAIR_TEST(a_receiver_that_stops_and_comes_back_gets_each_record_once, stop_receiver_seed)

/* Its own backlog, for a peer that is dead, keeps it from stopping at once; records that come in do not. */
static void stop_under_flow_seed(uint64_t seed)
{
    pair_open(seed, &(struct pair_options){.both = true});
    pair_name("one.local", "10.0.0.77");
    struct sim_path slow = pair_slow();
    pair_path(&slow);
    pair_post_back(10, 100);
    pair_post(8000, 250); /* 2 MB, 4 s of this path */
    pair_run(NS_PER_S);
    host_stop(pair.two->host);
    pair_run(100 * NS_PER_MS);
    uint64_t taken = pair.there[0].records;
    assert_true(taken > 0 && taken < pair.posted / 2);
    pair_run(NS_PER_S);
    assert_false(host_stopped(pair.two->host));
    assert_int_equal(pair.there[0].records, taken);
}

PAIR_TEST(a_host_that_is_stopping_takes_no_more_records, stop_under_flow_seed)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_go_both_ways_between_two_hosts_each_once_and_in_order),
        cmocka_unit_test(four_outputs_go_over_one_link),
        cmocka_unit_test(a_host_may_be_linked_to_itself),
        cmocka_unit_test(several_peers_send_to_one_receiver),
        cmocka_unit_test(a_receiver_that_was_killed_goes_on_behind_what_it_said_is_stored),
        cmocka_unit_test(a_receiver_that_lost_power_goes_on_behind_what_it_said_is_stored),
        cmocka_unit_test(a_sender_that_was_killed_counts_anew_in_a_new_epoch),
        cmocka_unit_test(a_sender_that_lost_power_counts_anew_in_a_new_epoch),
        cmocka_unit_test(a_receiver_whose_name_moves_to_another_address_is_found_there),
        cmocka_unit_test(an_app_that_takes_nothing_holds_up_its_own_stream_only),
        cmocka_unit_test(an_app_that_takes_nothing_harms_no_other_peer),
        cmocka_unit_test(an_app_that_is_suspended_keeps_its_records_waiting_until_its_host_is_restarted),
        cmocka_unit_test(an_app_whose_module_is_missing_gets_its_records_when_it_is_there),
        cmocka_unit_test(outputs_that_are_refused_rest_and_say_why_once),
        cmocka_unit_test(an_unknown_key_gets_silence_and_a_line_a_minute),
        cmocka_unit_test(a_host_stops_within_five_seconds_with_a_backlog_for_a_dead_peer),
        cmocka_unit_test(a_host_that_stops_delivers_what_it_holds),
        cmocka_unit_test(a_receiver_that_stops_and_comes_back_gets_each_record_once),
        cmocka_unit_test(a_host_that_is_stopping_takes_no_more_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
