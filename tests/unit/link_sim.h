/* Links on their loops, in a simulated world: what is tested is link/link.c, between apps that push records
 * and receivers that store them.
 *
 *     push --> [ links 0, 1 on 10.0.0.1 ] ---- simulated UDP ----> [ listener 0 on 10.0.0.2:7071 ] --> store
 *                                                                  [ listener 1 on 10.0.0.3:7071 ]
 *
 * Link i goes to the name "peerI", which is 10.0.0.2 or 10.0.0.3. A record's size and bytes follow from its
 * number, so that whoever gets it can tell whether it is right. Included by the tests of links; each is one
 * program, and has one world at a time. */
#ifndef PURE_TESTS_UNIT_LINK_SIM_H
#define PURE_TESTS_UNIT_LINK_SIM_H

#include "core/error.h"
#include "link/link.h"
#include "link/link_listener.h"
#include "tests/sim/datagrams.h"

#include <netinet/in.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sodium.h>
#include <cmocka.h>

#define HERE         "10.0.0.1"
#define PORT         7071
#define LINKS        2
#define OUTPUTS      3
#define QUEUE_BYTES  (4 << 20)
#define RECORD_BYTES 3000 /* the most */

static const char *const receiver_hosts[LINKS] = {"10.0.0.2", "10.0.0.3"};
static const char *const peer_names[LINKS] = {"peer0", "peer1"};

/* --- faults of the sending host's seam, which the simulated one does not have --- */

struct seam {
    const struct io_backend *real;
    int send_error;     /* every datagram send ends so; 0: they go */
    int receive_error;  /* every receive that is begun ends so */
    bool stuck;         /* sends are taken and not completed, but by a cancel */
    struct io_op *held; /* those */
    uint64_t batches;   /* sends of several segments that were handed over */
    uint64_t sends;
};

static struct seam seam;

static inline void seam_append(struct io_op **list, struct io_op *op)
{
    while (*list)
        list = &(*list)->next;
    op->next = NULL;
    *list = op;
}

static inline bool seam_take(struct io_op **list, struct io_op *op)
{
    while (*list && *list != op)
        list = &(*list)->next;
    if (!*list)
        return false;
    *list = op->next;
    return true;
}

/* What is not handed over to the simulated seam fails at once, or is held. */
static inline struct io_op *seam_sort(struct io_op *first, struct io_op **failed)
{
    struct io_op *rest = NULL;
    for (struct io_op *op = first, *next; op; op = next) {
        next = op->next;
        bool send = op->kind == IO_DATAGRAM_SEND;
        seam.sends += send;
        seam.batches += send && op->datagram.segment > 0 && op->size > op->datagram.segment;
        if ((send && seam.send_error) || (op->kind == IO_DATAGRAM_RECV && seam.receive_error))
            seam_append(failed, op);
        else
            seam_append(send && seam.stuck ? &seam.held : &rest, op);
    }
    return rest;
}

static inline struct io_op *seam_sort_cancels(struct io_op *cancels, struct io_op *failed,
                                              struct io_op **cancelled)
{
    struct io_op *rest = NULL;
    for (struct io_op *op = cancels, *next; op; op = next) {
        next = op->cancel_next;
        bool fails = false;
        for (struct io_op *f = failed; f; f = f->next)
            fails |= f == op;
        if (fails)
            continue;
        if (seam_take(&seam.held, op)) {
            seam_append(cancelled, op);
            continue;
        }
        op->cancel_next = rest;
        rest = op;
    }
    return rest;
}

static inline int seam_wait(struct io *io, struct io_op *first, struct io_op *cancels, uint64_t deadline_ns)
{
    struct io_op *failed = NULL, *cancelled = NULL;
    first = seam_sort(first, &failed);
    cancels = seam_sort_cancels(cancels, failed, &cancelled);
    int count = seam.real->wait(io, first, cancels, failed || cancelled ? 0 : deadline_ns);
    for (struct io_op *next; failed; failed = next, count++) {
        next = failed->next;
        io_complete(io, failed, failed->kind == IO_DATAGRAM_SEND ? seam.send_error : seam.receive_error,
                    false);
    }
    for (struct io_op *next; cancelled; cancelled = next, count++) {
        next = cancelled->next;
        io_complete(io, cancelled, -ECANCELED, false);
    }
    return count;
}

