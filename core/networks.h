/* Which addresses connections may go to: lists of networks (RFC 4632, RFC 4291), as egress rules. */
#ifndef PURE_CORE_NETWORKS_H
#define PURE_CORE_NETWORKS_H

#include "core/bytes.h"

#include <sys/socket.h>

#define NETWORKS_MAX 64

struct network {
    uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2), so that both forms meet the
                            same rule; after `bits` bits all zeros */
    uint8_t bits;        /* of it, 0 to 128. A network of IPv6 that ::ffff:0:0/96 lies in does not mean
                            IPv4: ::/0 is all of IPv6 only */
};

/* An address may be connected to if an `allow` network has it; or else if no `deny` network has it, and there
 * are no `allow` networks without a `deny` network: those alone are all there is.
 *
 * An IPv6 address that stands for an IPv4 address, by NAT64 (64:ff9b::/96, RFC 6052), 6to4 (2002::/16) or
 * IPv4-translated (::ffff:0:0:0/96), may be connected to only if no rule denies that one, either. A NAT64
 * prefix of a network's own cannot be known here: it is for the rules to name. */
struct networks {
    unsigned allow_count, deny_count;
    struct network allow[NETWORKS_MAX], deny[NETWORKS_MAX];
};

/* Parses ADDRESS, ADDRESS/BITS (no bit of the address is set after them), `any`, or `private` into `to` (room
 * for `room`): private is what is not of the public Internet: loopback, RFC 1918, RFC 6598, link-local,
 * unique local, multicast, unspecified, documentation, reserved. Returns how many were written, PE_MALFORMED
 * or PE_FULL. */
int networks_parse(struct span text, struct network *to, unsigned room);

/* Of AF_INET and AF_INET6; no other family may be. */
bool networks_permit(const struct networks *n, const struct sockaddr *address);

/* Of an address that is not permitted: "10.0.0.1 is in deny = 10.0.0.0/8", "8.8.8.8 is in no network of
 * allow", for people. */
#define NETWORKS_WHY_MAX 128
void networks_why(const struct networks *n, const struct sockaddr *address, char text[NETWORKS_WHY_MAX]);

#endif
