#include "host/front_sealed.h"

#include <stdio.h>

#include "host/front_body.h"

/* --- the head --- */

/* The numbers of the opened head; what is wrong with them, or NULL. */
static const char *take_numbers(struct front_body *b, const struct sealed_request *r)
{
    if (r->first == 0 || r->first > VARINT_MAX || r->base > VARINT_MAX)
        return "the number of the first record, or the base, cannot be";
    if (r->count > r->body_bytes || r->count > VARINT_MAX - r->first + 1)
        return "the number of records cannot be";
    if (r->count == 0 && (r->body_bytes > 0 || r->sent > VARINT_MAX - 1))
        return "a question comes without a body";
    b->next = r->first;
    b->base = r->base;
    b->left = r->count;
    b->asks = r->count == 0 ? r->sent + 1 : 0;
    memcpy(b->epoch, r->epoch, EPOCH_BYTES);
    return NULL;
}

/* "OWNER/FROM/OUTPUT"; its size, 0 if it is too long. */
static uint8_t join_names(char to[SOURCE_NAME_MAX], const char *owner, const struct sealed_request *r)
{
    char name[SOURCE_NAME_MAX + 1];
    int size = snprintf(name, sizeof name, "%s/%.*s/%.*s", owner, (int)r->from.size,
                        (const char *)r->from.data, (int)r->output.size, (const char *)r->output.data);
    if (size < 0 || size > SOURCE_NAME_MAX)
        return 0;
    memcpy(to, name, (size_t)size);
    return (uint8_t)size;
}

/* As a link of the same host has them (host/link_inlets.c): an output that changes its way stays one stream.
 */
static const char *take_names(struct front_body *b, const struct sealed_peer *peer,
                              const struct sealed_request *r)
{
    char owner[sizeof "link " + HOST_KEY_PUBLIC_TEXT] = "link ";
    host_key_public_text(peer->key, owner + sizeof "link " - 1);
    b->source_size = join_names(b->source, peer->name, r);
    b->identity_size = join_names(b->identity, owner, r);
    if (!run_stream_name(span_of(b->source, b->source_size)) || b->identity_size == 0)
        return "the names of app and output are not such as hosts give";
    if (!run_event_name(r->event))
        return "the event's name is none";
    memcpy(b->event, r->event.data, r->event.size);
    b->event_size = (uint8_t)r->event.size;
    b->key_size = 0;
    return NULL;
}

/* The app, if the peer may send there; else it is declined. */
static struct front_app *find_app(struct client *c, const struct sealed_peer *peer,
                                  const struct sealed_request *r)
{
    struct front_app *app = route_app(c->front, r->app);
    if (!app) {
        client_decline(c, 404, "there is no such app");
    } else if (!peer->apps[app - c->front->apps]) {
        sealed_door_disallow(c->front->door, peer, app->app->name);
        client_decline(c, 403, "apps = of the [peer] does not name this app");
        app = NULL;
    }
    return app;
}

static void decline_stale(struct client *c)
{
    client_last(c)->error = PE_STREAM_STALE;
    client_decline(c, 409, pure_error_text(PE_STREAM_STALE));
}

static void begin_body(struct client *c, const struct sealed_opened *opened)
{
    struct client_sealed *s = c->sealed;
    memcpy(s->key, opened->keys.body, sizeof s->key);
    s->number = 0;
    s->left = opened->request.body_bytes;
    s->have = 0;
    c->body.sealed = true;
    c->body.whole = 0;
    c->body.whole_records = 0;
}

/* From here on the reply is proven: what is told is about what the peer has sealed. */
static void begin_opened(struct client *c, const struct sealed_opened *opened, const struct sealed_peer *peer)
{
    struct front_body *b = &c->body;
    const struct sealed_request *r = &opened->request;
    b->fresh_ns = sealed_door_given_ns(c->front->door, peer, r->ticket);
    if (b->fresh_ns == 0) {
        decline_stale(c);
        return;
    }
    const char *why = take_numbers(b, r);
    if (!why)
        why = take_names(b, peer, r);
    if (why) {
        client_decline(c, 400, why);
        return;
    }
    struct front_app *app = find_app(c, peer, r);
    if (app != c->refused_by)
        c->refused_by = c->turn_of = NULL; /* else all that is sealed for another would be held for it */
    if (app && front_request_admit(c, app, SINK_RECORDS, r->body_bytes))
        begin_body(c, opened);
}

/* False: there is no memory. */
static bool prepare(struct client *c, const struct sealed_opened *opened, const struct sealed_peer *peer)
{
    struct exchange *x = client_last(c);
    bool first = !c->sealed;
    if (front_keep(c->front, (uint8_t **)&c->sealed, &c->sealed_room, sizeof *c->sealed) < 0)
        return false;
    if (first)
        *c->sealed = (struct client_sealed){.number = 0};
    struct sealed_answer *answer = &c->sealed->answers[(c->end - 1) % FRONT_PIPELINE];
    memcpy(answer->key, opened->keys.reply, sizeof answer->key);
    answer->peer = peer;
    x->sealed = x->proven = true;
    return true;
}

