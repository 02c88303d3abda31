/* Apps on their owners: turns, undo, retries, back-pressure, streams, cycles (app_bench.h). */
#include "tests/unit/app_bench.h"

/* --- tests --- */

static void events_change_the_state_and_are_counted(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    put(&b.app, RUN_EVENTS, RECORDS("+1"), 0, 0, "");
    put(&b.app, RUN_EVENTS, RECORDS("+2", "+3"), 0, 0, "");
    put(&b.app, RUN_EVENTS, RECORDS("echo"), 0, 0, "");
    expect_nothing(&b.app);
    settle(&b);
    expect(&b.app, 0, 1);
    expect(&b.app, 0, 3);
    expect(&b.app, 0, 4);
    expect_state(&b, &b.app, "6/4");
    assert_int_equal(drain(&b.outlet), 1);
    bench_close(&b);
}

static void one_push_carries_the_sends_of_a_whole_turn(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    for (int i = 0; i < 100; i++)
        put(&b.app, RUN_EVENTS, RECORDS("echo", "echo"), 0, 0, "");
    settle(&b);
    assert_int_equal(counter_read(&b.app.entry.report.turns), 1);
    assert_int_equal(counter_read(&b.app.entry.report.pushes), 1);
    assert_int_equal(drain(&b.outlet), 200);
    bench_close(&b);
}

static void a_failed_event_leaves_no_trace_and_hurts_no_other(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    put(&b.app, RUN_EVENTS, RECORDS("+5"), 0, 0, "");
    put(&b.app, RUN_EVENTS, RECORDS("+7", "echo", "fail", "+9"), 0, 0, "");
    put(&b.app, RUN_EVENTS, RECORDS("+1"), 0, 0, "");
    settle(&b);
    expect(&b.app, 0, 1);
    expect(&b.app, PE_APP_FAILED, 1);
    expect(&b.app, 0, 2);
    expect_state(&b, &b.app, "6/2");
    assert_int_equal(drain(&b.outlet), 0);
    assert_int_equal(counter_read(&b.app.entry.report.failures), TRIES);
    bench_close(&b);
}

static void a_failed_event_is_tried_again_before_it_is_refused(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    flaky_failures = TRIES - 1;
    put(&b.app, RUN_EVENTS, RECORDS("+5", "flaky"), 0, 0, "");
    settle(&b);
    expect(&b.app, 0, 2);
    expect_state(&b, &b.app, "5/2");
    bench_close(&b);
}

static void a_send_whose_failure_the_app_ignores_fails_the_event(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    put(&b.app, RUN_EVENTS, RECORDS("ignore 5000"), 0, 0, "");
    put(&b.app, RUN_EVENTS, RECORDS("no output"), 0, 0, "");
    settle(&b);
    expect(&b.app, PE_APP_FAILED, 0);
    expect(&b.app, PE_APP_FAILED, 0);
    assert_true(logged(
        &b,
        "app a failed event 'e' number 1 of http 3 times and it is refused: it sends more to out than its "
        "queue (4096 bytes) can ever hold"));
    assert_true(logged(&b, "it sends to output number 1, which its module has not"));
    bench_close(&b);
}

static void too_many_failures_in_a_row_suspend_the_app(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    for (int i = 0; i < FAILURES_IN_A_ROW + 2; i++)
        put(&b.app, RUN_EVENTS, RECORDS("fail"), 0, 0, "");
    settle(&b);
    settle(&b);
    for (int i = 0; i < FAILURES_IN_A_ROW; i++)
        expect(&b.app, PE_APP_FAILED, 0);
    expect(&b.app, PE_APP_SUSPENDED, 0);
    expect(&b.app, PE_APP_SUSPENDED, 0);
    assert_int_equal(condition(&b.app), APP_SUSPENDED);
    put(&b.app, RUN_STREAM, RECORDS("+1"), 1, 0, "");
    settle(&b);
    expect(&b.app, PE_APP_SUSPENDED, 0);
    bench_close(&b);
}

