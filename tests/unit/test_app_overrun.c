/* Calls of an app that are left, as they do not end (host/turn_guard.h): what becomes of the turn. */
#include "tests/unit/app_bench.h"

struct guarded_bench {
    struct bench b;
    struct guard_app guard;
    struct guard_thread thread;
};

/* The bench's app, made anew with a guard. */
static void guarded_open(struct guarded_bench *g)
{
    *g = (struct guarded_bench){.guard = {.name = "a", .limit_ns = 2 * NS_PER_S, .memory.limit = 32u << 20}};
    bench_open(&g->b);
    owned_app_dispose(&g->b.app);
    outlet_dispose(&g->b.outlet);
    assert_int_equal(
        owned_app_init(&g->b.app, &g->b.config, &tester, "", &g->b.loop, &g->b.log, &no_journal, &g->guard),
        0);
    g->b.app.entry.inbox.front = &g->b.other.board;
    open_outlet(&g->b, &g->b.app, &g->b.outlet);
    left_instance = NULL;
    guard_here = &g->thread;
}

static void guarded_close(struct guarded_bench *g)
{
    guard_here = NULL;
    bench_close(&g->b);
    free(left_instance); /* nobody has closed it, else this is a double free */
}

static void expect_suspended(struct guarded_bench *g, const char *reason)
{
    struct registry_app *entry = &g->b.app.entry;
    assert_int_equal(condition(&g->b.app), APP_SUSPENDED);
    assert_int_equal(atomic_load(&entry->report.error), PE_APP_OVERRAN);
    assert_string_equal(registry_app_suspended(entry), reason);
    assert_true(logged(&g->b, reason));
    assert_null(atomic_load(&g->thread.app));
    assert_false(g->thread.leavable);
    assert_null(heap_here);
}

static void an_event_that_does_not_end_is_refused_and_what_came_before_it_is_stored(void **state)
{
    (void)state;
    struct guarded_bench g;
    guarded_open(&g);
    put(&g.b.app, RUN_EVENTS, RECORDS("echo"), 0, 0, "");
    put(&g.b.app, RUN_STREAM, RECORDS("echo", "+2", "endless", "+4"), 1, 0, "");
    put(&g.b.app, RUN_EVENTS, RECORDS("echo"), 0, 0, "");
    settle(&g.b);
    expect(&g.b.app, 0, 1);
    expect(&g.b.app, PE_APP_OVERRAN, 2);
    expect(&g.b.app, PE_APP_SUSPENDED, 0);
    assert_int_equal(drain(&g.b.outlet), 2);
    assert_int_equal(counter_read(&g.b.app.entry.report.stored), 3);
    assert_int_equal(counter_read(&g.b.app.entry.report.refused), 1);
    expect_suspended(&g, "its event 'e' number 3 of other/x/out took more than 2 s");
    guarded_close(&g);
}

static void an_event_that_goes_on_sending_is_left_at_a_send(void **state)
{
    (void)state;
    struct guarded_bench g;
    guarded_open(&g);
    put(&g.b.app, RUN_STREAM, RECORDS("echo", "pour", "+4"), 1, 0, "");
    settle(&g.b);
    expect(&g.b.app, PE_APP_OVERRAN, 1);
    assert_int_equal(drain(&g.b.outlet), 1);
    assert_false(guard_over);
    expect_suspended(&g, "its event 'e' number 2 of other/x/out took more than 2 s");
    guarded_close(&g);
}

static void a_request_is_refused_whole(void **state)
{
    (void)state;
    struct guarded_bench g;
    guarded_open(&g);
    put(&g.b.app, RUN_EVENTS, RECORDS("+1"), 0, 0, "");
    put(&g.b.app, RUN_EVENTS, RECORDS("echo", "endless"), 0, 0, "");
    settle(&g.b);
    expect(&g.b.app, 0, 1);
    expect(&g.b.app, PE_APP_OVERRAN, 1);
    assert_int_equal(drain(&g.b.outlet), 0);
    expect_suspended(&g, "its event 'e' number 3 of http took more than 2 s");
    guarded_close(&g);
}

static void what_another_app_has_sent_stays_where_it_is(void **state)
{
    (void)state;
    struct guarded_bench g;
    struct owned_app from;
    struct config_app config;
    struct outlet inner;
    guarded_open(&g);
    open_app(&g.b, &from, &config, "b");
    open_outlet(&g.b, &from, &inner);
    assert_int_equal(owned_app_add_inner(&g.b.app, &inner, "e", false, any_epoch), 0);
    put(&from, RUN_EVENTS, RECORDS("echo 1", "echo 2"), 0, 0, "");
    settle(&g.b);
    assert_int_equal(outlet_queue(&inner, "echo 3", 6), 0);
    assert_int_equal(outlet_queue(&inner, "endless", 7), 0);
    assert_int_equal(outlet_queue(&inner, "echo 5", 6), 0);
    outlet_push(&inner);
    settle(&g.b);
    expect_suspended(&g, "its event 'e' number 4 of b.out took more than 2 s");
    assert_int_equal(drain(&g.b.outlet), 3);
    assert_int_equal(record_queue_glance(&inner.queue).held_records, 2);
    owned_app_dispose(&from);
    outlet_dispose(&inner);
    guarded_close(&g);
}

static void an_app_that_is_suspended_gives_its_memory_back(void **state)
{
    (void)state;
    struct guarded_bench g;
    guarded_open(&g);
    for (int i = 0; i < FAILURES_IN_A_ROW; i++)
        put(&g.b.app, RUN_EVENTS, RECORDS("fail"), 0, 0, "");
    for (int i = 0; i < 2 * FAILURES_IN_A_ROW; i++)
        settle(&g.b);
    assert_int_equal(condition(&g.b.app), APP_SUSPENDED);
    assert_null(g.b.app.state.app);
    assert_null(g.b.app.state.state);
    guarded_close(&g);
}

static void what_is_refused_for_want_of_memory_is_said_so(void **state)
{
    (void)state;
    struct guarded_bench g;
    guarded_open(&g);
    put(&g.b.app, RUN_STREAM, RECORDS("hungry", "starve", "+4"), 1, 0, "");
    for (int i = 0; i < 2 * TRIES; i++)
        settle(&g.b);
    assert_true(logged(&g.b, "app a failed event 'e' number 2 of other/x/out 3 times and it is refused; 2 "
                             "allocations were refused (memory = 32M)"));
    guarded_close(&g);
}

static void what_others_were_refused_is_not_said_of_an_event(void **state)
{
    (void)state;
    struct guarded_bench g;
    guarded_open(&g);
    put(&g.b.app, RUN_STREAM, RECORDS("hungry", "fail"), 1, 0, "");
    for (int i = 0; i < 2 * TRIES; i++)
        settle(&g.b);
    assert_true(logged(&g.b, "number 2 of other/x/out 3 times and it is refused"));
    assert_false(logged(&g.b, "allocation"));
    guarded_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_that_does_not_end_is_refused_and_what_came_before_it_is_stored),
        cmocka_unit_test(an_event_that_goes_on_sending_is_left_at_a_send),
        cmocka_unit_test(what_is_refused_for_want_of_memory_is_said_so),
        cmocka_unit_test(what_others_were_refused_is_not_said_of_an_event),
        cmocka_unit_test(a_request_is_refused_whole),
        cmocka_unit_test(what_another_app_has_sent_stays_where_it_is),
        cmocka_unit_test(an_app_that_is_suspended_gives_its_memory_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
