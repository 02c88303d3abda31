/* One HTTP/1.1 connection of a client and the exchanges on it, as a state machine with no socket and no clock
 * in it: its owner tells it what happened and when, and asks what is due.
 *
 * Requests are numbered from 0 on each connection. Of them
 *
 *     begun      were handed to the stream
 *     whole      are wholly in the kernel's hands         begun - 1 <= whole <= begun: one is sent at a time
 *     answered   have the complete head of a final reply  done <= answered <= done + 1, answered <= begun
 *     done       have their reply complete, body included
 *     taken      had their answer taken by the owner      taken <= answered
 *
 * What is decided when:
 *  - the head of the final reply decides an exchange. Its body is read, decoded and forgotten, up to
 *    CONNECTION_BODY_MAX bytes and the total limit; past either, or if it is cut or malformed, the connection
 *    ends and the status stands.
 *  - an HTTP/1.0 head that the end of the stream cuts behind a whole field is taken as complete (http.h).
 *  - an answer can be taken once its request is whole or the connection is closed: before that the memory of
 *    the request is the kernel's. A reply that comes before its request is whole (an early refusal) is
 *    believed, and ends the connection.
 *  - bytes that come while no exchange waits for a reply, or before one byte of its request was sent, are no
 *    reply: they end the connection.
 *  - the first exchange of a connection goes alone, also where requests may be pipelined (RFC 9112
 *    section 9.3.2). */
#ifndef PURE_WIRE_CONNECTION_H
#define PURE_WIRE_CONNECTION_H

#include "core/clock.h"
#include "wire/answer.h"
#include "wire/inflate.h"

#define CONNECTION_PIPELINE_MAX 8
#define CONNECTION_BODY_MAX     (1 << 20) /* bytes of a reply's body, its framing included; and decoded */

struct connection_limits {
    uint64_t progress_ns; /* connecting, or sending without the kernel taking a byte */
    uint64_t reply_ns;    /* from the request's last byte (or the reply before) to the reply's whole head */
    uint64_t total_ns;    /* one exchange */
    uint32_t pipeline;    /* exchanges in flight: 1 to CONNECTION_PIPELINE_MAX */
};

enum connection_phase {
    CONNECTION_NONE,       /* there is none */
    CONNECTION_CONNECTING, /* its stream is being connected */
    CONNECTION_OPEN,
    CONNECTION_CLOSED, /* its stream is gone; what it leaves is to be looked at (then: connection_clear) */
};

struct connection_exchange {
    uint64_t begun_ns;
    struct answer answer; /* valid once answered */
};

/* Sees the bodies of replies, which are of no use to a wire: tests compare them. */
struct connection_reader {
    void (*content)(struct connection_reader *reader, struct span content); /* the next piece, decoded */
    void (*done)(struct connection_reader *reader, uint16_t status);        /* the reply is whole and valid */
};

struct connection {
    struct connection_limits limits;
    struct connection_reader *reader; /* NULL: nobody looks. Set from outside, after connection_init */
    enum connection_phase phase;
    bool ending; /* the owner is to close the stream; stays set until the connection is cleared */
    bool deaf;   /* bytes that still come mean nothing */
    bool late;   /* it ends because a deadline passed */
    int error;   /* why it ends, for exchanges without an answer. Set with `ending`, then never changes */
    uint64_t begun, whole, answered, taken, done;
    uint64_t unsent_bytes;     /* of the request that is not whole; 0 if all are */
    uint64_t part_bytes;       /* of it, sent so far */
    uint64_t progress_ns;      /* when the connect began, the last request began or bytes were last taken */
    uint64_t reply_since_ns;   /* since when the oldest whole exchange without a reply waits for it */
    uint32_t reply_bytes;      /* taken of the reply to exchange `done`; saturates */
    uint32_t reply_body_bytes; /* those behind its head */
    uint32_t reply_content_bytes;                                  /* what they are when decoded */
    struct connection_exchange exchanges[CONNECTION_PIPELINE_MAX]; /* of number n: [n % MAX] */
    struct http_reply reply;
    struct inflater inflater; /* of its body */
};

/* `c` is zeroed, or in CONNECTION_NONE. */
void connection_init(struct connection *c, const struct connection_limits *limits);

/* --- what happened --- */

/* A connect began. From CONNECTION_NONE. */
void connection_connect(struct connection *c, uint64_t now_ns);
void connection_connected(struct connection *c, uint64_t now_ns);
/* The owner hands a request of `bytes` (> 0) to the stream: allowed by connection_ready only. Returns the
 * exchange's number. */
uint64_t connection_begin(struct connection *c, uint64_t now_ns, uint64_t bytes);
/* The kernel took `bytes` more of the request. */
void connection_sent(struct connection *c, uint64_t now_ns, uint64_t bytes);
void connection_received(struct connection *c, uint64_t now_ns, struct span bytes);
/* The peer sends no more. */
void connection_ended(struct connection *c);
/* The same, but what it sent before may be cut off (TLS ended without close_notify): a reply that only the
 * end of the stream would have ended is not complete. */
void connection_cut(struct connection *c);
/* Connecting, sending or receiving failed. Replies that came before it may still be delivered. */
void connection_failed(struct connection *c, int error);
/* Once all that happened until `now_ns` is told: sees deadlines that passed and early replies. */
void connection_tick(struct connection *c, uint64_t now_ns);
/* The stream is closed. */
void connection_closed(struct connection *c);
/* All answers are taken, the rest is looked at: to CONNECTION_NONE. Nothing is allocated then. */
void connection_clear(struct connection *c);

/* --- what is to be done --- */

/* Whether a request may be begun now. */
bool connection_ready(const struct connection *c);

/* The earliest moment at which connection_tick has something to do; NEVER if there is none. */
uint64_t connection_deadline_ns(const struct connection *c);

/* Takes the next answer: its exchange's number and what the reply said, which is valid until the next
 * connection_begin. False: none can be taken now. */
bool connection_take(struct connection *c, uint64_t *number, const struct answer **answer);

/* When closed: whether it left exchanges without an answer, and whether they may go again at once, at no
 * cost. They may if this connection had carried a whole exchange before, not one byte came in reply to them,
 * and the peer's end or the network's, not a deadline of ours, was the reason: a server may close a
 * connection that it takes for idle at the very moment of our sending (RFC 9112 section 9.3.1). That happens
 * once only, since on a fresh connection they are the first. */
static inline bool connection_unanswered(const struct connection *c)
{
    return c->answered < c->begun;
}

static inline bool connection_go_again(const struct connection *c)
{
    return c->done > 0 && c->answered == c->done && c->reply_bytes == 0 && !c->late;
}

#endif
