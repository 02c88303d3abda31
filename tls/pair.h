/* Whether a private key is the one of a certificate, where wolfSSL does not see that it is not: of elliptic
 * curves its own check (5.5.4) only looks whether both are keys. */
#ifndef PURE_TLS_PAIR_H
#define PURE_TLS_PAIR_H

#include "core/bytes.h"

/* False: the key is of an elliptic curve, and another one than that of the first certificate. Both are PEM.
 */
bool tls_pair_possible(struct span certificates, struct span key);

#endif
