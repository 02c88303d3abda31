/* A path: everything that decides when how much may be sent to one address, put together. Sent map, loss
 * detection, congestion control, pacing and MTU discovery, each in its own file; this one tells each what it
 * has to know, in the right order. Both ends of a link have one.
 *
 * How an owner sends:
 *
 *     while ((room = path_room(p, now)) > 0 and there is something to send)
 *         build a packet of at most min(room, path_datagram(p)) bytes, sent_add(&p->sent, …) for each frame;
 *         with a PING if path_asks(p); path_sent(p, …)
 *     if (path_mtu_probe(p, now)) send one of that size: PING, padding; path_sent(p, … mtu_probe)
 *
 * and sleeps until the earliest of path_deadline_ns and (if it still has something) path_when_ns. Packets
 * with nothing but ACK and PADDING ask neither window nor pacer. */
#ifndef PURE_LINK_PATH_H
#define PURE_LINK_PATH_H

#include "link/acks.h"
#include "link/congestion.h"
#include "link/loss.h"
#include "link/mtu.h"
#include "link/pacer.h"
#include "link/sent.h"

struct path {
    struct sent sent;
    struct loss loss;
    struct congestion congestion;
    struct pacer pacer;
    struct mtu mtu;
    uint64_t moved_at;      /* packets below this number left on another path */
    uint64_t lost_packets;  /* declared lost so far, MTU probes too */
    uint64_t unasked_bytes; /* sent since a packet last asked to be acknowledged at once */
    bool gathering;         /* the pacer let out all it had: nothing leaves until there is enough again */
    uint32_t probes;        /* packets that a probe time-out still allows, whatever window and pacer say */
};

/* `packets`: capacity of the sent map; `first`: the first packet number; `mtu_limit`: see mtu_init. 0 or
 * -ENOMEM. */
int path_init(struct path *p, uint32_t packets, uint64_t first, uint32_t mtu_limit, uint64_t now_ns);
void path_dispose(struct path *p);

/* Another association begins: as path_init, in the same memory. */
void path_restart(struct path *p, uint64_t first, uint32_t mtu_limit, uint64_t now_ns);

/* Another address or source port: RTT, window, rate and MTU begin anew (RFC 9000 section 9.4); the sent map
 * and packet numbers go on. */
void path_moved(struct path *p, uint32_t mtu_limit, uint64_t now_ns);

/* The size datagrams may have now: after a probe time-out the base, so that a black hole is got out of. */
uint32_t path_datagram(const struct path *p);

/* Bytes that may leave now: 0, or at least one datagram's worth. */
uint64_t path_room(const struct path *p, uint64_t now_ns);

/* Whether a packet that leaves now should hold a PING, to be acknowledged at once: eight times a window,
 * while the window is in use and is so small that the receiver would rather wait than reach ACK_EVERY
 * packets. */
bool path_asks(const struct path *p);

/* When path_room will be positive if no ACK comes: now, the pacer's time, or NEVER if the window is full. */
uint64_t path_when_ns(const struct path *p, uint64_t now_ns);

/* The size of an MTU probe to send now, or 0. */
uint32_t path_mtu_probe(struct path *p, uint64_t now_ns);

/* The packet with the items noted in p->sent leaves. Returns its number, which was p->sent.next. */
uint64_t path_sent(struct path *p, struct sent_commit_options options, uint64_t now_ns);

/* An ACK came. 0 or PE_MALFORMED. */
int path_acked(struct path *p, const struct frame_ack *ack, uint64_t now_ns,
               const struct sent_handler *handler);

/* When path_expired has to be called. */
uint64_t path_deadline_ns(const struct path *p);

/* The deadline may have come. Afterwards path_must_probe says whether to send though there may be nothing
 * new: data that is in flight again, or a PING. */
void path_expired(struct path *p, uint64_t now_ns, const struct sent_handler *handler);

/* The other end is heard from elsewhere: if it did not answer for a while, it is asked again at once. */
void path_found(struct path *p);

/* The system says that only `bytes` of UDP payload pass: see mtu_hint. */
void path_mtu_hint(struct path *p, uint32_t bytes, uint64_t now_ns);

static inline bool path_must_probe(const struct path *p)
{
    return p->probes > 0;
}

/* Probe time-outs in a row without an answer. */
static inline uint32_t path_unanswered(const struct path *p)
{
    return p->loss.pto_count;
}

#endif
