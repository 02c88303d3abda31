/* Sets of ranges, against a bitmap. */
#include "link/ranges.h"

#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define SPACE 200

struct model {
    bool in[SPACE + 1];
};

static uint32_t model_ranges(const struct model *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SPACE; i++)
        count += m->in[i] && (i == 0 || !m->in[i - 1]);
    return count;
}

static void model_set(struct model *m, uint64_t start, uint64_t end, bool in)
{
    for (uint64_t i = start; i < end; i++)
        m->in[i] = in;
}

static void assert_same(const struct ranges *r, const struct model *m)
{
    bool seen[SPACE + 1] = {false};
    assert_true(r->count <= r->capacity);
    for (uint32_t i = 0; i < r->count; i++) {
        assert_true(r->item[i].start < r->item[i].end && r->item[i].end <= SPACE);
        assert_true(i == 0 || r->item[i - 1].end < r->item[i].start);
        for (uint64_t n = r->item[i].start; n < r->item[i].end; n++)
            seen[n] = true;
    }
    for (uint32_t n = 0; n < SPACE; n++) {
        assert_int_equal(seen[n], m->in[n]);
        assert_int_equal(ranges_have(r, n), m->in[n]);
    }
}

static void assert_contains_as(const struct ranges *r, const struct model *m, uint64_t start, uint64_t end)
{
    bool all = true;
    for (uint64_t n = start; n < end; n++)
        all = all && m->in[n];
    assert_int_equal(ranges_contain(r, start, end), all);
}

/* One random step; what does not fit leaves the set as it was. */
static void step(struct ranges *r, struct model *m, struct random *random)
{
    uint64_t start = random_below(random, SPACE + 1), end = start + random_below(random, SPACE + 1 - start);
    if (random_below(random, 3))
        end = min_u64(end, start + 3);
    struct model after = *m;
    int result = 0;
    switch (random_below(random, 8)) {
    case 0:
    case 1:
        model_set(&after, start, end, false);
        result = ranges_remove(r, start, end);
        break;
    case 2:
        start /= 4;
        model_set(&after, 0, start, false);
        ranges_drop_below(r, start);
        break;
    default:
        model_set(&after, start, end, true);
        result = ranges_add(r, start, end);
    }
    if (model_ranges(&after) <= r->capacity) {
        assert_int_equal(result, 0);
        *m = after;
    } else {
        assert_int_equal(result, PE_FULL);
    }
    assert_same(r, m);
    assert_contains_as(r, m, start, end);
}

static void a_set_is_what_was_added_and_not_removed(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct range memory[40];
        struct random random = {seed};
        struct ranges r;
        struct model m = {{false}};
        ranges_init(&r, memory, 1 + (uint32_t)random_below(&random, ARRAY_SIZE(memory)));
        for (int i = 0; i < 100; i++)
            step(&r, &m, &random);
    }
}

static void the_first_range_is_dropped(void **state)
{
    (void)state;
    struct range memory[3];
    struct ranges r;
    ranges_init(&r, memory, 3);
    ranges_add(&r, 10, 20);
    ranges_add(&r, 0, 5);
    ranges_drop_first(&r);
    assert_true(r.count == 1 && r.item[0].start == 10 && r.item[0].end == 20);
    ranges_clear(&r);
    assert_true(!ranges_have(&r, 10) && ranges_contain(&r, 7, 7));
}

static void the_largest_numbers_are_numbers_too(void **state)
{
    (void)state;
    struct range memory[2];
    struct ranges r;
    ranges_init(&r, memory, 2);
    assert_int_equal(ranges_add(&r, VARINT_MAX, VARINT_MAX + 1), 0);
    assert_int_equal(ranges_add(&r, 0, 1), 0);
    assert_int_equal(ranges_add(&r, 5, 6), PE_FULL);
    assert_true(ranges_have(&r, VARINT_MAX) && ranges_have(&r, 0) && !ranges_have(&r, 5));
    assert_int_equal(ranges_add(&r, 1, VARINT_MAX), 0);
    assert_true(r.count == 1 && ranges_contain(&r, 0, VARINT_MAX + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_is_what_was_added_and_not_removed),
        cmocka_unit_test(the_first_range_is_dropped),
        cmocka_unit_test(the_largest_numbers_are_numbers_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
