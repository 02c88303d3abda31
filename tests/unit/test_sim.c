/* The simulated world itself: what tests of everything else lean on.
 *
 *     10.0.0.1 loop with a stream  <--- link policy --->  10.0.0.2:80 scripted server */
#include "tests/sim/sim.h"

#include "core/error.h"
#include "core/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* A loop that connects, sends `request` bytes and reads to the end. */
struct client {
    struct sim *sim;
    struct loop loop;
    struct stream stream;
    uint8_t request[3000];
    size_t request_size, received, pieces;
    uint64_t hash;
    int error;
    bool connected, ended, closed;
};

static struct client *client_of(struct stream *s)
{
    return container_of(s, struct client, stream);
}

static void on_connected(struct stream *s)
{
    struct client *c = client_of(s);
    struct iovec part = {c->request, c->request_size};
    c->connected = true;
    stream_read(s, true);
    if (c->request_size > 0)
        stream_send(s, &part, 1);
}

static void on_data(struct stream *s, const uint8_t *bytes, size_t size)
{
    struct client *c = client_of(s);
    for (size_t i = 0; i < size; i++)
        c->hash = c->hash * 31 + bytes[i];
    c->received += size;
    c->pieces++;
}

static void on_ended(struct stream *s)
{
    client_of(s)->ended = true;
    stream_close(s);
}

static void on_sent(struct stream *s, size_t size, bool all)
{
    (void)s, (void)size, (void)all;
}

static void on_failed(struct stream *s, int error)
{
    client_of(s)->error = error;
    stream_close(s);
}

static void on_closed(struct stream *s)
{
    client_of(s)->closed = true;
}

static const struct stream_events events = {.connected = on_connected,
                                            .data = on_data,
                                            .ended = on_ended,
                                            .sent = on_sent,
                                            .failed = on_failed,
                                            .closed = on_closed};

static void client_open(struct client *c, struct sim *sim, size_t request_size, uint32_t user_timeout_ms)
{
    static const struct sockaddr_in server = {.sin_family = AF_INET};
    struct sockaddr_in to = server;
    struct io_socket_options options = {.user_timeout_ms = user_timeout_ms};
    *c = (struct client){.sim = sim, .request_size = request_size};
    to.sin_port = htons(80);
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    for (size_t i = 0; i < sizeof c->request; i++)
        c->request[i] = (uint8_t)(i * 7);
    assert_int_equal(loop_init(&c->loop, sim_io(sim, "10.0.0.1"), 64, 4), 0);
    sim_add_loop(sim, &c->loop);
    stream_init(&c->stream, c->loop.io, &events, -1);
    assert_int_equal(stream_connect(&c->stream, (struct sockaddr *)&to, sizeof to, &options), 0);
}

static void client_free(struct client *c)
{
    sim_remove_loop(c->sim, &c->loop);
    loop_dispose(&c->loop);
    sim_free(c->sim);
}

static bool is_closed(void *context)
{
    return ((struct client *)context)->closed;
}

static uint8_t reply[5000];

static const struct sim_step exchange[] = {SIM_EXPECT_BYTES(3000), SIM_SEND_BYTES(reply, sizeof reply),
                                           SIM_CLOSE};

static uint64_t trace_of_exchange(uint64_t seed)
{
    struct client c;
    struct sim *sim = sim_new(seed);
    struct sim_faults faults = {100, 200, 300, 4, 512};
    sim_set_faults(sim, &faults);
    sim_server(sim, "10.0.0.2:80", exchange, ARRAY_SIZE(exchange));
    client_open(&c, sim, 3000, 0);
    assert_int_equal(sim_run_until(sim, is_closed, &c), SIM_DONE);
    assert_true(c.ended);
    assert_int_equal(c.received, sizeof reply);
    uint64_t trace = sim_trace(sim);
    client_free(&c);
    return trace;
}

static void the_same_seed_gives_the_same_run(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t trace = trace_of_exchange(seed);
        assert_int_equal(trace, trace_of_exchange(seed));
        assert_int_not_equal(trace, trace_of_exchange(seed + 1000));
    }
}

