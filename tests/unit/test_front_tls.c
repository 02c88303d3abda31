/* The front by TLS: the same as without, whatever is between; handshakes that take their time or never end;
 * who may come; and every way to end. TLS itself has tests of its own. */
#include "tests/unit/fewer.h"
#include "tests/unit/tls_clients.h"

#include "host/front_greet.h"

#include <errno.h>
#include <sodium.h>

#define HOST   "Host: h\r\n"
#define EVENT  "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi"
#define HEALTH "GET /health HTTP/1.1\r\n" HOST "\r\n"

static struct tls_world tls;
static struct tls_context *usual; /* of clients */
static struct tls_current https;  /* the front's */

/* --- worlds --- */

static void open_secured(struct front_world *w, uint64_t seed, const struct config *config)
{
    front_world_open_secured(w, seed, config, &https, true);
}

static void add_faults(struct front_world *w)
{
    struct sim_faults faults = {.no_buffers = 100,
                                .multishot_end = 100,
                                .short_send = 200,
                                .batch_max = 1 + (uint32_t)random_below(sim_random(w->sim), 8),
                                .buffer_bytes = 1 + (uint32_t)random_below(sim_random(w->sim), 3000)};
    struct sim_link link = sim_link_default;
    link.window_bytes = 2000 + (uint32_t)random_below(sim_random(w->sim), 60000);
    sim_set_faults(w->sim, &faults);
    sim_set_link(w->sim, NULL, NULL, &link);
}

/* Whole seconds until the client sees its end; at most 1000. */
static unsigned seconds_until_end(struct tls_client *c)
{
    unsigned seconds = 0;
    while (seconds < 1000 && !sim_peer_ended(c->c)) {
        client_step(c, NS_PER_S);
        seconds++;
    }
    return seconds;
}

/* All lines that were logged since. */
static const char *said(struct front_world *w)
{
    static char text[8000];
    struct record_queue *q = &w->log.lines;
    struct stream_position published = record_queue_see_published(q);
    text[0] = '\0';
    while (q->freed.bytes < published.bytes) {
        struct span bytes = record_queue_span(q, q->freed.bytes), line;
        size_t framed = record_get(bytes.data, bytes.data + (published.bytes - q->freed.bytes), &line);
        assert_true(framed > 0);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%.*s\n", (int)line.size, (const char *)line.data);
        record_queue_free_to(q, (struct stream_position){q->freed.bytes + framed, q->freed.records + 1});
    }
    return text;
}

/* --- as without TLS --- */

static void both_ways_in_lead_to_the_same_apps(void **state)
{
    (void)state;
    struct front_world w;
    open_secured(&w, 1, NULL);
    struct sim_connection *plain = front_world_send(&w, EVENT, sizeof EVENT - 1);
    struct tls_client c;
    client_greet(&c, &w, usual);
    client_ask(&c, EVENT);
    assert_int_equal(front_world_count(plain, "{\"stored\":1}"), 1);
    assert_int_equal(client_count(&c, "{\"stored\":2}"), 1);
    assert_int_equal(w.front.counters.handshakes, 1);
    assert_int_equal(w.front.counters.handshake_fails, 0);
    client_ask(&c, "GET /status HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(client_count(&c, "\"front\":{\"http\":\"10.0.0.1:80\",\"https\":\"10.0.0.1:443\","
                                      "\"certificate\":\"ok\",\"handshakes\":1,\"failed_handshakes\":0}"),
                     1);
    client_forget(&c);
    front_world_close(&w);
}

static void there_may_be_no_other_way_in(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open_secured(&w, 1, NULL, &https, false);
    struct sim_connection *plain = front_world_send(&w, EVENT, sizeof EVENT - 1);
    struct tls_client c;
    client_greet(&c, &w, usual);
    client_ask(&c, EVENT);
    assert_int_equal(client_count(&c, "{\"stored\":1}"), 1);
    assert_int_equal(sim_peer_error(plain), -ECONNREFUSED);
    client_forget(&c);
    front_world_close(&w);
}

