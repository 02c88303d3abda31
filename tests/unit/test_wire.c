/* The wire against peers that behave: what requests look like, what replies mean, when connections are used
 * again, what is said of it all. */
#include "tests/unit/wire_world.h"

static const struct sim_step receive[] = {SIM_EXPECT_HTTP, SIM_CALL(note_request, &here), SIM_SEND(OK_REPLY),
                                          SIM_AGAIN};

#define BEGIN(script) begin(1, script, ARRAY_SIZE(script))

static void a_webhook_gets_each_record_in_a_request_of_its_own(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    t->options.token = "sesame";
    world_start(t);
    push(t, "{\"a\":1}");
    push(t, "");
    push(t, "three");
    run_until_stored(t);
    assert_int_equal(t->requests, 3);
    assert_string_equal(t->noted[0].body, "{\"a\":1}");
    assert_int_equal(t->noted[1].body_size, 0);
    assert_string_equal(t->noted[2].body, "three");
    assert_int_equal(sim_server_accepted(t->server), 1); /* kept alive */
    const char *head = "POST /hook?key=secret HTTP/1.1\r\n"
                       "Host: 10.0.0.2\r\n"
                       "User-Agent: pure-host/1.0\r\n"
                       "Authorization: Bearer sesame\r\n"
                       "Content-Type: application/json\r\n"
                       "Content-Length: 7\r\n"
                       "webhook-id: msg_a0a1a2a3a4a5a6a7_1\r\n"
                       "webhook-timestamp: 1767225600\r\n"
                       "\r\n{\"a\":1}";
    struct span got = sim_received(sim_server_connection(t->server, 0));
    assert_memory_equal(got.data, head, strlen(head));
    assert_int_equal(tries_of(t), 3);
    assert_int_equal(atomic_load(&t->wire->outlet.report.bytes), 12);
    world_end(t);
}

static void a_batch_is_lines_of_json(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    t->options.mode = WIRE_BATCH;
    world_start(t);
    push(t, "{\"a\":\r\n1}");
    push(t, "2");
    run_until_stored(t);
    assert_int_equal(t->requests, 1);
    assert_string_equal(t->noted[0].body, "{\"a\":  1}\n2\n");
    assert_int_equal(t->noted[0].first, 1);
    assert_int_equal(t->noted[0].count, 2);
    assert_string_equal(t->noted[0].id, "msg_a0a1a2a3a4a5a6a7_1-2");
    world_end(t);
}

static void a_batch_keeps_its_limits_and_a_larger_record_goes_alone(void **state)
{
    (void)state;
    static const struct {
        enum wire_mode mode;
        size_t sizes[6]; /* of the records */
    } cases[] = {
        {WIRE_BATCH, {10, 10, 11, 12}}, /* 11 + 11, 12 + 13 = 25 */
        {WIRE_PURE, {10, 10, 11, 11}},  /* 11 + 11, 12 + 12 */
    };
    static const struct sim_step pure[] = {SIM_EXPECT_HTTP, SIM_CALL(note_request, &here), SIM_AGAIN};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world *t = BEGIN(receive);
        if (cases[i].mode == WIRE_PURE)
            sim_server_script(t->server, pure, ARRAY_SIZE(pure));
        t->options.mode = cases[i].mode;
        t->options.batch_bytes = 25;
        world_start(t);
        const struct record_queue *q = &t->wire->outlet.queue;
        char large[100] = "large";
        for (size_t r = 0; cases[i].sizes[r]; r++)
            assert_int_equal(outlet_queue(&t->wire->outlet, large, cases[i].sizes[r]), 0);
        assert_int_equal(outlet_queue(&t->wire->outlet, large, sizeof large), 0);
        outlet_push(&t->wire->outlet);
        record_queue_see_published(&t->wire->outlet.queue);
        struct batch_limits limits = {25, UINT64_MAX};
        struct batch b = {0};
        static const uint64_t ends[] = {2, 4, 5};
        for (size_t n = 0; n < ARRAY_SIZE(ends); n++) {
            b = cases[i].mode == WIRE_PURE ? batch_framed(q, b.end, &limits)
                                           : batch_of_lines(q, b.end, &limits);
            assert_int_equal(b.end.records, ends[n]);
        }
        limits.records = 1;
        struct stream_position start = {0, 0};
        b = cases[i].mode == WIRE_PURE ? batch_framed(q, start, &limits) : batch_of_lines(q, start, &limits);
        assert_int_equal(b.end.records, 1);
        world_end(t);
    }
}

