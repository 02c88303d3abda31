/* Some hosts that send to one, over links: their link_senders, its link_receiver, a network in between that
 * does what it is told, apps on both ends. One virtual clock, one seed; nothing waits.
 *
 *     producers -> outlets -> sender 0 -+                                     +-> consumer: cursors, which
 * are outlets -> sender 1 -+- NAT -- queue, delay, faults -> receiver   durable, and stored records
 *                                       +<---------- the same ----------------+
 *
 * A record's size and bytes follow from its output and number, so that whoever gets it can tell whether it is
 * right. */
#ifndef PURE_TESTS_LINK_ENDS_H
#define PURE_TESTS_LINK_ENDS_H

#include "link/link_receiver.h"
#include "link/link_sender.h"

#include <netinet/in.h>
#include <sodium.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define WORLD_SENDERS   3
#define WORLD_OUTPUTS   3 /* of each sender */
#define WORLD_FLIGHTS   4096
#define WORLD_DATAGRAM  9000
#define WORLD_STREAMS   (WORLD_SENDERS * WORLD_OUTPUTS)
#define WORLD_NOT_TAKEN 64 /* runs of records that the consumer has not looked at, of one inlet */

struct flight {
    uint64_t at_ns, order;
    bool to_receiver;
    unsigned sender;
    uint32_t port; /* of the sender, as the receiver sees it */
    uint32_t size;
    uint8_t bytes[WORLD_DATAGRAM];
};

struct weather {
    unsigned loss, duplicate, corrupt; /* per mille */
    uint64_t delay_ns, jitter_ns;
    uint64_t bytes_s, queue_bytes;
    uint32_t mtu;
    bool icmp;    /* who sends more than `mtu` is told so */
    bool blocked; /* nothing passes */
};

struct direction {
    struct weather weather;
    uint64_t free_ns; /* when the bottleneck has let out all that is queued */
};

struct world_run {
    uint64_t first, count;
    struct span bytes;
};

struct world_stream {
    /* sending host */
    _Alignas(CACHE_LINE) struct outlet outlet;
    struct link_output output;
    uint8_t epoch[FRAME_EPOCH_BYTES];
    uint64_t pushed, total;
    uint64_t refused; /* how often */
    int error;        /* of the last refusal */
    bool for_ever;
    /* receiving host: `stored` is durable */
    uint64_t stored;
    struct inlet *inlet; /* NULL: none is open */
    struct world_run runs[WORLD_NOT_TAKEN];
    uint32_t runs_first, runs_end;
};

struct world_sender {
    _Alignas(CACHE_LINE) struct link_sender link;
    struct indices indices;
    struct host_key key;
    uint32_t port;     /* its own */
    uint32_t nat_port; /* what the receiver sees */
    bool nat_dead;     /* until it takes another port */
    uint64_t lookups;
    const uint64_t *now_ns; /* the world's */
    struct world_stream streams[WORLD_OUTPUTS];
};

struct world {
    struct random random;
    uint64_t now_ns;
    struct host_key key; /* the receiver's */
    struct link_receiver receiver;
    struct world_sender senders[WORLD_SENDERS];
    unsigned sender_count, output_count;
    uint32_t max_record;
    uint64_t queue_bytes;
    struct inlet_limits limits;
    bool consumer_full;
    enum frame_refusal refuse; /* what admit answers, 0: it lets in */
    struct direction there, back;
    struct flight *flights; /* all there are; [0, flying) are a heap of indices by time */
    uint32_t heap[WORLD_FLIGHTS];
    uint32_t flying;
    uint64_t order;
    uint64_t sent_there, sent_back, bytes_there; /* datagrams, datagrams, bytes */
    uint64_t most_flying;
};

/* --- records --- */

static inline size_t world_record_size(const struct world *w, unsigned stream, uint64_t n)
{
    if (n % 97 == 13)
        return (size_t)((n * 7919 + stream) % w->max_record) + 1;
    return 8 + n % 32;
}

static inline uint8_t world_record_byte(unsigned stream, uint64_t n, size_t at)
{
    return (uint8_t)(n * 31 + at * 7 + stream * 101);
}

