/* Recovery, first pass: which segments there are, and what each of them holds.
 *
 *  1. The directory is opened, made if it is not there, and locked.
 *  2. Of each segment's first frame is taken which store it belongs to; what is of another store than most is
 *     left alone.
 *  3. HEADERs say where the seals are of segments that ended before.
 *  4. A segment whose seal is there is known by it. Any other is read, its damage copied aside, and a seal is
 *     written behind its last frame that counts, so that the next start need not read it again.
 *  5. What was set aside behind a seal is given back. */
#include "journal/store_private.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define TRIM_LEAST (64u << 10) /* bytes behind a seal that are worth it */
/* Up to here any file's number is one that is used. A higher one has to be proved by a frame: numbers end,
 * and a file that somebody put there is not to use them up. */
#define PLAIN_NUMBER_MAX (SEGMENT_NUMBER_MAX >> 1)

struct found {
    uint64_t number;
    uint64_t bytes;
    uint64_t store; /* of its first valid frame; 0: there is none, or it cannot be read */
    bool moved;     /* there is none, and the first one is valid where another segment is */
    bool foreign;   /* no file: a directory, a link, a pipe; or a number that no frame proves */
};

struct opening {
    struct store *s;
    struct found *found; /* by number, upwards */
    uint32_t count, room;
    int error;
    char *why;
    size_t why_size;
};

static int give_why(struct opening *o, int error, const char *name)
{
    const char *path = o->s->options.path;
    if (name == NULL)
        snprintf(o->why, o->why_size, "%s: %s", path, pure_error_text(error));
    else
        snprintf(o->why, o->why_size, "%s/%s: %s", path, name, pure_error_text(error));
    return error;
}

/* --- the directory --- */

