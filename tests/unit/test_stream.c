/* The stream, on the simulated network under all its faults.
 *
 *     10.0.0.1 a stream that connects, or accepts at :7070  <--->  10.0.0.2 scripted server at :80, or client
 */
#include "tests/sim/sim.h"

#include "core/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum event { NONE, CONNECTED, DATA, ENDED, SENT, FAILED };

struct fixture {
    struct sim *sim;
    struct loop loop;
    struct stream stream;
    struct io_op accept;
    uint8_t request[20000];
    uint8_t received[40000];
    size_t request_size, received_size, sent_size;
    unsigned sends;      /* `sent` callbacks */
    enum event close_in; /* the callback that closes */
    bool pausing;        /* each `data` stops reading, a timer starts it again */
    bool rearming;       /* each `data` stops and starts reading */
    bool shutting;       /* when all is sent */
    bool connected, ended, closed, all_sent;
    unsigned stops; /* `stopped` callbacks */
    int error;
    struct timer pause;
};

static struct fixture *fixture_of(struct stream *s)
{
    return container_of(s, struct fixture, stream);
}

/* After `closed` nothing may come, and before it nothing once stream_close was called. */
static void close_if(struct fixture *f, enum event event)
{
    assert_false(f->closed || f->stream.closing);
    if (f->close_in == event)
        stream_close(&f->stream);
}

static void start(struct fixture *f)
{
    struct iovec parts[3] = {{f->request, 1}, {f->request + 1, 0}, {f->request + 1, f->request_size - 1}};
    f->connected = true;
    stream_read(&f->stream, true);
    if (f->request_size > 0)
        stream_send(&f->stream, parts, 3);
}

static void on_connected(struct stream *s)
{
    struct fixture *f = fixture_of(s);
    start(f);
    close_if(f, CONNECTED);
}

static void resume(struct timer *timer, uint64_t now_ns)
{
    struct fixture *f = container_of(timer, struct fixture, pause);
    (void)now_ns;
    if (!f->stream.closing)
        stream_read(&f->stream, true);
}

static void on_data(struct stream *s, const uint8_t *bytes, size_t size)
{
    struct fixture *f = fixture_of(s);
    assert_in_range(size, 1, sizeof f->received - f->received_size);
    memcpy(f->received + f->received_size, bytes, size);
    f->received_size += size;
    if (f->pausing) {
        stream_read(s, false);
        timer_set(&f->loop.timers, &f->pause, f->loop.now_ns + NS_PER_S);
    }
    if (f->rearming) {
        stream_read(s, false);
        stream_read(s, true);
    }
    close_if(f, DATA);
}

static void on_ended(struct stream *s)
{
    struct fixture *f = fixture_of(s);
    assert_false(f->ended);
    f->ended = true;
    close_if(f, ENDED);
}

static void on_sent(struct stream *s, size_t size, bool all)
{
    struct fixture *f = fixture_of(s);
    f->sends++;
    f->sent_size += size;
    f->all_sent = all;
    assert_int_equal(all, f->sent_size == f->request_size);
    if (all && f->shutting)
        stream_shutdown(s);
    close_if(f, SENT);
}

static void on_failed(struct stream *s, int error)
{
    struct fixture *f = fixture_of(s);
    assert_int_equal(f->error, 0); /* once */
    f->error = error;
    close_if(f, FAILED);
}

static void on_closed(struct stream *s)
{
    struct fixture *f = fixture_of(s);
    assert_false(f->closed);
    f->closed = true;
    assert_false(s->receive.in_flight || s->send.in_flight || s->end.in_flight);
}

static void on_stopped(struct stream *s)
{
    struct fixture *f = fixture_of(s);
    assert_false(s->reading || s->receive.in_flight || s->closing);
    f->stops++;
}

static const struct stream_events events = {on_connected, on_data,   on_ended,  on_sent,
                                            on_failed,    on_closed, on_stopped};

static void open_fixture(struct fixture *f, uint64_t seed, size_t request_size)
{
    struct random random = {seed};
    *f = (struct fixture){.sim = sim_new(seed), .request_size = request_size};
    for (size_t i = 0; i < sizeof f->request; i++)
        f->request[i] = (uint8_t)random_next(&random);
    timer_init(&f->pause, resume);
    assert_int_equal(loop_init(&f->loop, sim_io(f->sim, "10.0.0.1"), 1, 1), 0);
    sim_add_loop(f->sim, &f->loop);
    stream_init(&f->stream, f->loop.io, &events, -1);
}

