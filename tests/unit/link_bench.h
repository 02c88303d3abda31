/* Links into apps: real inlets, whose frames the test makes, and real apps on their owner.
 *
 *     test (as a peer) ──frames──▶ inlets ──▶ link_inlets ──inbox──▶ app ──outlet──▶ test (as a wire)
 *                      ◀── STORED, REFUSED, CREDIT ──┘     the listener's loop │ the owner's loop
 *
 * The bench of these tests; included by each program of them. */
#ifndef PURE_TESTS_UNIT_LINK_BENCH_H
#define PURE_TESTS_UNIT_LINK_BENCH_H

#include "host/link_inlets.h"
#include "host/owned_app.h"
#include "link/stream_limits.h"
#include "tests/sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* --- an app that remembers what it was given: "fail" fails, "send N" sends N bytes --- */

struct given {
    char source[SOURCE_NAME_MAX + 1];
    uint64_t number, time_ms;
    size_t size;
    char text[16];
};

/* Of all apps, in the order they were given: outside of the states, which are undone. */
static struct given seen[20000];
static unsigned seen_count;
static struct random *flaky; /* if set, three of ten tries of any event fail */

static const char *const outputs[] = {"out", NULL};

static inline int noter_open(void **state, const char *arg, char *error, size_t error_size)
{
    (void)arg, (void)error, (void)error_size;
    *state = calloc(1, 1);
    return *state ? 0 : 1;
}

static inline int noter_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    static uint8_t filled[64 << 10];
    (void)state;
    char text[16];
    snprintf(text, sizeof text, "%.*s", (int)min_size(event->size, sizeof text - 1),
             (const char *)event->data);
    if (strcmp(text, "fail") == 0)
        return 1;
    if (strncmp(text, "send ", 5) == 0) {
        int error = pure_send(turn, 0, filled, (size_t)atol(text + 5));
        if (error != 0)
            return error;
    }
    if (flaky && !turn->replaying && random_below(flaky, 10) < 3)
        return 1;
    if (turn->replaying) /* its state is rebuilt behind a failed event */
        return 0;
    assert_true(seen_count < ARRAY_SIZE(seen));
    struct given *g = &seen[seen_count++];
    snprintf(g->source, sizeof g->source, "%s", event->source);
    memcpy(g->text, text, sizeof g->text);
    g->number = event->number;
    g->time_ms = event->time_ms;
    g->size = event->size;
    return 0;
}

static inline int noter_show(void *state, struct pure_sink *sink)
{
    (void)state;
    return pure_write(sink, "shown", 5);
}

static inline int noter_snapshot(void *state, struct pure_sink *sink)
{
    return pure_write(sink, state, 1);
}

static inline int noter_restore(void *state, const void *data, size_t size)
{
    (void)state, (void)data;
    return size == 1 ? 0 : 1;
}

static const struct pure_app noter = {.abi = PURE_APP_ABI,
                                      .outputs = outputs,
                                      .open = noter_open,
                                      .event = noter_event,
                                      .show = noter_show,
                                      .snapshot = noter_snapshot,
                                      .restore = noter_restore,
                                      .close = free};

/* --- the bench: two peers, three apps, of which two may be reached --- */

enum { DASH, SIDE, UNLINKED, APPS };
enum { ANN, BOB, PEERS };

#define QUEUE_BYTES  4096        /* of dash's outlet */
#define INBOX_BYTES  (64 * 1024) /* the least that the configuration takes */
#define WINDOW_BYTES (128 * 1024)
#define PEER_STREAMS 8
#define STREAMS      64

/* What the peer was told of one of its streams. */
struct told {
    uint64_t stored, credit, reason;
    unsigned stored_frames; /* whose number was higher than the one before */
    uint64_t stored_ns;     /* when the last of these came */
};

struct peer {
    struct inlets inlets;
    struct sent sent;
    struct link_peer_access access;
    bool apps[APPS];
    struct told told[STREAMS];
};

struct bench {
    struct sim *sim;
    struct loop owner, listener;
    struct log log;
    struct config_app config[APPS];
    struct owned_app apps[APPS];
    struct registry_app *registry[APPS];
    struct outlet outlet;
    struct link_inlets li;
    struct peer peers[PEERS];
    unsigned wants;
};