static void a_stream_is_split_at_every_byte(void **state)
{
    (void)state;
    bool seen[101] = {false};
    static const struct sim_step send[] = {SIM_SEND_BYTES(reply, 100)};
    struct sim_link link = sim_link_default;
    link.split = 900;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct client c;
        struct sim *sim = sim_new(seed);
        sim_set_link(sim, NULL, NULL, &link);
        sim_server(sim, "10.0.0.2:80", send, 1);
        client_open(&c, sim, 0, 0);
        while (c.received == 0)
            assert_int_equal(sim_run(sim, NEVER, NULL, NULL, 1), SIM_STEPS);
        seen[c.received] = true;
        client_free(&c);
    }
    for (size_t i = 1; i <= 100; i++)
        assert_true(seen[i]);
}

static void a_connection_is_reset_at_every_byte_and_both_sides_hear(void **state)
{
    (void)state;
    bool seen[101] = {false};
    static const struct sim_step send[] = {SIM_SEND_BYTES(reply, 100)};
    struct sim_link link = sim_link_default;
    link.reset = 300;
    link.split = 0;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct client c;
        struct sim *sim = sim_new(seed);
        sim_set_link(sim, "10.0.0.2", "10.0.0.1", &link);
        struct sim_server *server = sim_server(sim, "10.0.0.2:80", send, 1);
        client_open(&c, sim, 0, 0);
        assert_int_equal(sim_run_for(sim, NS_PER_S), SIM_TIME);
        seen[c.received] = true;
        assert_int_equal(c.error, c.received == 100 && !c.closed ? 0 : -ECONNRESET);
        assert_int_equal(sim_peer_error(sim_server_connection(server, 0)), c.error);
        client_free(&c);
    }
    for (size_t i = 0; i <= 100; i++)
        assert_true(seen[i]);
}

static void nobody_listening_is_refused_and_a_black_hole_is_silent(void **state)
{
    (void)state;
    struct client c;
    struct sim *sim = sim_new(1);
    client_open(&c, sim, 0, 0);
    assert_int_equal(sim_run_until(sim, is_closed, &c), SIM_DONE);
    assert_int_equal(c.error, -ECONNREFUSED);
    assert_true(sim_now_ns(sim) < SIM_START_NS + NS_PER_MS);
    assert_int_equal(sim_open_descriptors(sim), 0);
    client_free(&c);

    struct sim_link hole = sim_link_default;
    hole.black_hole = true;
    sim = sim_new(1);
    sim_server(sim, "10.0.0.2:80", NULL, 0);
    sim_set_link(sim, NULL, "10.0.0.2", &hole);
    client_open(&c, sim, 0, 0);
    assert_int_equal(sim_run_for(sim, 60 * NS_PER_S), SIM_TIME);
    assert_false(c.connected || c.error);
    stream_close(&c.stream); /* cancels */
    assert_int_equal(sim_run_until(sim, is_closed, &c), SIM_DONE);
    client_free(&c);
}

static void a_hole_that_closes_lets_the_next_syn_through(void **state)
{
    (void)state;
    struct client c;
    struct sim *sim = sim_new(1);
    sim_server(sim, "10.0.0.2:80", NULL, 0);
    sim_silence_host(sim, "10.0.0.2", true);
    client_open(&c, sim, 10, 0);
    sim_run_for(sim, 2 * NS_PER_S);
    assert_false(c.connected);
    sim_silence_host(sim, "10.0.0.2", false);
    sim_run_for(sim, 2 * NS_PER_S);
    assert_true(c.connected);
    client_free(&c);
}

static void a_connect_into_a_hole_times_out_as_linux_has_it(void **state)
{
    (void)state;
    struct client c;
    struct sim *sim = sim_new(1);
    sim_silence_host(sim, "10.0.0.2", true);
    client_open(&c, sim, 0, 0);
    assert_int_equal(sim_run_until(sim, is_closed, &c), SIM_DONE);
    assert_int_equal(c.error, -ETIMEDOUT);
    assert_in_range(sim_now_ns(sim) - SIM_START_NS, 60 * NS_PER_S, 130 * NS_PER_S);
    client_free(&c);
}

