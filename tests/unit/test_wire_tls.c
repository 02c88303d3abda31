/* Wires through TLS: what their parts do together. TLS itself has tests of its own.
 *
 *     test --push--> [ wire on 10.0.0.1 ] ---- TLS on simulated TCP ----> [ receiver on 10.0.0.2:443 ]
 */
#include "tests/unit/wire_world.h"

#include "tests/sim/tls_ends.h"

#include <arpa/inet.h>
#include <sodium.h>

#define CONNECTIONS 64

static struct tls_world tls;
static struct tls_current ours; /* the wire's */

/* --- a receiver that speaks TLS: answers each request as it is told --- */

enum manner { ANSWERS, CUTS_AFTER_ANSWER, CUTS_BEFORE_ANSWER, SAYS_NOTHING };

struct receiver {
    struct loop loop;
    struct io_op accept;
    struct tls_context *context;
    enum manner manner;
    const char *answer;
    unsigned accepted, requests;
    struct receiver_end {
        struct receiver *receiver;
        struct secure_stream secure;
        size_t size;
        char bytes[8192];
        bool closed;
    } ends[CONNECTIONS];
};

static struct receiver_end *end_of(struct stream *s)
{
    return container_of(s, struct receiver_end, secure.stream);
}

static void end_connected(struct stream *s)
{
    secure_read(&end_of(s)->secure, true);
}

/* As a crash does it: TCP ends, TLS says nothing. */
static void cut(struct receiver_end *end)
{
    stream_shutdown(&end->secure.stream);
}

static void answer_request(struct receiver_end *end)
{
    struct receiver *r = end->receiver;
    r->requests++;
    end->size = 0;
    if (r->manner == CUTS_BEFORE_ANSWER)
        cut(end);
    if (r->manner == CUTS_BEFORE_ANSWER || r->manner == SAYS_NOTHING)
        return;
    struct iovec part = {(void *)r->answer, strlen(r->answer)};
    secure_send(&end->secure, &part, 1);
}

static void end_data(struct stream *s, const uint8_t *bytes, size_t size)
{
    struct receiver_end *end = end_of(s);
    assert_true(size <= sizeof end->bytes - end->size);
    memcpy(end->bytes + end->size, bytes, size);
    end->size += size;
    struct sim_step any = SIM_EXPECT_HTTP;
    if (sim_match_http(span_of(end->bytes, end->size), &any) > 0)
        answer_request(end);
}

static void end_ended(struct stream *s)
{
    secure_close(&end_of(s)->secure);
}

static void end_sent(struct stream *s, size_t size, bool all)
{
    (void)size;
    if (all && end_of(s)->receiver->manner == CUTS_AFTER_ANSWER)
        cut(end_of(s));
}

static void end_failed(struct stream *s, int error)
{
    (void)error;
    secure_close(&end_of(s)->secure);
}

static void end_closed(struct stream *s)
{
    end_of(s)->closed = true;
}

static const struct stream_events end_events = {.connected = end_connected,
                                                .data = end_data,
                                                .ended = end_ended,
                                                .sent = end_sent,
                                                .failed = end_failed,
                                                .closed = end_closed};

static void accepted(struct io_op *op, int result, bool more)
{
    struct receiver *r = container_of(op, struct receiver, accept);
    if (result < 0)
        return;
    assert_true(r->accepted < CONNECTIONS);
    struct receiver_end *end = &r->ends[r->accepted++];
    end->receiver = r;
    secure_init(&end->secure, r->loop.io, &end_events, result);
    assert_int_equal(secure_start(&end->secure, r->context, NULL, NULL), 0);
    if (!more)
        io_queue(r->loop.io, op);
}

/* `leaf`: what it shows instead of a chain for a.example; NULL: that. */
static struct receiver *open_receiver(struct world *t, const struct test_certificate *leaf)
{
    struct receiver *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->answer = OK_REPLY;
    r->context = tls_world_context(&tls, &(struct tls_world_options){.server = true, .leaf = leaf});
    assert_int_equal(loop_init(&r->loop, sim_io(t->sim, "10.0.0.2"), 4, 4), 0);
    sim_add_loop(t->sim, &r->loop);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(443)};
    assert_int_equal(inet_pton(AF_INET, "10.0.0.2", &at.sin_addr), 1);
    int fd = io_listen(r->loop.io, (struct sockaddr *)&at, sizeof at, 64);
    assert_true(fd >= 0);
    io_prepare(&r->accept, IO_ACCEPT, fd, accepted);
    io_queue(r->loop.io, &r->accept);
    return r;
}

