/* The wire of an output that has a durable store: numbers that go on after a restart, or behind lost ones;
 * records that are always refused become dead letters. */
#include "tests/unit/wire_world.h"

/* A receiver as docs/records-protocol.md has it, with Base; notes requests. */
static void receive_based(struct sim_connection *c, void *context)
{
    struct http_head head;
    parse_request(sim_taken(c), &head);
    here->stored = max_u64(here->stored, number_field(&head, "pure-base"));
    receive_numbered(c, context);
}

static const struct sim_step based[] = {SIM_EXPECT_HTTP, SIM_CALL(receive_based, &here), SIM_AGAIN};
static const struct sim_step receive[] = {SIM_EXPECT_HTTP, SIM_CALL(note_request, &here), SIM_SEND(OK_REPLY),
                                          SIM_AGAIN};

#define BEGIN(script) begin(1, script, ARRAY_SIZE(script))

static void start_behind(struct world *t, uint64_t stored_before, uint64_t sent_before)
{
    world_start(t);
    outlet_start(&t->wire->outlet, stored_before, sent_before);
    t->pushed = stored_before;
}

static uint64_t stored_number(const struct world *t)
{
    return counter_read(&t->wire->outlet.report.stored);
}

/* --- restarts --- */

static void a_receiver_knows_what_an_earlier_life_has_sent(void **state)
{
    (void)state;
    for (uint64_t known = 100; known <= 150; known += 5) {
        struct world *t = BEGIN(based);
        t->options.mode = WIRE_PURE;
        t->options.batch_records = 7;
        t->stored = known;
        start_behind(t, 100, 150);
        push_numbers(t, 20); /* the rest of the 50 is read from the store later */
        run_until_stored(t);
        assert_int_equal(stored_number(t), 120);
        push_numbers(t, 40);
        run_until_stored(t);
        assert_int_equal(t->noted[0].first, 101);
        assert_int_equal(failures_of(t), 0);
        assert_int_equal(t->out_of_order, 0);
        assert_int_equal(t->stored, 160);
        assert_int_equal(stored_number(t), 160);
        world_end(t);
    }
}

static void more_than_was_ever_sent_is_still_an_error(void **state)
{
    (void)state;
    struct world *t = BEGIN(based);
    t->options.mode = WIRE_PURE;
    t->stored = 151;
    start_behind(t, 100, 150);
    push_numbers(t, 20);
    run_for_s(t, 1);
    assert_int_equal(error_of(t), PE_HTTP_STORED);
    assert_int_equal(stored_number(t), 100);
    world_end(t);
}

/* --- the question that a life begins with --- */

/* `stored` of the world; a question is answered as a host does. */
static void receive_asked(struct sim_connection *c, void *context)
{
    static const char rolled_back[] =
        "HTTP/1.1 409 Conflict\r\nPure-Stored: 150\r\nPure-Error: rolled-back\r\n"
        "Content-Length: 0\r\n\r\n";
    struct http_head head;
    parse_request(sim_taken(c), &head);
    if (number_field(&head, "pure-count") > 0) {
        receive_based(c, context);
        return;
    }
    note_request(c, &here);
    if (here->stored > number_field(&head, "pure-sent"))
        sim_peer_send(c, rolled_back, sizeof rolled_back - 1);
    else
        reply_stored(c, here, 200);
}

static const struct sim_step asking[] = {SIM_EXPECT_HTTP, SIM_CALL(receive_asked, &here), SIM_AGAIN};

static struct world *begin_asking(uint64_t stored, uint64_t reach)
{
    struct world *t = BEGIN(asking);
    t->options.mode = WIRE_PURE;
    t->stored = stored;
    start_behind(t, 100, 130);
    t->wire->outlet.contact.reach = reach;
    atomic_store(&t->wire->outlet.contact.state, OUTLET_ASKING);
    push_numbers(t, 30);
    run_for_s(t, 1);
    return t;
}

static void nothing_new_is_sent_before_the_answer_is_noted(void **state)
{
    (void)state;
    struct world *t = begin_asking(110, 120);
    assert_int_equal(t->requests, 1);
    assert_int_equal(outlet_contact(&t->wire->outlet), OUTLET_AGREED);
    assert_int_equal(stored_number(t), 110);
    outlet_contact_noted(&t->wire->outlet, NULL);
    run_until_stored(t);
    assert_int_equal(t->noted[1].first, 111);
    assert_int_equal(t->stored, 130);
    assert_int_equal(failures_of(t), 0);
    world_end(t);
}

