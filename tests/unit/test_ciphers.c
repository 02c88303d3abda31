/* Which cipher two ends use, that nobody between them has a say in it, and that each is what was published.
 * What needs AES in hardware is left out on machines without. */
#include "tests/unit/link_world.h"
#include "tests/vectors/ciphers.h"

#define AES LINK_OFFERS_AES_256_GCM

static struct link_world w;
static struct link_world_memory memory;

static int end(void **state)
{
    (void)state;
    link_world_end(&w);
    return 0;
}

static int start_neither(void **state)
{
    (void)state;
    link_world_start_with(&w, 1, 0, 0);
    return 0;
}

static int start_both(void **state)
{
    (void)state;
    link_world_start_with(&w, 1, cipher_hardware(), cipher_hardware());
    return 0;
}

static void needs_aes(void)
{
    if (!(cipher_hardware() & AES))
        skip();
}

static struct session *receiver_session(void)
{
    return responder_sealing(&w.receiver, w.peer, w.now_ns);
}

/* Both ends seal and open with it, both ways. */
static void assert_cipher(enum link_cipher cipher)
{
    const struct session *ours = initiator_sealing(&w.sender, w.now_ns), *theirs = receiver_session();
    assert_true(ours && theirs);
    assert_int_equal(ours->seal.cipher, cipher);
    assert_int_equal(ours->open.cipher, cipher);
    assert_int_equal(theirs->seal.cipher, cipher);
    assert_int_equal(theirs->open.cipher, cipher);
}

/* --- which --- */

static void two_ends_use_aes_if_both_have_it(void **state)
{
    (void)state;
    needs_aes();
    for (unsigned who = 0; who < 4; who++) {
        uint8_t senders = who & 1 ? AES : 0, receivers = who & 2 ? AES : 0;
        enum link_cipher expected = who == 3 ? LINK_AES_256_GCM : LINK_CHACHA20_POLY1305;
        link_world_start_with(&w, who, senders, receivers);
        assert_int_equal(link_world_handshake(&w).cipher, expected);
        link_world_ping(&w); /* a packet each way */
        assert_cipher(expected);
        for (unsigned i = 0; i < 3; i++) {
            initiator_restart(&w.sender);
            struct initiator_terms terms = link_world_handshake(&w);
            assert_true(terms.goes_on && terms.cipher == expected);
            link_world_ping(&w);
            assert_cipher(expected);
        }
        link_world_end(&w);
    }
}

/* The association, its numbers and streams do not depend on the cipher. */
static void an_end_that_moves_to_another_machine_changes_the_cipher_and_no_more(void **state)
{
    (void)state;
    needs_aes();
    link_world_connect(&w);
    assert_cipher(LINK_AES_256_GCM);
    for (unsigned i = 0; i < 4; i++) {
        w.receiver.ciphers = i % 2 ? AES : 0;
        initiator_restart(&w.sender);
        assert_true(link_world_handshake(&w).goes_on);
        struct link_world_packet late = link_world_seal(receiver_session(), w.now_ns, w.receiver_packet++);
        assert_false(link_world_ping(&w).begins);
        assert_cipher(i % 2 ? LINK_AES_256_GCM : LINK_CHACHA20_POLY1305);
        assert_int_equal(link_world_open_back(&w, late), 0); /* of the session before, and its cipher */
    }
}

static void offers_that_nobody_knows_are_not_looked_at(void **state)
{
    (void)state;
    w.sender.ciphers = (uint8_t)~AES;
    link_world_connect(&w);
    assert_cipher(LINK_CHACHA20_POLY1305);
    w.sender.ciphers = 0xff;
    w.receiver.ciphers = cipher_hardware();
    initiator_restart(&w.sender);
    link_world_connect(&w);
    assert_cipher(cipher_hardware() & AES ? LINK_AES_256_GCM : LINK_CHACHA20_POLY1305);
}

/* --- in flight --- */

