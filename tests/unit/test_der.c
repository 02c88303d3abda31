/* The DER reader: what is taken, and what only looks like it. */
#include "tls/der.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define BYTES(text) ((struct span){(const uint8_t *)(text), sizeof(text) - 1})

static void lengths_are_definite_and_shortest(void **state)
{
    (void)state;
    static uint8_t large[70000] = {0x04, 0x83, 0x01, 0x00, 0x00};
    static const struct {
        struct span bytes;
        bool good;
    } rows[] = {
        {BYTES("\x04\x00"), true},
        {BYTES("\x04\x01x"), true},
        {BYTES("\x04\x02x"), false},          /* cut */
        {BYTES("\x04\x01xy"), false},         /* one too many */
        {BYTES("\x04\x81\x01x"), false},      /* longer than it has to be */
        {BYTES("\x04\x82\x00\x80"), false},   /* with a leading zero */
        {BYTES("\x04\x80x\x00\x00"), false},  /* indefinite: BER */
        {BYTES("\x04\x85\1\0\0\0\0"), false}, /* above 4 GiB */
        {BYTES("\x04\xff"), false},           /* reserved */
        {BYTES("\x1f\x01x"), false},          /* a tag of more bytes */
        {BYTES("\x04"), false},
        {BYTES(""), false},
        {{large, 5 + 65536}, true},
        {{large, 4 + 65536}, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct der d = der_of(rows[i].bytes);
        struct span content;
        bool good = der_any(&d, NULL, &content, NULL) && der_done(&d);
        if (good != rows[i].good)
            fail_msg("row %zu", i);
    }
}

static void integers_are_in_their_shortest_form(void **state)
{
    (void)state;
    assert_true(der_is_integer(BYTES("\x00")));
    assert_true(der_is_integer(BYTES("\x00\x80")));
    assert_true(der_is_integer(BYTES("\xff\x7f")));
    assert_false(der_is_integer(BYTES("")));
    assert_false(der_is_integer(BYTES("\x00\x7f")));
    assert_false(der_is_integer(BYTES("\xff\x80")));
}

static void small_integers_are_not_negative_and_fit(void **state)
{
    (void)state;
    static const struct {
        struct span bytes;
        int32_t value; /* -1: refused */
    } rows[] = {{BYTES("\x02\x01\x05"), 5},
                {BYTES("\x02\x02\x00\x80"), 128},
                {BYTES("\x02\x04\x7f\xff\xff\xff"), 0x7fffffff},
                {BYTES("\x02\x05\x00\x80\x00\x00\x00"), -1},
                {BYTES("\x02\x01\x80"), -1},
                {BYTES("\x02\x00"), -1}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct der d = der_of(rows[i].bytes);
        int32_t value;
        if (!der_take_small(&d, DER_INTEGER, &value))
            value = -1;
        assert_int_equal(value, rows[i].value);
    }
}

static void object_identifiers_are_whole(void **state)
{
    (void)state;
    assert_true(der_is_oid(BYTES("\x55\x1d\x11")));
    assert_true(der_is_oid(BYTES("\x2a\x86\x48")));
    assert_false(der_is_oid(BYTES("")));
    assert_false(der_is_oid(BYTES("\x2a\x86")));
    assert_false(der_is_oid(BYTES("\x2a\x80\x48")));
}

static void booleans_are_all_ones_or_zero(void **state)
{
    (void)state;
    struct der d = der_of(BYTES("\x01\x01\xff"));
    bool value;
    assert_true(der_take_default_false(&d, &value) && value);
    d = der_of(BYTES("\x01\x01\x00"));
    assert_true(der_take_default_false(&d, &value) && !value);
    d = der_of(BYTES("\x02\x01\x01"));
    assert_true(der_take_default_false(&d, &value) && !value && !der_done(&d));
    d = der_of(BYTES("\x01\x01\x01"));
    assert_false(der_take_default_false(&d, &value));
    d = der_of(BYTES("\x01\x02\xff\xff"));
    assert_false(der_take_default_false(&d, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_definite_and_shortest),
        cmocka_unit_test(integers_are_in_their_shortest_form),
        cmocka_unit_test(small_integers_are_not_negative_and_fit),
        cmocka_unit_test(object_identifiers_are_whole),
        cmocka_unit_test(booleans_are_all_ones_or_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
