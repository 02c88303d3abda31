#include "host/host_private.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DESCRIPTORS                                                                                       \
    64                /* besides those of threads, wires and clients: the log, lookups, refusals, modules \
                       */
#define FRONT_TASKS 2 /* besides one an app: the front's own, the log writer */

static struct host_thread *owner_of(struct host *h, unsigned app)
{
    return &h->threads[1 + app % h->owner_count];
}

static unsigned sender_of(const struct host *h, unsigned wire)
{
    return wire % h->sender_count;
}

/* An array of zeroed structures of any alignment up to a cache line: queues lie in them. */
static void *allocate(size_t count, size_t size)
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
    error = loop_init(&t->loop, t->io, tasks, timers);
    t->looped = error == 0;
    return error;
}

static unsigned count_outputs(const struct config *config, enum output_kind kind)
{
    unsigned count = 0;
    for (unsigned i = 0; i < config->output_count; i++)
        count += config->outputs[i].kind == kind;
    return count;
}

static int open_threads(struct host *h, char *why, size_t why_size)
{
    const struct config *c = h->config;
    unsigned wires = count_outputs(c, OUTPUT_WIRE);
    h->owner_count = c->owners;
    h->sender_count = wires > 0 ? c->loops : 0;
    h->thread_count = 1 + h->owner_count + h->sender_count;
    h->threads = allocate(h->thread_count, sizeof *h->threads);
    h->resolvers = calloc(h->sender_count + 1, sizeof *h->resolvers);
    if (!h->threads || !h->resolvers)
        return -ENOMEM;
    int error = open_thread(h, front_thread(h), "pure-front", c->app_count + FRONT_TASKS, front_timers(c) + 2,
                            why, why_size);
    for (unsigned i = 0; error == 0 && i < h->owner_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "pure-own-%u", i % 1000);
        error = open_thread(h, &h->threads[1 + i], name, c->app_count, c->app_count + 1, why, why_size);
    }
    for (unsigned i = 0; error == 0 && i < h->sender_count; i++) {
        char name[16];
        snprintf(name, sizeof name, h->sender_count > 1 ? "pure-send-%u" : "pure-send", i % 1000);
        struct host_thread *t = &h->threads[1 + h->owner_count + i];
        error = open_thread(h, t, name, wires + 1, wires + 2, why, why_size);
        if (error == 0)
            error = h->options.open_resolver(h->options.context, &t->loop, &h->resolvers[i]);
    }
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
    uint64_t others = DESCRIPTORS + 2 * h->thread_count + count_outputs(h->config, OUTPUT_WIRE);
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
    *r = (struct registry){.config = &h->fitted, .loop_count = h->thread_count};
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
    char why[256];
    void *module = NULL;
    h->options.load_module(h->options.context, config->module, &app, &module, why, sizeof why);
    int error = owned_app_init(a, config, app, why, &owner->loop, &owner->log);
    a->module = module;
    h->app_count = index + 1;
    h->registry.apps[index] = &a->entry;
    h->registry.app_count = h->app_count;
    return error;
}

