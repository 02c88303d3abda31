/* fsck: what it finds that is no damage of bytes, and what a repair does about it. */
#include "tests/unit/store_model.h"

#include <sodium.h>

static void a_missing_segment_is_noticed_and_marked_by_a_repair(void **state)
{
    (void)state;
    struct model m;
    struct fsck_report report;
    struct said said;
    build_model(&m);
    memory_unlink(&m.disk.files, AT_FDCWD, "0000000000000002.journal");
    assert_int_equal(run_fsck(&m.disk, false, &report, &said), PE_JOURNAL);
    assert_int_equal(report.damaged_places, 0);
    assert_int_equal(report.lost_commits, 3); /* a: 3 and 4, b: 2 */
    assert_int_equal(report.lost_records, 4); /* of those it is not known that they were stored */
    assert_true(report.unexplained > 0);
    assert_non_null(strstr(said.text, "app a: commits 3 to 4 are lost"));
    assert_non_null(strstr(said.text, "app a, output out: records 4 to 6 are lost"));
    assert_int_equal(run_fsck(&m.disk, true, &report, &said), 0);
    assert_int_equal(run_fsck(&m.disk, false, &report, &said), 0);
    assert_non_null(strstr(said.text, "as was found before"));
    memory_dispose(&m.disk);
}

static void a_seal_that_does_not_say_what_is_there_is_corrected(void **state)
{
    (void)state;
    for (int less = 0; less < 2; less++) {
        struct memory_files disk;
        struct fsck_report report;
        struct said said;
        memory_init(&disk);
        memory_make(&disk, BUILD_PATH)->directory = true;
        struct build b = build_segment(&disk, 1, (struct journal_place){0, 0});
        build_commit(&b, "a", 1, 1, 1);
        build_commit(&b, "a", 2, 2, 1);
        build_batch(&b);
        b.seal.apps[0].last_sequence = less ? 1 : 3;
        build_seal(&b);
        assert_int_equal(run_fsck(&disk, false, &report, &said), PE_JOURNAL);
        assert_int_equal(report.wrong_seals, 1);
        assert_int_equal(report.damaged_places, 0);
        assert_int_equal(run_fsck(&disk, true, &report, &said), 0);
        assert_int_equal(run_fsck(&disk, false, &report, &said), 0);
        memory_dispose(&disk);
    }
}

static void records_that_are_not_whole_are_found(void **state)
{
    (void)state;
    struct memory_files disk;
    struct fsck_report report;
    struct said said;
    static const uint8_t cut[] = {5, 'x', 'y'};
    memory_init(&disk);
    memory_make(&disk, BUILD_PATH)->directory = true;
    struct build b = build_segment(&disk, 1, (struct journal_place){0, 0});
    struct section section = {.type = SECTION_SENDS,
                              .sends = {span_text("out"), 1, 1, span_of(cut, sizeof cut)}};
    commit_begin(&b.frames, FRAME_COMMIT, span_text("a"), 1);
    commit_put(&b.frames, &section);
    commit_end(&b.frames, 1);
    build_batch(&b);
    build_end(&b);
    assert_int_equal(run_fsck(&disk, false, &report, &said), PE_JOURNAL);
    assert_int_equal(report.wrong_frames, 1);
    memory_dispose(&disk);
}

static void records_that_their_receiver_stored_are_not_missed(void **state)
{
    (void)state;
    struct memory_files disk;
    struct fsck_report report;
    struct said said;
    memory_init(&disk);
    memory_make(&disk, BUILD_PATH)->directory = true;
    struct build b = build_segment(&disk, 7, (struct journal_place){0, 0});
    build_snapshot(&b, "a", 40, 100, 90);
    build_commit(&b, "a", 41, 96, 5);
    build_batch(&b);
    build_seal(&b);
    assert_int_equal(run_fsck(&disk, false, &report, &said), PE_JOURNAL);
    assert_int_equal(report.lost_records, 5); /* 91 to 95 */
    assert_int_equal(report.lost_commits, 0);
    memory_dispose(&disk);
}

static void a_store_in_use_is_examined_and_not_repaired(void **state)
{
    (void)state;
    struct model m;
    struct fsck_report report;
    struct said said;
    struct store s;
    build_model(&m);
    assert_int_equal(build_open(&s, &m.disk, &said), 0);
    segment_file(&m.disk, 2)->data[200] ^= 1;
    said = (struct said){.size = 0};
    assert_int_equal(fsck_store(&m.disk.files, BUILD_PATH, false, build_line, &said, &report), PE_JOURNAL);
    assert_true(report.running);
    uint64_t writes = m.disk.writes;
    assert_int_equal(fsck_store(&m.disk.files, BUILD_PATH, true, build_line, &said, &report),
                     PE_JOURNAL_LOCKED);
    assert_int_equal(m.disk.writes, writes);
    store_close(&s);
    assert_int_equal(run_fsck(&m.disk, true, &report, &said), 0);
    assert_false(report.running);
    memory_dispose(&m.disk);
}

static void a_repair_that_cannot_be_written_says_so(void **state)
{
    (void)state;
    struct model m;
    struct fsck_report report;
    struct said said;
    build_model(&m);
    memory_make(&m.disk, "lock");
    segment_file(&m.disk, 1)->data[100] ^= 1;
    m.disk.full = true;
    assert_int_equal(run_fsck(&m.disk, true, &report, &said), PE_JOURNAL);
    m.disk.full = false;
    assert_int_equal(run_fsck(&m.disk, true, &report, &said), 0);
    memory_dispose(&m.disk);
}

static void no_store_is_no_clean_store(void **state)
{
    (void)state;
    struct memory_files disk;
    struct fsck_report report;
    struct said said;
    memory_init(&disk);
    assert_int_equal(run_fsck(&disk, false, &report, &said), -ENOENT);
    assert_int_equal(run_fsck(&disk, true, &report, &said), -ENOENT);
    memory_make(&disk, BUILD_PATH)->directory = true;
    assert_int_equal(run_fsck(&disk, true, &report, &said), 0);
    memory_dispose(&disk);
}

static void very_many_places_are_told_as_few(void **state)
{
    (void)state;
    struct memory_files disk;
    struct fsck_report report;
    struct said *said = malloc(sizeof *said);
    memory_init(&disk);
    memory_make(&disk, BUILD_PATH)->directory = true;
    struct build b = build_segment(&disk, 1, (struct journal_place){0, 0});
    for (uint64_t n = 1; n <= 5000; n++) {
        build_commit(&b, "a", n, n, 1);
        uint64_t at = build_batch(&b);
        if (n % 2 == 0 && n < 5000)
            build_file(&b)->data[at + 60] ^= 1;
    }
    build_end(&b);
    assert_int_equal(run_fsck(&disk, false, &report, said), PE_JOURNAL);
    assert_int_equal(report.damaged_places, 1024);
    assert_int_equal(report.lost_commits, 2499);
    free(said);
    memory_dispose(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_segment_is_noticed_and_marked_by_a_repair),
        cmocka_unit_test(a_seal_that_does_not_say_what_is_there_is_corrected),
        cmocka_unit_test(records_that_are_not_whole_are_found),
        cmocka_unit_test(records_that_their_receiver_stored_are_not_missed),
        cmocka_unit_test(a_store_in_use_is_examined_and_not_repaired),
        cmocka_unit_test(a_repair_that_cannot_be_written_says_so),
        cmocka_unit_test(no_store_is_no_clean_store),
        cmocka_unit_test(very_many_places_are_told_as_few),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
