#include "tls/context_private.h"

#include "core/files.h"
#include "tls/accelerate.h"
#include "tls/engine_private.h"
#include "tls/key_pair.h"
#include "tls/pem.h"
#include "tls/trust.h"
#include "tls/x509.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <wolfssl/options.h>
#include <wolfssl/wolfcrypt/ecc.h>

/* Of a PEM file: a chain of 4096-bit RSA certificates has a tenth of it. */
#define FILE_MAX (256u << 10)

struct suite {
    uint16_t number;
    const char *name; /* wolfSSL's */
};

/* In the order in which they are offered, or chosen from. What is accelerated is AES-256 (tls/accelerate.h);
 * AES-128 is for those who have nothing else. */
static const struct suite chacha20[] = {
    {0x1303, "TLS13-CHACHA20-POLY1305-SHA256"},
    {0xcca9, "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {0xcca8, "ECDHE-RSA-CHACHA20-POLY1305"},
};
static const struct suite aes256[] = {
    {0x1302, "TLS13-AES256-GCM-SHA384"},
    {0xc02c, "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {0xc030, "ECDHE-RSA-AES256-GCM-SHA384"},
};
static const struct suite aes128[] = {
    {0x1301, "TLS13-AES128-GCM-SHA256"},
    {0xc02b, "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {0xc02f, "ECDHE-RSA-AES128-GCM-SHA256"},
};

static bool among(const struct suite *suites, size_t count, int number)
{
    for (size_t i = 0; i < count; i++) {
        if (suites[i].number == number)
            return true;
    }
    return false;
}

bool tls_context_suite(int number)
{
    return among(chacha20, ARRAY_SIZE(chacha20), number) || among(aes256, ARRAY_SIZE(aes256), number) ||
           among(aes128, ARRAY_SIZE(aes128), number);
}

static void append(char *list, size_t size, const struct suite *suites, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = strlen(list);
        snprintf(list + at, size - at, "%s%s", at > 0 ? ":" : "", suites[i].name);
    }
}

static int set_suites(WOLFSSL_CTX *wolf, bool aes_first)
{
    char list[512] = "";
    if (aes_first)
        append(list, sizeof list, aes256, ARRAY_SIZE(aes256));
    append(list, sizeof list, chacha20, ARRAY_SIZE(chacha20));
    if (!aes_first)
        append(list, sizeof list, aes256, ARRAY_SIZE(aes256));
    append(list, sizeof list, aes128, ARRAY_SIZE(aes128));
    return wolfSSL_CTX_set_cipher_list(wolf, list) == WOLFSSL_SUCCESS ? 0 : -EINVAL;
}

/* X25519 first: it is what the key share of a ClientHello is made for. */
static int set_groups(WOLFSSL_CTX *wolf)
{
    int groups[] = {WOLFSSL_ECC_X25519, WOLFSSL_ECC_SECP256R1, WOLFSSL_ECC_SECP384R1};
    return wolfSSL_CTX_set_groups(wolf, groups, ARRAY_SIZE(groups)) == WOLFSSL_SUCCESS ? 0 : -EINVAL;
}

/* --- our certificate --- */

/* All of the file, at most FILE_MAX bytes; `*data` is the caller's to wipe and free. */
static int64_t read_whole(const char *path, uint8_t **data)
{
    struct files *files = files_system();
    *data = NULL;
    int fd =
        files->backend->open(files, AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0); /* a FIFO: does not wait */
    if (fd < 0)
        return fd;
    int64_t size = files->backend->size(files, fd);
    if (size > FILE_MAX)
        size = -EFBIG;
    if (size >= 0 && !(*data = malloc((size_t)size + 1)))
        size = -ENOMEM;
    if (size >= 0)
        size = files->backend->read(files, fd, *data, (uint64_t)size, 0);
    files->backend->close(files, fd);
    return size;
}

static void wipe(uint8_t *data, int64_t size)
{
    if (data && size > 0)
        sodium_memzero(data, (size_t)size);
    free(data);
}

static int refuse(char *why, size_t why_size, const char *path, const char *what)
{
    snprintf(why, why_size, "%s: %s", path, what);
    return PE_TLS_FILES;
}

/* Of a chain (PEM); what cannot be parsed here is passed over. */
static int find_expiry(struct span chain, int64_t *expires_s)
{
    uint8_t *der = malloc(pem_bytes_max(chain.size));
    long size;
    if (!der)
        return -ENOMEM;
    while ((size = pem_next_certificate(&chain, der)) >= 0) {
        struct x509 x;
        if (x509_parse(&x, span_of(der, (size_t)size)) == 0 && x.not_after_s < *expires_s)
            *expires_s = x.not_after_s;
    }
    free(der);
    return 0;
}

static bool holds(struct span text, const char *mark)
{
    return memmem(text.data, text.size, mark, strlen(mark)) != NULL;
}

static int use_pair(WOLFSSL_CTX *wolf, const struct tls_options *o, struct span chain, struct span key,
                    char *why, size_t why_size)
{
    if (wolfSSL_CTX_use_certificate_chain_buffer(wolf, chain.data, (long)chain.size) != WOLFSSL_SUCCESS)
        return refuse(why, why_size, o->certificate,
                      holds(chain, "PRIVATE KEY-----")
                          ? "holds a private key and no certificate: are the two files exchanged?"
                          : "holds no certificate chain (PEM)");
    if (wolfSSL_CTX_use_PrivateKey_buffer(wolf, key.data, (long)key.size, WOLFSSL_FILETYPE_PEM) !=
        WOLFSSL_SUCCESS)
        return refuse(why, why_size, o->key,
                      holds(key, "-----BEGIN CERTIFICATE-----") && !holds(key, "PRIVATE KEY-----")
                          ? "holds a certificate and no private key: are the two files exchanged?"
                          : "holds no private key (PEM, not encrypted)");
    if (!tls_key_belongs(key, chain))
        return refuse(why, why_size, o->key, "is not the key of the certificate");
    return 0;
}

static int load_certificate(WOLFSSL_CTX *wolf, const struct tls_options *o, int64_t *expires_s, char *why,
                            size_t why_size)
{
    *expires_s = INT64_MAX;
    if (!o->certificate)
        return 0;
    uint8_t *chain, *key;
    int error;
    int64_t chain_size = read_whole(o->certificate, &chain), key_size = read_whole(o->key, &key);
    if (chain_size < 0)
        error = refuse(why, why_size, o->certificate, pure_error_text((int)chain_size));
    else if (key_size < 0)
        error = refuse(why, why_size, o->key, pure_error_text((int)key_size));
    else
        error = use_pair(wolf, o, span_of(chain, (size_t)chain_size), span_of(key, (size_t)key_size), why,
                         why_size);
    if (error == 0)
        error = find_expiry(span_of(chain, (size_t)chain_size), expires_s);
    free(chain);
    wipe(key, key_size);
    return error;
}

/* --- making it --- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool library_ready;
static int device; /* for AES */

static void start_library(void)
{
    library_ready = wolfSSL_Init() == WOLFSSL_SUCCESS && sodium_init() >= 0;
    if (library_ready)
        device = tls_accelerate();
}

static int have_none(WOLFSSL *wolf, WOLFSSL_X509 **certificate, WOLFSSL_EVP_PKEY **key)
{
    (void)certificate, (void)key;
    tls_engine_asked(wolfSSL_GetIOReadCtx(wolf));
    return 0;
}

static int new_session(WOLFSSL *wolf, WOLFSSL_SESSION *session)
{
    return tls_engine_new_session(wolfSSL_GetIOReadCtx(wolf), session);
}

/* Clients resume by the tickets of 1.3 and the session IDs of 1.2. Not by the tickets of 1.2: wolfSSL takes
 * it for granted that they are accepted, and fails with each server that has changed its key since. Servers
 * resume by tickets, which need no memory here; not those that want certificates of their clients: each
 * connection proves anew who it is. */
static void set_sessions(WOLFSSL_CTX *wolf, const struct tls_options *o)
{
    if (!o->server) {
        wolfSSL_CTX_set_session_cache_mode(wolf, WOLFSSL_SESS_CACHE_CLIENT | WOLFSSL_SESS_CACHE_NO_INTERNAL);
        wolfSSL_CTX_sess_set_new_cb(wolf, new_session);
        return;
    }
    wolfSSL_CTX_set_session_cache_mode(wolf, WOLFSSL_SESS_CACHE_OFF);
    if (o->trust) {
        wolfSSL_CTX_set_TicketEncCb(wolf, NULL);
        wolfSSL_CTX_no_ticket_TLSv13(wolf);
    } else {
        wolfSSL_CTX_set_num_tickets(wolf, 1);
    }
}

static void set_verification(WOLFSSL_CTX *wolf, const struct tls_options *o)
{
    if (!o->server)
        wolfSSL_CTX_set_verify(wolf, WOLFSSL_VERIFY_PEER, tls_engine_verify);
    else if (o->trust)
        wolfSSL_CTX_set_verify(wolf, WOLFSSL_VERIFY_PEER | WOLFSSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                               tls_engine_verify);
    else
        wolfSSL_CTX_set_verify(wolf, WOLFSSL_VERIFY_NONE, NULL);
    if (!o->certificate)
        wolfSSL_CTX_set_client_cert_cb(wolf, have_none);
}

static WOLFSSL_CTX *make_wolf(const struct tls_options *o)
{
    WOLFSSL_CTX *wolf = wolfSSL_CTX_new(o->server ? wolfSSLv23_server_method() : wolfSSLv23_client_method());
    if (!wolf)
        return NULL;
    if (wolfSSL_CTX_SetMinVersion(wolf, WOLFSSL_TLSV1_2) != WOLFSSL_SUCCESS ||
        set_suites(wolf, o->aes_first) < 0 || set_groups(wolf) < 0) {
        wolfSSL_CTX_free(wolf);
        return NULL;
    }
    wolfSSL_CTX_SetIORecv(wolf, tls_engine_receive);
    wolfSSL_CTX_SetIOSend(wolf, tls_engine_send);
    set_sessions(wolf, o);
    set_verification(wolf, o);
    return wolf;
}

int tls_context_make(struct tls_context **made, const struct tls_options *o, char *why, size_t why_size)
{
    assert((o->server ? o->certificate != NULL : o->trust != NULL) && !o->certificate == !o->key);
    assert(o->pin_count <= TLS_PINS_MAX);
    pthread_once(&once, start_library);
    struct tls_context *context = library_ready ? calloc(1, sizeof *context) : NULL;
    WOLFSSL_CTX *wolf = context ? make_wolf(o) : NULL;
    int64_t expires_s;
    int error = wolf ? load_certificate(wolf, o, &expires_s, why, why_size) : -ENOMEM;
    if (error == -ENOMEM)
        snprintf(why, why_size, "%s", pure_error_text(error));
    wolfSSL_ERR_clear_error(); /* what was wrong is told in `why` */
    if (error < 0) {
        wolfSSL_CTX_free(wolf);
        free(context);
        return error;
    }
    wolfSSL_CTX_SetDevId(wolf, device); /* behind the key: that is none of a device's */
    *context = (struct tls_context){.holders = 1,
                                    .wolf = wolf,
                                    .trust = o->trust ? tls_trust_hold(o->trust) : NULL,
                                    .pin_count = o->pin_count,
                                    .server = o->server,
                                    .certificate = o->certificate != NULL,
                                    .expires_s = expires_s};
    memcpy(context->pins, o->pins, sizeof context->pins);
    *made = context;
    return 0;
}

struct tls_context *tls_context_hold(struct tls_context *context)
{
    atomic_fetch_add_explicit(&context->holders, 1, memory_order_relaxed);
    return context;
}

void tls_context_drop(struct tls_context *context)
{
    if (!context || atomic_fetch_sub_explicit(&context->holders, 1, memory_order_acq_rel) > 1)
        return;
    wolfSSL_CTX_free(context->wolf);
    if (context->trust)
        tls_trust_drop(context->trust);
    free(context);
}

int64_t tls_context_expires_s(const struct tls_context *context)
{
    return context->expires_s;
}

void tls_thread_end(void)
{
#if defined FP_ECC && defined HAVE_THREAD_LS
    wc_ecc_fp_free();
#endif
}

/* --- the context of the day --- */

/* `taking` is raised before the pointer is read, and the pointer is replaced before `taking` is waited for:
 * whoever got the old one has held it when the waiting ends. All sequentially consistent. */
struct tls_context *tls_current_take(struct tls_current *current)
{
    atomic_fetch_add(&current->taking, 1);
    struct tls_context *context = atomic_load(&current->context);
    if (context)
        tls_context_hold(context);
    atomic_fetch_sub(&current->taking, 1);
    return context;
}

void tls_current_replace(struct tls_current *current, struct tls_context *context)
{
    struct tls_context *old = atomic_exchange(&current->context, context);
    while (atomic_load(&current->taking) > 0)
        sched_yield(); /* a take is a few instructions */
    tls_context_drop(old);
}

/* --- sessions --- */

void tls_session_dispose(struct tls_session *session)
{
    struct tls_kept_session *kept = session->kept;
    session->kept = NULL;
    if (!kept)
        return;
    wolfSSL_SESSION_free(kept->session);
    tls_context_drop(kept->context);
    free(kept);
}
