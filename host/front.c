#include "host/front.h"

#include <errno.h>
#include <stdlib.h>

#include "host/front_client.h"
#include "host/front_dead.h"
#include "host/front_watch.h"

#define BACKLOG               1024
#define SURPLUS               24   /* connections over the limit, for one request each */
#define TEXTS_A_ROUND         2    /* a text takes milliseconds if there are hundreds of apps */
#define RESULTS_A_ROUND       4096 /* quota of an app's task */
#define ACCEPT_BACKOFF_NS     (100 * NS_PER_MS)
#define ACCEPT_BACKOFF_MAX_NS NS_PER_S
#define ACCEPT_WELL_NS        (10 * NS_PER_S) /* without a failure: all is well again */

uint32_t front_tasks(const struct registry *registry)
{
    return registry->app_count + 1;
}

uint32_t front_timers(const struct config *config)
{
    return config->connections + SURPLUS + 2;
}

/* --- rounds --- */

void front_want(struct front *front, struct client *client)
{
    if (client->ready)
        return;
    client->ready = true;
    client->ready_next = NULL;
    if (front->ready_last)
        front->ready_last->ready_next = client;
    else
        front->ready_first = client;
    front->ready_last = client;
    if (!front->in_round)
        loop_want(front->loop, &front->task);
}

void front_touch(struct front *front, struct front_app *app)
{
    if (app->touched)
        return;
    app->touched = true;
    app->touched_next = front->touched;
    front->touched = app;
    if (!front->in_round)
        loop_want(front->loop, &front->task);
}

static void push_touched(struct front *front)
{
    while (front->touched) {
        struct front_app *app = front->touched;
        front->touched = app->touched_next;
        app->touched = false;
        inbox_push(&app->app->inbox);
    }
}

/* Runs those that are ready now, each once. */
static void run_ready(struct front *front)
{
    struct client *client = front->ready_first;
    front->ready_first = front->ready_last = NULL;
    while (client) {
        struct client *next = client->ready_next;
        client->ready = false;
        client_run(client);
        client = next;
    }
}

/* The end of every round: what was put is pushed, what can be sent is queued. True: more came up meanwhile.
 */
static bool end_round(struct front *front)
{
    run_ready(front);
    push_touched(front);
    front->in_round = false;
    return front->ready_first != NULL;
}

static bool run(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    struct front *front = container_of(task, struct front, task);
    front->in_round = true;
    front->texts_left = TEXTS_A_ROUND;
    push_touched(front); /* first: the owners work while we send */
    return end_round(front);
}

static void deliver(struct front *front, struct waiter waiter, const struct run_result *result)
{
    struct client *client = &front->clients[waiter.client];
    if (client->generation == waiter.generation)
        client_result(client, waiter.exchange, result);
}

static bool take_results(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    struct front_app *app = container_of(task, struct front_app, task);
    struct front *front = app->front;
    struct run_result result;
    unsigned taken = 0;
    front->in_round = true;
    for (; taken < RESULTS_A_ROUND && inbox_take_result(&app->app->inbox, &result); taken++)
        deliver(front, waiters_take(&app->waiters), &result);
    if (taken > 0)
        app->stalled = false;
    front_dead_answered(front, app);
    if (end_round(front))
        loop_want(front->loop, &front->task);
    return taken == RESULTS_A_ROUND;
}

/* --- accepting --- */

static void accept_on(struct front *front);

/* A descriptor that finds the pool spent: closed without a word. One allocation, off every path that
 * is not overrun already. */
struct surplus {
    struct io_op op;
    struct front *front;
};

static void surplus_closed(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    struct surplus *surplus = container_of(op, struct surplus, op);
    surplus->front->closing_surplus--;
    free(surplus);
}

static void close_surplus(struct front *front, int fd)
{
    struct surplus *surplus = malloc(sizeof *surplus);
    if (!surplus) {
        log_line(front->log, LOG_ERROR, "out of memory: a connection is lost");
        return;
    }
    *surplus = (struct surplus){.front = front};
    io_prepare(&surplus->op, IO_CLOSE, fd, surplus_closed);
    io_queue(front->loop->io, &surplus->op);
    front->closing_surplus++;
}