static struct sockaddr_in endpoint(const char *host, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &address.sin_addr);
    return address;
}

static void connect_fixture(struct fixture *f)
{
    struct sockaddr_in to = endpoint("10.0.0.2", 80);
    assert_int_equal(stream_connect(&f->stream, (struct sockaddr *)&to, sizeof to, NULL), 0);
}

static void free_fixture(struct fixture *f)
{
    sim_remove_loop(f->sim, &f->loop);
    loop_dispose(&f->loop);
    sim_free(f->sim);
}

static bool is_closed(void *context)
{
    return ((struct fixture *)context)->closed;
}

static void echo(struct sim_connection *c, void *context)
{
    (void)context;
    struct span taken = sim_taken(c);
    sim_peer_send(c, taken.data, taken.size);
}

static const struct sim_step echo_all[] = {SIM_EXPECT_END, SIM_CALL(echo, NULL), SIM_CLOSE};

/* One echo of 20000 bytes through a narrow window with everything that a kernel or network may do. */
static void echo_under_faults(uint64_t seed, bool pausing, bool rearming)
{
    struct fixture f;
    struct sim_faults faults = {200, 300, 500, 3, 700};
    struct sim_link link = sim_link_default;
    link.window_bytes = 3000;
    open_fixture(&f, seed, sizeof f.request);
    sim_set_faults(f.sim, &faults);
    sim_set_link(f.sim, NULL, NULL, &link);
    sim_server(f.sim, "10.0.0.2:80", echo_all, ARRAY_SIZE(echo_all));
    f.pausing = pausing;
    f.rearming = rearming;
    f.shutting = true;
    f.close_in = ENDED;
    connect_fixture(&f);
    assert_int_equal(sim_run_until(f.sim, is_closed, &f), SIM_DONE);
    assert_true(f.ended && f.all_sent && f.error == 0);
    assert_true(f.sends > 6); /* short sends went on */
    assert_int_equal(f.received_size, sizeof f.request);
    assert_memory_equal(f.received, f.request, sizeof f.request);
    assert_true(counter_read(&f.loop.io->counters.no_buffers) > 0);
    assert_int_equal(sim_open_descriptors(f.sim), 0);
    free_fixture(&f);
}

static void an_echo_is_whole_whatever_kernel_and_network_do(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++)
        echo_under_faults(seed, false, false);
}

static void reading_may_pause_and_go_on_at_any_byte(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++)
        echo_under_faults(seed, true, false);
}

static void reading_may_be_stopped_and_started_from_inside_data(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++)
        echo_under_faults(seed, false, true);
}

/* While stopped, no more comes than what was under way. */
static void a_stopped_stream_receives_nothing(void **state)
{
    (void)state;
    struct fixture f;
    static uint8_t much[30000];
    static const struct sim_step send[] = {SIM_SEND_BYTES(much, sizeof much)};
    struct sim_link slow = sim_link_default;
    slow.bytes_s = 100000;
    open_fixture(&f, 1, 0);
    sim_set_link(f.sim, NULL, NULL, &slow);
    sim_server(f.sim, "10.0.0.2:80", send, 1);
    connect_fixture(&f);
    sim_run_for(f.sim, 100 * NS_PER_MS);
    stream_read(&f.stream, false);
    sim_run_for(f.sim, NS_PER_MS);
    size_t size = f.received_size;
    sim_run_for(f.sim, NS_PER_S);
    assert_int_equal(f.received_size, size);
    assert_true(size < sizeof much);
    stream_read(&f.stream, true);
    sim_run_for(f.sim, NS_PER_S);
    assert_int_equal(f.received_size, sizeof much);
    free_fixture(&f);
}

static void it_may_be_closed_from_inside_each_callback(void **state)
{
    (void)state;
    static const struct sim_step hello[] = {SIM_SEND("hello"), SIM_EXPECT_BYTES(1), SIM_WAIT(NS_PER_MS),
                                            SIM_SHUTDOWN};
    static const struct sim_step reset[] = {SIM_SEND("hello"), SIM_WAIT(NS_PER_MS), SIM_RESET};
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct fixture f;
        struct sim_faults faults = {200, 300, 500, 2, 2};
        open_fixture(&f, seed, 10000);
        sim_set_faults(f.sim, &faults);
        f.close_in = CONNECTED + seed % 5;
        sim_server(f.sim, "10.0.0.2:80", f.close_in == FAILED ? reset : hello, f.close_in == FAILED ? 3 : 4);
        connect_fixture(&f);
        assert_int_equal(sim_run_until(f.sim, is_closed, &f), SIM_DONE);
        assert_int_equal(sim_open_descriptors(f.sim), 0);
        free_fixture(&f);
    }
}

