/* What an engine is made of: engine.c moves bytes, engine_verdict.c believes or does not, engine_errors.c
 * names what went wrong. */
#ifndef PURE_TLS_ENGINE_PRIVATE_H
#define PURE_TLS_ENGINE_PRIVATE_H

#include "tls/context_private.h"
#include "tls/engine.h"

#define TLS_DETAIL_MAX 200

struct tls_engine {
    WOLFSSL *wolf;
    struct tls_context *context; /* held */
    struct tls_session *session; /* the caller's; NULL: none */
    char name[256];              /* clients: whom the certificate has to be for */
    struct span input;           /* fed, and not yet read by wolfSSL */
    uint64_t fed;                /* bytes in all */
    int64_t now_s;
    int64_t until_s; /* the peer's certificate is valid until then; a resumed one's, too */
    int error;       /* 0, or why it failed */
    char detail[TLS_DETAIL_MAX];
    bool believed;       /* x509_verify said so, in this connection */
    bool offered;        /* a session was, that was believed when it was made */
    bool asked;          /* the peer wants a certificate of ours, and there is none */
    bool ready;          /* TLS_READY was said */
    bool ended;          /* TLS_ENDED was said */
    bool stuck;          /* TLS_READY was said, and the output had no room */
    bool closed;         /* our close_notify is in the output */
    uint32_t start, end; /* output[start, end) has to be sent */
    uint8_t output[TLS_OUTPUT_BYTES];
};

/* Keeps the first error; returns it. */
int tls_engine_fail(struct tls_engine *e, int error, const char *detail);
/* Names what wolfSSL returned. */
int tls_engine_fail_code(struct tls_engine *e, int code);

/* The verdict on the chain that the peer sent, the leaf first: 0, or the error that the engine has from then
 * on. count > 0. */
int tls_engine_judge(struct tls_engine *e, const struct span *chain, unsigned count);
/* Sets a session to be resumed, if there is one that may be. */
void tls_engine_offer_session(struct tls_engine *e);

/* For the context: wolfSSL's callbacks. */
int tls_engine_receive(WOLFSSL *wolf, char *to, int room, void *engine);
int tls_engine_send(WOLFSSL *wolf, char *data, int size, void *engine);
int tls_engine_verify(int preverified, WOLFSSL_X509_STORE_CTX *store);
void tls_engine_asked(struct tls_engine *e); /* the peer wants a certificate, and there is none */
int tls_engine_new_session(struct tls_engine *e, WOLFSSL_SESSION *session); /* 1: it is kept */

#endif