static void an_app_that_does_not_open_answers_that_it_is_suspended(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    struct owned_app broken;
    struct config_app config = {.name = "broken", .arg = "broken", .inbox_bytes = 1 << 20};
    assert_int_equal(owned_app_init(&broken, &config, &tester, "", &b.loop, &b.log, &no_journal, NULL), 0);
    broken.entry.inbox.front = &b.other.board;
    assert_string_equal(broken.entry.failure, "it is broken");
    put(&broken, RUN_EVENTS, RECORDS("+1"), 0, 0, "");
    settle(&b);
    expect(&broken, PE_APP_SUSPENDED, 0);
    owned_app_dispose(&broken);
    bench_close(&b);
}

static void a_full_outlet_stops_the_app_until_a_quarter_is_held(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    for (int i = 0; i < 10; i++)
        put(&b.app, RUN_EVENTS, RECORDS("send 1000"), 0, 0, "");
    settle(&b);
    /* the fourth brought it over 75 % of 4096; a fifth would not fit */
    for (uint64_t i = 1; i <= 4; i++)
        expect(&b.app, 0, i);
    expect_nothing(&b.app);
    assert_int_equal(condition(&b.app), APP_WAITING);
    assert_ptr_equal(atomic_load(&b.app.entry.report.waits_for), &b.outlet);
    assert_false(logged(&b, "takes no more events")); /* the outlet delivers */
    outlet_report(&b.outlet, OUTLET_RESTING, PE_CLOSED, "", 0);
    board_post(&b.loop.board, b.app.task.slot);
    settle(&b);
    assert_true(logged(&b, "app a takes no more events: its output out is full and does not deliver"));
    struct stream_position to = {3 * 1002, 3}; /* 1002 are held: 25 % and less */
    record_queue_see_published(&b.outlet.queue);
    outlet_stored(&b.outlet, (struct stream_position){2 * 1002, 2});
    settle(&b);
    expect_nothing(&b.app);
    outlet_stored(&b.outlet, to);
    settle(&b);
    expect(&b.app, 0, 5);
    bench_close(&b);
}

static void a_unit_larger_than_what_is_free_waits_and_one_larger_than_the_outlet_fails(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    put(&b.app, RUN_EVENTS, RECORDS("send 2000"), 0, 0, "");
    put(&b.app, RUN_EVENTS, RECORDS("+1", "send 1500", "send 1500"), 0, 0, "");
    put(&b.app, RUN_EVENTS, RECORDS("send 1500", "send 1500", "send 1500"), 0, 0, "");
    settle(&b);
    expect(&b.app, 0, 1);
    expect_nothing(&b.app);
    assert_int_equal(drain(&b.outlet), 1);
    settle(&b);
    expect(&b.app, 0, 4);
    expect_nothing(&b.app);
    assert_int_equal(drain(&b.outlet), 2);
    settle(&b);
    expect(&b.app, PE_APP_FAILED, 4);
    expect_state(&b, &b.app, "1/4");
    bench_close(&b);
}

static void a_stream_is_stored_once_and_in_order(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    put(&b.app, RUN_STREAM, RECORDS("+1", "+2", "+4"), 1, 0, "");
    put(&b.app, RUN_STREAM, RECORDS("+2", "+4", "+8"), 2, 0, ""); /* two of them again */
    put(&b.app, RUN_STREAM, RECORDS("+1", "+2"), 1, 0, "");       /* all of it again */
    put(&b.app, RUN_STREAM, RECORDS("+32"), 6, 0, "");            /* one is missing */
    put(&b.app, RUN_STREAM, RECORDS("+16"), 5, 3, "");
    settle(&b);
    expect(&b.app, 0, 3);
    expect(&b.app, 0, 4);
    expect(&b.app, 0, 4);
    expect(&b.app, PE_STREAM_GAP, 4);
    expect(&b.app, 0, 5);
    expect_state(&b, &b.app, "31/5");
    assert_int_equal(counter_read(&b.app.entry.report.duplicates), 4);
    bench_close(&b);
}

static void a_stream_says_how_far_it_came_when_a_record_fails(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    put(&b.app, RUN_STREAM, RECORDS("+1", "+2", "fail", "+8"), 1, 0, "");
    put(&b.app, RUN_STREAM, RECORDS("+16"), 5, 0, "");
    settle(&b);
    expect(&b.app, PE_APP_FAILED, 2);
    expect(&b.app, PE_STREAM_GAP, 2);
    expect_state(&b, &b.app, "3/2");
    bench_close(&b);
}

