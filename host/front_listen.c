#include "host/front_listen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/front_client.h"
#include "host/front_greet.h"

#define BACKLOG               1024
#define ACCEPT_BACKOFF_NS     (100 * NS_PER_MS)
#define ACCEPT_BACKOFF_MAX_NS NS_PER_S
#define ACCEPT_WELL_NS        (10 * NS_PER_S) /* without a failure: all is well again */

static void accept_on(struct front_listener *l);

/* --- descriptors for which there is no room --- */

/* Closed without a word. One allocation, off every path that is not overrun already. */
struct surplus {
    struct io_op op;
    struct front *front;
};

static void surplus_closed(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    struct surplus *surplus = container_of(op, struct surplus, op);
    surplus->front->closing_surplus--;
    free(surplus);
}

static void close_surplus(struct front *front, int fd)
{
    struct surplus *surplus = malloc(sizeof *surplus);
    if (!surplus) {
        log_line(front->log, LOG_ERROR, "out of memory: a connection is lost");
        return;
    }
    *surplus = (struct surplus){.front = front};
    io_prepare(&surplus->op, IO_CLOSE, fd, surplus_closed);
    io_queue(front->loop->io, &surplus->op);
    front->closing_surplus++;
}

/* --- accepting --- */

static bool has_room(const struct front_listener *l)
{
    return l->front->free && !(l->secured && front_greet_full(l->front));
}

static void adjust(struct front_listener *l)
{
    bool room = has_room(l);
    if (room == l->accepting || l->front->stopping)
        return;
    l->accepting = room;
    if (!room)
        io_cancel(l->front->loop->io, &l->accept); /* the kernel's backlog holds those that come */
    else if (l->front->accept_again.place == 0)
        accept_on(l);
}

void front_listen_adjust(struct front *front)
{
    for (unsigned i = 0; i < front->listener_count; i++)
        adjust(&front->listeners[i]);
}

static void admit(struct front_listener *l, int fd)
{
    struct front *front = l->front;
    bool over = front->open >= front->config->connections;
    front->counters.accepted++;
    if (!has_room(l) || front->stopping) {
        front->counters.refused++;
        close_surplus(front, fd);
        return;
    }
    struct client *client = front->free;
    front->free = client->free_next;
    front->open++;
    client->used = true;
    client_open(client, fd, over, l->secured);
    front_listen_adjust(front);
}

/* Failures come once a second, for as long as descriptors are short: the first is said, the second, the
 * fourth … */
static void accept_failed(struct front *front, int error)
{
    uint64_t fails = ++front->accept_fails;
    front->accept_failed_ns = front->loop->now_ns;
    front->counters.accept_fails++;
    timer_set(&front->loop->timers, &front->accept_again, front->loop->now_ns + front->accept_backoff_ns);
    front->accept_backoff_ns = min_u64(2 * front->accept_backoff_ns, ACCEPT_BACKOFF_MAX_NS);
    if ((fails & (fails - 1)) == 0)
        log_line(front->log, LOG_WARNING, "cannot accept connections: %s (%llu times)",
                 pure_error_text(error), (unsigned long long)fails);
}

/* One that is accepted between failures does not end them. */
static void accept_succeeded(struct front *front)
{
    front->accept_backoff_ns = ACCEPT_BACKOFF_NS;
    if (front->accept_fails == 0 || front->loop->now_ns - front->accept_failed_ns < ACCEPT_WELL_NS)
        return;
    log_line(front->log, LOG_NOTICE, "connections are accepted again, after %llu failures",
             (unsigned long long)front->accept_fails);
    front->accept_fails = 0;
}

static void close_listener(struct front_listener *l);

static void accepted(struct io_op *op, int result, bool more)
{
    struct front_listener *l = container_of(op, struct front_listener, accept);
    if (result >= 0) {
        accept_succeeded(l->front);
        admit(l, result);
    }
    if (more)
        return;
    bool passing = result >= 0 || result == -ECANCELED || result == -EINTR || result == -EAGAIN ||
                   result == -ECONNABORTED || result == -EPROTO;
    if (l->front->stopping) {
        close_listener(l);
    } else if (passing) {
        accept_on(l);
    } else {
        accept_failed(l->front, result);
    }
}

static void accept_on(struct front_listener *l)
{
    if (l->accept.in_flight || !l->accepting || l->front->stopping)
        return;
    io_prepare(&l->accept, IO_ACCEPT, l->fd, accepted);
    io_queue(l->front->loop->io, &l->accept);
}

static void accept_again(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    struct front *front = container_of(timer, struct front, accept_again);
    for (unsigned i = 0; i < front->listener_count; i++)
        accept_on(&front->listeners[i]);
}

/* --- beginning and end --- */

void front_listen_init(struct front *front)
{
    front->accept_backoff_ns = ACCEPT_BACKOFF_NS;
    timer_init(&front->accept_again, accept_again);
}

static int listen_at(struct front *front, const struct front_options *options,
                     const struct sockaddr_storage *address, socklen_t len, const char *text, bool secured,
                     char *why, size_t why_size)
{
    int fd;
    unsigned tries = 0;
    do
        fd = io_listen(front->loop->io, (const struct sockaddr *)address, len, BACKLOG);
    while (fd == -EADDRINUSE && options->await_address && options->await_address(options->context, ++tries));
    if (fd < 0) {
        snprintf(why, why_size, "cannot listen on %s%s: %s", secured ? "https " : "", text,
                 pure_error_text(fd));
        return fd;
    }
    struct front_listener *l = &front->listeners[front->listener_count++];
    *l = (struct front_listener){.front = front, .fd = fd, .secured = secured, .accepting = true};
    return 0;
}

/* Accepts once it listens at both. */
int front_listen_start(struct front *front, const struct front_options *options, char *why, size_t why_size)
{
    const struct config *c = front->config;
    int error = 0;
    if (c->http)
        error =
            listen_at(front, options, &c->http_address, c->http_address_len, c->http, false, why, why_size);
    if (error == 0 && front->https)
        error = listen_at(front, options, &c->https.address, c->https.address_len, c->https.text, true, why,
                          why_size);
    for (unsigned i = 0; error == 0 && i < front->listener_count; i++)
        accept_on(&front->listeners[i]);
    return error;
}

static void listener_closed(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    container_of(op, struct front_listener, close)->closed = true;
}

static void close_listener(struct front_listener *l)
{
    if (l->accept.in_flight || l->close.in_flight || l->closed)
        return;
    io_prepare(&l->close, IO_CLOSE, l->fd, listener_closed);
    io_queue(l->front->loop->io, &l->close);
}

void front_listen_stop(struct front *front)
{
    timer_unset(&front->loop->timers, &front->accept_again);
    for (unsigned i = 0; i < front->listener_count; i++) {
        struct front_listener *l = &front->listeners[i];
        io_cancel(front->loop->io, &l->accept);
        close_listener(l);
    }
}

bool front_listen_stopped(const struct front *front)
{
    bool stopped = front->closing_surplus == 0;
    for (unsigned i = 0; i < front->listener_count; i++)
        stopped = stopped && front->listeners[i].closed;
    return stopped;
}
