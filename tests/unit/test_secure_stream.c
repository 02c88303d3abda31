/* Two secure streams, a client and a server, on the simulated network under all its faults.
 *
 *     10.0.0.1 connects  <--->  10.0.0.2 accepts at :443
 */
#include "tests/sim/sim.h"
#include "tests/sim/tls_ends.h"
#include "tests/sim/world.h"

#include "tls/secure_stream.h"

#include <errno.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define BYTES_MAX 200000

static struct tls_world world;
static struct tls_context *server_context, *client_context;

enum moment { NONE, CONNECTED, DATA, ENDED, SENT, FAILED };

struct fixture;

struct side {
    struct fixture *f;
    struct loop loop;
    struct secure_stream secure;
    size_t request_size, sent_size; /* what it sends when it is connected */
    size_t received_size;
    uint8_t received[BYTES_MAX];
    enum moment close_in;
    bool shutting; /* when all is sent */
    bool tunnel;   /* first a few bytes in plain, each way */
    size_t plain_size;
    bool pausing; /* does not read once it is connected */
    bool open, connected, ended, closed;
    int error;
};

struct fixture {
    struct sim *sim;
    struct side client, server;
    struct io_op accept;
    const char *name;
    bool plain;
    struct tls_session session;
    uint8_t request[BYTES_MAX];
};

static struct side *side_of(struct stream *s)
{
    return container_of(s, struct side, secure.stream);
}

static bool is_client(const struct side *side)
{
    return side == &side->f->client;
}

/* After `closed` nothing may come, and before it nothing once secure_close was called. */
static bool close_if(struct side *side, enum moment event)
{
    assert_false(side->closed || side->secure.stream.closing);
    if (side->close_in == event)
        secure_close(&side->secure);
    return side->close_in == event;
}

static void start_tls(struct side *side)
{
    struct fixture *f = side->f;
    int error = is_client(side) ? secure_start(&side->secure, client_context, f->name, &f->session)
                                : secure_start(&side->secure, server_context, NULL, NULL);
    assert_int_equal(error, 0);
    if (side->pausing)
        secure_read(&side->secure, false); /* the handshake reads all the same */
}

static void talk(struct side *side)
{
    uint8_t *bytes = side->f->request;
    size_t size = side->request_size;
    struct iovec parts[3] = {
        {bytes, size / 10}, {bytes + size / 10, 0}, {bytes + size / 10, size - size / 10}};
    side->connected = true;
    if (side->f->plain)
        secure_read(&side->secure, true);
    if (size > 0) {
        secure_send(&side->secure, parts, 3);
        assert_true(secure_sending(&side->secure));
    }
}

static void say_in_plain(struct side *side)
{
    struct iovec part = {"plain", 5};
    secure_send(&side->secure, &part, 1);
}

static void on_connected(struct stream *s)
{
    struct side *side = side_of(s);
    if (side->secure.engine || side->f->plain)
        talk(side);
    else if (side->tunnel)
        secure_read(&side->secure, true), say_in_plain(side);
    else
        start_tls(side);
    if (side->connected)
        close_if(side, CONNECTED);
}

static void on_plain_data(struct side *side, const uint8_t *bytes, size_t size)
{
    assert_memory_equal(bytes, &"plain"[side->plain_size], size);
    side->plain_size += size;
    if (side->plain_size == 5 && is_client(side))
        start_tls(side);
    else if (side->plain_size == 5)
        say_in_plain(side);
}

static void on_data(struct stream *s, const uint8_t *bytes, size_t size)
{
    struct side *side = side_of(s);
    if (!side->secure.engine && !side->f->plain) {
        on_plain_data(side, bytes, size);
        return;
    }
    assert_in_range(size, 1, sizeof side->received - side->received_size);
    memcpy(side->received + side->received_size, bytes, size);
    side->received_size += size;
    close_if(side, DATA);
}

static void on_ended(struct stream *s)
{
    struct side *side = side_of(s);
    assert_false(side->ended);
    side->ended = true;
    close_if(side, ENDED);
}

static void on_sent(struct stream *s, size_t size, bool all)
{
    struct side *side = side_of(s);
    if (!side->connected) {
        assert_true(side->tunnel);
        if (!is_client(side) && all)
            start_tls(side);
        return;
    }
    side->sent_size += size;
    assert_int_equal(all, side->sent_size == side->request_size);
    assert_int_equal(all, !secure_sending(&side->secure));
    if (all &&
        side->secure.engine) /* what is said to be sent is with the kernel, to its record's last byte */
        assert_int_equal(tls_engine_pending(side->secure.engine), 0);
    if (!close_if(side, SENT) && all && side->shutting)
        secure_shutdown(&side->secure);
}

