#include "link/cipher.h"

#include "core/error.h"

#define NONCE_BYTES crypto_aead_chacha20poly1305_ietf_NPUBBYTES
#define AES_LABEL   "pure-link aes-256-gcm"

_Static_assert(LINK_KEY_BYTES == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "key");
_Static_assert(LINK_TAG_BYTES == crypto_aead_chacha20poly1305_ietf_ABYTES, "tag");
_Static_assert(LINK_KEY_BYTES == crypto_aead_aes256gcm_KEYBYTES, "key");
_Static_assert(LINK_TAG_BYTES == crypto_aead_aes256gcm_ABYTES, "tag");
_Static_assert(NONCE_BYTES == crypto_aead_aes256gcm_NPUBBYTES, "nonce");

uint8_t cipher_hardware(void)
{
    return crypto_aead_aes256gcm_is_available() ? LINK_OFFERS_AES_256_GCM : 0;
}

static void init_aes(struct cipher_key *key, const uint8_t split[LINK_KEY_BYTES])
{
    uint8_t derived[LINK_KEY_BYTES];
    assert(crypto_aead_aes256gcm_is_available());
    crypto_generichash_blake2b(derived, sizeof derived, (const uint8_t *)AES_LABEL, sizeof AES_LABEL - 1,
                               split, LINK_KEY_BYTES);
    crypto_aead_aes256gcm_beforenm(&key->aes, derived);
    sodium_memzero(derived, sizeof derived);
}

void cipher_key_init(struct cipher_key *key, enum link_cipher cipher, const uint8_t split[LINK_KEY_BYTES])
{
    key->cipher = cipher;
    if (cipher == LINK_AES_256_GCM)
        init_aes(key, split);
    else
        memcpy(key->chacha20, split, LINK_KEY_BYTES);
}

/* The same nonce that Noise makes of its n for ChaChaPoly. */
static void nonce_of(const struct link_data *data, uint8_t nonce[NONCE_BYTES])
{
    memset(nonce, 0, 4);
    memcpy(nonce + 4, data->number, sizeof data->number);
}

void cipher_seal(const struct cipher_key *key, struct link_data *data, size_t size)
{
    const uint8_t *head = (const uint8_t *)data;
    uint8_t *frames = data->frames, nonce[NONCE_BYTES];
    nonce_of(data, nonce);
    if (key->cipher == LINK_AES_256_GCM)
        crypto_aead_aes256gcm_encrypt_afternm(frames, NULL, frames, size, head, LINK_DATA_HEAD, NULL, nonce,
                                              &key->aes);
    else
        crypto_aead_chacha20poly1305_ietf_encrypt(frames, NULL, frames, size, head, LINK_DATA_HEAD, NULL,
                                                  nonce, key->chacha20);
}

int cipher_open(const struct cipher_key *key, struct link_data *data, size_t size)
{
    const uint8_t *head = (const uint8_t *)data;
    uint8_t *frames = data->frames, nonce[NONCE_BYTES];
    int wrong;
    nonce_of(data, nonce);
    if (key->cipher == LINK_AES_256_GCM)
        wrong = crypto_aead_aes256gcm_decrypt_afternm(frames, NULL, NULL, frames, size, head, LINK_DATA_HEAD,
                                                      nonce, &key->aes);
    else
        wrong = crypto_aead_chacha20poly1305_ietf_decrypt(frames, NULL, NULL, frames, size, head,
                                                          LINK_DATA_HEAD, nonce, key->chacha20);
    return wrong ? PE_NOT_AUTHENTIC : 0;
}
