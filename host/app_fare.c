#include "host/app_fare.h"

#include "host/owned_app.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define WORD_MAX 1024 /* bytes of the record that says that an output is disabled */

/* --- a start --- */

void app_fare_restore(struct kept_fare *kept, const struct section_fare *s)
{
    *kept = (struct kept_fare){.fare = {.disabled = s->disabled,
                                        .by_command = s->by_command,
                                        .failures = s->failures,
                                        .since_ms = s->since_ms,
                                        .status = s->status},
                               .said = s->said,
                               .configuration = s->configuration};
    size_t size = min_size(s->reason.size, sizeof kept->fare.reason - 1);
    if (size > 0)
        memcpy(kept->fare.reason, s->reason.data, size);
}

static struct journal_output *journaled(struct owned_app *a, const char *output)
{
    struct journal_output *o = a->journal.outputs;
    while (o && strcmp(o->name, output) != 0)
        o = o->next;
    return o;
}

int app_fare_watch(struct owned_app *a, struct outlet *outlet, const _Atomic uint64_t *configuration,
                   struct kept_fare *kept)
{
    struct app_fare *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    struct journal_output *o = a->journal.on ? journaled(a, outlet->output) : NULL;
    f->outlet = outlet;
    f->configuration = configuration;
    f->kept = o ? &o->fare : &f->own;
    if (f->kept->configuration != *configuration)
        *f->kept = (struct kept_fare){0};
    outlet->health.kept = true;
    outlet->health.last = f->kept->fare;
    *kept = *f->kept;
    f->next = a->fares;
    a->fares = f;
    return 0;
}

static struct app_fare *find(const struct owned_app *a, const char *output)
{
    struct app_fare *f = a->fares;
    while (f && strcmp(f->outlet->output, output) != 0)
        f = f->next;
    return f;
}

void app_fare_hears(struct owned_app *a, const struct outlet *outlet, struct outlet *hears)
{
    struct app_fare *f = find(a, outlet->output);
    const struct journal_output *o = a->journal.on ? journaled(a, hears->output) : NULL;
    f->hears = hears;
    f->hears_backlog = o ? o->backlog : NULL;
    loop_want(a->loop, &a->task); /* an earlier life may not have come to say it */
}

/* --- frames --- */

void app_fare_frame(const struct kept_fare *kept, const char *output, struct frame_buffer *frames)
{
    const struct outlet_fare *f = &kept->fare;
    struct section section = {.type = SECTION_FARE,
                              .fare = {.output = span_text(output),
                                       .disabled = f->disabled,
                                       .by_command = f->disabled && f->by_command,
                                       .said = f->disabled && kept->said,
                                       .failures = f->failures,
                                       .since_ms = f->since_ms,
                                       .configuration = kept->configuration,
                                       .status = f->status,
                                       .reason = span_text(f->reason)}};
    commit_put(frames, &section);
}

/* --- the word to another output --- */

/* Both texts, APP and OUTPUT, are letters, digits, '-' and '_'. */
static void write_word(const struct app_fare *f, struct text *t)
{
    const struct outlet_fare *fare = &f->kept->fare;
    time_t since_s = (time_t)(fare->since_ms / 1000);
    struct tm utc;
    char since[32];
    strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&since_s, &utc));
    text_format(t, "{\"type\":\"output.disabled\",\"output\":\"%s.%s\",\"reason\":", f->outlet->app,
                f->outlet->output);
    text_json(t, fare->reason);
    text_format(t, ",\"status\":%u,\"failures\":%llu,\"since\":\"%s\"}", fare->status,
                (unsigned long long)fare->failures, since);
}

/* 0; PE_FULL: there is no room yet; or another error: it will never go. */
static int send_to(const struct app_fare *f, const struct text *t)
{
    if (t->failed)
        return -ENOMEM;
    if (t->size > f->hears->max_record)
        return PE_TOO_LARGE;
    if (f->hears_backlog)
        return backlog_send(f->hears_backlog, t->data, t->size, 0);
    int error = outlet_queue(f->hears, t->data, t->size);
    if (error == 0)
        outlet_push(f->hears);
    return error;
}

