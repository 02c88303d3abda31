/* Links into apps: real inlets, whose frames the test makes, and real apps on their owner.
 *
 *     test (as a peer) ──frames──▶ inlets ──▶ link_inlets ──inbox──▶ app ──outlet──▶ test (as a wire)
 *                      ◀── STORED, REFUSED, CREDIT ──┘     the listener's loop │ the owner's loop
 */
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

static int noter_open(void **state, const char *arg, char *error, size_t error_size)
{
    (void)arg, (void)error, (void)error_size;
    *state = calloc(1, 1);
    return *state ? 0 : 1;
}

static int noter_event(void *state, struct pure_turn *turn, const struct pure_event *event)
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

static int noter_show(void *state, struct pure_sink *sink)
{
    (void)state;
    return pure_write(sink, "shown", 5);
}

static int noter_snapshot(void *state, struct pure_sink *sink)
{
    return pure_write(sink, state, 1);
}

static int noter_restore(void *state, const void *data, size_t size)
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

static void take_frames(struct bench *b, struct peer *p)
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

static void want(void *context)
{
    struct bench *b = context;
    b->wants++;
    for (unsigned i = 0; i < PEERS; i++)
        take_frames(b, &b->peers[i]);
}

static void wants(struct inlets *in)
{
    (void)in;
}

static void open_app(struct bench *b, unsigned index, const char *name)
{
    struct owned_app *app = &b->apps[index];
    b->config[index] = (struct config_app){.name = (char *)name, .arg = "", .inbox_bytes = INBOX_BYTES};
    assert_int_equal(owned_app_init(app, &b->config[index], &noter, "", &b->owner, &b->log), 0);
    app->entry.inbox.front = &b->listener.board;
    app->entry.inbox.front_slot = 63; /* nobody's */
    b->registry[index] = &app->entry;
    if (index != UNLINKED)
        assert_int_equal(owned_app_add_links(app, INBOX_BYTES), 0);
}

static void open_outlet(struct bench *b)
{
    assert_int_equal(outlet_init(&b->outlet, "test", "dash", "out", QUEUE_BYTES, 1 << 20), 0);
    b->outlet.consumer = &b->listener.board;
    b->outlet.consumer_slot = 63;
    b->outlet.producer = &b->owner.board;
    b->outlet.producer_slot = b->apps[DASH].task.slot;
    b->apps[DASH].turn.outlets[0].outlet = &b->outlet;
}

static void open_peer(struct bench *b, unsigned index, const char *name)
{
    struct peer *p = &b->peers[index];
    p->access = (struct link_peer_access){.name = name, .apps = p->apps};
    memset(p->access.key, (int)(0xf0 + index), LINK_KEY_BYTES); /* its text begins with '/' and '+', too */
    p->apps[DASH] = p->apps[UNLINKED] = true;
    struct inlet_limits limits = {8, WINDOW_BYTES, 8 * WINDOW_BYTES, 100000};
    assert_int_equal(inlets_init(&p->inlets, &limits, &b->li.consumer, &p->access, wants), 0);
    assert_int_equal(sent_init(&p->sent, 64, 0), 0);
}

static void *bench_open(void)
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

static void bench_close(struct bench *b)
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

static void settle(struct bench *b)
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

static struct frame_open an_open(uint32_t number, uint64_t first)
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

static struct feed feed_open(struct bench *b, unsigned peer, const struct frame_open *open)
{
    struct feed feed = {.b = b, .peer = &b->peers[peer], .number = open->stream, .records = open->first - 1};
    feed.peer->told[open->stream] = (struct told){.stored = open->first - 1, .credit = LINK_STREAM_CREDIT};
    assert_int_equal(inlets_open(&feed.peer->inlets, open), 0);
    take_frames(b, feed.peer);
    return feed;
}

static struct feed feed_from(struct bench *b, unsigned peer, uint32_t number, uint64_t first)
{
    struct frame_open open = an_open(number, first);
    return feed_open(b, peer, &open);
}

static struct told *told(const struct feed *f)
{
    return &f->peer->told[f->number];
}

/* One record: the text, and zeroes up to `size` (0: nothing). False: there is no credit for it. */
static bool feed_put(struct feed *f, const char *text, size_t size)
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

static void feed_deliver(struct feed *f)
{
    inlets_deliver(&f->peer->inlets);
}

/* Each of the records, in one packet. */
static void feed_all(struct feed *f, const char *const *records)
{
    for (; *records; records++)
        assert_true(feed_put(f, *records, 0));
    feed_deliver(f);
}

