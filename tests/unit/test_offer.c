/* What the measurements of overload stand on: that load is offered by a schedule, whatever becomes of it, and
 * that percentiles are what they say (experiments/offer). */
#include "experiments/offer/offer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

static void what_is_due_goes_by_the_clock_alone(void **state)
{
    (void)state;
    struct schedule s = {.rate = 1000, .start_ns = 5 * MS, .end_ns = 2005 * MS};
    uint64_t late, all = 0;
    assert_int_equal(schedule_due(&s, 5 * MS, &late), 0);
    assert_int_equal(schedule_due(&s, 15 * MS, &late), 10);
    assert_int_equal(late, 0);
    assert_int_equal(schedule_due(&s, 15 * MS, &late), 0);
    for (uint64_t at = 15; at <= 5000; at += 7)
        all += schedule_due(&s, at * MS, &late);
    assert_int_equal(all, 1990); /* none after the end */
    assert_int_equal(s.number, 2000);
}

static void what_is_too_late_is_due_and_late(void **state)
{
    (void)state;
    struct schedule s = {.rate = 100000, .start_ns = 0, .end_ns = 1000 * MS};
    uint64_t late;
    assert_int_equal(schedule_due(&s, 500 * MS, &late), 50000);
    assert_in_range(late, 50000 - 2001, 50000 - 2000); /* all but LATE_NS' worth */
}

static void percentiles_are_right_to_three_percent(void **state)
{
    (void)state;
    static struct latency l;
    for (uint64_t us = 1; us <= 10000; us++)
        latency_add(&l, us * 1000);
    const double percents[] = {1, 50, 90, 99};
    for (unsigned i = 0; i < 4; i++) {
        double is = (double)latency_percentile_ns(&l, percents[i]), right = percents[i] * 100000;
        assert_true(is > right * 0.965 && is < right * 1.035);
    }
    assert_int_equal(l.most_ns, 10000000);
    assert_int_equal(latency_percentile_ns(&l, 100), 10000000);
}

static void times_of_all_sizes_have_a_place(void **state)
{
    (void)state;
    static struct latency none;
    assert_int_equal(latency_percentile_ns(&none, 99), 0);
    for (unsigned shift = 0; shift < 64; shift++) {
        struct latency l = {.count = 0};
        uint64_t ns = UINT64_C(1) << shift;
        latency_add(&l, ns);
        latency_add(&l, ns - 1);
        assert_int_equal(l.count, 2);
        assert_int_equal(latency_percentile_ns(&l, 99), ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_due_goes_by_the_clock_alone),
        cmocka_unit_test(what_is_too_late_is_due_and_late),
        cmocka_unit_test(percentiles_are_right_to_three_percent),
        cmocka_unit_test(times_of_all_sizes_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
