/* A small store of which each frame's place is known, and fsck of it. For tests with cmocka. */
#ifndef PURE_TESTS_UNIT_STORE_MODEL_H
#define PURE_TESTS_UNIT_STORE_MODEL_H

#include "journal/fsck.h"
#include "tests/unit/store_build.h"

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

static inline void note_frames(struct model *m, const struct build *b, uint64_t end)
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

static inline struct journal_place end_segment(struct model *m, struct build *b)
{
    struct build copy = *b;
    struct journal_place place = build_seal(b);
    copy.at = build_file(&copy)->size;
    note_frames(m, &copy, copy.at);
    return place;
}

/* Two sealed segments, named by the one behind each, and one that was being written. */
static inline void build_model(struct model *m)
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

static inline struct memory_file *segment_file(struct memory_files *disk, uint64_t number)
{
    char name[SEGMENT_NAME_SIZE];
    segment_name(number, name);
    return memory_find(disk, name);
}

static inline int run_fsck(struct memory_files *disk, bool repair, struct fsck_report *report,
                           struct said *said)
{
    *said = (struct said){.size = 0};
    int result = fsck_store(&disk->files, BUILD_PATH, repair, build_line, said, report);
    assert_int_equal(memory_open_count(disk), 0);
    return result;
}

#endif
