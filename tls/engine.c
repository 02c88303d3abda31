#include "tls/engine.h"

#include "tls/x509_path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <wolfssl/error-ssl.h>
#include <wolfssl/wolfcrypt/error-crypt.h>

#define DETAIL_MAX 200

struct tls_engine {
    WOLFSSL *wolf;
    struct tls_context *context; /* held */
    struct tls_session *session; /* the caller's; NULL: none */
    char name[256];              /* clients: whom the certificate has to be for */
    struct span input;           /* fed, and not yet read by wolfSSL */
    uint64_t fed;                /* bytes in all */
    int64_t now_s;
    int64_t until_s; /* the peer's certificate is valid until then; a resumed one's, too */
    int error;       /* 0, or why it failed */
    char detail[DETAIL_MAX];
    bool believed;       /* x509_verify said so, in this connection */
    bool offered;        /* a session was, that was believed when it was made */
    bool asked;          /* the peer wants a certificate of ours, and there is none */
    bool ready;          /* TLS_READY was said */
    bool ended;          /* TLS_ENDED was said */
    bool closed;         /* our close_notify is in the output */
    uint32_t start, end; /* output[start, end) has to be sent */
    uint8_t output[TLS_OUTPUT_BYTES];
};

static int fail(struct tls_engine *e, int error, const char *detail)
{
    if (e->error == 0) {
        e->error = error;
        snprintf(e->detail, sizeof e->detail, "%s", detail);
    }
    return e->error;
}

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
    if (fits == 0)
        return WOLFSSL_CBIO_ERR_WANT_WRITE;
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

/* --- whether the peer is believed --- */

/* When this was built, in seconds since 1970: a clock before that is wrong. */
static int64_t build_s(void)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static const char date[] = __DATE__; /* "Nov 30 2026" */
    struct tm day = {.tm_year = atoi(date + 7) - 1900, .tm_mday = atoi(date + 4)};
    while (memcmp(months + 3 * day.tm_mon, date, 3) != 0)
        day.tm_mon++;
    return timegm(&day);
}

static bool pinned(const struct tls_context *context, const struct x509_answer *answer)
{
    for (unsigned i = 0; i < answer->length; i++) {
        uint8_t hash[TLS_PIN_BYTES];
        crypto_hash_sha256(hash, answer->path[i].data, answer->path[i].size);
        for (unsigned pin = 0; pin < context->pin_count; pin++) {
            if (memcmp(context->pins[pin], hash, sizeof hash) == 0)
                return true;
        }
    }
    return context->pin_count == 0;
}

/* The verdict on the chain that the peer sent, the leaf first. */
static int judge(struct tls_engine *e, const struct span *chain, unsigned count)
{
    struct x509_question question = {.trust = e->context->trust,
                                     .purpose = e->context->server ? X509_CLIENT : X509_SERVER,
                                     .name = e->context->server ? NULL : e->name,
                                     .now_s = e->now_s,
                                     .chain = chain,
                                     .count = count};
    struct x509_answer answer = {0};
    struct x509 leaf;
    int error = x509_verify(&question, &answer);
    if (error == PE_CERT_NOT_YET_VALID && e->now_s < build_s())
        error = PE_CERT_CLOCK;
    if (error < 0)
        return fail(e, error, answer.detail);
    if (!pinned(e->context, &answer))
        return fail(e, PE_CERT_PIN, "");
    error = x509_parse(&leaf, chain[0]);
    if (error < 0)
        return fail(e, error, "");
    e->until_s = leaf.not_after_s;
    e->believed = true;
    return 0;
}

static unsigned copy_chain(struct span *chain, const WOLFSSL_X509_STORE_CTX *store)
{
    unsigned count = 0;
    while (count < X509_CHAIN_MAX && count < (unsigned)store->totalCerts) {
        chain[count] = span_of(store->certs[count].buffer, store->certs[count].length);
        count++;
    }
    return count;
}

