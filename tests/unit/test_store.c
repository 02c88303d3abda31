/* A store: opening it, its segments and seals, holds and removal. */
#include "tests/unit/store_build.h"

#include <sodium.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct journal_place no_seal;

static void a_store_that_is_not_there_is_made(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    memory_init(&disk);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_non_null(memory_find(&disk, BUILD_PATH));
    assert_non_null(memory_find(&disk, "lock"));
    assert_int_equal(memory_find(&disk, ".")->syncs, 1); /* its name is durable */
    assert_true(s.id == UINT64_C(0x5a5a5a5a5a5a5a5a));
    assert_int_equal(store_new_number(&s), 1);
    assert_int_equal(store_new_number(&s), 2);
    assert_int_equal(said.lines, 0);
    store_close(&s);
    assert_int_equal(memory_open_count(&disk), 0);
    memory_dispose(&disk);
}

static void a_store_is_opened_once(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s, other;
    memory_init(&disk);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(build_open(&other, &disk, &said), PE_JOURNAL_LOCKED);
    struct store_options look = build_options(&disk, &said);
    char why[256];
    look.read_only = true;
    assert_int_equal(store_open(&other, &look, why, sizeof why), 0);
    store_close(&other);
    store_close(&s);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    store_close(&s);
    assert_int_equal(memory_open_count(&disk), 0);
    memory_dispose(&disk);
}

static void the_names_of_segments_are_read_as_they_are_written(void **state)
{
    (void)state;
    const uint64_t numbers[] = {1, 0xabcdef, SEGMENT_NUMBER_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        char name[SEGMENT_NAME_SIZE];
        uint64_t number;
        segment_name(numbers[i], name);
        assert_true(segment_number(name, &number) && number == numbers[i]);
    }
    const char *const none[] = {"0000000000000000.journal",
                                "8000000000000000.journal",
                                "1.journal",
                                "",
                                "000000000000000A.journal",
                                "0000000000000001.journa",
                                "0000000000000001.journal2",
                                "00000000000000 1.journal"};
    for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
        uint64_t number;
        assert_false(segment_number(none[i], &number));
    }
}

/* 1, sealed and named by 2, sealed but named by nobody; 3, not sealed. */
static void build_three(struct memory_files *disk)
{
    memory_init(disk);
    memory_make(disk, BUILD_PATH)->directory = true;
    struct build b = build_segment(disk, 1, no_seal);
    build_commit(&b, "a", 1, 1, 2);
    build_commit(&b, "b", 1, 1, 1);
    build_batch(&b);
    build_commit(&b, "a", 2, 3, 2);
    build_batch(&b);
    struct journal_place place = build_seal(&b);
    b = build_segment(disk, 2, place);
    build_commit(&b, "a", 3, 5, 1);
    build_batch(&b);
    build_seal(&b);
    b = build_segment(disk, 3, no_seal);
    build_commit(&b, "a", 4, 6, 3);
    build_batch(&b);
    build_end(&b);
}

static void what_segments_hold_is_known_by_seals_or_by_reading(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    build_three(&disk);
    uint64_t bytes = 0;
    for (int i = 0; i < MEMORY_FILES; i++)
        bytes += disk.file[i].size;
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_true(s.id == BUILD_STORE);
    assert_int_equal(s.count, 3);
    assert_true(s.bytes == bytes);
    assert_int_equal(said.lines, 0);
    assert_int_equal(s.segments[0]->seal.app_count, 2);
    assert_int_equal(seal_find_app(&s.segments[0]->seal, span_text("a"))->last_sequence, 2);
    assert_int_equal(seal_find_app(&s.segments[1]->seal, span_text("a"))->first_sequence, 3);
    assert_int_equal(seal_find_app(&s.segments[2]->seal, span_text("a"))->last_sequence, 4);
    assert_int_equal(store_new_number(&s), 4);
    store_close(&s);
    memory_dispose(&disk);
}

static void a_segment_with_a_seal_that_is_named_is_not_read(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    build_three(&disk);
    struct memory_file *first = memory_find(&disk, "0000000000000001.journal");
    first->bad_from = 80; /* behind its HEADER, in front of its seal */
    first->bad_to = 200;
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(said.lines, 0);
    assert_int_equal(s.segments[0]->seal.app_count, 2);
    store_close(&s);
    memory_dispose(&disk);
}