static void a_silent_peer_is_noticed_by_the_user_timeout(void **state)
{
    (void)state;
    struct client c;
    struct sim *sim = sim_new(1);
    sim_server(sim, "10.0.0.2:80", NULL, 0);
    client_open(&c, sim, 0, 5000);
    sim_run_for(sim, NS_PER_S);
    assert_true(c.connected);
    sim_silence_host(sim, "10.0.0.2", true);
    struct iovec part = {c.request, 100};
    uint64_t sent_ns = sim_now_ns(sim);
    stream_send(&c.stream, &part, 1);
    assert_int_equal(sim_run_until(sim, is_closed, &c), SIM_DONE);
    assert_int_equal(c.error, -ETIMEDOUT);
    assert_in_range(sim_now_ns(sim) - sent_ns, 5 * NS_PER_S, 5 * NS_PER_S + NS_PER_MS);
    client_free(&c);
}

static void bytes_lost_for_a_while_arrive_later(void **state)
{
    (void)state;
    struct client c;
    struct sim *sim = sim_new(1);
    struct sim_server *server = sim_server(sim, "10.0.0.2:80", NULL, 0);
    client_open(&c, sim, 0, 0);
    sim_run_for(sim, NS_PER_S);
    sim_silence_host(sim, "10.0.0.2", true);
    struct iovec part = {c.request, 100};
    stream_send(&c.stream, &part, 1);
    sim_run_for(sim, 3 * NS_PER_S);
    assert_int_equal(sim_received_bytes(sim_server_connection(server, 0)), 0);
    sim_silence_host(sim, "10.0.0.2", false);
    sim_run_for(sim, 10 * NS_PER_S);
    struct span got = sim_received(sim_server_connection(server, 0));
    assert_true(span_equal(got, span_of(c.request, 100)));
    client_free(&c);
}

static void a_rebooted_peer_answers_with_a_reset(void **state)
{
    (void)state;
    struct client c;
    struct sim *sim = sim_new(1);
    sim_server(sim, "10.0.0.2:80", NULL, 0);
    client_open(&c, sim, 0, 0);
    sim_run_for(sim, NS_PER_S);
    sim_reboot_host(sim, "10.0.0.2");
    sim_run_for(sim, NS_PER_S);
    assert_int_equal(c.error, 0); /* nothing told us */
    struct iovec part = {c.request, 100};
    stream_send(&c.stream, &part, 1);
    assert_int_equal(sim_run_until(sim, is_closed, &c), SIM_DONE);
    client_free(&c);
}

static void a_slow_link_delivers_at_its_rate(void **state)
{
    (void)state;
    struct client c;
    struct sim *sim = sim_new(1);
    struct sim_link slow = sim_link_default;
    slow.bytes_s = 1;
    static const struct sim_step send[] = {SIM_SEND_BYTES(reply, 1000)};
    sim_server(sim, "10.0.0.2:80", send, 1);
    sim_set_link(sim, "10.0.0.2", NULL, &slow);
    client_open(&c, sim, 0, 0);
    sim_run_for(sim, 100 * NS_PER_S);
    assert_in_range(c.received, 98, 100);
    slow.bytes_s = 0; /* at once, from the next chunk on */
    sim_set_link(sim, "10.0.0.2", NULL, &slow);
    sim_run_for(sim, 3 * NS_PER_S);
    assert_int_equal(c.received, 1000);
    client_free(&c);
}

static void a_reader_that_stops_stalls_the_sender_at_the_window(void **state)
{
    (void)state;
    struct client c;
    struct sim *sim = sim_new(1);
    struct sim_link narrow = sim_link_default;
    narrow.window_bytes = 1000;
    sim_set_link(sim, NULL, NULL, &narrow);
    static const struct sim_step stop[] = {SIM_STOP_READING};
    struct sim_server *server = sim_server(sim, "10.0.0.2:80", stop, 1);
    client_open(&c, sim, 3000, 0);
    sim_run_for(sim, 10 * NS_PER_S);
    assert_true(stream_sending(&c.stream));
    assert_int_equal(sim_received_bytes(sim_server_connection(server, 0)), 0);
    sim_peer_read(sim_server_connection(server, 0), true);
    sim_run_for(sim, NS_PER_S);
    assert_false(stream_sending(&c.stream));
    struct span got = sim_received(sim_server_connection(server, 0));
    assert_true(span_equal(got, span_of(c.request, 3000)));
    client_free(&c);
}

