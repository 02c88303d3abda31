/* What wires are told beyond where to: rates, waiting for more, statuses, when to give up for good; and how
 * they are told anew, hurried and stopped with requests on many lanes. */
#include "tests/unit/lanes_world.h"

static const struct sim_step receive[] = {SIM_EXPECT_HTTP, SIM_CALL(note_request, &here), SIM_SEND(OK_REPLY),
                                          SIM_AGAIN};

/* --- rate --- */

static void requests_keep_to_their_rate(void **state)
{
    (void)state;
    static const struct {
        uint64_t rate_mhz;
        unsigned records, burst;
    } cases[] = {{10 * 1000, 100, 10}, {1500, 20, 1}, {500, 10, 1}, {100 * 1000, 500, 100}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world *t = begin_lanes(i, i % 2 ? 1 : 32);
        t->options.rate_mhz = cases[i].rate_mhz;
        world_start(t);
        push_plain(t, cases[i].records);
        uint64_t steps = counter_read(&t->loop.counters.steps);
        run_until_stored(t);
        for (unsigned a = 0; a < seen.arrivals; a++) { /* in any time: a burst, and the rate times the time */
            for (unsigned b = a + 1; b < seen.arrivals; b++) {
                uint64_t most = cases[i].burst + (seen.arrived_ns[b] - seen.arrived_ns[a] + NS_PER_MS) *
                                                     cases[i].rate_mhz / (1000 * NS_PER_S);
                assert_true(b - a <= most);
            }
        }
        uint64_t least_ns = (cases[i].records - cases[i].burst - 1) * 1000 * NS_PER_S / cases[i].rate_mhz;
        uint64_t took_ns = seen.arrived_ns[seen.arrivals - 1] - seen.arrived_ns[0];
        assert_true(took_ns >= least_ns);
        if (i % 2 == 0) /* nor slower than that */
            assert_true(took_ns < least_ns + 2 * NS_PER_S + 1000 * NS_PER_S / cases[i].rate_mhz);
        assert_true(counter_read(&t->loop.counters.steps) - steps <
                    30 * cases[i].records); /* no busy timer */
        world_end(t);
    }
}

/* --- waiting for more --- */

static struct world *begin_batch(uint64_t wait_ns)
{
    struct world *t = begin(1, receive, ARRAY_SIZE(receive));
    t->options.mode = WIRE_BATCH;
    t->options.batch_wait_ns = wait_ns;
    t->options.batch_bytes = 100;
    t->options.batch_records = 8;
    world_start(t);
    return t;
}

static void a_batch_that_is_not_full_waits_for_more(void **state)
{
    (void)state;
    struct world *t = begin_batch(NS_PER_S);
    uint64_t start_ns = sim_now_ns(t->sim);
    push(t, "1");
    sim_run_for(t->sim, 600 * NS_PER_MS);
    push(t, "2");
    sim_run_for(t->sim, 390 * NS_PER_MS);
    assert_int_equal(t->requests, 0);
    run_until_stored(t); /* both, a second after the first */
    assert_int_equal(t->requests, 1);
    assert_string_equal(t->noted[0].body, "1\n2\n");
    assert_true(sim_now_ns(t->sim) - start_ns < 1010 * NS_PER_MS);
    push(t, "3");
    sim_run_for(t->sim, 900 * NS_PER_MS);
    assert_int_equal(t->requests, 1);
    run_until_stored(t);
    world_end(t);
}

static void a_batch_that_is_full_waits_for_nothing(void **state)
{
    (void)state;
    struct world *t = begin_batch(3600 * NS_PER_S);
    for (int i = 0; i < 8; i++)
        push(t, "x"); /* by count */
    sim_run_for(t->sim, 10 * NS_PER_MS);
    assert_int_equal(stored(t), 8);
    char large[60];
    memset(large, 'y', sizeof large);
    for (int i = 0; i < 3; i++) { /* by bytes: one fits, two do not */
        assert_int_equal(outlet_queue(&t->wire->outlet, large, sizeof large), 0);
        outlet_push(&t->wire->outlet);
        t->pushed++;
    }
    sim_run_for(t->sim, 10 * NS_PER_MS);
    assert_int_equal(stored(t), 10);
    sim_run_for(t->sim, 10 * NS_PER_MS);
    assert_int_equal(stored(t), 10);
    wire_hurry(t->wire); /* nor does it when the host stops */
    sim_run_for(t->sim, 10 * NS_PER_MS);
    assert_int_equal(stored(t), 11);
    world_end(t);
}