static bool all_closed(void *context)
{
    struct receiver *r = context;
    for (unsigned i = 0; i < r->accepted; i++) {
        if (!r->ends[i].closed)
            return false;
    }
    return true;
}

static void close_receiver(struct world *t, struct receiver *r)
{
    for (unsigned i = 0; i < r->accepted; i++)
        secure_close(&r->ends[i].secure);
    assert_int_equal(sim_run_until(t->sim, all_closed, r), SIM_DONE);
    sim_remove_loop(t->sim, &r->loop);
    loop_dispose(&r->loop);
    tls_context_drop(r->context);
    free(r);
}

static struct world *begin_tls(uint64_t seed, const char *host)
{
    char url[100];
    struct world *t = begin(seed, NULL, 0);
    sim_set_wall_ms(t->sim, (uint64_t)TLS_TEST_NOW_S * 1000);
    static const struct sim_answer found = {.addresses = {"10.0.0.2"}};
    sim_set_name(t->sim, "a.example", &found);
    sim_set_name(t->sim, "b.example", &found);
    snprintf(url, sizeof url, "https://%s/hook", host);
    world_options(t, url);
    t->options.tls = &ours;
    return t;
}

/* The wire is stopped first, so that the receiver's ends come to theirs. */
static void end_tls(struct world *t, struct receiver *r)
{
    wire_stop(t->wire);
    assert_int_equal(sim_run_until(t->sim, world_is_stopped, t), SIM_DONE);
    close_receiver(t, r);
    world_end(t);
}

/* --- what is promised --- */

static void records_go_through_tls_on_connections_that_are_kept(void **state)
{
    (void)state;
    static const char *const hosts[] = {"a.example", "10.0.0.2"};
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct world *t = begin_tls(seed, hosts[seed % 2]);
        t->options.concurrency = 1 + (uint32_t)(seed % 3) * 3;
        struct receiver *r = open_receiver(t, NULL);
        world_start(t);
        for (int i = 0; i < 50; i++)
            push(t, "{\"a\":1}");
        run_until_stored(t);
        assert_int_equal(r->requests, 50);
        assert_true(r->accepted <= t->options.concurrency);
        assert_int_equal(failures_of(t), 0);
        end_tls(t, r);
    }
}

static void a_certificate_for_another_name_is_a_named_failure_before_a_byte_is_sent(void **state)
{
    (void)state;
    struct world *t = begin_tls(1, "b.example");
    struct receiver *r = open_receiver(t, NULL);
    world_start(t);
    push(t, "secret");
    run_for_s(t, 5);
    assert_true(failures_of(t) > 2 && failures_of(t) < 30);
    assert_int_equal(error_of(t), PE_CERT_NAME);
    assert_int_equal(state_of(t), OUTLET_RESTING);
    assert_int_equal(r->requests, 0);
    char text[200];
    outlet_error_text(&t->wire->outlet, text, sizeof text);
    assert_non_null(strstr(text, "POST https://b.example: the certificate is for other names"));
    end_tls(t, r);
}

static void a_peer_that_speaks_plain_http_is_told_apart(void **state)
{
    (void)state;
    static const struct sim_step plain[] = {SIM_SEND("HTTP/1.1 400 Bad\r\n\r\n")};
    struct world *t = begin_tls(1, "a.example");
    t->server = sim_server(t->sim, "10.0.0.2:443", plain, ARRAY_SIZE(plain));
    world_start(t);
    push(t, "1");
    run_for_s(t, 1);
    assert_int_equal(error_of(t), PE_TLS_RECORD);
    char text[200];
    outlet_error_text(&t->wire->outlet, text, sizeof text);
    assert_non_null(strstr(text, "(the peer speaks plain HTTP: did you mean http?)"));
    world_end(t);
}

static void a_handshake_that_goes_nowhere_is_given_up(void **state)
{
    (void)state;
    static const struct sim_step silent[] = {SIM_DISCARD};
    struct world *t = begin_tls(1, "a.example");
    t->server = sim_server(t->sim, "10.0.0.2:443", silent, ARRAY_SIZE(silent));
    t->options.backoff_min_ns = 3600 * NS_PER_S;
    world_start(t);
    push(t, "1");
    run_for_s(t, 9);
    assert_int_equal(failures_of(t), 0);
    run_for_s(t, 2);
    assert_int_equal(failures_of(t), 1);
    assert_int_equal(error_of(t), PE_CONNECT_TIMEOUT);
    assert_int_equal(sim_open_descriptors(t->sim), 0);
    world_end(t);
}

