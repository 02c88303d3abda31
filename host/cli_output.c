/* `pure-host output`: wires of a running host are disabled, and enabled again. */
#include "host/cli_commands.h"

#include "host/cli_json.h"
#include "host/cli_running.h"
#include "host/config_values.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const verbs[] = {"enable", "disable"};

static bool is_verb(const char *text)
{
    for (unsigned i = 0; i < ARRAY_SIZE(verbs); i++)
        if (strcmp(text, verbs[i]) == 0)
            return true;
    const char *near = nearest_name(text, verbs, ARRAY_SIZE(verbs));
    if (near)
        cli_fail(CLI_USAGE, "unknown 'output %s': did you mean 'output %s'?", text, near);
    else
        cli_fail(CLI_USAGE, "unknown 'output %s': known are enable and disable", text);
    return false;
}

static int show(const char *output, struct span answer)
{
    struct span disabled;
    if (!cli_json_member(answer, "disabled", &disabled))
        return cli_fail(CLI_FAILED, "the host's answer does not say how the output is now");
    printf("%s is %s\n", output, span_is(disabled, "true") ? "disabled" : "enabled");
    return CLI_DONE;
}

static int change(struct cli_running *running, const char *output, const char *verb)
{
    char path[CLI_PATH_MAX];
    struct cli_reply reply;
    struct span answer;
    snprintf(path, sizeof(path), "/outputs/%s/%s", output, verb);
    int status = cli_ask(running, "POST", path, "", &reply, &answer);
    if (status != 0)
        return status;
    status = show(output, answer);
    free(reply.body);
    return status;
}

int cli_output(const struct cli_arguments *arguments, const struct host_options *options)
{
    (void)options;
    const char *verb = arguments->operands[0], *output = arguments->operands[1];
    struct cli_running running;
    if (!is_verb(verb) || !cli_is_output(output))
        return CLI_USAGE;
    int status = cli_find_running(&running, arguments);
    if (status == 0)
        status = change(&running, output, verb);
    cli_forget_running(&running);
    return status;
}