static void on_failed(struct stream *s, int error)
{
    struct side *side = side_of(s);
    assert_int_equal(side->error, 0); /* once */
    assert_true(error < 0);
    side->error = error;
    close_if(side, FAILED);
}

static void on_closed(struct stream *s)
{
    struct side *side = side_of(s);
    assert_false(side->closed);
    side->closed = true;
}

static const struct stream_events events = {
    .connected = on_connected,
    .data = on_data,
    .ended = on_ended,
    .sent = on_sent,
    .failed = on_failed,
    .closed = on_closed,
};

static void accepted(struct io_op *op, int result, bool more)
{
    (void)more;
    if (result < 0)
        return;
    struct fixture *f = container_of(op, struct fixture, accept);
    struct side *side = &f->server;
    secure_init(&side->secure, side->loop.io, &events, result);
    side->open = true;
    if (f->plain)
        talk(side);
    else if (side->tunnel)
        secure_read(&side->secure, true);
    else
        start_tls(side);
}

static void open_side(struct fixture *f, struct side *side, const char *host, size_t size)
{
    side->f = f;
    side->request_size = size;
    assert_int_equal(loop_init(&side->loop, sim_io(f->sim, host), 4, 4), 0);
    sim_add_loop(f->sim, &side->loop);
}

static struct fixture *open_fixture(uint64_t seed, size_t client_size, size_t server_size)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->sim = sim_new(seed);
    f->name = "a.example";
    for (size_t i = 0; i < sizeof f->request; i++)
        f->request[i] = (uint8_t)(i * 7 + i / 251);
    open_side(f, &f->client, "10.0.0.1", client_size);
    open_side(f, &f->server, "10.0.0.2", server_size);
    struct sockaddr_storage at = sim_parse_endpoint("10.0.0.2:443");
    int fd = io_listen(f->server.loop.io, (struct sockaddr *)&at, sim_address_len(&at), 10);
    io_prepare(&f->accept, IO_ACCEPT, fd, accepted);
    io_queue(f->server.loop.io, &f->accept);
    return f;
}

static void connect_client(struct fixture *f)
{
    struct sockaddr_storage at = sim_parse_endpoint("10.0.0.2:443");
    struct side *side = &f->client;
    secure_init(&side->secure, side->loop.io, &events, -1);
    side->open = true;
    assert_int_equal(secure_connect(&side->secure, (struct sockaddr *)&at, sim_address_len(&at), NULL), 0);
}

static bool is_closed(void *context)
{
    struct fixture *f = context;
    return (!f->client.open || f->client.closed) && (!f->server.open || f->server.closed);
}

static void close_side(struct side *side)
{
    if (side->open)
        secure_close(&side->secure);
}

static void free_fixture(struct fixture *f)
{
    close_side(&f->client);
    close_side(&f->server);
    assert_int_equal(sim_run_until(f->sim, is_closed, f), SIM_DONE);
    tls_session_dispose(&f->session);
    sim_remove_loop(f->sim, &f->client.loop);
    sim_remove_loop(f->sim, &f->server.loop);
    loop_dispose(&f->client.loop);
    loop_dispose(&f->server.loop);
    sim_free(f->sim);
    free(f);
}

static void add_faults(struct fixture *f)
{
    struct sim_faults faults = {.no_buffers = 100,
                                .multishot_end = 100,
                                .short_send = 200,
                                .batch_max = 1 + (uint32_t)random_below(sim_random(f->sim), 8),
                                .buffer_bytes = 1 + (uint32_t)random_below(sim_random(f->sim), 5000)};
    struct sim_link link = sim_link_default;
    link.split = 300;
    link.window_bytes = 1000 + (uint32_t)random_below(sim_random(f->sim), 60000);
    sim_set_faults(f->sim, &faults);
    sim_set_link(f->sim, NULL, NULL, &link);
}

static bool is_whole(void *context)
{
    struct fixture *f = context;
    return f->server.received_size == f->client.request_size &&
           f->client.received_size == f->server.request_size &&
           f->client.sent_size == f->client.request_size && f->server.sent_size == f->server.request_size;
}

static void assert_whole(struct fixture *f)
{
    assert_int_equal(sim_run_until(f->sim, is_whole, f), SIM_DONE);
    assert_memory_equal(f->server.received, f->request, f->client.request_size);
    assert_memory_equal(f->client.received, f->request, f->server.request_size);
    assert_int_equal(f->client.error, 0);
    assert_int_equal(f->server.error, 0);
}

