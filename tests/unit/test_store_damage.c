/* Damage to a store: whatever byte is changed, or wherever a file is cut, it opens, loses what lies in the
 * damaged frames and nothing else, and says so; fsck finds the same, and a repair makes it clean. */
#include "core/random.h"
#include "journal/fsck.h"
#include "tests/unit/store_build.h"

#include <sodium.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define FRAMES_MAX 64

struct placed {
    uint64_t segment, offset, size;
    enum frame_kind kind;
    char app;
    uint64_t sequence;
    bool intact;
};

struct model {
    struct memory_files disk; /* as it was written */
    struct placed frames[FRAMES_MAX];
    unsigned count;
};

static void note_frames(struct model *m, const struct build *b, uint64_t end)
{
    const struct memory_file *file = build_file(b);
    for (uint64_t at = 0; at < end;) {
        struct journal_frame frame;
        struct commit_head head = {.sequence = 0};
        struct span rest;
        assert_int_equal(
            frame_read(span_of(file->data + at, file->size - at), b->store, b->segment, at, &frame),
            FRAME_VALID);
        bool app = frame.kind == FRAME_COMMIT || frame.kind == FRAME_SNAPSHOT;
        if (app)
            assert_int_equal(commit_read_head(frame.payload, &head, &rest), 0);
        assert_true(m->count < FRAMES_MAX);
        m->frames[m->count++] = (struct placed){
            b->segment, at, frame.size, frame.kind, app ? (char)head.app.data[0] : 0, head.sequence, true};
        at += frame.size;
    }
}

static struct journal_place end_segment(struct model *m, struct build *b)
{
    struct build copy = *b;
    struct journal_place place = build_seal(b);
    copy.at = build_file(&copy)->size;
    note_frames(m, &copy, copy.at);
    return place;
}

/* Two sealed segments, named by the one behind each, and one that was being written. */
static void build_model(struct model *m)
{
    *m = (struct model){.count = 0};
    memory_init(&m->disk);
    memory_make(&m->disk, BUILD_PATH)->directory = true;
    struct build b = build_segment(&m->disk, 1, (struct journal_place){0, 0});
    build_commit(&b, "a", 1, 1, 2);
    build_commit(&b, "b", 1, 1, 1);
    build_batch(&b);
    build_commit(&b, "a", 2, 3, 1);
    build_snapshot(&b, "a", 2, 3, 1);
    build_batch(&b);
    struct journal_place place = end_segment(m, &b);
    b = build_segment(&m->disk, 2, place);
    build_commit(&b, "a", 3, 4, 2);
    build_snapshot(&b, "b", 1, 1, 0);
    build_batch(&b);
    build_snapshot(&b, "a", 3, 5, 4);
    build_commit(&b, "b", 2, 2, 1);
    build_batch(&b);
    build_commit(&b, "a", 4, 6, 1);
    build_batch(&b);
    place = end_segment(m, &b);
    b = build_segment(&m->disk, 3, place);
    build_commit(&b, "b", 3, 3, 2);
    build_batch(&b);
    build_commit(&b, "a", 5, 7, 1);
    build_batch(&b);
    build_commit(&b, "a", 6, 8, 1);
    build_batch(&b);
    build_commit(&b, "b", 4, 5, 1);
    build_batch(&b);
    note_frames(m, &b, b.at);
    memory_resize(build_file(&b), b.at + 256); /* set aside */
    build_end(&b);
}

/* --- what is given at a replay --- */

struct given {
    char text[512]; /* "Sa3 Ca4 Cb2 …" */
    size_t size;
};

static void give(struct given *g, enum frame_kind kind, char app, uint64_t sequence)
{
    int size = snprintf(g->text + g->size, sizeof g->text - g->size, "%c%c%u ",
                        kind == FRAME_COMMIT ? 'C' : 'S', app, (unsigned)sequence);
    g->size += (size_t)size;
}

static int give_frame(void *context, const struct commit_head *head, const struct journal_frame *frame,
                      struct span sections)
{
    (void)sections;
    give(context, frame->kind, (char)head->app.data[0], head->sequence);
    return 0;
}

