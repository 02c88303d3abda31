/* What a wire sends when, beside a model that recounts everything each time: which slot is next, what is
 * blocked by whom, what is given back; under all outcomes in any order, and under changes. */
#include "wire/slots.h"

#include "core/random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* --- the model: all slots that ever were, from number 0 on --- */

#define MODEL_MAX 4000

enum outcome { WAITS, FLIES, RESTS, DIES, IS_ASKED, IS_DONE };

struct model_slot {
    enum outcome is;
    bool keyed;
    uint64_t key, due_ns;
    struct stream_position start, end;
};

struct model {
    struct slots slots;
    struct random random;
    uint64_t now_ns;
    struct model_slot all[MODEL_MAX];
    uint64_t head, count;
    struct stream_position end;
    uint64_t sent; /* how often something was */
};

static uint64_t below(struct model *m, uint64_t n)
{
    return random_below(&m->random, n);
}

/* Whether slot n may be sent: nothing before it forbids it. */
static bool may_go(const struct model *m, uint64_t n)
{
    const struct model_slot *slot = &m->all[n];
    for (uint64_t i = m->head; i < n; i++) {
        const struct model_slot *before = &m->all[i];
        bool same = slot->keyed && before->keyed && slot->key == before->key;
        if (before->is != IS_DONE && (same || m->slots.limit == 1))
            return false;
    }
    return slot->is == WAITS;
}

static uint64_t model_next(const struct model *m)
{
    for (uint64_t n = m->head; n < m->count; n++) {
        if (may_go(m, n))
            return n;
    }
    return SLOTS_NONE;
}

static uint64_t pick(struct model *m, enum outcome is)
{
    uint64_t found = SLOTS_NONE, seen = 0;
    for (uint64_t n = m->head; n < m->count; n++) {
        if (m->all[n].is == is && below(m, ++seen) == 0)
            found = n;
    }
    return found;
}

static unsigned model_count(const struct model *m, enum outcome is)
{
    unsigned count = 0;
    for (uint64_t n = m->head; n < m->count; n++)
        count += m->all[n].is == is;
    return count;
}

static void compare(struct model *m)
{
    struct slots *s = &m->slots;
    unsigned ready = 0;
    uint64_t due_ns = NEVER;
    for (uint64_t n = m->head; n < m->count; n++) {
        const struct slot *slot = slots_at(s, n);
        assert_int_equal(slot->start.bytes, m->all[n].start.bytes);
        assert_int_equal(slot->end.records, m->all[n].end.records);
        ready += may_go(m, n);
        if (m->all[n].is == RESTS)
            due_ns = min_u64(due_ns, m->all[n].due_ns);
    }
    assert_int_equal(slots_next(s), model_next(m));
    if (s->limit > 1)
        assert_int_equal(s->ready, ready);
    assert_int_equal(s->resting, model_count(m, RESTS));
    assert_int_equal(s->dead, model_count(m, DIES) + model_count(m, IS_ASKED));
    assert_true(s->due_ns <= due_ns && (due_ns != NEVER || s->due_ns == NEVER));
    assert_int_equal(s->head, m->head);
    assert_int_equal(s->tail, m->count);
    assert_int_equal(slots_full(s), m->count - m->head >= s->limit);
    assert_true(m->count - m->head <= s->capacity);
    assert_int_equal(s->end.bytes, m->end.bytes);
}

/* --- what happens --- */

static void admit(struct model *m, unsigned keys)
{
    if (slots_full(&m->slots) || m->count == MODEL_MAX)
        return;
    struct model_slot *slot = &m->all[m->count];
    *slot = (struct model_slot){.start = m->end, .keyed = keys > 0 && below(m, 5) > 0};
    slot->key = below(m, keys + 1) * 1000003; /* many fall into one place */
    uint64_t records = 1 + below(m, 3);
    m->end = slot->end = (struct stream_position){m->end.bytes + 10 * records, m->end.records + records};
    assert_int_equal(slots_admit(&m->slots, m->end, slot->keyed, slot->key), m->count);
    m->count++;
}

