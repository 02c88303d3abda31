#include "host/cli_commands.h"

#include "host/check.h"
#include "host/cli_http.h"
#include "host/cli_json.h"
#include "host/cli_running.h"
#include "host/cli_status.h"
#include "host/config_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define EVENT_DATA_MAX (16u << 20)
#define PROBLEMS_MAX   20 /* that `check` tells of a file */

static enum cli_status status_of(int error)
{
    return error == PE_KERNEL ? CLI_KERNEL : error == PE_CONFIG ? CLI_USAGE : CLI_FAILED;
}

/* --- run, check --- */

static const char *hint_on_listening(int error)
{
    switch (error) {
    case -EADDRINUSE:
        return ": another program, or another pure-host, listens there: end it, or change the port in [host]";
    case -EACCES:
        return ": ports below 1024 are for privileged programs: take a higher one in [host]";
    case -EADDRNOTAVAIL:
        return ": this machine has no such address: change the address in [host] (ip address shows them)";
    default:
        return "";
    }
}

/* A host that did not open said one thing; what check would find is said before it, so that nobody corrects
 * one problem only to meet the next. */
static void explain_opening(const struct config *config, const struct host_options *options, int error,
                            const char *why)
{
    unsigned problems = check_key(config, stderr) + check_apps(config, options, stderr);
    if (error != PE_CONFIG || problems == 0)
        cli_fail(status_of(error), "%s%s", why,
                 strncmp(why, "cannot listen", strlen("cannot listen")) == 0 ? hint_on_listening(error) : "");
}

int cli_run(const struct cli_arguments *arguments, const struct host_options *options)
{
    struct config config;
    struct host *host;
    char why[512] = "";
    host_hold_signals();
    int failed = cli_load_config(&config, arguments->config);
    if (failed != 0)
        return failed;
    int error = host_open(&host, &config, options, why, sizeof(why));
    if (error < 0) {
        explain_opening(&config, options, error, why[0] ? why : pure_error_text(error));
        config_dispose(&config);
        return status_of(error);
    }
    error = host_run(host);
    host_close(host);
    config_dispose(&config);
    return error < 0 ? cli_fail(status_of(error), "the host ended: %s", pure_error_text(error)) : CLI_DONE;
}

static void print_doubt(void *context, const char *doubt)
{
    (void)context;
    fprintf(stderr, "pure-host: note: %s\n", doubt);
}

static void print_problem(void *context, const char *problem)
{
    (void)context;
    cli_fail(CLI_USAGE, "%s", problem);
}

int cli_check(const struct cli_arguments *arguments, const struct host_options *options)
{
    struct config config;
    const struct config_listener listener = {print_problem, NULL, PROBLEMS_MAX};
    if (config_load_all(&config, arguments->config, &listener) < 0)
        return CLI_USAGE;
    struct check_result result = check_config(&config, options, stderr);
    unsigned apps = config.app_count, outputs = config.output_count, peers = config.peer_count;
    config_doubts(&config, &(struct config_listener){.tell = print_doubt});
    config_dispose(&config);
    if (result.problems > 0)
        return CLI_USAGE;
    if (result.kernel)
        return CLI_KERNEL;
    if (result.degraded)
        return CLI_DEGRADED;
    printf("%s is right: %u %s, %u %s", arguments->config, apps, apps == 1 ? "app" : "apps", outputs,
           outputs == 1 ? "output" : "outputs");
    if (peers > 0)
        printf(", %u %s", peers, peers == 1 ? "peer" : "peers");
    putchar('\n');
    return CLI_DONE;
}

/* --- a running host --- */

static int print_reply(const struct cli_running *running, const struct cli_reply *reply)
{
    (void)running;
    fwrite(reply->body, 1, reply->size, stdout);
    if (reply->size > 0 && reply->body[reply->size - 1] != '\n')
        putchar('\n');
    return CLI_DONE;
}

/* Whether what was shown of a host's status is that its store has lost something. */
static int degraded(const struct cli_reply *reply)
{
    if (!cli_status_degraded(span_of(reply->body, reply->size)))
        return CLI_DONE;
    return cli_fail(CLI_DEGRADED, "the store is degraded: the host's log says what was lost");
}

static int print_status(const struct cli_running *running, const struct cli_reply *reply)
{
    print_reply(running, reply);
    return degraded(reply);
}

static int print_screen(const struct cli_running *running, const struct cli_reply *reply)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (cli_status_show(stdout, span_of(reply->body, reply->size), now_ms, running->options) < 0)
        return cli_fail(CLI_FAILED, "the host's answer is not a status in JSON");
    return degraded(reply);
}

