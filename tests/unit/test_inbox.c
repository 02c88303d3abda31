/* The inbox: runs one way, results the other; admission, room set aside, and two threads. */
#include "host/inbox.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define CAPACITY (64 * 1024)

struct fixture {
    struct io io; /* never sleeps, so it is never kicked */
    struct board owner, front;
    struct inbox inbox;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    io_init(&f->io, NULL);
    assert_int_equal(board_init(&f->owner, &f->io, 64), 0);
    assert_int_equal(board_init(&f->front, &f->io, 64), 0);
    assert_int_equal(inbox_init(&f->inbox, CAPACITY), 0);
    f->inbox.owner = &f->owner;
    f->inbox.owner_slot = 3;
    f->inbox.front = &f->front;
    f->inbox.front_slot = 5;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    inbox_dispose(&f->inbox);
    board_dispose(&f->owner);
    board_dispose(&f->front);
    free(f);
    return 0;
}

static struct run an_event(const char *framed, size_t size)
{
    return (struct run){
        .kind = RUN_EVENTS,
        .records = 1,
        .time_ms = 1234,
        .event = span_text("count"),
        .source = span_text("http"),
        .bytes = span_of(framed, size),
    };
}

/* The owner's side in one call: takes all runs, answers each with its place, frees them. */
static unsigned answer_all(struct inbox *inbox)
{
    struct stream_position at = inbox->runs.freed;
    struct run run;
    unsigned count = 0;
    while (inbox_next_run(inbox, &at, &run)) {
        struct run_result result = {0, at.records, span_of(NULL, 0)};
        if (run.kind == RUN_SHOW)
            result.text = span_text("{}");
        inbox_put_result(inbox, &result);
        count++;
    }
    inbox_free_to(inbox, at);
    inbox_push_results(inbox);
    return count;
}

static void a_run_comes_out_as_it_went_in(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    struct run in = {
        .kind = RUN_STREAM,
        .records = 2,
        .first = 1ull << 40,
        .time_ms = 77,
        .epoch = {1, 2, 3, [15] = 16},
        .event = span_text("e"),
        .source = span_text("host/app/out"),
        .identity = span_text("link key/app/out"),
        .key = span_text("key-1"),
        .bytes = span_of("\1a\2bc", 5),
    };
    assert_int_equal(inbox_put(inbox, &in), 0);
    inbox_push(inbox);
    struct stream_position at = inbox->runs.freed;
    struct run out;
    assert_true(inbox_next_run(inbox, &at, &out));
    assert_int_equal(out.kind, in.kind);
    assert_int_equal(out.records, in.records);
    assert_int_equal(out.first, in.first);
    assert_int_equal(out.time_ms, in.time_ms);
    assert_memory_equal(out.epoch, in.epoch, EPOCH_BYTES);
    assert_true(span_equal(out.event, in.event));
    assert_true(span_equal(out.source, in.source));
    assert_true(span_equal(out.identity, in.identity));
    assert_true(span_equal(out.key, in.key));
    assert_true(span_equal(out.bytes, in.bytes));
    assert_false(inbox_next_run(inbox, &at, &out));
}

static void names_of_runs_are_names_and_no_more(void **state)
{
    (void)state;
    char longest[SOURCE_NAME_MAX + 1];
    memset(longest, 'x', sizeof longest);
    longest[10] = longest[20] = '/';
    assert_true(run_stream_name(span_text("host/app/out")));
    assert_true(run_stream_name(span_of(longest, SOURCE_NAME_MAX)));
    assert_false(run_stream_name(span_of(longest, SOURCE_NAME_MAX + 1)));
    static const char *const bad_streams[] = {
        "",     "host",    "host/app",         "host/app/out/", "/app/out", "host//out",
        "a/b/", "a b/c/d", "link KEY/app/out", "a/b/c\t",       "a/\x7f/c", "a/b/c/d"};
    for (unsigned i = 0; i < ARRAY_SIZE(bad_streams); i++)
        assert_false(run_stream_name(span_text(bad_streams[i])));
    assert_false(run_stream_name(span_of("a/b\0/c", 6)));
    assert_true(run_event_name(span_text("An-event_1.2~x")));
    assert_true(run_event_name(span_of(longest + 21, EVENT_NAME_MAX)));
    assert_false(run_event_name(span_of(longest + 21, EVENT_NAME_MAX + 1)));
    static const char *const bad_events[] = {"", "a b", "a/b", "\xc3\xa4", "a%20"};
    for (unsigned i = 0; i < ARRAY_SIZE(bad_events); i++)
        assert_false(run_event_name(span_text(bad_events[i])));
}

