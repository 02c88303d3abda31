/* Host keys and their text forms; the table of indices. */
#include "noise/key.h"

#include "core/error.h"
#include "link/indices.h"
#include "tests/unit/link_world.h"

/* RFC 7748 section 6.1: Alice's keys. */
#define ALICE_PRIVATE "pure-host-private-key:dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo="
#define ALICE_PUBLIC  "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="

static void a_key_survives_its_text(void **state)
{
    (void)state;
    struct noise_random random = link_world_random(&(struct random){1});
    struct host_key key, parsed;
    char private[HOST_KEY_PRIVATE_TEXT], public[HOST_KEY_PUBLIC_TEXT];
    uint8_t parsed_public[LINK_KEY_BYTES];
    host_key_generate(&key, &random);
    host_key_private_text(&key, private);
    host_key_public_text(key.public, public);
    assert_int_equal(strlen(private), HOST_KEY_PRIVATE_TEXT - 1);
    assert_int_equal(host_key_parse_private(span_text(private), &parsed), 0);
    assert_memory_equal(&parsed, &key, sizeof key);
    assert_int_equal(host_key_parse_public(span_text(public), parsed_public), 0);
    assert_memory_equal(parsed_public, key.public, LINK_KEY_BYTES);
}

static void a_known_key_has_its_known_public_key(void **state)
{
    (void)state;
    struct host_key key;
    char public[HOST_KEY_PUBLIC_TEXT];
    assert_int_equal(host_key_parse_private(span_text(" \t" ALICE_PRIVATE "\r\n"), &key), 0);
    host_key_public_text(key.public, public);
    assert_string_equal(public, ALICE_PUBLIC);
    host_key_wipe(&key);
    assert_true(sodium_is_zero((const uint8_t *)&key, sizeof key));
}

static void what_is_no_key_is_refused_and_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int private, public;
    } cases[] = {
        {"", PE_KEY, PE_KEY},
        {"\n", PE_KEY, PE_KEY},
        {ALICE_PUBLIC, PE_KEY_IS_PUBLIC, 0},
        {ALICE_PRIVATE, 0, PE_KEY_IS_PRIVATE},
        {ALICE_PUBLIC "x", PE_KEY, PE_KEY},
        {ALICE_PUBLIC "\n" ALICE_PUBLIC, PE_KEY, PE_KEY},
        {ALICE_PRIVATE "\n" ALICE_PRIVATE, PE_KEY, PE_KEY_IS_PRIVATE},
        {"pure-host-private-key:", PE_KEY, PE_KEY_IS_PRIVATE},
        {"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo", PE_KEY, PE_KEY},  /* no padding */
        {"hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo=", PE_KEY, PE_KEY}, /* the URL's alphabet */
        {"hSDwCYkwp1R0i33ctD73Wg2/ g0mOBr066SpjqqbTmo=", PE_KEY, PE_KEY},
        {"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmp=", PE_KEY, PE_KEY}, /* bits after the end */
        {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", PE_KEY_IS_PUBLIC, PE_KEY_WEAK},
        {"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", PE_KEY_IS_PUBLIC, PE_KEY_WEAK},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct host_key key;
        uint8_t public[LINK_KEY_BYTES];
        assert_int_equal(host_key_parse_private(span_text(cases[i].text), &key), cases[i].private);
        assert_int_equal(sodium_is_zero(key.private, LINK_KEY_BYTES), cases[i].private != 0);
        assert_int_equal(host_key_parse_public(span_text(cases[i].text), public), cases[i].public);
        assert_int_equal(sodium_is_zero(public, LINK_KEY_BYTES), cases[i].public != 0);
    }
}

#define INDICES 1000

static void indices_never_meet_and_are_found_until_they_are_removed(void **state)
{
    (void)state;
    struct random seed = {1};
    struct noise_random random = link_world_random(&seed);
    struct indices t;
    static char owners[INDICES];
    static uint32_t index[INDICES];
    assert_int_equal(indices_init(&t, INDICES), 0);
    for (unsigned i = 0; i < INDICES; i++)
        index[i] = indices_add(&t, &random, &owners[i]);
    for (unsigned round = 0; round < 20 * INDICES; round++) {
        unsigned i = (unsigned)random_below(&seed, INDICES);
        uint32_t old = index[i];
        assert_ptr_equal(indices_find(&t, old), &owners[i]);
        indices_remove(&t, old);
        assert_null(indices_find(&t, old));
        index[i] = indices_add(&t, &random, &owners[i]);
    }
    for (unsigned i = 0; i < INDICES; i++)
        assert_ptr_equal(indices_find(&t, index[i]), &owners[i]);
    assert_null(indices_find(&t, index[0] ^ 0x80000000));
    indices_dispose(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_survives_its_text),
        cmocka_unit_test(a_known_key_has_its_known_public_key),
        cmocka_unit_test(what_is_no_key_is_refused_and_says_why),
        cmocka_unit_test(indices_never_meet_and_are_found_until_they_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
