#include "host/front.h"

#include <errno.h>
#include <stdlib.h>

#include "host/front_client.h"
#include "host/front_dead.h"
#include "host/front_line.h"
#include "host/front_listen.h"
#include "host/front_watch.h"

#define SURPLUS         24   /* connections over the limit, for one request each */
#define TEXTS_A_ROUND   2    /* a text takes milliseconds if there are hundreds of apps; but for health */
#define RESULTS_A_ROUND 4096 /* quota of an app's task */

uint32_t front_tasks(const struct registry *registry)
{
    return registry->app_count + 1;
}

uint32_t front_timers(const struct config *config)
{
    return config->connections + SURPLUS + 3;
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
    front->round++;
    front->texts_left = TEXTS_A_ROUND;
    push_touched(front); /* first: the owners work while we send */
    bool more = front_line_visit(front);
    return end_round(front) || more;
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
    front_line_reopen(app);
    if (end_round(front))
        loop_want(front->loop, &front->task);
    return taken == RESULTS_A_ROUND;
}

void front_release(struct front *front, struct client *client)
{
    client->used = false;
    client->free_next = front->free;
    front->free = client;
    front->open--;
    front_listen_adjust(front);
}

/* --- beginning and end --- */

void front_stop(struct front *front)
{
    if (front->stopping)
        return;
    front->stopping = true;
    front_listen_stop(front);
    for (uint32_t i = 0; i < front->pool; i++) {
        if (front->clients[i].used)
            client_stop(&front->clients[i]);
    }
}

bool front_stopped(const struct front *front)
{
    return front->stopping && front_listen_stopped(front) && front->open == 0;
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

int front_init(struct front *front, const struct front_options *options, char *why, size_t why_size)
{
    const struct registry *registry = options->registry;
    why[0] = '\0';
    *front = (struct front){
        .registry = registry,
        .config = registry->config,
        .without = registry->config->without,
        .https = options->https,
        .loop = options->loop,
        .log = options->log,
        .task.run = run,
        .started_ns = options->loop->now_ns,
    };
    front_listen_init(front);
    front_line_init(front);
    front_watch_init(front);
    int error = make_clients(front);
    if (error == 0)
        error = make_apps(front);
    if (error == 0)
        error = join_apps(front);
    if (error == 0)
        error = front_listen_start(front, options, why, why_size);
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
    timer_unset(&front->loop->timers, &front->held_look);
    free(front->apps);
    free(front->buckets);
    free(front->clients);
    *front = (struct front){0};
}