/* What may have been sent in any case need not wait: the disk may have failed. */
static void what_may_have_been_sent_goes_on_without_a_note(void **state)
{
    (void)state;
    struct world *t = begin_asking(110, 130);
    assert_int_equal(t->stored, 130);
    push_numbers(t, 1);
    run_for_s(t, 1);
    assert_int_equal(t->stored, 130);
    outlet_contact_noted(&t->wire->outlet, NULL);
    run_until_stored(t);
    assert_int_equal(t->stored, 131);
    world_end(t);
}

static void a_wire_that_was_outgrown_goes_on_under_a_new_epoch(void **state)
{
    (void)state;
    static const uint8_t epoch[WIRE_EPOCH_BYTES] = {0xb0, 0xb1, [15] = 0xbf};
    char line[400];
    struct world *t = begin_asking(150, 120);
    assert_int_equal(t->requests, 1);
    assert_int_equal(outlet_contact(&t->wire->outlet), OUTLET_OUTGROWN);
    assert_int_equal(stored_number(t), 100);
    assert_int_equal(error_of(t), PE_STREAM_ROLLED_BACK);
    assert_int_equal(take_log(t, line, sizeof line), 1);
    assert_non_null(strstr(line, "stored records up to 150, and this store knows of 120"));
    t->stored = 0; /* of that epoch it has none yet */
    outlet_contact_noted(&t->wire->outlet, epoch);
    run_until_stored(t);
    assert_int_equal(t->noted[1].first, 101); /* known: base says so */
    assert_memory_equal(t->wire->epoch, epoch, sizeof epoch);
    assert_string_equal(t->wire->request.epoch, "b0b100000000000000000000000000bf");
    assert_int_equal(t->stored, 130);
    assert_int_equal(state_of(t), OUTLET_OK);
    world_end(t);
}

/* --- lost numbers --- */

static void lost_numbers_are_passed_over(void **state)
{
    (void)state;
    static const enum wire_mode modes[] = {WIRE_PURE, WIRE_WEBHOOK, WIRE_BATCH};
    for (size_t m = 0; m < 2 * ARRAY_SIZE(modes); m++) {
        enum wire_mode mode = modes[m / 2];
        struct world *t = mode == WIRE_PURE ? BEGIN(based) : BEGIN(receive);
        t->options.mode = mode;
        world_start(t);
        push_numbers(t, 1);
        run_until_stored(t);
        assert_true(record_queue_empty(&t->wire->outlet.queue));
        outlet_jump(&t->wire->outlet, 5000000005);
        t->pushed = 5000000005;
        if (m % 2) { /* else all is pushed before the wire has looked */
            sim_run_for(t->sim, NS_PER_MS);
            assert_int_equal(stored_number(t), 5000000005);
            assert_int_equal(record_queue_glance(&t->wire->outlet.queue).held_records, 0);
            assert_int_equal(t->requests, 1);
        }
        push_numbers(t, 1);
        run_until_stored(t);
        assert_int_equal(stored_number(t), 5000000006);
        assert_int_equal(t->requests, 2);
        assert_int_equal(t->out_of_order, 0);
        assert_int_equal(failures_of(t), 0);
        if (mode != WIRE_WEBHOOK)
            assert_int_equal(t->noted[1].first, 5000000006);
        if (mode != WIRE_PURE)
            assert_string_equal(t->noted[1].id, "msg_a0a1a2a3a4a5a6a7_5000000006");
        world_end(t);
    }
}

static void a_wire_that_rests_or_is_disabled_passes_over_lost_numbers_too(void **state)
{
    (void)state;
    static const struct sim_step gone[] = {SIM_EXPECT_HTTP, SIM_SEND(OK_REPLY)};
    struct world *t = BEGIN(gone);
    world_start(t);
    push_numbers(t, 1);
    run_until_stored(t);
    t->wire->delivery.disabled = true;
    assert_true(record_queue_empty(&t->wire->outlet.queue));
    outlet_jump(&t->wire->outlet, 10);
    sim_run_for(t->sim, NS_PER_MS);
    assert_true(record_queue_empty(&t->wire->outlet.queue));
    assert_int_equal(stored_number(t), 10);
    world_end(t);
}

/* --- dead letters --- */

#define REFUSAL(status) "HTTP/1.1 " status " No\r\nContent-Length: 0\r\n\r\n"

/* What is answered to a body that has "bad" in it; each in turn, the last for ever. */
static const char *const *verdicts;

static bool is_bad(struct span message)
{
    struct http_head head;
    struct span body = parse_request(message, &head);
    return memmem(body.data, body.size, "bad", 3) != NULL;
}

