/* The wire against peers, networks and resolvers that misbehave: bounded in time and memory, said truthfully,
 * without harm to another wire. */
#include "tests/unit/wire_world.h"

#define BEGIN(script) begin(1, script, ARRAY_SIZE(script))
#define TAKE          SIM_EXPECT_HTTP, SIM_CALL(note_request, &here)
#define HOUR_NS       (3600 * NS_PER_S)

static const struct sim_step receive[] = {TAKE, SIM_SEND(OK_REPLY), SIM_AGAIN};
static const struct sim_step silent[] = {SIM_DISCARD};
static const struct sim_step deaf[] = {SIM_STOP_READING};
static const struct sim_step garbage[] = {TAKE, SIM_SEND("\x16\x03\x01 what is this?\r\n\r\n")};
static const struct sim_step banner[] = {SIM_SEND("SSH-2.0-x\r\n")};
static const struct sim_step half_head[] = {TAKE, SIM_SEND("HTTP/1.1 200 OK\r\nContent-Le"), SIM_CLOSE};
static const struct sim_step cut_head[] = {TAKE, SIM_SEND("HTTP/1.1 200 OK\r\nServer: x\r\n"), SIM_CLOSE};
static const struct sim_step cut_old_head[] = {TAKE, SIM_SEND("HTTP/1.0 200 OK\r\nServer: x"), SIM_CLOSE};
static const struct sim_step half_close[] = {SIM_SHUTDOWN};
static const struct sim_step interims[] = {
    TAKE, SIM_SEND("HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 100 Go\r\n\r\nHTTP/1.1 100 Go\r\n\r\n"
                   "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 100 Go\r\n\r\nHTTP/1.1 100 Go\r\n\r\n"
                   "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 100 Go\r\n\r\nHTTP/1.1 100 Go\r\n\r\n" OK_REPLY)};

/* Sends one piece each interval for ever, once the request is in. */
static const char *piece;

static void send_piece(struct sim_connection *c, void *context)
{
    (void)context;
    sim_peer_send(c, piece, strlen(piece));
}

static const struct sim_step drip_head[] = {SIM_SEND("HTTP/1.1 200 OK\r\nX: "), SIM_WAIT(NS_PER_S),
                                            SIM_CALL(send_piece, NULL), SIM_WAIT(NS_PER_S),
                                            SIM_CALL(send_piece, NULL)};

struct hostile_case {
    const char *name;
    const struct sim_step *script;
    unsigned steps;
    int error;
    uint64_t at_s; /* when the failure is known, at the latest; a second before it is not */
};

static void a_peer_that_never_does_its_part_is_given_up_in_its_time(void **state)
{
    (void)state;
#define CASE(script) #script, script, ARRAY_SIZE(script)
    static const struct hostile_case cases[] = {
        {CASE(silent), PE_REPLY_TIMEOUT, 31},     {CASE(garbage), PE_HTTP_REPLY, 1},
        {CASE(banner), PE_HTTP_REPLY, 1},         {CASE(half_head), PE_CLOSED_EARLY, 1},
        {CASE(cut_head), PE_CLOSED_EARLY, 1},     {CASE(half_close), PE_CLOSED, 1},
        {CASE(cut_old_head), PE_CLOSED_EARLY, 1}, {CASE(interims), PE_HTTP_REPLY, 1},
        {CASE(drip_head), PE_REPLY_TIMEOUT, 31},
    };
    piece = "x";
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct hostile_case *c = &cases[i];
        struct world *t = begin(i, c->script, c->steps);
        t->options.backoff_min_ns = t->options.backoff_max_ns = HOUR_NS;
        world_start(t);
        push(t, "1");
        if (c->at_s > 1)
            run_for_s(t, c->at_s - 2);
        assert_int_equal(failures_of(t), 0);
        run_for_s(t, 2);
        if (failures_of(t) != 1 || error_of(t) != c->error || state_of(t) != OUTLET_RESTING)
            fail_msg("%s: %u failures, error %d", c->name, (unsigned)failures_of(t), error_of(t));
        assert_int_equal(stored(t), 0);
        assert_int_equal(sim_open_descriptors(t->sim), 0);
        world_end(t);
    }
}

