/* Links into apps: whose records are let in, once each, and what is refused (host/link_inlets.h). */
#include "tests/unit/link_bench.h"

/* --- tests --- */

static void records_reach_their_app_and_stored_numbers_come_back(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a", "b"));
    settle(b);
    expect_stored(&f, 2);
    feed_all(&f, RECORDS("c"));
    settle(b);
    expect_stored(&f, 3);
    assert_int_equal(seen_count, 3);
    expect_seen(0, "ann/src/out", 1, "a");
    expect_seen(2, "ann/src/out", 3, "c");
    assert_in_range(seen[2].time_ms, SIM_START_WALL_MS + 1000, SIM_START_WALL_MS + 1001);
    feed_end(&f);
    expect_no_streams(b);
    bench_close(b);
}

/* A stream that begins in the middle, as after a refusal or in a new association. */
static void records_of_a_later_stream_count_once(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed first = feed_from(b, ANN, 0, 1);
    feed_all(&first, RECORDS("a", "b", "c"));
    inlets_begin(&b->peers[ANN].inlets); /* before anything of it was stored */
    struct feed second = feed_from(b, ANN, 0, 1);
    feed_all(&second, RECORDS("a", "b", "c", "d"));
    settle(b);
    expect_stored(&second, 4);
    struct frame_open open = an_open(1, 3); /* its sender was told of 2 */
    struct feed third = feed_open(b, ANN, &open);
    feed_all(&third, RECORDS("c", "d"));
    settle(b);
    expect_stored(&third, 4);
    assert_int_equal(seen_count, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(seen[i].number, i + 1);
    assert_int_equal(counter_read(&b->apps[DASH].entry.report.duplicates), 5);
    bench_close(b);
}

/* What the app knows already comes in pieces: each is told of as it comes. */
static void duplicates_are_told_of_as_they_come(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed first = feed_from(b, ANN, 0, 1);
    feed_all(&first, RECORDS("a", "b", "c", "d"));
    settle(b);
    inlets_begin(&b->peers[ANN].inlets);
    struct feed second = feed_from(b, ANN, 0, 1);
    feed_all(&second, RECORDS("a"));
    settle(b);
    expect_stored(&second, 1);
    feed_all(&second, RECORDS("b", "c"));
    settle(b);
    expect_stored(&second, 3);
    feed_all(&second, RECORDS("d", "e"));
    settle(b);
    expect_stored(&second, 5);
    assert_int_equal(seen_count, 5);
    bench_close(b);
}

/* The sender has lost records of which it had given the numbers: it begins anew behind them. */
static void records_that_their_sender_lost_are_passed_over_and_said(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a", "b"));
    settle(b);
    feed_end(&f);
    f = feed_from(b, ANN, 16, 10);
    feed_all(&f, RECORDS("j", "k"));
    settle(b);
    expect_stored(&f, 11);
    expect_seen(2, "ann/src/out", 10, "j");
    assert_int_equal(logged(b, "app dash: records of ann/src/out up to 9 that are not here are lost: "), 1);
    bench_close(b);
}

static void a_gap_is_refused_with_the_number_that_the_app_has(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a", "b"));
    settle(b);
    struct frame_open open = an_open(1, 6);
    open.base = 4; /* said by one that was given two: it has lost two, but that is not all */
    struct feed gap = feed_open(b, ANN, &open);
    feed_all(&gap, RECORDS("e"));
    settle(b);
    expect_refused(&gap, REFUSED_GAP, 2);
    assert_int_equal(seen_count, 2);
    feed_all(&f, RECORDS("c")); /* the other goes on */
    settle(b);
    expect_stored(&f, 3);
    bench_close(b);
}

/* An OPEN that asks has no STORED before the app has said that no more is stored. */
static void a_question_is_answered_by_the_app(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a", "b", "c"));
    settle(b);
    for (uint64_t sent = 2; sent <= 3; sent++) {
        inlets_begin(&b->peers[ANN].inlets);
        struct frame_open open = an_open(0, 1);
        open.asks = sent + 1;
        struct feed question = feed_open(b, ANN, &open);
        assert_false(inlets_due(&b->peers[ANN].inlets));
        settle(b);
        if (sent < 3) {
            expect_refused(&question, REFUSED_ROLLED_BACK, 3);
            assert_int_equal(logged(b, "and it knows of 2: its store was put back to an older copy"), 1);
            continue;
        }
        expect_stored(&question, 0); /* of those that came on this stream */
        feed_all(&question, RECORDS("a", "b", "c", "d"));
        settle(b);
        expect_stored(&question, 4);
    }
    assert_int_equal(seen_count, 4);
    bench_close(b);
}

static void a_retired_epoch_is_refused(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed old = feed_from(b, ANN, 0, 1);
    feed_all(&old, RECORDS("a", "b"));
    struct frame_open open = an_open(1, 1);
    memset(open.epoch, 2, sizeof open.epoch);
    struct feed new = feed_open(b, ANN, &open);
    settle(b);
    feed_all(&new, RECORDS("A"));
    settle(b);
    expect_stored(&old, 2);
    expect_stored(&new, 1);
    feed_all(&old, RECORDS("c"));
    settle(b);
    expect_refused(&old, REFUSED_RETIRED, 2);
    assert_int_equal(seen_count, 3);
    assert_int_equal(logged(b, "a link from ann to app 'dash' is refused: its epoch"), 1);
    bench_close(b);
}

static void two_peers_with_the_same_names_do_not_mix(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed ann = feed_from(b, ANN, 0, 1), bob = feed_from(b, BOB, 0, 1);
    feed_all(&ann, RECORDS("a", "b"));
    feed_all(&bob, RECORDS("A"));
    settle(b);
    expect_stored(&ann, 2);
    expect_stored(&bob, 1);
    assert_int_equal(seen_count, 3);
    assert_int_equal(counter_read(&b->apps[DASH].entry.report.duplicates), 0);
    assert_int_equal(b->apps[DASH].intake.streams.count, 2);
    bench_close(b);
}

/* A peer is its key: renamed, it goes on where it was. */
static void a_peer_that_is_renamed_goes_on(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a"));
    settle(b);
    b->peers[ANN].access.name = "anna";
    inlets_begin(&b->peers[ANN].inlets);
    f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a", "b"));
    settle(b);
    expect_stored(&f, 2);
    assert_int_equal(seen_count, 2);
    expect_seen(1, "anna/src/out", 2, "b");
    bench_close(b);
}

/* --- what is refused at once --- */

static void expect_open_refused(struct bench *b, const struct frame_open *open, uint64_t reason)
{
    struct feed f = feed_open(b, ANN, open);
    expect_refused(&f, reason, open->base);
    feed_end(&f);
    expect_no_streams(b);
}

static void an_app_that_is_not_there_or_not_allowed_is_refused(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct frame_open open = an_open(0, 8);
    open.target = span_text("nobody");
    expect_open_refused(b, &open, REFUSED_NO_APP);
    open.stream = 1;
    open.target = span_text("side");
    expect_open_refused(b, &open, REFUSED_NOT_ALLOWED);
    open.stream = 2;
    open.target = span_text("unlinked");
    expect_open_refused(b, &open, REFUSED_NOT_ALLOWED);
    open.stream = 3;
    open.target = span_text("");
    expect_open_refused(b, &open, REFUSED_NO_APP);
    b->peers[ANN].apps[SIDE] = true;
    open = an_open(4, 1);
    open.target = span_text("side");
    struct feed f = feed_open(b, ANN, &open);
    feed_all(&f, RECORDS("a"));
    settle(b);
    expect_stored(&f, 1);
    bench_close(b);
}

static void names_that_no_host_gives_are_refused(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    char long_name[FRAME_TEXT_BYTES];
    memset(long_name, 'x', sizeof long_name);
    const struct {
        const char *name;
        size_t size;
    } bad[] = {{"", 0},     {"a/b", 3},       {"a b", 3},
               {"a\0b", 3}, {"a\nb", 3},      {"a\x7f", 2},
               {"\t", 1},   {long_name, 191}, {long_name, FRAME_TEXT_BYTES}};
    uint32_t number = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        struct span name = span_of(bad[i].name, bad[i].size);
        struct frame_open app = an_open(number++, 1), output = an_open(number++, 1),
                          event = an_open(number++, 1);
        app.app = output.output = event.event = name;
        expect_open_refused(b, &app, REFUSED_NOT_ALLOWED);
        expect_open_refused(b, &output, REFUSED_NOT_ALLOWED);
        expect_open_refused(b, &event, REFUSED_NOT_ALLOWED);
    }
    struct frame_open longest = an_open(number++, 1);
    longest.app = span_of(long_name, SOURCE_NAME_MAX - strlen("link //out") - (HOST_KEY_PUBLIC_TEXT - 1));
    longest.event = span_of(long_name, EVENT_NAME_MAX);
    struct feed f = feed_open(b, ANN, &longest);
    feed_all(&f, RECORDS("a"));
    settle(b);
    expect_stored(&f, 1);
    longest.stream = number++;
    longest.app.size++;
    feed_end(&f);
    expect_open_refused(b, &longest, REFUSED_NOT_ALLOWED);
    assert_int_equal(logged(b, "are not such as hosts give"), 2); /* before and after a good one */
    bench_close(b);
}

