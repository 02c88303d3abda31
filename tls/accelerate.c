#include "tls/accelerate.h"

#include <wolfssl/options.h>

#include <sodium.h>
#include <wolfssl/wolfcrypt/cryptocb.h>
#include <wolfssl/wolfcrypt/error-crypt.h>

#define DEVICE 0x70757265 /* any number that nobody else's device has */

static bool ours(const Aes *aes, word32 nonce_size, word32 tag_size)
{
    return aes->keylen == crypto_aead_aes256gcm_KEYBYTES && nonce_size == crypto_aead_aes256gcm_NPUBBYTES &&
           tag_size == crypto_aead_aes256gcm_ABYTES;
}

static int seal(const wc_CryptoInfo *info)
{
    const Aes *aes = info->cipher.aesgcm_enc.aes;
    if (!ours(aes, info->cipher.aesgcm_enc.ivSz, info->cipher.aesgcm_enc.authTagSz))
        return CRYPTOCB_UNAVAILABLE;
    return crypto_aead_aes256gcm_encrypt_detached(
        info->cipher.aesgcm_enc.out, info->cipher.aesgcm_enc.authTag, NULL, info->cipher.aesgcm_enc.in,
        info->cipher.aesgcm_enc.sz, info->cipher.aesgcm_enc.authIn, info->cipher.aesgcm_enc.authInSz, NULL,
        info->cipher.aesgcm_enc.iv, (const uint8_t *)aes->devKey);
}

static int open_sealed(const wc_CryptoInfo *info)
{
    const Aes *aes = info->cipher.aesgcm_dec.aes;
    if (!ours(aes, info->cipher.aesgcm_dec.ivSz, info->cipher.aesgcm_dec.authTagSz))
        return CRYPTOCB_UNAVAILABLE;
    int wrong = crypto_aead_aes256gcm_decrypt_detached(
        info->cipher.aesgcm_dec.out, NULL, info->cipher.aesgcm_dec.in, info->cipher.aesgcm_dec.sz,
        info->cipher.aesgcm_dec.authTag, info->cipher.aesgcm_dec.authIn, info->cipher.aesgcm_dec.authInSz,
        info->cipher.aesgcm_dec.iv, (const uint8_t *)aes->devKey);
    return wrong ? AES_GCM_AUTH_E : 0;
}

/* Everything else falls through to wolfSSL's own code. */
static int compute(int device, wc_CryptoInfo *info, void *context)
{
    (void)device, (void)context;
    if (info->algo_type != WC_ALGO_TYPE_CIPHER || info->cipher.type != WC_CIPHER_AES_GCM)
        return CRYPTOCB_UNAVAILABLE;
    return info->cipher.enc ? seal(info) : open_sealed(info);
}

bool tls_aes_accelerated(void)
{
    return crypto_aead_aes256gcm_is_available() != 0;
}

int tls_accelerate(void)
{
    bool possible = tls_aes_accelerated() && wc_CryptoCb_RegisterDevice(DEVICE, compute, NULL) == 0;
    return possible ? DEVICE : INVALID_DEVID;
}