static void judge(struct sim_connection *c, void *context)
{
    (void)context;
    struct http_head head;
    note_request(c, &here);
    parse_request(sim_taken(c), &head);
    if (is_bad(sim_taken(c))) {
        sim_peer_send(c, *verdicts, strlen(*verdicts));
        verdicts += verdicts[1] != NULL;
        return;
    }
    here->stored = max_u64(here->stored, number_field(&head, "pure-base"));
    if (here->wire->mode == WIRE_PURE && number_field(&head, "pure-first") > here->stored + 1) {
        reply_stored(c, here, 409); /* the one before was refused */
        return;
    }
    here->stored = number_field(&head, "pure-first") + number_field(&head, "pure-count") - 1;
    reply_stored(c, here, 200);
}

static const struct sim_step judging[] = {SIM_EXPECT_HTTP, SIM_CALL(judge, NULL), SIM_AGAIN};

static const char *const always_422[] = {REFUSAL("422"), NULL};

static struct world *begin_judged(enum wire_mode mode, uint32_t attempts, const char *const *answers)
{
    struct world *t = BEGIN(judging);
    verdicts = answers;
    t->options.mode = mode;
    wire_options_statuses(&t->options);
    t->options.attempts = attempts;
    t->options.backoff_max_ns = NS_PER_S;
    world_start(t);
    t->wire->outlet.keeps_dead = true;
    return t;
}

static int dead_state(struct world *t)
{
    return atomic_load(&t->wire->outlet.dead.state);
}

static bool asked(void *context)
{
    return dead_state(context) == OUTLET_DEAD_ASKED;
}

/* What the owner does. */
static void take_dead(struct world *t)
{
    atomic_store(&t->wire->outlet.dead.state, OUTLET_DEAD_TAKEN);
    board_post(t->wire->outlet.consumer, t->wire->outlet.consumer_slot);
}

static void expect_dead(struct world *t, uint64_t number, const char *text)
{
    assert_int_equal(sim_run_until(t->sim, asked, t), SIM_DONE);
    struct outlet *o = &t->wire->outlet;
    assert_int_equal(o->dead.start.records, number - 1);
    assert_int_equal(o->dead.end.records, number);
    struct span record, bytes = record_queue_span(&o->queue, o->dead.start.bytes);
    assert_int_equal(record_get(bytes.data, bytes.data + bytes.size, &record),
                     o->dead.end.bytes - o->dead.start.bytes);
    assert_true(span_is(record, text));
    assert_int_equal(stored_number(t), number - 1);
}

static uint64_t dead_count(struct world *t)
{
    return counter_read(&t->wire->outlet.report.dead);
}

static void a_record_that_is_always_refused_is_set_aside_and_the_next_follows(void **state)
{
    (void)state;
    char line[300];
    struct world *t = begin_judged(WIRE_WEBHOOK, 3, always_422);
    push(t, "good");
    push(t, "bad");
    push(t, "fine");
    expect_dead(t, 2, "bad");
    assert_int_equal(t->wire->outlet.dead.status, 422);
    assert_string_equal(t->wire->outlet.dead.reason, "422 No");
    assert_int_equal(tries_of(t), 4);
    run_for_s(t, 100); /* nothing more is sent until the owner has it */
    assert_int_equal(tries_of(t), 4);
    assert_int_equal(state_of(t), OUTLET_RESTING);
    take_log(t, line, sizeof line);
    take_dead(t);
    run_until_stored(t);
    assert_int_equal(tries_of(t), 5);
    assert_string_equal(t->noted[4].body, "fine");
    assert_int_equal(dead_count(t), 1);
    assert_int_equal(dead_state(t), OUTLET_DEAD_NONE);
    assert_int_equal(state_of(t), OUTLET_OK);
    assert_int_equal(take_log(t, line, sizeof line), 1);
    assert_non_null(strstr(line, "app.out: record 2 is set aside, as it was refused: 422 No (1 so far)"));
    world_end(t);
}

static void only_refusals_in_a_row_count(void **state)
{
    (void)state;
    static const char *const answers[] = {
        REFUSAL("422"), REFUSAL("503"), REFUSAL("404"), REFUSAL("429"), REFUSAL("400"), REFUSAL("422"), NULL};
    struct world *t = begin_judged(WIRE_WEBHOOK, 2, answers);
    push(t, "bad");
    expect_dead(t, 1, "bad");
    assert_int_equal(tries_of(t), 6);
    take_dead(t);
    run_until_stored(t);
    push(t, "also bad"); /* its refusals are its own */
    expect_dead(t, 2, "also bad");
    assert_int_equal(tries_of(t), 8);
    world_end(t);
}

