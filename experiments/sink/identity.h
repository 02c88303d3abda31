/* Who the sink is over TLS: a CA of its own, made anew, and a certificate for `localhost` that it issued. */
#ifndef PURE_EXPERIMENTS_SINK_IDENTITY_H
#define PURE_EXPERIMENTS_SINK_IDENTITY_H

#include <openssl/ssl.h>
#include <stdbool.h>

/* Both keys are P-256, or 2048-bit RSA. The CA's certificate is written to `ca_file` (PEM). Sessions are
 * resumed if `tickets`. NULL after a line on stderr. */
SSL_CTX *identity_make(const char *ca_file, bool rsa, bool tickets);

#endif
