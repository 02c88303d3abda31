/* The command line: arguments and exit statuses, `check`, the screen of `status`, and the client. */
#include "host/check.h"
#include "host/cli.h"
#include "host/cli_http.h"
#include "host/cli_json.h"
#include "host/cli_status.h"
#include "tests/unit/cli_drive.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* --- check --- */

static struct check_result check_text(struct fake *fake, const char *text, char *said, size_t size)
{
    struct host_options options = fake_options(fake);
    struct config config;
    char error[512];
    assert_int_equal(config_load_text(&config, "x.conf", span_text(text), error, sizeof(error)), 0);
    memset(said, 0, size);
    FILE *out = fmemopen(said, size, "w");
    struct check_result result = check_config(&config, &options, out);
    fclose(out);
    config_dispose(&config);
    assert_int_equal(fake->loaded, 0);
    assert_int_equal(fake->opened, 0);
    return result;
}

static void check_finds_nothing_wrong_with_what_is_right(void **state)
{
    (void)state;
    struct fake fake = {0};
    char said[2000];
    struct check_result result =
        check_text(&fake, "[app a]\nmodule=./a\n[output a.log]\ninner=a\n", said, sizeof(said));
    assert_int_equal(result.problems, 0);
    assert_false(result.kernel);
    assert_string_equal(said, "");
}

static void check_names_each_problem_with_its_line(void **state)
{
    (void)state;
    struct fake fake = {.kernel_refuses = true};
    char said[2000];
    struct check_result result = check_text(&fake,
                                            "[app a]\nmodule=./a\narg=bad\n[app b]\nmodule=./missing.so\n"
                                            "[output a.cluod]\ninner=a\n[output a.elsewhere]\ninner=a\n",
                                            said, sizeof(said));
    assert_int_equal(result.problems, 4);
    assert_true(result.kernel);
    assert_string_equal(
        said,
        "pure-host: x.conf:6: [output a.cluod]: the module has no output 'cluod': did you mean 'cloud'?\n"
        "pure-host: x.conf:8: [output a.elsewhere]: the module has no output 'elsewhere': known are log, "
        "cloud\n"
        "pure-host: x.conf:3: [app a]: the app does not open: arg is bad\n"
        "pure-host: x.conf:5: [app b]: the module cannot be used: it is not there\n"
        "pure-host: the kernel: io_uring is switched off\n");
}

static void check_reads_the_host_s_key_and_names_its_line(void **state)
{
    (void)state;
    struct fake fake = {0};
    char said[2000];
    struct check_result result = check_text(
        &fake, "[host]\nkey = /nonexistent/host.key\n[app a]\nmodule=./missing\n", said, sizeof(said));
    assert_int_equal(result.problems, 2);
    assert_string_equal(said,
                        "pure-host: x.conf:2: key: /nonexistent/host.key: cannot be read: No such file or "
                        "directory: make a key with 'pure-host key new FILE'\n"
                        "pure-host: x.conf:4: [app a]: the module cannot be used: it is not there\n");
}

/* --- arguments and exit statuses --- */

