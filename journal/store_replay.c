/* Recovery, second pass: what is to be known of the apps. One sweep over the segments, upwards, that reads
 * those only in which an app has frames that it needs: its newest snapshot and what is behind it. */
#include "journal/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

/* --- the apps of all segments --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int store_app_names(const struct store *s, const char ***names, uint32_t *count)
{
    size_t all = 0, n = 0;
    for (uint32_t i = 0; i < s->count; i++)
        all += s->segments[i]->seal.app_count;
    const char **list = calloc(all + 1, sizeof *list);
    if (list == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = 0; k < s->segments[i]->seal.app_count; k++)
            list[n++] = s->segments[i]->seal.apps[k].name;
    qsort(list, n, sizeof *list, by_name);
    uint32_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(list[kept - 1], list[i]) != 0)
            list[kept++] = list[i];
    *names = list;
    *count = kept;
    return 0;
}

int store_each_app(const struct store *s, void (*each)(void *context, const char *app), void *context)
{
    const char **names;
    uint32_t count;
    int error = store_app_names(s, &names, &count);
    if (error < 0)
        return error;
    for (uint32_t i = 0; i < count; i++)
        each(context, names[i]);
    free(names);
    return 0;
}

/* --- the replay --- */

struct replayed {
    const char *name;
    bool over;         /* not wanted, or `each` ended it */
    bool has_snapshot; /* `start` is the place of a valid one; else it is replayed from its first commit */
    struct journal_place start;
    uint64_t sequence;       /* of the last frame given, or passed over as lost */
    struct journal_place at; /* of the last frame given */
    uint64_t last;           /* of the last commit that seals know of */
    uint64_t lost;           /* commits */
};

struct replaying {
    struct store *s;
    const struct store_replay *replay;
    struct replayed *apps; /* by name, upwards */
    uint32_t count;
};

