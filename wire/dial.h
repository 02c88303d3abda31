/* From a destination to a connected descriptor.
 *
 *     LOOKING     for the addresses, if it is time to (wire/destination.h)
 *     RACING      one attempt after the other, the next when one failed or DIAL_DELAY_NS after the one
 * before; the first to connect is taken (RFC 8305 section 5) TUNNELLING  https through a proxy: CONNECT
 * (wire/tunnel.h) ENDING      the attempts that lost are cancelled and closed; then `done`
 *
 * TLS is not its business. Bounds: a lookup, each attempt and the tunnel have the destination's progress_ns
 * each, and the last attempt begins RESOLVER_ADDRESSES * DIAL_DELAY_NS after the first, at the latest.
 * Whatever fails, no memory and no descriptor included, is an error given to `done`.
 *
 * A dial's operations are embedded in it: it stays where it is until `done` was called. */
#ifndef PURE_WIRE_DIAL_H
#define PURE_WIRE_DIAL_H

#include "wire/destination.h"

#define DIAL_DELAY_NS (250 * NS_PER_MS) /* RFC 8305 section 5, Connection Attempt Delay */

struct dial;
struct dial_tunnel;

enum dial_phase { DIAL_IDLE, DIAL_LOOKING, DIAL_RACING, DIAL_TUNNELLING, DIAL_ENDING };

struct dial_attempt {
    struct dial *dial;
    struct resolver_address to;
    int fd;            /* -1: none, or no more; or the tunnel has it */
    bool connecting;   /* `op` connects */
    bool given_up;     /* whatever comes of it, it is closed */
    uint64_t since_ns; /* when it began */
    struct io_op op;   /* connects, then closes */
};

struct dial {
    struct destination *destination;
    /* Once for each dial_start, from inside a later step of the loop: `fd` connected, to be adopted by a
     * stream, or negative: `error` says why, dial_text of what. The dial may be started again from here, or
     * go. */
    void (*done)(struct dial *dial, int fd, int error);

    /* The rest is private. */
    enum dial_phase phase;
    int error;                   /* what `done` will say; RACING: the most telling one so far */
    unsigned blamed;             /* the attempt that `error` is of */
    unsigned count;              /* attempts[0, count) have an address */
    unsigned begun;              /* attempts[0, begun) were made */
    uint64_t next_ns;            /* RACING: when attempts[begun] is to begin */
    struct timer timer;          /* whatever is to be done next, also at once; unset while IDLE */
    struct dial_attempt *winner; /* its connection is the one to hand out; NULL: none yet, or none */
    struct dial_tunnel *tunnel;  /* owned; NULL: none. While it is open it has the winner's connection */
    bool tunnel_open;
    struct destination_waiter waiter;
    char text[128];
    struct dial_attempt attempts[RESOLVER_ADDRESSES];
};

/* Takes one timer of the loop. */
void dial_init(struct dial *dial, struct destination *destination, void (*done)(struct dial *, int, int));
void dial_start(struct dial *dial, uint64_t now_ns);
/* At any moment. If it is busy, `done` follows with PE_STOPPING, and never with a descriptor. */
void dial_stop(struct dial *dial);

/* Its loop's io is disposed of, and nothing of it completes any more: gives its memory back, without `done`.
 */
void dial_abandon(struct dial *dial);

static inline bool dial_busy(const struct dial *dial)
{
    return dial->phase != DIAL_IDLE;
}

/* After `done` said an error, until the next start: of what it is, for people: "10.0.0.2:80 and 2 others",
 * "the proxy answered 502"; "" if there is nothing to add. */
static inline const char *dial_text(const struct dial *dial)
{
    return dial->text;
}

#endif
