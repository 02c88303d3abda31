/* The replay window, beside a model that remembers everything. */
#include "link/window.h"

#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bool take(struct window *w, uint64_t number)
{
    bool allowed = window_allows(w, number);
    if (allowed)
        window_take(w, number);
    return allowed;
}

static void each_number_is_taken_once(void **state)
{
    (void)state;
    struct window w;
    window_init(&w, 0);
    for (uint64_t number = 0; number < 3 * WINDOW_PACKETS; number++)
        assert_true(take(&w, number));
    for (uint64_t number = 0; number < 3 * WINDOW_PACKETS; number++)
        assert_false(take(&w, number));
}

static void the_window_ends_where_it_says(void **state)
{
    (void)state;
    for (uint64_t largest = 2 * WINDOW_PACKETS - 70; largest < 2 * WINDOW_PACKETS + 70; largest++) {
        struct window w;
        window_init(&w, 0);
        assert_true(take(&w, largest));
        assert_false(take(&w, largest - WINDOW_PACKETS));
        assert_true(take(&w, largest - WINDOW_PACKETS + 1));
        assert_false(take(&w, largest - WINDOW_PACKETS + 1));
        assert_false(take(&w, largest));
    }
}

static void numbers_before_the_first_are_refused(void **state)
{
    (void)state;
    struct window w;
    window_init(&w, 1000);
    assert_false(take(&w, 999));
    assert_true(take(&w, 1001));
    assert_false(take(&w, 999));
    assert_true(take(&w, 1000));
    assert_false(take(&w, 1000));
}

static void the_largest_numbers_do_not_overflow(void **state)
{
    (void)state;
    struct window w;
    uint64_t last = (UINT64_C(1) << 62) - 1;
    window_init(&w, last - 10);
    assert_true(take(&w, last));
    assert_true(take(&w, last - 10));
    assert_false(take(&w, last));
    assert_false(take(&w, last - 11));
}

#define MODEL 400000

struct model {
    bool taken[MODEL];
    uint64_t next; /* one more than the largest */
};

static bool model_allows(const struct model *m, uint64_t first, uint64_t number)
{
    return number >= first && !m->taken[number] && (number >= m->next || m->next - number <= WINDOW_PACKETS);
}

/* Steps ahead small and large, late ones near and far. */
static uint64_t draw(struct random *random, uint64_t next)
{
    static const uint64_t spans[] = {2, 64, 65, WINDOW_PACKETS, WINDOW_PACKETS + 200};
    uint64_t by = random_below(random, spans[random_below(random, 5)]);
    if (random_below(random, 3) == 0)
        return next + (by > 300 && random_below(random, 20) ? 1 : by);
    return next > by ? next - by : 0;
}

static void it_agrees_with_one_that_remembers_everything(void **state)
{
    (void)state;
    static struct model m;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct random random = {seed};
        struct window w;
        uint64_t first = random_below(&random, 200);
        memset(&m, 0, sizeof m);
        m.next = first;
        window_init(&w, first);
        for (unsigned i = 0; i < 100000 && m.next < MODEL - 2 * WINDOW_PACKETS; i++) {
            uint64_t number = draw(&random, m.next);
            bool expected = model_allows(&m, first, number);
            assert_int_equal(take(&w, number), expected);
            m.taken[number] |= expected;
            if (expected && number >= m.next)
                m.next = number + 1;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_is_taken_once),
        cmocka_unit_test(the_window_ends_where_it_says),
        cmocka_unit_test(numbers_before_the_first_are_refused),
        cmocka_unit_test(the_largest_numbers_do_not_overflow),
        cmocka_unit_test(it_agrees_with_one_that_remembers_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
