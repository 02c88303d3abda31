/* One certificate, taken apart: RFC 5280 section 4, DER. Pure functions over bytes; every field is a span
 * into them. What is malformed is refused, as is what no certificate of the Web PKI may have; what a
 * certificate means for a chain is x509_path.h's. */
#ifndef PURE_TLS_X509_H
#define PURE_TLS_X509_H

#include "core/bytes.h"
#include "core/error.h"

struct x509 {
    struct span der;
    struct span tbs;                 /* what is signed */
    struct span signature_algorithm; /* the AlgorithmIdentifier, whole */
    struct span signature;
    struct span serial, issuer, subject; /* issuer, subject: Name, whole */
    struct span key_info;                /* SubjectPublicKeyInfo, whole */
    int64_t not_before_s, not_after_s;   /* seconds since 1970, both inclusive */
    uint8_t version;                     /* 1 or 3 */
    /* Extensions; data is NULL where there is none. */
    struct span subject_alt_names, name_constraints, extended_key_usage, subject_key_id, authority_key_id;
    bool has_basic_constraints, is_ca;
    int32_t path_length; /* -1: no limit */
    bool has_key_usage;
    uint16_t key_usage;    /* bit n as RFC 5280 section 4.2.1.3 numbers them */
    bool unknown_critical; /* a critical extension that is none of those processed here */
};

/* 0, or PE_CERT_MALFORMED with `*x` undefined. */
int x509_parse(struct x509 *x, struct span der);

#endif
