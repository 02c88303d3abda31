/* The pacer's inequality, and that it lets out what its rate says. */
#include "link/pacer.h"

#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define T0       (100 * NS_PER_S)
#define DATAGRAM 1200

/* 100 datagrams in 100 ms, at 5/4: 1.5 MB/s */
static struct pacer fresh(void)
{
    struct pacer p;
    pacer_init(&p, 100 * DATAGRAM, 100 * NS_PER_MS, DATAGRAM, T0);
    pacer_set(&p, 100 * DATAGRAM, false, 100 * NS_PER_MS, DATAGRAM, T0);
    return p;
}

static void it_begins_with_a_burst(void **state)
{
    (void)state;
    struct pacer p = fresh();
    assert_int_equal(p.rate, 1500000);
    assert_int_equal(p.burst_bytes, 10 * DATAGRAM);
    assert_int_equal(pacer_room(&p, T0), 10 * DATAGRAM);
    pacer_sent(&p, 10 * DATAGRAM, T0);
    assert_int_equal(pacer_room(&p, T0), 0);
    assert_int_equal(pacer_when_ns(&p, DATAGRAM, T0), T0 + 800 * NS_PER_US);
    assert_in_range(pacer_room(&p, T0 + 800 * NS_PER_US), DATAGRAM - 1, DATAGRAM);
}

static void a_pause_gathers_no_more_than_a_burst(void **state)
{
    (void)state;
    struct pacer p = fresh();
    pacer_sent(&p, 10 * DATAGRAM, T0);
    assert_int_equal(pacer_room(&p, T0 + 3600 * NS_PER_S), 10 * DATAGRAM);
    assert_int_equal(pacer_when_ns(&p, UINT64_MAX / 2, T0 + 3600 * NS_PER_S), T0 + 3600 * NS_PER_S);
}

static void what_is_overdrawn_is_paid_first(void **state)
{
    (void)state;
    struct pacer p = fresh();
    pacer_sent(&p, 11 * DATAGRAM, T0);
    assert_int_equal(pacer_when_ns(&p, DATAGRAM, T0), T0 + 1600 * NS_PER_US);
    pacer_set(&p, 200 * DATAGRAM, false, 100 * NS_PER_MS, DATAGRAM, T0); /* twice the rate, the same debt */
    assert_in_range(pacer_when_ns(&p, DATAGRAM, T0), T0 + 799 * NS_PER_US, T0 + 801 * NS_PER_US);
}

static void the_burst_is_two_milliseconds_within_its_limits(void **state)
{
    (void)state;
    static const struct {
        uint64_t window, datagram, burst;
    } cases[] = {
        {10000, 1200, 12000},       /* slow: ten datagrams */
        {10000000, 1200, 25000},    /* 12.5 MB/s: 2 ms */
        {1000000000, 1200, 65536},  /* fast: a segmentation batch */
        {1000000000, 65507, 65536}, /* one datagram is nearly that */
        {1000000, 16356, 65536},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct pacer p;
        pacer_init(&p, cases[i].window, NS_PER_S, cases[i].datagram, T0);
        pacer_set(&p, cases[i].window, false, NS_PER_S, cases[i].datagram, T0);
        assert_int_equal(p.burst_bytes, cases[i].burst);
    }
}

static void slow_start_is_paced_at_twice_the_window(void **state)
{
    (void)state;
    struct pacer p = fresh();
    pacer_set(&p, 100 * DATAGRAM, true, 100 * NS_PER_MS, DATAGRAM, T0);
    assert_int_equal(p.rate, 2400000);
}

/* Whatever asks, at whatever times, under rates that change: never more than the inequality. */
static void no_interval_lets_out_more_than_burst_and_rate(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct random random = {seed};
        uint64_t datagram = seed % 3 ? 1200 : 9000, rtt_ns = (1 + random_below(&random, 100)) * NS_PER_MS;
        uint64_t window = 2 * datagram + random_below(&random, 10000000), now_ns = T0, sent = 0;
        struct pacer p;
        pacer_init(&p, window, rtt_ns, datagram, now_ns);
        pacer_set(&p, window, false, rtt_ns, datagram, now_ns);
        for (int i = 0; i < 3000; i++) {
            now_ns += random_below(&random, seed % 2 ? 10000 : 1000000);
            if (pacer_room(&p, now_ns) > 0 && random_below(&random, 8)) {
                pacer_sent(&p, datagram, now_ns);
                sent += datagram;
            }
            if (i % 16 == 0)
                pacer_set(&p, window, false, rtt_ns, datagram, now_ns);
            double most =
                (double)p.burst_bytes + (double)p.rate * (double)(now_ns - T0) / 1e9 + (double)datagram;
            assert_true((double)sent <= most);
        }
    }
}

static void who_always_asks_gets_the_rate(void **state)
{
    (void)state;
    struct pacer p = fresh();
    uint64_t now_ns = T0, sent = 0;
    while (now_ns < T0 + 10 * NS_PER_S) {
        for (; pacer_room(&p, now_ns) > 0; sent += DATAGRAM)
            pacer_sent(&p, DATAGRAM, now_ns);
        now_ns = pacer_when_ns(&p, p.burst_bytes / 2, now_ns);
        pacer_set(&p, 100 * DATAGRAM, false, 100 * NS_PER_MS, DATAGRAM, now_ns);
    }
    assert_in_range(sent, 14950000, 15050000);
}

static void small_packets_at_a_high_rate_are_not_free(void **state)
{
    (void)state;
    struct pacer p;
    pacer_init(&p, 1000000000, NS_PER_S / 8, DATAGRAM, T0); /* 16 GB/s: 7 bytes take less than a nanosecond */
    uint64_t begin_ns = pacer_when_ns(&p, 0, T0);
    for (int i = 0; i < 100000; i++)
        pacer_sent(&p, 7, T0);
    assert_true(pacer_when_ns(&p, 0, T0) - begin_ns >= 700000 * NS_PER_S / p.rate - p.full_ns);
}

static void extreme_rates_do_not_overflow(void **state)
{
    (void)state;
    struct pacer p;
    pacer_init(&p, UINT64_C(1) << 40, 1, 65507, T0);
    assert_true(pacer_room(&p, T0 + 1) > 0);
    pacer_sent(&p, 65507, T0);
    assert_true(pacer_when_ns(&p, 65507, T0) - T0 < NS_PER_MS);
    pacer_init(&p, 2400, 3600 * NS_PER_S, 1200, T0);
    pacer_sent(&p, 12000, T0);
    assert_true(pacer_when_ns(&p, 1200, T0) > T0 && pacer_when_ns(&p, 1200, T0) < T0 + 10 * NS_PER_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_with_a_burst),
        cmocka_unit_test(a_pause_gathers_no_more_than_a_burst),
        cmocka_unit_test(what_is_overdrawn_is_paid_first),
        cmocka_unit_test(the_burst_is_two_milliseconds_within_its_limits),
        cmocka_unit_test(slow_start_is_paced_at_twice_the_window),
        cmocka_unit_test(no_interval_lets_out_more_than_burst_and_rate),
        cmocka_unit_test(who_always_asks_gets_the_rate),
        cmocka_unit_test(small_packets_at_a_high_rate_are_not_free),
        cmocka_unit_test(extreme_rates_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
