#include "core/networks.h"

#include "core/error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#define MAPPED_BITS 96 /* of ::ffff:0:0/96: where an IPv4 address begins */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool is_ipv4(const uint8_t address[16])
{
    return memcmp(address, mapped, sizeof mapped) == 0;
}

static void map(const void *ipv4, uint8_t to[16])
{
    memcpy(to, mapped, sizeof mapped);
    memcpy(to + sizeof mapped, ipv4, 4);
}

static bool begins_with(const uint8_t address[16], const uint8_t prefix[16], unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;
    if (memcmp(address, prefix, bytes) != 0)
        return false;
    return rest == 0 || (address[bytes] ^ prefix[bytes]) >> (8 - rest) == 0;
}

/* --- parsing --- */

/* What is not of the public Internet, by the IANA registries of special-purpose addresses (RFC 6890) and of
 * the IPv6 address space. IPv4 in IPv6 is for networks_permit to find. A few anycast services in 192.0.0.0/24
 * and 2001::/23 are public, and no place for a server of anybody's. */
static const char *const private_networks[] = {
    "0.0.0.0/8",       /* this host, this network: RFC 791. Linux takes 0.0.0.0 for loopback */
    "10.0.0.0/8",      /* private use: RFC 1918 */
    "100.64.0.0/10",   /* shared address space: RFC 6598 */
    "127.0.0.0/8",     /* loopback: RFC 1122 */
    "169.254.0.0/16",  /* link-local, RFC 3927; clouds tell secrets at 169.254.169.254 */
    "172.16.0.0/12",   /* private use */
    "192.0.0.0/24",    /* protocol assignments: RFC 6890; some clouds' metadata, too */
    "192.0.2.0/24",    /* documentation: RFC 5737 */
    "192.88.99.0/24",  /* 6to4 relays, given up: RFC 7526 */
    "192.168.0.0/16",  /* private use */
    "198.18.0.0/15",   /* benchmarking: RFC 2544 */
    "198.51.100.0/24", /* documentation */
    "203.0.113.0/24",  /* documentation */
    "224.0.0.0/4",     /* multicast: RFC 5771 */
    "240.0.0.0/4",     /* reserved, RFC 1112, and the limited broadcast address */
    "::/16",           /* unspecified, loopback, IPv4-compatible, IPv4-translated */
    "64:ff9b:1::/48",  /* NAT64 for local use: RFC 8215 */
    "100::/8",         /* discard-only: RFC 6666 */
    "2001::/23",       /* protocol assignments: RFC 2928, with Teredo, benchmarking, ORCHID */
    "2001:db8::/32",   /* documentation: RFC 3849 */
    "3fff::/20",       /* documentation: RFC 9637 */
    "4000::/2",        /* not allocated, but for segment identifiers, 5f00::/16: RFC 9602 */
    "8000::/1",        /* not allocated, but for unique local fc00::/7, link-local fe80::/10, site-local
                          fec0::/10, multicast ff00::/8 */
};

static int parse_number(struct span text, unsigned max, unsigned *value)
{
    *value = 0;
    if (text.size == 0 || text.size > 3 || (text.size > 1 && text.data[0] == '0'))
        return PE_MALFORMED;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return PE_MALFORMED;
        *value = *value * 10 + text.data[i] - '0';
    }
    return *value <= max ? 0 : PE_MALFORMED;
}

/* Sets the network to the one address, and `*shift` to where the bits of its text are counted from. */
static int parse_address(struct span text, struct network *to, unsigned *shift)
{
    char copy[INET6_ADDRSTRLEN];
    struct in_addr ipv4;
    if (text.size >= sizeof copy || memchr(text.data, '\0', text.size))
        return PE_MALFORMED;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    to->bits = 128;
    *shift = 0;
    if (inet_pton(AF_INET, copy, &ipv4) == 1) {
        map(&ipv4, to->address);
        *shift = MAPPED_BITS;
        return 0;
    }
    return inet_pton(AF_INET6, copy, to->address) == 1 ? 0 : PE_MALFORMED;
}

static bool clear_after(const uint8_t address[16], unsigned bits)
{
    for (unsigned bit = bits; bit < 128; bit++) {
        if (address[bit / 8] >> (7 - bit % 8) & 1)
            return false;
    }
    return true;
}

static int parse_network(struct span text, struct network *to)
{
    const uint8_t *slash = text.size > 0 ? memchr(text.data, '/', text.size) : NULL;
    size_t size = slash ? (size_t)(slash - text.data) : text.size;
    unsigned shift, bits;
    int error = parse_address(span_of(text.data, size), to, &shift);
    if (error < 0 || !slash)
        return error;
    error = parse_number(span_of(slash + 1, text.size - size - 1), 128 - shift, &bits);
    if (error < 0 || !clear_after(to->address, bits + shift))
        return PE_MALFORMED;
    to->bits = (uint8_t)(bits + shift);
    return 0;
}