static inline void take_frames(struct bench *b, struct peer *p)
{
    uint8_t bytes[1200];
    size_t size;
    while ((size = inlets_fill(&p->inlets, &p->sent, bytes, bytes + sizeof bytes)) > 0) {
        sent_restart(&p->sent, 0);
        struct frame frame;
        for (const uint8_t *at = bytes, *end = bytes + size; at < end;) {
            ptrdiff_t framed = frame_get(at, end, &frame);
            assert_true(framed > 0);
            at += framed;
            if (frame.type == FRAME_STORED) {
                struct told *told = &p->told[frame.stored.stream];
                told->credit = frame.stored.credit;
                if (frame.stored.stored <= told->stored)
                    continue;
                told->stored = frame.stored.stored;
                told->stored_frames++;
                told->stored_ns = sim_now_ns(b->sim);
            } else if (frame.type == FRAME_REFUSED) {
                p->told[frame.refused.stream].reason = frame.refused.reason;
                p->told[frame.refused.stream].stored = frame.refused.stored;
            }
        }
    }
}

static inline void want(void *context)
{
    struct bench *b = context;
    b->wants++;
    for (unsigned i = 0; i < PEERS; i++)
        take_frames(b, &b->peers[i]);
}

static inline void wants(struct inlets *in)
{
    (void)in;
}

static inline void open_app(struct bench *b, unsigned index, const char *name)
{
    struct owned_app *app = &b->apps[index];
    b->config[index] = (struct config_app){.name = (char *)name, .arg = "", .inbox_bytes = INBOX_BYTES};
    struct app_journal_options none = {.durability = DURABILITY_MEMORY};
    assert_int_equal(owned_app_init(app, &b->config[index], &noter, "", &b->owner, &b->log, &none, NULL), 0);
    app->entry.inbox.front = &b->listener.board;
    app->entry.inbox.front_slot = 63; /* nobody's */
    b->registry[index] = &app->entry;
    if (index != UNLINKED)
        assert_int_equal(owned_app_add_links(app, INBOX_BYTES), 0);
}

static inline void open_outlet(struct bench *b)
{
    assert_int_equal(outlet_init(&b->outlet, "test", "dash", "out", QUEUE_BYTES, 1 << 20), 0);
    b->outlet.consumer = &b->listener.board;
    b->outlet.consumer_slot = 63;
    b->outlet.producer = &b->owner.board;
    b->outlet.producer_slot = b->apps[DASH].task.slot;
    b->apps[DASH].turn.outlets[0].outlet = &b->outlet;
}

static inline void open_peer(struct bench *b, unsigned index, const char *name)
{
    struct peer *p = &b->peers[index];
    p->access = (struct link_peer_access){.name = name, .apps = p->apps};
    memset(p->access.key, (int)(0xf0 + index), LINK_KEY_BYTES); /* its text begins with '/' and '+', too */
    p->apps[DASH] = p->apps[UNLINKED] = true;
    struct inlet_limits limits = {
        .places = 8, .stream_window = WINDOW_BYTES, .session_window = 8 * WINDOW_BYTES, .max_record = 100000};
    assert_int_equal(inlets_init(&p->inlets, &limits, &b->li.consumer, &p->access, wants), 0);
    assert_int_equal(sent_init(&p->sent, 64, 0), 0);
}

