/* The wire under splits, resets and lost replies at every byte: with a receiver that numbers, each record is
 * stored exactly once and in order; with any other it arrives at least once, first arrivals in order. */
#include "tests/unit/wire_world.h"

#define RECORDS 3

static const struct sim_step numbered[] = {SIM_EXPECT_HTTP, SIM_CALL(receive_numbered, &here), SIM_AGAIN};
static const struct sim_step receive[] = {SIM_EXPECT_HTTP, SIM_CALL(note_request, &here), SIM_SEND(OK_REPLY),
                                          SIM_AGAIN};

/* From now on the receiver behaves. */
static void behave_now(void *context)
{
    (void)context;
    if (here->wire->mode == WIRE_PURE)
        sim_server_script(here->server, numbered, ARRAY_SIZE(numbered));
    else
        sim_server_script(here->server, receive, ARRAY_SIZE(receive));
}

static void behave(struct sim_connection *c, void *context)
{
    (void)c;
    behave_now(context);
}

static void assert_arrived(struct world *t)
{
    if (t->wire->mode == WIRE_PURE) {
        assert_int_equal(t->stored, t->pushed);
        assert_int_equal(t->out_of_order, 0);
        return;
    }
    unsigned long long last = 0;
    for (unsigned i = 0; i < t->requests; i++) {
        unsigned long long number = strtoull(t->noted[i].body, NULL, 10);
        char id[64];
        snprintf(id, sizeof id, "msg_a0a1a2a3a4a5a6a7_%llu", number);
        assert_string_equal(t->noted[i].id, id);
        assert_true(number <= last + 1);
        last = number > last ? number : last;
    }
    assert_int_equal(last, t->pushed);
}

static struct world *begin_mode(enum wire_mode mode, uint64_t seed, const struct sim_step *script,
                                unsigned steps)
{
    struct world *t = begin(seed, script, steps);
    t->options.mode = mode;
    world_start(t);
    push_numbers(t, RECORDS);
    return t;
}

static void finish(struct world *t)
{
    run_until_stored(t);
    assert_arrived(t);
    assert_int_equal(state_of(t), OUTLET_OK);
    world_end(t);
}

static const enum wire_mode modes[] = {WIRE_WEBHOOK, WIRE_PURE};

/* Bytes of the longest first request, which is more than enough for each to be met. */
#define REQUEST_BYTES 400

static void a_reset_at_any_byte_of_the_request_loses_nothing(void **state)
{
    (void)state;
    for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
        for (unsigned n = 0; n < REQUEST_BYTES; n++) {
            const struct sim_step script[] = {SIM_EXPECT_BYTES(n), SIM_CALL(behave, NULL), SIM_RESET};
            struct world *t = begin_mode(modes[m], n, script, ARRAY_SIZE(script));
            t->wire->lanes[0]->connection.limits.reply_ns = NS_PER_S; /* the bytes past its end never come */
            sim_at(t->sim, sim_now_ns(t->sim) + NS_PER_S / 2, behave_now, NULL);
            finish(t);
        }
    }
}

/* --- the reply, cut --- */

static struct {
    unsigned cut;   /* bytes of the reply before the cut */
    bool rest;      /* the rest follows; else the connection ends */
    bool reset;     /* by a reset */
    char text[128]; /* the reply */
    size_t size;
} reply;

static void make_reply(struct sim_connection *c, void *context)
{
    note_request(c, context);
    behave(c, NULL);
    unsigned status = here->wire->mode == WIRE_PURE ? store_numbered(here, sim_taken(c)) : 200;
    reply.size = (size_t)snprintf(reply.text, sizeof reply.text,
                                  "HTTP/1.1 %u OK\r\nPure-Stored: %llu\r\nContent-Length: 5\r\n\r\nhello",
                                  status, (unsigned long long)here->stored);
    sim_peer_send(c, reply.text, min_size(reply.cut, reply.size));
}

static void end_reply(struct sim_connection *c, void *context)
{
    (void)context;
    size_t sent = min_size(reply.cut, reply.size);
    if (reply.rest && sent < reply.size)
        sim_peer_send(c, reply.text + sent, reply.size - sent);
    else if (!reply.rest && reply.reset)
        sim_peer_reset(c);
    else if (!reply.rest)
        sim_peer_close(c);
}

static const struct sim_step cut_reply[] = {SIM_EXPECT_HTTP, SIM_CALL(make_reply, &here),
                                            SIM_WAIT(5 * NS_PER_MS), SIM_CALL(end_reply, NULL)};
/* Then the connection goes on, if it was not ended. */
static const struct sim_step split_reply[] = {SIM_EXPECT_HTTP, SIM_CALL(make_reply, &here),
                                              SIM_WAIT(5 * NS_PER_MS), SIM_CALL(end_reply, NULL), SIM_AGAIN};

