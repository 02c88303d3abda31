/* Certificates made on the spot: Ed25519 keys from numbers, so the same bytes in every run. What one does not
 * say is as a good leaf, or a good CA, has it. Included by tests of one file. */
#ifndef PURE_TESTS_X509_BUILD_H
#define PURE_TESTS_X509_BUILD_H

#include "tls/der.h"
#include "tls/x509_path.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define BUILD_NOW_S INT64_C(1780272000) /* 2026-06-01, in the middle of what is made */

struct blob {
    uint8_t bytes[3000];
    size_t size;
};

static inline struct blob blob_of(const void *bytes, size_t size)
{
    struct blob b = {.size = size};
    assert(size <= sizeof b.bytes);
    memcpy(b.bytes, bytes, size);
    return b;
}

static inline struct blob joined(struct blob a, struct blob b)
{
    assert(a.size + b.size <= sizeof a.bytes);
    memcpy(a.bytes + a.size, b.bytes, b.size);
    a.size += b.size;
    return a;
}

static inline struct blob element(uint8_t tag, struct blob content)
{
    uint8_t head[4] = {tag, (uint8_t)content.size};
    size_t head_size = 2;
    if (content.size >= 128) {
        head_size = content.size > 255 ? 4 : 3;
        head[1] = content.size > 255 ? 0x82 : 0x81;
        head[2] = (uint8_t)(content.size > 255 ? content.size >> 8 : content.size);
        head[3] = (uint8_t)content.size;
    }
    return joined(blob_of(head, head_size), content);
}

static inline struct blob text_element(uint8_t tag, const char *text)
{
    return element(tag, blob_of(text, strlen(text)));
}

static inline struct span blob_span(const struct blob *b)
{
    return span_of(b->bytes, b->size);
}

/* --- certificates --- */

/* "O/CN", or "CN". */
static inline struct blob built_name(const char *text)
{
    const char *slash = strchr(text, '/');
    struct blob name = {.size = 0};
    for (int i = slash ? 0 : 1; i < 2; i++) {
        const char *value = i == 0 ? text : slash ? slash + 1 : text;
        size_t size = i == 0 ? (size_t)(slash - text) : strlen(value);
        struct blob oid = element(DER_OID, blob_of(i == 0 ? "\x55\x04\x0a" : "\x55\x04\x03", 3));
        struct blob pair = element(DER_SEQUENCE, joined(oid, element(DER_UTF8, blob_of(value, size))));
        name = joined(name, element(DER_SET, pair));
    }
    return element(DER_SEQUENCE, name);
}

struct spec {
    const char *subject, *issuer;
    uint8_t key, signer; /* numbers of keys */
    bool ca, published;  /* published: has caIssuers */
    const char *host;    /* of a leaf; NULL: a.example */
    const char *begin, *end;
    uint8_t said_signer;  /* in the authority key identifier; 0: the signer */
    const char *excluded; /* of a CA: a DNS name */
    bool bad_signature;
};

static inline void built_key(uint8_t number, uint8_t public[32], uint8_t secret[64])
{
    uint8_t seed[32] = {number};
    crypto_sign_seed_keypair(public, secret, seed);
}

static inline struct blob built_extension(const char *oid, size_t oid_size, bool critical, struct blob value)
{
    struct blob content = element(DER_OID, blob_of(oid, oid_size));
    if (critical)
        content = joined(content, element(DER_BOOLEAN, blob_of("\xff", 1)));
    return element(DER_SEQUENCE, joined(content, element(DER_OCTET_STRING, value)));
}

static inline struct blob built_access(void)
{
    struct blob method = element(DER_OID, blob_of("\x2b\x06\x01\x05\x05\x07\x30\x02", 8));
    struct blob where = text_element(DER_CONTEXT(6), "http://ca.example/");
    return element(DER_SEQUENCE, element(DER_SEQUENCE, joined(method, where)));
}

static inline struct blob built_exclusion(const char *host)
{
    struct blob base = element(DER_SEQUENCE, text_element(DER_CONTEXT(2), host));
    return element(DER_SEQUENCE, element(DER_CONTEXT_CONSTRUCTED(1), base));
}

