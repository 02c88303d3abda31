/* What a store gives back of its apps: the newest snapshot and the commits behind it, whatever is damaged. */
#include "tests/unit/store_build.h"

#include <sodium.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct journal_place no_seal;

struct given {
    char text[1024]; /* "Sa3 Ca4 Cb2 …" */
    size_t size;
    const char *only, *end_at; /* NULL: all apps; until this was given */
    uint64_t sequence[2], unknown[2];
};

static bool want(void *context, const char *app)
{
    const struct given *g = context;
    return g->only == NULL || strcmp(g->only, app) == 0;
}

static int give(void *context, const struct commit_head *head, const struct journal_frame *frame,
                struct span sections)
{
    struct given *g = context;
    char text[64];
    struct section section;
    assert_int_equal(commit_read_section(&sections, &section), 1);
    snprintf(text, sizeof text, "%c%.*s%u ", frame->kind == FRAME_COMMIT ? 'C' : 'S', (int)head->app.size,
             (const char *)head->app.data, (unsigned)head->sequence);
    g->size += (size_t)snprintf(g->text + g->size, sizeof g->text - g->size, "%s", text);
    return g->end_at != NULL && strcmp(text, g->end_at) == 0 ? PE_APP_FAILED : 0;
}

static void end(void *context, const char *app, uint64_t sequence, uint64_t unknown)
{
    struct given *g = context;
    g->sequence[app[0] - 'a'] = sequence;
    g->unknown[app[0] - 'a'] = unknown;
}

static void replay(struct store *s, struct given *g)
{
    g->size = 0;
    g->text[0] = '\0';
    struct store_replay r = {.wanted = want, .each = give, .context = g, .end = end};
    assert_int_equal(store_replay(s, &r), 0);
}

struct bench {
    struct memory_files disk;
    struct store s;
    struct said said;
    struct given given;
    uint64_t snapshots[4], commits[4]; /* where frames lie, by the order in build_store */
};

static struct memory_file *segment_file(struct bench *b, unsigned number)
{
    char name[SEGMENT_NAME_SIZE];
    segment_name(number, name);
    return memory_find(&b->disk, name);
}

/*     1: Ca1 Cb1 | Sa1 | Ca2 | Sa2 | seal      2: Ca3 | Cb2 | seal      3: Sa3 | Ca4 | Cb3 | seal      4: Ca5
 */
static void build_store(struct bench *b)
{
    *b = (struct bench){.given = {.size = 0}};
    memory_init(&b->disk);
    memory_make(&b->disk, BUILD_PATH)->directory = true;
    struct build g = build_segment(&b->disk, 1, no_seal);
    build_commit(&g, "a", 1, 1, 1);
    build_commit(&g, "b", 1, 1, 1);
    build_batch(&g);
    build_snapshot(&g, "a", 1, 1, 0);
    b->snapshots[0] = build_batch(&g);
    build_commit(&g, "a", 2, 2, 1);
    b->commits[0] = build_batch(&g);
    build_snapshot(&g, "a", 2, 2, 0);
    b->snapshots[1] = build_batch(&g);
    struct journal_place place = build_seal(&g);
    g = build_segment(&b->disk, 2, place);
    build_commit(&g, "a", 3, 3, 1);
    b->commits[1] = build_batch(&g);
    build_commit(&g, "b", 2, 2, 1);
    b->commits[2] = build_batch(&g);
    place = build_seal(&g);
    g = build_segment(&b->disk, 3, place);
    build_snapshot(&g, "a", 3, 3, 0);
    b->snapshots[2] = build_batch(&g);
    build_commit(&g, "a", 4, 4, 1);
    build_batch(&g);
    build_commit(&g, "b", 3, 3, 1);
    b->commits[3] = build_batch(&g);
    place = build_seal(&g);
    g = build_segment(&b->disk, 4, place);
    build_commit(&g, "a", 5, 5, 1);
    build_batch(&g);
    build_end(&g);
}

static void spoil(struct bench *b, unsigned segment, uint64_t offset)
{
    segment_file(b, segment)->data[offset + FRAME_HEAD + 3] ^= 1;
}

static void open_store(struct bench *b)
{
    assert_int_equal(build_open(&b->s, &b->disk, &b->said), 0);
}

static void end_store(struct bench *b)
{
    store_close(&b->s);
    assert_int_equal(memory_open_count(&b->disk), 0);
    memory_dispose(&b->disk);
}

static void each_app_gets_its_newest_snapshot_and_what_is_behind_it(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    open_store(&b);
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Cb1 Cb2 Sa3 Ca4 Cb3 Ca5 ");
    assert_int_equal(b.said.lines, 0);
    assert_int_equal(b.s.report.lost_commits, 0);
    replay(&b.s, &b.given); /* once more is the same */
    assert_string_equal(b.given.text, "Cb1 Cb2 Sa3 Ca4 Cb3 Ca5 ");
    end_store(&b);
}