static void a_run_is_seen_only_once_pushed_and_notices_are_one_a_push(void **state)
{
    struct fixture *f = *state;
    struct stream_position at = f->inbox.runs.freed;
    struct run run = an_event("\1a", 2), out;
    assert_int_equal(inbox_put(&f->inbox, &run), 0);
    assert_int_equal(inbox_put(&f->inbox, &run), 0);
    assert_false(inbox_next_run(&f->inbox, &at, &out));
    assert_int_equal(board_take(&f->owner, 0), 0);
    inbox_push(&f->inbox);
    assert_int_equal(board_take(&f->owner, 0), 1 << 3);
    inbox_push(&f->inbox);
    assert_int_equal(board_take(&f->owner, 0), 0); /* nothing new, no notice */
    assert_int_equal(answer_all(&f->inbox), 2);
    assert_int_equal(board_take(&f->front, 0), 1 << 5);
    inbox_push_results(&f->inbox);
    assert_int_equal(board_take(&f->front, 0), 0);
}

static void a_run_that_was_begun_and_not_committed_was_never_there(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    struct run run = an_event("\1b", 2), out;
    uint8_t *at = inbox_begin(inbox, &run, 1000);
    assert_non_null(at);
    memset(at, 'x', 1000);
    assert_int_equal(inbox_put(inbox, &run), 0);
    at = inbox_begin(inbox, &run, 3);
    memcpy(at, "\2cd", 3);
    inbox_commit(inbox, &run, 3);
    inbox_push(inbox);
    struct stream_position position = inbox->runs.freed;
    assert_true(inbox_next_run(inbox, &position, &out));
    assert_true(span_is(out.bytes, "\1b"));
    assert_true(inbox_next_run(inbox, &position, &out));
    assert_true(span_is(out.bytes, "\2cd"));
    assert_false(inbox_next_run(inbox, &position, &out));
}

static void results_come_in_the_order_of_the_runs_and_a_text_lives_until_the_next(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    struct run event = an_event("\1a", 2), show = {.kind = RUN_SHOW};
    struct run_result result;
    assert_false(inbox_take_result(inbox, &result));
    assert_int_equal(inbox_put(inbox, &event), 0);
    assert_int_equal(inbox_put(inbox, &show), 0);
    assert_int_equal(inbox_put(inbox, &event), 0);
    inbox_push(inbox);
    assert_int_equal(answer_all(inbox), 3);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_true(inbox_take_result(inbox, &result));
        assert_int_equal(result.stored, i);
        assert_int_equal(result.text.size, i == 2 ? 2 : 0);
        if (i == 2)
            assert_true(span_is(result.text, "{}"));
    }
    assert_false(inbox_take_result(inbox, &result));
    assert_int_equal(inbox->result_room, 0);
    assert_int_equal(inbox->show_count, 0);
}

static void it_refuses_above_three_quarters_until_below_one(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    static char data[CAPACITY / 4];
    struct run run = an_event(data, sizeof data - inbox_cost(0)), small = an_event("x", 1);
    assert_int_equal(inbox_put(inbox, &run), 0);
    while (record_queue_held(&inbox->runs) <= CAPACITY / 4)
        assert_int_equal(inbox_put(inbox, &small), 0);
    uint64_t held = record_queue_held(&inbox->runs);
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 2 + CAPACITY / 4 - held, 0), 0); /* exactly 75 % */
    assert_int_equal(inbox_reserve(inbox, 1, 0), PE_FULL);
    inbox_release(inbox, inbox->reserved);
    assert_int_equal(inbox_reserve(inbox, 1, 0), PE_FULL); /* over 25 % are held */
    inbox_push(inbox);
    answer_all(inbox);
    assert_int_equal(inbox_reserve(inbox, 1, 0), 0);
}

/* Fills it to between a quarter and three quarters, and has it refuse. */
static void begin_to_refuse(struct inbox *inbox, uint64_t now_ns)
{
    static char data[CAPACITY / 2];
    struct run run = an_event(data, sizeof data);
    assert_int_equal(inbox_put(inbox, &run), 0);
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 4, now_ns), PE_FULL);
    assert_true(inbox->refusing);
}

