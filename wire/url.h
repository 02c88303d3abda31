/* http and https URLs (RFC 3986 section 3, RFC 9110 section 4.2), as a wire needs them. */
#ifndef PURE_WIRE_URL_H
#define PURE_WIRE_URL_H

#include "core/bytes.h"
#include "core/error.h"
#include "core/resolver.h"

#define URL_TARGET_MAX 2048

struct url {
    bool tls;
    bool literal;                     /* the host is an IPv4 or IPv6 address */
    uint16_t port;                    /* 80 or 443 if none was given */
    char host[RESOLVER_NAME_MAX + 1]; /* lower case; an IPv6 address without brackets; no trailing dot */
    char authority[RESOLVER_NAME_MAX +
                   10]; /* what the Host field says: brackets, the port unless it is the scheme's own */
    char target[URL_TARGET_MAX + 1]; /* path and query, at least "/"; never a fragment */
};

/* 0, or PE_MALFORMED / PE_TOO_LARGE with `*why` (static) saying what is wrong, for the configuration's error,
 * and `*url` as it was.
 *
 * Refused: user information; a host with bytes over 0x7f (the hint is to give its xn-- form), percent-encoded
 * or with a label that no name has; IPv4 addresses in any form but four decimal numbers; zone identifiers; an
 * empty port or one outside 1 to 65535; any byte of path and query that RFC 3986 wants percent-encoded. A
 * fragment is dropped. Dot segments and percent-encodings are sent as they are. */
int url_parse(struct url *url, const char *text, const char **why);

#endif
