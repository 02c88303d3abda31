/* Hosts that send over links to one that listens, each on a loop of its own, in the simulated world; and
 * strangers who put what they like on the way.
 *
 *     10.0.0.2 link ---+
 *     10.0.0.3 link ---+--- paths, tap --- 10.0.0.1:7071 listener -> consumer: stores at once
 *     10.0.0.4 link ---+
 *     10.0.9.9 a peer of no good will: let in, and sends what no link would
 *
 * A record's size and bytes follow from its number, so that whoever gets it can tell whether it is right. */
#ifndef PURE_TESTS_LINK_HOSTS_H
#define PURE_TESTS_LINK_HOSTS_H

#include "link/link.h"
#include "link/link_listener.h"
#include "tests/sim/datagrams.h"

#include <netinet/in.h>
#include <sodium.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define LINKS_SENDERS  3
#define LINKS_PEERS    (LINKS_SENDERS + 1)
#define LINKS_OUTPUTS  2
#define LINKS_LISTENER "10.0.0.1:7071"
#define LINKS_ROGUE    "10.0.9.9:999"

struct links_stream {
    _Alignas(CACHE_LINE) struct link_outlet out;
    uint8_t epoch[FRAME_EPOCH_BYTES];
    uint64_t pushed, total;
    /* of the receiving host: durable */
    uint64_t stored;
    struct inlet *inlet; /* NULL: none is open */
};

struct links_sender {
    _Alignas(CACHE_LINE) struct loop loop;
    struct io *io;
    struct log log;
    struct link link;
    struct host_key key;
    char host[16];
    struct links_stream streams[LINKS_OUTPUTS];
};

/* Who has a key that is let in, and a session, but no link's manners. */
struct links_rogue {
    struct initiator initiator;
    struct indices indices;
    struct host_key key;
    uint64_t number; /* of the next packet */
    struct link_reply reply;
    bool replied;
};

struct links {
    struct sim *sim;
    struct random random;
    unsigned senders, outputs;
    uint32_t mtu;
    struct host_key key; /* the listener's */
    struct io *io;
    struct loop loop;
    struct log log;
    struct link_listener listener;
    bool listening;
    struct links_rogue rogue;
    struct links_sender sender[LINKS_SENDERS];
};

static inline void links_fill(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)random_next(context);
}

static inline struct noise_random links_random(struct links *w)
{
    return (struct noise_random){links_fill, &w->random};
}

/* --- records --- */

static inline size_t links_record(uint64_t n, uint8_t data[64])
{
    size_t size = 8 + n % 32;
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(n * 31 + i * 7);
    return size;
}

static inline void links_push(struct links_stream *stream)
{
    uint8_t data[64];
    uint64_t before = stream->pushed;
    while (stream->pushed < stream->total &&
           outlet_queue(&stream->out.outlet, data, links_record(stream->pushed + 1, data)) == 0)
        stream->pushed++;
    if (stream->pushed != before)
        outlet_push(&stream->out.outlet);
}

/* --- the consumer --- */

static inline int links_admit(void *context, void *peer, const struct frame_open *open, struct inlet *inlet,
                              uint64_t *stored)
{
    struct links_sender *s = peer;
    (void)context;
    if (!s)
        return REFUSED_NO_APP; /* the rogue's */
    assert_true(span_is(open->app, "src") && span_is(open->target, "dst"));
    struct links_stream *stream = &s->streams[open->output.data[0] - '0'];
    assert_memory_equal(open->epoch, stream->epoch, FRAME_EPOCH_BYTES);
    assert_null(stream->inlet);
    *stored = stream->stored = max_u64(stream->stored, open->base);
    stream->inlet = inlet;
    inlet->context = stream;
    return 0;
}

/* What was not stored before must be the next, and right. */
static inline void links_records(void *context, struct inlet *inlet, uint64_t first, struct span records,
                                 uint64_t count)
{
    struct links_stream *stream = inlet->context;
    const uint8_t *at = records.data, *end = at + records.size;
    (void)context;
    for (uint64_t n = first; n < first + count; n++) {
        struct span record;
        uint8_t data[64];
        at += record_get(at, end, &record);
        assert_int_equal(record.size, links_record(n, data));
        assert_memory_equal(record.data, data, record.size);
        if (n <= stream->stored)
            continue;
        assert_int_equal(n, stream->stored + 1);
        stream->stored = n;
    }
    assert_ptr_equal(at, end);
    inlet_freed(inlet, records.size);
    inlet_stored(inlet, stream->stored);
}

static inline void links_closed(void *context, struct inlet *inlet)
{
    struct links_stream *stream = inlet->context;
    (void)context;
    assert_ptr_equal(stream->inlet, inlet);
    stream->inlet = NULL;
}

/* --- hosts that come and go --- */