/* Nothing but the rate's own time brings the next batch about: no push, no answer. */
static void a_batch_goes_when_its_rate_allows_it(void **state)
{
    (void)state;
    static const uint64_t waits_ns[] = {0, 100 * NS_PER_MS, 3 * NS_PER_S};
    for (size_t i = 0; i < ARRAY_SIZE(waits_ns); i++) {
        struct world *t = begin(1, receive, ARRAY_SIZE(receive));
        t->options.mode = WIRE_BATCH;
        t->options.batch_records = 2;
        t->options.batch_wait_ns = waits_ns[i];
        t->options.rate_mhz = 1000;
        world_start(t);
        for (int n = 0; n < 7; n++)
            push(t, "x");
        run_for_s(t, 1 + 3 + 4);
        assert_int_equal(stored(t), 7);
        assert_int_equal(t->requests, 4);
        world_end(t);
    }
}

/* --- statuses --- */

static const char *const ok_404[] = {ANSWER("404 Known"), NULL};

static void statuses_mean_what_the_options_say(void **state)
{
    (void)state;
    static const uint32_t concurrencies[] = {1, 4};
    for (size_t i = 0; i < ARRAY_SIZE(concurrencies); i++) {
        struct world *t = begin_lanes(i, concurrencies[i]);
        wire_statuses_remove(&t->options.refused, 404);
        wire_statuses_add(&t->options.stored, 404, 404);
        wire_statuses_add(&t->options.refused, 500, 500);
        wire_statuses_add(&t->options.disables, 418, 418);
        t->options.attempts = 2;
        world_start(t);
        t->wire->outlet.keeps_dead = true;
        seen.all = ok_404[0];
        push_plain(t, 5);
        run_until_stored(t);
        assert_int_equal(failures_of(t), 0);
        seen.all = ANSWER("500 Refused");
        push_plain(t, 1);
        run_taking_dead(t);
        assert_int_equal(t->wire->outlet.dead.status, 500);
        seen.all = ANSWER("418 Teapot");
        push_plain(t, 1);
        run_for_s(t, 3600);
        assert_int_equal(state_of(t), OUTLET_DISABLED);
        assert_error_text(t, "POST http://10.0.0.2: 418 Teapot: the output is disabled");
        assert_int_equal(seen.came[7], 1);
        world_end(t);
    }
}

/* --- disabling --- */

static void so_many_failures_in_a_row_disable(void **state)
{
    (void)state;
    static const uint32_t concurrencies[] = {1, 8};
    for (size_t i = 0; i < ARRAY_SIZE(concurrencies); i++) {
        struct world *t = begin_lanes(i, concurrencies[i]);
        t->options.disable_failures = 5;
        t->options.backoff_max_ns = NS_PER_S;
        world_start(t);
        seen.all = ANSWER("500 Ill");
        push_plain(t, 20);
        while (failures_of(t) < 4)
            sim_run_for(t->sim, 5 * NS_PER_MS);
        seen.all = NULL;
        run_until_stored(t); /* one success begins anew */
        seen.all = ANSWER("500 Ill");
        push_plain(t, 20);
        run_for_s(t, 3600);
        assert_int_equal(failures_of(t), 4 + 5);
        assert_int_equal(state_of(t), OUTLET_DISABLED);
        assert_int_equal(error_of(t), PE_HTTP_STATUS);
        assert_error_text(t, "POST http://10.0.0.2: 500 Ill; 5 failures in a row: the output is disabled");
        assert_int_equal(sim_open_descriptors(t->sim), 0);
        world_end(t);
    }
}

static void refusals_of_all_records_disable_too(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 4);
    t->options.disable_failures = 10;
    world_start(t);
    seen.all = ANSWER("404 No");
    push_plain(t, 50);
    run_for_s(t, 60);
    assert_int_equal(state_of(t), OUTLET_DISABLED);
    assert_true(seen.arrivals <= 14);
    world_end(t);
}

