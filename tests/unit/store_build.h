/* Builds the segments of a store in memory, frame by frame, as a writer would. */
#ifndef PURE_TESTS_UNIT_STORE_BUILD_H
#define PURE_TESTS_UNIT_STORE_BUILD_H

#include "journal/store.h"
#include "tests/unit/store_files.h"

#define BUILD_STORE UINT64_C(0x1122334455667788)
#define BUILD_PATH  "store"

struct build {
    struct memory_files *disk;
    uint64_t store, segment, at;
    struct frame_buffer frames;
    struct seal seal;
};

static inline struct memory_file *build_file(const struct build *b)
{
    char name[SEGMENT_NAME_SIZE];
    segment_name(b->segment, name);
    return memory_find(b->disk, name);
}

/* Makes what was put one batch. Returns where it lies. */
static inline uint64_t build_batch(struct build *b)
{
    struct memory_file *file = build_file(b);
    uint64_t at = b->at;
    frames_place(&b->frames, b->store, b->segment, at);
    size_t next = 0;
    struct journal_frame frame;
    while (frames_next(&b->frames, &next, &frame))
        if (frame.kind == FRAME_COMMIT || frame.kind == FRAME_SNAPSHOT)
            seal_note(&b->seal, &frame);
    if (at + b->frames.size > file->size)
        memory_resize(file, (size_t)at + b->frames.size);
    memcpy(file->data + at, b->frames.data, b->frames.size);
    b->at += b->frames.size;
    frame_buffer_clear(&b->frames, SIZE_MAX);
    return at;
}

/* Begins a segment, with a HEADER that names one seal (offset 0: none). */
static inline struct build build_segment(struct memory_files *disk, uint64_t number,
                                         struct journal_place seal)
{
    struct build b = {.disk = disk, .store = BUILD_STORE, .segment = number};
    char name[SEGMENT_NAME_SIZE];
    segment_name(number, name);
    memory_make(disk, name);
    frame_buffer_init(&b.frames);
    seal_init(&b.seal);
    header_write(&b.frames, 1000, &seal, seal.offset != 0);
    build_batch(&b);
    return b;
}

/* Records of one byte, numbered `first` and up, to an output. */
static inline void build_sends(struct build *b, const char *output, uint64_t first, uint64_t records)
{
    uint8_t bytes[2 * 64];
    assert(records <= 64);
    for (uint64_t i = 0; i < records; i++) {
        bytes[2 * i] = 1;
        bytes[2 * i + 1] = (uint8_t)(first + i);
    }
    struct section section = {
        .type = SECTION_SENDS,
        .sends = {span_text(output), first, records, span_of(bytes, 2 * (size_t)records)}};
    if (records > 0)
        commit_put(&b->frames, &section);
}

/* A commit that takes one event and sends `records` records to output "out". */
static inline void build_commit(struct build *b, const char *app, uint64_t sequence, uint64_t first,
                                uint64_t records)
{
    static const uint8_t event[] = {1, 'e'};
    struct section section = {.type = SECTION_EVENTS,
                              .events = {.event = span_text("tick"),
                                         .source = span_text("http"),
                                         .first = sequence,
                                         .time_ms = 5000 + sequence,
                                         .records = 1,
                                         .bytes = span_of(event, sizeof event)}};
    commit_begin(&b->frames, FRAME_COMMIT, span_text(app), sequence);
    commit_put(&b->frames, &section);
    build_sends(b, "out", first, records);
    commit_end(&b->frames, sequence);
}

/* A snapshot behind that commit; of output "out" it says what was sent and stored. */
static inline void build_snapshot(struct build *b, const char *app, uint64_t sequence, uint64_t sent,
                                  uint64_t stored)
{
    struct section state = {.type = SECTION_STATE, .state = span_text("state")};
    struct section output = {.type = SECTION_OUTPUT, .output = {span_text("out"), sent, stored}};
    commit_begin(&b->frames, FRAME_SNAPSHOT, span_text(app), sequence);
    commit_put(&b->frames, &output);
    commit_put(&b->frames, &state);
    commit_end(&b->frames, sequence);
}

static inline void build_end(struct build *b)
{
    frame_buffer_dispose(&b->frames);
    seal_dispose(&b->seal);
}

/* Ends it with a seal. */
static inline struct journal_place build_seal(struct build *b)
{
    seal_write(&b->frames, &b->seal);
    struct journal_place place = {b->segment, build_batch(b)};
    build_end(b);
    return place;
}

/* --- opening --- */

struct said {
    char text[16384];
    size_t size;
    unsigned lines, serious;
};

static inline void build_say(void *context, bool serious, const char *line)
{
    struct said *said = context;
    said->lines++;
    said->serious += serious;
    int size = snprintf(said->text + said->size, sizeof said->text - said->size, "%s\n", line);
    said->size = min_size(said->size + (size_t)size, sizeof said->text - 1);
}

static inline void build_line(void *context, const char *line)
{
    build_say(context, false, line);
}

static inline void build_random(void *context, void *bytes, size_t size)
{
    (void)context;
    memset(bytes, 0x5a, size);
}

static inline struct store_options build_options(struct memory_files *disk, struct said *said)
{
    *said = (struct said){.size = 0};
    return (struct store_options){.files = &disk->files,
                                  .path = BUILD_PATH,
                                  .segment_bytes = SEGMENT_BYTES_MIN,
                                  .fill_random = build_random,
                                  .now_ms = 9000,
                                  .say = build_say,
                                  .say_context = said};
}

static inline int build_open(struct store *s, struct memory_files *disk, struct said *said)
{
    struct store_options options = build_options(disk, said);
    char why[256];
    return store_open(s, &options, why, sizeof why);
}

#endif