static void ciphertext_may_be_cut_anywhere(void **state)
{
    (void)state;
    size_t whole = SIZE_MAX;
    for (size_t cut = 0; cut < whole; cut += cut < 64 ? 1 : FEWER(7) < 7 ? 61 : 7) {
        struct front_world w;
        struct tls_client c;
        open_secured(&w, cut, NULL);
        client_connect(&c, &w, usual);
        c.cut = cut;
        client_settle(&c);
        assert_true(c.end.ready);
        client_ask(&c, EVENT EVENT);
        assert_int_equal(client_count(&c, "{\"stored\":2}"), 1);
        whole = c.said;
        client_forget(&c);
        front_world_close(&w);
    }
    assert_in_range(whole, 300, 5000);
}

static void records_may_be_cut_anywhere(void **state)
{
    (void)state;
    static const char requests[] = EVENT HEALTH EVENT;
    for (size_t piece = 1; piece < sizeof requests; piece++) {
        struct front_world w;
        struct tls_client c;
        open_secured(&w, piece, NULL);
        client_greet(&c, &w, usual);
        client_write(&c, requests, sizeof requests - 1, piece);
        client_settle(&c);
        assert_int_equal(w.apps[0].events, 2);
        assert_int_equal(client_count(&c, "HTTP/1.1 200 "), 3);
        client_forget(&c);
        front_world_close(&w);
    }
}

static void a_long_pipeline_is_answered_whatever_kernel_and_network_do(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < FEWER(20); seed++) {
        struct front_world w;
        struct tls_client c;
        open_secured(&w, seed, NULL);
        add_faults(&w);
        client_connect(&c, &w, usual);
        for (unsigned i = 0; i < 200 && !c.end.ready; i++)
            client_settle(&c);
        assert_true(c.end.ready);
        for (unsigned i = 0; i < 300; i++)
            client_write(&c, EVENT, sizeof EVENT - 1, 1 + random_below(sim_random(w.sim), 200));
        for (unsigned i = 0; i < 200 && client_count(&c, "{\"stored\":300}") == 0; i++)
            client_settle(&c);
        assert_int_equal(client_count(&c, "HTTP/1.1 200 "), 300);
        assert_int_equal(w.apps[0].events, 300);
        client_forget(&c);
        front_world_close(&w);
    }
}

/* More than a record, and than the window of either side. */
static void a_large_body_comes_in_and_a_large_text_goes_out(void **state)
{
    (void)state;
    static char body[600000];
    for (uint64_t seed = 0; seed < FEWER(6); seed++) {
        struct front_world w;
        struct tls_client c;
        open_secured(&w, seed, NULL);
        client_greet(&c, &w, usual);
        add_faults(&w);
        char *state_text = malloc(60001);
        memset(state_text, 'x', 60000);
        state_text[60000] = '\0';
        w.apps[0].show = state_text;
        client_ask(&c, "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 600000\r\n\r\n");
        client_write(&c, body, sizeof body, TLS_PLAIN_MAX);
        client_ask(&c, "GET /apps/counter/state HTTP/1.1\r\n" HOST "\r\n");
        for (unsigned i = 0; i < 100 && c.end.got_size < 60000; i++)
            client_settle(&c);
        assert_int_equal(client_count(&c, "{\"stored\":1}"), 1);
        assert_int_equal(w.apps[0].largest_run >= 600000, 1);
        assert_int_equal(client_count(&c, "xxxxxxxxxxxxxxxxxxxx"), 60000 - 19);
        client_forget(&c);
        front_world_close(&w);
        free(state_text);
    }
}

