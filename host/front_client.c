#include "host/front_client.h"

#include <errno.h>
#include <stdlib.h>

#include "host/front_body.h"
#include "host/front_greet.h"
#include "host/front_line.h"
#include "host/front_reply.h"
#include "host/front_request.h"
#include "host/front_sealed.h"

#define PROGRESS_NS (10 * NS_PER_S) /* a client that takes no byte of its replies for so long is closed */
#define LINGER_NS   (2 * NS_PER_S)
#define SURPLUS_NS  (2 * NS_PER_S) /* for the head of the one request of a surplus connection */

static struct client *client_of(struct stream *s)
{
    return container_of(s, struct client, secure.stream);
}

static bool sending(const struct client *c)
{
    return c->secure.engine ? secure_sending(&c->secure) : stream_sending(&c->secure.stream);
}

/* --- deadlines --- */

static bool idle(const struct client *c)
{
    return c->first == c->end && c->request_ns == NEVER && !sending(c) && !c->lingering && !c->line;
}

static uint64_t deadline_ns(const struct client *c)
{
    uint64_t due_ns = min_u64(c->request_ns, c->linger_ns);
    if (sending(c))
        due_ns = min_u64(due_ns, c->progress_ns);
    return idle(c) ? min_u64(due_ns, c->idle_ns) : due_ns;
}

/* A timer that is set too early finds that out when it fires; only one that is too late is set anew. */
static void arm(struct client *c)
{
    uint64_t due_ns = deadline_ns(c);
    if (!c->closing && due_ns < c->timer.due_ns)
        timer_set(&c->front->loop->timers, &c->timer, due_ns);
}

/* Our half ends, and the other one is read for a while: for what is still being sent, or, by TLS, until our
 * close_notify is there. */
static void linger(struct client *c)
{
    c->reading = READING_NOTHING;
    c->lingering = true;
    c->linger_bytes = 0;
    c->linger_ns = c->front->loop->now_ns + LINGER_NS;
    secure_shutdown(&c->secure);
    secure_read(&c->secure, true);
}

/* Ends a connection on which nothing is open. By TLS an end without notice would look like a cut. */
static void leave(struct client *c)
{
    if (c->secure.engine && !c->greeting && !c->peer_ended)
        linger(c);
    else
        client_close(c);
}

static void request_timed_out(struct client *c)
{
    if (c->greeting) {
        c->front->counters.timeouts++;
        front_greet_failed(c, -ETIMEDOUT);
        client_close(c);
        return;
    }
    if (c->reading == READING_HEAD)
        client_add_exchange(c);
    if (c->surplus) {
        client_refuse_surplus(c);
        return;
    }
    c->front->counters.timeouts++;
    front_sealed_distrust(c);
    client_refuse(c, 408, "the request did not come in in time");
}

static void fired(struct timer *timer, uint64_t now_ns)
{
    struct client *c = container_of(timer, struct client, timer);
    if (sending(c) && now_ns >= c->progress_ns) {
        c->front->counters.timeouts++;
        client_close(c);
    } else if (now_ns >= c->linger_ns) {
        client_close(c);
    } else if (idle(c) && now_ns >= c->idle_ns) {
        leave(c);
    } else if (now_ns >= c->request_ns) {
        request_timed_out(c);
    }
    arm(c);
}

static uint32_t kept_left(const struct client *c)
{
    return c->kept_size - c->kept_at;
}

/* A request has begun with its first byte, unless we are not reading it; a surplus one with the connection.
 */
static void clock_request(struct client *c)
{
    bool ours = c->paused || c->line; /* what is kept waits for us */
    bool begun = c->reading == READING_BODY || (c->reading == READING_HEAD && kept_left(c) > 0 && !ours);
    if (c->surplus)
        return;
    if (!begun)
        c->request_ns = NEVER;
    else if (c->request_ns == NEVER)
        c->request_ns = c->front->loop->now_ns + c->front->config->request_ns;
    arm(c);
}

/* --- output --- */

static void drop_text(struct client *c)
{
    front_forget(c->front, &c->text, &c->text_room);
    c->text_size = 0;
}

/* While the host stops, the reply to the last request that was read is the last. */
static void close_if_stopping(struct client *c, struct exchange *x)
{
    if (!c->front->stopping || c->first + 1 != c->end || c->reading != READING_HEAD)
        return;
    x->close = true;
    c->reading = READING_NOTHING;
    c->lingers = true;
}