static void so_long_without_a_success_disables(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 2);
    t->options.disable_ns = 3600 * NS_PER_S;
    sim_server_listen(t->server, false);
    world_start(t);
    run_for_s(t, 7200); /* nothing is tried */
    push_plain(t, 1);
    run_for_s(t, 3500);
    assert_int_equal(state_of(t), OUTLET_RESTING);
    run_for_s(t, 200);
    assert_int_equal(state_of(t), OUTLET_DISABLED);
    char text[200];
    outlet_error_text(&t->wire->outlet, text, sizeof text);
    assert_non_null(strstr(text, "Connection refused"));
    assert_non_null(strstr(text, "; no success for 36"));
    world_end(t);
}

static void what_an_earlier_life_found_counts(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 2);
    t->options.disable_failures = 100;
    world_start(t);
    wire_resume(t->wire, 99, SIM_START_WALL_MS - 5000, false);
    assert_int_equal(state_of(t), OUTLET_RESTING);
    seen.all = ANSWER("500 Ill");
    push_plain(t, 1);
    run_for_s(t, 1);
    assert_int_equal(state_of(t), OUTLET_DISABLED);
    assert_int_equal(atomic_load(&t->wire->outlet.report.failures), 100);
    world_end(t);

    t = begin_lanes(1, 2); /* the time, too; also one that cannot be */
    t->options.disable_ns = 10 * NS_PER_S;
    world_start(t);
    wire_resume(t->wire, 1, SIM_START_WALL_MS - 9500, false);
    seen.all = ANSWER("500 Ill");
    push_plain(t, 1);
    sim_run_for(t->sim, 300 * NS_PER_MS);
    assert_int_equal(state_of(t), OUTLET_RESTING);
    assert_int_equal(atomic_load(&t->wire->outlet.report.failing_ms), SIM_START_WALL_MS - 9500);
    run_for_s(t, 2);
    assert_int_equal(state_of(t), OUTLET_DISABLED);
    world_end(t);

    t = begin_lanes(1, 2); /* but not what a clock said that was not set yet */
    t->options.disable_ns = 5 * 86400 * NS_PER_S;
    world_start(t);
    wire_resume(t->wire, 1, 1000, false);
    seen.all = ANSWER("500 Ill");
    push_plain(t, 1);
    run_for_s(t, 60);
    assert_int_equal(state_of(t), OUTLET_RESTING);
    assert_int_equal(atomic_load(&t->wire->outlet.report.failing_ms), SIM_START_WALL_MS);
    world_end(t);

    t = begin_lanes(1, 2);
    world_start(t);
    wire_resume(t->wire, 3, SIM_START_WALL_MS + 9500, true);
    push_plain(t, 1);
    run_for_s(t, 3600);
    assert_int_equal(tries_of(t), 0);
    assert_int_equal(state_of(t), OUTLET_DISABLED);
    assert_int_equal(wire_change(t->wire, &t->options), 0); /* until it is configured anew */
    run_until_stored(t);
    assert_int_equal(state_of(t), OUTLET_OK);
    assert_int_equal(atomic_load(&t->wire->outlet.report.failing_ms), 0);
    world_end(t);
}

/* --- changes --- */

/* With requests on many lanes; what was delivered ahead of a refused record does not go again. */
static void a_wire_is_changed_while_its_lanes_are_busy(void **state)
{
    (void)state;
    static const uint32_t before[] = {1, 8, 8, 4, 32}, after[] = {8, 1, 3, 64, 2};
    for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
        struct world *t = begin_lanes(i, before[i]);
        seen.bad = ANSWER("422 No");
        world_start(t);
        for (int n = 0; n < 100; n++)
            push_keyed(t, 1 + (unsigned)n % 3, n == 9 ? ",\"x\":\"bad\"" : "");
        sim_run_for(t->sim, 200 * NS_PER_MS);
        t->options.concurrency = after[i];
        t->options.order_by = after[i] > 1 ? "k" : NULL;
        assert_int_equal(wire_change(t->wire, &t->options), 0);
        seen.bad = NULL;
        run_until_stored(t);
        assert_delivered_once(1, 100);
        assert_true(failures_of(t) < 5);
        push_plain(t, 300);
        seen.most = 0;
        run_until_stored(t);
        assert_int_equal(seen.most, after[i]);
        assert_delivered_once(101, 400);
        world_end(t);
    }
}