static void what_is_sent_is_received_whole_whatever_kernel_and_network_do(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        static const size_t sizes[] = {1, 9, 100, 16384, 16385, 40000, 100000, 199999};
        struct fixture *f = open_fixture(seed, sizes[seed % 8], sizes[seed / 8 % 8]);
        f->plain = seed % 10 == 9;
        add_faults(f);
        connect_client(f);
        assert_whole(f);
        free_fixture(f);
    }
}

static void a_stream_may_be_plain_first(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct fixture *f = open_fixture(seed, 20000, 30000);
        struct sim_link link = sim_link_default;
        link.latency_min_ns = link.latency_max_ns =
            NS_PER_MS; /* the server knows what it sent before it is answered */
        sim_set_link(f->sim, NULL, NULL, &link);
        f->client.tunnel = f->server.tunnel = true;
        connect_client(f);
        assert_whole(f);
        free_fixture(f);
    }
}

static void the_next_connection_resumes(void **state)
{
    (void)state;
    struct tls_session session = {0};
    for (unsigned i = 0; i < 3; i++) {
        struct fixture *f = open_fixture(i, 10, 10);
        f->session = session;
        connect_client(f);
        assert_whole(f);
        assert_int_equal(tls_engine_resumed(f->client.secure.engine), i > 0);
        session = f->session;
        f->session.kept = NULL;
        free_fixture(f);
    }
    tls_session_dispose(&session);
}

static void a_shutdown_says_so_and_the_other_half_goes_on(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct fixture *f = open_fixture(seed, 20000, 60000);
        f->client.shutting = true;
        add_faults(f);
        connect_client(f);
        assert_whole(f);
        sim_run_for(f->sim, NS_PER_S);
        assert_true(f->server.ended && !f->server.secure.cut);
        secure_shutdown(&f->server.secure);
        sim_run_for(f->sim, NS_PER_S);
        assert_true(f->client.ended && !f->client.secure.cut);
        free_fixture(f);
    }
}

static void an_end_without_a_word_is_a_cut(void **state)
{
    (void)state;
    struct fixture *f = open_fixture(1, 10, 10);
    connect_client(f);
    assert_whole(f);
    stream_shutdown(&f->server.secure.stream);
    sim_run_for(f->sim, NS_PER_S);
    assert_true(f->client.ended && f->client.secure.cut);
    assert_int_equal(f->client.error, 0);
    free_fixture(f);
}

static void who_is_gone_behind_its_end_is_told_of(void **state)
{
    (void)state;
    struct fixture *f = open_fixture(1, 20000, 0);
    f->client.shutting = true;
    connect_client(f);
    assert_whole(f);
    sim_run_for(f->sim, NS_PER_S);
    assert_true(f->server.ended && !f->server.secure.cut);
    sim_reset_connections(f->sim, NULL, NULL);
    struct iovec part = {f->request, 10};
    secure_send(&f->server.secure, &part, 1);
    sim_run_for(f->sim, NS_PER_S);
    assert_int_equal(f->server.error, -ECONNRESET);
    free_fixture(f);
}

static void who_is_not_believed_is_told_and_nothing_is_said_to_it(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct fixture *f = open_fixture(seed, 100, 100);
        f->name = "b.example";
        add_faults(f);
        connect_client(f);
        sim_run_for(f->sim, 10 * NS_PER_S);
        assert_int_equal(f->client.error, PE_CERT_NAME);
        assert_true(strstr(secure_detail(&f->client.secure), "a.example") != NULL);
        assert_int_equal(f->server.error, PE_TLS_PEER);
        assert_false(f->client.connected);
        assert_int_equal(f->server.received_size, 0);
        free_fixture(f);
    }
}

static int error_against(const struct sim_step *script, unsigned steps)
{
    struct fixture *f = open_fixture(1, 10, 10);
    sim_server(f->sim, "10.0.0.3:443", script, steps);
    struct sockaddr_storage at = sim_parse_endpoint("10.0.0.3:443");
    secure_init(&f->client.secure, f->client.loop.io, &events, -1);
    f->client.open = true;
    secure_connect(&f->client.secure, (struct sockaddr *)&at, sim_address_len(&at), NULL);
    sim_run_for(f->sim, 10 * NS_PER_S);
    int error = f->client.error;
    assert_false(f->client.connected || f->client.ended);
    free_fixture(f);
    return error;
}

