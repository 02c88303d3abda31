/* Loss detection: RFC 9002 section 6, over the sent map.
 *
 * A packet is lost when a later one was acknowledged and it is `packet_threshold` numbers behind the largest
 * acknowledged, or was sent `time_eighths`/8 of the RTT ago. An acknowledgement of a packet that was declared
 * lost shows that the network reorders: the threshold that was wrong grows, so that each degree of reordering
 * is mistaken for loss once.
 *
 * When nothing is acknowledged, probe time-outs come, each twice as long after the last, at most
 * LOSS_PTO_MAX_NS apart, for ever; they declare nothing lost, unless the sent map is full: then its oldest
 * packets are, so that there is room for the probe.
 *
 * This reports; congestion control is told by the owner (path.c). */
#ifndef PURE_LINK_LOSS_H
#define PURE_LINK_LOSS_H

#include "link/frames.h"
#include "link/rtt.h"
#include "link/sent.h"

#define LOSS_PACKET_THRESHOLD     3
#define LOSS_PACKET_THRESHOLD_MAX 512 /* each ACK looks at as many packets at most, before new ones */
#define LOSS_TIME_EIGHTHS         9   /* 9/8 of the RTT */
#define LOSS_TIME_EIGHTHS_MAX     16
#define LOSS_PTO_MAX_NS           (60 * NS_PER_S)
#define LOSS_MAX_ACK_DELAY_NS     (5 * NS_PER_MS)
#define LOSS_MAKES_ROOM           16  /* packets, where a full map lets no probe out */
#define LOSS_REMEMBERED           128 /* packets declared lost, of which a late ACK is noticed */

/* A packet that was declared lost. */
struct loss_memory {
    uint64_t number;
    bool live;    /* in use, and not acknowledged since */
    bool by_time; /* by the time threshold, not by the packet threshold */
};

struct loss {
    struct rtt rtt;
    uint32_t packet_threshold; /* LOSS_PACKET_THRESHOLD to its maximum; never decreases on a path */
    uint32_t time_eighths;     /* likewise */
    uint32_t pto_count;        /* probe time-outs since the last new acknowledgement */
    uint64_t largest_acked;    /* number + 1; 0 if none was */
    uint64_t loss_ns;          /* when the oldest packet will be late by the time threshold; NEVER if none */
    uint64_t pto_base_ns; /* when the last probe time-out came: the next is not before its interval is over */
    struct loss_memory lost[LOSS_REMEMBERED]; /* the last ones declared lost, numbers ascending */
    uint32_t lost_next;                       /* the next goes here, modulo; so the oldest lies here */
    uint32_t lost_live;                       /* of them, not acknowledged since */
};

/* What one acknowledgement or time-out brought about. */
struct loss_report {
    uint64_t in_flight_before;     /* bytes */
    uint64_t acked_bytes;          /* newly acknowledged */
    uint64_t acked_newest_sent_ns; /* when the newest of them had left */
    uint64_t largest_newly_acked;  /* number; valid if acked_packets > 0 */
    uint64_t lost_bytes;           /* without MTU probes */
    uint64_t lost_newest_sent_ns;  /* when the newest of them had left */
    uint32_t acked_packets;        /* newly */
    uint32_t lost_packets;         /* without MTU probes */
    uint32_t spurious;             /* declared lost earlier, acknowledged now */
    bool rtt_sampled;
    bool persistent; /* persistent congestion: RFC 9002 section 7.6 */
};

/* Told of packets themselves, for MTU discovery. May be NULL. */
struct loss_watch {
    void (*acked)(void *context, uint64_t number, const struct sent_packet *packet);
    void (*lost)(void *context, uint64_t number, const struct sent_packet *packet);
    void *context;
};

void loss_init(struct loss *l);

/* An ACK came. 0, or PE_MALFORMED if it names what was never sent (and nothing changed). */
int loss_acked(struct loss *l, struct sent *s, const struct frame_ack *ack, uint64_t now_ns,
               const struct sent_handler *handler, const struct loss_watch *watch,
               struct loss_report *report);

/* When loss_expired has to be called; NEVER while nothing is outstanding. */
uint64_t loss_deadline_ns(const struct loss *l, const struct sent *s);

/* The deadline may have come. Declares lost what is late; returns true if a probe time-out came: send
 * one or two eliciting packets now, whatever the congestion window says. */
bool loss_expired(struct loss *l, struct sent *s, uint64_t now_ns, const struct sent_handler *handler,
                  const struct loss_watch *watch, struct loss_report *report);

#endif
