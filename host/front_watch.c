#include "host/front_watch.h"

#include "host/front_client.h"

#define LOOK_NS NS_PER_S

/* --- apps --- */

const char *front_watch_refusal(const struct front *front, const struct front_app *app)
{
    const struct app_report *report = &app->app->report;
    const struct inbox *inbox = &app->app->inbox;
    if (atomic_load_explicit(&report->store_full, memory_order_relaxed))
        return "the disk of the store is full";
    if (atomic_load_explicit(&report->condition, memory_order_relaxed) == APP_WAITING) {
        struct outlet *full = atomic_load_explicit(&report->waits_for, memory_order_relaxed);
        if (full && atomic_load_explicit(&full->report.state, memory_order_relaxed) != OUTLET_OK)
            return "the app waits for an output that is full and does not deliver";
        if (app->stalled)
            return "the app waits for room in its outputs";
    }
    if (app->stalled && inbox->puts - inbox->takes >= front_crowd(front->config))
        return "the app does not answer, and others wait for it";
    return NULL;
}

/* Returns whether runs that were there at the last look have no result yet. */
static bool look_at_app(struct front_app *app)
{
    const struct inbox *inbox = &app->app->inbox;
    bool late = inbox->takes < app->puts_seen;
    app->stalled = late && inbox->takes == app->takes_seen;
    app->puts_seen = inbox->puts;
    app->takes_seen = inbox->takes;
    app->crowd = 0;
    return late;
}

/* --- their clients --- */

/* The exchange that keeps all behind it waiting, or NULL: replies go in order, so its time is up first. */
static struct exchange *first_waiting(struct client *c)
{
    for (uint32_t n = c->first; n != c->end; n++) {
        struct exchange *x = client_exchange(c, n);
        if (x->runs > 0)
            return x;
    }
    return NULL;
}

static bool time_is_up(const struct client *c, const struct exchange *x, uint64_t now_ns)
{
    uint64_t most_ns = c->front->config->request_ns;
    if (x->kind == EXCHANGE_SHOW)
        most_ns = FRONT_PATIENCE_NS;
    else if (c->peer_ended)
        most_ns = min_u64(most_ns, FRONT_PATIENCE_NS);
    return !x->receiving && now_ns - x->since_ns >= most_ns;
}

/* Connections have run out, and more than their share of them wait for this app. */
static bool crowds(struct front *front, const struct exchange *x)
{
    return front->open >= front->config->connections && x->app->stalled &&
           ++x->app->crowd > front_crowd(front->config);
}

static void look_at_client(struct front *front, struct client *c, uint64_t now_ns)
{
    struct exchange *x = first_waiting(c);
    if (!x)
        return;
    bool ends = crowds(front, x);
    if (ends)
        client_refuse(c, 503, "too many wait for the app");
    for (; x && (ends || time_is_up(c, x, now_ns)); x = first_waiting(c))
        client_give_up(c, x);
}

static void look(struct timer *timer, uint64_t now_ns)
{
    struct front *front = container_of(timer, struct front, watch);
    bool awaited = false, late = false;
    for (unsigned i = 0; i < front->registry->app_count; i++) {
        const struct inbox *inbox = &front->apps[i].app->inbox;
        late |= look_at_app(&front->apps[i]) || front->apps[i].dead_awaited;
        awaited |= inbox->takes < inbox->puts || front->apps[i].dead_awaited;
    }
    for (uint32_t i = 0; i < front->pool && late; i++) {
        struct client *c = &front->clients[i];
        if (c->used && !c->closing)
            look_at_client(front, c, now_ns);
    }
    if (awaited)
        timer_set(&front->loop->timers, &front->watch, now_ns + LOOK_NS);
}

void front_watch_init(struct front *front)
{
    timer_init(&front->watch, look);
}

void front_watch_begin(struct front *front)
{
    if (front->watch.place == 0)
        timer_set(&front->loop->timers, &front->watch, front->loop->now_ns + LOOK_NS);
}
