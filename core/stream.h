/* A TCP stream on the seam: the one place where receives are re-armed, short sends go on, and an end is made
 * in the right order (cancel, last completions, close). Used by the wires' and by the front's connections.
 *
 * Callbacks come from inside io_wait; any of them may call stream_close, after which only `closed` comes,
 * once the descriptor is closed and the memory of the stream may be reused. */
#ifndef PURE_CORE_STREAM_H
#define PURE_CORE_STREAM_H

#include "core/io.h"

struct stream;

struct stream_events {
    void (*connected)(struct stream *s);                               /* after stream_connect */
    void (*data)(struct stream *s, const uint8_t *bytes, size_t size); /* size > 0; valid until it returns */
    void (*ended)(struct stream *s);                                   /* the peer will send no more */
    void (*sent)(struct stream *s, size_t size,
                 bool all);                      /* the kernel took `size` more bytes; all: nothing is left */
    void (*failed)(struct stream *s, int error); /* connect, receive or send failed: close it */
    void (*closed)(struct stream *s);
    /* Receiving has stopped as stream_read(s, false) asked, if it was under way. May be NULL. */
    void (*stopped)(struct stream *s);
};

struct stream {
    struct io *io;
    const struct stream_events *events;
    int fd; /* -1: none */
    struct io_op receive;
    struct io_op send; /* also connects: nothing is sent before */
    struct io_op end;  /* shuts down, closes */
    struct iovec parts[IO_SEND_PARTS];
    unsigned part, part_count; /* parts[part, part_count) are not sent yet */
    bool prompt;               /* the caller's: as an IO_SEND's. Holds from the next stream_send on */
    bool reading;              /* receives are wanted */
    bool ended;                /* the peer's end was seen */
    bool failing;              /* `failed` was called */
    bool closing;
};

/* Adopts a connected descriptor (`fd`), or starts without (-1). */
void stream_init(struct stream *s, struct io *io, const struct stream_events *events, int fd);

/* Connects; `connected` or `failed` follows. Returns 0, or a negative errno when no socket could be made
 * (nothing follows, and the stream is as before). */
int stream_connect(struct stream *s, const struct sockaddr *address, socklen_t len,
                   const struct io_socket_options *options);

/* Starts or stops receiving. After a stop, what was under way already is still delivered. */
void stream_read(struct stream *s, bool wanted);

/* Sends parts[0, count), count at most IO_SEND_PARTS, which the caller keeps until `sent` said all, or
 * `closed`. One send at a time: asserts that none is under way. */
void stream_send(struct stream *s, const struct iovec *parts, unsigned count);

static inline bool stream_sending(const struct stream *s)
{
    return s->part < s->part_count;
}

/* Ends our half after all was sent. Asserts that nothing is being sent. */
void stream_shutdown(struct stream *s);

/* Gives the descriptor away: nothing is under way on it. The stream is as after stream_init without one. */
int stream_release(struct stream *s);

/* Ends it; `closed` follows, also for a stream that was never connected (from the next io_wait). Idempotent.
 */
void stream_close(struct stream *s);

#endif
