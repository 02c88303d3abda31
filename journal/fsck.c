/* fsck: the store is opened read-only, which reports what a start would, and then all of it is read. A repair
 * is what a start does, too, for every segment. */
#include "journal/fsck.h"

#include "journal/fsck_apps.h"
#include "journal/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum place_kind {
    PLACE_NEW,     /* damage that no seal names */
    PLACE_KNOWN,   /* damage that a seal names, or a mark in it where frames are missing (a hole of size 0) */
    PLACE_MISSING, /* where frames are missing that no damage explains: to be marked */
};

struct place {
    enum place_kind kind;
    struct journal_place at;
};

struct fsck {
    struct files *files;
    const char *path;
    void (*line)(void *context, const char *text);
    void *context;
    struct fsck_report *report;
    struct store store;
    struct fsck_apps apps;
    struct place *places;
    uint32_t place_count, place_room;
    uint64_t *wrong; /* numbers of the segments whose seals are wrong */
    uint32_t wrong_count, wrong_room;
    int error;
};

static void say(const struct fsck *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(const struct fsck *f, const char *format, ...)
{
    char text[STORE_LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (f->line != NULL)
        f->line(f->context, text);
}

static void say_line(void *context, bool serious, const char *text)
{
    (void)serious;
    say(context, "%s", text);
}

/* --- opening --- */

static void no_random(void *context, void *bytes, size_t size)
{
    (void)context;
    memset(bytes, 0xff, size); /* a store without a name has nothing that is written under it */
}

static int open_store(struct fsck *f, bool read_only)
{
    char why[STORE_LINE_SIZE];
    int error = store_open(&f->store,
                           &(struct store_options){.files = f->files,
                                                   .path = f->path,
                                                   .fill_random = no_random,
                                                   .read_only = read_only,
                                                   .say = say_line,
                                                   .say_context = f},
                           why, sizeof why);
    if (error < 0)
        say(f, "%s", why);
    return error;
}

static bool locked_at(struct fsck *f, const char *name, int flags)
{
    int fd = f->files->backend->open(f->files, f->store.directory, name, flags, 0);
    if (fd < 0)
        return false;
    bool locked = f->files->backend->lock(f->files, fd) == -EWOULDBLOCK;
    f->files->backend->close(f->files, fd);
    return locked;
}

static bool is_locked(struct fsck *f)
{
    return locked_at(f, STORE_LOCK_NAME, O_RDWR) || locked_at(f, ".", O_RDONLY | O_DIRECTORY);
}

/* --- one segment --- */

static int add_place(struct fsck *f, enum place_kind kind, struct journal_place at)
{
    if (f->place_count == f->place_room) {
        uint32_t room = f->place_room == 0 ? 16 : f->place_room * 2;
        struct place *more = realloc(f->places, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        f->places = more;
        f->place_room = room;
    }
    f->places[f->place_count++] = (struct place){kind, at};
    return 0;
}

static int add_wrong(struct fsck *f, uint64_t number)
{
    if (f->wrong_count == f->wrong_room) {
        uint32_t room = f->wrong_room == 0 ? 16 : f->wrong_room * 2;
        uint64_t *more = realloc(f->wrong, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        f->wrong = more;
        f->wrong_room = room;
    }
    f->wrong[f->wrong_count++] = number;
    f->report->wrong_seals++;
    return 0;
}

static void take_frame(void *context, const struct journal_frame *frame)
{
    struct fsck *f = context;
    if (f->error < 0)
        return;
    int error = fsck_apps_frame(&f->apps, frame);
    if (error == PE_JOURNAL) {
        char name[SEGMENT_NAME_SIZE];
        segment_name(frame->segment, name);
        f->report->wrong_frames++;
        say(f, "%s: offset %" PRIu64 ": a frame of %" PRIu32 " bytes has records that are not whole", name,
            frame->offset, frame->size);
    } else {
        f->error = error;
    }
}

static bool output_agrees(const struct seal_output *there, const struct seal_output *said, bool exactly)
{
    if (said == NULL || there->first < said->first || there->last > said->last || there->bytes > said->bytes)
        return false;
    return !exactly || (there->first == said->first && there->last == said->last &&
                        there->bytes == said->bytes && there->first_offset == said->first_offset);
}

static bool app_agrees(const struct seal_app *there, const struct seal_app *said, bool exactly)
{
    if (said == NULL || there->last_sequence > said->last_sequence || there->dead > said->dead ||
        there->snapshot_offset > said->snapshot_offset)
        return false;
    for (uint32_t i = 0; i < there->output_count; i++) {
        const struct seal_output *output = &there->outputs[i];
        if (!output_agrees(output, seal_find_output(said, span_text(output->name)), exactly))
            return false;
    }
    return !exactly ||
           (there->first_sequence == said->first_sequence && there->last_sequence == said->last_sequence &&
            there->dead == said->dead && there->snapshot_offset == said->snapshot_offset &&
            there->output_count == said->output_count);
}

/* Whether the seal says what is there: exactly, or more than that where some of it is damaged. */
static bool seal_agrees(const struct survey *v)
{
    bool exactly = v->found.hole_count == 0 && v->stored.hole_count == 0;
    for (uint32_t i = 0; i < v->found.app_count; i++) {
        const struct seal_app *app = &v->found.apps[i];
        if (!app_agrees(app, seal_find_app(&v->stored, span_text(app->name)), exactly))
            return false;
    }
    return !exactly || v->found.app_count == v->stored.app_count;
}

static int take_places(struct fsck *f, const struct segment *segment, const struct survey *v)
{
    const struct segment stored = {.seal = v->stored}; /* what is on the disk */
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < v->found.hole_count; i++) {
        const struct seal_hole *hole = &v->found.holes[i];
        error = add_place(f, damage_known(&stored, hole) ? PLACE_KNOWN : PLACE_NEW,
                          (struct journal_place){segment->number, hole->offset});
    }
    for (uint32_t i = 0; error == 0 && i < v->stored.hole_count; i++)
        if (v->stored.holes[i].size == 0)
            error =
                add_place(f, PLACE_KNOWN, (struct journal_place){segment->number, v->stored.holes[i].offset});
    return error;
}

static int take_seal(struct fsck *f, const struct segment *segment, const struct survey *v)
{
    if (!v->sealed)
        return fsck_apps_seal(&f->apps, segment->number, &segment->seal);
    if (!seal_agrees(v)) {
        char name[SEGMENT_NAME_SIZE];
        segment_name(segment->number, name);
        say(f, "%s: offset %" PRIu64 ": its seal does not say what is in it", name, v->end);
        int error = add_wrong(f, segment->number);
        return error < 0 ? error : fsck_apps_seal(&f->apps, segment->number, &v->found);
    }
    return fsck_apps_seal(&f->apps, segment->number, &v->stored);
}

static int examine_segment(struct fsck *f, struct segment *segment)
{
    struct survey v;
    uint32_t added;
    bool kept;
    int error = survey_segment(&f->store, segment, 0, true, take_frame, f, &v);
    if (error < 0)
        return error;
    if (v.error != -ENOENT) { /* whoever has the store removed it */
        f->report->frames += v.frames;
        error = f->error;
        if (error == 0)
            error = damage_take(&f->store, segment, &v, &added, &kept);
        if (error == 0)
            error = take_places(f, segment, &v);
        if (error == 0)
            error = take_seal(f, segment, &v);
    }
    survey_dispose(&v);
    return error;
}

/* --- what is missing --- */

static bool comes_before(struct journal_place a, struct journal_place b)
{
    return a.segment != b.segment ? a.segment < b.segment : a.offset < b.offset;
}

/* What explains a gap: PLACE_NEW or PLACE_KNOWN damage in it, or, PLACE_MISSING, nothing does. */
static enum place_kind cause_of(const struct fsck *f, const struct fsck_gap *gap)
{
    enum place_kind cause = PLACE_MISSING;
    for (uint32_t i = 0; i < f->place_count; i++) {
        const struct place *place = &f->places[i];
        if (comes_before(place->at, gap->after) || comes_before(gap->before, place->at))
            continue;
        if (place->kind == PLACE_NEW)
            return PLACE_NEW;
        if (place->kind == PLACE_KNOWN)
            cause = PLACE_KNOWN;
    }
    return cause;
}

static void say_gap(const struct fsck *f, const char *app, const char *output, const struct fsck_gap *gap,
                    enum place_kind cause)
{
    static const char *const why[] = {
        [PLACE_NEW] = "",
        [PLACE_KNOWN] = ", as was found before",
        [PLACE_MISSING] = ", and no damage says why: a segment is missing",
    };
    if (output == NULL)
        say(f, "app %s: commits %" PRIu64 " to %" PRIu64 " are lost%s", app, gap->first, gap->last,
            why[cause]);
    else
        say(f, "app %s, output %s: records %" PRIu64 " to %" PRIu64 " are lost%s", app, output, gap->first,
            gap->last, why[cause]);
}

static void take_gap(void *context, const char *app, const char *output, const struct fsck_gap *gap)
{
    struct fsck *f = context;
    enum place_kind cause = cause_of(f, gap);
    say_gap(f, app, output, gap, cause);
    if (cause == PLACE_KNOWN)
        return;
    if (output == NULL)
        f->report->lost_commits += gap->last - gap->first + 1;
    else
        f->report->lost_records += gap->last - gap->first + 1;
    if (cause == PLACE_NEW || f->error < 0)
        return;
    f->report->unexplained++;
    f->error = add_place(f, PLACE_MISSING, gap->before.offset == UINT64_MAX ? gap->after : gap->before);
}

/* --- all of it --- */

static void take_report(struct fsck *f)
{
    const struct store_report *from = &f->store.report;
    struct fsck_report *to = f->report;
    to->segments = f->store.count;
    to->bytes = f->store.bytes;
    to->damaged_places = from->damaged_places;
    to->damaged_bytes = from->damaged_bytes;
    to->known_places = from->known_places;
    to->torn_segments = from->torn_segments;
    to->torn_bytes = from->torn_bytes;
    to->foreign_files = from->foreign_files;
}

static int examine(struct fsck *f)
{
    *f->report = (struct fsck_report){0};
    int error = open_store(f, true);
    if (error < 0)
        return error;
    f->report->running = is_locked(f);
    if (f->report->running)
        say(f, "a running host has the store: what it is writing may look unfinished");
    error = fsck_apps_init(&f->apps, &f->store);
    for (uint32_t i = 0; error == 0 && i < f->store.count; i++)
        error = examine_segment(f, f->store.segments[i]);
    if (error == 0)
        error = fsck_apps_missing(&f->apps, take_gap, f);
    if (error == 0)
        error = f->error;
    take_report(f);
    store_close(&f->store);
    if (error < 0)
        say(f, "%s: %s", f->path, pure_error_text(error));
    return error;
}

static void forget(struct fsck *f)
{
    fsck_apps_dispose(&f->apps);
    free(f->places);
    free(f->wrong);
    f->apps = (struct fsck_apps){0};
    f->places = NULL;
    f->wrong = NULL;
    f->place_count = f->place_room = f->wrong_count = f->wrong_room = 0;
}

static bool is_clean(const struct fsck_report *r)
{
    return r->damaged_places == 0 && r->wrong_seals == 0 && r->wrong_frames == 0 && r->lost_commits == 0 &&
           r->lost_records == 0;
}

/* --- repair --- */

static bool is_wrong(const struct fsck *f, uint64_t number)
{
    for (uint32_t i = 0; i < f->wrong_count; i++)
        if (f->wrong[i] == number)
            return true;
    return false;
}

/* The frames that are there are what the seal is to say; its holes stay. */
static void correct(struct segment *segment, struct survey *v)
{
    struct seal apps = v->found;
    v->found.apps = segment->seal.apps;
    v->found.app_count = segment->seal.app_count;
    v->found.app_room = segment->seal.app_room;
    segment->seal.apps = apps.apps;
    segment->seal.app_count = apps.app_count;
    segment->seal.app_room = apps.app_room;
}

static int mark_missing(const struct fsck *f, struct segment *segment, bool *changed)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < f->place_count; i++) {
        const struct place *place = &f->places[i];
        if (place->at.segment != segment->number || place->kind != PLACE_MISSING)
            continue;
        error = seal_add_hole(&segment->seal, place->at.offset, 0);
        *changed = true;
    }
    return error;
}

static int mend_segment(struct fsck *f, struct segment *segment)
{
    struct survey v;
    uint32_t added;
    bool kept, changed = is_wrong(f, segment->number);
    int error = survey_segment(&f->store, segment, 0, true, NULL, NULL, &v);
    if (error < 0)
        return error;
    error = damage_take(&f->store, segment, &v, &added, &kept);
    if (error == 0 && changed)
        correct(segment, &v);
    if (error == 0)
        error = mark_missing(f, segment, &changed);
    if (error == 0 && (changed || added > 0) && kept && v.error == 0) {
        char name[SEGMENT_NAME_SIZE];
        segment_name(segment->number, name);
        int written = damage_write_seal(&f->store, segment);
        say(f, "%s: its seal %s%s", name, written == 0 ? "says so now" : "cannot be written: ",
            written == 0 ? "" : pure_error_text(written));
    }
    survey_dispose(&v);
    return error;
}

static int mend(struct fsck *f)
{
    int error = open_store(f, false);
    if (error < 0)
        return error;
    for (uint32_t i = 0; error == 0 && i < f->store.count; i++)
        error = mend_segment(f, f->store.segments[i]);
    store_close(&f->store);
    return error;
}

static int repair_store(struct fsck *f)
{
    say(f, "repairing");
    int error = mend(f);
    forget(f);
    if (error < 0)
        return error;
    struct fsck_report after;
    struct fsck again = {.files = f->files, .path = f->path, .report = &after};
    error = examine(&again);
    forget(&again);
    return error == 0 && !is_clean(&after) ? PE_JOURNAL : error;
}

int fsck_store(struct files *files, const char *path, bool repair,
               void (*line)(void *context, const char *text), void *context, struct fsck_report *report)
{
    struct fsck f = {.files = files, .path = path, .line = line, .context = context, .report = report};
    int error = examine(&f);
    bool clean = is_clean(report);
    if (error == 0 && repair && report->running) {
        say(&f, "nothing is repaired while a host runs");
        error = PE_JOURNAL_LOCKED;
    } else if (error == 0 && !clean) {
        error = repair ? repair_store(&f) : PE_JOURNAL;
    }
    forget(&f);
    return error;
}
