/* `pure-host dead`: what it asks a host for, and what it makes of the answers. */
#include "tests/unit/cli_drive.h"

/* A reply with a body. */
static const char *reply(char *text, size_t size, const char *body)
{
    snprintf(text, size, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    return text;
}

#define DEAD(number, reason) \
    "{\"number\":" #number ",\"time_ms\":1791547200123,\"reason\":\"" reason "\",\"bytes\":120}"
#define HEAD "NUMBER       SET ASIDE                     BYTES  REASON\n"

static int list(const char *body, const char *wanted, char *said, size_t size, const char *range)
{
    char text[2000];
    return run_against(reply(text, sizeof text, body), wanted, said, size, "dead", "list", "a.o", range);
}

static void a_list_is_a_table_with_a_line_a_dead_letter(void **state)
{
    (void)state;
    char said[2000];
    int status =
        list("{\"dead\":[" DEAD(5, "404: no such hook") "," DEAD(17, "esc\\u001b[1m") "],\"more\":false}",
             "GET /outputs/a.o/dead?from=1 HTTP/1.1\r\n", said, sizeof said, NULL);
    assert_string_equal(said, HEAD "5            2026-10-09T12:00:00.123Z        120  404: no such hook\n"
                                   "17           2026-10-09T12:00:00.123Z        120  esc?[1m\n");
    assert_int_equal(status, CLI_DONE);
}

static void a_list_goes_on_where_the_last_page_ended(void **state)
{
    (void)state;
    char said[2000], second[500];
    then_answer = reply(second, sizeof second, "{\"dead\":[" DEAD(7, "b") "],\"more\":false}");
    then_wanted = "/outputs/a.o/dead?from=6 ";
    int status = list("{\"dead\":[" DEAD(5, "a") "],\"more\":true}", "?from=1 ", said, sizeof said, NULL);
    then_answer = NULL;
    assert_string_equal(said, HEAD "5            2026-10-09T12:00:00.123Z        120  a\n"
                                   "7            2026-10-09T12:00:00.123Z        120  b\n");
    assert_int_equal(status, CLI_DONE);
}

/* Numbers beyond are neither shown nor asked for. */
static void a_list_of_a_range_ends_with_it(void **state)
{
    (void)state;
    char said[2000];
    static const char *const pages[] = {
        "{\"dead\":[" DEAD(5, "a") "," DEAD(9, "b") "," DEAD(10, "c") "],\"more\":true}",
        "{\"dead\":[" DEAD(5, "a") "," DEAD(9, "b") "],\"more\":true}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        assert_int_equal(list(pages[i], "?from=5 ", said, sizeof said, "5-9"), CLI_DONE);
        assert_non_null(strstr(said, "\n9 "));
        assert_null(strstr(said, "\n10 "));
    }
    assert_int_equal(list(pages[0], "?from=5 ", said, sizeof said, "5"), CLI_DONE);
    assert_null(strstr(said, "\n9 "));
}

static void a_list_of_none_says_so(void **state)
{
    (void)state;
    char said[2000];
    assert_int_equal(list("{\"dead\":[],\"more\":false}", "?from=1 ", said, sizeof said, NULL), CLI_DONE);
    assert_string_equal(said, "a.o has no dead letters\n");
    assert_int_equal(list("{\"dead\":[],\"more\":false}", "?from=8 ", said, sizeof said, "8"), CLI_DONE);
    assert_string_equal(said, "a.o has no dead letters in 8\n");
}

static void a_list_in_json_is_a_line_a_dead_letter(void **state)
{
    (void)state;
    char text[500], url[64], said[1000];
    uint16_t port;
    int child_status;
    struct fake fake = {0};
    pid_t child =
        serve(reply(text, sizeof text, "{\"dead\":[" DEAD(5, "a") ", " DEAD(6, "b") "],\"more\":false}"),
              &port, "\r\n\r\n");
    snprintf(url, sizeof url, "--url=http://127.0.0.1:%u", port);
    assert_int_equal(run(&fake, said, sizeof said, WORDS("dead", "list", "--json", url, "a.o")), CLI_DONE);
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_string_equal(said, DEAD(5, "a") "\n" DEAD(6, "b") "\n");
}

/* A host that answers so would be asked for ever. */
static void a_list_that_does_not_go_on_is_a_failure(void **state)
{
    (void)state;
    static const char *const pages[] = {
        "{\"dead\":[],\"more\":true}",
        "{\"dead\":[" DEAD(5, "a") "," DEAD(5, "a") "],\"more\":false}",
        "{\"dead\":[" DEAD(18446744073709551615, "a") "],\"more\":true}",
        "{\"dead\":[{\"number\":-1}],\"more\":true}",
        "{\"dead\":[]}",
        "{}",
        "[]",
    };
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        char said[2000];
        assert_int_equal(list(pages[i], "?from=1 ", said, sizeof said, NULL), CLI_FAILED);
        assert_non_null(strstr(said, "pure-host: the host's answer is not a list of dead letters\n"));
    }
}