/* What is to be given of frames that are intact. */
static void expect(const struct model *m, struct given *g)
{
    *g = (struct given){.size = 0};
    unsigned start[2] = {FRAMES_MAX, FRAMES_MAX};
    for (unsigned i = 0; i < m->count; i++)
        if (m->frames[i].kind == FRAME_SNAPSHOT && m->frames[i].intact)
            start[m->frames[i].app - 'a'] = i;
    for (unsigned i = 0; i < m->count; i++) {
        const struct placed *p = &m->frames[i];
        if (!p->intact || p->app == 0)
            continue;
        unsigned from = start[p->app - 'a'];
        if (from == FRAMES_MAX ? p->kind == FRAME_COMMIT : i == from || (i > from && p->kind == FRAME_COMMIT))
            give(g, p->kind, p->app, p->sequence);
    }
}

struct opened {
    struct store_report report;
    struct said said;
    struct given given;
};

static void open_and_replay(struct memory_files *disk, struct opened *o)
{
    struct store s;
    o->given.size = 0;
    o->given.text[0] = '\0';
    assert_int_equal(build_open(&s, disk, &o->said), 0);
    struct store_replay replay = {.each = give_frame, .context = &o->given};
    assert_int_equal(store_replay(&s, &replay), 0);
    o->report = s.report;
    store_close(&s);
    assert_int_equal(memory_open_count(disk), 0);
}

/* --- one case --- */

enum change { FLIP, ZERO, CUT, CHANGES };

struct damage {
    enum change change;
    uint64_t segment, offset, size;
    bool torn; /* it is in the last batch of the segment that was being written */
    bool hits; /* a frame */
};

static struct memory_file *segment_file(struct memory_files *disk, uint64_t number)
{
    char name[SEGMENT_NAME_SIZE];
    segment_name(number, name);
    return memory_find(disk, name);
}

static uint64_t header_size(const struct model *m, uint64_t segment)
{
    for (unsigned i = 0; i < m->count; i++)
        if (m->frames[i].segment == segment)
            return m->frames[i].size;
    return 0;
}

/* False: it changes nothing. */
static bool make_damage(struct model *m, struct memory_files *disk, struct damage *d)
{
    struct memory_file *file = segment_file(disk, d->segment);
    d->size = d->change == CUT ? file->size - d->offset : 1;
    if (d->change == ZERO && file->data[d->offset] == 0)
        return false;
    if (d->change == CUT)
        memory_resize(file, d->offset);
    else
        file->data[d->offset] = d->change == FLIP ? file->data[d->offset] ^ 0x10 : 0;
    d->hits = d->torn = false;
    for (unsigned i = 0; i < m->count; i++) {
        struct placed *p = &m->frames[i];
        p->intact =
            p->segment != d->segment || p->offset + p->size <= d->offset || p->offset >= d->offset + d->size;
        d->hits = d->hits || !p->intact;
    }
    const struct placed *last = &m->frames[m->count - 1];
    d->torn = d->segment == last->segment && (d->change == CUT || d->offset >= last->offset);
    return true;
}

/* Each line of `o` that tells of damage is told by fsck, too. */
static void check_lines(const struct said *o, const struct said *fsck)
{
    for (const char *at = o->text; *at != '\0';) {
        char line[256];
        size_t size = strcspn(at, "\n");
        const char *damaged = strstr(at, " damaged");
        size_t part = damaged != NULL && damaged < at + size ? (size_t)(damaged - at) : 0;
        snprintf(line, sizeof line, "%.*s", (int)part, at);
        if (strstr(fsck->text, line) == NULL)
            fail_msg("fsck does not say: %s\nbut: %s", line, fsck->text);
        at += size + (at[size] != '\0');
    }
}

static void check_copies(struct memory_files *disk, const struct damage *d)
{
    const struct memory_file *file = segment_file(disk, d->segment);
    bool found = false;
    for (int i = 0; i < MEMORY_FILES; i++) {
        const struct memory_file *copy = &disk->file[i];
        uint64_t number, offset;
        if (sscanf(copy->name, "damaged/%16lx-%lu.bytes", &number, &offset) != 2)
            continue;
        assert_true(number == d->segment);
        assert_true(offset + copy->size <= file->size);
        assert_memory_equal(copy->data, file->data + offset, copy->size);
        found = found || (offset <= d->offset && d->offset < offset + copy->size);
    }
    assert_true(found);
}

static int run_fsck(struct memory_files *disk, bool repair, struct fsck_report *report, struct said *said)
{
    *said = (struct said){.size = 0};
    int result = fsck_store(&disk->files, BUILD_PATH, repair, build_line, said, report);
    assert_int_equal(memory_open_count(disk), 0);
    return result;
}