static struct replayed *find_app(const struct replaying *r, struct span name)
{
    uint32_t low = 0, high = r->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = store_name_order(name, r->apps[middle].name);
        if (order == 0)
            return &r->apps[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static int make_apps(struct replaying *r)
{
    const char **names;
    int error = store_app_names(r->s, &names, &r->count);
    if (error < 0)
        return error;
    r->apps = calloc(r->count + 1u, sizeof *r->apps);
    if (r->apps == NULL) {
        free(names);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < r->count; i++)
        r->apps[i] = (struct replayed){.name = names[i],
                                       .over = r->replay->wanted != NULL &&
                                               !r->replay->wanted(r->replay->context, names[i])};
    free(names);
    return 0;
}

/* --- where each app begins --- */

/* Whether a snapshot of the app lies there. 1, 0 or -ENOMEM. */
static int snapshot_is_at(const struct store *s, const char *app, struct journal_place place)
{
    struct files *files = s->options.files;
    int fd = store_open_segment(s, place.segment, O_RDONLY);
    if (fd < 0)
        return 0;
    struct journal_frame frame;
    uint8_t *memory = NULL;
    struct commit_head head;
    struct span sections;
    int error = scan_frame_at(files, fd, s->id, place.segment, place.offset, &frame, &memory);
    bool is = error == 0 && frame.kind == FRAME_SNAPSHOT &&
              commit_read_head(frame.payload, &head, &sections) == 0 && span_is(head.app, app);
    free(memory);
    files->backend->close(files, fd);
    return error == -ENOMEM ? error : is;
}

struct looking {
    struct span app;
    uint64_t before, offset;
};

static void look_for_snapshot(void *context, const struct journal_frame *frame)
{
    struct looking *l = context;
    struct commit_head head;
    struct span sections;
    if (frame->kind == FRAME_SNAPSHOT && frame->offset < l->before &&
        commit_read_head(frame->payload, &head, &sections) == 0 && span_equal(head.app, l->app))
        l->offset = frame->offset;
}

/* The seal names the last snapshot in its segment only; that one is damaged. Is there one in front of it? */
static int find_earlier(struct store *s, const struct segment *segment, struct replayed *a, uint64_t before)
{
    struct looking l = {.app = span_text(a->name), .before = before};
    struct survey v;
    int error = survey_segment(s, segment, 0, false, look_for_snapshot, &l, &v);
    if (error < 0)
        return error;
    survey_dispose(&v);
    a->has_snapshot = l.offset != 0;
    a->start = (struct journal_place){segment->number, l.offset};
    return 0;
}

static int take_snapshot(struct store *s, const struct segment *segment, struct replayed *a, uint64_t offset)
{
    struct journal_place place = {segment->number, offset};
    int is = snapshot_is_at(s, a->name, place);
    if (is < 0)
        return is;
    a->has_snapshot = is > 0;
    a->start = place;
    if (is > 0)
        return 0;
    char name[SEGMENT_NAME_SIZE];
    segment_name(segment->number, name);
    store_say(s, true,
              "%s: offset %" PRIu64 ": the snapshot of app %s cannot be used; an older one is looked for",
              name, offset, a->name);
    return find_earlier(s, segment, a, offset);
}

/* From the newest segment down: the first valid snapshot of each app. */
static int find_starts(struct replaying *r)
{
    for (uint32_t i = r->s->count; i-- > 0;) {
        const struct segment *segment = r->s->segments[i];
        for (uint32_t k = 0; k < segment->seal.app_count; k++) {
            const struct seal_app *found = &segment->seal.apps[k];
            struct replayed *a = find_app(r, span_text(found->name));
            if (a->over)
                continue;
            a->last = max_u64(a->last, found->last_sequence);
            if (a->has_snapshot || found->snapshot_offset == 0)
                continue;
            int error = take_snapshot(r->s, segment, a, found->snapshot_offset);
            if (error < 0)
                return error;
        }
    }
    for (uint32_t i = 0; i < r->count; i++)
        if (!r->apps[i].has_snapshot)
            r->apps[i].start = (struct journal_place){0, 0};
    return 0;
}

/* --- the sweep --- */

/* Where in the segment the first frame lies that an app needs; false: none does. */
static bool needed_from(const struct replaying *r, const struct segment *segment, uint64_t *from)
{
    *from = UINT64_MAX;
    for (uint32_t k = 0; k < segment->seal.app_count; k++) {
        const struct replayed *a = find_app(r, span_text(segment->seal.apps[k].name));
        if (a->over || a->start.segment > segment->number)
            continue;
        *from = min_u64(*from, a->start.segment == segment->number ? a->start.offset : 0);
    }
    return *from != UINT64_MAX;
}

static void lose(struct replaying *r, struct replayed *a, uint64_t first, uint64_t last)
{
    a->lost += last - first + 1;
    r->s->report.lost_commits += last - first + 1;
    if (first == last)
        store_say(r->s, true, "app %s: commit %" PRIu64 " is lost", a->name, first);
    else
        store_say(r->s, true, "app %s: commits %" PRIu64 " to %" PRIu64 " are lost", a->name, first, last);
}

static void give(struct replaying *r, struct replayed *a, const struct commit_head *head,
                 const struct journal_frame *frame, struct span sections)
{
    a->sequence = head->sequence;
    a->at = (struct journal_place){frame->segment, frame->offset};
    a->over = r->replay->each(r->replay->context, head, frame, sections) != 0;
}

static void take_commit(struct replaying *r, struct replayed *a, const struct commit_head *head,
                        const struct journal_frame *frame, struct span sections)
{
    if (head->sequence <= a->sequence) {
        char name[SEGMENT_NAME_SIZE];
        segment_name(frame->segment, name);
        store_say(r->s, true,
                  "%s: offset %" PRIu64 ": commit %" PRIu64 " of app %s is there twice; passed over", name,
                  frame->offset, head->sequence, a->name);
        return;
    }
    if (head->sequence > a->sequence + 1)
        lose(r, a, a->sequence + 1, head->sequence - 1);
    give(r, a, head, frame, sections);
}

static void take_frame(void *context, const struct journal_frame *frame)
{
    struct replaying *r = context;
    struct commit_head head;
    struct span sections;
    if (commit_read_head(frame->payload, &head, &sections) < 0)
        return;
    struct replayed *a = find_app(r, head.app);
    if (a == NULL || a->over || frame->segment < a->start.segment)
        return;
    bool at_start = frame->segment == a->start.segment && frame->offset == a->start.offset;
    if (frame->segment == a->start.segment && frame->offset < a->start.offset)
        return;
    if (frame->kind == FRAME_COMMIT)
        take_commit(r, a, &head, frame, sections);
    else if (a->has_snapshot && at_start)
        give(r, a, &head, frame, sections);
}

/* Damage in a segment that opening knew by its seal shows here. */
static int sweep_segment(struct replaying *r, struct segment *segment, uint64_t from)
{
    struct survey v;
    int error = survey_segment(r->s, segment, from, false, take_frame, r, &v);
    if (error < 0)
        return error;
    uint32_t added;
    bool kept;
    error = damage_take(r->s, segment, &v, &added, &kept);
    if (v.error < 0)
        segment->unreadable = true;
    else if (error == 0 && added > 0 && kept && !r->s->options.read_only)
        damage_write_seal(r->s, segment);
    survey_dispose(&v);
    return error;
}

static int sweep(struct replaying *r)
{
    for (uint32_t i = 0; i < r->s->count; i++) {
        uint64_t from;
        int error = needed_from(r, r->s->segments[i], &from) ? sweep_segment(r, r->s->segments[i], from) : 0;
        if (error < 0)
            return error;
    }
    return 0;
}

static uint64_t damage_behind(const struct store *s, struct journal_place at)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct segment *segment = s->segments[i];
        for (uint32_t k = 0; segment->number >= at.segment && k < segment->seal.hole_count; k++)
            if (segment->number > at.segment || segment->seal.holes[k].offset > at.offset)
                bytes += segment->seal.holes[k].size;
    }
    return bytes;
}

static void end_apps(struct replaying *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        struct replayed *a = &r->apps[i];
        if (a->over)
            continue;
        if (a->last > a->sequence)
            lose(r, a, a->sequence + 1, a->last);
        if (r->replay->end != NULL)
            r->replay->end(r->replay->context, a->name, max_u64(a->sequence, a->last),
                           damage_behind(r->s, a->at));
    }
}

int store_replay(struct store *s, const struct store_replay *replay)
{
    struct replaying r = {.s = s, .replay = replay};
    int error = make_apps(&r);
    if (error == 0)
        error = find_starts(&r);
    if (error == 0)
        error = sweep(&r);
    if (error == 0)
        end_apps(&r);
    free(r.apps);
    return error;
}