static void a_peer_has_so_many_streams_and_no_more(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    assert_true(feed_put(&f, "send 4000", 0));
    assert_true(feed_put(&f, "send 4000", 0)); /* it waits: what follows stays in the inbox */
    feed_deliver(&f);
    settle(b);
    for (uint32_t i = 1; i < PEER_STREAMS; i++) {
        struct feed ended = feed_from(b, ANN, i % 8, 1 + i);
        feed_all(&ended, RECORDS("x"));
        settle(b);
        feed_end(&ended);
    }
    struct feed more = feed_from(b, ANN, 9, 1);
    expect_refused(&more, REFUSED_NO_ROOM, 0);
    struct feed bob = feed_from(b, BOB, 0, 1);
    expect_stored(&bob, 0); /* the other peer has its own */
    feed_end(&more);
    drain_outlet(b);
    settle(b);
    drain_outlet(b);
    settle(b);
    assert_int_equal(b->peers[ANN].access.streams, 1);
    more = feed_from(b, ANN, 17, 1);
    expect_stored(&more, 0);
    bench_close(b);
}

static void a_refusal_is_said_once_until_records_are_stored(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    uint32_t number = 0;
    for (unsigned i = 0; i < 5; i++) {
        struct frame_open open = an_open(number++, 1);
        open.target = span_text("side");
        expect_open_refused(b, &open, REFUSED_NOT_ALLOWED);
        open.stream = number++;
        open.target = span_text("nobody");
        expect_open_refused(b, &open, REFUSED_NO_APP);
    }
    assert_int_equal(logged(b, "a link from ann to app 'side' is refused: apps ="), 1);
    assert_int_equal(logged(b, "a link from ann to app 'nobody' is refused: there is no such app"), 1);
    b->peers[ANN].apps[SIDE] = true;
    struct frame_open open = an_open(number++, 1);
    open.target = span_text("side");
    struct feed f = feed_open(b, ANN, &open);
    feed_all(&f, RECORDS("a"));
    settle(b);
    b->peers[ANN].apps[SIDE] = false;
    open.stream = number++;
    struct feed again = feed_open(b, ANN, &open);
    expect_refused(&again, REFUSED_NOT_ALLOWED, 0);
    assert_int_equal(logged(b, "a link from ann to app 'side' is refused: apps ="), 2);
    bench_close(b);
}