static int find_app(const struct host *h, const char *name)
{
    for (unsigned i = 0; i < h->app_count; i++) {
        if (strcmp(h->apps[i].entry.name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* Fills h->feeds: which app feeds which over inner outlets, directly or through others (Warshall's closure).
 */
static int find_cycles(struct host *h)
{
    const struct config *c = h->config;
    size_t n = c->app_count;
    h->feeds = calloc(n * n + 1, sizeof *h->feeds);
    if (!h->feeds)
        return -ENOMEM;
    for (unsigned i = 0; i < c->output_count; i++) {
        const struct config_output *o = &c->outputs[i];
        if (o->kind == OUTPUT_INNER)
            h->feeds[(size_t)find_app(h, o->app) * n + (size_t)find_app(h, o->inner_app)] = true;
    }
    for (size_t by = 0; by < n; by++) {
        for (size_t from = 0; from < n; from++) {
            for (size_t to = 0; h->feeds[from * n + by] && to < n; to++)
                h->feeds[from * n + to] |= h->feeds[by * n + to];
        }
    }
    return 0;
}

/* The app's output of that name gets its outlet. An app that never loaded has no outputs: its outlets stay
 * without a producer. */
static int join_producer(struct host *h, const struct config_output *config, struct outlet *outlet, char *why,
                         size_t why_size)
{
    struct owned_app *a = &h->apps[find_app(h, config->app)];
    outlet->producer = &a->loop->board;
    outlet->producer_slot = a->task.slot;
    h->registry.outlets[h->registry.outlet_count++] = outlet;
    if (!a->state.app)
        return 0;
    for (uint32_t i = 0; i < a->turn.output_count; i++) {
        if (strcmp(a->state.app->outputs[i], config->output) != 0)
            continue;
        a->turn.outlets[i].outlet = outlet;
        return 0;
    }
    snprintf(why, why_size, "%s:%u: the module of app '%s' has no output '%s'", h->config->path, config->line,
             config->app, config->output);
    return PE_CONFIG;
}

static int open_inner(struct host *h, const struct config_output *config, char *why, size_t why_size)
{
    struct outlet *outlet = &h->inners[h->inner_count];
    int error =
        outlet_init(outlet, "inner", config->app, config->output, config->queue_bytes, config->max_record);
    if (error < 0)
        return error;
    h->inner_count++;
    unsigned to = (unsigned)find_app(h, config->inner_app), from = (unsigned)find_app(h, config->app);
    bool cyclic = h->feeds[(size_t)to * h->app_count + from];
    error = owned_app_add_inner(&h->apps[to], outlet, config->event, cyclic);
    return error < 0 ? error : join_producer(h, config, outlet, why, why_size);
}

void host_wire_options(struct host *h, const struct config_output *config, char *source,
                       struct wire_options *options)
{
    *options = (struct wire_options){.url = config->url,
                                     .mode = config->mode,
                                     .agent = "pure-host/" PURE_VERSION,
                                     .source = source,
                                     .event = config->event,
                                     .token = config->token,
                                     .content_type = config->content_type,
                                     .batch_bytes = config->batch_bytes,
                                     .batch_records = config->batch_records,
                                     .progress_ns = config->progress_ns,
                                     .reply_ns = config->reply_ns,
                                     .total_ns = config->total_ns,
                                     .backoff_min_ns = config->backoff_min_ns,
                                     .backoff_max_ns = config->backoff_max_ns};
    snprintf(source, SOURCE_NAME_MAX + 1, "%s/%s/%s", h->config->name, config->app, config->output);
    memcpy(options->epoch, h->epoch, sizeof options->epoch);
    h->options.fill_random(h->options.context, &options->seed, sizeof options->seed);
}

static int open_wire(struct host *h, const struct config_output *config, char *why, size_t why_size)
{
    unsigned sender = sender_of(h, h->wire_count);
    struct host_thread *t = &h->threads[1 + h->owner_count + sender];
    struct wire_options options;
    char source[SOURCE_NAME_MAX + 1];
    host_wire_options(h, config, source, &options);
    struct wire *wire = &h->wires[h->wire_count];
    int error = wire_init(wire, &options, config->app, config->output, config->queue_bytes,
                          config->max_record, &t->loop, h->resolvers[sender], &t->log);
    if (error < 0)
        return error;
    h->wire_count++;
    return join_producer(h, config, &wire->outlet, why, why_size);
}

static int open_outputs(struct host *h, char *why, size_t why_size)
{
    const struct config *c = h->config;
    int error = 0;
    for (unsigned i = 0; error == 0 && i < c->output_count; i++) {
        const struct config_output *o = &c->outputs[i];
        error = o->kind == OUTPUT_WIRE ? open_wire(h, o, why, why_size) : open_inner(h, o, why, why_size);
    }
    return error;
}

static int open_apps(struct host *h)
{
    const struct config *c = h->config;
    h->apps = allocate(c->app_count, sizeof *h->apps);
    h->wires = allocate(count_outputs(c, OUTPUT_WIRE), sizeof *h->wires);
    h->inners = allocate(count_outputs(c, OUTPUT_INNER), sizeof *h->inners);
    if (!h->apps || !h->wires || !h->inners)
        return -ENOMEM;
    int error = 0;
    for (unsigned i = 0; error == 0 && i < c->app_count; i++)
        error = open_app(h, i);
    return error < 0 ? error : find_cycles(h);
}

const struct registry *host_registry(const struct host *h)
{
    return &h->registry;
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
    h->options.fill_random(h->options.context, h->epoch, sizeof h->epoch);
    int error = sodium_init() < 0 ? -ENOSYS : open_threads(h, why, why_size);
    if (error == 0)
        error = make_registry(h);
    if (error == 0)
        error = open_logs(h);
    if (error == 0) {
        fit_connections(h);
        error = open_apps(h);
    }
    if (error == 0)
        error = open_outputs(h, why, why_size);
    if (error == 0) {
        error = front_init(&h->front, &h->registry, &front_thread(h)->loop, &front_thread(h)->log);
        h->front_open = error == 0;
        if (error < 0)
            snprintf(why, why_size, "cannot listen on %s: %s", config->http, pure_error_text(error));
    }
    if (error < 0 && !why[0])
        snprintf(why, why_size, "%s", pure_error_text(error));
    if (error < 0) {
        host_close(h);
        *host = NULL;
    }
    return error;
}

void host_close(struct host *h)
{
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
    if (h->log_writing)
        log_writer_dispose(&h->log_writer);
    for (unsigned i = 0; i < h->wire_count; i++)
        wire_dispose(&h->wires[i]);
    for (unsigned i = 0; i < h->inner_count; i++)
        outlet_dispose(&h->inners[i]);
    for (unsigned i = 0; i < h->app_count; i++) {
        owned_app_dispose(&h->apps[i]);
        if (h->apps[i].module)
            h->options.unload_module(h->options.context, h->apps[i].module);
    }
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
    free(h->feeds);
    free(h->wires);
    free(h->inners);
    free(h);
}
