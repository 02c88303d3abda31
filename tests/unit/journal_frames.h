/* What the tests of frames, sections and seals share: a section of every kind, and frames in memory. */
#ifndef PURE_TESTS_JOURNAL_FRAMES_H
#define PURE_TESTS_JOURNAL_FRAMES_H

#include "journal/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define STORE   UINT64_C(0x0123456789abcdef)
#define SEGMENT 3
#define PLACE   UINT64_C(4096)

static const struct span none = {NULL, 0};

/* A copy of just these bytes, so that a sanitizer sees what reads beyond them. */
static inline uint8_t *copy_of(struct span bytes)
{
    uint8_t *copy = malloc(bytes.size > 0 ? bytes.size : 1);
    assert_non_null(copy);
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    return copy;
}

static inline struct journal_frame only_frame(const struct frame_buffer *b)
{
    struct journal_frame frame;
    assert_int_equal(frame_read(span_of(b->data, b->size), STORE, SEGMENT, PLACE, &frame), FRAME_VALID);
    assert_int_equal(frame.size, b->size);
    return frame;
}

static inline void expect_span(struct span a, struct span b)
{
    assert_true(span_equal(a, b));
}

/* --- a section of every kind --- */

static const uint8_t records[] = {1, 'x', 0, 2, 'y', 'z'}; /* three of them */

static inline struct section events_section(bool bare)
{
    return (struct section){
        .type = SECTION_EVENTS,
        .events = {span_text("count"), span_text("http"), 41, 1700000000123, bare ? 1000000 : 3, bare,
                   bare ? none : span_of(records, sizeof records)},
    };
}

static inline struct section sends_section(const char *output, uint64_t first)
{
    return (struct section){
        .type = SECTION_SENDS,
        .sends = {span_text(output), first, 3, span_of(records, sizeof records)},
    };
}

static inline struct section cursor_section(bool has_retired, uint8_t retired)
{
    struct section section = {
        .type = SECTION_CURSOR,
        .cursor = {.identity = span_text("key/app/out"), .stored = VARINT_MAX, .has_retired = has_retired},
    };
    memset(section.cursor.epoch, 0xe1, JOURNAL_EPOCH_BYTES);
    section.cursor.retired_count = retired;
    for (uint8_t i = 0; i < retired; i++)
        memset(section.cursor.retired[i], i + 1, JOURNAL_EPOCH_BYTES);
    return section;
}

static inline struct section key_section(void)
{
    struct section section = {.type = SECTION_KEY, .key = {.stored = 77}};
    memset(section.key.digest, 0xd1, JOURNAL_DIGEST_BYTES);
    return section;
}

static inline struct section dead_section(uint64_t segment, struct span record)
{
    return (struct section){
        .type = SECTION_DEAD,
        .dead = {span_text("out"), 9, 1234, span_text("400 Bad Request"), segment, segment * 8,
                 record.size > 0 ? (uint32_t)record.size : 77, record},
    };
}

#define SECTIONS 14

static inline void make_sections(struct section sections[SECTIONS])
{
    unsigned n = 0;
    sections[n++] = events_section(false);
    sections[n++] = events_section(true);
    sections[n++] = sends_section("next", 1);
    sections[n++] = cursor_section(false, 0);
    sections[n++] = cursor_section(true, 0);
    sections[n++] = cursor_section(true, JOURNAL_RETIRED_MAX);
    sections[n++] = key_section();
    sections[n++] =
        (struct section){.type = SECTION_OUTPUT,
                         .output = {span_text("out"), VARINT_MAX, VARINT_MAX - 1, 1234567, {7, [15] = 9}}};
    sections[n++] = (struct section){.type = SECTION_STATE, .state = span_text("any bytes")};
    sections[n++] = dead_section(0, span_text("record"));
    sections[n++] = dead_section(5, none);
    sections[n++] = (struct section){.type = SECTION_DEAD_GONE, .dead_gone = {span_text("out"), 9}};
    sections[n++] =
        (struct section){.type = SECTION_FARE, .fare = {.output = span_text("out"), .failures = 3}};
    sections[n++] =
        (struct section){.type = SECTION_FARE,
                         .fare = {span_text("out"), true, true, true, 7, 1234, 5678, 410, span_text("Gone")}};
    assert_int_equal(n, SECTIONS);
}

static inline void put_commit(struct frame_buffer *b, const struct section *sections, unsigned count)
{
    commit_begin(b, FRAME_COMMIT, span_text("counter"), 12);
    for (unsigned i = 0; i < count; i++)
        commit_put(b, &sections[i]);
    assert_int_equal(commit_end(b, 99), 0);
}

#endif