static void feed_end(struct feed *f)
{
    struct frame_records end = {f->number, f->offset, span_of(NULL, 0)};
    assert_int_equal(inlets_records(&f->peer->inlets, &end), 0);
}

#define RECORDS(...)      \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

static void expect_stored(const struct feed *f, uint64_t number)
{
    assert_int_equal(told(f)->reason, 0);
    assert_int_equal(told(f)->stored, number);
}

static void expect_refused(const struct feed *f, uint64_t reason, uint64_t stored)
{
    assert_int_equal(told(f)->reason, reason);
    assert_int_equal(told(f)->stored, stored);
}

static void expect_seen(unsigned index, const char *source, uint64_t number, const char *text)
{
    assert_true(index < seen_count);
    assert_string_equal(seen[index].source, source);
    assert_int_equal(seen[index].number, number);
    assert_string_equal(seen[index].text, text);
}

/* Takes all that dash's outlet holds as stored. */
static void drain_outlet(struct bench *b)
{
    outlet_stored(&b->outlet, record_queue_see_published(&b->outlet.queue));
}

static unsigned logged(struct bench *b, const char *text)
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
static void expect_no_streams(const struct bench *b)
{
    for (unsigned i = 0; i < PEERS; i++)
        assert_int_equal(b->peers[i].access.streams, 0);
}

/* --- tests --- */

static void records_reach_their_app_and_stored_numbers_come_back(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a", "b"));
    settle(b);
    expect_stored(&f, 2);
    feed_all(&f, RECORDS("c"));
    settle(b);
    expect_stored(&f, 3);
    assert_int_equal(seen_count, 3);
    expect_seen(0, "ann/src/out", 1, "a");
    expect_seen(2, "ann/src/out", 3, "c");
    assert_in_range(seen[2].time_ms, SIM_START_WALL_MS + 1000, SIM_START_WALL_MS + 1001);
    feed_end(&f);
    expect_no_streams(b);
    bench_close(b);
}

