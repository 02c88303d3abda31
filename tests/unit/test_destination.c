/* Destinations: which address is first, when a name is looked up, and what egress rules deny. */
#include "tests/unit/dial_bench.h"

#include <arpa/inet.h>

/* --- order --- */

static void order_is(const struct bench *b, const char *const *hosts, unsigned count)
{
    struct resolver_address order[RESOLVER_ADDRESSES];
    assert_int_equal(destination_order(&b->destination, order), count);
    for (unsigned i = 0; i < count; i++) {
        const struct sockaddr_storage *at = &order[i].address;
        char text[INET6_ADDRSTRLEN];
        const void *ip = at->ss_family == AF_INET
                             ? (const void *)&((const struct sockaddr_in *)at)->sin_addr
                             : (const void *)&((const struct sockaddr_in6 *)at)->sin6_addr;
        assert_string_equal(inet_ntop(at->ss_family, ip, text, sizeof text), hosts[i]);
    }
}

static void families_take_turns_and_what_worked_last_is_first(void **state)
{
    (void)state;
    static const char *const at_first[] = {"fd00::1", "10.0.1.1", "fd00::2", "10.0.1.2", "fd00::3"};
    static const char *const later[] = {"10.0.1.2", "fd00::1", "10.0.1.1", "fd00::2", "fd00::3"};
    struct sim_answer answer = {.addresses = {"fd00::1", "fd00::2", "fd00::3", "10.0.1.1", "10.0.1.2"}};
    struct bench b;
    bench_new(&b, 1, URL);
    sim_set_name(b.sim, NAME, &answer);
    listens(&b, "10.0.1.2:80");
    bench_open(&b);
    assert_true(destination_lookup_due(&b.destination, b.loop.now_ns));
    b.destination.egress = NULL;
    sim_silence_host(b.sim, "fd00::1", true);
    bench_start(&b, 0);
    sim_run_for(b.sim, 10 * NS_PER_MS);
    order_is(&b, at_first, ARRAY_SIZE(at_first));
    bench_finish(&b);
    assert_int_equal(b.dials[0].error, 0);
    order_is(&b, later, ARRAY_SIZE(later));
    bench_free(&b);
}

static void what_worked_stays_first_wherever_a_later_answer_has_it(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "10.0.1.1", "10.0.1.2", NULL);
    struct sim_server *second = listens(&b, "10.0.1.2:80");
    bench_open(&b);
    assert_int_equal(bench_dial(&b), 0);
    listens(&b, "10.0.1.1:80");
    listens(&b, "10.0.1.3:80");
    name_is(&b, "10.0.1.3", "10.0.1.1", "10.0.1.2");
    sim_run_for(b.sim, 61 * NS_PER_S);
    assert_int_equal(bench_dial(&b), 0);
    assert_int_equal(sim_lookups(b.sim, NAME), 2);
    assert_int_equal(sim_server_accepted(second), 2);
    bench_free(&b);
}

static void what_turned_out_badly_is_not_first_again(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "10.0.1.1", "10.0.1.2", NULL);
    struct sim_server *first = listens(&b, "10.0.1.1:80"), *second = listens(&b, "10.0.1.2:80");
    bench_open(&b);
    assert_int_equal(bench_dial(&b), 0);
    assert_int_equal(sim_server_accepted(first), 1);
    destination_failed(&b.destination);
    assert_int_equal(bench_dial(&b), 0);
    assert_int_equal(sim_server_accepted(second), 1);
    assert_int_equal(sim_lookups(b.sim, NAME), 2);
    bench_free(&b);
}

/* --- names --- */

static void all_dials_share_one_lookup(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "10.0.1.1", NULL, NULL);
    struct sim_server *server = listens(&b, "10.0.1.1:80");
    bench_open(&b);
    for (unsigned i = 0; i < BENCH_DIALS; i++)
        bench_start(&b, i);
    bench_finish(&b);
    assert_int_equal(sim_lookups(b.sim, NAME), 1);
    assert_int_equal(sim_server_accepted(server), BENCH_DIALS);
    for (unsigned i = 0; i < BENCH_DIALS; i++)
        bench_start(&b, i);
    bench_finish(&b);
    assert_int_equal(sim_lookups(b.sim, NAME), 1); /* they followed good ones */
    bench_free(&b);
}

