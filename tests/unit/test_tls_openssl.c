/* An engine that talks to OpenSSL in memory: what another implementation may do, and what an ill-meaning one
 * may. */
#include "tests/sim/tls_ends.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define WHOLE      SIZE_MAX
#define ROUNDS_MAX 100000

static struct tls_world world;
static struct tls_context *client_context, *server_context;

struct peer {
    SSL *ssl;
    BIO *in, *out;
    size_t got_size;
    uint8_t got[100000];
    bool ready, failed, ended;
};

/* A server with its chain, or a client that believes anybody. */
static SSL_CTX *peer_context(bool server, int version, const struct test_certificate *const *chain,
                             unsigned count)
{
    SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    assert_non_null(ctx);
    SSL_CTX_set_min_proto_version(ctx, version);
    SSL_CTX_set_max_proto_version(ctx, version);
    SSL_CTX_set_security_level(ctx, 0);
    if (count > 0) {
        assert_int_equal(SSL_CTX_use_certificate(ctx, chain[0]->x509), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(ctx, chain[0]->key), 1);
    }
    for (unsigned i = 1; i < count; i++)
        SSL_CTX_add1_chain_cert(ctx, chain[i]->x509);
    SSL_CTX_set_session_id_context(ctx, (const uint8_t *)"test", 4);
    return ctx;
}

static void peer_init(struct peer *p, SSL_CTX *ctx, bool server)
{
    *p = (struct peer){.ssl = SSL_new(ctx), .in = BIO_new(BIO_s_mem()), .out = BIO_new(BIO_s_mem())};
    BIO_set_mem_eof_return(p->in, -1);
    SSL_set_bio(p->ssl, p->in, p->out);
    if (server)
        SSL_set_accept_state(p->ssl);
    else
        SSL_set_connect_state(p->ssl);
}

static void peer_step(struct peer *p)
{
    int result = 1;
    ERR_clear_error();
    if (!p->ready) {
        result = SSL_do_handshake(p->ssl);
        p->ready = result == 1;
    }
    while (p->ready && p->got_size < sizeof p->got &&
           (result = SSL_read(p->ssl, p->got + p->got_size, (int)(sizeof p->got - p->got_size))) > 0)
        p->got_size += (size_t)result;
    int error = SSL_get_error(p->ssl, result);
    p->ended = p->ended || error == SSL_ERROR_ZERO_RETURN;
    p->failed = p->failed || error == SSL_ERROR_SSL;
}

static bool peer_says(struct peer *p, struct tls_end *end, size_t piece)
{
    char *bytes;
    long size = BIO_get_mem_data(p->out, &bytes);
    if (size <= 0)
        return false;
    tls_end_feed(end, span_of(bytes, (size_t)size), piece);
    (void)BIO_reset(p->out);
    return true;
}

static bool end_says(struct tls_end *end, struct peer *p)
{
    struct span output = tls_engine_output(end->engine);
    if (output.size == 0)
        return false;
    BIO_write(p->in, output.data, (int)output.size);
    tls_engine_took(end->engine, output.size);
    tls_end_step(end);
    peer_step(p);
    return true;
}

static void talk(struct tls_end *end, struct peer *p, size_t piece)
{
    bool quiet = false;
    peer_step(p);
    for (unsigned i = 0; !quiet; i++) {
        assert_true(i < ROUNDS_MAX);
        quiet = !end_says(end, p);
        quiet = !peer_says(p, end, piece) && quiet;
    }
}

static void assert_talks(struct tls_end *end, struct peer *p, size_t piece)
{
    talk(end, p, piece);
    assert_int_equal(end->error, 0);
    assert_true(end->ready && p->ready);
    tls_end_send(end, span_text("question"));
    SSL_write(p->ssl, "answer", 6);
    talk(end, p, piece);
    assert_true(span_is(span_of(end->got, end->got_size), "answer"));
    assert_true(span_is(span_of(p->got, p->got_size), "question"));
    end->got_size = p->got_size = 0;
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

/* The error of a client that meets such a server. */
static int error_with(SSL_CTX *ctx, bool ready_too)
{
    struct peer p;
    struct tls_end end;
    peer_init(&p, ctx, true);
    tls_end_init(&end, client_context, "a.example", NULL);
    talk(&end, &p, WHOLE);
    int error = end.error;
    assert_int_equal(end.ready, error == 0 || ready_too);
    assert_int_equal(end.got_size, 0);
    tls_end_dispose(&end);
    SSL_free(p.ssl);
    return error;
}

static int error_with_chain(int version, const struct test_certificate *const *chain, unsigned count)
{
    SSL_CTX *ctx = peer_context(true, version, chain, count);
    int error = error_with(ctx, false);
    SSL_CTX_free(ctx);
    return error;
}

static void test_servers_and_clients_of_another_make_in_pieces(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.leaf, world.mid};
    static const size_t pieces[] = {1, 5, 17, 1000, WHOLE};
    for (unsigned i = 0; i < 4 * ARRAY_SIZE(pieces); i++) {
        bool server = i & 1;
        SSL_CTX *ctx = peer_context(server, versions[i / 2 % 2], chain, server ? 2 : 0);
        struct peer p;
        struct tls_end end;
        peer_init(&p, ctx, server);
        tls_end_init(&end, server ? client_context : server_context, server ? "a.example" : NULL, NULL);
        assert_talks(&end, &p, pieces[i / 4]);
        tls_end_dispose(&end);
        SSL_free(p.ssl);
        SSL_CTX_free(ctx);
    }
}