/* A stream that begins in the middle, as after a refusal or in a new association. */
static void records_of_a_later_stream_count_once(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed first = feed_from(b, ANN, 0, 1);
    feed_all(&first, RECORDS("a", "b", "c"));
    inlets_begin(&b->peers[ANN].inlets); /* before anything of it was stored */
    struct feed second = feed_from(b, ANN, 0, 1);
    feed_all(&second, RECORDS("a", "b", "c", "d"));
    settle(b);
    expect_stored(&second, 4);
    struct frame_open open = an_open(1, 3); /* its sender was told of 2 */
    struct feed third = feed_open(b, ANN, &open);
    feed_all(&third, RECORDS("c", "d"));
    settle(b);
    expect_stored(&third, 4);
    assert_int_equal(seen_count, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(seen[i].number, i + 1);
    assert_int_equal(counter_read(&b->apps[DASH].entry.report.duplicates), 5);
    bench_close(b);
}

static void a_gap_is_refused_with_the_number_that_the_app_has(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a", "b"));
    settle(b);
    struct frame_open open = an_open(1, 6);
    open.base = 4; /* said by one that was given two: it has lost two, but that is not all */
    struct feed gap = feed_open(b, ANN, &open);
    feed_all(&gap, RECORDS("e"));
    settle(b);
    expect_refused(&gap, REFUSED_GAP, 2);
    assert_int_equal(seen_count, 2);
    feed_all(&f, RECORDS("c")); /* the other goes on */
    settle(b);
    expect_stored(&f, 3);
    bench_close(b);
}

static void a_retired_epoch_is_refused(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed old = feed_from(b, ANN, 0, 1);
    feed_all(&old, RECORDS("a", "b"));
    struct frame_open open = an_open(1, 1);
    memset(open.epoch, 2, sizeof open.epoch);
    struct feed new = feed_open(b, ANN, &open);
    settle(b);
    feed_all(&new, RECORDS("A"));
    settle(b);
    expect_stored(&old, 2);
    expect_stored(&new, 1);
    feed_all(&old, RECORDS("c"));
    settle(b);
    expect_refused(&old, REFUSED_RETIRED, 2);
    assert_int_equal(seen_count, 3);
    assert_int_equal(logged(b, "a link from ann to app 'dash' is refused: its epoch"), 1);
    bench_close(b);
}

static void two_peers_with_the_same_names_do_not_mix(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed ann = feed_from(b, ANN, 0, 1), bob = feed_from(b, BOB, 0, 1);
    feed_all(&ann, RECORDS("a", "b"));
    feed_all(&bob, RECORDS("A"));
    settle(b);
    expect_stored(&ann, 2);
    expect_stored(&bob, 1);
    assert_int_equal(seen_count, 3);
    assert_int_equal(counter_read(&b->apps[DASH].entry.report.duplicates), 0);
    assert_int_equal(b->apps[DASH].intake.streams.count, 2);
    bench_close(b);
}

/* A peer is its key: renamed, it goes on where it was. */
static void a_peer_that_is_renamed_goes_on(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a"));
    settle(b);
    b->peers[ANN].access.name = "anna";
    inlets_begin(&b->peers[ANN].inlets);
    f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a", "b"));
    settle(b);
    expect_stored(&f, 2);
    assert_int_equal(seen_count, 2);
    expect_seen(1, "anna/src/out", 2, "b");
    bench_close(b);
}

/* --- what is refused at once --- */

static void expect_open_refused(struct bench *b, const struct frame_open *open, uint64_t reason)
{
    struct feed f = feed_open(b, ANN, open);
    expect_refused(&f, reason, open->base);
    feed_end(&f);
    expect_no_streams(b);
}

static void an_app_that_is_not_there_or_not_allowed_is_refused(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct frame_open open = an_open(0, 8);
    open.target = span_text("nobody");
    expect_open_refused(b, &open, REFUSED_NO_APP);
    open.stream = 1;
    open.target = span_text("side");
    expect_open_refused(b, &open, REFUSED_NOT_ALLOWED);
    open.stream = 2;
    open.target = span_text("unlinked");
    expect_open_refused(b, &open, REFUSED_NOT_ALLOWED);
    open.stream = 3;
    open.target = span_text("");
    expect_open_refused(b, &open, REFUSED_NO_APP);
    b->peers[ANN].apps[SIDE] = true;
    open = an_open(4, 1);
    open.target = span_text("side");
    struct feed f = feed_open(b, ANN, &open);
    feed_all(&f, RECORDS("a"));
    settle(b);
    expect_stored(&f, 1);
    bench_close(b);
}

static void names_that_no_host_gives_are_refused(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    char long_name[FRAME_TEXT_BYTES];
    memset(long_name, 'x', sizeof long_name);
    const struct {
        const char *name;
        size_t size;
    } bad[] = {{"", 0},     {"a/b", 3},       {"a b", 3},
               {"a\0b", 3}, {"a\nb", 3},      {"a\x7f", 2},
               {"\t", 1},   {long_name, 191}, {long_name, FRAME_TEXT_BYTES}};
    uint32_t number = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        struct span name = span_of(bad[i].name, bad[i].size);
        struct frame_open app = an_open(number++, 1), output = an_open(number++, 1),
                          event = an_open(number++, 1);
        app.app = output.output = event.event = name;
        expect_open_refused(b, &app, REFUSED_NOT_ALLOWED);
        expect_open_refused(b, &output, REFUSED_NOT_ALLOWED);
        expect_open_refused(b, &event, REFUSED_NOT_ALLOWED);
    }
    struct frame_open longest = an_open(number++, 1);
    longest.app = span_of(long_name, SOURCE_NAME_MAX - strlen("link //out") - (HOST_KEY_PUBLIC_TEXT - 1));
    longest.event = span_of(long_name, EVENT_NAME_MAX);
    struct feed f = feed_open(b, ANN, &longest);
    feed_all(&f, RECORDS("a"));
    settle(b);
    expect_stored(&f, 1);
    longest.stream = number++;
    longest.app.size++;
    feed_end(&f);
    expect_open_refused(b, &longest, REFUSED_NOT_ALLOWED);
    assert_int_equal(logged(b, "are not such as hosts give"), 2); /* before and after a good one */
    bench_close(b);
}

static void a_peer_has_so_many_streams_and_no_more(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    assert_true(feed_put(&f, "send 4000", 0));
    assert_true(feed_put(&f, "send 4000", 0)); /* it waits: what follows stays in the inbox */
    feed_deliver(&f);
    settle(b);
    for (uint32_t i = 1; i < PEER_STREAMS; i++) {
        struct feed ended = feed_from(b, ANN, i % 8, 1 + i);
        feed_all(&ended, RECORDS("x"));
        settle(b);
        feed_end(&ended);
    }
    struct feed more = feed_from(b, ANN, 9, 1);
    expect_refused(&more, REFUSED_NO_ROOM, 0);
    struct feed bob = feed_from(b, BOB, 0, 1);
    expect_stored(&bob, 0); /* the other peer has its own */
    feed_end(&more);
    drain_outlet(b);
    settle(b);
    drain_outlet(b);
    settle(b);
    assert_int_equal(b->peers[ANN].access.streams, 1);
    more = feed_from(b, ANN, 17, 1);
    expect_stored(&more, 0);
    bench_close(b);
}