static void a_name_without_an_address_fails_all_that_wait_once_each(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    bench_open(&b);
    for (unsigned i = 0; i < BENCH_DIALS; i++) {
        b.dials[i].again = 1; /* from inside `done` */
        bench_start(&b, i);
    }
    bench_finish(&b);
    for (unsigned i = 0; i < BENCH_DIALS; i++) {
        assert_int_equal(b.dials[i].dones, 2);
        assert_int_equal(b.dials[i].error, PE_NAME_NOT_FOUND);
    }
    assert_int_equal(sim_lookups(b.sim, NAME), 2);
    bench_free(&b);
}

static void a_name_that_hangs_ends_in_time(void **state)
{
    (void)state;
    struct sim_answer hangs = {.delay_ns = SIM_HANGS};
    struct bench b;
    bench_new(&b, 1, URL);
    sim_set_name(b.sim, NAME, &hangs);
    bench_open(&b);
    assert_int_equal(bench_dial(&b), PE_NAME_FAILED);
    assert_int_equal(b.dials[0].done_ns - SIM_START_NS, b.options.progress_ns);
    name_is(&b, "10.0.1.1", NULL, NULL);
    listens(&b, "10.0.1.1:80");
    assert_int_equal(bench_dial(&b), 0);
    bench_free(&b);
}

static void known_addresses_stay_in_use_when_a_lookup_fails_or_hangs(void **state)
{
    (void)state;
    static const struct sim_answer answers[] = {{.error = PE_NAME_NOT_FOUND},
                                                {.error = PE_NAME_FAILED},
                                                {.error = PE_NAME_BUSY},
                                                {.error = 0}, /* none */
                                                {.delay_ns = SIM_HANGS}};
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct bench b;
        bench_new(&b, 1, URL);
        name_is(&b, "10.0.1.1", NULL, NULL);
        listens(&b, "10.0.1.1:80");
        bench_open(&b);
        assert_int_equal(bench_dial(&b), 0);
        sim_set_name(b.sim, NAME, &answers[i]);
        destination_failed(&b.destination);
        assert_int_equal(bench_dial(&b), 0);
        assert_int_equal(sim_lookups(b.sim, NAME), 2);
        assert_int_equal(bench_dial(&b), 0);
        assert_int_equal(sim_lookups(b.sim, NAME), 2);
        bench_free(&b);
    }
}

static void each_failed_dial_has_the_name_looked_up_once_before_the_next(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "10.0.1.1", "10.0.1.2", NULL);
    bench_open(&b);
    for (unsigned i = 1; i <= 5; i++) {
        assert_int_equal(bench_dial(&b), -ECONNREFUSED);
        assert_int_equal(sim_lookups(b.sim, NAME), i);
    }
    name_is(&b, "10.0.1.7", NULL, NULL);
    listens(&b, "10.0.1.7:80");
    assert_int_equal(bench_dial(&b), 0);
    bench_free(&b);
}

/* Another connection failed in between, and this one then worked. */
static void a_good_connection_makes_the_next_lookup_needless(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "10.0.1.1", NULL, NULL);
    listens(&b, "10.0.1.1:80");
    bench_open(&b);
    assert_int_equal(bench_dial(&b), 0);
    destination_failed(&b.destination);
    destination_worked(&b.destination);
    assert_int_equal(bench_dial(&b), 0);
    assert_int_equal(sim_lookups(b.sim, NAME), 1);
    bench_free(&b);
}

