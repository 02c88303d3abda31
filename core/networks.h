/* Which addresses connections may go to: lists of networks (RFC 4632, RFC 4291), as egress rules. */
#ifndef PURE_CORE_NETWORKS_H
#define PURE_CORE_NETWORKS_H

#include "core/bytes.h"

#include <sys/socket.h>

#define NETWORKS_MAX 64

struct network {
    uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2), so that both forms meet the
                            same rule */
    uint8_t bits;        /* of it, 0 to 128 */
};

/* An address may be connected to if an `allow` network has it; or else if no `deny` network has it, and there
 * are no `allow` networks without a `deny` network: those alone are all there is. */
struct networks {
    unsigned allow_count, deny_count;
    struct network allow[NETWORKS_MAX], deny[NETWORKS_MAX];
};

/* Parses ADDRESS, ADDRESS/BITS, `any`, or `private` into `to` (room for `room`): private is what is not of
 * the public Internet: loopback, RFC 1918, RFC 6598, link-local, unique local, multicast, unspecified,
 * documentation, and those of them embedded in NAT64 (RFC 6052) and 6to4. Returns how many were written,
 * PE_MALFORMED or PE_FULL. */
int networks_parse(struct span text, struct network *to, unsigned room);

/* Of AF_INET and AF_INET6; no other family may be. */
bool networks_permit(const struct networks *n, const struct sockaddr *address);

#endif
