/* The cursors of streams, and idempotency keys. */
#include "host/keys.h"
#include "host/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct run run_of(const char *source, uint8_t epoch, uint64_t base)
{
    struct run run = {.kind = RUN_STREAM, .base = base, .source = span_text(source)};
    memset(run.epoch, epoch, sizeof run.epoch);
    return run;
}

static struct stream_cursor *find(struct streams *s, struct run run, enum stream_news expected)
{
    struct stream_cursor *cursor;
    enum stream_news news;
    assert_int_equal(streams_find(s, &run, &cursor, &news), 0);
    assert_int_equal(news, expected);
    return cursor;
}

static void a_stream_is_known_by_its_whole_name(void **state)
{
    (void)state;
    struct streams s = {0};
    find(&s, run_of("pi/a/out", 1, 0), STREAM_NEW)->stored = 7;
    find(&s, run_of("pi/a/out2", 1, 0), STREAM_NEW);
    find(&s, run_of("pi/a/ou", 1, 0), STREAM_NEW);
    assert_int_equal(find(&s, run_of("pi/a/out", 1, 0), STREAM_KNOWN)->stored, 7);
    streams_dispose(&s);
}

/* The name that is shown may change, and be another's: the identity is what counts. */
static void a_stream_with_an_identity_is_known_by_that(void **state)
{
    (void)state;
    struct streams s = {0};
    struct run wire = run_of("pi/a/out", 1, 0), link = wire, other = wire;
    link.identity = span_text("link KEY/a/out");
    other.identity = span_text("link KEZ/a/out");
    find(&s, wire, STREAM_NEW)->stored = 1;
    find(&s, link, STREAM_NEW)->stored = 2;
    find(&s, other, STREAM_NEW)->stored = 3;
    link.source = span_text("pie/a/out");
    assert_int_equal(find(&s, link, STREAM_KNOWN)->stored, 2);
    assert_int_equal(find(&s, wire, STREAM_KNOWN)->stored, 1);
    assert_int_equal(find(&s, other, STREAM_KNOWN)->stored, 3);
    streams_dispose(&s);
}

static void a_new_epoch_counts_anew_and_retires_the_old_one(void **state)
{
    (void)state;
    struct streams s = {0};
    find(&s, run_of("pi/a/out", 1, 0), STREAM_NEW)->stored = 7;
    assert_int_equal(find(&s, run_of("pi/a/out", 2, 0), STREAM_NEW_EPOCH)->stored, 0);
    struct run late = run_of("pi/a/out", 1, 0);
    struct stream_cursor *cursor;
    enum stream_news news;
    assert_int_equal(streams_find(&s, &late, &cursor, &news), PE_STREAM_RETIRED);
    for (uint8_t epoch = 3; epoch < 3 + RETIRED_EPOCHS; epoch++)
        find(&s, run_of("pi/a/out", epoch, 0), STREAM_NEW_EPOCH);
    late = run_of("pi/a/out", 3, 0);
    assert_int_equal(streams_find(&s, &late, &cursor, &news), PE_STREAM_RETIRED);
    streams_dispose(&s);
}

static int found(struct streams *s, uint8_t epoch, uint64_t fresh_ns)
{
    struct run run = run_of("pi/a/out", epoch, 0);
    struct stream_cursor *cursor;
    enum stream_news news;
    run.identity = span_text("link KEY/a/out");
    run.fresh_ns = fresh_ns;
    return streams_find(s, &run, &cursor, &news);
}

/* However many epochs there were since, and however young the ticket that it was sent with. */
static void a_captured_run_begins_no_epoch_again(void **state)
{
    (void)state;
    struct streams s = {0};
    uint8_t last = 3 + 2 * RETIRED_EPOCHS;
    for (uint8_t epoch = 1; epoch <= last; epoch++) {
        assert_int_equal(found(&s, epoch, 10 * epoch), 0);
        assert_int_equal(found(&s, epoch, 10 * epoch + 5), 0); /* with a younger one */
    }
    for (uint8_t epoch = 1; epoch < last; epoch++) {
        bool remembered = epoch >= last - RETIRED_EPOCHS;
        assert_int_equal(found(&s, epoch, 10 * epoch), remembered ? PE_STREAM_RETIRED : PE_STREAM_STALE);
        assert_int_equal(found(&s, epoch, 10 * epoch + 5), remembered ? PE_STREAM_RETIRED : PE_STREAM_STALE);
    }
    assert_int_equal(found(&s, last, 10), 0); /* of the epoch itself: numbers take care of it */
    assert_int_equal(found(&s, last + 1, 10 * last + 5), PE_STREAM_STALE);
    assert_int_equal(found(&s, last + 1, 10 * last + 6), 0);
    streams_dispose(&s);
}

/* Links have no tickets, and need none. */
static void runs_that_were_not_sealed_begin_epochs_as_ever(void **state)
{
    (void)state;
    struct streams s = {0};
    assert_int_equal(found(&s, 1, 100), 0);
    assert_int_equal(found(&s, 2, 0), 0);
    assert_int_equal(found(&s, 3, 100), PE_STREAM_STALE);
    streams_dispose(&s);
}