static inline void *bench_open(void)
{
    struct bench *b = aligned_alloc(CACHE_LINE, (sizeof *b + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    assert_non_null(b);
    memset(b, 0, sizeof *b);
    seen_count = 0;
    b->sim = sim_new(1);
    assert_int_equal(loop_init(&b->owner, sim_io(b->sim, NULL), 64, 64), 0);
    assert_int_equal(loop_init(&b->listener, sim_io(b->sim, NULL), 64, 64), 0);
    assert_int_equal(log_init(&b->log, NULL, 0), 0);
    sim_add_loop(b->sim, &b->owner);
    sim_add_loop(b->sim, &b->listener);
    open_app(b, DASH, "dash");
    open_app(b, SIDE, "side");
    open_app(b, UNLINKED, "unlinked");
    open_outlet(b);
    struct link_inlets_options options = {.apps = b->registry,
                                          .app_count = APPS,
                                          .peer_streams = PEER_STREAMS,
                                          .loop = &b->listener,
                                          .log = &b->log,
                                          .want = want,
                                          .want_context = b};
    assert_int_equal(link_inlets_init(&b->li, &options), 0);
    open_peer(b, ANN, "ann");
    open_peer(b, BOB, "bob");
    return b;
}

static inline void bench_close(struct bench *b)
{
    for (unsigned i = 0; i < PEERS; i++) {
        inlets_dispose(&b->peers[i].inlets);
        sent_dispose(&b->peers[i].sent);
    }
    link_inlets_dispose(&b->li);
    for (unsigned i = 0; i < APPS; i++)
        owned_app_dispose(&b->apps[i]);
    outlet_dispose(&b->outlet);
    log_dispose(&b->log);
    sim_remove_loop(b->sim, &b->owner);
    sim_remove_loop(b->sim, &b->listener);
    loop_dispose(&b->owner);
    loop_dispose(&b->listener);
    sim_free(b->sim);
    free(b);
}

static inline void settle(struct bench *b)
{
    want(b); /* what OPEN and END made due */
    assert_int_equal(sim_run_for(b->sim, NS_PER_S), SIM_TIME);
}

/* --- a peer's stream --- */

struct feed {
    struct bench *b;
    struct peer *peer;
    uint32_t number; /* of the stream: below STREAMS */
    uint64_t offset, records;
};

static inline struct frame_open an_open(uint32_t number, uint64_t first)
{
    struct frame_open open = {.stream = number,
                              .base = first - 1,
                              .first = first,
                              .app = span_text("src"),
                              .output = span_text("out"),
                              .target = span_text("dash"),
                              .event = span_text("count")};
    memset(open.epoch, 1, sizeof open.epoch);
    return open;
}

static inline struct feed feed_open(struct bench *b, unsigned peer, const struct frame_open *open)
{
    struct feed feed = {.b = b, .peer = &b->peers[peer], .number = open->stream, .records = open->first - 1};
    feed.peer->told[open->stream] = (struct told){.stored = open->first - 1, .credit = LINK_STREAM_CREDIT};
    assert_int_equal(inlets_open(&feed.peer->inlets, open), 0);
    take_frames(b, feed.peer);
    return feed;
}

static inline struct feed feed_from(struct bench *b, unsigned peer, uint32_t number, uint64_t first)
{
    struct frame_open open = an_open(number, first);
    return feed_open(b, peer, &open);
}

static inline struct told *told(const struct feed *f)
{
    return &f->peer->told[f->number];
}

/* One record: the text, and zeroes up to `size` (0: nothing). False: there is no credit for it. */
static inline bool feed_put(struct feed *f, const char *text, size_t size)
{
    static uint8_t bytes[128 << 10];
    size = size < strlen(text) ? strlen(text) : size;
    size_t prefix = varint_put(bytes, size);
    if (f->offset + prefix + size > told(f)->credit)
        return false;
    memset(bytes + prefix, 0, size);
    memcpy(bytes + prefix, text, strlen(text));
    struct frame_records records = {f->number, f->offset, span_of(bytes, prefix + size)};
    assert_int_equal(inlets_records(&f->peer->inlets, &records), 0);
    f->offset += prefix + size;
    f->records++;
    return true;
}

static inline void feed_deliver(struct feed *f)
{
    inlets_deliver(&f->peer->inlets);
}

/* Each of the records, in one packet. */
static inline void feed_all(struct feed *f, const char *const *records)
{
    for (; *records; records++)
        assert_true(feed_put(f, *records, 0));
    feed_deliver(f);
}

static inline void feed_end(struct feed *f)
{
    struct frame_records end = {f->number, f->offset, span_of(NULL, 0)};
    assert_int_equal(inlets_records(&f->peer->inlets, &end), 0);
}

#define RECORDS(...)      \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

static inline void expect_stored(const struct feed *f, uint64_t number)
{
    assert_int_equal(told(f)->reason, 0);
    assert_int_equal(told(f)->stored, number);
}

static inline void expect_refused(const struct feed *f, uint64_t reason, uint64_t stored)
{
    assert_int_equal(told(f)->reason, reason);
    assert_int_equal(told(f)->stored, stored);
}

static inline void expect_seen(unsigned index, const char *source, uint64_t number, const char *text)
{
    assert_true(index < seen_count);
    assert_string_equal(seen[index].source, source);
    assert_int_equal(seen[index].number, number);
    assert_string_equal(seen[index].text, text);
}

/* Takes all that dash's outlet holds as stored. */
static inline void drain_outlet(struct bench *b)
{
    outlet_stored(&b->outlet, record_queue_see_published(&b->outlet.queue));
}

static inline unsigned logged(struct bench *b, const char *text)
{
    record_queue_see_published(&b->log.lines);
    struct span lines = record_queue_span(&b->log.lines, b->log.lines.freed.bytes);
    unsigned count = 0;
    const uint8_t *at = lines.data, *end = at + lines.size;
    while ((at = memmem(at, (size_t)(end - at), text, strlen(text)))) {
        count++;
        at++;
    }
    return count;
}

/* Nothing is left of streams that have ended. */
static inline void expect_no_streams(const struct bench *b)
{
    for (unsigned i = 0; i < PEERS; i++)
        assert_int_equal(b->peers[i].access.streams, 0);
}

#endif