static inline void world_push(struct world *w, struct world_sender *s, unsigned output, uint64_t most)
{
    static uint8_t data[RECORD_MAX_BYTES];
    unsigned id = (unsigned)(s - w->senders) * WORLD_OUTPUTS + output;
    struct world_stream *stream = &s->streams[output];
    uint64_t before = stream->pushed;
    while (stream->pushed < stream->total && stream->pushed - before < most) {
        uint64_t n = stream->pushed + 1;
        size_t size = world_record_size(w, id, n);
        for (size_t i = 0; i < size; i++)
            data[i] = world_record_byte(id, n, i);
        if (outlet_queue(&stream->outlet, data, size) < 0)
            break;
        stream->pushed = n;
    }
    if (stream->pushed == before)
        return;
    record_queue_publish(&stream->outlet.queue);
    outputs_pushed(&s->link.outputs, &stream->output);
}

/* --- the consumer: what it is given waits, until a turn stores it --- */

static inline int world_admit(void *context, void *peer, const struct frame_open *open, struct inlet *inlet,
                              uint64_t *stored)
{
    struct world *w = context;
    struct world_sender *s = peer;
    assert_true(span_is(open->app, "src") && span_is(open->target, "dst") && span_is(open->event, "ev"));
    unsigned output = (unsigned)(open->output.data[0] - '0');
    assert_in_range(output, 0, w->output_count - 1);
    struct world_stream *stream = &s->streams[output];
    assert_memory_equal(open->epoch, stream->epoch, FRAME_EPOCH_BYTES);
    assert_null(stream->inlet);
    *stored = stream->stored = max_u64(stream->stored, open->base);
    if (w->refuse)
        return (int)w->refuse;
    if (open->first > stream->stored + 1)
        return REFUSED_GAP;
    stream->inlet = inlet;
    stream->runs_first = stream->runs_end = 0;
    inlet->context = stream;
    return 0;
}

static inline unsigned world_id(const struct world *w, const struct world_stream *stream)
{
    for (unsigned i = 0; i < w->sender_count; i++) {
        if (stream >= w->senders[i].streams && stream < w->senders[i].streams + WORLD_OUTPUTS)
            return i * WORLD_OUTPUTS + (unsigned)(stream - w->senders[i].streams);
    }
    fail();
    return 0;
}

/* A run is stored: what was not before must be the next, and right. */
static inline void world_store(struct world *w, struct world_stream *stream, const struct world_run *run)
{
    unsigned id = world_id(w, stream);
    const uint8_t *at = run->bytes.data, *end = at + run->bytes.size;
    for (uint64_t n = run->first; n < run->first + run->count; n++) {
        struct span record;
        size_t framed = record_get(at, end, &record);
        assert_true(framed > 0);
        at += framed;
        if (n <= stream->stored)
            continue;
        assert_int_equal(n, stream->stored + 1);
        assert_int_equal(record.size, world_record_size(w, id, n));
        for (size_t i = 0; i < record.size; i++) {
            if (record.data[i] != world_record_byte(id, n, i))
                fail_msg("output %u, record %lu: byte %zu is wrong", id, n, i);
        }
        stream->stored = n;
    }
    assert_ptr_equal(at, end);
}

static inline void world_take_run(struct world *w, struct world_stream *stream)
{
    struct world_run *run = &stream->runs[stream->runs_first++ % WORLD_NOT_TAKEN];
    world_store(w, stream, run);
    inlet_freed(stream->inlet, run->bytes.size);
    inlet_stored(stream->inlet, stream->stored);
}

static inline void world_records(void *context, struct inlet *inlet, uint64_t first, struct span records,
                                 uint64_t count)
{
    struct world *w = context;
    struct world_stream *stream = inlet->context;
    assert_ptr_equal(stream->inlet, inlet);
    if (stream->runs_end - stream->runs_first == WORLD_NOT_TAKEN)
        world_take_run(w, stream);
    stream->runs[stream->runs_end++ % WORLD_NOT_TAKEN] = (struct world_run){first, count, records};
}

static inline void world_closed(void *context, struct inlet *inlet)
{
    struct world_stream *stream = inlet->context;
    (void)context;
    assert_ptr_equal(stream->inlet, inlet);
    stream->inlet = NULL;
}