static void a_request_with_a_known_key_is_answered_and_not_stored_again(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    put(&b.app, RUN_EVENTS, RECORDS("+1"), 0, 0, "k");
    put(&b.app, RUN_EVENTS, RECORDS("+2"), 0, 0, "");
    put(&b.app, RUN_EVENTS, RECORDS("+1"), 0, 0, "k");
    settle(&b);
    expect(&b.app, 0, 1);
    expect(&b.app, 0, 2);
    expect(&b.app, 0, 1);
    expect_state(&b, &b.app, "3/2");
    bench_close(&b);
}

static void the_state_survives_undo_behind_many_snapshots(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    uint64_t stored = 0;
    for (int round = 0; round < 3000; round++) {
        put(&b.app, RUN_EVENTS,
            RECORDS("+1", "some padding so that the log grows and is settled now and then, more of it"), 0, 0,
            "");
        stored += 2;
        bool failing = round % 100 == 99;
        if (failing)
            put(&b.app, RUN_EVENTS, RECORDS("+1", "fail"), 0, 0, "");
        settle(&b);
        expect(&b.app, 0, stored);
        if (failing)
            expect(&b.app, PE_APP_FAILED, stored);
    }
    expect_state(&b, &b.app, "3000/6000");
    bench_close(&b);
}

static void an_inner_outlet_delivers_once_in_order_and_holds_for_a_suspended_app(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    struct owned_app to;
    struct config_app config;
    open_app(&b, &to, &config, "b");
    assert_int_equal(owned_app_add_inner(&to, &b.outlet, "e", false, any_epoch), 0);
    for (int i = 0; i < 1000; i++) {
        put(&b.app, RUN_EVENTS, RECORDS("echo", "send 100"), 0, 0, "");
        if (i % 50 == 49)
            settle(&b);
    }
    settle(&b);
    assert_int_equal(counter_read(&to.entry.report.stored), 2000);
    assert_int_equal(record_queue_glance(&b.outlet.queue).held_bytes, 0);
    atomic_store(&to.entry.report.condition, APP_SUSPENDED);
    put(&b.app, RUN_EVENTS, RECORDS("echo"), 0, 0, "");
    settle(&b);
    assert_int_equal(record_queue_glance(&b.outlet.queue).held_records, 1);
    owned_app_dispose(&to);
    bench_close(&b);
}

static void a_failing_event_is_refused_though_another_inlet_is_busy(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    struct owned_app from;
    struct config_app config;
    struct outlet busy;
    open_app(&b, &from, &config, "from");
    open_outlet(&b, &from, &busy);
    assert_int_equal(owned_app_add_inner(&b.app, &busy, "e", false, any_epoch), 0);
    put(&b.app, RUN_EVENTS, RECORDS("fail"), 0, 0, "");
    for (int i = 0; i < 400; i++) { /* always something from the other inlet when a retry is due */
        for (int k = 0; k < 20; k++)
            put(&from, RUN_EVENTS, RECORDS("echo."), 0, 0, "");
        sim_run_for(b.sim, NS_PER_MS);
        struct run_result result;
        while (inbox_take_result(&from.entry.inbox, &result))
            assert_int_equal(result.error, 0);
    }
    struct run_result refused;
    assert_true(inbox_take_result(&b.app.entry.inbox, &refused));
    assert_int_equal(refused.error, PE_APP_FAILED);
    assert_int_equal(counter_read(&b.app.entry.report.failures), TRIES);
    owned_app_dispose(&from);
    outlet_dispose(&busy);
    bench_close(&b);
}

/* From the queue of an inner outlet, as much as several turns give, and a little from clients; and the other
 * way round: neither waits for more than the other's turn. */
