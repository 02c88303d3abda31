/* Wires with several lanes: side by side as far as is allowed, refused records aside, keys in order, no burst
 * after an outage, connections that come and go. */
#include "tests/unit/lanes_world.h"

/* --- side by side --- */

static void requests_go_side_by_side_as_many_as_are_allowed(void **state)
{
    (void)state;
    static const uint32_t concurrencies[] = {0, 1, 2, 7, 64};
    for (size_t i = 0; i < ARRAY_SIZE(concurrencies); i++) {
        uint32_t allowed = concurrencies[i] ? concurrencies[i] : 1;
        struct world *t = begin_lanes(i, concurrencies[i]);
        world_start(t);
        push_plain(t, 300);
        uint64_t start_ns = sim_now_ns(t->sim);
        run_until_stored(t);
        assert_int_equal(seen.most, allowed);
        assert_int_equal(sim_server_accepted(t->server), allowed);
        assert_delivered_once(1, 300);
        assert_int_equal(failures_of(t), 0);
        uint64_t took_ns = sim_now_ns(t->sim) - start_ns;
        assert_true(took_ns < (300 / allowed + 10) * 11 * NS_PER_MS);
        world_end(t);
    }
}

static void lanes_are_opened_only_as_they_are_needed(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 16);
    world_start(t);
    for (int i = 0; i < 20; i++) {
        push_plain(t, 1);
        run_until_stored(t);
        sim_run_for(t->sim, NS_PER_MS); /* the rest of the reply */
    }
    assert_int_equal(sim_server_accepted(t->server), 1);
    push_plain(t, 3);
    run_until_stored(t);
    assert_int_equal(sim_server_accepted(t->server), 3);
    world_end(t);
}

static void a_wire_begins_with_one_and_doubles_by_each_round(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 16);
    world_start(t);
    push_plain(t, 100);
    sim_run_for(t->sim, 9 * NS_PER_MS);
    assert_int_equal(seen.arrivals, 1);
    sim_run_for(t->sim, 11 * NS_PER_MS);
    assert_int_equal(seen.arrivals, 3);
    run_until_stored(t);
    assert_int_equal(seen.most, 16);
    world_end(t);
}

static void idle_lanes_are_closed_after_a_while_but_for_the_first(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 8);
    world_start(t);
    push_plain(t, 100);
    run_until_stored(t);
    assert_int_equal(sim_open_descriptors(t->sim), 8);
    run_for_s(t, LANE_IDLE_NS / NS_PER_S + 1);
    assert_true(lane_idle(t->wire->lanes[0]));
    for (unsigned n = 1; n < 8; n++)
        assert_true(lane_gone(t->wire->lanes[n]));
    assert_int_equal(failures_of(t), 0);
    push_plain(t, 100);
    run_until_stored(t);
    assert_delivered_once(1, 200);
    world_end(t);
}

/* --- refused records --- */

static void a_refused_record_rests_by_itself_and_others_go_on(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 4);
    seen.bad = ANSWER("422 No");
    world_start(t);
    push_plain(t, 2);
    push_keyed(t, 0, ",\"x\":\"bad\"");
    push_plain(t, 47);
    run_for_s(t, 60);
    assert_int_equal(stored(t), 2);
    assert_int_equal(delivered_count(), 49);
    assert_delivered_once(4, 50);
    assert_true(seen.came[3] >= 3 && seen.came[3] < 30); /* by a back-off of its own */
    assert_error_text(t, "POST http://10.0.0.2: 422 No");
    assert_int_equal(error_of(t), PE_HTTP_STATUS);
    assert_int_equal(state_of(t), OUTLET_OK);
    seen.bad = NULL;
    run_until_stored(t);
    assert_delivered_once(1, 50);
    assert_int_equal(error_of(t), 0);
    world_end(t);
}

static void refusals_are_a_handful_of_lines(void **state)
{
    (void)state;
    char line[400];
    struct world *t = begin_lanes(1, 4);
    seen.bad = ANSWER("422 No");
    world_start(t);
    for (int i = 0; i < 50; i++)
        push_keyed(t, 0, i % 2 ? "" : ",\"x\":\"bad\"");
    run_for_s(t, 600);
    assert_true(failures_of(t) > 200);
    assert_true(take_log(t, line, sizeof line) <= 12);
    assert_non_null(strstr(line, "app.out: POST http://10.0.0.2: 422 No ("));
    world_end(t);
}

