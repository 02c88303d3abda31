/* The receiver's half of the handshake: INITs of any peer in, answers out, and the table of the sessions that
 * came of it (docs/link-protocol.md section 3).
 *
 * Who is not let in, or fails any check, gets no answer and changes nothing. An INIT that passes makes an
 * *unconfirmed* session, which changes nothing else either: that waits for the first packet that opens under
 * it. So a replayed INIT is worth one of the few unconfirmed places; within an association not even that, as
 * its attempts only rise.
 *
 * Work is bounded: LINK_HANDSHAKES a second without a cookie, LINK_PROVEN_HANDSHAKES with one. Memory is
 * bounded by the number of peers, and allocated at the start. */
#ifndef PURE_LINK_RESPONDER_H
#define PURE_LINK_RESPONDER_H

#include "link/cookie.h"
#include "link/indices.h"
#include "noise/key.h"
#include "link/session.h"

/* Current, previous and unconfirmed. */
#define RESPONDER_SESSIONS  (2 + LINK_UNCONFIRMED)
#define RESPONDER_PEERS_MAX 4096 /* a look-up by key goes through all */
#define RESPONDER_REPORT_NS (60 * NS_PER_S)

enum responder_role { RESPONDER_FREE, RESPONDER_UNCONFIRMED, RESPONDER_CURRENT, RESPONDER_PREVIOUS };

struct responder_session {
    enum responder_role role;                    /* FREE: all is zero; one CURRENT and one PREVIOUS at most */
    uint32_t peer;                               /* its number */
    bool goes_on;                                /* its INIT named the association that was current then */
    uint8_t association[LINK_ASSOCIATION_BYTES]; /* that, or the one that begins with it */
    uint8_t e[LINK_KEY_BYTES];                   /* its INIT's: by it a duplicate is known */
    uint64_t end_ns;                             /* wiped then */
    struct session session;
};

struct responder_peer {
    bool allowed; /* else all is zero */
    uint8_t key[LINK_KEY_BYTES];
    uint8_t association[LINK_ASSOCIATION_BYTES]; /* the newest confirmed; zero: none */
    uint64_t attempt; /* the largest answered of that association; strictly increasing */
    struct responder_session sessions[RESPONDER_SESSIONS];
};

/* A budget of `rate` a second, all of which may be used at once. */
struct responder_budget {
    uint64_t full_ns; /* when all of it is there again */
};

/* What a REPLY offers; see struct initiator_terms. */
struct responder_terms {
    uint32_t most_streams;
    uint64_t session_credit;
    uint64_t next_packet;
};

struct responder_events {
    /* Fills in what a peer is offered, whose association goes on, or begins with packet number 0. */
    void (*offer)(void *context, uint32_t peer, bool goes_on, struct responder_terms *terms);
    /* Somebody with this key, which is not let in, tried; and `times` in all since the last report. Called
     * once in RESPONDER_REPORT_NS at most. */
    void (*unknown)(void *context, const uint8_t key[LINK_KEY_BYTES], uint64_t times);
    void *context;
};

struct responder {
    const struct host_key *key; /* outlives it */
    uint8_t ciphers;            /* enum link_offer: what may be chosen of an INIT's offer */
    struct noise_random random;
    struct responder_events events;
    struct cookie_keys cookie_keys;
    struct cookie_jar jar;
    struct indices indices;
    struct responder_peer *peers;
    uint32_t peer_limit;
    struct responder_budget handshakes, proven;
    uint64_t next_ns;    /* the earliest end_ns of a session, or earlier */
    uint64_t report_ns;  /* no report before */
    uint64_t unreported; /* INITs with unknown keys since the last */
};

/* Room for `peer_limit` peers (at most RESPONDER_PEERS_MAX), none of them let in yet. `ciphers` is
 * cipher_hardware() or less. 0 or -ENOMEM. */
int responder_init(struct responder *r, uint64_t now_ns, const struct host_key *key, uint8_t ciphers,
                   uint32_t peer_limit, const struct noise_random *random,
                   const struct responder_events *events);
void responder_dispose(struct responder *r);

/* Lets a key in. Returns the peer's number, below peer_limit, stable until it is forbidden; the same one if
 * it is in already; PE_FULL. */
int responder_allow(struct responder *r, const uint8_t key[LINK_KEY_BYTES]);

/* Lets it in no more, and ends its sessions. */
void responder_forbid(struct responder *r, uint32_t peer);

/* Ends a peer's sessions and its association, as after CLOSE. It may come again. */
void responder_forget(struct responder *r, uint32_t peer);

/* An INIT from `source`. Returns the size of the answer in `out`, which goes back there: a REPLY or a COOKIE;
 * or why there is none: PE_NOT_AUTHENTIC, PE_KEY_WEAK, PE_UNKNOWN_KEY, PE_LINK_VERSION, PE_MALFORMED,
 * PE_REPLAYED, PE_LINK_BUSY. */
int responder_answer(struct responder *r, uint64_t now_ns, const struct cookie_source *source,
                     const struct link_init *init, uint8_t out[LINK_ANSWER_BYTES]);

/* Whose session a DATA packet names, before anything is opened: a peer's number, or PE_EXPIRED. It may be
 * anybody who names it. */
int responder_named(const struct responder *r, const uint8_t *packet);

struct responder_packet {
    uint32_t peer;
    bool confirmed; /* this packet confirmed its session: whose */
    bool begins;    /* association begins with it, so that all of the peer's transport state begins anew; else
                       goes on */
    struct session_packet packet;
};

/* A DATA packet, opened in place. 0; PE_EXPIRED if its index is nobody's, its session too old or its
 * association over; else as session_open. */
int responder_open(struct responder *r, uint64_t now_ns, uint8_t *packet, size_t size,
                   struct responder_packet *opened);

/* The session to seal with for a peer, or NULL: nothing can be sent to it. */
struct session *responder_sealing(struct responder *r, uint32_t peer, uint64_t now_ns);

/* When responder_tick has something to do. */
static inline uint64_t responder_next_ns(const struct responder *r)
{
    return r->next_ns;
}

/* Wipes the sessions that are too old. */
void responder_tick(struct responder *r, uint64_t now_ns);

#endif
