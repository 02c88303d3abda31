#include "tests/faults/player.h"

#include "tests/sim/sim.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define STEPS_MAX 1000000 /* at one moment */

static void keep(struct fault_buffer *b, const void *data, size_t size)
{
    if (b->size + size > b->room) {
        b->room = 2 * (b->size + size);
        b->data = realloc(b->data, b->room);
        assert(b->data);
    }
    if (size > 0)
        memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void drop(struct fault_buffer *b, size_t size)
{
    assert(size <= b->size);
    if (size > 0)
        memmove(b->data, b->data + size, b->size - size);
    b->size -= size;
}

/* --- the account --- */

static uint64_t hash(struct span bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < bytes.size; i++)
        h = (h ^ bytes.data[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void note(struct fault_account *a, const char *message, size_t size)
{
    static const char field[] = "\r\nwebhook-id: ";
    const char *head_end = memmem(message, size, "\r\n\r\n", 4);
    const char *id = memmem(message, (size_t)(head_end - message), field, sizeof field - 1);
    a->requests++;
    a->before_answer += !a->answered;
    if (!id)
        return;
    id += sizeof field - 1;
    struct fault_noted new = {.times = 1};
    const char *id_end = memchr(id, '\r', (size_t)(head_end + 1 - id));
    snprintf(new.id, sizeof new.id, "%.*s", (int)(id_end - id), id);
    new.body = hash(span_of(head_end + 4, (size_t)(message + size - head_end - 4)));
    for (unsigned i = 0; i < a->ids && i < FAULT_IDS; i++) {
        if (strcmp(a->noted[i].id, new.id) == 0) {
            a->noted[i].times++;
            a->changed += a->noted[i].body != new.body;
            return;
        }
    }
    if (a->ids < FAULT_IDS)
        a->noted[a->ids] = new;
    a->ids++;
}

/* --- TLS --- */

static void drain(struct fault_player *p)
{
    uint8_t piece[4096];
    for (int size; (size = BIO_read(SSL_get_wbio(p->ssl), piece, sizeof piece)) > 0;)
        keep(&p->out, piece, (size_t)size);
}

/* True: the handshake is over. One that failed ends our half behind its alert, as servers that linger do: so
 * that no reset overtakes the alert. */
static bool shake_hands(struct fault_player *p)
{
    if (SSL_is_init_finished(p->ssl))
        return true;
    int result = SSL_do_handshake(p->ssl);
    drain(p);
    if (result == 1) {
        p->account->handshakes++;
        p->account->resumed += SSL_session_reused(p->ssl) == 1;
    } else if (SSL_get_error(p->ssl, result) != SSL_ERROR_WANT_READ) {
        p->leaving = FAULT_SHUTS_DOWN;
    }
    return result == 1;
}

static void decrypt(struct fault_player *p)
{
    uint8_t piece[4096];
    if (!shake_hands(p))
        return;
    for (int size; (size = SSL_read(p->ssl, piece, sizeof piece)) > 0;)
        keep(&p->in, piece, (size_t)size);
    drain(p);
}

static void feed(struct fault_player *p, struct span raw)
{
    int size = BIO_write(SSL_get_rbio(p->ssl), raw.data, (int)raw.size);
    assert(size == (int)raw.size);
    (void)size;
    decrypt(p);
}

static bool secure(struct fault_player *p)
{
    if (p->ssl)
        return SSL_is_init_finished(p->ssl);
    p->ssl = SSL_new(p->identity);
    assert(p->ssl);
    SSL_set_bio(p->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(p->ssl);
    struct fault_buffer raw = p->in;
    p->in = (struct fault_buffer){0};
    if (raw.size > 0)
        feed(p, span_of(raw.data, raw.size));
    free(raw.data);
    return SSL_is_init_finished(p->ssl);
}

/* What is no record of this connection is answered with a fatal alert. It is as much as would end a record
 * that came in part before. */
static void send_alert(struct fault_player *p)
{
    static const uint8_t damaged[] = "\x17\x03\x03\x00\x20 a record under no key of theirs  ";
    for (size_t size = 0; size <= (1 << 14) + 256; size += 5 + 0x20)
        feed(p, span_of(damaged, 5 + 0x20));
}

static void say(struct fault_player *p, int (*what)(SSL *))
{
    what(p->ssl);
    SSL_do_handshake(p->ssl);
    drain(p);
}

static int update_keys(SSL *ssl)
{
    return SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
}

static void send_tickets(struct fault_player *p, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        say(p, SSL_new_session_ticket);
}

/* --- steps --- */

static void put(struct fault_player *p, const struct fault_step *step)
{
    p->account->answered = true;
    if (step->kind == FAULT_RAW || !p->ssl) {
        keep(&p->out, step->text, step->size);
        return;
    }
    SSL_write(p->ssl, step->text, (int)step->size);
    drain(p);
}

/* True once that time has passed since it was first asked. */
static bool waited(struct fault_player *p, unsigned ms, uint64_t now_ns)
{
    if (!p->waiting) {
        p->waiting = true;
        p->due_ns = now_ns + ms * NS_PER_MS;
    }
    if (now_ns < p->due_ns)
        return false;
    p->waiting = false;
    p->due_ns = NEVER;
    return true;
}

static bool send_all(struct fault_player *p, const struct fault_step *step, uint64_t now_ns)
{
    unsigned times = step->times > 0 ? step->times : 1;
    while (p->sent < times) {
        if (p->sent > 0 && step->ms > 0 && !waited(p, step->ms, now_ns))
            return false;
        put(p, step);
        p->sent++;
    }
    p->sent = 0;
    return true;
}

static bool take_request(struct fault_player *p)
{
    size_t size = sim_match_http(span_of(p->in.data, p->in.size), NULL);
    if (size == 0)
        return false;
    note(p->account, (const char *)p->in.data, size);
    drop(&p->in, size);
    return true;
}

static bool leave(struct fault_player *p, enum fault_leaving how)
{
    p->leaving = how;
    return true;
}

static bool make_tls(struct fault_player *p, const struct fault_step *step)
{
    if (step->kind == FAULT_SECURE)
        return secure(p);
    if (step->kind == FAULT_ALERT)
        send_alert(p);
    else if (step->kind == FAULT_TICKETS)
        send_tickets(p, step->times);
    else
        say(p, step->kind == FAULT_NOTIFY        ? SSL_shutdown
               : step->kind == FAULT_UPDATE_KEYS ? update_keys
                                                 : SSL_renegotiate);
    return true;
}

/* Makes one step. False: it is not done yet. */
static bool make(struct fault_player *p, const struct fault_step *step, uint64_t now_ns)
{
    size_t had = p->in.size;
    switch (step->kind) {
    case FAULT_STAY:
        drop(&p->in, had);
        return false;
    case FAULT_REQUEST:
        return take_request(p);
    case FAULT_SOME:
        drop(&p->in, had);
        return had > 0;
    case FAULT_SEND:
    case FAULT_RAW:
        return send_all(p, step, now_ns);
    case FAULT_WAIT:
        return waited(p, step->ms, now_ns);
    case FAULT_SHUTDOWN:
        return leave(p, FAULT_SHUTS_DOWN);
    case FAULT_CLOSE:
        return leave(p, FAULT_CLOSES);
    case FAULT_RESET:
        return leave(p, FAULT_RESETS);
    case FAULT_DEAF:
    case FAULT_HEAR:
        p->hearing = step->kind == FAULT_HEAR;
        return true;
    case FAULT_AGAIN:
        return true;
    default:
        return make_tls(p, step);
    }
}

void fault_player_tick(struct fault_player *p, uint64_t now_ns)
{
    unsigned made = 0;
    while (p->leaving < FAULT_CLOSES && make(p, p->step, now_ns)) {
        p->step = p->step->kind == FAULT_AGAIN ? p->script : p->step + 1;
        assert(made++ < STEPS_MAX && "a script that goes round without waiting");
    }
}

void fault_player_take(struct fault_player *p, struct span raw, uint64_t now_ns)
{
    if (p->ssl)
        feed(p, raw);
    else
        keep(&p->in, raw.data, raw.size);
    fault_player_tick(p, now_ns);
}

void fault_player_init(struct fault_player *p, const struct fault_step *script, struct ssl_ctx_st *identity,
                       struct fault_account *account, uint64_t now_ns)
{
    *p = (struct fault_player){.due_ns = NEVER,
                               .hearing = true,
                               .script = script,
                               .step = script,
                               .account = account,
                               .identity = identity};
    account->connections++;
    fault_player_tick(p, now_ns);
}

void fault_player_dispose(struct fault_player *p)
{
    SSL_free(p->ssl);
    free(p->in.data);
    free(p->out.data);
}

void fault_player_sent(struct fault_player *p, size_t size)
{
    drop(&p->out, size);
}