static void an_inner_outlet_and_the_inbox_take_turns(void **state)
{
    (void)state;
    for (int flooded = 0; flooded < 2; flooded++) {
        struct bench b;
        bench_open(&b);
        struct owned_app from;
        struct config_app config;
        struct outlet inner;
        open_app(&b, &from, &config, "from");
        open_outlet(&b, &from, &inner);
        outlet_dispose(&inner);
        assert_int_equal(outlet_init(&inner, "test", "from", "out", 1 << 20, 1 << 20), 0);
        inner.consumer = inner.producer = &b.other.board;
        assert_int_equal(owned_app_add_inner(&b.app, &inner, "e", false, any_epoch), 0);
        unsigned sends = flooded == 0 ? 3 * TURN_EVENTS : 1, puts = flooded == 1 ? 3 * TURN_EVENTS : 1;
        for (unsigned i = 0; i < sends; i++) {
            memcpy(record_queue_reserve(&inner.queue, 2), "+1", 2);
            record_queue_commit(&inner.queue, 2);
        }
        record_queue_publish(&inner.queue);
        for (unsigned i = 0; i < puts; i++)
            put(&b.app, RUN_EVENTS, RECORDS("+1"), 0, 0, "");
        for (int i = 0; i < 2; i++)
            b.app.task.run(&b.app.task, io_now_ns(b.loop.io));
        bool some_left = counter_read(&b.app.entry.report.stored) < 3 * TURN_EVENTS;
        struct run_result result;
        assert_true(some_left);
        assert_true(inner.queue.freed.records > 0);
        assert_true(inbox_take_result(&b.app.entry.inbox, &result));
        owned_app_dispose(&from);
        outlet_dispose(&inner);
        bench_close(&b);
    }
}

static void an_app_that_waits_still_shows_its_state(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    put(&b.app, RUN_EVENTS, RECORDS("send 3500"), 0, 0, "");
    settle(&b);
    expect(&b.app, 0, 1);
    expect_state(&b, &b.app, "0/1");
    put(&b.app, RUN_EVENTS, RECORDS("send 3500"), 0, 0, "");
    settle(&b);
    assert_int_equal(condition(&b.app), APP_WAITING);
    expect_nothing(&b.app);
    bench_close(&b);
}

/* A clock by which each look at it is 3 ms later: events that slow leave room for one a turn. */
static uint64_t slow_now_ns(struct io *io)
{
    static uint64_t now_ns;
    (void)io;
    return now_ns += 3 * NS_PER_MS;
}

static void slow_events_end_a_turn_one_by_one(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    struct io_backend slow = *b.loop.io->backend;
    slow.now_ns = slow_now_ns;
    b.loop.io->backend = &slow;
    for (int i = 0; i < 100; i++)
        put(&b.app, RUN_EVENTS, RECORDS("+1"), 0, 0, "");
    b.loop.now_ns = 0;
    while (counter_read(&b.app.entry.report.stored) < 100)
        b.app.task.run(&b.app.task, slow_now_ns(NULL));
    assert_int_equal(counter_read(&b.app.entry.report.turns), 100);
    bench_close(&b);
}

static void a_refused_run_of_a_new_epoch_changes_nothing(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    put(&b.app, RUN_STREAM, RECORDS("+1", "+2"), 1, 0, "");
    put_epoch(&b.app, RECORDS("+4"), 100, 0, 9);
    put(&b.app, RUN_STREAM, RECORDS("+8"), 3, 0, "");
    settle(&b);
    expect(&b.app, 0, 2);
    expect(&b.app, PE_STREAM_GAP, 0);
    expect(&b.app, 0, 3);
    bench_close(&b);
}

/* --- with a second inbox, from links --- */

static void bench_open_linked(struct bench *b)
{
    bench_open(b);
    assert_int_equal(owned_app_add_links(&b->app, 4 << 20), 0);
    b->app.entry.links.front = &b->other.board;
    b->app.entry.links.front_slot = 2;
}

static void two_inboxes_take_turns(void **state)
{
    (void)state;
    struct bench b;
    bench_open_linked(&b);
    for (int i = 0; i < 3 * TURN_EVENTS; i++)
        put(&b.app, RUN_EVENTS, RECORDS("+1"), 0, 0, "");
    put_link(&b.app, RECORDS("+1", "+1"), 1);
    assert_true(registry_app_held(&b.app.entry) > record_queue_glance(&b.app.entry.inbox.runs).held_bytes);
    for (int i = 0; i < 2; i++)
        b.app.task.run(&b.app.task, io_now_ns(b.loop.io));
    expect_in(&b.app.entry.links, 0, 2);
    assert_true(counter_read(&b.app.entry.report.stored) < 3 * TURN_EVENTS);
    settle(&b);
    assert_int_equal(counter_read(&b.app.entry.report.stored), 3 * TURN_EVENTS + 2);
    assert_int_equal(registry_app_held(&b.app.entry), 0);
    bench_close(&b);
}