static void a_valve_ends_what_refuses_below_three_quarters_after_a_while(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    uint64_t start_ns = 1000 * NS_PER_S, last_ns = start_ns + INBOX_VALVE_NS;
    begin_to_refuse(inbox, start_ns);
    assert_int_equal(inbox_reserve(inbox, 1, last_ns - 1), PE_FULL);
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 4, last_ns), PE_FULL); /* over three quarters never */
    assert_int_equal(inbox_reserve(inbox, 1, last_ns), 0);
    inbox_release(inbox, 1);
    assert_false(inbox->refusing);
    /* once it refuses again the time begins anew */
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 4, last_ns + 5), PE_FULL);
    assert_int_equal(inbox_reserve(inbox, 1, last_ns + 4 + INBOX_VALVE_NS), PE_FULL);
    assert_int_equal(inbox_reserve(inbox, 1, last_ns + 5 + INBOX_VALVE_NS), 0);
}

static void without_feedback_it_takes_whatever_there_is_room_for(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    inbox->without_feedback = true;
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 2, 0), 0);
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 2 - 1, 0), 0);
    assert_int_equal(inbox_reserve(inbox, 2, 0), PE_FULL);
    assert_int_equal(inbox_reserve(inbox, 1, 0), 0);
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 2 + 1, 0), PE_TOO_LARGE);
    inbox_release(inbox, CAPACITY);
}

static void what_is_announced_has_half_of_it_and_the_rest_comes_in_by_itself(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    uint64_t reserved;
    assert_int_equal(inbox_announce(inbox, CAPACITY / 2, 0, &reserved), 0);
    assert_int_equal(reserved, CAPACITY / 2);
    assert_int_equal(inbox_announce(inbox, 1, 0, &reserved), 0);
    assert_int_equal(reserved, 0);
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 4, 0), 0);
    assert_int_equal(inbox_announce(inbox, 1, 0, &reserved), PE_FULL);
    assert_int_equal(reserved, 0);
    inbox_release(inbox, CAPACITY / 4);
    assert_int_equal(inbox_reserve(inbox, 1, 0), 0); /* it is not what is reserved that it waits for */
    assert_int_equal(inbox_announce(inbox, CAPACITY / 2 + 1, 0, &reserved), PE_TOO_LARGE);
}

static void a_body_over_half_of_it_is_too_large_and_half_always_comes_in(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 2 + 1, 0), PE_TOO_LARGE);
    assert_false(inbox->refusing);
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 2, 0), 0);
    inbox_release(inbox, CAPACITY / 2);
}

static void what_is_held_counts_against_admission_until_the_owner_frees_it(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    static char data[CAPACITY / 2];
    struct run run = an_event(data, sizeof data);
    assert_int_equal(inbox_put(inbox, &run), 0);
    inbox_push(inbox);
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 4, 0), PE_FULL);
    assert_int_equal(inbox_reserve(inbox, 1, 0), PE_FULL);
    answer_all(inbox);
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 4, 0), 0);
}

static void what_was_reserved_can_be_put_with_the_longest_head(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    static char strings[SOURCE_NAME_MAX], data[1000];
    struct run run = an_event(data, sizeof data);
    run.event = span_of(strings, EVENT_NAME_MAX);
    run.source = span_of(strings, SOURCE_NAME_MAX);
    run.identity = span_of(strings, SOURCE_NAME_MAX);
    unsigned reserved = 0, put = 0;
    while (inbox_reserve(inbox, inbox_cost(sizeof data), 0) == 0)
        reserved++;
    assert_true(reserved > 20);
    for (; put < reserved; put++) {
        uint64_t before = record_queue_held(&inbox->runs);
        assert_int_equal(inbox_put(inbox, &run), 0);
        assert_int_equal(record_queue_held(&inbox->runs) - before, inbox_cost(sizeof data));
        inbox_release(inbox, inbox_cost(sizeof data));
    }
}

static void a_show_takes_no_reserved_room(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    static char data[CAPACITY / 4 - 70];
    struct run run = an_event(data, sizeof data), show = {.kind = RUN_SHOW};
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 2, 0), 0);
    assert_int_equal(inbox_reserve(inbox, CAPACITY / 4, 0), 0);
    assert_int_equal(inbox_put(inbox, &run),
                     0); /* fewer bytes than a show needs are neither reserved nor held */
    assert_int_equal(inbox_put(inbox, &show), PE_FULL);
    inbox_release(inbox, 100);
    assert_int_equal(inbox_put(inbox, &show), 0);
}

