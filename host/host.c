#include "host/host_private.h"
#include "host/key_file.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DESCRIPTORS                                                                                          \
    64                   /* besides those of threads, wires and clients: the log, lookups, refusals, modules \
                          */
#define FRONT_TASKS    2 /* besides one an app: the front's own, the log writer */
#define FRONT_TIMERS   4 /* besides its own: the stop's, the end's, that of TLS files, the guard's */
#define JOURNAL_TASKS  2 /* of an owner's journal, besides one an app: its writer, its reader */
#define JOURNAL_TIMERS 3 /* besides two an app: the writer's, the end's */
#define LISTEN_TASKS   2 /* besides one an app: the listener's own, and of its inlets */
#define LISTEN_TIMERS  4

static struct host_thread *owner_of(struct host *h, unsigned app)
{
    return &h->threads[1 + app % h->owner_count];
}

void *host_allocate(size_t count, size_t size)
{
    size_t bytes = (count * size + CACHE_LINE) / CACHE_LINE * CACHE_LINE;
    void *memory = aligned_alloc(CACHE_LINE, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

/* --- loops --- */

static void ended(struct timer *timer, uint64_t now_ns)
{
    (void)timer, (void)now_ns; /* it was set to end a wait */
}

static int open_thread(struct host *h, struct host_thread *t, const char *name, uint32_t tasks,
                       uint32_t timers, char *why, size_t why_size)
{
    t->host = h;
    timer_init(&t->end_timer, ended);
    snprintf(t->name, sizeof t->name, "%s", name);
    int error = h->options.open_io(h->options.context, &t->io, why, why_size);
    if (error < 0)
        return error;
    t->io->drains = h->config->without.quotas;
    error = loop_init(&t->loop, t->io, tasks, timers);
    t->looped = error == 0;
    return error;
}

static int open_senders(struct host *h, char *why, size_t why_size)
{
    unsigned wires = host_count_outputs(h->config, OUTPUT_WIRE);
    unsigned links = host_count_outputs(h->config, OUTPUT_LINK);
    int error = 0;
    for (unsigned i = 0; error == 0 && i < h->sender_count; i++) {
        char name[16];
        snprintf(name, sizeof name, i > 0 ? "pure-send-%u" : "pure-send", i % 1000 + 1);
        struct host_thread *t = &h->threads[1 + h->owner_count + i];
        error =
            open_thread(h, t, name, wires + 2 * links + 1, WIRE_TIMERS * wires + links + 2, why, why_size);
        if (error == 0)
            error = h->options.open_resolver(h->options.context, &t->loop, &h->resolvers[i]);
    }
    return error;
}

static int open_threads(struct host *h, char *why, size_t why_size)
{
    const struct config *c = h->config;
    h->owner_count = c->owners;
    h->sender_count = min_u64(c->loops, host_count_sending(c));
    h->thread_count = 1 + h->owner_count + h->sender_count + (c->link != NULL);
    h->threads = host_allocate(h->thread_count, sizeof *h->threads);
    h->resolvers = calloc(h->sender_count + 1, sizeof *h->resolvers);
    if (!h->threads || !h->resolvers)
        return -ENOMEM;
    int error = open_thread(h, front_thread(h), "pure-front", c->app_count + FRONT_TASKS,
                            front_timers(c) + FRONT_TIMERS, why, why_size);
    for (unsigned i = 0; error == 0 && i < h->owner_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "pure-own-%u", i % 1000);
        error = open_thread(h, &h->threads[1 + i], name, c->app_count + JOURNAL_TASKS,
                            2 * c->app_count + JOURNAL_TIMERS, why, why_size);
    }
    if (error == 0)
        error = open_senders(h, why, why_size);
    if (error == 0 && c->link)
        error = open_thread(h, listen_thread(h), "pure-listen", c->app_count + LISTEN_TASKS, LISTEN_TIMERS,
                            why, why_size);
    return error;
}

static int open_logs(struct host *h)
{
    struct host_thread *front = front_thread(h);
    int error = log_writer_init(&h->log_writer, &front->loop, h->options.log_fd, h->options.log_for_people);
    h->log_writing = error == 0;
    for (unsigned i = 0; error == 0 && i < h->thread_count; i++) {
        struct host_thread *t = &h->threads[i];
        error = log_init(&t->log, NULL, 0);
        t->logged = error == 0;
        if (error == 0)
            error = log_writer_add(&h->log_writer, &t->log);
    }
    return error;
}

/* Rather refuses a client, who is told, than runs out of descriptors for wires. */
static void fit_connections(struct host *h)
{
    uint64_t limit = h->options.descriptors;
    uint64_t others = DESCRIPTORS + 2 * h->thread_count + host_count_outputs(h->config, OUTPUT_WIRE) +
                      2 * host_count_outputs(h->config, OUTPUT_LINK);
    uint64_t room = limit > others ? limit - others : 1;
    if (limit == 0 || h->fitted.connections <= room)
        return;
    h->fitted.connections = (uint32_t)room;
    log_line(
        &front_thread(h)->log, LOG_WARNING,
        "this process may have %llu files open (RLIMIT_NOFILE): at most %llu connections are taken, not %u; "
        "raise LimitNOFILE= of the unit, or ulimit -n",
        (unsigned long long)limit, (unsigned long long)room, h->config->connections);
}

static int make_registry(struct host *h)
{
    const struct config *c = h->config;
    struct registry *r = &h->registry;
    *r = (struct registry){.config = &h->fitted, .loop_count = h->thread_count, .tls = &h->tls.report};
    r->apps = calloc(c->app_count + 1, sizeof *r->apps);
    r->outlets = calloc(c->output_count + 1, sizeof *r->outlets);
    r->loops = calloc(h->thread_count, sizeof *r->loops);
    if (!r->apps || !r->outlets || !r->loops)
        return -ENOMEM;
    for (unsigned i = 0; i < h->thread_count; i++) {
        struct host_thread *t = &h->threads[i];
        r->loops[i] = (struct registry_loop){t->name, &t->loop, &t->log};
    }
    return 0;
}

/* --- apps and their outlets --- */

static int open_app(struct host *h, unsigned index)
{
    const struct config_app *config = &h->config->apps[index];
    struct owned_app *a = &h->apps[index];
    struct host_thread *owner = owner_of(h, index);
    const struct pure_app *app = NULL;
    char why[sizeof a->entry.failure];
    void *module = NULL;
    struct app_journal_options journal;
    host_journal_options(h, (unsigned)(owner - &h->threads[1]), config, &journal);
    struct guard_app *guard = host_guard_of(h, index);
    if (!host_app_died(h, index, why, sizeof why)) {
        guard_enter(guard, "loading");
        h->options.load_module(h->options.context, config->module, &app, &module, why, sizeof why);
        guard_leave();
    }
    if (app && guard)
        guard_know_code(guard, app);
    int error = owned_app_init(a, config, app, why, &owner->loop, &owner->log, &journal, guard);
    a->module = module;
    a->entry.inbox.without_feedback = h->config->without.feedback;
    h->app_count = index + 1;
    h->registry.apps[index] = &a->entry;
    h->registry.app_count = h->app_count;
    return error;
}

static void tell_left_out(struct host *h)
{
    char names[OVERLOAD_NAMES_MAX];
    overload_left_out(&h->config->without, names);
    if (names[0] != '\0')
        log_line(&front_thread(h)->log, LOG_WARNING,
                 "without = %s: for experiments only; a host that serves leaves out none", names);
}

static int open_apps(struct host *h)
{
    const struct config *c = h->config;
    h->apps = host_allocate(c->app_count, sizeof *h->apps);
    if (!h->apps)
        return -ENOMEM;
    int error = 0;
    for (unsigned i = 0; error == 0 && i < c->app_count; i++)
        error = open_app(h, i);
    return error;
}

const struct registry *host_registry(const struct host *h)
{
    return &h->registry;
}

static void tell_doubt(void *context, const char *doubt)
{
    struct host *h = context;
    log_line(&front_thread(h)->log, LOG_WARNING, "%s", doubt);
}

static void tell_doubts(struct host *h)
{
    config_doubts(h->config, &(struct config_listener){.tell = tell_doubt, .context = h});
}

static bool has_key(const struct config *c)
{
    return c->key_path || c->key_text;
}

/* An output with a key goes to a host that is known by it: over a link, or sealed. Peers may come without a
 * key of ours: then nothing of them is let in. */
bool host_needs_key(const struct config *c)
{
    bool uses = c->link || (c->peer_count > 0 && has_key(c));
    for (unsigned i = 0; i < c->output_count; i++)
        uses |= c->outputs[i].link_key_line > 0;
    return uses;
}

static int open_door(struct host *h)
{
    const struct noise_random random = host_random(h);
    if (h->config->peer_count == 0 || !has_key(h->config))
        return 0;
    int error = sealed_door_init(&h->door, h->config, &h->registry, &h->key, &random, &front_thread(h)->log);
    h->door_open = error == 0;
    if (error == 0)
        h->front.door = &h->door;
    return error;
}

int host_open(struct host **host, const struct config *config, const struct host_options *options, char *why,
              size_t why_size)
{
    why[0] = '\0';
    struct host *h = *host = calloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    h->config = config;
    h->fitted = *config;
    h->options = *options;
    h->signal_fd = -1;
    h->log_pump.fd = -1;
    timer_init(&h->stop_timer, host_go_on_stopping);
    timer_init(&h->guard_timer, host_look);
    host_tls_init(&h->tls);
    h->options.fill_random(h->options.context, h->epoch, sizeof h->epoch);
    int error = sodium_init() < 0 ? -ENOSYS : host_watch_opening(h);
    if (error == 0 && host_needs_key(config))
        error = key_file_of_config(config, &h->key, why, why_size);
    if (error == 0)
        error = open_threads(h, why, why_size);
    if (error == 0)
        error = make_registry(h);
    if (error == 0)
        error = open_logs(h);
    if (error == 0) {
        fit_connections(h);
        error = host_open_store(h, why, why_size);
    }
    if (error == 0)
        error = host_open_guard(h);
    if (error == 0) {
        tell_left_out(h);
        error = open_apps(h);
    }
    if (error == 0)
        error = host_restore_apps(h);
    if (error == 0)
        error = host_open_outlets(h, why, why_size);
    if (error == 0)
        error = host_open_listener(h, why, why_size);
    if (error == 0) {
        const struct front_options of_front = {.await_address = h->options.await_address,
                                               .context = h->options.context,
                                               .registry = &h->registry,
                                               .https = h->https,
                                               .loop = &front_thread(h)->loop,
                                               .log = &front_thread(h)->log};
        error = front_init(&h->front, &of_front, why, why_size);
        h->front_open = error == 0;
    }
    if (error == 0)
        error = open_door(h);
    if (error == 0)
        tell_doubts(h);
    if (error < 0 && !why[0])
        snprintf(why, why_size, "%s", pure_error_text(error));
    if (error < 0) {
        host_close(h);
        *host = NULL;
    }
    return error;
}

/* A module whose call was left stays loaded: its instance lies in it as it is. */
static void close_app(struct host *h, struct owned_app *a)
{
    bool left = atomic_load_explicit(&a->entry.report.error, memory_order_relaxed) == PE_APP_OVERRAN;
    owned_app_dispose(a);
    if (!a->module || left)
        return;
    guard_enter(a->entry.guard, "unloading");
    h->options.unload_module(h->options.context, a->module);
    guard_leave();
}

void host_close(struct host *h)
{
    host_watch_closing(h);
    for (unsigned i = 0; i < h->sender_count && h->resolvers; i++) {
        if (h->resolvers[i])
            h->options.close_resolver(h->options.context, h->resolvers[i]);
    }
    /* the back ends first: what is in flight ends with them, and lies in what goes after */
    for (unsigned i = 0; i < h->thread_count && h->threads; i++) {
        if (h->threads[i].io)
            io_dispose(h->threads[i].io);
    }
    if (h->front_open)
        front_dispose(&h->front);
    if (h->door_open)
        sealed_door_dispose(&h->door);
    if (h->log_writing)
        log_writer_dispose(&h->log_writer);
    host_dispose_listener(h);
    host_dispose_outlets(h);
    host_dispose_kept(h);
    host_tls_dispose(&h->tls);
    host_dispose_store(h);
    for (unsigned i = 0; i < h->app_count; i++)
        close_app(h, &h->apps[i]);
    host_dispose_guard(h);
    for (unsigned i = 0; i < h->thread_count && h->threads; i++) {
        if (h->threads[i].looped)
            loop_dispose(&h->threads[i].loop);
        if (h->threads[i].logged)
            log_dispose(&h->threads[i].log);
    }
    if (h->signal_fd >= 0)
        close(h->signal_fd);
    if (h->current) {
        config_dispose(h->current);
        free(h->current);
    }
    free(h->registry.apps);
    free(h->registry.outlets);
    free(h->registry.loops);
    free(h->threads);
    free(h->resolvers);
    free(h->apps);
    host_key_wipe(&h->key);
    free(h);
}
