/* One TLS connection, version 1.2 or 1.3, as a state machine (RFC 8446, RFC 5246; wolfSSL does the protocol):
 *
 *     ciphertext in    tls_engine_feed, then tls_engine_step until it waits
 *     plain out        what the steps give
 *     plain in         tls_engine_write, a record at a time
 *     ciphertext out   tls_engine_output, tls_engine_took
 *
 * It knows no socket and no clock: the time comes with the bytes. Whether the peer is who it has to be is
 * x509_verify's to say (tls/x509_path.h), whatever wolfSSL thinks of its certificates; that the peer has the
 * key of its certificate is what wolfSSL checks. Both before TLS_READY, and before a plain byte goes either
 * way.
 *
 * Memory: TLS_OUTPUT_BYTES of output, and what wolfSSL takes (a record at a time). Whoever makes a peer's
 * answers (KeyUpdate) pile up because it does not read is failed. */
#ifndef PURE_TLS_ENGINE_H
#define PURE_TLS_ENGINE_H

#include "core/bytes.h"
#include "tls/context.h"

#define TLS_PLAIN_MAX 16384 /* of a record: RFC 8446 section 5.1 */
/* What a record is larger than its plain bytes at most, with what may have to be said before it. */
#define TLS_RECORD_EXTRA 256
/* Answers and alerts that wait beside a record. */
#define TLS_OUTPUT_SPARE 8192
#define TLS_OUTPUT_BYTES (TLS_PLAIN_MAX + TLS_RECORD_EXTRA + TLS_OUTPUT_SPARE)

struct tls_engine;

enum tls_event {
    TLS_WAITS,  /* for more to be fed, or, before TLS_READY, for the output to be taken */
    TLS_READY,  /* once: the handshake is over and the peer is who it has to be */
    TLS_PLAIN,  /* plain bytes */
    TLS_ENDED,  /* close_notify: the peer sends no more; from then on always */
    TLS_FAILED, /* tls_engine_error says why; from then on always. There may be an alert to send */
};

/* As secure_start (tls/secure_stream.h); `now_s` is in seconds since 1970. -ENOMEM, or 0. */
int tls_engine_make(struct tls_engine **made, struct tls_context *context, const char *name,
                    struct tls_session *session, int64_t now_s);
void tls_engine_free(struct tls_engine *e); /* NULL: nothing */

/* What was fed before is used up: the last step waited. The bytes stay until a step waits, ends or fails. */
void tls_engine_feed(struct tls_engine *e, struct span ciphertext, int64_t now_s);

/* TLS_PLAIN: `*size` bytes, at most `room`, at `to`. */
enum tls_event tls_engine_step(struct tls_engine *e, uint8_t *to, size_t room, size_t *size);

/* Whether tls_engine_write has room. */
bool tls_engine_writable(const struct tls_engine *e);
/* Makes a record of [data, data + size), size 1 to TLS_PLAIN_MAX, behind what is in the output. After
 * TLS_READY only. 0, or an error: TLS_FAILED from then on. */
int tls_engine_write(struct tls_engine *e, const uint8_t *data, size_t size);

/* Says close_notify, once; nothing may be written behind it. */
void tls_engine_end(struct tls_engine *e);

/* What there is to send; it stays where it is until tls_engine_output is called again. */
struct span tls_engine_output(struct tls_engine *e);
size_t tls_engine_pending(const struct tls_engine *e); /* bytes of it */
/* The first `size` of them are sent. */
void tls_engine_took(struct tls_engine *e, size_t size);

/* 0 unless a step said TLS_FAILED. */
int tls_engine_error(const struct tls_engine *e);
const char *tls_engine_detail(const struct tls_engine *e); /* for people, printable; "": nothing more */
bool tls_engine_ready(const struct tls_engine *e);
bool tls_engine_resumed(const struct tls_engine *e);
const char *tls_engine_suite(const struct tls_engine *e);

#endif
