/* Engines whose bytes are not what the other one said, or whose other one is no friend. */
#include "tests/unit/tls_pair.h"

static void test_what_is_no_tls_is_said_to_be_none(void **state)
{
    (void)state;
    static const char *const others[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-x\r\n", "220 mail\r\n",
                                         "\x16\x02", "\x80\x2e\x01\x03\x01"};
    struct pair p;
    pair_contexts(&p, false);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        for (size_t piece = 1; piece < 40; piece += 38) {
            pair_start(&p, NULL);
            tls_end_feed(&p.client, span_text(others[i]), piece);
            tls_end_feed(&p.server, span_text(others[i]), piece);
            assert_int_equal(p.client.error, PE_TLS_RECORD);
            assert_int_equal(p.server.error, PE_TLS_RECORD);
            pair_stop(&p);
        }
    }
    pair_drop(&p);
}

/* One byte of one flight is another one. What is said of it is not the same everywhere, but whoever is ready
 * has shaken hands with the other one, and plain bytes are never other bytes. */
static size_t flip(struct pair *p, unsigned flight, size_t at, uint8_t bit)
{
    pair_start(p, NULL);
    struct tls_end *ends[] = {&p->client, &p->server};
    size_t size = 0;
    for (unsigned i = 0; i < 8; i++) {
        struct tls_end *from = ends[i % 2], *to = ends[(i + 1) % 2];
        struct span output = tls_engine_output(from->engine);
        if (i == flight && (size = output.size) > at)
            ((uint8_t *)(uintptr_t)output.data)[at] ^= bit;
        tls_end_feed(to, output, WHOLE);
        tls_engine_took(from->engine, output.size);
    }
    bool fine = p->client.error == 0 && p->server.error == 0;
    if (fine && p->client.ready && p->server.ready) {
        assert_talks(p, WHOLE);
    } else {
        assert_int_equal(p->client.got_size, 0);
        assert_int_equal(p->server.got_size, 0);
    }
    pair_stop(p);
    return size;
}

static void garble(bool old, bool client_certificates)
{
    struct pair p;
    pair_contexts(&p, client_certificates);
    if (old)
        not_1_3(p.client_context);
    for (unsigned flight = 0; flight < 3; flight++) {
        size_t size = 1;
        for (size_t at = 0; at < size; at++)
            size = flip(&p, flight, at, (uint8_t)(1u << at % 8));
        assert_true(size > 50);
    }
    pair_drop(&p);
}

static void test_one_wrong_bit_anywhere_in_a_handshake_of_1_3_is_no_harm(void **state)
{
    (void)state;
    garble(false, true);
}

static void test_one_wrong_bit_anywhere_in_a_handshake_of_1_2_is_no_harm(void **state)
{
    (void)state;
    garble(true, true);
}

static void test_one_wrong_bit_in_a_record_fails_it_and_the_other_side_is_told(void **state)
{
    (void)state;
    for (unsigned old = 0; old < 4; old++) {
        struct pair p;
        pair_contexts(&p, false);
        if (old % 2)
            not_1_3(p.client_context);
        if (old / 2) {
            pair_drop(&p);
            p.server_context =
                tls_world_context(&world, &(struct tls_world_options){.server = true, .aes_first = true});
            p.client_context = tls_world_context(&world, &(struct tls_world_options){.aes_first = true});
        }
        for (size_t at = 5; at < 40; at += 2) {
            pair_start(&p, NULL);
            assert_ready(&p, WHOLE);
            tls_end_send(&p.client, span_text("a question of some length, so that there is enough of it"));
            struct span output = tls_engine_output(p.client.engine);
            ((uint8_t *)(uintptr_t)output.data)[at] ^= 0x10;
            tls_end_feed(&p.server, output, 7);
            tls_engine_took(p.client.engine, output.size);
            assert_int_equal(p.server.error, PE_TLS_RECORD);
            assert_int_equal(p.server.got_size, 0);
            tls_ends_talk(&p.client, &p.server, WHOLE);
            assert_int_equal(p.client.error, PE_TLS_PEER);
            assert_string_equal(tls_engine_detail(p.client.engine), "bad_record_mac (20)");
            pair_stop(&p);
        }
        pair_drop(&p);
    }
}