static void a_name_is_looked_up_again_when_its_answer_is_no_longer_valid(void **state)
{
    (void)state;
    struct sim_answer answer = {.addresses = {"10.0.1.1"}, .valid_ns = 7 * NS_PER_S};
    struct bench b;
    bench_new(&b, 1, URL);
    sim_set_name(b.sim, NAME, &answer);
    listens(&b, "10.0.1.1:80");
    bench_open(&b);
    assert_int_equal(bench_dial(&b), 0);
    sim_run_for(b.sim, 6 * NS_PER_S);
    assert_int_equal(bench_dial(&b), 0);
    assert_int_equal(sim_lookups(b.sim, NAME), 1);
    sim_run_for(b.sim, 2 * NS_PER_S);
    assert_int_equal(bench_dial(&b), 0);
    assert_int_equal(sim_lookups(b.sim, NAME), 2);
    assert_false(b.destination.name.doubted);
    destination_failed(&b.destination);
    assert_int_equal(bench_dial(&b), 0);
    assert_true(b.destination.name.doubted); /* no cache may answer with what just failed */
    bench_free(&b);
}

/* --- egress --- */

static void denied_addresses_are_never_connected_to(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "10.0.1.1", "fd00::1", "10.0.1.2");
    struct sim_server *denied = listens(&b, "10.0.1.1:80"), *open = listens(&b, "10.0.1.2:80");
    listens(&b, "[fd00::1]:80");
    bench_deny(&b, "10.0.1.1");
    bench_deny(&b, "fd00::/8");
    bench_open(&b);
    assert_int_equal(bench_dial(&b), 0);
    assert_int_equal(sim_server_accepted(open), 1);
    sim_server_listen(open, false);
    destination_failed(&b.destination);
    assert_int_equal(bench_dial(&b), -ECONNREFUSED);
    assert_int_equal(sim_server_accepted(denied), 0);
    bench_free(&b);
}

static void a_name_that_turns_to_a_denied_address_is_denied(void **state)
{
    (void)state;
    struct bench b;
    bench_new(&b, 1, URL);
    name_is(&b, "10.0.1.1", NULL, NULL);
    listens(&b, "10.0.1.1:80");
    struct sim_server *metadata = listens(&b, "169.254.169.254:80");
    bench_deny(&b, "169.254.0.0/16");
    bench_open(&b);
    assert_int_equal(bench_dial(&b), 0);
    name_is(&b, "169.254.169.254", "::ffff:169.254.169.254", NULL);
    destination_failed(&b.destination);
    assert_int_equal(bench_dial(&b), PE_NAME_DENIED);
    assert_string_equal(dial_text(&b.dials[0].dial), "169.254.169.254 is in deny = 169.254.0.0/16");
    assert_int_equal(bench_dial(&b), PE_NAME_DENIED);
    assert_int_equal(sim_server_accepted(metadata), 0);
    assert_int_equal(sim_lookups(b.sim, NAME), 3);
    name_is(&b, "10.0.1.1", NULL, NULL);
    assert_int_equal(bench_dial(&b), 0);
    bench_free(&b);
}

static void an_address_in_the_url_is_denied_like_any_other(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://169.254.169.254/latest", "http://[::ffff:169.254.169.254]/",
                                       "http://[64:ff9b::a9fe:a9fe]/"};
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        struct bench b;
        bench_new(&b, 1, urls[i]);
        bench_deny(&b, "private");
        bench_open(&b);
        assert_int_equal(bench_dial(&b), PE_NAME_DENIED);
        bench_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_take_turns_and_what_worked_last_is_first),
        cmocka_unit_test(what_worked_stays_first_wherever_a_later_answer_has_it),
        cmocka_unit_test(what_turned_out_badly_is_not_first_again),
        cmocka_unit_test(all_dials_share_one_lookup),
        cmocka_unit_test(a_name_without_an_address_fails_all_that_wait_once_each),
        cmocka_unit_test(a_name_that_hangs_ends_in_time),
        cmocka_unit_test(known_addresses_stay_in_use_when_a_lookup_fails_or_hangs),
        cmocka_unit_test(each_failed_dial_has_the_name_looked_up_once_before_the_next),
        cmocka_unit_test(a_good_connection_makes_the_next_lookup_needless),
        cmocka_unit_test(a_name_is_looked_up_again_when_its_answer_is_no_longer_valid),
        cmocka_unit_test(denied_addresses_are_never_connected_to),
        cmocka_unit_test(a_name_that_turns_to_a_denied_address_is_denied),
        cmocka_unit_test(an_address_in_the_url_is_denied_like_any_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
