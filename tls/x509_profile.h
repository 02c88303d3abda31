/* What each certificate of a path has to be, by itself: as a server's or client's, as a CA's below an anchor,
 * and as an anchor. docs/certificates.md has every rule with its source. */
#ifndef PURE_TLS_X509_PROFILE_H
#define PURE_TLS_X509_PROFILE_H

#include "tls/x509_path.h"
#include "tls/x509_signature.h"

/* 0, or an error with its reason in `*why`, static text. */
int x509_check_validity(const struct x509 *x, int64_t now_s, const char **why);
/* A CA's, which may sign certificates for this purpose; `*key` is its key. An anchor is trusted for its name
 * and key, so what only concerns who issued it is not asked. */
int x509_check_ca(const struct x509 *x, enum x509_purpose purpose, bool anchor, struct x509_key *key,
                  const char **why);
/* The leaf; `trusted`: it is itself an anchor, and so it may be a CA's and say nothing about its issuer. Its
 * names are x509_names.h's. */
int x509_check_leaf(const struct x509 *x, enum x509_purpose purpose, bool trusted, const char **why);

#endif