static void it_may_be_closed_at_any_moment_with_operations_in_flight(void **state)
{
    (void)state;
    for (uint64_t steps = 0; steps < 200; steps++) {
        struct fixture f;
        struct sim_link link = sim_link_default;
        link.window_bytes = 500;
        open_fixture(&f, steps, sizeof f.request);
        sim_set_link(f.sim, NULL, NULL, &link);
        static const struct sim_step talk[] = {SIM_SEND("0123456789"), SIM_WAIT(10), SIM_AGAIN};
        sim_server(f.sim, "10.0.0.2:80", talk, ARRAY_SIZE(talk));
        connect_fixture(&f);
        sim_run(f.sim, NEVER, NULL, NULL, steps);
        stream_close(&f.stream);
        stream_close(&f.stream); /* idempotent */
        assert_int_equal(sim_run_until(f.sim, is_closed, &f), SIM_DONE);
        assert_int_equal(sim_open_descriptors(f.sim), 0);
        free_fixture(&f);
    }
}

static void a_stream_that_never_connected_closes_too(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 1, 0);
    stream_close(&f.stream);
    assert_false(f.closed); /* from the next io_wait */
    assert_int_equal(sim_run_until(f.sim, is_closed, &f), SIM_DONE);
    free_fixture(&f);
}

static void a_connect_that_hangs_can_be_closed(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 1, 0);
    sim_silence_host(f.sim, "10.0.0.2", true);
    connect_fixture(&f);
    sim_run_for(f.sim, 10 * NS_PER_S);
    stream_close(&f.stream);
    assert_int_equal(sim_run_until(f.sim, is_closed, &f), SIM_DONE);
    assert_false(f.connected || f.error);
    assert_int_equal(sim_open_descriptors(f.sim), 0);
    free_fixture(&f);
}

static void no_descriptor_is_an_error_at_once_and_leaves_the_stream_as_it_was(void **state)
{
    (void)state;
    struct fixture f;
    struct sockaddr_in to = endpoint("10.0.0.2", 80);
    open_fixture(&f, 1, 0);
    sim_server(f.sim, "10.0.0.2:80", NULL, 0);
    sim_limit_descriptors(f.sim, 0);
    assert_int_equal(stream_connect(&f.stream, (struct sockaddr *)&to, sizeof to, NULL), -EMFILE);
    sim_limit_descriptors(f.sim, 1);
    connect_fixture(&f);
    sim_run_for(f.sim, NS_PER_S);
    assert_true(f.connected);
    free_fixture(&f);
}

static void a_reset_fails_once_and_what_came_before_is_delivered(void **state)
{
    (void)state;
    static const struct sim_step script[] = {SIM_SEND("hello"), SIM_WAIT(NS_PER_S), SIM_RESET};
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct fixture f;
        open_fixture(&f, seed, 100);
        sim_server(f.sim, "10.0.0.2:80", script, ARRAY_SIZE(script));
        f.close_in = FAILED;
        connect_fixture(&f);
        assert_int_equal(sim_run_until(f.sim, is_closed, &f), SIM_DONE);
        assert_int_equal(f.error, -ECONNRESET);
        assert_int_equal(f.received_size, 5);
        free_fixture(&f);
    }
}

static void after_the_peers_end_we_may_still_send(void **state)
{
    (void)state;
    static const struct sim_step half[] = {SIM_SHUTDOWN, SIM_EXPECT_BYTES(300)};
    struct fixture f;
    open_fixture(&f, 1, 0);
    struct sim_server *server = sim_server(f.sim, "10.0.0.2:80", half, ARRAY_SIZE(half));
    connect_fixture(&f);
    sim_run_for(f.sim, NS_PER_S);
    assert_true(f.ended);
    f.request_size = 300;
    struct iovec part = {f.request, 300};
    stream_send(&f.stream, &part, 1);
    sim_run_for(f.sim, NS_PER_S);
    assert_true(sim_script_done(sim_server_connection(server, 0)));
    free_fixture(&f);
}

