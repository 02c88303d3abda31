#include "host/front_dead.h"

#include "host/front_watch.h"

/* Of a body: two numbers of 20 digits, a dash, and white space around them. */
#define RANGE_BYTES 64

_Static_assert(RANGE_BYTES <= IDEMPOTENCY_KEY_MAX, "it is kept where a key would be");
_Static_assert(OUTLET_NAME_MAX <= SOURCE_NAME_MAX, "and its output where a source would be");

/* --- asking --- */

static void ask(struct client *c, struct front_app *app, enum dead_action action, struct span output,
                uint64_t first, uint64_t last)
{
    struct dead_request *r = &app->app->dead;
    if (dead_request_state(r) != DEAD_REQUEST_FREE) {
        client_decline(c, 503, "another request for an output of this app is under way");
        return;
    }
    r->action = action;
    memcpy(r->output, output.data, output.size);
    r->output[output.size] = '\0';
    r->first = first;
    r->last = last;
    dead_request_pass(r, DEAD_REQUEST_ASKED);
    board_post(app->app->inbox.owner, app->app->inbox.owner_slot);
    client_awaits_dead(c, app);
}

/* Whether the app has what is asked for. False: declined. */
static bool begin(struct client *c, const struct routed *to)
{
    client_last(c)->kind = EXCHANGE_DEAD;
    if (to->output.size >= OUTLET_NAME_MAX)
        client_decline(c, 404, "there is no such output");
    else if (to->route == ROUTE_ENABLE || to->route == ROUTE_DISABLE)
        return true;
    else if (to->app->app->durability == DURABILITY_MEMORY)
        client_decline(c, 409, "the app keeps nothing on disk, so its outputs have no dead letters");
    else
        return true;
    return false;
}

/* --- list --- */

/* "from=N" among the query's parameters; without it, 0. */
static int parse_query(struct span query, uint64_t *from)
{
    static const char name[] = "from=";
    const size_t skip = sizeof name - 1;
    *from = 0;
    while (query.size > 0) {
        const uint8_t *and = memchr(query.data, '&', query.size);
        size_t size = and? (size_t)(and-query.data) : query.size;
        if (size >= skip && memcmp(query.data, name, skip) == 0)
            return http_number(span_of(query.data + skip, size - skip), UINT64_MAX, from);
        size += and != NULL;
        query = span_of(query.data + size, query.size - size);
    }
    return 0;
}

void front_dead_list(struct client *c, const struct routed *to)
{
    uint64_t from;
    if (!begin(c, to))
        return;
    if (parse_query(to->query, &from) < 0)
        client_decline(c, 400, "from has to be a number");
    else
        ask(c, to->app, DEAD_TO_LIST, to->output, from, UINT64_MAX);
}

/* --- replay, drop, enable, disable --- */

static enum dead_action action_of(enum route route)
{
    switch (route) {
    case ROUTE_DEAD_DROP:
        return DEAD_TO_DROP;
    case ROUTE_ENABLE:
        return OUTPUT_TO_ENABLE;
    case ROUTE_DISABLE:
        return OUTPUT_TO_DISABLE;
    default:
        return DEAD_TO_REPLAY;
    }
}

void front_dead_change(struct client *c, const struct routed *to)
{
    struct front_body *b = &c->body;
    if (!begin(c, to))
        return;
    b->app = to->app;
    b->sink = SINK_RANGE;
    b->action = action_of(to->route);
    memcpy(b->source, to->output.data, to->output.size);
    b->source_size = (uint8_t)to->output.size;
    b->key_size = 0;
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static struct span trim(struct span text)
{
    while (text.size > 0 && is_space(text.data[0]))
        text = span_of(text.data + 1, text.size - 1);
    while (text.size > 0 && is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* "N", "N-M" or "all". 0 or a negative error. */
static int parse_range(struct span text, uint64_t *first, uint64_t *last)
{
    *first = 1;
    *last = UINT64_MAX;
    if (span_is(text, "all"))
        return 0;
    const uint8_t *dash = text.size > 0 ? memchr(text.data, '-', text.size) : NULL;
    size_t size = dash ? (size_t)(dash - text.data) : text.size;
    size_t behind = dash ? size + 1 : 0;
    int error = http_number(span_of(text.data, size), UINT64_MAX, first);
    if (error == 0)
        error = http_number(span_of(text.data + behind, text.size - behind), UINT64_MAX, last);
    return error < 0 ? error : *first == 0 || *first > *last ? PE_MALFORMED : 0;
}

void front_dead_take(struct client *c, struct span content, bool complete)
{
    static const char wrong[] = "the body has to be a number, two as in 5-9, or all";
    struct front_body *b = &c->body;
    bool ranged = !dead_action_of_output(b->action);
    uint64_t first = 0, last = 0;
    if (b->key_size + content.size > RANGE_BYTES) {
        client_decline(c, 400, wrong);
        return;
    }
    if (content.size > 0)
        memcpy(b->key + b->key_size, content.data, content.size);
    b->key_size += (uint8_t)content.size;
    if (!complete)
        return;
    if (ranged && parse_range(trim(span_of(b->key, b->key_size)), &first, &last) < 0)
        client_decline(c, 400, wrong);
    else
        ask(c, b->app, b->action, span_of(b->source, b->source_size), first, last);
}

/* --- the answer --- */

void front_dead_answered(struct front *front, struct front_app *app)
{
    struct dead_request *r = &app->app->dead;
    if (dead_request_state(r) != DEAD_REQUEST_ANSWERED)
        return;
    struct client *c = &front->clients[app->dead_waiter.client];
    struct run_result result = {.error = r->error, .text = span_of(r->text.data, r->text.size)};
    app->dead_awaited = false;
    if (c->generation == app->dead_waiter.generation)
        client_dead_result(c, app->dead_waiter.exchange, &result, r->why);
    text_dispose(&r->text);
    dead_request_pass(r, DEAD_REQUEST_FREE);
}