static void a_peer_that_tries_many_targets_does_not_fill_the_log(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    char target[16];
    struct frame_open open = an_open(0, 1);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(target, sizeof target, "app%u", i);
        open.stream = i;
        open.target = span_text(target);
        assert_int_equal(inlets_open(&b->peers[ANN].inlets, &open), 0);
        struct frame_records end = {i, 0, span_of(NULL, 0)};
        assert_int_equal(inlets_records(&b->peers[ANN].inlets, &end), 0);
    }
    assert_int_equal(logged(b, "is refused"), LINK_REFUSALS_SAID);
    bench_close(b);
}

/* --- what the app refuses --- */

static void a_record_that_the_app_fails_ends_its_stream_behind_what_is_stored(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1), other = feed_from(b, BOB, 0, 1);
    feed_all(&f, RECORDS("a", "b", "fail", "d"));
    sim_run_for(b->sim, NS_PER_MS);  /* its first try */
    feed_all(&f, RECORDS("e", "f")); /* a run behind it, whose result is nobody's */
    feed_all(&other, RECORDS("A"));
    settle(b);
    expect_refused(&f, REFUSED_APP_FAILED, 2);
    expect_stored(&other, 1);
    assert_int_equal(seen_count, 3);
    assert_int_equal(b->peers[ANN].access.streams, 0);
    struct feed again = feed_from(b, ANN, 1, 3); /* behind the number it was told */
    feed_all(&again, RECORDS("c", "d"));
    settle(b);
    expect_stored(&again, 4);
    assert_int_equal(seen_count, 5);
    bench_close(b);
}

