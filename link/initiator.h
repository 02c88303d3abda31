/* The sender's half of the handshake: from a wish for a session to INIT, REPLY, a session, and the next
 * before it is too old (docs/link-protocol.md section 3).
 *
 *     idle --wanted--> INIT sent --REPLY--> session --120 s or 2^38 bytes--> INIT sent, session goes on …
 *                      ^ |  after 1, 2, 4 … 60 s, ±25 %, with a new e
 *                      +-+
 *
 * Traffic never waits for a rekey: it goes on under the old session until the REPLY is there, and what the
 * receiver sealed under the old one opens until 30 s after the first packet under the new one. Nothing that
 * fails a check changes anything. */
#ifndef PURE_LINK_INITIATOR_H
#define PURE_LINK_INITIATOR_H

#include "link/cookie.h"
#include "link/indices.h"
#include "noise/key.h"
#include "noise/noise.h"
#include "link/session.h"

/* Indices that one initiator holds at most: of the handshake, the current and the previous session. */
#define INITIATOR_INDICES 3

struct initiator {
    const struct host_key *key; /* ours; outlives it */
    uint8_t ciphers;            /* enum link_offer: what its INITs offer */
    struct indices *indices; /* of the socket it is on; may be shared: the owner of its indices is `owner` */
    void *owner;
    struct noise_random random;
    uint8_t remote_public[LINK_KEY_BYTES];
    struct cookie_keys cookie_keys;
    struct cookie_held cookie;

    bool wanted;         /* a session is to be there: INITs are sent */
    bool restarting;     /* a new session is wanted though the current one is young */
    uint64_t retry_ns;   /* no INIT before */
    uint64_t restart_ns; /* no other restart before: a receiver that ends each session at once must not keep
                            us busy */
    unsigned retries;    /* INITs since the last REPLY */
    bool cookie_due;     /* the newest INIT was answered by a COOKIE: the next goes with it at once */
    bool cookie_used;    /* the newest INIT is such a one */

    /* The handshake under way: one at a time, the newest INIT's. */
    bool waiting;                      /* for its REPLY; else the next three are zero */
    struct noise noise;                /* after INIT */
    uint32_t waiting_index;            /* INIT's */
    uint8_t sent_mac1[LINK_MAC_BYTES]; /* INIT's */

    /* The association (zero: none), and how many INITs have named it. */
    uint8_t association[LINK_ASSOCIATION_BYTES];
    uint64_t attempts;

    struct session current;   /* seals, opens */
    struct session previous;  /* opens */
    bool confirmed;           /* a packet under the current session was opened */
    uint64_t previous_end_ns; /* NEVER until confirmed */
};

/* What REPLY says. */
struct initiator_terms {
    enum link_cipher cipher; /* that the session is sealed with */
    bool goes_on;            /* else a new association begins: packet numbers from 0, no streams */
    uint32_t most_streams;
    uint64_t session_credit;
    uint64_t next_packet; /* the receiver's first number in this session is no less */
};

/* Offers `ciphers`, which is cipher_hardware() or less. 0, or PE_KEY_WEAK if no secret can be agreed on with
 * the remote key. */
int initiator_init(struct initiator *i, const struct host_key *key, uint8_t ciphers,
                   const uint8_t remote_public[LINK_KEY_BYTES], struct indices *indices, void *owner,
                   const struct noise_random *random);

/* Gives the indices back and wipes all. */
void initiator_dispose(struct initiator *i);

/* Whether a session is to be there, which is kept up by rekeying. Without it what there is ages and ends. */
void initiator_want(struct initiator *i, bool wanted);

/* Begins a new handshake as soon as the back-off allows, whatever session there is: it seems dead. */
void initiator_restart(struct initiator *i);

/* The next INIT is due at `until_ns` at the latest. */
void initiator_hurry(struct initiator *i, uint64_t until_ns);

/* When initiator_tick and then initiator_write have something to do; NEVER: nothing. */
uint64_t initiator_next_ns(const struct initiator *i);

/* Wipes what is too old. */
void initiator_tick(struct initiator *i, uint64_t now_ns);

/* Writes an INIT if one is due: LINK_INIT_BYTES, or 0. `next_packet` is the number that the association's
 * next packet will have; what is sealed under the new session has no lower one. */
size_t initiator_write(struct initiator *i, uint64_t now_ns, uint64_t next_packet,
                       uint8_t out[LINK_INIT_BYTES]);

/* A REPLY whose index is ours. On success the new session is the current one: the caller begins it with a
 * packet that elicits an acknowledgement, and if it does not go on, with all transport state anew (then no
 * older session is left). 0; PE_EXPIRED if it answers no INIT that is under way; PE_NOT_AUTHENTIC,
 * PE_MALFORMED, PE_LINK_VERSION. */
int initiator_reply(struct initiator *i, uint64_t now_ns, const struct link_reply *reply,
                    struct initiator_terms *terms);

/* A COOKIE whose index is ours: it goes into the next INIT, which is due at once, unless the one answered was
 * such an INIT already. 0, PE_EXPIRED, PE_NOT_AUTHENTIC. */
int initiator_cookie(struct initiator *i, uint64_t now_ns, const struct link_cookie *message);

/* INITs come from another source from now on, for which the cookie is not right. */
void initiator_moved(struct initiator *i);

/* A DATA packet whose index is ours, opened in place: as session_open. */
int initiator_open(struct initiator *i, uint64_t now_ns, uint8_t *packet, size_t size,
                   struct session_packet *opened);

/* The session to seal with, or NULL: the link is down. */
struct session *initiator_sealing(struct initiator *i, uint64_t now_ns);

#endif
