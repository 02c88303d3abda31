/* Times as commands print them. */
#ifndef PURE_HOST_CLI_TIME_H
#define PURE_HOST_CLI_TIME_H

#include <stdint.h>

#define CLI_TIME_WIDTH 24 /* of 2026-11-30T12:34:56.789Z */
#define CLI_TIME_TEXT  (CLI_TIME_WIDTH + 1)

/* Milliseconds since 1970 in UTC, as RFC 3339 writes them. Years above 9999 are "-", as 0 (unknown) is.
 * Returns `text`, of CLI_TIME_TEXT bytes. */
const char *cli_time_text(char *text, uint64_t time_ms);

#endif
