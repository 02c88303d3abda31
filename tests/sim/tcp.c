/* One TCP connection as its two users see it. Bytes travel as a queue of segments towards an end; how many of
 * the first one arrive next, and when, is decided anew for each arrival: there streams are cut, slowed, lost
 * and reset.
 *
 * As Linux has it: a pending error is told once, to whichever operation asks first; then receives say 0 and
 * sends EPIPE. What arrived before a reset can still be read. A close with unread bytes is a reset. */
#include "tests/sim/world.h"

#include <errno.h>
#include <stdlib.h>

#define RTO_MIN_NS  (200 * NS_PER_MS) /* Linux TCP_RTO_MIN, TCP_RTO_MAX */
#define RTO_MAX_NS  (120 * NS_PER_S)
#define RETRIES_MAX 15 /* net.ipv4.tcp_retries2 */

static void arrive(struct sim *sim, struct event *event);

void end_init(struct end *end, struct connection *connection, struct end *other, struct sim_host *host)
{
    end->connection = connection;
    end->other = other;
    end->host = host;
    end->last = &end->first;
    end->arrival.happen = arrive;
}

static void changed(struct end *end)
{
    if (end->changed && !end->closed)
        end->changed(end);
}

static void free_segments(struct end *end)
{
    while (end->first) {
        struct segment *s = end->first;
        end->first = s->next;
        free(s);
    }
    end->last = &end->first;
    end->travelling = 0;
    end->retries = 0;
    event_set(end->sim, &end->arrival, NEVER);
}

void end_die(struct end *end, int error)
{
    if (end->dead)
        return;
    sim_note(end->sim, 'd', (uint64_t)-error, 0);
    end->dead = true;
    end->error = error;
    free_segments(end);
    changed(end);
}

void connection_break(struct connection *c, bool lose_unread)
{
    for (unsigned i = 0; i < 2; i++) {
        if (lose_unread)
            bytes_drop(&c->ends[i].received, bytes_size(&c->ends[i].received));
        end_die(&c->ends[i], -ECONNRESET);
    }
}

/* ---- Sending: segments into the other end's queue ---- */

/* Decides what of the first segment arrives next, and when. */
static void schedule(struct end *end)
{
    struct sim *sim = end->sim;
    struct segment *s = end->first;
    if (!s) {
        event_set(sim, &end->arrival, NEVER);
        return;
    }
    struct sim_link link = sim_link_between(sim, end->other->host, end->host);
    size_t size = s->size - s->start;
    if (link.bytes_s > 0) /* in steps of 10 ms */
        size = min_size(size, max_u64(link.bytes_s / 100, 1));
    if (size > 1 && sim_chance(sim, link.split))
        size = 1 + random_below(&sim->random, size - 1);
    end->chunk = size;
    uint64_t at_ns = max_u64(s->ready_ns, sim->now_ns);
    if (link.bytes_s > 0)
        at_ns += size * NS_PER_S / link.bytes_s;
    event_set(sim, &end->arrival, at_ns);
}

static void send_segment(struct end *to, enum segment_kind kind, const void *bytes, size_t size)
{
    struct sim *sim = to->sim;
    struct sim_link link = sim_link_between(sim, to->other->host, to->host);
    struct segment *s = sim_allocate(sizeof *s + size);
    s->kind = kind;
    s->size = size;
    s->sent_ns = sim->now_ns;
    s->ready_ns = sim->now_ns + 1 + link.latency_min_ns;
    s->ready_ns += random_below(&sim->random, link.latency_max_ns - link.latency_min_ns + 1);
    if (to->first) {
        struct segment *last = container_of(to->last, struct segment, next);
        s->ready_ns = max_u64(s->ready_ns, last->ready_ns);
    }
    if (size > 0)
        memcpy(s->bytes, bytes, size);
    *to->last = s;
    to->last = &s->next;
    to->travelling += size;
    if (to->first == s)
        schedule(to);
}

size_t end_room(const struct end *end)
{
    struct sim_link link = sim_link_between(end->sim, end->host, end->other->host);
    size_t waiting = end->other->travelling + bytes_size(&end->other->received);
    return waiting < link.window_bytes ? link.window_bytes - waiting : 0;
}

void end_send(struct end *end, const void *data, size_t size)
{
    assert(size > 0 && size <= end_room(end) && end->connected && !end->shut && !end->dead);
    send_segment(end->other, SEGMENT_DATA, data, size);
}

void end_shutdown(struct end *end)
{
    if (end->shut || end->dead || !end->connected)
        return;
    end->shut = true;
    send_segment(end->other, SEGMENT_END, NULL, 0);
}

void end_answer(struct end *end, enum segment_kind kind)
{
    send_segment(end, kind, NULL, 0);
}

void end_took(struct end *end, size_t size)
{
    bytes_drop(&end->received, size);
    changed(end->other);
}

