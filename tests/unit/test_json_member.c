/* Members of JSON objects: where they are, what is no JSON, what values say. */
#include "wire/json_member.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static int find(const char *json, const char *name, struct span *value)
{
    return json_member(span_text(json), span_text(name), value);
}

static void a_member_is_found_wherever_it_stands(void **state)
{
    (void)state;
    static const struct {
        const char *json, *name, *value;
    } cases[] = {
        {"{\"a\":1}", "a", "1"},
        {" {\n\t\"a\" :\r 1 } ", "a", "1"},
        {"{\"a\":1,\"b\":2,\"c\":3}", "b", "2"},
        {"{\"a\":-1.5e+3,\"b\":true}", "a", "-1.5e+3"},
        {"{\"a\":null}", "a", "null"},
        {"{\"a\":\"\"}", "a", "\"\""},
        {"{\"a\":\"x\\\"y\\\\\",\"b\":2}", "a", "\"x\\\"y\\\\\""},
        {"{\"a\":\"x\\\\\",\"b\":2}", "b", "2"},
        {"{\"\":7}", "", "7"},
        {"{\"x\":{\"a\":1,\"t\":\"}\"},\"a\":2}", "a", "2"}, /* the top level's own */
        {"{\"x\":[[\"]\",{}],{\"a\":[1]}],\"a\":[2, 3 ]}", "a", "[2, 3 ]"},
        {"{\"a\":{\"b\":{}}}", "a", "{\"b\":{}}"},
        {"{\"a\":1,\"a\":2}", "a", "1"}, /* the first */
        {"{\"\\u0061\":1}", "a", "1"},
        {"{\"\\ud83d\\ude00\":1}", "\xf0\x9f\x98\x80", "1"},
        {"{\"\xc3\xa9\":1}", "\xc3\xa9", "1"},
        {"{\"a\\/b\":1}", "a/b", "1"},
        {"{\"ab\":1,\"a\":2}", "a", "2"},
        {"{\"a\":2,\"ab\":1}", "ab", "1"},
        {"{\"a\":1,", "a", "1"}, /* what comes behind it is not looked at */
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct span value;
        assert_int_equal(find(cases[i].json, cases[i].name, &value), 0);
        assert_int_equal(value.size, strlen(cases[i].value));
        assert_memory_equal(value.data, cases[i].value, value.size);
    }
}

static void what_is_not_there_is_not_found(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "{}", " { } ", "{\"A\":1}", "{\"aa\":1}", "{\"x\":\"a\"}", "{\"x\":{\"a\":1}}", "{\"b\":1}trailing",
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct span value;
        assert_int_equal(find(cases[i], "a", &value), -ENOENT);
    }
}

static void what_is_no_object_is_malformed(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        " ",
        "a",
        "[\"a\",1]",
        "\"a\"",
        "{",
        "{\"",
        "{\"a",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":\"1",
        "{\"a\":\"1\\",
        "{\"a\":[1",
        "{\"a\":[1}",
        "{\"a\":,",
        "{\"a\" 1}",
        "{a:1}",
        "{'a':1}",
        "{\"x\":1 \"a\":2}",
        "{\"x\":1,}",
        "{,\"a\":1}",
        "{\"x\":\"\n\",\"a\":1}",
        "{\"x\":\"\\q\",\"a\":1}",
        "{\"x\":\"\\u12g4\",\"a\":1}",
        "{\"x\":\"\\u123",
        "{\"a\":1]",
        "{\"a\":1 2}",
        "{\"x\":[\"\\q\"],\"a\":1}",
        "\xef\xbb\xbf{\"a\":1}",
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        /* in memory of its own size: a sanitizer sees each byte read behind it */
        size_t size = strlen(cases[i]);
        uint8_t *exact = malloc(size + (size == 0));
        struct span value;
        memcpy(exact, cases[i], size);
        assert_int_equal(json_member(span_of(exact, size), span_text("a"), &value), PE_MALFORMED);
        free(exact);
    }
    struct span value;
    static const uint8_t nul[] = "{\"x\":\"\\\0\",\"a\":1}";
    assert_int_equal(json_member(span_of(nul, sizeof nul - 1), span_text("a"), &value), PE_MALFORMED);
}

