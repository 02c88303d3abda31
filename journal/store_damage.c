/* What recovery does about damage: a copy aside, a line, and a note in the segment's seal. */
#include "journal/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COPY_CHUNK (256u << 10)

bool damage_known(const struct segment *segment, const struct seal_hole *hole)
{
    for (uint32_t i = 0; i < segment->seal.hole_count; i++) {
        const struct seal_hole *known = &segment->seal.holes[i];
        if (hole->offset >= known->offset && hole->offset + hole->size <= known->offset + known->size)
            return true;
    }
    return false;
}

/* --- copies --- */

static int copy_bytes(struct files *files, int from, int to, const struct seal_hole *hole, uint64_t size)
{
    uint8_t *chunk = malloc(min_size(size, COPY_CHUNK));
    if (chunk == NULL)
        return -ENOMEM;
    int error = 0;
    for (uint64_t done = 0; error == 0 && done < size;) {
        uint64_t want = min_u64(size - done, COPY_CHUNK);
        int64_t got = files->backend->read(files, from, chunk, want, hole->offset + done);
        if (got > 0)
            got = files->backend->write(files, to, chunk, (uint64_t)got, done);
        error = got < 0 ? (int)got : got == 0 ? -EIO : 0;
        done += got > 0 ? (uint64_t)got : 0;
    }
    free(chunk);
    return error;
}

/* A copy as long as the damage is kept as it is; a shorter one is of a copying that was not finished. */
static int copy_to(struct files *files, int from, int damaged, const char *name, const struct seal_hole *hole,
                   uint64_t size)
{
    int to = files->backend->open(files, damaged, name, O_RDWR | O_CREAT, 0600);
    if (to < 0)
        return to;
    int64_t there = files->backend->size(files, to);
    int error = there < 0 ? (int)there : 0;
    if (error == 0 && (uint64_t)there < size) {
        error = copy_bytes(files, from, to, hole, size);
        if (error == 0)
            error = files->backend->sync(files, to);
        if (error == 0)
            error = files->backend->sync(files, damaged);
    }
    files->backend->close(files, to);
    return error;
}

static int open_damaged(struct store *s)
{
    struct files *files = s->options.files;
    int error = files->backend->make_directory(files, s->directory, STORE_DAMAGED_NAME, 0700);
    if (error == 0)
        error = files->backend->sync(files, s->directory);
    if (error < 0 && error != -EEXIST)
        return error;
    return files->backend->open(files, s->directory, STORE_DAMAGED_NAME, O_RDONLY | O_DIRECTORY, 0);
}

/* What there is of it in the file. 0 or a negative errno. */
static int copy_aside(struct store *s, const struct segment *segment, const struct seal_hole *hole)
{
    struct files *files = s->options.files;
    char name[64];
    snprintf(name, sizeof name, "%016" PRIx64 "-%" PRIu64 ".bytes", segment->number, hole->offset);
    int from = store_open_segment(s, segment->number, O_RDONLY);
    if (from < 0)
        return from;
    int64_t end = files->backend->size(files, from);
    int error = end < 0 ? (int)end : 0;
    if (error == 0 && (uint64_t)end > hole->offset) {
        int damaged = open_damaged(s);
        error = damaged < 0 ? damaged : 0;
        if (error == 0) {
            uint64_t size = min_u64(min_u64(hole->size, (uint64_t)end - hole->offset), DAMAGE_COPY_MAX);
            error = copy_to(files, from, damaged, name, hole, size);
            files->backend->close(files, damaged);
        }
    }
    files->backend->close(files, from);
    return error;
}

int store_set_aside(struct store *s, uint64_t number, uint64_t offset, uint64_t bytes)
{
    const struct segment segment = {.number = number};
    const struct seal_hole hole = {offset, bytes};
    return copy_aside(s, &segment, &hole);
}

/* --- reports --- */

static bool take_hole(struct store *s, struct segment *segment, const struct survey *v,
                      const struct seal_hole *hole)
{
    char name[SEGMENT_NAME_SIZE];
    segment_name(segment->number, name);
    s->report.damaged_places++;
    s->report.damaged_bytes += hole->size;
    if (v->error < 0) {
        store_say(s, true, "%s: offset %" PRIu64 ": %" PRIu64 " bytes cannot be read: %s", name, hole->offset,
                  hole->size, pure_error_text(v->error));
        return false;
    }
    int error = s->options.read_only ? 0 : copy_aside(s, segment, hole);
    if (s->options.read_only)
        store_say(s, true, "%s: offset %" PRIu64 ": %" PRIu64 " bytes are damaged", name, hole->offset,
                  hole->size);
    else if (error == 0)
        store_say(s, true,
                  "%s: offset %" PRIu64 ": %" PRIu64 " bytes are damaged; a copy is in " STORE_DAMAGED_NAME,
                  name, hole->offset, hole->size);
    else
        store_say(s, true, "%s: offset %" PRIu64 ": %" PRIu64 " bytes are damaged, and cannot be copied: %s",
                  name, hole->offset, hole->size, pure_error_text(error));
    return error == 0;
}

int damage_take(struct store *s, struct segment *segment, const struct survey *v, uint32_t *added, bool *kept)
{
    *added = 0;
    *kept = true;
    for (uint32_t i = 0; i < v->found.hole_count; i++) {
        const struct seal_hole *hole = &v->found.holes[i];
        if (damage_known(segment, hole))
            continue;
        if (!take_hole(s, segment, v, hole))
            *kept = false;
        int error = seal_add_hole(&segment->seal, hole->offset, hole->size);
        if (error < 0)
            return error;
        ++*added;
    }
    return 0;
}

/* --- the seal --- */

/* A file that was cut grows again by its seal. Where it was cut it must not read as zeros: those may be just
 * what a frame lacked that was given up. */
static int mark_cut(struct files *files, int fd, uint64_t end)
{
    static const uint8_t mark = 0xff;
    int64_t size = files->backend->size(files, fd);
    if (size < 0 || (uint64_t)size >= end)
        return size < 0 ? (int)size : 0;
    int64_t written = files->backend->write(files, fd, &mark, 1, (uint64_t)size);
    return written < 0 ? (int)written : 0;
}

static int write_frame(struct store *s, const struct segment *segment, const struct frame_buffer *frame)
{
    struct files *files = s->options.files;
    int fd = store_open_segment(s, segment->number, O_RDWR);
    if (fd < 0)
        return fd;
    int64_t written = mark_cut(files, fd, segment->end);
    if (written == 0)
        written = files->backend->write(files, fd, frame->data, frame->size, segment->end);
    int error = written < 0 ? (int)written : files->backend->sync(files, fd);
    files->backend->close(files, fd);
    return error;
}

int damage_write_seal(struct store *s, struct segment *segment)
{
    struct frame_buffer frame;
    assert(segment->end > 0);
    frame_buffer_init(&frame);
    int error = seal_write(&frame, &segment->seal);
    if (error == 0) {
        frames_place(&frame, s->id, segment->number, segment->end);
        error = write_frame(s, segment, &frame);
    }
    frame_buffer_dispose(&frame);
    if (error < 0)
        return error;
    bool named = segment->named == segment->end;
    segment->place.offset = segment->named = segment->end;
    if (!named)
        store_name_seal(s, segment->place);
    return 0;
}
