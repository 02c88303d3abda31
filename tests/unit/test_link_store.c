/* Links of outputs that have a durable store: numbers that go on after a restart, or behind lost ones. See
 * link_ends.h. */
#include "link_ends.h"

#include "tests/sim/sim.h"

/* Whom outlets tell; nobody looks. */
static struct sim *sim;
static struct board board;

static struct world_stream *only(struct world *w)
{
    return &w->senders[0].streams[0];
}

static struct world *begin(uint64_t seed, unsigned loss)
{
    struct world *w = world_new(seed, 1, 1, 0);
    w->max_record = 3000;
    w->there.weather.loss = w->back.weather.loss = loss;
    w->there.weather.jitter_ns = loss ? 5 * NS_PER_MS : 0;
    world_start(w);
    only(w)->outlet.producer = &board;
    return w;
}

static void run_to_end(struct world *w)
{
    bool done = world_run(w, w->now_ns + 600 * NS_PER_S);
    if (!done)
        world_print(w);
    assert_true(done);
    assert_int_equal(only(w)->stored, only(w)->total);
    assert_int_equal(counter_read(&only(w)->outlet.report.stored), only(w)->total);
}

static void push_more(struct world *w, uint64_t records)
{
    only(w)->total += records;
    world_push(w, &w->senders[0], 0, UINT64_MAX);
}

/* The next `records` numbers are lost. */
static void lose(struct world *w, uint64_t records)
{
    struct world_stream *stream = only(w);
    assert_true(record_queue_empty(&stream->outlet.queue));
    stream->pushed = stream->total += records;
    record_queue_jump(&stream->outlet.queue, stream->pushed);
}

static void see(struct world *w)
{
    outputs_pushed(&w->senders[0].link.outputs, &only(w)->output);
}

static void run_for(struct world *w, uint64_t ns)
{
    for (uint64_t until_ns = w->now_ns + ns; w->now_ns < until_ns;)
        world_step(w, until_ns);
}

/* --- lost numbers --- */

static void lost_numbers_begin_a_stream_anew_without_a_rest(void **state)
{
    (void)state;
    for (unsigned push_before_look = 0; push_before_look < 2; push_before_look++) {
        struct world *w = begin(1, 0);
        push_more(w, 500);
        run_to_end(w);
        uint32_t number = only(w)->output.stream.number;
        lose(w, 1000);
        board_take(&board, 0);
        if (!push_before_look) {
            see(w);
            assert_int_equal(board_take(&board, 0), 1); /* the producer may go on */
        }
        push_more(w, 500);
        uint64_t start_ns = w->now_ns;
        run_to_end(w);
        assert_true(w->now_ns - start_ns < NS_PER_S / 2); /* three round trips and little more */
        assert_int_equal(only(w)->output.stream.number, number + w->senders[0].link.outputs.places);
        assert_int_equal(only(w)->refused, 0);
        const struct inlets *in = &w->receiver.peers[0]->inlets;
        run_for(w, NS_PER_S);
        assert_int_equal(in->session_received, w->senders[0].link.outputs.session_sent);
        world_free(w);
    }
}

static void a_stream_that_nobody_knows_just_begins_behind(void **state)
{
    (void)state;
    struct world *w = begin(1, 0);
    push_more(w, 100);
    run_to_end(w);
    world_restart_sender(w, 0);
    world_restart_receiver(w);
    lose(w, 10);
    see(w); /* there is no association */
    push_more(w, 100);
    run_to_end(w);
    lose(w, 10);
    see(w);
    run_for(w, NS_PER_S); /* it has begun anew, and nothing was sent: its receiver has never heard of it */
    uint32_t number = only(w)->output.stream.number;
    assert_int_equal(only(w)->output.opened_in, UINT64_MAX);
    lose(w, 10);
    see(w);
    push_more(w, 100);
    run_to_end(w);
    assert_int_equal(only(w)->output.stream.number, number);
    assert_int_equal(only(w)->refused, 0);
    world_free(w);
}

static void an_association_that_begins_meanwhile_does_no_harm(void **state)
{
    (void)state;
    struct world *w = begin(1, 0);
    push_more(w, 100);
    run_to_end(w);
    lose(w, 10);
    see(w);
    assert_int_equal(only(w)->output.state, OUTPUT_ENDING);
    world_restart_receiver(w); /* the stream's end is not acknowledged */
    push_more(w, 100);
    run_to_end(w);
    assert_int_equal(w->senders[0].link.outputs.ends_due, 0);
    assert_int_equal(only(w)->refused, 0);
    world_free(w);
}

