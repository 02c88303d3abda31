/* Header values with placeholders: what they give, what is refused, and that no record breaks out. */
#include "wire/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct template_names names = {"pi1/counter/cloud", "measured", true};

/* What it gives, with a NUL. It lies in memory of the size that it may need. */
static char *give(const char *text, const struct template_names *known, struct span record)
{
    struct header_template t;
    struct template_values values = {.id = span_text("msg_a0a1_42"),
                                     .number = 42,
                                     .timestamp_s = 1700000000,
                                     .attempt = 3,
                                     .record = record};
    assert_null(template_check(text, known));
    assert_int_equal(template_init(&t, text, known), 0);
    char *given = malloc(t.room + 1);
    size_t size = template_write(&t, &values, given);
    assert_true(size <= t.room);
    given[size] = '\0';
    template_dispose(&t);
    return given;
}

static void assert_gives(const char *text, struct span record, const char *expected)
{
    char *given = give(text, &names, record);
    assert_string_equal(given, expected);
    free(given);
}

static void placeholders_stand_for_what_they_say(void **state)
{
    (void)state;
    struct span record = span_text(
        "{\"kind\":\"alarm\",\"level\":7,\"on\":true,\"at\":{\"x\":[1, 2]},\"none\":null,\"a.b\":1}");
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"{id}", "msg_a0a1_42"},
        {"n={number}; t={timestamp}, {attempt}", "n=42; t=1700000000, 3"},
        {"{host}/{app}/{output}/{event}", "pi1/counter/cloud/measured"},
        {"{data.kind}-{data.level}", "alarm-7"},
        {"{data.on} {data.at}", "true {\"x\":[1, 2]}"},
        {"[{data.none}{data.missing}]", "[]"},
        {"{data.missing}", ""},
        {"{data.a.b}", "1"}, /* a name, not a path */
        {"{{id}", "{id}"},
        {"{{{id}}", "{msg_a0a1_42}"},
        {"{{", "{"},
        {"a } b", "a } b"},
        {"{{{{}}", "{{}}"},
        {"caf\xc3\xa9 100%", "caf\xc3\xa9 100%"}, /* the configuration's own bytes */
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++)
        assert_gives(cases[i][0], record, cases[i][1]);
}

static void records_that_are_no_objects_give_nothing(void **state)
{
    (void)state;
    static const char *const records[] = {"", "12", "[{\"a\":1}]", "{\"a\":", "not json", "\"a\""};
    for (unsigned i = 0; i < ARRAY_SIZE(records); i++)
        assert_gives("x{data.a}y", span_text(records[i]), "xy");
}

static void what_a_record_brings_is_escaped(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\"a\\r\\nX-Evil: 1\"", "a%0D%0AX-Evil: 1"},
        {"\"\\u0000\\u007f\\t\"", "%00%7F%09"},
        {"\"100%\"", "100%25"},
        {"\"caf\\u00e9 caf\xc3\xa9\"", "caf%C3%A9 caf%C3%A9"},
        {"\"\\ud83d\\ude00\"", "%F0%9F%98%80"},
        {"\"\\ud83d\"", "%EF%BF%BD"},
        {"\"\xff\"", "%FF"},
        {"[1,\r\n\t2]", "[1,%0D%0A%092]"},
        {"\"{id}\"", "{id}"}, /* no template itself */
        {"\"null\"", "null"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        char record[128] = "{\"a\":";
        strcat(strcat(record, cases[i][0]), "}");
        assert_gives("{data.a}", span_text(record), cases[i][1]);
    }
}

static void names_of_the_output_are_escaped(void **state)
{
    (void)state;
    struct template_names odd = {"h\xc3\xb6st/app/out", "50% more", false};
    char *given = give("{host} {event}", &odd, span_text("{}"));
    assert_string_equal(given, "h%C3%B6st 50%25 more");
    free(given);
}

static void no_byte_of_a_record_breaks_out(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        char object[32] = "{\"a\":[ ? ]}";
        *strchr(object, '?') = (char)byte;
        char *given = give("{data.a}", &names, span_of(object, strlen("{\"a\":[ ? ]}")));
        for (const char *at = given; *at; at++)
            assert_true(*at >= 0x20 && *at < 0x7f);
        free(given);
    }
}

static void what_a_member_gives_is_bounded_and_cut_between_characters(void **state)
{
    (void)state;
    static char record[4096];
    char *to = stpcpy(record, "{\"a\":\"x");
    for (unsigned i = 0; i < 1000; i++)
        to = stpcpy(to, "\xc3\xa9");
    stpcpy(to, "\"}");
    char *given = give("<{data.a}>", &names, span_text(record));
    size_t size = 1 + (TEMPLATE_MEMBER_MAX - 1) / 6 * 6; /* the x and all that go in whole */
    assert_int_equal(strlen(given), size + 2);
    assert_memory_equal(given, "<x%C3%A9", 8);
    assert_string_equal(given + size - 5, "%C3%A9>");
    free(given);
}

static void wrong_templates_are_named(void **state)
{
    (void)state;
    static char many[4 * TEMPLATE_PIECES_MAX + 16], longest[TEMPLATE_TEXT_MAX + 2], member[160];
    for (unsigned i = 0; i <= TEMPLATE_PIECES_MAX; i++)
        strcat(many, "{id}");
    memset(longest, 'x', TEMPLATE_TEXT_MAX + 1);
    strcpy(stpcpy(member, "{data."), "");
    memset(member + 6, 'm', TEMPLATE_NAME_MAX + 1);
    strcat(member, "}");
    static const struct template_names none = {NULL, NULL, false};
    const struct {
        const char *text;
        const struct template_names *names;
        const char *says;
    } cases[] = {
        {"", &names, "1 to 4096 bytes"},
        {" x", &names, "1 to 4096 bytes"},
        {"x ", &names, "1 to 4096 bytes"},
        {"a\r\nb", &names, "control bytes"},
        {"a\tb", &names, "control bytes"},
        {"a\x7f", &names, "control bytes"},
        {longest, &names, "1 to 4096 bytes"},
        {"{id", &names, "no '}'"},
        {"a{", &names, "no '}'"},
        {"{{{", &names, "no '}'"},
        {"{ID}", &names, "no such placeholder"},
        {"{}", &names, "no such placeholder"},
        {"{ id }", &names, "no such placeholder"},
        {"{data}", &names, "no such placeholder"},
        {"{data.}", &names, "1 to 128 bytes"},
        {member, &names, "1 to 128 bytes"},
        {many, &names, "more than 32"},
        {"{data.a}", &none, "mode = webhook"},
        {"{host}", &none, "does not have"},
        {"{event}", &none, "does not have"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *why = template_check(cases[i].text, cases[i].names);
        assert_non_null(why);
        assert_non_null(strstr(why, cases[i].says));
    }
    many[4 * TEMPLATE_PIECES_MAX] = longest[TEMPLATE_TEXT_MAX] = '\0';
    assert_null(template_check(many, &names));
    assert_null(template_check(longest, &names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placeholders_stand_for_what_they_say),
        cmocka_unit_test(records_that_are_no_objects_give_nothing),
        cmocka_unit_test(what_a_record_brings_is_escaped),
        cmocka_unit_test(names_of_the_output_are_escaped),
        cmocka_unit_test(no_byte_of_a_record_breaks_out),
        cmocka_unit_test(what_a_member_gives_is_bounded_and_cut_between_characters),
        cmocka_unit_test(wrong_templates_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
