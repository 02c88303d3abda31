/* The keys of one session: sealing and opening, replays, ages, wiping. */
#include "link/session.h"

#include "core/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sodium.h>
#include <cmocka.h>

#define START  (1000 * NS_PER_S)
#define ROOM   1500
#define FRAMES "some frames, one behind the other"

struct ends {
    struct session a, b;
    uint8_t packet[ROOM];
    size_t size;
};

static enum link_cipher cipher; /* that the tests run with */

static int with_chacha20(void **state)
{
    (void)state;
    cipher = LINK_CHACHA20_POLY1305;
    return 0;
}

/* Machines without AES in hardware run their tests twice with the other. */
static int with_aes(void **state)
{
    (void)state;
    cipher = cipher_hardware() & LINK_OFFERS_AES_256_GCM ? LINK_AES_256_GCM : LINK_CHACHA20_POLY1305;
    return 0;
}

static const uint8_t *split_key(uint8_t byte)
{
    static uint8_t key[LINK_KEY_BYTES];
    memset(key, byte, sizeof key);
    return key;
}

static struct ends ends_of(uint64_t first)
{
    struct ends e;
    memset(&e, 0, sizeof e);
    session_init(&e.a, START, first, 0);
    session_init(&e.b, START, 0, first);
    cipher_key_init(&e.a.seal, cipher, split_key(0xa1));
    cipher_key_init(&e.b.open, cipher, split_key(0xa1));
    cipher_key_init(&e.a.open, cipher, split_key(0xb2));
    cipher_key_init(&e.b.seal, cipher, split_key(0xb2));
    e.a.index = e.b.remote_index = 0x01020304;
    e.b.index = e.a.remote_index = 0x0a0b0c0d;
    return e;
}

static void seal(struct ends *e, uint64_t now_ns, uint64_t number)
{
    memcpy(e->packet + LINK_DATA_HEAD, FRAMES, sizeof FRAMES);
    e->size = session_seal(&e->a, now_ns, number, e->packet, sizeof FRAMES);
}

static int open_copy(struct session *s, uint64_t now_ns, const struct ends *e, struct session_packet *opened)
{
    static uint8_t copy[ROOM];
    memcpy(copy, e->packet, e->size);
    return session_open(s, now_ns, copy, e->size, opened);
}

static void what_is_sealed_opens_at_the_other_end(void **state)
{
    (void)state;
    struct ends e = ends_of(7);
    struct session_packet opened;
    seal(&e, START, 7);
    assert_int_equal(e.size, sizeof FRAMES + LINK_DATA_OVERHEAD);
    assert_int_equal(link_type_of(e.packet, e.size), LINK_DATA);
    assert_int_equal(link_index_of(LINK_DATA, e.packet), 0x0a0b0c0d);
    assert_int_equal(session_open(&e.b, START, e.packet, e.size, &opened), 0);
    assert_int_equal(opened.number, 7);
    assert_int_equal(opened.size, sizeof FRAMES);
    assert_memory_equal(opened.frames, FRAMES, sizeof FRAMES);
}

/* The layout, by hand: head as additional data, nonce of four zero bytes and the number. */
static void a_packet_is_what_the_protocol_page_says(void **state)
{
    (void)state;
    struct ends e = ends_of(0);
    uint64_t number = UINT64_C(0x0102030405060708);
    seal(&e, START, number);
    const uint8_t head[16] = {4, 0, 0, 0, 0x0d, 0x0c, 0x0b, 0x0a, 8, 7, 6, 5, 4, 3, 2, 1};
    const uint8_t nonce[12] = {0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1}, *split = split_key(0xa1);
    uint8_t expected[sizeof FRAMES + 16], key[32];
    crypto_generichash(key, sizeof key, (const uint8_t *)"pure-link aes-256-gcm", 21, split, 32);
    if (cipher == LINK_AES_256_GCM)
        crypto_aead_aes256gcm_encrypt(expected, NULL, (const uint8_t *)FRAMES, sizeof FRAMES, head,
                                      sizeof head, NULL, nonce, key);
    else
        crypto_aead_chacha20poly1305_ietf_encrypt(expected, NULL, (const uint8_t *)FRAMES, sizeof FRAMES,
                                                  head, sizeof head, NULL, nonce, split);
    assert_memory_equal(e.packet, head, sizeof head);
    assert_memory_equal(e.packet + 16, expected, sizeof expected);
}

