#include "host/front_line.h"

#include <limits.h>

#include "host/front_client.h"
#include "host/front_request.h"

#define VISITS \
    16 /* a round, of the line and of held each: with FRONT_VISIT requests each some 0.3 ms of work */

/* Looks at who has been held for long, and refuses so many at most: 3200 a second, of some 8 us each. */
#define LOOK_NS       (10 * NS_PER_MS)
#define LOOK_REFUSALS 32

static void join(struct client_line *line, struct client *client)
{
    assert(!client->line);
    client->line = line;
    client->line_next = NULL;
    client->line_last = line->last;
    *(line->last ? &line->last->line_next : &line->first) = client;
    line->last = client;
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
    join(&front->line, client);
    loop_want(front->loop, &front->task);
}

void front_line_hold(struct client *client, struct front_app *app, uint64_t bytes)
{
    struct front *front = client->front;
    uint64_t now_ns = front->loop->now_ns;
    join(&app->held, client);
    client->held_until_ns = now_ns + FRONT_HELD_NS;
    client->held_bytes = bytes;
    front->counters.held++;
    if (front->held_look.place == 0)
        timer_set(&front->loop->timers, &front->held_look, now_ns + LOOK_NS);
    front_line_reopen(app);
}

/* --- who admits --- */

static bool has_room(struct front_app *app, uint64_t bytes)
{
    struct front *front = app->front;
    return !front_request_refusal(front, app) && inbox_has_room(&app->app->inbox, bytes, front->loop->now_ns);
}

/* Those behind the first wait for its room, too: else a large request would find none for ever. */
static bool admits(struct front_app *app)
{
    return has_room(app, app->held.first ? app->held.first->held_bytes : 0);
}

bool front_line_crowded(struct front_app *app, uint64_t bytes)
{
    return app->held.first || !has_room(app, bytes);
}

bool front_line_passes(const struct client *client, struct front_app *app)
{
    return !app->held.first || client->turn_of == app || admits(app);
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
    if (app->open || !app->held.first || !admits(app))
        return;
    add_open(app->front, app);
    loop_want(app->front->loop, &app->front->task);
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
        struct client *client = app->held.first;
        if (!client || !admits(app))
            continue;
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

/* Returns how many of the app's have been held for long enough, `most` at most. */
static unsigned refuse_again(struct front_app *app, uint64_t now_ns, unsigned most)
{
    unsigned count = 0;
    for (; count < most && app->held.first && now_ns >= app->held.first->held_until_ns; count++) {
        struct client *client = app->held.first;
        leave(client);
        client_visit(client, 1, app);
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
        left -= refuse_again(app, now_ns, left);
        front_line_reopen(app);
        held |= app->held.first != NULL;
    }
    if (held)
        timer_set(&front->loop->timers, &front->held_look, now_ns + LOOK_NS);
}

void front_line_init(struct front *front)
{
    timer_init(&front->held_look, look);
}
