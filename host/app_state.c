#include "host/app_state.h"

#include <stdio.h>

#define LOG_MAX        (64u << 20)  /* more than the largest turn: one inbox */
#define LOG_SETTLE_MIN (256u << 10) /* settled when larger than this and than half of the snapshot */

/* Kept events in the log: this, the event and the source with their NULs, the framed records. */
struct kept {
    uint64_t first, time_ms, records;
    uint64_t bytes;
    uint32_t event_size, source_size;
};

/* --- calls of the module; its events come from host/owned_app.c, and again from give_again --- */

static int call_open(struct app_state *s, char *why, size_t why_size)
{
    guard_enter(s->guard, "open");
    int failure = s->app->open(&s->state, s->arg, why, why_size);
    guard_leave();
    return failure;
}

static int call_restore(struct app_state *s, const void *data, size_t size)
{
    guard_enter(s->guard, "restore");
    int failure = s->app->restore(s->state, data, size);
    guard_leave();
    return failure;
}

static void call_close(struct app_state *s)
{
    guard_enter(s->guard, "close");
    s->app->close(s->state);
    guard_leave();
    s->state = NULL;
}

int app_state_write(const struct app_state *s, struct pure_sink *sink)
{
    guard_enter(s->guard, "snapshot");
    int failure = s->app->snapshot(s->state, sink);
    guard_leave();
    return sink->error ? sink->error : failure ? PE_APP_FAILED : 0;
}

int app_state_show(const struct app_state *s, struct pure_sink *sink)
{
    if (!s->app->show)
        return 0;
    guard_enter(s->guard, "show");
    int failure = s->app->show(s->state, sink);
    guard_leave();
    return sink->error ? sink->error : failure ? PE_APP_FAILED : 0;
}

/* --- snapshots and the log --- */

int app_state_snapshot(struct app_state *s)
{
    if (s->stateless)
        return 0;
    sink_clear(&s->log);
    sink_clear(&s->snapshot);
    return app_state_write(s, &s->snapshot);
}

int app_state_open(struct app_state *s, const struct pure_app *app, struct guard_app *guard, const char *arg,
                   char *why, size_t why_size)
{
    *s = (struct app_state){.app = app, .guard = guard, .arg = arg, .stateless = !app->snapshot};
    sink_init(&s->snapshot, APP_SNAPSHOT_MAX);
    sink_init(&s->log, LOG_MAX);
    why[0] = '\0';
    if (call_open(s, why, why_size)) {
        if (!why[0])
            snprintf(why, why_size, "its open failed without a reason");
        s->state = NULL;
        s->app = NULL;
        return PE_APP_FAILED;
    }
    int error = app_state_snapshot(s);
    if (error < 0)
        snprintf(why, why_size, "its first snapshot failed: %s", pure_error_text(error));
    return error;
}

void app_state_dispose(struct app_state *s)
{
    if (s->app)
        call_close(s);
    app_state_abandon(s);
}

void app_state_abandon(struct app_state *s)
{
    sink_dispose(&s->snapshot);
    sink_dispose(&s->log);
    s->app = NULL;
    s->state = NULL;
}

int app_state_keep(struct app_state *s, const struct events *events)
{
    if (s->stateless || events->records == 0)
        return 0;
    struct kept kept = {.first = events->first,
                        .time_ms = events->time_ms,
                        .records = events->records,
                        .bytes = events->bytes.size,
                        .event_size = (uint32_t)strlen(events->event) + 1,
                        .source_size = (uint32_t)strlen(events->source) + 1};
    pure_write(&s->log, &kept, sizeof kept);
    pure_write(&s->log, events->event, kept.event_size);
    pure_write(&s->log, events->source, kept.source_size);
    return pure_write(&s->log, events->bytes.data, events->bytes.size);
}

static int give_again(struct app_state *s, struct pure_turn *turn, const struct events *events)
{
    struct pure_event event = {
        .name = events->event, .source = events->source, .number = events->first, .time_ms = events->time_ms};
    const uint8_t *at = events->bytes.data, *end = at + events->bytes.size;
    int failure = 0;
    guard_enter(s->guard, "events, given again");
    for (uint64_t i = 0; i < events->records && !failure; i++, event.number++) {
        struct span data;
        size_t framed = record_get(at, end, &data);
        assert(framed > 0);
        at += framed;
        event.data = data.data;
        event.size = data.size;
        failure = s->app->event(s->state, turn, &event);
    }
    guard_leave();
    return failure ? PE_APP_FAILED : 0;
}

/* The run kept at `*at` of the log, which moves behind it. */
static struct events kept_at(const struct app_state *s, size_t *at)
{
    struct kept kept;
    memcpy(&kept, s->log.data + *at, sizeof kept);
    const uint8_t *event = s->log.data + *at + sizeof kept, *source = event + kept.event_size,
                  *bytes = source + kept.source_size;
    *at += sizeof kept + kept.event_size + kept.source_size + kept.bytes;
    return (struct events){.event = (const char *)event,
                           .source = (const char *)source,
                           .first = kept.first,
                           .time_ms = kept.time_ms,
                           .bytes = span_of(bytes, kept.bytes),
                           .records = kept.records};
}

/* As it was when it was opened. */
static int open_again(struct app_state *s)
{
    char why[100];
    call_close(s);
    if (call_open(s, why, sizeof why) == 0)
        return 0;
    s->app = NULL; /* there is nothing left to close */
    return PE_APP_FAILED;
}

int app_state_undo(struct app_state *s, struct pure_turn *turn)
{
    if (s->stateless)
        return 0;
    int error = open_again(s);
    if (error == 0 && call_restore(s, s->snapshot.data, s->snapshot.size))
        error = PE_APP_FAILED;
    turn->replaying = true;
    for (size_t at = 0; error == 0 && at < s->log.size;) {
        struct events events = kept_at(s, &at);
        error = give_again(s, turn, &events);
    }
    turn->replaying = false;
    return error;
}

int app_state_restore(struct app_state *s, struct span snapshot)
{
    if (s->stateless)
        return 0;
    int error = open_again(s);
    if (error == 0 && call_restore(s, snapshot.data, snapshot.size))
        error = PE_APP_FAILED;
    return error;
}

int app_state_replay(struct app_state *s, struct pure_turn *turn, const struct events *events)
{
    if (s->stateless)
        return 0;
    turn->replaying = true;
    int error = give_again(s, turn, events);
    turn->replaying = false;
    return error;
}

int app_state_settle(struct app_state *s)
{
    if (s->stateless || s->log.size < LOG_SETTLE_MIN || s->log.size < s->snapshot.size / 2)
        return 0;
    return app_state_snapshot(s);
}