static inline void world_turns(struct world *w)
{
    for (unsigned i = 0; i < w->sender_count && !w->consumer_full; i++) {
        for (unsigned k = 0; k < w->output_count; k++) {
            struct world_stream *stream = &w->senders[i].streams[k];
            while (stream->inlet && stream->runs_first != stream->runs_end)
                world_take_run(w, stream);
        }
    }
}

/* --- the network --- */

static inline bool earlier(const struct world *w, uint32_t a, uint32_t b)
{
    const struct flight *x = &w->flights[a], *y = &w->flights[b];
    return x->at_ns != y->at_ns ? x->at_ns < y->at_ns : x->order < y->order;
}

static inline void swap(uint32_t *a, uint32_t *b)
{
    uint32_t c = *a;
    *a = *b;
    *b = c;
}

static inline struct flight *world_launch(struct world *w, uint64_t at_ns)
{
    if (w->flying == WORLD_FLIGHTS)
        return NULL;
    uint32_t i = w->flying++;
    struct flight *f = &w->flights[w->heap[i]];
    f->at_ns = at_ns;
    f->order = w->order++;
    for (; i > 0 && earlier(w, w->heap[i], w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
    w->most_flying = max_u64(w->most_flying, w->flying);
    return f;
}

/* The earliest flight lands: valid until the next launch. */
static inline struct flight *world_land(struct world *w)
{
    uint32_t landed = w->heap[0];
    swap(&w->heap[0], &w->heap[--w->flying]);
    for (uint32_t i = 0;;) {
        uint32_t least = i, left = 2 * i + 1;
        for (uint32_t child = left; child < left + 2 && child < w->flying; child++) {
            if (earlier(w, w->heap[child], w->heap[least]))
                least = child;
        }
        if (least == i)
            break;
        swap(&w->heap[i], &w->heap[least]);
        i = least;
    }
    return &w->flights[landed];
}

static inline bool chance(struct world *w, unsigned per_mille)
{
    return random_below(&w->random, 1000) < per_mille;
}

static inline void world_send(struct world *w, struct direction *d, unsigned sender, uint32_t port,
                              const uint8_t *bytes, size_t size)
{
    const struct weather *weather = &d->weather;
    assert_true(size <= WORLD_DATAGRAM);
    if (weather->blocked || size > weather->mtu || chance(w, weather->loss))
        return;
    uint64_t queued_ns = d->free_ns > w->now_ns ? d->free_ns - w->now_ns : 0;
    uint64_t queued = (uint64_t)((double)queued_ns * (double)weather->bytes_s / 1e9);
    if (queued + size > weather->queue_bytes)
        return;
    d->free_ns = max_u64(d->free_ns, w->now_ns) + size * NS_PER_S / weather->bytes_s;
    for (unsigned copies = 1 + chance(w, weather->duplicate); copies > 0; copies--) {
        uint64_t jitter_ns = weather->jitter_ns ? random_below(&w->random, weather->jitter_ns) : 0;
        struct flight *f = world_launch(w, d->free_ns + weather->delay_ns + jitter_ns);
        if (!f)
            return;
        f->to_receiver = d == &w->there;
        f->sender = sender;
        f->port = port;
        f->size = (uint32_t)size;
        memcpy(f->bytes, bytes, size);
        if (chance(w, weather->corrupt))
            f->bytes[random_below(&w->random, size)] ^= (uint8_t)(1 + random_below(&w->random, 255));
    }
}

static inline struct link_address world_address(unsigned sender, uint32_t port)
{
    struct link_address a = {.len = sizeof(struct sockaddr_in)};
    struct sockaddr_in *in = (struct sockaddr_in *)&a.address;
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(0x0a000001 + sender);
    in->sin_port = htons((uint16_t)port);
    return a;
}

static inline void world_back(struct world *w, const struct link_address *to, const uint8_t *bytes,
                              size_t size)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)&to->address;
    w->sent_back++;
    world_send(w, &w->back, ntohl(in->sin_addr.s_addr) - 0x0a000001, ntohs(in->sin_port), bytes, size);
}