static void what_goes_ahead_of_a_refused_record_is_bounded(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 4);
    seen.bad = ANSWER("422 No");
    world_start(t);
    push_keyed(t, 0, ",\"x\":\"bad\"");
    push_plain(t, 300);
    run_for_s(t, 60);
    assert_int_equal(delivered_count(), 4 * SLOTS_PER_LANE - 1);
    assert_int_equal(stored(t), 0);
    seen.bad = NULL;
    run_until_stored(t);
    assert_delivered_once(1, 301);
    world_end(t);
}

static struct world *begin_dead(uint64_t seed, uint32_t concurrency, uint32_t attempts)
{
    struct world *t = begin_lanes(seed, concurrency);
    seen.bad = ANSWER("422 No");
    t->options.attempts = attempts;
    t->options.backoff_max_ns = NS_PER_S;
    world_start(t);
    t->wire->outlet.keeps_dead = true;
    return t;
}

static void records_that_are_always_refused_become_dead_letters_one_at_a_time(void **state)
{
    (void)state;
    struct world *t = begin_dead(1, 4, 3);
    for (int i = 1; i <= 30; i++)
        push_keyed(t, 0, i == 5 || i == 6 || i == 20 ? ",\"x\":\"bad\"" : "");
    run_for_s(t, 20); /* the owner takes his time */
    assert_int_equal(delivered_count(), 27);
    assert_int_equal(stored(t), 4);
    assert_int_equal(seen.came[5] + seen.came[6] + seen.came[20], 9);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(t->wire->outlet.dead.status, 422);
        assert_string_equal(t->wire->outlet.dead.reason, "422 No");
        take_dead(t);
        sim_run_for(t->sim, NS_PER_MS);
    }
    assert_int_equal(stored(t), 30); /* freed in order */
    assert_true(seen.dead[5] && seen.dead[6] && seen.dead[20]);
    assert_int_equal(counter_read(&t->wire->outlet.report.dead), 3);
    assert_int_equal(seen.came[5] + seen.came[6] + seen.came[20], 9);
    assert_int_equal(dead_state(t), OUTLET_DEAD_NONE);
    world_end(t);
}

static void only_refusals_of_a_record_in_a_row_count(void **state)
{
    (void)state;
    struct world *t = begin_dead(1, 2, 2);
    push_keyed(t, 0, ",\"x\":\"bad\"");
    while (seen.came[1] < 9) { /* every second answer is about the moment */
        unsigned came = seen.came[1];
        seen.bad = came % 2 ? ANSWER("429 Slow") : ANSWER("422 No");
        for (int i = 0; i < 10000 && seen.came[1] == came; i++)
            sim_run_for(t->sim, NS_PER_MS);
        sim_run_for(t->sim, 15 * NS_PER_MS);
        assert_int_equal(dead_state(t), OUTLET_DEAD_NONE);
    }
    seen.bad = ANSWER("422 No");
    run_taking_dead(t);
    assert_true(seen.dead[1]);
    world_end(t);
}

/* --- keys --- */

static void records_of_one_key_go_one_after_the_other_and_others_beside_them(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 8);
    t->options.order_by = "k";
    world_start(t);
    for (unsigned i = 0; i < 400; i++)
        push_keyed(t, i % 5, "");
    run_until_stored(t);
    assert_int_equal(seen.overlaps, 0);
    assert_int_equal(seen.disorder, 0);
    assert_true(seen.most >= 5);
    assert_delivered_once(1, 400);
    world_end(t);
}

static void a_key_is_what_its_value_means(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 8);
    t->options.order_by = "k";
    world_start(t);
    for (unsigned i = 0; i < 20; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"n\":%u,\"k\":%s}", i + 1, i % 2 ? "\"a\"" : " \"\\u0061\"");
        seen.key_of[i + 1] = 1;
        push(t, text);
    }
    run_until_stored(t);
    assert_int_equal(seen.most, 1);
    assert_int_equal(seen.disorder, 0);
    world_end(t);
}

/* Outages, refusals, dead letters, lost connections: a key's next record never goes before the one before it
 * is delivered or set aside. */
