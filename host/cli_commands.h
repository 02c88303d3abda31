/* The commands, as cli.c calls them. */
#ifndef PURE_HOST_CLI_COMMANDS_H
#define PURE_HOST_CLI_COMMANDS_H

#include "host/cli.h"

#define CLI_OPERANDS_MAX 3

struct cli_arguments {
    const char *config; /* -c FILE; NULL: not given */
    const char *url;    /* --url URL */
    const char *ca;     /* --ca FILE; with an https URL */
    const char *store;  /* --store DIR */
    const char *from;   /* --from N */
    bool json;          /* --json */
    bool full;          /* --full */
    bool repair;        /* --repair */
    bool help;
    bool version;
    const char *operands[CLI_OPERANDS_MAX];
    unsigned operand_count;
};

/* "pure-host: …" and a newline to stderr; returns `status`. */
int cli_fail(enum cli_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

int cli_run(const struct cli_arguments *arguments, const struct host_options *options);
int cli_check(const struct cli_arguments *arguments, const struct host_options *options);
int cli_key(const struct cli_arguments *arguments, const struct host_options *options); /* cli_key.c */
int cli_show_status(const struct cli_arguments *arguments, const struct host_options *options);
int cli_show_state(const struct cli_arguments *arguments, const struct host_options *options);
int cli_log(const struct cli_arguments *arguments, const struct host_options *options);    /* cli_log.c */
int cli_fsck(const struct cli_arguments *arguments, const struct host_options *options);   /* cli_fsck.c */
int cli_dead(const struct cli_arguments *arguments, const struct host_options *options);   /* cli_dead.c */
int cli_output(const struct cli_arguments *arguments, const struct host_options *options); /* cli_output.c */
int cli_app(const struct cli_arguments *arguments, const struct host_options *options);    /* cli_app.c */
int cli_send(const struct cli_arguments *arguments, const struct host_options *options);

#endif