static void replay_and_drop_say_how_many(void **state)
{
    (void)state;
    char text[500], said[1000];
    assert_int_equal(run_against(reply(text, sizeof text, "{\"replayed\":3}"), "Content-Length: 3\r\n\r\n5-9",
                                 said, sizeof said, "dead", "replay", "a.o", "5-9"),
                     CLI_DONE);
    assert_string_equal(said, "3 replayed\n");
    assert_int_equal(run_against(reply(text, sizeof text, "{\"replayed\":0}"), "\r\n\r\nall", said,
                                 sizeof said, "dead", "replay", "a.o", NULL),
                     CLI_DONE);
    assert_string_equal(said, "0 replayed\n");
    assert_int_equal(run_against(reply(text, sizeof text, "{\"dropped\":1}"), "\r\n\r\n7", said, sizeof said,
                                 "dead", "drop", "a.o", "7"),
                     CLI_DONE);
    assert_string_equal(said, "1 dropped\n");
}

static void a_large_range_is_changed_part_by_part(void **state)
{
    (void)state;
    char text[500], second[500], said[1000];
    then_answer = reply(second, sizeof second, "{\"replayed\":2,\"failed\":[1300,1301]}");
    then_wanted = "\r\n\r\n1205-18446744073709551615";
    int status = run_against(reply(text, sizeof text, "{\"replayed\":1000,\"next\":1205}"), "\r\n\r\nall",
                             said, sizeof said, "dead", "replay", "a.o", NULL);
    then_answer = NULL;
    assert_non_null(strstr(said, "1002 replayed\n"));
    assert_non_null(strstr(said, "pure-host: 1300 could not be replayed: see the host's log\n"));
    assert_non_null(strstr(said, "pure-host: 1301 could not be replayed"));
    assert_int_equal(status, CLI_FAILED);
    assert_int_equal(run_against(reply(text, sizeof text, "{\"dropped\":1,\"next\":0}"), "\r\n\r\nall", said,
                                 sizeof said, "dead", "drop", "a.o", "all"),
                     CLI_FAILED);
    assert_non_null(strstr(said, "pure-host: the host's answer does not go on\n"));
}

static void what_is_named_and_not_there_is_a_failure(void **state)
{
    (void)state;
    char text[500], said[1000];
    assert_int_equal(run_against(reply(text, sizeof text, "{\"dropped\":0}"),
                                 "POST /outputs/a.o/dead/drop HTTP", said, sizeof said, "dead", "drop", "a.o",
                                 "7"),
                     CLI_FAILED);
    assert_non_null(strstr(
        said, "pure-host: a.o has no dead letters in 7: see pure-host dead list --url http://127.0.0.1:"));
    assert_non_null(strstr(said, " a.o\n"));
    assert_int_equal(
        run_against("HTTP/1.1 404 Not Found\r\nContent-Length: 26\r\n\r\n{\"error\":\"no such output\"}\n",
                    "\r\n\r\n", said, sizeof said, "dead", "replay", "a.o", NULL),
        CLI_FAILED);
    assert_string_equal(
        said, "pure-host: the host answered 404 no such output: pure-host status lists the outputs\n");
    assert_int_equal(run_against(reply(text, sizeof text, "{}"), "\r\n\r\n", said, sizeof said, "dead",
                                 "replay", "a.o", NULL),
                     CLI_FAILED);
    assert_string_equal(said, "pure-host: the host's answer does not say how many were replayed\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_a_table_with_a_line_a_dead_letter),
        cmocka_unit_test(a_list_goes_on_where_the_last_page_ended),
        cmocka_unit_test(a_list_of_a_range_ends_with_it),
        cmocka_unit_test(a_list_of_none_says_so),
        cmocka_unit_test(a_list_in_json_is_a_line_a_dead_letter),
        cmocka_unit_test(a_list_that_does_not_go_on_is_a_failure),
        cmocka_unit_test(replay_and_drop_say_how_many),
        cmocka_unit_test(a_large_range_is_changed_part_by_part),
        cmocka_unit_test(what_is_named_and_not_there_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
