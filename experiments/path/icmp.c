#include "experiments/path/icmp.h"

#include <string.h>

#define IP_BYTES        20
#define ICMP_BYTES      8
#define QUOTED_BYTES    (IP_BYTES + 8)
#define IP_VERSION_SIZE 0x45 /* version 4, a head of 20 bytes */
#define DF              0x40
#define OFFSET_MASK     0x1f /* of byte 6: the offset's high bits */
#define PROTOCOL_ICMP   1
#define UNREACHABLE     3
#define FRAGMENT_NEEDED 4
#define HOPS            64

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* RFC 1071, over an even number of bytes. */
static uint16_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < size; i += 2)
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

size_t icmp_too_big(const uint8_t *packet, size_t size, uint16_t mtu, const uint8_t router[4],
                    uint8_t out[ICMP_TOO_BIG_BYTES])
{
    if (size < QUOTED_BYTES || packet[0] != IP_VERSION_SIZE || !(packet[6] & DF) ||
        (packet[6] & OFFSET_MASK) != 0 || packet[7] != 0 || packet[9] == PROTOCOL_ICMP)
        return 0;
    memset(out, 0, ICMP_TOO_BIG_BYTES);
    out[0] = IP_VERSION_SIZE;
    put16(out + 2, ICMP_TOO_BIG_BYTES);
    out[8] = HOPS;
    out[9] = PROTOCOL_ICMP;
    memcpy(out + 12, router, 4);
    memcpy(out + 16, packet + 12, 4);
    put16(out + 10, checksum(out, IP_BYTES));
    uint8_t *icmp = out + IP_BYTES;
    icmp[0] = UNREACHABLE;
    icmp[1] = FRAGMENT_NEEDED;
    put16(icmp + 6, mtu);
    memcpy(icmp + ICMP_BYTES, packet, QUOTED_BYTES);
    put16(icmp + 2, checksum(icmp, ICMP_BYTES + QUOTED_BYTES));
    return ICMP_TOO_BIG_BYTES;
}