static void an_early_refusal_is_seen_and_not_a_reset(void **state)
{
    (void)state;
    static char body[100000];
    struct front_world w;
    struct tls_client c;
    open_secured(&w, 1, NULL);
    client_greet(&c, &w, usual);
    client_ask(&c, "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 20000000\r\n\r\n");
    client_write(&c, body, sizeof body, TLS_PLAIN_MAX);
    client_settle(&c);
    assert_int_equal(client_count(&c, "HTTP/1.1 413 "), 1);
    assert_true(c.end.ended); /* close_notify */
    assert_int_equal(sim_peer_error(c.c), 0);
    assert_int_equal(w.front.open, 1); /* what still comes is discarded */
    assert_in_range(seconds_until_end(&c), 0, 3);
    client_settle(&c);
    sim_run_for(w.sim, 3 * NS_PER_S);
    assert_int_equal(w.front.open, 0);
    client_forget(&c);
    front_world_close(&w);
}

static void a_slow_request_is_told_and_a_kept_connection_ends_with_close_notify(void **state)
{
    (void)state;
    struct front_world w;
    struct tls_client slow, idle;
    open_secured(&w, 1, NULL);
    client_greet(&slow, &w, usual);
    client_greet(&idle, &w, usual);
    client_ask(&idle, EVENT);
    client_ask(&slow, "POST /apps");
    assert_in_range(seconds_until_end(&slow), 29, 33);
    client_hear(&slow);
    assert_int_equal(client_count(&slow, "HTTP/1.1 408 "), 1);
    assert_true(slow.end.ended);
    assert_in_range(seconds_until_end(&idle), 20, 33); /* 60 in all */
    client_hear(&idle);
    assert_true(idle.end.ended);
    assert_int_equal(client_count(&idle, "HTTP/1.1 "), 1);
    client_forget(&slow);
    client_forget(&idle);
    front_world_close(&w);
}

static void a_client_that_does_not_read_is_closed(void **state)
{
    (void)state;
    struct front_world w;
    struct tls_client c;
    open_secured(&w, 1, NULL);
    client_greet(&c, &w, usual);
    sim_peer_read(c.c, false);
    for (unsigned i = 0; i < 400; i++)
        client_write(&c, "GET /metrics HTTP/1.1\r\n" HOST "\r\n", 24 + sizeof HOST, TLS_PLAIN_MAX);
    sim_run_for(w.sim, 9 * NS_PER_S);
    assert_int_equal(w.front.open, 1);
    sim_run_for(w.sim, 2 * NS_PER_S);
    assert_int_equal(w.front.open, 0);
    client_forget(&c);
    front_world_close(&w);
}

/* --- how clients end --- */

static void a_cut_in_the_middle_of_a_body_stores_nothing(void **state)
{
    (void)state;
    static const char *const starts[] = {
        "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nhello",
        "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "POST /apps/counter/events/up HTTP/1.1\r\n" HOST
        "Content-Type: application/x-ndjson\r\nContent-Length: 10\r\n\r\n1\n2\n"};
    for (unsigned i = 0; i < 3 * ARRAY_SIZE(starts); i++) {
        struct front_world w;
        struct tls_client c;
        open_secured(&w, i, NULL);
        client_greet(&c, &w, usual);
        client_ask(&c, starts[i % ARRAY_SIZE(starts)]);
        if (i / 3 == 0)
            tls_engine_end(c.end.engine); /* close_notify, then the end */
        client_say(&c);
        if (i / 3 == 2)
            sim_peer_reset(c.c);
        else
            sim_peer_shutdown(c.c);
        sim_run_for(w.sim, 3 * NS_PER_S);
        client_hear(&c);
        assert_int_equal(w.apps[0].events, 0);
        assert_int_equal(client_count(&c, "HTTP/1.1 400 "), i / 3 < 2);
        assert_int_equal(w.front.open, 0);
        client_forget(&c);
        front_world_close(&w);
    }
}

static void who_has_said_all_is_answered(void **state)
{
    (void)state;
    for (unsigned notify = 0; notify < 2; notify++) {
        struct front_world w;
        struct tls_client c;
        open_secured(&w, 1, NULL);
        client_greet(&c, &w, usual);
        w.hold = true;
        client_write(&c, EVENT EVENT, 2 * (sizeof EVENT - 1), TLS_PLAIN_MAX);
        if (notify)
            tls_engine_end(c.end.engine);
        client_say(&c);
        if (!notify)
            sim_peer_shutdown(c.c);
        client_settle(&c);
        front_world_release(&w);
        sim_run_for(w.sim, NS_PER_S);
        client_hear(&c);
        assert_int_equal(client_count(&c, "{\"stored\":2}"), 1);
        assert_int_equal(w.front.open, 0);
        client_forget(&c);
        front_world_close(&w);
    }
}

