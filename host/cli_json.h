/* Reading the JSON that a host answers, in place: values are spans of the text as they stand there. */
#ifndef PURE_HOST_CLI_JSON_H
#define PURE_HOST_CLI_JSON_H

#include "core/bytes.h"

#define CLI_JSON_DEPTH_MAX 8

/* The one value that `json` is, without the space around it. 0, or PE_MALFORMED: not JSON, or nested deeper
 * than CLI_JSON_DEPTH_MAX. The functions below take such a value or a value inside it. */
int cli_json_whole(struct span json, struct span *value);

/* The members of an object or the elements of an array, in order; none of anything else. */
struct cli_json_items {
    const char *at, *end;
    bool named; /* an object's */
};

struct cli_json_items cli_json_items(struct span container);

/* False at the end. `*name` is as it stands, without its quotes; empty in arrays. */
bool cli_json_next(struct cli_json_items *items, struct span *name, struct span *value);

/* The member `name` of an object; false if it has none, or is no object. */
bool cli_json_member(struct span object, const char *name, struct span *value);

/* A string without its quotes and escapes, anything else as it stands, cut to `size`, with a NUL at its end.
 * Control bytes, escaped or not, become '?'. */
void cli_json_text(struct span value, char *text, size_t size);

/* The whole number that member `name` of `object` is: 0 or PE_MALFORMED. */
int cli_json_number(struct span object, const char *name, uint64_t *number);

#endif
