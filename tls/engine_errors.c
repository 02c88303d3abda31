#include "tls/engine_private.h"

#include "tls/x509_path.h"

#include <errno.h>
#include <stdio.h>
#include <wolfssl/error-ssl.h>
#include <wolfssl/wolfcrypt/error-crypt.h>

int tls_engine_fail(struct tls_engine *e, int error, const char *detail)
{
    if (e->error == 0) {
        e->error = error;
        snprintf(e->detail, sizeof e->detail, "%s", detail);
    }
    return e->error;
}

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

static bool is_about_certificate(int alert)
{
    return (alert >= 42 && alert <= 46) || alert == 48 || alert == 49 || alert == 116;
}

/* Without one of ours: a server that wants a certificate says so (1.3), or says anything else (1.2). */
static int alert_error(const struct tls_engine *e, int alert)
{
    if (alert == 116 || (e->asked && (is_about_certificate(alert) || alert == 40)))
        return PE_TLS_NEEDS_CERTIFICATE;
    bool nothing_in_common = alert == 40 || alert == 70 || alert == 71 || alert == 86;
    return nothing_in_common && !e->ready ? PE_TLS_VERSION : PE_TLS_PEER;
}

static int fail_alert(struct tls_engine *e)
{
    WOLFSSL_ALERT_HISTORY history = {0};
    wolfSSL_get_alert_history(e->wolf, &history);
    int alert = history.last_rx.code;
    char detail[TLS_DETAIL_MAX];
    bool ours = !e->context->server && e->context->certificate && is_about_certificate(alert);
    snprintf(detail, sizeof detail, "%s (%d)%s", alert_name(alert), alert,
             ours ? ": it may be about our certificate" : "");
    return tls_engine_fail(e, alert_error(e, alert), detail);
}

/* wolfSSL cannot read the peer's certificate, and did not ask: the chain as it came may say more. */
static void judge_unread(struct tls_engine *e, WOLFSSL_X509_CHAIN *sent)
{
    struct span chain[X509_CHAIN_MAX];
    unsigned count = (unsigned)min_size((size_t)wolfSSL_get_chain_count(sent), X509_CHAIN_MAX);
    for (unsigned i = 0; i < count; i++)
        chain[i] =
            span_of(wolfSSL_get_chain_cert(sent, (int)i), (size_t)wolfSSL_get_chain_length(sent, (int)i));
    tls_engine_judge(e, chain, count);
}

static int fail_certificate(struct tls_engine *e, int code, WOLFSSL_X509_CHAIN *sent)
{
    if (code == MAX_CHAIN_ERROR)
        return tls_engine_fail(e, PE_CERT_PATH, "more certificates than can be taken");
    judge_unread(e, sent);
    return tls_engine_fail(e, PE_CERT_MALFORMED, wolfSSL_ERR_reason_error_string((unsigned long)code));
}

int tls_engine_fail_code(struct tls_engine *e, int code)
{
    const char *text = wolfSSL_ERR_reason_error_string((unsigned long)code);
    switch (code) {
    case MEMORY_E:
        return tls_engine_fail(e, -ENOMEM, "");
    case FATAL_ERROR:
        return fail_alert(e);
    case VERSION_ERROR:
    case MATCH_SUITE_ERROR:
    case UNSUPPORTED_SUITE:
        return tls_engine_fail(e, e->ready ? PE_TLS_RECORD : PE_TLS_VERSION, text);
    case NO_PEER_CERT:
        return tls_engine_fail(e, PE_TLS_HANDSHAKE, "the peer has no certificate");
    case WOLFSSL_ERROR_WANT_WRITE:
        return tls_engine_fail(e, PE_TLS_RECORD, "the peer does not take what it asks for");
    default:
        break;
    }
    WOLFSSL_X509_CHAIN *sent = wolfSSL_get_peer_chain(e->wolf);
    bool certificate = !e->ready && !e->believed && e->context->trust && !tls_engine_resumed(e);
    if (certificate && sent && wolfSSL_get_chain_count(sent) > 0)
        return fail_certificate(e, code, sent);
    return tls_engine_fail(e, e->ready ? PE_TLS_RECORD : PE_TLS_HANDSHAKE, text);
}