static const struct {
    const char *words[6];
    int status;
    const char *said;
} usages[] = {
    {{NULL}, CLI_USAGE, "pure-host: no command: see pure-host --help\n"},
    {{"rnu"}, CLI_USAGE, "pure-host: unknown command 'rnu': did you mean 'run'?\n"},
    {{"frobnicate"}, CLI_USAGE, "pure-host: unknown command 'frobnicate': see pure-host --help\n"},
    {{"--version"}, CLI_DONE, "pure-host " PURE_VERSION "\n"},
    {{"status", "--version"}, CLI_DONE, "pure-host " PURE_VERSION "\n"},
    {{"run"}, CLI_USAGE, "pure-host: usage: pure-host run -c FILE\n"},
    {{"run", "-c"}, CLI_USAGE, "pure-host: -c needs a FILE\n"},
    {{"run", "--url=http://h/"},
     CLI_USAGE,
     "pure-host: unknown option '--url=http://h/': usage: pure-host run -c FILE\n"},
    {{"run", "x"}, CLI_USAGE, "pure-host: unexpected 'x': usage: pure-host run -c FILE\n"},
    {{"run", "-c", "/nonexistent"},
     CLI_USAGE,
     "pure-host: /nonexistent: cannot be read: No such file or directory\n"},
    {{"check", "-c", "/nonexistent"},
     CLI_USAGE,
     "pure-host: /nonexistent: cannot be read: No such file or directory\n"},
    {{"status", "-c", "x", "--url=y"}, CLI_USAGE, "pure-host: -c and --url exclude each other\n"},
    {{"status", "--ca", "x"}, CLI_USAGE, "pure-host: --ca is for --url https://...\n"},
    {{"status", "--ca=x", "--url=http://h/"}, CLI_USAGE, "pure-host: --ca is for https URLs\n"},
    {{"status", "--ca=/nonexistent", "--url=https://h/"},
     CLI_USAGE,
     "pure-host: /nonexistent: No such file or directory\n"},
    {{"status", "--url", "https://h/?x"},
     CLI_USAGE,
     "pure-host: the URL needs to be an http or https one without a query, such as http://127.0.0.1:7070\n"},
    {{"send", "a"},
     CLI_USAGE,
     "pure-host: usage: pure-host send [-c FILE | --url URL [--ca FILE]] APP EVENT [DATA | -]\n"},
    {{"send", "a", "e", "-5"},
     CLI_USAGE,
     "pure-host: unknown option '-5': usage: pure-host send [-c FILE | --url URL [--ca FILE]] APP EVENT "
     "[DATA | -]; "
     "\"--\" goes before what begins with '-' and is none\n"},
    {{"status", "--url", "foo"},
     CLI_USAGE,
     "pure-host: the URL needs to be an http or https one without a query, such as http://127.0.0.1:7070\n"},
    {{"key"}, CLI_USAGE, "pure-host: usage: pure-host key new FILE | key show FILE\n"},
    {{"key", "new"}, CLI_USAGE, "pure-host: usage: pure-host key new FILE | key show FILE\n"},
    {{"key", "new", "a", "b"},
     CLI_USAGE,
     "pure-host: unexpected 'b': usage: pure-host key new FILE | key show FILE\n"},
    {{"key", "shwo", "k"}, CLI_USAGE, "pure-host: unknown 'key shwo': did you mean 'key show'?\n"},
    {{"key", "remove", "k"},
     CLI_USAGE,
     "pure-host: unknown 'key remove': known are key new FILE and key show FILE\n"},
    {{"key", "show", "/nonexistent"},
     CLI_FAILED,
     "pure-host: /nonexistent: cannot be read: No such file or directory: make a key with 'pure-host key new "
     "FILE'\n"},
    {{"log", "a"},
     CLI_USAGE,
     "pure-host: usage: pure-host log [--from N] [--full] [--json] -c FILE | --store DIR APP\n"},
    {{"log", "a", "-c", "x", "--store=y"}, CLI_USAGE, "pure-host: -c and --store exclude each other\n"},
    {{"log", "a", "--store="}, CLI_USAGE, "pure-host: --store needs a directory\n"},
    {{"log", "a", "--store=y", "--from", "x"},
     CLI_USAGE,
     "pure-host: --from x: needs the number of an event\n"},
    {{"log", "a", "--store=y", "--from"}, CLI_USAGE, "pure-host: --from needs a number\n"},
    {{"log", "a.b", "--store=y"},
     CLI_USAGE,
     "pure-host: an app's name is 1 to 63 letters, digits, '-' or '_'\n"},
    {{"fsck"}, CLI_USAGE, "pure-host: usage: pure-host fsck [--repair] DIR\n"},
    {{"fsck", "--json", "d"},
     CLI_USAGE,
     "pure-host: unknown option '--json': usage: pure-host fsck [--repair] DIR; \"--\" goes before what "
     "begins "
     "with '-' and is none\n"},
    {{"dead", "list"},
     CLI_USAGE,
     "pure-host: usage: pure-host dead list|replay|drop [--json] [-c FILE | --url URL [--ca FILE]] OUTPUT "
     "[RANGE]\n"},
    {{"dead", "lits", "a.o"}, CLI_USAGE, "pure-host: unknown 'dead lits': did you mean 'dead list'?\n"},
    {{"dead", "bury", "a.o"}, CLI_USAGE, "pure-host: unknown 'dead bury': known are list, replay and drop\n"},
    {{"dead", "list", "a"},
     CLI_USAGE,
     "pure-host: an output's name is APP.OUTPUT, both 1 to 63 letters, digits, '-' or '_'\n"},
    {{"dead", "list", "a.o.p"},
     CLI_USAGE,
     "pure-host: an output's name is APP.OUTPUT, both 1 to 63 letters, digits, '-' or '_'\n"},
    {{"dead", "list", "a.o", "0"},
     CLI_USAGE,
     "pure-host: '0' is no range: write a number, two as in 5-9, or all\n"},
    {{"dead", "replay", "a.o", "9-5"},
     CLI_USAGE,
     "pure-host: '9-5' is no range: write a number, two as in 5-9, or all\n"},
    {{"dead", "replay", "a.o", "5-"},
     CLI_USAGE,
     "pure-host: '5-' is no range: write a number, two as in 5-9, or all\n"},
    {{"dead", "replay", "a.o", "00000000000000000000000005"},
     CLI_USAGE,
     "pure-host: '00000000000000000000000005' is no range: write a number, two as in 5-9, or all\n"},
    {{"dead", "drop", "a.o"},
     CLI_USAGE,
     "pure-host: dead drop needs a range: what is dropped is gone: write a number, two as in 5-9, or all\n"},
    {{"send", "a/b", "e"}, CLI_USAGE, "pure-host: an app's name is 1 to 63 letters, digits, '-' or '_'\n"},
    {{"send", "a", "e\r\n"},
     CLI_USAGE,
     "pure-host: an event's name is 1 to 64 letters, digits, '-', '_', '.' or '~'\n"},
};