static void a_key_keeps_its_order_over_failures_and_dead_letters(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct world *t = begin_lanes(seed, 2 + (uint32_t)(seed % 9));
        struct sim_link link = sim_link_default;
        link.reset = seed % 3 == 0 ? 10 : 0;
        sim_set_link(t->sim, NULL, NULL, &link);
        seen.bad = ANSWER("422 No");
        t->options.order_by = "k";
        t->options.attempts = 2;
        t->options.backoff_max_ns = NS_PER_S;
        world_start(t);
        t->wire->outlet.keeps_dead = true;
        for (unsigned i = 0; i < 120; i++)
            push_keyed(t, (unsigned)random_below(sim_random(t->sim), 6), i % 13 == 7 ? ",\"x\":\"bad\"" : "");
        sim_run_for(t->sim, 100 * NS_PER_MS);
        seen.all = ANSWER("503 Ill");
        sim_run_for(t->sim, 500 * NS_PER_MS);
        seen.all = NULL;
        run_taking_dead(t);
        if (seen.disorder > 0)
            fail_msg("seed %u: %u out of order", (unsigned)seed, seen.disorder);
        for (unsigned n = 1; n <= 120; n++)
            assert_true(seen.dead[n] == ((n - 1) % 13 == 7) && (seen.dead[n] || seen.delivered[n]));
        world_end(t);
    }
}

/* --- outages --- */

static void after_an_outage_one_tries_and_each_round_doubles_them(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 16);
    world_start(t);
    push_plain(t, 100);
    run_until_stored(t);
    seen.all = ANSWER("503 Ill");
    push_plain(t, 200);
    run_for_s(t, 120);
    assert_true(failures_of(t) < 60); /* not sixteen a step */
    assert_int_equal(state_of(t), OUTLET_RESTING);
    unsigned before = seen.arrivals;
    for (unsigned i = before - 5; i + 1 < before; i++) /* alone */
        assert_true(seen.arrived_ns[i + 1] - seen.arrived_ns[i] > 50 * NS_PER_MS);
    seen.all = NULL;
    seen.most = 0;
    run_until_stored(t);
    unsigned first_wave = 0;
    for (unsigned i = before; seen.arrived_ns[i] - seen.arrived_ns[before] < 25 * NS_PER_MS; i++)
        first_wave++;
    assert_true(first_wave <= 7); /* 1, 2, 4 */
    assert_int_equal(seen.most, 16);
    assert_delivered_once(1, 300);
    world_end(t);
}

static void a_destination_that_is_away_is_dialed_by_one_lane(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 32);
    sim_server_listen(t->server, false);
    world_start(t);
    push_plain(t, 100);
    for (int i = 0; i < 500; i++) {
        sim_run_for(t->sim, 100 * NS_PER_MS);
        assert_true(sim_open_descriptors(t->sim) <= 2);
    }
    assert_int_equal(error_of(t), -ECONNREFUSED);
    sim_server_listen(t->server, true);
    run_until_stored(t);
    assert_delivered_once(1, 100);
    world_end(t);
}

static void sixteen_failures_at_once_are_one(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 16);
    world_start(t);
    push_plain(t, 100);
    run_until_stored(t);
    push_plain(t, 16);
    sim_run_for(t->sim, 5 * NS_PER_MS);
    assert_int_equal(seen.requests, 16);
    sim_server_listen(t->server, false);
    sim_reset_connections(t->sim, NULL, NULL);
    sim_run_for(t->sim, 20 * NS_PER_MS);
    assert_true(failures_of(t) <= 1);
    sim_server_listen(t->server, true);
    run_until_stored(t);
    world_end(t);
}

static void connections_that_the_peer_closed_while_idle_cost_no_failure(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct world *t = begin_lanes(seed, 8);
        world_start(t);
        push_plain(t, 50);
        run_until_stored(t);
        sim_reboot_host(t->sim, "10.0.0.2");
        uint64_t tries = tries_of(t);
        push_plain(t, 1);
        run_until_stored(t);
        assert_int_equal(tries_of(t), tries + 2); /* again on a fresh one: not on the next that is as old */
        sim_reboot_host(t->sim, "10.0.0.2");
        push_plain(t, 50);
        run_until_stored(t);
        assert_int_equal(failures_of(t), 0);
        assert_delivered_once(1, 101);
        world_end(t);
    }
}

/* --- the age of connections --- */

