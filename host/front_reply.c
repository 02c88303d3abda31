#include "host/front_reply.h"

#include <time.h>

#include "host/front_body.h"
#include "host/front_sealed.h"

struct status_line {
    uint16_t status;
    uint8_t size;
    const char *text;
};

#define LINE(status, reason)                                             \
    {                                                                    \
        status, sizeof("HTTP/1.1 " #status " " reason "\r\nDate: ") - 1, \
            "HTTP/1.1 " #status " " reason "\r\nDate: "                  \
    }

/* The most frequent first. */
static const struct status_line status_lines[] = {
    LINE(200, "OK"),
    LINE(503, "Service Unavailable"),
    LINE(404, "Not Found"),
    LINE(409, "Conflict"),
    LINE(400, "Bad Request"),
    LINE(401, "Unauthorized"),
    LINE(403, "Forbidden"),
    LINE(405, "Method Not Allowed"),
    LINE(408, "Request Timeout"),
    LINE(411, "Length Required"),
    LINE(413, "Content Too Large"),
    LINE(414, "URI Too Long"),
    LINE(415, "Unsupported Media Type"),
    LINE(417, "Expectation Failed"),
    LINE(431, "Request Header Fields Too Large"),
    LINE(501, "Not Implemented"),
    LINE(504, "Gateway Timeout"),
    LINE(505, "HTTP Version Not Supported"),
    LINE(500, "Internal Server Error"),
};

static const struct status_line *status_line(uint16_t status)
{
    unsigned i = 0;
    while (i < ARRAY_SIZE(status_lines) - 1 && status_lines[i].status != status)
        i++;
    return &status_lines[i];
}

uint64_t front_wall_ms(struct front *front)
{
    if (front->wall_at_ns != front->loop->now_ns || front->wall_ms == 0) {
        front->wall_ms = io_wall_ms(front->loop->io);
        front->wall_at_ns = front->loop->now_ns;
    }
    return front->wall_ms;
}

/* --- writing --- */

static char *put(char *at, const void *data, size_t size)
{
    memcpy(at, data, size);
    return at + size;
}

#define PUT(at, literal) put(at, literal, sizeof(literal) - 1)

static char *put_text(char *at, const char *text)
{
    return put(at, text, strlen(text));
}

static char *put_number(char *at, uint64_t number)
{
    char digits[20];
    unsigned first = sizeof digits;
    do
        digits[--first] = (char)('0' + number % 10);
    while (number /= 10);
    return put(at, digits + first, sizeof digits - first);
}

/* At most `most` bytes of `text`, as the inside of a JSON string; what would need more than a backslash is
 * left out. */
static char *put_escaped(char *at, const char *text, size_t most)
{
    char *end = at + most;
    for (; *text && at + 2 <= end; text++) {
        if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
            continue;
        if (*text == '"' || *text == '\\')
            *at++ = '\\';
        *at++ = *text;
    }
    return at;
}

#define DATE_SIZE (sizeof "Sun, 06 Nov 1994 08:49:37 GMT" - 1)

static char *put_date(struct front *front, char *at)
{
    uint64_t second = front_wall_ms(front) / 1000;
    if (second != front->date_s || front->date[0] == '\0') {
        time_t time = (time_t)second;
        struct tm tm;
        gmtime_r(&time, &tm);
        strftime(front->date, sizeof front->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        front->date_s = second;
    }
    return put(at, front->date, DATE_SIZE);
}

/* --- what an exchange answers --- */

static uint16_t status_of_error(int error)
{
    switch (error) {
    case 0:
        return 200;
    case PE_NO_OUTPUT:
        return 404;
    case PE_STREAM_GAP:
    case PE_STREAM_RETIRED:
    case PE_STREAM_ROLLED_BACK:
    case PE_STREAM_STALE:
        return 409;
    case PE_TOO_LARGE:
        return 413;
    case PE_MALFORMED:
        return 400;
    case PE_FULL:
    case PE_APP_SUSPENDED:
    case PE_STOPPING:
        return 503;
    default:
        return 500;
    }
}

#define BODY_MAX 360

/* What a run says of an app that is suspended is short; the app has more. */
static const char *error_text(const struct exchange *x)
{
    const char *suspended =
        x->error == PE_APP_SUSPENDED && x->app ? registry_app_suspended(x->app->app) : NULL;
    return x->refused ? x->refused : suspended ? suspended : pure_error_text(x->error);
}

/* {"stored":N} or {"error":"why"}; returns its size. */
static size_t short_body(char *body, const struct exchange *x, uint16_t status)
{
    char *at = body;
    if (status == 200) {
        at = PUT(at, "{\"stored\":");
        at = put_number(at, x->stored);
        at = PUT(at, "}");
    } else {
        at = PUT(at, "{\"error\":\"");
        at = put_escaped(at, error_text(x), BODY_MAX - 16);
        at = PUT(at, "\"}\n");
    }
    return (size_t)(at - body);
}

/* What the way may see, which is nothing, and the proof for who has asked. */
static char *put_sealed_fields(char *at, struct client *c, const struct exchange *x, uint16_t status)
{
    if (!x->proven)
        return at;
    at = PUT(at, "Pure-Sealed: ");
    front_sealed_prove(c, x, status, at);
    at += SEALED_REPLY_TEXT_BYTES;
    return PUT(at, "\r\n");
}

static char *put_rare_fields(char *at, const struct exchange *x, uint16_t status)
{
    if (x->kind == EXCHANGE_RECORDS && x->stored_known) {
        at = PUT(at, "Pure-Stored: ");
        at = put_number(at, x->stored);
        at = PUT(at, "\r\n");
    }
    if (x->error == PE_STREAM_RETIRED)
        at = PUT(at, "Pure-Error: epoch-retired\r\n");
    if (x->error == PE_STREAM_ROLLED_BACK)
        at = PUT(at, "Pure-Error: rolled-back\r\n");
    if (x->error == PE_STREAM_GAP)
        at = PUT(at, "Pure-Error: gap\r\n");
    if (status == 503 && !x->text) /* but not with /health, which says what is wrong */
        at = PUT(at, "Retry-After: 1\r\n");
    if (status == 401)
        at = PUT(at, "WWW-Authenticate: Bearer\r\n");
    if (x->allow) {
        at = PUT(at, "Allow: ");
        at = put_text(at, x->allow);
        at = PUT(at, "\r\n");
    }
    return at;
}

bool front_reply_text(struct front *front, struct exchange *x)
{
    struct text text = {0};
    bool counts = x->route != ROUTE_HEALTH; /* short; and who asks may restart a host that does not answer */
    if (counts && front->texts_left == 0)
        return false;
    front->texts_left -= counts;
    route_text(front, x->route, &x->status, &x->type, &text);
    x->route = ROUTE_NONE;
    if (text.failed || front->kept_bytes + text.room > front->config->body_memory) {
        text_dispose(&text);
        x->status = 503;
        x->refused = "there is no memory for the reply";
        return true;
    }
    front->kept_bytes += text.room;
    x->text = (uint8_t *)text.data;
    x->text_size = (uint32_t)text.size;
    x->text_room = (uint32_t)text.room;
    return true;
}

uint16_t front_reply_put(struct client *c, struct exchange *x)
{
    uint16_t status = x->status ? x->status : status_of_error(x->error);
    const struct status_line *line = status_line(status);
    if (status == 503 && x->app)
        counter_add(&x->app->app->report.turned_away, 1);
    char body[BODY_MAX], *at = c->output + c->output_size;
    size_t body_size = x->text ? x->text_size : x->sealed ? 0 : short_body(body, x, status);
    at = put(at, line->text, line->size);
    at = put_date(c->front, at);
    at = PUT(at, "\r\nContent-Type: ");
    at = x->text ? put_text(at, x->type) : PUT(at, "application/json");
    at = PUT(at, "\r\nContent-Length: ");
    at = put_number(at, body_size);
    at = PUT(at, "\r\n");
    if (x->sealed)
        at = put_sealed_fields(at, c, x, status);
    else if (x->kind != EXCHANGE_EVENTS || status != 200)
        at = put_rare_fields(at, x, status);
    if (x->close)
        at = PUT(at, "Connection: close\r\n");
    else if (x->says_keep)
        at = PUT(at, "Connection: keep-alive\r\n");
    at = PUT(at, "\r\n");
    if (!x->text && !x->head_only)
        at = put(at, body, body_size);
    if (x->text && !x->head_only && x->text_size > 0) {
        c->text = x->text;
        c->text_size = x->text_size;
        c->text_room = x->text_room;
        x->text = NULL;
        x->text_room = 0;
    } else {
        front_forget(c->front, &x->text, &x->text_room);
    }
    c->output_size = (uint32_t)(at - c->output);
    assert(c->output_size <= FRONT_OUTPUT_BYTES);
    return status;
}

void front_reply_continue(struct client *c)
{
    char *at = PUT(c->output + c->output_size, "HTTP/1.1 100 Continue\r\n\r\n");
    c->output_size = (uint32_t)(at - c->output);
}