static void a_refusal_is_said_once_until_records_are_stored(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    uint32_t number = 0;
    for (unsigned i = 0; i < 5; i++) {
        struct frame_open open = an_open(number++, 1);
        open.target = span_text("side");
        expect_open_refused(b, &open, REFUSED_NOT_ALLOWED);
        open.stream = number++;
        open.target = span_text("nobody");
        expect_open_refused(b, &open, REFUSED_NO_APP);
    }
    assert_int_equal(logged(b, "a link from ann to app 'side' is refused: apps ="), 1);
    assert_int_equal(logged(b, "a link from ann to app 'nobody' is refused: there is no such app"), 1);
    b->peers[ANN].apps[SIDE] = true;
    struct frame_open open = an_open(number++, 1);
    open.target = span_text("side");
    struct feed f = feed_open(b, ANN, &open);
    feed_all(&f, RECORDS("a"));
    settle(b);
    b->peers[ANN].apps[SIDE] = false;
    open.stream = number++;
    struct feed again = feed_open(b, ANN, &open);
    expect_refused(&again, REFUSED_NOT_ALLOWED, 0);
    assert_int_equal(logged(b, "a link from ann to app 'side' is refused: apps ="), 2);
    bench_close(b);
}

static void a_peer_that_tries_many_targets_does_not_fill_the_log(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    char target[16];
    struct frame_open open = an_open(0, 1);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(target, sizeof target, "app%u", i);
        open.stream = i;
        open.target = span_text(target);
        assert_int_equal(inlets_open(&b->peers[ANN].inlets, &open), 0);
        struct frame_records end = {i, 0, span_of(NULL, 0)};
        assert_int_equal(inlets_records(&b->peers[ANN].inlets, &end), 0);
    }
    assert_int_equal(logged(b, "is refused"), LINK_REFUSALS_SAID);
    bench_close(b);
}

/* --- what the app refuses --- */

static void a_record_that_the_app_fails_ends_its_stream_behind_what_is_stored(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1), other = feed_from(b, BOB, 0, 1);
    feed_all(&f, RECORDS("a", "b", "fail", "d"));
    sim_run_for(b->sim, NS_PER_MS);  /* its first try */
    feed_all(&f, RECORDS("e", "f")); /* a run behind it, whose result is nobody's */
    feed_all(&other, RECORDS("A"));
    settle(b);
    expect_refused(&f, REFUSED_APP_FAILED, 2);
    expect_stored(&other, 1);
    assert_int_equal(seen_count, 3);
    assert_int_equal(b->peers[ANN].access.streams, 0);
    struct feed again = feed_from(b, ANN, 1, 3); /* behind the number it was told */
    feed_all(&again, RECORDS("c", "d"));
    settle(b);
    expect_stored(&again, 4);
    assert_int_equal(seen_count, 5);
    bench_close(b);
}

static void a_suspended_app_refuses_what_comes_and_what_is_there(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct frame_open open = an_open(0, 11);
    struct feed f = feed_open(b, ANN, &open);
    feed_all(&f, RECORDS("a"));
    settle(b);
    expect_stored(&f, 11);
    feed_all(&f, RECORDS("b"));
    atomic_store(&b->apps[DASH].entry.report.condition, APP_SUSPENDED);
    settle(b);
    expect_refused(&f, REFUSED_APP_SUSPENDED, 11);
    open.stream = 1;
    struct feed again = feed_open(b, ANN, &open);
    expect_refused(&again, REFUSED_APP_SUSPENDED, 10);
    assert_int_equal(seen_count, 1);
    bench_close(b);
}

static void more_identities_than_an_app_keeps_of_a_host_are_refused(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = {0};
    char output[16];
    for (uint32_t i = 0; i <= STREAMS_OWNER_MAX; i++) {
        snprintf(output, sizeof output, "out%u", i);
        inlets_begin(&b->peers[ANN].inlets);
        struct frame_open open = an_open(0, 1);
        open.output = span_text(output);
        f = feed_open(b, ANN, &open);
        feed_all(&f, RECORDS("a"));
        assert_int_equal(sim_run_for(b->sim, 10 * NS_PER_MS), SIM_TIME);
    }
    expect_refused(&f, REFUSED_NO_ROOM, 0);
    assert_int_equal(seen_count, STREAMS_OWNER_MAX);
    assert_true(b->li.stream_count <= 2); /* places for streams are used again */
    f = feed_from(b, BOB, 0, 1);
    feed_all(&f, RECORDS("b"));
    settle(b);
    expect_stored(&f, 1); /* others are not kept out */
    bench_close(b);
}