static int parse_list(const char *const *texts, unsigned count, struct network *to, unsigned room)
{
    if (count > room)
        return PE_FULL;
    for (unsigned i = 0; i < count; i++) {
        int error = parse_network(span_text(texts[i]), &to[i]);
        assert(error == 0);
    }
    return (int)count;
}

int networks_parse(struct span text, struct network *to, unsigned room)
{
    static const char *const any[] = {"0.0.0.0/0", "::/0"};
    struct network one;
    if (span_is(text, "any"))
        return parse_list(any, ARRAY_SIZE(any), to, room);
    if (span_is(text, "private"))
        return parse_list(private_networks, ARRAY_SIZE(private_networks), to, room);
    int error = parse_network(text, &one);
    if (error < 0)
        return error;
    if (room == 0)
        return PE_FULL;
    *to = one;
    return 1;
}

/* --- deciding --- */

/* The first of the networks that has the address; NULL: none has. A network of IPv6 that is wider than
 * ::ffff:0:0/96 does not mean IPv4. */
static const struct network *find(const struct network *networks, unsigned count, const uint8_t address[16])
{
    bool ipv4 = is_ipv4(address);
    for (unsigned i = 0; i < count; i++) {
        if ((!ipv4 || networks[i].bits >= MAPPED_BITS) &&
            begins_with(address, networks[i].address, networks[i].bits))
            return &networks[i];
    }
    return NULL;
}

/* The rule that denies the address, or NULL. */
static const struct network *denier(const struct networks *n, const uint8_t address[16])
{
    return find(n->allow, n->allow_count, address) ? NULL : find(n->deny, n->deny_count, address);
}

/* Where IPv6 addresses have an IPv4 address that what is sent to them goes to, or through. */
static const struct {
    uint8_t prefix[16];
    uint8_t bits;
    uint8_t at; /* byte where it begins */
} embeddings[] = {
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12}, /* NAT64: RFC 6052 section 2.1 */
    {{[8] = 0xff, [9] = 0xff}, 96, 12}, /* IPv4-translated: RFC 2765 */
    {{0x20, 0x02}, 16, 2},              /* 6to4: RFC 3056 section 2 */
};

static const struct network *embedded_denier(const struct networks *n, const uint8_t address[16])
{
    uint8_t ipv4[16];
    for (size_t i = 0; i < ARRAY_SIZE(embeddings); i++) {
        if (!begins_with(address, embeddings[i].prefix, embeddings[i].bits))
            continue;
        map(address + embeddings[i].at, ipv4);
        const struct network *by = denier(n, ipv4);
        if (by)
            return by;
    }
    return NULL;
}

/* False: of another family. */
static bool bytes_of(const struct sockaddr *address, uint8_t bytes[16])
{
    if (address->sa_family == AF_INET)
        map(&((const struct sockaddr_in *)address)->sin_addr, bytes);
    else if (address->sa_family == AF_INET6)
        memcpy(bytes, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
    return address->sa_family == AF_INET || address->sa_family == AF_INET6;
}

static bool is_not_allowed(const struct networks *n, const uint8_t address[16])
{
    return n->allow_count > 0 && n->deny_count == 0 && !find(n->allow, n->allow_count, address);
}

bool networks_permit(const struct networks *n, const struct sockaddr *address)
{
    uint8_t bytes[16];
    return bytes_of(address, bytes) && !is_not_allowed(n, bytes) && !denier(n, bytes) &&
           !embedded_denier(n, bytes);
}

static const char *show(const uint8_t address[16], char text[INET6_ADDRSTRLEN])
{
    bool ipv4 = is_ipv4(address);
    return inet_ntop(ipv4 ? AF_INET : AF_INET6, address + (ipv4 ? sizeof mapped : 0), text, INET6_ADDRSTRLEN);
}

void networks_why(const struct networks *n, const struct sockaddr *address, char text[NETWORKS_WHY_MAX])
{
    uint8_t bytes[16];
    char shown[INET6_ADDRSTRLEN], network[INET6_ADDRSTRLEN];
    text[0] = '\0';
    if (!bytes_of(address, bytes))
        return;
    const struct network *by = denier(n, bytes);
    if (!by)
        by = embedded_denier(n, bytes);
    if (by)
        snprintf(text, NETWORKS_WHY_MAX, "%s is in deny = %s/%u", show(bytes, shown),
                 show(by->address, network), by->bits - (is_ipv4(by->address) ? MAPPED_BITS : 0u));
    else if (is_not_allowed(n, bytes))
        snprintf(text, NETWORKS_WHY_MAX, "%s is in no network of allow", show(bytes, shown));
}
