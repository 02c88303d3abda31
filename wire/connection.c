#include "wire/connection.h"

static struct connection_exchange *exchange(struct connection *c, uint64_t number)
{
    return &c->exchanges[number % CONNECTION_PIPELINE_MAX];
}

void connection_init(struct connection *c, const struct connection_limits *limits)
{
    assert(limits->pipeline >= 1 && limits->pipeline <= CONNECTION_PIPELINE_MAX);
    c->limits = *limits;
    connection_clear(c);
}

static void expect_reply(struct connection *c)
{
    http_reply_dispose(&c->reply);
    inflater_end(&c->inflater);
    http_reply_init(&c->reply, false);
    c->reply_bytes = c->reply_body_bytes = c->reply_content_bytes = 0;
}

void connection_connect(struct connection *c, uint64_t now_ns)
{
    assert(c->phase == CONNECTION_NONE);
    c->phase = CONNECTION_CONNECTING;
    c->progress_ns = now_ns;
    expect_reply(c);
}

void connection_connected(struct connection *c, uint64_t now_ns)
{
    assert(c->phase == CONNECTION_CONNECTING);
    c->phase = CONNECTION_OPEN;
    c->progress_ns = now_ns;
}

uint64_t connection_begin(struct connection *c, uint64_t now_ns, uint64_t bytes)
{
    assert(connection_ready(c) && bytes > 0);
    exchange(c, c->begun)->begun_ns = now_ns;
    c->unsent_bytes = bytes;
    c->part_bytes = 0;
    c->progress_ns = now_ns;
    return c->begun++;
}

void connection_sent(struct connection *c, uint64_t now_ns, uint64_t bytes)
{
    assert(bytes <= c->unsent_bytes);
    c->unsent_bytes -= bytes;
    c->part_bytes += bytes;
    c->progress_ns = now_ns;
    if (c->unsent_bytes > 0)
        return;
    if (c->whole == c->done)
        c->reply_since_ns = now_ns;
    c->whole++;
}

static void end(struct connection *c, int error)
{
    if (c->ending)
        return;
    c->ending = true;
    c->error = error;
}

static void end_deaf(struct connection *c, int error)
{
    end(c, error);
    c->deaf = true;
}

/* All of a reply has come. Returns PE_HTTP_REPLY if its content is not whole. */
static int reply_done(struct connection *c)
{
    if (!inflater_end(&c->inflater))
        return PE_HTTP_REPLY;
    c->done++;
    if (c->reader)
        c->reader->done(c->reader, c->reply.status);
    return 0;
}

static int see_content(struct connection *c, struct span content)
{
    c->reply_content_bytes += (uint32_t)min_size(content.size, CONNECTION_BODY_MAX + 1);
    if (c->reader && content.size > 0)
        c->reader->content(c->reader, content);
    return c->reply_content_bytes > CONNECTION_BODY_MAX ? PE_TOO_LARGE : 0;
}

static int inflate_content(struct connection *c, struct span coded)
{
    uint8_t made[4096];
    size_t size = sizeof made;
    int error = 0;
    while (error == 0 && (coded.size > 0 || size == sizeof made)) {
        error = inflater_take(&c->inflater, c->reply.body.coding, &coded, made, sizeof made, &size);
        if (error == 0)
            error = see_content(c, span_of(made, size));
    }
    return error;
}

static int take_content(struct connection *c, struct span content)
{
    if (content.size == 0)
        return 0;
    return c->reply.body.coding == HTTP_PLAIN ? see_content(c, content) : inflate_content(c, content);
}

static void next_reply(struct connection *c, uint64_t now_ns)
{
    int error = reply_done(c);
    if (error < 0 || !c->reply.reusable)
        end_deaf(c, error < 0 ? error : PE_CLOSED);
    if (error < 0)
        return;
    c->reply_since_ns = now_ns;
    expect_reply(c);
}

/* Takes what belongs to the reply of exchange `done`; returns how many bytes that was. */
static size_t take_reply(struct connection *c, uint64_t now_ns, struct span bytes)
{
    bool in_body = c->reply.state == HTTP_REPLY_BODY;
    size_t used;
    struct span content;
    int error = http_reply_take(&c->reply, bytes, &used, &content);
    if (c->answered == c->done && c->reply.state != HTTP_REPLY_HEAD)
        answer_read(&exchange(c, c->answered++)->answer, &c->reply.head);
    if (error == 0)
        error = take_content(c, content);
    if (error < 0) {
        end_deaf(c, error == PE_MALFORMED ? PE_HTTP_REPLY : error);
        return bytes.size;
    }
    c->reply_bytes = (uint32_t)min_u64((uint64_t)c->reply_bytes + used, UINT32_MAX);
    if (in_body)
        c->reply_body_bytes += (uint32_t)min_size(used, CONNECTION_BODY_MAX + 1);
    if (c->reply.state == HTTP_REPLY_DONE)
        next_reply(c, now_ns);
    else if (c->reply_body_bytes > CONNECTION_BODY_MAX)
        end_deaf(c, PE_TOO_LARGE);
    return used;
}

