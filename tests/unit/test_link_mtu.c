/* Path MTU discovery against paths of every size. */
#include "link/mtu.h"

#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define T0 (100 * NS_PER_S)

/* Probes until the search rests; the path takes `path` bytes. Returns the probes it took. */
static uint32_t search(struct mtu *m, uint32_t path, uint64_t *number, uint64_t now_ns)
{
    uint32_t probes = 0, size;
    for (; (size = mtu_probe_size(m, now_ns)) != 0; probes++) {
        assert_true(probes < 100);
        assert_true(size > m->current && size <= m->limit);
        mtu_probe_sent(m, *number);
        assert_int_equal(mtu_probe_size(m, now_ns), 0); /* one at a time */
        if (size <= path)
            assert_true(mtu_acked(m, *number, size, now_ns) && m->current == size);
        else
            assert_false(mtu_lost(m, *number, size, now_ns));
        ++*number;
    }
    return probes;
}

static void any_path_is_found_to_within_16_bytes(void **state)
{
    (void)state;
    for (uint32_t path = MTU_BASE; path <= MTU_MAX; path += path < 1600 ? 1 : 211) {
        struct mtu m;
        uint64_t number = 0;
        mtu_init(&m, MTU_MAX, T0);
        uint32_t probes = search(&m, path, &number, T0);
        assert_true(m.current <= path && m.current + MTU_CLOSE >= path);
        assert_true(probes <= 70);
        assert_int_equal(mtu_deadline_ns(&m), T0 + MTU_AGAIN_NS);
    }
}

static void what_the_interface_takes_is_tried_first(void **state)
{
    (void)state;
    static const uint32_t limits[] = {1372, 1452, 1472, 8972, 16356, 65487, 65507};
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        struct mtu m;
        uint64_t number = 0;
        mtu_init(&m, limits[i], T0);
        assert_int_equal(search(&m, limits[i], &number, T0), 1);
        assert_int_equal(m.current, limits[i]);
        assert_int_equal(mtu_deadline_ns(&m), NEVER); /* nothing more to find */
    }
}

static void usual_paths_are_found_in_few_probes(void **state)
{
    (void)state;
    struct mtu m;
    uint64_t number = 0;
    mtu_init(&m, 8972, T0);
    assert_true(search(&m, 1472, &number, T0) <= 3 + 4 + 6 * 3 + 6);
    assert_in_range(m.current, 1472, 1472);
}

static void odd_limits_are_kept_to(void **state)
{
    (void)state;
    static const uint32_t limits[][2] = {
        {0, 1200}, {1199, 1200}, {1200, 1200}, {1201, 1201}, {100000, 65507}};
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        struct mtu m;
        uint64_t number = 0;
        mtu_init(&m, limits[i][0], T0);
        search(&m, MTU_MAX, &number, T0);
        assert_int_equal(m.current, limits[i][1]);
    }
}

static void a_probe_lost_by_chance_is_tried_again(void **state)
{
    (void)state;
    struct mtu m;
    mtu_init(&m, 1472, T0);
    for (uint64_t n = 0; n < 2; n++) {
        assert_int_equal(mtu_probe_size(&m, T0), 1472);
        mtu_probe_sent(&m, n);
        mtu_lost(&m, n, 1472, T0);
    }
    assert_int_equal(mtu_probe_size(&m, T0), 1472);
    mtu_probe_sent(&m, 2);
    assert_true(mtu_acked(&m, 2, 1472, T0));
    assert_int_equal(m.current, 1472);
}

static void a_search_begins_again_after_a_minute(void **state)
{
    (void)state;
    struct mtu m;
    uint64_t number = 0;
    mtu_init(&m, 1472, T0);
    search(&m, 1400, &number, T0);
    assert_in_range(m.current, 1400 - MTU_CLOSE, 1400);
    assert_int_equal(mtu_probe_size(&m, T0 + MTU_AGAIN_NS - 1), 0);
    assert_int_equal(mtu_probe_size(&m, T0 + MTU_AGAIN_NS), 1472);
    search(&m, 1472, &number, T0 + MTU_AGAIN_NS);
    assert_int_equal(m.current, 1472);
}

/* --- black holes --- */

static struct mtu found(uint32_t path, uint64_t *number)
{
    struct mtu m;
    mtu_init(&m, path, T0);
    search(&m, path, number, T0);
    assert_int_equal(m.current, path);
    return m;
}

static void a_path_that_shrinks_is_noticed_after_three_losses(void **state)
{
    (void)state;
    uint64_t number = 0;
    struct mtu m = found(1472, &number);
    assert_false(mtu_lost(&m, 10, 1472, T0));
    assert_false(mtu_lost(&m, 11, 1472, T0));
    mtu_acked(&m, 12, 1200, T0); /* small ones arrive */
    assert_true(mtu_lost(&m, 13, 1472, T0));
    assert_int_equal(m.current, MTU_BASE);
    number = 20;
    search(&m, 1400, &number, T0);
    assert_in_range(m.current, 1400 - MTU_CLOSE, 1400);
    assert_true(number - 20 < 20);
}