static bool has_stopped(void *context)
{
    return ((struct fixture *)context)->stops > 0;
}

static void a_descriptor_may_be_given_away_once_reading_has_stopped(void **state)
{
    (void)state;
    static const struct sim_step script[] = {SIM_SEND("a"), SIM_EXPECT_BYTES(5), SIM_SEND("b")};
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct fixture f;
        open_fixture(&f, seed, 0);
        struct sim_faults faults = {.multishot_end = seed % 2 ? 500 : 0,
                                    .no_buffers = seed % 3 ? 500 : 0,
                                    .batch_max = 1,
                                    .buffer_bytes = 4096};
        sim_set_faults(f.sim, &faults);
        sim_server(f.sim, "10.0.0.2:80", script, ARRAY_SIZE(script));
        f.pausing = true; /* stops from inside `data` */
        connect_fixture(&f);
        assert_int_equal(sim_run_until(f.sim, has_stopped, &f), SIM_DONE);
        timer_unset(&f.loop.timers, &f.pause);
        f.pausing = false;
        int fd = stream_release(&f.stream);
        assert_true(fd >= 0 && f.stream.fd < 0);
        stream_init(&f.stream, f.loop.io, &events, fd); /* whoever gets it */
        struct iovec part = {f.request, f.request_size = 5};
        stream_read(&f.stream, true);
        stream_send(&f.stream, &part, 1);
        sim_run_for(f.sim, NS_PER_S);
        assert_int_equal(f.received_size, 2);
        assert_int_equal(f.stops, 1);
        stream_close(&f.stream);
        assert_int_equal(sim_run_until(f.sim, is_closed, &f), SIM_DONE);
        assert_int_equal(sim_open_descriptors(f.sim), 0);
        free_fixture(&f);
    }
}

static void accepted(struct io_op *op, int result, bool more)
{
    struct fixture *f = container_of(op, struct fixture, accept);
    assert_true(result >= 0);
    (void)more;
    stream_init(&f->stream, f->loop.io, &events, result);
    start(f);
}

static void an_accepted_descriptor_is_adopted(void **state)
{
    (void)state;
    static const struct sim_step client[] = {SIM_SEND("hello"), SIM_EXPECT_BYTES(100), SIM_SHUTDOWN,
                                             SIM_EXPECT_END};
    struct fixture f;
    struct sockaddr_in at = endpoint("0.0.0.0", 7070);
    open_fixture(&f, 1, 100);
    int fd = io_listen(f.loop.io, (struct sockaddr *)&at, sizeof at, 10);
    assert_int_equal(io_listen(f.loop.io, (struct sockaddr *)&at, sizeof at, 10), -EADDRINUSE);
    io_prepare(&f.accept, IO_ACCEPT, fd, accepted);
    io_queue(f.loop.io, &f.accept);
    f.close_in = ENDED;
    struct sim_connection *c = sim_client(f.sim, "10.0.0.2", "10.0.0.1:7070", client, ARRAY_SIZE(client));
    assert_int_equal(sim_run_until(f.sim, is_closed, &f), SIM_DONE);
    sim_run_for(f.sim, NS_PER_S);
    assert_true(sim_script_done(c));
    assert_int_equal(f.received_size, 5);
    free_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_echo_is_whole_whatever_kernel_and_network_do),
        cmocka_unit_test(reading_may_pause_and_go_on_at_any_byte),
        cmocka_unit_test(reading_may_be_stopped_and_started_from_inside_data),
        cmocka_unit_test(a_stopped_stream_receives_nothing),
        cmocka_unit_test(it_may_be_closed_from_inside_each_callback),
        cmocka_unit_test(it_may_be_closed_at_any_moment_with_operations_in_flight),
        cmocka_unit_test(a_stream_that_never_connected_closes_too),
        cmocka_unit_test(a_connect_that_hangs_can_be_closed),
        cmocka_unit_test(no_descriptor_is_an_error_at_once_and_leaves_the_stream_as_it_was),
        cmocka_unit_test(a_reset_fails_once_and_what_came_before_is_delivered),
        cmocka_unit_test(after_the_peers_end_we_may_still_send),
        cmocka_unit_test(an_accepted_descriptor_is_adopted),
        cmocka_unit_test(a_descriptor_may_be_given_away_once_reading_has_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