static void a_reply_before_a_close_with_unread_bytes_can_still_be_read(void **state)
{
    (void)state;
    static const struct sim_step early[] = {SIM_STOP_READING, SIM_SEND("HTTP/1.1 413 Too Large\r\n\r\n"),
                                            SIM_WAIT(NS_PER_S), SIM_CLOSE};
    struct client c;
    struct sim *sim = sim_new(1);
    sim_server(sim, "10.0.0.2:80", early, ARRAY_SIZE(early));
    client_open(&c, sim, 3000, 0);
    assert_int_equal(sim_run_until(sim, is_closed, &c), SIM_DONE);
    assert_int_equal(c.received, 26);
    assert_int_equal(c.error, -ECONNRESET);
    client_free(&c);
}

static void the_descriptor_limit_is_exact(void **state)
{
    (void)state;
    struct sim *sim = sim_new(1);
    struct io *io = sim_io(sim, NULL);
    sim_limit_descriptors(sim, 2);
    assert_true(io_socket(io, AF_INET, NULL) >= SIM_FIRST_FD);
    assert_true(io_socket(io, AF_INET, NULL) >= SIM_FIRST_FD);
    assert_int_equal(io_socket(io, AF_INET, NULL), -EMFILE);
    assert_int_equal(sim_open_descriptors(sim), 2);
    sim_free(sim);
}

static void clients_run_scripts_too(void **state)
{
    (void)state;
    static const struct sim_step ask[] = {SIM_SEND("ping\n"), SIM_EXPECT_UNTIL("pong\n"), SIM_SHUTDOWN,
                                          SIM_EXPECT_END};
    static const struct sim_step serve[] = {SIM_EXPECT_UNTIL("ping\n"), SIM_WAIT(NS_PER_S),
                                            SIM_SEND("pong\n"), SIM_EXPECT_END, SIM_CLOSE};
    struct sim *sim = sim_new(3);
    struct sim_server *server = sim_server(sim, "[fd00::2]:80", serve, ARRAY_SIZE(serve));
    struct sim_connection *c = sim_client(sim, "fd00::1", "[fd00::2]:80", ask, ARRAY_SIZE(ask));
    sim_run_for(sim, 2 * NS_PER_S);
    assert_true(sim_script_done(c) && sim_script_done(sim_server_connection(server, 0)));
    assert_int_equal(sim_peer_error(c), 0);
    struct sim_connection *refused = sim_client(sim, "fd00::1", "[fd00::3]:80", NULL, 0);
    sim_run_for(sim, NS_PER_S);
    assert_int_equal(sim_peer_error(refused), -ECONNREFUSED);
    sim_server_listen(server, false);
    refused = sim_client(sim, "fd00::1", "[fd00::2]:80", NULL, 0);
    sim_run_for(sim, NS_PER_S);
    assert_int_equal(sim_peer_error(refused), -ECONNREFUSED);
    sim_free(sim);
}

static void http_messages_are_framed(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
        char both[200];
        size_t size = strlen(messages[i]);
        snprintf(both, sizeof both, "%sGET", messages[i]);
        for (size_t n = 0; n < size; n++)
            assert_int_equal(sim_match_http(span_of(both, n), NULL), 0);
        assert_int_equal(sim_match_http(span_of(both, size + 3), NULL), size);
    }
}

/* ---- Clock and scheduler ---- */

struct ticker {
    struct timer timer;
    struct loop *loop;
    uint64_t fired_ns[3];
    unsigned count;
};

static void tick(struct timer *timer, uint64_t now_ns)
{
    struct ticker *t = container_of(timer, struct ticker, timer);
    t->fired_ns[t->count++] = now_ns;
    if (t->count < 3)
        timer_set(&t->loop->timers, timer, now_ns + 3600 * NS_PER_S);
}

static bool ticked(void *context)
{
    return ((struct ticker *)context)->count == 3;
}

static void time_jumps_to_deadlines_and_an_idle_world_is_stuck(void **state)
{
    (void)state;
    struct sim *sim = sim_new(1);
    struct loop loop;
    assert_int_equal(loop_init(&loop, sim_io(sim, NULL), 1, 1), 0);
    sim_add_loop(sim, &loop);
    assert_int_equal(sim_run(sim, NEVER, NULL, NULL, 100), SIM_STUCK);
    struct ticker t = {.loop = &loop};
    timer_init(&t.timer, tick);
    timer_set(&loop.timers, &t.timer, sim_now_ns(sim) + 5);
    assert_int_equal(sim_run(sim, NEVER, ticked, &t, 100), SIM_DONE);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(t.fired_ns[i], SIM_START_NS + 5 + i * 3600 * NS_PER_S);
    assert_int_equal(sim_run(sim, NEVER, NULL, NULL, 100), SIM_STUCK);
    sim_remove_loop(sim, &loop);
    loop_dispose(&loop);
    sim_free(sim);
}

