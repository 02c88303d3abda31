#include "tls/engine_private.h"

#include "tls/x509_path.h"

#include <sodium.h>
#include <stdlib.h>
#include <time.h>

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

int tls_engine_judge(struct tls_engine *e, const struct span *chain, unsigned count)
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
        return tls_engine_fail(e, error, answer.detail);
    if (!pinned(e->context, &answer))
        return tls_engine_fail(e, PE_CERT_PIN, "");
    error = x509_parse(&leaf, chain[0]);
    if (error < 0)
        return tls_engine_fail(e, error, "");
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
        return tls_engine_fail(e, PE_TLS_RECORD, "a second certificate"), 0;
    if (wolfSSL_get_verify_result(e->wolf) == X509_V_ERR_CERT_CHAIN_TOO_LONG) /* it has read some of them */
        return tls_engine_fail(e, PE_CERT_PATH, "the peer sends more certificates than are read"), 0;
    if (store->totalCerts == 0)
        return tls_engine_fail(e, PE_TLS_HANDSHAKE, "the peer has no certificate"), 0;
    return tls_engine_judge(e, chain, copy_chain(chain, store)) == 0;
}

/* --- sessions --- */

static bool usable(const struct tls_kept_session *kept, const struct tls_engine *e)
{
    return kept && kept->context == e->context && strcmp(kept->name, e->name) == 0 &&
           e->now_s <= kept->until_s;
}

void tls_engine_offer_session(struct tls_engine *e)
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