static void a_black_hole_is_noticed_while_connecting(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    struct sim_link hole = sim_link_default;
    hole.black_hole = true;
    sim_set_link(t->sim, NULL, "10.0.0.2", &hole);
    world_start(t);
    push(t, "1");
    run_for_s(t, 9);
    assert_int_equal(failures_of(t), 0);
    run_for_s(t, 2);
    assert_int_equal(error_of(t), PE_CONNECT_TIMEOUT);
    sim_set_link(t->sim, NULL, "10.0.0.2", &sim_link_default);
    run_until_stored(t);
    world_end(t);
}

static void push_bytes(struct world *t, size_t size)
{
    char record[4096];
    memset(record, 'x', sizeof record);
    assert_int_equal(outlet_queue(&t->wire->outlet, record, size), 0);
    outlet_push(&t->wire->outlet);
    t->pushed++;
}

static void narrow(struct world *t, uint64_t bytes_s)
{
    struct sim_link link = sim_link_default;
    link.window_bytes = 512;
    link.bytes_s = bytes_s;
    sim_set_link(t->sim, NULL, NULL, &link);
}

static void a_peer_that_stops_reading_is_noticed_while_sending(void **state)
{
    (void)state;
    struct world *t = BEGIN(deaf);
    narrow(t, 0);
    t->options.backoff_min_ns = t->options.backoff_max_ns = HOUR_NS;
    world_start(t);
    push_bytes(t, 4000);
    run_for_s(t, 9);
    assert_int_equal(failures_of(t), 0);
    run_for_s(t, 2);
    assert_int_equal(failures_of(t), 1);
    assert_true(error_of(t) == PE_SEND_TIMEOUT || error_of(t) == -ETIMEDOUT);
    assert_int_equal(sim_open_descriptors(t->sim), 0);
    world_end(t);
}

static void read_on(struct sim_connection *c, void *context)
{
    (void)context;
    sim_peer_read(c, true);
}

static void read_no_more(struct sim_connection *c, void *context)
{
    (void)context;
    sim_peer_read(c, false);
}

static void progress_counts_from_when_it_was_made(void **state)
{
    (void)state;
    static const struct sim_step pauses[] = {SIM_STOP_READING, SIM_WAIT(9 * NS_PER_S),
                                             SIM_CALL(read_on, NULL), SIM_WAIT(NS_PER_MS),
                                             SIM_CALL(read_no_more, NULL)};
    struct world *t = BEGIN(pauses);
    narrow(t, 0);
    t->options.backoff_min_ns = t->options.backoff_max_ns = HOUR_NS;
    world_start(t);
    for (int i = 0; i < 4; i++)
        push_bytes(t, 4000);
    run_for_s(t, 17);
    assert_int_equal(failures_of(t), 0);
    run_for_s(t, 3);
    assert_int_equal(failures_of(t), 1);
    world_end(t);
}

static void a_reply_limit_below_the_progress_limit_is_kept(void **state)
{
    (void)state;
    struct world *t = BEGIN(silent);
    t->options.reply_ns = NS_PER_S;
    world_start(t);
    push(t, "1");
    run_for_s(t, 2);
    assert_int_equal(error_of(t), PE_REPLY_TIMEOUT);
    world_end(t);
}

static void slow_progress_is_progress_until_the_total_limit(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes_s;
        int error;
    } cases[] = {{50, 0}, {4, PE_TOTAL_TIMEOUT}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world *t = BEGIN(receive);
        narrow(t, cases[i].bytes_s);
        t->options.backoff_min_ns = t->options.backoff_max_ns = HOUR_NS;
        t->options.progress_ns = 60 * NS_PER_S;
        world_start(t);
        push_bytes(t, 4000); /* 85 s, 1000 s */
        run_for_s(t, 301);
        assert_int_equal(error_of(t), cases[i].error);
        assert_int_equal(stored(t), cases[i].error ? 0 : 1);
        world_end(t);
    }
}

/* --- bodies: the status, once known, decides --- */

static void endless(struct sim_connection *c, void *context)
{
    (void)context;
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n";
    char body[1024];
    memset(body, 'x', sizeof body);
    sim_peer_send(c, head, sizeof head - 1);
    for (size_t i = 0; i < CONNECTION_BODY_MAX / sizeof body + 10; i++)
        sim_peer_send(c, body, sizeof body);
}