/* The public half of one key with the private half of another. */
static EVP_PKEY *forge_key(EVP_PKEY *shown, EVP_PKEY *used)
{
    uint8_t public[133];
    size_t size;
    BIGNUM *secret = NULL;
    EVP_PKEY *forged = NULL;
    assert_int_equal(
        EVP_PKEY_get_octet_string_param(shown, OSSL_PKEY_PARAM_PUB_KEY, public, sizeof public, &size), 1);
    assert_int_equal(EVP_PKEY_get_bn_param(used, OSSL_PKEY_PARAM_PRIV_KEY, &secret), 1);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
    OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, public, size);
    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, secret);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    EVP_PKEY_fromdata_init(context);
    assert_int_equal(EVP_PKEY_fromdata(context, &forged, EVP_PKEY_KEYPAIR, params), 1);
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    BN_free(secret);
    return forged;
}

static void test_a_server_without_the_key_of_its_certificate_is_refused(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.leaf, world.mid};
    EVP_PKEY *forged = forge_key(world.leaf->key, world.client->key);
    for (unsigned i = 0; i < 2; i++) {
        SSL_CTX *ctx = peer_context(true, versions[i], chain, 2);
        assert_int_equal(error_with(ctx, false), 0);
        assert_int_equal(SSL_CTX_use_PrivateKey(ctx, forged), 1);
        assert_int_equal(error_with(ctx, false), PE_TLS_HANDSHAKE);
        SSL_CTX_free(ctx);
    }
    EVP_PKEY_free(forged);
}

static void test_a_client_without_the_key_of_its_certificate_is_refused(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.client};
    struct tls_context *asks =
        tls_world_context(&world, &(struct tls_world_options){.server = true, .client_certificate = true});
    EVP_PKEY *forged = forge_key(world.client->key, world.leaf->key);
    for (unsigned i = 0; i < 4; i++) {
        SSL_CTX *ctx = peer_context(false, versions[i % 2], chain, 1);
        struct peer p;
        struct tls_end end;
        if (i >= 2)
            assert_int_equal(SSL_CTX_use_PrivateKey(ctx, forged), 1);
        peer_init(&p, ctx, false);
        tls_end_init(&end, asks, NULL, NULL);
        talk(&end, &p, WHOLE);
        assert_int_equal(end.ready, i < 2);
        assert_int_equal(end.error, i < 2 ? 0 : PE_TLS_HANDSHAKE);
        tls_end_dispose(&end);
        SSL_free(p.ssl);
        SSL_CTX_free(ctx);
    }
    EVP_PKEY_free(forged);
    tls_context_drop(asks);
}

static void test_the_order_of_a_chain_and_what_is_too_much_in_it_mean_nothing(void **state)
{
    (void)state;
    struct test_certificate *second = test_certificate(
        &(struct test_certificate_options){.subject = "Second", .ca = true, .issuer = world.mid});
    struct test_certificate *deep = test_certificate(
        &(struct test_certificate_options){.subject = "d", .names = "DNS:a.example", .issuer = second});
    struct test_certificate *expired = test_certificate(&(struct test_certificate_options){
        .subject = "Old", .ca = true, .issuer = world.ca, .not_after_s = TLS_TEST_NOW_S - 1});
    struct test_certificate *odd = test_certificate(
        &(struct test_certificate_options){.subject = "Odd", .ca = true, .critical = "1.2.3.4.5"});
    const struct test_certificate *shuffled[] = {deep, world.mid, second};
    const struct test_certificate *with_root[] = {deep, second, world.mid, world.ca};
    const struct test_certificate *with_others[] = {deep,   expired,   odd, world.client,
                                                    second, world.mid, deep};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(error_with_chain(versions[i], shuffled, 3), 0);
        assert_int_equal(error_with_chain(versions[i], with_root, 4), 0);
        assert_int_equal(error_with_chain(versions[i], with_others, 7), 0);
        assert_int_equal(error_with_chain(versions[i], shuffled, 2), PE_CERT_ISSUER);
    }
    test_certificate_free(second);
    test_certificate_free(deep);
    test_certificate_free(expired);
    test_certificate_free(odd);
}