static void a_record_larger_than_the_inbox_is_refused_behind_what_is_stored(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a", "b"));
    settle(b);
    assert_true(feed_put(&f, "c", 60000)); /* just fits: not a quarter, but all of it */
    feed_deliver(&f);
    settle(b);
    assert_true(feed_put(&f, "d", 66000));
    assert_true(feed_put(&f, "e", 0));
    feed_deliver(&f);
    settle(b);
    expect_refused(&f, REFUSED_RECORD_TOO_LARGE, 3);
    assert_int_equal(seen_count, 3);
    assert_int_equal(seen[2].size, 60000);
    bench_close(b);
}

/* --- back-pressure --- */

static void an_app_that_waits_closes_the_credit_and_opens_it_again(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("send 4000"));
    settle(b);
    unsigned still = 0;
    while (still < 3) { /* dash's outlet is full from the first: the inbox fills, then the ring */
        uint64_t before = f.records;
        while (feed_put(&f, "x", 997))
            ;
        feed_deliver(&f);
        settle(b);
        still = f.records > before ? 0 : still + 1;
    }
    expect_stored(&f, 1);
    uint64_t held = record_queue_glance(&b->apps[DASH].entry.links.runs).held_bytes;
    assert_in_range(held, INBOX_BYTES - 2 * INBOX_BYTES / 4, INBOX_BYTES);
    assert_in_range(f.offset, WINDOW_BYTES - 1000, WINDOW_BYTES + INBOX_BYTES);
    assert_int_equal(registry_app_held(&b->apps[DASH].entry), held);
    drain_outlet(b);
    settle(b);
    expect_stored(&f, f.records);
    assert_int_equal(seen_count, f.records);
    for (unsigned i = 0; i < seen_count; i++)
        assert_int_equal(seen[i].number, i + 1);
    assert_true(feed_put(&f, "x", 50000)); /* there is credit again */
    bench_close(b);
}

/* The most of one source in a row, once both have come. */
static unsigned longest_run(unsigned from)
{
    unsigned longest = 0, row = 0;
    for (unsigned i = from; i < seen_count; i++) {
        row = i > from && strcmp(seen[i].source, seen[i - 1].source) == 0 ? row + 1 : 1;
        longest = row > longest ? row : longest;
    }
    return longest;
}

static void streams_that_wait_for_one_app_take_turns(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed ann = feed_from(b, ANN, 0, 1), bob = feed_from(b, BOB, 0, 1);
    assert_true(feed_put(&ann, "send 4000", 0));
    for (unsigned i = 0; i < 5; i++) { /* ann fills the inbox and its ring before bob comes */
        while (feed_put(&ann, "x", 997))
            ;
        feed_deliver(&ann);
        settle(b);
    }
    while (feed_put(&bob, "x", 997))
        ;
    feed_deliver(&bob);
    settle(b);
    unsigned in_inbox = INBOX_BYTES / 1000;
    drain_outlet(b);
    settle(b);
    expect_stored(&ann, ann.records);
    expect_stored(&bob, bob.records);
    unsigned from = in_inbox, to = seen_count;
    seen_count = from + 100; /* of ann are some 128 left, of bob some 64 */
    assert_in_range(longest_run(from), 1, 2 * (INBOX_BYTES / 4) / 1000 + 1);
    seen_count = to;
    bench_close(b);
}

/* An inbox has no part of what waits for another app. */
static void an_app_that_waits_does_not_hold_up_another(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    b->peers[ANN].apps[SIDE] = true;
    struct feed f = feed_from(b, ANN, 0, 1);
    assert_true(feed_put(&f, "send 4000", 0));
    for (unsigned i = 0; i < 5; i++) {
        while (feed_put(&f, "x", 997))
            ;
        feed_deliver(&f);
        settle(b);
    }
    struct frame_open open = an_open(1, 1);
    open.target = span_text("side");
    struct feed other = feed_open(b, ANN, &open);
    feed_all(&other, RECORDS("a"));
    settle(b);
    expect_stored(&other, 1);
    bench_close(b);
}

