/* Sealed records: who sends, and what, is in the field Pure-Sealed (wire/sealed.h), which is opened before a
 * byte of the body is taken; the body in chunks, each opened when it is whole, and its records believed then;
 * the reply is proven.
 *
 *     a head that does not open    403, and the connection ends: one DH a connection is what a stranger costs
 *     a peer's                     a proven reply, unless the request's end may have been the doing of the
 * way: a chunk that does not open, a body that ends early or comes too slowly */
#ifndef PURE_HOST_FRONT_SEALED_H
#define PURE_HOST_FRONT_SEALED_H

#include "host/front_client.h"
#include "host/front_request.h"
#include "host/sealed_door.h"

/* What a connection with sealed requests has more; the front's kept bytes count it. */
struct client_sealed {
    /* of the sealed exchange n, [n % FRONT_PIPELINE]: what proves its reply */
    struct sealed_answer {
        uint8_t key[NOISE_KEY_BYTES];
        const struct sealed_peer *peer;
    } answers[FRONT_PIPELINE];
    /* the body under way */
    uint8_t key[NOISE_KEY_BYTES];
    uint64_t number; /* of the next chunk */
    uint64_t left;   /* bytes to come, without tags */
    uint8_t *chunk;  /* of it, `have` bytes; room for all of it; NULL: none is begun */
    uint32_t have, room;
};

/* A request for ROUTE_SEALED. */
void front_sealed_begin(struct client *c, const struct request_fields *fields);

/* Takes from `content` what completes the next chunk, and opens it: 1 with its bytes, valid until the next
 * call or the body's end, and whether they are the last; 0: more is needed; negative: the request is refused,
 * without a proof. */
int front_sealed_take(struct client *c, struct span *content, struct span *plain, bool *last);

/* The body is over, or refused. Idempotent. */
void front_sealed_release(struct client *c);

/* The connection is over. Idempotent. */
void front_sealed_forget(struct client *c);

/* The end of the last exchange's request may be the doing of the way: its reply is not proven. */
void front_sealed_distrust(struct client *c);

/* The proof of the reply of the exchange `c->first`, once: the value of Pure-Sealed. */
void front_sealed_prove(struct client *c, const struct exchange *x, uint16_t status,
                        char text[SEALED_REPLY_TEXT_BYTES]);

#endif
