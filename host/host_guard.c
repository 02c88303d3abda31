/* The host's guard against modules that misbehave (host/turn_guard.h): who is suspended from the start, and
 * what the front looks at while the host runs. */
#include "host/host_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LOOK_NS_MIN (250 * NS_PER_MS)
#define LOOK_NS_MAX (2500 * NS_PER_MS)

static struct log *log_of(struct host *h)
{
    return &front_thread(h)->log;
}

/* Four times within the shortest limit. */
static uint64_t look_every(const struct config *c)
{
    uint64_t shortest_ns = NEVER;
    for (unsigned i = 0; i < c->app_count; i++)
        shortest_ns = min_u64(shortest_ns, c->apps[i].turn_limit_ns);
    return max_u64(LOOK_NS_MIN, min_u64(shortest_ns / 4, LOOK_NS_MAX));
}

static void tell_forgotten(struct host *h, const struct mark_app *app)
{
    if (app->forgotten > 0)
        log_line(log_of(h), LOG_NOTICE,
                 "app %s: its deaths, %u in a row, are forgotten, as its module's file is another", app->name,
                 app->forgotten);
}

static void tell_deaths(struct host *h)
{
    for (unsigned i = 0; i < h->guard.mark.app_count; i++) {
        const struct mark_app *app = &h->guard.mark.apps[i];
        char cause[MARK_CAUSE_TEXT];
        mark_cause_text(app->cause, cause);
        tell_forgotten(h, app);
        if (app->deaths > 0 && !mark_suspends(app))
            log_line(log_of(h), LOG_WARNING,
                     "app %s has ended the process, %u in a row, the last by %s; at %d it is suspended",
                     app->name, app->deaths, cause, MARK_DEATHS);
    }
}

void host_guard_thread(struct host_thread *t)
{
    struct host *h = t->host;
    unsigned index = (unsigned)(t - h->threads);
    if (!h->guarding || index > h->owner_count)
        return;
    int error = guard_thread_begin(&h->guard, index);
    if (error < 0)
        log_line(&t->log, LOG_WARNING, "thread %s has no timer, so endless calls of apps are not left: %s",
                 t->name, pure_error_text(error));
}

int host_open_guard(struct host *h)
{
    if (!h->options.guards)
        return 0;
    int unmarked;
    const struct guard_options options = {.directory = h->storing ? h->config->store_path : NULL,
                                          .config = h->config,
                                          .threads = 1 + h->owner_count,
                                          .fd = h->options.log_fd,
                                          .for_people = h->options.log_for_people};
    h->stuck = calloc(options.threads, sizeof *h->stuck);
    int error = h->stuck ? guard_open(&h->guard, &options, &unmarked) : -ENOMEM;
    if (error < 0)
        return error;
    h->guarding = true;
    h->registry.guard = &h->guard;
    if (unmarked < 0)
        log_line(log_of(h), LOG_WARNING, "an app that ends the process will not be suspended for it: %s",
                 pure_error_text(unmarked));
    tell_deaths(h);
    host_guard_thread(front_thread(h));
    guard_watch(&h->watch, guard_here);
    return 0;
}

int host_watch_opening(struct host *h)
{
    return h->options.guards ? guard_watch_begin(&h->watch, true) : 0;
}

void host_watch_closing(struct host *h)
{
    if (h->guarding && !h->watch.on && guard_watch_begin(&h->watch, false) == 0)
        guard_watch(&h->watch, guard_here);
}

void host_dispose_guard(struct host *h)
{
    guard_watch_end(&h->watch);
    if (h->guarding) {
        guard_thread_end();
        guard_close(&h->guard);
    }
    free(h->stuck);
}

struct guard_app *host_guard_of(struct host *h, unsigned app)
{
    return h->guarding ? &h->guard.apps[app] : NULL;
}

/* The command with the file that the host was started with: where it stands, this finds the host. A name that
 * is too long for the text is left out. */
static void tell_suspended(const struct mark_app *app, const char *file, char *why, size_t why_size)
{
    char cause[MARK_CAUSE_TEXT];
    mark_cause_text(app->cause, cause);
    int size = snprintf(why, why_size,
                        "it has ended the process %u times in a row, the last by %s: after 'pure-host app "
                        "resume %s%s%s%s', or with another file of its module, the next start loads it",
                        app->deaths, cause, file ? "-c " : "", file ? file : "", file ? " " : "", app->name);
    if (size >= (int)why_size && file)
        tell_suspended(app, NULL, why, why_size);
}

bool host_app_died(struct host *h, unsigned index, char *why, size_t why_size)
{
    if (!h->guarding || !mark_suspends(&h->guard.mark.apps[index]))
        return false;
    h->guard.apps[index].died = true;
    tell_suspended(&h->guard.mark.apps[index], h->config->path, why, why_size);
    return true;
}

/* --- while it runs; on the front's loop --- */

static struct registry_app *app_in(struct host *h, const struct guard_thread *t)
{
    const struct guard_app *app = atomic_load_explicit(&t->app, memory_order_relaxed);
    return app ? h->registry.apps[app->index] : NULL;
}

static void set_stuck(struct host *h, struct guard_thread *t, struct registry_app *app)
{
    struct registry_app **stuck = &h->stuck[t - h->guard.threads];
    uint64_t wall_ms = io_wall_ms(front_thread(h)->io);
    if (*stuck == app)
        return;
    if (*stuck) {
        atomic_store_explicit(&(*stuck)->report.stuck_ms, 0, memory_order_relaxed);
        if (!registry_app_suspended(*stuck)) /* else its call was left, and the log has that */
            log_line(log_of(h), LOG_NOTICE, "app %s has returned", (*stuck)->name);
    }
    *stuck = app;
    if (!app)
        return;
    atomic_store_explicit(&app->report.stuck_ms, wall_ms - t->stood_ns / NS_PER_MS, memory_order_relaxed);
    log_line(log_of(h), LOG_ERROR, "app %s is stuck: its %s has not returned for %llu ms", app->name,
             atomic_load_explicit(&t->call, memory_order_relaxed),
             (unsigned long long)(t->stood_ns / NS_PER_MS));
}

static void look_at(struct host *h, struct guard_thread *t, uint64_t now_ns)
{
    switch (guard_look(t, now_ns, h->look_every_ns)) {
    case GUARD_FINE:
    case GUARD_LEAVE_AT_PASS: /* of ticks only */
        set_stuck(h, t, NULL);
        break;
    case GUARD_LEAVE:
        set_stuck(h, t, app_in(h, t));
        break;
    case GUARD_DIE:
        guard_die(t, MARK_HUNG);
    }
}

void host_look(struct timer *timer, uint64_t now_ns)
{
    struct host *h = container_of(timer, struct host, guard_timer);
    for (unsigned i = 1; i < h->guard.options.threads; i++)
        look_at(h, &h->guard.threads[i], now_ns);
    int error = mark_live(&h->guard.mark, now_ns);
    if (error < 0)
        log_line(log_of(h), LOG_WARNING, "deaths of apps count still, though they have lived: %s",
                 pure_error_text(error));
    timer_set(&front_thread(h)->loop.timers, timer, now_ns + h->look_every_ns);
}

void host_start_looking(struct host *h)
{
    struct loop *loop = &front_thread(h)->loop;
    if (!h->guarding)
        return;
    h->look_every_ns = look_every(h->config);
    mark_live(&h->guard.mark, loop->now_ns);
    timer_set(&loop->timers, &h->guard_timer, loop->now_ns + h->look_every_ns);
}
