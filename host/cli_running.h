/* What commands share that talk to a running host: where it is, and what to say when it refuses. */
#ifndef PURE_HOST_CLI_RUNNING_H
#define PURE_HOST_CLI_RUNNING_H

#include "host/cli_commands.h"
#include "host/cli_http.h"

#define CLI_OPTIONS_MAX 512 /* longer ones are not repeated */

struct cli_running {
    struct config config; /* with -c: owns the token */
    bool configured;
    struct cli_endpoint endpoint;
    char options[CLI_OPTIONS_MAX]; /* those that led here, for commands that hints name: "", " -c FILE", … */
};

/* Reads the configuration. 0, or a status, the reason having been said. */
int cli_load_config(struct config *config, const char *path);

/* By -c, --url or at the default place, with the token of the configuration or the environment. 0, or a
 * status, the reason having been said; cli_forget_running in either case. */
int cli_find_running(struct cli_running *running, const struct cli_arguments *arguments);
void cli_forget_running(struct cli_running *running);

/* Says that the host refused, its reason, and `what_to_do` (": …", or ""). Returns CLI_FAILED. */
int cli_fail_status(const struct cli_reply *reply, const char *what_to_do);

/* What to do about a status; static, "" if there is nothing to be said. */
const char *cli_remedy(uint16_t status);

/* Whether it is an app's name, or APP.OUTPUT; if not, that has been said. */
bool cli_is_app(const char *name);
bool cli_is_output(const char *name);

#define CLI_PATH_MAX (2 * CONFIG_NAME_MAX + 64) /* bytes of the paths of an output's resources */

/* One exchange about an output, answered with an object in JSON: 0, and `*answer` lies in the reply, whose
 * body is the caller's to free; or a status, the reason having been said. */
int cli_ask(struct cli_running *running, const char *method, const char *path, const char *body,
            struct cli_reply *reply, struct span *answer);

#endif
