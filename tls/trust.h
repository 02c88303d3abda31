/* Whom we trust: CA certificates from a file (PEM, many), a folder of such files, or the system's store
 * (/etc/ssl/certs/ca-certificates.crt and the places of other systems). Never changes once it is made; held
 * by count, from any thread. */
#ifndef PURE_TLS_TRUST_H
#define PURE_TLS_TRUST_H

#include "core/bytes.h"
#include "core/error.h"
#include "tls/x509.h"

struct tls_trust {
    _Atomic unsigned holders;
    unsigned count;
    struct x509 *anchors; /* [0, count), sorted by subject, none twice; their bytes are in `bytes` */
    uint8_t *bytes;
};

/* `path` NULL: the system's. Certificates in it that cannot be parsed are passed over and counted. 0, or an
 * error with one line in `why`: PE_TLS_FILES or a negative errno, if it is unreadable, larger than 16 MiB, or
 * without one certificate. Of a folder, files whose names begin with a dot are not looked at. */
int tls_trust_read(struct tls_trust **made, const char *path, unsigned *passed_over, char *why,
                   size_t why_size);
/* Where the system has its CA certificates; static. NULL: in none of the places that are known. */
const char *tls_trust_system(void);
/* The same from memory: one after the other, PEM. */
int tls_trust_of(struct tls_trust **made, struct span pem, unsigned *passed_over, char *why, size_t why_size);
struct tls_trust *tls_trust_hold(struct tls_trust *trust);
void tls_trust_drop(struct tls_trust *trust); /* NULL: nothing */

/* The anchors with this subject: how many, `*first` the first. */
unsigned tls_trust_find(const struct tls_trust *trust, struct span subject, unsigned *first);

#endif
