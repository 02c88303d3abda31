/* What a host stands on in a real process: io_uring, getaddrinfo on helper threads, dlopen. */
#ifndef PURE_HOST_PLATFORM_H
#define PURE_HOST_PLATFORM_H

#include "host/host.h"

/* More than what a turn takes and gives back as a rule: a backlog's sends (host/turn.h), a journal's batch.
 */
#define LARGE_BLOCK (4 << 20)

struct dns;

struct platform {
    bool probed; /* io_uring is there, and may be used */
    struct dns
        *dns; /* of the first sending loop, while it is open; the others' share its cache and helpers */
};

/* First thing in a process, before a descriptor is opened: whichever of 0 to 2 is closed becomes /dev/null,
 * lest a connection gets its number and what is written to stderr; the limit of open files is raised as far
 * as it may be; and freed blocks of LARGE_BLOCK bytes go back to the kernel. 0 or a negative errno. */
int platform_prepare(void);

/* Fills in the options; `platform` outlives them. The epoll variant then puts its own open_io in. */
void platform_options(struct platform *platform, struct host_options *options);

#endif