/* As much as there is credit for; then it waits for too long. */
static void feed_until_relieved(struct feed *f)
{
    struct inlets *in = &f->peer->inlets;
    for (unsigned i = 0; i < 8; i++) {
        while (in->session_credit - in->session_received >= 1000 && feed_put(f, "x", 998))
            ;
        feed_deliver(f);
        settle(f->b);
    }
    uint64_t now_ns = sim_now_ns(f->b->sim);
    inlets_relieve(in, now_ns);
    inlets_relieve(in, now_ns + INLETS_PATIENCE_NS - 1);
    assert_int_equal(told(f)->reason, 0);
    inlets_relieve(in, now_ns + INLETS_PATIENCE_NS);
    settle(f->b);
}

static void a_stream_that_is_relieved_comes_again_and_nothing_is_given_twice(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct inlets *in = &b->peers[ANN].inlets;
    in->limits.session_window = in->limits.stream_window = in->session_credit = LINK_STREAM_CREDIT;
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("send 4000"));
    settle(b);
    uint64_t records = 0;
    for (uint32_t life = 0; life < 3; life++) { /* what the inbox has comes again, and waits */
        feed_until_relieved(&f);
        expect_refused(&f, REFUSED_NO_ROOM, 1);
        assert_int_equal(in->session_freed, in->session_received);
        records = f.records > records ? f.records : records;
        feed_end(&f);
        f = feed_from(b, ANN, 8 * (life + 1), 2);
    }
    assert_int_equal(logged(b, "to app 'dash' is refused"), 1);
    assert_int_equal(logged(b, "would leave no room (link_window =) for others"), 1);
    drain_outlet(b);
    settle(b);
    assert_true(seen_count > INBOX_BYTES / 2 / 1000 && seen_count < records); /* what the inbox had */
    while (f.records < records) {
        while (f.records < records && feed_put(&f, "x", 998))
            ;
        feed_deliver(&f);
        settle(b);
    }
    expect_stored(&f, records);
    assert_int_equal(seen_count, records);
    for (unsigned i = 0; i < seen_count; i++)
        assert_int_equal(seen[i].number, i + 1);
    bench_close(b);
}

/* --- streams that end --- */

static void results_of_a_stream_that_has_ended_are_nobodys(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("send 4000"));
    settle(b);
    feed_all(&f, RECORDS("b"));
    settle(b);
    feed_all(&f, RECORDS("c"));
    settle(b);
    expect_stored(&f, 1);
    feed_end(&f);
    struct frame_open open = an_open(8, 1); /* the same place, another stream */
    open.output = span_text("other");
    struct feed next = feed_open(b, ANN, &open);
    feed_all(&next, RECORDS("A"));
    settle(b);
    expect_stored(&next, 0);
    drain_outlet(b);
    settle(b);
    expect_stored(&next, 1);
    expect_stored(&f, 1);
    assert_int_equal(seen_count, 4);
    assert_int_equal(b->peers[ANN].access.streams, 1);
    bench_close(b);
}

static void a_stream_that_ends_before_its_records_are_in_the_inbox_leaves_nothing(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("a"));
    feed_end(&f);
    struct feed next = feed_from(b, ANN, 8, 1);
    feed_all(&next, RECORDS("a", "b"));
    settle(b);
    expect_stored(&next, 2);
    feed_end(&next);
    expect_no_streams(b);
    assert_int_equal(seen_count, 2);
    bench_close(b);
}

/* --- when it is told --- */

static void nothing_is_held_back_when_nothing_more_is_outstanding(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_from(b, ANN, 0, 1);
    for (unsigned i = 1; i <= 20; i++) {
        uint64_t now_ns = sim_now_ns(b->sim);
        feed_all(&f, RECORDS("a"));
        settle(b);
        expect_stored(&f, i);
        assert_in_range(told(&f)->stored_ns - now_ns, 0, NS_PER_MS / 10);
    }
    assert_int_equal(told(&f)->stored_frames, 20);
    bench_close(b);
}

/* Makes dash wait, and puts into its inbox, each in a run of its own: `count` records of `size` bytes, one
 * with which dash waits again, and one more. */
static struct feed feed_steps(struct bench *b, unsigned count, size_t size)
{
    struct feed f = feed_from(b, ANN, 0, 1);
    feed_all(&f, RECORDS("send 4000"));
    settle(b);
    expect_stored(&f, 1);
    for (unsigned i = 0; i < count; i++) {
        assert_true(feed_put(&f, "x", size));
        feed_deliver(&f);
        settle(b);
    }
    feed_all(&f, RECORDS("send 4000"));
    settle(b);
    feed_all(&f, RECORDS("last"));
    settle(b);
    expect_stored(&f, 1);
    return f;
}

