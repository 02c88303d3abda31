/* Dials: the race of addresses, and the end at any moment. Lookups, order and egress rules are in
 * test_destination.c, the way through proxies in test_dial_proxy.c. */
#include "tests/unit/dial_bench.h"

#include "core/stream.h"

static void delay(struct bench *b, const char *host, uint64_t one_way_ns, bool black_hole)
{
    struct sim_link link = {.latency_min_ns = one_way_ns,
                            .latency_max_ns = one_way_ns,
                            .window_bytes = 65536,
                            .black_hole = black_hole};
    sim_set_link(b->sim, "10.0.0.1", host, &link);
    link.black_hole = false;
    sim_set_link(b->sim, host, "10.0.0.1", &link);
}

/* --- the race --- */

enum way { QUICK, SLOW, SLOWER, REFUSED, REFUSED_LATE, BLACK_HOLE, WAYS };

static const struct {
    uint64_t one_way_ns;
    bool listens, black_hole;
} ways[WAYS] = {
    [QUICK] = {NS_PER_MS, true, false},
    [SLOW] = {200 * NS_PER_MS, true, false},
    [SLOWER] = {700 * NS_PER_MS, true, false},
    [REFUSED] = {NS_PER_MS, false, false},
    [REFUSED_LATE] = {60 * NS_PER_MS, false, false},
    [BLACK_HOLE] = {NS_PER_MS, true, true},
};

#define RACERS 3

/* RFC 8305 as a race on paper: who wins, and when; nobody: -1, and when the last has failed. */
static int expected(const enum way racers[RACERS], uint64_t progress_ns, uint64_t *when_ns)
{
    uint64_t over_ns[RACERS], next_ns = 0;
    unsigned begun = 0;
    bool over[RACERS] = {false};
    for (;;) {
        int first = -1;
        for (unsigned i = 0; i < begun; i++) {
            if (!over[i] && (first < 0 || over_ns[i] < over_ns[first]))
                first = (int)i;
        }
        if (begun < RACERS && (first < 0 || next_ns < over_ns[first])) {
            over_ns[begun] =
                next_ns + (ways[racers[begun]].black_hole ? progress_ns : 2 * ways[racers[begun]].one_way_ns);
            next_ns += DIAL_DELAY_NS;
            begun++;
            continue;
        }
        if (first < 0)
            return -1;
        *when_ns = over_ns[first];
        if (ways[racers[first]].listens && !ways[racers[first]].black_hole)
            return first;
        over[first] = true;
        if (begun < RACERS)
            next_ns = over_ns[first];
    }
}

static void race(const enum way racers[RACERS], uint64_t seed)
{
    static const char *const hosts[RACERS] = {"fd00::1", "10.0.1.2", "fd00::3"}; /* the families in turn */
    static const char *const endpoints[RACERS] = {"[fd00::1]:80", "10.0.1.2:80", "[fd00::3]:80"};
    struct sim_server *servers[RACERS] = {NULL};
    struct bench b;
    uint64_t when_ns = 0;
    bench_new(&b, seed, URL);
    name_is(&b, hosts[0], hosts[1], hosts[2]);
    for (unsigned i = 0; i < RACERS; i++) {
        delay(&b, hosts[i], ways[racers[i]].one_way_ns, ways[racers[i]].black_hole);
        if (ways[racers[i]].listens)
            servers[i] = listens(&b, endpoints[i]);
    }
    bench_open(&b);
    b.dials[0].keeps = true;
    int error = bench_dial(&b);
    int winner = expected(racers, b.options.progress_ns, &when_ns);
    assert_int_equal(error == 0, winner >= 0);
    uint64_t took_ns = b.dials[0].done_ns - SIM_START_NS - NS_PER_MS;
    assert_in_range(took_ns, when_ns, when_ns + NS_PER_MS);
    if (winner >= 0) {
        assert_int_equal(sim_open_descriptors(b.sim), 1);
        sim_run_for(b.sim, 5 * NS_PER_S); /* what comes late is closed, and never reaches anybody */
        for (unsigned i = 0; i < RACERS; i++) {
            for (unsigned j = 0; servers[i] && j < sim_server_accepted(servers[i]); j++)
                assert_int_equal(sim_peer_ended(sim_server_connection(servers[i], j)), (int)i != winner);
        }
        assert_true(sim_server_accepted(servers[winner]) == 1);
        bench_close(&b.dials[0], b.dials[0].fd);
    }
    bench_free(&b);
}

static void the_first_address_to_answer_is_taken_in_every_race(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS * WAYS * WAYS; i++) {
        const enum way racers[RACERS] = {i % WAYS, i / WAYS % WAYS, i / WAYS / WAYS};
        race(racers, i + 1);
    }
}

