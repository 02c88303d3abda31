/* Two ways: plain, where the stream calls the caller's events by itself, and TLS, where the events below
 * stand between. What is sent goes out a record at a time: the next one is made when the kernel has all of
 * the one before, so that the memory of one is enough. */
#include "tls/secure_stream.h"

#include "tls/engine.h"

static struct secure_stream *secure_of(struct stream *stream)
{
    return container_of(stream, struct secure_stream, stream);
}

static int64_t wall_s(const struct secure_stream *s)
{
    return (int64_t)(io_wall_ms(s->stream.io) / 1000);
}

/* --- out --- */

/* Up to a record's worth of the parts at `record`, or where it lies if one part has it all. */
static struct span next_plain(struct secure_stream *s, uint8_t *record)
{
    size_t size = 0;
    while (s->part < s->part_count && size < TLS_PLAIN_MAX) {
        struct iovec *part = &s->parts[s->part];
        size_t piece = min_size(part->iov_len, TLS_PLAIN_MAX - size);
        struct span whole = span_of(part->iov_base, piece);
        part->iov_base = (uint8_t *)part->iov_base + piece;
        part->iov_len -= piece;
        if (part->iov_len == 0)
            s->part++;
        if (size == 0 && (piece == TLS_PLAIN_MAX || s->part == s->part_count))
            return whole;
        memcpy(record + size, whole.data, piece);
        size += piece;
    }
    return span_of(record, size);
}

static void seal(struct secure_stream *s)
{
    uint8_t record[TLS_PLAIN_MAX];
    if (s->sealed > 0 || s->part == s->part_count || !tls_engine_writable(s->engine))
        return;
    struct span plain = next_plain(s, record);
    if (tls_engine_write(s->engine, plain.data, plain.size) < 0)
        return;
    s->begun = true;
    s->sealed = plain.size;
    s->mark = tls_engine_pending(s->engine);
}

static void report_failure(struct secure_stream *s)
{
    if (s->told)
        return;
    s->over = s->told = true;
    s->events->failed(&s->stream, s->failure);
}

static bool send_output(struct secure_stream *s)
{
    struct span output = tls_engine_output(s->engine);
    struct iovec part = {(void *)output.data, output.size};
    s->stream.prompt = s->part < s->part_count || !s->begun;
    if (output.size > 0)
        stream_send(&s->stream, &part, 1);
    return output.size > 0;
}

/* Hands over what there is, unless something is under way: its end brings us here again. */
static void flush(struct secure_stream *s)
{
    if (stream_sending(&s->stream) || s->stream.closing)
        return;
    seal(s);
    if (send_output(s))
        return;
    if (s->failure < 0) {
        report_failure(s);
    } else if (s->shutting && !s->shut) {
        s->shut = true;
        stream_shutdown(&s->stream);
    }
}

/* The alert goes out first, if it can: who does not read what we send shall not hold up that it is failed. */
static void fail(struct secure_stream *s, int error)
{
    if (s->failure < 0)
        return;
    s->failure = error;
    if (stream_sending(&s->stream))
        report_failure(s);
    else
        flush(s);
}

static void check(struct secure_stream *s)
{
    int error = tls_engine_error(s->engine);
    if (error < 0 && !s->stream.closing)
        fail(s, error);
}

/* --- in --- */

static void established(struct secure_stream *s)
{
    s->established = true;
    if (!s->reading)
        stream_read(&s->stream, false);
    s->events->connected(&s->stream);
}

static void ended(struct secure_stream *s, bool cut)
{
    if (s->over)
        return;
    s->over = true;
    s->cut = cut;
    s->events->ended(&s->stream);
}

static void pump(struct secure_stream *s)
{
    uint8_t plain[TLS_PLAIN_MAX];
    size_t size;
    while (!s->stream.closing && s->failure == 0) {
        switch (tls_engine_step(s->engine, plain, sizeof plain, &size)) {
        case TLS_READY:
            established(s);
            break;
        case TLS_PLAIN:
            s->events->data(&s->stream, plain, size);
            break;
        case TLS_WAITS:
            flush(s);
            return;
        case TLS_ENDED:
            flush(s);
            ended(s, false);
            return;
        case TLS_FAILED:
            check(s);
            return;
        }
    }
}

