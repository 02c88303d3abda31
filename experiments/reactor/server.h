/* An HTTP/1.1 server on a reactor, plain or over OpenSSL: accepts, reads requests with Content-Length bodies,
 * keep-alive and pipelining included, and answers with what its `answer` writes; after a reply to a request
 * with `Connection: close` or one that `closes` says so of, it ends the connection. The reactor and the sink
 * programs are this with different answers. */
#ifndef PURE_EXPERIMENTS_SERVER_H
#define PURE_EXPERIMENTS_SERVER_H

#include "experiments/common/message.h"
#include "experiments/reactor/reactor.h"

#include <stdbool.h>
#include <stdint.h>

#define SERVER_REQUEST_MAX 65536 /* bytes of a request, and of the replies to those that came together */
#define SERVER_REPLY_MAX   512

struct ssl_ctx_st; /* OpenSSL's */

struct server {
    struct reactor *reactor;
    int listener;
    struct ssl_ctx_st *secure;    /* connections speak TLS; NULL: none do */
    uint64_t handshakes, resumed; /* with `secure`: those that went well; of them, on an older session */
    /* Writes the reply to a request (its bytes are head, then body) at `out`, which has room for
     * SERVER_REPLY_MAX; returns its size. `word` is the connection's own, 0 at its start. */
    size_t (*answer)(void *arg, const char *request, const struct message *message, uint64_t *word,
                     char *out);
    bool closes; /* every connection ends after one reply (which says so) */
    void *arg;
};

/* Starts accepting on a listening socket. `server` outlives the reactor's run. 0 or a negative errno. */
int server_start(struct server *server);

#endif