static inline void links_start_listener(struct links *w)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(7071), .sin_addr.s_addr = htonl(0x0a000001)};
    const struct link_listener_options options = {
        .address = (const struct sockaddr *)&at,
        .address_len = sizeof at,
        .receiver = {.key = &w->key,
                     .random = links_random(w),
                     .ciphers = cipher_hardware(),
                     .peers = LINKS_PEERS,
                     .limits = {.places = 8,
                                .stream_window = 256 << 10,
                                .session_window = 1 << 20,
                                .max_record = 4096}},
    };
    const struct link_consumer consumer = {links_admit, links_records, links_closed, w};
    w->io = sim_io(w->sim, "10.0.0.1");
    assert_int_equal(loop_init(&w->loop, w->io, 8, 4), 0);
    assert_int_equal(link_listener_init(&w->listener, &options, &consumer, &w->loop, &w->log), 0);
    for (unsigned i = 0; i < w->senders; i++)
        assert_int_equal(link_receiver_allow(&w->listener.receiver, w->sender[i].key.public, &w->sender[i]),
                         i);
    sim_add_loop(w->sim, &w->loop);
    w->listening = true;
}

/* As a process that is killed. */
static inline void links_end_listener(struct links *w)
{
    sim_remove_loop(w->sim, &w->loop);
    io_dispose(w->io);
    if (w->listener.fd >= 0)
        sim_close_descriptor(w->sim, w->listener.fd);
    link_listener_dispose(&w->listener);
    loop_dispose(&w->loop);
    w->listening = false;
}

static inline void links_restart_listener(struct links *w)
{
    links_end_listener(w);
    links_start_listener(w);
}

static inline void links_start_sender(struct links *w, unsigned number)
{
    struct links_sender *s = &w->sender[number];
    struct link_options options = {.name = "there",
                                   .host = "10.0.0.1",
                                   .port = 7071,
                                   .literal = true,
                                   .key = &s->key,
                                   .random = links_random(w),
                                   .ciphers = number % 2 ? cipher_hardware() : 0,
                                   .outputs = LINKS_OUTPUTS,
                                   .mtu = w->mtu};
    memcpy(options.remote_public, w->key.public, LINK_KEY_BYTES);
    s->io = sim_io(w->sim, s->host);
    assert_int_equal(loop_init(&s->loop, s->io, 8, 8), 0);
    assert_int_equal(link_init(&s->link, &options, &s->loop, sim_resolver(w->sim, &s->loop), &s->log), 0);
    for (unsigned k = 0; k < w->outputs; k++) {
        struct links_stream *stream = &s->streams[k];
        char name[2] = {(char)('0' + k), '\0'};
        assert_int_equal(
            link_add(&s->link, &stream->out, "src", name, 256 << 10, 4096, stream->epoch, "dst", "ev"), 0);
        stream->pushed = 0;
    }
    sim_add_loop(w->sim, &s->loop);
}

static inline void links_end_sender(struct links *w, unsigned number)
{
    struct links_sender *s = &w->sender[number];
    sim_remove_loop(w->sim, &s->loop);
    io_dispose(s->io);
    for (unsigned i = 0; i < LINK_SOCKETS; i++) {
        if (s->link.sockets[i].fd >= 0)
            sim_close_descriptor(w->sim, s->link.sockets[i].fd);
    }
    link_dispose(&s->link);
    loop_dispose(&s->loop);
}

/* Its outlets hold again what they held from the beginning on: the receiver knows what it has stored. */
static inline void links_restart_sender(struct links *w, unsigned number)
{
    links_end_sender(w, number);
    links_start_sender(w, number);
}

/* Each output has `total` records to send. */
static inline void links_open(struct links *w, uint64_t seed, unsigned senders, unsigned outputs,
                              uint64_t total)
{
    assert_true(sodium_init() >= 0); /* chooses the fast ciphers; what is random comes from the seed */
    memset(w, 0, sizeof *w);
    w->sim = sim_new(seed);
    w->random.state = seed;
    w->senders = senders;
    w->outputs = outputs;
    w->mtu = 1400;
    struct noise_random random = links_random(w);
    host_key_generate(&w->key, &random);
    assert_int_equal(log_init(&w->log, NULL, 0), 0);
    for (unsigned i = 0; i < senders; i++) {
        struct links_sender *s = &w->sender[i];
        snprintf(s->host, sizeof s->host, "10.0.0.%u", i + 2);
        host_key_generate(&s->key, &random);
        assert_int_equal(log_init(&s->log, NULL, 0), 0);
        for (unsigned k = 0; k < outputs; k++) {
            s->streams[k].total = total;
            links_fill(&w->random, s->streams[k].epoch, FRAME_EPOCH_BYTES);
        }
        links_start_sender(w, i);
    }
    links_start_listener(w);
}