static void damage_ends_the_connection_and_no_other(void **state)
{
    (void)state;
    struct front_world w;
    struct tls_client c, other;
    open_secured(&w, 1, NULL);
    client_greet(&c, &w, usual);
    client_greet(&other, &w, usual);
    sim_peer_send(c.c, "\x17\x03\x03\x00\x20 this is not what was agreed on", 37);
    client_settle(&c);
    assert_true(sim_peer_ended(c.c));
    assert_int_equal(w.front.counters.handshake_fails, 0);
    client_ask(&other, EVENT);
    assert_int_equal(client_count(&other, "{\"stored\":1}"), 1);
    client_forget(&c);
    client_forget(&other);
    front_world_close(&w);
}

/* --- handshakes --- */

static void a_handshake_has_ten_seconds_or_the_time_of_a_request(void **state)
{
    (void)state;
    static const uint64_t request_s[] = {0, 4};
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned silent = 0; silent < 2; silent++) {
            struct config config = {.request_ns = request_s[i] * NS_PER_S};
            struct front_world w;
            struct tls_client c;
            open_secured(&w, 1, &config);
            client_connect(&c, &w, usual);
            c.pace = 1;
            if (silent)
                tls_engine_took(c.end.engine, tls_engine_pending(c.end.engine));
            assert_in_range(seconds_until_end(&c), i == 0 ? 10 : 4, i == 0 ? 11 : 5);
            assert_int_equal(w.front.counters.handshake_fails, 1);
            assert_int_equal(w.front.counters.timeouts, 1);
            assert_int_equal(w.front.greeting, 0);
            assert_int_equal(w.front.counters.replies[4], 0);
            client_forget(&c);
            front_world_close(&w);
        }
    }
}

static void what_is_not_tls_is_closed_and_said_once_a_minute(void **state)
{
    (void)state;
    struct front_world w;
    open_secured(&w, 1, NULL);
    for (unsigned i = 0; i < 100; i++) {
        struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_SECURED, NULL, 0);
        uint8_t bytes[40];
        for (unsigned b = 0; b < sizeof bytes; b++)
            bytes[b] = (uint8_t)random_next(sim_random(w.sim));
        if (i % 2)
            sim_peer_send(c, EVENT, sizeof EVENT - 1);
        else
            sim_peer_send(c, bytes, sizeof bytes);
        sim_peer_shutdown(c);
        sim_run_for(w.sim, 20 * NS_PER_MS);
        assert_true(sim_peer_ended(c));
    }
    assert_int_equal(w.apps[0].events, 0);
    assert_int_equal(w.front.counters.handshake_fails, 100);
    assert_int_equal(w.front.open, 0);
    const char *line = strstr(said(&w), "https: a TLS handshake has failed: ");
    assert_non_null(line);
    assert_null(strstr(line + 1, "https: "));
    sim_run_for(w.sim, 60 * NS_PER_S);
    struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_SECURED, NULL, 0);
    sim_peer_send(c, EVENT, sizeof EVENT - 1);
    sim_run_for(w.sim, NS_PER_S);
    assert_non_null(strstr(said(&w), "(100 failed since it was last said)"));
    front_world_close(&w);
}

