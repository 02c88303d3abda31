/* A TCP stream that may be secured: the same verbs and events as core/stream.h, plain or through TLS.
 *
 * Plain, it adds nothing: the caller's events stand in the stream itself, the caller's memory is sent. Once
 * secure_start was called, what is sent and received goes through TLS 1.2 or 1.3; the events are the same and
 * count plain bytes:
 *
 *     connected   also after secure_start, when the handshake is over and the peer is who it has to be
 *     data        plain bytes
 *     sent        plain bytes whose records are wholly in the kernel's hands; `all` as before
 *     ended       the peer will send no more; s->cut tells whether it said so (close_notify)
 *     failed      also PE_TLS_… and PE_CERT_… of core/error.h
 *
 * A stream may be moved neither in use nor while TLS is on. */
#ifndef PURE_TLS_SECURE_STREAM_H
#define PURE_TLS_SECURE_STREAM_H

#include "core/stream.h"

struct tls_context;
struct tls_session;
struct tls_engine;

struct secure_stream {
    struct stream stream; /* first: what the events are given */
    const struct stream_events *events;
    struct tls_engine *engine; /* NULL: plain */
    bool cut;                  /* ended without close_notify: what has no end of its own may be cut off */
    /* The rest is private, and means something once TLS is on. */
    struct iovec parts[IO_SEND_PARTS];
    unsigned part, part_count; /* parts[part, part_count) are not in records yet */
    size_t sealed;             /* plain bytes in the record that is on its way */
    size_t mark;               /* bytes that the kernel has to take until that record is with it */
    int failure;               /* `failed` with it, once the alert is out; 0: none */
    bool reading;              /* what the caller wants */
    bool established;          /* `connected` was called after secure_start */
    bool begun;                /* something of the caller's was sent, which follows on the handshake */
    bool over;                 /* `ended` or `failed` was called: nothing more comes from the peer */
    bool told;                 /* `failed` was called, which may be after `ended`, as of a plain stream */
    bool shutting, shut;       /* our half ends when the output is out; it does */
};

/* As stream_init, stream_connect, stream_read, stream_send, stream_shutdown, stream_close. */
void secure_init(struct secure_stream *s, struct io *io, const struct stream_events *events, int fd);
int secure_connect(struct secure_stream *s, const struct sockaddr *address, socklen_t len,
                   const struct io_socket_options *options);
void secure_read(struct secure_stream *s, bool wanted);
void secure_send(struct secure_stream *s, const struct iovec *parts, unsigned count);
bool secure_sending(const struct secure_stream *s);
void secure_shutdown(struct secure_stream *s); /* with close_notify */
void secure_close(struct secure_stream *s);    /* close_notify if it can go at once */

/* Its io is disposed of, and nothing of it completes any more: gives its memory back, without `closed`. */
void secure_abandon(struct secure_stream *s);

/* The connected stream, on which nothing is under way, is secured from now on; it reads by itself.
 *   client: `name` is the host in ASCII (SNI, and what the certificate has to be for; an address literal has
 *   no SNI); `session` (may be NULL) is looked at for one to resume, and gets the new ones.
 *   server: `name` and `session` are NULL.
 * The context is held until the stream is closed. 0 or a negative errno: nothing has changed. */
int secure_start(struct secure_stream *s, struct tls_context *context, const char *name,
                 struct tls_session *session);

/* After `failed`: what more there is to say, for people, in printable ASCII; "" if nothing. */
const char *secure_detail(const struct secure_stream *s);

#endif
