/* Contexts: what their files may be, and how they are replaced; and the AES that they use. */
#include "tests/sim/tls_ends.h"

#include "tls/accelerate.h"
#include "tls/context_private.h"
#include "tls/trust.h"

#include <pthread.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <wolfssl/wolfcrypt/aes.h>
#include <wolfssl/wolfcrypt/error-crypt.h>

#include <cmocka.h>

static struct tls_world world;

/* Makes a server's context; it has to fail, naming `named`. */
static void expect_refusal(const char *certificate, const char *key, const char *named, const char *what)
{
    struct tls_context *context = NULL;
    struct tls_options options = {.server = true, .certificate = certificate, .key = key};
    char why[200] = "";
    assert_int_equal(tls_context_make(&context, &options, why, sizeof why), PE_TLS_FILES);
    assert_null(context);
    assert_true(strstr(why, named) == why);
    assert_non_null(strstr(why, what));
    assert_null(strchr(why, '\n'));
}

static void test_files_that_cannot_be_used_are_named_with_what_is_wrong(void **state)
{
    (void)state;
    const struct test_certificate *chain[] = {world.leaf, world.mid};
    const char *good = test_chain_file(chain, 2), *key = test_key_file(world.leaf);
    const char *other = test_key_file(world.client);
    const char *text = test_file(span_text("a secret that nobody may see\n")),
               *empty = test_file(span_of("", 0));
    expect_refusal("/nowhere", key, "/nowhere: ", "No such file");
    expect_refusal(good, "/nowhere", "/nowhere: ", "No such file");
    expect_refusal("/proc", key, "/proc: ", "");
    expect_refusal(text, key, text, "certificate");
    expect_refusal(empty, key, empty, "certificate");
    expect_refusal(key, key, key, "are the two files exchanged?");
    expect_refusal(good, text, text, "private key");
    expect_refusal(good, good, good, "private key");
    expect_refusal(good, other, other, "is not the key");
}

