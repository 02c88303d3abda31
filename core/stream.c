#include "core/stream.h"

#include <errno.h>

/* Once closing, the last completion in flight lets the descriptor go. */
static void closed(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    struct stream *s = container_of(op, struct stream, end);
    s->fd = -1;
    s->events->closed(s);
}

static void go_on_closing(struct stream *s)
{
    if (s->receive.in_flight || s->send.in_flight || s->end.in_flight)
        return;
    io_prepare(&s->end, IO_CLOSE, s->fd, closed);
    io_queue(s->io, &s->end);
}

static void fail(struct stream *s, int error)
{
    if (s->failing)
        return;
    s->failing = true;
    s->events->failed(s, error);
}

static void received(struct io_op *op, int result, bool more)
{
    struct stream *s = container_of(op, struct stream, receive);
    if (result > 0 && !s->closing)
        s->events->data(s, op->data, (size_t)result);
    if (result == 0 && !s->closing) {
        s->ended = true;
        s->events->ended(s);
    }
    if (more)
        return;
    if (s->closing) {
        go_on_closing(s);
        return;
    }
    bool passing =
        result > 0 || result == -ENOBUFS || result == -ECANCELED || result == -EINTR || result == -EAGAIN;
    if (!passing && result < 0)
        fail(s, result);
    if (!passing || s->ended || s->closing || op->in_flight) /* `data` may have re-armed it */
        return;
    if (s->reading)
        io_queue(s->io, op);
    else if (s->events->stopped)
        s->events->stopped(s);
}

static void send_rest(struct stream *s);

static void sent(struct io_op *op, int result, bool more)
{
    (void)more;
    struct stream *s = container_of(op, struct stream, send);
    if (s->closing) {
        go_on_closing(s);
        return;
    }
    if (result < 0 && result != -EINTR && result != -EAGAIN) {
        fail(s, result);
        return;
    }
    size_t took = result > 0 ? (size_t)result : 0;
    size_t left = took;
    while (s->part < s->part_count && left >= s->parts[s->part].iov_len)
        left -= s->parts[s->part++].iov_len;
    if (left > 0) {
        s->parts[s->part].iov_base = (uint8_t *)s->parts[s->part].iov_base + left;
        s->parts[s->part].iov_len -= left;
    }
    if (s->part < s->part_count)
        send_rest(s);
    if (took > 0)
        s->events->sent(s, took, s->part == s->part_count);
}

static void send_rest(struct stream *s)
{
    io_prepare_send(&s->send, s->fd, s->parts + s->part, s->part_count - s->part, sent);
    s->send.send.prompt = s->prompt;
    io_queue(s->io, &s->send);
}

static void connected(struct io_op *op, int result, bool more)
{
    (void)more;
    struct stream *s = container_of(op, struct stream, send);
    if (s->closing)
        go_on_closing(s);
    else if (result < 0)
        fail(s, result);
    else
        s->events->connected(s);
}

void stream_init(struct stream *s, struct io *io, const struct stream_events *events, int fd)
{
    *s = (struct stream){.io = io, .events = events, .fd = fd};
}

int stream_connect(struct stream *s, const struct sockaddr *address, socklen_t len,
                   const struct io_socket_options *options)
{
    assert(s->fd < 0 && !s->closing);
    int fd = io_socket(s->io, address->sa_family, options);
    if (fd < 0)
        return fd;
    s->fd = fd;
    io_prepare_connect(&s->send, fd, address, len, connected);
    io_queue(s->io, &s->send);
    return 0;
}

void stream_read(struct stream *s, bool wanted)
{
    s->reading = wanted;
    if (wanted && !s->receive.in_flight && !s->ended && !s->closing) {
        io_prepare(&s->receive, IO_RECV, s->fd, received);
        io_queue(s->io, &s->receive);
    } else if (!wanted) {
        io_cancel(s->io, &s->receive);
    }
}

void stream_send(struct stream *s, const struct iovec *parts, unsigned count)
{
    assert(!stream_sending(s) && !s->closing && count > 0 && count <= IO_SEND_PARTS);
    memcpy(s->parts, parts, count * sizeof *parts);
    s->part = 0;
    s->part_count = count;
    send_rest(s);
}

static void shut_down(struct io_op *op, int result, bool more)
{
    (void)result, (void)more; /* a peer that is gone already shows on the receiving side */
    struct stream *s = container_of(op, struct stream, end);
    if (s->closing)
        go_on_closing(s);
}

void stream_shutdown(struct stream *s)
{
    assert(!stream_sending(s));
    if (s->closing || s->end.in_flight)
        return;
    io_prepare(&s->end, IO_SHUTDOWN, s->fd, shut_down);
    io_queue(s->io, &s->end);
}

int stream_release(struct stream *s)
{
    assert(!s->receive.in_flight && !s->send.in_flight && !s->end.in_flight && !s->closing);
    int fd = s->fd;
    stream_init(s, s->io, s->events, -1);
    return fd;
}

void stream_close(struct stream *s)
{
    if (s->closing)
        return;
    s->closing = true;
    s->reading = false;
    io_cancel(s->io, &s->receive);
    io_cancel(s->io, &s->send);
    go_on_closing(s);
}