static void shows_are_few_and_leave_room_for_results(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    struct run show = {.kind = RUN_SHOW}, event = an_event("\1a", 2);
    unsigned shows = 0;
    while (inbox_put(inbox, &show) == 0)
        shows++;
    assert_in_range(shows, 2, INBOX_SHOWS);
    assert_int_equal(inbox_put(inbox, &event), 0);
}

/* The largest texts, as many results as are let in: inbox_put_result asserts that they fit. */
static void every_result_has_its_room(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    static char text[SHOW_MAX];
    struct run show = {.kind = RUN_SHOW}, event = {.kind = RUN_EVENTS}, out;
    struct run_result result;
    uint64_t puts = 0, takes = 0;
    while (inbox_put(inbox, &show) == 0)
        puts++;
    for (;;) {
        while (inbox_put(inbox, &event) == 0)
            puts++;
        inbox_push(inbox);
        struct stream_position at = inbox->runs.freed;
        uint64_t before = at.records;
        while (inbox_next_run(inbox, &at, &out))
            inbox_put_result(inbox,
                             &(struct run_result){0, 0, span_of(text, out.kind == RUN_SHOW ? SHOW_MAX : 0)});
        inbox_free_to(inbox, at);
        if (at.records == before)
            break; /* results are the limit now */
    }
    assert_true(puts > 8192);
    inbox_push_results(inbox);
    while (inbox_take_result(inbox, &result))
        takes++;
    assert_int_equal(takes, puts);
    assert_int_equal(inbox->result_room, 0);
    assert_int_equal(inbox_put(inbox, &event), 0);
}

#define THREADED_RUNS 200000

static void *own(void *argument)
{
    struct inbox *inbox = argument;
    for (uint64_t seen = 0; seen < THREADED_RUNS;) {
        struct stream_position at = inbox->runs.freed;
        struct run run;
        while (inbox_next_run(inbox, &at, &run)) {
            struct run_result result = {0, run.first, span_of(NULL, 0)};
            if (run.bytes.size != run.first % 100 || run.first != seen)
                result.error = PE_MALFORMED;
            inbox_put_result(inbox, &result);
            seen++;
        }
        inbox_free_to(inbox, at);
        inbox_push_results(inbox);
        sched_yield();
    }
    return NULL;
}

static void two_threads_agree_on_every_run(void **state)
{
    struct inbox *inbox = &((struct fixture *)*state)->inbox;
    static const char data[100];
    pthread_t owner;
    assert_int_equal(pthread_create(&owner, NULL, own, inbox), 0);
    uint64_t puts = 0, takes = 0;
    while (takes < THREADED_RUNS) {
        struct run run = an_event(data, puts % 100);
        run.first = puts;
        while (puts < THREADED_RUNS && inbox_put(inbox, &run) == 0) {
            puts++;
            run.first = puts;
            run.bytes.size = puts % 100;
        }
        inbox_push(inbox);
        struct run_result result;
        while (inbox_take_result(inbox, &result)) {
            assert_int_equal(result.error, 0);
            assert_int_equal(result.stored, takes++);
        }
        sched_yield();
    }
    pthread_join(owner, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_comes_out_as_it_went_in),
        TEST(names_of_runs_are_names_and_no_more),
        TEST(a_run_is_seen_only_once_pushed_and_notices_are_one_a_push),
        TEST(a_run_that_was_begun_and_not_committed_was_never_there),
        TEST(results_come_in_the_order_of_the_runs_and_a_text_lives_until_the_next),
        TEST(it_refuses_above_three_quarters_until_below_one),
        TEST(a_valve_ends_what_refuses_below_three_quarters_after_a_while),
        TEST(without_feedback_it_takes_whatever_there_is_room_for),
        TEST(what_is_announced_has_half_of_it_and_the_rest_comes_in_by_itself),
        TEST(a_body_over_half_of_it_is_too_large_and_half_always_comes_in),
        TEST(what_is_held_counts_against_admission_until_the_owner_frees_it),
        TEST(what_was_reserved_can_be_put_with_the_longest_head),
        TEST(a_show_takes_no_reserved_room),
        TEST(shows_are_few_and_leave_room_for_results),
        TEST(every_result_has_its_room),
        TEST(two_threads_agree_on_every_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
