/* Plays a script on one connection, as a state machine: bytes in, bytes out, the next deadline. Whoever has
 * the connection carries them:
 *
 *     bytes came      fault_player_take          then: send what is in `out`, at once or as it goes;
 *     time passed     fault_player_tick          obey `hearing` and, once `out` is empty, `leaving`
 *
 * TLS is OpenSSL's, in memory. */
#ifndef PURE_TESTS_FAULTS_PLAYER_H
#define PURE_TESTS_FAULTS_PLAYER_H

#include "core/bytes.h"
#include "core/clock.h"
#include "tests/faults/script.h"

#define FAULT_IDS 64 /* requests with different ids noted; more are counted only */

/* What a peer has seen, over all its connections. */
struct fault_account {
    unsigned connections;
    unsigned requests;
    unsigned handshakes, resumed; /* of TLS that came to their end; of them, by a session */
    unsigned ids;                 /* different ones among the requests */
    unsigned changed;             /* requests whose id had come with another body before: never right */
    struct fault_noted {
        char id[80];
        uint64_t body; /* its hash */
        unsigned times;
    } noted[FAULT_IDS];
};

struct fault_buffer {
    uint8_t *data;
    size_t size, room;
};

enum fault_leaving { FAULT_STAYS, FAULT_SHUTS_DOWN, FAULT_CLOSES, FAULT_RESETS };

struct ssl_st;
struct ssl_ctx_st;

struct fault_player {
    struct fault_buffer out;    /* to be sent, raw: the carrier takes it from its start */
    uint64_t due_ns;            /* fault_player_tick is due; NEVER */
    bool hearing;               /* the carrier reads */
    enum fault_leaving leaving; /* FAULT_RESETS at once, the others behind `out` */

    /* The rest is private. */
    const struct fault_step *script, *step;
    struct fault_account *account;
    struct ssl_ctx_st *identity;
    struct ssl_st *ssl; /* NULL: not secured */
    struct fault_buffer in;
    unsigned sent; /* FAULT_SEND: so many times already */
    bool waiting;  /* for due_ns */
};

/* A connection was made: counts it. `identity` (NULL without TLS) outlives it. */
void fault_player_init(struct fault_player *p, const struct fault_step *script, struct ssl_ctx_st *identity,
                       struct fault_account *account, uint64_t now_ns);
void fault_player_dispose(struct fault_player *p);
void fault_player_take(struct fault_player *p, struct span raw, uint64_t now_ns);
void fault_player_tick(struct fault_player *p, uint64_t now_ns);
/* The first bytes of `out` are sent. */
void fault_player_sent(struct fault_player *p, size_t size);

#endif
