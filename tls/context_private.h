/* What a context is made of: for the files of tls/ that use wolfSSL. */
#ifndef PURE_TLS_CONTEXT_PRIVATE_H
#define PURE_TLS_CONTEXT_PRIVATE_H

#include "tls/context.h"

#include <wolfssl/options.h>
#include <wolfssl/ssl.h>

struct tls_context {
    _Atomic unsigned holders;
    WOLFSSL_CTX *wolf;
    struct tls_trust *trust; /* held; NULL: a server that asks for no certificates */
    uint8_t pins[TLS_PINS_MAX][TLS_PIN_BYTES];
    unsigned pin_count;
    bool server;
    bool certificate;  /* it has one of ours */
    int64_t expires_s; /* the first of those to expire */
};

/* The cipher suites of a context, as numbers of the registry (RFC 8446 appendix B.4, RFC 7905, RFC 5289): all
 * are AEADs with forward secrecy. */
bool tls_context_suite(int number);

struct tls_kept_session {
    WOLFSSL_SESSION *session;    /* a reference */
    struct tls_context *context; /* held: what it was verified under */
    int64_t until_s;             /* its server's certificate is valid until then, in seconds since 1970 */
    char name[256];              /* whom it was verified for */
};

#endif
