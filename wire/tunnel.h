/* A tunnel through an HTTP proxy: CONNECT and its answer (RFC 9110 section 9.3.6).
 *
 * 2xx makes the tunnel: what the answer's head says of a body is ignored, and what follows it would be the
 * server's, which has to be silent until TLS begins: bytes are an error. Any other final status is PE_PROXY.
 * Bounded in size (HTTP_HEAD_MAX a head, HTTP_INTERIM_MAX of them before the final one); in time by its
 * owner. */
#ifndef PURE_WIRE_TUNNEL_H
#define PURE_WIRE_TUNNEL_H

#include "core/stream.h"
#include "wire/http.h"

struct tunnel {
    /* Once, from inside the loop's wait. 0: `tunnel_fd` leads to the server and nothing is under way on it.
     * Negative: it is closed; `text` says more. */
    void (*done)(struct tunnel *t, int error);
    char text[64];

    /* The rest is private. */
    struct stream stream;
    bool through; /* the answer was 2xx */
    int error;    /* why it is being closed */
    unsigned interims;
    size_t size;    /* bytes of an unfinished head in `head` */
    size_t scanned; /* of these, as http_reply_head says */
    uint8_t head[HTTP_HEAD_MAX];
};

/* Sends `request`, which stays until `done`, on the connection `fd`, which is the tunnel's until then. */
void tunnel_start(struct tunnel *t, struct io *io, int fd, struct span request,
                  void (*done)(struct tunnel *t, int error));

/* Ends it with this error and text (short); `done` follows. Once it is being closed, nothing changes. */
void tunnel_stop(struct tunnel *t, int error, const char *text);

/* Takes the connection from a tunnel that is done. */
static inline int tunnel_fd(struct tunnel *t)
{
    return stream_release(&t->stream);
}

#endif