static inline void world_arrive(struct world *w, struct flight *f)
{
    struct world_sender *s = &w->senders[f->sender];
    if (f->to_receiver) {
        uint8_t answer[LINK_ANSWER_BYTES];
        struct link_address source = world_address(f->sender, f->port);
        int size = link_receiver_receive(&w->receiver, w->now_ns, &source, f->bytes, f->size, answer);
        if (size > 0)
            world_back(w, &source, answer, (size_t)size);
        assert_true(size != PE_MALFORMED);
        return;
    }
    unsigned type = link_type_of(f->bytes, f->size);
    if (f->port != s->nat_port || s->nat_dead || type == 0 || type == LINK_INIT)
        return;
    if (indices_find(&s->indices, link_index_of(type, f->bytes)) != &s->link)
        return;
    int error = link_sender_receive(&s->link, w->now_ns, f->bytes, f->size);
    assert_true(error != PE_MALFORMED);
}

/* --- the ends --- */

static inline void world_random(void *context, void *bytes, size_t size)
{
    uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)random_next(context);
}

static inline struct noise_random world_randomness(struct world *w)
{
    return (struct noise_random){world_random, &w->random};
}

static inline void world_stored(void *context, struct link_output *output)
{
    (void)context;
    struct world_stream *stream = container_of(output, struct world_stream, output);
    /* nothing is freed that is not stored for good */
    assert_true(stream->outlet.queue.freed.records <= stream->stored);
}

static inline void world_refused(void *context, struct link_output *output, int error, bool for_ever)
{
    (void)context;
    struct world_stream *stream = container_of(output, struct world_stream, output);
    stream->refused++;
    stream->error = error;
    stream->for_ever = for_ever;
}

static inline void world_want_lookup(void *context)
{
    struct world_sender *s = context;
    s->lookups++;
    s->nat_port = ++s->port;
    s->nat_dead = false;
    link_sender_moved(&s->link, *s->now_ns);
}

static inline void world_start_sender(struct world *w, unsigned number)
{
    struct world_sender *s = &w->senders[number];
    struct link_sender_options options = {.key = &s->key,
                                          .remote_public = w->key.public,
                                          .indices = &s->indices,
                                          .random = world_randomness(w),
                                          .ciphers = number % 2 ? cipher_hardware() : 0,
                                          .outputs = WORLD_OUTPUTS,
                                          .sent_packets = 512,
                                          .mtu_limit = WORLD_DATAGRAM};
    const struct link_sender_events events = {
        .outputs = {world_stored, world_refused, s}, .want_lookup = world_want_lookup, .context = s};
    assert_int_equal(link_sender_init(&s->link, &options, &events, w->now_ns), 0);
    for (unsigned k = 0; k < w->output_count; k++) {
        struct world_stream *stream = &s->streams[k];
        assert_int_equal(outputs_add(&s->link.outputs, &stream->output, &stream->outlet, stream->epoch,
                                     span_text("dst"), span_text("ev")),
                         0);
    }
}

static inline void world_unknown(void *context, const uint8_t key[LINK_KEY_BYTES], uint64_t times)
{
    (void)context;
    (void)key;
    (void)times;
}

static inline void world_start_receiver(struct world *w)
{
    const struct link_receiver_options options = {.key = &w->key,
                                                  .random = world_randomness(w),
                                                  .ciphers = cipher_hardware(),
                                                  .peers = WORLD_SENDERS,
                                                  .limits = w->limits,
                                                  .unknown = world_unknown};
    const struct link_consumer consumer = {world_admit, world_records, world_closed, w};
    assert_int_equal(link_receiver_init(&w->receiver, &options, &consumer, w->now_ns), 0);
    for (unsigned i = 0; i < w->sender_count; i++)
        assert_true(link_receiver_allow(&w->receiver, w->senders[i].key.public, &w->senders[i]) >= 0);
}

/* Its process dies and comes again: queues are as its journal has them. */
static inline void world_restart_sender(struct world *w, unsigned number)
{
    link_sender_dispose(&w->senders[number].link);
    world_start_sender(w, number);
}

/* All is lost but the cursors. */
static inline void world_restart_receiver(struct world *w)
{
    link_receiver_dispose(&w->receiver);
    world_start_receiver(w);
}

static inline struct weather fair_weather(void)
{
    return (struct weather){
        .delay_ns = 10 * NS_PER_MS, .bytes_s = 12500000, .queue_bytes = 250000, .mtu = WORLD_DATAGRAM};
}

