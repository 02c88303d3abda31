/* Which names a CA may speak for: RFC 5280 section 4.2.1.10, for DNS names, addresses, directory names, mail
 * addresses and URIs. A constraint on another kind of name refuses every certificate that has such a name. */
#ifndef PURE_TLS_X509_CONSTRAINTS_H
#define PURE_TLS_X509_CONSTRAINTS_H

#include "tls/x509.h"

/* Whether the names of `x`, subject included, are within the name constraints of `ca`, which has some. Each
 * comparison takes one of `*budget`. 0; PE_CERT_MALFORMED: the constraints are; PE_CERT_CONSTRAINTS: they are
 * violated; PE_CERT_PATH: the budget is spent. */
int x509_constraints_check(const struct x509 *ca, const struct x509 *x, unsigned *budget);

#endif