static void what_is_no_tls_fails_by_name(void **state)
{
    (void)state;
    static const struct sim_step plain[] = {SIM_EXPECT_BYTES(100),
                                            SIM_SEND("HTTP/1.1 400 Bad Request\r\n\r\n")};
    static const struct sim_step cut[] = {SIM_EXPECT_BYTES(100), SIM_SHUTDOWN};
    static const struct sim_step begun[] = {SIM_EXPECT_BYTES(100), SIM_SEND("\x16\x03\x03\x00\x50\x02"),
                                            SIM_SHUTDOWN};
    static const struct sim_step reset[] = {SIM_EXPECT_BYTES(100), SIM_RESET};
    static const struct sim_step alert[] = {SIM_EXPECT_BYTES(100), SIM_SEND("\x15\x03\x03\x00\x02\x02\x46")};
    assert_int_equal(error_against(plain, ARRAY_SIZE(plain)), PE_TLS_RECORD);
    assert_int_equal(error_against(cut, ARRAY_SIZE(cut)), PE_TLS_CUT);
    assert_int_equal(error_against(begun, ARRAY_SIZE(begun)), PE_TLS_CUT);
    assert_int_equal(error_against(reset, ARRAY_SIZE(reset)), -ECONNRESET);
    assert_int_equal(error_against(alert, ARRAY_SIZE(alert)), PE_TLS_VERSION);
}

static void who_does_not_read_holds_the_sender_up_and_nothing_is_lost(void **state)
{
    (void)state;
    struct fixture *f = open_fixture(1, 199999, 10);
    struct sim_link link = sim_link_default;
    link.window_bytes = 30000;
    sim_set_link(f->sim, NULL, NULL, &link);
    f->server.pausing = true;
    connect_client(f);
    sim_run_for(f->sim, 10 * NS_PER_S);
    assert_true(f->client.connected && f->server.connected);
    assert_in_range(f->client.sent_size, 0, 100000);
    assert_true(secure_sending(&f->client.secure));
    size_t before = f->client.sent_size;
    sim_run_for(f->sim, 10 * NS_PER_S);
    assert_int_equal(f->client.sent_size, before);
    secure_read(&f->server.secure, true);
    assert_whole(f);
    free_fixture(f);
}

static void it_may_be_closed_from_inside_each_callback(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct fixture *f = open_fixture(seed, 50000, 50000);
        struct side *side = seed % 2 ? &f->client : &f->server;
        side->close_in = (enum moment)(1 + seed / 2 % 5);
        if (side->close_in == FAILED)
            f->name = "b.example";
        f->client.shutting = f->server.shutting = true;
        add_faults(f);
        connect_client(f);
        sim_run_for(f->sim, 60 * NS_PER_S);
        assert_true(side->closed);
        free_fixture(f);
    }
}

static void close_client(void *context)
{
    close_side(context);
}

static void it_may_be_closed_at_any_moment_with_operations_in_flight(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct fixture *f = open_fixture(seed, 100000, 100000);
        struct sim_link link = sim_link_default;
        link.latency_min_ns = link.latency_max_ns = NS_PER_MS;
        sim_set_link(f->sim, NULL, NULL, &link);
        connect_client(f);
        sim_at(f->sim, SIM_START_NS + seed * NS_PER_MS / 4, close_client, &f->client);
        sim_run_for(f->sim, 60 * NS_PER_S);
        assert_true(f->client.closed);
        free_fixture(f);
    }
}

static int set_up(void **state)
{
    (void)state;
    tls_world_init(&world);
    server_context = tls_world_context(&world, &(struct tls_world_options){.server = true});
    client_context = tls_world_context(&world, &(struct tls_world_options){0});
    return sodium_init() < 0;
}

static int tear_down(void **state)
{
    (void)state;
    tls_context_drop(server_context);
    tls_context_drop(client_context);
    tls_world_dispose(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_is_received_whole_whatever_kernel_and_network_do),
        cmocka_unit_test(a_stream_may_be_plain_first),
        cmocka_unit_test(the_next_connection_resumes),
        cmocka_unit_test(a_shutdown_says_so_and_the_other_half_goes_on),
        cmocka_unit_test(an_end_without_a_word_is_a_cut),
        cmocka_unit_test(who_is_gone_behind_its_end_is_told_of),
        cmocka_unit_test(who_is_not_believed_is_told_and_nothing_is_said_to_it),
        cmocka_unit_test(what_is_no_tls_fails_by_name),
        cmocka_unit_test(who_does_not_read_holds_the_sender_up_and_nothing_is_lost),
        cmocka_unit_test(it_may_be_closed_from_inside_each_callback),
        cmocka_unit_test(it_may_be_closed_at_any_moment_with_operations_in_flight),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