/* `total` records for each output. Of the world, what is set before is kept: max_record, queue_bytes, limits.
 */
static inline struct world *world_new(uint64_t seed, unsigned senders, unsigned outputs, uint64_t total)
{
    size_t size = (sizeof(struct world) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct world *w = aligned_alloc(CACHE_LINE, size);
    assert_non_null(w);
    memset(w, 0, sizeof *w);
    static struct flight flights[WORLD_FLIGHTS];
    w->flights = flights;
    w->random.state = seed;
    w->now_ns = NS_PER_S;
    w->sender_count = senders;
    w->output_count = outputs;
    w->max_record = 20000;
    w->queue_bytes = 200000;
    w->limits = (struct inlet_limits){.places = 8, .stream_window = 64 << 10, .session_window = 256 << 10};
    w->there.weather = w->back.weather = fair_weather();
    for (uint32_t i = 0; i < WORLD_FLIGHTS; i++)
        w->heap[i] = i;
    for (unsigned i = 0; i < senders; i++) {
        for (unsigned k = 0; k < outputs; k++)
            w->senders[i].streams[k].total = total;
    }
    return w;
}

static inline void world_start(struct world *w)
{
    struct noise_random random = world_randomness(w);
    assert_true(sodium_init() >= 0); /* chooses the fast ciphers; what is random comes from the seed */
    w->limits.max_record = w->max_record;
    host_key_generate(&w->key, &random);
    for (unsigned i = 0; i < w->sender_count; i++) {
        struct world_sender *s = &w->senders[i];
        host_key_generate(&s->key, &random);
        assert_int_equal(indices_init(&s->indices, INITIATOR_INDICES), 0);
        s->port = s->nat_port = 10000;
        s->now_ns = &w->now_ns;
        for (unsigned k = 0; k < w->output_count; k++) {
            char name[2] = {(char)('0' + k), '\0'};
            world_random(&w->random, s->streams[k].epoch, FRAME_EPOCH_BYTES);
            assert_int_equal(
                outlet_init(&s->streams[k].outlet, "link", "src", name, w->queue_bytes, w->max_record), 0);
        }
        world_start_sender(w, i);
    }
    world_start_receiver(w);
}

static inline void world_free(struct world *w)
{
    link_receiver_dispose(&w->receiver);
    for (unsigned i = 0; i < w->sender_count; i++) {
        link_sender_dispose(&w->senders[i].link);
        indices_dispose(&w->senders[i].indices);
        for (unsigned k = 0; k < w->output_count; k++)
            outlet_dispose(&w->senders[i].streams[k].outlet);
    }
    free(w);
}

/* --- time --- */

static inline void world_fill_sender(struct world *w, unsigned number)
{
    static uint8_t buffer[LINK_BATCH_BYTES];
    struct world_sender *s = &w->senders[number];
    struct link_batch batch;
    for (unsigned batches = 0; link_sender_fill(&s->link, w->now_ns, buffer, sizeof buffer, &batch);
         batches++) {
        assert_true(batches < 1000);
        assert_true(batch.count >= 1 && batch.count <= LINK_BATCH_PACKETS);
        assert_int_equal(batch.count, (batch.bytes + batch.segment - 1) / batch.segment);
        for (uint32_t at = 0; at < batch.bytes; at += batch.segment) {
            uint32_t size = (uint32_t)min_u64(batch.segment, batch.bytes - at);
            w->sent_there++;
            w->bytes_there += size;
            if (!s->nat_dead)
                world_send(w, &w->there, number, s->nat_port, buffer + at, size);
        }
        if (w->there.weather.icmp && batch.segment > w->there.weather.mtu)
            link_sender_too_large(&s->link, w->now_ns, w->there.weather.mtu);
    }
}

static inline void world_fill_receiver(struct world *w)
{
    uint8_t packet[LINK_RECEIVER_BYTES];
    const struct link_address *to;
    size_t size;
    unsigned packets = 0;
    while ((size = link_receiver_fill(&w->receiver, w->now_ns, packet, &to)) > 0) {
        assert_true(++packets < 1000);
        world_back(w, to, packet, size);
    }
}

static inline uint64_t world_next_ns(struct world *w)
{
    uint64_t next_ns = link_receiver_deadline_ns(&w->receiver);
    for (unsigned i = 0; i < w->sender_count; i++)
        next_ns = min_u64(next_ns, link_sender_deadline_ns(&w->senders[i].link, w->now_ns));
    if (w->flying > 0)
        next_ns = min_u64(next_ns, w->flights[w->heap[0]].at_ns);
    return next_ns;
}

/* All that happens at one moment, then on to the next one, at `until_ns` at the latest. */
static inline void world_step(struct world *w, uint64_t until_ns)
{
    while (w->flying > 0 && w->flights[w->heap[0]].at_ns <= w->now_ns)
        world_arrive(w, world_land(w));
    link_receiver_deliver(&w->receiver);
    world_turns(w);
    world_fill_receiver(w);
    for (unsigned i = 0; i < w->sender_count; i++) {
        for (unsigned k = 0; k < w->output_count; k++)
            world_push(w, &w->senders[i], k, UINT64_MAX);
        world_fill_sender(w, i);
    }
    uint64_t next_ns = min_u64(world_next_ns(w), until_ns);
    w->now_ns = max_u64(next_ns, w->now_ns + 1000); /* a loop's turn takes a microsecond */
}

static inline bool world_done(const struct world *w)
{
    for (unsigned i = 0; i < w->sender_count; i++) {
        for (unsigned k = 0; k < w->output_count; k++) {
            const struct world_stream *stream = &w->senders[i].streams[k];
            if (stream->outlet.queue.freed.records < stream->total)
                return false;
        }
    }
    return true;
}

/* Until all is stored and known to be, or it is `until_ns`. Returns whether it is. */
static inline bool world_run(struct world *w, uint64_t until_ns)
{
    for (uint64_t steps = 0; !world_done(w) && w->now_ns < until_ns; steps++) {
        assert_true(steps < 3000000);
        world_step(w, until_ns);
    }
    return world_done(w);
}

/* Where things stand, for who looks into a seed that failed. */
static inline void world_print(const struct world *w)
{
    for (unsigned i = 0; i < w->sender_count; i++) {
        const struct world_sender *s = &w->senders[i];
        const struct link_peer *p = w->receiver.peers[i];
        printf("sender %u: session %d, in flight %lu, unanswered %u, INITs %u, window %lu, mtu %u, next %lu, "
               "credit %lu - %lu, line %d; lookups %lu\n",
               i, s->link.initiator.current.live, s->link.path.sent.bytes_in_flight,
               path_unanswered(&s->link.path), s->link.initiator.retries,
               s->link.path.congestion.cubic.window_bytes, s->link.path.mtu.current, s->link.path.sent.next,
               s->link.outputs.session_credit, s->link.outputs.session_sent,
               s->link.outputs.scheduler.head != NULL, s->lookups);
        printf("  receiver: in flight %lu, unanswered %u, next %lu, credit %lu freed %lu handed %lu received "
               "%lu extra %lu, acks due %d\n",
               p->path.sent.bytes_in_flight, path_unanswered(&p->path), p->path.sent.next,
               p->inlets.session_credit, p->inlets.session_freed, p->inlets.session_handed,
               p->inlets.session_received, p->inlets.extra, acks_due_ns(&p->acks) != NEVER);
        for (unsigned k = 0; k < w->output_count; k++) {
            const struct world_stream *o = &s->streams[k];
            const struct send_stream *out = &o->output.stream;
            printf(
                "  output %u: state %d, number %u, pushed %lu, stored %lu, freed %lu; sent %lu of %lu, lost "
                "%u, credit %lu\n",
                k, o->output.state, out->number, o->pushed, o->stored, o->outlet.queue.freed.records,
                out->sent, o->outlet.queue.published_seen.bytes - out->origin.bytes, out->lost.count,
                out->credit);
            if (o->inlet) {
                const struct receive_stream *in = &o->inlet->stream;
                printf("    inlet %u: freed %lu handed %lu contiguous %lu highest %lu credit %lu stored %lu, "
                       "pieces %u, due %d\n",
                       o->inlet->number, in->freed, in->handed, in->contiguous, in->highest, in->credit,
                       in->stored, in->pieces.count, o->inlet->due);
            }
        }
    }
}

#endif
