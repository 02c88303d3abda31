/* Dials through a proxy: what it is asked, everything it may answer, and the end at any moment. */
#include "tests/unit/dial_bench.h"

#include "wire/http.h"

#define SECURE_URL "https://there.example/x"
#define LOCAL      "169.254.169.254 is in deny = 169.254.0.0/16"
#define PROXY      "http://10.0.1.1:3128"

static void through(struct bench *b, const char *text, const char *authorization)
{
    const char *why;
    b->options.proxied = true;
    b->options.proxy.authorization = authorization;
    assert_int_equal(url_parse(&b->options.proxy.url, text, &why), 0);
}

/* A world with a proxy that follows the script. */
static struct sim_server *open_proxied(struct bench *b, uint64_t seed, const char *url, const char *login,
                                       const struct sim_step *script, unsigned steps)
{
    bench_new(b, seed, url);
    through(b, PROXY, login);
    bench_open(b);
    return sim_server(b->sim, "10.0.1.1:3128", script, steps);
}

static void the_proxy_is_asked_for_host_and_port(void **state)
{
    (void)state;
    static const struct sim_step script[] = {SIM_EXPECT_HTTP, SIM_SEND("HTTP/1.1 200 Connected\r\n\r\n"),
                                             SIM_EXPECT_END};
    static const struct {
        const char *url, *login, *request;
    } cases[] = {
        {"https://There.example./x?y", NULL,
         "CONNECT there.example:443 HTTP/1.1\r\nHost: there.example:443\r\n\r\n"},
        {"https://there.example:8443", "Basic dTpw",
         "CONNECT there.example:8443 HTTP/1.1\r\nHost: there.example:8443\r\n"
         "Proxy-Authorization: Basic dTpw\r\n\r\n"},
        {"https://[2001:DB8::1]/", NULL,
         "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n"},
        {"https://192.0.2.7:444/", NULL, "CONNECT 192.0.2.7:444 HTTP/1.1\r\nHost: 192.0.2.7:444\r\n\r\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench b;
        struct sim_server *proxy =
            open_proxied(&b, i + 1, cases[i].url, cases[i].login, script, ARRAY_SIZE(script));
        assert_int_equal(bench_dial(&b), 0);
        struct span asked = sim_received(sim_server_connection(proxy, 0));
        assert_int_equal(asked.size, strlen(cases[i].request));
        assert_memory_equal(asked.data, cases[i].request, asked.size);
        assert_int_equal(sim_lookups(b.sim, "there.example"), 0); /* the proxy's business */
        bench_free(&b);
    }
}

static void longest_names_and_logins_fit(void **state)
{
    (void)state;
    static const struct sim_step script[] = {SIM_EXPECT_HTTP, SIM_SEND("HTTP/1.1 200 \r\n\r\n"),
                                             SIM_EXPECT_END};
    char url[300] = "https://", login[4097];
    for (unsigned i = 0; i < RESOLVER_NAME_MAX; i++)
        url[8 + i] = i % 64 == 63 ? '.' : 'a';
    strcpy(url + 8 + RESOLVER_NAME_MAX, ":65535/");
    memset(login, 'x', sizeof login - 1);
    login[sizeof login - 1] = '\0';
    struct bench b;
    struct sim_server *proxy = open_proxied(&b, 1, url, login, script, ARRAY_SIZE(script));
    memset(login, 'Q', sizeof login - 1); /* the texts may go after destination_init */
    assert_int_equal(bench_dial(&b), 0);
    struct span asked = sim_received(sim_server_connection(proxy, 0));
    assert_int_equal(asked.size,
                     sizeof "CONNECT :65535 HTTP/1.1\r\nHost: :65535\r\nProxy-Authorization: \r\n\r\n" - 1 +
                         2 * RESOLVER_NAME_MAX + 4096);
    assert_null(memchr(asked.data, 'Q', asked.size));
    bench_free(&b);
}

static void plain_http_goes_to_the_proxy_without_a_tunnel(void **state)
{
    (void)state;
    static const struct sim_step script[] = {SIM_EXPECT_END};
    struct bench b;
    struct sim_server *proxy =
        open_proxied(&b, 1, "http://there.example/x", NULL, script, ARRAY_SIZE(script));
    assert_int_equal(bench_dial(&b), 0);
    assert_int_equal(sim_server_accepted(proxy), 1);
    bench_free(&b);
    assert_int_equal(b.dials[0].dones, 1);
}

static void the_proxys_own_name_is_looked_up(void **state)
{
    (void)state;
    static const struct sim_step script[] = {SIM_EXPECT_HTTP, SIM_SEND("HTTP/1.1 200 OK\r\n\r\n"),
                                             SIM_EXPECT_END};
    struct sim_answer answer = {.addresses = {"10.0.1.1", "10.0.1.2"}};
    struct bench b;
    bench_new(&b, 1, SECURE_URL);
    through(&b, "http://proxy.example:3128", NULL);
    bench_open(&b);
    assert_int_equal(bench_dial(&b), PE_NAME_NOT_FOUND);
    assert_string_equal(dial_text(&b.dials[0].dial), "the proxy");
    sim_set_name(b.sim, "proxy.example", &answer);
    assert_int_equal(bench_dial(&b), -ECONNREFUSED);
    assert_string_equal(dial_text(&b.dials[0].dial), "the proxy 10.0.1.1:3128 and 1 other");
    sim_server(b.sim, "10.0.1.1:3128", script, ARRAY_SIZE(script));
    assert_int_equal(bench_dial(&b), 0);
    assert_int_equal(sim_lookups(b.sim, "proxy.example"), 3);
    bench_free(&b);
}

/* --- answers --- */

static void answers_make_the_tunnel_or_say_why_not(void **state)
{
    (void)state;
    static const char invalid[] = "the proxy's answer is not valid HTTP/1.1";
    static const char bytes[] = "the proxy sent bytes after its answer";
    static const struct {
        const char *answer;
        int error;
        const char *text;
    } cases[] = {
        {"HTTP/1.1 200 Connection established\r\n\r\n", 0, ""},
        {"HTTP/1.0 200 OK\r\nProxy-Agent: x\r\n\r\n", 0, ""},
        {"HTTP/1.1 204 \r\n\r\n", 0, ""},
        {"HTTP/1.1 299 odd\n\n", 0, ""},
        /* RFC 9110 section 9.3.6: what they say of a body is ignored, however wrong */
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: x\r\n\r\n", 0, ""},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", 0, ""},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 0, ""},
        {"HTTP/1.1 200 OK\r\n\r\n\x16\x03\x01", PE_PROXY, bytes},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", PE_PROXY, bytes},
        {"HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nhi", PE_PROXY,
         "the proxy answered 407: it wants other credentials"},
        {"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nhi", PE_PROXY, "the proxy answered 502"},
        {"HTTP/1.1 403 \x1b[31m\r\n\r\n", PE_PROXY, "the proxy answered 403"},
        {"HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\n", PE_PROXY, "the proxy answered 302"},
        {"HTTP/1.1 101 Switching\r\n\r\n", PE_PROXY, "the proxy answered 101"},
        {"HTTP/1.1 999 What\r\n\r\n", PE_PROXY, "the proxy answered 999"},
        {"SSH-2.0-OpenSSH_9.2\r\n", PE_PROXY, invalid},
        {"HTTP/2 200\r\n\r\n", PE_PROXY, invalid},
        {"HTTP/1.1 20 OK\r\n\r\n", PE_PROXY, invalid},
        {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", PE_PROXY, invalid},
        {"\x15\x03\x01\x00\x02\x02\x46", PE_PROXY, invalid},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (uint64_t seed = 1; seed <= BENCH_SEEDS; seed++) { /* each splits it elsewhere */
            struct sim_step script[] = {
                SIM_EXPECT_HTTP, SIM_SEND_BYTES(cases[i].answer, strlen(cases[i].answer)), SIM_EXPECT_END};
            struct sim_faults faults = {.multishot_end = 300,
                                        .no_buffers = 300,
                                        .short_send = 500,
                                        .batch_max = 1 + seed % 3,
                                        .buffer_bytes = 1 + seed * 7};
            struct bench b;
            open_proxied(&b, seed, SECURE_URL, NULL, script, ARRAY_SIZE(script));
            sim_set_faults(b.sim, &faults);
            b.dials[0].keeps = true;
            int error = bench_dial(&b);
            if (cases[i].error < 0 && error == 0) {
                /* Bytes that came only when the connection was handed out are TLS's to refuse. */
                assert_ptr_equal(cases[i].text, bytes);
            } else if (error != cases[i].error || strcmp(dial_text(&b.dials[0].dial), cases[i].text) != 0) {
                fail_msg("%s: %d %s", cases[i].answer, error, dial_text(&b.dials[0].dial));
            }
            if (error == 0)
                bench_close(&b.dials[0], b.dials[0].fd);
            bench_free(&b);
        }
    }
}

