/* `pure-host check`: what can be found wrong before a host is started. */
#ifndef PURE_HOST_CHECK_H
#define PURE_HOST_CHECK_H

#include "host/host.h"

#include <stdio.h>

struct check_result {
    unsigned problems; /* of the configuration and its modules */
    bool kernel;       /* the kernel refuses io_uring */
};

/* Loads each module of the configuration, opens its app, and looks whether it has the outputs that are given
 * one. Writes each problem as one line to `out`, "pure-host: FILE:LINE: …" with the line of the key or
 * section at fault. Returns how many. */
unsigned check_apps(const struct config *config, const struct host_options *options, FILE *out);

/* Reads the host's key, if the configuration names one. Returns how many problems it wrote, 0 or 1. */
unsigned check_key(const struct config *config, FILE *out);

/* Both, and asks for one back end. Starts nothing. */
struct check_result check_config(const struct config *config, const struct host_options *options, FILE *out);

#endif