static void write_ready(struct client *c)
{
    while (c->first != c->end && !c->text && c->output_size + FRONT_REPLY_MAX <= FRONT_OUTPUT_BYTES) {
        struct exchange *x = client_exchange(c, c->first);
        if (x->expects) {
            front_reply_continue(c);
            x->expects = false;
        }
        if (!exchange_ready(x))
            break;
        if (x->route != ROUTE_NONE && !front_reply_text(c->front, x)) {
            client_want(c);
            break;
        }
        close_if_stopping(c, x);
        c->front->counters.replies[front_reply_put(c, x) / 100]++;
        c->first++;
    }
}

static void send_ready(struct client *c)
{
    if (sending(c))
        return;
    c->output_size = 0;
    write_ready(c);
    if (c->output_size == 0)
        return;
    struct iovec parts[2] = {{c->output, c->output_size}, {c->text, c->text_size}};
    secure_send(&c->secure, parts, c->text ? 2 : 1);
    c->progress_ns = c->front->loop->now_ns + PROGRESS_NS;
}

static bool has_work(const struct client *c)
{
    const struct exchange *x = &c->exchanges[c->first % FRONT_PIPELINE];
    return (c->first != c->end && (exchange_ready(x) || x->expects)) || c->paused || c->peer_ended ||
           c->reading == READING_NOTHING;
}

static void sent(struct stream *s, size_t size, bool all)
{
    (void)size;
    struct client *c = client_of(s);
    c->progress_ns = c->front->loop->now_ns + PROGRESS_NS;
    if (!all)
        return;
    drop_text(c);
    c->idle_ns = c->front->loop->now_ns + c->front->config->idle_ns;
    if (has_work(c))
        client_want(c);
    arm(c);
}

/* --- input --- */

static void end_of_request(struct client *c)
{
    struct exchange *x = client_last(c);
    c->front->counters.whole_requests++;
    client_body_is_in(c, x);
    front_body_release(c);
    c->request_ns = NEVER;
    c->reading = x->close ? READING_NOTHING : READING_HEAD;
    if (client_open_exchange(c) && exchange_ready(client_exchange(c, c->first)))
        client_want(c);
}

/* Takes bytes of the body; returns how many. */
static size_t take_body(struct client *c, struct span bytes)
{
    size_t used;
    if (bytes.size > 0)
        client_last(c)->expects = false; /* it did not wait for 100 (Continue) */
    if (front_body_take(c, bytes, &used) && c->reading == READING_BODY)
        end_of_request(c);
    return used;
}

/* Whether it has to wait for its turn to ask an app for room. */
static bool held(struct client *c)
{
    struct front_app *app = front_request_asks(c);
    return app && front_line_hold(c, app, front_request_bytes(c, app));
}

/* Takes a head, if it is whole, and a body without bytes. Returns the size of what it took; 0: more is
 * needed.
 */
static size_t take_head(struct client *c, struct span bytes)
{
    int size = http_request_head(bytes, &c->scanned, &c->front->head);
    if (size == PE_INCOMPLETE)
        return 0;
    c->scanned = 0;
    if (size > 0 && (c->refused_by || front_line_holds(c->front)) && held(c))
        return 0;
    c->visit_left -= c->visit_left > 0;
    c->begun_ns = c->front->loop->now_ns;
    if (size < 0) {
        front_request_malformed(c, bytes, size);
        return bytes.size;
    }
    front_request_begin(c);
    if (client_last(c)->expects)
        client_want(c);
    const struct http_body *body = &c->body.framing;
    bool empty = body->framing == HTTP_NO_BODY || (body->framing == HTTP_SIZED && body->left == 0);
    if (c->reading == READING_BODY && empty)
        take_body(c, span_of(NULL, 0));
    return (size_t)size;
}

static void stop_reading(struct client *c)
{
    c->paused = true;
    secure_read(&c->secure, false);
}

static void begin_visit(struct client *c, uint8_t requests)
{
    c->visit_round = c->front->round;
    c->visit_left = requests;
}

/* How many may begin as they come. */
static uint8_t visit_past_line(const struct client *c)
{
    if (!c->front->line.first)
        return FRONT_VISIT;
    return c->front->loop->now_ns - c->begun_ns >= FRONT_LIGHT_NS ? 1 : 0;
}

/* Whether it has had all the requests that this round of the front gives it. Then it waits. */
static bool visit_over(struct client *c)
{
    if (c->front->without.quotas)
        return false;
    if (c->visit_round != c->front->round)
        begin_visit(c, visit_past_line(c));
    if (c->visit_left == 0)
        front_line_wait(c);
    return c->visit_left == 0;
}

