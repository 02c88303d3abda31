#include "experiments/reactor/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
    struct server *server;
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
    close(fd);
    free(c);
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
        ssize_t n = send(fd, c->out + c->sent, c->out_size - c->sent, MSG_NOSIGNAL);
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
    ssize_t n = recv(fd, c->in + c->filled, sizeof c->in - c->filled, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        end(c, fd);
        return;
    }
    c->filled += (size_t)n;
    if (!serve(c, fd))
        end(c, fd);
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
    if (reactor_register(server->reactor, fd, EPOLLIN, ready, c) != 0) {
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