static void send(struct model *m)
{
    uint64_t n = slots_next(&m->slots);
    if (n == SLOTS_NONE)
        return;
    slots_fly(&m->slots, n);
    m->all[n].is = FLIES;
    m->sent++;
}

static void free_done(struct model *m)
{
    struct stream_position to = {0, 0};
    uint64_t head = m->head;
    while (m->head < m->count && m->all[m->head].is == IS_DONE)
        m->head++;
    assert_int_equal(slots_free(&m->slots, &to), m->head > head);
    if (m->head > head)
        assert_int_equal(to.bytes, m->all[m->head - 1].end.bytes);
}

static void answer(struct model *m)
{
    uint64_t n = pick(m, FLIES);
    if (n == SLOTS_NONE)
        return;
    struct model_slot *slot = &m->all[n];
    switch (below(m, 6)) {
    case 0:
        slots_again(&m->slots, n);
        slot->is = WAITS;
        break;
    case 1:
        slot->due_ns = m->now_ns + below(m, 100);
        slots_rest(&m->slots, n, slot->due_ns);
        slot->is = RESTS;
        break;
    case 2:
        slots_bury(&m->slots, n);
        slot->is = DIES;
        break;
    default:
        slots_done(&m->slots, n);
        slot->is = IS_DONE;
    }
    free_done(m);
}

/* The first one that is dead is asked for, then taken. */
static void take_dead(struct model *m)
{
    uint64_t n = pick(m, IS_ASKED);
    if (n != SLOTS_NONE) {
        assert_int_equal(slots_find(&m->slots, SLOT_ASKED), n);
        slots_done(&m->slots, n);
        m->all[n].is = IS_DONE;
        free_done(m);
        return;
    }
    n = slots_find(&m->slots, SLOT_DEAD);
    for (uint64_t i = m->head; i < m->count && m->all[i].is != DIES; i++)
        assert_int_not_equal(i, n);
    if (n == SLOTS_NONE)
        return;
    slots_ask(&m->slots, n);
    m->all[n].is = IS_ASKED;
}

static void wake(struct model *m)
{
    m->now_ns += below(m, 50);
    slots_wake(&m->slots, m->now_ns);
    for (uint64_t n = m->head; n < m->count; n++) {
        if (m->all[n].is == RESTS && m->all[n].due_ns <= m->now_ns)
            m->all[n].is = WAITS;
    }
}

static void hurry(struct model *m)
{
    slots_hurry(&m->slots, m->now_ns + 5);
    for (uint64_t n = m->head; n < m->count; n++)
        m->all[n].due_ns = min_u64(m->all[n].due_ns, m->now_ns + 5);
}

static void shrink(struct model *m)
{
    uint64_t n = m->count - 1;
    if (m->count == m->head || m->all[n].end.records - m->all[n].start.records < 2 || m->all[n].is == IS_DONE)
        return;
    m->end = m->all[n].end =
        (struct stream_position){m->all[n].start.bytes + 10, m->all[n].start.records + 1};
    slots_shrink(&m->slots, n, m->end);
}

static bool other_keys(void *context, const struct slot *slot, uint64_t *key)
{
    uint64_t modulus = *(uint64_t *)context;
    *key = slot->start.bytes / 10 % modulus;
    return *key != 0;
}

/* With nothing in flight: other limits, perhaps other keys. */
static void change(struct model *m, uint32_t limit, bool rekeyed)
{
    struct slots made;
    for (uint64_t n; (n = pick(m, FLIES)) != SLOTS_NONE; m->all[n].is = WAITS)
        slots_again(&m->slots, n);
    assert_int_equal(slots_init(&made, limit), 0);
    uint64_t modulus = 3;
    slots_change(&m->slots, &made, rekeyed ? other_keys : NULL, &modulus);
    slots_dispose(&made);
    assert_int_equal(m->slots.limit, limit);
    for (uint64_t n = m->head; n < m->count; n++) {
        struct model_slot *slot = &m->all[n];
        if (rekeyed && slot->is != IS_DONE)
            slot->keyed = other_keys(&modulus, slots_at(&m->slots, n), &slot->key);
        if (slot->is == RESTS || slot->is == DIES)
            slot->is = WAITS;
    }
}

