/* What commands share that talk to a running host: where it is, and what to say when it refuses. */
#ifndef PURE_HOST_CLI_RUNNING_H
#define PURE_HOST_CLI_RUNNING_H

#include "host/cli_commands.h"
#include "host/cli_http.h"

struct cli_running {
    struct config config; /* with -c: owns the token */
    bool configured;
    struct cli_endpoint endpoint;
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

#endif
