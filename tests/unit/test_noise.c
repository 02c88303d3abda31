/* Noise: the published vectors, and messages that are not what they should be. */
#include "noise/noise.h"

#include "core/error.h"
#include "tests/vectors/noise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sodium.h>
#include <cmocka.h>

#define BYTES_MAX 512

struct bytes {
    uint8_t data[BYTES_MAX];
    size_t size;
};

static struct bytes from_hex(const char *hex)
{
    struct bytes b = {{0}, 0};
    if (hex)
        assert_int_equal(sodium_hex2bin(b.data, sizeof b.data, hex, strlen(hex), NULL, &b.size, NULL), 0);
    return b;
}

static struct span span(const struct bytes *b)
{
    return span_of(b->data, b->size);
}

static void assert_same(const uint8_t *data, size_t size, const struct bytes *expected)
{
    assert_int_equal(size, expected->size);
    assert_memory_equal(data, expected->data, size);
}

/* Both ends of a vector's handshake. */
struct pair {
    const struct noise_vector *vector;
    struct noise ends[2]; /* initiator, responder */
    struct bytes e[2];
};

static void side_init(struct noise *n, const struct noise_vector *v, bool initiator)
{
    const struct noise_vector_side *side = initiator ? &v->init : &v->resp;
    struct bytes prologue = from_hex(side->prologue), s = from_hex(side->s), rs = from_hex(side->rs),
                 psk = from_hex(side->psk);
    uint8_t s_public[NOISE_KEY_BYTES];
    crypto_scalarmult_curve25519_base(s_public, s.data);
    struct noise_keys keys = {.s_private = side->s ? s.data : NULL,
                              .s_public = side->s ? s_public : NULL,
                              .rs = side->rs ? rs.data : NULL,
                              .psk = side->psk ? psk.data : NULL};
    noise_init(n, v->pattern, initiator, span(&prologue), &keys);
}

static struct pair pair_of(const struct noise_vector *v)
{
    struct pair p = {.vector = v, .e = {from_hex(v->init.e), from_hex(v->resp.e)}};
    side_init(&p.ends[0], v, true);
    side_init(&p.ends[1], v, false);
    return p;
}

static struct bytes payload_of(const struct pair *p, unsigned message)
{
    return from_hex(p->vector->messages[message].payload);
}

/* The writer's half of a handshake message. */
static struct bytes write_message(struct pair *p, unsigned message)
{
    struct noise *writer = &p->ends[message % 2];
    struct bytes payload = payload_of(p, message), out;
    out.size = noise_overhead(writer) + payload.size;
    assert_true(out.size <= sizeof out.data);
    assert_int_equal(noise_write(writer, p->e[message % 2].data, span(&payload), out.data), 0);
    return out;
}

static void read_message(struct pair *p, unsigned message, const struct bytes *bytes)
{
    struct noise *reader = &p->ends[(message + 1) % 2];
    struct bytes payload = payload_of(p, message);
    uint8_t out[BYTES_MAX];
    assert_int_equal(bytes->size - noise_overhead(reader), payload.size);
    assert_int_equal(noise_read(reader, span(bytes), out), 0);
    assert_same(out, payload.size, &payload);
}

/* A transport message is sealed with the nonce that counts those of its direction (section 5.1). */
static void check_transport(const uint8_t key[NOISE_KEY_BYTES], uint8_t n, const struct bytes *payload,
                            const struct bytes *expected)
{
    uint8_t nonce[12] = {[4] = n}, out[BYTES_MAX];
    unsigned long long size;
    crypto_aead_chacha20poly1305_ietf_encrypt(out, &size, payload->data, payload->size, NULL, 0, NULL, nonce,
                                              key);
    assert_same(out, size, expected);
}

static void run_vector(const struct noise_vector *v)
{
    struct pair p = pair_of(v);
    unsigned message = 0;
    for (; !noise_done(&p.ends[0]); message++) {
        struct bytes expected = from_hex(v->messages[message].ciphertext);
        struct bytes out = write_message(&p, message);
        assert_same(out.data, out.size, &expected);
        read_message(&p, message, &out);
    }
    struct bytes hash = from_hex(v->handshake_hash);
    uint8_t keys[2][2][NOISE_KEY_BYTES];
    for (unsigned end = 0; end < 2; end++) {
        assert_true(noise_done(&p.ends[end]));
        assert_same(noise_hash(&p.ends[end]), NOISE_HASH_BYTES, &hash);
        noise_split(&p.ends[end], keys[end][0], keys[end][1]);
    }
    assert_memory_equal(keys[0][0], keys[1][1], NOISE_KEY_BYTES);
    assert_memory_equal(keys[0][1], keys[1][0], NOISE_KEY_BYTES);
    bool one_way = message == 1;
    for (uint8_t n[2] = {0, 0}; message < NOISE_VECTOR_MESSAGES; message++) {
        unsigned sender = one_way ? 0 : message % 2;
        struct bytes payload = payload_of(&p, message), expected = from_hex(v->messages[message].ciphertext);
        check_transport(keys[sender][0], n[sender]++, &payload, &expected);
    }
}

