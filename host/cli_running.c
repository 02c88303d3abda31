#include "host/cli_running.h"

#include "host/cli_json.h"
#include "host/config_values.h"

#include <stdio.h>
#include <stdlib.h>

int cli_load_config(struct config *config, const char *path)
{
    char error[1024];
    return config_load(config, path, error, sizeof(error)) < 0 ? cli_fail(CLI_USAGE, "%s", error) : 0;
}

static bool is_token(const char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (text[i] < '!' || text[i] > '~')
            return false;
    return size > 0 && size <= CONFIG_TOKEN_MAX;
}

static void keep_options(struct cli_running *running, const struct cli_arguments *a)
{
    int size = 0;
    if (a->config)
        size = snprintf(running->options, sizeof(running->options), " -c %s", a->config);
    else if (a->url)
        size = snprintf(running->options, sizeof(running->options), " --url %s%s%s", a->url,
                        a->ca ? " --ca " : "", a->ca ? a->ca : "");
    if (size >= (int)sizeof(running->options))
        running->options[0] = '\0';
}

int cli_find_running(struct cli_running *running, const struct cli_arguments *arguments)
{
    char why[512] = "";
    memset(running, 0, sizeof(*running));
    keep_options(running, arguments);
    if (arguments->config) {
        int failed = cli_load_config(&running->config, arguments->config);
        if (failed != 0)
            return failed;
        running->configured = true;
        if (cli_endpoint_of_config(&running->endpoint, &running->config, why, sizeof(why)) < 0)
            return cli_fail(CLI_USAGE, "%s", why);
    } else {
        const char *url = arguments->url ? arguments->url : "http://" CONFIG_HTTP;
        int error = cli_endpoint_of_url(&running->endpoint, url, arguments->ca, why, sizeof(why));
        if (error < 0)
            return cli_fail(error == PE_NAME_FAILED ? CLI_FAILED : CLI_USAGE, "%s", why);
    }
    const char *token = getenv("PURE_HOST_TOKEN");
    if (token && !running->endpoint.token) {
        if (!is_token(token))
            return cli_fail(CLI_USAGE,
                            "$PURE_HOST_TOKEN: needs 1 to %d printable ASCII characters without "
                            "spaces",
                            CONFIG_TOKEN_MAX);
        running->endpoint.token = token;
    }
    return 0;
}

void cli_forget_running(struct cli_running *running)
{
    cli_endpoint_dispose(&running->endpoint);
    if (running->configured)
        config_dispose(&running->config);
}

/* Why the host refused, as part of an error line: what its {"error":"…"} says, else the body's first line, at
 * most `size` - 1 printable bytes. */
static void reason_of(const struct cli_reply *reply, char *line, size_t size)
{
    const char *body = reply->body;
    struct span whole, error;
    size_t used = 0;
    if (cli_json_whole(span_of(body, reply->size), &whole) == 0 && cli_json_member(whole, "error", &error)) {
        cli_json_text(error, line, size);
        return;
    }
    for (; *body && *body != '\n' && *body != '\r' && used + 1 < size; body++)
        line[used++] = *body < ' ' || *body == 0x7f ? '?' : *body;
    line[used] = '\0';
}

const char *cli_remedy(uint16_t status)
{
    switch (status) {
    case 401:
    case 403:
        return ": give the configuration with -c, or the token in $PURE_HOST_TOKEN";
    case 404:
        return ": pure-host status lists the apps";
    case 413:
        return ": the event is larger than max_body or half of the app's inbox";
    case 500:
        return ": the host's log says why";
    case 504:
        return ": look at the app with pure-host state before you send it again";
    default:
        return "";
    }
}

int cli_fail_status(const struct cli_reply *reply, const char *what_to_do)
{
    char line[401];
    reason_of(reply, line, sizeof(line));
    return cli_fail(CLI_FAILED, "the host answered %u%s%s%s", reply->status, line[0] ? " " : "", line,
                    what_to_do);
}

bool cli_is_app(const char *name)
{
    if (value_is_name(name, CONFIG_NAME_MAX, ""))
        return true;
    cli_fail(CLI_USAGE, "an app's name is 1 to %d letters, digits, '-' or '_'", CONFIG_NAME_MAX);
    return false;
}

bool cli_is_output(const char *name)
{
    char app[CONFIG_NAME_MAX + 2];
    const char *dot = strchr(name, '.');
    if (dot) {
        snprintf(app, sizeof(app), "%.*s", (int)min_size((size_t)(dot - name), sizeof(app)), name);
        if (value_is_name(app, CONFIG_NAME_MAX, "") && value_is_name(dot + 1, CONFIG_NAME_MAX, ""))
            return true;
    }
    cli_fail(CLI_USAGE, "an output's name is APP.OUTPUT, both 1 to %d letters, digits, '-' or '_'",
             CONFIG_NAME_MAX);
    return false;
}

int cli_ask(struct cli_running *running, const char *method, const char *path, const char *body,
            struct cli_reply *reply, struct span *answer)
{
    char why[512] = "";
    int status = 0;
    bool of_output = strncmp(path, "/outputs/", strlen("/outputs/")) == 0;
    if (cli_http(&running->endpoint, method, path, span_text(body), reply, why, sizeof(why)) < 0)
        return cli_fail(CLI_FAILED, "%s", why);
    if (reply->status != 200)
        status =
            cli_fail_status(reply, reply->status == 404 && of_output ? ": pure-host status lists the outputs"
                                                                     : cli_remedy(reply->status));
    else if (cli_json_whole(span_of(reply->body, reply->size), answer) < 0)
        status = cli_fail(CLI_FAILED, "the host's answer is not JSON");
    if (status != 0)
        free(reply->body);
    return status;
}
