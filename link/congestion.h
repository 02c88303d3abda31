/* Congestion control: CUBIC (RFC 9438) with its Reno-friendly region and fast convergence, slow start ended
 * by HyStart++ (RFC 9406), recovery and persistent congestion as RFC 9002 section 7.
 *
 *     window_bytes >= 2 datagrams        one reduction a round trip at most
 *
 * The window grows only while it is used: at least 7/8 of it was in flight (half of it in slow start). After
 * a pause it shrinks by half for each probe time-out of silence, to no less than the initial window.
 * Reduction by a loss that proves spurious is undone. In bytes of UDP payload and nanoseconds; integers
 * throughout. */
#ifndef PURE_LINK_CONGESTION_H
#define PURE_LINK_CONGESTION_H

#include "core/bytes.h"
#include "core/clock.h"
#include "link/rtt.h"

#define CONGESTION_INITIAL_PACKETS 10
#define CONGESTION_MIN_PACKETS     2

/* What a reduction changes, so that it can be undone. */
struct congestion_cubic {
    uint64_t window_bytes;
    uint64_t threshold_bytes;  /* slow start below; UINT64_MAX at first */
    uint64_t max_bytes;        /* W_max: the window before the last reduction, less by fast convergence */
    uint64_t reno_bytes;       /* W_est: what Reno would have */
    uint64_t reno_prior_bytes; /* cwnd_prior: from here on reno_bytes grows as fast as Reno's */
    uint64_t epoch_ns;         /* start of the growth since the last reduction; NEVER before its first ACK */
    uint64_t k_ms;             /* from the epoch to where the window is max_bytes again */
};

/* HyStart++: a round ends when the packets that were sent up to its start are acknowledged. */
struct congestion_hystart {
    uint64_t round_end;    /* packet number */
    uint64_t last_min_ns;  /* least RTT of the last round, NEVER if none */
    uint64_t round_min_ns; /* of this one */
    uint64_t baseline_ns;  /* the RTT at which conservative slow start began */
    uint32_t samples;      /* of this round */
    uint32_t css_rounds;   /* of conservative slow start; 0 while in slow start proper */
};

struct congestion {
    struct congestion_cubic cubic;
    struct congestion_cubic before; /* the last reduction; window_bytes 0 if there is nothing to undo */
    struct congestion_hystart hystart;
    uint64_t datagram_bytes;
    uint64_t recovery_ns;  /* packets sent before this cause no further reduction */
    uint64_t undo_packets; /* declared lost by the last reduction and not (yet) found spurious */
    uint64_t reno_rest;    /* growth of reno_bytes that is less than a byte */
    uint64_t last_sent_ns; /* 0 before the first */
};

void congestion_init(struct congestion *c, uint64_t datagram_bytes);

/* The path's datagram size changed. The window in bytes stays, within its minimum. */
void congestion_set_datagram(struct congestion *c, uint64_t datagram_bytes);

/* An eliciting packet leaves; `in_flight_before` bytes, without it. */
void congestion_sent(struct congestion *c, uint64_t in_flight_before, const struct rtt *rtt, uint64_t now_ns);

struct congestion_ack {
    uint64_t bytes;            /* newly acknowledged, > 0 */
    uint64_t in_flight_before; /* bytes, before this acknowledgement */
    uint64_t newest_sent_ns;   /* when the newest of them had left */
    uint64_t largest;          /* the largest number newly acknowledged */
    uint64_t next;             /* the number that the next packet will have */
    bool rtt_sampled;          /* rtt->latest_ns is new */
};
void congestion_acked(struct congestion *c, const struct congestion_ack *ack, const struct rtt *rtt,
                      uint64_t now_ns);

/* `packets` were declared lost, the newest of them sent at `newest_sent_ns`. */
void congestion_lost(struct congestion *c, uint32_t packets, uint64_t newest_sent_ns, uint64_t now_ns);

/* The peer saw a congestion mark on a packet sent at `sent_ns`. As a loss, but cannot be spurious. */
void congestion_marked(struct congestion *c, uint64_t sent_ns, uint64_t now_ns);

/* Nothing got through for a long time. Called after congestion_lost. */
void congestion_persistent(struct congestion *c);

/* `packets` declared lost were acknowledged after all: if those were all of the last reduction, undo it. */
void congestion_spurious(struct congestion *c, uint32_t packets);

static inline bool congestion_slow_start(const struct congestion *c)
{
    return c->cubic.window_bytes < c->cubic.threshold_bytes;
}

/* Bytes that may be sent now. */
static inline uint64_t congestion_room(const struct congestion *c, uint64_t in_flight)
{
    return c->cubic.window_bytes > in_flight ? c->cubic.window_bytes - in_flight : 0;
}

#endif
