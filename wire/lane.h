/* One connection of a wire, from none over dialing and TLS to exchanges, and back to none; and the memory
 * that its requests are written in. The exchanges themselves are connection.h's.
 *
 *     gone ── lane_open ──▶ dialing ──▶ securing ──▶ open ──▶ closing ──▶ closed ── lane_clear ──▶ gone
 *                              └──────────┴─── whatever fails ───────────────▲
 *
 * Securing is passed over without TLS. What happens is told to its owner by `stirred`, from inside the loop's
 * wait or a dial; the owner has a look in its next round. A dial or handshake that fails is a connection that
 * is closed, with its error and without an exchange.
 *
 * A lane is not moved or freed unless it is gone. Its memory is allocated by its first request, and never
 * again. */
#ifndef PURE_WIRE_LANE_H
#define PURE_WIRE_LANE_H

#include "core/loop.h"
#include "tls/context.h"
#include "tls/secure_stream.h"
#include "wire/connection.h"
#include "wire/dial.h"

/* A lane but the first is closed after this time without a request. */
#define LANE_IDLE_NS (30 * NS_PER_S)

struct lane;

/* What the lanes of a wire have in common: its owner's. */
struct lane_shared {
    struct loop *loop;
    struct destination *destination;
    struct tls_current *tls; /* NULL: plain */
    const char *host;        /* for TLS */
    struct tls_session session;
    struct connection_limits limits;
    uint64_t age_ns;  /* no connection begins an exchange when it is older; NEVER: any age */
    size_t head_room; /* bytes of the longest head */
    size_t body_room; /* bytes of the longest body that is not sent from where its records lie; 0: none is */
    size_t packed_room;                 /* bytes of the longest compressed body; 0: none is */
    void (*stirred)(struct lane *lane); /* something happened */
    void (*due)(struct lane *lane);     /* lane_due_ns may have come nearer */
};

struct lane {
    struct lane_shared *shared;
    unsigned index;   /* among the wire's */
    bool dialing;     /* then connection.phase is CONNECTION_NONE */
    bool made;        /* the connection was made: dialing has not failed, */
    bool usable;      /* and neither did securing */
    char detail[128]; /* of how it failed, for people, beyond the connection's error; "" */
    bool leaving;     /* its owner closes it in peace: its end is no failure */
    struct connection connection;
    struct secure_stream stream; /* in use unless connection.phase is CONNECTION_NONE or CONNECTION_CLOSED */
    struct dial dial;
    uint64_t opened_ns;     /* when the connection was made */
    uint64_t slot;          /* modes webhook and batch: what is in flight (slots.h), */
    uint64_t content_bytes; /* and the size of its body */
    char *head;             /* shared->head_room bytes; NULL until first needed */
    uint8_t *body;          /* shared->body_room bytes; NULL until first needed */
    uint8_t *packed;        /* shared->packed_room bytes; the same */
};

void lane_init(struct lane *l, struct lane_shared *shared, unsigned index);

/* Gives its memory back. It is gone, or nothing of it completes any more, as its loop's io is disposed of. */
void lane_dispose(struct lane *l);

/* The memory for a request. 0 or -ENOMEM. */
int lane_prepare(struct lane *l);

/* From gone. */
void lane_open(struct lane *l, uint64_t now_ns);

/* Sends l->head[0, head_size) and the body: allowed by lane_ready only. Both stay as they are until the
 * request is whole or the connection closed. Returns the exchange's number on its connection. */
uint64_t lane_send(struct lane *l, uint64_t now_ns, size_t head_size, struct span body);

/* Ends it, whatever it is doing: CONNECTION_CLOSED follows unless it is gone. Idempotent. */
void lane_close(struct lane *l);

/* The same in peace. */
static inline void lane_leave(struct lane *l)
{
    l->leaving = true;
    lane_close(l);
}

/* Closed, and all of it looked at: gone. */
void lane_clear(struct lane *l);

static inline bool lane_gone(const struct lane *l)
{
    return !l->dialing && l->connection.phase == CONNECTION_NONE;
}

/* On its way to a connection. */
static inline bool lane_opening(const struct lane *l)
{
    return l->dialing || l->connection.phase == CONNECTION_CONNECTING;
}

/* Open, and nothing is asked of the peer. */
static inline bool lane_idle(const struct lane *l)
{
    const struct connection *c = &l->connection;
    return c->phase == CONNECTION_OPEN && c->done == c->begun;
}

/* Whether a request may be sent now. */
bool lane_ready(const struct lane *l, uint64_t now_ns);

/* Whether it is idle and too old, or has been idle for long: to be closed in peace. */
bool lane_tired(const struct lane *l, uint64_t now_ns);

/* When there is something to look at, at the latest; NEVER. */
uint64_t lane_due_ns(const struct lane *l);

#endif
