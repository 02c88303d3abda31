/* What all TLS connections of one kind share: versions, ciphers, our certificate, whom we trust. A context
 * never changes once it is made, so any thread may use it; whoever reads files anew makes another one.
 *
 * Reading files blocks: contexts are made at a start, by commands, and on helper threads. */
#ifndef PURE_TLS_CONTEXT_H
#define PURE_TLS_CONTEXT_H

#include "core/bytes.h"
#include "core/error.h"

#define TLS_PINS_MAX  8
#define TLS_PIN_BYTES 32

struct tls_trust; /* tls/trust.h */

struct tls_options {
    struct tls_trust *trust; /* clients: whom we believe; servers: whose clients (NULL: they need none) */
    const char *certificate; /* PEM file of our chain, leaf first; NULL: none */
    const char *key;         /* PEM file of its private key; NULL with `certificate` */
    uint8_t pins[TLS_PINS_MAX][TLS_PIN_BYTES]; /* SHA-256 of a SubjectPublicKeyInfo, one of which has to be */
    unsigned pin_count;                        /* in the verified chain; 0: any */
    bool server;
    bool aes_first; /* AES-256's suites come before ChaCha20's: tls_aes_accelerated (tls/accelerate.h) */
};

struct tls_context; /* counts its holders, from any thread */

/* 0, or an error with one line in `why`, which names the file and never holds what is in it. */
int tls_context_make(struct tls_context **made, const struct tls_options *options, char *why,
                     size_t why_size);
struct tls_context *tls_context_hold(struct tls_context *context);
void tls_context_drop(struct tls_context *context); /* NULL: nothing */

/* When the first certificate of our chain expires, in seconds since 1970; INT64_MAX: we have none. */
int64_t tls_context_expires_s(const struct tls_context *context);

/* Before a thread ends that has made contexts or spoken TLS: gives back what wolfSSL keeps for it, tables of
 * some megabytes for elliptic curves. */
void tls_thread_end(void);

/* The place from which connections take the context of the day: replaced when its files change. */
struct tls_current {
    _Atomic(struct tls_context *) context; /* private: tls_current_take and _replace only */
    _Atomic unsigned taking;
    _Atomic bool outdated; /* its files have changed since, and cannot be used: by whoever reads them */
};

/* What is there now, held for the caller. */
struct tls_context *tls_current_take(struct tls_current *current);
/* `context` passes to `current`; the one before is dropped once nobody is taking it. */
void tls_current_replace(struct tls_current *current, struct tls_context *context);

/* The session of one destination, to be resumed: kept by its wire, on one thread. It is of zeros at first,
 * and outlives the connections that were given it. What it holds is used only under the context and for the
 * name that it was made under, and not after the server's certificate has expired: resuming asks for no
 * certificate. */
struct tls_kept_session;
struct tls_session {
    struct tls_kept_session *kept; /* private; NULL: none */
};
void tls_session_dispose(struct tls_session *session);

#endif