/* Gets `path` of the running host and shows it. */
static int show_resource(const struct cli_arguments *arguments, const char *path,
                         int (*show)(const struct cli_running *running, const struct cli_reply *reply))
{
    struct cli_running running;
    struct cli_reply reply;
    struct span nothing = {NULL, 0};
    char why[512] = "";
    int status = cli_find_running(&running, arguments);
    if (status == 0) {
        if (cli_http(&running.endpoint, "GET", path, nothing, &reply, why, sizeof(why)) < 0) {
            status = cli_fail(CLI_FAILED, "%s", why);
        } else {
            status = reply.status == 200 ? show(&running, &reply)
                                         : cli_fail_status(&reply, cli_remedy(reply.status));
            free(reply.body);
        }
    }
    cli_forget_running(&running);
    return status;
}

int cli_show_status(const struct cli_arguments *arguments, const struct host_options *options)
{
    (void)options;
    return show_resource(arguments, "/status", arguments->json ? print_status : print_screen);
}

int cli_show_state(const struct cli_arguments *arguments, const struct host_options *options)
{
    (void)options;
    const char *app = arguments->operands[0];
    char path[CONFIG_NAME_MAX + 32];
    if (!cli_is_app(app))
        return CLI_USAGE;
    snprintf(path, sizeof(path), "/apps/%s/state", app);
    return show_resource(arguments, path, print_reply);
}

/* --- send --- */

/* All of standard input. 0, or a cli_status. */
static int read_input(char **data, size_t *size)
{
    size_t used = 0;
    ssize_t got = 0;
    *data = malloc(EVENT_DATA_MAX + 1);
    if (!*data)
        return cli_fail(CLI_FAILED, "out of memory");
    while (used <= EVENT_DATA_MAX && (got = read(STDIN_FILENO, *data + used, EVENT_DATA_MAX + 1 - used)) > 0)
        used += (size_t)got;
    if (got < 0)
        return cli_fail(CLI_FAILED, "standard input cannot be read: %s", strerror(errno));
    if (used > EVENT_DATA_MAX)
        return cli_fail(CLI_USAGE, "standard input is larger than %u bytes", EVENT_DATA_MAX);
    *size = used;
    return 0;
}

/* What helps with a 503 depends on why the app takes nothing, which the host's status says. */
static const char *remedy_when_busy(const struct cli_running *running, const char *app)
{
    struct cli_reply reply;
    char why[512];
    const char *remedy = ": try again later";
    struct span nothing = {NULL, 0};
    if (cli_http(&running->endpoint, "GET", "/status", nothing, &reply, why, sizeof(why)) == 0) {
        remedy = cli_status_remedy(span_of(reply.body, reply.size), app);
        free(reply.body);
    }
    return remedy;
}

static int publish(const struct cli_running *running, const char *app, const char *path, struct span data)
{
    struct cli_reply reply;
    char why[512] = "";
    struct span answer;
    uint64_t stored;
    if (cli_http(&running->endpoint, "POST", path, data, &reply, why, sizeof(why)) < 0)
        return cli_fail(CLI_FAILED, "%s", why);
    int status = CLI_DONE;
    if (reply.status != 200)
        status = cli_fail_status(&reply, reply.status == 503 ? remedy_when_busy(running, app)
                                                             : cli_remedy(reply.status));
    else if (cli_json_whole(span_of(reply.body, reply.size), &answer) < 0 ||
             cli_json_number(answer, "stored", &stored) < 0)
        status = cli_fail(CLI_FAILED, "the host's answer states no stored number");
    else
        printf("%llu\n", (unsigned long long)stored);
    free(reply.body);
    return status;
}

int cli_send(const struct cli_arguments *arguments, const struct host_options *options)
{
    (void)options;
    const char *app = arguments->operands[0], *event = arguments->operands[1];
    const char *given = arguments->operand_count > 2 ? arguments->operands[2] : "";
    if (!cli_is_app(app))
        return CLI_USAGE;
    if (!value_is_name(event, EVENT_NAME_MAX, ".~"))
        return cli_fail(CLI_USAGE, "an event's name is 1 to %d letters, digits, '-', '_', '.' or '~'",
                        EVENT_NAME_MAX);
    char path[CONFIG_NAME_MAX + EVENT_NAME_MAX + 32], *input = NULL;
    struct span data = span_text(given);
    snprintf(path, sizeof(path), "/apps/%s/events/%s", app, event);
    int status = 0;
    if (strcmp(given, "-") == 0) {
        size_t size = 0;
        status = read_input(&input, &size);
        data = span_of(input, size);
    }
    struct cli_running running;
    if (status == 0) {
        status = cli_find_running(&running, arguments);
        if (status == 0)
            status = publish(&running, app, path, data);
        cli_forget_running(&running);
    }
    free(input);
    return status;
}