/* Whether there is nothing more to say. What is in the way is said once. */
static bool say(struct owned_app *a, struct app_fare *f)
{
    struct text t = {0};
    write_word(f, &t);
    int error = send_to(f, &t);
    text_dispose(&t);
    bool waits = error == PE_FULL || error == -ENOMEM;
    if (error < 0 && !f->waits_said)
        log_line(a->log, LOG_ERROR, "output %s.%s is disabled, and %s.%s does not hear of it%s: %s",
                 a->entry.name, f->outlet->output, a->entry.name, f->hears->output, waits ? " yet" : "",
                 pure_error_text(error));
    f->waits_said = waits;
    if (waits && !f->hears_backlog)
        outlet_wait(f->hears, f->hears->queue.capacity - WORD_MAX);
    return !waits;
}

/* --- what deliverers tell --- */

/* Whether it told anything. */
static bool take(struct app_fare *f)
{
    struct outlet_fare fare;
    bool was = f->kept->fare.disabled;
    if (!outlet_take_fare(f->outlet, &fare))
        return false;
    f->kept->said = fare.disabled && (was ? f->kept->said : fare.by_command || !f->hears);
    f->kept->fare = fare;
    f->kept->configuration = *f->configuration;
    return true;
}

static void see_told(struct owned_app *a, struct app_fare *f)
{
    bool news = take(f);
    bool unsaid = f->kept->fare.disabled && !f->kept->said && f->hears;
    bool said = unsaid && say(a, f);
    if (!news && !said)
        return;
    f->kept->said |= said;
    if (a->journal.on) {
        app_fare_frame(f->kept, f->outlet->output, app_journal_frame(a));
        if (a->fare.busy && a->fare.of == f && f->kept->fare.wants != a->fare.wants)
            a->fare.batch = DEAD_FILLED;
        app_journal_commit(a, false);
    }
}

/* --- requests --- */

static void answer(struct owned_app *a, int error, const char *why)
{
    struct dead_request *r = &a->entry.dead;
    const struct app_fare *f = a->fare.of;
    a->fare = (struct fare_request){0};
    if (error == 0)
        text_format(&r->text, "{\"output\":\"%s.%s\",\"disabled\":%s}\n", a->entry.name, r->output,
                    f->kept->fare.disabled ? "true" : "false");
    if (error == 0 && r->text.failed)
        error = -ENOMEM;
    if (error < 0)
        text_dispose(&r->text);
    r->error = error;
    r->why = why;
    dead_request_pass(r, DEAD_REQUEST_ANSWERED);
    board_post(a->entry.inbox.front, a->entry.inbox.front_slot);
}

static bool asked(const struct owned_app *a)
{
    const struct dead_request *r = &a->entry.dead;
    return dead_request_state(r) == DEAD_REQUEST_ASKED && dead_action_of_output(r->action);
}

static void begin_request(struct owned_app *a)
{
    const struct dead_request *r = &a->entry.dead;
    struct app_fare *f = find(a, r->output);
    if (!f) {
        answer(a, PE_NO_OUTPUT, "there is no such wire: only wires can be enabled and disabled");
    } else if (a->journal.failed) {
        answer(a, PE_JOURNAL_FAILED, NULL);
    } else {
        a->fare = (struct fare_request){.busy = true, .of = f, .wants = f->kept->fare.wants};
        outlet_want(f->outlet, r->action == OUTPUT_TO_DISABLE ? OUTLET_WANT_DISABLED : OUTLET_WANT_ENABLED);
    }
}

static bool told_at_last(const struct owned_app *a)
{
    return a->fare.busy && a->fare.of->kept->fare.wants != a->fare.wants;
}

void app_fare_work(struct owned_app *a)
{
    if (!a->fare.busy && asked(a))
        begin_request(a);
    for (struct app_fare *f = a->fares; f && !a->journal.failed; f = f->next)
        if (!a->journal.on || app_journal_room(a))
            see_told(a, f);
    if (!a->journal.on && told_at_last(a))
        answer(a, 0, NULL);
}

/* --- durable --- */

void app_fare_placed(struct owned_app *a)
{
    if (a->fare.batch == DEAD_FILLED)
        a->fare.batch = DEAD_WRITING;
}

void app_fare_durable(struct owned_app *a)
{
    if (a->fare.busy && a->fare.batch == DEAD_WRITING)
        answer(a, 0, NULL);
}

void app_fare_failed(struct owned_app *a)
{
    if (a->fare.busy)
        answer(a, PE_JOURNAL_FAILED, NULL);
}

void app_fare_dispose(struct owned_app *a)
{
    while (a->fares) {
        struct app_fare *f = a->fares;
        a->fares = f->next;
        free(f);
    }
}
