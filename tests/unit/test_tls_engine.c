/* Two engines that talk to each other in memory; the time and every byte are the test's. */
#include "tests/unit/tls_pair.h"

#include "tls/x509.h"

static void talk_in_pieces(bool old, bool client_certificates)
{
    struct pair p;
    pair_contexts(&p, client_certificates);
    if (old)
        not_1_3(p.client_context);
    static const size_t pieces[] = {1, 2, 3, 5, 6, 7, 16, 100, 1000, WHOLE};
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        pair_start(&p, NULL);
        assert_talks(&p, pieces[i]);
        pair_stop(&p);
    }
    pair_drop(&p);
}

static void test_both_versions_with_and_without_client_certificates_in_pieces_of_any_size(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        talk_in_pieces(i & 1, i & 2);
}

/* All that the one says, split in two at every place. */
static void split_hello(struct pair *p, bool clients, size_t at)
{
    struct tls_end *from = clients ? &p->client : &p->server, *to = clients ? &p->server : &p->client;
    struct span output = tls_engine_output(from->engine);
    at = min_size(at, output.size); /* ECDSA's signatures vary by some bytes */
    tls_end_feed(to, span_of(output.data, at), WHOLE);
    tls_end_feed(to, span_of(output.data + at, output.size - at), WHOLE);
    tls_engine_took(from->engine, output.size);
}

static void split_handshakes(bool old)
{
    struct pair p;
    pair_contexts(&p, false);
    if (old)
        not_1_3(p.client_context);
    size_t size = 1;
    for (size_t at = 0; at < size; at += 3) {
        pair_start(&p, NULL);
        assert_true(tls_end_say(&p.client, &p.server, WHOLE));
        size = tls_engine_pending(p.server.engine);
        split_hello(&p, false, at);
        assert_talks(&p, WHOLE);
        pair_stop(&p);
    }
    assert_true(size > 500);
    pair_drop(&p);
}

static void test_a_servers_flight_may_be_split_anywhere(void **state)
{
    (void)state;
    split_handshakes(false);
    split_handshakes(true);
}

static void test_records_of_all_sizes_come_through(void **state)
{
    (void)state;
    static uint8_t plain[TLS_PLAIN_MAX], expected[TLS_PLAIN_MAX];
    struct pair p;
    pair_contexts(&p, false);
    pair_start(&p, NULL);
    assert_ready(&p, WHOLE);
    static const size_t sizes[] = {1, 2, 15, 16, 17, 255, 256, 1400, 4095, 4096, 16383, 16384};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        memset(plain, (int)i + 1, sizes[i]);
        memset(expected, (int)i + 1, sizes[i]);
        p.server.got_size = 0;
        tls_end_send(&p.client, span_of(plain, sizes[i]));
        assert_true(tls_engine_pending(p.client.engine) <= sizes[i] + TLS_RECORD_EXTRA);
        tls_ends_talk(&p.client, &p.server, 1 + sizes[i] / 3);
        assert_int_equal(p.server.got_size, sizes[i]);
        assert_memory_equal(p.server.got, expected, sizes[i]);
    }
    pair_stop(&p);
    pair_drop(&p);
}

static void test_the_suite_is_chacha20s_unless_aes_is_first(void **state)
{
    (void)state;
    struct pair p;
    pair_contexts(&p, false);
    pair_start(&p, NULL);
    assert_ready(&p, WHOLE);
    assert_string_equal(tls_engine_suite(p.client.engine), "TLS13-CHACHA20-POLY1305-SHA256");
    pair_stop(&p);
    pair_drop(&p);
    p.server_context =
        tls_world_context(&world, &(struct tls_world_options){.server = true, .aes_first = true});
    p.client_context = tls_world_context(&world, &(struct tls_world_options){.aes_first = true});
    for (unsigned old = 0; old < 2; old++) {
        if (old)
            not_1_3(p.client_context);
        pair_start(&p, NULL);
        assert_talks(&p, WHOLE);
        assert_string_equal(tls_engine_suite(p.client.engine),
                            old ? "ECDHE-ECDSA-AES256-GCM-SHA384" : "TLS13-AES256-GCM-SHA384");
        pair_stop(&p);
    }
    pair_drop(&p);
}

