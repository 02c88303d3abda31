/* Signatures of webhooks: the vectors, ed25519 against libsodium's own signing, rotation, and secrets in all
 * forms that people paste. */
#include "wire/signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct wire_secret parse(const char *text)
{
    struct wire_secret secret;
    const char *why;
    unsigned which;
    assert_int_equal(secrets_parse(span_text(text), &secret, 1, &which, &why), 1);
    return secret;
}

static void sign(const struct wire_secret *secrets, unsigned count, const char *id, uint64_t timestamp_s,
                 struct span content, char *to, size_t room)
{
    struct signer signer;
    signer_init(&signer, secrets, count);
    assert_true(signer_room(&signer) < room);
    size_t size = signer_write(&signer, span_text(id), timestamp_s, content, to);
    assert_true(size <= signer_room(&signer));
    to[size] = '\0';
    signer_dispose(&signer);
    assert_true(sodium_is_zero((const void *)&signer, sizeof signer));
}

/* --- the vectors --- */

#define SECRET_24 "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define SECRET_32 "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

/* Standard Webhooks 1.0.0: the first is the one of the specification and of its libraries' tests; the others
 * were computed with another implementation of HMAC-SHA256. */
static void hmac_is_as_in_the_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *secret, *id;
        uint64_t timestamp_s;
        struct span content;
        const char *signature;
    } vectors[] = {
#define CONTENT(text) {(const uint8_t *)text, sizeof text - 1}
        {SECRET_24, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, CONTENT("{\"test\": 2432232314}"),
         "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
        {SECRET_32, "evt_1", 1700000000, CONTENT(""), "v1,AvGPqE0CTogrWUUfPBN4L+nlNzDkwfIG5llUmNsvsXc="},
        {SECRET_32, "evt_1", 1700000000, CONTENT("{\"a\":1}"),
         "v1,hUVxIYXs8Zy9GDiZD1uQbBwXoZGMAB6RVLdZZ3ffmek="},
        {SECRET_32, "evt_1", 1700000000, CONTENT("\x00\xff\r\n"),
         "v1,VuKB4fzxKGfDURfUvvWdWRlyJSe7bDB51VHz1P1S+NU="},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(vectors); i++) {
        struct wire_secret secret = parse(vectors[i].secret);
        char text[128];
        sign(&secret, 1, vectors[i].id, vectors[i].timestamp_s, vectors[i].content, text, sizeof text);
        assert_string_equal(text, vectors[i].signature);
    }
}

/* --- ed25519 --- */

static void fill(uint8_t *bytes, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(seed >> 56);
    }
}

static void ed25519_is_what_libsodium_signs_in_one_piece(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 64; seed++) {
        struct wire_secret secret = {.kind = WIRE_ED25519, .size = 32};
        uint8_t public[32], pair[64], expected[64], content[300], whole[400];
        size_t size = (size_t)(seed * 37 % sizeof content);
        fill(secret.key, 32, seed);
        fill(content, size, ~seed);
        int front = snprintf((char *)whole, sizeof whole, "msg_a0_%d.%d.", (int)seed, 1700000000);
        memcpy(whole + front, content, size);
        crypto_sign_seed_keypair(public, pair, secret.key);
        crypto_sign_detached(expected, NULL, whole, (size_t)front + size, pair);

        char id[32], text[128];
        uint8_t got[64];
        size_t bytes;
        snprintf(id, sizeof id, "msg_a0_%d", (int)seed);
        sign(&secret, 1, id, 1700000000, span_of(content, size), text, sizeof text);
        assert_memory_equal(text, "v1a,", 4);
        assert_int_equal(sodium_base642bin(got, sizeof got, text + 4, strlen(text) - 4, NULL, &bytes, NULL,
                                           sodium_base64_VARIANT_ORIGINAL),
                         0);
        assert_int_equal(bytes, 64);
        assert_memory_equal(got, expected, 64);
    }
}

/* --- several --- */

static void each_secret_signs_in_their_order(void **state)
{
    (void)state;
    struct wire_secret secrets[3] = {parse(SECRET_24), parse(SECRET_32), {.kind = WIRE_ED25519, .size = 32}};
    char all[512], expected[512] = "";
    sign(secrets, 3, "evt_1", 1700000000, span_text("{\"a\":1}"), all, sizeof all);
    for (unsigned i = 0; i < 3; i++) {
        char one[128];
        sign(&secrets[i], 1, "evt_1", 1700000000, span_text("{\"a\":1}"), one, sizeof one);
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s", i > 0 ? " " : "",
                 one);
    }
    assert_string_equal(all, expected);
    assert_non_null(strstr(all, " v1,hUVxIYXs8Zy9GDiZD1uQbBwXoZGMAB6RVLdZZ3ffmek= v1a,"));
}

