#include "host/front_request.h"

#include <sodium.h>

#include "host/front_body.h"
#include "host/front_dead.h"
#include "host/front_line.h"
#include "host/front_reply.h"
#include "host/front_routes.h"
#include "host/front_sealed.h"
#include "host/front_watch.h"

/* --- fields --- */

struct wanted_field {
    const char *name; /* lower case */
    size_t offset;    /* of its span in struct request_fields */
};

#define WANTED(name, member)                          \
    {                                                 \
        name, offsetof(struct request_fields, member) \
    }

static const struct wanted_field wanted_fields[] = {
    WANTED("authorization", authorization),
    WANTED("content-type", content_type),
    WANTED("content-encoding", content_encoding),
    WANTED("expect", expect),
    WANTED("idempotency-key", key),
    WANTED("pure-stream", stream),
    WANTED("pure-epoch", epoch),
    WANTED("pure-first", first),
    WANTED("pure-count", count),
    WANTED("pure-event", event),
    WANTED("pure-base", base),
    WANTED("pure-sent", sent),
    WANTED("pure-sealed", sealed),
};

/* Which of them can have a name of that first letter (bit set of indices): most fields need no comparison. */
static uint32_t wanted_by_letter(uint8_t letter)
{
    switch (letter | 0x20) {
    case 'a':
        return 0x001;
    case 'c':
        return 0x006;
    case 'e':
        return 0x008;
    case 'i':
        return 0x010;
    case 'p':
        return 0x1fe0;
    default:
        return 0;
    }
}

static void collect_connection(struct span rest, struct request_fields *fields)
{
    struct span element;
    while (http_list_next(&rest, &element)) {
        fields->close |= http_is(element, "close");
        fields->keep_alive |= http_is(element, "keep-alive");
    }
}

/* False: a field that may come only once came twice. */
static bool collect_wanted(const struct http_field *field, struct request_fields *fields)
{
    for (uint32_t set = wanted_by_letter(field->name.data[0]); set; set &= set - 1) {
        const struct wanted_field *wanted = &wanted_fields[__builtin_ctz(set)];
        if (!http_is(field->name, wanted->name))
            continue;
        struct span *span = (struct span *)((char *)fields + wanted->offset);
        if (span->data)
            return false;
        *span = field->value;
        return true;
    }
    return true;
}

static bool collect_fields(const struct http_head *head, struct request_fields *fields)
{
    *fields = (struct request_fields){0};
    for (unsigned i = 0; i < head->count; i++) {
        const struct http_field *field = &head->fields[i];
        if (field->name.size == 10 && http_is(field->name, "connection"))
            collect_connection(field->value, fields);
        else if (!collect_wanted(field, fields))
            return false;
    }
    return true;
}

/* A media type without its parameters (RFC 9110 section 8.3.1), compared without case. */
static bool type_is(struct span value, const char *type)
{
    if (!value.data)
        return false;
    size_t size = 0;
    while (size < value.size && value.data[size] != ';' && value.data[size] != ' ' &&
           value.data[size] != '\t')
        size++;
    return http_is(span_of(value.data, size), type);
}

/* --- who asks --- */

static const char scheme[] = "bearer ";

/* Whatever it is. */
static bool has_token(struct span value)
{
    return value.size >= sizeof scheme - 1 && http_is(span_of(value.data, sizeof scheme - 1), scheme);
}

static bool authorized(const char *token, struct span value)
{
    size_t skip = sizeof scheme - 1, size = strlen(token);
    if (value.size != skip + size || !has_token(value))
        return false;
    return sodium_memcmp(value.data + skip, token, size) == 0;
}

/* --- how --- */

enum method { METHOD_UNKNOWN, METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_OTHER };

static enum method method_of(struct span method)
{
    static const char *const others[] = {"PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"};
    if (span_is(method, "POST"))
        return METHOD_POST;
    if (span_is(method, "GET"))
        return METHOD_GET;
    if (span_is(method, "HEAD"))
        return METHOD_HEAD;
    for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
        if (span_is(method, others[i]))
            return METHOD_OTHER;
    }
    return METHOD_UNKNOWN;
}

/* --- bodies --- */

static size_t copy(char *to, struct span from)
{
    if (from.size > 0)
        memcpy(to, from.data, from.size);
    return from.size;
}

const char *front_request_refusal(const struct front *front, const struct front_app *app)
{
    const char *why = registry_app_suspended(app->app);
    return why ? why : front_watch_refusal(front, app);
}