static void test_the_first_key_share_is_x25519s(void **state)
{
    (void)state;
    /* key_share, 26 + 10 bytes of it, one entry: x25519, 32 bytes (RFC 8446 section 4.2.8). */
    static const uint8_t share[] = {0x00, 0x33, 0x00, 0x26, 0x00, 0x24, 0x00, 0x1d, 0x00, 0x20};
    static const uint8_t groups[] = {0x00, 0x0a, 0x00, 0x08, 0x00, 0x06, 0x00, 0x1d, 0x00, 0x17, 0x00, 0x18};
    struct pair p;
    pair_contexts(&p, false);
    pair_start(&p, NULL);
    struct span hello = tls_engine_output(p.client.engine);
    assert_non_null(memmem(hello.data, hello.size, share, sizeof share));
    assert_non_null(memmem(hello.data, hello.size, groups, sizeof groups));
    assert_non_null(memmem(hello.data, hello.size, "\x00\x10\x00\x0b\x00\x09\x08http/1.1", 15));
    pair_stop(&p);
    pair_drop(&p);
}

static bool says_name(struct tls_context *context, const char *name)
{
    struct tls_end client;
    tls_end_init(&client, context, name, NULL);
    struct span hello = tls_engine_output(client.engine);
    bool said = memmem(hello.data, hello.size, name, strlen(name)) != NULL;
    tls_end_dispose(&client);
    return said;
}

static void test_names_are_indicated_and_addresses_are_not(void **state)
{
    (void)state;
    struct tls_context *context = tls_world_context(&world, &(struct tls_world_options){0});
    assert_true(says_name(context, "a.example"));
    assert_false(says_name(context, "10.0.0.2"));
    assert_false(says_name(context, "fd00::2"));
    tls_context_drop(context);
}

/* --- who is believed --- */

static int error_of(struct tls_context *server, struct tls_context *client, const char *name, int *servers)
{
    struct pair p = {.server_context = server, .client_context = client};
    tls_end_init(&p.server, server, NULL, NULL);
    tls_end_init(&p.client, client, name, NULL);
    tls_ends_talk(&p.client, &p.server, WHOLE);
    int error = p.client.error;
    assert_int_equal(p.client.ready, error == 0);
    *servers = p.server.error;
    pair_stop(&p);
    return error;
}

static void test_another_name_is_refused_and_the_server_is_told(void **state)
{
    (void)state;
    struct pair p;
    int servers;
    pair_contexts(&p, false);
    for (unsigned old = 0; old < 2; old++) {
        if (old)
            not_1_3(p.client_context);
        assert_int_equal(error_of(p.server_context, p.client_context, "b.example", &servers), PE_CERT_NAME);
        assert_int_equal(servers, PE_TLS_PEER);
        assert_int_equal(error_of(p.server_context, p.client_context, "10.0.0.2", &servers), 0);
        assert_int_equal(error_of(p.server_context, p.client_context, "10.0.0.3", &servers), PE_CERT_NAME);
    }
    pair_drop(&p);
}

static void expect_leaf(const struct test_certificate_options *o, int expected)
{
    struct test_certificate *leaf = test_certificate(o);
    struct tls_context *server =
        tls_world_context(&world, &(struct tls_world_options){.server = true, .leaf = leaf});
    struct tls_context *client = tls_world_context(&world, &(struct tls_world_options){0});
    for (unsigned old = 0; old < 2; old++) {
        int servers;
        if (old)
            not_1_3(client);
        assert_int_equal(error_of(server, client, "a.example", &servers), expected);
        assert_int_equal(servers, expected ? PE_TLS_PEER : 0);
    }
    tls_context_drop(server);
    tls_context_drop(client);
    test_certificate_free(leaf);
}

static void test_each_kind_of_wrong_certificate_has_its_error(void **state)
{
    (void)state;
    struct test_certificate_options good = {
        .subject = "a.example", .names = "DNS:a.example", .issuer = world.ca};
    expect_leaf(&good, 0);
    struct test_certificate_options o = good;
    o.not_after_s = TLS_TEST_NOW_S - 1;
    expect_leaf(&o, PE_CERT_EXPIRED);
    o = good;
    o.not_before_s = TLS_TEST_NOW_S + 1;
    expect_leaf(&o, PE_CERT_NOT_YET_VALID);
    o = good;
    o.issuer = NULL;
    expect_leaf(&o, PE_CERT_SELF_SIGNED);
    o = good;
    o.purpose = "clientAuth";
    expect_leaf(&o, PE_CERT_PURPOSE);
    o = good;
    o.ca = true;
    expect_leaf(&o, PE_CERT_IS_CA);
}