static void four_keys_fill_the_room(void **state)
{
    (void)state;
    struct wire_secret secrets[WIRE_SECRETS_MAX];
    for (unsigned i = 0; i < WIRE_SECRETS_MAX; i++)
        secrets[i] = (struct wire_secret){.kind = WIRE_ED25519, .size = 32, .key = {(uint8_t)i}};
    char id[SIGNED_ID_MAX + 1], text[WIRE_SECRETS_MAX * (SIGNATURE_MAX + 1) + 1];
    memset(id, 'i', SIGNED_ID_MAX);
    id[SIGNED_ID_MAX] = '\0';
    sign(secrets, WIRE_SECRETS_MAX, id, UINT64_MAX, span_of(NULL, 0), text, sizeof text);
    assert_int_equal(strlen(text), sizeof text - 2); /* no space behind the last */
}

/* --- secrets --- */

static void secrets_are_read_in_both_forms_and_in_lists(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int count;
        int kinds[3];
        unsigned sizes[3];
    } cases[] = {
        {SECRET_24, 1, {WIRE_HMAC}, {24}},
        {"  " SECRET_32 "\r\n", 1, {WIRE_HMAC}, {32}},
        {SECRET_24 "," SECRET_32, 2, {WIRE_HMAC, WIRE_HMAC}, {24, 32}},
        {SECRET_24 "\n\n" SECRET_32 " ,\t" SECRET_24 ",", 3, {WIRE_HMAC, WIRE_HMAC, WIRE_HMAC}, {24, 32, 24}},
        {"whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=", 1, {WIRE_ED25519}, {32}},
        /* RFC 8032 section 7.1, test 1: the seed and its public key */
        {"whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg==",
         1,
         {WIRE_ED25519},
         {32}},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct wire_secret secrets[WIRE_SECRETS_MAX];
        const char *why;
        unsigned which;
        int count = secrets_parse(span_text(cases[i].text), secrets, WIRE_SECRETS_MAX, &which, &why);
        assert_int_equal(count, cases[i].count);
        for (int k = 0; k < cases[i].count; k++) {
            assert_int_equal(secrets[k].kind, cases[i].kinds[k]);
            assert_int_equal(secrets[k].size, cases[i].sizes[k]);
        }
    }
}

/* The kept seed of the longer form is that of the shorter. */
static void both_forms_of_a_signing_key_are_the_same_key(void **state)
{
    (void)state;
    struct wire_secret seed = parse("whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="),
                       pair =
                           parse("whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy"
                                 "89qmIyWvAhpo9wdRGg==");
    assert_memory_equal(&seed, &pair, sizeof seed);
}

static void wrong_secrets_are_named_and_never_shown(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "no signing secret"},
        {" ,\n", "no signing secret"},
        {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "begins with whsec_ or whsk_"},
        {"WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "begins with whsec_ or whsk_"},
        {"whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a public key (whpk_)"},
        {"whsec_", "24 to 64 bytes"},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLQ==", "24 to 64 bytes"},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "base64"},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS-", "base64"},
        {"whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "base64"},
        {"whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "32 or 64 bytes"},
        {"whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGw==",
         "do not belong together"},
        {"whsec_//////////////////////////////////////////////////////////////////////////////////////"
         "////////////////////////////////////////////////////////////////////////////////////////////",
         "base64, padded, of at most 64 bytes"},
        {SECRET_24 " whsec_AA==", "24 to 64 bytes"},
        {"# old:\n" SECRET_24, "no comments"},
        {SECRET_24 " " SECRET_24 " " SECRET_24 " " SECRET_24 " " SECRET_24, "4 at most"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct wire_secret secrets[WIRE_SECRETS_MAX];
        const char *why = NULL;
        unsigned which = 0;
        assert_int_equal(secrets_parse(span_text(cases[i].text), secrets, WIRE_SECRETS_MAX, &which, &why),
                         PE_CONFIG);
        assert_non_null(strstr(why, cases[i].says));
        assert_null(strstr(why, "MfKQ"));
        assert_true(sodium_is_zero((const void *)secrets, sizeof secrets));
    }
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hmac_is_as_in_the_vectors),
        cmocka_unit_test(ed25519_is_what_libsodium_signs_in_one_piece),
        cmocka_unit_test(each_secret_signs_in_their_order),
        cmocka_unit_test(four_keys_fill_the_room),
        cmocka_unit_test(secrets_are_read_in_both_forms_and_in_lists),
        cmocka_unit_test(both_forms_of_a_signing_key_are_the_same_key),
        cmocka_unit_test(wrong_secrets_are_named_and_never_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
