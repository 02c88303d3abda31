/* Timers: order, changes, and the bound of timers_fire. */
#include "core/timers.h"

#include "core/bytes.h"
#include "core/clock.h"
#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define TIMERS 200

struct entry {
    struct timer timer;
    struct timers *timers;
    uint64_t again_ns; /* set again to this when fired; NEVER: not */
    unsigned fired;
};

static uint64_t last_due_ns;

static void fired(struct timer *timer, uint64_t now_ns)
{
    struct entry *e = container_of(timer, struct entry, timer);
    assert_int_equal(timer->place, 0);
    assert_int_equal(timer->due_ns, NEVER);
    (void)now_ns;
    e->fired++;
    timer_set(e->timers, timer, e->again_ns);
}

static void init(struct entry *e, struct timers *t)
{
    *e = (struct entry){.timers = t, .again_ns = NEVER};
    timer_init(&e->timer, fired);
}

/* Against a plain array: after any mix of sets and unsets the earliest is the earliest. */
static void the_next_deadline_is_the_earliest_of_those_set(void **state)
{
    (void)state;
    struct timers t;
    struct entry entries[TIMERS];
    struct random random = {7};
    assert_int_equal(timers_init(&t, TIMERS), 0);
    for (unsigned i = 0; i < TIMERS; i++)
        init(&entries[i], &t);
    for (unsigned change = 0; change < 20000; change++) {
        struct entry *e = &entries[random_below(&random, TIMERS)];
        if (random_below(&random, 3) == 0)
            timer_unset(&t, &e->timer);
        else
            timer_set(&t, &e->timer, random_below(&random, 1000));
        uint64_t earliest = NEVER;
        for (unsigned i = 0; i < TIMERS; i++)
            earliest = min_u64(earliest, entries[i].timer.due_ns);
        assert_int_equal(timers_next_ns(&t), earliest);
    }
    timers_dispose(&t);
}

static void note_order(struct timer *timer, uint64_t now_ns)
{
    struct entry *e = container_of(timer, struct entry, timer);
    assert_true(e->again_ns >= last_due_ns && e->again_ns <= now_ns);
    last_due_ns = e->again_ns; /* here: when it was due */
    e->fired++;
}

static void due_timers_fire_once_in_order_and_others_do_not(void **state)
{
    (void)state;
    struct timers t;
    struct entry entries[TIMERS];
    struct random random = {8};
    assert_int_equal(timers_init(&t, TIMERS), 0);
    for (unsigned i = 0; i < TIMERS; i++) {
        init(&entries[i], &t);
        entries[i].timer.fired = note_order;
        entries[i].again_ns = random_below(&random, 100);
        timer_set(&t, &entries[i].timer, entries[i].again_ns);
    }
    last_due_ns = 0;
    timers_fire(&t, 50);
    for (unsigned i = 0; i < TIMERS; i++)
        assert_int_equal(entries[i].fired, entries[i].again_ns <= 50);
    assert_true(timers_next_ns(&t) > 50);
    timers_fire(&t, 50);
    timers_fire(&t, 99);
    for (unsigned i = 0; i < TIMERS; i++)
        assert_int_equal(entries[i].fired, 1);
    assert_int_equal(timers_next_ns(&t), NEVER);
    timers_dispose(&t);
}

static void a_timer_that_sets_itself_into_the_past_does_not_hold_the_loop(void **state)
{
    (void)state;
    struct timers t;
    struct entry a, b;
    assert_int_equal(timers_init(&t, 2), 0);
    init(&a, &t);
    init(&b, &t);
    a.again_ns = 0;
    timer_set(&t, &a.timer, 0);
    timer_set(&t, &b.timer, 100);
    timers_fire(&t, 10);
    assert_int_equal(a.fired, 2); /* as many as were set at the start */
    assert_int_equal(b.fired, 0);
    assert_int_equal(timers_next_ns(&t), 0);
    timers_dispose(&t);
}

struct pair {
    struct entry first;
    struct entry second;
};

static void unset_second(struct timer *timer, uint64_t now_ns)
{
    struct pair *p = container_of(timer, struct pair, first.timer);
    (void)now_ns;
    p->first.fired++;
    timer_unset(p->first.timers, &p->second.timer);
}

static void a_callback_may_unset_one_that_is_due_too(void **state)
{
    (void)state;
    struct timers t;
    struct pair p;
    assert_int_equal(timers_init(&t, 2), 0);
    init(&p.first, &t);
    init(&p.second, &t);
    p.first.timer.fired = unset_second;
    timer_set(&t, &p.first.timer, 1);
    timer_set(&t, &p.second.timer, 2);
    timers_fire(&t, 10);
    assert_int_equal(p.first.fired, 1);
    assert_int_equal(p.second.fired, 0);
    timers_dispose(&t);
}

static void setting_to_never_unsets(void **state)
{
    (void)state;
    struct timers t;
    struct entry e;
    assert_int_equal(timers_init(&t, 1), 0);
    init(&e, &t);
    timer_unset(&t, &e.timer); /* not set: nothing */
    timer_set(&t, &e.timer, NEVER);
    assert_int_equal(t.count, 0);
    timer_set(&t, &e.timer, 5);
    timer_set(&t, &e.timer, 6); /* the limit is of timers, not of sets */
    assert_int_equal(timers_next_ns(&t), 6);
    timer_set(&t, &e.timer, NEVER);
    assert_int_equal(timers_next_ns(&t), NEVER);
    timers_fire(&t, 1000);
    assert_int_equal(e.fired, 0);
    timers_dispose(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_deadline_is_the_earliest_of_those_set),
        cmocka_unit_test(due_timers_fire_once_in_order_and_others_do_not),
        cmocka_unit_test(a_timer_that_sets_itself_into_the_past_does_not_hold_the_loop),
        cmocka_unit_test(a_callback_may_unset_one_that_is_due_too),
        cmocka_unit_test(setting_to_never_unsets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
