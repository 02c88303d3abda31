#include "tls/engine_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

/* --- wolfSSL's bytes --- */

int tls_engine_receive(WOLFSSL *wolf, char *to, int room, void *engine)
{
    (void)wolf;
    struct tls_engine *e = engine;
    size_t size = min_size((size_t)room, e->input.size);
    if (size == 0)
        return WOLFSSL_CBIO_ERR_WANT_READ;
    memcpy(to, e->input.data, size);
    e->input.data += size;
    e->input.size -= size;
    return (int)size;
}

int tls_engine_send(WOLFSSL *wolf, char *data, int size, void *engine)
{
    (void)wolf;
    struct tls_engine *e = engine;
    size_t fits = min_size((size_t)size, sizeof e->output - e->end);
    if (fits == 0) {
        e->stuck = e->ready;
        return WOLFSSL_CBIO_ERR_WANT_WRITE;
    }
    memcpy(e->output + e->end, data, fits);
    e->end += (uint32_t)fits;
    return (int)fits;
}

struct span tls_engine_output(struct tls_engine *e)
{
    if (e->start > 0)
        memmove(e->output, e->output + e->start, e->end - e->start);
    e->end -= e->start;
    e->start = 0;
    return span_of(e->output, e->end);
}

size_t tls_engine_pending(const struct tls_engine *e)
{
    return e->end - e->start;
}

void tls_engine_took(struct tls_engine *e, size_t size)
{
    assert(size <= tls_engine_pending(e));
    e->start += (uint32_t)size;
    if (e->start == e->end)
        e->start = e->end = 0;
}

void tls_engine_asked(struct tls_engine *e)
{
    e->asked = true;
}

static enum tls_event failed(struct tls_engine *e, int code)
{
    if (e->error == 0)
        tls_engine_fail_code(e, code);
    if (e->session && !e->ready)
        tls_session_dispose(e->session); /* it may be what the peer cannot bear, or of this handshake */
    wolfSSL_ERR_clear_error();
    e->input.size = 0;
    return TLS_FAILED;
}

/* --- the handshake --- */

/* What wolfSSL might have let pass. */
static bool as_agreed(const struct tls_engine *e)
{
    int version = wolfSSL_version(e->wolf);
    return (version == TLS1_2_VERSION || version == TLS1_3_VERSION) &&
           tls_context_suite(wolfSSL_get_current_cipher_suite(e->wolf));
}

static bool knows_peer(const struct tls_engine *e)
{
    return e->believed || tls_engine_resumed(e) || (e->context->server && !e->context->trust);
}

static enum tls_event shake_hands(struct tls_engine *e)
{
    int result = e->context->server ? wolfSSL_accept(e->wolf) : wolfSSL_connect(e->wolf);
    if (result != WOLFSSL_SUCCESS) {
        int code = wolfSSL_get_error(e->wolf, result);
        bool waits = code == WOLFSSL_ERROR_WANT_READ || code == WOLFSSL_ERROR_WANT_WRITE;
        if (waits && e->input.size > 0) /* the output is full, and these bytes do not stay until it is not */
            tls_engine_fail(e, PE_TLS_HANDSHAKE, "the peer does not wait for what it is being told");
        return waits && e->error == 0 ? TLS_WAITS : failed(e, code);
    }
    if (!as_agreed(e) || !knows_peer(e)) {
        tls_engine_fail(e, PE_TLS_HANDSHAKE, "the peer leaves out what it has to do");
        return failed(e, 0);
    }
    e->ready = true;
    return TLS_READY;
}

/* Of first bytes that are not TLS: plain HTTP is told by the beginning of a status line, or of a request. */
static const char *what_it_is(const struct tls_engine *e)
{
    static const char *const requests[] = {"GET ", "POST ", "HEAD "};
    struct span bytes = e->input;
    if (!e->context->server && bytes.size >= 5 && memcmp(bytes.data, "HTTP/", 5) == 0)
        return "the peer speaks plain HTTP: did you mean http?";
    for (size_t i = 0; e->context->server && i < ARRAY_SIZE(requests); i++) {
        if (bytes.size >= strlen(requests[i]) && memcmp(bytes.data, requests[i], strlen(requests[i])) == 0)
            return "the peer speaks plain HTTP: its URL is to begin with https";
    }
    return "the first bytes are not TLS";
}

/* What answers in plain HTTP, or anything else, is told apart from TLS of other versions (RFC 8446 section
 * 5.1: the type, and the legacy version's first byte). */
static bool looks_like_tls(struct tls_engine *e)
{
    const uint8_t *at = e->input.data;
    for (size_t i = 0; i < e->input.size && e->fed + i < 2; i++) {
        if (e->fed + i == 0 ? at[i] < 20 || at[i] > 23 : at[i] != 3)
            return tls_engine_fail(e, PE_TLS_RECORD, what_it_is(e)), false;
    }
    return true;
}

void tls_engine_feed(struct tls_engine *e, struct span ciphertext, int64_t now_s)
{
    assert(e->input.size == 0);
    e->now_s = now_s;
    if (e->error < 0 || e->ended)
        return;
    e->input = ciphertext;
    if (!looks_like_tls(e))
        e->input.size = 0;
    e->fed += ciphertext.size;
}

