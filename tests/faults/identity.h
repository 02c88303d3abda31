/* Whom the fault server pretends to be in TLS: certificates of every kind, made on the spot, and OpenSSL's
 * contexts with them. OpenSSL, because it shares no code with what is tested. */
#ifndef PURE_TESTS_FAULTS_IDENTITY_H
#define PURE_TESTS_FAULTS_IDENTITY_H

#include "tests/sim/certificates.h"

struct ssl_ctx_st;

enum fault_certificate {
    CERT_GOOD, /* for a.example, 127.0.0.1 and 10.0.0.2, through an intermediate, which is sent */
    CERT_EXPIRED,
    CERT_NOT_YET,     /* from 2048 on */
    CERT_SELF_SIGNED, /* by its own key */
    CERT_OTHER_NAME,
    CERT_UNKNOWN_ISSUER,
    CERT_INCOMPLETE, /* without the intermediate, though it says where to get it */
    CERT_CLIENT_ONLY,
    CERT_CRITICAL, /* an extension that nobody knows */
    CERT_NOT_CA,   /* issued by a server's certificate */
    CERT_IS_CA,
    CERT_KINDS
};

/* What of TLS a row has; of zeros: none. */
struct fault_tls {
    bool on;
    enum fault_certificate certificate;
    bool old;              /* TLS 1.0 and 1.1 only */
    bool v12;              /* TLS 1.2 only */
    bool asks;             /* wants a certificate of the client */
    unsigned more_tickets; /* 1.3: sent at the handshake beside the usual two */
};

struct fault_identities {
    struct test_certificate *ca, *mid, *stranger;
    struct test_certificate *leaves[CERT_KINDS];
};

void fault_identities_init(struct fault_identities *all);
void fault_identities_dispose(struct fault_identities *all);

/* Its caller's, to be freed with SSL_CTX_free. */
struct ssl_ctx_st *fault_identity(const struct fault_identities *all, const struct fault_tls *tls);

#endif