static void endless_head(struct sim_connection *c, void *context)
{
    (void)context;
    char field[1024] = "X: ";
    memset(field + 3, 'x', sizeof field - 5);
    memcpy(field + sizeof field - 2, "\r\n", 2);
    sim_peer_send(c, "HTTP/1.1 200 OK\r\n", 17);
    for (size_t i = 0; i < HTTP_REPLY_HEAD_MAX / sizeof field; i++)
        sim_peer_send(c, field, sizeof field);
}

static void an_endless_body_is_cut_and_counts_as_delivered(void **state)
{
    (void)state;
    static const struct sim_step script[] = {TAKE, SIM_CALL(endless, NULL)};
    struct world *t = BEGIN(script);
    world_start(t);
    push(t, "1");
    push(t, "2");
    run_until_stored(t);
    assert_int_equal(t->requests, 2);
    assert_int_equal(sim_server_accepted(t->server), 2);
    assert_int_equal(failures_of(t), 0);
    world_end(t);
}

static void a_dripping_body_holds_the_next_request_no_longer_than_the_total_limit(void **state)
{
    (void)state;
    static const struct sim_step script[] = {TAKE,
                                             SIM_SEND("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n.")};
    struct world *t = BEGIN(script);
    t->options.total_ns = 60 * NS_PER_S;
    world_start(t);
    push(t, "1");
    push(t, "2");
    run_for_s(t, 59);
    assert_int_equal(stored(t), 1);
    run_for_s(t, 2);
    assert_int_equal(stored(t), 2);
    assert_int_equal(failures_of(t), 0);
    world_end(t);
}

static void an_endless_head_is_refused(void **state)
{
    (void)state;
    static const struct sim_step script[] = {TAKE, SIM_CALL(endless_head, NULL)};
    struct world *t = BEGIN(script);
    world_start(t);
    push(t, "1");
    run_for_s(t, 1);
    assert_int_equal(error_of(t), PE_HTTP_REPLY);
    assert_int_equal(stored(t), 0);
    world_end(t);
}

/* --- descriptors, half-open connections --- */

static void no_descriptor_is_back_off(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    sim_limit_descriptors(t->sim, 0);
    world_start(t);
    push(t, "1");
    run_for_s(t, 60);
    assert_int_equal(error_of(t), -EMFILE);
    assert_true(failures_of(t) < 60);
    sim_limit_descriptors(t->sim, 100);
    run_until_stored(t);
    world_end(t);
}

static void a_half_open_connection_is_noticed_and_its_request_goes_again(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    world_start(t);
    push(t, "1");
    run_until_stored(t);
    sim_silence_host(t->sim, "10.0.0.2", true);
    push(t, "2");
    run_for_s(t, 12); /* TCP_USER_TIMEOUT: the peer's kernel took nothing */
    assert_true(lane_opening(t->wire->lanes[0]));
    sim_silence_host(t->sim, "10.0.0.2", false);
    run_until_stored(t);
    world_end(t);
}

static void a_peer_that_rebooted_costs_no_attempt(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    world_start(t);
    push(t, "1");
    run_until_stored(t);
    sim_reboot_host(t->sim, "10.0.0.2");
    push(t, "2");
    run_until_stored(t);
    assert_int_equal(failures_of(t), 0);
    world_end(t);
}

static void descriptors_do_not_grow_with_attempts(void **state)
{
    (void)state;
    struct world *t = BEGIN(half_head);
    world_start(t);
    push(t, "1");
    for (int i = 0; i < 1000; i++) {
        run_for_s(t, 60);
        assert_true(sim_open_descriptors(t->sim) <= 1);
    }
    assert_true(failures_of(t) > 1000);
    world_end(t);
}

/* --- others --- */

static struct wire *second_wire(struct world *t, const char *url)
{
    struct wire *w = aligned_alloc(CACHE_LINE, sizeof *w);
    assert_non_null(w);
    world_options(t, url);
    assert_int_equal(wire_init(w, &t->options, "app", "bad", 1 << 16, 4096, &t->loop, t->resolver, &t->log),
                     0);
    w->outlet.producer = &t->loop.board;
    w->outlet.producer_slot = 63;
    assert_int_equal(outlet_queue(&w->outlet, "x", 1), 0);
    outlet_push(&w->outlet);
    return w;
}

static bool stopped(void *wire)
{
    return wire_stopped(wire);
}

/*
 *     wire ----> receiver              delivers 100 records in the time it takes alone
 *     bad[0] --> refused
 *     bad[1] --> accepts, reads nothing
 *     bad[2] --> a name that never answers
 *     bad[3] --> garbage
 */
