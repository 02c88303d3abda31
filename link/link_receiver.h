/* The receiving end of links: all that comes to one socket from the hosts that may send here, as a state
 * machine. It is told the time, and what came from where; it says what to send where, and when to come back.
 *
 *     responder   handshakes, sessions, which of them a packet belongs to
 *     and of each peer:
 *     inlets      its streams: put together, handed to the consumer, credit, stored numbers
 *     path        of our packets to it: sent map, loss (they are small and few: no window binds them)
 *     acks        of its packets
 *
 * A round of its owner: link_receiver_receive for each datagram that came, link_receiver_deliver once,
 * link_receiver_fill until it gives nothing, then a sleep until link_receiver_deadline_ns. The consumer may
 * call the inlets meanwhile; what it says leaves with the next link_receiver_fill.
 *
 * A peer costs its turn of link_receiver_fill one datagram, so that none keeps another's waiting.
 *
 * Quotas. Opening is most of the work, and grows with a datagram's bytes and by a constant: LINK_QUOTA_BASE
 * is that constant, as bytes. What brings records forward is bounded by the credit; what does not (it is not
 * authentic, has come before, or hardly a byte of it is new) costs the peer that its index names so much of
 * LINK_QUOTA, and INITs, which are nobody's yet, share one quota more. Beyond it, in one round (from one
 * link_receiver_deliver to the next), datagrams are dropped unopened, as a full socket would have dropped
 * them: they cost next to nothing then, so that the socket empties and the others' datagrams come through. It
 * is some 1 ms of work. */
#ifndef PURE_LINK_LINK_RECEIVER_H
#define PURE_LINK_LINK_RECEIVER_H

#include "core/timers.h"
#include "link/acks.h"
#include "link/inlets.h"
#include "link/path.h"
#include "link/responder.h"

#include <sys/socket.h>

#define LINK_RECEIVER_PACKETS 1024     /* capacity of a peer's sent map */
#define LINK_RECEIVER_BYTES   MTU_BASE /* our packets are no larger, whatever the path takes */

#define LINK_QUOTA      (UINT64_C(512) << 10)
#define LINK_QUOTA_BASE 256
#define LINK_QUOTA_GAIN 8 /* one byte of so many has to be new */

struct link_address {
    struct sockaddr_storage address;
    socklen_t len; /* 0: none */
};

/* What somebody used of it, in bytes of work. */
struct link_quota {
    uint64_t round; /* in which; another's counts for nothing */
    uint64_t used;
};

struct link_peer {
    struct link_receiver *receiver;
    uint32_t number; /* the responder's */
    void *context;   /* the consumer's */
    struct inlets inlets;
    struct path path;
    struct acks acks;
    struct link_quota quota;
    struct timer timer;
    bool associated;
    bool close_due;
    uint64_t close_reason;
    uint64_t newest; /* the highest packet number that was opened, + 1: its source is where we send */
    struct link_address source; /* that source */
    bool queued;                /* something is or may be due: in the line of link_receiver_fill */
    struct link_peer *next_queued;
};

struct link_receiver_options {
    const struct host_key *key; /* ours; outlives it */
    struct noise_random random;
    uint8_t ciphers;            /* cipher_hardware(), or less; 0: ChaCha20-Poly1305 alone */
    uint32_t peers;             /* the most */
    struct inlet_limits limits; /* of each peer */
    bool without_quotas;        /* for experiments: everything is opened */
    /* An unknown key tried: see responder_events. */
    void (*unknown)(void *context, const uint8_t key[LINK_KEY_BYTES], uint64_t times);
    void *unknown_context;
};

struct link_receiver {
    struct responder responder;
    struct link_peer **peers; /* by the responder's number; NULL: not let in */
    uint32_t peer_limit;
    bool without_quotas;
    struct inlet_limits limits;
    struct link_consumer consumer;
    void (*unknown)(void *context, const uint8_t key[LINK_KEY_BYTES], uint64_t times);
    void *unknown_context;
    struct timers timers;
    uint64_t round;                        /* counts link_receiver_deliver */
    struct link_quota strangers;           /* INITs */
    struct link_peer *queue, **queue_tail; /* whose turn it is */
};

/* 0 or -ENOMEM. */
int link_receiver_init(struct link_receiver *r, const struct link_receiver_options *options,
                       const struct link_consumer *consumer, uint64_t now_ns);
void link_receiver_dispose(struct link_receiver *r);

/* Lets a peer in; `context` is what the consumer knows it by. Allocates all that it will need, but for the
 * rings of streams, which are mapped when first used. Returns its number, PE_FULL or -ENOMEM. */
int link_receiver_allow(struct link_receiver *r, const uint8_t key[LINK_KEY_BYTES], void *context);

/* Lets it in no more: its streams are closed. */
void link_receiver_forbid(struct link_receiver *r, uint32_t peer);

/* The host stops: each peer's next datagram ends its session, so that it finds out at once. */
void link_receiver_close(struct link_receiver *r);

/* A datagram has come; it is opened in place. Returns the bytes of an answer in `answer` that goes back to
 * `source` at once (only an INIT has one: else `answer` may be NULL), or 0, or why the datagram was dropped:
 * PE_LINK_QUOTA is one that was not looked into. */
int link_receiver_receive(struct link_receiver *r, uint64_t now_ns, const struct link_address *source,
                          uint8_t *datagram, size_t size, uint8_t answer[LINK_ANSWER_BYTES]);

/* Hands the records that have come to the consumer. Quotas begin anew. */
void link_receiver_deliver(struct link_receiver *r);

/* The next datagram to send, in `buffer` (LINK_RECEIVER_BYTES), and where to. Returns its bytes, 0: nothing
 * (more) is to leave now. */
size_t link_receiver_fill(struct link_receiver *r, uint64_t now_ns, uint8_t *buffer,
                          const struct link_address **to);

/* When link_receiver_fill has something to do at the latest, if nothing comes and the consumer says nothing.
 */
uint64_t link_receiver_deadline_ns(const struct link_receiver *r);

#endif