static inline struct blob built_extensions(const struct spec *s)
{
    uint8_t signer = s->said_signer ? s->said_signer : s->signer;
    struct blob id = element(DER_OCTET_STRING, blob_of(&s->key, 1));
    struct blob authority = element(DER_SEQUENCE, element(DER_CONTEXT(0), blob_of(&signer, 1)));
    struct blob list = joined(built_extension("\x55\x1d\x0e", 3, false, id),
                              built_extension("\x55\x1d\x23", 3, false, authority));
    if (s->ca) {
        struct blob yes = element(DER_SEQUENCE, element(DER_BOOLEAN, blob_of("\xff", 1)));
        list = joined(list, built_extension("\x55\x1d\x13", 3, true, yes));
    } else {
        struct blob host = text_element(DER_CONTEXT(2), s->host ? s->host : "a.example");
        list = joined(list, built_extension("\x55\x1d\x11", 3, false, element(DER_SEQUENCE, host)));
    }
    if (s->excluded)
        list = joined(list, built_extension("\x55\x1d\x1e", 3, true, built_exclusion(s->excluded)));
    if (s->published)
        list = joined(list, built_extension("\x2b\x06\x01\x05\x05\x07\x01\x01", 8, false, built_access()));
    return element(DER_CONTEXT_CONSTRUCTED(3), element(DER_SEQUENCE, list));
}

static inline struct blob built_tbs(const struct spec *s, struct blob algorithm)
{
    uint8_t public[32], secret[64];
    built_key(s->key, public, secret);
    uint8_t bits[33] = {0};
    memcpy(bits + 1, public, 32);
    struct blob tbs = element(DER_CONTEXT_CONSTRUCTED(0), element(DER_INTEGER, blob_of("\2", 1)));
    tbs = joined(tbs, element(DER_INTEGER, blob_of("\1", 1)));
    tbs = joined(tbs, algorithm);
    tbs = joined(tbs, built_name(s->issuer ? s->issuer : s->subject));
    tbs = joined(
        tbs, element(DER_SEQUENCE, joined(text_element(DER_UTC_TIME, s->begin ? s->begin : "260101000000Z"),
                                          text_element(DER_UTC_TIME, s->end ? s->end : "270101000000Z"))));
    tbs = joined(tbs, built_name(s->subject));
    tbs = joined(tbs, element(DER_SEQUENCE, joined(algorithm, element(DER_BIT_STRING, blob_of(bits, 33)))));
    return element(DER_SEQUENCE, joined(tbs, built_extensions(s)));
}

static inline struct blob built(struct spec s)
{
    uint8_t public[32], secret[64], bits[65] = {0};
    struct blob algorithm = element(DER_SEQUENCE, element(DER_OID, blob_of("\x2b\x65\x70", 3)));
    struct blob tbs = built_tbs(&s, algorithm);
    built_key(s.signer, public, secret);
    crypto_sign_detached(bits + 1, NULL, tbs.bytes, tbs.size, secret);
    bits[1] ^= s.bad_signature;
    return element(DER_SEQUENCE, joined(joined(tbs, algorithm), element(DER_BIT_STRING, blob_of(bits, 65))));
}

/* --- trust --- */

static inline char *built_pem(const struct blob *certificates, unsigned count)
{
    size_t size = 1;
    char *pem = calloc(1, size + count * (2 * sizeof certificates->bytes + 100));
    assert(pem);
    for (unsigned i = 0; i < count; i++) {
        char base64[2 * sizeof certificates->bytes];
        sodium_bin2base64(base64, sizeof base64, certificates[i].bytes, certificates[i].size,
                          sodium_base64_VARIANT_ORIGINAL);
        sprintf(pem + strlen(pem), "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n", base64);
    }
    return pem;
}

static inline struct tls_trust *built_trust(const struct blob *anchors, unsigned count)
{
    struct tls_trust *trust = NULL;
    char why[200], *pem = built_pem(anchors, count);
    unsigned passed_over;
    int error = tls_trust_of(&trust, span_text(pem), &passed_over, why, sizeof why);
    assert(error == 0 && passed_over == 0);
    free(pem);
    return trust;
}

#endif
