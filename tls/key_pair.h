/* Whether a private key belongs to a certificate: wolfSSL's own check lets other keys of the same curve pass.
 */
#ifndef PURE_TLS_KEY_PAIR_H
#define PURE_TLS_KEY_PAIR_H

#include "core/bytes.h"

/* `certificates` is a PEM file with the leaf first, `key` one with a private key: RSA, ECDSA, Ed25519. False
 * also for what cannot be read. */
bool tls_key_belongs(struct span key, struct span certificates);

#endif