static void check_found(const struct damage *d, const struct opened *o, const struct fsck_report *report,
                        int result)
{
    if (d->torn || !d->hits) {
        assert_int_equal(result, 0);
        assert_int_equal(o->report.damaged_places, 0);
        if (d->hits && d->change != CUT) {
            assert_int_equal(o->report.torn_segments, 1);
            assert_int_equal(report->torn_segments, 1);
        }
        return;
    }
    assert_int_equal(result, PE_JOURNAL);
    assert_int_equal(report->damaged_places, 1);
    assert_true(o->report.damaged_places <= 1);
    assert_true(report->lost_commits == o->report.lost_commits);
}

static unsigned try_damage(struct model *m, struct damage d)
{
    struct memory_files first, second;
    struct opened opened, again;
    struct fsck_report report;
    struct said said;
    struct given wanted;
    memory_copy(&first, &m->disk);
    if (!make_damage(m, &first, &d)) {
        memory_dispose(&first);
        return 0;
    }
    expect(m, &wanted);
    memory_copy(&second, &first);

    /* fsck changes nothing; then a start, which finds what it found, and another that finds nothing */
    int result = run_fsck(&first, false, &report, &said);
    assert_int_equal(first.writes, 0);
    open_and_replay(&first, &opened);
    assert_string_equal(opened.given.text, wanted.text);
    check_found(&d, &opened, &report, result);
    check_lines(&opened.said, &said);
    open_and_replay(&first, &again);
    assert_string_equal(again.given.text, wanted.text);
    assert_int_equal(again.report.damaged_places, 0);
    if (!d.torn || d.offset >= header_size(m, d.segment)) /* else nothing is left that can have a seal */
        assert_int_equal(again.report.torn_segments, 0);
    if (opened.report.damaged_bytes > 0)
        assert_int_equal(again.report.known_places, 1);

    /* a repair, and then it is clean and has lost no more */
    result = run_fsck(&second, true, &report, &said);
    assert_int_equal(result, 0);
    assert_int_equal(run_fsck(&second, false, &report, &said), 0);
    assert_int_equal(report.damaged_places, 0);
    if (report.known_places > 0 && d.change != CUT)
        check_copies(&second, &d);
    open_and_replay(&second, &again);
    assert_string_equal(again.given.text, wanted.text);
    assert_int_equal(again.report.damaged_places, 0);
    memory_dispose(&first);
    memory_dispose(&second);
    return d.hits && !d.torn;
}

static void damage_every_byte(enum change change)
{
    struct model m;
    build_model(&m);
    unsigned hits = 0;
    for (uint64_t segment = 1; segment <= 3; segment++) {
        uint64_t size = segment_file(&m.disk, segment)->size;
        for (uint64_t offset = 0; offset < size; offset++)
            hits += try_damage(&m, (struct damage){.change = change, .segment = segment, .offset = offset});
    }
    assert_true(hits > 500);
    memory_dispose(&m.disk);
}

static void any_byte_may_flip(void **state)
{
    (void)state;
    damage_every_byte(FLIP);
}

static void any_byte_may_be_zeroed(void **state)
{
    (void)state;
    damage_every_byte(ZERO);
}

static void any_segment_may_be_cut_anywhere(void **state)
{
    (void)state;
    damage_every_byte(CUT);
}

/* --- much of it --- */

static bool frame_at(struct memory_files *disk, const struct placed *p)
{
    const struct memory_file *file = segment_file(disk, p->segment);
    struct journal_frame frame;
    return frame_read(span_of(file->data + p->offset, file->size - p->offset), BUILD_STORE, p->segment,
                      p->offset, &frame) == FRAME_VALID;
}

static bool all_intact(const struct model *m)
{
    for (unsigned i = 0; i < m->count; i++)
        if (!m->frames[i].intact)
            return false;
    return true;
}

