#include "wire/signature.h"

#include "wire/put.h"

#define HMAC_PREFIX    "whsec_"
#define PRIVATE_PREFIX "whsk_"
#define PUBLIC_PREFIX  "whpk_"
#define SEED_BYTES     32 /* of ed25519 */
#define PAIR_BYTES     64 /* seed and public key */
#define HMAC_MIN       24

/* --- secrets --- */

/* How many bytes at the front are between secrets, or of one. */
static size_t run(struct span text, bool between)
{
    size_t size = 0;
    while (size < text.size && (text.data[size] && strchr(" \t\r\n,", text.data[size])) == between)
        size++;
    return size;
}

static bool take(struct span *text, const char *prefix)
{
    size_t size = strlen(prefix);
    if (text->size < size || memcmp(text->data, prefix, size) != 0)
        return false;
    *text = span_of(text->data + size, text->size - size);
    return true;
}

static const char *decode(struct span text, uint8_t bytes[WIRE_SECRET_BYTES], size_t *size)
{
    const char *text_end;
    if (sodium_base642bin(bytes, WIRE_SECRET_BYTES, (const char *)text.data, text.size, NULL, size, &text_end,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        text_end != (const char *)text.data + text.size)
        return "a signing secret is not base64, padded, of at most 64 bytes";
    return NULL;
}

const char *secret_check(const struct wire_secret *secret)
{
    if (secret->kind == WIRE_ED25519)
        return secret->size == SEED_BYTES ? NULL : "a signing key (whsk_) has 32 or 64 bytes";
    return secret->size >= HMAC_MIN && secret->size <= WIRE_SECRET_BYTES
               ? NULL
               : "a signing secret (whsec_) has 24 to 64 bytes";
}

/* Of the longer form only the seed is kept. If its halves do not belong together, receivers have another
 * public key than what would be signed with. */
static const char *keep_seed(struct wire_secret *secret)
{
    uint8_t public[32], pair[PAIR_BYTES];
    crypto_sign_seed_keypair(public, pair, secret->key);
    bool belongs = sodium_memcmp(pair, secret->key, sizeof pair) == 0;
    sodium_memzero(pair, sizeof pair);
    sodium_memzero(secret->key + SEED_BYTES, PAIR_BYTES - SEED_BYTES);
    secret->size = SEED_BYTES;
    return belongs ? NULL : "the halves of a signing key (whsk_) do not belong together";
}

static const char *parse_one(struct span text, struct wire_secret *to)
{
    size_t size = 0;
    if (take(&text, PUBLIC_PREFIX))
        return "a public key (whpk_) where a signing secret belongs";
    if (take(&text, HMAC_PREFIX))
        to->kind = WIRE_HMAC;
    else if (take(&text, PRIVATE_PREFIX))
        to->kind = WIRE_ED25519;
    else if (text.size > 0 && text.data[0] == '#')
        return "a file of signing secrets has no comments: remove the one that begins with #";
    else
        return "a signing secret begins with whsec_ or whsk_";
    const char *why = decode(text, to->key, &size);
    to->size = (uint32_t)size;
    if (!why && to->kind == WIRE_ED25519 && size == PAIR_BYTES)
        why = keep_seed(to);
    return why ? why : secret_check(to);
}

int secrets_parse(struct span text, struct wire_secret *to, unsigned room, unsigned *which, const char **why)
{
    unsigned count = 0;
    memset(to, 0, room * sizeof *to);
    *why = NULL;
    for (;;) {
        size_t skip = run(text, true);
        text = span_of(text.data + skip, text.size - skip);
        size_t size = run(text, false);
        if (size == 0 || *why)
            break;
        *why = count == room ? "too many signing secrets: 4 at most"
                             : parse_one(span_of(text.data, size), &to[count]);
        count++;
        text = span_of(text.data + size, text.size - size);
    }
    *which = count > room ? 0 : count; /* too many: none of them is to blame */
    if (count == 0)
        *why = "there is no signing secret";
    if (*why)
        sodium_memzero(to, room * sizeof *to);
    return *why ? PE_CONFIG : (int)count;
}

/* --- signing --- */

/* RFC 8032 section 5.1.5: the hash of the seed is the scalar, clamped, and what the nonces begin with. */
static void expand_seed(struct signer_key *key, const uint8_t seed[SEED_BYTES])
{
    uint8_t hash[crypto_hash_sha512_BYTES];
    crypto_hash_sha512(hash, seed, SEED_BYTES);
    hash[0] &= 248;
    hash[31] &= 127;
    hash[31] |= 64;
    memcpy(key->scalar, hash, sizeof key->scalar);
    memcpy(key->prefix, hash + 32, sizeof key->prefix);
    sodium_memzero(hash, sizeof hash);
    int error = crypto_scalarmult_ed25519_base_noclamp(key->public, key->scalar);
    assert(error == 0); /* fails for the scalar 0 only, and a clamped one has a bit set */
}

void signer_init(struct signer *s, const struct wire_secret *secrets, unsigned count)
{
    assert(count <= WIRE_SECRETS_MAX);
    *s = (struct signer){.count = count};
    for (unsigned i = 0; i < count; i++) {
        struct signer_key *key = &s->keys[i];
        key->ed25519 = secrets[i].kind == WIRE_ED25519;
        if (key->ed25519)
            expand_seed(key, secrets[i].key);
        else
            crypto_auth_hmacsha256_init(&key->hmac, secrets[i].key, secrets[i].size);
    }
}

void signer_dispose(struct signer *s)
{
    sodium_memzero(s, sizeof *s);
}

/* What is signed is `front`, and behind it `content`, which may be large: neither is copied. */

static void sign_hmac(const struct signer_key *key, struct span front, struct span content, uint8_t mac[32])
{
    crypto_auth_hmacsha256_state state = key->hmac;
    crypto_auth_hmacsha256_update(&state, front.data, front.size);
    crypto_auth_hmacsha256_update(&state, content.data, content.size);
    crypto_auth_hmacsha256_final(&state, mac);
    sodium_memzero(&state, sizeof state);
}

/* SHA-512 of `first`, `second`, front and content, modulo the group's order. */
static void hash_to_scalar(struct span first, struct span second, struct span front, struct span content,
                           uint8_t scalar[32])
{
    crypto_hash_sha512_state state;
    uint8_t hash[crypto_hash_sha512_BYTES];
    crypto_hash_sha512_init(&state);
    crypto_hash_sha512_update(&state, first.data, first.size);
    crypto_hash_sha512_update(&state, second.data, second.size);
    crypto_hash_sha512_update(&state, front.data, front.size);
    crypto_hash_sha512_update(&state, content.data, content.size);
    crypto_hash_sha512_final(&state, hash);
    crypto_core_ed25519_scalar_reduce(scalar, hash);
    sodium_memzero(&state, sizeof state);
    sodium_memzero(hash, sizeof hash);
}

/* RFC 8032 section 5.1.6 step by step, since crypto_sign_detached wants all that is signed in one piece. */
static void sign_ed25519(const struct signer_key *key, struct span front, struct span content,
                         uint8_t signature[64])
{
    uint8_t nonce[32], challenge[32], product[32];
    uint8_t *point = signature, *answer = signature + 32;
    hash_to_scalar(span_of(key->prefix, 32), span_of(NULL, 0), front, content, nonce);
    int error = crypto_scalarmult_ed25519_base_noclamp(point, nonce);
    assert(error == 0); /* a nonce of 0 is a hash of 0 */
    hash_to_scalar(span_of(point, 32), span_of(key->public, 32), front, content, challenge);
    crypto_core_ed25519_scalar_mul(product, challenge, key->scalar);
    crypto_core_ed25519_scalar_add(answer, nonce, product);
    sodium_memzero(nonce, sizeof nonce);
    sodium_memzero(product, sizeof product);
}

static char *put_base64(char *to, const uint8_t *bytes, size_t size)
{
    char text[sodium_base64_ENCODED_LEN(64, sodium_base64_VARIANT_ORIGINAL)];
    sodium_bin2base64(text, sizeof text, bytes, size, sodium_base64_VARIANT_ORIGINAL);
    return put_text(to, text);
}

static char *put_signature(char *to, const struct signer_key *key, struct span front, struct span content)
{
    uint8_t bytes[64];
    if (key->ed25519) {
        sign_ed25519(key, front, content, bytes);
        return put_base64(put_text(to, "v1a,"), bytes, 64);
    }
    sign_hmac(key, front, content, bytes);
    return put_base64(put_text(to, "v1,"), bytes, 32);
}

size_t signer_write(const struct signer *s, struct span id, uint64_t timestamp_s, struct span content,
                    char *const start)
{
    char front[SIGNED_ID_MAX + PUT_NUMBER_MAX + 2];
    assert(id.size <= SIGNED_ID_MAX);
    char *to = put_text(put_span(front, id), ".");
    to = put_text(put_number(to, timestamp_s), ".");
    struct span signed_front = span_of(front, (size_t)(to - front));
    to = start;
    for (unsigned i = 0; i < s->count; i++) {
        if (i > 0)
            *to++ = ' ';
        to = put_signature(to, &s->keys[i], signed_front, content);
    }
    return (size_t)(to - start);
}