static void a_small_step_is_held_back_while_more_is_outstanding(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_steps(b, 2, 1);
    uint64_t now_ns = sim_now_ns(b->sim);
    drain_outlet(b);
    settle(b);
    expect_stored(&f, 4);
    assert_int_equal(told(&f)->stored_frames, 2);
    assert_in_range(told(&f)->stored_ns - now_ns, LINK_HOLD_NS, LINK_HOLD_NS + NS_PER_MS / 10);
    now_ns = sim_now_ns(b->sim);
    drain_outlet(b);
    settle(b);
    expect_stored(&f, 5); /* the last one */
    assert_in_range(told(&f)->stored_ns - now_ns, 0, NS_PER_MS / 10);
    bench_close(b);
}

static void a_large_step_is_told_at_once(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_steps(b, 6, 8000);
    uint64_t now_ns = sim_now_ns(b->sim);
    drain_outlet(b);
    settle(b);
    expect_stored(&f, 8);
    assert_in_range(told(&f)->stored_ns - now_ns, 0, NS_PER_MS / 10);
    bench_close(b);
}

/* What is held back overtakes nothing: the stream ends, or is told more, before the timer fires. */
static void what_is_held_back_may_go_before_its_time(void **state)
{
    (void)state;
    struct bench *b = bench_open();
    struct feed f = feed_steps(b, 2, 1);
    drain_outlet(b);
    assert_int_equal(sim_run_for(b->sim, NS_PER_MS), SIM_TIME);
    expect_stored(&f, 1);
    drain_outlet(b);
    assert_int_equal(sim_run_for(b->sim, NS_PER_MS), SIM_TIME);
    expect_stored(&f, 5);
    settle(b);
    assert_int_equal(told(&f)->stored_frames, 2);
    bench_close(b);
    b = bench_open();
    f = feed_steps(b, 2, 1);
    drain_outlet(b);
    assert_int_equal(sim_run_for(b->sim, NS_PER_MS), SIM_TIME);
    feed_end(&f);
    drain_outlet(b);
    settle(b);
    expect_stored(&f, 1);
    expect_no_streams(b);
    bench_close(b);
}

/* --- all of it --- */

#define OUTPUTS 3  /* of each peer */
#define TOTAL   60 /* records of each output */

/* A sender's output, as far as a receiver can tell: it sends from behind what it was told is stored. */
struct sender {
    struct feed feed;
    char output[8];
    uint64_t stored;
    bool open;
};

struct storm {
    struct bench *b;
    struct random random;
    struct sender senders[PEERS][OUTPUTS];
    uint32_t next_number[PEERS][OUTPUTS];
};

static void sender_open(struct storm *s, unsigned peer, unsigned output)
{
    struct sender *sender = &s->senders[peer][output];
    struct frame_open open = an_open(s->next_number[peer][output], sender->stored + 1);
    snprintf(sender->output, sizeof sender->output, "out%u", output);
    open.output = span_text(sender->output);
    sender->feed = feed_open(s->b, peer, &open);
    sender->open = true;
    s->next_number[peer][output] += 8; /* its place in what follows */
}

static void sender_close(struct sender *sender)
{
    feed_end(&sender->feed);
    sender->open = false;
}

/* All streams of the peer are gone, as after a lost association. */
static void break_association(struct storm *s, unsigned peer)
{
    inlets_begin(&s->b->peers[peer].inlets);
    for (unsigned i = 0; i < OUTPUTS; i++) {
        s->senders[peer][i].open = false;
        s->next_number[peer][i] = i;
    }
}

static void sender_step(struct storm *s, unsigned peer, unsigned output)
{
    struct sender *sender = &s->senders[peer][output];
    if (!sender->open || s->next_number[peer][output] >= STREAMS)
        return;
    struct told *told_it = told(&sender->feed);
    assert_in_range(told_it->stored, sender->stored, TOTAL);
    sender->stored = told_it->stored;
    if (told_it->reason != 0) {
        assert_true(told_it->reason == REFUSED_APP_FAILED || told_it->reason == REFUSED_NO_ROOM);
        sender_close(sender);
        return;
    }
    uint64_t count = random_below(&s->random, 6);
    while (count-- > 0 && sender->feed.records < TOTAL) {
        bool sends = random_below(&s->random, 4) == 0;
        if (!feed_put(&sender->feed, sends ? "send 900" : "x", random_below(&s->random, 9000)))
            break;
    }
    feed_deliver(&sender->feed);
    if (random_below(&s->random, 50) == 0)
        sender_close(sender);
}

