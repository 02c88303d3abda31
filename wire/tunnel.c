#include "wire/tunnel.h"

#include <stdio.h>

static struct tunnel *tunnel_of(struct stream *s)
{
    return container_of(s, struct tunnel, stream);
}

void tunnel_stop(struct tunnel *t, int error, const char *text)
{
    if (t->stream.closing)
        return;
    t->error = error;
    snprintf(t->text, sizeof t->text, "%s", text);
    stream_close(&t->stream);
}

static void refuse(struct tunnel *t, unsigned status)
{
    char text[sizeof t->text];
    snprintf(text, sizeof text, "the proxy answered %u%s", status,
             status == 407 ? ": it wants other credentials" : "");
    tunnel_stop(t, PE_PROXY, text);
}

/* A head is whole. */
static void judge(struct tunnel *t, unsigned status)
{
    if (status == 101 || (status < 200 && t->interims == HTTP_INTERIM_MAX)) {
        refuse(t, status);
    } else if (status < 200) {
        t->interims++;
    } else if (status < 300) {
        t->through = true;
        stream_read(&t->stream, false);
    } else {
        refuse(t, status);
    }
}

/* Takes bytes of one head, and judges it when it is whole; returns how many they were. */
static size_t take_head(struct tunnel *t, struct span bytes)
{
    struct http_head head;
    size_t before = t->size, taken = min_size(bytes.size, sizeof t->head - before);
    memcpy(t->head + before, bytes.data, taken);
    int size = http_reply_head(t->head, before + taken, &t->scanned, &head);
    if (size == PE_INCOMPLETE && taken > 0) {
        t->size += taken;
        return taken;
    }
    if (size < 0) {
        tunnel_stop(t, PE_PROXY, "the proxy's answer is not valid HTTP/1.1");
        return bytes.size;
    }
    t->size = t->scanned = 0;
    judge(t, head.status);
    return (size_t)size - before;
}

static void on_data(struct stream *s, const uint8_t *data, size_t size)
{
    struct tunnel *t = tunnel_of(s);
    struct span bytes = span_of(data, size);
    while (bytes.size > 0 && !s->closing) {
        if (t->through) {
            tunnel_stop(t, PE_PROXY, "the proxy sent bytes after its answer");
            return;
        }
        size_t used = take_head(t, bytes);
        bytes = span_of(bytes.data + used, bytes.size - used);
    }
}

static void on_ended(struct stream *s)
{
    tunnel_stop(tunnel_of(s), PE_PROXY, "the proxy closed the connection");
}

static void on_failed(struct stream *s, int error)
{
    tunnel_stop(tunnel_of(s), error, "the proxy");
}

/* The answer may be heard of before that the request was sent: both have to be over. */
static void go_on(struct tunnel *t)
{
    const struct stream *s = &t->stream;
    if (t->through && !s->receive.in_flight && !s->send.in_flight && !s->closing)
        t->done(t, 0);
}

static void on_stopped(struct stream *s)
{
    go_on(tunnel_of(s));
}

static void on_sent(struct stream *s, size_t size, bool all)
{
    (void)size, (void)all;
    go_on(tunnel_of(s));
}

static void on_closed(struct stream *s)
{
    struct tunnel *t = tunnel_of(s);
    t->done(t, t->error);
}

static const struct stream_events events = {
    .data = on_data,
    .ended = on_ended,
    .sent = on_sent,
    .failed = on_failed,
    .closed = on_closed,
    .stopped = on_stopped,
};

void tunnel_start(struct tunnel *t, struct io *io, int fd, struct span request,
                  void (*done)(struct tunnel *t, int error))
{
    t->done = done;
    t->text[0] = '\0';
    t->through = false;
    t->error = 0;
    t->interims = 0;
    t->size = t->scanned = 0;
    stream_init(&t->stream, io, &events, fd);
    stream_read(&t->stream, true);
    struct iovec part = {(void *)request.data, request.size};
    stream_send(&t->stream, &part, 1);
}
