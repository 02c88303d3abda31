/* `pure-host check`: what can be found wrong before a host is started. */
#ifndef PURE_HOST_CHECK_H
#define PURE_HOST_CHECK_H

#include "host/host.h"

#include <stdio.h>

struct check_result {
    unsigned problems; /* of the configuration and its modules */
    bool degraded;     /* the store can be used, and is damaged */
    bool kernel;       /* the kernel refuses io_uring */
};

/* Loads each module of the configuration, opens its app, and looks whether it has the outputs that are given
 * one. Writes each problem as one line to `out`, "pure-host: FILE:LINE: …" with the line of the key or
 * section at fault. Returns how many. A module that crashes, or does not return from a call for twice its
 * turn_limit, ends the process as it would a host's, with the app and the call on stderr; that death is not
 * remembered. */
unsigned check_apps(const struct config *config, const struct host_options *options, FILE *out);

/* Reads the host's key, if the configuration names one. Returns how many problems it wrote, 0 or 1. */
unsigned check_key(const struct config *config, FILE *out);

/* Whether files of signing secrets are everybody's to read. Returns how many problems it wrote. */
unsigned check_secrets(const struct config *config, FILE *out);

/* Whether the store's directory can be used, or made, and what it holds. Changes nothing; that a running host
 * has it open is no problem, and noted. Returns how many problems it wrote, 0 or 1; what is damaged is
 * written, too, and no problem, as a host starts with it. */
unsigned check_store(const struct config *config, const struct host_options *options, FILE *out,
                     bool *degraded);

/* Reads the files of TLS as a host would: CA certificates, and of our own certificates whether the key is
 * theirs and not everybody's to read, and their dates at `now_s` (seconds since 1970). Returns how many
 * problems it wrote; what is worth a note is written, too. Implemented in check_tls.c. */
unsigned check_tls(const struct config *config, int64_t now_s, FILE *out);

/* All of them, and asks for one back end. Starts nothing. */
struct check_result check_config(const struct config *config, const struct host_options *options, FILE *out);

#endif