/* So that the name of a directory just made is durable. */
static int sync_parent(struct files *files, const char *path)
{
    char parent[PATH_MAX];
    size_t size = strlen(path);
    if (size >= sizeof parent)
        return -ENAMETOOLONG;
    memcpy(parent, path, size + 1);
    while (size > 1 && parent[size - 1] == '/')
        size--;
    while (size > 0 && parent[size - 1] != '/')
        size--;
    while (size > 1 && parent[size - 1] == '/')
        size--;
    parent[size] = '\0';
    int fd = files->backend->open(files, AT_FDCWD, size == 0 ? "." : parent, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    int error = files->backend->sync(files, fd);
    files->backend->close(files, fd);
    return error;
}

static int open_directory(struct store *s)
{
    struct files *files = s->options.files;
    const char *path = s->options.path;
    int fd = files->backend->open(files, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd != -ENOENT || s->options.read_only)
        return fd;
    int error = files->backend->make_directory(files, AT_FDCWD, path, 0700);
    if (error == 0)
        error = sync_parent(files, path);
    if (error < 0)
        return error;
    return files->backend->open(files, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
}

/* On a disk that cannot be written to, a lock that was never made is not missed. */
static int take_lock(struct store *s)
{
    struct files *files = s->options.files;
    int fd = files->backend->open(files, s->directory, STORE_LOCK_NAME, O_RDWR | O_CREAT, 0600);
    if (fd == -EROFS) {
        fd = files->backend->open(files, s->directory, STORE_LOCK_NAME, O_RDONLY, 0);
        if (fd == -ENOENT)
            return 0;
    }
    if (fd < 0)
        return fd;
    s->lock_fd = fd;
    int error = files->backend->lock(files, fd);
    return error == -EWOULDBLOCK ? PE_JOURNAL_LOCKED : error;
}

/* The file may be removed while a host runs, the directory's own lock stays. Some file systems have none for
 * directories. */
static int take_locks(struct store *s)
{
    struct files *files = s->options.files;
    int error = take_lock(s);
    if (error == 0 && files->backend->lock(files, s->directory) == -EWOULDBLOCK)
        error = PE_JOURNAL_LOCKED;
    return error;
}

static void take_name(void *context, const char *name)
{
    struct opening *o = context;
    struct found found = {0};
    if (strcmp(name, STORE_LOCK_NAME) == 0 || strcmp(name, STORE_DAMAGED_NAME) == 0 ||
        strcmp(name, STORE_DEATHS_NAME) == 0 || o->error < 0)
        return;
    if (!segment_number(name, &found.number)) {
        o->s->report.foreign_files++;
        store_say(o->s, false, "%s: not a segment; left alone", name);
        return;
    }
    if (o->count == o->room) {
        uint32_t room = o->room == 0 ? 64 : o->room * 2;
        struct found *more = realloc(o->found, room * sizeof *more);
        if (more == NULL) {
            o->error = -ENOMEM;
            return;
        }
        o->found = more;
        o->room = room;
    }
    o->found[o->count++] = found;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = ((const struct found *)a)->number, y = ((const struct found *)b)->number;
    return x < y ? -1 : x > y;
}

static int list_segments(struct opening *o)
{
    struct files *files = o->s->options.files;
    int error = files->backend->list(files, o->s->directory, take_name, o);
    if (error < 0)
        return error;
    if (o->count > 0)
        qsort(o->found, o->count, sizeof *o->found, by_number);
    return o->error;
}

/* --- which store --- */

/* The first valid frame, wherever it lies. 0 or -ENOMEM. */
static int find_first(struct files *files, int fd, struct found *found)
{
    struct scan scan;
    int error = scan_init(&scan, files, fd, 0, found->number, 0);
    if (error < 0)
        return error == -ENOMEM ? error : 0;
    struct scan_item item;
    do {
        error = scan_next(&scan, &item);
    } while (error == 0 && item.kind == SCAN_DAMAGE);
    if (error == 0 && item.kind == SCAN_FRAME)
        found->store = item.frame.store;
    scan_dispose(&scan);
    return error == -ENOMEM ? error : 0;
}

/* Whether it begins with a frame that would be valid in another segment. 0 or -ENOMEM. */
static int see_moved(struct files *files, int fd, struct found *found)
{
    uint8_t head[FRAME_HEAD];
    if (files->backend->read(files, fd, head, sizeof head, 0) != (int64_t)sizeof head)
        return 0;
    uint64_t number;
    memcpy(&number, head + 24, sizeof number);
    number = le64toh(number);
    if (number == found->number)
        return 0;
    struct journal_frame frame;
    uint8_t *memory = NULL;
    int error = scan_frame_at(files, fd, 0, number, 0, &frame, &memory);
    found->moved = error == 0;
    free(memory);
    return error == -ENOMEM ? error : 0;
}

static int look_at(struct store *s, struct found *found)
{
    struct files *files = s->options.files;
    int fd = store_open_segment(s, found->number, O_RDONLY);
    found->foreign = fd == -ELOOP;
    if (fd < 0)
        return 0; /* said when it is to be read */
    int64_t bytes = files->backend->size(files, fd);
    found->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    found->foreign = bytes == -ENOTSUP;
    if (found->foreign)
        return files->backend->close(files, fd);
    struct journal_frame frame;
    uint8_t *memory = NULL;
    int error = scan_frame_at(files, fd, 0, found->number, 0, &frame, &memory);
    if (error == 0)
        found->store = frame.store;
    else if (error != -ENOMEM)
        error = find_first(files, fd, found);
    if (error == 0 && found->store == 0)
        error = see_moved(files, fd, found);
    found->foreign = found->store == 0 && found->number > PLAIN_NUMBER_MAX;
    free(memory);
    files->backend->close(files, fd);
    return error;
}

static int by_store(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The id that most segments have; among equals that of the segment with the lowest number. 0: none has one.
 */
static uint64_t most_common(const struct found *found, uint32_t count, uint64_t *sorted)
{
    uint32_t known = 0, most = 0;
    for (uint32_t i = 0; i < count; i++)
        if (found[i].store != 0)
            sorted[known++] = found[i].store;
    qsort(sorted, known, sizeof *sorted, by_store);
    for (uint32_t i = 0, run = 0; i < known; i++) {
        run = i > 0 && sorted[i] == sorted[i - 1] ? run + 1 : 1;
        most = run > most ? run : most;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t have = 0;
        for (uint32_t k = 0; k < known; k++)
            have += sorted[k] == found[i].store;
        if (have > 0 && have == most)
            return found[i].store;
    }
    return 0;
}

static int find_store(struct opening *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        int error = look_at(o->s, &o->found[i]);
        if (error < 0)
            return error;
    }
    uint64_t *sorted = calloc(o->count + 1u, sizeof *sorted);
    if (sorted == NULL)
        return -ENOMEM;
    o->s->id = most_common(o->found, o->count, sorted);
    free(sorted);
    while (o->s->id == 0 && !o->s->options.read_only)
        o->s->options.fill_random(o->s->options.random_context, &o->s->id, sizeof o->s->id);
    return 0;
}

/* --- segments and HEADERs --- */

static int take_segments(struct opening *o)
{
    struct store *s = o->s;
    for (uint32_t i = 0; i < o->count; i++) {
        const struct found *found = &o->found[i];
        bool other = found->store != 0 && found->store != s->id;
        if (found->number <= PLAIN_NUMBER_MAX || found->store == s->id)
            s->next_number = found->number + 1;
        if (found->foreign || other || found->moved) {
            char name[SEGMENT_NAME_SIZE];
            segment_name(found->number, name);
            s->report.foreign_files++;
            store_say(s, false, "%s: %s; left alone", name,
                      found->foreign ? "not a segment"
                      : other        ? "of another store"
                                     : "of another name");
        } else if (store_insert(s, found->number, found->bytes) == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

static void take_places(struct store *s, const struct header *header)
{
    for (uint32_t i = 0; i < header->seal_count; i++) {
        struct journal_place place = header_seal(header, i);
        struct segment *segment = store_find(s, place.segment);
        if (segment != NULL)
            segment->named = max_u64(segment->named, place.offset);
        if (place.segment >= s->next_number && place.segment < SEGMENT_NUMBER_MAX)
            s->next_number = place.segment + 1;
    }
}

/* Reads one frame of a segment. 0, PE_JOURNAL or a negative errno. */
static int read_frame(const struct store *s, const struct segment *segment, uint64_t offset,
                      struct journal_frame *frame, uint8_t **memory)
{
    struct files *files = s->options.files;
    *memory = NULL;
    int fd = store_open_segment(s, segment->number, O_RDONLY);
    if (fd < 0)
        return fd;
    int error = scan_frame_at(files, fd, s->id, segment->number, offset, frame, memory);
    files->backend->close(files, fd);
    return error;
}

/* What is wrong with a HEADER costs nothing but what it says; a newer format ends it. */
static int read_header(struct opening *o, const struct segment *segment)
{
    struct journal_frame frame;
    struct header header;
    uint8_t *memory;
    int error = read_frame(o->s, segment, 0, &frame, &memory);
    if (error == 0)
        error = frame.kind == FRAME_HEADER ? header_read(frame.payload, &header) : PE_JOURNAL;
    if (error == 0)
        take_places(o->s, &header);
    if (error == PE_JOURNAL_VERSION) {
        char name[SEGMENT_NAME_SIZE];
        segment_name(segment->number, name);
        snprintf(o->why, o->why_size,
                 "%s/%s: its format is version %" PRIu32 ", this is a program for %u: %s", o->s->options.path,
                 name, header.version, JOURNAL_VERSION, pure_error_text(error));
    }
    free(memory);
    return error == PE_JOURNAL_VERSION || error == -ENOMEM ? error : 0;
}

static int read_headers(struct opening *o)
{
    for (uint32_t i = 0; i < o->s->count; i++) {
        int error = read_header(o, o->s->segments[i]);
        if (error < 0)
            return error;
    }
    return 0;
}

/* --- what is in each --- */

/* 1: by its seal; 0: there is none where a HEADER says; -ENOMEM. */
static int know_by_seal(struct store *s, struct segment *segment)
{
    if (segment->named == 0)
        return 0;
    struct journal_frame frame;
    uint8_t *memory;
    int error = read_frame(s, segment, segment->named, &frame, &memory);
    if (error == 0)
        error = frame.kind == FRAME_SEAL ? seal_read(frame.payload, &segment->seal) : PE_JOURNAL;
    free(memory);
    if (error == -ENOMEM)
        return error;
    if (error < 0)
        return 0;
    segment->end = segment->place.offset = segment->named;
    return 1;
}

static void say_tail(struct store *s, const struct segment *segment, const struct survey *v)
{
    char name[SEGMENT_NAME_SIZE];
    segment_name(segment->number, name);
    if (v->seal_lost) {
        s->report.damaged_places++;
        store_say(s, false, "%s: offset %" PRIu64 ": its seal is damaged; nothing is lost by that", name,
                  segment->end);
    }
    if (v->tail_bytes == 0)
        return;
    s->report.torn_segments++;
    s->report.torn_bytes += v->tail_bytes;
    store_say(s, false, "%s: offset %" PRIu64 ": a write was not finished; nothing of it was acknowledged",
              name, segment->end);
}

/* A seal behind a segment that was read because it had none. That it cannot be written is no error: then the
 * segment is read again at the next start. */
static void seal_segment(struct store *s, struct segment *segment, const struct survey *v, bool kept)
{
    bool empty = segment->seal.app_count == 0 && segment->seal.hole_count == 0 && segment->named == 0 &&
                 v->tail_bytes == 0;
    if (!s->options.read_only && v->error == 0 && kept && !empty && segment->end > 0)
        damage_write_seal(s, segment);
}

static int take_survey(struct store *s, struct segment *segment, struct survey *v)
{
    struct seal *from = v->sealed ? &v->stored : &v->found;
    segment->seal = *from;
    segment->end = v->end;
    segment->unreadable = v->error < 0;
    if (v->sealed) {
        segment->place.offset = segment->named = v->end;
        seal_init(&v->stored);
    } else { /* its apps are the segment's from now on, the holes are still to be taken */
        segment->seal.holes = NULL;
        segment->seal.hole_count = segment->seal.hole_room = 0;
        v->found.apps = NULL;
        v->found.app_count = v->found.app_room = 0;
    }
    s->report.known_places += segment->seal.hole_count;
    say_tail(s, segment, v);
    uint32_t added;
    bool kept;
    int error = damage_take(s, segment, v, &added, &kept);
    if (error == 0 && (!v->sealed || added > 0))
        seal_segment(s, segment, v, kept);
    if (error == 0 && v->sealed)
        store_name_seal(s, segment->place);
    return error;
}

/* What was set aside behind the seal goes back to the disk, which may be full: then this is the space in
 * which apps can say what they have delivered, so that segments go. It need not be durable. */
static void trim(struct store *s, struct segment *segment)
{
    if (s->options.read_only || segment->unreadable || segment->named != segment->end || segment->end == 0 ||
        segment->bytes - min_u64(segment->bytes, segment->end) < TRIM_LEAST)
        return;
    struct journal_frame frame;
    uint8_t *memory;
    if (read_frame(s, segment, segment->end, &frame, &memory) == 0 && frame.kind == FRAME_SEAL) {
        struct files *files = s->options.files;
        uint64_t end = segment->end + frame.size;
        int fd = end < segment->bytes ? store_open_segment(s, segment->number, O_RDWR) : -1;
        if (fd >= 0 && files->backend->truncate(files, fd, end) == 0) {
            s->bytes -= segment->bytes - end;
            segment->bytes = end;
        }
        if (fd >= 0)
            files->backend->close(files, fd);
    }
    free(memory);
}

static int know_contents(struct store *s, struct segment *segment)
{
    int known = know_by_seal(s, segment);
    if (known != 0) {
        s->report.known_places += segment->seal.hole_count;
        return known < 0 ? known : 0;
    }
    struct survey v;
    int error = survey_segment(s, segment, 0, true, NULL, NULL, &v);
    if (error < 0)
        return error;
    if (s->options.read_only && v.error == -ENOENT)
        segment->unreadable = true; /* whoever has the store removed it */
    else
        error = take_survey(s, segment, &v);
    survey_dispose(&v);
    return error;
}

static int know(struct store *s, struct segment *segment)
{
    int error = know_contents(s, segment);
    if (error == 0)
        trim(s, segment);
    return error;
}

static int know_all(struct store *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        int error = know(s, s->segments[i]);
        if (error < 0)
            return error;
    }
    return 0;
}

/* --- all of it --- */

static int recover(struct opening *o)
{
    struct store *s = o->s;
    int error = open_directory(s);
    if (error < 0)
        return give_why(o, error, NULL);
    s->directory = error;
    error = s->options.read_only ? 0 : take_locks(s);
    if (error < 0)
        return give_why(o, error, STORE_LOCK_NAME);
    if ((error = list_segments(o)) < 0 || (error = find_store(o)) < 0 || (error = take_segments(o)) < 0)
        return give_why(o, error, NULL);
    error = read_headers(o);
    if (error == PE_JOURNAL_VERSION)
        return error;
    if (error == 0)
        error = know_all(s);
    return error < 0 ? give_why(o, error, NULL) : 0;
}

int store_open(struct store *s, const struct store_options *options, char *why, size_t why_size)
{
    *s = (struct store){.options = *options, .directory = -1, .lock_fd = -1, .next_number = 1};
    pthread_mutex_init(&s->mutex, NULL);
    struct opening o = {.s = s, .why = why, .why_size = why_size};
    int error = recover(&o);
    free(o.found);
    if (error < 0)
        store_close(s);
    return error;
}