/* While the host stops one is enough: it is the last. */
static bool unanswered_enough(const struct client *c)
{
    return client_unanswered(c) >= (c->front->stopping ? 1 : FRONT_PIPELINE);
}

/* Takes what can be taken now of `bytes`; returns how much. */
static size_t take_input(struct client *c, struct span bytes)
{
    size_t used = 0;
    while (used < bytes.size && c->reading != READING_NOTHING) {
        struct span rest = span_of(bytes.data + used, bytes.size - used);
        if (c->reading == READING_HEAD && unanswered_enough(c)) {
            stop_reading(c);
            break;
        }
        if (c->reading == READING_HEAD && visit_over(c))
            break;
        size_t took = c->reading == READING_HEAD ? take_head(c, rest) : take_body(c, rest);
        if (took == 0)
            break;
        used += took;
    }
    return used;
}

static void forget_kept(struct client *c)
{
    c->kept_at = c->kept_size = 0;
    front_forget(c->front, &c->kept, &c->kept_room);
}

/* After the last request: bytes are discarded, within bounds. Before its reply is out, the bound is the
 * kernel's. */
static void discard(struct client *c, size_t size)
{
    c->lingers = true;
    c->linger_bytes += size;
    if (c->linger_bytes <= FRONT_LINGER_BYTES)
        return;
    if (c->lingering)
        client_close(c);
    else
        secure_read(&c->secure, false);
}

/* There is no memory for what came: an end with notice, if one more reply can be. */
static void overflow(struct client *c)
{
    if (c->reading == READING_HEAD && client_unanswered(c) < FRONT_PIPELINE)
        client_add_exchange(c);
    client_refuse(c, 503, "too much is coming in");
}

/* The rest moves to the front only where it takes the place of as many bytes: so none moves often. */
static void make_room(struct client *c, size_t size)
{
    uint32_t left = kept_left(c);
    if (c->kept_size + size <= c->kept_room || c->kept_at < left)
        return;
    if (left > 0)
        memcpy(c->kept, c->kept + c->kept_at, left);
    c->kept_at = 0;
    c->kept_size = left;
}

static void keep_input(struct client *c, struct span bytes)
{
    make_room(c, bytes.size);
    if (front_keep(c->front, &c->kept, &c->kept_room, (uint64_t)c->kept_size + bytes.size) < 0) {
        overflow(c);
        return;
    }
    memcpy(c->kept + c->kept_size, bytes.data, bytes.size);
    c->kept_size += (uint32_t)bytes.size;
}

static void take_kept(struct client *c)
{
    c->kept_at += (uint32_t)take_input(c, span_of(c->kept + c->kept_at, kept_left(c)));
    if (kept_left(c) == 0)
        c->kept_at = c->kept_size = 0;
}

static void take_bytes(struct client *c, struct span bytes)
{
    if (kept_left(c) > 0 || c->paused) {
        keep_input(c, bytes);
        if (!c->paused && !c->line && c->reading != READING_NOTHING)
            take_kept(c);
    } else {
        size_t used = take_input(c, bytes);
        if (used < bytes.size && c->reading != READING_NOTHING)
            keep_input(c, span_of(bytes.data + used, bytes.size - used));
        else if (used < bytes.size)
            c->lingers = true;
    }
}

static void settle_input(struct client *c)
{
    if (c->reading == READING_NOTHING && kept_left(c) > 0)
        c->lingers = true;
    if (c->reading == READING_NOTHING || kept_left(c) == 0)
        forget_kept(c);
    if (c->peer_ended && c->reading == READING_BODY) {
        front_sealed_distrust(c);
        client_refuse(c, 400, "the body ended early");
    }
    clock_request(c);
}

/* Whether it is not read for that. */
static bool keeps_enough(const struct client *c)
{
    return c->line && kept_left(c) >= FRONT_KEEP_BYTES;
}

static void data(struct stream *s, const uint8_t *bytes, size_t size)
{
    struct client *c = client_of(s);
    if (c->reading == READING_NOTHING) {
        discard(c, size);
        return;
    }
    take_bytes(c, span_of(bytes, size));
    settle_input(c);
    if (keeps_enough(c))
        secure_read(&c->secure, false);
}

static void go_on(struct client *c)
{
    take_kept(c);
    settle_input(c);
    if (!c->paused)
        secure_read(&c->secure, !keeps_enough(c));
}

