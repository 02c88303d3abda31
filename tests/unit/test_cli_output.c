/* `pure-host output`: what it asks a host for, and what it makes of the answers. */
#include "tests/unit/cli_drive.h"

static int change(const char *reply, const char *wanted, char *said, const char *verb, const char *output)
{
    return run_against(reply, wanted, said, 1000, "output", verb, output, NULL);
}

static void an_output_is_enabled_and_disabled(void **state)
{
    (void)state;
    char said[1000];
    assert_int_equal(change("HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n"
                            "{\"output\":\"a.o\",\"disabled\":false}",
                            "POST /outputs/a.o/enable HTTP/1.1\r\n", said, "enable", "a.o"),
                     CLI_DONE);
    assert_string_equal(said, "a.o is enabled\n");
    assert_int_equal(change("HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\n"
                            "{\"output\":\"a.o\",\"disabled\":true}",
                            "POST /outputs/a.o/disable HTTP/1.1\r\n", said, "disable", "a.o"),
                     CLI_DONE);
    assert_string_equal(said, "a.o is disabled\n");
}

static void what_is_refused_says_why(void **state)
{
    (void)state;
    char said[1000];
    assert_int_equal(change("HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nno wire",
                            "/outputs/a.o/enable", said, "enable", "a.o"),
                     CLI_FAILED);
    assert_non_null(strstr(said, "no wire: pure-host status lists the outputs"));
    assert_int_equal(change("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "/outputs/a.o/enable", said,
                            "enable", "a.o"),
                     CLI_FAILED);
    assert_string_equal(said, "pure-host: the host's answer does not say how the output is now\n");
}

static void wrong_words_are_named_without_asking(void **state)
{
    (void)state;
    char said[1000];
    struct fake fake = {0};
    assert_int_equal(run(&fake, said, sizeof said, WORDS("output", "enabel", "a.o")), CLI_USAGE);
    assert_string_equal(said, "pure-host: unknown 'output enabel': did you mean 'output enable'?\n");
    assert_int_equal(run(&fake, said, sizeof said, WORDS("output", "stop", "a.o")), CLI_USAGE);
    assert_string_equal(said, "pure-host: unknown 'output stop': known are enable and disable\n");
    assert_int_equal(run(&fake, said, sizeof said, WORDS("output", "enable", "a")), CLI_USAGE);
    assert_non_null(strstr(said, "an output's name is APP.OUTPUT"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_is_enabled_and_disabled),
        cmocka_unit_test(what_is_refused_says_why),
        cmocka_unit_test(wrong_words_are_named_without_asking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
