#include "tls/x509_signature.h"

#include "tls/der.h"

#include <sodium.h>
#include <wolfssl/options.h>
#include <wolfssl/wolfcrypt/ecc.h>
#include <wolfssl/wolfcrypt/hash.h>
#include <wolfssl/wolfcrypt/rsa.h>

#define RSA_BITS_MIN       2048
#define RSA_BITS_MAX       4096
#define RSA_BYTES_MAX      (RSA_BITS_MAX / 8)
#define RSA_EXPONENT_BYTES 8
#define DIGEST_MAX         64

#define OID(text)                                 \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

static const struct span rsa_encryption = OID("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01");
static const struct span ec_public_key = OID("\x2a\x86\x48\xce\x3d\x02\x01");
static const struct span ed25519 = OID("\x2b\x65\x70");
static const struct span mgf1 = OID("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x08");

static const struct curve {
    struct span oid;
    enum x509_key_kind kind;
    int wolf;
    size_t bytes; /* of a coordinate */
} curves[] = {
    {OID("\x2a\x86\x48\xce\x3d\x03\x01\x07"), X509_P256, ECC_SECP256R1, 32},
    {OID("\x2b\x81\x04\x00\x22"), X509_P384, ECC_SECP384R1, 48},
    {OID("\x2b\x81\x04\x00\x23"), X509_P521, ECC_SECP521R1, 66},
};

static const struct hash {
    struct span oid;
    enum wc_HashType wolf;
    int mgf;
    unsigned bytes;
} hashes[] = {
    {OID("\x60\x86\x48\x01\x65\x03\x04\x02\x01"), WC_HASH_TYPE_SHA256, WC_MGF1SHA256, 32},
    {OID("\x60\x86\x48\x01\x65\x03\x04\x02\x02"), WC_HASH_TYPE_SHA384, WC_MGF1SHA384, 48},
    {OID("\x60\x86\x48\x01\x65\x03\x04\x02\x03"), WC_HASH_TYPE_SHA512, WC_MGF1SHA512, 64},
};

enum scheme { SCHEME_PKCS1, SCHEME_PSS, SCHEME_ECDSA, SCHEME_ED25519, SCHEME_OLD };

