/* The command line: arguments and exit statuses, `check`, the screen of `status`, and the client. */
#include "host/check.h"
#include "host/cli.h"
#include "host/cli_http.h"
#include "host/cli_json.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* --- a platform whose modules and kernel are the test's --- */

struct fake {
    bool kernel_refuses;
    unsigned loaded; /* and not unloaded */
    unsigned opened; /* apps, and not closed */
};

static struct fake *the_fake; /* for the app's functions, which have no context before open */

static int fake_open(void **state, const char *arg, char *error, size_t error_size)
{
    *state = NULL;
    if (strcmp(arg, "bad") == 0) {
        snprintf(error, error_size, "arg is bad");
        return -1;
    }
    the_fake->opened++;
    return 0;
}

static int fake_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    (void)state, (void)turn, (void)event;
    return 0;
}

static void fake_close(void *state)
{
    (void)state;
    the_fake->opened--;
}

static const char *const fake_outputs[] = {"log", "cloud", NULL};
static const struct pure_app fake_app = {.abi = PURE_APP_ABI,
                                         .outputs = fake_outputs,
                                         .open = fake_open,
                                         .event = fake_event,
                                         .close = fake_close};

static int load_module(void *context, const char *path, const struct pure_app **app, void **handle, char *why,
                       size_t why_size)
{
    struct fake *fake = context;
    if (strstr(path, "missing")) {
        snprintf(why, why_size, "it is not there");
        return PE_MODULE;
    }
    fake->loaded++;
    *app = &fake_app;
    *handle = fake;
    return 0;
}

static void unload_module(void *context, void *handle)
{
    (void)handle;
    ((struct fake *)context)->loaded--;
}

static void dispose_io(struct io *io)
{
    free(io);
}

static const struct io_backend fake_backend = {.dispose = dispose_io};

static int open_io(void *context, struct io **io, char *why, size_t why_size)
{
    struct fake *fake = context;
    if (fake->kernel_refuses) {
        snprintf(why, why_size, "io_uring is switched off");
        return PE_KERNEL;
    }
    *io = malloc(sizeof(**io));
    assert_non_null(*io);
    io_init(*io, &fake_backend);
    return 0;
}

static struct host_options fake_options(struct fake *fake)
{
    the_fake = fake;
    return (struct host_options){
        .context = fake, .open_io = open_io, .load_module = load_module, .unload_module = unload_module};
}

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
        said, "x.conf:6: [output a.cluod]: the module has no output 'cluod': did you mean 'cloud'?\n"
              "x.conf:8: [output a.elsewhere]: the module has no output 'elsewhere': known are log, cloud\n"
              "x.conf:1: [app a]: the app does not open: arg is bad\n"
              "x.conf:4: [app b]: the module cannot be used: it is not there\n"
              "the kernel: io_uring is switched off\n");
}

/* --- arguments and exit statuses --- */

/* Runs a command with standard output and error going to `said`. */
static int run(struct fake *fake, char *said, size_t size, const char *const *words)
{
    struct host_options options = fake_options(fake);
    char *argv[12] = {(char *)"pure-host"};
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    int scratch = memfd_create("said", 0), out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    fflush(NULL);
    dup2(scratch, STDOUT_FILENO);
    dup2(scratch, STDERR_FILENO);
    int status = cli_main(argc, argv, &options);
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    ssize_t used = pread(scratch, said, size - 1, 0);
    said[used > 0 ? used : 0] = '\0';
    close(scratch), close(out), close(err);
    return status;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

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
    {{"status", "--url", "https://h/"},
     CLI_USAGE,
     "pure-host: the URL needs to be an http one without a query, such as http://127.0.0.1:7070\n"},
    {{"send", "a"},
     CLI_USAGE,
     "pure-host: usage: pure-host send [-c FILE | --url URL] APP EVENT [DATA | -]\n"},
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
    static const char *const commands[] = {"run", "check", "status", "state", "send"};
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
        int fd = mkstemp(path);
        assert_int_equal(write(fd, cases[i].text, strlen(cases[i].text)), (ssize_t)strlen(cases[i].text));
        close(fd);
        struct fake fake = {.kernel_refuses = cases[i].kernel_refuses};
        assert_int_equal(run(&fake, said, sizeof(said), WORDS("check", "-c", path)), cases[i].status);
        unlink(path);
    }
}

/* --- the screen --- */