static void the_published_vectors_come_out_byte_for_byte(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_SIZE(noise_vectors), 6);
    for (size_t i = 0; i < ARRAY_SIZE(noise_vectors); i++)
        run_vector(&noise_vectors[i]);
}

/* Reads `bytes`, which must fail, and looks that nothing changed. */
static void assert_refused(struct noise *reader, struct span bytes)
{
    struct noise before = *reader;
    uint8_t out[BYTES_MAX];
    int error = noise_read(reader, bytes, out);
    assert_true(error == PE_NOT_AUTHENTIC || error == PE_KEY_WEAK || error == PE_MALFORMED);
    assert_memory_equal(reader, &before, sizeof before);
}

static void a_message_altered_in_any_bit_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(noise_vectors); i++) {
        struct pair p = pair_of(&noise_vectors[i]);
        for (unsigned message = 0; !noise_done(&p.ends[0]); message++) {
            struct bytes out = write_message(&p, message);
            for (size_t bit = 0; bit < 8 * out.size; bit += bit < 8 * NOISE_KEY_BYTES ? 5 : 3) {
                if (bit / 8 == NOISE_KEY_BYTES - 1 && bit % 8 == 7)
                    continue; /* the next test's */
                out.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
                assert_refused(&p.ends[(message + 1) % 2], span(&out));
                out.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
            read_message(&p, message, &out);
        }
    }
}

/* X25519 does not look at the highest bit of a public key (RFC 7748 section 5): the hash does. */
static void the_unused_bit_of_a_public_key_is_bound_too(void **state)
{
    (void)state;
    struct pair p = pair_of(&noise_vectors[1]);
    struct bytes out = write_message(&p, 0);
    out.data[NOISE_KEY_BYTES - 1] ^= 0x80;
    assert_refused(&p.ends[1], span(&out));
}

static void a_message_cut_anywhere_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(noise_vectors); i++) {
        struct pair p = pair_of(&noise_vectors[i]);
        struct bytes out = write_message(&p, 0);
        for (size_t size = 0; size < out.size; size++)
            assert_refused(&p.ends[1], span_of(out.data, size));
        read_message(&p, 0, &out);
    }
}

/* 0 and 1 are of low order: each agreed secret would be zero. */
static void keys_of_low_order_are_refused(void **state)
{
    (void)state;
    for (uint8_t point = 0; point < 2; point++) {
        struct pair p = pair_of(&noise_vectors[1]);
        struct bytes out = write_message(&p, 0);
        memset(out.data, 0, NOISE_KEY_BYTES);
        out.data[0] = point;
        assert_refused(&p.ends[1], span(&out));

        struct noise writer;
        uint8_t rs[NOISE_KEY_BYTES] = {point}, message[BYTES_MAX];
        struct noise_keys keys = {p.e[0].data, p.e[0].data, rs, NULL};
        noise_init(&writer, NOISE_IK, true, span_text(""), &keys);
        struct noise before = writer;
        assert_int_equal(noise_write(&writer, p.e[0].data, span_text("x"), message), PE_KEY_WEAK);
        assert_memory_equal(&writer, &before, sizeof before);
    }
}

static void another_prologue_or_psk_is_refused(void **state)
{
    (void)state;
    struct noise_vector v = noise_vectors[5];
    assert_int_equal(v.pattern, NOISE_IKPSK2);
    v.resp.prologue = "00";
    struct pair p = pair_of(&v);
    struct bytes out = write_message(&p, 0);
    assert_refused(&p.ends[1], span(&out));

    v = noise_vectors[5];
    v.resp.psk = v.init.e;
    p = pair_of(&v);
    out = write_message(&p, 0);
    /* Only the second message mixes the psk in. */
    read_message(&p, 0, &out);
    out = write_message(&p, 1);
    assert_refused(&p.ends[0], span(&out));
}

static void a_wiped_state_holds_nothing(void **state)
{
    (void)state;
    struct pair p = pair_of(&noise_vectors[1]);
    write_message(&p, 0);
    noise_wipe(&p.ends[0]);
    assert_true(sodium_is_zero((const uint8_t *)&p.ends[0], sizeof p.ends[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_vectors_come_out_byte_for_byte),
        cmocka_unit_test(a_message_altered_in_any_bit_is_refused_and_changes_nothing),
        cmocka_unit_test(the_unused_bit_of_a_public_key_is_bound_too),
        cmocka_unit_test(a_message_cut_anywhere_is_refused),
        cmocka_unit_test(keys_of_low_order_are_refused),
        cmocka_unit_test(another_prologue_or_psk_is_refused),
        cmocka_unit_test(a_wiped_state_holds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
