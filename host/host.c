#include "host/host.h"

#include "host/front.h"
#include "host/log_writer.h"
#include "host/owned_app.h"
#include "wire/wire.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FRONT_TASKS  2 /* besides one an app: the front's own, the log writer */
#define STOP_POLL_NS (20 * NS_PER_MS)
#define CLOSE_NS     (1 * NS_PER_S)    /* how long a stop waits for open requests */
#define DRAIN_NS     (2 * NS_PER_S)    /* and then for what the inboxes and outlets hold */
#define END_NS       (500 * NS_PER_MS) /* and then, in each sending loop, for its wires' connections to close */

struct host;

/* A thread and its loop. */
struct host_thread {
    struct host *host;
    char name[16]; /* the kernel's limit */
    struct io *io;
    struct loop loop;
    struct log log;
    struct timer end_timer;
    pthread_t thread;
    bool looped, logged, started;
    _Atomic bool stop;
    _Atomic int error; /* that ended its loop */
};

enum stop_phase { NOT_STOPPING, CLOSING, DRAINING, STOPPED };

struct host {
    const struct config *config;
    struct host_options options;
    struct host_thread *threads; /* [0]: the front's; then the owners'; then the sending loops' */
    unsigned thread_count, owner_count, sender_count;
    struct resolver **resolvers; /* by sending loop */
    struct owned_app *apps;      /* config->app_count; app_count of them are made */
    unsigned app_count;
    bool *feeds; /* [from * app_count + to] */
    struct wire *wires;
    unsigned wire_count;
    struct outlet *inners;
    unsigned inner_count;
    struct registry registry;
    struct front front;
    bool front_open;
    struct log_writer log_writer;
    bool log_writing;
    uint8_t epoch[EPOCH_BYTES]; /* of every stream from here: new with each start, as nothing outlives it */
    /* stopping; on the front's loop */
    enum stop_phase stop;
    uint64_t phase_ends_ns;
    struct timer stop_timer;
    struct io_op signal_read;
    struct signalfd_siginfo signal;
    int signal_fd;
};

static struct host_thread *front_thread(struct host *h)
{
    return &h->threads[0];
}

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
    int error = log_writer_init(&h->log_writer, &front->loop, h->options.log_fd);
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