static struct model *begin(uint64_t seed, uint32_t limit)
{
    struct model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->random = (struct random){seed};
    assert_int_equal(slots_init(&m->slots, limit), 0);
    m->end = (struct stream_position){1000, 77};
    slots_start(&m->slots, m->end);
    return m;
}

static void end(struct model *m)
{
    slots_dispose(&m->slots);
    free(m);
}

static void step(struct model *m, unsigned keys)
{
    switch (below(m, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        admit(m, keys);
        break;
    case 4:
    case 5:
    case 6:
        send(m);
        break;
    case 7:
    case 8:
        answer(m);
        break;
    case 9:
        take_dead(m);
        break;
    case 10:
        wake(m);
        break;
    default:
        if (below(m, 4) == 0)
            hurry(m);
        else
            shrink(m);
    }
    compare(m);
}

static void what_is_sent_when_is_what_the_model_says(void **state)
{
    (void)state;
    static const uint32_t limits[] = {1, 2, 7, 32, 100};
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct model *m = begin(seed, limits[seed % ARRAY_SIZE(limits)]);
        unsigned keys = seed / 5 % 3 == 0 ? 0 : seed / 5 % 3 == 1 ? 2 : 50;
        for (int i = 0; i < 1500; i++)
            step(m, keys);
        assert_true(m->sent > 50);
        end(m);
    }
}

static void changes_keep_what_is_done_and_begin_the_rest_anew(void **state)
{
    (void)state;
    static const uint32_t limits[] = {64, 1, 16, 32, 128, 2};
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct model *m = begin(seed, 32);
        for (int i = 0; i < 1200; i++) {
            step(m, 4);
            bool asked = pick(m, IS_ASKED) != SLOTS_NONE; /* what is asked keeps its place by its old key */
            if (i % 40 == 39)
                change(m, limits[below(m, ARRAY_SIZE(limits))], !asked && below(m, 2));
            compare(m);
        }
        end(m);
    }
}

static void all_come_to_an_end_however_often_they_fail(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct model *m = begin(seed, 48);
        for (int i = 0; i < 40; i++)
            admit(m, 3);
        unsigned steps = 0;
        for (; m->head < m->count; steps++) {
            send(m);
            answer(m);
            take_dead(m);
            wake(m);
            assert_true(steps < 10000);
        }
        compare(m);
        assert_true(slots_empty(&m->slots));
        end(m);
    }
}

/* Lost numbers have no bytes; the next slot begins behind them. */
static void an_empty_window_begins_where_it_is_told(void **state)
{
    (void)state;
    struct model *m = begin(1, 4);
    slots_start(&m->slots, (struct stream_position){1000, 5000000000});
    uint64_t n = slots_admit(&m->slots, (struct stream_position){1010, 5000000001}, false, 0);
    assert_int_equal(slots_at(&m->slots, n)->start.records, 5000000000);
    end(m);
}

static void its_size_follows_from_the_number_of_lanes(void **state)
{
    (void)state;
    assert_int_equal(slots_limit(0), 1);
    assert_int_equal(slots_limit(1), 1);
    assert_int_equal(slots_limit(2), 32);
    assert_int_equal(slots_limit(64), SLOTS_MAX);
    assert_int_equal(slots_limit(1000), SLOTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_when_is_what_the_model_says),
        cmocka_unit_test(changes_keep_what_is_done_and_begin_the_rest_anew),
        cmocka_unit_test(all_come_to_an_end_however_often_they_fail),
        cmocka_unit_test(an_empty_window_begins_where_it_is_told),
        cmocka_unit_test(its_size_follows_from_the_number_of_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