static inline void links_close(struct links *w)
{
    for (unsigned i = 0; i < w->senders; i++) {
        links_end_sender(w, i);
        log_dispose(&w->sender[i].log);
    }
    if (w->listening)
        links_end_listener(w);
    log_dispose(&w->log);
    sim_free(w->sim);
}

/* --- runs --- */

/* All is stored and known to be; the producers push what there is room for. */
static inline bool links_done(void *context)
{
    struct links *w = context;
    bool done = true;
    for (unsigned i = 0; i < w->senders; i++) {
        for (unsigned k = 0; k < w->outputs; k++) {
            struct links_stream *stream = &w->sender[i].streams[k];
            links_push(stream);
            done &= stream->out.outlet.queue.freed.records == stream->total;
        }
    }
    return done;
}

static inline void links_finish(struct links *w)
{
    links_done(w);
    assert_int_equal(sim_run(w->sim, sim_now_ns(w->sim) + 300 * NS_PER_S, links_done, w, 3000000), SIM_DONE);
}

static inline void links_finish_more(struct links *w, uint64_t records)
{
    for (unsigned i = 0; i < w->senders; i++) {
        for (unsigned k = 0; k < w->outputs; k++)
            w->sender[i].streams[k].total += records;
    }
    links_finish(w);
}

/* The next line of the log in `text`, "" if there is no more. Returns `text`. */
static inline const char *links_log(struct log *log, char text[600])
{
    struct span line = {NULL, 0};
    record_queue_see_published(&log->lines);
    struct stream_position at = log->lines.freed;
    struct span held = record_queue_span(&log->lines, at.bytes);
    if (held.size > 0) {
        at.bytes += record_get(held.data, held.data + held.size, &line);
        at.records++;
        record_queue_free_to(&log->lines, at);
    }
    snprintf(text, 600, "%.*s", (int)line.size, (const char *)line.data);
    return text;
}

/* --- the rogue --- */

static inline void links_rogue_tap(void *context, const struct sockaddr_storage *from,
                                   const struct sockaddr_storage *to, struct span bytes)
{
    struct links_rogue *r = context;
    const struct sockaddr_in *in = (const struct sockaddr_in *)to;
    (void)from;
    if (in->sin_addr.s_addr != htonl(0x0a000909) || bytes.size != LINK_REPLY_BYTES)
        return;
    memcpy(&r->reply, bytes.data, sizeof r->reply);
    r->replied = true;
}

/* A handshake; the session is confirmed by whatever is sent first. */
static inline void links_rogue_start(struct links *w)
{
    struct links_rogue *r = &w->rogue;
    struct noise_random random = links_random(w);
    struct link_init init;
    struct initiator_terms terms;
    host_key_generate(&r->key, &random);
    assert_true(link_receiver_allow(&w->listener.receiver, r->key.public, NULL) >= 0);
    assert_int_equal(indices_init(&r->indices, INITIATOR_INDICES), 0);
    assert_int_equal(initiator_init(&r->initiator, &r->key, 0, w->key.public, &r->indices, r, &random), 0);
    initiator_want(&r->initiator, true);
    initiator_tick(&r->initiator, sim_now_ns(w->sim));
    assert_int_equal(initiator_write(&r->initiator, sim_now_ns(w->sim), 0, (uint8_t *)&init),
                     LINK_INIT_BYTES);
    sim_set_tap(w->sim, links_rogue_tap, r);
    sim_inject(w->sim, LINKS_ROGUE, LINKS_LISTENER, &init, sizeof init);
    sim_run_for(w->sim, NS_PER_MS);
    sim_set_tap(w->sim, NULL, NULL);
    assert_true(r->replied);
    assert_int_equal(initiator_reply(&r->initiator, sim_now_ns(w->sim), &r->reply, &terms), 0);
}

/* A packet of `size` bytes on its way; `packet` has room for it, and holds the frames behind the head. */
static inline void links_rogue_send(struct links *w, uint8_t *packet, size_t size)
{
    struct session *session = initiator_sealing(&w->rogue.initiator, sim_now_ns(w->sim));
    assert_non_null(session);
    session_seal(session, sim_now_ns(w->sim), w->rogue.number++, packet, size - LINK_DATA_OVERHEAD);
    sim_inject(w->sim, LINKS_ROGUE, LINKS_LISTENER, packet, size);
}

/* A packet of `size` bytes on its way: a PING, the rest PADDING. */
static inline void links_rogue_ping(struct links *w, size_t size)
{
    uint8_t packet[1500] = {0};
    frame_put_ping(packet + LINK_DATA_HEAD, packet + sizeof packet);
    links_rogue_send(w, packet, size);
}

static inline void links_rogue_end(struct links *w)
{
    initiator_dispose(&w->rogue.initiator);
    indices_dispose(&w->rogue.indices);
}

#endif