/* Stops while the pool is spent; the kernel's backlog holds those that come. */
static void stop_accepting(struct front *front)
{
    front->accepting = false;
    io_cancel(front->loop->io, &front->accept);
}

static void admit(struct front *front, int fd)
{
    bool over = front->open >= front->config->connections;
    front->counters.accepted++;
    struct client *client = front->free;
    if (!client || front->stopping) {
        front->counters.refused++;
        close_surplus(front, fd);
        return;
    }
    front->free = client->free_next;
    front->open++;
    client->used = true;
    client_open(client, fd, over);
    if (!front->free)
        stop_accepting(front);
}

/* Failures come once a second, for as long as descriptors are short: the first is said, the second, the
 * fourth … */
static void accept_failed(struct front *front, int error)
{
    uint64_t fails = ++front->accept_fails;
    front->accept_failed_ns = front->loop->now_ns;
    front->counters.accept_fails++;
    timer_set(&front->loop->timers, &front->accept_again, front->loop->now_ns + front->accept_backoff_ns);
    front->accept_backoff_ns = min_u64(2 * front->accept_backoff_ns, ACCEPT_BACKOFF_MAX_NS);
    if ((fails & (fails - 1)) == 0)
        log_line(front->log, LOG_WARNING, "cannot accept connections: %s (%llu times)",
                 pure_error_text(error), (unsigned long long)fails);
}

/* One that is accepted between failures does not end them. */
static void accept_succeeded(struct front *front)
{
    front->accept_backoff_ns = ACCEPT_BACKOFF_NS;
    if (front->accept_fails == 0 || front->loop->now_ns - front->accept_failed_ns < ACCEPT_WELL_NS)
        return;
    log_line(front->log, LOG_NOTICE, "connections are accepted again, after %llu failures",
             (unsigned long long)front->accept_fails);
    front->accept_fails = 0;
}

static void close_listener(struct front *front);

static void accepted(struct io_op *op, int result, bool more)
{
    struct front *front = container_of(op, struct front, accept);
    if (result >= 0) {
        accept_succeeded(front);
        admit(front, result);
    }
    if (more)
        return;
    bool passing = result >= 0 || result == -ECANCELED || result == -EINTR || result == -EAGAIN ||
                   result == -ECONNABORTED || result == -EPROTO;
    if (front->stopping) {
        close_listener(front);
    } else if (passing) {
        accept_on(front);
    } else {
        accept_failed(front, result);
    }
}

static void accept_on(struct front *front)
{
    if (front->accept.in_flight || !front->accepting || front->stopping)
        return;
    io_prepare(&front->accept, IO_ACCEPT, front->listener, accepted);
    io_queue(front->loop->io, &front->accept);
}

static void accept_again(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    accept_on(container_of(timer, struct front, accept_again));
}

void front_release(struct front *front, struct client *client)
{
    client->used = false;
    client->free_next = front->free;
    front->free = client;
    front->open--;
    if (front->accepting || front->stopping)
        return;
    front->accepting = true;
    if (front->accept_again.place == 0)
        accept_on(front);
}

/* --- beginning and end --- */

static void listener_closed(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    container_of(op, struct front, close_listener)->listener_closed = true;
}

static void close_listener(struct front *front)
{
    if (front->accept.in_flight || front->close_listener.in_flight || front->listener_closed)
        return;
    io_prepare(&front->close_listener, IO_CLOSE, front->listener, listener_closed);
    io_queue(front->loop->io, &front->close_listener);
}

void front_stop(struct front *front)
{
    if (front->stopping)
        return;
    front->stopping = true;
    timer_unset(&front->loop->timers, &front->accept_again);
    io_cancel(front->loop->io, &front->accept);
    close_listener(front);
    for (uint32_t i = 0; i < front->pool; i++) {
        if (front->clients[i].used)
            client_stop(&front->clients[i]);
    }
}

