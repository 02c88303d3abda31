#include "experiments/sink/identity.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#define DAYS 7

static EVP_PKEY *new_key(bool rsa)
{
    return rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
}

static int add(X509 *to, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, to, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    int added = extension && X509_add_ext(to, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

static X509 *begin(EVP_PKEY *key, const char *name, long serial)
{
    X509 *x = X509_new();
    if (!x)
        return NULL;
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), DAYS * 86400L);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
                               -1, 0);
    X509_set_pubkey(x, key);
    return x;
}

static X509 *make_ca(EVP_PKEY *key)
{
    X509 *ca = begin(key, "benchmark CA", 1);
    if (!ca)
        return NULL;
    X509_set_issuer_name(ca, X509_get_subject_name(ca));
    if (add(ca, ca, NID_basic_constraints, "critical,CA:TRUE") &&
        add(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") &&
        add(ca, ca, NID_subject_key_identifier, "hash") && X509_sign(ca, key, EVP_sha256()) > 0)
        return ca;
    X509_free(ca);
    return NULL;
}

static X509 *make_leaf(EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key)
{
    X509 *leaf = begin(key, "localhost", 2);
    if (!leaf)
        return NULL;
    X509_set_issuer_name(leaf, X509_get_subject_name(ca));
    if (add(leaf, ca, NID_basic_constraints, "critical,CA:FALSE") &&
        add(leaf, ca, NID_key_usage, "critical,digitalSignature") &&
        add(leaf, ca, NID_ext_key_usage, "serverAuth") &&
        add(leaf, ca, NID_authority_key_identifier, "keyid:always") &&
        add(leaf, ca, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1") &&
        X509_sign(leaf, ca_key, EVP_sha256()) > 0)
        return leaf;
    X509_free(leaf);
    return NULL;
}

static int write_certificate(const char *path, X509 *x)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return -1;
    int written = PEM_write_X509(file, x);
    return fclose(file) == 0 && written == 1 ? 0 : -1;
}

static SSL_CTX *make_context(X509 *leaf, EVP_PKEY *key, bool tickets)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_use_certificate(context, leaf) != 1 ||
        SSL_CTX_use_PrivateKey(context, key) != 1) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (!tickets) {
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_num_tickets(context, 0);
    }
    return context;
}

SSL_CTX *identity_make(const char *ca_file, bool rsa, bool tickets)
{
    EVP_PKEY *ca_key = new_key(rsa), *key = new_key(rsa);
    X509 *ca = ca_key ? make_ca(ca_key) : NULL;
    X509 *leaf = ca && key ? make_leaf(key, ca, ca_key) : NULL;
    SSL_CTX *context = leaf && write_certificate(ca_file, ca) == 0 ? make_context(leaf, key, tickets) : NULL;
    if (!context)
        fprintf(stderr, "sink: %s: no certificate could be made (%s)\n", ca_file,
                ERR_reason_error_string(ERR_peek_last_error()));
    X509_free(leaf);
    X509_free(ca);
    EVP_PKEY_free(key);
    EVP_PKEY_free(ca_key);
    return context;
}