static inline struct io *seam_io(struct sim *sim)
{
    static struct io_backend faulty;
    struct io *io = sim_io(sim, HERE);
    seam = (struct seam){.real = io->backend};
    faulty = *io->backend;
    faulty.wait = seam_wait;
    io->backend = &faulty;
    return io;
}

/* --- the world --- */

/* What is stored of an output, wherever it came to. */
struct store {
    uint64_t stored;
    uint64_t wrong;   /* records whose bytes were not theirs: never */
    uint64_t records; /* handed over, duplicates too */
    int refuse;       /* what `admit` answers; 0: it lets in */
};

struct sending {
    _Alignas(CACHE_LINE) struct link link;
    struct link_outlet outlets[OUTPUTS];
    struct host_key key;
    uint64_t pushed[OUTPUTS];
    struct store stores[OUTPUTS];
    bool up;
};

struct receiving {
    struct loop loop;
    struct log log;
    struct link_listener listener;
    struct link_consumer consumer;
    struct host_key key;
    uint32_t peer;
    bool up;
};

struct world {
    struct sim *sim;
    struct random random;
    struct loop loop;
    struct log log;
    struct resolver *resolver;
    struct sending links[LINKS];
    unsigned link_count;
    struct receiving receivers[LINKS];
    uint32_t mtu;
    /* as the tap sees it: what leaves HERE */
    uint64_t datagrams, last_ns, longest_pause_ns;
};

static inline void world_fill_random(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)random_next(context);
}

static inline struct noise_random world_random(struct world *w)
{
    return (struct noise_random){world_fill_random, &w->random};
}

/* --- records --- */

static inline size_t record_size(uint64_t n)
{
    return n % 11 == 3 ? 1 + n * 7919 % RECORD_BYTES : 20 + n % 200;
}

static inline uint8_t record_byte(uint64_t n, size_t at)
{
    return (uint8_t)(n * 31 + at * 7);
}

static inline void push(struct world *w, unsigned link, unsigned output, uint64_t count)
{
    struct sending *s = &w->links[link];
    for (; count > 0; count--) {
        uint8_t data[RECORD_BYTES];
        uint64_t n = ++s->pushed[output];
        for (size_t i = 0; i < record_size(n); i++)
            data[i] = record_byte(n, i);
        assert_int_equal(outlet_queue(&s->outlets[output].outlet, data, record_size(n)), 0);
    }
    outlet_push(&s->outlets[output].outlet);
}

/* --- the consumers --- */

static inline int consumer_admit(void *context, void *peer, const struct frame_open *open,
                                 struct inlet *inlet, uint64_t *stored)
{
    struct sending *s = peer;
    struct store *store = &s->stores[open->output.data[0] - '0'];
    (void)context;
    assert_true(span_is(open->app, "app") && span_is(open->target, "there") && span_is(open->event, "ev"));
    *stored = store->stored;
    if (store->refuse)
        return store->refuse;
    inlet->context = store;
    return open->first > store->stored + 1 ? REFUSED_GAP : 0;
}

static inline void consumer_records(void *context, struct inlet *inlet, uint64_t first, struct span records,
                                    uint64_t count)
{
    (void)context;
    struct store *store = inlet->context;
    const uint8_t *at = records.data, *end = at + records.size;
    for (uint64_t n = first; n < first + count; n++) {
        struct span record;
        at += record_get(at, end, &record);
        store->records++;
        store->wrong += record.size != record_size(n);
        for (size_t i = 0; i < record.size; i++)
            store->wrong += record.data[i] != record_byte(n, i);
        assert_true(n <= store->stored + 1);
        store->stored = max_u64(store->stored, n);
    }
    inlet_freed(inlet, records.size);
    inlet_stored(inlet, store->stored);
}

static inline void consumer_closed(void *context, struct inlet *inlet)
{
    (void)context, (void)inlet;
}

/* --- its hosts --- */

