/* CUBIC, slow start and recovery, step by step. */
#include "link/congestion.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define T0       (100 * NS_PER_S)
#define DATAGRAM 1000
#define MS       NS_PER_MS

static struct rtt rtt_of(uint64_t ns)
{
    struct rtt r;
    rtt_init(&r);
    rtt_sample(&r, ns, 0, 0, T0);
    return r;
}

static struct congestion fresh(void)
{
    struct congestion c;
    congestion_init(&c, DATAGRAM);
    return c;
}

/* In congestion avoidance at 70 datagrams, reduced at T0 from 100. */
static struct congestion reduced(void)
{
    struct congestion c = fresh();
    c.cubic.window_bytes = 100 * DATAGRAM;
    congestion_lost(&c, 1, T0 - 100 * MS, T0);
    return c;
}

/* A whole window, sent a round trip ago and in full use, is acknowledged in parts. */
static void acknowledge_window(struct congestion *c, const struct rtt *rtt, uint64_t now_ns)
{
    uint64_t window = c->cubic.window_bytes;
    for (uint64_t part = 0; part < 10; part++) {
        const struct congestion_ack ack = {.bytes = window / 10,
                                           .in_flight_before = window,
                                           .newest_sent_ns = now_ns - rtt->smoothed_ns + 2};
        congestion_acked(c, &ack, rtt, now_ns);
    }
}

static void slow_start_doubles_in_a_round_trip(void **state)
{
    (void)state;
    struct congestion c = fresh();
    struct rtt rtt = rtt_of(100 * MS);
    assert_true(congestion_slow_start(&c) && c.cubic.window_bytes == 10 * DATAGRAM);
    acknowledge_window(&c, &rtt, T0);
    assert_int_equal(c.cubic.window_bytes, 20 * DATAGRAM);
    assert_int_equal(congestion_room(&c, 15 * DATAGRAM), 5 * DATAGRAM);
    assert_int_equal(congestion_room(&c, 25 * DATAGRAM), 0);
}

static void a_loss_reduces_to_seven_tenths_once_a_round_trip(void **state)
{
    (void)state;
    struct congestion c = reduced();
    assert_int_equal(c.cubic.window_bytes, 70 * DATAGRAM);
    assert_false(congestion_slow_start(&c));
    congestion_lost(&c, 5, T0, T0 + 50 * MS); /* sent before the reduction */
    congestion_marked(&c, T0, T0 + 50 * MS);
    assert_int_equal(c.cubic.window_bytes, 70 * DATAGRAM);
    congestion_lost(&c, 1, T0 + 1, T0 + 100 * MS);
    assert_int_equal(c.cubic.window_bytes, 49 * DATAGRAM);
}

static void nothing_grows_in_recovery(void **state)
{
    (void)state;
    struct congestion c = reduced();
    struct rtt rtt = rtt_of(100 * MS);
    const struct congestion_ack ack = {.bytes = 5000, .in_flight_before = 90000, .newest_sent_ns = T0};
    congestion_acked(&c, &ack, &rtt, T0 + 100 * MS);
    assert_int_equal(c.cubic.window_bytes, 70 * DATAGRAM);
}

static void the_window_never_falls_below_two_datagrams(void **state)
{
    (void)state;
    struct congestion c = fresh();
    for (uint64_t i = 1; i < 50; i++)
        congestion_lost(&c, 1, T0 + i * NS_PER_S, T0 + i * NS_PER_S + MS);
    assert_int_equal(c.cubic.window_bytes, 2 * DATAGRAM);
    congestion_set_datagram(&c, 5000);
    assert_int_equal(c.cubic.window_bytes, 10000);
}

/* W_cubic(t) = 0.4 (t - K)^3 + 100, K = cbrt(30 / 0.4) = 4.217 s, with a round trip so long that Reno is
 * slower. */
static void the_window_follows_the_cubic_function(void **state)
{
    (void)state;
    static const struct {
        uint64_t s, datagrams;
    } points[] = {{1, 86}, {2, 95}, {3, 99}, {4, 99}, {5, 100}, {6, 102}, {8, 121}, {10, 177}};
    struct congestion c = reduced();
    struct rtt rtt = rtt_of(100 * MS);
    uint64_t begin_ns = T0 + 200 * MS;
    size_t next = 0;
    for (uint64_t ms = 0; ms <= 10000; ms += 100) {
        acknowledge_window(&c, &rtt, begin_ns + ms * MS);
        if (ms != points[next].s * 1000)
            continue;
        /* the window lags behind the function by up to a round trip */
        uint64_t expect = points[next++].datagrams * DATAGRAM;
        assert_in_range(c.cubic.window_bytes, expect * 97 / 100, expect * 103 / 100 + DATAGRAM);
    }
    assert_int_equal(next, ARRAY_SIZE(points));
}

