/* The requests of a connection that are not answered yet. */
#include "host/front_client.h"

#include "host/front_body.h"
#include "host/front_line.h"
#include "host/front_reply.h"
#include "host/front_watch.h"

struct exchange *client_add_exchange(struct client *c)
{
    assert(client_unanswered(c) < FRONT_PIPELINE);
    struct exchange *x = client_exchange(c, c->end++);
    *x = (struct exchange){.receiving = true};
    c->reading = READING_BODY;
    c->body.framing = (struct http_body){.framing = HTTP_NO_BODY};
    c->body.sink = SINK_DISCARD;
    c->body.received = 0;
    return x;
}

void client_awaits(struct client *c, struct front_app *app)
{
    struct exchange *x = client_last(c);
    x->runs++;
    x->app = app;
    waiters_add(&app->waiters, (struct waiter){c->index, c->generation, c->end - 1});
    front_touch(c->front, app);
    front_watch_begin(c->front);
}

void client_awaits_dead(struct client *c, struct front_app *app)
{
    struct exchange *x = client_last(c);
    x->runs++;
    x->app = app;
    app->dead_waiter = (struct waiter){c->index, c->generation, c->end - 1};
    app->dead_awaited = true;
    front_watch_begin(c->front);
}

static void answer(struct client *c, uint16_t status, const char *text)
{
    struct exchange *x = client_open_exchange(c);
    if (!x || !x->receiving)
        return; /* answered before */
    x->status = status;
    x->refused = text;
    client_body_is_in(c, x);
    x->expects = false;
    client_want(c);
}

void client_finish(struct client *c)
{
    struct exchange *x = client_open_exchange(c);
    if (x) {
        client_body_is_in(c, x);
        x->expects = false;
        x->close = true;
    }
    c->reading = READING_NOTHING;
    c->request_ns = NEVER;
    c->lingers = true;
    front_body_release(c);
    client_want(c);
}

void client_refuse(struct client *c, uint16_t status, const char *text)
{
    answer(c, status, text);
    client_finish(c);
}

void client_refuse_surplus(struct client *c)
{
    c->front->counters.refused++;
    client_refuse(c, 503, "too many connections");
}

void client_decline(struct client *c, uint16_t status, const char *text)
{
    const struct http_body *framing = &c->body.framing;
    bool unsure = client_last(c)->expects;
    bool too_much = framing->framing == HTTP_SIZED && framing->left > FRONT_DISCARD_BYTES;
    if (unsure || too_much) {
        client_refuse(c, status, text);
        return;
    }
    answer(c, status, text);
    front_body_release(c);
    c->body.sink = SINK_DISCARD;
    c->body.received = 0;
}

void client_decline_for(struct client *c, struct front_app *app, const char *text)
{
    struct exchange *x = client_open_exchange(c);
    if (x)
        x->app = app;
    client_decline(c, 503, text);
}

void client_decline_full(struct client *c, struct front_app *app, uint64_t bytes, const char *text)
{
    front_line_refused(c, app, bytes);
    client_decline_for(c, app, text);
}

static void show(struct client *c, struct exchange *x, struct span text)
{
    x->error = front_keep(c->front, &x->text, &x->text_room, text.size + 1);
    if (x->error < 0)
        return;
    if (text.size > 0)
        memcpy(x->text, text.data, text.size);
    x->text_size = (uint32_t)text.size;
    bool json = text.size > 0 && (text.data[0] == '{' || text.data[0] == '[');
    x->type = json ? "application/json" : "text/plain; charset=utf-8";
}

/* Whether nobody waits for a result of the exchange any more. */
static bool given_up(struct client *c, uint32_t exchange)
{
    return exchange - c->first >= client_unanswered(c) || client_exchange(c, exchange)->runs == 0;
}

void client_result(struct client *c, uint32_t exchange, const struct run_result *result)
{
    struct exchange *x = client_exchange(c, exchange);
    if (given_up(c, exchange))
        return;
    x->runs--;
    if (result->error < 0 && x->error == 0)
        x->error = result->error;
    if ((x->kind == EXCHANGE_SHOW || x->kind == EXCHANGE_DEAD) && result->error == 0)
        show(c, x, result->text);
    x->stored = result->stored;
    x->stored_known = true;
    if (exchange_ready(x) && exchange == c->first)
        client_want(c);
}

void client_dead_result(struct client *c, uint32_t exchange, const struct run_result *result, const char *why)
{
    if (!given_up(c, exchange))
        client_exchange(c, exchange)->refused = why;
    client_result(c, exchange, result);
}

void client_give_up(struct client *c, struct exchange *x)
{
    static const char *const texts[] = {
        [EXCHANGE_EVENTS] = "the app has not answered in time: the event is not stored yet, but may still be",
        [EXCHANGE_RECORDS] = "the app has not answered in time: more may be stored still",
        [EXCHANGE_SHOW] = "the app has not shown its state in time",
        [EXCHANGE_DEAD] = "the app has not answered in time: what was asked for may still be done",
    };
    x->runs = 0;
    if (x->status == 0 && x->error == 0) {
        x->status = x->kind == EXCHANGE_EVENTS || x->kind == EXCHANGE_DEAD ? 504 : 503;
        x->refused = texts[x->kind];
    }
    client_want(c);
}
