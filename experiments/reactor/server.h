/* An HTTP/1.1 server on a reactor: accepts, reads requests with Content-Length bodies, keep-alive and
 * pipelining included, and answers with what its `answer` writes. The reactor and the sink programs are this
 * with different answers. */
#ifndef PURE_EXPERIMENTS_SERVER_H
#define PURE_EXPERIMENTS_SERVER_H

#include "experiments/common/message.h"
#include "experiments/reactor/reactor.h"

#include <stdint.h>

#define SERVER_REQUEST_MAX 65536 /* bytes of a request, and of the replies to those that came together */
#define SERVER_REPLY_MAX   512

struct server {
    struct reactor *reactor;
    int listener;
    /* Writes the reply to a request (its bytes are head, then body) at `out`, which has room for
     * SERVER_REPLY_MAX; returns its size. `word` is the connection's own, 0 at its start. */
    size_t (*answer)(void *arg, const char *request, const struct message *message, uint64_t *word,
                     char *out);
    void *arg;
};

/* Starts accepting on a listening socket. `server` outlives the reactor's run. 0 or a negative errno. */
int server_start(struct server *server);

#endif