static void wrong_usage_is_one_line_and_status_2(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(usages); i++) {
        struct fake fake = {0};
        char said[2000];
        assert_int_equal(run(&fake, said, sizeof(said), usages[i].words), usages[i].status);
        assert_string_equal(said, usages[i].said);
    }
}

static void help_is_everywhere(void **state)
{
    (void)state;
    static const char *const commands[] = {"run",  "check", "key",  "status", "state",
                                           "send", "log",   "fsck", "dead"};
    struct fake fake = {0};
    char said[4000];
    assert_int_equal(run(&fake, said, sizeof(said), WORDS("--help")), CLI_DONE);
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        assert_non_null(strstr(said, commands[i]));
        char own[4000];
        assert_int_equal(run(&fake, own, sizeof(own), WORDS(commands[i], "--help")), CLI_DONE);
        assert_non_null(strstr(own, commands[i]));
        assert_non_null(strstr(own, "Exit status"));
    }
}

static void check_tells_of_all_problems_of_a_file_up_to_20(void **state)
{
    (void)state;
    struct fake fake = {0};
    char path[] = "test-cli-XXXXXX", said[8000], wanted[8000], many[2000] = "[host]\n";
    assert_int_equal(run_on_file(&fake, "check", "[host]\nhtpp = 1\nowners = 0\n[app a]\nmodule = ./a\n",
                                 path, said, sizeof(said)),
                     CLI_USAGE);
    snprintf(wanted, sizeof(wanted),
             "pure-host: %s:2: unknown key 'htpp' in [host]: did you mean 'http'?\n"
             "pure-host: %s:3: owners = 0: needs a whole number from 1 to 64\n",
             path, path);
    assert_string_equal(said, wanted);
    for (unsigned i = 0; i < 25; i++)
        strcat(many, "hello\n");
    char other[] = "test-cli-XXXXXX";
    unsigned lines = 0;
    assert_int_equal(run_on_file(&fake, "check", many, other, said, sizeof(said)), CLI_USAGE);
    for (const char *at = said; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 20);
    assert_non_null(strstr(said, ":21: neither"));
}

static void a_key_is_made_once_and_shown_as_often_as_wanted(void **state)
{
    (void)state;
    struct fake fake = {0};
    char directory[] = "test-cli-XXXXXX", path[64], made[500], shown[500], wanted[500];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/host.key", directory);
    assert_int_equal(run(&fake, made, sizeof(made), WORDS("key", "new", path)), CLI_DONE);
    assert_int_equal(strlen(made), 44 + 1);
    assert_int_equal(made[44], '\n');
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(run(&fake, shown, sizeof(shown), WORDS("key", "show", path)), CLI_DONE);
        assert_string_equal(shown, made);
    }
    snprintf(wanted, sizeof(wanted),
             "pure-host: %s: cannot be made: File exists: a key is never replaced: remove it first, or take "
             "another name\n",
             path);
    assert_int_equal(run(&fake, shown, sizeof(shown), WORDS("key", "new", path)), CLI_FAILED);
    assert_string_equal(shown, wanted);
    assert_int_equal(run(&fake, shown, sizeof(shown), WORDS("key", "show", path)), CLI_DONE);
    assert_string_equal(shown, made);
    unlink(path);
    assert_int_equal(rmdir(directory), 0);
}