static void test_keys_of_all_kinds_shake_hands(void **state)
{
    (void)state;
    static const enum test_key kinds[] = {TEST_P256, TEST_RSA2048, TEST_ED25519, TEST_P521};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct test_certificate_options o = {
            .subject = "a.example", .names = "DNS:a.example", .issuer = world.ca, .key = kinds[i]};
        expect_leaf(&o, 0);
    }
}

static int error_at(int64_t now_s, int64_t not_before_s)
{
    struct test_certificate *leaf = test_certificate(&(struct test_certificate_options){
        .subject = "a.example", .names = "DNS:a.example", .issuer = world.ca, .not_before_s = not_before_s});
    struct tls_world_options o = {.server = true, .leaf = leaf};
    struct tls_context *server = tls_world_context(&world, &o);
    struct tls_context *client = tls_world_context(&world, &(struct tls_world_options){0});
    struct tls_engine *engine;
    struct tls_end end;
    uint8_t plain[16];
    size_t size;
    tls_end_init(&end, server, NULL, NULL);
    assert_int_equal(tls_engine_make(&engine, client, "a.example", NULL, now_s), 0);
    assert_int_equal(tls_engine_step(engine, plain, sizeof plain, &size), TLS_WAITS);
    tls_end_feed(&end, tls_engine_output(engine), WHOLE);
    tls_engine_took(engine, tls_engine_pending(engine));
    tls_engine_feed(engine, tls_engine_output(end.engine), now_s);
    tls_engine_step(engine, plain, sizeof plain, &size);
    int error = tls_engine_error(engine);
    tls_engine_free(engine);
    tls_end_dispose(&end);
    tls_context_drop(server);
    tls_context_drop(client);
    test_certificate_free(leaf);
    return error;
}

static void test_not_yet_valid_is_the_clocks_fault_before_this_was_built(void **state)
{
    (void)state;
    const int64_t in_2024_s = INT64_C(1704067200), in_2025_s = INT64_C(1735689600);
    assert_int_equal(error_at(in_2025_s, in_2024_s), 0);
    assert_int_equal(error_at(in_2024_s, in_2025_s), PE_CERT_CLOCK);
    assert_int_equal(error_at(0, in_2025_s), PE_CERT_CLOCK);
    assert_int_equal(error_at(TLS_TEST_NOW_S, TLS_TEST_NOW_S + 1), PE_CERT_NOT_YET_VALID);
}

static void hash_key(const struct test_certificate *c, uint8_t hash[TLS_PIN_BYTES])
{
    struct x509 x;
    assert_int_equal(x509_parse(&x, span_of(c->der, c->der_size)), 0);
    crypto_hash_sha256(hash, x.key_info.data, x.key_info.size);
}

static void test_a_pinned_key_has_to_be_in_the_path(void **state)
{
    (void)state;
    const struct test_certificate *const keys[] = {world.leaf, world.mid, world.ca, world.client};
    struct tls_context *server = tls_world_context(&world, &(struct tls_world_options){.server = true});
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        struct tls_world_options o = {.pinned = true};
        int servers;
        hash_key(keys[i], o.pin);
        struct tls_context *client = tls_world_context(&world, &o);
        assert_int_equal(error_of(server, client, "a.example", &servers), i < 3 ? 0 : PE_CERT_PIN);
        tls_context_drop(client);
    }
    tls_context_drop(server);
}

static void test_a_server_that_wants_a_certificate_gets_a_good_one_or_none(void **state)
{
    (void)state;
    struct pair p;
    pair_contexts(&p, true);
    struct tls_context *without = tls_world_context(&world, &(struct tls_world_options){0});
    for (unsigned old = 0; old < 2; old++) {
        if (old) {
            not_1_3(p.client_context);
            not_1_3(without);
        }
        pair_start(&p, NULL);
        assert_talks(&p, WHOLE);
        pair_stop(&p);
        struct pair none = {.server_context = p.server_context, .client_context = without};
        pair_start(&none, NULL);
        tls_ends_talk(&none.client, &none.server, WHOLE);
        assert_int_equal(none.client.error, PE_TLS_NEEDS_CERTIFICATE);
        assert_int_equal(none.server.error, PE_TLS_HANDSHAKE);
        assert_false(none.server.ready);
        pair_stop(&none);
    }
    tls_context_drop(without);
    pair_drop(&p);
}