void connection_received(struct connection *c, uint64_t now_ns, struct span bytes)
{
    while (bytes.size > 0 && !c->deaf) {
        if (c->done == c->begun) {
            end_deaf(c, PE_HTTP_REPLY);
            return;
        }
        uint64_t done = c->done;
        size_t used = take_reply(c, now_ns, bytes);
        assert(used > 0 || c->done > done);
        bytes = span_of(bytes.data + used, bytes.size - used);
    }
}

void connection_ended(struct connection *c)
{
    int error = 0;
    if (c->done < c->begun && !c->deaf) {
        error = http_reply_end(&c->reply);
        if (error == 0 && c->answered == c->done) /* an HTTP/1.0 head that ends with the stream */
            answer_read(&exchange(c, c->answered++)->answer, &c->reply.head);
        if (error == 0)
            error = reply_done(c);
        if (error == 0)
            expect_reply(c);
    }
    end_deaf(c, error < 0 ? error : PE_CLOSED);
}

void connection_cut(struct connection *c)
{
    if (c->done < c->begun)
        end_deaf(c, PE_TLS_CUT);
    else
        connection_ended(c);
}

void connection_failed(struct connection *c, int error)
{
    end(c, error);
}

/* Ends it if `since + limit` has passed. */
static void check(struct connection *c, uint64_t now_ns, uint64_t since_ns, uint64_t limit_ns, int error)
{
    if (c->ending || now_ns < since_ns + limit_ns)
        return;
    end(c, error);
    c->late = true;
}

void connection_tick(struct connection *c, uint64_t now_ns)
{
    const struct connection_limits *limits = &c->limits;
    if (c->phase == CONNECTION_CONNECTING)
        check(c, now_ns, c->progress_ns, limits->progress_ns, PE_CONNECT_TIMEOUT);
    if (c->phase != CONNECTION_OPEN)
        return;
    if (c->answered > c->whole)
        end_deaf(c, PE_HTTP_REPLY); /* early: the rest of the request is not sent */
    if (c->whole < c->begun)
        check(c, now_ns, c->progress_ns, limits->progress_ns, PE_SEND_TIMEOUT);
    if (c->answered < c->whole)
        check(c, now_ns, c->reply_since_ns, limits->reply_ns, PE_REPLY_TIMEOUT);
    if (c->done < c->begun)
        check(c, now_ns, exchange(c, c->done)->begun_ns, limits->total_ns, PE_TOTAL_TIMEOUT);
}

uint64_t connection_deadline_ns(const struct connection *c)
{
    const struct connection_limits *limits = &c->limits;
    if (c->ending)
        return NEVER;
    if (c->phase == CONNECTION_CONNECTING)
        return c->progress_ns + limits->progress_ns;
    if (c->phase != CONNECTION_OPEN || c->done == c->begun)
        return NEVER;
    uint64_t due_ns = c->exchanges[c->done % CONNECTION_PIPELINE_MAX].begun_ns + limits->total_ns;
    if (c->whole < c->begun)
        due_ns = min_u64(due_ns, c->progress_ns + limits->progress_ns);
    if (c->answered < c->whole)
        due_ns = min_u64(due_ns, c->reply_since_ns + limits->reply_ns);
    return due_ns;
}

void connection_closed(struct connection *c)
{
    c->phase = CONNECTION_CLOSED;
    if (c->whole == c->begun || c->part_bytes > 0 || c->done < c->whole)
        return;
    /* Nothing of the last request was sent, so whatever came was no reply to it. */
    c->answered = c->done = c->whole;
    c->reply_bytes = 0;
}

void connection_clear(struct connection *c)
{
    c->phase = CONNECTION_NONE;
    c->ending = c->deaf = c->late = false;
    c->error = 0;
    c->begun = c->whole = c->answered = c->taken = c->done = 0;
    c->unsent_bytes = c->part_bytes = 0;
    expect_reply(c);
}

bool connection_ready(const struct connection *c)
{
    uint64_t pipeline = c->done == 0 ? 1 : c->limits.pipeline;
    return c->phase == CONNECTION_OPEN && !c->ending && c->whole == c->begun &&
           c->begun - c->done < pipeline && c->begun - c->taken < pipeline;
}

bool connection_take(struct connection *c, uint64_t *number, const struct answer **answer)
{
    if (c->taken == c->answered || (c->taken >= c->whole && c->phase != CONNECTION_CLOSED))
        return false;
    *number = c->taken;
    *answer = &exchange(c, c->taken)->answer;
    c->taken++;
    return true;
}