static int make_registry(struct host *h)
{
    const struct config *c = h->config;
    struct registry *r = &h->registry;
    *r = (struct registry){.config = c, .loop_count = h->thread_count};
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
    char why[160];
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

static int open_wire(struct host *h, const struct config_output *config, char *why, size_t why_size)
{
    unsigned sender = sender_of(h, h->wire_count);
    struct host_thread *t = &h->threads[1 + h->owner_count + sender];
    struct wire_options options = {.url = config->url,
                                   .mode = config->mode,
                                   .agent = "pure-host/" PURE_VERSION,
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
    char source[SOURCE_NAME_MAX + 1];
    snprintf(source, sizeof source, "%s/%s/%s", h->config->name, config->app, config->output);
    options.source = source;
    memcpy(options.epoch, h->epoch, sizeof options.epoch);
    h->options.fill_random(h->options.context, &options.seed, sizeof options.seed);
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

/* --- stopping --- */

static bool drained(const struct host *h)
{
    for (unsigned i = 0; i < h->app_count; i++) {
        struct registry_app *a = &h->apps[i].entry;
        if (record_queue_glance(&a->inbox.runs).held_bytes > 0)
            return false;
    }
    for (unsigned i = 0; i < h->registry.outlet_count; i++) {
        struct outlet *o = h->registry.outlets[i];
        bool delivering = atomic_load_explicit(&o->report.state, memory_order_relaxed) == OUTLET_OK;
        if (delivering && record_queue_glance(&o->queue).held_bytes > 0)
            return false;
    }
    return true;
}

static void report_undelivered(struct host *h)
{
    for (unsigned i = 0; i < h->registry.outlet_count; i++) {
        struct outlet *o = h->registry.outlets[i];
        uint32_t records = record_queue_glance(&o->queue).held_records;
        if (records > 0)
            log_line(&front_thread(h)->log, LOG_WARNING,
                     "output %s.%s: %u records were not delivered; the store is memory, so they end here",
                     o->app, o->output, records);
    }
}

static void enter_phase(struct host *h, enum stop_phase phase, uint64_t ends_ns)
{
    h->stop = phase;
    h->phase_ends_ns = ends_ns;
}

static void go_on_stopping(struct timer *timer, uint64_t now_ns)
{
    struct host *h = container_of(timer, struct host, stop_timer);
    bool late = now_ns >= h->phase_ends_ns;
    if (h->stop == CLOSING && (late || front_stopped(&h->front))) {
        enter_phase(h, DRAINING, now_ns + DRAIN_NS);
    } else if (h->stop == DRAINING && (late || drained(h))) {
        report_undelivered(h);
        enter_phase(h, STOPPED, NEVER);
        io_wake(front_thread(h)->io); /* the step under way is the last: it need not wait */
        return;
    }
    timer_set(&front_thread(h)->loop.timers, &h->stop_timer, now_ns + STOP_POLL_NS);
}

void host_stop(struct host *h)
{
    struct loop *loop = &front_thread(h)->loop;
    if (h->stop != NOT_STOPPING)
        return;
    log_line(&front_thread(h)->log, LOG_NOTICE, "stopping: nothing more is taken, what is held is delivered");
    front_stop(&h->front);
    enter_phase(h, CLOSING, loop->now_ns + CLOSE_NS);
    timer_set(&loop->timers, &h->stop_timer, loop->now_ns);
}

bool host_stopped(const struct host *h)
{
    return h->stop == STOPPED;
}

static void signalled(struct io_op *op, int result, bool more)
{
    (void)more;
    struct host *h = container_of(op, struct host, signal_read);
    if (result == (int)sizeof h->signal && h->stop != NOT_STOPPING)
        h->stop = STOPPED; /* asked a second time */
    else if (result == (int)sizeof h->signal)
        host_stop(h);
    if (result > 0 || result == -EINTR || result == -EAGAIN)
        io_queue(front_thread(h)->io, op);
}

/* SIGTERM and SIGINT come as reads on the front's loop, to no thread's handler. */
static int take_signals(struct host *h)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    int error = pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (error > 0)
        return -error;
    signal(SIGPIPE, SIG_IGN);
    h->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (h->signal_fd < 0)
        return -errno;
    io_prepare_memory(&h->signal_read, IO_READ, h->signal_fd, &h->signal, sizeof h->signal, signalled);
    io_queue(front_thread(h)->io, &h->signal_read);
    return 0;
}

/* --- running --- */

static bool wires_ended(const struct host_thread *t)
{
    for (unsigned i = 0; i < t->host->wire_count; i++) {
        if (t->host->wires[i].loop == &t->loop && !wire_stopped(&t->host->wires[i]))
            return false;
    }
    return true;
}

/* The last steps of a sending loop: its wires close their connections, so that nothing is in flight when
 * their memory goes. */
static int end_wires(struct host_thread *t)
{
    for (unsigned i = 0; i < t->host->wire_count; i++) {
        if (t->host->wires[i].loop == &t->loop)
            wire_stop(&t->host->wires[i]);
    }
    uint64_t ends_ns = t->loop.now_ns + END_NS;
    int error = 0;
    while (error == 0 && !wires_ended(t) && t->loop.now_ns < ends_ns) {
        timer_set(&t->loop.timers, &t->end_timer, ends_ns);
        error = loop_step(&t->loop);
    }
    return error;
}

static void *run_thread(void *argument)
{
    struct host_thread *t = argument;
    int error = 0;
    while (error == 0 && !atomic_load_explicit(&t->stop, memory_order_acquire))
        error = loop_step(&t->loop);
    if (error == 0)
        error = end_wires(t);
    if (error < 0) {
        atomic_store(&t->error, error);
        io_wake(t->host->threads[0].io);
    }
    return NULL;
}

static int start_threads(struct host *h)
{
    for (unsigned i = 1; i < h->thread_count; i++) {
        struct host_thread *t = &h->threads[i];
        int error = pthread_create(&t->thread, NULL, run_thread, t);
        if (error > 0)
            return -error;
        t->started = true;
        pthread_setname_np(t->thread, t->name);
    }
    return 0;
}

static void stop_threads(struct host *h)
{
    for (unsigned i = 1; i < h->thread_count; i++) {
        struct host_thread *t = &h->threads[i];
        if (!t->started)
            continue;
        atomic_store_explicit(&t->stop, true, memory_order_release);
        io_wake(t->io);
        pthread_join(t->thread, NULL);
        t->started = false;
    }
}

/* A loop that cannot wait any more has ended: the host cannot go on without it. */
static int thread_failure(struct host *h)
{
    int error = 0;
    for (unsigned i = 1; error == 0 && i < h->thread_count; i++)
        error = atomic_load_explicit(&h->threads[i].error, memory_order_relaxed);
    return error;
}

/* What the threads said last still goes out, unless nobody takes it. */
static void finish_log(struct host *h)
{
    struct host_thread *front = front_thread(h);
    uint64_t ends_ns = front->loop.now_ns + END_NS;
    int error = 0;
    timer_set(&front->loop.timers, &front->end_timer, ends_ns);
    while (error == 0 && !log_writer_idle(&h->log_writer) && front->loop.now_ns < ends_ns)
        error = loop_step(&front->loop);
    log_writer_stop(&h->log_writer);
    while (error == 0 && !log_writer_stopped(&h->log_writer))
        error = loop_step(&front->loop);
}

int host_run(struct host *h)
{
    pthread_setname_np(pthread_self(), front_thread(h)->name);
    int error = take_signals(h);
    if (error == 0)
        error = start_threads(h);
    if (error == 0)
        log_line(&front_thread(h)->log, LOG_NOTICE,
                 "pure-host " PURE_VERSION " is ready on http://%s: %u apps, %u outputs", h->config->http,
                 h->app_count, h->registry.outlet_count);
    while (error == 0 && !host_stopped(h)) {
        error = loop_step(&front_thread(h)->loop);
        if (error == 0)
            error = thread_failure(h);
    }
    stop_threads(h);
    finish_log(h);
    return error;
}

void host_end(struct host *h)
{
    front_abort(&h->front);
    for (unsigned i = 0; i < h->wire_count; i++)
        wire_stop(&h->wires[i]);
    log_writer_stop(&h->log_writer);
}

bool host_ended(const struct host *h)
{
    bool ended = front_stopped(&h->front) && log_writer_stopped(&h->log_writer);
    for (unsigned i = 0; i < h->wire_count; i++)
        ended = ended && wire_stopped(&h->wires[i]);
    return ended;
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
    h->options = *options;
    h->signal_fd = -1;
    timer_init(&h->stop_timer, go_on_stopping);
    h->options.fill_random(h->options.context, h->epoch, sizeof h->epoch);
    int error = sodium_init() < 0 ? -ENOSYS : open_threads(h, why, why_size);
    if (error == 0)
        error = make_registry(h);
    if (error == 0)
        error = open_logs(h);
    if (error == 0)
        error = open_apps(h);
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
