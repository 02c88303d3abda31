/* Waiters: first in, first out, over many chunks. */
#include "host/waiters.h"

#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void waiters_are_taken_in_their_order(void **state)
{
    (void)state;
    struct waiters w = {0};
    struct random r = {1};
    uint32_t added = 0, taken = 0;
    for (unsigned round = 0; round < 2000; round++) {
        for (uint64_t n = random_below(&r, 700); n > 0; n--) {
            assert_int_equal(waiters_prepare(&w), 0);
            waiters_add(&w, (struct waiter){added % 7, added % 11, added});
            added++;
        }
        for (uint64_t n = random_below(&r, 800); n > 0 && taken < added; n--) {
            struct waiter one = waiters_take(&w);
            assert_int_equal(one.exchange, taken);
            assert_int_equal(one.client, taken % 7);
            assert_int_equal(one.generation, taken % 11);
            taken++;
        }
    }
    assert_true(taken > 100000);
    waiters_dispose(&w);
}

static void nothing_is_kept_but_one_chunk_when_nobody_waits(void **state)
{
    (void)state;
    struct waiters w = {0};
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(waiters_prepare(&w), 0);
        waiters_add(&w, (struct waiter){0, 0, i});
    }
    for (uint32_t i = 0; i < 10000; i++)
        waiters_take(&w);
    assert_null(w.first);
    assert_null(w.last);
    assert_non_null(w.spare);
    waiters_dispose(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiters_are_taken_in_their_order),
        cmocka_unit_test(nothing_is_kept_but_one_chunk_when_nobody_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