static void the_wall_clock_jumps_alone(void **state)
{
    (void)state;
    struct sim *sim = sim_new(1);
    struct io *io = sim_io(sim, NULL);
    assert_int_equal(io_wall_ms(io), SIM_START_WALL_MS);
    sim_run_for(sim, NS_PER_S);
    assert_int_equal(io_wall_ms(io), SIM_START_WALL_MS + 1000);
    sim_set_wall_ms(sim, 0);
    assert_int_equal(io_wall_ms(io), 0);
    sim_run_for(sim, NS_PER_S);
    assert_int_equal(io_wall_ms(io), 1000);
    assert_int_equal(io_now_ns(io), SIM_START_NS + 2 * NS_PER_S);
    sim_free(sim);
}

static void set_flag(void *context)
{
    *(bool *)context = true;
}

static bool flag_is_set(void *context)
{
    return *(bool *)context;
}

static void calls_of_the_test_come_at_their_time(void **state)
{
    (void)state;
    bool flag = false;
    struct sim *sim = sim_new(1);
    sim_at(sim, SIM_START_NS + 42, set_flag, &flag);
    assert_int_equal(sim_run_until(sim, flag_is_set, &flag), SIM_DONE);
    assert_int_equal(sim_now_ns(sim), SIM_START_NS + 42);
    sim_free(sim);
}

/* ---- Names ---- */

struct asker {
    struct resolver_request request;
    unsigned answers;
    int error;
};

static void answered(struct resolver_request *request, int error)
{
    struct asker *a = container_of(request, struct asker, request);
    a->answers++;
    a->error = error;
}

static void ask(struct resolver *resolver, struct asker *a, const char *name)
{
    *a = (struct asker){.request = {.done = answered, .port = 80}};
    strcpy(a->request.name, name);
    resolver->lookup(resolver, &a->request);
    assert_int_equal(a->answers, 0); /* never from inside lookup */
}

static void names_answer_fail_wait_and_hang_as_told(void **state)
{
    (void)state;
    struct sim *sim = sim_new(1);
    struct loop loop;
    assert_int_equal(loop_init(&loop, sim_io(sim, NULL), 1, 1), 0);
    sim_add_loop(sim, &loop);
    struct resolver *resolver = sim_resolver(sim, &loop);
    struct sim_answer two = {.addresses = {"10.0.0.2", "fd00::2"}, .delay_ns = NS_PER_S};
    struct sim_answer failed = {.error = PE_NAME_FAILED};
    struct sim_answer hangs = {.delay_ns = SIM_HANGS};
    sim_set_name(sim, "two.example", &two);
    sim_set_name(sim, "failed.example", &failed);
    sim_set_name(sim, "hangs.example", &hangs);
    static const char *const names[] = {"two.example",  "failed.example", "hangs.example",
                                        "none.example", "10.0.0.9",       "two.example"};
    struct asker a[ARRAY_SIZE(names)];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        ask(resolver, &a[i], names[i]);
    resolver->cancel(resolver, &a[5].request);
    sim_run_for(sim, NS_PER_S / 2);
    assert_int_equal(a[0].answers, 0);
    sim_run_for(sim, NS_PER_S);
    assert_int_equal(a[0].answers, 1);
    assert_int_equal(a[0].error, 0);
    assert_int_equal(a[0].request.count, 2);
    assert_int_equal(((struct sockaddr_in6 *)&a[0].request.addresses[1].address)->sin6_port, htons(80));
    assert_int_equal(a[1].error, PE_NAME_FAILED);
    assert_true(a[2].answers == 0 && a[2].request.in_flight);
    assert_int_equal(a[3].error, PE_NAME_NOT_FOUND);
    assert_true(a[4].answers == 1 && a[4].error == 0 && a[4].request.count == 1);
    assert_int_equal(a[5].answers, 0);
    assert_int_equal(sim_lookups(sim, "two.example"), 2);
    assert_int_equal(sim_run(sim, NEVER, NULL, NULL, 100), SIM_STUCK);
    sim_remove_loop(sim, &loop);
    loop_dispose(&loop);
    sim_free(sim);
}