static void changes_in_any_number_at_any_time_lose_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct world *t = begin_lanes(seed, 1 + (uint32_t)(seed % 9));
        seen.bad = ANSWER("422 No");
        t->options.attempts = 2;
        world_start(t);
        t->wire->outlet.keeps_dead = true;
        for (int i = 0; i < 30; i++) {
            push_keyed(t, 0, random_below(sim_random(t->sim), 8) == 0 ? ",\"x\":\"bad\"" : "");
            push_plain(t, (unsigned)random_below(sim_random(t->sim), 4));
            sim_run_for(t->sim, random_below(sim_random(t->sim), 30 * NS_PER_MS));
            t->options.concurrency = 1 + (uint32_t)random_below(sim_random(t->sim), 20);
            t->options.rate_mhz = random_below(sim_random(t->sim), 2) ? 0 : 1000000;
            if (random_below(sim_random(t->sim), 3) == 0)
                assert_int_equal(wire_change(t->wire, &t->options), 0);
            if (dead_asked(t) && random_below(sim_random(t->sim), 2))
                take_dead(t);
        }
        run_taking_dead(t);
        for (unsigned n = 1; n <= t->pushed; n++) {
            assert_true(seen.delivered[n] + seen.dead[n] == 1);
            assert_true(seen.came[n] >= 1);
        }
        world_end(t);
    }
}

/* A dead letter that is asked for outlives a change of the mode, and its record stays where it is. */
static void modes_change_with_a_dead_letter_on_its_way(void **state)
{
    (void)state;
    static const enum wire_mode modes[] = {WIRE_WEBHOOK, WIRE_BATCH};
    for (size_t i = 0; i < 4; i++) {
        struct world *t = begin(i, receive, ARRAY_SIZE(receive));
        static const struct sim_step refuse[] = {SIM_EXPECT_HTTP, SIM_CALL(note_request, &here),
                                                 SIM_SEND(ANSWER("422 No")), SIM_AGAIN};
        sim_server_script(t->server, refuse, ARRAY_SIZE(refuse));
        t->options.mode = modes[i % 2];
        t->options.attempts = 1;
        world_start(t);
        t->wire->outlet.keeps_dead = true;
        for (int n = 0; n < 6; n++)
            push(t, "record");
        assert_int_equal(sim_run_until(t->sim, dead_asked, t), SIM_DONE);
        sim_server_script(t->server, receive, ARRAY_SIZE(receive));
        t->options.mode = modes[(i + 1) % 2];
        t->options.connection_age_ns = i / 2;
        assert_int_equal(wire_change(t->wire, &t->options), 0);
        run_for_s(t, 60);
        assert_true(dead_asked(t));
        assert_int_equal(stored(t), t->wire->outlet.dead.start.records);
        take_dead(t);
        run_until_stored(t);
        assert_int_equal(counter_read(&t->wire->outlet.report.dead), 1);
        world_end(t);
    }
}

/* --- ends --- */

static void a_wire_that_hurries_cuts_the_rests_of_its_records_short(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 4);
    seen.bad = "HTTP/1.1 422 No\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
    world_start(t);
    for (int n = 0; n < 20; n++)
        push_keyed(t, 0, n % 4 == 0 ? ",\"x\":\"bad\"" : "");
    run_for_s(t, 60);
    assert_int_equal(delivered_count(), 15);
    assert_int_equal(seen.came[1], 1);
    seen.bad = NULL;
    wire_hurry(t->wire);
    run_for_s(t, 1);
    assert_int_equal(stored(t), 20);
    world_end(t);
}

static void a_wire_with_many_lanes_stops_in_every_state(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        struct world *t = begin_lanes(seed, 16);
        if (seed % 3 == 1)
            seen.all = ANSWER("503 Ill");
        if (seed % 3 == 2)
            seen.bad = ANSWER("422 No");
        world_start(t);
        for (int n = 0; n < 200; n++)
            push_keyed(t, 0, n % 5 == 0 ? ",\"x\":\"bad\"" : "");
        sim_run_for(t->sim, seed * seed * 20 * NS_PER_US);
        uint64_t start_ns = sim_now_ns(t->sim);
        wire_stop(t->wire);
        assert_int_equal(sim_run_until(t->sim, world_is_stopped, t), SIM_DONE);
        assert_true(sim_now_ns(t->sim) - start_ns < NS_PER_S);
        assert_int_equal(sim_open_descriptors(t->sim), 0);
        world_end(t);
    }
}