/* --- records --- */

static enum tls_event ended(struct tls_engine *e)
{
    e->ended = true;
    e->input.size = 0;
    return TLS_ENDED;
}

/* A record without plain bytes (a ticket, a KeyUpdate) may end a read, too. */
static enum tls_event read_plain(struct tls_engine *e, uint8_t *to, size_t room, size_t *size)
{
    for (;;) {
        size_t before = e->input.size;
        int result = wolfSSL_read(e->wolf, to, (int)room);
        if (e->stuck)
            return failed(e, WOLFSSL_ERROR_WANT_WRITE);
        if (result > 0) {
            *size = (size_t)result;
            return TLS_PLAIN;
        }
        int code = wolfSSL_get_error(e->wolf, result);
        if (code == WOLFSSL_ERROR_ZERO_RETURN)
            return ended(e);
        if (code != WOLFSSL_ERROR_WANT_READ || (e->input.size > 0 && e->input.size == before))
            return failed(e, code);
        if (e->input.size == 0)
            return TLS_WAITS;
    }
}

enum tls_event tls_engine_step(struct tls_engine *e, uint8_t *to, size_t room, size_t *size)
{
    if (e->error < 0)
        return TLS_FAILED;
    if (e->ended)
        return TLS_ENDED;
    return e->ready ? read_plain(e, to, room, size) : shake_hands(e);
}

bool tls_engine_writable(const struct tls_engine *e)
{
    return e->ready && e->error == 0 && !e->closed && tls_engine_pending(e) <= TLS_OUTPUT_SPARE;
}

int tls_engine_write(struct tls_engine *e, const uint8_t *data, size_t size)
{
    assert(tls_engine_writable(e) && size > 0 && size <= TLS_PLAIN_MAX);
    if (sizeof e->output - e->end < size + TLS_RECORD_EXTRA)
        tls_engine_output(e);
    int result = wolfSSL_write(e->wolf, data, (int)size);
    if (result == (int)size)
        return 0;
    failed(e, wolfSSL_get_error(e->wolf, result));
    return e->error;
}

void tls_engine_end(struct tls_engine *e)
{
    if (!e->ready || e->error < 0 || e->closed)
        return;
    e->closed = true;
    wolfSSL_shutdown(e->wolf);
    wolfSSL_ERR_clear_error();
}

/* --- its life --- */

static bool is_address(const char *name)
{
    uint8_t bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

static bool set_client(struct tls_engine *e, const char *name)
{
    snprintf(e->name, sizeof e->name, "%s", name);
    if (!is_address(name) &&
        wolfSSL_UseSNI(e->wolf, WOLFSSL_SNI_HOST_NAME, name, (unsigned short)strlen(name)) != WOLFSSL_SUCCESS)
        return false;
    tls_engine_offer_session(e);
    return wolfSSL_UseKeyShare(e->wolf, WOLFSSL_ECC_X25519) == WOLFSSL_SUCCESS;
}

static bool set_up(struct tls_engine *e, const char *name)
{
    static char protocol[] = "http/1.1";
    wolfSSL_SetIOReadCtx(e->wolf, e);
    wolfSSL_SetIOWriteCtx(e->wolf, e);
    wolfSSL_SetCertCbCtx(e->wolf, e);
    return wolfSSL_UseALPN(e->wolf, protocol, sizeof protocol - 1, WOLFSSL_ALPN_CONTINUE_ON_MISMATCH) ==
               WOLFSSL_SUCCESS &&
           (!name || set_client(e, name));
}

int tls_engine_make(struct tls_engine **made, struct tls_context *context, const char *name,
                    struct tls_session *session, int64_t now_s)
{
    assert(context->server == !name && (!name || strlen(name) < sizeof(*made)->name));
    struct tls_engine *e = malloc(sizeof *e);
    if (!e)
        return -ENOMEM;
    memset(e, 0, offsetof(struct tls_engine, output));
    e->context = tls_context_hold(context);
    e->session = session;
    e->now_s = now_s;
    e->wolf = wolfSSL_new(context->wolf);
    if (!e->wolf || !set_up(e, name)) {
        tls_engine_free(e);
        return -ENOMEM;
    }
    *made = e;
    return 0;
}

void tls_engine_free(struct tls_engine *e)
{
    if (!e)
        return;
    wolfSSL_free(e->wolf);
    tls_context_drop(e->context);
    sodium_memzero(e->output, sizeof e->output);
    free(e);
}

int tls_engine_error(const struct tls_engine *e)
{
    return e->error;
}

const char *tls_engine_detail(const struct tls_engine *e)
{
    return e->detail;
}

bool tls_engine_ready(const struct tls_engine *e)
{
    return e->ready;
}

bool tls_engine_resumed(const struct tls_engine *e)
{
    return wolfSSL_session_reused(e->wolf) == 1;
}

const char *tls_engine_suite(const struct tls_engine *e)
{
    return wolfSSL_get_cipher_name(e->wolf);
}