static void no_connection_is_used_for_longer_than_its_age(void **state)
{
    (void)state;
    static const uint32_t concurrencies[] = {1, 4};
    for (size_t i = 0; i < ARRAY_SIZE(concurrencies); i++) {
        struct world *t = begin_lanes(i, concurrencies[i]);
        t->options.connection_age_ns = 5 * NS_PER_S;
        world_start(t);
        for (unsigned n = 0; n < 100; n++) {
            push_plain(t, 1);
            sim_run_for(t->sim, 250 * NS_PER_MS);
        }
        run_until_stored(t);
        assert_true(sim_server_accepted(t->server) >= 5 && sim_server_accepted(t->server) <= 7);
        assert_int_equal(failures_of(t), 0);
        assert_delivered_once(1, 100);
        run_for_s(t, 6); /* nor is one kept */
        assert_int_equal(sim_open_descriptors(t->sim), 0);
        world_end(t);
    }
}

/* A lane that was opened for a record which another lane was quicker to take, and closed before it was used.
 */
static void a_lane_that_was_one_too_many_is_no_failure(void **state)
{
    (void)state;
    static const struct sim_step quick[] = {SIM_EXPECT_HTTP, SIM_CALL(arrive, NULL), SIM_CALL(respond, NULL),
                                            SIM_AGAIN};
    unsigned unused = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct world *t = begin_lanes(seed, 4);
        sim_server_script(t->server, quick, ARRAY_SIZE(quick));
        t->options.connection_age_ns = 2 * NS_PER_S;
        world_start(t);
        push_plain(t, 6);
        run_until_stored(t);
        run_for_s(t, 1);
        for (unsigned n = 0; n < 4; n++)
            unused += t->wire->lanes[n] && t->wire->lanes[n]->connection.begun == 0;
        run_for_s(t, 2);
        assert_int_equal(sim_open_descriptors(t->sim), 0);
        assert_int_equal(failures_of(t), 0);
        world_end(t);
    }
    assert_true(unused > 0);
}

static void an_exchange_under_way_ends_in_peace_when_its_connection_gets_old(void **state)
{
    (void)state;
    static const struct sim_step slow[] = {SIM_EXPECT_HTTP, SIM_CALL(arrive, NULL), SIM_WAIT(8 * NS_PER_S),
                                           SIM_CALL(respond, NULL), SIM_AGAIN};
    struct world *t = begin_lanes(1, 1);
    sim_server_script(t->server, slow, ARRAY_SIZE(slow));
    t->options.connection_age_ns = 5 * NS_PER_S;
    world_start(t);
    push_plain(t, 3);
    run_until_stored(t);
    assert_int_equal(sim_server_accepted(t->server), 3);
    assert_int_equal(failures_of(t), 0);
    assert_delivered_once(1, 3);
    world_end(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_go_side_by_side_as_many_as_are_allowed),
        cmocka_unit_test(lanes_are_opened_only_as_they_are_needed),
        cmocka_unit_test(a_wire_begins_with_one_and_doubles_by_each_round),
        cmocka_unit_test(idle_lanes_are_closed_after_a_while_but_for_the_first),
        cmocka_unit_test(a_refused_record_rests_by_itself_and_others_go_on),
        cmocka_unit_test(refusals_are_a_handful_of_lines),
        cmocka_unit_test(what_goes_ahead_of_a_refused_record_is_bounded),
        cmocka_unit_test(records_that_are_always_refused_become_dead_letters_one_at_a_time),
        cmocka_unit_test(only_refusals_of_a_record_in_a_row_count),
        cmocka_unit_test(records_of_one_key_go_one_after_the_other_and_others_beside_them),
        cmocka_unit_test(a_key_is_what_its_value_means),
        cmocka_unit_test(a_key_keeps_its_order_over_failures_and_dead_letters),
        cmocka_unit_test(after_an_outage_one_tries_and_each_round_doubles_them),
        cmocka_unit_test(a_destination_that_is_away_is_dialed_by_one_lane),
        cmocka_unit_test(sixteen_failures_at_once_are_one),
        cmocka_unit_test(connections_that_the_peer_closed_while_idle_cost_no_failure),
        cmocka_unit_test(no_connection_is_used_for_longer_than_its_age),
        cmocka_unit_test(a_lane_that_was_one_too_many_is_no_failure),
        cmocka_unit_test(an_exchange_under_way_ends_in_peace_when_its_connection_gets_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
