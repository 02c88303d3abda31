/* `pure-host app`: what it asks a running host for, and what it does to the store of one that does not run.
 */
#include "tests/unit/cli_drive.h"
#include "host/turn_mark.h"
#include "tests/unit/temp_directory.h"

#include <signal.h>

static int resume(const char *reply, char *said, const char *app)
{
    return run_against(reply, "POST /apps/a/resume HTTP/1.1\r\n", said, 1000, "app", "resume", app, NULL);
}

static void a_running_host_is_asked_to_forget(void **state)
{
    (void)state;
    char said[1000];
    assert_int_equal(resume("HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"resumed\":true}", said, "a"),
                     CLI_DONE);
    assert_string_equal(said, "a is resumed: restart the host to load it\n");
}

static void what_is_refused_says_why(void **state)
{
    (void)state;
    char said[1000];
    assert_int_equal(
        resume("HTTP/1.1 409 Conflict\r\nContent-Length: 18\r\n\r\n{\"error\":\"no one\"}", said, "a"),
        CLI_FAILED);
    assert_string_equal(said, "pure-host: the host answered 409 no one\n");
    assert_int_equal(resume("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", said, "a"), CLI_FAILED);
    assert_non_null(strstr(said, ": pure-host status lists the apps\n"));
}

static void wrong_words_are_named_without_asking(void **state)
{
    (void)state;
    char said[1000];
    struct fake fake = {0};
    assert_int_equal(run(&fake, said, sizeof said, WORDS("app", "resmue", "a")), CLI_USAGE);
    assert_string_equal(said, "pure-host: unknown 'app resmue': did you mean 'app resume'?\n");
    assert_int_equal(run(&fake, said, sizeof said, WORDS("app", "stop", "a")), CLI_USAGE);
    assert_string_equal(said, "pure-host: unknown 'app stop': known is resume\n");
    assert_int_equal(run(&fake, said, sizeof said, WORDS("app", "resume", "a.b")), CLI_USAGE);
    assert_non_null(strstr(said, "an app's name is 1 to"));
}

static void the_store_of_a_host_that_does_not_run_forgets_too(void **state)
{
    (void)state;
    char said[1000], path[100], text[300], store[64];
    struct fake fake = {0};
    struct turn_mark mark;
    struct mark_app app = {.name = "a"};
    int fd = temp_directory();
    snprintf(store, sizeof store, "/proc/self/fd/%d", fd);
    snprintf(path, sizeof path, "%s/host.conf", store);
    snprintf(text, sizeof text, "[host]\nstore = %s/\n[app a]\nmodule = ./none.so\n", store);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    assert_int_equal(run(&fake, said, sizeof said, WORDS("app", "resume", "-c", path, "a")), CLI_FAILED);
    assert_string_equal(said, "pure-host: no deaths of a are counted: nothing to resume\n");
    assert_int_equal(mark_open(&mark, store, &app, 1), 0);
    mark_note(&mark, 0, SIGSEGV);
    mark_close(&mark);
    assert_int_equal(mark_peek(store, &app), 1);
    assert_int_equal(run(&fake, said, sizeof said, WORDS("app", "resume", "-c", path, "b")), CLI_USAGE);
    assert_non_null(strstr(said, "has no [app b]"));
    assert_int_equal(run(&fake, said, sizeof said, WORDS("app", "resume", "-c", path, "a")), CLI_DONE);
    assert_string_equal(said, "a is resumed\n");
    assert_int_equal(mark_peek(store, &app), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_host_is_asked_to_forget),
        cmocka_unit_test(what_is_refused_says_why),
        cmocka_unit_test(wrong_words_are_named_without_asking),
        cmocka_unit_test(the_store_of_a_host_that_does_not_run_forgets_too),
    };
    temp_make();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