/* A prefix has the same member, or is malformed: never another value. */
static void every_prefix_is_malformed_until_the_member_is_whole(void **state)
{
    (void)state;
    static const char json[] = "{\"x\":[{\"a\":0}],\"\\u0061b\":\"\\ud83d\\ude00\\n\",\"a\":12 ,\"z\":null}";
    size_t whole = (size_t)(strstr(json, " ,") - json) + 2;
    for (size_t size = 0; size < sizeof json; size++) {
        uint8_t *exact = malloc(size + 1);
        struct span value;
        memcpy(exact, json, size);
        int error = json_member(span_of(exact, size), span_text("a"), &value);
        assert_int_equal(error, size >= whole ? 0 : PE_MALFORMED);
        if (error == 0)
            assert_true(span_is(value, "12"));
        free(exact);
    }
}

static void depth_costs_nothing(void **state)
{
    (void)state;
    size_t depth = 1 << 20;
    char *json = malloc(2 * depth + 32), *to = json;
    to = stpcpy(to, "{\"x\":");
    to = mempcpy(to, memset(to, '[', depth), depth);
    to = mempcpy(to, memset(to, ']', depth), depth);
    stpcpy(to, ",\"a\":1}");
    struct span value;
    assert_int_equal(find(json, "a", &value), 0);
    assert_true(span_is(value, "1"));
    free(json);
}

static void a_value_says_what_its_escapes_mean(void **state)
{
    (void)state;
    static const struct {
        const char *value, *says;
    } cases[] = {
        {"\"\"", ""},
        {"12.50", "12.50"},
        {"true", "true"},
        {"{\"a\": \"\\u0061\"}", "{\"a\": \"\\u0061\"}"},
        {"\"plain\"", "plain"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\"\\ud83d\"", "\xef\xbf\xbd"},
        {"\"\\ude00x\"", "\xef\xbf\xbdx"},
        {"\"\\ud83d\\u0041\"", "\xef\xbf\xbd\x41"},
        {"\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
        {"\"\\ud83d\\n\"", "\xef\xbf\xbd\n"},
        {"\"\xc3\xa9\xff\xc3\"", "\xc3\xa9\xff\xc3"}, /* not UTF-8: as it is */
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t text[64];
        size_t size = json_text_copy(span_text(cases[i].value), text, sizeof text);
        assert_int_equal(size, strlen(cases[i].says));
        assert_memory_equal(text, cases[i].says, size);
    }
    struct span nul = span_text("\"\\u0000\"");
    uint8_t text[4] = "xx";
    assert_int_equal(json_text_copy(nul, text, sizeof text), 1);
    assert_memory_equal(text, "\0x", 2);
}

static void a_copy_ends_between_characters(void **state)
{
    (void)state;
    struct span value = span_text("\"a\xc3\xa9\\u20ac\"");
    static const size_t sizes[] = {0, 1, 1, 3, 3, 3, 6, 6};
    for (size_t room = 0; room < ARRAY_SIZE(sizes); room++) {
        uint8_t text[8];
        memset(text, '#', sizeof text);
        assert_int_equal(json_text_copy(value, text, room), sizes[room]);
        if (room < sizeof text)
            assert_int_equal(text[room], '#');
    }
}

static void equal_values_have_equal_hashes(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"\"a\"", "\"\\u0061\"", true},
        {"\"a\"", "\"b\"", false},
        {"1", "\"1\"", false},
        {"1", "1", true},
        {"1", "1.0", false},
        {"\"\"", "\"\\u0000\"", false},
        {"\"ab\"", "\"ba\"", false},
        {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"", true},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(json_text_hash(span_text(cases[i].a)) == json_text_hash(span_text(cases[i].b)),
                         cases[i].same);
}

/* Of 4096 keys that differ in their last digits, no slot of 64 gets more than its share three times over. */
static void hashes_spread_over_small_tables(void **state)
{
    (void)state;
    unsigned slots[64] = {0};
    for (unsigned i = 0; i < 4096; i++) {
        char value[32];
        snprintf(value, sizeof value, "\"customer-%u\"", i);
        unsigned *slot = &slots[json_text_hash(span_text(value)) % ARRAY_SIZE(slots)];
        assert_true(++*slot <= 3 * 4096 / ARRAY_SIZE(slots));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_is_found_wherever_it_stands),
        cmocka_unit_test(what_is_not_there_is_not_found),
        cmocka_unit_test(what_is_no_object_is_malformed),
        cmocka_unit_test(every_prefix_is_malformed_until_the_member_is_whole),
        cmocka_unit_test(depth_costs_nothing),
        cmocka_unit_test(a_value_says_what_its_escapes_mean),
        cmocka_unit_test(a_copy_ends_between_characters),
        cmocka_unit_test(equal_values_have_equal_hashes),
        cmocka_unit_test(hashes_spread_over_small_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
