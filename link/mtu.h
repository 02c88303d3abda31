/* Path MTU discovery by probes: DPLPMTUD (RFC 8899). Sizes are of UDP payload.
 *
 *     MTU_BASE <= current <= limit        current was acknowledged on this path, or is the base
 *
 * One probe is out at a time. The search tries sizes that paths really have, upwards, and then halves the
 * rest until it is within MTU_CLOSE bytes; a size that failed three times is the new upper bound. Then it
 * rests for MTU_AGAIN_NS and searches again above what it has.
 *
 * A black hole: three packets larger than the base were lost that were sent after the last one of their kind
 * that arrived, while a later, smaller one arrived (for that, owners send probe time-outs' packets at the
 * base size). The size is the base at once, and the search begins with the size that failed: if that was
 * chance, it is back after one round trip. */
#ifndef PURE_LINK_MTU_H
#define PURE_LINK_MTU_H

#include "core/bytes.h"
#include "core/clock.h"

#define MTU_BASE       1200
#define MTU_MAX        65507
#define MTU_CLOSE      16 /* the search ends when no more than this could be won */
#define MTU_TRIES      3
#define MTU_BLACK_HOLE 3
#define MTU_AGAIN_NS   (60 * NS_PER_S)

struct mtu {
    uint32_t current;      /* what datagrams may have now */
    uint32_t limit;        /* what the interface takes, at most MTU_MAX */
    uint32_t failed;       /* the least size known not to pass, exclusive upper bound; limit + 1 if none */
    uint32_t probe;        /* the size being tried; 0 while the search rests */
    uint32_t tries;        /* of that size that were lost */
    bool probe_out;        /* one is in flight */
    uint32_t probe_bytes;  /* its size: the search may have turned to another since */
    uint64_t probe_number; /* its packet number */
    uint64_t again_ns; /* when a search that rests begins again; NEVER while it runs or has nothing to find */
    uint64_t large_acked; /* number + 1 of the newest packet above the base that arrived */
    uint32_t large_lost;  /* packets above the base lost since, in a row */
};

/* `limit`: what the interface takes; below the base is taken as the base. */
void mtu_init(struct mtu *m, uint32_t limit, uint64_t now_ns);

/* The size of the probe to send now (PING and padding, alone in a datagram), or 0. */
uint32_t mtu_probe_size(struct mtu *m, uint64_t now_ns);
void mtu_probe_sent(struct mtu *m, uint64_t number);

/* Every packet's fate. Return true if `current` changed. */
bool mtu_acked(struct mtu *m, uint64_t number, uint32_t bytes, uint64_t now_ns);
bool mtu_lost(struct mtu *m, uint64_t number, uint32_t bytes, uint64_t now_ns);

/* The system says (EMSGSIZE, ICMP) that only `bytes` pass: believed only downwards, from the base up, and the
 * search begins again below. True if `current` changed. */
bool mtu_hint(struct mtu *m, uint32_t bytes, uint64_t now_ns);

/* When a search that rests begins again. */
static inline uint64_t mtu_deadline_ns(const struct mtu *m)
{
    return m->again_ns;
}

#endif
