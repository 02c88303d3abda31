/* A small HTTP client for the command line: one blocking exchange with a running host. Nothing of the host
 * itself uses it. */
#ifndef PURE_HOST_CLI_HTTP_H
#define PURE_HOST_CLI_HTTP_H

#include "core/bytes.h"
#include "host/config.h"

#define CLI_HTTP_TIMEOUT_NS (10 * UINT64_C(1000000000)) /* for the whole exchange */
#define CLI_HTTP_BODY_MAX   (16 << 20)                  /* bytes of a reply's body */

/* Where a host answers. */
struct cli_endpoint {
    struct sockaddr_storage address;
    socklen_t address_len;
    char authority[RESOLVER_NAME_MAX + 10]; /* for the Host field */
    char prefix[URL_TARGET_MAX + 1];        /* the URL's path, without a slash at its end */
    const char *token; /* NULL: none. Its owner's, who keeps it as long as the endpoint */
};

struct cli_reply {
    uint16_t status;
    char *body; /* NUL-terminated, malloc'ed */
    size_t size;
};

/* The host that a configuration describes; listening on any address, it is met on loopback. */
void cli_endpoint_of_config(struct cli_endpoint *endpoint, const struct config *config);

/* 0 or a negative code with one line in `why`. Looks names up, blocking. */
int cli_endpoint_of_url(struct cli_endpoint *endpoint, const char *url, char *why, size_t why_size);

/* One request, `path` below the endpoint's prefix. 0 and a complete reply of any status, whose body the
 * caller frees; else a negative code with one line in `why`. */
int cli_http(const struct cli_endpoint *endpoint, const char *method, const char *path, struct span body,
             struct cli_reply *reply, char *why, size_t why_size);

#endif