static void a_false_alarm_costs_one_probe(void **state)
{
    (void)state;
    uint64_t number = 0;
    struct mtu m = found(1472, &number);
    for (uint64_t n = 10; n < 13; n++)
        mtu_lost(&m, n, 1472, T0);
    assert_int_equal(m.current, MTU_BASE);
    number = 20;
    assert_int_equal(search(&m, 1472, &number, T0), 1);
    assert_int_equal(m.current, 1472);
    assert_false(mtu_lost(&m, 14, 1472, T0)); /* of before: that is known */
    assert_false(mtu_lost(&m, 15, 1472, T0));
    assert_false(mtu_lost(&m, 16, 1472, T0));
}

static void congestion_is_no_black_hole(void **state)
{
    (void)state;
    uint64_t number = 0;
    struct mtu m = found(1472, &number);
    for (uint64_t n = 10; n < 1000; n += 4) {
        mtu_acked(&m, n + 3, 1472, T0); /* a later one of the kind arrived */
        for (uint64_t k = 0; k < 3; k++)
            assert_false(mtu_lost(&m, n + k, 1472, T0));
    }
    for (uint64_t n = 1000; n < 1100; n++)
        assert_false(mtu_lost(&m, n, MTU_BASE, T0)); /* small ones say nothing */
    assert_int_equal(m.current, 1472);
}

/* --- hints --- */

static void a_hint_lowers_and_is_verified(void **state)
{
    (void)state;
    uint64_t number = 0;
    struct mtu m = found(1472, &number);
    assert_true(mtu_hint(&m, 1400, T0));
    assert_int_equal(m.current, MTU_BASE);
    assert_int_equal(mtu_probe_size(&m, T0), 1400);
    assert_int_equal(search(&m, 1400, &number, T0), 1);
    assert_int_equal(m.current, 1400);
}

static void a_hint_that_lies_does_not_go_below_the_base_or_up(void **state)
{
    (void)state;
    uint64_t number = 0;
    struct mtu m = found(1472, &number);
    assert_false(mtu_hint(&m, 1472, T0));
    assert_false(mtu_hint(&m, 9000, T0));
    assert_int_equal(m.current, 1472);
    assert_true(mtu_hint(&m, 68, T0));
    assert_int_equal(m.current, MTU_BASE);
    assert_int_equal(mtu_probe_size(&m, T0), 0);
    search(&m, 1472, &number, T0 + MTU_AGAIN_NS);
    assert_int_equal(m.current, 1472);
}

static void a_hint_shortens_a_search(void **state)
{
    (void)state;
    struct mtu m;
    mtu_init(&m, 8972, T0);
    assert_int_equal(mtu_probe_size(&m, T0), 8972);
    mtu_probe_sent(&m, 0);
    assert_false(mtu_hint(&m, 1472, T0)); /* ICMP for the probe */
    mtu_lost(&m, 0, 8972, T0);
    uint64_t number = 1;
    search(&m, 1472, &number, T0);
    assert_int_equal(m.current, 1472);
    assert_true(number <= 5);
}

/* Any sequence of fates keeps the invariant. */
static void the_current_size_is_within_its_bounds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random random = {seed};
        struct mtu m;
        uint64_t now_ns = T0;
        mtu_init(&m, MTU_BASE + (uint32_t)random_below(&random, 10000), now_ns);
        for (uint64_t n = 0; n < 500; n++) {
            uint32_t size = mtu_probe_size(&m, now_ns);
            now_ns += random_below(&random, NS_PER_S);
            if (size && random_below(&random, 2))
                mtu_probe_sent(&m, n);
            uint64_t which = n - min_u64(n, random_below(&random, 5));
            uint32_t bytes = 1000 + (uint32_t)random_below(&random, 1000);
            switch (random_below(&random, 20)) {
            case 0:
                mtu_hint(&m, bytes, now_ns);
                break;
            case 1 ... 9:
                mtu_acked(&m, which, bytes, now_ns);
                break;
            default:
                mtu_lost(&m, which, bytes, now_ns);
            }
            assert_in_range(m.current, MTU_BASE, m.limit);
            assert_true(m.failed > m.current);
            assert_true(m.probe == 0 || (m.probe > m.current && m.probe < m.failed));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_path_is_found_to_within_16_bytes),
        cmocka_unit_test(what_the_interface_takes_is_tried_first),
        cmocka_unit_test(usual_paths_are_found_in_few_probes),
        cmocka_unit_test(odd_limits_are_kept_to),
        cmocka_unit_test(a_probe_lost_by_chance_is_tried_again),
        cmocka_unit_test(a_search_begins_again_after_a_minute),
        cmocka_unit_test(a_path_that_shrinks_is_noticed_after_three_losses),
        cmocka_unit_test(a_false_alarm_costs_one_probe),
        cmocka_unit_test(congestion_is_no_black_hole),
        cmocka_unit_test(a_hint_lowers_and_is_verified),
        cmocka_unit_test(a_hint_that_lies_does_not_go_below_the_base_or_up),
        cmocka_unit_test(a_hint_shortens_a_search),
        cmocka_unit_test(the_current_size_is_within_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
