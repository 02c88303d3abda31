/* Where an outlet's destination is: the addresses of its host that are known, the one whose turn it is, and
 * when the name is to be looked up.
 *
 * The name is looked up before a try, if the one before failed (so once a back-off step) or the addresses are
 * no longer valid, as their answer said; not otherwise for a connection that follows a good one. A lookup
 * that fails leaves the known addresses as they are, for ADDRESSES_KEPT_NS. After each failure it is the next
 * address's turn. */
#ifndef PURE_CORE_ADDRESSES_H
#define PURE_CORE_ADDRESSES_H

#include "core/clock.h"
#include "core/resolver.h"

#define ADDRESSES_KEPT_NS (60 * NS_PER_S)

struct addresses {
    bool literal;          /* the host is an address, known[0]: no name to look up */
    bool stale;            /* the connection before failed */
    unsigned count;        /* known[0, count) */
    unsigned turn;         /* index of the address to try; < count if count > 0 */
    uint64_t looked_up_ns; /* when `known` was last learnt or kept */
    uint64_t valid_ns;     /* for so long from then */
    struct resolver_address known[RESOLVER_ADDRESSES];
};

/* `host`: a name, or (`literal`) an IPv4 address, or an IPv6 one without brackets; asserts that it is one. */
void addresses_init(struct addresses *a, const char *host, uint16_t port, bool literal);

/* Whether the name is to be looked up before the next try. */
bool addresses_lookup_due(const struct addresses *a, uint64_t now_ns);

/* A lookup came back with addresses. */
void addresses_learn(struct addresses *a, const struct resolver_request *answer, uint64_t now_ns);

/* A lookup did not: goes on with what is known. */
static inline void addresses_keep(struct addresses *a, uint64_t now_ns)
{
    a->stale = false;
    a->looked_up_ns = now_ns;
    a->valid_ns = ADDRESSES_KEPT_NS;
}

/* The try failed: the next address, and a lookup before it. */
void addresses_failed(struct addresses *a);

/* The address to try; NULL if none is known. */
static inline const struct resolver_address *addresses_current(const struct addresses *a)
{
    return a->count ? &a->known[a->turn] : NULL;
}

#endif
