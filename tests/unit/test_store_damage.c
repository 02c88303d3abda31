/* Damage to a store: whatever byte is changed, or wherever a file is cut, it opens, loses what lies in the
 * damaged frames and nothing else, and says so; fsck finds the same, and a repair makes it clean. */
#include "core/random.h"
#include "tests/unit/store_model.h"

#include <sodium.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Every byte, but for builds in which that takes ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEP 7
#else
#define STEP 1
#endif

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
        for (uint64_t offset = 0; offset < size; offset += STEP)
            hits += try_damage(&m, (struct damage){.change = change, .segment = segment, .offset = offset});
    }
    assert_true(hits > 500 / STEP);
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
    for (unsigned round = 0; round < 1500 / STEP; round++) {
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
    for (unsigned round = 0; round < 3000 / STEP; round++) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_byte_may_flip),
        cmocka_unit_test(any_byte_may_be_zeroed),
        cmocka_unit_test(any_segment_may_be_cut_anywhere),
        cmocka_unit_test(much_damage_at_once_costs_what_it_hits_only),
        cmocka_unit_test(whatever_is_damaged_it_opens_and_a_repair_makes_it_clean),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
