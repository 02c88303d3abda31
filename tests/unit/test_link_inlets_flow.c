/* Links into apps: back-pressure, streams that end, when stored numbers are told, and all of it under seeds
 * (host/link_inlets.h). */
#include "tests/unit/link_bench.h"

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