static void black_holes_end_in_time_however_many_they_are(void **state)
{
    (void)state;
    struct sim_answer answer = {.addresses = {"10.0.1.1", "fd00::1", "10.0.1.2", "fd00::2", "10.0.1.3",
                                              "fd00::3", "10.0.1.4", "fd00::4"}};
    struct sim_link hole = {.latency_max_ns = 1, .window_bytes = 1, .black_hole = true};
    struct bench b;
    bench_new(&b, 1, URL);
    sim_set_name(b.sim, NAME, &answer);
    sim_set_link(b.sim, NULL, NULL, &hole);
    bench_open(&b);
    assert_int_equal(bench_dial(&b), PE_CONNECT_TIMEOUT);
    assert_string_equal(dial_text(&b.dials[0].dial), "10.0.1.1:80 and 7 others");
    uint64_t took_ns = b.dials[0].done_ns - SIM_START_NS;
    uint64_t most_ns = b.options.progress_ns + RESOLVER_ADDRESSES * DIAL_DELAY_NS;
    assert_in_range(took_ns, b.options.progress_ns, most_ns);
    bench_free(&b);
}

static void an_attempt_that_is_given_up_lets_the_next_begin_at_once(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    b.options.progress_ns = 20 * NS_PER_MS; /* sooner than the delay */
    name_is(&b, "10.0.1.1", "10.0.1.2", NULL);
    delay(&b, "10.0.1.1", NS_PER_MS, true);
    listens(&b, "10.0.1.2:80");
    bench_open(&b);
    assert_int_equal(bench_dial(&b), 0);
    assert_in_range(b.dials[0].done_ns - SIM_START_NS, 20 * NS_PER_MS, 25 * NS_PER_MS);
    bench_free(&b);
}

static void a_refused_connection_says_where(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, "http://[fd00::9]:81/");
    bench_open(&b);
    assert_int_equal(bench_dial(&b), -ECONNREFUSED);
    assert_string_equal(dial_text(&b.dials[0].dial), "[fd00::9]:81");
    bench_free(&b);
}

/* What came from afar tells more than that there is no way. */
static void the_most_telling_failure_is_reported(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "fd00::1", "10.0.1.1", NULL);
    sim_lack_family(b.sim, AF_INET6);
    bench_open(&b);
    assert_int_equal(bench_dial(&b), -ECONNREFUSED);
    assert_string_equal(dial_text(&b.dials[0].dial), "10.0.1.1:80 and 1 other");
    bench_free(&b);
}

static void a_family_that_the_system_lacks_holds_nothing_up(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "fd00::1", "fd00::2", "10.0.1.1");
    listens(&b, "10.0.1.1:80");
    sim_lack_family(b.sim, AF_INET6);
    bench_open(&b);
    assert_int_equal(bench_dial(&b), 0);
    assert_in_range(b.dials[0].done_ns - SIM_START_NS, 0, 10 * NS_PER_MS);
    name_is(&b, "fd00::1", NULL, NULL);
    destination_failed(&b.destination);
    assert_int_equal(bench_dial(&b), -EAFNOSUPPORT);
    bench_free(&b);
}

static void without_descriptors_it_fails_and_works_again_when_there_are_some(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "10.0.1.1", "10.0.1.2", NULL);
    listens(&b, "10.0.1.2:80");
    sim_limit_descriptors(b.sim, 0);
    bench_open(&b);
    assert_int_equal(bench_dial(&b), -EMFILE);
    sim_limit_descriptors(b.sim, 1); /* enough: one after the other */
    assert_int_equal(bench_dial(&b), 0);
    bench_free(&b);
}

/* --- the end --- */

/* Runs `steps` steps of the loop, stops, and sees to what comes of it. Returns whether it was done by then.
 */
static bool stopped_after(uint64_t seed, unsigned steps, enum way first, enum way second)
{
    struct bench b;
    bench_new(&b, seed, URL);
    name_is(&b, "fd00::1", "10.0.1.1", NULL);
    delay(&b, "fd00::1", ways[first].one_way_ns, ways[first].black_hole);
    delay(&b, "10.0.1.1", ways[second].one_way_ns, ways[second].black_hole);
    if (ways[first].listens)
        listens(&b, "[fd00::1]:80");
    if (ways[second].listens)
        listens(&b, "10.0.1.1:80");
    bench_open(&b);
    bench_start(&b, 0);
    if (steps > 0)
        sim_run(b.sim, NEVER, NULL, NULL, steps);
    bool done = b.dials[0].dones > 0;
    b.inside = true;
    dial_stop(&b.dials[0].dial);
    dial_stop(&b.dials[0].dial);
    b.inside = false;
    bench_finish(&b);
    if (!done)
        assert_int_equal(b.dials[0].error, PE_STOPPING);
    sim_run_for(b.sim, 5 * NS_PER_S);
    assert_int_equal(b.dials[0].dones, 1);
    bench_free(&b);
    return done;
}

