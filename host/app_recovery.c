/* An app back from the journal, before the loops run (host/app_journal.h). */
#include "host/app_journal.h"

#include "host/owned_app.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct journal_output *find_output(struct owned_app *a, struct span name)
{
    struct journal_output *o = a->journal.outputs;
    while (o && !span_is(name, o->name))
        o = o->next;
    return o;
}

/* Also makes it. NULL without memory. */
static struct journal_output *output_of(struct owned_app *a, struct span name)
{
    struct journal_output *o = find_output(a, name);
    if (o || !(o = calloc(1, sizeof *o)))
        return o;
    memcpy(o->name, name.data, name.size);
    o->reach = OUTPUT_REACH_ALL;
    o->next = a->journal.outputs;
    a->journal.outputs = o;
    return o;
}

static int restore_output(struct owned_app *a, struct span name, uint64_t sent, uint64_t stored)
{
    struct journal_output *o = output_of(a, name);
    if (!o)
        return -ENOMEM;
    o->sent = max_u64(o->sent, sent);
    o->stored = max_u64(o->stored, min_u64(stored, o->sent));
    return 0;
}

static int restore_numbers(struct owned_app *a, const struct section_output *output)
{
    int error = restore_output(a, output->output, output->sent, output->stored);
    if (error < 0)
        return error;
    struct journal_output *o = find_output(a, output->output);
    o->reach = output->reach;
    memcpy(o->epoch, output->epoch, EPOCH_BYTES);
    return 0;
}

static int restore_source(struct owned_app *a, const struct section_cursor *cursor)
{
    struct app_journal *j = &a->journal;
    struct journal_source *s = j->sources;
    while (s && !span_is(cursor->identity, s->name))
        s = s->next;
    if (!s) {
        if (!(s = calloc(1, sizeof *s)))
            return -ENOMEM;
        memcpy(s->name, cursor->identity.data, cursor->identity.size);
        s->next = j->sources;
        j->sources = s;
    }
    memcpy(s->epoch, cursor->epoch, EPOCH_BYTES);
    s->stored = cursor->stored;
    return 0;
}

/* The sources of other hosts have slashes in their names, inner outlets have none. */
static int restore_cursor(struct owned_app *a, const struct section_cursor *cursor)
{
    if (cursor->identity.size > SOURCE_NAME_MAX)
        return PE_JOURNAL;
    if (!memchr(cursor->identity.data, '/', cursor->identity.size))
        return restore_source(a, cursor);
    return streams_restore(&a->intake.streams, cursor->identity, cursor->epoch, cursor->stored,
                           cursor->has_retired, cursor->retired,
                           (unsigned)min_size(cursor->retired_count, RETIRED_EPOCHS));
}

static int replay_events(struct owned_app *a, const struct section *section)
{
    const struct section_events *e = &section->events;
    char event[EVENT_NAME_MAX + 1], source[SOURCE_NAME_MAX + 1];
    if (!a->state.app || a->state.stateless || e->bare)
        return 0;
    if (e->event.size > EVENT_NAME_MAX || e->source.size > SOURCE_NAME_MAX || !section_records_whole(section))
        return PE_JOURNAL;
    snprintf(event, sizeof event, "%.*s", (int)e->event.size, (const char *)e->event.data);
    snprintf(source, sizeof source, "%.*s", (int)e->source.size, (const char *)e->source.data);
    struct events events = {.event = event,
                            .source = source,
                            .first = e->first,
                            .time_ms = e->time_ms,
                            .bytes = e->bytes,
                            .records = e->records};
    return app_state_replay(&a->state, &a->turn, &events);
}

/* Only what all before it is stored of is set aside: so its output has come as far. */
static int restore_dead(struct owned_app *a, const struct section_dead *dead)
{
    int error = restore_output(a, dead->output, dead->number, dead->number);
    return error < 0 ? error : app_dead_restore(&find_output(a, dead->output)->dead, dead);
}

static int forget_dead(struct owned_app *a, const struct section_dead_gone *gone)
{
    struct journal_output *o = output_of(a, gone->output);
    if (!o)
        return -ENOMEM;
    dead_letters_forget(&o->dead.letters, gone->number);
    return 0;
}

static int restore_fare(struct owned_app *a, const struct section_fare *fare)
{
    struct journal_output *o = output_of(a, fare->output);
    if (!o)
        return -ENOMEM;
    app_fare_restore(&o->fare, fare);
    return 0;
}

static int restore_section(struct owned_app *a, const struct section *section)
{
    switch (section->type) {
    case SECTION_EVENTS:
        return replay_events(a, section);
    case SECTION_SENDS:
        return restore_output(a, section->sends.output, section->sends.first + section->sends.records - 1, 0);
    case SECTION_CURSOR:
        return restore_cursor(a, &section->cursor);
    case SECTION_KEY:
        return keys_restore(&a->intake.keys, section->key.digest, section->key.stored);
    case SECTION_OUTPUT:
        return restore_numbers(a, &section->output);
    case SECTION_STATE:
        return a->state.app ? app_state_restore(&a->state, section->state) : 0;
    case SECTION_DEAD:
        return restore_dead(a, &section->dead);
    case SECTION_DEAD_GONE:
        return forget_dead(a, &section->dead_gone);
    case SECTION_FARE:
        return restore_fare(a, &section->fare);
    }
    return 0;
}

