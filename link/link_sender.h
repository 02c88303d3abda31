/* The sending end of a link: everything between the outlets of one peer host and the datagrams to it, as a
 * state machine. It is told the time, and what came; it says what to send, and when to come back.
 *
 *     outputs     streams over the outlets' queues, who sends next, credit, stored numbers
 *     path        sent map, loss, congestion, pace, MTU
 *     acks        of the receiver's packets
 *     initiator   handshakes, and the keys packets are sealed with
 *
 * A round of its owner: link_sender_receive for each datagram that came, link_sender_fill until it gives
 * nothing, then a sleep until link_sender_deadline_ns. Records are copied once, from the queue into the
 * datagram that is then sealed where it lies. Nothing is done per record but that. */
#ifndef PURE_LINK_LINK_SENDER_H
#define PURE_LINK_LINK_SENDER_H

#include "link/acks.h"
#include "link/initiator.h"
#include "link/outputs.h"
#include "link/path.h"

#define LINK_SENDER_LOOKUP_PTOS  3              /* in a row, before the name is looked up again */
#define LINK_SENDER_SILENCE_NS   (3 * NS_PER_S) /* … with those: a new handshake */
#define LINK_SENDER_PING_NS      NS_PER_S /* without a word, while records wait to be stored; then twice … */
#define LINK_SENDER_KEEPALIVE_NS (25 * NS_PER_S) /* … as long each time, to this */
#define LINK_BATCH_PACKETS       64              /* the most that one send with segmentation offload takes */
#define LINK_BATCH_BYTES         65507           /* likewise */

struct link_sender_options {
    const struct host_key *key; /* ours; outlives it */
    const uint8_t *remote_public;
    struct indices *indices; /* of the socket; the owner of this link's indices is the link_sender */
    struct noise_random random;
    uint8_t ciphers;       /* cipher_hardware(), or less; 0: ChaCha20-Poly1305 alone */
    uint32_t outputs;      /* the most */
    uint32_t sent_packets; /* capacity of the sent map, a power of two: SENT_PACKETS */
    uint32_t mtu_limit;    /* bytes of UDP payload that the interface takes */
};

struct link_sender_events {
    struct outputs_hooks outputs;
    /* Nothing is heard, and there are records to deliver: look the name up again and take a new source port;
     * link_sender_moved says that either has changed, and may be called from here. Once for each time-out
     * that passes unanswered, within link_sender_fill and before it gives what that time-out sends: from a
     * port taken at once, the answer is not missed. */
    void (*want_lookup)(void *context);
    void *context;
};

struct link_sender {
    struct initiator initiator;
    struct path path;
    struct acks acks;
    struct outputs outputs;
    struct link_sender_events events;
    uint32_t mtu_limit;
    bool associated; /* there was a REPLY: path, acks and outputs belong to an association */
    bool stopping;   /* no handshakes any more; with !close_due: silent */
    bool ping_due;
    bool close_due;
    uint64_t close_reason;
    uint64_t heard_ns;  /* when a packet of the receiver was opened last */
    uint64_t sent_ns;   /* when a packet was sealed last */
    uint64_t ping_ns;   /* after such a silence of ours the next PING */
    uint32_t looked_up; /* unanswered time-outs, of probes and INITs, that want_lookup was called for */
};

/* 0, PE_KEY_WEAK or -ENOMEM. */
int link_sender_init(struct link_sender *l, const struct link_sender_options *options,
                     const struct link_sender_events *events, uint64_t now_ns);
void link_sender_dispose(struct link_sender *l);

/* Outputs: outputs_add(&l->outputs, …) and, after each push, outputs_pushed(&l->outputs, …). */

/* A datagram has come whose index is one of this link's; it is opened in place. 0, or why it was dropped:
 * what is not authentic is nobody's fault, PE_MALFORMED and PE_LINK_VERSION are the receiver's. */
int link_sender_receive(struct link_sender *l, uint64_t now_ns, uint8_t *datagram, size_t size);

/* Datagrams that lie one behind the other, all of `segment` bytes, but the last may be smaller. */
struct link_batch {
    uint32_t bytes;
    uint32_t segment;
    uint32_t count;
};

/* The next batch to send, in `buffer`, which has at least the MTU limit's bytes and best LINK_BATCH_BYTES.
 * False: nothing (more) may leave now. */
bool link_sender_fill(struct link_sender *l, uint64_t now_ns, uint8_t *buffer, size_t capacity,
                      struct link_batch *batch);

/* When link_sender_fill has something to do at the latest, if nothing comes or is pushed. */
uint64_t link_sender_deadline_ns(const struct link_sender *l, uint64_t now_ns);

/* Packets go to another address, or from another source port, from now on. */
void link_sender_moved(struct link_sender *l, uint64_t now_ns);

/* The system refused a datagram for its size: only `bytes` pass. */
void link_sender_too_large(struct link_sender *l, uint64_t now_ns, uint32_t bytes);

/* The host is about to stop: whatever rests, and is not tried again before, is at `until_ns`. */
void link_sender_hurry(struct link_sender *l, uint64_t until_ns);

/* The host stops: the next batch ends the session, and nothing follows. */
void link_sender_close(struct link_sender *l);

#endif