static void test_more_certificates_than_can_be_taken_have_their_error(void **state)
{
    (void)state;
    const struct test_certificate *many[40] = {world.leaf, world.mid};
    for (unsigned i = 2; i < ARRAY_SIZE(many); i++)
        many[i] = world.client;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(error_with_chain(versions[i], many, 9), 0);
        assert_int_equal(error_with_chain(versions[i], many, 40), PE_CERT_PATH);
    }
}

static void test_what_wolfssl_cannot_read_is_named_too(void **state)
{
    (void)state;
    struct test_certificate *leaf = test_certificate(&(struct test_certificate_options){
        .subject = "a.example", .names = "DNS:a.example", .issuer = world.ca, .critical = "1.2.3.4.5"});
    const struct test_certificate *chain[] = {leaf};
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(error_with_chain(versions[i], chain, 1), PE_CERT_CRITICAL);
    test_certificate_free(leaf);
}

static void test_a_wrong_signature_is_refused_whatever_wolfssl_would_say(void **state)
{
    (void)state;
    struct test_certificate *false_mid =
        test_certificate(&(struct test_certificate_options){.subject = "Mid", .ca = true});
    struct test_certificate *leaf = test_certificate(
        &(struct test_certificate_options){.subject = "a", .names = "DNS:a.example", .issuer = false_mid});
    const struct test_certificate *chain[] = {leaf, world.mid};
    for (unsigned i = 0; i < 2; i++) {
        int error = error_with_chain(versions[i], chain, 2);
        assert_true(error == PE_CERT_SIGNATURE || error == PE_CERT_ISSUER);
    }
    test_certificate_free(false_mid);
    test_certificate_free(leaf);
}

static void test_nothing_in_common_is_a_version_error(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.leaf, world.mid};
    SSL_CTX *old = peer_context(true, TLS1_1_VERSION, chain, 2);
    assert_int_equal(error_with(old, false), PE_TLS_VERSION);
    SSL_CTX_free(old);
    SSL_CTX *other = peer_context(true, TLS1_2_VERSION, chain, 2);
    SSL_CTX_set_cipher_list(other, "ECDHE-ECDSA-AES128-SHA");
    assert_int_equal(error_with(other, false), PE_TLS_VERSION);
    SSL_CTX_free(other);
}

static void test_a_server_that_wants_a_certificate_of_ours(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.leaf, world.mid};
    for (unsigned i = 0; i < 2; i++) {
        SSL_CTX *ctx = peer_context(true, versions[i], chain, 2);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        assert_int_equal(error_with(ctx, versions[i] == TLS1_3_VERSION), PE_TLS_NEEDS_CERTIFICATE);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
        assert_int_equal(error_with(ctx, false), 0); /* it may have none */
        SSL_CTX_free(ctx);
    }
}

static void test_sessions_of_1_2_are_resumed_by_their_id_and_of_1_3_by_tickets(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.leaf, world.mid};
    for (unsigned i = 0; i < 2; i++) {
        SSL_CTX *ctx = peer_context(true, versions[i], chain, 2);
        struct tls_session session = {0};
        for (unsigned round = 0; round < 4; round++) {
            struct peer p;
            struct tls_end end;
            if (round == 3) { /* another server behind the same address */
                SSL_CTX_free(ctx);
                ctx = peer_context(true, versions[1 - i], chain, 2);
            }
            peer_init(&p, ctx, true);
            tls_end_init(&end, client_context, "a.example", &session);
            talk(&end, &p, WHOLE);
            if (round < 3) {
                assert_int_equal(end.error, 0);
                assert_int_equal(SSL_session_reused(p.ssl), round > 0);
                assert_talks(&end, &p, 7);
            } else {
                assert_true(end.error == 0 || session.kept == NULL);
            }
            SSL_shutdown(p.ssl); /* else it forgets the session */
            tls_end_dispose(&end);
            SSL_free(p.ssl);
        }
        assert_int_equal(error_with(ctx, false), 0);
        tls_session_dispose(&session);
        SSL_CTX_free(ctx);
    }
}

static void test_many_tickets_and_key_updates_are_ordinary(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.leaf, world.mid};
    SSL_CTX *ctx = peer_context(true, TLS1_3_VERSION, chain, 2);
    SSL_CTX_set_num_tickets(ctx, 100);
    struct tls_session session = {0};
    struct peer p;
    struct tls_end end;
    peer_init(&p, ctx, true);
    tls_end_init(&end, client_context, "a.example", &session);
    assert_talks(&end, &p, 11);
    assert_non_null(session.kept);
    for (unsigned i = 0; i < 100; i++) {
        SSL_key_update(p.ssl, i % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
        assert_talks(&end, &p, 1 + i);
    }
    tls_end_dispose(&end);
    SSL_free(p.ssl);
    SSL_CTX_free(ctx);
    tls_session_dispose(&session);
}

