#include "tls/pair.h"

#include "tls/pem.h"
#include "tls/x509.h"

#include <sodium.h>
#include <stdlib.h>
#include <wolfssl/options.h>
#include <wolfssl/wolfcrypt/asn_public.h>
#include <wolfssl/wolfcrypt/ecc.h>

#define POINT_MAX 256 /* bytes of a public key, uncompressed (SEC 1 section 2.3.3) */

/* The public key that belongs to a private one in DER. Its size; 0: it is none of an elliptic curve. */
static word32 public_of(const uint8_t *der, word32 size, uint8_t point[POINT_MAX])
{
    ecc_key key;
    word32 at = 0, point_size = POINT_MAX;
    if (wc_ecc_init(&key) != 0)
        return 0;
    WC_RNG random;
    bool seeded = wc_InitRng(&random) == 0;
    if (!seeded || wc_EccPrivateKeyDecode(der, &at, &key, size) != 0 ||
        wc_ecc_make_pub_ex(&key, NULL, &random) != 0 || wc_ecc_export_x963(&key, point, &point_size) != 0)
        point_size = 0;
    if (seeded)
        wc_FreeRng(&random);
    wc_ecc_free(&key);
    return point_size;
}

static word32 public_of_pem(struct span pem, uint8_t point[POINT_MAX])
{
    uint8_t *der = malloc(pem.size + 1);
    if (!der)
        return 0;
    int size = wc_KeyPemToDer(pem.data, (int)pem.size, der, (int)pem.size, NULL);
    word32 point_size = size > 0 ? public_of(der, (word32)size, point) : 0;
    sodium_memzero(der, pem.size);
    free(der);
    return point_size;
}

/* A SubjectPublicKeyInfo ends with the key's own bytes (RFC 5480 section 2.2). */
static bool ends_with(struct span key_info, const uint8_t *point, size_t size)
{
    return key_info.size >= size && memcmp(key_info.data + key_info.size - size, point, size) == 0;
}

bool tls_pair_possible(struct span certificates, struct span key)
{
    uint8_t point[POINT_MAX];
    word32 point_size = public_of_pem(key, point);
    uint8_t *der = point_size > 0 ? malloc(pem_bytes_max(certificates.size)) : NULL;
    if (!der)
        return true;
    struct x509 leaf;
    long size = pem_next_certificate(&certificates, der);
    bool possible = size <= 0 || x509_parse(&leaf, span_of(der, (size_t)size)) < 0 ||
                    ends_with(leaf.key_info, point, point_size);
    free(der);
    return possible;
}
