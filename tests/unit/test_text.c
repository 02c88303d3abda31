/* Text: growth, JSON strings and Prometheus labels. */
#include "host/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void assert_text(struct text *t, const char *expected)
{
    assert_false(t->failed);
    assert_int_equal(t->size, strlen(expected));
    assert_memory_equal(t->data, expected, t->size);
    text_dispose(t);
}

static void json_strings_are_escaped(void **state)
{
    (void)state;
    struct text t = {0};
    text_json(&t, "a\"b\\c\n\x01\x7f/é");
    assert_text(&t, "\"a\\\"b\\\\c\\u000a\\u0001\\u007f/é\"");
}

static void what_is_not_utf8_becomes_the_replacement_character(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",         "\xc0\xaf",         "\xc2",     "\xe0\x9f\x80", "\xed\xa0\x80",
        "\xf0\x8f\x80", "\xf4\x90\x80\x80", "\xf5\x80", "\xe2\x82",     "\xff"};
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        struct text t = {0}, expected = {0};
        text_json(&t, bad[i]);
        text_add(&expected, "\"", 1);
        for (size_t n = 0; n < strlen(bad[i]); n++)
            text_add(&expected, "\xef\xbf\xbd", 3);
        text_add(&expected, "\"", 2);
        assert_text(&t, expected.data);
        text_dispose(&expected);
    }
    static const char *const good[] = {"\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
                                       "\xdf\xbf"};
    for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
        struct text t = {0};
        text_json(&t, good[i]);
        assert_int_equal(t.size, strlen(good[i]) + 2);
        assert_memory_equal(t.data + 1, good[i], strlen(good[i]));
        text_dispose(&t);
    }
}

static void labels_are_escaped(void **state)
{
    (void)state;
    struct text t = {0};
    text_label(&t, "a\"b\\c\nd");
    assert_text(&t, "\"a\\\"b\\\\c\\nd\"");
}

static void text_grows_to_its_limit_and_no_further(void **state)
{
    (void)state;
    static char part[1 << 20];
    struct text t = {0};
    for (size_t i = 0; i < TEXT_MAX / sizeof part; i++)
        text_add(&t, part, sizeof part);
    assert_false(t.failed);
    assert_int_equal(t.size, TEXT_MAX);
    text_format(&t, "%d", 1);
    assert_true(t.failed);
    text_add(&t, "x", 1);
    assert_int_equal(t.size, TEXT_MAX);
    text_dispose(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_strings_are_escaped),
        cmocka_unit_test(what_is_not_utf8_becomes_the_replacement_character),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(text_grows_to_its_limit_and_no_further),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