static void a_suspended_app_refuses_what_comes_and_what_is_there(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct frame_open open = an_open(0, 11);
    struct feed f = feed_open(b, ANN, &open);
    feed_all(&f, RECORDS("a"));
    settle(b);
    expect_stored(&f, 11);
    feed_all(&f, RECORDS("b"));
    atomic_store(&b->apps[DASH].entry.report.condition, APP_SUSPENDED);
    settle(b);
    expect_refused(&f, REFUSED_APP_SUSPENDED, 11);
    open.stream = 1;
    struct feed again = feed_open(b, ANN, &open);
    expect_refused(&again, REFUSED_APP_SUSPENDED, 10);
    assert_int_equal(seen_count, 1);
    bench_close(b);
}

static void more_identities_than_an_app_keeps_of_a_host_are_refused(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = {0};
    char output[16];
    for (uint32_t i = 0; i <= STREAMS_OWNER_MAX; i++) {
        snprintf(output, sizeof output, "out%u", i);
        inlets_begin(&b->peers[ANN].inlets);
        struct frame_open open = an_open(0, 1);
        open.output = span_text(output);
        f = feed_open(b, ANN, &open);
        feed_all(&f, RECORDS("a"));
        assert_int_equal(sim_run_for(b->sim, 10 * NS_PER_MS), SIM_TIME);
    }
    expect_refused(&f, REFUSED_NO_ROOM, 0);
    assert_int_equal(seen_count, STREAMS_OWNER_MAX);
    assert_true(b->li.stream_count <= 2); /* places for streams are used again */
    f = feed_from(b, BOB, 0, 1);
    feed_all(&f, RECORDS("b"));
    settle(b);
    expect_stored(&f, 1); /* others are not kept out */
    bench_close(b);
}

static void a_record_larger_than_the_inbox_is_refused_behind_what_is_stored(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a", "b"));
    settle(b);
    assert_true(feed_put(&f, "c", 60000)); /* just fits: not a quarter, but all of it */
    feed_deliver(&f);
    settle(b);
    assert_true(feed_put(&f, "d", 66000));
    assert_true(feed_put(&f, "e", 0));
    feed_deliver(&f);
    settle(b);
    expect_refused(&f, REFUSED_RECORD_TOO_LARGE, 3);
    assert_int_equal(seen_count, 3);
    assert_int_equal(seen[2].size, 60000);
    bench_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_reach_their_app_and_stored_numbers_come_back),
        cmocka_unit_test(records_of_a_later_stream_count_once),
        cmocka_unit_test(duplicates_are_told_of_as_they_come),
        cmocka_unit_test(records_that_their_sender_lost_are_passed_over_and_said),
        cmocka_unit_test(a_gap_is_refused_with_the_number_that_the_app_has),
        cmocka_unit_test(a_question_is_answered_by_the_app),
        cmocka_unit_test(a_retired_epoch_is_refused),
        cmocka_unit_test(two_peers_with_the_same_names_do_not_mix),
        cmocka_unit_test(a_peer_that_is_renamed_goes_on),
        cmocka_unit_test(an_app_that_is_not_there_or_not_allowed_is_refused),
        cmocka_unit_test(names_that_no_host_gives_are_refused),
        cmocka_unit_test(a_peer_has_so_many_streams_and_no_more),
        cmocka_unit_test(a_refusal_is_said_once_until_records_are_stored),
        cmocka_unit_test(a_peer_that_tries_many_targets_does_not_fill_the_log),
        cmocka_unit_test(a_record_that_the_app_fails_ends_its_stream_behind_what_is_stored),
        cmocka_unit_test(a_suspended_app_refuses_what_comes_and_what_is_there),
        cmocka_unit_test(more_identities_than_an_app_keeps_of_a_host_are_refused),
        cmocka_unit_test(a_record_larger_than_the_inbox_is_refused_behind_what_is_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
