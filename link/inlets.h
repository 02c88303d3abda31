/* The streams that come in over one association: frames about them in and out. Packets, keys and time-outs
 * are link_receiver's.
 *
 * A stream's number, modulo the places there are, is its place. It lives there from its OPEN to its end; then
 * a higher number may. Refused, it lives on without memory until its end has come, since only then both ends
 * agree on how much of the session's credit it used:
 *
 *     session_freed <= session_handed <= session_received <= session_credit
 *     session_credit <= session_freed + session_window + extra
 *     extra <= session_window + a record
 *
 * Streams share the session's window, and none may keep it from the others, whatever its consumer does:
 *
 *   - A stream is given LINK_STREAM_CREDIT, and as much more as its consumer has freed of it so far, up to a
 *     part of what is not promised to others; the part is stream_window / session_window. So one alone gets
 *     to stream_window, each that stands still leaves most of the rest, and none gets much for nothing. A
 *     record that is coming is given what it needs, once all before it is freed.
 *   - While less than 1/INLETS_CROWDED of the window is free for INLETS_PATIENCE_NS, streams that hold
 * records and freed not a byte in that time are relieved, the one that holds most first, until
 * 1/INLETS_RELIEVED is free: refused (REFUSED_NO_ROOM), so that the records wait at the sender instead.
 *
 * Many large records at once could fill the window with beginnings of which none can be completed. Then, when
 * all that was received is of such beginnings, `extra` grows by a record, until the last byte is freed. When
 * it is as much as the window, those of which most has come are relieved.
 *
 * With `overpromise`, credits here are as they would be without it: it is added only where senders are told.
 *
 * Memory: what is held, at most session_window + extra, and what freed records have left behind in the rings:
 * when that is more than a session_window, it is given back. So three windows and a record are the most.
 *
 * Consumers are told of records in whole, in order and once per stream. A sender may send records again on a
 * later stream, in another association: the consumer knows by their numbers which it has stored. */
#ifndef PURE_LINK_INLETS_H
#define PURE_LINK_INLETS_H

#include "core/clock.h"
#include "link/frames.h"
#include "link/receive_stream.h"
#include "link/sent.h"

#define INLETS_CROWDED     8
#define INLETS_RELIEVED    2
#define INLETS_PATIENCE_NS NS_PER_S

enum inlet_state {
    INLET_FREE,
    INLET_OPEN,
    INLET_REFUSED,
};

struct inlets;

struct inlet {
    struct receive_stream stream;
    struct inlets *inlets;
    void *context;   /* the consumer's */
    uint32_t number; /* of the stream that is, or last was, here */
    bool used;       /* one was; never false again within the association */
    enum inlet_state state;
    uint64_t reason; /* enum frame_refusal, if it was refused, else 0 */
    bool more;       /* while the consumer is told of records: it is told of those behind them next */
    bool waits;      /* it held records at the last look (inlets_relieve), and freed nothing since */
    bool too_large;  /* the record at stream.handed is over the limit: refused once those before it are stored
                      */
    bool asked;      /* no STORED before inlet_answer: the stream's OPEN asks, and that would be the answer */
    bool ready;      /* listed in `ready`: bytes came */
    bool due;        /* listed in `due`: STORED or REFUSED has to be sent */
    struct inlet *next_ready, *next_due;
};

/* Who gets the records. It calls inlet_freed, inlet_stored and inlet_refuse, at once or later, as long as the
 * inlet is not closed. */
struct link_consumer {
    /* A stream begins: record open->first is its first. `peer` is the context of the peer. 0 and
     * inlet->context set as it likes, or an enum frame_refusal with `*stored`. If open->asks, it answers with
     * inlet_answer, or refuses with REFUSED_ROLLED_BACK. Spans live as long as the call. */
    int (*admit)(void *context, void *peer, const struct frame_open *open, struct inlet *inlet,
                 uint64_t *stored);
    /* `count` whole framed records, from number `first` on. They lie in memory, contiguous with those before
     * and after, until they are freed with inlet_freed: back-pressure is not to free. What has come is told
     * of in pieces (receive_stream_take): inlet->more until the last. */
    void (*records)(void *context, struct inlet *inlet, uint64_t first, struct span records, uint64_t count);
    /* The stream is no more; what was not freed is gone when this returns. inlet->reason is 0 if the sender
     * ended it, or the association; else why it is refused. */
    void (*closed)(void *context, struct inlet *inlet);
    void *context;
};

struct inlet_limits {
    uint32_t places;         /* streams at once */
    uint64_t stream_window;  /* bytes that one stream may have: at most session_window counts */
    uint64_t session_window; /* bytes of all streams together */
    size_t max_record;       /* bytes */
    /* For experiments: bytes of credit that senders are told of and there is no room for. What comes of them
     * is not acknowledged, so it comes again: as if there were no credit, but a socket that overflows */
    uint64_t overpromise;
};

struct inlets {
    struct inlet *list; /* limits.places of them; a ring is mapped when its place is first used, and kept */
    struct inlet_limits limits;
    const struct link_consumer *consumer;
    void *peer;
    void (*wants)(struct inlets *);
    /* bytes from the association's start; none of them ever decreases */
    uint64_t session_freed, session_handed, session_received, session_credit;
    uint64_t extra;    /* bytes */
    uint64_t promised; /* bytes: the sum of credit - freed of all open streams */
    uint64_t touched;  /* bytes: the sum of all streams' */
    uint64_t look_ns;  /* when inlets_relieve looks again; NEVER while it is not crowded */
    bool credit_due;
    struct inlet *ready, *due, **due_tail;
};

/* `wants` is called whenever inlets_due becomes true. 0 or -ENOMEM. */
int inlets_init(struct inlets *in, const struct inlet_limits *limits, const struct link_consumer *consumer,
                void *peer, void (*wants)(struct inlets *));

/* Closes whatever is open. */
void inlets_dispose(struct inlets *in);

/* The association is a new one: whatever is open is closed, and all places are free. */
void inlets_begin(struct inlets *in);

/* Frames of the sender. 0; PE_FULL: this packet has to be taken as lost; PE_MALFORMED: it said what cannot
 * be. */
int inlets_open(struct inlets *in, const struct frame_open *open);
int inlets_records(struct inlets *in, const struct frame_records *records);

/* Hands on what has come: once after a batch of datagrams. */
void inlets_deliver(struct inlets *in);

/* Looks whether streams have to be relieved. To be called when records came, and at in->look_ns. */
void inlets_relieve(struct inlets *in, uint64_t now_ns);

static inline bool inlets_due(const struct inlets *in)
{
    return in->due || in->credit_due;
}

/* Puts what is due into [at, end) and notes it in `sent`. Returns the bytes used. */
size_t inlets_fill(struct inlets *in, struct sent *sent, uint8_t *at, const uint8_t *end);

/* An item that inlets_fill noted was lost: what it said is due again, as it is now. */
void inlets_lost(struct inlets *in, const struct sent_item *item);

/* --- the consumer's --- */

/* It is done with `bytes` more of the records it was given. */
void inlet_freed(struct inlet *inlet, uint64_t bytes);

/* Records up to `number` are stored for good. */
void inlet_stored(struct inlet *inlet, uint64_t number);

/* The stream's OPEN asks, and the answer is no: no more is stored than may have been sent. */
void inlet_answer(struct inlet *inlet);

/* It takes no more of this stream, of which `stored` records are stored. The inlet is closed to it, without a
 * call. */
void inlet_refuse(struct inlet *inlet, enum frame_refusal reason, uint64_t stored);

#endif
