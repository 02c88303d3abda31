#include "wire/lane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct lane *lane_of(struct stream *s)
{
    struct secure_stream *secure = container_of(s, struct secure_stream, stream);
    return container_of(secure, struct lane, stream);
}

static uint64_t now(const struct lane *l)
{
    return l->shared->loop->now_ns; /* of the wait's end, also in the callbacks of its completions */
}

static void stir(struct lane *l)
{
    l->shared->stirred(l);
}

/* --- the stream's events: told to the connection, acted on in the owner's next round, when all completions
 * of the batch are in --- */

static void connected(struct stream *s)
{
    struct lane *l = lane_of(s);
    l->usable = true;
    connection_connected(&l->connection, now(l));
    secure_read(&l->stream, true);
    stir(l);
}

/* Whether what is to be plain HTTP begins as a TLS record (RFC 8446 section 5.1): an alert, mostly. */
static bool speaks_tls(const struct lane *l, const uint8_t *bytes, size_t size)
{
    const struct connection *c = &l->connection;
    return !l->shared->tls && c->done == 0 && c->reply_bytes == 0 && size >= 2 && bytes[0] >= 20 &&
           bytes[0] <= 23 && bytes[1] == 3;
}

static void data(struct stream *s, const uint8_t *bytes, size_t size)
{
    struct lane *l = lane_of(s);
    if (speaks_tls(l, bytes, size))
        snprintf(l->detail, sizeof l->detail, "the peer speaks TLS: did you mean https?");
    connection_received(&l->connection, now(l), span_of(bytes, size));
    stir(l);
}

static void ended(struct stream *s)
{
    struct lane *l = lane_of(s);
    if (l->stream.cut)
        connection_cut(&l->connection);
    else
        connection_ended(&l->connection);
    stir(l);
}

static void sent(struct stream *s, size_t size, bool all)
{
    (void)all;
    struct lane *l = lane_of(s);
    connection_sent(&l->connection, now(l), size);
    l->shared->due(l);
    if (connection_ready(&l->connection))
        stir(l);
}

static void failed(struct stream *s, int error)
{
    struct lane *l = lane_of(s);
    snprintf(l->detail, sizeof l->detail, "%s", secure_detail(&l->stream));
    connection_failed(&l->connection, error);
    stir(l);
}

static void closed(struct stream *s)
{
    struct lane *l = lane_of(s);
    connection_closed(&l->connection);
    stir(l);
}

static const struct stream_events stream_events = {
    .connected = connected,
    .data = data,
    .ended = ended,
    .sent = sent,
    .failed = failed,
    .closed = closed,
};

/* --- opening --- */

/* Connected, and to be secured first or not. */
static void begin_stream(struct lane *l, int fd)
{
    struct lane_shared *shared = l->shared;
    secure_init(&l->stream, shared->loop->io, &stream_events, fd);
    l->made = true;
    l->opened_ns = now(l);
    if (!shared->tls) {
        connected(&l->stream.stream);
        return;
    }
    struct tls_context *context = tls_current_take(shared->tls);
    int error = context ? secure_start(&l->stream, context, shared->host, &shared->session)
                        : PE_TLS_FILES; /* they could not be read yet */
    tls_context_drop(context);
    if (error < 0)
        connection_failed(&l->connection, error);
    shared->due(l);
    stir(l);
}

static void dialed(struct dial *dial, int fd, int error)
{
    struct lane *l = container_of(dial, struct lane, dial);
    l->dialing = false;
    connection_connect(&l->connection, now(l));
    if (fd >= 0) {
        begin_stream(l, fd);
        return;
    }
    snprintf(l->detail, sizeof l->detail, "%s", dial_text(dial));
    connection_failed(&l->connection, error);
    connection_closed(&l->connection);
    stir(l);
}

void lane_init(struct lane *l, struct lane_shared *shared, unsigned index)
{
    *l = (struct lane){.shared = shared, .index = index};
    connection_init(&l->connection, &shared->limits);
    dial_init(&l->dial, shared->destination, dialed);
}

void lane_dispose(struct lane *l)
{
    if (l->dialing)
        dial_abandon(&l->dial);
    else if (!lane_gone(l) && l->connection.phase != CONNECTION_CLOSED)
        secure_abandon(&l->stream);
    connection_clear(&l->connection);
    free(l->head);
    free(l->body);
    free(l->packed);
}

int lane_prepare(struct lane *l)
{
    const struct lane_shared *shared = l->shared;
    if (!l->head && !(l->head = malloc(shared->head_room)))
        return -ENOMEM;
    if (!l->body && shared->body_room > 0 && !(l->body = malloc(shared->body_room)))
        return -ENOMEM;
    if (!l->packed && shared->packed_room > 0 && !(l->packed = malloc(shared->packed_room)))
        return -ENOMEM;
    return 0;
}

void lane_open(struct lane *l, uint64_t now_ns)
{
    assert(lane_gone(l));
    l->dialing = true;
    l->detail[0] = '\0';
    l->made = l->usable = l->leaving = false;
    dial_start(&l->dial, now_ns);
}

/* --- using --- */

uint64_t lane_send(struct lane *l, uint64_t now_ns, size_t head_size, struct span body)
{
    uint64_t number = connection_begin(&l->connection, now_ns, head_size + body.size);
    struct iovec parts[] = {{l->head, head_size}, {(void *)body.data, body.size}};
    secure_send(&l->stream, parts, body.size > 0 ? 2 : 1);
    return number;
}

static bool aged(const struct lane *l, uint64_t now_ns)
{
    return now_ns - l->opened_ns >= l->shared->age_ns;
}

bool lane_ready(const struct lane *l, uint64_t now_ns)
{
    return connection_ready(&l->connection) && !l->leaving && !aged(l, now_ns);
}

/* When an idle lane is to be closed in peace. */
static uint64_t tired_ns(const struct lane *l)
{
    const struct connection *c = &l->connection;
    uint64_t aged_ns = l->shared->age_ns == NEVER ? NEVER : l->opened_ns + l->shared->age_ns;
    uint64_t idle_since_ns = max_u64(c->progress_ns, c->reply_since_ns);
    return l->index == 0 ? aged_ns : min_u64(aged_ns, idle_since_ns + LANE_IDLE_NS);
}

bool lane_tired(const struct lane *l, uint64_t now_ns)
{
    return lane_idle(l) && now_ns >= tired_ns(l);
}

uint64_t lane_due_ns(const struct lane *l)
{
    uint64_t due_ns = connection_deadline_ns(&l->connection);
    if (lane_idle(l) && !l->connection.ending)
        due_ns = min_u64(due_ns, tired_ns(l));
    return due_ns;
}

/* --- ending --- */

void lane_close(struct lane *l)
{
    if (l->dialing)
        dial_stop(&l->dial);
    else if (l->connection.phase == CONNECTION_CONNECTING || l->connection.phase == CONNECTION_OPEN)
        secure_close(&l->stream);
}

void lane_clear(struct lane *l)
{
    l->leaving = false;
    connection_clear(&l->connection);
}