static void only_segments_with_what_is_wanted_are_read(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    open_store(&b);
    for (unsigned n = 1; n <= 2; n++)
        segment_file(&b, n)->bad_to = UINT64_MAX;
    b.given.only = "a";
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Sa3 Ca4 Ca5 ");
    assert_int_equal(b.said.lines, 0);
    end_store(&b);
}

static void an_app_that_ends_its_replay_ends_it_for_itself(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    open_store(&b);
    b.given.end_at = "Cb2 ";
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Cb1 Cb2 Sa3 Ca4 Ca5 ");
    end_store(&b);
}

static void a_damaged_snapshot_is_replaced_by_the_one_before_it(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    spoil(&b, 3, b.snapshots[2]);
    open_store(&b);
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Cb1 Sa2 Ca3 Cb2 Ca4 Cb3 Ca5 ");
    assert_int_equal(b.s.report.lost_commits, 0);
    assert_int_equal(b.s.report.damaged_places, 1);
    end_store(&b);
}

static void the_one_before_it_may_lie_in_the_same_segment(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    spoil(&b, 3, b.snapshots[2]);
    spoil(&b, 1, b.snapshots[1]);
    open_store(&b);
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Cb1 Sa1 Ca2 Ca3 Cb2 Ca4 Cb3 Ca5 ");
    assert_int_equal(b.s.report.lost_commits, 0);
    assert_int_equal(b.s.report.damaged_places, 2);
    end_store(&b);
}

static void without_any_snapshot_all_commits_are_given(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    spoil(&b, 3, b.snapshots[2]);
    spoil(&b, 1, b.snapshots[1]);
    spoil(&b, 1, b.snapshots[0]);
    open_store(&b);
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Ca1 Cb1 Ca2 Ca3 Cb2 Ca4 Cb3 Ca5 ");
    assert_int_equal(b.s.report.lost_commits, 0);
    end_store(&b);
}

static void without_the_first_commits_either_those_are_lost(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    memory_unlink(&b.disk.files, AT_FDCWD, "0000000000000001.journal");
    spoil(&b, 3, b.snapshots[2]);
    open_store(&b);
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Ca3 Cb2 Ca4 Cb3 Ca5 ");
    assert_int_equal(b.s.report.lost_commits, 3);
    assert_non_null(strstr(b.said.text, "app a: commits 1 to 2 are lost"));
    assert_non_null(strstr(b.said.text, "app b: commit 1 is lost"));
    end_store(&b);
}

static void a_gap_is_counted_and_told_by_app(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    spoil(&b, 2, b.commits[2]);
    open_store(&b);
    assert_int_equal(b.s.report.damaged_places, 0); /* its seal is named, so it was not read */
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Cb1 Sa3 Ca4 Cb3 Ca5 ");
    assert_int_equal(b.s.report.lost_commits, 1);
    assert_int_equal(b.s.report.damaged_places, 1);
    assert_non_null(strstr(b.said.text, "app b: commit 2 is lost"));
    assert_non_null(strstr(b.said.text, "0000000000000002.journal: offset "));
    end_store(&b);
}

static void last_commits_that_a_seal_knows_of_are_missed(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    spoil(&b, 3, b.commits[3]);
    open_store(&b);
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Cb1 Cb2 Sa3 Ca4 Ca5 ");
    assert_int_equal(b.s.report.lost_commits, 1);
    assert_non_null(strstr(b.said.text, "app b: commit 3 is lost"));
    assert_int_equal(b.given.sequence[0], 5);
    assert_int_equal(b.given.sequence[1], 3);
    end_store(&b);
}

static void numbers_that_may_have_been_given_are_bounded_by_the_damage_behind(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    struct build g = build_segment(&b.disk, 5, no_seal);
    build_commit(&g, "a", 6, 6, 1);
    build_batch(&g);
    build_commit(&g, "b", 4, 4, 64);
    uint64_t damaged = build_batch(&g), size = g.at - damaged;
    build_commit(&g, "a", 7, 7, 1);
    build_batch(&g);
    build_end(&g);
    spoil(&b, 5, damaged);
    for (int start = 0; start < 2; start++) { /* and again, as long as b has done nothing else */
        open_store(&b);
        replay(&b.s, &b.given);
        assert_string_equal(b.given.text, "Cb1 Cb2 Sa3 Ca4 Cb3 Ca5 Ca6 Ca7 ");
        assert_int_equal(b.given.sequence[1], 3);
        assert_int_equal(b.given.unknown[1], size);
        assert_int_equal(b.given.unknown[0], 0);
        store_close(&b.s);
    }
    open_store(&b);
    end_store(&b);
}