static void bad_neighbours_change_nothing(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://10.0.0.3/", "http://10.0.0.4/", "http://never.example/",
                                       "http://10.0.0.5/"};
    struct world *t = BEGIN(receive);
    static const struct sim_answer never = {.delay_ns = SIM_HANGS};
    sim_set_name(t->sim, "never.example", &never);
    sim_server(t->sim, "10.0.0.4:80", deaf, ARRAY_SIZE(deaf));
    sim_server(t->sim, "10.0.0.5:80", garbage, ARRAY_SIZE(garbage));
    world_start(t);
    struct wire *bad[4];
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        bad[i] = second_wire(t, urls[i]);
    for (int i = 0; i < 100; i++)
        push(t, "x");
    uint64_t start_ns = sim_now_ns(t->sim);
    run_until_stored(t);
    assert_true(sim_now_ns(t->sim) - start_ns < 100 * NS_PER_MS); /* a round trip is below 0.4 ms */
    assert_int_equal(failures_of(t), 0);
    run_for_s(t, 60);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(atomic_load(&bad[i]->outlet.report.state), OUTLET_RESTING);
        wire_stop(bad[i]);
        assert_int_equal(sim_run_until(t->sim, stopped, bad[i]), SIM_DONE);
        wire_dispose(bad[i]);
        free(bad[i]);
    }
    world_end(t);
}

static void a_wire_stops_in_every_state(void **state)
{
    (void)state;
    /* stopped after each of these times, whatever it is doing then */
    for (uint64_t us = 0; us < 2000; us += 37) {
        struct world *t = begin(us, receive, ARRAY_SIZE(receive));
        static const struct sim_answer answer = {.addresses = {"10.0.0.2"}, .delay_ns = 500 * NS_PER_US};
        sim_set_name(t->sim, "named.example", &answer);
        world_options(t, "http://named.example/");
        world_start(t);
        for (int i = 0; i < 10; i++)
            push(t, "x");
        sim_run_for(t->sim, us * NS_PER_US);
        world_end(t);
    }
}

static void a_full_outlet_tells_its_producer_when_there_is_room(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    world_start(t);
    struct outlet *o = &t->wire->outlet;
    while (!outlet_over(o))
        push(t, "0123456789");
    assert_true(outlet_wait(o, 0));
    run_until_stored(t);
    assert_false(outlet_wait(o, 0));
    world_end(t);
}

static const struct sim_step alert[] = {TAKE, SIM_SEND("\x15\x03\x01"), SIM_CLOSE};

static void a_peer_that_speaks_tls_is_told_apart(void **state)
{
    (void)state;
    struct world *t = BEGIN(alert);
    world_start(t);
    push(t, "1");
    sim_run_for(t->sim, NS_PER_S);
    char text[200];
    outlet_error_text(&t->wire->outlet, text, sizeof text);
    assert_non_null(strstr(text, "(the peer speaks TLS: did you mean https?)"));
    world_end(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_speaks_tls_is_told_apart),
        cmocka_unit_test(a_peer_that_never_does_its_part_is_given_up_in_its_time),
        cmocka_unit_test(a_black_hole_is_noticed_while_connecting),
        cmocka_unit_test(a_peer_that_stops_reading_is_noticed_while_sending),
        cmocka_unit_test(progress_counts_from_when_it_was_made),
        cmocka_unit_test(a_reply_limit_below_the_progress_limit_is_kept),
        cmocka_unit_test(slow_progress_is_progress_until_the_total_limit),
        cmocka_unit_test(an_endless_body_is_cut_and_counts_as_delivered),
        cmocka_unit_test(a_dripping_body_holds_the_next_request_no_longer_than_the_total_limit),
        cmocka_unit_test(an_endless_head_is_refused),
        cmocka_unit_test(no_descriptor_is_back_off),
        cmocka_unit_test(a_half_open_connection_is_noticed_and_its_request_goes_again),
        cmocka_unit_test(a_peer_that_rebooted_costs_no_attempt),
        cmocka_unit_test(descriptors_do_not_grow_with_attempts),
        cmocka_unit_test(bad_neighbours_change_nothing),
        cmocka_unit_test(a_wire_stops_in_every_state),
        cmocka_unit_test(a_full_outlet_tells_its_producer_when_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
