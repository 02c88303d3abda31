/* The sent map: which packets are in flight, and what each carried.
 *
 * A ring of packets by number, [first, next), and a ring of the items they carried: fixed-size notes, of
 * which the owner (streams, acks, MTU search) makes sense when the packet is acknowledged or lost. Each item
 * comes back exactly once, as acked or as lost, in order of packet numbers; neighbouring RECORDS items of one
 * stream come back as one. Memory is allocated in sent_init and never again; sent_room says when it is full.
 *
 *     first <= every outstanding number < next        next - first <= capacity
 *     bytes_in_flight = sum of the sizes of outstanding packets
 */
#ifndef PURE_LINK_SENT_H
#define PURE_LINK_SENT_H

#include "core/bytes.h"
#include "link/ranges.h"

#define SENT_PACKETS          8192 /* a usual capacity */
#define SENT_ITEMS_PER_PACKET 16   /* the most in one packet */

enum sent_kind {
    SENT_RECORDS, /* stream, offset, size */
    SENT_OPEN,    /* stream */
    SENT_END,     /* stream */
    SENT_STORED,  /* stream, offset = stored number */
    SENT_CREDIT,  /* offset = the credit */
    SENT_REFUSED, /* stream */
    SENT_ACK,     /* offset = its largest number */
    SENT_PING,
};

struct sent_item {
    uint64_t offset;
    uint64_t size;
    uint32_t stream;
    enum sent_kind kind;
};

struct sent_packet {
    uint64_t sent_ns;
    uint32_t bytes; /* of the datagram, UDP payload */
    uint32_t item;  /* its first item, modulo the ring's size */
    uint8_t items;
    bool outstanding; /* eliciting, neither acknowledged nor lost */
    bool acked;       /* was outstanding, and has been acknowledged */
    bool mtu_probe;   /* its loss says nothing about congestion */
};

struct sent {
    struct sent_packet *packets;
    struct sent_item *items;
    uint32_t packets_mask; /* capacity - 1; capacity is a power of two */
    uint32_t items_mask;
    uint64_t first;       /* the lowest that may be outstanding */
    uint64_t next;        /* the number of the next packet */
    uint64_t items_first; /* items [items_first, items_next) belong to packets of [first, next) */
    uint64_t items_next;
    uint32_t items_added; /* those behind items_next, of the packet that is being built */
    uint32_t outstanding; /* packets */
    uint64_t bytes_in_flight;
    uint64_t last_eliciting_ns; /* when the newest eliciting packet left; 0 before the first */
};

/* Who is told. Called while an acknowledgement or a loss is worked off: must not send. */
struct sent_handler {
    void (*acked)(void *context, const struct sent_item *item);
    void (*lost)(void *context, const struct sent_item *item);
    void *context;
};

/* Room for `capacity` packets, a power of two, the first of them numbered `first`. 0 or -ENOMEM. */
int sent_init(struct sent *s, uint32_t capacity, uint64_t first);
void sent_dispose(struct sent *s);

/* Forgets all packets, untold; the next is numbered `first`. */
void sent_restart(struct sent *s, uint64_t first);

/* Whether one more packet with SENT_ITEMS_PER_PACKET items has room. */
bool sent_room(const struct sent *s);

/* Notes an item of the packet being built. At most SENT_ITEMS_PER_PACKET; false if there were as many. */
bool sent_add(struct sent *s, struct sent_item item);

/* Forgets the items noted: the packet is not sent. */
static inline void sent_abandon(struct sent *s)
{
    s->items_added = 0;
}

/* The packet numbered s->next leaves, with the items noted. One that is not eliciting takes its number and is
 * not in flight; items noted with it come back neither way. Returns its number. */
struct sent_commit_options {
    uint32_t bytes;
    bool eliciting;
    bool mtu_probe;
    bool asks; /* holds a PING: see path_asks */
};
uint64_t sent_commit(struct sent *s, struct sent_commit_options options, uint64_t now_ns);

static inline struct sent_packet *sent_at(const struct sent *s, uint64_t number)
{
    return &s->packets[number & s->packets_mask];
}

/* --- for loss.c --- */

/* Consecutive items that are told as one. */
struct sent_run {
    struct sent_item item;
    bool any;
};

/* Takes an outstanding packet off the map and tells its items through `tell`; the last may be held back in
 * `run` until the next, or sent_run_end. */
void sent_take(struct sent *s, struct sent_packet *packet, struct sent_run *run,
               void (*tell)(void *, const struct sent_item *), void *context);
void sent_run_end(struct sent_run *run, void (*tell)(void *, const struct sent_item *), void *context);

/* Moves `first` over what is not outstanding any more. */
void sent_advance(struct sent *s);

#endif