/* ---- Pipes ---- */

static int last_result;

static void remember(struct io_op *op, int result, bool more)
{
    (void)op, (void)more;
    last_result = result;
}

static void pipes_fill_empty_and_fail(void **state)
{
    (void)state;
    struct sim *sim = sim_new(1);
    struct io *io = sim_io(sim, NULL);
    int fd = sim_pipe(sim, 4);
    struct io_op in = {0}, out = {0};
    char text[] = "abcdef", got[8] = "";
    io_prepare_memory(&out, IO_WRITE, fd, text, 6, remember);
    io_queue(io, &out);
    io_wait(io, 0);
    assert_int_equal(last_result, 4);
    io_prepare_memory(&out, IO_WRITE, fd, text + 4, 2, remember);
    io_queue(io, &out);
    assert_int_equal(io_wait(io, 0), 0); /* full */
    assert_int_equal(sim_pipe_take(sim, fd, got, 3), 3);
    assert_int_equal(io_wait(io, 0), 1);
    assert_int_equal(last_result, 2);
    io_prepare_memory(&in, IO_READ, fd, got, sizeof got, remember);
    io_queue(io, &in);
    assert_int_equal(io_wait(io, 0), 1);
    assert_int_equal(last_result, 3);
    assert_memory_equal(got, "def", 3);
    sim_pipe_fail(sim, fd, -EIO);
    io_queue(io, &in);
    assert_int_equal(io_wait(io, 0), 1);
    assert_int_equal(last_result, -EIO);
    sim_free(sim);
}

/* An operation that is queued again whenever it completes, `left` times more. */
struct again {
    struct io_op op;
    struct io *io;
    unsigned left;
    char byte;
};

static void write_again(struct io_op *op, int result, bool more)
{
    (void)more;
    struct again *again = container_of(op, struct again, op);
    assert_int_equal(result, 1);
    if (again->left > 0) {
        again->left--;
        io_queue(again->io, op);
    }
}

static void an_io_that_drains_waits_until_nothing_completes_any_more(void **state)
{
    (void)state;
    for (int drains = 0; drains < 2; drains++) {
        struct sim *sim = sim_new(1);
        struct again again = {.io = sim_io(sim, NULL), .left = 99};
        again.io->drains = drains;
        io_prepare_memory(&again.op, IO_WRITE, sim_pipe(sim, 1000), &again.byte, 1, write_again);
        io_queue(again.io, &again.op);
        assert_int_equal(io_wait(again.io, 0), drains ? 100 : 1);
        assert_int_equal(again.left, drains ? 0 : 98);
        sim_free(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_run),
        cmocka_unit_test(an_io_that_drains_waits_until_nothing_completes_any_more),
        cmocka_unit_test(a_stream_is_split_at_every_byte),
        cmocka_unit_test(a_connection_is_reset_at_every_byte_and_both_sides_hear),
        cmocka_unit_test(nobody_listening_is_refused_and_a_black_hole_is_silent),
        cmocka_unit_test(a_hole_that_closes_lets_the_next_syn_through),
        cmocka_unit_test(a_connect_into_a_hole_times_out_as_linux_has_it),
        cmocka_unit_test(a_silent_peer_is_noticed_by_the_user_timeout),
        cmocka_unit_test(bytes_lost_for_a_while_arrive_later),
        cmocka_unit_test(a_rebooted_peer_answers_with_a_reset),
        cmocka_unit_test(a_slow_link_delivers_at_its_rate),
        cmocka_unit_test(a_reader_that_stops_stalls_the_sender_at_the_window),
        cmocka_unit_test(a_reply_before_a_close_with_unread_bytes_can_still_be_read),
        cmocka_unit_test(the_descriptor_limit_is_exact),
        cmocka_unit_test(clients_run_scripts_too),
        cmocka_unit_test(http_messages_are_framed),
        cmocka_unit_test(time_jumps_to_deadlines_and_an_idle_world_is_stuck),
        cmocka_unit_test(the_wall_clock_jumps_alone),
        cmocka_unit_test(calls_of_the_test_come_at_their_time),
        cmocka_unit_test(names_answer_fail_wait_and_hang_as_told),
        cmocka_unit_test(pipes_fill_empty_and_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
