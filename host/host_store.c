/* The host's store: its journal, an owner each, and how apps come back from it. */
#include "host/host_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void say(void *context, bool serious, const char *line)
{
    struct host *h = context;
    log_line(&front_thread(h)->log, serious ? LOG_ERROR : LOG_NOTICE, "%s", line);
}

/* --- histories --- */

/* The bytes of segments newer than this one that have events of the app. Under the store's mutex. */
static uint64_t newer_bytes(const struct store *s, const struct segment *segment, struct span app)
{
    uint64_t bytes = 0;
    for (uint32_t i = s->count; i > 0 && s->segments[i - 1]->number > segment->number; i--) {
        if (seal_find_app(&s->segments[i - 1]->seal, app))
            bytes += s->segments[i - 1]->end;
    }
    return bytes;
}

static bool app_keeps(const struct host *h, const struct config_app *app, const struct segment *segment,
                      uint64_t now_ms)
{
    const struct seal_app *in = seal_find_app(&segment->seal, span_text(app->name));
    if (!in || (app->keep_ms == 0 && app->keep_bytes == 0))
        return false;
    bool young = app->keep_ms == 0 || in->last_ms + app->keep_ms > now_ms;
    bool within =
        app->keep_bytes == 0 || newer_bytes(&h->store, segment, span_text(app->name)) < app->keep_bytes;
    return young && within;
}

/* Any owner's thread; the configuration does not change. */
static bool kept(void *context, const struct segment *segment)
{
    const struct host *h = context;
    uint64_t now_ms = io_wall_ms(h->threads[0].io);
    bool any = false;
    for (unsigned i = 0; i < h->config->app_count && !any; i++)
        any = app_keeps(h, &h->config->apps[i], segment, now_ms);
    return any;
}

/* --- opening --- */

static void begun(void *context, uint64_t segment)
{
    (void)segment;
    struct host_journal *journal = context;
    journal->begun++;
    for (unsigned i = 0; i < journal->host->app_count; i++) {
        struct owned_app *a = &journal->host->apps[i];
        if (a->loop == journal->loop && a->journal.on)
            loop_want(a->loop, &a->task); /* it may be time for a snapshot */
    }
}

static int open_journal(struct host *h, unsigned owner)
{
    struct host_journal *journal = &h->journals[owner];
    struct host_thread *t = &h->threads[1 + owner];
    *journal = (struct host_journal){.host = h, .loop = &t->loop};
    struct journal_options options = {.store = &h->store,
                                      .loop = &t->loop,
                                      .log = &t->log,
                                      .begun = begun,
                                      .context = journal,
                                      .alone = &journal->alone};
    int error = journal_writer_init(&journal->writer, &options);
    if (error < 0)
        return error;
    journal->writing = true;
    error = journal_reader_init(&journal->reader, &h->store, &t->loop);
    journal->reading = error == 0;
    return error;
}

int host_open_store(struct host *h, char *why, size_t why_size)
{
    const struct config *c = h->config;
    if (!c->store_path)
        return 0;
    struct store_options options = {.files = h->options.files ? h->options.files : files_system(),
                                    .path = c->store_path,
                                    .segment_bytes = c->segment_bytes,
                                    .fill_random = h->options.fill_random,
                                    .random_context = h->options.context,
                                    .now_ms = io_wall_ms(front_thread(h)->io),
                                    .say = say,
                                    .say_context = h};
    h->journals = host_allocate(h->owner_count, sizeof *h->journals);
    int error = h->journals ? store_open(&h->store, &options, why, why_size) : -ENOMEM;
    if (error < 0)
        return error;
    h->storing = true;
    h->store.kept = kept;
    h->store.kept_context = h;
    store_epoch(&h->store, h->store_epoch);
    h->registry.store = &h->store;
    h->registry.journals = calloc(h->owner_count, sizeof *h->registry.journals);
    if (!h->registry.journals)
        return -ENOMEM;
    for (unsigned i = 0; error == 0 && i < h->owner_count; i++) {
        error = open_journal(h, i);
        h->registry.journals[i] = (struct registry_journal){h->threads[1 + i].name, &h->journals[i].writer};
        h->registry.journal_count = i + 1;
    }
    return error;
}

void host_dispose_store(struct host *h)
{
    for (unsigned i = 0; i < h->owner_count && h->journals; i++) {
        if (h->journals[i].writing)
            journal_writer_dispose(&h->journals[i].writer);
        if (h->journals[i].reading)
            journal_reader_dispose(&h->journals[i].reader);
    }
    free(h->journals);
    free(h->registry.journals);
    if (h->storing)
        store_close(&h->store);
}

void host_journal_options(struct host *h, unsigned owner, const struct config_app *config,
                          struct app_journal_options *options)
{
    *options = (struct app_journal_options){.durability = DURABILITY_MEMORY};
    if (!h->storing)
        return;
    struct host_journal *journal = &h->journals[owner];
    *options = (struct app_journal_options){.store = &h->store,
                                            .writer = &journal->writer,
                                            .reader = &journal->reader,
                                            .begun = &journal->begun,
                                            .durability = config->durability,
                                            .interval_ns = config->interval_ns,
                                            .fill_random = h->options.fill_random,
                                            .random_context = h->options.context,
                                            .keeps = config->keep_ms > 0 || config->keep_bytes > 0};
}