static void handshakes_leave_room_for_others(void **state)
{
    (void)state;
    struct config config = {.connections = 8};
    struct front_world w;
    struct tls_client late;
    open_secured(&w, 1, &config);
    for (unsigned i = 0; i < 6; i++) {
        sim_client(w.sim, "10.0.0.9", WORLD_SECURED, NULL, 0);
        sim_run_for(w.sim, 5 * NS_PER_MS);
    }
    assert_int_equal(w.front.greeting, 6);
    client_connect(&late, &w, usual);
    client_settle(&late);
    assert_int_equal(w.front.greeting, 6);
    assert_int_equal(sim_backlog(w.sim, WORLD_SECURED), 1); /* it waits */
    assert_false(late.end.ready || sim_peer_ended(late.c));
    struct sim_connection *plain = front_world_send(&w, EVENT, sizeof EVENT - 1);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    assert_int_equal(front_world_count(plain, "{\"stored\":1}"), 1);
    sim_run_for(w.sim, 10 * NS_PER_S);
    client_settle(&late);
    client_ask(&late, EVENT);
    assert_int_equal(client_count(&late, "{\"stored\":2}"), 1);
    assert_int_equal(w.front.counters.handshake_fails, 6);
    client_forget(&late);
    front_world_close(&w);
}

static void who_is_greeted_makes_room_for_the_next(void **state)
{
    (void)state;
    struct config config = {.connections = 8};
    struct front_world w;
    struct tls_client c[7];
    open_secured(&w, 1, &config);
    for (unsigned i = 0; i < 7; i++) {
        client_connect(&c[i], &w, usual);
        sim_run_for(w.sim, 5 * NS_PER_MS);
    }
    assert_int_equal(sim_backlog(w.sim, WORLD_SECURED), 1);
    client_settle(&c[0]);
    assert_true(c[0].end.ready);
    client_settle(&c[6]);
    assert_true(c[6].end.ready);
    for (unsigned i = 0; i < 7; i++)
        client_forget(&c[i]);
    front_world_close(&w);
}

static void a_storm_of_connections_is_bounded_and_passes(void **state)
{
    (void)state;
    struct config config = {.connections = 8};
    for (uint64_t seed = 0; seed < FEWER(10); seed++) {
        struct front_world w;
        struct tls_client c;
        open_secured(&w, seed, &config);
        for (unsigned i = 0; i < 200; i++)
            sim_client(w.sim, "10.0.0.9", WORLD_SECURED, NULL, 0);
        for (unsigned i = 0; i < 100; i++) {
            sim_run_for(w.sim, NS_PER_MS);
            assert_in_range(w.front.greeting, 0, 6);
        }
        sim_reset_connections(w.sim, NULL, NULL);
        sim_run_for(w.sim, 11 * NS_PER_S);
        assert_int_equal(w.front.open, 0);
        client_greet(&c, &w, usual);
        client_ask(&c, EVENT);
        assert_int_equal(client_count(&c, "{\"stored\":1}"), 1);
        client_forget(&c);
        front_world_close(&w);
    }
}

static void one_connection_too_many_may_ask_how_the_host_is(void **state)
{
    (void)state;
    struct config config = {.connections = 2};
    struct front_world w;
    struct tls_client two[2], third, fourth;
    open_secured(&w, 1, &config);
    for (unsigned i = 0; i < 2; i++)
        client_greet(&two[i], &w, usual);
    client_greet(&third, &w, usual);
    client_ask(&third, HEALTH);
    client_greet(&fourth, &w, usual);
    client_ask(&fourth, EVENT);
    assert_int_equal(client_count(&third, "HTTP/1.1 200 "), 1);
    assert_int_equal(client_count(&fourth, "HTTP/1.1 503 "), 1);
    assert_true(third.end.ended && fourth.end.ended);
    client_forget(&third);
    client_connect(&third, &w, usual); /* and has 2 s for the handshake and the request */
    client_settle(&third);
    assert_in_range(seconds_until_end(&third), 2, 3);
    for (unsigned i = 0; i < 2; i++)
        client_forget(&two[i]);
    client_forget(&third);
    client_forget(&fourth);
    front_world_close(&w);
}

/* --- certificates --- */

