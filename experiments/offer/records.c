/* offer records: each connection is a stream of the records protocol (docs/records-protocol.md), one batch in
 * flight. What is offered waits at its stream, two batches of it at most, and gets its numbers when a batch
 * is made of it: what is dropped before never had one. */
#include "experiments/offer/connection.h"
#include "experiments/offer/offer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define HEAD_MOST   512
#define EPOCH_BYTES 16

/* Numbers: [1, stored] are stored, [first, first + count) are the batch in hand, first == stored + 1 when it
 * is made; `waiting` more have no number yet. */
struct stream {
    uint64_t stored, first;
    unsigned count, waiting;
    bool asked; /* the batch is in flight */
    uint64_t sent_ns;
};

struct offer {
    const struct offering *offering;
    struct tally *tally;
    struct latency *latency;
    struct connections connections;
    struct stream *streams;
    struct schedule schedule;
    char epoch[2 * EPOCH_BYTES + 1];
};

static size_t put_record(uint8_t *at, unsigned bytes, uint64_t value)
{
    size_t size = bytes < 64 ? 1 : 2; /* variable-length integer, RFC 9000 section 16 */
    if (size == 1) {
        at[0] = (uint8_t)bytes;
    } else {
        at[0] = (uint8_t)(0x40 | bytes >> 8);
        at[1] = (uint8_t)bytes;
    }
    memset(at + size, '.', bytes);
    put_value(at + size, value);
    return size + bytes;
}

static size_t put_batch(const struct offer *o, unsigned i, uint8_t *at)
{
    const struct stream *s = &o->streams[i];
    const struct offering *offering = o->offering;
    size_t record = offering->bytes + (offering->bytes < 64 ? 1u : 2u);
    size_t size = (size_t)snprintf((char *)at, HEAD_MOST,
                                   "POST /apps/%s/records HTTP/1.1\r\nHost: offer\r\n"
                                   "Content-Type: application/vnd.pure.records\r\nContent-Length: %zu\r\n"
                                   "Pure-Stream: offer/src/o%u\r\nPure-Epoch: %s\r\nPure-Event: e\r\n"
                                   "Pure-First: %llu\r\nPure-Count: %u\r\nPure-Base: %llu\r\n\r\n",
                                   offering->apps[0], s->count * record, i, o->epoch,
                                   (unsigned long long)s->first, s->count, (unsigned long long)s->stored);
    for (unsigned n = 0; n < s->count; n++)
        size += put_record(at + size, offering->bytes, s->first + n);
    return size;
}

/* Sends the batch in hand, or one of what waits. */
static void ask(struct offer *o, unsigned i, uint64_t now_ns)
{
    struct stream *s = &o->streams[i];
    uint8_t *at =
        s->asked || s->count + s->waiting == 0 ? NULL : connection_room(&o->connections, i, CONNECTION_OUT);
    if (!at)
        return;
    if (s->count == 0) {
        s->first = s->stored + 1;
        s->count = s->waiting < o->offering->depth ? s->waiting : o->offering->depth;
        s->waiting -= s->count;
        s->sent_ns = now_ns;
        o->tally->sent += s->count;
    }
    connection_commit(&o->connections, i, put_batch(o, i, at));
    connection_flush(&o->connections, i);
    s->asked = true;
}

/* The value of Pure-Stored in the head; 0 if it is not there. */
static uint64_t stored_of(const struct message *reply, const char *bytes)
{
    static const char name[] = "\r\nPure-Stored:";
    const char *at = memmem(bytes, reply->head_size, name, sizeof name - 1);
    return at ? strtoull(at + sizeof name - 1, NULL, 10) : 0;
}

static void see_stored(struct offer *o, struct stream *s, uint64_t stored)
{
    for (; s->stored < stored && s->stored < s->first + s->count - 1; s->stored++) {
        o->tally->accepted++;
        o->tally->sum += s->stored + 1;
    }
}

static void replied(void *context, unsigned i, const struct message *reply, const char *bytes)
{
    struct offer *o = context;
    struct stream *s = &o->streams[i];
    uint64_t now_ns = offer_now_ns();
    s->asked = false;
    see_stored(o, s, stored_of(reply, bytes));
    if (s->count > 0 && s->stored >= s->first + s->count - 1) {
        s->count = 0;
        latency_add(o->latency, now_ns - s->sent_ns);
    }
    o->tally->refused += reply->status == 503;
    o->tally->failed += reply->status != 503 && reply->status != 200;
    ask(o, i, now_ns);
}

static void ended(void *context, unsigned i)
{
    struct offer *o = context;
    o->tally->failed += o->streams[i].asked;
    o->streams[i].asked = false;
}

static void offer_due(struct offer *o, uint64_t now_ns)
{
    uint64_t late, from = o->schedule.number, due = schedule_due(&o->schedule, now_ns, &late);
    o->tally->offered += due;
    for (uint64_t n = from; n < from + due; n++) {
        struct stream *s = &o->streams[n % o->connections.count];
        if (n - from < late || s->waiting >= 2 * o->offering->depth)
            o->tally->dropped++;
        else
            s->waiting++;
    }
    for (unsigned i = 0; i < o->connections.count; i++)
        ask(o, i, now_ns);
}

/* After the time: what has no number yet is dropped. */
static bool drop_waiting(struct offer *o)
{
    bool any = false;
    for (unsigned i = 0; i < o->connections.count; i++) {
        o->tally->dropped += o->streams[i].waiting;
        o->streams[i].waiting = 0;
        any |= o->streams[i].count > 0;
    }
    return any;
}

static void run(struct offer *o)
{
    uint64_t now_ns = offer_now_ns();
    o->schedule = (struct schedule){
        .rate = o->offering->rate, .start_ns = now_ns, .end_ns = now_ns + o->offering->time_ns};
    while (now_ns < o->schedule.end_ns || (now_ns < o->schedule.end_ns + DRAIN_NS && drop_waiting(o))) {
        connections_open(&o->connections, now_ns);
        offer_due(o, now_ns);
        uint64_t until_ns = now_ns + TICK_NS;
        do
            connections_wait(&o->connections, now_ns, until_ns);
        while ((now_ns = offer_now_ns()) < until_ns);
    }
    for (unsigned i = 0; i < o->connections.count; i++)
        if (o->streams[i].count > 0)
            o->tally->unanswered += o->streams[i].first + o->streams[i].count - 1 - o->streams[i].stored;
}

int offer_records(const struct offering *offering, struct tallies *tallies)
{
    static struct offer o;
    uint8_t epoch[EPOCH_BYTES];
    o.offering = offering;
    o.tally = &tallies->app[0];
    o.latency = &tallies->latency;
    o.streams = calloc(offering->places, sizeof *o.streams);
    if (!o.streams || getrandom(epoch, sizeof epoch, 0) != sizeof epoch ||
        HEAD_MOST + (size_t)offering->depth * (offering->bytes + 2) > CONNECTION_OUT ||
        connections_init(&o.connections, offering->port, offering->places) != 0) {
        fprintf(stderr, "offer: no memory, or a batch is more than %u bytes\n", CONNECTION_OUT - HEAD_MOST);
        return -1;
    }
    for (unsigned i = 0; i < EPOCH_BYTES; i++)
        snprintf(o.epoch + (size_t)2 * i, 3, "%02x", epoch[i]);
    for (unsigned i = 0; i < offering->places; i++)
        o.streams[i].first = 1;
    o.connections.replied = replied;
    o.connections.ended = ended;
    o.connections.context = &o;
    run(&o);
    return 0;
}