static void an_app_that_waits_holds_both_inboxes(void **state)
{
    (void)state;
    struct bench b;
    bench_open_linked(&b);
    put_link(&b.app, RECORDS("send 3500"), 1);
    settle(&b);
    expect_in(&b.app.entry.links, 0, 1);
    put_link(&b.app, RECORDS("+2"), 2);
    settle(&b);
    struct run_result result;
    assert_int_equal(condition(&b.app), APP_WAITING);
    assert_false(inbox_take_result(&b.app.entry.links, &result));
    expect_state(&b, &b.app, "0/1");
    put(&b.app, RUN_EVENTS, RECORDS("+4"), 0, 0, "");
    settle(&b);
    expect_nothing(&b.app);
    drain(&b.outlet);
    settle(&b);
    expect_in(&b.app.entry.links, 0, 2);
    expect(&b.app, 0, 3);
    expect_state(&b, &b.app, "6/3");
    bench_close(&b);
}

/* The unit of one inbox waits for room; when there is some, the other's turn comes first. */
static void events_are_numbered_as_they_are_given(void **state)
{
    (void)state;
    struct bench b;
    bench_open_linked(&b);
    put(&b.app, RUN_EVENTS, RECORDS("send 2900"), 0, 0, "");
    put(&b.app, RUN_EVENTS, RECORDS("send 2000"), 0, 0, "");
    settle(&b);
    expect(&b.app, 0, 1);
    expect_nothing(&b.app);
    put_link(&b.app, RECORDS("+1"), 1);
    b.app.next_inlet = 1;
    drain(&b.outlet);
    settle(&b);
    expect_in(&b.app.entry.links, 0, 1);
    expect(&b.app, 0, 3);
    assert_int_equal(sent_number, 3);
    bench_close(&b);
}

static void failing_units_of_both_inboxes_have_tries_of_their_own(void **state)
{
    (void)state;
    struct bench b;
    bench_open_linked(&b);
    put_link(&b.app, RECORDS("+1", "fail", "+2"), 1);
    put(&b.app, RUN_EVENTS, RECORDS("fail"), 0, 0, "");
    put(&b.app, RUN_EVENTS, RECORDS("+4"), 0, 0, "");
    settle(&b);
    expect_in(&b.app.entry.links, PE_APP_FAILED, 1);
    expect(&b.app, PE_APP_FAILED, 0);
    expect(&b.app, 0, 1);
    assert_int_equal(counter_read(&b.app.entry.report.failures), 2 * TRIES);
    put_link(&b.app, RECORDS("+8", "+16"), 2);
    settle(&b);
    expect_in(&b.app.entry.links, 0, 3);
    expect_state(&b, &b.app, "29/4");
    bench_close(&b);
}

static void a_suspended_app_refuses_both_inboxes(void **state)
{
    (void)state;
    struct bench b;
    bench_open_linked(&b);
    put_link(&b.app, RECORDS("+1"), 1);
    settle(&b);
    expect_in(&b.app.entry.links, 0, 1);
    atomic_store(&b.app.entry.report.condition, APP_SUSPENDED);
    put_link(&b.app, RECORDS("+1"), 2);
    put(&b.app, RUN_EVENTS, RECORDS("+1"), 0, 0, "");
    settle(&b);
    expect_in(&b.app.entry.links, PE_APP_SUSPENDED, 0);
    expect(&b.app, PE_APP_SUSPENDED, 0);
    assert_int_equal(registry_app_held(&b.app.entry), 0);
    bench_close(&b);
}

static void a_cycle_at_a_multiplication_of_one_never_stands_still(void **state)
{
    (void)state;
    /* outside fills one app only, with small units; the apps run in seeded order */
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct bench b;
        bench_open_seeded(&b, seed);
        struct owned_app other;
        struct config_app config;
        struct outlet back;
        open_app(&b, &other, &config, "b");
        open_outlet(&b, &other, &back);
        assert_int_equal(owned_app_add_inner(&other, &b.outlet, "e", true, any_epoch), 0);
        assert_int_equal(owned_app_add_inner(&b.app, &back, "e", true, any_epoch), 0);
        for (int i = 0; i < 1000; i++)
            put(&b.app, RUN_EVENTS, RECORDS("echo 40 bytes for the whole of the unit."), 0, 0, "");
        uint64_t before = 0;
        for (int i = 0; i < 20; i++) {
            sim_run(b.sim, NEVER, NULL, NULL, 500);
            uint64_t stored =
                counter_read(&b.app.entry.report.stored) + counter_read(&other.entry.report.stored);
            assert_true(stored > before);
            before = stored;
        }
        outlet_dispose(&back);
        owned_app_dispose(&other);
        bench_close(&b);
    }
}

