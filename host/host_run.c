#include "host/host_private.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* The times of a stop: less than 5 s together. */
#define STOP_POLL_NS (20 * NS_PER_MS)
#define CLOSE_NS     (1 * NS_PER_S)    /* for open requests */
#define DRAIN_NS     (2 * NS_PER_S)    /* and then for what the inboxes and outlets hold */
#define THREADS_NS   (1 * NS_PER_S)    /* and then for the threads to end, among it */
#define END_NS       (500 * NS_PER_MS) /* in each loop, for what it has in flight to end, */
#define DISK_NS      (900 * NS_PER_MS) /* or, where that is on a disk */
#define LOG_NS       (300 * NS_PER_MS) /* and then for the last lines; and as long for their copy */
#define JOIN_POLL_NS (1 * NS_PER_MS)

/* --- stopping --- */

/* Also what rests is worth waiting for: who restarts a host often restarts others, too. */
static bool empty(const struct host *h)
{
    for (unsigned i = 0; i < h->app_count; i++) {
        if (registry_app_held(&h->apps[i].entry) > 0)
            return false;
    }
    for (unsigned i = 0; i < h->registry.outlet_count; i++) {
        struct outlet *o = h->registry.outlets[i];
        bool disabled = atomic_load_explicit(&o->report.state, memory_order_relaxed) == OUTLET_DISABLED;
        if (!disabled && record_queue_glance(&o->queue).held_bytes > 0)
            return false;
    }
    return true;
}

static uint64_t stored_sum(const struct host *h)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < h->registry.outlet_count; i++)
        sum += counter_read(&h->registry.outlets[i]->report.stored);
    return sum;
}

/* One look sees one queue after the other, and misses a record that an app meanwhile takes from an outlet not
 * looked at yet to one that was. That outlet's stored number tells: two looks in a row have to find all empty
 * and the same numbers. */
static bool drained(struct host *h)
{
    bool now_empty = empty(h);
    uint64_t stored = stored_sum(h);
    bool twice = now_empty && h->looked_empty && stored == h->looked_stored;
    h->looked_empty = now_empty;
    h->looked_stored = stored;
    return twice;
}

static void report_undelivered(struct host *h)
{
    for (unsigned i = 0; i < h->registry.outlet_count; i++) {
        struct outlet *o = h->registry.outlets[i];
        uint32_t held = record_queue_glance(&o->queue).held_records;
        bool journaled = h->apps[host_find_app(h, o->app)].journal.on;
        uint64_t sent = counter_read(&o->report.sent), stored = counter_read(&o->report.stored);
        if (journaled && sent > stored)
            log_line(&front_thread(h)->log, LOG_NOTICE, "output %s.%s: %llu records wait in the store",
                     o->app, o->output, (unsigned long long)(sent - stored));
        else if (!journaled && held > 0)
            log_line(&front_thread(h)->log, LOG_WARNING,
                     "output %s.%s: %u records were not delivered; the store is memory, so they end here",
                     o->app, o->output, held);
    }
}

static void enter_phase(struct host *h, enum stop_phase phase, uint64_t ends_ns)
{
    h->stop = phase;
    h->phase_ends_ns = ends_ns;
}

static void stop_at_once(struct host *h)
{
    if (h->stop != STOPPED)
        report_undelivered(h);
    enter_phase(h, STOPPED, NEVER);
}

void host_go_on_stopping(struct timer *timer, uint64_t now_ns)
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
    for (unsigned i = 0; i < h->wire_count; i++)
        wire_hurry(&h->wires[i]);
    for (unsigned i = 0; i < h->link_count; i++)
        link_hurry(&h->links[i]);
    if (h->listening)
        link_inlets_hold(&h->inlets);
    enter_phase(h, CLOSING, loop->now_ns + CLOSE_NS);
    timer_set(&loop->timers, &h->stop_timer, loop->now_ns);
}

bool host_stopped(const struct host *h)
{
    return h->stop == STOPPED;
}

static void act_on(struct host *h, int signal_number)
{
    if (signal_number == SIGHUP)
        host_reload(h);
    else if (h->stop != NOT_STOPPING)
        stop_at_once(h); /* asked a second time */
    else
        host_stop(h);
}

static void signalled(struct io_op *op, int result, bool more)
{
    (void)more;
    struct host *h = container_of(op, struct host, signal_read);
    if (result == (int)sizeof h->signal)
        act_on(h, (int)h->signal.ssi_signo);
    if (result > 0 || result == -EINTR || result == -EAGAIN)
        io_queue(front_thread(h)->io, op);
}

