/* A store on the real disk, written by hand: what commands that read one are tested on. */
#ifndef PURE_TESTS_CLI_SEGMENTS_H
#define PURE_TESTS_CLI_SEGMENTS_H

#include "core/record.h"
#include "journal/store.h"
#include "tests/unit/cli_drive.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define SEGMENTS_STORE_ID 0x1234

struct segments {
    char directory[32]; /* a new one, beside the test */
    uint64_t number;    /* of the segment that is written; 0: none yet */
    uint64_t at;        /* where its next batch goes */
    struct frame_buffer frames;
};

static inline void segments_make(struct segments *s)
{
    *s = (struct segments){0};
    strcpy(s->directory, "test-cli-XXXXXX");
    assert_non_null(mkdtemp(s->directory));
    frame_buffer_init(&s->frames);
}

static inline void segments_path(const struct segments *s, uint64_t number, char *path, size_t size)
{
    char name[SEGMENT_NAME_DIGITS + sizeof SEGMENT_SUFFIX];
    segment_name(number, name);
    snprintf(path, size, "%s/%s", s->directory, name);
}

/* Writes into the middle or behind the end of a segment. */
static inline void segments_put(const struct segments *s, uint64_t number, const void *data, size_t size,
                                uint64_t offset)
{
    char path[100];
    segments_path(s, number, path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, size, (off_t)offset), (ssize_t)size);
    close(fd);
}

/* What was put into s->frames becomes one batch. */
static inline void segments_write(struct segments *s)
{
    frames_place(&s->frames, SEGMENTS_STORE_ID, s->number, s->at);
    segments_put(s, s->number, s->frames.data, s->frames.size, s->at);
    s->at += s->frames.size;
    frame_buffer_clear(&s->frames, SIZE_MAX);
}

static inline void segments_begin(struct segments *s, uint64_t number)
{
    s->number = number;
    s->at = 0;
    header_write(&s->frames, 1791547200000, NULL, 0);
    segments_write(s);
}

/* Frames `text` as the only record; `framed` has room for it. */
static inline struct span segments_record(const char *text, uint8_t *framed)
{
    size_t size = strlen(text), prefix = varint_put(framed, size);
    memcpy(framed + prefix, text, size);
    return span_of(framed, prefix + size);
}

/* One commit, one batch: event `sequence` of the app, from http, which it sends on to its output "log". */
static inline void segments_commit(struct segments *s, const char *app, uint64_t sequence, const char *data)
{
    uint8_t framed[5000];
    struct span bytes = segments_record(data, framed);
    struct section events = {.type = SECTION_EVENTS,
                             .events = {.event = span_text("add"),
                                        .source = span_text("http"),
                                        .first = sequence,
                                        .time_ms = 1791547200123,
                                        .records = 1,
                                        .bytes = bytes}};
    struct section sends = {
        .type = SECTION_SENDS,
        .sends = {.output = span_text("log"), .first = sequence, .records = 1, .bytes = bytes}};
    commit_begin(&s->frames, FRAME_COMMIT, span_text(app), sequence);
    commit_put(&s->frames, &events);
    commit_put(&s->frames, &sends);
    assert_int_equal(commit_end(&s->frames, sequence), 0);
    segments_write(s);
}

static inline void segments_empty(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));)
        unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
}

static inline void segments_remove(struct segments *s)
{
    char damaged[64];
    snprintf(damaged, sizeof damaged, "%s/damaged", s->directory);
    segments_empty(damaged);
    rmdir(damaged);
    segments_empty(s->directory);
    assert_int_equal(rmdir(s->directory), 0);
    frame_buffer_dispose(&s->frames);
}

#endif