/* One side of links without the other is right, and most likely forgotten. */
static void links_that_cannot_come_in_are_noted(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[host]\nlink = 127.0.0.1:7071\nkey = env:TEST_CLI_KEY\n[app a]\nmodule=./a\n",
        "[app a]\nmodule=./a\n[peer p]\nkey = tyh3glXGFJHtfP5aU7aEFtN6znLKrY1JvlnhOfgWz2g=\napps = a\n"};
    static const char *const notes[] = {":2: link: nobody may send here",
                                        ":3: [peer p]: nothing comes in over links"};
    struct fake fake = {0};
    setenv("TEST_CLI_KEY", "pure-host-private-key:rP0ZnVoGHzzuA/Wt7L1+CGwKkUBGelO8eG58mbiCIe4=", 1);
    for (unsigned i = 0; i < ARRAY_SIZE(texts); i++) {
        char config[] = "x-XXXXXX", said[1000];
        assert_int_equal(run_on_file(&fake, "check", texts[i], config, said, sizeof(said)), CLI_DONE);
        assert_non_null(strstr(said, "pure-host: note: "));
        assert_non_null(strstr(said, notes[i]));
        assert_non_null(strstr(said, " is right: "));
    }
    unsetenv("TEST_CLI_KEY");
}

static void a_mechanism_that_is_left_out_is_noted_by_name(void **state)
{
    (void)state;
    struct fake fake = {0};
    char config[] = "x-XXXXXX", none[] = "x-XXXXXX", said[1000];
    static const char some[] = "[host]\nwithout = share, early\n[app a]\nmodule=./a\n";
    static const char not_one[] = "[host]\nwithout = none\n[app a]\nmodule=./a\n";
    assert_int_equal(run_on_file(&fake, "check", some, config, said, sizeof(said)), CLI_DONE);
    assert_non_null(strstr(said, ": without = early, share: for experiments only"));
    assert_int_equal(run_on_file(&fake, "check", not_one, none, said, sizeof(said)), CLI_DONE);
    assert_null(strstr(said, "without"));
}

static void commands_go_to_the_address_of_the_configuration(void **state)
{
    (void)state;
    static const struct {
        const char *http, *goes_to;
    } cases[] = {
        {"127.0.0.2:17072", "127.0.0.2"}, {"10.1.2.3:80", "10.1.2.3"}, {"0.0.0.0:7070", "127.0.0.1"}};
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[200], error[200] = "", shown[INET_ADDRSTRLEN];
        struct config config;
        struct cli_endpoint endpoint;
        snprintf(text, sizeof(text), "[host]\nhttp = %s\ntoken = t\n[app a]\nmodule=./a\n", cases[i].http);
        config_load_text(&config, "c", span_text(text), error, sizeof(error));
        assert_string_equal(error, "");
        assert_int_equal(cli_endpoint_of_config(&endpoint, &config, error, sizeof(error)), 0);
        const struct sockaddr_in *address = (const struct sockaddr_in *)&endpoint.address;
        inet_ntop(AF_INET, &address->sin_addr, shown, sizeof(shown));
        assert_string_equal(shown, cases[i].goes_to);
        config_dispose(&config);
    }
}

static void without_plain_http_commands_are_told_how_to_ask(void **state)
{
    (void)state;
    struct fake fake = {0};
    char config[] = "test-cli-XXXXXX", said[1000], wanted[1000];
    assert_int_equal(run_on_file(&fake, "status",
                                 "[host]\nhttp = none\nhttps = 127.0.0.1:7443\nhttps_certificate = c\n"
                                 "https_key = k\n[app a]\nmodule=./a\n",
                                 config, said, sizeof(said)),
                     CLI_USAGE);
    snprintf(wanted, sizeof(wanted),
             "pure-host: %s: http = none, so --url https://NAME:PORT is needed, and --ca FILE if the CA of "
             "its certificate is none of the system's\n",
             config);
    assert_string_equal(said, wanted);
}

static void a_host_with_a_key_that_others_can_read_does_not_pass_the_check(void **state)
{
    (void)state;
    struct fake fake = {0};
    char directory[] = "test-cli-XXXXXX", key[64], config[64], said[1000], text[200], wanted[1000];
    assert_non_null(mkdtemp(directory));
    snprintf(key, sizeof(key), "%s/host.key", directory);
    snprintf(config, sizeof(config), "%s/x-XXXXXX", directory);
    assert_int_equal(run(&fake, said, sizeof(said), WORDS("key", "new", key)), CLI_DONE);
    snprintf(text, sizeof(text),
             "[host]\nlink = 127.0.0.1:7071\nkey = host.key\n[app a]\nmodule=./a\n[peer p]\nkey = "
             "%.44s\napps = a\n",
             said);
    assert_int_equal(run_on_file(&fake, "check", text, config, said, sizeof(said)), CLI_DONE);
    snprintf(wanted, sizeof(wanted), "%s is right: 1 app, 0 outputs, 1 peer\n", config);
    assert_string_equal(said, wanted);
    assert_int_equal(chmod(key, 0644), 0);
    snprintf(config, sizeof(config), "%s/x-XXXXXX", directory);
    assert_int_equal(run_on_file(&fake, "check", text, config, said, sizeof(said)), CLI_USAGE);
    snprintf(
        wanted, sizeof(wanted),
        "pure-host: %s:3: key: %s: others than its owner have access to it (mode 644): chmod 600 %s, and "
        "make a new key if one of them may have read it\n",
        config, key, key);
    assert_string_equal(said, wanted);
    unlink(key);
    assert_int_equal(rmdir(directory), 0);
}