static void what_a_replay_finds_damaged_is_copied_and_noted_once(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    spoil(&b, 2, b.commits[2]);
    open_store(&b);
    replay(&b.s, &b.given);
    store_close(&b.s);
    char name[64];
    snprintf(name, sizeof name, "damaged/0000000000000002-%u.bytes", (unsigned)b.commits[2]);
    const struct memory_file *copy = memory_find(&b.disk, name);
    assert_non_null(copy);
    assert_memory_equal(copy->data, segment_file(&b, 2)->data + b.commits[2], copy->size);
    uint64_t writes = b.disk.writes;
    open_store(&b);
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Cb1 Sa3 Ca4 Cb3 Ca5 ");
    assert_int_equal(b.s.report.damaged_places, 0);
    assert_int_equal(b.s.report.known_places, 1);
    assert_int_equal(seal_find_app(&b.s.segments[1]->seal, span_text("b"))->last_sequence, 2);
    assert_int_equal(b.disk.writes, writes);
    end_store(&b);
}

static void while_damage_cannot_be_copied_it_is_not_noted(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    memory_make(&b.disk, "lock");
    spoil(&b, 2, b.commits[2]);
    for (int start = 0; start < 3; start++) {
        b.disk.full = start == 0;
        b.disk.no_names = start == 1;
        open_store(&b);
        replay(&b.s, &b.given);
        assert_int_equal(b.s.report.damaged_places, 1);
        store_close(&b.s);
    }
    open_store(&b);
    replay(&b.s, &b.given);
    assert_int_equal(b.s.report.damaged_places, 0);
    end_store(&b);
}

static void nothing_is_written_when_only_reading(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    spoil(&b, 2, b.commits[2]);
    b.disk.read_only = true;
    struct store_options options = build_options(&b.disk, &b.said);
    char why[256];
    options.read_only = true;
    assert_int_equal(store_open(&b.s, &options, why, sizeof why), 0);
    replay(&b.s, &b.given);
    assert_int_equal(b.s.report.damaged_places, 1);
    assert_int_equal(b.disk.writes, 0);
    assert_null(memory_find(&b.disk, "damaged"));
    assert_null(memory_find(&b.disk, "lock"));
    end_store(&b);
}

static void what_the_disk_does_not_give_is_lost_and_the_rest_is_given(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    open_store(&b);
    segment_file(&b, 2)->bad_to = UINT64_MAX;
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Cb1 Sa3 Ca4 Cb3 Ca5 ");
    assert_int_equal(b.s.report.lost_commits, 1);
    assert_int_equal(b.s.report.damaged_places, 1);
    store_close(&b.s);
    segment_file(&b, 2)->bad_to = 0; /* nothing of it was given up */
    open_store(&b);
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Cb1 Cb2 Sa3 Ca4 Cb3 Ca5 ");
    assert_int_equal(b.s.report.damaged_places, 0);
    end_store(&b);
}

static void a_commit_that_is_there_twice_is_given_once(void **state)
{
    (void)state;
    struct bench b;
    build_store(&b);
    struct build g = build_segment(&b.disk, 5, no_seal);
    build_commit(&g, "a", 5, 5, 1);
    build_commit(&g, "a", 6, 6, 1);
    build_batch(&g);
    build_end(&g);
    open_store(&b);
    b.given.only = "a";
    replay(&b.s, &b.given);
    assert_string_equal(b.given.text, "Sa3 Ca4 Ca5 Ca6 ");
    assert_int_equal(b.said.serious, 1);
    end_store(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_app_gets_its_newest_snapshot_and_what_is_behind_it),
        cmocka_unit_test(only_segments_with_what_is_wanted_are_read),
        cmocka_unit_test(an_app_that_ends_its_replay_ends_it_for_itself),
        cmocka_unit_test(a_damaged_snapshot_is_replaced_by_the_one_before_it),
        cmocka_unit_test(the_one_before_it_may_lie_in_the_same_segment),
        cmocka_unit_test(without_any_snapshot_all_commits_are_given),
        cmocka_unit_test(without_the_first_commits_either_those_are_lost),
        cmocka_unit_test(a_gap_is_counted_and_told_by_app),
        cmocka_unit_test(last_commits_that_a_seal_knows_of_are_missed),
        cmocka_unit_test(numbers_that_may_have_been_given_are_bounded_by_the_damage_behind),
        cmocka_unit_test(what_a_replay_finds_damaged_is_copied_and_noted_once),
        cmocka_unit_test(while_damage_cannot_be_copied_it_is_not_noted),
        cmocka_unit_test(nothing_is_written_when_only_reading),
        cmocka_unit_test(what_the_disk_does_not_give_is_lost_and_the_rest_is_given),
        cmocka_unit_test(a_commit_that_is_there_twice_is_given_once),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
