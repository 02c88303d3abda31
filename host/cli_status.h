/* The screen of `pure-host status`: a host's answer to GET /status as tables (apps, outlets, links and
 * journals if there are any), at most CLI_STATUS_WIDTH columns wide (a longer name of an outlet or a link is
 * not cut). What explains a row (why an app waits or is suspended, an outlet's last error) stands on lines of
 * its own below it. A member that the host does not give is shown as "-". */
#ifndef PURE_HOST_CLI_STATUS_H
#define PURE_HOST_CLI_STATUS_H

#include "core/bytes.h"

#include <stdio.h>

#define CLI_STATUS_WIDTH 110

/* `now_ms` is the wall clock; `options` are those that commands need which are hinted at (cli_running.h). 0,
 * or PE_MALFORMED: not a JSON object. */
int cli_status_show(FILE *out, struct span json, uint64_t now_ms, const char *options);

/* Whether that answer says that the store is degraded. */
bool cli_status_degraded(struct span json);

/* What helps, as the end of a line, if the app has answered 503, by that answer: which says whether it is
 * suspended, and for what. "": its reason says so itself. Static. */
const char *cli_status_remedy(struct span json, const char *app);

#endif