static const char *show(const char *json, char *screen, size_t size)
{
    memset(screen, 0, size);
    FILE *out = fmemopen(screen, size, "w");
    int error = cli_json_show(out, span_text(json), 1000000);
    fclose(out);
    return error < 0 ? "malformed" : screen;
}

static void a_status_is_lines_and_tables(void **state)
{
    (void)state;
    char screen[2000];
    assert_string_equal(
        show("{\"version\":\"0.1\", \"empty\":[], \"loop\":{\"steps\":7},\n \"outlets\":["
             "{\"name\":\"a\",\"state\":\"ok\",\"since_ms\":0},"
             "{\"name\":\"longer\",\"state\":\"resting\",\"since_ms\":997000,\"error\":\"x \\\"y\\\"\"}]}",
             screen, sizeof(screen)),
        "version: 0.1\n"
        "empty: []\n"
        "loop\n"
        "  steps: 7\n"
        "outlets\n"
        "  name    state    since   error\n"
        "  a       ok       -       \n"
        "  longer  resting  3s ago  x \"y\"\n");
}

static void a_screen_shows_no_control_bytes(void **state)
{
    (void)state;
    char screen[200];
    assert_string_equal(show("{\"a\":\"\x1b[31m\\u001b\\n\"}", screen, sizeof(screen)), "a: ?[31m??\n");
}

static void what_is_not_json_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",    "{",     "[1",    "{\"a\"}", "{\"a\":}",    "{\"a\":1,}",
        "\"x", "[1,,]", "{a:1}", "1 2",     "{\"a\":\"\\", "[[[[[[[[[[1]]]]]]]]]]",
        "]",
    };
    char screen[200];
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_string_equal(show(texts[i], screen, sizeof(screen)), "malformed");
}

static void a_number_is_found_by_its_name(void **state)
{
    (void)state;
    uint64_t number = 0;
    assert_int_equal(cli_json_number(span_text(" {\"x\":1, \"stored\" : 42} "), "stored", &number), 0);
    assert_int_equal(number, 42);
    static const char *const without[] = {"{\"x\":1}", "{\"stored\":-1}", "{\"stored\":\"1\"}", "[1]", "x",
                                          ""};
    for (size_t i = 0; i < ARRAY_SIZE(without); i++)
        assert_int_equal(cli_json_number(span_text(without[i]), "stored", &number), PE_MALFORMED);
}

/* --- the client: against a child that reads a request to its end and answers as told --- */

static pid_t serve(const char *answer, uint16_t *port, const char *wanted)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    pid_t child = fork();
    if (child != 0) {
        close(listener);
        return child;
    }
    alarm(20); /* a client that never comes ends the child all the same */
    char request[4096] = "";
    size_t used = 0;
    int peer = accept(listener, NULL, NULL);
    while (used + 1 < sizeof(request) && !strstr(request, wanted)) {
        ssize_t size = recv(peer, request + used, sizeof(request) - 1 - used, 0);
        if (size <= 0)
            _exit(1);
        used += (size_t)size;
    }
    send(peer, answer, strlen(answer), MSG_NOSIGNAL);
    shutdown(peer, SHUT_WR);
    _exit(0);
}

/* Runs the command `a` with the operands b, c, d (NULL: none) against a host that answers so. */
static int run_against(const char *answer, const char *wanted, char *said, size_t size, const char *a,
                       const char *b, const char *c, const char *d)
{
    uint16_t port;
    char url[64];
    int child_status;
    struct fake fake = {0};
    pid_t child = serve(answer, &port, wanted);
    snprintf(url, sizeof(url), "--url=http://127.0.0.1:%u", port);
    const char *words[] = {a, url, b, c, d, NULL};
    int status = run(&fake, said, size, words);
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_true(WIFEXITED(child_status) && WEXITSTATUS(child_status) == 0);
    return status;
}

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
        cmocka_unit_test(wrong_usage_is_one_line_and_status_2),
        cmocka_unit_test(help_is_everywhere),
        cmocka_unit_test(check_ends_with_the_status_of_what_it_found),
        cmocka_unit_test(a_status_is_lines_and_tables),
        cmocka_unit_test(a_screen_shows_no_control_bytes),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(a_number_is_found_by_its_name),
        cmocka_unit_test(send_prints_the_stored_number),
        cmocka_unit_test(a_token_of_the_environment_is_sent),
        cmocka_unit_test(a_refusal_is_one_line_with_the_remedy),
        cmocka_unit_test(an_answer_that_is_cut_or_not_http_is_a_failure),
        cmocka_unit_test(a_host_that_is_not_there_is_said_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
