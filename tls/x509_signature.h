/* Who signed: the algorithms of the Web PKI that are safe, and no others. wolfCrypt does the arithmetic, for
 * Ed25519 libsodium.
 *
 *     keys        RSA of 2048 to 4096 bits, P-256, P-384, P-521, Ed25519
 *     signatures  RSA PKCS #1 v1.5 and PSS, and ECDSA, with SHA-256, -384 or -512; Ed25519
 *
 * RSA above 4096 bits is beyond wolfCrypt as Debian builds it. Keys that are for PSS only (RFC 4055 section
 * 1.2) are in no use on the Web. */
#ifndef PURE_TLS_X509_SIGNATURE_H
#define PURE_TLS_X509_SIGNATURE_H

#include "tls/x509.h"

enum x509_key_kind { X509_RSA, X509_P256, X509_P384, X509_P521, X509_ED25519 };

struct x509_key {
    enum x509_key_kind kind;
    struct span modulus, exponent; /* RSA: without leading zeros */
    struct span point;             /* elliptic curves: uncompressed; Ed25519: 32 bytes */
};

/* Takes a SubjectPublicKeyInfo apart. 0; PE_CERT_MALFORMED; PE_CERT_WEAK_KEY (RSA of the wrong size or with
 * an exponent that is no odd number above 1); PE_CERT_ALGORITHM (any other kind of key, DSA and other curves
 * among them). */
int x509_key_parse(struct x509_key *key, struct span key_info);

/* Whether the algorithm that signed an anchor is one of those, or RSA or ECDSA with SHA-1, which many a root
 * has: its own signature counts for nothing. 0 or PE_CERT_ALGORITHM. */
int x509_anchor_algorithm_check(const struct x509 *anchor);

/* Whether `key` signed `x`: 0, PE_CERT_ALGORITHM, or PE_CERT_SIGNATURE. */
int x509_signature_check(const struct x509 *x, const struct x509_key *key);

#endif
