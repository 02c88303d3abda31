#include "host/front_line.h"

#include <limits.h>

#include "host/front_client.h"
#include "host/front_request.h"

/* A round's, of the line and of those held each: with FRONT_VISIT requests each some 0.3 ms of work. */
#define VISITS 16

/* Looks at who has been held for long, and refuses so many at most: 3200 a second, of some 8 us each. */
#define LOOK_NS       (10 * NS_PER_MS)
#define LOOK_REFUSALS 32

/* Behind those that have waited for as long. */
static void join(struct client_line *line, struct client *client, uint64_t since_ns)
{
    struct client *before = line->last;
    assert(!client->line);
    client->line = line;
    client->since_ns = since_ns;
    while (before && before->since_ns > since_ns)
        before = before->line_last;
    client->line_last = before;
    client->line_next = before ? before->line_next : line->first;
    *(before ? &before->line_next : &line->first) = client;
    *(client->line_next ? &client->line_next->line_last : &line->last) = client;
}

static void leave(struct client *client)
{
    struct client_line *line = client->line;
    client->line = NULL;
    *(client->line_last ? &client->line_last->line_next : &line->first) = client->line_next;
    *(client->line_next ? &client->line_next->line_last : &line->last) = client->line_last;
}

void front_line_leave(struct client *client)
{
    if (client->line)
        leave(client);
}

void front_line_wait(struct client *client)
{
    struct front *front = client->front;
    join(&front->line, client, front->loop->now_ns);
    loop_want(front->loop, &front->task);
}

/* --- who admits --- */

static bool is_held(const struct front_app *app)
{
    return app->held[HELD_AGAIN].first || app->held[HELD_NEW].first;
}

/* Whose turn is next: who has waited longest; but where that is one who asks again, each second time one who
 * does not. */
static struct client *next_held(const struct front_app *app)
{
    struct client *again = app->held[HELD_AGAIN].first, *new = app->held[HELD_NEW].first;
    if (!again || !new)
        return again ? again : new;
    return new->since_ns <= again->since_ns || app->next_held == HELD_NEW ? new : again;
}

static bool has_room(const struct front_app *app, uint64_t bytes)
{
    return inbox_has_room(&app->app->inbox, bytes, app->front->loop->now_ns);
}

/* Those behind the next one wait for its room, too: else a large request would find none for ever. */
static bool admits(const struct front_app *app)
{
    const struct client *next = next_held(app);
    return !front_request_refusal(app->front, app) && has_room(app, next ? next->held_bytes : 0);
}

bool front_line_passes(const struct client *client, const struct front_app *app)
{
    return !is_held(app) || client->turn_of == app || admits(app);
}

static void add_open(struct front *front, struct front_app *app)
{
    app->open_next = NULL;
    *(front->open_last ? &front->open_last->open_next : &front->open_first) = app;
    front->open_last = app;
    app->open = true;
}

static struct front_app *take_open(struct front *front)
{
    struct front_app *app = front->open_first;
    front->open_first = app->open_next;
    if (!front->open_first)
        front->open_last = NULL;
    app->open = false;
    return app;
}

void front_line_reopen(struct front_app *app)
{
    if (app->open || !is_held(app) || !admits(app))
        return;
    add_open(app->front, app);
    loop_want(app->front->loop, &app->front->task);
}

/* --- who waits --- */

static void hold(struct client *client, struct front_app *app, enum held_line line, uint64_t bytes)
{
    struct front *front = app->front;
    uint64_t now_ns = front->loop->now_ns;
    bool placed = line == HELD_AGAIN && client->refused_since_ns > 0;
    client->held_until_ns = now_ns + FRONT_HELD_NS;
    client->held_bytes = bytes;
    join(&app->held[line], client, placed ? client->refused_since_ns : now_ns);
    front->counters.held++;
    if (front->held_look.place == 0)
        timer_set(&front->loop->timers, &front->held_look, now_ns + LOOK_NS);
    front_line_reopen(app);
}

/* Who is new is held for room that may come, not for an app that is suspended, say. */
bool front_line_hold(struct client *client, struct front_app *app, uint64_t bytes)
{
    bool again = client->refused_by == app && app->front->loop->now_ns - client->refused_ns < FRONT_HELD_NS;
    bool refusal = front_request_refusal(app->front, app) != NULL;
    if (client->turn_of == app)
        return false;
    if (again && (is_held(app) || refusal || !has_room(app, bytes)))
        hold(client, app, HELD_AGAIN, bytes);
    else if (!again && is_held(app) && !refusal && !admits(app))
        hold(client, app, HELD_NEW, bytes);
    else
        client->refused_by = NULL;
    return client->line;
}

static void answered(struct client *client, struct front_app *app, uint64_t since_ns)
{
    client->refused_by = app;
    client->refused_ns = app->front->loop->now_ns;
    client->refused_since_ns = since_ns;
}

void front_line_served(struct client *client, struct front_app *app)
{
    answered(client, app, 0);
}

void front_line_refused(struct client *client, struct front_app *app, uint64_t bytes)
{
    if (bytes > 0 || client->refused_by != app)
        client->refused_bytes = bytes;
    bool placed = client->refused_by == app && client->refused_since_ns > 0;
    client->turn_of = NULL;
    if (!app->front->without.quotas)
        answered(client, app, placed ? client->refused_since_ns : app->front->loop->now_ns);
}

/* --- visits --- */

/* Those that join meanwhile come behind `last`, and have had their visit. */
static void visit_line(struct front *front, unsigned left)
{
    const struct client *last = front->line.last;
    for (bool more = last != NULL; more && left > 0; left--) {
        struct client *client = front->line.first;
        more = client != last;
        leave(client);
        client_visit(client, FRONT_VISIT, NULL);
    }
}

static void visit_held(struct front *front, unsigned left)
{
    for (; front->open_first && left > 0; left--) {
        struct front_app *app = take_open(front);
        struct client *client = next_held(app);
        if (!client || !admits(app))
            continue;
        app->next_held = client->line == &app->held[HELD_AGAIN] ? HELD_NEW : HELD_AGAIN;
        leave(client);
        client_visit(client, FRONT_VISIT, app);
        front_line_reopen(app);
    }
}

bool front_line_visit(struct front *front)
{
    visit_line(front, front->without.quotas ? UINT_MAX : VISITS);
    visit_held(front, VISITS);
    return front->line.first || front->open_first;
}

/* Returns how many of these have been held for long enough, `most` at most. */
static unsigned refuse(struct front_app *app, struct client_line *line, uint64_t now_ns, unsigned most)
{
    unsigned count = 0;
    for (struct client *client = line->first, *next; client && count < most; client = next) {
        next = client->line_next;
        if (now_ns < client->held_until_ns)
            continue;
        leave(client);
        client_visit(client, 1, app);
        count++;
    }
    return count;
}

/* Each time another app has the first of them. */
static void look(struct timer *timer, uint64_t now_ns)
{
    struct front *front = container_of(timer, struct front, held_look);
    unsigned apps = front->registry->app_count, left = LOOK_REFUSALS;
    bool held = false;
    front->held_at++;
    for (unsigned i = 0; i < apps; i++) {
        struct front_app *app = &front->apps[(front->held_at + i) % apps];
        left -= refuse(app, &app->held[HELD_NEW], now_ns, left);
        left -= refuse(app, &app->held[HELD_AGAIN], now_ns, left);
        front_line_reopen(app);
        held |= is_held(app);
    }
    if (held)
        timer_set(&front->loop->timers, &front->held_look, now_ns + LOOK_NS);
}

void front_line_init(struct front *front)
{
    timer_init(&front->held_look, look);
}