static const struct algorithm {
    struct span oid;
    enum scheme scheme;
    unsigned hash; /* of `hashes`; PSS has it in its parameters */
} algorithms[] = {
    {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"), SCHEME_PKCS1, 0},
    {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c"), SCHEME_PKCS1, 1},
    {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d"), SCHEME_PKCS1, 2},
    {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a"), SCHEME_PSS, 0},
    {OID("\x2a\x86\x48\xce\x3d\x04\x03\x02"), SCHEME_ECDSA, 0},
    {OID("\x2a\x86\x48\xce\x3d\x04\x03\x03"), SCHEME_ECDSA, 1},
    {OID("\x2a\x86\x48\xce\x3d\x04\x03\x04"), SCHEME_ECDSA, 2},
    {OID("\x2b\x65\x70"), SCHEME_ED25519, 0},
    {OID("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05"), SCHEME_OLD, 0}, /* RSA with SHA-1 */
    {OID("\x2a\x86\x48\xce\x3d\x04\x01"), SCHEME_OLD, 0},         /* ECDSA with SHA-1 */
};

/* --- keys --- */

static size_t bits_of(struct span magnitude)
{
    return magnitude.size * 8 - (size_t)(__builtin_clz(magnitude.data[0]) - 24);
}

static int parse_rsa(struct x509_key *key, struct der *parameters, struct span bits)
{
    struct der numbers;
    struct span null;
    if (!der_take(parameters, DER_NULL, &null) || null.size > 0 || !der_done(parameters) ||
        !der_only(bits, DER_SEQUENCE, &numbers) || !der_take_positive(&numbers, &key->modulus) ||
        !der_take_positive(&numbers, &key->exponent) || !der_done(&numbers))
        return PE_CERT_MALFORMED;
    size_t modulus_bits = bits_of(key->modulus), exponent_bits = bits_of(key->exponent);
    bool odd = key->modulus.data[key->modulus.size - 1] & key->exponent.data[key->exponent.size - 1] & 1;
    key->kind = X509_RSA;
    if (modulus_bits < RSA_BITS_MIN || modulus_bits > RSA_BITS_MAX || modulus_bits % 8 != 0 || !odd ||
        exponent_bits < 2 || key->exponent.size > RSA_EXPONENT_BYTES)
        return PE_CERT_WEAK_KEY;
    return 0;
}

static int parse_curve(struct x509_key *key, struct der *parameters, struct span bits)
{
    struct span oid;
    if (!der_take(parameters, DER_OID, &oid) || !der_done(parameters))
        return PE_CERT_ALGORITHM; /* a curve spelt out: RFC 5480 section 2.1.1 allows names only */
    for (size_t i = 0; i < ARRAY_SIZE(curves); i++) {
        if (!span_equal(oid, curves[i].oid))
            continue;
        key->kind = curves[i].kind;
        key->point = bits;
        return bits.size == 1 + 2 * curves[i].bytes && bits.data[0] == 4 ? 0 : PE_CERT_MALFORMED;
    }
    return PE_CERT_ALGORITHM;
}

int x509_key_parse(struct x509_key *key, struct span key_info)
{
    struct der info, algorithm;
    struct span oid, bits;
    *key = (struct x509_key){0};
    if (!der_only(key_info, DER_SEQUENCE, &info) || !der_enter(&info, DER_SEQUENCE, &algorithm) ||
        !der_take(&algorithm, DER_OID, &oid) || !der_take_octets(&info, DER_BIT_STRING, &bits) ||
        !der_done(&info))
        return PE_CERT_MALFORMED;
    if (span_equal(oid, rsa_encryption))
        return parse_rsa(key, &algorithm, bits);
    if (span_equal(oid, ec_public_key))
        return parse_curve(key, &algorithm, bits);
    if (!span_equal(oid, ed25519))
        return PE_CERT_ALGORITHM;
    key->kind = X509_ED25519;
    key->point = bits;
    return der_done(&algorithm) && bits.size == crypto_sign_PUBLICKEYBYTES ? 0 : PE_CERT_MALFORMED;
}

/* --- algorithms --- */

/* A hash's AlgorithmIdentifier, with NULL or no parameters. */
static const struct hash *take_hash(struct der *d)
{
    struct der algorithm;
    struct span oid, null;
    if (!der_enter(d, DER_SEQUENCE, &algorithm) || !der_take(&algorithm, DER_OID, &oid) ||
        (!der_done(&algorithm) &&
         (!der_take(&algorithm, DER_NULL, &null) || null.size > 0 || !der_done(&algorithm))))
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(hashes); i++) {
        if (span_equal(oid, hashes[i].oid))
            return &hashes[i];
    }
    return NULL;
}

/* RSASSA-PSS-params of RFC 4055 section 3.1, as the baseline requirements (7.1.3.2.1) want them: MGF1 of the
 * same hash, a salt as long as it. The defaults are SHA-1's, so nothing may be left out but the trailer. */
static const struct hash *pss_hash(struct der *d)
{
    struct der parameters, field, generator;
    struct span oid;
    int32_t salt;
    if (!der_enter(d, DER_SEQUENCE, &parameters) || !der_done(d) ||
        !der_enter(&parameters, DER_CONTEXT_CONSTRUCTED(0), &field))
        return NULL;
    const struct hash *hash = take_hash(&field);
    if (!hash || !der_done(&field) || !der_enter(&parameters, DER_CONTEXT_CONSTRUCTED(1), &field) ||
        !der_enter(&field, DER_SEQUENCE, &generator) || !der_done(&field) ||
        !der_take(&generator, DER_OID, &oid) || !span_equal(oid, mgf1) || take_hash(&generator) != hash ||
        !der_done(&generator))
        return NULL;
    if (!der_enter(&parameters, DER_CONTEXT_CONSTRUCTED(2), &field) ||
        !der_take_small(&field, DER_INTEGER, &salt) || !der_done(&field) || salt != (int32_t)hash->bytes)
        return NULL;
    return der_done(&parameters) ? hash : NULL;
}

static bool no_parameters(struct der *d, bool null_too)
{
    struct span null;
    return der_done(d) || (null_too && der_take(d, DER_NULL, &null) && null.size == 0 && der_done(d));
}

/* The algorithm of a signature, or NULL; with its hash, where it has one. */
static const struct algorithm *algorithm_of(const struct x509 *x, const struct hash **hash)
{
    struct der d;
    struct span oid;
    if (!der_only(x->signature_algorithm, DER_SEQUENCE, &d) || !der_take(&d, DER_OID, &oid))
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++) {
        const struct algorithm *a = &algorithms[i];
        if (!span_equal(oid, a->oid))
            continue;
        if (a->scheme == SCHEME_PSS) {
            *hash = pss_hash(&d);
            return *hash ? a : NULL;
        }
        *hash = &hashes[a->hash];
        return no_parameters(&d, a->scheme == SCHEME_PKCS1 || a->scheme == SCHEME_OLD) ? a : NULL;
    }
    return NULL;
}

int x509_anchor_algorithm_check(const struct x509 *anchor)
{
    const struct hash *hash;
    return algorithm_of(anchor, &hash) ? 0 : PE_CERT_ALGORITHM;
}

/* --- signatures --- */

/* EMSA-PKCS1-v1_5 without its padding (RFC 8017 section 9.2): DigestInfo with NULL parameters. All three
 * hashes' identifiers have the same length. */
static size_t digest_info(const struct hash *hash, const uint8_t *digest, uint8_t *out)
{
    uint8_t head[] = {0x30, (uint8_t)(17 + hash->bytes), 0x30, 13, 0x06, 9};
    memcpy(out, head, sizeof head);
    memcpy(out + 6, hash->oid.data, 9);
    out[15] = DER_NULL;
    out[16] = 0;
    out[17] = DER_OCTET_STRING;
    out[18] = (uint8_t)hash->bytes;
    memcpy(out + 19, digest, hash->bytes);
    return 19 + hash->bytes;
}

static bool rsa_verifies(RsaKey *rsa, enum scheme scheme, const struct hash *hash, const uint8_t *digest,
                         struct span signature)
{
    uint8_t in[RSA_BYTES_MAX], out[RSA_BYTES_MAX], expected[19 + DIGEST_MAX];
    memcpy(in, signature.data, signature.size);
    word32 size = (word32)signature.size;
    if (scheme == SCHEME_PSS)
        return wc_RsaPSS_VerifyCheck(in, size, out, sizeof out, digest, hash->bytes, hash->wolf, hash->mgf,
                                     rsa) > 0;
    int got = wc_RsaSSL_Verify(in, size, out, sizeof out, rsa);
    size_t expected_size = digest_info(hash, digest, expected);
    return got > 0 && span_equal(span_of(out, (size_t)got), span_of(expected, expected_size));
}

static int check_rsa(const struct x509_key *key, enum scheme scheme, const struct hash *hash,
                     const uint8_t *digest, struct span signature)
{
    RsaKey rsa;
    if (key->kind != X509_RSA || signature.size != key->modulus.size || wc_InitRsaKey(&rsa, NULL) != 0)
        return PE_CERT_SIGNATURE;
    bool good = wc_RsaPublicKeyDecodeRaw(key->modulus.data, (word32)key->modulus.size, key->exponent.data,
                                         (word32)key->exponent.size, &rsa) == 0 &&
                rsa_verifies(&rsa, scheme, hash, digest, signature);
    wc_FreeRsaKey(&rsa);
    return good ? 0 : PE_CERT_SIGNATURE;
}

/* Ecdsa-Sig-Value of RFC 5480: two positive integers. wolfCrypt's own reader is less strict. */
static bool is_ecdsa_value(struct span signature)
{
    struct der d;
    struct span number;
    return der_only(signature, DER_SEQUENCE, &d) && der_take_positive(&d, &number) &&
           der_take_positive(&d, &number) && der_done(&d);
}

static int check_ecdsa(const struct x509_key *key, const struct hash *hash, const uint8_t *digest,
                       struct span signature)
{
    const struct curve *curve = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(curves); i++) {
        if (curves[i].kind == key->kind)
            curve = &curves[i];
    }
    ecc_key ecc;
    if (!curve || !is_ecdsa_value(signature) || wc_ecc_init(&ecc) != 0)
        return PE_CERT_SIGNATURE;
    int verified = 0;
    bool good =
        wc_ecc_import_x963_ex(key->point.data, (word32)key->point.size, &ecc, curve->wolf) == 0 &&
        wc_ecc_check_key(&ecc) == 0 &&
        wc_ecc_verify_hash(signature.data, (word32)signature.size, digest, hash->bytes, &verified, &ecc) == 0;
    wc_ecc_free(&ecc);
    return good && verified == 1 ? 0 : PE_CERT_SIGNATURE;
}

static int check_ed25519(const struct x509_key *key, const struct x509 *x)
{
    bool good =
        key->kind == X509_ED25519 && x->signature.size == crypto_sign_BYTES &&
        crypto_sign_verify_detached(x->signature.data, x->tbs.data, x->tbs.size, key->point.data) == 0;
    return good ? 0 : PE_CERT_SIGNATURE;
}

int x509_signature_check(const struct x509 *x, const struct x509_key *key)
{
    const struct hash *hash;
    const struct algorithm *algorithm = algorithm_of(x, &hash);
    if (!algorithm || algorithm->scheme == SCHEME_OLD)
        return PE_CERT_ALGORITHM;
    if (algorithm->scheme == SCHEME_ED25519)
        return check_ed25519(key, x);
    uint8_t digest[DIGEST_MAX];
    if (wc_Hash(hash->wolf, x->tbs.data, (word32)x->tbs.size, digest, hash->bytes) != 0)
        return PE_CERT_SIGNATURE;
    if (algorithm->scheme == SCHEME_ECDSA)
        return check_ecdsa(key, hash, digest, x->signature);
    return check_rsa(key, algorithm->scheme, hash, digest, x->signature);
}
