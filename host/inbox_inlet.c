#include "host/inbox_inlet.h"

typedef unsigned long long ull;

void intake_init(struct intake *intake, struct registry_app *entry, const struct app_state *state,
                 struct log *log)
{
    *intake = (struct intake){.entry = entry, .state = state, .log = log};
    sink_init(&intake->show, SHOW_MAX);
}

void intake_dispose(struct intake *intake)
{
    streams_dispose(&intake->streams);
    keys_dispose(&intake->keys);
    sink_dispose(&intake->show);
}

void inbox_inlet_init(struct inbox_inlet *in, struct inbox *inbox, struct intake *intake)
{
    *in = (struct inbox_inlet){.inbox = inbox, .intake = intake};
}

static uint64_t stored_count(const struct inbox_inlet *in)
{
    return counter_read(&in->intake->entry->report.stored);
}

static uint64_t stored_of_run(const struct inbox_inlet *in)
{
    return in->run.kind == RUN_STREAM ? in->left.first - 1 : stored_count(in);
}

/* --- the end of a run --- */

static void finish_with(struct inbox_inlet *in, int error, uint64_t stored, struct span text)
{
    struct run_result result = {.error = error, .stored = stored, .text = text};
    inbox_put_result(in->inbox, &result);
    in->done = in->at;
    in->under_way = false;
}

static void finish(struct inbox_inlet *in, int error, uint64_t stored)
{
    finish_with(in, error, stored, span_of(NULL, 0));
}

void inbox_inlet_stored(struct inbox_inlet *in)
{
    struct span key = in->run.key;
    struct intake *intake = in->intake;
    if (in->run.kind == RUN_EVENTS && key.size > 0) {
        if (keys_add(&intake->keys, key, stored_count(in)) < 0)
            log_line(intake->log, LOG_ERROR, "app %s: no memory to remember an Idempotency-Key",
                     intake->entry->name);
        if (intake->key_stored)
            intake->key_stored(intake->context, key, stored_count(in));
    }
    finish(in, 0, stored_of_run(in));
}

void inbox_inlet_refuse(struct inbox_inlet *in, int error)
{
    finish(in, error, stored_of_run(in));
}

/* --- its beginning --- */

bool inbox_inlet_next(struct inbox_inlet *in)
{
    assert(!in->under_way);
    return inbox_next_run(in->inbox, &in->at, &in->run);
}

static void show(struct inbox_inlet *in)
{
    struct pure_sink *sink = &in->intake->show;
    sink_clear(sink);
    int error = app_state_show(in->intake->state, sink);
    finish_with(in, error, stored_count(in), span_of(sink->data, error ? 0 : sink->size));
}

static void report_news(struct intake *intake, const struct run *run, enum stream_news news)
{
    const char *app = intake->entry->name;
    int size = (int)run->source.size;
    const char *source = (const char *)run->source.data;
    uint64_t epochs = counter_read(&intake->entry->report.epochs);
    if (news == STREAM_NEW_EPOCH)
        counter_add(&intake->entry->report.epochs, 1);
    if (news == STREAM_NEW_EPOCH && (epochs & (epochs + 1)) == 0) { /* the 1st, 2nd, 4th … */
        log_line(intake->log, LOG_WARNING,
                 "app %s: %.*s began anew: its store was lost, it keeps none, or two hosts have one name; "
                 "records count from %llu",
                 app, size, source, (ull)run->base);
    } else if (news == STREAM_ROLLED_BACK) {
        log_line(
            intake->log, LOG_ERROR,
            "app %s: records of %.*s up to %llu that are not here are lost: stored here once, or lost or "
            "set aside by their sender",
            app, size, source, (ull)run->base);
    } else if (news == STREAM_NEW && run->base > 0) {
        log_line(intake->log, LOG_WARNING, "app %s: %.*s is new here and begins behind record %llu", app,
                 size, source, (ull)run->base);
    }
}

/* The sender is told, and goes on under a new epoch; one that does not will ask again. */
static void report_rolled_back(struct intake *intake, const struct run *run, uint64_t stored)
{
    if ((intake->rolled_back & (intake->rolled_back + 1)) == 0) /* the 1st, 2nd, 4th … */
        log_line(
            intake->log, LOG_ERROR,
            "app %s: records of %.*s up to %llu are stored here, and it knows of %llu: its store was put "
            "back to an older copy; nothing of it is taken until it has a new epoch",
            intake->entry->name, (int)run->source.size, (const char *)run->source.data, (ull)stored,
            (ull)run->asks - 1);
    intake->rolled_back++;
}

static uint64_t stored_of_refused(struct intake *intake, const struct run *run, int error,
                                  const struct stream_cursor *cursor)
{
    if (error == PE_STREAM_ROLLED_BACK) {
        report_rolled_back(intake, run, cursor->stored);
        return cursor->stored;
    }
    return error == PE_STREAM_GAP ? run->base : 0;
}

