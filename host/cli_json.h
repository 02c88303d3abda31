/* JSON for people: how `status` shows the host's answer on one screen. */
#ifndef PURE_HOST_CLI_JSON_H
#define PURE_HOST_CLI_JSON_H

#include "core/bytes.h"

#include <stdio.h>

#define CLI_JSON_DEPTH_MAX   8
#define CLI_JSON_COLUMNS_MAX 32

/* Writes a JSON value: a member a line, an array of objects as a table with all their members as columns.
 * Control bytes become '?'. Members named since_ms, wall clock times, are shown as how long ago they are at
 * `now_ms`; 0 is never. 0, or PE_MALFORMED: not JSON, or nested deeper than CLI_JSON_DEPTH_MAX. */
int cli_json_show(FILE *out, struct span json, uint64_t now_ms);

/* The number of member `name` of the object `json`: 0 or PE_MALFORMED. */
int cli_json_number(struct span json, const char *name, uint64_t *number);

#endif