/* --- economy --- */

static void a_request_on_one_of_many_lanes_costs_one_send(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 8);
    world_start(t);
    push_plain(t, 100);
    run_until_stored(t);
    sim_run_for(t->sim, NS_PER_MS);
    uint64_t before = counter_read(&t->loop.io->counters.operations);
    push_plain(t, 400);
    run_until_stored(t);
    assert_int_equal(counter_read(&t->loop.io->counters.operations) - before, 400);
    world_end(t);
}

static void options_of_lanes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct world *t = begin_lanes(1, 1);
    char long_name[WIRE_MEMBER_MAX + 2];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    struct wire *w = aligned_alloc(CACHE_LINE, sizeof *w);
    struct wire_options bad[4];
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        bad[i] = t->options;
    bad[0].concurrency = WIRE_CONCURRENCY_MAX + 1;
    bad[1].concurrency = 2, bad[1].mode = WIRE_BATCH;
    bad[2].order_by = long_name;
    bad[3].order_by = "";
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(wire_init(w, &bad[i], "a", "o", 1000, 100, &t->loop, t->resolver, &t->log),
                         PE_CONFIG);
    free(w);
    world_end(t);
}

/* --- what a proxy says for itself --- */

static const struct sim_step ask_login[] = {
    SIM_EXPECT_HTTP, SIM_SEND("HTTP/1.1 407 Login\r\nContent-Length: 0\r\n\r\n"), SIM_AGAIN};
static const struct sim_step bad_gateway[] = {
    SIM_EXPECT_HTTP, SIM_SEND("HTTP/1.1 502 Down\r\nContent-Length: 0\r\n\r\n"), SIM_AGAIN};

static struct world *begin_proxied(const struct sim_step *script, unsigned steps)
{
    const char *why;
    struct world *t = begin(1, script, steps);
    t->options.proxied = true;
    t->options.attempts = 1;
    assert_int_equal(url_parse(&t->options.url, "http://there.example/hook", &why), 0);
    assert_int_equal(url_parse(&t->options.proxy.url, "http://10.0.0.2:80", &why), 0);
    wire_statuses_add(&t->options.refused, 407, 407);
    world_start(t);
    t->wire->outlet.keeps_dead = true;
    push(t, "1");
    sim_run_for(t->sim, NS_PER_S);
    return t;
}

static void a_proxy_that_wants_a_login_refuses_no_record(void **state)
{
    (void)state;
    struct world *t = begin_proxied(ask_login, ARRAY_SIZE(ask_login));
    assert_error_text(t, "POST http://there.example by way of the proxy 10.0.0.2: 407, the proxy wants other "
                         "credentials");
    assert_int_equal(t->wire->outlet.report.error, PE_PROXY);
    assert_false(delivery_asking(t->wire));
    world_end(t);
    t = begin_proxied(bad_gateway, ARRAY_SIZE(bad_gateway));
    assert_error_text(t, "POST http://there.example by way of the proxy 10.0.0.2: 502 Down");
    world_end(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_proxy_that_wants_a_login_refuses_no_record),
        cmocka_unit_test(requests_keep_to_their_rate),
        cmocka_unit_test(a_batch_that_is_not_full_waits_for_more),
        cmocka_unit_test(a_batch_that_is_full_waits_for_nothing),
        cmocka_unit_test(a_batch_goes_when_its_rate_allows_it),
        cmocka_unit_test(statuses_mean_what_the_options_say),
        cmocka_unit_test(so_many_failures_in_a_row_disable),
        cmocka_unit_test(refusals_of_all_records_disable_too),
        cmocka_unit_test(so_long_without_a_success_disables),
        cmocka_unit_test(what_an_earlier_life_found_counts),
        cmocka_unit_test(a_wire_is_changed_while_its_lanes_are_busy),
        cmocka_unit_test(changes_in_any_number_at_any_time_lose_nothing),
        cmocka_unit_test(modes_change_with_a_dead_letter_on_its_way),
        cmocka_unit_test(a_wire_that_hurries_cuts_the_rests_of_its_records_short),
        cmocka_unit_test(a_wire_with_many_lanes_stops_in_every_state),
        cmocka_unit_test(a_request_on_one_of_many_lanes_costs_one_send),
        cmocka_unit_test(options_of_lanes_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
