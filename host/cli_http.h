/* A small HTTP client for the command line: one blocking exchange with a running host. Nothing of the host
 * itself uses it. */
#ifndef PURE_HOST_CLI_HTTP_H
#define PURE_HOST_CLI_HTTP_H

#include "core/bytes.h"
#include "host/config.h"

#define CLI_HTTP_TIMEOUT_NS (10 * UINT64_C(1000000000)) /* for the whole exchange */
#define CLI_HTTP_BODY_MAX   (16 << 20)                  /* bytes of a reply's body */

struct tls_context;

/* Where a host answers. */
struct cli_endpoint {
    struct sockaddr_storage address;
    socklen_t address_len;
    char authority[RESOLVER_NAME_MAX + 10]; /* for the Host field */
    char prefix[URL_TARGET_MAX + 1];        /* the URL's path, without a slash at its end */
    const char *token;                /* NULL: none. Its owner's, who keeps it as long as the endpoint */
    struct tls_context *tls;          /* NULL: plain */
    char host[RESOLVER_NAME_MAX + 1]; /* with `tls`: whom its certificate has to be for */
};

struct cli_reply {
    uint16_t status;
    char *body; /* NUL-terminated, malloc'ed */
    size_t size;
};

/* The host that a configuration describes, by plain HTTP; listening on any address, it is met on loopback. 0,
 * or PE_CONFIG with one line in `why`: it answers by TLS only, and for what name is not said there. */
int cli_endpoint_of_config(struct cli_endpoint *endpoint, const struct config *config, char *why,
                           size_t why_size);

/* `ca`: for https, a file or directory of CA certificates; NULL: the system's. 0 or a negative code with one
 * line in `why`. Looks names up, blocking. */
int cli_endpoint_of_url(struct cli_endpoint *endpoint, const char *url, const char *ca, char *why,
                        size_t why_size);

/* In either case. */
void cli_endpoint_dispose(struct cli_endpoint *endpoint);

/* One request, `path` below the endpoint's prefix. 0 and a complete reply of any status, whose body the
 * caller frees; else a negative code with one line in `why`. */
int cli_http(const struct cli_endpoint *endpoint, const char *method, const char *path, struct span body,
             struct cli_reply *reply, char *why, size_t why_size);

#endif
