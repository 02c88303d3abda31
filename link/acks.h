/* The receiving side of acknowledgements: which packets came, when an ACK is due, and the ACK itself
 * (docs/link-protocol.md section 5; RFC 9000 sections 13.2 and 19.3).
 *
 * An ACK is due at once for the first eliciting packet after a pause (none for ACK_DELAY_NS), for one out of
 * order, for one with a PING, and for every 16th; else ACK_DELAY_NS after the first that waits. The owner
 * takes in a whole batch of datagrams, then asks acks_due_ns once: so a batch costs one ACK. Packets that do
 * not elicit are recorded and make nothing due.
 *
 * At most FRAME_ACK_RANGES ranges are remembered; the oldest goes when another comes, and everything below
 * `floor` is never named again: a packet there that comes late after all will be sent again. */
#ifndef PURE_LINK_ACKS_H
#define PURE_LINK_ACKS_H

#include "core/clock.h"
#include "link/frames.h"

#define ACK_DELAY_NS (5 * NS_PER_MS)
#define ACK_EVERY    16

struct acks {
    struct ranges received;
    struct range memory[FRAME_ACK_RANGES];
    uint64_t floor;         /* numbers below are not recorded any more; never decreases */
    uint64_t largest_at_ns; /* when the largest number came */
    uint64_t last_eliciting_ns;
    uint64_t due_ns;  /* NEVER while no eliciting packet waits for its ACK */
    uint32_t waiting; /* eliciting packets since the last ACK */
    bool any;         /* an eliciting packet has come */
};

/* `first` is the peer's first packet number. */
void acks_init(struct acks *a, uint64_t first);

/* A packet opened and parsed. False if it was recorded already or is below `floor`: it asks for an ACK all
 * the same if it is eliciting (the peer may have missed ours). */
bool acks_received(struct acks *a, uint64_t number, bool eliciting, uint64_t now_ns);

/* The packet just received held a PING: the sender wants its ACK at once. */
static inline void acks_hurry(struct acks *a, uint64_t now_ns)
{
    a->due_ns = now_ns;
}

/* When an ACK has to leave at the latest, NEVER if none has to. */
static inline uint64_t acks_due_ns(const struct acks *a)
{
    return a->due_ns;
}

/* Whether an ACK would say something new: to put one in a packet that leaves anyway. */
static inline bool acks_waiting(const struct acks *a)
{
    return a->waiting > 0;
}

/* Writes an ACK and counts it as sent. Returns its size, or 0 (nothing changed) if not even its first range
 * fits or nothing ever came. `*largest` is what the sent map remembers with it, for acks_seen. */
size_t acks_put(struct acks *a, uint8_t *at, const uint8_t *end, uint64_t now_ns, uint64_t *largest);

/* The peer has our ACK whose largest number was `largest`: ranges it named need not be named again. */
void acks_seen(struct acks *a, uint64_t largest);

#endif