static void much_damage_at_once_costs_what_it_hits_only(void **state)
{
    (void)state;
    struct random random = {7};
    struct model m;
    build_model(&m);
    for (unsigned round = 0; round < 1500; round++) {
        struct memory_files disk;
        struct fsck_report report;
        struct said said;
        struct opened opened, again;
        struct given wanted;
        memory_copy(&disk, &m.disk);
        for (unsigned i = 0; i < m.count; i++)
            m.frames[i].intact = true;
        uint64_t hits = 1 + random_below(&random, 6);
        for (uint64_t n = 0; n < hits; n++) {
            unsigned hit = (unsigned)random_below(&random, m.count - 1); /* the last may be a tail */
            struct placed *p = &m.frames[hit];
            if (p->app == 0)
                continue; /* with its seal gone, too, the end of a segment may be taken for a tail */
            segment_file(&disk, p->segment)->data[p->offset + random_below(&random, p->size)] ^= 0x40;
            /* twice at the same byte undoes it */
            p->intact = frame_at(&disk, p);
        }
        expect(&m, &wanted);
        int found = run_fsck(&disk, false, &report, &said);
        bool whole = all_intact(&m);
        assert_int_equal(found, whole ? 0 : PE_JOURNAL);
        open_and_replay(&disk, &opened);
        assert_string_equal(opened.given.text, wanted.text);
        check_lines(&opened.said, &said);
        assert_true(report.lost_commits >= opened.report.lost_commits);
        found = run_fsck(&disk, true, &report, &said);
        assert_int_equal(found, 0);
        assert_int_equal(run_fsck(&disk, false, &report, &said), 0);
        open_and_replay(&disk, &again);
        assert_string_equal(again.given.text, wanted.text);
        assert_int_equal(again.report.damaged_places, 0);
        memory_dispose(&disk);
    }
    memory_dispose(&m.disk);
}

/* Zeros, garbage, a cut, or bytes of another place. */
static void spoil_some(struct random *random, struct memory_file *file)
{
    if (file->size == 0)
        return;
    size_t from = random_below(random, file->size), size = 1 + random_below(random, file->size - from);
    switch (random_below(random, 5)) {
    case 0:
        memset(file->data + from, 0, size);
        break;
    case 1:
        memory_resize(file, from);
        break;
    case 2:
        memmove(file->data + from, file->data, min_size(size, file->size - from));
        break;
    case 3:
        file->bad_from = from;
        file->bad_to = from + 1;
        break;
    default:
        for (size_t i = 0; i < min_size(size, 64); i++)
            file->data[from + i] = (uint8_t)random_next(random);
    }
}

static void whatever_is_damaged_it_opens_and_a_repair_makes_it_clean(void **state)
{
    (void)state;
    struct random random = {11};
    struct model m;
    build_model(&m);
    for (unsigned round = 0; round < 3000; round++) {
        struct memory_files disk;
        struct fsck_report report;
        struct said said;
        struct opened opened, again;
        memory_copy(&disk, &m.disk);
        for (uint64_t n = 1 + random_below(&random, 4); n > 0; n--)
            spoil_some(&random, segment_file(&disk, 1 + random_below(&random, 3)));
        if (round % 2 == 0) { /* a start, and one that has nothing new to tell */
            open_and_replay(&disk, &opened);
            for (uint64_t n = 1; n <= 3; n++)
                segment_file(&disk, n)->bad_to = 0;
            open_and_replay(&disk, &opened);
            open_and_replay(&disk, &again);
            assert_int_equal(again.report.damaged_places, 0);
            assert_string_equal(opened.given.text, again.given.text);
        }
        for (uint64_t n = 1; n <= 3; n++)
            segment_file(&disk, n)->bad_to = 0;
        (void)run_fsck(&disk, true, &report, &said);
        if (run_fsck(&disk, false, &report, &said) != 0)
            fail_msg("round %u: %s", round, said.text);
        open_and_replay(&disk, &again);
        assert_int_equal(again.report.damaged_places, 0);
        memory_dispose(&disk);
    }
    memory_dispose(&m.disk);
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

/* --- what is not damage of bytes --- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_byte_may_flip),
        cmocka_unit_test(any_byte_may_be_zeroed),
        cmocka_unit_test(any_segment_may_be_cut_anywhere),
        cmocka_unit_test(much_damage_at_once_costs_what_it_hits_only),
        cmocka_unit_test(whatever_is_damaged_it_opens_and_a_repair_makes_it_clean),
        cmocka_unit_test(very_many_places_are_told_as_few),
        cmocka_unit_test(a_missing_segment_is_noticed_and_marked_by_a_repair),
        cmocka_unit_test(a_seal_that_does_not_say_what_is_there_is_corrected),
        cmocka_unit_test(records_that_are_not_whole_are_found),
        cmocka_unit_test(records_that_their_receiver_stored_are_not_missed),
        cmocka_unit_test(a_store_in_use_is_examined_and_not_repaired),
        cmocka_unit_test(a_repair_that_cannot_be_written_says_so),
        cmocka_unit_test(no_store_is_no_clean_store),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