static void with_a_ca_only_its_clients_may_come(void **state)
{
    (void)state;
    struct tls_current wanting = {0};
    struct tls_context *known =
        tls_world_context(&tls, &(struct tls_world_options){.client_certificate = true});
    tls_current_replace(&wanting, tls_world_context(&tls, &(struct tls_world_options){
                                                              .server = true, .client_certificate = true}));
    struct front_world w;
    struct tls_client stranger, friend;
    front_world_open_secured(&w, 1, NULL, &wanting, true);
    client_connect(&stranger, &w, usual);
    client_settle(&stranger);
    assert_true(stranger.end.error < 0);
    assert_true(sim_peer_ended(stranger.c));
    assert_int_equal(w.front.counters.handshake_fails, 1);
    client_greet(&friend, &w, known);
    client_ask(&friend, EVENT);
    assert_int_equal(client_count(&friend, "{\"stored\":1}"), 1);
    client_forget(&stranger);
    client_forget(&friend);
    front_world_close(&w);
    tls_current_replace(&wanting, NULL);
    tls_context_drop(known);
}

static void a_new_certificate_is_for_new_connections(void **state)
{
    (void)state;
    struct tls_current changing = {0};
    struct test_certificate *other = test_certificate(&(struct test_certificate_options){
        .subject = "b.example", .names = "DNS:b.example", .issuer = tls.ca});
    tls_current_replace(&changing, tls_world_context(&tls, &(struct tls_world_options){.server = true}));
    struct front_world w;
    struct tls_client before, after;
    front_world_open_secured(&w, 1, NULL, &changing, true);
    client_greet(&before, &w, usual);
    tls_current_replace(&changing,
                        tls_world_context(&tls, &(struct tls_world_options){.server = true, .leaf = other}));
    client_connect(&after, &w, usual);
    client_settle(&after);
    assert_int_equal(after.end.error, PE_CERT_NAME);
    client_ask(&before, EVENT);
    assert_int_equal(client_count(&before, "{\"stored\":1}"), 1);
    client_forget(&before);
    client_forget(&after);
    front_world_close(&w);
    tls_current_replace(&changing, NULL);
    test_certificate_free(other);
}

static void an_old_certificate_is_told_by_status_and_health(void **state)
{
    (void)state;
    struct front_world w;
    open_secured(&w, 1, NULL);
    https.outdated = true;
    struct sim_connection *c = front_world_send(&w, HEALTH, sizeof HEALTH - 1);
    sim_run_for(w.sim, 20 * NS_PER_MS);
    https.outdated = false;
    assert_int_equal(front_world_count(c, "\"degraded\":true"), 1);
    assert_int_equal(front_world_count(c, "\"certificate\":\"old\""), 1);
    front_world_close(&w);
}

static void without_a_certificate_nobody_can_come_and_the_host_says_so(void **state)
{
    (void)state;
    struct tls_current empty = {0};
    struct front_world w;
    front_world_open_secured(&w, 1, NULL, &empty, true);
    struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_SECURED, NULL, 0);
    struct sim_connection *plain = front_world_send(&w, HEALTH, sizeof HEALTH - 1);
    sim_run_for(w.sim, 20 * NS_PER_MS);
    assert_true(sim_peer_ended(c));
    assert_int_equal(w.front.counters.handshake_fails, 1);
    assert_int_equal(front_world_count(plain, "HTTP/1.1 200 "), 1);
    assert_int_equal(front_world_count(plain, "\"degraded\":true"), 1);
    assert_int_equal(front_world_count(plain, "\"certificate\":\"unreadable\""), 1);
    tls_current_replace(&empty, tls_world_context(&tls, &(struct tls_world_options){.server = true}));
    struct tls_client late;
    client_greet(&late, &w, usual);
    client_ask(&late, HEALTH);
    assert_int_equal(client_count(&late, "\"degraded\":false"), 1);
    client_forget(&late);
    front_world_close(&w);
    tls_current_replace(&empty, NULL);
}

/* --- the end --- */