static void a_segment_without_a_seal_gets_one_and_headers_name_it(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    struct journal_place seals[8];
    build_three(&disk);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(disk.writes, 1);
    /* the two that no HEADER names, then the old one again */
    assert_int_equal(store_take_seals(&s, seals, 2), 2);
    assert_int_equal(seals[0].segment, 2);
    assert_int_equal(seals[1].segment, 3);
    assert_int_equal(store_take_seals(&s, seals, 8), 3);
    assert_int_equal(seals[0].segment, 1);
    store_close(&s);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(disk.writes, 1); /* it is found by reading */
    assert_int_equal(s.segments[2]->place.offset, s.segments[2]->end);
    assert_int_equal(store_take_seals(&s, seals, 8), 3);
    assert_int_equal(seals[0].segment, 2);
    store_close(&s);
    memory_dispose(&disk);
}

static void what_was_set_aside_behind_a_seal_is_given_back(void **state)
{
    (void)state;
    struct memory_files disk;
    memory_init(&disk);
    struct build b = build_segment(&disk, 1, (struct journal_place){0, 0});
    build_commit(&b, "app", 1, 1, 10);
    build_batch(&b);
    memory_resize(build_file(&b), SEGMENT_BYTES_MIN);
    struct store s;
    struct said said;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(build_open(&s, &disk, &said), 0);
        const struct memory_file *file = build_file(&b);
        assert_true(file->size > b.at && file->size < b.at + 1024);
        assert_int_equal(s.segments[0]->bytes, file->size);
        assert_int_equal(s.bytes, file->size);
        assert_int_equal(s.segments[0]->end, b.at);
        store_close(&s);
    }
    build_end(&b);
    memory_dispose(&disk);
}

static void an_end_that_no_seal_can_be_written_to_is_no_error(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        struct memory_files disk;
        struct said said;
        struct store s;
        build_three(&disk);
        memory_make(&disk, "lock");
        disk.full = full;
        disk.read_only = !full;
        assert_int_equal(build_open(&s, &disk, &said), 0);
        assert_int_equal(s.segments[2]->place.offset, 0);
        assert_int_equal(seal_find_app(&s.segments[2]->seal, span_text("a"))->last_sequence, 4);
        store_close(&s);
        assert_int_equal(memory_open_count(&disk), 0);
        memory_dispose(&disk);
    }
}

static void an_unfinished_write_is_told_mildly_and_sealed_off(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    build_three(&disk);
    struct memory_file *last = memory_find(&disk, "0000000000000003.journal");
    size_t end = last->size;
    memory_resize(last, end + 4096);
    memset(last->data + end, 7, 300);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(s.report.torn_segments, 1);
    assert_true(s.report.torn_bytes >= 300);
    assert_int_equal(s.report.damaged_places, 0);
    assert_int_equal(said.lines, 1);
    assert_int_equal(said.serious, 0);
    store_close(&s);
    assert_null(memory_find(&disk, "damaged"));
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(said.lines, 0);
    store_close(&s);
    memory_dispose(&disk);
}

static void segments_that_were_never_written_are_removable(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    uint64_t number;
    build_three(&disk);
    memory_make(&disk, "0000000000000004.journal");
    memory_resize(memory_make(&disk, "0000000000000005.journal"), 100000);
    memory_make(&disk, "0000000000000006.journal");
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(said.lines, 0);
    for (uint64_t n = 1; n <= 3; n++)
        store_hold(&s, n);
    assert_true(store_take_removable(&s, &number) && number == 4);
    store_removed(&s, 4);
    uint64_t bytes = s.bytes;
    assert_true(store_take_removable(&s, &number) && number == 5);
    store_removed(&s, 5);
    assert_true(s.bytes == bytes - 100000);
    assert_false(store_take_removable(&s, &number)); /* the newest stays: numbers go on from it */
    assert_int_equal(store_new_number(&s), 7);
    store_close(&s);
    memory_dispose(&disk);
}