/* Leaves out what is stored already. */
static bool enter_stream(struct inbox_inlet *in, struct events *left)
{
    struct stream_cursor *cursor;
    enum stream_news news;
    int error = streams_find(&in->intake->streams, &in->run, &cursor, &news);
    if (error < 0) {
        finish(in, error, stored_of_refused(in->intake, &in->run, error, cursor));
        return false;
    }
    report_news(in->intake, &in->run, news);
    if (left->first > cursor->stored + 1) {
        finish(in, PE_STREAM_GAP, cursor->stored);
        return false;
    }
    uint64_t known = min_u64(cursor->stored + 1 - left->first, left->records);
    if (known > 0) {
        struct record_scan scan = record_scan(left->bytes, left->bytes.size, known);
        left->bytes = span_of(left->bytes.data + scan.bytes, left->bytes.size - scan.bytes);
        left->first += known;
        left->records -= known;
        counter_add(&in->intake->entry->report.duplicates, known);
    }
    if (left->records == 0)
        finish(in, 0, cursor->stored);
    return left->records > 0;
}

static bool enter_events(struct inbox_inlet *in, struct events *left)
{
    uint64_t stored;
    if (in->run.key.size > 0 && keys_find(&in->intake->keys, in->run.key, &stored)) {
        finish(in, 0, stored);
        return false;
    }
    if (left->records == 0)
        finish(in, 0, stored_count(in));
    return left->records > 0;
}

static void copy_text(char *to, struct span from)
{
    memcpy(to, from.data, from.size);
    to[from.size] = '\0';
}

static bool is_suspended(const struct inbox_inlet *in)
{
    return atomic_load_explicit(&in->intake->entry->report.condition, memory_order_relaxed) == APP_SUSPENDED;
}

bool inbox_inlet_enter(struct inbox_inlet *in)
{
    in->under_way = true;
    if (in->failure < 0 || is_suspended(in)) {
        finish(in, in->failure < 0 ? in->failure : PE_APP_SUSPENDED, 0);
        return false;
    }
    if (in->run.kind == RUN_SHOW) {
        show(in);
        return false;
    }
    copy_text(in->event, in->run.event);
    copy_text(in->source, in->run.source);
    in->left = (struct events){.event = in->event,
                               .source = in->source,
                               .first = in->run.first,
                               .time_ms = in->run.time_ms,
                               .bytes = in->run.bytes,
                               .records = in->run.records};
    return in->run.kind == RUN_STREAM ? enter_stream(in, &in->left) : enter_events(in, &in->left);
}

/* --- its events --- */

struct events *inbox_inlet_left(struct inbox_inlet *in)
{
    if (in->run.kind == RUN_EVENTS) /* one unit: none of them was given yet */
        in->left.first = stored_count(in) + 1;
    return &in->left;
}

void inbox_inlet_given(struct inbox_inlet *in)
{
    if (in->run.kind != RUN_STREAM)
        return;
    struct stream_cursor *cursor;
    enum stream_news news;
    int error = streams_find(&in->intake->streams, &in->run, &cursor, &news);
    assert(error == 0); /* it was found when the run was entered, and only runs of this inbox move it */
    (void)error;
    streams_move(&in->intake->streams, cursor, in->left.first - 1);
}

/* --- all runs --- */

void inbox_inlet_show(struct inbox_inlet *in)
{
    struct stream_position behind = in->at;
    struct run run;
    while (!in->under_way && inbox_next_run(in->inbox, &behind, &run) && run.kind == RUN_SHOW) {
        in->at = behind;
        in->run = run;
        inbox_inlet_enter(in);
    }
}

void inbox_inlet_refuse_all(struct inbox_inlet *in)
{
    if (in->under_way)
        finish(in, PE_APP_SUSPENDED, in->run.kind == RUN_STREAM ? stored_of_run(in) : 0);
    while (inbox_inlet_next(in))
        inbox_inlet_enter(in);
}

bool inbox_inlet_mark(const struct inbox_inlet *in, struct inbox_mark *mark)
{
    *mark = (struct inbox_mark){in->done, in->inbox->results.tail};
    return mark->runs.records != in->inbox->runs.freed.records ||
           mark->results.bytes != in->inbox->results.published.bytes;
}

void inbox_inlet_commit(struct inbox_inlet *in, const struct inbox_mark *mark)
{
    if (mark->runs.records != in->inbox->runs.freed.records)
        inbox_free_to(in->inbox, mark->runs);
    inbox_push_results_to(in->inbox, mark->results);
}

void inbox_inlet_fail(struct inbox_inlet *in, int error)
{
    inbox_drop_results(in->inbox);
    in->at = in->done = in->inbox->runs.freed;
    in->under_way = false;
    in->failure = error;
    inbox_inlet_refuse_all(in);
}