/* Once half of the replies that were too many are out. */
static void end_pause(struct client *c)
{
    if (!c->paused || client_unanswered(c) > FRONT_PIPELINE / 2)
        return;
    c->paused = false;
    go_on(c);
}

/* --- the end --- */

static void end_if_done(struct client *c)
{
    bool done = c->reading == READING_NOTHING || (c->peer_ended && !c->paused && !c->line);
    if (!done || c->first != c->end || sending(c) || c->lingering)
        return;
    if (c->lingers && !c->peer_ended)
        linger(c);
    else
        leave(c);
}

static void ended(struct stream *s)
{
    struct client *c = client_of(s);
    c->peer_ended = true;
    if (c->lingering) {
        client_close(c);
        return;
    }
    if (!c->paused)
        settle_input(c);
    client_want(c);
}

static void failed(struct stream *s, int error)
{
    struct client *c = client_of(s);
    if (c->greeting)
        front_greet_failed(c, error);
    client_close(c);
}

/* Late results find nobody from now on. */
static void forget_requests(struct client *c)
{
    c->generation++;
    front_body_release(c);
    front_sealed_forget(c);
    front_line_leave(c);
    forget_kept(c);
    for (; c->first != c->end; c->first++) {
        struct exchange *x = client_exchange(c, c->first);
        front_forget(c->front, &x->text, &x->text_room);
    }
    timer_unset(&c->front->loop->timers, &c->timer);
}

void client_close(struct client *c)
{
    if (c->closing)
        return;
    c->closing = true;
    front_greet_ends(c);
    forget_requests(c);
    secure_close(&c->secure);
}

void client_dispose(struct client *c)
{
    if (!c->closing)
        forget_requests(c);
    drop_text(c);
    secure_abandon(&c->secure);
}

static void closed(struct stream *s)
{
    struct client *c = client_of(s);
    drop_text(c);
    front_release(c->front, c);
}

void client_stop(struct client *c)
{
    if (c->first == c->end && c->reading == READING_HEAD && !sending(c) && !c->line)
        leave(c);
    else
        client_want(c);
    arm(c);
}

void client_run(struct client *c)
{
    if (!c->used || c->closing)
        return;
    send_ready(c);
    end_pause(c);
    if (c->front->stopping && c->first == c->end && c->reading == READING_HEAD) {
        c->reading = READING_NOTHING;
        c->lingers |= c->line || c->paused;
        front_line_leave(c);
    }
    end_if_done(c);
    arm(c);
}

void client_visit(struct client *c, uint8_t requests, struct front_app *turn_of)
{
    c->turn_of = turn_of;
    begin_visit(c, requests);
    go_on(c);
    if (c->turn_of)
        front_line_served(c, c->turn_of);
    c->turn_of = NULL;
    client_want(c);
}

/* By TLS: the handshake is over. */
static void connected(struct stream *s)
{
    struct client *c = client_of(s);
    c->idle_ns = c->front->loop->now_ns + c->front->config->idle_ns;
    if (!c->surplus)
        c->request_ns = NEVER;
    c->front->counters.handshakes++;
    front_greet_ends(c);
    arm(c);
}

static const struct stream_events events = {
    .connected = connected, .data = data, .ended = ended, .sent = sent, .failed = failed, .closed = closed};

void client_open(struct client *c, int fd, bool surplus, bool secured)
{
    uint64_t now_ns = c->front->loop->now_ns;
    secure_init(&c->secure, c->front->loop->io, &events, fd);
    timer_init(&c->timer, fired);
    c->closing = c->greeting = c->lingering = c->lingers = c->peer_ended = c->paused = false;
    c->reading = READING_HEAD;
    c->request_ns = c->progress_ns = c->linger_ns = NEVER;
    c->idle_ns = now_ns + c->front->config->idle_ns;
    c->surplus = surplus;
    if (surplus)
        c->request_ns = now_ns + SURPLUS_NS;
    c->linger_bytes = 0;
    c->refused_by = c->turn_of = NULL;
    c->refused_bytes = 0;
    c->begun_ns = 0;
    begin_visit(c, visit_past_line(c));
    c->kept_at = c->kept_size = c->output_size = 0;
    c->scanned = 0;
    c->first = c->end = 0;
    c->body = (struct front_body){.sink = SINK_DISCARD};
    if (secured)
        front_greet(c);
    else
        secure_read(&c->secure, true);
    arm(c);
}