bool front_stopped(const struct front *front)
{
    return front->stopping && front->listener_closed && front->open == 0 && front->closing_surplus == 0;
}

void front_abort(struct front *front)
{
    front_stop(front);
    for (uint32_t i = 0; i < front->pool; i++) {
        if (front->clients[i].used)
            client_close(&front->clients[i]);
    }
}

static int make_clients(struct front *front)
{
    front->pool = front->config->connections + SURPLUS;
    front->clients = calloc(front->pool, sizeof *front->clients);
    if (!front->clients)
        return -ENOMEM;
    for (uint32_t i = front->pool; i-- > 0;) {
        struct client *client = &front->clients[i];
        client->front = front;
        client->index = i;
        client->free_next = front->free;
        front->free = client;
    }
    return 0;
}

static int make_apps(struct front *front)
{
    const struct registry *registry = front->registry;
    uint32_t buckets = 8;
    while (buckets < 2 * registry->app_count)
        buckets *= 2;
    front->bucket_mask = buckets - 1;
    front->buckets = calloc(buckets, sizeof *front->buckets);
    front->apps = calloc(registry->app_count + 1, sizeof *front->apps);
    return front->buckets && front->apps ? 0 : -ENOMEM;
}

static int join_app(struct front *front, unsigned i)
{
    struct front_app *app = &front->apps[i];
    *app = (struct front_app){.front = front, .app = front->registry->apps[i], .task.run = take_results};
    int error = loop_add(front->loop, &app->task);
    if (error < 0)
        return error;
    app->name = span_text(app->app->name);
    app->app->inbox.front = &front->loop->board;
    app->app->inbox.front_slot = app->task.slot;
    struct front_app **bucket = &front->buckets[front_hash(app->name) & front->bucket_mask];
    app->same_hash = *bucket;
    *bucket = app;
    return 0;
}

static int join_apps(struct front *front)
{
    int error = loop_add(front->loop, &front->task);
    for (unsigned i = 0; i < front->registry->app_count && error == 0; i++) {
        error = join_app(front, i);
        front->joined += error == 0;
    }
    return error;
}

static int start_listening(struct front *front)
{
    const struct config *config = front->config;
    int fd = io_listen(front->loop->io, (const struct sockaddr *)&config->http_address,
                       config->http_address_len, BACKLOG);
    if (fd < 0)
        return fd;
    front->listener = fd;
    front->accepting = true;
    accept_on(front);
    return 0;
}

int front_init(struct front *front, const struct registry *registry, struct loop *loop, struct log *log)
{
    *front = (struct front){
        .registry = registry,
        .config = registry->config,
        .loop = loop,
        .log = log,
        .task.run = run,
        .listener = -1,
        .accept_backoff_ns = ACCEPT_BACKOFF_NS,
        .started_ns = loop->now_ns,
    };
    timer_init(&front->accept_again, accept_again);
    front_watch_init(front);
    int error = make_clients(front);
    if (error == 0)
        error = make_apps(front);
    if (error == 0)
        error = join_apps(front);
    if (error == 0)
        error = start_listening(front);
    if (error < 0)
        front_dispose(front);
    return error;
}

void front_dispose(struct front *front)
{
    for (uint32_t i = 0; i < front->pool && front->clients; i++) {
        if (front->clients[i].used)
            client_dispose(&front->clients[i]);
    }
    for (unsigned i = 0; i < front->joined; i++) {
        loop_remove(front->loop, &front->apps[i].task);
        waiters_dispose(&front->apps[i].waiters);
    }
    if (front->task.slot < front->loop->board.slots && front->loop->tasks[front->task.slot] == &front->task)
        loop_remove(front->loop, &front->task);
    timer_unset(&front->loop->timers, &front->accept_again);
    timer_unset(&front->loop->timers, &front->watch);
    free(front->apps);
    free(front->buckets);
    free(front->clients);
    *front = (struct front){.listener = -1};
}