const uint8_t *host_epoch_of(const struct host *h, const struct owned_app *a)
{
    return a->journal.on ? h->store_epoch : h->epoch;
}

const uint8_t *host_stream_epoch(struct host *h, const struct config_output *config)
{
    struct owned_app *a = &h->apps[host_find_app(h, config->app)];
    const uint8_t *own = a->journal.on ? app_journal_epoch(a, config->output) : NULL;
    return own ? own : host_epoch_of(h, a);
}

/* --- apps back from it --- */

struct restoring {
    struct host *host;
    int *errors; /* by app: the first */
};

static struct owned_app *journaled_app(struct host *h, struct span name, unsigned *index)
{
    for (unsigned i = 0; i < h->app_count; i++) {
        *index = i;
        if (span_is(name, h->apps[i].entry.name) && h->apps[i].journal.on)
            return &h->apps[i];
    }
    return NULL;
}

static bool wanted(void *context, const char *app)
{
    struct restoring *r = context;
    unsigned index;
    return journaled_app(r->host, span_text(app), &index) != NULL;
}

static int restore(void *context, const struct commit_head *head, const struct journal_frame *frame,
                   struct span sections)
{
    struct restoring *r = context;
    unsigned index;
    struct owned_app *a = journaled_app(r->host, head->app, &index);
    int error = a ? app_journal_restore(a, head, frame, sections) : 0;
    if (r->errors[index] == 0)
        r->errors[index] = error;
    return error == -ENOMEM ? error : 0; /* the rest of what there is to know is wanted in any case */
}

static void end_of(void *context, const char *app, uint64_t sequence, uint64_t unknown)
{
    struct restoring *r = context;
    unsigned index;
    struct owned_app *a = journaled_app(r->host, span_text(app), &index);
    if (a)
        app_journal_go_on(a, sequence, unknown);
}

/* What nobody in the configuration wants stays: names may have been mistyped. */
static void hold_unknown(void *context, const char *app)
{
    struct host *h = context;
    unsigned index, segments = 0;
    if (journaled_app(h, span_text(app), &index))
        return;
    for (uint32_t i = 0; i < h->store.count; i++) {
        if (!seal_find_app(&h->store.segments[i]->seal, span_text(app)))
            continue;
        store_hold(&h->store, h->store.segments[i]->number);
        segments++;
    }
    log_line(&front_thread(h)->log, LOG_WARNING,
             "app %s is in the store and %s: what it had stays there, in %u segments", app,
             host_find_app(h, app) < 0 ? "not in the configuration" : "has durability = memory now",
             segments);
}

static void see_who_waits(struct host *h)
{
    for (unsigned i = 0; i < h->owner_count; i++) {
        struct host_journal *journal = &h->journals[i];
        journal->alone = true;
        for (unsigned k = 0; k < h->app_count; k++) {
            const struct owned_app *a = &h->apps[k];
            bool waits = a->journal.on && a->journal.options.durability == DURABILITY_SYNC;
            journal->alone = journal->alone && (waits || a->loop != journal->loop);
        }
    }
}

int host_restore_apps(struct host *h)
{
    if (!h->storing)
        return 0;
    see_who_waits(h);
    struct restoring r = {.host = h, .errors = calloc(h->app_count + 1, sizeof *r.errors)};
    if (!r.errors)
        return -ENOMEM;
    struct store_replay replay = {.wanted = wanted, .each = restore, .end = end_of, .context = &r};
    int error = store_replay(&h->store, &replay);
    for (unsigned i = 0; error == 0 && i < h->app_count; i++) {
        struct owned_app *a = &h->apps[i];
        if (!a->journal.on)
            continue;
        int restored = app_journal_restored(a);
        int failed = r.errors[i] < 0 ? r.errors[i] : restored;
        if (failed < 0)
            owned_app_not_restored(a, failed);
    }
    if (error == 0)
        error = store_each_app(&h->store, hold_unknown, h);
    free(r.errors);
    return error;
}

/* --- the end --- */

static struct host_journal *journal_of(const struct host_thread *t)
{
    struct host *h = t->host;
    unsigned index = (unsigned)(t - h->threads);
    return h->storing && index >= 1 && index <= h->owner_count ? &h->journals[index - 1] : NULL;
}

void host_stop_journal(struct host_thread *t)
{
    struct host_journal *journal = journal_of(t);
    if (!journal)
        return;
    for (unsigned i = 0; i < t->host->app_count; i++) {
        struct owned_app *a = &t->host->apps[i];
        if (a->loop == journal->loop && a->journal.on)
            app_journal_stop(a);
    }
    if (journal->writing)
        journal_stop(&journal->writer);
    if (journal->reading)
        journal_reader_stop(&journal->reader);
}

bool host_journal_stopped(const struct host_thread *t)
{
    const struct host_journal *journal = journal_of(t);
    if (!journal)
        return true;
    bool written = !journal->writing || journal_stopped(&journal->writer);
    return written && (!journal->reading || journal_reader_stopped(&journal->reader));
}