static void a_packet_altered_in_any_bit_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct ends e = ends_of(0);
    struct session_packet opened;
    seal(&e, START, 3);
    struct session before = e.b;
    for (size_t bit = 0; bit < 8 * e.size; bit++) {
        e.packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int error = open_copy(&e.b, START, &e, &opened);
        assert_true(error < 0);
        before.forgeries += error == PE_NOT_AUTHENTIC; /* which is all that they change */
        assert_memory_equal(&e.b, &before, sizeof before);
        e.packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t size = LINK_DATA_MIN_BYTES; size < e.size; size++, before.forgeries++)
        assert_int_equal(session_open(&e.b, START, (uint8_t[ROOM]){4}, size, &opened), PE_NOT_AUTHENTIC);
    assert_memory_equal(&e.b, &before, sizeof before);
    assert_int_equal(open_copy(&e.b, START, &e, &opened), 0);
}

static void a_packet_opens_once(void **state)
{
    (void)state;
    struct ends e = ends_of(0);
    struct session_packet opened;
    seal(&e, START, 3);
    assert_int_equal(open_copy(&e.b, START, &e, &opened), 0);
    struct session before = e.b;
    assert_int_equal(open_copy(&e.b, START, &e, &opened), PE_REPLAYED);
    assert_memory_equal(&e.b, &before, sizeof before);
    seal(&e, START, 3 + WINDOW_PACKETS);
    assert_int_equal(open_copy(&e.b, START, &e, &opened), 0);
    assert_int_equal(window_allows(&e.b.window, 3), false);
}

/* An ACK could not name a larger one. */
static void numbers_end_where_variable_length_integers_do(void **state)
{
    (void)state;
    struct ends e = ends_of(0);
    struct session_packet opened;
    seal(&e, START, LINK_NUMBER_MAX);
    assert_int_equal(open_copy(&e.b, START, &e, &opened), 0);
    assert_int_equal(opened.number, LINK_NUMBER_MAX);
    e = ends_of(0);
    link_put_head((struct link_head *)e.packet, LINK_DATA);
    link_put64(e.packet + 8, LINK_NUMBER_MAX + 1);
    e.size = LINK_DATA_OVERHEAD + 1;
    cipher_seal(&e.a.seal, (struct link_data *)e.packet, 1);
    assert_int_equal(open_copy(&e.b, START, &e, &opened), PE_REPLAYED);
}

static void it_is_replaced_by_age_and_by_bytes(void **state)
{
    (void)state;
    struct ends e = ends_of(0);
    assert_int_equal(session_rekey_ns(&e.a), START + LINK_REKEY_NS);
    e.a.sealed = LINK_REKEY_BYTES - sizeof FRAMES - LINK_DATA_OVERHEAD - 1;
    seal(&e, START, 0);
    assert_int_equal(session_rekey_ns(&e.a), START + LINK_REKEY_NS);
    seal(&e, START, 1);
    assert_int_equal(session_rekey_ns(&e.a), 0);
    assert_true(session_may_seal(&e.a, START)); /* it goes on until the REPLY */
    e.a.sealed = LINK_SEAL_BYTES - 1;
    seal(&e, START, 2);
    assert_false(session_may_seal(&e.a, START));
}

