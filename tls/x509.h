/* One certificate, taken apart: RFC 5280 section 4, DER. Pure functions over bytes; every field is a span
 * into them. What is malformed is refused; what a certificate means for a chain is x509_path.h's. */
#ifndef PURE_TLS_X509_H
#define PURE_TLS_X509_H

#include "core/bytes.h"
#include "core/error.h"

/* The extensions that are processed; each at most once. */
enum x509_extension {
    X509_SUBJECT_ALT_NAME,
    X509_BASIC_CONSTRAINTS,
    X509_KEY_USAGE,
    X509_EXTENDED_KEY_USAGE,
    X509_NAME_CONSTRAINTS,
    X509_SUBJECT_KEY_ID,
    X509_AUTHORITY_KEY_ID,
    X509_AUTHORITY_ACCESS,
    X509_POLICIES,
    X509_POLICY_MAPPINGS,
    X509_POLICY_CONSTRAINTS,
    X509_INHIBIT_ANY_POLICY,
    X509_EXTENSION_KINDS
};

/* Bits of key_usage, as RFC 5280 section 4.2.1.3 numbers them. */
enum x509_key_usage { X509_DIGITAL_SIGNATURE = 1 << 0, X509_KEY_CERT_SIGN = 1 << 5 };

struct x509 {
    struct span der;
    struct span tbs;                 /* what is signed */
    struct span signature_algorithm; /* the AlgorithmIdentifier, whole; that in tbs is the same */
    struct span signature;
    struct span serial;          /* the INTEGER's content: 1 to 20 bytes, not negative; zero is possible */
    struct span issuer, subject; /* Name, whole, well-formed */
    struct span key_info;        /* SubjectPublicKeyInfo, whole */
    int64_t not_before_s, not_after_s; /* seconds since 1970, both inclusive */
    uint8_t version;                   /* 1 or 3 */
    uint32_t present, critical;        /* bit n: of enum x509_extension */
    bool unknown_critical;             /* a critical extension that is none of those */
    /* The values of extensions, whole; data is NULL where there is none. Alternative names, purposes and key
     * identifiers are well-formed; name constraints are to be looked at by x509_constraints.h. */
    struct span subject_alt_names, name_constraints, extended_key_usage;
    struct span subject_key_id, authority_key_id; /* the key identifier itself; data NULL: none */
    bool authority_issuer;    /* the authority key identifier has an issuer and a serial number */
    bool authority_published; /* says where its issuer's certificate is to be had (caIssuers) */
    bool has_basic_constraints, is_ca;
    int32_t path_length; /* -1: no limit */
    bool has_key_usage;
    uint16_t key_usage;
};

/* 0, or PE_CERT_MALFORMED with `*x` undefined. */
int x509_parse(struct x509 *x, struct span der);

static inline bool x509_has(const struct x509 *x, enum x509_extension extension)
{
    return x->present >> extension & 1;
}

static inline bool x509_is_critical(const struct x509 *x, enum x509_extension extension)
{
    return x->critical >> extension & 1;
}

/* Private to x509.c and x509_extensions.c: the extensions of `x`, the content of its [3]. */
bool x509_parse_extensions(struct x509 *x, struct span extensions);

#endif
