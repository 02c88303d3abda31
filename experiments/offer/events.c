/* offer events: number k is connection k mod N's, or nobody's. */
#include "experiments/offer/connection.h"
#include "experiments/offer/offer.h"

#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MOST 64 /* a power of two; the front reads no more at a time */
#define HEAD_MOST  160

struct flight {
    uint64_t value, sent_ns;
};

/* A connection's requests in flight: flights [first, end), counted from the start. */
struct source {
    struct tally *tally;
    uint64_t first, end;
    struct flight flights[DEPTH_MOST];
    size_t head_size;
    char head[HEAD_MOST];
};

struct offer {
    const struct offering *offering;
    struct connections connections;
    struct source *sources;
    struct latency *latency;
    struct schedule schedule;
    uint64_t values;
};

static void replied(void *context, unsigned i, const struct message *reply, const char *bytes)
{
    struct offer *o = context;
    struct source *s = &o->sources[i];
    (void)bytes;
    if (s->first == s->end) {
        s->tally->failed++; /* a reply to nothing that was asked */
        return;
    }
    const struct flight *flight = &s->flights[s->first++ % DEPTH_MOST];
    if (reply->status == 200) {
        s->tally->accepted++;
        s->tally->sum += flight->value;
        latency_add(o->latency, offer_now_ns() - flight->sent_ns);
    } else {
        s->tally->lost++;
        s->tally->refused += reply->status == 503;
        s->tally->failed += reply->status != 503;
    }
}

static void ended(void *context, unsigned i)
{
    struct source *s = &((struct offer *)context)->sources[i];
    s->tally->unanswered += s->end - s->first;
    s->tally->failed += s->end > s->first;
    s->first = s->end;
}

static void offer_one(struct offer *o, unsigned i, uint64_t now_ns)
{
    struct source *s = &o->sources[i];
    size_t size = s->head_size + o->offering->bytes;
    bool full = s->end - s->first == o->offering->depth;
    uint8_t *at = full ? NULL : connection_room(&o->connections, i, size);
    s->tally->offered++;
    if (!at) {
        s->tally->dropped++;
        return;
    }
    memcpy(at, s->head, s->head_size);
    memset(at + s->head_size, '.', o->offering->bytes);
    put_value(at + s->head_size, ++o->values);
    connection_commit(&o->connections, i, size);
    s->flights[s->end++ % DEPTH_MOST] = (struct flight){o->values, now_ns};
    s->tally->sent++;
}

static void drop(struct offer *o, uint64_t number)
{
    struct tally *tally = o->sources[number % o->connections.count].tally;
    tally->offered++;
    tally->dropped++;
}

static void offer_due(struct offer *o, uint64_t now_ns)
{
    uint64_t late, from = o->schedule.number, due = schedule_due(&o->schedule, now_ns, &late);
    for (uint64_t n = from; n < from + due; n++)
        if (n - from < late)
            drop(o, n);
        else
            offer_one(o, (unsigned)(n % o->connections.count), now_ns);
    for (unsigned i = 0; i < o->connections.count; i++)
        connection_flush(&o->connections, i);
}

static bool any_in_flight(const struct offer *o)
{
    for (unsigned i = 0; i < o->connections.count; i++)
        if (o->sources[i].first != o->sources[i].end)
            return true;
    return false;
}

static void run(struct offer *o)
{
    uint64_t now_ns = offer_now_ns();
    o->schedule = (struct schedule){
        .rate = o->offering->rate, .start_ns = now_ns, .end_ns = now_ns + o->offering->time_ns};
    while (now_ns < o->schedule.end_ns + DRAIN_NS && (now_ns < o->schedule.end_ns || any_in_flight(o))) {
        connections_open(&o->connections, now_ns);
        offer_due(o, now_ns);
        uint64_t until_ns = now_ns + TICK_NS;
        do
            connections_wait(&o->connections, now_ns, until_ns);
        while ((now_ns = offer_now_ns()) < until_ns);
    }
    for (unsigned i = 0; i < o->connections.count; i++)
        o->sources[i].tally->unanswered += o->sources[i].end - o->sources[i].first;
}

int offer_events(const struct offering *offering, struct tallies *tallies)
{
    static struct offer o;
    o.offering = offering;
    o.latency = &tallies->latency;
    o.sources = calloc(offering->places, sizeof *o.sources);
    if (!o.sources || offering->depth > DEPTH_MOST ||
        connections_init(&o.connections, offering->port, offering->places) != 0) {
        fprintf(stderr, "offer: no memory, or more than %u in flight\n", DEPTH_MOST);
        return -1;
    }
    o.connections.replied = replied;
    o.connections.ended = ended;
    o.connections.context = &o;
    for (unsigned i = 0; i < offering->places; i++) {
        struct source *s = &o.sources[i];
        unsigned app = i % offering->app_count;
        s->tally = &tallies->app[app];
        s->head_size = (size_t)snprintf(s->head, sizeof s->head,
                                        "POST /apps/%s/events/e HTTP/1.1\r\nHost: offer\r\n"
                                        "Content-Length: %u\r\n\r\n",
                                        offering->apps[app], offering->bytes);
    }
    run(&o);
    return 0;
}