static void a_reply_split_at_any_byte_is_the_same_reply(void **state)
{
    (void)state;
    reply.rest = true;
    for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
        for (reply.cut = 0; reply.cut < 80; reply.cut++) {
            struct world *t = begin_mode(modes[m], reply.cut, split_reply, ARRAY_SIZE(split_reply));
            run_until_stored(t);
            assert_int_equal(failures_of(t), 0);
            assert_int_equal(t->requests, modes[m] == WIRE_PURE ? 1 : RECORDS);
            assert_int_equal(sim_server_accepted(t->server), 1);
            finish(t);
        }
    }
}

static void an_end_or_reset_at_any_byte_of_the_reply_loses_nothing(void **state)
{
    (void)state;
    reply.rest = false;
    for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
        for (unsigned n = 0; n < 2 * 80; n++) {
            reply.cut = n / 2;
            reply.reset = n % 2;
            struct world *t = begin_mode(modes[m], n, cut_reply, ARRAY_SIZE(cut_reply));
            run_until_stored(t);
            size_t head = reply.size - strlen("hello");
            assert_int_equal(failures_of(t), reply.cut < head ? 1 : 0); /* the head decides */
            if (modes[m] == WIRE_PURE)
                assert_int_equal(t->duplicates, reply.cut < head ? RECORDS : 0);
            finish(t);
        }
    }
}

/* --- pipelining --- */

static void store_only(struct sim_connection *c, void *context)
{
    (void)context;
    assert_int_equal(store_numbered(here, sim_taken(c)), 200);
}

static void assert_alone(struct sim_connection *c, void *context)
{
    (void)context;
    assert_int_equal(sim_received_bytes(c), sim_taken(c).size);
}

static void reply_up_to(struct sim_connection *c, void *context)
{
    char text[100];
    int size = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nPure-Stored: %s\r\nContent-Length: 0\r\n\r\n",
                        (const char *)context);
    sim_peer_send(c, text, (size_t)size);
}

static void requests_are_pipelined_once_the_first_was_answered(void **state)
{
    (void)state;
    static const struct sim_step script[] = {SIM_EXPECT_HTTP,
                                             SIM_CALL(store_only, NULL),
                                             SIM_WAIT(NS_PER_S),
                                             SIM_CALL(assert_alone, NULL),
                                             SIM_CALL(reply_up_to, "1"),
                                             SIM_EXPECT_HTTP,
                                             SIM_CALL(store_only, NULL),
                                             SIM_EXPECT_HTTP,
                                             SIM_CALL(store_only, NULL),
                                             SIM_CALL(reply_up_to, "2"),
                                             SIM_CALL(reply_up_to, "3")};
    struct world *t = begin(1, script, ARRAY_SIZE(script));
    t->options.mode = WIRE_PURE;
    t->options.batch_records = 1;
    world_start(t);
    push_numbers(t, 3);
    uint64_t start_ns = sim_now_ns(t->sim);
    run_until_stored(t);
    assert_true(sim_now_ns(t->sim) - start_ns < 2 * NS_PER_S);
    assert_int_equal(sim_server_accepted(t->server), 1);
    assert_int_equal(tries_of(t), 3);
    assert_int_equal(t->stored, 3);
    world_end(t);
}

static void refuse_next(struct sim_connection *c, void *context)
{
    (void)context;
    reply_stored(c, here, 503);
}

/* The first of two in flight is refused; the second then leaves a gap, which is no failure of its own. */
static void a_refusal_in_the_pipeline_counts_once(void **state)
{
    (void)state;
    static const struct sim_step script[] = {SIM_EXPECT_HTTP, SIM_CALL(receive_numbered, &here),
                                             SIM_EXPECT_HTTP, SIM_CALL(refuse_next, NULL),
                                             SIM_EXPECT_HTTP, SIM_CALL(receive_numbered, &here),
                                             SIM_EXPECT_HTTP, SIM_CALL(receive_numbered, &here),
                                             SIM_EXPECT_HTTP, SIM_CALL(receive_numbered, &here)};
    struct world *t = begin(1, script, ARRAY_SIZE(script));
    t->options.mode = WIRE_PURE;
    t->options.batch_records = 1;
    world_start(t);
    push_numbers(t, 3);
    run_until_stored(t);
    assert_int_equal(failures_of(t), 1);
    assert_int_equal(sim_server_accepted(t->server), 1);
    assert_int_equal(tries_of(t), 5);
    assert_arrived(t);
    world_end(t);
}

/* A connection is lost with its replies; the records go again, and the first new reply tells of more than it
 * was asked for. */