static void a_cycle_of_full_outlets_goes_on_and_does_not_grow(void **state)
{
    (void)state;
    /* a ──▶ b ──▶ a, each passing "echo" on for ever; the front keeps on adding until both are full */
    struct bench b;
    bench_open(&b);
    struct owned_app other;
    struct config_app config;
    struct outlet back;
    open_app(&b, &other, &config, "b");
    open_outlet(&b, &other, &back);
    assert_int_equal(owned_app_add_inner(&other, &b.outlet, "e", true, any_epoch), 0);
    assert_int_equal(owned_app_add_inner(&b.app, &back, "e", true, any_epoch), 0);
    char large[241] = "echo";
    memset(large + 4, '.', sizeof large - 5);
    for (int i = 0; i < 1000; i++) {
        put(&b.app, RUN_EVENTS, RECORDS(large, large, large, large), 0, 0, "");
        put(&other, RUN_EVENTS, RECORDS(large, large, large, large), 0, 0, "");
    }
    uint64_t before = 0;
    for (int i = 0; i < 20; i++) {
        sim_run(b.sim, NEVER, NULL, NULL, 1000);
        uint64_t stored = counter_read(&b.app.entry.report.stored) + counter_read(&other.entry.report.stored);
        assert_true(stored > before);
        before = stored;
        assert_true(record_queue_glance(&b.outlet.queue).held_bytes <= QUEUE_BYTES);
        assert_true(record_queue_glance(&back.queue).held_bytes <= QUEUE_BYTES);
    }
    outlet_dispose(&back);
    owned_app_dispose(&other);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_change_the_state_and_are_counted),
        cmocka_unit_test(one_push_carries_the_sends_of_a_whole_turn),
        cmocka_unit_test(a_failed_event_leaves_no_trace_and_hurts_no_other),
        cmocka_unit_test(a_failed_event_is_tried_again_before_it_is_refused),
        cmocka_unit_test(a_send_whose_failure_the_app_ignores_fails_the_event),
        cmocka_unit_test(too_many_failures_in_a_row_suspend_the_app),
        cmocka_unit_test(an_app_that_does_not_open_answers_that_it_is_suspended),
        cmocka_unit_test(a_full_outlet_stops_the_app_until_a_quarter_is_held),
        cmocka_unit_test(a_unit_larger_than_what_is_free_waits_and_one_larger_than_the_outlet_fails),
        cmocka_unit_test(a_stream_is_stored_once_and_in_order),
        cmocka_unit_test(a_stream_says_how_far_it_came_when_a_record_fails),
        cmocka_unit_test(a_request_with_a_known_key_is_answered_and_not_stored_again),
        cmocka_unit_test(the_state_survives_undo_behind_many_snapshots),
        cmocka_unit_test(an_inner_outlet_delivers_once_in_order_and_holds_for_a_suspended_app),
        cmocka_unit_test(a_failing_event_is_refused_though_another_inlet_is_busy),
        cmocka_unit_test(an_inner_outlet_and_the_inbox_take_turns),
        cmocka_unit_test(an_app_that_waits_still_shows_its_state),
        cmocka_unit_test(slow_events_end_a_turn_one_by_one),
        cmocka_unit_test(a_refused_run_of_a_new_epoch_changes_nothing),
        cmocka_unit_test(two_inboxes_take_turns),
        cmocka_unit_test(an_app_that_waits_holds_both_inboxes),
        cmocka_unit_test(events_are_numbered_as_they_are_given),
        cmocka_unit_test(failing_units_of_both_inboxes_have_tries_of_their_own),
        cmocka_unit_test(a_suspended_app_refuses_both_inboxes),
        cmocka_unit_test(a_cycle_at_a_multiplication_of_one_never_stands_still),
        cmocka_unit_test(a_cycle_of_full_outlets_goes_on_and_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