static void a_host_that_does_not_open_tells_of_its_modules_too(void **state)
{
    (void)state;
    struct fake fake = {.kernel_refuses = true};
    char path[] = "test-cli-XXXXXX", said[2000], wanted[2000];
    assert_int_equal(run_on_file(&fake, "run", "[app a]\nmodule=./missing\n", path, said, sizeof(said)),
                     CLI_KERNEL);
    snprintf(wanted, sizeof(wanted),
             "pure-host: %s:2: [app a]: the module cannot be used: it is not there\n"
             "pure-host: io_uring is switched off\n",
             path);
    assert_string_equal(said, wanted);
}

static void check_ends_with_the_status_of_what_it_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool kernel_refuses;
        int status;
    } cases[] = {
        {"[app a]\nmodule=./a\n", false, CLI_DONE},
        {"[app a]\nmodule=./a\n", true, CLI_KERNEL},
        {"[app a]\nmodule=./missing\n", true, CLI_USAGE},
        {"[ap a]\n", false, CLI_USAGE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char path[] = "test-cli-XXXXXX", said[2000];
        struct fake fake = {.kernel_refuses = cases[i].kernel_refuses};
        assert_int_equal(run_on_file(&fake, "check", cases[i].text, path, said, sizeof(said)),
                         cases[i].status);
    }
}

/* --- the screen --- */

static const char *show(const char *json, char *screen, size_t size)
{
    memset(screen, 0, size);
    FILE *out = fmemopen(screen, size, "w");
    int error = cli_status_show(out, span_text(json), 10000000, "");
    fclose(out);
    return error < 0 ? "malformed" : screen;
}

static void a_status_is_two_tables_with_the_reasons_below_their_rows(void **state)
{
    (void)state;
    char screen[4000];
    assert_string_equal(
        show("{\"version\":\"0.1\", \"name\":\"pi\",\"uptime_s\":7200,\"connections\":3,\"apps\":["
             "{\"name\":\"a\",\"condition\":\"waiting\",\"waits_for\":\"big\",\"stored\":12345678,"
             "\"failures\":0,\"refused\":0,\"inbox_bytes\":1536,\"inbox_capacity\":4194304},"
             "{\"name\":\"bad\",\"condition\":\"suspended\",\"why\":\"x \\\"y\\\"\"}],\n \"outlets\":["
             "{\"app\":\"a\",\"output\":\"log\",\"kind\":\"inner\",\"state\":\"ok\",\"since_ms\":0,"
             "\"held_bytes\":0,\"held_records\":0,\"capacity\":4096,\"tries\":3,\"failures\":0},"
             "{\"app\":\"a\",\"output\":\"big\",\"kind\":\"wire\",\"state\":\"resting\",\"since_ms\":9700000,"
             "\"error\":\"refused\",\"held_bytes\":900,\"held_records\":9,\"capacity\":1000,\"stored\":1,"
             "\"requests\":4,\"failures_in_a_row\":3,\"failures\":3}]}",
             screen, sizeof(screen)),
        "pi: pure-host 0.1, up for 2h, connections: 3\n"
        "\n"
        "app     condition   stored   failed  refused  inbox     of\n"
        "a       waiting     12345k        0        0   1.5K     4M\n"
        "    waits for room in a.big, which is 81 % full\n"
        "bad     suspended        -        -        -      -      -\n"
        "    x \"y\"\n"
        "    Once its cause is gone, restart the host to try it again.\n"
        "\n"
        "output  kind   state      since  requests   stored   failed  records   held     of\n"
        "a.log   inner  ok             -         3        -        0        0      0     4K\n"
        "a.big   wire   resting     5min         4        1        3        9    900   1000\n"
        "    3 failures in a row: refused\n");
}

