/* Who may send sealed requests here, and the tickets that they go with.
 *
 * A ticket says when it was given, on the clock of this life of the host, and to whom; only this life can
 * have made it, as its secret is drawn anew with each start. So a request that was captured in an earlier
 * life is of no use in this one, and of two requests it can be told which one's sender has heard of us last
 * (host/streams.h). It is no secret: whoever has one needs the peer's key, too. */
#ifndef PURE_HOST_SEALED_DOOR_H
#define PURE_HOST_SEALED_DOOR_H

#include "core/log.h"
#include "host/config.h"
#include "host/registry.h"
#include "wire/sealed.h"

#include <sodium.h>

struct sealed_peer {
    const char *name; /* as the apps know it */
    uint8_t key[HOST_KEY_BYTES];
    bool *apps; /* by index in the registry: whether it may send there */
};

struct sealed_door {
    const struct host_key *key;
    struct noise_random random;
    struct log *log;
    struct sealed_peer *peers; /* peer_count of them, by their keys */
    unsigned peer_count;
    uint64_t strangers;  /* requests of keys that are not let in */
    uint64_t disallowed; /* requests of peers to apps that they may not send to */
    bool drawn;          /* `secret` is there: with the first ticket */
    uint8_t secret[crypto_generichash_blake2b_KEYBYTES];
};

/* Lets in the peers of the configuration, whose names stay in use. `key` and `log` outlive the door. 0 or
 * -ENOMEM. */
int sealed_door_init(struct sealed_door *door, const struct config *config, const struct registry *registry,
                     const struct host_key *key, const struct noise_random *random, struct log *log);
void sealed_door_dispose(struct sealed_door *door);

/* NULL: nobody with that key is let in. */
const struct sealed_peer *sealed_door_find(const struct sealed_door *door, const uint8_t key[HOST_KEY_BYTES]);

/* Opens a request's head; `*peer` is who sent it. Errors as of sealed_request_read; a stranger is said in the
 * log, the 1st, 2nd, 4th … time. */
int sealed_door_open(struct sealed_door *door, struct span text, struct sealed_opened *opened,
                     const struct sealed_peer **peer);

/* A peer has asked for an app that it may not send to: counted, and said in the same way. */
void sealed_door_disallow(struct sealed_door *door, const struct sealed_peer *peer, const char *app);

void sealed_door_ticket(struct sealed_door *door, const struct sealed_peer *peer, uint64_t now_ns,
                        uint8_t ticket[SEALED_TICKET_BYTES]);

/* When the ticket was given; 0: not to this peer in this life. */
uint64_t sealed_door_given_ns(const struct sealed_door *door, const struct sealed_peer *peer,
                              const uint8_t ticket[SEALED_TICKET_BYTES]);

#endif
