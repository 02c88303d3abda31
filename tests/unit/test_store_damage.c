/* Damage to a store: whatever byte is changed, or wherever a file is cut, it opens, loses what lies in the
 * damaged frames and nothing else, and says so; fsck finds the same, and a repair makes it clean. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_byte_may_flip),
        cmocka_unit_test(any_byte_may_be_zeroed),
        cmocka_unit_test(any_segment_may_be_cut_anywhere),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