static bool storm_step(struct storm *s)
{
    bool done = true;
    unsigned peer = (unsigned)random_below(&s->random, PEERS);
    unsigned output = (unsigned)random_below(&s->random, OUTPUTS);
    if (random_below(&s->random, 60) == 0 || s->next_number[peer][output] + 8 >= STREAMS)
        break_association(s, peer);
    if (!s->senders[peer][output].open)
        sender_open(s, peer, output);
    sender_step(s, peer, output);
    if (random_below(&s->random, 4) == 0)
        drain_outlet(s->b);
    sim_run_for(s->b->sim, random_below(&s->random, 10 * NS_PER_MS));
    for (unsigned i = 0; i < PEERS * OUTPUTS; i++)
        done &= s->senders[i / OUTPUTS][i % OUTPUTS].stored == TOTAL;
    return done;
}

/* Every record of every output was given, once and in order. */
static void check_seen(const struct bench *b)
{
    assert_int_equal(seen_count, PEERS * OUTPUTS * TOTAL);
    for (unsigned i = 0; i < PEERS * OUTPUTS; i++) {
        char source[32];
        snprintf(source, sizeof source, "%s/src/out%u", b->peers[i / OUTPUTS].access.name, i % OUTPUTS);
        uint64_t last = 0;
        for (unsigned k = 0; k < seen_count; k++) {
            if (strcmp(seen[k].source, source) == 0)
                assert_int_equal(seen[k].number, ++last);
        }
        assert_int_equal(last, TOTAL);
    }
}

static void every_record_is_given_once_and_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        static struct storm s;
        memset(&s, 0, sizeof s);
        s.b = bench_open();
        s.random.state = seed;
        flaky = &s.random;
        for (unsigned i = 0; i < PEERS; i++)
            break_association(&s, i);
        unsigned steps = 0;
        while (!storm_step(&s))
            assert_true(++steps < 100000);
        flaky = NULL;
        check_seen(s.b);
        for (unsigned i = 0; i < PEERS; i++)
            break_association(&s, i);
        for (unsigned i = 0; i < 3; i++) {
            drain_outlet(s.b);
            settle(s.b);
        }
        expect_no_streams(s.b);
        assert_true(s.b->li.stream_count <= PEERS * PEER_STREAMS);
        bench_close(s.b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_reach_their_app_and_stored_numbers_come_back),
        cmocka_unit_test(records_of_a_later_stream_count_once),
        cmocka_unit_test(a_gap_is_refused_with_the_number_that_the_app_has),
        cmocka_unit_test(a_retired_epoch_is_refused),
        cmocka_unit_test(two_peers_with_the_same_names_do_not_mix),
        cmocka_unit_test(a_peer_that_is_renamed_goes_on),
        cmocka_unit_test(an_app_that_is_not_there_or_not_allowed_is_refused),
        cmocka_unit_test(names_that_no_host_gives_are_refused),
        cmocka_unit_test(a_peer_has_so_many_streams_and_no_more),
        cmocka_unit_test(a_refusal_is_said_once_until_records_are_stored),
        cmocka_unit_test(a_peer_that_tries_many_targets_does_not_fill_the_log),
        cmocka_unit_test(a_record_that_the_app_fails_ends_its_stream_behind_what_is_stored),
        cmocka_unit_test(a_suspended_app_refuses_what_comes_and_what_is_there),
        cmocka_unit_test(more_identities_than_an_app_keeps_of_a_host_are_refused),
        cmocka_unit_test(a_record_larger_than_the_inbox_is_refused_behind_what_is_stored),
        cmocka_unit_test(an_app_that_waits_closes_the_credit_and_opens_it_again),
        cmocka_unit_test(streams_that_wait_for_one_app_take_turns),
        cmocka_unit_test(an_app_that_waits_does_not_hold_up_another),
        cmocka_unit_test(a_stream_that_is_relieved_comes_again_and_nothing_is_given_twice),
        cmocka_unit_test(results_of_a_stream_that_has_ended_are_nobodys),
        cmocka_unit_test(a_stream_that_ends_before_its_records_are_in_the_inbox_leaves_nothing),
        cmocka_unit_test(nothing_is_held_back_when_nothing_more_is_outstanding),
        cmocka_unit_test(a_small_step_is_held_back_while_more_is_outstanding),
        cmocka_unit_test(a_large_step_is_told_at_once),
        cmocka_unit_test(what_is_held_back_may_go_before_its_time),
        cmocka_unit_test(every_record_is_given_once_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