static int mode_of(const struct tls_engine *e)
{
    return WOLFSSL_VERIFY_PEER | (e->context->server ? WOLFSSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
}

/* Called for each certificate, the last one first, and the leaf at the end, whatever wolfSSL found. What is
 * said of the leaf is the verdict. For the others nothing may be wrong, and nothing may be kept: while it
 * verifies, wolfSSL adds CA certificates that are not objected to to the CAs of the context, for ever. */
int tls_engine_verify(int preverified, WOLFSSL_X509_STORE_CTX *store)
{
    (void)preverified;
    struct tls_engine *e = store->userCtx;
    if (store->error_depth > 0) {
        wolfSSL_set_verify(e->wolf, WOLFSSL_VERIFY_NONE, tls_engine_verify);
        return 1;
    }
    wolfSSL_set_verify(e->wolf, mode_of(e), tls_engine_verify);
    struct span chain[X509_CHAIN_MAX];
    if (e->ready || e->believed)
        return fail(e, PE_TLS_RECORD, "a second certificate"), 0;
    return judge(e, chain, copy_chain(chain, store)) == 0;
}

/* wolfSSL cannot read the peer's certificate, and did not ask: the chain as it came may say more. */
static void judge_unread(struct tls_engine *e, WOLFSSL_X509_CHAIN *sent)
{
    struct span chain[X509_CHAIN_MAX];
    unsigned count = (unsigned)min_size((size_t)wolfSSL_get_chain_count(sent), X509_CHAIN_MAX);
    for (unsigned i = 0; i < count; i++)
        chain[i] =
            span_of(wolfSSL_get_chain_cert(sent, (int)i), (size_t)wolfSSL_get_chain_length(sent, (int)i));
    judge(e, chain, count);
}

void tls_engine_asked(struct tls_engine *e)
{
    e->asked = true;
}

/* --- what went wrong --- */

/* RFC 8446 section 6, with those of RFC 5246 that may still come. */
static const char *alert_name(int alert)
{
    static const char *const names[] = {
        [10] = "unexpected_message",
        [20] = "bad_record_mac",
        [22] = "record_overflow",
        [40] = "handshake_failure",
        [42] = "bad_certificate",
        [43] = "unsupported_certificate",
        [44] = "certificate_revoked",
        [45] = "certificate_expired",
        [46] = "certificate_unknown",
        [47] = "illegal_parameter",
        [48] = "unknown_ca",
        [49] = "access_denied",
        [50] = "decode_error",
        [51] = "decrypt_error",
        [70] = "protocol_version",
        [71] = "insufficient_security",
        [80] = "internal_error",
        [86] = "inappropriate_fallback",
        [90] = "user_canceled",
        [100] = "no_renegotiation",
        [109] = "missing_extension",
        [110] = "unsupported_extension",
        [112] = "unrecognized_name",
        [113] = "bad_certificate_status_response",
        [115] = "unknown_psk_identity",
        [116] = "certificate_required",
        [120] = "no_application_protocol",
    };
    const char *name = alert >= 0 && alert < (int)ARRAY_SIZE(names) ? names[alert] : NULL;
    return name ? name : "an alert";
}

/* Without one of ours: a server that wants a certificate says so (1.3), or says anything else (1.2). */
static int alert_error(const struct tls_engine *e, int alert)
{
    bool about_certificate = (alert >= 42 && alert <= 46) || alert == 48 || alert == 49;
    if (alert == 116 || (e->asked && (about_certificate || alert == 40)))
        return PE_TLS_NEEDS_CERTIFICATE;
    bool nothing_in_common = alert == 40 || alert == 70 || alert == 71 || alert == 86;
    return nothing_in_common && !e->ready ? PE_TLS_VERSION : PE_TLS_PEER;
}

static int fail_alert(struct tls_engine *e)
{
    WOLFSSL_ALERT_HISTORY history = {0};
    wolfSSL_get_alert_history(e->wolf, &history);
    int alert = history.last_rx.code;
    char detail[DETAIL_MAX];
    snprintf(detail, sizeof detail, "%s (%d)", alert_name(alert), alert);
    return fail(e, alert_error(e, alert), detail);
}

static int fail_certificate(struct tls_engine *e, int code, WOLFSSL_X509_CHAIN *sent)
{
    if (code == MAX_CHAIN_ERROR)
        return fail(e, PE_CERT_PATH, "more certificates than can be taken");
    judge_unread(e, sent);
    return fail(e, PE_CERT_MALFORMED, wolfSSL_ERR_reason_error_string((unsigned long)code));
}

static int fail_code(struct tls_engine *e, int code)
{
    const char *text = wolfSSL_ERR_reason_error_string((unsigned long)code);
    switch (code) {
    case MEMORY_E:
        return fail(e, -ENOMEM, "");
    case FATAL_ERROR:
        return fail_alert(e);
    case VERSION_ERROR:
    case MATCH_SUITE_ERROR:
    case UNSUPPORTED_SUITE:
        return fail(e, PE_TLS_VERSION, text);
    case WOLFSSL_ERROR_WANT_WRITE:
        return fail(e, PE_TLS_RECORD, "the peer does not take what it asks for");
    default:
        break;
    }
    WOLFSSL_X509_CHAIN *sent = wolfSSL_get_peer_chain(e->wolf);
    bool certificate = !e->ready && !e->believed && e->context->trust && !tls_engine_resumed(e);
    if (certificate && sent && wolfSSL_get_chain_count(sent) > 0)
        return fail_certificate(e, code, sent);
    return fail(e, e->ready ? PE_TLS_RECORD : PE_TLS_HANDSHAKE, text);
}

static enum tls_event failed(struct tls_engine *e, int code)
{
    if (e->error == 0)
        fail_code(e, code);
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
        return waits && e->error == 0 ? TLS_WAITS : failed(e, code);
    }
    if (!as_agreed(e) || !knows_peer(e)) {
        fail(e, PE_TLS_HANDSHAKE, "the peer leaves out what it has to do");
        return failed(e, 0);
    }
    e->ready = true;
    return TLS_READY;
}