static void test_records_of_all_sizes_come_in(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.leaf, world.mid};
    static const unsigned fragments[] = {512, 1000, 16384};
    static uint8_t plain[50000];
    for (unsigned i = 0; i < 6; i++) {
        SSL_CTX *ctx = peer_context(true, versions[i % 2], chain, 2);
        struct peer p;
        struct tls_end end;
        peer_init(&p, ctx, true);
        tls_end_init(&end, client_context, "a.example", NULL);
        assert_talks(&end, &p, WHOLE);
        SSL_set_max_send_fragment(p.ssl, fragments[i / 2]);
        memset(plain, (int)i + 1, sizeof plain);
        for (unsigned tiny = 0; tiny < 300; tiny++)
            SSL_write(p.ssl, plain, 1);
        SSL_write(p.ssl, plain, sizeof plain - 300);
        talk(&end, &p, 1500);
        assert_int_equal(end.got_size, sizeof plain);
        assert_memory_equal(end.got, plain, sizeof plain);
        tls_end_dispose(&end);
        SSL_free(p.ssl);
        SSL_CTX_free(ctx);
    }
}

static void test_a_server_that_wants_to_shake_hands_again_does_not_get_it(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.leaf, world.mid};
    SSL_CTX *ctx = peer_context(true, TLS1_2_VERSION, chain, 2);
    struct peer p;
    struct tls_end end;
    peer_init(&p, ctx, true);
    tls_end_init(&end, client_context, "a.example", NULL);
    assert_talks(&end, &p, WHOLE);
    SSL_renegotiate(p.ssl);
    SSL_do_handshake(p.ssl);
    talk(&end, &p, WHOLE);
    assert_true(end.error == 0 || end.error == PE_TLS_PEER || end.error == PE_TLS_RECORD);
    tls_end_dispose(&end);
    SSL_free(p.ssl);
    SSL_CTX_free(ctx);
}

static void test_close_notify_is_seen_both_ways(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.leaf, world.mid};
    for (unsigned i = 0; i < 2; i++) {
        SSL_CTX *ctx = peer_context(true, versions[i], chain, 2);
        struct peer p;
        struct tls_end end;
        peer_init(&p, ctx, true);
        tls_end_init(&end, client_context, "a.example", NULL);
        assert_talks(&end, &p, WHOLE);
        tls_engine_end(end.engine);
        talk(&end, &p, WHOLE);
        assert_true(p.ended && !end.ended);
        SSL_shutdown(p.ssl);
        talk(&end, &p, WHOLE);
        assert_true(end.ended && end.error == 0);
        tls_end_dispose(&end);
        SSL_free(p.ssl);
        SSL_CTX_free(ctx);
    }
}

static int set_up(void **state)
{
    (void)state;
    tls_world_init(&world);
    client_context = tls_world_context(&world, &(struct tls_world_options){0});
    server_context = tls_world_context(&world, &(struct tls_world_options){.server = true});
    return sodium_init() < 0;
}

static int tear_down(void **state)
{
    (void)state;
    tls_context_drop(client_context);
    tls_context_drop(server_context);
    tls_world_dispose(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_servers_and_clients_of_another_make_in_pieces),
        cmocka_unit_test(test_a_server_without_the_key_of_its_certificate_is_refused),
        cmocka_unit_test(test_a_client_without_the_key_of_its_certificate_is_refused),
        cmocka_unit_test(test_the_order_of_a_chain_and_what_is_too_much_in_it_mean_nothing),
        cmocka_unit_test(test_more_certificates_than_can_be_taken_have_their_error),
        cmocka_unit_test(test_what_wolfssl_cannot_read_is_named_too),
        cmocka_unit_test(test_a_wrong_signature_is_refused_whatever_wolfssl_would_say),
        cmocka_unit_test(test_nothing_in_common_is_a_version_error),
        cmocka_unit_test(test_a_server_that_wants_a_certificate_of_ours),
        cmocka_unit_test(test_sessions_of_1_2_are_resumed_by_their_id_and_of_1_3_by_tickets),
        cmocka_unit_test(test_many_tickets_and_key_updates_are_ordinary),
        cmocka_unit_test(test_records_of_all_sizes_come_in),
        cmocka_unit_test(test_a_server_that_wants_to_shake_hands_again_does_not_get_it),
        cmocka_unit_test(test_close_notify_is_seen_both_ways),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