static void it_may_be_stopped_at_every_step(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS * WAYS; i++) {
        bool done = false;
        for (unsigned steps = 0; !done; steps++) {
            assert_true(steps < 200);
            done = stopped_after(i + 1, steps, i % WAYS, i / WAYS);
        }
    }
}

static void one_that_stops_waiting_leaves_the_lookup_to_the_others(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "10.0.1.1", NULL, NULL);
    listens(&b, "10.0.1.1:80");
    bench_open(&b);
    for (unsigned i = 0; i < 3; i++)
        bench_start(&b, i);
    dial_stop(&b.dials[1].dial);
    bench_finish(&b);
    assert_int_equal(b.dials[0].error, 0);
    assert_int_equal(b.dials[1].error, PE_STOPPING);
    assert_int_equal(b.dials[2].error, 0);
    assert_int_equal(sim_lookups(b.sim, NAME), 1);
    bench_free(&b);
}

static void one_that_is_stopped_while_a_lookup_hangs_leaves_nothing_behind(void **state)
{
    (void)state;
    struct sim_answer hangs = {.delay_ns = SIM_HANGS};
    struct bench b;
    bench_new(&b, 1, URL);
    sim_set_name(b.sim, NAME, &hangs);
    bench_open(&b);
    for (unsigned i = 1; i <= 3; i++) {
        bench_start(&b, 0);
        sim_run_for(b.sim, NS_PER_S);
        dial_stop(&b.dials[0].dial);
        bench_finish(&b);
        assert_int_equal(b.dials[0].error, PE_STOPPING);
        assert_int_equal(b.loop.timers.count, 0);
        assert_false(b.destination.name.in_flight);
    }
    bench_free(&b);
}

static void it_may_be_started_from_inside_done(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, "http://10.0.1.1/");
    bench_open(&b);
    b.dials[0].again = 9;
    bench_start(&b, 0);
    bench_finish(&b);
    assert_int_equal(b.dials[0].dones, 10);
    assert_int_equal(b.dials[0].error, -ECONNREFUSED);
    bench_free(&b);
}

/* --- what the connection is like --- */

struct talk {
    struct stream stream;
    int error;
    bool closed;
};

static void talk_data(struct stream *s, const uint8_t *bytes, size_t size)
{
    (void)s, (void)bytes, (void)size;
}

static void talk_sent(struct stream *s, size_t size, bool all)
{
    (void)s, (void)size, (void)all;
}

static void talk_failed(struct stream *s, int error)
{
    container_of(s, struct talk, stream)->error = error;
    stream_close(s);
}

static void talk_closed(struct stream *s)
{
    container_of(s, struct talk, stream)->closed = true;
}

static bool talk_over(void *context)
{
    return ((struct talk *)context)->closed;
}

static const struct stream_events talk_events = {
    .data = talk_data, .sent = talk_sent, .failed = talk_failed, .closed = talk_closed};

static void a_peer_that_falls_silent_is_noticed_by_what_it_does_not_acknowledge(void **state)
{
    (void)state;
    struct talk talk = {.error = 0};
    struct iovec part = {"x", 1};
    struct bench b;
    bench_new(&b, 1, "http://10.0.1.1/");
    b.options.progress_ns = 7 * NS_PER_S;
    listens(&b, "10.0.1.1:80");
    bench_open(&b);
    b.dials[0].keeps = true;
    assert_int_equal(bench_dial(&b), 0);
    stream_init(&talk.stream, b.loop.io, &talk_events, b.dials[0].fd);
    sim_silence_host(b.sim, "10.0.1.1", true);
    uint64_t since_ns = sim_now_ns(b.sim);
    stream_read(&talk.stream, true);
    stream_send(&talk.stream, &part, 1);
    assert_int_equal(sim_run_until(b.sim, talk_over, &talk), SIM_DONE);
    assert_int_equal(talk.error, -ETIMEDOUT);
    assert_in_range(sim_now_ns(b.sim) - since_ns, 7 * NS_PER_S, 8 * NS_PER_S);
    bench_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_address_to_answer_is_taken_in_every_race),
        cmocka_unit_test(black_holes_end_in_time_however_many_they_are),
        cmocka_unit_test(an_attempt_that_is_given_up_lets_the_next_begin_at_once),
        cmocka_unit_test(a_refused_connection_says_where),
        cmocka_unit_test(the_most_telling_failure_is_reported),
        cmocka_unit_test(a_family_that_the_system_lacks_holds_nothing_up),
        cmocka_unit_test(without_descriptors_it_fails_and_works_again_when_there_are_some),
        cmocka_unit_test(it_may_be_stopped_at_every_step),
        cmocka_unit_test(one_that_stops_waiting_leaves_the_lookup_to_the_others),
        cmocka_unit_test(one_that_is_stopped_while_a_lookup_hangs_leaves_nothing_behind),
        cmocka_unit_test(it_may_be_started_from_inside_done),
        cmocka_unit_test(a_peer_that_falls_silent_is_noticed_by_what_it_does_not_acknowledge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