static bool admit_early(struct client *c, struct front_app *app, enum body_sink sink, uint64_t size)
{
    const char *why = front_request_refusal(c->front, app);
    if (why) {
        client_decline_full(c, app, 0, why);
        return false;
    }
    if (size > c->front->config->max_body &&
        sink != SINK_RECORDS) { /* those are not kept: the inbox is their bound */
        client_decline(c, 413, "the body is larger than max_body");
        return false;
    }
    if (!front_line_passes(c, app)) {
        client_decline_full(c, app, 0, "the inbox is full");
        return false;
    }
    int error = inbox_announce(&app->app->inbox, front_body_cost(sink, size), c->front->loop->now_ns,
                               &c->body.reserved);
    if (error == PE_TOO_LARGE)
        client_decline(c, 413, "the body is larger than the app's inbox takes");
    else if (error < 0)
        client_decline_full(c, app, 0, "the inbox is full");
    return error == 0;
}

bool front_request_admit(struct client *c, struct front_app *app, enum body_sink sink, uint64_t size)
{
    if (!c->front->without.early && !admit_early(c, app, sink, size))
        return false;
    c->body.app = app;
    c->body.sink = sink;
    return true;
}

static bool admit(struct client *c, struct front_app *app, enum body_sink sink)
{
    const struct http_body *framing = &c->body.framing;
    return front_request_admit(c, app, sink, framing->framing == HTTP_SIZED ? framing->left : 0);
}