static void a_retried_batch_is_the_same_batch_though_more_records_wait(void **state)
{
    (void)state;
    static const struct sim_step refuse_once[] = {SIM_EXPECT_HTTP,
                                                  SIM_CALL(note_request, &here),
                                                  SIM_SEND("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
                                                  SIM_EXPECT_HTTP,
                                                  SIM_CALL(note_request, &here),
                                                  SIM_SEND(OK_REPLY),
                                                  SIM_EXPECT_HTTP,
                                                  SIM_CALL(note_request, &here),
                                                  SIM_SEND(OK_REPLY)};
    struct world *t = BEGIN(refuse_once);
    t->options.mode = WIRE_BATCH;
    world_start(t);
    push(t, "1");
    sim_run_for(t->sim, 50 * NS_PER_MS);
    push(t, "2");
    run_until_stored(t);
    assert_int_equal(t->requests, 3);
    assert_string_equal(t->noted[1].id, t->noted[0].id);
    assert_string_equal(t->noted[1].body, "1\n");
    assert_string_equal(t->noted[2].body, "2\n");
    world_end(t);
}

static const struct sim_step numbered[] = {SIM_EXPECT_HTTP, SIM_CALL(receive_numbered, &here), SIM_AGAIN};

static void another_host_gets_numbered_records(void **state)
{
    (void)state;
    struct world *t = BEGIN(numbered);
    t->options.mode = WIRE_PURE;
    world_start(t);
    push_numbers(t, 3);
    run_until_stored(t);
    const char *head = "POST /hook?key=secret HTTP/1.1\r\n"
                       "Host: 10.0.0.2\r\n"
                       "User-Agent: pure-host/1.0\r\n"
                       "Content-Type: application/vnd.pure.records\r\n"
                       "Content-Length: 6\r\n"
                       "Pure-Stream: here/app/out\r\n"
                       "Pure-Epoch: a0a1a2a3a4a5a6a7a8a9aaabacadaeaf\r\n"
                       "Pure-Event: measured\r\n"
                       "Pure-First: 1\r\n"
                       "Pure-Count: 3\r\n"
                       "Pure-Base: 0\r\n"
                       "\r\n\0011\0012\0013";
    struct span got = sim_received(sim_server_connection(t->server, 0));
    assert_int_equal(got.size, strlen(head));
    assert_memory_equal(got.data, head, got.size);
    push_numbers(t, 2);
    run_until_stored(t);
    assert_int_equal(t->noted[1].first, 4);
    assert_int_equal(t->stored, 5);
    assert_int_equal(failures_of(t), 0);
    world_end(t);
}

/* --- what replies mean --- */

struct reply_case {
    const char *reply;
    uint64_t stored; /* of two records that were sent, the first in its own request unless pure */
    int state, error;
    const char *text;
};

static const char *reply_text;

static void send_reply(struct sim_connection *c, void *context)
{
    (void)context;
    sim_peer_send(c, reply_text, strlen(reply_text));
}

static const struct sim_step answer_once[] = {SIM_EXPECT_HTTP, SIM_CALL(note_request, &here),
                                              SIM_CALL(send_reply, NULL)};

static const struct sim_step answer_always[] = {SIM_EXPECT_HTTP, SIM_CALL(note_request, &here),
                                                SIM_CALL(send_reply, NULL), SIM_AGAIN};

static void check_reply(enum wire_mode mode, const struct reply_case *c)
{
    reply_text = c->reply;
    struct world *t = BEGIN(answer_once);
    t->options.mode = mode;
    t->options.backoff_min_ns = t->options.backoff_max_ns = 3600 * NS_PER_S;
    world_start(t);
    push(t, "1");
    push(t, "2");
    run_for_s(t, 10);
    if (stored(t) != c->stored || state_of(t) != c->state || error_of(t) != c->error)
        fail_msg("%s: stored %d, state %d, error %d", c->reply, (int)stored(t), state_of(t), error_of(t));
    assert_error_text(t, c->text ? c->text : "");
    world_end(t);
}

static void a_status_means_what_it_says(void **state)
{
    (void)state;
    static const struct reply_case cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1, OUTLET_OK, 0, NULL},
        {"HTTP/1.1 204 No\r\n\r\n", 1, OUTLET_OK, 0, NULL},
        {"HTTP/1.1 299 Odd\r\nContent-Length: 0\r\n\r\n", 1, OUTLET_OK, 0, NULL},
        {"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hint\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n", 1,
         OUTLET_OK, 0, NULL},
        {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", 0, OUTLET_RESTING, PE_HTTP_STATUS,
         "POST http://10.0.0.2: 503 Service Unavailable"},
        {"HTTP/1.1 404 Not \xff Found\r\nContent-Length: 0\r\n\r\n", 0, OUTLET_RESTING, PE_HTTP_STATUS,
         "POST http://10.0.0.2: 404 Not ? Found"},
        {"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", 0, OUTLET_RESTING, PE_HTTP_REPLY,
         "POST http://10.0.0.2: the reply is not valid HTTP/1.1"},
        {"HTTP/1.1 308 Permanent Redirect\r\nLocation: https://new.example/x\r\nContent-Length: 0\r\n\r\n", 0,
         OUTLET_RESTING, PE_HTTP_REDIRECT,
         "POST http://10.0.0.2: 308 redirects to \"https://new.example/...\", not followed"},
        {"HTTP/1.1 304 Not Modified\r\n\r\n", 0, OUTLET_RESTING, PE_HTTP_STATUS,
         "POST http://10.0.0.2: 304 Not Modified"},
        {"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", 0, OUTLET_DISABLED, PE_HTTP_GONE,
         "POST http://10.0.0.2: 410 Gone: the output is disabled"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 0, OUTLET_RESTING,
         PE_HTTP_REPLY, "POST http://10.0.0.2: the reply is not valid HTTP/1.1"},
        {"HTTP/1.1 101 Switching\r\n\r\n", 0, OUTLET_RESTING, PE_HTTP_REPLY,
         "POST http://10.0.0.2: the reply is not valid HTTP/1.1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_reply(WIRE_WEBHOOK, &cases[i]);
}

static void a_stored_number_counts_whatever_the_status_is(void **state)
{
    (void)state;
#define SAYS(line, stored) "HTTP/1.1 " line "\r\nPure-Stored: " stored "\r\nContent-Length: 0\r\n\r\n"
    static const struct reply_case cases[] = {
        {SAYS("200 OK", "2"), 2, OUTLET_OK, 0, NULL},
        {SAYS("200 OK", "1"), 1, OUTLET_OK, 0, NULL}, /* the rest goes again, and waits for a reply */
        {SAYS("503 Full", "1"), 1, OUTLET_RESTING, PE_HTTP_STATUS, "POST http://10.0.0.2: 503 Full"},
        {SAYS("503 Full", "2"), 2, OUTLET_RESTING, PE_HTTP_STATUS, "POST http://10.0.0.2: 503 Full"},
        {SAYS("409 Gap", "0"), 0, OUTLET_RESTING, PE_HTTP_STATUS, "POST http://10.0.0.2: 409 Gap"},
        {SAYS("200 OK", "3"), 0, OUTLET_RESTING, PE_HTTP_STORED,
         "POST http://10.0.0.2: 200, the reply states a stored number that cannot be"},
        {SAYS("503 Full", "99"), 0, OUTLET_RESTING, PE_HTTP_STORED,
         "POST http://10.0.0.2: 503, the reply states a stored number that cannot be"},
        {SAYS("200 OK", "0"), 0, OUTLET_RESTING, PE_HTTP_STORED,
         "POST http://10.0.0.2: 200, the reply states a stored number that cannot be"},
        {SAYS("200 OK", "-2"), 0, OUTLET_RESTING, PE_HTTP_UNSTORED,
         "POST http://10.0.0.2: 200, the reply does not say what is stored"},
        {"HTTP/1.1 204 No\r\n\r\n", 0, OUTLET_RESTING, PE_HTTP_UNSTORED,
         "POST http://10.0.0.2: 204, the reply does not say what is stored"},
        {"HTTP/1.1 409 No\r\nPure-Error: epoch-retired\r\nContent-Length: 0\r\n\r\n", 0, OUTLET_DISABLED,
         PE_STREAM_RETIRED, "POST http://10.0.0.2: 409, the stream's epoch has been replaced by a newer one"},
        {"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", 0, OUTLET_DISABLED, PE_HTTP_GONE,
         "POST http://10.0.0.2: 410 Gone: the output is disabled"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_reply(WIRE_PURE, &cases[i]);
}

static void a_receiver_that_lost_what_it_stored_is_a_gap(void **state)
{
    (void)state;
    struct world *t = BEGIN(numbered);
    t->options.mode = WIRE_PURE;
    world_start(t);
    push_numbers(t, 5);
    run_until_stored(t);
    t->stored = 2;
    push_numbers(t, 1);
    run_for_s(t, 5);
    assert_int_equal(stored(t), 5);
    assert_int_equal(state_of(t), OUTLET_RESTING);
    assert_int_equal(error_of(t), PE_STREAM_GAP);
    t->stored = 5;
    run_until_stored(t);
    assert_int_equal(state_of(t), OUTLET_OK);
    world_end(t);
}

static void a_disabled_output_makes_no_more_tries(void **state)
{
    (void)state;
    reply_text = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
    struct world *t = BEGIN(answer_once);
    world_start(t);
    push(t, "1");
    run_for_s(t, 1);
    push(t, "2");
    run_for_s(t, 3600);
    assert_int_equal(tries_of(t), 1);
    assert_int_equal(sim_open_descriptors(t->sim), 0);
    world_end(t);
}

/* --- connections --- */

struct connection_case {
    const char *name;
    const struct sim_step *script;
    unsigned steps;
    unsigned connections, requests;
    uint64_t failures;
};

#define SCRIPT(...) \
    (const struct sim_step[]){__VA_ARGS__}, ARRAY_SIZE(((const struct sim_step[]){__VA_ARGS__}))
#define TAKE SIM_EXPECT_HTTP, SIM_CALL(note_request, &here)

/* Two records, the second a second after the first was stored. */
static void connections_are_used_again_where_that_is_safe(void **state)
{
    (void)state;
    const struct connection_case cases[] = {
        {"kept", SCRIPT(TAKE, SIM_SEND(OK_REPLY), TAKE, SIM_SEND(OK_REPLY)), 1, 2, 0},
        {"chunked and kept",
         SCRIPT(TAKE,
                SIM_SEND(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nT: x\r\n\r\n"),
                SIM_AGAIN),
         1, 2, 0},
        {"Connection: close",
         SCRIPT(TAKE, SIM_SEND("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")), 2, 2,
         0},
        {"HTTP/1.0", SCRIPT(TAKE, SIM_SEND("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")), 2, 2, 0},
        {"body until the end", SCRIPT(TAKE, SIM_SEND("HTTP/1.1 200 OK\r\n\r\nsome"), SIM_CLOSE), 2, 2, 0},
        {"closed while idle", SCRIPT(TAKE, SIM_SEND(OK_REPLY), SIM_WAIT(100 * NS_PER_MS), SIM_CLOSE), 2, 2,
         0},
        {"reset while idle", SCRIPT(TAKE, SIM_SEND(OK_REPLY), SIM_WAIT(100 * NS_PER_MS), SIM_RESET), 2, 2, 0},
        {"surplus at once", SCRIPT(TAKE, SIM_SEND(OK_REPLY OK_REPLY)), 2, 2, 0},
        {"surplus while idle", SCRIPT(TAKE, SIM_SEND(OK_REPLY), SIM_WAIT(100 * NS_PER_MS), SIM_SEND("x")), 2,
         2, 0},
        {"closed at the next request", SCRIPT(TAKE, SIM_SEND(OK_REPLY), TAKE, SIM_CLOSE), 2, 3, 0},
        {"reset at the next request", SCRIPT(TAKE, SIM_SEND(OK_REPLY), SIM_EXPECT_BYTES(1), SIM_RESET), 2, 2,
         0},
        {"closed in the body",
         SCRIPT(TAKE, SIM_SEND("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), SIM_CLOSE), 2, 2, 0},
        {"garbage in the body",
         SCRIPT(TAKE, SIM_SEND("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")), 2, 2, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct connection_case *c = &cases[i];
        struct world *t = begin(i, c->script, c->steps);
        world_start(t);
        push(t, "1");
        run_until_stored(t);
        run_for_s(t, 1);
        push(t, "2");
        run_until_stored(t);
        if (sim_server_accepted(t->server) != c->connections || t->requests != c->requests ||
            failures_of(t) != c->failures)
            fail_msg("%s: %u connections, %u requests, %u failures", c->name, sim_server_accepted(t->server),
                     t->requests, (unsigned)failures_of(t));
        assert_string_equal(t->noted[t->requests - 1].id, "msg_a0a1a2a3a4a5a6a7_2");
        world_end(t);
    }
}

static void a_fresh_connection_that_ends_without_a_byte_is_a_failure(void **state)
{
    (void)state;
    static const struct sim_step close_at_once[] = {TAKE, SIM_CLOSE};
    struct world *t = BEGIN(close_at_once);
    world_start(t);
    push(t, "1");
    run_for_s(t, 1);
    assert_true(failures_of(t) > 0);
    assert_int_equal(error_of(t), PE_CLOSED);
    assert_int_equal(failures_of(t), sim_server_accepted(t->server));
    world_end(t);
}

static void a_request_without_an_answer_goes_again_at_once_only_once(void **state)
{
    (void)state;
    /* Every connection answers its first request and drops the second; then even the first. */
    static const struct sim_step drop_second[] = {TAKE, SIM_SEND(OK_REPLY), TAKE, SIM_CLOSE};
    static const struct sim_step drop_first[] = {TAKE, SIM_CLOSE};
    struct world *t = BEGIN(drop_second);
    world_start(t);
    push(t, "1");
    run_until_stored(t);
    sim_server_script(t->server, drop_first, ARRAY_SIZE(drop_first));
    push(t, "2");
    sim_run_for(t->sim, 50 * NS_PER_MS); /* less than a back-off */
    assert_int_equal(t->requests, 3);
    assert_int_equal(failures_of(t), 1);
    assert_string_equal(t->noted[1].id, t->noted[2].id);
    world_end(t);
}

static void an_early_refusal_is_believed(void **state)
{
    (void)state;
    static const struct sim_step refuse[] = {SIM_EXPECT_UNTIL("\r\n\r\n"), SIM_STOP_READING,
                                             SIM_SEND("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")};
    struct world *t = BEGIN(refuse);
    struct sim_link narrow = sim_link_default;
    narrow.window_bytes = 1024;
    sim_set_link(t->sim, NULL, NULL, &narrow);
    t->options.backoff_min_ns = 3600 * NS_PER_S;
    world_start(t);
    char large[4096];
    memset(large, 'x', sizeof large);
    assert_int_equal(outlet_queue(&t->wire->outlet, large, sizeof large), 0);
    outlet_push(&t->wire->outlet);
    run_for_s(t, 1);
    assert_int_equal(error_of(t), PE_HTTP_STATUS);
    assert_error_text(t, "POST http://10.0.0.2: 413 Too Large");
    assert_int_equal(failures_of(t), 1);
    assert_int_equal(sim_open_descriptors(t->sim), 0);
    world_end(t);
}

/* --- resting --- */

static bool second_request_came(void *context)
{
    return ((struct world *)context)->requests >= 2;
}

static void retry_after_is_kept_but_capped(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        uint64_t least_ms, most_ms;
    } cases[] = {
        {"Retry-After: 5\r\n", 5000, 5001},
        {"Retry-After: 0\r\n", 100, 201}, /* never less than our own back-off */
        {"Retry-After: soon\r\n", 100, 201},
        {"Retry-After: -5\r\n", 100, 201},
        {"Retry-After: 99999999999999999999\r\n", 7200100, 7200201},
        {"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nRetry-After: Thu, 01 Jan 1970 00:01:00 GMT\r\n", 60000,
         60001},
        {"Retry-After: Thu, 01 Jan 2026 00:00:30 GMT\r\n", 29000, 30001},
        {"Retry-After: Thu, 01 Jan 2015 00:00:30 GMT\r\n", 100, 201},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char reply[256];
        snprintf(reply, sizeof reply, "HTTP/1.1 503 Full\r\n%sContent-Length: 0\r\n\r\n", cases[i].fields);
        reply_text = reply;
        struct world *t = BEGIN(answer_always);
        world_start(t);
        push(t, "1");
        assert_int_equal(sim_run_until(t->sim, second_request_came, t), SIM_DONE);
        uint64_t waited_ms = (t->noted[1].at_ns - t->noted[0].at_ns) / NS_PER_MS;
        if (waited_ms < cases[i].least_ms || waited_ms > cases[i].most_ms)
            fail_msg("%s: waited %llu ms", cases[i].fields, (unsigned long long)waited_ms);
        world_end(t);
    }
}

static void an_outage_is_a_handful_of_lines_and_one_more_at_its_end(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    sim_server_listen(t->server, false);
    world_start(t);
    push(t, "1");
    run_for_s(t, 24 * 3600);
    assert_int_equal(error_of(t), -ECONNREFUSED);
    assert_true(failures_of(t) > 1000);
    assert_int_equal(failures_of(t), atomic_load(&t->wire->outlet.report.failures));
    char line[600];
    unsigned lines = take_log(t, line, sizeof line);
    assert_true(lines >= 10 && lines <= 14);
    assert_non_null(strstr(line, "<4>app.out: POST http://10.0.0.2: Connection refused ("));
    assert_null(strstr(line, "secret"));
    sim_server_listen(t->server, true);
    run_until_stored(t);
    assert_int_equal(take_log(t, line, sizeof line), 1);
    assert_non_null(strstr(line, "<5>app.out: delivers again, after 86"));
    assert_int_equal(atomic_load(&t->wire->outlet.report.failures), 0);
    assert_int_equal(state_of(t), OUTLET_OK);
    world_end(t);
}

static void the_back_off_starts_anew_after_a_success(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    sim_server_listen(t->server, false);
    world_start(t);
    push(t, "1");
    run_for_s(t, 600);
    sim_server_listen(t->server, true);
    run_until_stored(t);
    sim_server_listen(t->server, false);
    sim_reset_connections(t->sim, NULL, NULL);
    uint64_t before = failures_of(t);
    push(t, "2");
    run_for_s(t, 1);
    assert_true(failures_of(t) - before >= 2);
    world_end(t);
}

/* --- names --- */

static void an_address_that_refuses_makes_way_for_the_next(void **state)
{
    (void)state;
    struct world *t = begin(1, NULL, 0);
    t->server = sim_server(t->sim, "[fd00::3]:8080", receive, ARRAY_SIZE(receive));
    static const struct sim_answer answer = {.addresses = {"10.0.0.8", "10.0.0.9", "fd00::3"}};
    sim_set_name(t->sim, "many.example", &answer);
    world_options(t, "http://many.example:8080/");
    world_start(t);
    push(t, "1");
    run_until_stored(t);
    assert_int_equal(failures_of(t), 0); /* all are one try */
    assert_int_equal(sim_lookups(t->sim, "many.example"), 1);
    world_end(t);
}

static void an_ipv6_literal_needs_no_lookup(void **state)
{
    (void)state;
    struct world *t = begin(1, NULL, 0);
    t->server = sim_server(t->sim, "[fd00::3]:8080", receive, ARRAY_SIZE(receive));
    world_options(t, "http://[fd00::3]:8080/x");
    world_start(t);
    push(t, "1");
    run_until_stored(t);
    struct span got = sim_received(sim_server_connection(t->server, 0));
    assert_non_null(memmem(got.data, got.size, "\r\nHost: [fd00::3]:8080\r\n", 23));
    world_end(t);
}

static void a_lookup_is_made_once_a_back_off_step_and_not_for_each_connection(void **state)
{
    (void)state;
    static const struct sim_step close_always[] = {
        TAKE, SIM_SEND("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")};
    struct world *t = BEGIN(close_always);
    static const struct sim_answer found = {.addresses = {"10.0.0.2"}}, lost = {.error = PE_NAME_FAILED};
    sim_set_name(t->sim, "one.example", &found);
    world_options(t, "http://one.example/");
    world_start(t);
    for (int i = 0; i < 5; i++)
        push(t, "x");
    run_until_stored(t);
    assert_int_equal(sim_server_accepted(t->server), 5);
    assert_int_equal(sim_lookups(t->sim, "one.example"), 1);
    run_for_s(t, 61); /* but an old address is looked up again */
    push(t, "x");
    run_until_stored(t);
    assert_int_equal(sim_lookups(t->sim, "one.example"), 2);

    sim_server_listen(t->server, false);
    sim_set_name(t->sim, "one.example", &lost); /* a failed lookup does not wipe the address */
    push(t, "x");
    run_for_s(t, 60);
    assert_int_equal(error_of(t), -ECONNREFUSED);
    assert_int_equal(sim_lookups(t->sim, "one.example") - 2, failures_of(t) - 1); /* the first has none due */
    sim_server_listen(t->server, true);
    run_until_stored(t);
    world_end(t);
}

static void a_name_that_comes_up_later_is_found_within_one_back_off(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    static const struct sim_answer hangs = {.delay_ns = SIM_HANGS}, found = {.addresses = {"10.0.0.2"}};
    sim_set_name(t->sim, "late.example", &hangs);
    world_options(t, "http://late.example/");
    world_start(t);
    push(t, "1");
    run_for_s(t, 15);
    assert_int_equal(error_of(t), PE_NAME_FAILED); /* said, though no answer ever comes */
    assert_error_text(t, "POST http://late.example: the name lookup failed");
    sim_set_name(t->sim, "late.example", &found);
    run_until_stored(t);
    world_end(t);
}

/* --- economy --- */

static void a_request_costs_one_send_and_no_receive(void **state)
{
    (void)state;
    struct world *t = BEGIN(receive);
    world_start(t);
    push(t, "first");
    run_until_stored(t);
    uint64_t before = counter_read(&t->loop.io->counters.operations);
    uint64_t timer_ns = t->wire->timer.due_ns;
    assert_int_not_equal(timer_ns, NEVER);
    for (int i = 0; i < 100; i++)
        push(t, "x");
    run_until_stored(t);
    assert_int_equal(counter_read(&t->loop.io->counters.operations) - before, 100);
    assert_int_equal(t->wire->timer.due_ns, timer_ns); /* not moved */
    world_end(t);
}

static void options_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct world *t = begin(1, NULL, 0);
    struct wire *w = aligned_alloc(CACHE_LINE, sizeof *w);
    struct wire_options good = t->options, bad[6];
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        bad[i] = good;
    bad[0].token = "a\r\nb";
    bad[1].pipeline = 2;
    bad[2].url.tls = true;
    bad[3].batch_bytes = 0;
    bad[4].mode = WIRE_PURE, bad[4].event = NULL;
    bad[5].mode = WIRE_PURE, bad[5].pipeline = 9;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(wire_init(w, &bad[i], "a", "o", 1000, 100, &t->loop, t->resolver, &t->log),
                         PE_CONFIG);
    free(w);
    world_end(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_webhook_gets_each_record_in_a_request_of_its_own),
        cmocka_unit_test(a_batch_is_lines_of_json),
        cmocka_unit_test(a_batch_keeps_its_limits_and_a_larger_record_goes_alone),
        cmocka_unit_test(a_retried_batch_is_the_same_batch_though_more_records_wait),
        cmocka_unit_test(another_host_gets_numbered_records),
        cmocka_unit_test(a_status_means_what_it_says),
        cmocka_unit_test(a_stored_number_counts_whatever_the_status_is),
        cmocka_unit_test(a_receiver_that_lost_what_it_stored_is_a_gap),
        cmocka_unit_test(a_disabled_output_makes_no_more_tries),
        cmocka_unit_test(connections_are_used_again_where_that_is_safe),
        cmocka_unit_test(a_fresh_connection_that_ends_without_a_byte_is_a_failure),
        cmocka_unit_test(a_request_without_an_answer_goes_again_at_once_only_once),
        cmocka_unit_test(an_early_refusal_is_believed),
        cmocka_unit_test(retry_after_is_kept_but_capped),
        cmocka_unit_test(an_outage_is_a_handful_of_lines_and_one_more_at_its_end),
        cmocka_unit_test(the_back_off_starts_anew_after_a_success),
        cmocka_unit_test(an_address_that_refuses_makes_way_for_the_next),
        cmocka_unit_test(an_ipv6_literal_needs_no_lookup),
        cmocka_unit_test(a_lookup_is_made_once_a_back_off_step_and_not_for_each_connection),
        cmocka_unit_test(a_name_that_comes_up_later_is_found_within_one_back_off),
        cmocka_unit_test(a_request_costs_one_send_and_no_receive),
        cmocka_unit_test(options_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
