/* The command line, shared by the product (host/main.c) and the epoll variant (experiments/epoll/main.c),
 * which differ in what the host stands on only. */
#ifndef PURE_HOST_CLI_H
#define PURE_HOST_CLI_H

#include "host/host.h"

enum cli_status {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,    /* usage or configuration */
    CLI_KERNEL = 3,   /* the kernel refuses io_uring */
    CLI_DEGRADED = 4, /* the store is degraded; a store in memory never is */
};

/* Does what the arguments say; errors go to stderr, one line each. Returns a cli_status for main to return.
 */
int cli_main(int argc, char **argv, const struct host_options *options);

#endif