static void forget_all(struct owned_app *a)
{
    streams_dispose(&a->intake.streams);
    keys_dispose(&a->intake.keys);
    for (struct journal_output *o = a->journal.outputs; o; o = o->next) {
        dead_letters_clear(&o->dead.letters);
        o->fare = (struct kept_fare){0};
    }
    a->journal.segment_count = 0;
}

int app_journal_restore(struct owned_app *a, const struct commit_head *head,
                        const struct journal_frame *frame, struct span sections)
{
    struct app_journal *j = &a->journal;
    if (frame->kind == FRAME_SNAPSHOT)
        forget_all(a);
    int noted = app_journal_note_segment(j, frame->segment);
    int error = noted < 0 ? noted : 0, of_state = 0, more;
    struct section section;
    while ((more = commit_read_section(&sections, &section)) > 0) {
        int result = restore_section(a, &section);
        if (result == PE_APP_FAILED)
            of_state = result;
        else if (result < 0 && error == 0)
            error = result;
    }
    j->sequence = head->sequence;
    atomic_store_explicit(&a->entry.report.stored, head->stored, memory_order_relaxed);
    return more < 0 ? more : error < 0 ? error : of_state;
}

void app_journal_go_on(struct owned_app *a, uint64_t sequence, uint64_t unknown)
{
    a->journal.sequence = max_u64(a->journal.sequence, sequence);
    a->journal.unknown = unknown;
}

int app_journal_restored(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    for (uint32_t i = 0; i < j->segment_count; i++)
        store_hold(j->options.store, j->segments[i]);
    app_dead_restored(a);
    return a->state.app ? app_state_snapshot(&a->state) : 0;
}

static void find_last(void *context, const struct store_sends *sends)
{
    uint64_t *last = context;
    *last = max_u64(*last, sends->last);
}

/* Numbers never go back: not behind what lies in segments, and not behind what was lost with them. */
static uint64_t sent_of(const struct owned_app *a, const struct journal_output *o)
{
    uint64_t last = o->sent;
    store_each_sends(a->journal.options.store, a->entry.name, o->name, o->sent, find_last, &last);
    return last + a->journal.unknown;
}

int app_journal_add_output(struct owned_app *a, struct outlet *outlet, uint64_t limit,
                           struct backlog **backlog)
{
    struct app_journal *j = &a->journal;
    struct journal_output *o = output_of(a, span_text(outlet->output));
    if (!o || !(o->backlog = aligned_alloc(CACHE_LINE,
                                           (sizeof *o->backlog + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE)))
        return -ENOMEM;
    struct backlog_options options = {.outlet = outlet,
                                      .limit = limit,
                                      .store = j->options.store,
                                      .reader = j->options.reader,
                                      .log = a->log,
                                      .loop = a->loop,
                                      .task = &a->task};
    int error = backlog_init(o->backlog, &options);
    uint64_t sent = sent_of(a, o);
    /* Where frames are lost, what they said is, too: then all may have left. */
    uint64_t reach = sent == o->sent ? min_u64(o->reach, sent) : sent;
    o->sent = sent;
    memcpy(o->backlog->epoch, o->epoch, EPOCH_BYTES);
    if (error == 0)
        error = backlog_start(o->backlog, sent, o->stored);
    bool first_life = j->options.store->count == 0;
    if (outlet->asks && !first_life) /* of a store that was just made there is no copy */
        backlog_ask(o->backlog, reach);
    *backlog = o->backlog;
    loop_want(a->loop, &a->task); /* what there is wants to be brought back */
    return error;
}

const uint8_t *app_journal_epoch(struct owned_app *a, const char *output)
{
    static const uint8_t none[EPOCH_BYTES];
    const struct journal_output *o = find_output(a, span_text(output));
    return o && memcmp(o->epoch, none, EPOCH_BYTES) != 0 ? o->epoch : NULL;
}

uint64_t app_journal_source(const struct owned_app *a, const char *name, const uint8_t epoch[EPOCH_BYTES])
{
    const struct journal_source *s = a->journal.sources;
    while (s && strcmp(s->name, name) != 0)
        s = s->next;
    return s && memcmp(s->epoch, epoch, EPOCH_BYTES) == 0 ? s->stored : 0;
}

int app_journal_stored(struct owned_app *a, const char *output, uint64_t stored)
{
    return restore_output(a, span_text(output), stored, stored);
}

/* --- outputs that the configuration no longer has --- */

static void hold_sends(void *context, const struct store_sends *sends)
{
    struct app_journal *j = context;
    (void)app_journal_note_segment(j, sends->segment);
}

void app_journal_park(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    for (struct journal_output *o = j->outputs; o; o = o->next) {
        uint32_t dead = o->backlog ? 0 : dead_letters_kept(&o->dead.letters);
        if (dead > 0)
            log_line(a->log, LOG_WARNING,
                     "output %s.%s is in the store and not in the configuration: its %u dead letters stay "
                     "there, until they are dropped",
                     a->entry.name, o->name, dead);
        if (o->backlog || o->sent == o->stored)
            continue;
        struct app_journal parked = {.on = true};
        store_each_sends(j->options.store, a->entry.name, o->name, o->stored, hold_sends, &parked);
        for (uint32_t i = 0; i < parked.segment_count; i++)
            store_hold(j->options.store, parked.segments[i]);
        free(parked.segments);
        log_line(a->log, LOG_WARNING,
                 "output %s.%s is in the store and not in the configuration: %llu records that it has not "
                 "delivered stay there, until it is there again",
                 a->entry.name, o->name, (unsigned long long)(o->sent - o->stored));
    }
}
