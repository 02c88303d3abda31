#include "tests/faults/identity.h"

#include <openssl/ssl.h>

#define NAMES "DNS:a.example,DNS:localhost,IP:127.0.0.1,IP:10.0.0.2"

#define YEAR_2021_S INT64_C(1609459200)
#define YEAR_2048_S INT64_C(2461449600)

void fault_identities_init(struct fault_identities *all)
{
    all->ca = test_certificate(&(struct test_certificate_options){.subject = "CA", .ca = true});
    all->mid =
        test_certificate(&(struct test_certificate_options){.subject = "Mid", .ca = true, .issuer = all->ca});
    all->stranger = test_certificate(&(struct test_certificate_options){.subject = "Stranger", .ca = true});
    const struct test_certificate *mid = all->mid;
    struct test_certificate_options kinds[CERT_KINDS] = {
        [CERT_GOOD] = {.issuer = mid},
        [CERT_EXPIRED] = {.issuer = mid, .not_after_s = YEAR_2021_S},
        [CERT_NOT_YET] = {.issuer = mid, .not_before_s = YEAR_2048_S},
        [CERT_SELF_SIGNED] = {.issuer = NULL},
        [CERT_OTHER_NAME] = {.issuer = mid, .names = "DNS:b.example"},
        [CERT_UNKNOWN_ISSUER] = {.issuer = all->stranger},
        [CERT_INCOMPLETE] = {.issuer = mid, .authority = "caIssuers;URI:http://ca.example/mid.der"},
        [CERT_CLIENT_ONLY] = {.issuer = mid, .purpose = "clientAuth"},
        [CERT_CRITICAL] = {.issuer = mid, .critical = "1.2.3.4.5"},
        [CERT_IS_CA] = {.issuer = mid, .ca = true},
    };
    for (unsigned i = 0; i < CERT_KINDS; i++) {
        kinds[i].subject = "a.example";
        if (!kinds[i].names)
            kinds[i].names = NAMES;
        if (i == CERT_NOT_CA)
            kinds[i].issuer = all->leaves[CERT_GOOD];
        all->leaves[i] = test_certificate(&kinds[i]);
    }
}

void fault_identities_dispose(struct fault_identities *all)
{
    test_certificate_free(all->ca);
    test_certificate_free(all->mid);
    test_certificate_free(all->stranger);
    for (unsigned i = 0; i < CERT_KINDS; i++)
        test_certificate_free(all->leaves[i]);
}

static void send_also(SSL_CTX *context, const struct test_certificate *c)
{
    if (SSL_CTX_add1_chain_cert(context, c->x509) != 1)
        abort();
}

static void set_versions(SSL_CTX *context, const struct fault_tls *tls)
{
    SSL_CTX_set_min_proto_version(context, tls->old ? TLS1_VERSION : TLS1_2_VERSION);
    if (tls->old || tls->v12)
        SSL_CTX_set_max_proto_version(context, tls->old ? TLS1_1_VERSION : TLS1_2_VERSION);
    if (tls->old)
        SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_options(context, SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION);
}

struct ssl_ctx_st *fault_identity(const struct fault_identities *all, const struct fault_tls *tls)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    const struct test_certificate *leaf = all->leaves[tls->certificate];
    if (!context || SSL_CTX_use_certificate(context, leaf->x509) != 1 ||
        SSL_CTX_use_PrivateKey(context, leaf->key) != 1)
        abort();
    set_versions(context, tls);
    SSL_CTX_set_session_id_context(context, (const unsigned char *)"faults", 6);
    if (tls->certificate == CERT_NOT_CA)
        send_also(context, all->leaves[CERT_GOOD]);
    if (tls->certificate == CERT_UNKNOWN_ISSUER)
        send_also(context, all->stranger);
    else if (tls->certificate != CERT_INCOMPLETE && tls->certificate != CERT_SELF_SIGNED)
        send_also(context, all->mid);
    SSL_CTX_set_num_tickets(context, 2 + tls->more_tickets);
    if (tls->asks)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return context;
}