static void test_a_key_belongs_to_its_own_certificate_only(void **state)
{
    (void)state;
    static const enum test_key kinds[] = {TEST_P256, TEST_RSA2048, TEST_ED25519, TEST_P521};
    struct test_certificate *all[2 * ARRAY_SIZE(kinds)];
    const char *chains[ARRAY_SIZE(all)], *keys[ARRAY_SIZE(all)];
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        all[i] = test_certificate(
            &(struct test_certificate_options){.subject = "a", .issuer = world.ca, .key = kinds[i / 2]});
        const struct test_certificate *chain[] = {all[i]};
        chains[i] = test_chain_file(chain, 1);
        keys[i] = test_key_file(all[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all) * ARRAY_SIZE(all); i++) {
        struct tls_context *context = NULL;
        char why[200];
        size_t chain = i / ARRAY_SIZE(all), key = i % ARRAY_SIZE(all);
        struct tls_options options = {.server = true, .certificate = chains[chain], .key = keys[key]};
        int error = tls_context_make(&context, &options, why, sizeof why);
        assert_int_equal(error, chain == key ? 0 : PE_TLS_FILES);
        tls_context_drop(context);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        test_certificate_free(all[i]);
}

static void test_a_file_that_is_too_large_is_refused(void **state)
{
    (void)state;
    static uint8_t large[300000];
    const char *file = test_file(span_of(large, sizeof large));
    expect_refusal(file, test_key_file(world.leaf), file, "large");
}

static void test_a_context_holds_its_trust_and_is_freed_with_its_last_holder(void **state)
{
    (void)state;
    struct tls_context *context = tls_world_context(&world, &(struct tls_world_options){0});
    assert_int_equal(world.trust->holders, 2);
    assert_ptr_equal(tls_context_hold(context), context);
    tls_context_drop(context);
    assert_int_equal(world.trust->holders, 2);
    tls_context_drop(context);
    assert_int_equal(world.trust->holders, 1);
    tls_context_drop(NULL);
}

#define TAKERS       2
#define REPLACEMENTS 200

static struct tls_current current;
static _Atomic bool over;

static void *take_and_drop(void *argument)
{
    unsigned *taken = argument;
    while (!atomic_load(&over)) {
        struct tls_context *context = tls_current_take(&current);
        assert_true(context->holders >= 1 && context->trust == world.trust);
        tls_context_drop(context);
        ++*taken;
    }
    return NULL;
}

static void test_the_context_of_the_day_is_replaced_while_others_take_it(void **state)
{
    (void)state;
    pthread_t threads[TAKERS];
    unsigned taken[TAKERS] = {0};
    assert_null(tls_current_take(&current));
    tls_current_replace(&current, tls_world_context(&world, &(struct tls_world_options){0}));
    for (unsigned i = 0; i < TAKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_drop, &taken[i]), 0);
    for (unsigned i = 0; i < REPLACEMENTS; i++)
        tls_current_replace(&current, tls_world_context(&world, &(struct tls_world_options){0}));
    atomic_store(&over, true);
    for (unsigned i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(world.trust->holders, 2);
    tls_current_replace(&current, NULL);
    assert_int_equal(world.trust->holders, 1);
}

/* --- AES --- */

struct sealed {
    uint8_t text[1000], tag[16];
};

static void seal(struct sealed *to, int device, const uint8_t *key, word32 key_size, word32 size)
{
    static const uint8_t nonce[12] = {1, 2, 3}, head[5] = {0x17, 3, 3, 0, 9};
    Aes aes;
    memset(to, 0x5a, sizeof *to);
    assert_int_equal(wc_AesInit(&aes, NULL, device), 0);
    assert_int_equal(wc_AesGcmSetKey(&aes, key, key_size), 0);
    assert_int_equal(
        wc_AesGcmEncrypt(&aes, to->text, to->text, size, nonce, 12, to->tag, 16, head, sizeof head), 0);
    wc_AesFree(&aes);
}

static int open_sealed(struct sealed *sealed, int device, const uint8_t *key, word32 key_size, word32 size)
{
    static const uint8_t nonce[12] = {1, 2, 3}, head[5] = {0x17, 3, 3, 0, 9};
    Aes aes;
    assert_int_equal(wc_AesInit(&aes, NULL, device), 0);
    assert_int_equal(wc_AesGcmSetKey(&aes, key, key_size), 0);
    int error = wc_AesGcmDecrypt(&aes, sealed->text, sealed->text, size, nonce, 12, sealed->tag, 16, head,
                                 sizeof head);
    wc_AesFree(&aes);
    return error;
}

static void test_accelerated_aes_is_aes(void **state)
{
    (void)state;
    uint8_t key[32];
    int device = tls_accelerate();
    assert_int_equal(device == INVALID_DEVID, !tls_aes_accelerated());
    for (uint8_t i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)(i * 11);
    for (word32 size = 0; size <= 1000; size += 1 + size / 7) {
        for (word32 key_size = 16; key_size <= 32; key_size += 8) {
            struct sealed ours, theirs;
            seal(&ours, device, key, key_size, size);
            seal(&theirs, INVALID_DEVID, key, key_size, size);
            assert_memory_equal(&ours, &theirs, sizeof ours);
            assert_int_equal(open_sealed(&ours, device, key, key_size, size), 0);
            for (word32 at = 0; at < size; at++)
                assert_int_equal(ours.text[at], 0x5a);
            theirs.tag[size % 16] ^= 1;
            assert_int_equal(open_sealed(&theirs, device, key, key_size, size), AES_GCM_AUTH_E);
        }
    }
}

static int set_up(void **state)
{
    (void)state;
    tls_world_init(&world);
    return sodium_init() < 0;
}

static int tear_down(void **state)
{
    (void)state;
    tls_world_dispose(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_that_cannot_be_used_are_named_with_what_is_wrong),
        cmocka_unit_test(test_a_key_belongs_to_its_own_certificate_only),
        cmocka_unit_test(test_a_file_that_is_too_large_is_refused),
        cmocka_unit_test(test_a_context_holds_its_trust_and_is_freed_with_its_last_holder),
        cmocka_unit_test(test_the_context_of_the_day_is_replaced_while_others_take_it),
        cmocka_unit_test(test_accelerated_aes_is_aes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