static void hold_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
}

void host_hold_signals(void)
{
    sigset_t signals;
    hold_signals(&signals);
    signal(SIGXFSZ, SIG_IGN); /* what is beyond RLIMIT_FSIZE fails with EFBIG, and somebody says so */
}

/* The three come as reads on the front's loop, to no thread's handler. */
static int take_signals(struct host *h)
{
    sigset_t signals;
    hold_signals(&signals);
    signal(SIGPIPE, SIG_IGN);
    h->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (h->signal_fd < 0)
        return -errno;
    io_prepare_memory(&h->signal_read, IO_READ, h->signal_fd, &h->signal, sizeof h->signal, signalled);
    io_queue(front_thread(h)->io, &h->signal_read);
    return 0;
}

/* --- running --- */

static bool outlets_ended(const struct host_thread *t)
{
    const struct host *h = t->host;
    bool ended = true;
    for (unsigned i = 0; i < h->wire_count; i++)
        ended = ended && (h->wires[i].loop != &t->loop || wire_stopped(&h->wires[i]));
    for (unsigned i = 0; i < h->link_count; i++)
        ended = ended && (h->links[i].loop != &t->loop || link_stopped(&h->links[i]));
    if (h->listening && h->listener.loop == &t->loop)
        ended = ended && link_listener_stopped(&h->listener);
    return ended;
}

static void stop_outlets(struct host_thread *t)
{
    struct host *h = t->host;
    for (unsigned i = 0; i < h->wire_count; i++) {
        if (h->wires[i].loop == &t->loop)
            wire_stop(&h->wires[i]);
    }
    for (unsigned i = 0; i < h->link_count; i++) {
        if (h->links[i].loop == &t->loop)
            link_stop(&h->links[i]);
    }
    if (h->listening && h->listener.loop == &t->loop)
        link_listener_stop(&h->listener);
}

/* The last steps of a loop: its wires close their connections, its links and the listener end their sessions,
 * its journal writes what there is and seals its segment, so that nothing is in flight when their memory
 * goes. */
static int end_outlets(struct host_thread *t)
{
    atomic_store(&t->ending, true);
    stop_outlets(t);
    host_stop_journal(t);
    uint64_t ends_ns = t->loop.now_ns + (host_journal_stopped(t) ? END_NS : DISK_NS);
    int error = 0;
    while (error == 0 && !(outlets_ended(t) && host_journal_stopped(t)) && t->loop.now_ns < ends_ns) {
        timer_set(&t->loop.timers, &t->end_timer, ends_ns);
        error = loop_step(&t->loop);
    }
    t->unfinished = !host_journal_stopped(t);
    return error;
}

/* Of the threads that take in what comes. The kernel then gives the apps' threads three times as much of a
 * processor that both want, in slices of a few milliseconds, and to whoever wants it what the others do not;
 * what is sent was taken in already, so pure-send weighs as much as the apps do. */
static void lighten(struct host_thread *t)
{
    struct host *h = t->host;
    bool network = t == front_thread(h) || t == listen_thread(h);
    if (!network || !h->options.lighten || h->config->without.share)
        return;
    int error = h->options.lighten(h->options.context);
    if (error < 0)
        log_line(&t->log, LOG_WARNING, "thread %s weighs as much as the apps' threads: %s", t->name,
                 pure_error_text(error));
}