static void files_of_others_are_left_alone(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    build_three(&disk);
    struct build b = build_segment(&disk, 9, no_seal);
    b.store = 77;
    memory_resize(build_file(&b), 0);
    b.at = 0;
    build_commit(&b, "stranger", 1, 1, 1);
    build_batch(&b);
    build_end(&b);
    memory_make(&disk, "notes.txt");
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_true(s.id == BUILD_STORE);
    assert_int_equal(s.count, 3);
    assert_int_equal(s.report.foreign_files, 2);
    assert_int_equal(said.lines, 2);
    assert_int_equal(said.serious, 0);
    assert_non_null(strstr(said.text, "notes.txt"));
    assert_non_null(strstr(said.text, "0000000000000009.journal"));
    assert_int_equal(store_new_number(&s), 10); /* never over a file that is there */
    store_close(&s);
    memory_dispose(&disk);
}

static void a_newer_format_is_refused_by_name(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    build_three(&disk);
    struct build b = build_segment(&disk, 4, no_seal);
    memory_resize(build_file(&b), 0);
    b.at = 0;
    frame_begin(&b.frames, FRAME_HEADER);
    frame_put_u32(&b.frames, JOURNAL_VERSION + 1);
    frame_put_u64(&b.frames, 3);
    frame_end(&b.frames);
    build_batch(&b);
    build_end(&b);
    struct store_options options = build_options(&disk, &said);
    char why[256];
    assert_int_equal(store_open(&s, &options, why, sizeof why), PE_JOURNAL_VERSION);
    assert_non_null(strstr(why, "0000000000000004.journal"));
    assert_non_null(strstr(why, "version 3"));
    assert_int_equal(memory_open_count(&disk), 0);
    memory_dispose(&disk);
}

static void what_cannot_be_read_is_reported_and_left_alone(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    uint64_t number;
    build_three(&disk);
    struct memory_file *last = memory_find(&disk, "0000000000000003.journal");
    last->bad_to = last->size;
    memory_make(&disk, "0000000000000004.journal");
    uint64_t writes = disk.writes;
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(s.count, 4);
    assert_int_equal(s.report.damaged_places, 1);
    assert_int_equal(s.report.damaged_bytes, last->size);
    assert_int_equal(said.serious, 1);
    assert_int_equal(disk.writes, writes);
    store_hold(&s, 1);
    store_hold(&s, 2);
    assert_false(store_take_removable(&s, &number));
    store_close(&s);
    memory_dispose(&disk);
}

static void a_segment_goes_when_nobody_needs_it(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    struct segment *segment;
    uint64_t number;
    memory_init(&disk);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    for (uint64_t n = 1; n <= 3; n++)
        assert_int_equal(store_begin(&s, store_new_number(&s), 1000 * n, &segment), 0);
    assert_true(s.bytes == 6000);
    assert_false(store_take_removable(&s, &number)); /* their writers hold them */
    store_hold(&s, 1);
    store_hold(&s, 1);
    store_sealed(&s, s.segments[0], 512);
    store_sealed(&s, s.segments[1], 0);
    assert_true(store_take_removable(&s, &number) && number == 2);
    assert_false(store_take_removable(&s, &number)); /* it is being removed */
    store_not_removed(&s, 2);
    assert_true(store_take_removable(&s, &number) && number == 2);
    store_removed(&s, 2);
    store_release(&s, 1);
    assert_false(store_take_removable(&s, &number));
    store_release(&s, 1);
    assert_true(store_take_removable(&s, &number) && number == 1);
    store_removed(&s, 1);
    struct journal_place seals[4];
    assert_int_equal(store_take_seals(&s, seals, 4), 0); /* its seal is gone, too */
    assert_true(s.bytes == 3000 && s.count == 1);
    store_close(&s);
    memory_dispose(&disk);
}

static bool keep_first(void *context, const struct segment *segment)
{
    (void)context;
    return segment->number == 1;
}

static void a_kept_history_holds_segments(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    uint64_t number;
    build_three(&disk);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    s.kept = keep_first;
    assert_true(store_take_removable(&s, &number) && number == 2);
    s.kept = NULL;
    assert_true(store_take_removable(&s, &number) && number == 1);
    store_close(&s);
    memory_dispose(&disk);
}

struct found_sends {
    struct store_sends sends[8];
    unsigned count;
};