/* A short round trip: Reno's window is larger than the cubic, and is followed: 9/17 of a datagram a round
 * trip. */
static void on_short_paths_it_is_as_fast_as_reno(void **state)
{
    (void)state;
    struct congestion c = reduced();
    struct rtt rtt = rtt_of(MS);
    for (uint64_t i = 0; i < 17; i++)
        acknowledge_window(&c, &rtt, T0 + (10 + i) * MS);
    assert_in_range(c.cubic.window_bytes, 78 * DATAGRAM, 80 * DATAGRAM);
    for (uint64_t i = 17; i < 57 + 20; i++) /* at 100 datagrams after 57 rounds; then a whole one each */
        acknowledge_window(&c, &rtt, T0 + (10 + i) * MS);
    assert_in_range(c.cubic.window_bytes, 117 * DATAGRAM, 121 * DATAGRAM);
}

static void below_the_last_maximum_it_converges_faster(void **state)
{
    (void)state;
    struct congestion c = reduced();
    struct rtt rtt = rtt_of(100 * MS);
    acknowledge_window(&c, &rtt, T0 + 200 * MS);
    uint64_t window = c.cubic.window_bytes;
    assert_true(window < 100 * DATAGRAM);
    congestion_lost(&c, 1, T0 + 200 * MS, T0 + 300 * MS);
    assert_in_range(c.cubic.max_bytes, window * 85 / 100 - 100, window * 85 / 100);
}

static void a_window_that_is_not_used_does_not_grow(void **state)
{
    (void)state;
    struct rtt rtt = rtt_of(100 * MS);
    for (int slow_start = 0; slow_start < 2; slow_start++) {
        struct congestion c = slow_start ? fresh() : reduced();
        uint64_t window = c.cubic.window_bytes;
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t now_ns = T0 + NS_PER_S + i * 100 * MS;
            const struct congestion_ack ack = {
                .bytes = 2000, .in_flight_before = window / 2 - 1, .newest_sent_ns = now_ns - 100 * MS};
            congestion_acked(&c, &ack, &rtt, now_ns);
        }
        assert_int_equal(c.cubic.window_bytes, window);
    }
}

static void after_a_pause_the_window_is_smaller(void **state)
{
    (void)state;
    struct rtt rtt = rtt_of(100 * MS); /* its time-out: 300 ms */
    struct congestion c = fresh();
    congestion_sent(&c, 0, &rtt, T0);
    c.cubic.window_bytes = 100 * DATAGRAM;
    congestion_sent(&c, 5000, &rtt, T0 + 10 * NS_PER_S); /* not idle: something was in flight */
    assert_int_equal(c.cubic.window_bytes, 100 * DATAGRAM);
    congestion_sent(&c, 0, &rtt, T0 + 10 * NS_PER_S + 300 * MS);
    assert_int_equal(c.cubic.window_bytes, 100 * DATAGRAM);
    congestion_sent(&c, 0, &rtt, T0 + 10 * NS_PER_S + 601 * MS);
    assert_int_equal(c.cubic.window_bytes, 50 * DATAGRAM);
    congestion_sent(&c, 0, &rtt, T0 + 3600 * NS_PER_S);
    assert_int_equal(c.cubic.window_bytes, 10 * DATAGRAM);
    assert_true(congestion_slow_start(&c));
}

static void a_spurious_loss_is_undone(void **state)
{
    (void)state;
    struct congestion c = reduced(); /* one packet */
    congestion_lost(&c, 2, T0, T0 + MS);
    congestion_spurious(&c, 2);
    assert_int_equal(c.cubic.window_bytes, 70 * DATAGRAM); /* not all of them yet */
    congestion_spurious(&c, 1);
    assert_int_equal(c.cubic.window_bytes, 100 * DATAGRAM);
    assert_true(congestion_slow_start(&c));
    congestion_spurious(&c, 1); /* nothing to undo twice */
    congestion_lost(&c, 1, T0 + NS_PER_S, T0 + NS_PER_S);
    assert_int_equal(c.cubic.window_bytes, 70 * DATAGRAM);
}

static void a_mark_reduces_and_cannot_be_undone(void **state)
{
    (void)state;
    struct congestion c = fresh();
    congestion_marked(&c, T0, T0 + MS);
    assert_int_equal(c.cubic.window_bytes, 7 * DATAGRAM);
    congestion_spurious(&c, 1);
    assert_int_equal(c.cubic.window_bytes, 7 * DATAGRAM);
}

static void persistent_congestion_begins_at_the_least_window(void **state)
{
    (void)state;
    struct congestion c = reduced();
    congestion_persistent(&c);
    assert_int_equal(c.cubic.window_bytes, 2 * DATAGRAM);
    assert_true(congestion_slow_start(&c));
    congestion_spurious(&c, 1);
    assert_int_equal(c.cubic.window_bytes, 2 * DATAGRAM);
}

