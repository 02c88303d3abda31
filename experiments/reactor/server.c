#include "experiments/reactor/server.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
    struct server *server;
    SSL *tls;    /* NULL: plain */
    bool shaken; /* tls: the handshake is over */
    uint64_t word;
    size_t filled;         /* in[0, filled) is received and not answered */
    size_t sent, out_size; /* out[sent, out_size) is to be sent; nothing is received meanwhile */
    bool waiting;          /* interested in EPOLLOUT, not EPOLLIN */
    char in[SERVER_REQUEST_MAX];
    char out[SERVER_REQUEST_MAX];
};

static void end(struct connection *c, int fd)
{
    reactor_deregister(c->server->reactor, fd);
    if (c->tls && c->shaken)
        SSL_shutdown(c->tls);
    SSL_free(c->tls);
    close(fd);
    free(c);
}

/* As recv and send; EAGAIN, too, while a handshake wants to write. */
static ssize_t tls_result(struct connection *c, int result)
{
    int error = SSL_get_error(c->tls, result);
    if (result > 0)
        return result;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

static ssize_t receive(struct connection *c, int fd, char *to, size_t size)
{
    if (!c->tls)
        return recv(fd, to, size, 0);
    ssize_t n = tls_result(c, SSL_read(c->tls, to, (int)size));
    if (!c->shaken && SSL_is_init_finished(c->tls)) {
        c->shaken = true;
        c->server->handshakes++;
        c->server->resumed += SSL_session_reused(c->tls) == 1;
    }
    return n;
}

static ssize_t transmit(struct connection *c, int fd, const char *from, size_t size)
{
    return c->tls ? tls_result(c, SSL_write(c->tls, from, (int)size)) : send(fd, from, size, MSG_NOSIGNAL);
}

/* Answers the whole requests in `in`, as many as the room for replies allows. False: not HTTP. */
static bool answer_all(struct connection *c)
{
    size_t used = 0;
    while (c->out_size + SERVER_REPLY_MAX <= sizeof c->out) {
        struct message message;
        long size = message_parse(c->in + used, c->filled - used, &message);
        if (size < 0 || (size == 0 && used == 0 && c->filled == sizeof c->in))
            return false;
        if (size == 0)
            break;
        struct server *server = c->server;
        c->out_size += server->answer(server->arg, c->in + used, &message, &c->word, c->out + c->out_size);
        used += (size_t)size;
    }
    c->filled -= used;
    if (used > 0 && c->filled > 0)
        memmove(c->in, c->in + used, c->filled);
    return true;
}

/* Sends what there is. 1: all sent, 0: the socket takes no more now, -1: it failed. */
static int flush(struct connection *c, int fd)
{
    while (c->sent < c->out_size) {
        ssize_t n = transmit(c, fd, c->out + c->sent, c->out_size - c->sent);
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        c->sent += (size_t)n;
    }
    c->sent = c->out_size = 0;
    return 1;
}

static int wait_for(struct connection *c, int fd, bool writable)
{
    if (c->waiting == writable)
        return 0;
    c->waiting = writable;
    return reactor_reregister(c->server->reactor, fd, writable ? EPOLLOUT : EPOLLIN);
}

/* Answers and sends until no whole request is left or the socket is full. False: end it. */
static bool serve(struct connection *c, int fd)
{
    for (;;) {
        if (!answer_all(c))
            return false;
        bool some = c->out_size > 0;
        int flushed = flush(c, fd);
        if (flushed < 0)
            return false;
        if (flushed == 0)
            return wait_for(c, fd, true) == 0;
        if (some && c->server->closes)
            return false;
        if (!some || c->filled == 0)
            return wait_for(c, fd, false) == 0;
    }
}

static void ready(void *arg, int fd, uint32_t events)
{
    struct connection *c = arg;
    if (c->waiting) {
        int flushed = flush(c, fd);
        if (flushed < 0 || (flushed == 1 && !serve(c, fd)))
            end(c, fd);
        return;
    }
    (void)events;
    do {
        ssize_t n = receive(c, fd, c->in + c->filled, sizeof c->in - c->filled);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n > 0)
            c->filled += (size_t)n;
        if (n <= 0 || !serve(c, fd)) {
            end(c, fd);
            return;
        }
    } while (c->tls && !c->waiting && SSL_has_pending(c->tls));
}

static void adopt(struct server *server, int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct connection *c = malloc(sizeof *c);
    if (!c) {
        close(fd);
        return;
    }
    memset(c, 0, offsetof(struct connection, in));
    c->server = server;
    if (server->secure && (c->tls = SSL_new(server->secure)) && SSL_set_fd(c->tls, fd) == 1)
        SSL_set_accept_state(c->tls);
    if ((server->secure && !c->tls) || reactor_register(server->reactor, fd, EPOLLIN, ready, c) != 0) {
        SSL_free(c->tls);
        close(fd);
        free(c);
    }
}

static void acceptable(void *arg, int listener, uint32_t events)
{
    (void)events;
    struct server *server = arg;
    for (int i = 0; i < 64; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        adopt(server, fd);
    }
}

int server_start(struct server *server)
{
    return reactor_register(server->reactor, server->listener, EPOLLIN, acceptable, server);
}