static void test_a_clients_certificate_is_judged_as_a_clients(void **state)
{
    (void)state;
    struct test_certificate *stranger =
        test_certificate(&(struct test_certificate_options){.subject = "client"});
    struct test_certificate *server_only = test_certificate(
        &(struct test_certificate_options){.subject = "client", .issuer = world.ca, .purpose = "serverAuth"});
    const struct test_certificate *const wrong[] = {stranger, server_only};
    static const int errors[] = {PE_CERT_SELF_SIGNED, PE_CERT_PURPOSE};
    for (unsigned i = 0; i < 4; i++) {
        struct pair p;
        pair_contexts(&p, true);
        tls_context_drop(p.client_context);
        p.client_context = tls_world_context(
            &world, &(struct tls_world_options){.client_certificate = true, .leaf = wrong[i / 2]});
        if (i % 2)
            not_1_3(p.client_context);
        pair_start(&p, NULL);
        tls_ends_talk(&p.client, &p.server, WHOLE);
        assert_false(p.server.ready);
        assert_int_equal(p.server.error, errors[i / 2]);
        assert_int_equal(p.client.error, PE_TLS_PEER);
        assert_non_null(strstr(tls_engine_detail(p.client.engine), ": it may be about our certificate"));
        pair_stop(&p);
        pair_drop(&p);
    }
    test_certificate_free(stranger);
    test_certificate_free(server_only);
}

/* --- sessions --- */

static bool resumes(struct pair *p, struct tls_session *session)
{
    pair_start(p, session);
    assert_talks(p, WHOLE);
    bool resumed = tls_engine_resumed(p->client.engine);
    assert_int_equal(resumed, tls_engine_resumed(p->server.engine));
    pair_stop(p);
    return resumed;
}

static void test_the_second_connection_resumes_the_first_one_and_so_on(void **state)
{
    (void)state;
    struct pair p;
    struct tls_session session = {0};
    pair_contexts(&p, false);
    assert_false(resumes(&p, &session));
    for (unsigned i = 0; i < 3; i++) {
        assert_non_null(session.kept);
        assert_true(resumes(&p, &session));
    }
    assert_false(resumes(&p, NULL));
    tls_session_dispose(&session);
    pair_drop(&p);
}

static void test_a_session_is_worth_nothing_under_another_context_or_for_another_name(void **state)
{
    (void)state;
    struct pair p;
    struct tls_session session = {0};
    pair_contexts(&p, false);
    assert_false(resumes(&p, &session));
    struct tls_context *anew = tls_world_context(&world, &(struct tls_world_options){0}),
                       *was = p.client_context;
    p.client_context = anew;
    assert_false(resumes(&p, &session));
    p.client_context = was;
    assert_false(resumes(&p, &session));
    assert_true(resumes(&p, &session));

    tls_end_init(&p.server, p.server_context, NULL, NULL);
    tls_end_init(&p.client, p.client_context, "b.example", &session);
    tls_ends_talk(&p.client, &p.server, WHOLE);
    assert_int_equal(p.client.error, PE_CERT_NAME);
    assert_null(session.kept);
    pair_stop(&p);
    tls_context_drop(anew);
    pair_drop(&p);
}

static void test_a_session_ends_with_its_servers_certificate(void **state)
{
    (void)state;
    struct pair p;
    struct tls_session session = {0};
    struct test_certificate *leaf = test_certificate(&(struct test_certificate_options){
        .subject = "a.example", .names = "DNS:a.example", .issuer = world.ca, .not_after_s = TLS_TEST_NOW_S});
    pair_contexts(&p, false);
    tls_context_drop(p.server_context);
    p.server_context = tls_world_context(&world, &(struct tls_world_options){.server = true, .leaf = leaf});
    assert_false(resumes(&p, &session));
    assert_true(resumes(&p, &session));
    struct tls_engine *late;
    assert_int_equal(tls_engine_make(&late, p.client_context, "a.example", &session, TLS_TEST_NOW_S + 1), 0);
    assert_null(session.kept);
    tls_engine_free(late);
    pair_drop(&p);
    test_certificate_free(leaf);
}

static void test_a_server_with_another_key_for_its_tickets_makes_a_full_handshake(void **state)
{
    (void)state;
    for (unsigned old = 0; old < 2; old++) {
        struct pair p;
        struct tls_session session = {0};
        pair_contexts(&p, false);
        if (old)
            not_1_3(p.client_context);
        assert_false(resumes(&p, &session));
        tls_context_drop(p.server_context);
        p.server_context = tls_world_context(&world, &(struct tls_world_options){.server = true});
        assert_false(resumes(&p, &session));
        assert_int_equal(resumes(&p, &session), !old);
        tls_session_dispose(&session);
        pair_drop(&p);
    }
}