static void a_stored_number_beyond_the_request_is_taken(void **state)
{
    (void)state;
    static const struct sim_step lose_replies[] = {SIM_EXPECT_HTTP,        SIM_CALL(receive_numbered, &here),
                                                   SIM_EXPECT_HTTP,        SIM_CALL(store_only, NULL),
                                                   SIM_EXPECT_HTTP,        SIM_CALL(store_only, NULL),
                                                   SIM_CALL(behave, NULL), SIM_CLOSE};
    struct world *t = begin(1, lose_replies, ARRAY_SIZE(lose_replies));
    t->options.mode = WIRE_PURE;
    t->options.batch_records = 1;
    world_start(t);
    push_numbers(t, 3);
    run_until_stored(t);
    assert_int_equal(t->duplicates, 1);
    assert_int_equal(failures_of(t), 0);
    assert_arrived(t);
    world_end(t);
}

/* Exchange 1 waits for its reply, exchange 2 is being sent: a number that covers both frees the first only.
 */
static void memory_that_is_being_sent_is_not_freed(void **state)
{
    (void)state;
    struct world *t = begin(1, numbered, ARRAY_SIZE(numbered));
    t->options.mode = WIRE_PURE;
    world_start(t);
    push_numbers(t, 3);
    struct wire *w = t->wire;
    struct numbered *numbers = &w->numbered;
    struct connection *c = &w->lanes[0]->connection;
    const struct batch_limits one = {.bytes = 100, .records = 1};
    record_queue_see_published(&w->outlet.queue);
    connection_connect(c, 0);
    connection_connected(c, 0);
    for (unsigned n = 0; n < 3; n++) {
        numbers->flights[n].batch = batch_framed(&w->outlet.queue, numbers->next, &one);
        numbers->next = numbers->flights[n].batch.end;
        connection_begin(c, 0, 10);
        if (n < 2)
            connection_sent(c, 0, 10);
        if (n == 0)
            connection_received(c, 0, span_text(OK_REPLY));
        c->taken = c->answered;
    }
    numbers->sent_records = 3;
    struct answer all = {.status = 200, .has_stored = true, .stored = 3};
    numbered_answered(w, 0, w->lanes[0], 1, &all);
    assert_int_equal(stored(t), 2);
    connection_sent(c, 0, 10);
    numbered_answered(w, 0, w->lanes[0], 2, &all);
    assert_int_equal(stored(t), 3);
    connection_clear(c);
    world_end(t);
}

/* --- everything at once --- */

static void set_storm(struct world *t, uint32_t strength)
{
    struct sim_link link = sim_link_default;
    link.reset = strength;
    link.window_bytes = 300;
    sim_set_link(t->sim, NULL, NULL, &link);
    struct sim_faults faults = {
        .no_buffers = 50, .multishot_end = 100, .short_send = 100, .batch_max = 8, .buffer_bytes = 64};
    sim_set_faults(t->sim, &faults);
}

static void storm(uint64_t seed)
{
    static const enum wire_mode all_modes[] = {WIRE_PURE, WIRE_WEBHOOK, WIRE_PURE, WIRE_BATCH};
    enum wire_mode mode = all_modes[seed % 4];
    struct world *t = mode == WIRE_PURE ? begin(seed, numbered, ARRAY_SIZE(numbered))
                                        : begin(seed, receive, ARRAY_SIZE(receive));
    set_storm(t, 20);
    t->options.mode = mode;
    t->options.batch_records = mode == WIRE_BATCH ? 1 : (uint32_t)(seed / 4 % 5);
    t->options.pipeline = mode == WIRE_PURE ? (uint32_t)(1 + seed / 20 % 4) : 0;
    t->options.backoff_max_ns = NS_PER_S;
    world_start(t);
    for (int i = 0; i < 8; i++) {
        push_numbers(t, (unsigned)random_below(sim_random(t->sim), 6));
        sim_run_for(t->sim, random_below(sim_random(t->sim), 5 * NS_PER_MS));
    }
    run_until_stored(t);
    assert_arrived(t);
    world_end(t);
}

static void a_thousand_storms_lose_and_reorder_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++)
        storm(seed);
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* one seed, to replay */
        storm(strtoull(argv[1], NULL, 10));
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reset_at_any_byte_of_the_request_loses_nothing),
        cmocka_unit_test(a_reply_split_at_any_byte_is_the_same_reply),
        cmocka_unit_test(an_end_or_reset_at_any_byte_of_the_reply_loses_nothing),
        cmocka_unit_test(requests_are_pipelined_once_the_first_was_answered),
        cmocka_unit_test(a_refusal_in_the_pipeline_counts_once),
        cmocka_unit_test(a_stored_number_beyond_the_request_is_taken),
        cmocka_unit_test(memory_that_is_being_sent_is_not_freed),
        cmocka_unit_test(a_thousand_storms_lose_and_reorder_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