static inline void start_receiver(struct world *w, unsigned number)
{
    struct receiving *r = &w->receivers[number];
    assert_int_equal(loop_init(&r->loop, sim_io(w->sim, receiver_hosts[number]), 4, 4), 0);
    assert_int_equal(log_init(&r->log, NULL, 0), 0);
    sim_add_loop(w->sim, &r->loop);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct link_listener_options options = {.address = (struct sockaddr *)&any,
                                            .address_len = sizeof any,
                                            .receiver = {.key = &r->key,
                                                         .random = world_random(w),
                                                         .ciphers = cipher_hardware(),
                                                         .peers = LINKS,
                                                         .limits = {8, 64 << 10, 256 << 10, RECORD_BYTES}}};
    r->consumer = (struct link_consumer){consumer_admit, consumer_records, consumer_closed, NULL};
    assert_int_equal(link_listener_init(&r->listener, &options, &r->consumer, &r->loop, &r->log), 0);
    for (unsigned i = 0; i < w->link_count; i++) {
        int peer = link_receiver_allow(&r->listener.receiver, w->links[i].key.public, &w->links[i]);
        assert_true(peer >= 0);
        if (i == number)
            r->peer = (uint32_t)peer;
    }
    r->up = true;
}

static inline bool listener_stopped(void *context)
{
    return link_listener_stopped(context);
}

/* It says goodbye, unless its host is silent. */
static inline void end_receiver(struct world *w, unsigned number)
{
    struct receiving *r = &w->receivers[number];
    link_listener_stop(&r->listener);
    uint64_t until_ns = sim_now_ns(w->sim) + 2 * NS_PER_S;
    assert_int_equal(sim_run(w->sim, until_ns, listener_stopped, &r->listener, 1000000), SIM_DONE);
    link_listener_dispose(&r->listener);
    sim_remove_loop(w->sim, &r->loop);
    io_dispose(r->loop.io);
    loop_dispose(&r->loop);
    log_dispose(&r->log);
    r->up = false;
}

static inline void name_is(struct world *w, unsigned link, int error, const char *host, uint64_t delay_ns)
{
    struct sim_answer answer = {.error = error, .addresses = {host}, .delay_ns = delay_ns};
    sim_set_name(w->sim, peer_names[link], &answer);
}

static inline void start_link(struct world *w, unsigned number)
{
    struct sending *s = &w->links[number];
    struct link_options options = {.name = peer_names[number],
                                   .host = peer_names[number],
                                   .port = PORT,
                                   .key = &s->key,
                                   .random = world_random(w),
                                   .ciphers = number % 2 ? cipher_hardware() : 0,
                                   .outputs = OUTPUTS,
                                   .mtu = w->mtu};
    memcpy(options.remote_public, w->receivers[number].key.public, LINK_KEY_BYTES);
    assert_int_equal(link_init(&s->link, &options, &w->loop, w->resolver, &w->log), 0);
    for (unsigned i = 0; i < OUTPUTS; i++) {
        char name[] = {(char)('0' + i), '\0'};
        uint8_t epoch[FRAME_EPOCH_BYTES] = {1, (uint8_t)i};
        assert_int_equal(
            link_add(&s->link, &s->outlets[i], "app", name, QUEUE_BYTES, RECORD_BYTES, epoch, "there", "ev"),
            0);
        s->outlets[i].outlet.producer = &w->loop.board;
        s->outlets[i].outlet.producer_slot = 63;
    }
    s->up = true;
}

static inline void world_tap(void *context, const struct sockaddr_storage *from,
                             const struct sockaddr_storage *to, struct span bytes)
{
    struct world *w = context;
    (void)to, (void)bytes;
    if (((const struct sockaddr_in *)from)->sin_port == htons(PORT))
        return;
    uint64_t now_ns = sim_now_ns(w->sim);
    w->datagrams++;
    w->longest_pause_ns = max_u64(w->longest_pause_ns, now_ns - w->last_ns);
    w->last_ns = now_ns;
}

/* The names are known, and nobody is up yet. */
static inline struct world *world_new(uint64_t seed, unsigned links)
{
    struct world *w = aligned_alloc(CACHE_LINE, sizeof *w);
    assert_non_null(w);
    memset(w, 0, sizeof *w);
    w->sim = sim_new(seed);
    w->random.state = seed;
    w->link_count = links;
    w->mtu = 1472;
    assert_true(sodium_init() >= 0);
    struct noise_random random = world_random(w);
    for (unsigned i = 0; i < LINKS; i++) {
        host_key_generate(&w->links[i].key, &random);
        host_key_generate(&w->receivers[i].key, &random);
        name_is(w, i, 0, receiver_hosts[i], NS_PER_MS);
    }
    assert_int_equal(loop_init(&w->loop, seam_io(w->sim), 64, 8), 0);
    sim_add_loop(w->sim, &w->loop);
    w->resolver = sim_resolver(w->sim, &w->loop);
    assert_int_equal(log_init(&w->log, NULL, 0), 0);
    sim_set_tap(w->sim, world_tap, w);
    w->last_ns = sim_now_ns(w->sim);
    return w;
}

