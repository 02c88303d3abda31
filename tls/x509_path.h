/* From a server's certificate to somebody we trust: RFC 5280 section 6, with the names of RFC 9525 (6125) and
 * what the CA/Browser Forum's rules leave of it on the Web. The order in which a server sends its chain, what
 * it sends too much, and anchors that expired beside good ones mean nothing: every path is tried, within
 * bounds. Pure functions: bytes, a name and a time in, a verdict out.
 *
 * Which kinds are refused, with which error, is in docs/certificates.md. */
#ifndef PURE_TLS_X509_PATH_H
#define PURE_TLS_X509_PATH_H

#include "tls/trust.h"
#include "tls/x509.h"

#define X509_CHAIN_MAX 16 /* certificates that a peer may send, and of a path */

/* Work for one verdict, so that no chain burns CPU; each is some milliseconds' worth. */
#define X509_SIGNATURES_MAX 64
#define X509_STEPS_MAX      4096       /* issuers looked at */
#define X509_NAMES_MAX      (1u << 18) /* names compared with constraints */

enum x509_purpose { X509_SERVER, X509_CLIENT };

struct x509_question {
    const struct tls_trust *trust;
    enum x509_purpose purpose;
    const char *name; /* of the server: ASCII, lower case, no trailing dot; or an address; NULL: clients */
    int64_t now_s;    /* seconds since 1970 */
    const struct span *chain; /* DER, the leaf first: [0, count) */
    unsigned count;
};

struct x509_answer {
    int error;                            /* 0: believed */
    char detail[160];                     /* for people: which certificate, what about it; printable */
    unsigned length;                      /* of the path, anchor included, when believed */
    struct span path[X509_CHAIN_MAX + 1]; /* SubjectPublicKeyInfos, leaf first: what pins are compared with */
};

/* 0 or one of PE_CERT_…: the error of the path that came furthest. A path that reached an anchor came further
 * than one that did not, and one that is longer further than a shorter one. */
int x509_verify(const struct x509_question *question, struct x509_answer *answer);

#endif
