/* The key of a host: a Curve25519 pair. Its text forms are base64 (RFC 4648 section 4, with padding):
 *
 *     public    44 characters, as in [peer] and as people hand it on
 *     private   "pure-host-private-key:" and 44 characters: the one line of a key file
 *
 * The private form says what it is, so that neither is ever taken for the other. */
#ifndef PURE_NOISE_KEY_H
#define PURE_NOISE_KEY_H

#include "core/bytes.h"
#include "noise/random.h"

#define HOST_KEY_PRIVATE_PREFIX "pure-host-private-key:"
#define HOST_KEY_BYTES          32 /* of either half */
/* With the NUL. */
#define HOST_KEY_PUBLIC_TEXT  45
#define HOST_KEY_PRIVATE_TEXT (sizeof HOST_KEY_PRIVATE_PREFIX - 1 + HOST_KEY_PUBLIC_TEXT)

struct host_key {
    uint8_t private[HOST_KEY_BYTES];
    uint8_t public[HOST_KEY_BYTES];
};

void host_key_generate(struct host_key *key, const struct noise_random *random);
void host_key_wipe(struct host_key *key);

/* The private text is without a newline; wipe it after use. */
void host_key_private_text(const struct host_key *key, char text[HOST_KEY_PRIVATE_TEXT]);
void host_key_public_text(const uint8_t public[HOST_KEY_BYTES], char text[HOST_KEY_PUBLIC_TEXT]);

/* Parse: space, tabs and newlines around the key are allowed, nothing else. 0; PE_KEY; PE_KEY_IS_PRIVATE or
 * PE_KEY_IS_PUBLIC if it is the other form; PE_KEY_WEAK if no secret can be agreed on with it. On failure the
 * result is zeroed. */
int host_key_parse_private(struct span text, struct host_key *key);
int host_key_parse_public(struct span text, uint8_t public[HOST_KEY_BYTES]);

#endif