/* --- key updates --- */

static void test_keys_are_updated_as_often_as_a_peer_likes_while_it_reads(void **state)
{
    (void)state;
    struct pair p;
    pair_contexts(&p, false);
    pair_start(&p, NULL);
    assert_ready(&p, WHOLE);
    struct tls_engine *engine = p.client.engine;
    for (unsigned i = 0; i < 2000; i++) {
        tls_end_update_keys(engine);
        tls_end_say(&p.client, &p.server, 9);
        tls_end_say(&p.server, &p.client, 9);
    }
    assert_talks(&p, 3);
    pair_stop(&p);
    pair_drop(&p);
}

static void test_a_peer_that_asks_for_new_keys_and_reads_none_is_failed(void **state)
{
    (void)state;
    struct pair p;
    pair_contexts(&p, false);
    pair_start(&p, NULL);
    assert_ready(&p, WHOLE);
    unsigned rounds = 0;
    while (p.server.error == 0 && rounds++ < 10000) {
        tls_end_update_keys(p.client.engine);
        tls_end_say(&p.client, &p.server, WHOLE);
        assert_true(tls_engine_pending(p.server.engine) <= TLS_OUTPUT_BYTES);
    }
    assert_int_equal(p.server.error, PE_TLS_RECORD);
    assert_in_range(rounds, 100, 2000);
    pair_stop(&p);
    pair_drop(&p);
}

/* A certificate that is larger than the output, so that the handshake waits for that to be taken. */
static struct test_certificate *large_leaf(void)
{
    enum { NAMES = 1500 };
    char *names = malloc(32 * NAMES);
    size_t size = (size_t)sprintf(names, "DNS:a.example");
    for (unsigned i = 0; i < NAMES; i++)
        size += (size_t)sprintf(names + size, ",DNS:n%u.a.example.test", i);
    struct test_certificate *leaf = test_certificate(
        &(struct test_certificate_options){.subject = "a.example", .names = names, .issuer = world.ca});
    assert_true(leaf->der_size > TLS_OUTPUT_BYTES);
    free(names);
    return leaf;
}

static void test_who_goes_on_talking_while_our_output_is_full_is_failed(void **state)
{
    (void)state;
    static const uint8_t more[] = {20, 3, 3, 0, 1, 1}; /* change_cipher_spec, which may come at any time */
    struct test_certificate *leaf = large_leaf();
    struct pair p = {.server_context =
                         tls_world_context(&world, &(struct tls_world_options){.server = true, .leaf = leaf}),
                     .client_context = tls_world_context(&world, &(struct tls_world_options){0})};
    pair_start(&p, NULL);
    struct span hello = tls_engine_output(p.client.engine);
    uint8_t *both = malloc(hello.size + sizeof more);
    memcpy(both, hello.data, hello.size);
    memcpy(both + hello.size, more, sizeof more);
    tls_end_feed(&p.server, span_of(both, hello.size + sizeof more), WHOLE); /* keeps none of its memory */
    free(both);
    tls_engine_took(p.client.engine, hello.size);
    tls_engine_took(p.server.engine, tls_engine_pending(p.server.engine));
    tls_end_step(&p.server);
    tls_end_feed(&p.server, span_of(more, sizeof more), WHOLE);
    assert_int_equal(p.server.error, PE_TLS_HANDSHAKE);
    pair_stop(&p);
    pair_drop(&p);
    test_certificate_free(leaf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_tls_is_said_to_be_none),
        cmocka_unit_test(test_one_wrong_bit_anywhere_in_a_handshake_of_1_3_is_no_harm),
        cmocka_unit_test(test_one_wrong_bit_anywhere_in_a_handshake_of_1_2_is_no_harm),
        cmocka_unit_test(test_one_wrong_bit_in_a_record_fails_it_and_the_other_side_is_told),
        cmocka_unit_test(test_keys_are_updated_as_often_as_a_peer_likes_while_it_reads),
        cmocka_unit_test(test_a_peer_that_asks_for_new_keys_and_reads_none_is_failed),
        cmocka_unit_test(test_who_goes_on_talking_while_our_output_is_full_is_failed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
