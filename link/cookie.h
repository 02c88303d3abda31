/* The two macs of an INIT, and the COOKIE: what keeps strangers and forged addresses cheap
 * (docs/link-protocol.md section 3, after WireGuard's paper, section 5.4.7). */
#ifndef PURE_LINK_COOKIE_H
#define PURE_LINK_COOKIE_H

#include "link/messages.h"
#include "noise/random.h"

struct sockaddr;

/* What follows from the receiver's public key; both ends have it, it is secret only to who does not know that
 * key. */
struct cookie_keys {
    uint8_t mac1[LINK_KEY_BYTES];
    uint8_t cookie[LINK_KEY_BYTES];
};

/* An address and port, the same bytes for the same source whatever else its sockaddr holds: an IPv6 address
 * (IPv4: mapped into it), its scope if it is link-local, and the port. */
struct cookie_source {
    uint8_t bytes[22];
};

/* The receiver's secrets: cookies are made with the newer, and are right with either. Each is made with for
 * LINK_COOKIE_NS, so a cookie holds for that long at least, and for twice as long at most. */
struct cookie_jar {
    struct noise_random random;
    uint8_t secrets[2][LINK_KEY_BYTES]; /* newer, older */
    uint64_t drawn_ns;                  /* when the newer one was */
};

/* The sender's cookie. */
struct cookie_held {
    uint8_t cookie[LINK_MAC_BYTES];
    uint64_t until_ns; /* 0: none */
};

enum cookie_mac2 { COOKIE_NONE, COOKIE_RIGHT, COOKIE_WRONG };

void cookie_keys_derive(struct cookie_keys *keys, const uint8_t receiver_public[LINK_KEY_BYTES]);

/* `address` is an AF_INET or AF_INET6 one. */
struct cookie_source cookie_source_of(const struct sockaddr *address);

/* --- the sender --- */

/* Puts mac1, and mac2 (zero without a cookie), into an INIT that is complete but for them. */
void cookie_sign(const struct cookie_held *held, const struct cookie_keys *keys, uint64_t now_ns,
                 struct link_init *init);

/* Takes the cookie of a COOKIE that answers the INIT with this mac1. 0 or PE_NOT_AUTHENTIC, and nothing
 * changed. */
int cookie_take(struct cookie_held *held, const struct cookie_keys *keys, uint64_t now_ns,
                const uint8_t sent_mac1[LINK_MAC_BYTES], const struct link_cookie *message);

/* --- the receiver --- */

bool cookie_mac1_right(const struct cookie_keys *keys, const struct link_init *init);

void cookie_jar_init(struct cookie_jar *jar, uint64_t now_ns, const struct noise_random *random);
void cookie_jar_wipe(struct cookie_jar *jar);

enum cookie_mac2 cookie_mac2_check(struct cookie_jar *jar, uint64_t now_ns,
                                   const struct cookie_source *source, const struct link_init *init);

/* The COOKIE that answers `init`, to be sent to `source`. */
void cookie_answer(struct cookie_jar *jar, const struct cookie_keys *keys, uint64_t now_ns,
                   const struct cookie_source *source, const struct link_init *init,
                   struct link_cookie *message);

#endif
