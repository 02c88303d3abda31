/* What a router says when a packet is too large for its next hop (RFC 792, RFC 1191): ICMP destination
 * unreachable, fragmentation needed and DF set, with the MTU of that hop. */
#ifndef PURE_EXPERIMENTS_PATH_ICMP_H
#define PURE_EXPERIMENTS_PATH_ICMP_H

#include <stddef.h>
#include <stdint.h>

/* An IPv4 head, 8 bytes of ICMP, the packet's own head and its first 8 bytes. */
#define ICMP_TOO_BIG_BYTES 56

/* Writes the answer to `packet`, an IPv4 packet of `size` bytes, from the router's address (network order).
 * Returns ICMP_TOO_BIG_BYTES, or 0 if it is not to be answered: no DF, options in its head, a fragment but
 * the first, or ICMP itself. */
size_t icmp_too_big(const uint8_t *packet, size_t size, uint16_t mtu, const uint8_t router[4],
                    uint8_t out[ICMP_TOO_BIG_BYTES]);

#endif