/* --- the events of the stream --- */

static void tls_data(struct stream *stream, const uint8_t *bytes, size_t size)
{
    struct secure_stream *s = secure_of(stream);
    if (s->failure < 0 || s->over)
        return;
    tls_engine_feed(s->engine, span_of(bytes, size), wall_s(s));
    pump(s);
}

static void tls_ended(struct stream *stream)
{
    struct secure_stream *s = secure_of(stream);
    if (s->established)
        ended(s, true);
    else
        fail(s, PE_TLS_CUT);
}

static void tls_sent(struct stream *stream, size_t size, bool all)
{
    struct secure_stream *s = secure_of(stream);
    size_t done = 0;
    tls_engine_took(s->engine, size);
    s->mark -= min_size(s->mark, size);
    if (s->sealed > 0 && s->mark == 0) {
        done = s->sealed;
        s->sealed = 0;
    }
    if (all && !s->established && s->failure == 0)
        pump(s); /* a handshake whose output was full goes on */
    if (all)
        flush(s);
    check(s);
    if (done > 0 && !s->stream.closing)
        s->events->sent(stream, done, !secure_sending(s));
}

static void tls_failed(struct stream *stream, int error)
{
    struct secure_stream *s = secure_of(stream);
    if (s->failure == 0)
        s->failure = error;
    report_failure(s);
}

static void tls_closed(struct stream *stream)
{
    struct secure_stream *s = secure_of(stream);
    tls_engine_free(s->engine);
    s->engine = NULL;
    s->events->closed(stream);
}

static const struct stream_events tls_events = {
    .data = tls_data,
    .ended = tls_ended,
    .sent = tls_sent,
    .failed = tls_failed,
    .closed = tls_closed,
};

/* --- what the caller does --- */

void secure_init(struct secure_stream *s, struct io *io, const struct stream_events *events, int fd)
{
    *s = (struct secure_stream){.events = events};
    stream_init(&s->stream, io, events, fd);
}

int secure_connect(struct secure_stream *s, const struct sockaddr *address, socklen_t len,
                   const struct io_socket_options *options)
{
    return stream_connect(&s->stream, address, len, options);
}

int secure_start(struct secure_stream *s, struct tls_context *context, const char *name,
                 struct tls_session *session)
{
    assert(!s->engine && !stream_sending(&s->stream) && !s->stream.closing);
    int error = tls_engine_make(&s->engine, context, name, session, wall_s(s));
    if (error < 0)
        return error;
    s->reading = true;
    s->stream.events = &tls_events;
    stream_read(&s->stream, true);
    pump(s);
    return 0;
}

void secure_read(struct secure_stream *s, bool wanted)
{
    s->reading = wanted;
    if (!s->engine || s->established)
        stream_read(&s->stream, wanted);
}

void secure_send(struct secure_stream *s, const struct iovec *parts, unsigned count)
{
    if (!s->engine) {
        stream_send(&s->stream, parts, count);
        return;
    }
    assert(s->established && !secure_sending(s) && !s->shutting && count > 0 && count <= IO_SEND_PARTS);
    memcpy(s->parts, parts, count * sizeof *parts);
    s->part = 0;
    s->part_count = count;
    flush(s);
}

bool secure_sending(const struct secure_stream *s)
{
    return s->engine ? s->sealed > 0 || s->part < s->part_count : stream_sending(&s->stream);
}

void secure_shutdown(struct secure_stream *s)
{
    if (!s->engine) {
        stream_shutdown(&s->stream);
        return;
    }
    assert(!secure_sending(s));
    s->shutting = true;
    tls_engine_end(s->engine);
    flush(s);
}

void secure_close(struct secure_stream *s)
{
    if (s->engine && !s->stream.closing && !stream_sending(&s->stream) && !secure_sending(s)) {
        tls_engine_end(s->engine);
        send_output(s);
    }
    stream_close(&s->stream);
}

const char *secure_detail(const struct secure_stream *s)
{
    return s->engine ? tls_engine_detail(s->engine) : "";
}

void secure_abandon(struct secure_stream *s)
{
    tls_engine_free(s->engine);
    s->engine = NULL;
}
