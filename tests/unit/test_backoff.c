/* The back-off: its bounds, its growth, its jitter. */
#include "core/backoff.h"

#include "core/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define MIN (100 * NS_PER_MS)
#define MAX (60 * NS_PER_S)

static void each_delay_is_between_the_minimum_and_a_ceiling_that_doubles(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct backoff b;
        backoff_init(&b, MIN, MAX, seed);
        uint64_t ceiling = MIN;
        for (int n = 0; n < 100; n++) {
            ceiling = ceiling * 2 < MAX ? ceiling * 2 : MAX;
            uint64_t delay = backoff_next(&b);
            assert_true(delay >= MIN && delay <= ceiling);
        }
    }
}

static void the_whole_range_is_used(void **state)
{
    (void)state;
    struct backoff b;
    backoff_init(&b, MIN, MAX, 3);
    unsigned low = 0, high = 0;
    for (int n = 0; n < 1000; n++) {
        uint64_t delay = backoff_next(&b);
        low += delay < MAX / 4;
        high += delay > MAX / 4 * 3;
    }
    assert_true(low > 150 && high > 150);
}

static void wires_that_fail_together_come_back_apart(void **state)
{
    (void)state;
    struct backoff a, b;
    backoff_init(&a, MIN, MAX, 1);
    backoff_init(&b, MIN, MAX, 2);
    assert_int_not_equal(backoff_next(&a), backoff_next(&b));
}

static void a_success_starts_anew(void **state)
{
    (void)state;
    struct backoff b;
    backoff_init(&b, MIN, MAX, 4);
    for (int n = 0; n < 50; n++)
        backoff_next(&b);
    backoff_reset(&b);
    assert_true(backoff_next(&b) <= 2 * MIN);
}

static void odd_limits_are_kept_to(void **state)
{
    (void)state;
    static const struct {
        uint64_t min, max, least, most;
    } cases[] = {
        {5, 5, 5, 5}, {5, 1, 5, 5}, {1, 1, 1, 1}, {1, UINT64_MAX / 2, 1, UINT64_MAX / 2}, {7, 9, 7, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct backoff b;
        backoff_init(&b, cases[i].min, cases[i].max, i);
        for (int n = 0; n < 200; n++) {
            uint64_t delay = backoff_next(&b);
            assert_true(delay >= cases[i].least && delay <= cases[i].most);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_delay_is_between_the_minimum_and_a_ceiling_that_doubles),
        cmocka_unit_test(the_whole_range_is_used),
        cmocka_unit_test(wires_that_fail_together_come_back_apart),
        cmocka_unit_test(a_success_starts_anew),
        cmocka_unit_test(odd_limits_are_kept_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
