/* What lies in a store's directory and is none of its own, under names that segments have. */
#include "journal/fsck.h"
#include "tests/unit/store_build.h"
#include "tests/unit/temp_directory.h"

#include <sodium.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct journal_place no_seal;

static void build_one(struct memory_files *disk)
{
    memory_init(disk);
    memory_make(disk, BUILD_PATH)->directory = true;
    struct build b = build_segment(disk, 1, no_seal);
    build_commit(&b, "a", 1, 1, 1);
    build_batch(&b);
    build_end(&b);
}

static void a_file_that_was_put_there_does_not_use_up_the_numbers(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    build_one(&disk);
    char name[SEGMENT_NAME_SIZE];
    segment_name(SEGMENT_NUMBER_MAX, name);
    struct memory_file *copy = memory_make(&disk, name);
    memory_resize(copy, 4096);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.report.foreign_files, 1);
    assert_non_null(strstr(said.text, name));
    assert_int_equal(store_new_number(&s), 2);
    store_close(&s);
    memory_dispose(&disk);
}

static void a_number_that_a_frame_proves_counts_however_high(void **state)
{
    (void)state;
    struct memory_files disk;
    struct said said;
    struct store s;
    build_one(&disk);
    struct build b = build_segment(&disk, SEGMENT_NUMBER_MAX - 8, no_seal);
    build_commit(&b, "a", 9, 1, 1);
    build_batch(&b);
    build_end(&b);
    assert_int_equal(build_open(&s, &disk, &said), 0);
    assert_int_equal(s.count, 2);
    assert_true(store_new_number(&s) == SEGMENT_NUMBER_MAX - 7);
    store_close(&s);
    memory_dispose(&disk);
}

/* A pipe, read as a file, would keep a start waiting for ever; a link could lead to anything. */
static void what_is_no_file_is_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"0000000000000002.journal", "0000000000000003.journal",
                                        "0000000000000004.journal"};
    struct said said = {0};
    struct store s;
    char path[40], why[256];
    int directory = temp_directory();
    snprintf(path, sizeof path, "/proc/self/fd/%d", directory);
    assert_int_equal(mkfifoat(directory, names[0], 0600), 0);
    assert_int_equal(symlinkat("/dev/zero", directory, names[1]), 0);
    assert_int_equal(mkdirat(directory, names[2], 0700), 0);
    assert_int_equal(store_open(&s,
                                &(struct store_options){.files = files_system(),
                                                        .path = path,
                                                        .fill_random = build_random,
                                                        .say = build_say,
                                                        .say_context = &said},
                                why, sizeof why),
                     0);
    assert_int_equal(s.count, 0);
    assert_int_equal(s.report.foreign_files, 3);
    assert_int_equal(said.serious, 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_non_null(strstr(said.text, names[i]));
    assert_int_equal(store_new_number(&s), 5);
    store_close(&s);
    close(directory);
}

/* Two hosts in one store would both acknowledge, and one of them for nothing. */
static void a_store_stays_locked_though_its_lock_is_removed(void **state)
{
    (void)state;
    struct store first, second;
    char path[40], why[256];
    int directory = temp_directory();
    snprintf(path, sizeof path, "/proc/self/fd/%d", directory);
    struct store_options options = {.files = files_system(), .path = path, .fill_random = build_random};
    assert_int_equal(store_open(&first, &options, why, sizeof why), 0);
    assert_int_equal(unlinkat(directory, "lock", 0), 0);
    assert_int_equal(store_open(&second, &options, why, sizeof why), PE_JOURNAL_LOCKED);
    struct fsck_report report;
    struct said said = {.size = 0};
    assert_int_equal(fsck_store(files_system(), path, true, build_line, &said, &report), PE_JOURNAL_LOCKED);
    assert_true(report.running);
    store_close(&first);
    assert_int_equal(store_open(&second, &options, why, sizeof why), 0);
    store_close(&second);
    close(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_was_put_there_does_not_use_up_the_numbers),
        cmocka_unit_test(a_number_that_a_frame_proves_counts_however_high),
        cmocka_unit_test(what_is_no_file_is_left_alone),
        cmocka_unit_test(a_store_stays_locked_though_its_lock_is_removed),
    };
    temp_make();
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