void end_close(struct end *end)
{
    end->closed = true;
    event_set(end->sim, &end->connection->syn, NEVER); /* a connect given up; else it is over already */
    if (end->dead || !end->connected)
        return;
    if (bytes_size(&end->received) > 0) {
        bytes_free(&end->received);
        send_segment(end->other, SEGMENT_RESET, NULL, 0);
        end_die(end, -ECONNRESET);
    } else {
        end_shutdown(end);
    }
}

void end_abort(struct end *end)
{
    end->closed = true;
    event_set(end->sim, &end->connection->syn, NEVER);
    if (end->dead || !end->connected)
        return;
    free_segments(end->other);
    send_segment(end->other, SEGMENT_RESET, NULL, 0);
    end_die(end, -ECONNRESET);
}

/* ---- Arrival ---- */

static void next_segment(struct end *end)
{
    struct segment *s = end->first;
    end->first = s->next;
    if (!end->first)
        end->last = &end->first;
    free(s);
    schedule(end);
}

/* The network swallows the first segment: it is sent again until the sender gives up. */
static void retry(struct end *end)
{
    struct end *sender = end->other;
    struct segment *s = end->first;
    uint64_t now_ns = end->sim->now_ns, limit_ns = NEVER;
    if (s->kind == SEGMENT_RESET) { /* sent once */
        next_segment(end);
        return;
    }
    if (sender->user_timeout_ms > 0)
        limit_ns = s->sent_ns + sender->user_timeout_ms * NS_PER_MS;
    if (now_ns >= limit_ns || end->retries >= RETRIES_MAX) {
        free_segments(end);
        end_die(sender, -ETIMEDOUT);
        return;
    }
    uint64_t rto_ns = min_u64(RTO_MIN_NS << end->retries++, RTO_MAX_NS);
    event_set(end->sim, &end->arrival, min_u64(now_ns + rto_ns, limit_ns));
}

static void arrive_data(struct end *end)
{
    struct sim *sim = end->sim;
    struct segment *s = end->first;
    struct sim_link link = sim_link_between(sim, end->other->host, end->host);
    size_t size = end->chunk;
    bool reset = sim_chance(sim, link.reset);
    if (reset)
        size = random_below(&sim->random, size + 1);
    sim_note(sim, 'a', size, reset);
    bytes_add(&end->received, s->bytes + s->start, size);
    s->start += size;
    end->travelling -= size;
    if (reset) {
        connection_break(end->connection, sim_chance(sim, 500));
        return;
    }
    if (s->start == s->size) {
        next_segment(end);
    } else { /* the rest comes a little later */
        s->ready_ns =
            sim->now_ns + 1 + random_below(&sim->random, link.latency_max_ns - link.latency_min_ns + 1);
        schedule(end);
    }
    changed(end);
}

static void arrive_reset(struct end *end)
{
    int error = !end->connected ? -ECONNREFUSED : end->ended ? -EPIPE : -ECONNRESET;
    free_segments(end->other);
    end_die(end, error);
}

/* Nobody is there any more: whatever but an end or a reset is answered by a reset. */
static void arrive_at_nobody(struct end *end)
{
    enum segment_kind kind = end->first->kind;
    if (kind == SEGMENT_END) {
        next_segment(end);
        return;
    }
    free_segments(end);
    if (kind == SEGMENT_RESET || end->other->dead)
        return;
    free_segments(end->other);
    send_segment(end->other, SEGMENT_RESET, NULL, 0);
}

static void arrive(struct sim *sim, struct event *event)
{
    struct end *end = container_of(event, struct end, arrival);
    struct segment *s = end->first;
    if (sim_link_between(sim, end->other->host, end->host).black_hole) {
        retry(end);
        return;
    }
    end->retries = 0;
    if (end->dead || end->closed) {
        arrive_at_nobody(end);
        return;
    }
    switch (s->kind) {
    case SEGMENT_DATA:
        arrive_data(end);
        break;
    case SEGMENT_RESET:
        arrive_reset(end);
        break;
    case SEGMENT_END:
        end->ended = true;
        next_segment(end);
        changed(end);
        break;
    case SEGMENT_ACCEPT:
        end->connected = true;
        next_segment(end);
        changed(end);
        break;
    }
}

/* ---- The end of the memory ---- */

static bool over(const struct end *end)
{
    return (!end->exists || end->closed) && !end->first;
}

static void free_connection(struct connection *c)
{
    for (unsigned i = 0; i < 2; i++) {
        free_segments(&c->ends[i]);
        bytes_free(&c->ends[i].received);
    }
    free(c);
}

void connections_reap(struct sim *sim)
{
    for (struct connection **at = &sim->connections; *at;) {
        struct connection *c = *at;
        if (over(&c->ends[0]) && over(&c->ends[1]) && !c->syn.place) {
            *at = c->next;
            free_connection(c);
        } else {
            at = &c->next;
        }
    }
}

void connections_free(struct sim *sim)
{
    while (sim->connections) {
        struct connection *c = sim->connections;
        sim->connections = c->next;
        event_set(sim, &c->syn, NEVER);
        free_connection(c);
    }
}