/* A head that was opened, of a body of the size that it says. What the way has added is no part of it. */
static void begin_peer(struct client *c, const struct sealed_opened *opened, const struct sealed_peer *peer)
{
    if (c->body.framing.left != sealed_size(opened->request.body_bytes))
        client_decline(c, 400, "the body is not as long as its head says");
    else if (!prepare(c, opened, peer))
        client_refuse(c, 503, "there is no memory for sealed records");
    else
        begin_opened(c, opened, peer);
}

void front_sealed_begin(struct client *c, const struct request_fields *fields)
{
    struct sealed_opened opened;
    const struct sealed_peer *peer;
    client_last(c)->kind = EXCHANGE_RECORDS;
    if (!c->front->door) {
        client_decline(c, 404, "nobody may send sealed records here");
    } else if (c->body.framing.framing != HTTP_SIZED) {
        client_decline(c, 411, "records come with a Content-Length");
    } else if (sealed_door_open(c->front->door, fields->sealed, &opened, &peer) < 0) {
        client_refuse(c, 403, "Pure-Sealed is not of a host that may send here");
    } else {
        begin_peer(c, &opened, peer);
        sodium_memzero(&opened, sizeof opened);
    }
}

/* --- the body --- */

static void drop(struct span *content, size_t size)
{
    *content = span_of(content->data + size, content->size - size);
}

/* The next chunk, whole: from where it came in, or as it was kept. False: more is needed. */
static bool gather(struct client_sealed *s, struct span *content, uint32_t size, struct span *chunk)
{
    if (s->have == 0 && content->size >= size) {
        *chunk = span_of(content->data, size);
        drop(content, size);
        return true;
    }
    size_t part = min_size(size - s->have, content->size);
    if (part > 0)
        memcpy(s->chunk + s->have, content->data, part);
    drop(content, part);
    s->have += (uint32_t)part;
    *chunk = span_of(s->chunk, size);
    return s->have == size;
}

int front_sealed_take(struct client *c, struct span *content, struct span *plain, bool *last)
{
    struct client_sealed *s = c->sealed;
    *plain = span_of(NULL, 0);
    *last = s->left == 0; /* a question: there is no chunk */
    if (*last)
        return 1;
    uint32_t size = (uint32_t)min_u64(s->left, SEALED_CHUNK_BYTES);
    struct span chunk;
    if (front_keep(c->front, &s->chunk, &s->room, size + NOISE_TAG_BYTES) < 0) {
        client_refuse(c, 503, "too many bodies are coming in");
        return PE_FULL;
    }
    if (!gather(s, content, size + NOISE_TAG_BYTES, &chunk))
        return 0;
    if (sealed_chunk_open(s->key, s->number, chunk, s->chunk) < 0) {
        front_sealed_distrust(c);
        client_refuse(c, 400, pure_error_text(PE_NOT_AUTHENTIC));
        return PE_NOT_AUTHENTIC;
    }
    s->have = 0;
    s->number++;
    s->left -= size;
    *plain = span_of(s->chunk, size);
    *last = s->left == 0;
    return 1;
}

void front_sealed_release(struct client *c)
{
    struct client_sealed *s = c->sealed;
    c->body.sealed = false;
    if (!s)
        return;
    sodium_memzero(s->key, sizeof s->key);
    s->have = 0;
    front_forget(c->front, &s->chunk, &s->room);
}

void front_sealed_forget(struct client *c)
{
    front_sealed_release(c);
    if (!c->sealed)
        return;
    sodium_memzero(c->sealed, sizeof *c->sealed);
    front_forget(c->front, (uint8_t **)&c->sealed, &c->sealed_room);
}

/* --- the reply --- */

void front_sealed_distrust(struct client *c)
{
    if (c->first != c->end)
        client_last(c)->proven = false;
}

static uint8_t error_of(const struct exchange *x)
{
    switch (x->error) {
    case PE_STREAM_GAP:
        return SEALED_GAP;
    case PE_STREAM_ROLLED_BACK:
        return SEALED_ROLLED_BACK;
    case PE_STREAM_RETIRED:
        return SEALED_RETIRED;
    case PE_STREAM_STALE:
        return SEALED_STALE;
    default:
        return SEALED_OK;
    }
}

void front_sealed_prove(struct client *c, const struct exchange *x, uint16_t status,
                        char text[SEALED_REPLY_TEXT_BYTES])
{
    struct front *front = c->front;
    struct sealed_answer *answer = &c->sealed->answers[c->first % FRONT_PIPELINE];
    struct sealed_reply reply = {.status = status,
                                 .error = error_of(x),
                                 .has_stored = x->stored_known && x->error != PE_STREAM_STALE,
                                 .stored = x->stored,
                                 .retry_after_s = status == 503};
    uint8_t nonce[SEALED_NONCE_BYTES];
    if (status != 200)
        snprintf(reply.why, sizeof reply.why, "%s", x->refused ? x->refused : pure_error_text(x->error));
    sealed_door_ticket(front->door, answer->peer, front->loop->now_ns, reply.ticket);
    noise_random_fill(&front->door->random, nonce, sizeof nonce);
    sealed_reply_write(&reply, answer->key, nonce, text);
    sodium_memzero(answer->key, sizeof answer->key);
}