static void bytes_in_one_piece_with_the_answer_are_an_error(void **state)
{
    (void)state;
    static const struct sim_step script[] = {SIM_EXPECT_HTTP, SIM_SEND("HTTP/1.1 200 OK\r\n\r\nx"),
                                             SIM_EXPECT_END};
    struct sim_link whole = {.latency_max_ns = 1, .window_bytes = 65536};
    struct bench b;
    open_proxied(&b, 1, SECURE_URL, NULL, script, ARRAY_SIZE(script));
    sim_set_link(b.sim, NULL, NULL, &whole);
    assert_int_equal(bench_dial(&b), PE_PROXY);
    bench_free(&b);
}

static void a_proxy_that_ends_the_connection_is_named(void **state)
{
    (void)state;
    static const struct sim_step closes[] = {SIM_EXPECT_HTTP, SIM_CLOSE};
    static const struct sim_step closes_in_head[] = {SIM_EXPECT_HTTP, SIM_SEND("HTTP/1.1 200 OK\r\n"),
                                                     SIM_CLOSE};
    static const struct sim_step closes_at_once[] = {SIM_CLOSE};
    static const struct sim_step resets[] = {SIM_EXPECT_HTTP, SIM_RESET};
    static const struct {
        const struct sim_step *script;
        unsigned steps;
        int error;
        const char *text;
    } cases[] = {
        {closes, ARRAY_SIZE(closes), PE_PROXY, "the proxy closed the connection"},
        {closes_in_head, ARRAY_SIZE(closes_in_head), PE_PROXY, "the proxy closed the connection"},
        {closes_at_once, ARRAY_SIZE(closes_at_once), PE_PROXY, "the proxy closed the connection"},
        {resets, ARRAY_SIZE(resets), -ECONNRESET, "the proxy"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench b;
        open_proxied(&b, i + 1, SECURE_URL, NULL, cases[i].script, cases[i].steps);
        assert_int_equal(bench_dial(&b), cases[i].error);
        assert_string_equal(dial_text(&b.dials[0].dial), cases[i].text);
        assert_true(b.destination.addresses.stale);
        bench_free(&b);
    }
}

static void a_head_that_is_silent_or_drips_ends_in_time(void **state)
{
    (void)state;
    static const struct sim_step silent[] = {SIM_EXPECT_HTTP, SIM_EXPECT_END};
    static const struct sim_step drips[] = {SIM_SEND("HTTP/1.1 200 OK\r\nA:"),
                                            SIM_WAIT(NS_PER_S),
                                            SIM_SEND("b"),
                                            SIM_WAIT(NS_PER_S),
                                            SIM_SEND("b"),
                                            SIM_WAIT(NS_PER_S),
                                            SIM_SEND("b\r\nA:"),
                                            SIM_WAIT(20 * NS_PER_S),
                                            SIM_SEND("\r\n\r\n"),
                                            SIM_EXPECT_END};
    for (unsigned i = 0; i < 2; i++) {
        struct bench b;
        open_proxied(&b, 1, SECURE_URL, NULL, i ? drips : silent, i ? ARRAY_SIZE(drips) : ARRAY_SIZE(silent));
        assert_int_equal(bench_dial(&b), PE_CONNECT_TIMEOUT);
        assert_string_equal(dial_text(&b.dials[0].dial), "the proxy does not answer CONNECT");
        uint64_t took_ns = b.dials[0].done_ns - SIM_START_NS;
        assert_in_range(took_ns, b.options.progress_ns, b.options.progress_ns + 10 * NS_PER_MS);
        bench_free(&b);
    }
}

static void endless_heads_end(void **state)
{
    (void)state;
    static const char interim[] = "HTTP/1.1 100 C\r\n\r\n";
    static const struct sim_step interims[] = {SIM_SEND_BYTES(interim, sizeof interim - 1),
                                               SIM_WAIT(NS_PER_US), SIM_AGAIN};
    static char line[HTTP_HEAD_MAX + 100] = "HTTP/1.1 200 OK\r\nA: ";
    memset(line + strlen(line), 'a', sizeof line - strlen(line));
    struct sim_step endless[] = {SIM_SEND_BYTES(line, sizeof line), SIM_EXPECT_END};
    struct bench b;
    open_proxied(&b, 1, SECURE_URL, NULL, interims, ARRAY_SIZE(interims));
    assert_int_equal(bench_dial(&b), PE_PROXY);
    assert_string_equal(dial_text(&b.dials[0].dial), "the proxy answered 100");
    bench_free(&b);
    open_proxied(&b, 1, SECURE_URL, NULL, endless, ARRAY_SIZE(endless));
    assert_int_equal(bench_dial(&b), PE_PROXY);
    bench_free(&b);
}

/* --- egress --- */

static void egress_rules_are_for_the_proxys_address_and_for_addresses_in_the_url(void **state)
{
    (void)state;
    static const struct sim_step script[] = {SIM_EXPECT_HTTP, SIM_SEND("HTTP/1.1 200 OK\r\n\r\n"),
                                             SIM_EXPECT_END};
    static const struct {
        const char *url, *deny;
        int error;
        unsigned connections; /* to the proxy */
        const char *text;
    } cases[] = {
        {"https://there.example/", "169.254.0.0/16", 0, 1, ""},
        {"https://there.example/", "10.0.0.0/8", PE_NAME_DENIED, 0,
         "the proxy: 10.0.1.1 is in deny = 10.0.0.0/8"},
        {"https://169.254.169.254/", "169.254.0.0/16", PE_NAME_DENIED, 0, LOCAL},
        {"http://169.254.169.254/", "169.254.0.0/16", PE_NAME_DENIED, 0, LOCAL},
        {"https://[::ffff:169.254.169.254]/", "169.254.0.0/16", PE_NAME_DENIED, 0, LOCAL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench b;
        struct sim_server *proxy = open_proxied(&b, 1, cases[i].url, NULL, script, ARRAY_SIZE(script));
        bench_deny(&b, cases[i].deny);
        assert_int_equal(bench_dial(&b), cases[i].error);
        assert_int_equal(sim_server_accepted(proxy), cases[i].connections);
        assert_string_equal(dial_text(&b.dials[0].dial), cases[i].text);
        bench_free(&b);
    }
}

/* --- the end --- */

static bool stopped_after(uint64_t seed, unsigned steps, const struct sim_step *script, unsigned count)
{
    struct sim_faults faults = {.multishot_end = 300, .no_buffers = 300, .batch_max = 2, .buffer_bytes = 9};
    struct bench b;
    open_proxied(&b, seed, SECURE_URL, NULL, script, count);
    sim_set_faults(b.sim, &faults);
    bench_start(&b, 0);
    if (steps > 0)
        sim_run(b.sim, NEVER, NULL, NULL, steps);
    bool done = b.dials[0].dones > 0;
    b.inside = true;
    dial_stop(&b.dials[0].dial);
    b.inside = false;
    bench_finish(&b);
    if (!done)
        assert_int_equal(b.dials[0].error, PE_STOPPING);
    sim_run_for(b.sim, 5 * NS_PER_S);
    assert_int_equal(b.dials[0].dones, 1);
    bench_free(&b);
    return done;
}

static void it_may_be_stopped_at_every_step(void **state)
{
    (void)state;
    static const struct sim_step good[] = {SIM_EXPECT_HTTP, SIM_SEND("HTTP/1.1 200 OK\r\n\r\n"),
                                           SIM_EXPECT_END};
    static const struct sim_step bad[] = {SIM_EXPECT_HTTP, SIM_SEND("HTTP/1.1 502 Bad\r\n\r\n"), SIM_CLOSE};
    static const struct sim_step silent[] = {SIM_EXPECT_HTTP, SIM_EXPECT_END};
    static const struct sim_step early[] = {SIM_SEND("HTTP/1.1 200 OK\r\n\r\nx"), SIM_EXPECT_END};
    static const struct {
        const struct sim_step *script;
        unsigned count;
    } cases[] = {{good, 3}, {bad, 3}, {silent, 2}, {early, 2}};
    for (uint64_t seed = 1; seed <= BENCH_SEEDS; seed++) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
            bool done = false;
            for (unsigned steps = 0; !done; steps++) {
                assert_true(steps < 200);
                done = stopped_after(seed, steps, cases[i].script, cases[i].count);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_proxy_is_asked_for_host_and_port),
        cmocka_unit_test(longest_names_and_logins_fit),
        cmocka_unit_test(plain_http_goes_to_the_proxy_without_a_tunnel),
        cmocka_unit_test(the_proxys_own_name_is_looked_up),
        cmocka_unit_test(answers_make_the_tunnel_or_say_why_not),
        cmocka_unit_test(bytes_in_one_piece_with_the_answer_are_an_error),
        cmocka_unit_test(a_proxy_that_ends_the_connection_is_named),
        cmocka_unit_test(a_head_that_is_silent_or_drips_ends_in_time),
        cmocka_unit_test(endless_heads_end),
        cmocka_unit_test(egress_rules_are_for_the_proxys_address_and_for_addresses_in_the_url),
        cmocka_unit_test(it_may_be_stopped_at_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