static void losses_of_numbers_and_packets(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct world *w = begin(seed, (unsigned)(seed % 4) * 100);
        for (unsigned i = 0; i < 6; i++) {
            push_more(w, random_below(&w->random, 300));
            run_to_end(w);
            run_for(w, random_below(&w->random, NS_PER_S));
            if (random_below(&w->random, 4) > 0 && record_queue_empty(&only(w)->outlet.queue))
                lose(w, 1 + random_below(&w->random, 1000));
            if (random_below(&w->random, 2) > 0)
                see(w);
        }
        push_more(w, 10);
        run_to_end(w);
        assert_int_equal(only(w)->refused, 0);
        world_free(w);
    }
}

/* --- restarts --- */

/* The sender's process dies. Its store knows that records up to `stored` are, and that up to `sent` may have
 * been sent. */
static void restart_from_store(struct world *w, uint64_t stored, uint64_t sent)
{
    struct world_stream *stream = only(w);
    link_sender_dispose(&w->senders[0].link);
    outlet_dispose(&stream->outlet);
    assert_int_equal(outlet_init(&stream->outlet, "link", "src", "0", w->queue_bytes, w->max_record), 0);
    outlet_start(&stream->outlet, stored, sent);
    stream->outlet.producer = &board;
    stream->pushed = stored;
    world_start_sender(w, 0);
}

static void run_until_stored(struct world *w, uint64_t number)
{
    for (unsigned steps = 0; only(w)->stored < number; steps++) {
        assert_true(steps < 100000);
        world_step(w, NEVER);
    }
}

static void a_sender_goes_on_where_its_store_is(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct world *w = begin(seed, (unsigned)(seed % 3) * 50);
        only(w)->total = 3000;
        for (unsigned i = 0; i < 5; i++) {
            run_until_stored(w, min_u64(3000, only(w)->stored + 1 + random_below(&w->random, 800)));
            uint64_t freed = only(w)->outlet.queue.freed.records;
            restart_from_store(w, freed - random_below(&w->random, freed + 1) / 4, only(w)->pushed);
        }
        run_to_end(w);
        assert_int_equal(only(w)->refused, 0);
        world_free(w);
    }
}

/* A refusal says what its receiver has, which may be more than is in the queue. */
static void a_refusal_tells_of_what_an_earlier_life_has_sent(void **state)
{
    (void)state;
    struct world *w = begin(1, 0);
    push_more(w, 6000);
    run_to_end(w);
    restart_from_store(w, 100, 6000);
    w->refuse = REFUSED_APP_FAILED;
    only(w)->total = 4000; /* the rest is read from the store later */
    run_for(w, NS_PER_S / 2);
    assert_int_equal(only(w)->refused, 1);
    assert_int_equal(only(w)->error, PE_APP_FAILED);
    assert_true(only(w)->output.stream.sent_ever <
                only(w)->outlet.queue.tail.bytes); /* all is known, unsent */
    assert_int_equal(only(w)->outlet.queue.freed.records, 4000);
    w->refuse = 0;
    only(w)->total = 7000;
    bool done = world_run(w, w->now_ns + 10 * NS_PER_S);
    assert_true(done);
    assert_int_equal(only(w)->refused, 1);
    world_free(w);
}

/* Receivers say so of records that came on the stream only; one that says more is believed. */
static void a_live_stream_of_which_more_is_known_begins_anew(void **state)
{
    (void)state;
    struct world *w = begin(1, 0);
    push_more(w, 3000);
    run_to_end(w);
    restart_from_store(w, 100, 3000);
    world_push(w, &w->senders[0], 0, 2900);
    struct outputs *o = &w->senders[0].link.outputs;
    while (only(w)->output.state != OUTPUT_OPENING)
        world_step(w, NEVER);
    struct frame_stored more = {only(w)->output.stream.number, 3000, 0};
    outputs_stored(o, &more, w->now_ns);
    assert_int_equal(only(w)->outlet.queue.freed.records, 3000);
    only(w)->total = 4000;
    run_to_end(w);
    assert_int_equal(only(w)->refused, 0);
    more = (struct frame_stored){only(w)->output.stream.number, 4001, 0};
    outputs_stored(o, &more, w->now_ns);
    assert_int_equal(only(w)->error, PE_STORED_NUMBER);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_numbers_begin_a_stream_anew_without_a_rest),
        cmocka_unit_test(a_stream_that_nobody_knows_just_begins_behind),
        cmocka_unit_test(an_association_that_begins_meanwhile_does_no_harm),
        cmocka_unit_test(losses_of_numbers_and_packets),
        cmocka_unit_test(a_sender_goes_on_where_its_store_is),
        cmocka_unit_test(a_refusal_tells_of_what_an_earlier_life_has_sent),
        cmocka_unit_test(a_live_stream_of_which_more_is_known_begins_anew),
    };
    sim = sim_new(1);
    if (board_init(&board, sim_io(sim, "10.0.0.1"), 64) < 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    board_dispose(&board);
    sim_free(sim);
    return failed;
}