/* A bit of the ciphertext turns one of the payload: what somebody would do who knows where the offer is. */
static void an_offer_altered_in_flight_is_refused(void **state)
{
    (void)state;
    struct link_init init = link_world_init(&w);
    struct cookie_held none = {{0}, 0};
    uint8_t out[LINK_ANSWER_BYTES];
    link_world_remember(&w, &memory);
    for (unsigned bit = 0; bit < 8; bit++) {
        struct link_init altered = init;
        altered.payload[offsetof(struct link_init_payload, ciphers)] ^= (uint8_t)(1 << bit);
        assert_int_equal(link_world_answer(&w, &altered, out), PE_NOT_AUTHENTIC);
        cookie_sign(&none, &w.receiver.cookie_keys, w.now_ns, &altered); /* by who knows the public key */
        assert_int_equal(link_world_answer(&w, &altered, out), PE_NOT_AUTHENTIC);
        assert_true(link_world_same(&w, &memory, true));
    }
    assert_int_equal(link_world_answer(&w, &init, out), LINK_REPLY_BYTES);
}

static void a_choice_altered_in_flight_is_refused(void **state)
{
    (void)state;
    struct link_reply reply = link_world_reply(&w);
    struct initiator before = w.sender;
    struct initiator_terms terms;
    for (unsigned bit = 0; bit < 8; bit++) {
        struct link_reply altered = reply;
        altered.payload[offsetof(struct link_reply_payload, cipher)] ^= (uint8_t)(1 << bit);
        assert_int_equal(initiator_reply(&w.sender, w.now_ns, &altered, &terms), PE_NOT_AUTHENTIC);
        assert_memory_equal(&w.sender, &before, sizeof before);
    }
    assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), 0);
    link_world_ping(&w);
    assert_cipher(cipher_hardware() & AES ? LINK_AES_256_GCM : LINK_CHACHA20_POLY1305);
}

/* The REPLY of a receiver that holds its key, and names whatever it likes. */
static void write_reply(const struct link_init *init, uint8_t cipher, struct link_reply *reply)
{
    const uint32_t index = 0x01020304;
    const struct noise_keys keys = {w.receiver_key.private, w.receiver_key.public, NULL, NULL};
    struct link_init_payload asked;
    struct link_reply_payload payload = {.version = LINK_VERSION, .cipher = cipher};
    struct noise noise;
    uint8_t e[LINK_KEY_BYTES];
    size_t size = offsetof(struct link_init, mac1) - offsetof(struct link_init, e);
    noise_init(&noise, NOISE_IK, false, span_text(LINK_PROLOGUE), &keys);
    assert_int_equal(noise_read(&noise, span_of(init->e, size), (uint8_t *)&asked), 0);
    link_put_head(&reply->head, LINK_REPLY);
    link_put32(reply->receiver, index);
    link_put32(payload.index, index);
    memcpy(reply->sender, init->sender, sizeof reply->sender);
    noise_random_fill(&w.random, e, sizeof e);
    assert_int_equal(noise_write(&noise, e, span_of(&payload, sizeof payload), reply->e), 0);
    noise_wipe(&noise);
}

static void a_choice_that_was_not_offered_is_refused(void **state)
{
    (void)state;
    struct link_init init = link_world_init(&w);
    struct initiator before = w.sender;
    struct initiator_terms terms;
    struct link_reply reply;
    for (unsigned cipher = LINK_AES_256_GCM; cipher < 256; cipher++) {
        write_reply(&init, (uint8_t)cipher, &reply);
        assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), PE_MALFORMED);
        assert_memory_equal(&w.sender, &before, sizeof before);
    }
    write_reply(&init, LINK_CHACHA20_POLY1305, &reply);
    assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), 0);
}

/* --- as published --- */

static size_t from_hex(uint8_t out[128], const char *hex)
{
    size_t size;
    assert_int_equal(sodium_hex2bin(out, 128, hex, strlen(hex), NULL, &size, NULL), 0);
    return size;
}