static void links_have_tables_of_their_own_below(void **state)
{
    (void)state;
    char screen[4000];
    assert_string_equal(
        show("{\"version\":\"0.1\",\"name\":\"pi\",\"uptime_s\":7200,\"connections\":3,"
             "\"front\":{\"http\":\"127.0.0.1:7070\",\"https\":\"0.0.0.0:7443\",\"certificate\":\"ok\","
             "\"handshakes\":12,\"failed_handshakes\":1},\"apps\":[],"
             "\"outlets\":[{\"app\":\"a\",\"output\":\"next\",\"kind\":\"link\",\"state\":\"ok\"}],"
             "\"links\":[{\"name\":\"pi2.local:7071\",\"rtt_ns\":8314159,\"packets\":12345678,\"lost\":12,"
             "\"received\":4711,\"handshakes\":3,\"window_bytes\":1572864,\"datagram_bytes\":65507,"
             "\"segmentation\":true},{\"name\":\"[fd00::2]:7071\",\"rtt_ns\":0}],"
             "\"listener\":{\"address\":\"0.0.0.0:7071\",\"peers\":2,\"datagrams\":120,\"dropped\":3,"
             "\"unopened\":0,\"sent\":40,\"send_errors\":1}}",
             screen, sizeof(screen)),
        "pi: pure-host 0.1, up for 2h, connections: 3\n"
        "https on 0.0.0.0:7443: certificate ok, handshakes: 12, failed: 1\n"
        "\n"
        "app             condition   stored   failed  refused  inbox     of\n"
        "\n"
        "output          kind   state      since  requests   stored   failed  records   held     of\n"
        "a.next          link   ok             -         -        -        -        -      -      -\n"
        "\n"
        "link                rtt  packets     lost  received  sessions  datagram  window\n"
        "pi2.local:7071   8.31ms   12345k       12      4711         3     65507    1.5M\n"
        "[fd00::2]:7071        -        -        -         -         -         -       -\n"
        "\n"
        "links in        peers  datagrams  dropped  unopened     sent   failed\n"
        "0.0.0.0:7071        2        120        3         0       40        1\n");
}