static void what_does_not_speak_of_the_record_is_no_refusal(void **state)
{
    (void)state;
    static const char *const answers[][2] = {{REFUSAL("401")}, {REFUSAL("403")}, {REFUSAL("407")},
                                             {REFUSAL("408")}, {REFUSAL("425")}, {REFUSAL("429")},
                                             {REFUSAL("500")}, {REFUSAL("302")}};
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct world *t = begin_judged(WIRE_WEBHOOK, 1, answers[i]);
        push(t, "bad");
        run_for_s(t, 30);
        assert_true(tries_of(t) > 5);
        assert_int_equal(dead_state(t), OUTLET_DEAD_NONE);
        world_end(t);
    }
    static const char *const conflict[] = {REFUSAL("409"), NULL};
    struct world *t = begin_judged(WIRE_PURE, 1, conflict); /* there it is about the stream */
    push(t, "bad");
    run_for_s(t, 30);
    assert_int_equal(dead_state(t), OUTLET_DEAD_NONE);
    world_end(t);
    t = begin_judged(WIRE_WEBHOOK, 1, conflict);
    push(t, "bad");
    expect_dead(t, 1, "bad");
    world_end(t);
}

static void nobody_is_asked_who_keeps_no_dead_letters_or_wants_none(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct world *t = begin_judged(i < 2 ? WIRE_WEBHOOK : WIRE_BATCH, i % 2 ? 1 : 0, always_422);
        t->wire->outlet.keeps_dead = i % 2 == 0;
        push(t, "good");
        push(t, "bad");
        run_for_s(t, 30);
        assert_true(tries_of(t) > 5);
        assert_int_equal(dead_state(t), OUTLET_DEAD_NONE);
        if (i >= 2)
            assert_int_equal(t->noted[t->requests - 1].count, 2); /* the batch stays as it is, too */
        world_end(t);
    }
}

/* One bad record among 64: the others are delivered without it, in about 2 log2(64) requests. */
static void the_bad_record_of_a_batch_is_found(void **state)
{
    (void)state;
    for (uint64_t bad = 1; bad <= 128; bad += 3) {
        struct world *t = begin_judged(bad % 2 ? WIRE_BATCH : WIRE_PURE, 2, always_422);
        uint64_t number = (bad + 1) / 2;
        for (uint64_t i = 1; i <= 64; i++)
            push(t, i == number ? "bad" : "good");
        expect_dead(t, number, "bad");
        assert_true(tries_of(t) <= (bad % 2 ? 10 : 18)); /* pure: those behind a refused one are in vain */
        take_dead(t);
        run_until_stored(t);
        assert_true(tries_of(t) <= (bad % 2 ? 16 : 24));
        assert_int_equal(dead_count(t), 1);
        push(t, "good");
        push(t, "good"); /* batches are whole again */
        uint64_t tries = tries_of(t);
        run_until_stored(t);
        assert_true(tries_of(t) <= tries + 2);
        world_end(t);
    }
}

static void all_bad_records_of_a_batch_are_set_aside(void **state)
{
    (void)state;
    for (unsigned mode = 0; mode < 2; mode++) {
        struct world *t = begin_judged(mode ? WIRE_BATCH : WIRE_PURE, 1, always_422);
        for (uint64_t i = 1; i <= 10; i++)
            push(t, i % 3 == 0 || i == 4 ? "bad" : "good");
        static const uint64_t dead[] = {3, 4, 6, 9};
        for (size_t i = 0; i < ARRAY_SIZE(dead); i++) {
            expect_dead(t, dead[i], "bad");
            take_dead(t);
            sim_run_for(t->sim, 1000);
        }
        run_until_stored(t);
        assert_int_equal(dead_count(t), ARRAY_SIZE(dead));
        world_end(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receiver_knows_what_an_earlier_life_has_sent),
        cmocka_unit_test(more_than_was_ever_sent_is_still_an_error),
        cmocka_unit_test(nothing_new_is_sent_before_the_answer_is_noted),
        cmocka_unit_test(what_may_have_been_sent_goes_on_without_a_note),
        cmocka_unit_test(a_wire_that_was_outgrown_goes_on_under_a_new_epoch),
        cmocka_unit_test(lost_numbers_are_passed_over),
        cmocka_unit_test(a_wire_that_rests_or_is_disabled_passes_over_lost_numbers_too),
        cmocka_unit_test(a_record_that_is_always_refused_is_set_aside_and_the_next_follows),
        cmocka_unit_test(only_refusals_in_a_row_count),
        cmocka_unit_test(what_does_not_speak_of_the_record_is_no_refusal),
        cmocka_unit_test(nobody_is_asked_who_keeps_no_dead_letters_or_wants_none),
        cmocka_unit_test(the_bad_record_of_a_batch_is_found),
        cmocka_unit_test(all_bad_records_of_a_batch_are_set_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