static void *run_thread(void *argument)
{
    struct host_thread *t = argument;
    int error = 0;
    host_guard_thread(t);
    lighten(t);
    while (error == 0 && !atomic_load_explicit(&t->stop, memory_order_acquire))
        error = loop_step(&t->loop);
    if (error == 0)
        error = end_outlets(t);
    tls_thread_end();
    guard_thread_end();
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

/* Joins those that have ended. How many have not? */
static unsigned join_threads(struct host *h)
{
    unsigned left = !host_tls_idle(&h->tls);
    for (unsigned i = 1; i < h->thread_count; i++) {
        struct host_thread *t = &h->threads[i];
        t->started = t->started && pthread_tryjoin_np(t->thread, NULL) != 0;
        left += t->started;
    }
    return left;
}

/* Whether all ended. One that an app or a disk holds does not; it is waited for no longer than THREADS_NS. */
static bool stop_threads(struct host *h)
{
    host_tls_stop(&h->tls);
    struct io *io = front_thread(h)->io;
    for (unsigned i = 1; i < h->thread_count; i++) {
        struct host_thread *t = &h->threads[i];
        atomic_store_explicit(&t->stop, true, memory_order_release);
        if (t->started)
            io_wake(t->io);
    }
    uint64_t ends_ns = io_now_ns(io) + THREADS_NS;
    unsigned left;
    while ((left = join_threads(h)) > 0 && io_now_ns(io) < ends_ns)
        nanosleep(&(struct timespec){.tv_nsec = JOIN_POLL_NS}, NULL);
    for (unsigned i = 1; left > 0 && i < h->thread_count; i++) {
        if (h->threads[i].started && !atomic_load(&h->threads[i].ending))
            log_line(&front_thread(h)->log, LOG_ERROR,
                     "thread %s does not end: a call of an app does not return; the process ends without it",
                     h->threads[i].name);
    }
    return left == 0;
}

/* Whether a thread is in a call of an app, and so has not begun to end. */
static bool held_by_app(struct host *h)
{
    bool held = false;
    for (unsigned i = 1; i < h->thread_count; i++)
        held = held || (h->threads[i].started && !atomic_load(&h->threads[i].ending));
    return held;
}

/* A disk that takes too long is not waited for: what it has not taken was not acknowledged. */
static bool journals_written(struct host *h)
{
    bool written = true;
    for (unsigned i = 1; i < h->thread_count; i++)
        written = written && !h->threads[i].started && !h->threads[i].unfinished;
    if (!written)
        log_line(
            &front_thread(h)->log, LOG_WARNING,
            "the store's disk takes too long: the process ends without it; what was acknowledged is there");
    return written;
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
    uint64_t ends_ns = io_now_ns(front->io) + LOG_NS;
    int error = 0;
    timer_set(&front->loop.timers, &front->end_timer, ends_ns);
    while (error == 0 && !log_writer_idle(&h->log_writer) && front->loop.now_ns < ends_ns)
        error = loop_step(&front->loop);
    log_writer_stop(&h->log_writer);
    while (error == 0 && !log_writer_stopped(&h->log_writer))
        error = loop_step(&front->loop);
    log_pump_stop(&h->log_pump);
}

static int start_log(struct host *h)
{
    int error = log_pump_start(&h->log_pump, h->options.log_fd);
    if (error == 0)
        h->log_writer.fd = h->log_pump.fd;
    return error;
}

static void tell_ready(struct host *h)
{
    const char *http = h->config->http, *https = h->config->https.text;
    log_line(&front_thread(h)->log, LOG_NOTICE,
             "pure-host " PURE_VERSION " is ready on %s%s%s%s%s; apps: %u, outputs: %u",
             http ? "http://" : "", http ? http : "", http && https ? " and " : "", https ? "https://" : "",
             https ? https : "", h->app_count, h->registry.outlet_count);
}

int host_run(struct host *h)
{
    int error = take_signals(h);
    guard_watch_end(&h->watch);
    if (error == 0)
        error = start_log(h);
    if (error == 0)
        error = start_threads(h);
    if (error == 0)
        host_tls_start(&h->tls, &front_thread(h)->loop, &front_thread(h)->log);
    lighten(front_thread(h)); /* last: threads begin with the weight of who makes them */
    if (error == 0)
        host_start_looking(h);
    if (error == 0)
        tell_ready(h);
    while (error == 0 && !host_stopped(h)) {
        error = loop_step(&front_thread(h)->loop);
        if (error == 0)
            error = thread_failure(h);
    }
    bool held = !stop_threads(h) && held_by_app(h), written = held || journals_written(h);
    finish_log(h);
    if (held)
        _exit(1); /* the thread stands on the host's memory and the module's code */
    if (!written || !host_tls_idle(&h->tls))
        _exit(error < 0); /* so do what the kernel still has to write, and who reads files */
    return error;
}

void host_end(struct host *h)
{
    front_abort(&h->front);
    for (unsigned i = 0; i < h->thread_count; i++) {
        stop_outlets(&h->threads[i]);
        if (host_stopped(h))
            host_stop_journal(&h->threads[i]);
    }
    log_writer_stop(&h->log_writer);
}

bool host_ended(const struct host *h)
{
    bool ended = front_stopped(&h->front) && log_writer_stopped(&h->log_writer);
    for (unsigned i = 0; i < h->thread_count; i++)
        ended = ended && outlets_ended(&h->threads[i]) &&
                (!host_stopped(h) || host_journal_stopped(&h->threads[i]));
    return ended;
}