static void find_sends(void *context, const struct store_sends *sends)
{
    struct found_sends *found = context;
    assert_true(found->count < ARRAY_SIZE(found->sends));
    found->sends[found->count++] = *sends;
}

static void the_segments_with_an_outputs_records_are_found_in_order(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    build_three(&disk);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    struct found_sends found = {.count = 0};
    store_each_sends(&s, "a", "out", 2, find_sends, &found);
    assert_int_equal(found.count, 3);
    assert_int_equal(found.sends[0].segment, 1);
    assert_int_equal(found.sends[0].first, 1);
    assert_int_equal(found.sends[0].last, 4);
    assert_int_equal(found.sends[0].bytes, 8);
    assert_int_equal(found.sends[2].first, 6);
    assert_int_equal(found.sends[2].last, 8);
    found.count = 0;
    store_each_sends(&s, "a", "out", 5, find_sends, &found);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.sends[0].segment, 3);
    found.count = 0;
    store_each_sends(&s, "a", "none", 0, find_sends, &found);
    store_each_sends(&s, "none", "out", 0, find_sends, &found);
    assert_int_equal(found.count, 0);
    store_close(&s);
    memory_dispose(&disk);
}

static void name_app(void *context, const char *app)
{
    strcat(context, app);
}

static void each_app_is_named_once(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    char names[64] = "";
    build_three(&disk);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(store_each_app(&s, name_app, names), 0);
    assert_string_equal(names, "ab");
    store_close(&s);
    memory_dispose(&disk);
}

static void the_epoch_is_of_the_store_and_does_not_tell_its_id(void **state)
{
    (void)state;
    struct store s = {.id = 1}, t = {.id = 2};
    uint8_t a[JOURNAL_EPOCH_BYTES], b[JOURNAL_EPOCH_BYTES], c[JOURNAL_EPOCH_BYTES];
    store_epoch(&s, a);
    store_epoch(&s, b);
    store_epoch(&t, c);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    assert_true(a[0] != 1 || a[1] != 0);
}

static void a_large_segment_is_read_from_front_to_end(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    build_three(&disk);
    struct build b = build_segment(&disk, 4, no_seal);
    for (uint64_t n = 1; n <= 20000; n++) {
        build_commit(&b, "large", n, n * 20, 20);
        if (n % 100 == 0)
            build_batch(&b);
    }
    uint64_t written = b.at;
    memory_resize(build_file(&b), 16u << 20); /* as it was set aside */
    build_end(&b);
    disk.read_bytes = disk.reads = 0;
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_true(written > 2u << 20);
    assert_true(disk.read_bytes < (16u << 20) + (1u << 20)); /* once */
    assert_true(disk.reads < 200);
    assert_int_equal(said.lines, 0);
    store_close(&s);
    memory_dispose(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_that_is_not_there_is_made),
        cmocka_unit_test(a_store_is_opened_once),
        cmocka_unit_test(the_names_of_segments_are_read_as_they_are_written),
        cmocka_unit_test(what_segments_hold_is_known_by_seals_or_by_reading),
        cmocka_unit_test(a_segment_with_a_seal_that_is_named_is_not_read),
        cmocka_unit_test(a_segment_without_a_seal_gets_one_and_headers_name_it),
        cmocka_unit_test(what_was_set_aside_behind_a_seal_is_given_back),
        cmocka_unit_test(an_end_that_no_seal_can_be_written_to_is_no_error),
        cmocka_unit_test(an_unfinished_write_is_told_mildly_and_sealed_off),
        cmocka_unit_test(segments_that_were_never_written_are_removable),
        cmocka_unit_test(files_of_others_are_left_alone),
        cmocka_unit_test(a_newer_format_is_refused_by_name),
        cmocka_unit_test(what_cannot_be_read_is_reported_and_left_alone),
        cmocka_unit_test(a_segment_goes_when_nobody_needs_it),
        cmocka_unit_test(a_kept_history_holds_segments),
        cmocka_unit_test(the_segments_with_an_outputs_records_are_found_in_order),
        cmocka_unit_test(each_app_is_named_once),
        cmocka_unit_test(the_epoch_is_of_the_store_and_does_not_tell_its_id),
        cmocka_unit_test(a_large_segment_is_read_from_front_to_end),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
