/* Signatures of webhooks by Standard Webhooks 1.0.0: the value of webhook-signature.
 *
 *     what is signed     webhook-id "." webhook-timestamp "." content
 *     symmetric          "v1,"  and base64 of HMAC-SHA256
 *     asymmetric         "v1a," and base64 of an ed25519 signature (RFC 8032)
 *     several            one of each secret, with a space between: while a secret is being replaced,
 * receivers take the request by the old one or the new one
 *
 * Secrets in their text forms are
 *
 *     whsec_ and base64 of 24 to 64 bytes                  HMAC
 *     whsk_  and base64 of a 32-byte seed, or of the
 *            64 bytes of seed and public key               ed25519
 *
 * with base64 as in RFC 4648 section 4, padded. sodium_init was called. */
#ifndef PURE_WIRE_SIGNATURE_H
#define PURE_WIRE_SIGNATURE_H

#include "wire/options.h"

#include <sodium.h>

/* Several secrets are separated by white space or commas. Returns how many there are, 1 to `room`, or
 * PE_CONFIG with `*why` (static: it never holds a part of a secret) for number `*which` of them, counted from
 * 1, or 0 if it is about all of them; all of `to` is zero then. */
int secrets_parse(struct span text, struct wire_secret *to, unsigned room, unsigned *which, const char **why);

/* NULL, or what is wrong with a secret (static). */
const char *secret_check(const struct wire_secret *secret);

#define SIGNATURE_MAX 92 /* bytes: "v1a," and 64 bytes in base64 */
#define SIGNED_ID_MAX 64 /* bytes of a webhook-id */

/* What is signed with. Holds secrets: wiped by signer_dispose. */
struct signer {
    unsigned count; /* 0: nothing is signed */
    struct signer_key {
        bool ed25519;
        union {
            crypto_auth_hmacsha256_state hmac; /* with its key taken in, before the first byte */
            struct {
                uint8_t scalar[32], prefix[32], public[32]; /* RFC 8032 section 5.1.5 */
            };
        };
    } keys[WIRE_SECRETS_MAX];
};

void signer_init(struct signer *s, const struct wire_secret *secrets, unsigned count);
void signer_dispose(struct signer *s);

/* The most bytes that signer_write writes. */
static inline size_t signer_room(const struct signer *s)
{
    return s->count * (SIGNATURE_MAX + 1);
}

/* Writes the signatures, in the secrets' order, without a NUL. Returns their size. */
size_t signer_write(const struct signer *s, struct span id, uint64_t timestamp_s, struct span content,
                    char *to);

#endif
