#include "journal/fsck_apps.h"

#include "journal/store_private.h"

#include <errno.h>
#include <stdlib.h>

int fsck_apps_init(struct fsck_apps *a, const struct store *s)
{
    const char **names;
    *a = (struct fsck_apps){0};
    int error = store_app_names(s, &names, &a->count);
    if (error < 0)
        return error;
    a->apps = calloc(a->count + 1u, sizeof *a->apps);
    for (uint32_t i = 0; a->apps != NULL && i < a->count; i++)
        a->apps[i].name = names[i];
    free(names);
    return a->apps == NULL ? -ENOMEM : 0;
}

void fsck_apps_dispose(struct fsck_apps *a)
{
    for (uint32_t i = 0; a->apps != NULL && i < a->count; i++) {
        struct fsck_app *app = &a->apps[i];
        for (uint32_t k = 0; k < app->output_count; k++)
            free(app->outputs[k].records.gaps);
        free(app->outputs);
        free(app->commits.gaps);
    }
    free(a->apps);
}

/* --- runs --- */

static int add_gap(struct fsck_run *run, uint64_t last, struct journal_place before)
{
    if (run->gap_count == run->gap_room) {
        uint32_t room = run->gap_room == 0 ? 4 : run->gap_room * 2;
        struct fsck_gap *more = realloc(run->gaps, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        run->gaps = more;
        run->gap_room = room;
    }
    run->gaps[run->gap_count++] = (struct fsck_gap){run->last + 1, last, run->place, before};
    return 0;
}

static int take_run(struct fsck_run *run, uint64_t first, uint64_t last, struct journal_place place)
{
    if (first > run->last + 1) {
        int error = add_gap(run, first - 1, place);
        if (error < 0)
            return error;
    }
    run->last = max_u64(run->last, last);
    run->place = place;
    return 0;
}

static void claim(struct fsck_run *run, uint64_t last, struct journal_place before)
{
    if (last <= run->claimed)
        return;
    run->claimed = last;
    run->claimed_before = before;
}

static int end_run(struct fsck_run *run)
{
    if (run->claimed <= run->last)
        return 0;
    return add_gap(run, run->claimed, run->claimed_before);
}

/* --- apps and outputs --- */

static struct fsck_app *find_app(const struct fsck_apps *a, struct span name)
{
    uint32_t low = 0, high = a->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = store_name_order(name, a->apps[middle].name);
        if (order == 0)
            return &a->apps[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Made if it is new. NULL: no memory. */
static struct fsck_output *output_of(struct fsck_app *app, struct span name)
{
    for (uint32_t i = 0; i < app->output_count; i++)
        if (span_is(name, app->outputs[i].name))
            return &app->outputs[i];
    if (app->output_count == app->output_room) {
        uint32_t room = app->output_room == 0 ? 4 : app->output_room * 2;
        struct fsck_output *more = realloc(app->outputs, room * sizeof *more);
        if (more == NULL)
            return NULL;
        app->outputs = more;
        app->output_room = room;
    }
    struct fsck_output *output = &app->outputs[app->output_count++];
    *output = (struct fsck_output){0};
    memcpy(output->name, name.data, min_size(name.size, JOURNAL_NAME_MAX));
    return output;
}

static int take_section(struct fsck_app *app, const struct section *section, struct journal_place place)
{
    if (section->type != SECTION_SENDS && section->type != SECTION_OUTPUT)
        return 0;
    bool sends = section->type == SECTION_SENDS;
    struct fsck_output *output = output_of(app, sends ? section->sends.output : section->output.output);
    if (output == NULL)
        return -ENOMEM;
    if (sends)
        return take_run(&output->records, section->sends.first,
                        section->sends.first + section->sends.records - 1, place);
    output->stored = max_u64(output->stored, section->output.stored);
    claim(&output->records, section->output.sent, place);
    return 0;
}

static int take_head(struct fsck_app *app, const struct journal_frame *frame, uint64_t sequence,
                     struct journal_place place)
{
    if (frame->kind == FRAME_COMMIT)
        return take_run(&app->commits, sequence, sequence, place);
    app->commits.gap_count = 0;
    app->commits.last = sequence;
    app->commits.place = place;
    return 0;
}

int fsck_apps_frame(struct fsck_apps *a, const struct journal_frame *frame)
{
    struct commit_head head;
    struct span rest;
    if (commit_read_head(frame->payload, &head, &rest) < 0)
        return PE_JOURNAL;
    struct fsck_app *app = find_app(a, head.app);
    if (app == NULL)
        return 0; /* a seal is wrong, which shows by itself */
    struct journal_place place = {frame->segment, frame->offset};
    int error = take_head(app, frame, head.sequence, place);
    bool whole = true;
    struct section section;
    int more = 1;
    while (error == 0 && (more = commit_read_section(&rest, &section)) > 0) {
        whole = whole && section_records_whole(&section);
        error = take_section(app, &section, place);
    }
    return error < 0 ? error : more < 0 || !whole ? PE_JOURNAL : 0;
}

int fsck_apps_seal(struct fsck_apps *a, uint64_t segment, const struct seal *seal)
{
    struct journal_place end = {segment, UINT64_MAX};
    for (uint32_t i = 0; i < seal->app_count; i++) {
        const struct seal_app *from = &seal->apps[i];
        struct fsck_app *app = find_app(a, span_text(from->name));
        if (app == NULL)
            continue;
        claim(&app->commits, from->last_sequence, end);
        for (uint32_t k = 0; k < from->output_count; k++) {
            struct fsck_output *output = output_of(app, span_text(from->outputs[k].name));
            if (output == NULL)
                return -ENOMEM;
            claim(&output->records, from->outputs[k].last, end);
        }
    }
    return 0;
}

/* --- what is missing --- */

static int missing_of(struct fsck_app *app, struct fsck_output *output,
                      void (*each)(void *context, const char *app, const char *output,
                                   const struct fsck_gap *gap),
                      void *context)
{
    struct fsck_run *run = output == NULL ? &app->commits : &output->records;
    uint64_t stored = output == NULL ? 0 : output->stored;
    int error = end_run(run);
    for (uint32_t i = 0; error == 0 && i < run->gap_count; i++) {
        struct fsck_gap gap = run->gaps[i];
        gap.first = max_u64(gap.first, stored + 1);
        if (gap.first <= gap.last)
            each(context, app->name, output == NULL ? NULL : output->name, &gap);
    }
    return error;
}

int fsck_apps_missing(struct fsck_apps *a,
                      void (*each)(void *context, const char *app, const char *output,
                                   const struct fsck_gap *gap),
                      void *context)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < a->count; i++) {
        struct fsck_app *app = &a->apps[i];
        error = missing_of(app, NULL, each, context);
        for (uint32_t k = 0; error == 0 && k < app->output_count; k++)
            error = missing_of(app, &app->outputs[k], each, context);
    }
    return error;
}