static void an_end_without_close_notify_matters_to_what_needs_the_end(void **state)
{
    (void)state;
    static const struct {
        enum manner manner;
        const char *answer;
        uint64_t stored;
        int error;
    } cases[] = {
        {CUTS_AFTER_ANSWER, OK_REPLY, 1, 0},
        {CUTS_AFTER_ANSWER, "HTTP/1.1 200 OK\r\n\r\nthe rest", 1, 0}, /* the status is known */
        {CUTS_AFTER_ANSWER, "HTTP/1.0 200 OK\r\nA: b\r\n", 0, PE_TLS_CUT},
        {CUTS_BEFORE_ANSWER, "", 0, PE_TLS_CUT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world *t = begin_tls(i, "a.example");
        t->options.backoff_min_ns = 3600 * NS_PER_S;
        struct receiver *r = open_receiver(t, NULL);
        r->manner = cases[i].manner;
        r->answer = cases[i].answer;
        world_start(t);
        push(t, "1");
        run_for_s(t, 3);
        assert_int_equal(stored(t), cases[i].stored);
        assert_int_equal(error_of(t), cases[i].error);
        end_tls(t, r);
    }
}

static void a_connection_that_was_cut_while_idle_costs_no_failure(void **state)
{
    (void)state;
    struct world *t = begin_tls(1, "a.example");
    struct receiver *r = open_receiver(t, NULL);
    r->manner = CUTS_AFTER_ANSWER;
    world_start(t);
    for (int i = 0; i < 5; i++) {
        push(t, "1");
        run_until_stored(t);
        run_for_s(t, 1);
    }
    assert_int_equal(r->accepted, 5);
    assert_int_equal(failures_of(t), 0);
    end_tls(t, r);
}

static void all_connections_of_a_wire_resume_one_session(void **state)
{
    (void)state;
    struct world *t = begin_tls(1, "a.example");
    t->options.connection_age_ns = NS_PER_S;
    struct receiver *r = open_receiver(t, NULL);
    world_start(t);
    for (unsigned i = 0; i < 4; i++) {
        push(t, "1");
        run_until_stored(t);
        assert_int_equal(r->accepted, i + 1);
        assert_int_equal(tls_engine_resumed(t->wire->lanes[0]->stream.engine), i > 0);
        run_for_s(t, 2);
    }
    assert_int_equal(failures_of(t), 0);
    end_tls(t, r);
}

static void a_wire_stops_in_every_state_of_tls(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct world *t = begin_tls(seed, "a.example");
        t->options.concurrency = 4;
        struct receiver *r = open_receiver(t, NULL);
        r->manner = seed % 4 == 3 ? SAYS_NOTHING : ANSWERS;
        world_start(t);
        for (int i = 0; i < 20; i++)
            push(t, "x");
        sim_run_for(t->sim, seed * 40 * NS_PER_US);
        if (seed % 2)
            assert_int_equal(wire_change(t->wire, &t->options), 0);
        sim_run_for(t->sim, 20 * NS_PER_US);
        end_tls(t, r);
    }
}

static void https_needs_somebody_to_trust(void **state)
{
    (void)state;
    const char *why;
    struct world *t = begin_tls(1, "a.example");
    assert_int_equal(wire_options_check(&t->options, &why), 0);
    t->options.tls = NULL;
    assert_int_equal(wire_options_check(&t->options, &why), PE_CONFIG);
    world_end(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_go_through_tls_on_connections_that_are_kept),
        cmocka_unit_test(a_certificate_for_another_name_is_a_named_failure_before_a_byte_is_sent),
        cmocka_unit_test(a_peer_that_speaks_plain_http_is_told_apart),
        cmocka_unit_test(a_handshake_that_goes_nowhere_is_given_up),
        cmocka_unit_test(an_end_without_close_notify_matters_to_what_needs_the_end),
        cmocka_unit_test(a_connection_that_was_cut_while_idle_costs_no_failure),
        cmocka_unit_test(all_connections_of_a_wire_resume_one_session),
        cmocka_unit_test(a_wire_stops_in_every_state_of_tls),
        cmocka_unit_test(https_needs_somebody_to_trust),
    };
    if (sodium_init() < 0)
        return 1;
    tls_world_init(&tls);
    tls_current_replace(&ours, tls_world_context(&tls, &(struct tls_world_options){.server = false}));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tls_current_replace(&ours, NULL);
    tls_world_dispose(&tls);
    return failed;
}
