/* What the files of TLS are like, as their owner (host/host_tls.h) found them at its last look, for status,
 * health and metrics. Any thread reads it, and never waits for a look, which reads files. */
#ifndef PURE_HOST_TLS_REPORT_H
#define PURE_HOST_TLS_REPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define TLS_REPORT_WHY_MAX 500

struct tls_report {
    _Atomic uint64_t
        unreadable;            /* CAs, and pairs of certificate and key, that could not be read as they are */
    _Atomic int64_t expires_s; /* the first of our certificates in use, seconds since 1970; INT64_MAX: none */
    pthread_mutex_t lock;      /* of `why`, held for a copy only */
    char why[TLS_REPORT_WHY_MAX]; /* unreadable > 0: the first of them, why, and what is in use instead */
};

#endif
