/* What a host stands on in a real process: io_uring, getaddrinfo on helper threads, dlopen. */
#ifndef PURE_HOST_PLATFORM_H
#define PURE_HOST_PLATFORM_H

#include "host/host.h"

struct dns;

struct platform {
    struct dns *dns; /* of the sending loop, while it is open; a host has at most one (config.h: loops) */
};

/* Fills in the options; `platform` outlives them. The epoll variant then puts its own open_io in. */
void platform_options(struct platform *platform, struct host_options *options);

#endif