static void what_the_sender_was_told_is_never_asked_for_again(void **state)
{
    (void)state;
    struct streams s = {0};
    assert_int_equal(find(&s, run_of("pi/a/out", 1, 50), STREAM_NEW)->stored, 50);
    assert_int_equal(find(&s, run_of("pi/a/out", 1, 60), STREAM_ROLLED_BACK)->stored, 60);
    assert_int_equal(find(&s, run_of("pi/a/out", 1, 55), STREAM_KNOWN)->stored, 60);
    streams_dispose(&s);
}

static void a_sender_that_has_sent_less_than_is_stored_has_an_older_store(void **state)
{
    (void)state;
    struct streams s = {0};
    struct stream_cursor *cursor;
    enum stream_news news;
    find(&s, run_of("pi/a/out", 1, 0), STREAM_NEW)->stored = 7;
    for (uint64_t sent = 0; sent < 7; sent++) {
        struct run run = run_of("pi/a/out", 1, 3);
        run.asks = sent + 1;
        assert_int_equal(streams_find(&s, &run, &cursor, &news), PE_STREAM_ROLLED_BACK);
        assert_int_equal(cursor->stored, 7);
    }
    struct run run = run_of("pi/a/out", 1, 0);
    run.asks = 7 + 1;
    assert_int_equal(find(&s, run, STREAM_KNOWN)->stored, 7);
    memset(run.epoch, 2, sizeof run.epoch);
    run.asks = 1;
    assert_int_equal(find(&s, run, STREAM_NEW_EPOCH)->stored, 0); /* there is nothing it could be behind */
    streams_dispose(&s);
}

static void the_table_is_bounded(void **state)
{
    (void)state;
    struct streams s = {0};
    char name[40];
    for (int i = 0; i < STREAMS_MAX; i++) {
        snprintf(name, sizeof name, "host-%d/a/out", i);
        find(&s, run_of(name, 1, 0), STREAM_NEW)->stored = (uint64_t)i;
    }
    struct run one_more = run_of("another/a/out", 1, 0);
    struct stream_cursor *cursor;
    enum stream_news news;
    assert_int_equal(streams_find(&s, &one_more, &cursor, &news), PE_FULL);
    assert_int_equal(find(&s, run_of("host-5/a/out", 1, 0), STREAM_KNOWN)->stored, 5);
    streams_dispose(&s);
}

static void one_host_cannot_keep_others_out(void **state)
{
    (void)state;
    struct streams s = {0};
    char name[40];
    struct stream_cursor *cursor;
    enum stream_news news;
    for (int i = 0; i < STREAMS_OWNER_MAX; i++) {
        snprintf(name, sizeof name, "host/a/out%d", i);
        find(&s, run_of(name, 1, 0), STREAM_NEW);
    }
    struct run one_more = run_of("host/b/out", 1, 0);
    assert_int_equal(streams_find(&s, &one_more, &cursor, &news), PE_FULL);
    find(&s, run_of("host/a/out7", 1, 0), STREAM_KNOWN);
    find(&s, run_of("host2/a/out", 1, 0), STREAM_NEW);
    streams_dispose(&s);
}

static struct span key_of(char *text, size_t size, int i)
{
    return span_of(text, (size_t)snprintf(text, size, "key-%d", i));
}

static void the_last_keys_are_remembered_and_older_ones_forgotten(void **state)
{
    (void)state;
    struct keys k = {0};
    char text[40];
    uint64_t stored;
    assert_false(keys_find(&k, span_text("key-0"), &stored));
    for (int i = 0; i < 3 * KEYS_MAX; i++) {
        assert_int_equal(keys_add(&k, key_of(text, sizeof text, i), (uint64_t)i * 2), 0);
        int oldest = i < KEYS_MAX ? 0 : i - KEYS_MAX + 1;
        assert_true(keys_find(&k, key_of(text, sizeof text, oldest), &stored));
        assert_int_equal(stored, (uint64_t)oldest * 2);
        assert_true(keys_find(&k, key_of(text, sizeof text, i), &stored));
        if (oldest > 0)
            assert_false(keys_find(&k, key_of(text, sizeof text, oldest - 1), &stored));
    }
    keys_dispose(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_known_by_its_whole_name),
        cmocka_unit_test(a_stream_with_an_identity_is_known_by_that),
        cmocka_unit_test(a_new_epoch_counts_anew_and_retires_the_old_one),
        cmocka_unit_test(a_captured_run_begins_no_epoch_again),
        cmocka_unit_test(runs_that_were_not_sealed_begin_epochs_as_ever),
        cmocka_unit_test(what_the_sender_was_told_is_never_asked_for_again),
        cmocka_unit_test(a_sender_that_has_sent_less_than_is_stored_has_an_older_store),
        cmocka_unit_test(the_table_is_bounded),
        cmocka_unit_test(one_host_cannot_keep_others_out),
        cmocka_unit_test(the_last_keys_are_remembered_and_older_ones_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