/* --- HyStart++ --- */

/* A round of eight samples. */
static void round_of(struct congestion *c, uint64_t rtt_ns, uint64_t *number)
{
    uint64_t next = *number + 100, window = c->cubic.window_bytes;
    for (uint64_t i = 1; i <= 8; i++) {
        struct rtt rtt = rtt_of(rtt_ns);
        const struct congestion_ack ack = {.bytes = window / 8,
                                           .in_flight_before = window,
                                           .newest_sent_ns = T0,
                                           .largest = *number + 100 * i / 8,
                                           .next = next + 1,
                                           .rtt_sampled = true};
        congestion_acked(c, &ack, &rtt, T0);
    }
    *number = next + 1;
}

static void a_growing_delay_ends_slow_start_after_five_careful_rounds(void **state)
{
    (void)state;
    struct congestion c = fresh();
    uint64_t number = 0;
    for (int i = 0; i < 3; i++)
        round_of(&c, 100 * MS, &number);
    uint64_t before = c.cubic.window_bytes;
    assert_true(before >= 70 * DATAGRAM && congestion_slow_start(&c));
    round_of(&c, 113 * MS, &number); /* 100/8 = 12.5 more, at its eighth sample */
    for (int i = 0; i < 4; i++) {
        before = c.cubic.window_bytes;
        round_of(&c, 113 * MS, &number);
        assert_true(congestion_slow_start(&c));
        assert_in_range(c.cubic.window_bytes, before * 124 / 100, before * 126 / 100);
    }
    round_of(&c, 113 * MS, &number);
    assert_false(congestion_slow_start(&c));
}

static void a_delay_that_shrinks_again_resumes_slow_start(void **state)
{
    (void)state;
    struct congestion c = fresh();
    uint64_t number = 0;
    round_of(&c, 100 * MS, &number);
    round_of(&c, 100 * MS, &number);
    round_of(&c, 120 * MS, &number);
    assert_true(c.hystart.css_rounds > 0);
    round_of(&c, 101 * MS, &number);
    assert_int_equal(c.hystart.css_rounds, 0);
    uint64_t before = c.cubic.window_bytes;
    round_of(&c, 101 * MS, &number);
    assert_in_range(c.cubic.window_bytes, 2 * before - 100, 2 * before);
}

static void jitter_of_a_few_milliseconds_does_not_end_slow_start(void **state)
{
    (void)state;
    struct congestion c = fresh();
    uint64_t number = 0;
    for (uint64_t i = 0; i < 10; i++)
        round_of(&c, NS_PER_MS / 10 + i % 3 * MS, &number);
    assert_true(congestion_slow_start(&c) && c.hystart.css_rounds == 0);
}

static void huge_windows_and_times_do_not_overflow(void **state)
{
    (void)state;
    struct congestion c;
    struct rtt rtt = rtt_of(100 * MS);
    congestion_init(&c, 65507);
    c.cubic.window_bytes = UINT64_C(1) << 36;
    congestion_lost(&c, 1, T0 - 100 * MS, T0);
    uint64_t before = c.cubic.window_bytes;
    for (uint64_t i = 1; i < 20; i++) {
        acknowledge_window(&c, &rtt, T0 + i * 1000 * NS_PER_S);
        assert_true(c.cubic.window_bytes >= before && c.cubic.window_bytes <= 3 * before);
        before = c.cubic.window_bytes;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_start_doubles_in_a_round_trip),
        cmocka_unit_test(a_loss_reduces_to_seven_tenths_once_a_round_trip),
        cmocka_unit_test(nothing_grows_in_recovery),
        cmocka_unit_test(the_window_never_falls_below_two_datagrams),
        cmocka_unit_test(the_window_follows_the_cubic_function),
        cmocka_unit_test(on_short_paths_it_is_as_fast_as_reno),
        cmocka_unit_test(below_the_last_maximum_it_converges_faster),
        cmocka_unit_test(a_window_that_is_not_used_does_not_grow),
        cmocka_unit_test(after_a_pause_the_window_is_smaller),
        cmocka_unit_test(a_spurious_loss_is_undone),
        cmocka_unit_test(a_mark_reduces_and_cannot_be_undone),
        cmocka_unit_test(persistent_congestion_begins_at_the_least_window),
        cmocka_unit_test(a_growing_delay_ends_slow_start_after_five_careful_rounds),
        cmocka_unit_test(a_delay_that_shrinks_again_resumes_slow_start),
        cmocka_unit_test(jitter_of_a_few_milliseconds_does_not_end_slow_start),
        cmocka_unit_test(huge_windows_and_times_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