static void it_opens_nothing_after_too_many_forgeries(void **state)
{
    (void)state;
    struct ends e = ends_of(0);
    struct session_packet opened;
    e.b.forgeries = LINK_FORGERIES - 1;
    seal(&e, START, 0);
    assert_int_equal(open_copy(&e.b, START, &e, &opened), 0);
    assert_int_equal(session_end_ns(&e.b), START + LINK_OPEN_NS);
    seal(&e, START, 1);
    e.packet[LINK_DATA_HEAD] ^= 1;
    assert_int_equal(open_copy(&e.b, START, &e, &opened), PE_NOT_AUTHENTIC);
    assert_int_equal(session_end_ns(&e.b), 0);
    e.packet[LINK_DATA_HEAD] ^= 1;
    assert_int_equal(open_copy(&e.b, START, &e, &opened), PE_EXPIRED);
}

static void it_seals_and_opens_no_longer_than_its_ages(void **state)
{
    (void)state;
    struct ends e = ends_of(0);
    struct session_packet opened;
    assert_true(session_may_seal(&e.a, START + LINK_SEAL_NS - 1));
    assert_false(session_may_seal(&e.a, START + LINK_SEAL_NS));
    seal(&e, START + LINK_SEAL_NS - 1, 0);
    assert_int_equal(open_copy(&e.b, START + LINK_OPEN_NS, &e, &opened), PE_EXPIRED);
    assert_int_equal(open_copy(&e.b, START + LINK_OPEN_NS - 1, &e, &opened), 0);
    assert_int_equal(session_end_ns(&e.b), START + LINK_OPEN_NS);
}

static void a_wiped_session_holds_nothing_and_does_nothing(void **state)
{
    (void)state;
    struct ends e = ends_of(0);
    struct session_packet opened;
    seal(&e, START, 0);
    session_wipe(&e.b);
    assert_true(sodium_is_zero((const uint8_t *)&e.b, sizeof e.b));
    assert_false(session_may_seal(&e.b, START));
    assert_int_equal(session_rekey_ns(&e.b), NEVER);
    assert_int_equal(session_end_ns(&e.b), NEVER);
    assert_int_equal(open_copy(&e.b, 0, &e, &opened), PE_EXPIRED);
}

static void heads_that_are_not_ours_are_known(void **state)
{
    (void)state;
    uint8_t bytes[LINK_INIT_BYTES + 1] = {0};
    static const size_t sizes[] = {0, 1, 31, 32, 33, 63, 64, 65, 91, 92, 93, 1199, 1200, 1201};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        size_t size = sizes[i];
        for (unsigned type = 0; type < 256; type++) {
            bytes[0] = (uint8_t)type;
            bool right = (type == LINK_INIT && size == 1200) || (type == LINK_REPLY && size == 92) ||
                         (type == LINK_COOKIE && size == 64) || (type == LINK_DATA && size >= 32);
            assert_int_equal(link_type_of(bytes, size), right ? type : 0);
        }
        for (unsigned at = 1; at < 4; at++) {
            bytes[0] = LINK_DATA;
            bytes[at] = 1;
            assert_int_equal(link_type_of(bytes, size), 0);
            bytes[at] = 0;
        }
    }
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sealed_opens_at_the_other_end),
        cmocka_unit_test(a_packet_is_what_the_protocol_page_says),
        cmocka_unit_test(a_packet_altered_in_any_bit_is_refused_and_changes_nothing),
        cmocka_unit_test(a_packet_opens_once),
        cmocka_unit_test(numbers_end_where_variable_length_integers_do),
        cmocka_unit_test(it_is_replaced_by_age_and_by_bytes),
        cmocka_unit_test(it_opens_nothing_after_too_many_forgeries),
        cmocka_unit_test(it_seals_and_opens_no_longer_than_its_ages),
        cmocka_unit_test(a_wiped_session_holds_nothing_and_does_nothing),
        cmocka_unit_test(heads_that_are_not_ours_are_known),
    };
    return cmocka_run_group_tests_name("ChaCha20-Poly1305", tests, with_chacha20, NULL) +
           cmocka_run_group_tests_name("AES-256-GCM", tests, with_aes, NULL);
}