static void a_round_trip_is_shown_in_seven_columns(void **state)
{
    (void)state;
    static const struct {
        const char *ns, *shown;
    } cases[] = {
        {"999", " 0.000ms "},        {"52000", " 0.052ms "},       {"999999", " 0.999ms "},
        {"1000000", "  1.00ms "},    {"9999999", "  9.99ms "},     {"10000000", "    10ms "},
        {"9999999999", "  9999ms "}, {"10000000000", "     10s "}, {"18446744073709551615", "  99999d "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char json[200], screen[2000];
        snprintf(json, sizeof(json), "{\"links\":[{\"name\":\"h:1\",\"rtt_ns\":%s}]}", cases[i].ns);
        assert_non_null(strstr(show(json, screen, sizeof(screen)), cases[i].shown));
    }
}

static void a_wait_without_a_named_output_is_for_the_fullest(void **state)
{
    (void)state;
    char screen[4000];
    assert_non_null(strstr(show("{\"apps\":[{\"name\":\"a\",\"condition\":\"waiting\"}],\"outlets\":["
                                "{\"app\":\"b\",\"output\":\"o\",\"held_bytes\":100,\"capacity\":100},"
                                "{\"app\":\"a\",\"output\":\"x\",\"held_bytes\":99,\"capacity\":1000},"
                                "{\"app\":\"a\",\"output\":\"y\",\"held_bytes\":990,\"capacity\":1000},"
                                "{\"app\":\"a\",\"output\":\"z\",\"held_bytes\":98,\"capacity\":1000}]}",
                                screen, sizeof(screen)),
                           "waits for room in a.y, which is 90 % full"));
}

/* The longest names, numbers and reasons that a host can have. */
static void no_line_of_a_status_is_wider_than_the_screen(void **state)
{
    (void)state;
    char json[4000], screen[4000], name[CONFIG_NAME_MAX + 1], why[400];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    memset(why, 'w', sizeof(why) - 1);
    why[sizeof(why) - 1] = '\0';
    why[100] = why[150] = ' ';
    snprintf(
        json, sizeof(json),
        "{\"name\":\"%s\",\"version\":\"0.1.0\",\"uptime_s\":18446744073709551615,\"apps\":[{\"name\":\"%s\","
        "\"condition\":\"suspended\",\"why\":\"%s\",\"stored\":18446744073709551615,"
        "\"failures\":18446744073709551615,\"refused\":18446744073709551615,"
        "\"inbox_bytes\":4294967295,\"inbox_capacity\":1073741824}],\"outlets\":[{\"app\":\"%s\","
        "\"output\":\"%s\",\"kind\":\"inner\",\"state\":\"disabled\",\"since_ms\":1,\"error\":\"%s\","
        "\"held_bytes\":4294967295,\"held_records\":4294967295,\"capacity\":18446744073709551615,"
        "\"stored\":18446744073709551615,\"requests\":9999999,\"failures\":1},"
        "{\"app\":\"four-teen-byte\",\"output\":\"thirteen-byte\",\"kind\":\"inner\","
        "\"state\":\"disabled\",\"since_ms\":1}],\"links\":[{\"name\":\"%s:65535\","
        "\"rtt_ns\":18446744073709551615,\"packets\":9999999,\"lost\":9999999,\"received\":9999999,"
        "\"handshakes\":9999999,\"datagram_bytes\":65507,\"window_bytes\":18446744073709551615}],"
        "\"listener\":{\"address\":\"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535\",\"peers\":1024,"
        "\"datagrams\":9999999,\"dropped\":9999999,\"unopened\":9999999,\"sent\":9999999,"
        "\"send_errors\":9999999}}",
        name, name, why, name, name, why, name);
    show(json, screen, sizeof(screen));
    unsigned lines = 0;
    for (char *at = screen, *end; (end = strchr(at, '\n')); at = end + 1, lines++)
        assert_true(end - at <= CLI_STATUS_WIDTH || memcmp(at, name, CONFIG_NAME_MAX) == 0);
    assert_int_equal(lines, 29);
    assert_non_null(strstr(screen, "\nfour-teen-byte.thirteen-byte  inner  disabled"));
}

static void a_screen_shows_no_control_bytes(void **state)
{
    (void)state;
    char screen[1000];
    assert_non_null(
        strstr(show("{\"name\":\"\x1b[31m\\u001b\\n\"}", screen, sizeof(screen)), "?[31m??: pure-host -"));
}

static void what_is_not_json_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",    "{",     "[1",    "{\"a\"}", "{\"a\":}",    "{\"a\":1,}",
        "\"x", "[1,,]", "{a:1}", "1 2",     "{\"a\":\"\\", "[[[[[[[[[[1]]]]]]]]]]",
        "]",   "1",     "[1]",
    };
    char screen[200];
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_string_equal(show(texts[i], screen, sizeof(screen)), "malformed");
}

static void a_number_is_found_by_its_name(void **state)
{
    (void)state;
    uint64_t number = 0;
    struct span whole;
    assert_int_equal(cli_json_whole(span_text(" {\"x\":1, \"stored\" : 42} "), &whole), 0);
    assert_int_equal(cli_json_number(whole, "stored", &number), 0);
    assert_int_equal(number, 42);
    static const char *const without[] = {"{\"x\":1}", "{\"stored\":-1}", "{\"stored\":\"1\"}", "[1]", "7"};
    for (size_t i = 0; i < ARRAY_SIZE(without); i++) {
        assert_int_equal(cli_json_whole(span_text(without[i]), &whole), 0);
        assert_int_equal(cli_json_number(whole, "stored", &number), PE_MALFORMED);
    }
}

/* --- the client --- */

static void send_prints_the_stored_number(void **state)
{
    (void)state;
    char said[500];
    int status = run_against("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"stored\":17}", "\r\n\r\nfive",
                             said, sizeof(said), "send", "a", "e", "five");
    assert_string_equal(said, "17\n");
    assert_int_equal(status, CLI_DONE);
}

static void a_token_of_the_environment_is_sent(void **state)
{
    (void)state;
    char said[500];
    setenv("PURE_HOST_TOKEN", "s3cret", 1);
    int status =
        run_against("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", "Authorization: Bearer s3cret\r\n\r\n",
                    said, sizeof(said), "state", "a", NULL, NULL);
    assert_int_equal(status, CLI_DONE);
    setenv("PURE_HOST_TOKEN", "s3cret\r\nX: y", 1);
    struct fake fake = {0};
    assert_int_equal(run(&fake, said, sizeof(said), WORDS("status")), CLI_USAGE);
    assert_null(strstr(said, "s3cret"));
    unsetenv("PURE_HOST_TOKEN");
}

static void a_refusal_is_one_line_with_the_remedy(void **state)
{
    (void)state;
    char said[500];
    int status = run_against("HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\nfull\x1b[1m\nx", "\r\n\r\n",
                             said, sizeof(said), "send", "a", "e", NULL);
    assert_string_equal(said, "pure-host: the host answered 503 full?[1m: try again later\n");
    assert_int_equal(status, CLI_FAILED);
}

static void a_suspended_app_is_not_said_to_be_busy(void **state)
{
    (void)state;
    static const struct {
        const char *status, *said;
    } cases[] = {
        {"{\"apps\":[{\"name\":\"b\",\"condition\":\"running\"},{\"name\":\"a\",\"condition\":\"suspended\"}]"
         "}",
         ": once its cause is gone, restart the host to try it again\n"},
        {"{\"apps\":[{\"name\":\"a\",\"condition\":\"suspended\",\"deaths\":3}]}", "\n"},
        {"{\"apps\":[{\"name\":\"a\",\"condition\":\"suspended\",\"deaths\":0,\"resumed\":true}]}", "\n"},
        {"{\"apps\":[{\"name\":\"b\",\"condition\":\"suspended\"},{\"name\":\"a\",\"condition\":\"waiting\"}]"
         "}",
         ": try again later\n"},
        {"nonsense", ": try again later\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char answer[500], said[500], wanted[500];
        snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                 strlen(cases[i].status), cases[i].status);
        snprintf(wanted, sizeof(wanted), "pure-host: the host answered 503 why%s", cases[i].said);
        then_answer = answer;
        run_against("HTTP/1.1 503 Busy\r\nContent-Length: 15\r\n\r\n{\"error\":\"why\"}", "\r\n\r\n", said,
                    sizeof(said), "send", "a", "e", NULL);
        then_answer = NULL;
        assert_string_equal(said, wanted);
    }
}

static void an_answer_that_is_cut_or_not_http_is_a_failure(void **state)
{
    (void)state;
    static const char *const answers[] = {"", "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"st",
                                          "220 mail.example ESMTP\r\n"};
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        char said[500];
        int status = run_against(answers[i], "\r\n\r\n", said, sizeof(said), "send", "a", "e", NULL);
        assert_int_equal(strncmp(said, "pure-host: http://127.0.0.1:", 28), 0);
        assert_int_equal(status, CLI_FAILED);
    }
}

static void a_host_that_is_not_there_is_said_so(void **state)
{
    (void)state;
    uint16_t port;
    int child_status;
    pid_t child = serve("", &port, ""); /* takes nothing: ended by hand, so that its port is free */
    kill(child, SIGKILL);
    waitpid(child, &child_status, 0);
    char url[64], said[500], wanted[200];
    struct fake fake = {0};
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    snprintf(wanted, sizeof(wanted), "pure-host: no host answers at %s: is pure-host running there?\n", url);
    assert_int_equal(run(&fake, said, sizeof(said), WORDS("state", "--url", url, "--", "-c")), CLI_FAILED);
    assert_string_equal(said, wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_finds_nothing_wrong_with_what_is_right),
        cmocka_unit_test(check_names_each_problem_with_its_line),
        cmocka_unit_test(check_reads_the_host_s_key_and_names_its_line),
        cmocka_unit_test(wrong_usage_is_one_line_and_status_2),
        cmocka_unit_test(help_is_everywhere),
        cmocka_unit_test(check_tells_of_all_problems_of_a_file_up_to_20),
        cmocka_unit_test(a_key_is_made_once_and_shown_as_often_as_wanted),
        cmocka_unit_test(links_that_cannot_come_in_are_noted),
        cmocka_unit_test(a_mechanism_that_is_left_out_is_noted_by_name),
        cmocka_unit_test(commands_go_to_the_address_of_the_configuration),
        cmocka_unit_test(without_plain_http_commands_are_told_how_to_ask),
        cmocka_unit_test(a_host_with_a_key_that_others_can_read_does_not_pass_the_check),
        cmocka_unit_test(a_host_that_does_not_open_tells_of_its_modules_too),
        cmocka_unit_test(check_ends_with_the_status_of_what_it_found),
        cmocka_unit_test(a_status_is_two_tables_with_the_reasons_below_their_rows),
        cmocka_unit_test(links_have_tables_of_their_own_below),
        cmocka_unit_test(a_round_trip_is_shown_in_seven_columns),
        cmocka_unit_test(a_wait_without_a_named_output_is_for_the_fullest),
        cmocka_unit_test(no_line_of_a_status_is_wider_than_the_screen),
        cmocka_unit_test(a_screen_shows_no_control_bytes),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(a_number_is_found_by_its_name),
        cmocka_unit_test(send_prints_the_stored_number),
        cmocka_unit_test(a_token_of_the_environment_is_sent),
        cmocka_unit_test(a_refusal_is_one_line_with_the_remedy),
        cmocka_unit_test(a_suspended_app_is_not_said_to_be_busy),
        cmocka_unit_test(an_answer_that_is_cut_or_not_http_is_a_failure),
        cmocka_unit_test(a_host_that_is_not_there_is_said_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