static void test_a_session_that_makes_a_handshake_fail_is_forgotten(void **state)
{
    (void)state;
    struct pair p;
    struct tls_session session = {0};
    pair_contexts(&p, false);
    assert_false(resumes(&p, &session));
    not_1_3(p.server_context);
    pair_start(&p, &session);
    tls_ends_talk(&p.client, &p.server, WHOLE);
    assert_true(p.client.error == 0 || session.kept == NULL);
    pair_stop(&p);
    assert_false(resumes(&p, &session));
    tls_session_dispose(&session);
    pair_drop(&p);
}

static void test_servers_that_want_certificates_are_never_resumed(void **state)
{
    (void)state;
    for (unsigned old = 0; old < 2; old++) {
        struct pair p;
        struct tls_session session = {0};
        pair_contexts(&p, true);
        if (old)
            not_1_3(p.client_context);
        for (unsigned i = 0; i < 3; i++)
            assert_false(resumes(&p, &session));
        tls_session_dispose(&session);
        pair_drop(&p);
    }
}

/* --- ends --- */

static void test_close_notify_ends_one_half(void **state)
{
    (void)state;
    for (unsigned old = 0; old < 2; old++) {
        struct pair p;
        pair_contexts(&p, false);
        if (old)
            not_1_3(p.client_context);
        pair_start(&p, NULL);
        assert_ready(&p, WHOLE);
        tls_end_send(&p.client, span_text("question"));
        tls_engine_end(p.client.engine);
        assert_false(tls_engine_writable(p.client.engine));
        tls_ends_talk(&p.client, &p.server, 1);
        assert_true(p.server.ended);
        assert_got(&p.server, "question");
        tls_end_send(&p.server, span_text("late answer"));
        tls_engine_end(p.server.engine);
        tls_ends_talk(&p.client, &p.server, 1);
        assert_got(&p.client, "late answer");
        assert_true(p.client.ended && p.client.error == 0);
        pair_stop(&p);
        pair_drop(&p);
    }
}

static void test_nothing_in_common_has_its_own_error(void **state)
{
    (void)state;
    struct pair p;
    pair_contexts(&p, false);
    not_1_3(p.client_context);
    wolfSSL_CTX_set_options(p.server_context->wolf, WOLFSSL_OP_NO_TLSv1_2);
    pair_start(&p, NULL);
    tls_ends_talk(&p.client, &p.server, WHOLE);
    assert_int_equal(p.client.error, PE_TLS_VERSION);
    assert_int_equal(p.server.error, PE_TLS_VERSION);
    pair_stop(&p);
    pair_drop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_versions_with_and_without_client_certificates_in_pieces_of_any_size),
        cmocka_unit_test(test_a_servers_flight_may_be_split_anywhere),
        cmocka_unit_test(test_records_of_all_sizes_come_through),
        cmocka_unit_test(test_the_suite_is_chacha20s_unless_aes_is_first),
        cmocka_unit_test(test_the_first_key_share_is_x25519s),
        cmocka_unit_test(test_names_are_indicated_and_addresses_are_not),
        cmocka_unit_test(test_another_name_is_refused_and_the_server_is_told),
        cmocka_unit_test(test_each_kind_of_wrong_certificate_has_its_error),
        cmocka_unit_test(test_keys_of_all_kinds_shake_hands),
        cmocka_unit_test(test_not_yet_valid_is_the_clocks_fault_before_this_was_built),
        cmocka_unit_test(test_a_pinned_key_has_to_be_in_the_path),
        cmocka_unit_test(test_a_server_that_wants_a_certificate_gets_a_good_one_or_none),
        cmocka_unit_test(test_a_clients_certificate_is_judged_as_a_clients),
        cmocka_unit_test(test_the_second_connection_resumes_the_first_one_and_so_on),
        cmocka_unit_test(test_a_session_is_worth_nothing_under_another_context_or_for_another_name),
        cmocka_unit_test(test_a_session_ends_with_its_servers_certificate),
        cmocka_unit_test(test_a_server_with_another_key_for_its_tickets_makes_a_full_handshake),
        cmocka_unit_test(test_a_session_that_makes_a_handshake_fail_is_forgotten),
        cmocka_unit_test(test_servers_that_want_certificates_are_never_resumed),
        cmocka_unit_test(test_close_notify_ends_one_half),
        cmocka_unit_test(test_nothing_in_common_has_its_own_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