/* What answers in plain HTTP, or anything else, is told apart from TLS of other versions (RFC 8446 section
 * 5.1: the type, and the legacy version's first byte). */
static bool looks_like_tls(struct tls_engine *e)
{
    const uint8_t *at = e->input.data;
    for (size_t i = 0; i < e->input.size && e->fed + i < 2; i++) {
        if (e->fed + i == 0 ? at[i] < 20 || at[i] > 23 : at[i] != 3)
            return fail(e, PE_TLS_RECORD, "the first bytes are not TLS"), false;
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

/* --- sessions --- */

static bool usable(const struct tls_kept_session *kept, const struct tls_engine *e)
{
    return kept && kept->context == e->context && strcmp(kept->name, e->name) == 0 &&
           e->now_s <= kept->until_s;
}

static void offer_session(struct tls_engine *e)
{
    if (!e->session)
        return;
    const struct tls_kept_session *kept = e->session->kept;
    if (!usable(kept, e)) {
        tls_session_dispose(e->session);
        return;
    }
    e->offered = wolfSSL_set_session(e->wolf, kept->session) == WOLFSSL_SUCCESS;
    e->until_s = kept->until_s;
}

/* A ticket, or the end of a 1.2 handshake. The last one is kept. */
int tls_engine_new_session(struct tls_engine *e, WOLFSSL_SESSION *session)
{
    bool known = e->believed || (e->offered && tls_engine_resumed(e));
    struct tls_kept_session *kept = e->session && known ? malloc(sizeof *kept) : NULL;
    if (!kept)
        return 0;
    *kept = (struct tls_kept_session){
        .session = session, .context = tls_context_hold(e->context), .until_s = e->until_s};
    memcpy(kept->name, e->name, sizeof kept->name);
    tls_session_dispose(e->session);
    e->session->kept = kept;
    return 1;
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
    offer_session(e);
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