static void begin_events(struct client *c, const struct routed *to, const struct request_fields *fields)
{
    struct front_body *b = &c->body;
    bool lines = type_is(fields->content_type, "application/x-ndjson");
    client_last(c)->kind = EXCHANGE_EVENTS;
    if (fields->key.data && (fields->key.size == 0 || fields->key.size > IDEMPOTENCY_KEY_MAX)) {
        client_decline(c, 400, "an Idempotency-Key has 1 to 128 bytes");
        return;
    }
    if (!admit(c, to->app, lines ? SINK_LINES : SINK_EVENT))
        return;
    b->next = b->base = b->asks = b->fresh_ns = 0;
    b->identity_size = 0;
    b->event_size = (uint8_t)copy(b->event, to->event);
    b->source_size = (uint8_t)copy(b->source, span_text("http"));
    b->key_size = (uint8_t)copy(b->key, fields->key);
    memset(b->epoch, 0, EPOCH_BYTES);
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static bool parse_epoch(struct span text, uint8_t epoch[EPOCH_BYTES])
{
    if (text.size != 2 * EPOCH_BYTES)
        return false;
    for (size_t i = 0; i < EPOCH_BYTES; i++) {
        int high = hex_digit(text.data[2 * i]), low = hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        epoch[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* What is wrong with the head of a records request, or NULL; sets the body's numbers and epoch. */
static const char *parse_records(struct front_body *b, const struct request_fields *fields)
{
    if (!run_stream_name(fields->stream))
        return "Pure-Stream has to be HOST/APP/OUTPUT, without spaces";
    if (!parse_epoch(fields->epoch, b->epoch))
        return "Pure-Epoch has to be 32 hexadecimal digits";
    if (http_number(fields->first, VARINT_MAX, &b->next) < 0 || b->next == 0)
        return "Pure-First has to be the number of the first record";
    if (fields->base.size > 0 && http_number(fields->base, VARINT_MAX, &b->base) < 0)
        return "Pure-Base has to be a number";
    if (http_number(fields->count, b->framing.left, &b->left) < 0)
        return "Pure-Count has to be the number of records in the body";
    if (b->left == 0 && (b->framing.left > 0 || http_number(fields->sent, VARINT_MAX - 1, &b->asks) < 0))
        return "Pure-Count 0 comes with Pure-Sent and without a body";
    b->asks += b->left == 0;
    if (b->left > VARINT_MAX - b->next + 1)
        return "Pure-First and Pure-Count are more than numbers go";
    if (!run_event_name(fields->event))
        return "Pure-Event has to be the name of an event";
    return NULL;
}

static void begin_records(struct client *c, const struct routed *to, const struct request_fields *fields)
{
    struct front_body *b = &c->body;
    client_last(c)->kind = EXCHANGE_RECORDS;
    if (!type_is(fields->content_type, "application/vnd.pure.records")) {
        client_decline(c, 415, "records come as application/vnd.pure.records");
        return;
    }
    if (b->framing.framing != HTTP_SIZED) {
        client_decline(c, 411, "records come with a Content-Length");
        return;
    }
    b->base = b->asks = 0;
    const char *why = parse_records(b, fields);
    if (why) {
        client_decline(c, 400, why);
        return;
    }
    if (!admit(c, to->app, SINK_RECORDS))
        return;
    b->whole = 0;
    b->whole_records = 0;
    b->fresh_ns = 0;
    b->identity_size = 0;
    b->event_size = (uint8_t)copy(b->event, fields->event);
    b->source_size = (uint8_t)copy(b->source, fields->stream);
    b->key_size = 0;
}

/* --- texts --- */

static void begin_show(struct client *c, struct front_app *app)
{
    client_last(c)->kind = EXCHANGE_SHOW;
    struct run run = {.kind = RUN_SHOW, .time_ms = front_wall_ms(c->front)};
    const char *why = registry_app_suspended(app->app);
    if (why)
        client_decline_for(c, app, why);
    else if (waiters_prepare(&app->waiters) < 0 || inbox_put(&app->app->inbox, &run) < 0)
        client_decline_full(c, app, 0, "the inbox is full");
    else
        client_awaits(c, app);
}

static void begin_text(struct client *c, enum route route)
{
    struct exchange *x = client_last(c);
    x->kind = EXCHANGE_TEXT;
    x->route = route;
}

/* --- deaths --- */

static void begin_resume(struct client *c, struct front_app *app)
{
    const char *why;
    client_last(c)->kind = EXCHANGE_TEXT;
    int error = registry_resume(c->front->registry, app->app, c->front->log, &why);
    if (why)
        client_decline(c, 409, why);
    else if (error < 0)
        client_decline(c, 500, "the store does not take that its deaths are forgotten");
    else
        begin_text(c, ROUTE_RESUME);
}

/* --- all requests --- */

/* The framing and the fields that concern the connection. False: refused. */
static bool begin_connection(struct client *c, struct request_fields *fields)
{
    const struct http_head *head = &c->front->head;
    struct exchange *x = client_last(c);
    if (http_request_body(head, &c->body.framing) < 0) {
        const struct http_field *coding = http_field(head, "transfer-encoding");
        bool unknown = coding && head->minor > 0 && !http_field(head, "content-length") &&
                       http_field_has(head, "transfer-encoding", "chunked") &&
                       !http_is(coding->value, "chunked");
        client_refuse(c, unknown ? 501 : 400,
                      unknown ? "no transfer coding but chunked is known" : "the body's length is not clear");
        return false;
    }
    if (!collect_fields(head, fields)) {
        client_refuse(c, 400, "a field came twice that may come once");
        return false;
    }
    x->close = fields->close || c->surplus || (head->minor == 0 && !fields->keep_alive);
    x->says_keep = head->minor == 0 && !x->close;
    return true;
}

static bool begin_expectation(struct client *c, const struct request_fields *fields)
{
    const struct http_body *framing = &c->body.framing;
    bool empty = framing->framing == HTTP_NO_BODY || (framing->framing == HTTP_SIZED && framing->left == 0);
    if (!fields->expect.data || c->front->head.minor == 0)
        return true;
    if (!http_is(fields->expect, "100-continue")) {
        client_decline(c, 417, "the only expectation that is met is 100-continue");
        return false;
    }
    client_last(c)->expects = !empty;
    return true;
}

/* Whether the resource is there and takes the method. False: declined. */
static bool begin_route(struct client *c, const struct routed *to, enum method method)
{
    if (method == METHOD_UNKNOWN) {
        client_decline(c, 501, "the method is not known");
        return false;
    }
    if (to->route == ROUTE_NONE || to->route == ROUTE_NO_APP || to->route == ROUTE_NO_OUTPUT) {
        client_decline(c, 404,
                       to->route == ROUTE_NONE     ? "there is nothing here"
                       : to->route == ROUTE_NO_APP ? "there is no such app"
                                                   : "there is no such output");
        return false;
    }
    bool allowed =
        route_takes_posts(to->route) ? method == METHOD_POST : method == METHOD_GET || method == METHOD_HEAD;
    if (!allowed) {
        client_last(c)->allow = route_allows(to->route);
        client_decline(c, 405, "the method is not allowed here");
        return false;
    }
    return true;
}

static void begin_resource(struct client *c, const struct routed *to, const struct request_fields *fields)
{
    if (fields->content_encoding.size > 0 && !http_is(fields->content_encoding, "identity"))
        client_decline(c, 415, "no content coding is known");
    else if (to->route == ROUTE_EVENTS && to->event.size == 0)
        client_decline(c, 400, "an event's name has 1 to 64 letters, digits, and - . _ ~");
    else if (to->route == ROUTE_EVENTS)
        begin_events(c, to, fields);
    else if (to->route == ROUTE_RECORDS)
        begin_records(c, to, fields);
    else if (to->route == ROUTE_SEALED)
        front_sealed_begin(c, fields);
    else if (to->route == ROUTE_STATE)
        begin_show(c, to->app);
    else if (to->route == ROUTE_RESUME)
        begin_resume(c, to->app);
    else if (to->route == ROUTE_DEAD)
        front_dead_list(c, to);
    else if (to->route == ROUTE_DEAD_REPLAY || to->route == ROUTE_DEAD_DROP || to->route == ROUTE_ENABLE ||
             to->route == ROUTE_DISABLE)
        front_dead_change(c, to);
    else
        begin_text(c, to->route);
}

struct front_app *front_request_asks(const struct client *c)
{
    struct routed to = route_find(c->front, c->front->head.target);
    if (to.route == ROUTE_SEALED)
        return c->refused_by;
    return to.route == ROUTE_EVENTS || to.route == ROUTE_RECORDS || to.route == ROUTE_STATE ? to.app : NULL;
}

uint64_t front_request_bytes(const struct client *c, const struct front_app *app)
{
    const struct front *front = c->front;
    struct http_body framing;
    if (http_request_body(&front->head, &framing) < 0)
        return 0;
    if (framing.framing == HTTP_CHUNKED)
        return c->refused_bytes;
    if (framing.framing != HTTP_SIZED)
        return 0;
    bool events = route_find(front, front->head.target).route == ROUTE_EVENTS;
    if (events && framing.left > front->config->max_body)
        return 0;
    uint64_t bytes = front_body_cost(events ? SINK_LINES : SINK_RECORDS, framing.left);
    return bytes <= app->app->inbox.runs.capacity / 2 ? bytes : 0;
}

void front_request_begin(struct client *c)
{
    struct front *front = c->front;
    struct exchange *x = client_add_exchange(c);
    struct request_fields fields;
    front->counters.requests++;
    x->kind = EXCHANGE_EVENTS;
    if (!begin_connection(c, &fields))
        return;
    enum method method = method_of(front->head.method);
    struct routed to = route_find(front, front->head.target);
    x->head_only = method == METHOD_HEAD;
    if (c->surplus && !route_watches(to.route)) {
        client_refuse_surplus(c);
        return;
    }
    if (!begin_expectation(c, &fields))
        return;
    const char *token = front->config->token;
    bool open = to.route == ROUTE_HEALTH || to.route == ROUTE_SEALED; /* where the key says who it is */
    if (token && !open && !authorized(token, fields.authorization))
        client_decline(c, 401, has_token(fields.authorization) ? "the token is wrong" : "a token is needed");
    else if (begin_route(c, &to, method))
        begin_resource(c, &to, &fields);
}

/* Whether the first line ends with another major version (RFC 9110 section 15.6.6). */
static bool other_version(struct span bytes)
{
    const uint8_t *end = memchr(bytes.data, '\r', bytes.size);
    if (!end || end - bytes.data < 9)
        return false;
    const uint8_t *version = end - 8;
    return memcmp(version, "HTTP/", 5) == 0 && version[5] >= '0' && version[5] <= '9' && version[5] != '1' &&
           version[6] == '.' && version[7] >= '0' && version[7] <= '9';
}

_Static_assert(HTTP_FIELDS_MAX == 256 && HTTP_HEAD_MAX == 16384, "as the text of 431 says");

void front_request_malformed(struct client *c, struct span bytes, int error)
{
    client_add_exchange(c);
    c->front->counters.requests++;
    if (error == PE_MALFORMED && other_version(bytes))
        client_refuse(c, 505, "only HTTP/1 is spoken here");
    else if (error == PE_MALFORMED)
        client_refuse(c, 400, "the request's head is malformed");
    else if (!memchr(bytes.data, '\n', min_size(bytes.size, HTTP_HEAD_MAX)))
        client_refuse(c, 414, "the request line is too long");
    else
        client_refuse(c, 431, "the head is larger than 16 KiB or has more than 256 fields");
}