/* All are up. */
static inline struct world *world_start(uint64_t seed, unsigned links)
{
    struct world *w = world_new(seed, links);
    for (unsigned i = 0; i < links; i++) {
        start_receiver(w, i);
        start_link(w, i);
    }
    return w;
}

static inline bool world_stopped(void *context)
{
    struct world *w = context;
    for (unsigned i = 0; i < w->link_count; i++) {
        if (w->links[i].up && !link_stopped(&w->links[i].link))
            return false;
    }
    return true;
}

/* Stops the links in order, and sees that this takes no longer than it may, and that nothing is left. */
static inline void world_stop_links(struct world *w)
{
    uint64_t begin_ns = sim_now_ns(w->sim);
    for (unsigned i = 0; i < w->link_count; i++) {
        if (w->links[i].up)
            link_stop(&w->links[i].link);
    }
    assert_int_equal(sim_run(w->sim, begin_ns + 2 * NS_PER_S, world_stopped, w, 100000), SIM_DONE);
    for (unsigned i = 0; i < w->link_count; i++) {
        if (!w->links[i].up)
            continue;
        assert_false(w->links[i].link.lookup.in_flight);
        for (unsigned k = 0; k < LINK_BUFFERS; k++)
            assert_false(w->links[i].link.buffers[k].op.in_flight);
        link_dispose(&w->links[i].link);
        w->links[i].up = false;
    }
}

static inline void world_end(struct world *w)
{
    world_stop_links(w);
    for (unsigned i = 0; i < LINKS; i++) {
        for (unsigned k = 0; k < OUTPUTS; k++)
            assert_int_equal(w->links[i].stores[k].wrong, 0);
        if (w->receivers[i].up)
            end_receiver(w, i);
    }
    assert_int_equal(sim_open_descriptors(w->sim), 0);
    assert_int_equal(w->loop.timers.count, 0);
    sim_remove_loop(w->sim, &w->loop);
    loop_dispose(&w->loop);
    log_dispose(&w->log);
    sim_free(w->sim);
    free(w);
}

/* --- what became of it --- */

static inline uint64_t freed(const struct world *w, unsigned link, unsigned output)
{
    return w->links[link].outlets[output].outlet.queue.freed.records;
}

static inline bool all_freed(void *context)
{
    struct world *w = context;
    for (unsigned i = 0; i < w->link_count; i++) {
        for (unsigned k = 0; k < OUTPUTS; k++) {
            if (w->links[i].up && freed(w, i, k) < w->links[i].pushed[k])
                return false;
        }
    }
    return true;
}

/* Until all is stored and known to be; within that time. */
static inline void run_until_freed(struct world *w, uint64_t ns)
{
    assert_int_equal(sim_run(w->sim, sim_now_ns(w->sim) + ns, all_freed, w, 3000000), SIM_DONE);
}

static inline void run_for(struct world *w, uint64_t ns)
{
    assert_int_equal(sim_run_for(w->sim, ns), SIM_TIME);
}

static inline struct outlet_report *report_of(struct world *w, unsigned link, unsigned output)
{
    return &w->links[link].outlets[output].outlet.report;
}

static inline void assert_state(struct world *w, unsigned link, unsigned output, enum outlet_state state,
                                int error)
{
    char text[200], expected[200] = "";
    outlet_error_text(&w->links[link].outlets[output].outlet, text, sizeof text);
    assert_int_equal(report_of(w, link, output)->state, state);
    assert_int_equal(report_of(w, link, output)->error, error);
    if (error)
        snprintf(expected, sizeof expected, "%s", pure_error_text(error));
    assert_non_null(strstr(text, expected));
    assert_true(error != 0 || text[0] == '\0');
}

/* How many lines the log holds that have `text` in them. */
static inline unsigned said(struct log *log, const char *text)
{
    unsigned lines = 0;
    struct record_queue *q = &log->lines;
    record_queue_see_published(q);
    assert_int_equal(log->dropped, 0);
    struct span rest = record_queue_span(q, q->freed.bytes), line;
    while (rest.size > 0) {
        size_t framed = record_get(rest.data, rest.data + rest.size, &line);
        lines += memmem(line.data, line.size, text, strlen(text)) != NULL;
        rest = span_of(rest.data + framed, rest.size - framed);
    }
    return lines;
}

#endif