static void at_its_end_clients_are_answered_and_told(void **state)
{
    (void)state;
    struct front_world w;
    struct tls_client idle, asking, greeting;
    open_secured(&w, 1, NULL);
    client_greet(&idle, &w, usual);
    client_greet(&asking, &w, usual);
    client_connect(&greeting, &w, usual);
    sim_run_for(w.sim, NS_PER_MS);
    w.hold = true;
    client_ask(&asking, EVENT);
    assert_int_equal(w.front.greeting, 1);
    front_stop(&w.front);
    client_settle(&idle);
    client_hear(&greeting);
    assert_true(idle.end.ended && sim_peer_ended(idle.c));
    assert_true(sim_peer_ended(greeting.c));
    assert_false(front_stopped(&w.front));
    front_world_release(&w);
    client_settle(&asking);
    assert_int_equal(client_count(&asking, "{\"stored\":1}"), 1);
    assert_true(asking.end.ended);
    sim_run_for(w.sim, 3 * NS_PER_S);
    assert_true(front_stopped(&w.front));
    client_forget(&idle);
    client_forget(&asking);
    client_forget(&greeting);
    front_world_close(&w);
}

static void it_may_be_aborted_at_any_moment(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < FEWER(60); seed++) {
        struct front_world w;
        struct tls_client c[3];
        open_secured(&w, seed, NULL);
        add_faults(&w);
        for (unsigned i = 0; i < 3; i++)
            client_connect(&c[i], &w, usual);
        for (uint64_t step = 0; step < seed; step++) {
            struct tls_client *one = &c[step % 3];
            if (one->end.ready && tls_engine_writable(one->end.engine))
                client_write(one, EVENT, sizeof EVENT - 1, 50);
            client_step(one, NS_PER_MS / 3);
        }
        front_abort(&w.front);
        for (unsigned i = 0; i < 3; i++)
            client_forget(&c[i]);
        front_world_close(&w);
    }
}

static int set_up(void **state)
{
    (void)state;
    tls_world_init(&tls);
    usual = tls_world_context(&tls, &(struct tls_world_options){0});
    tls_current_replace(&https, tls_world_context(&tls, &(struct tls_world_options){.server = true}));
    return sodium_init() < 0;
}

static int tear_down(void **state)
{
    (void)state;
    tls_context_drop(usual);
    tls_current_replace(&https, NULL);
    tls_world_dispose(&tls);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_in_lead_to_the_same_apps),
        cmocka_unit_test(there_may_be_no_other_way_in),
        cmocka_unit_test(ciphertext_may_be_cut_anywhere),
        cmocka_unit_test(records_may_be_cut_anywhere),
        cmocka_unit_test(a_long_pipeline_is_answered_whatever_kernel_and_network_do),
        cmocka_unit_test(a_large_body_comes_in_and_a_large_text_goes_out),
        cmocka_unit_test(an_early_refusal_is_seen_and_not_a_reset),
        cmocka_unit_test(a_slow_request_is_told_and_a_kept_connection_ends_with_close_notify),
        cmocka_unit_test(a_client_that_does_not_read_is_closed),
        cmocka_unit_test(a_cut_in_the_middle_of_a_body_stores_nothing),
        cmocka_unit_test(who_has_said_all_is_answered),
        cmocka_unit_test(damage_ends_the_connection_and_no_other),
        cmocka_unit_test(a_handshake_has_ten_seconds_or_the_time_of_a_request),
        cmocka_unit_test(what_is_not_tls_is_closed_and_said_once_a_minute),
        cmocka_unit_test(handshakes_leave_room_for_others),
        cmocka_unit_test(who_is_greeted_makes_room_for_the_next),
        cmocka_unit_test(a_storm_of_connections_is_bounded_and_passes),
        cmocka_unit_test(one_connection_too_many_may_ask_how_the_host_is),
        cmocka_unit_test(with_a_ca_only_its_clients_may_come),
        cmocka_unit_test(a_new_certificate_is_for_new_connections),
        cmocka_unit_test(an_old_certificate_is_told_by_status_and_health),
        cmocka_unit_test(without_a_certificate_nobody_can_come_and_the_host_says_so),
        cmocka_unit_test(at_its_end_clients_are_answered_and_told),
        cmocka_unit_test(it_may_be_aborted_at_any_moment),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