/* Called as link/cipher.c does: in place, with the key's schedule made before. */
static void the_librarys_aes_is_the_published_one(void **state)
{
    (void)state;
    needs_aes();
    for (size_t i = 0; i < ARRAY_SIZE(gcm_vectors); i++) {
        const struct gcm_vector *v = &gcm_vectors[i];
        uint8_t key[128], nonce[128], additional[128], plain[128], sealed[128], bytes[128];
        crypto_aead_aes256gcm_state aes;
        from_hex(key, v->key);
        from_hex(nonce, v->nonce);
        size_t additional_size = from_hex(additional, v->additional), plain_size = from_hex(plain, v->plain);
        size_t sealed_size = from_hex(sealed, v->sealed);
        assert_int_equal(sealed_size, plain_size + LINK_TAG_BYTES);
        memcpy(bytes, plain, plain_size);
        crypto_aead_aes256gcm_beforenm(&aes, key);
        crypto_aead_aes256gcm_encrypt_afternm(bytes, NULL, bytes, plain_size, additional, additional_size,
                                              NULL, nonce, &aes);
        assert_memory_equal(bytes, sealed, sealed_size);
        assert_int_equal(crypto_aead_aes256gcm_decrypt_afternm(bytes, NULL, NULL, bytes, sealed_size,
                                                               additional, additional_size, nonce, &aes),
                         0);
        assert_memory_equal(bytes, plain, plain_size);
    }
}

static void a_packet_is_the_same_as_other_libraries_make_it(void **state)
{
    (void)state;
    uint8_t split[128], packet[128], frames[128], sealed[128];
    from_hex(split, PACKET_VECTOR_KEY);
    size_t size = from_hex(frames, PACKET_VECTOR_FRAMES);
    for (size_t i = 0; i < ARRAY_SIZE(packet_vectors); i++) {
        const struct packet_vector *v = &packet_vectors[i];
        struct link_data *data = (struct link_data *)packet;
        struct cipher_key key;
        if (v->cipher == LINK_AES_256_GCM)
            needs_aes();
        assert_int_equal(from_hex(sealed, v->sealed), size + LINK_TAG_BYTES);
        assert_int_equal(from_hex(packet, PACKET_VECTOR_HEAD), LINK_DATA_HEAD);
        memcpy(data->frames, frames, size);
        cipher_key_init(&key, v->cipher, split);
        cipher_seal(&key, data, size);
        assert_memory_equal(data->frames, sealed, size + LINK_TAG_BYTES);
        assert_int_equal(cipher_open(&key, data, size + LINK_TAG_BYTES), 0);
        assert_memory_equal(data->frames, frames, size);
    }
}

/* Every size around the blocks of both, and the largest. */
static void a_packet_of_any_size_opens_and_one_altered_anywhere_does_not(void **state)
{
    (void)state;
    static uint8_t packet[LINK_DATA_OVERHEAD + 65507], frames[65507];
    struct link_data *data = (struct link_data *)packet;
    for (size_t i = 0; i < sizeof frames; i++)
        frames[i] = (uint8_t)random_next(&w.seed);
    for (unsigned cipher = LINK_CHACHA20_POLY1305; cipher <= LINK_AES_256_GCM; cipher++) {
        struct cipher_key key;
        if (cipher == LINK_AES_256_GCM)
            needs_aes();
        cipher_key_init(&key, cipher, frames);
        for (size_t size = 0; size <= sizeof frames; size = size < 1100 ? size + 1 : size + 9201) {
            memcpy(data->frames, frames, size);
            cipher_seal(&key, data, size);
            assert_int_equal(cipher_open(&key, data, size + LINK_TAG_BYTES), 0);
            assert_memory_equal(data->frames, frames, size);
            cipher_seal(&key, data, size);
            packet[random_below(&w.seed, LINK_DATA_OVERHEAD + size)] ^= 0x10;
            assert_int_equal(cipher_open(&key, data, size + LINK_TAG_BYTES), PE_NOT_AUTHENTIC);
            assert_true(size < 8 || memcmp(data->frames, frames, size) != 0);
        }
    }
}

#define TEST(f, start) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ends_use_aes_if_both_have_it),
        TEST(an_end_that_moves_to_another_machine_changes_the_cipher_and_no_more, start_both),
        TEST(offers_that_nobody_knows_are_not_looked_at, start_neither),
        TEST(an_offer_altered_in_flight_is_refused, start_both),
        TEST(a_choice_altered_in_flight_is_refused, start_both),
        TEST(a_choice_that_was_not_offered_is_refused, start_neither),
        cmocka_unit_test(the_librarys_aes_is_the_published_one),
        cmocka_unit_test(a_packet_is_the_same_as_other_libraries_make_it),
        TEST(a_packet_of_any_size_opens_and_one_altered_anywhere_does_not, start_neither),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
