#include "tls/key_pair.h"

#include "tls/x509.h"

#include <sodium.h>
#include <wolfssl/options.h>
#include <wolfssl/wolfcrypt/asn_public.h>
#include <wolfssl/wolfcrypt/ecc.h>
#include <wolfssl/wolfcrypt/ed25519.h>
#include <wolfssl/wolfcrypt/rsa.h>

#define KEY_MAX         8192 /* of a private key's DER: 4096-bit RSA has 2400 */
#define CERTIFICATE_MAX (64u << 10)
#define PUBLIC_MAX      (RSA_MAX_SIZE / 8)

/* The bytes by which a public key is known: an RSA modulus, a point, an Ed25519 key. 0: not such a key. */
typedef word32 public_of(struct span der, uint8_t out[PUBLIC_MAX]);

static word32 rsa_public(struct span der, uint8_t out[PUBLIC_MAX])
{
    RsaKey key;
    uint8_t exponent[PUBLIC_MAX];
    word32 index = 0, exponent_size = sizeof exponent, size = PUBLIC_MAX;
    if (wc_InitRsaKey(&key, NULL) != 0)
        return 0;
    bool is_one = wc_RsaPrivateKeyDecode(der.data, &index, &key, (word32)der.size) == 0 &&
                  wc_RsaFlattenPublicKey(&key, exponent, &exponent_size, out, &size) == 0;
    wc_FreeRsaKey(&key);
    return is_one ? size : 0;
}

/* Computed anew from the private half: what the file says of the public one is not asked. */
static word32 ecc_public(struct span der, uint8_t out[PUBLIC_MAX])
{
    ecc_key key;
    word32 index = 0, size = PUBLIC_MAX;
    if (wc_ecc_init(&key) != 0)
        return 0;
    bool is_one = wc_EccPrivateKeyDecode(der.data, &index, &key, (word32)der.size) == 0 &&
                  wc_ecc_make_pub(&key, NULL) == 0 && wc_ecc_export_x963(&key, out, &size) == 0;
    wc_ecc_free(&key);
    return is_one ? size : 0;
}

static word32 ed25519_public(struct span der, uint8_t out[PUBLIC_MAX])
{
    ed25519_key key;
    word32 index = 0;
    if (wc_ed25519_init(&key) != 0)
        return 0;
    bool is_one = wc_Ed25519PrivateKeyDecode(der.data, &index, &key, (word32)der.size) == 0 &&
                  wc_ed25519_make_public(&key, out, ED25519_PUB_KEY_SIZE) == 0;
    wc_ed25519_free(&key);
    return is_one ? ED25519_PUB_KEY_SIZE : 0;
}

static bool in_key_info(struct span key, struct span key_info)
{
    static public_of *const kinds[] = {rsa_public, ecc_public, ed25519_public};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        uint8_t public[PUBLIC_MAX];
        word32 size = kinds[i](key, public);
        if (size > 0)
            return memmem(key_info.data, key_info.size, public, size) != NULL;
    }
    return false;
}

bool tls_key_belongs(struct span key, struct span certificates)
{
    uint8_t der[KEY_MAX];
    uint8_t leaf[CERTIFICATE_MAX];
    struct x509 x;
    int leaf_size = wc_CertPemToDer(certificates.data, (int)certificates.size, leaf, sizeof leaf, CERT_TYPE);
    if (leaf_size <= 0 || x509_parse(&x, span_of(leaf, (size_t)leaf_size)) < 0)
        return false;
    int size = wc_KeyPemToDer(key.data, (int)key.size, der, sizeof der, NULL);
    bool belongs = size > 0 && in_key_info(span_of(der, (size_t)size), x.key_info);
    sodium_memzero(der, sizeof der);
    return belongs;
}
