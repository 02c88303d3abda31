#include "noise/noise.h"

#include "core/error.h"

#include <sodium.h>

#define BLOCK_BYTES 128 /* BLAKE2b's */
#define MESSAGES    2
#define TOKENS      6

_Static_assert(NOISE_KEY_BYTES == crypto_scalarmult_curve25519_BYTES, "DHLEN");
_Static_assert(NOISE_HASH_BYTES == crypto_generichash_blake2b_BYTES_MAX, "HASHLEN");
_Static_assert(NOISE_TAG_BYTES == crypto_aead_chacha20poly1305_ietf_ABYTES, "tag");

enum token { END, E, S, EE, ES, SE, SS, PSK };

/* Section 7, one row a pattern. */
static const struct pattern {
    const char *name;
    bool knows_initiator, knows_responder; /* the pre-messages: `-> s`, `<- s` */
    bool psk;
    uint8_t tokens[MESSAGES][TOKENS]; /* enum token; a message ends at END, a missing one begins with it */
} patterns[] = {
    [NOISE_N] = {"Noise_N_25519_ChaChaPoly_BLAKE2b", false, true, false, {{E, ES}}},
    [NOISE_K] = {"Noise_K_25519_ChaChaPoly_BLAKE2b", true, true, false, {{E, ES, SS}}},
    [NOISE_X] = {"Noise_X_25519_ChaChaPoly_BLAKE2b", false, true, false, {{E, ES, S, SS}}},
    [NOISE_KK] = {"Noise_KK_25519_ChaChaPoly_BLAKE2b", true, true, false, {{E, ES, SS}, {E, EE, SE}}},
    [NOISE_IK] = {"Noise_IK_25519_ChaChaPoly_BLAKE2b", false, true, false, {{E, ES, S, SS}, {E, EE, SE}}},
    [NOISE_IKPSK2] =
        {"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2b", false, true, true, {{E, ES, S, SS}, {E, EE, SE, PSK}}},
};

static const struct pattern *pattern_of(const struct noise *n)
{
    return &patterns[n->pattern];
}

/* --- hash, HMAC, HKDF: section 4.3 --- */

static void hash2(uint8_t out[NOISE_HASH_BYTES], struct span a, struct span b)
{
    crypto_generichash_blake2b_state state;
    crypto_generichash_blake2b_init(&state, NULL, 0, NOISE_HASH_BYTES);
    crypto_generichash_blake2b_update(&state, a.data, a.size);
    crypto_generichash_blake2b_update(&state, b.data, b.size);
    crypto_generichash_blake2b_final(&state, out, NOISE_HASH_BYTES);
    sodium_memzero(&state, sizeof state);
}

/* RFC 2104 with a key of HASHLEN bytes, which is always less than a block. */
static void hmac(uint8_t out[NOISE_HASH_BYTES], const uint8_t key[NOISE_HASH_BYTES], struct span a,
                 struct span b)
{
    uint8_t inner[BLOCK_BYTES], outer[BLOCK_BYTES], hash[NOISE_HASH_BYTES];
    crypto_generichash_blake2b_state state;
    for (unsigned i = 0; i < BLOCK_BYTES; i++) {
        uint8_t byte = i < NOISE_HASH_BYTES ? key[i] : 0;
        inner[i] = byte ^ 0x36;
        outer[i] = byte ^ 0x5c;
    }
    crypto_generichash_blake2b_init(&state, NULL, 0, NOISE_HASH_BYTES);
    crypto_generichash_blake2b_update(&state, inner, BLOCK_BYTES);
    crypto_generichash_blake2b_update(&state, a.data, a.size);
    crypto_generichash_blake2b_update(&state, b.data, b.size);
    crypto_generichash_blake2b_final(&state, hash, NOISE_HASH_BYTES);
    hash2(out, span_of(outer, BLOCK_BYTES), span_of(hash, NOISE_HASH_BYTES));
    sodium_memzero(&state, sizeof state);
    sodium_memzero(inner, sizeof inner);
    sodium_memzero(outer, sizeof outer);
    sodium_memzero(hash, sizeof hash);
}

/* `outputs` is 2 or 3, and how many `out` has. */
static void hkdf(const uint8_t ck[NOISE_HASH_BYTES], struct span input, unsigned outputs,
                 uint8_t out[][NOISE_HASH_BYTES])
{
    uint8_t temp[NOISE_HASH_BYTES];
    hmac(temp, ck, input, span_of("", 0));
    for (unsigned i = 0; i < outputs; i++) {
        uint8_t number = (uint8_t)(i + 1);
        struct span before = i > 0 ? span_of(out[i - 1], NOISE_HASH_BYTES) : span_of("", 0);
        hmac(out[i], temp, before, span_of(&number, 1));
    }
    sodium_memzero(temp, sizeof temp);
}

/* --- the symmetric state: sections 5.1 and 5.2 --- */

static void mix_hash(struct noise_symmetric *s, struct span data)
{
    hash2(s->h, span_of(s->h, NOISE_HASH_BYTES), data);
}

static void set_key(struct noise_symmetric *s, const uint8_t key[NOISE_HASH_BYTES])
{
    memcpy(s->k, key, NOISE_KEY_BYTES);
    s->n = 0;
    s->has_k = true;
}

static void mix_key(struct noise_symmetric *s, struct span input)
{
    uint8_t out[2][NOISE_HASH_BYTES];
    hkdf(s->ck, input, 2, out);
    memcpy(s->ck, out[0], NOISE_HASH_BYTES);
    set_key(s, out[1]);
    sodium_memzero(out, sizeof out);
}

static void mix_key_and_hash(struct noise_symmetric *s, struct span input)
{
    uint8_t out[3][NOISE_HASH_BYTES];
    hkdf(s->ck, input, 3, out);
    memcpy(s->ck, out[0], NOISE_HASH_BYTES);
    mix_hash(s, span_of(out[1], NOISE_HASH_BYTES));
    set_key(s, out[2]);
    sodium_memzero(out, sizeof out);
}

/* Section 12.3: four zero bytes, then n, little-endian. */
static void nonce_of(uint64_t n, uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES])
{
    memset(nonce, 0, 4);
    for (unsigned i = 0; i < 8; i++)
        nonce[4 + i] = (uint8_t)(n >> 8 * i);
}

/* Writes `plain`, sealed once there is a key. Returns the bytes written. */
static size_t encrypt_and_hash(struct noise_symmetric *s, struct span plain, uint8_t *out)
{
    size_t size = plain.size;
    if (s->has_k) {
        uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
        nonce_of(s->n++, nonce);
        crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, plain.data, plain.size, s->h, NOISE_HASH_BYTES,
                                                  NULL, nonce, s->k);
        size += NOISE_TAG_BYTES;
    } else if (size > 0) {
        memcpy(out, plain.data, size);
    }
    mix_hash(s, span_of(out, size));
    return size;
}

/* `sealed` is at least a tag long if there is a key. */
static int decrypt_and_hash(struct noise_symmetric *s, struct span sealed, uint8_t *out)
{
    if (s->has_k) {
        uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
        nonce_of(s->n++, nonce);
        if (crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, sealed.data, sealed.size, s->h,
                                                      NOISE_HASH_BYTES, nonce, s->k) != 0)
            return PE_NOT_AUTHENTIC;
    } else if (sealed.size > 0) {
        memcpy(out, sealed.data, sealed.size);
    }
    mix_hash(s, sealed);
    return 0;
}

/* --- the handshake state: section 5.3 --- */

static void copy_key(uint8_t out[NOISE_KEY_BYTES], const uint8_t *key)
{
    if (key)
        memcpy(out, key, NOISE_KEY_BYTES);
}

static bool sends_s(const struct pattern *p)
{
    return memchr(p->tokens[0], S, TOKENS) != NULL;
}

static void assert_keys(const struct pattern *p, bool initiator, const struct noise_keys *keys)
{
    bool needs_s = !initiator || p->knows_initiator || sends_s(p);
    bool needs_rs = initiator || p->knows_initiator;
    assert(!needs_s || (keys->s_private && keys->s_public));
    assert(!needs_rs || keys->rs);
    assert(!p->psk || keys->psk);
}

void noise_init(struct noise *n, enum noise_pattern pattern, bool initiator, struct span prologue,
                const struct noise_keys *keys)
{
    const struct pattern *p = &patterns[pattern];
    size_t name_size = strlen(p->name);
    assert(name_size <= NOISE_HASH_BYTES);
    assert_keys(p, initiator, keys);
    *n = (struct noise){.pattern = pattern, .initiator = initiator, .has_rs = keys->rs != NULL};
    copy_key(n->s_private, keys->s_private);
    copy_key(n->s_public, keys->s_public);
    copy_key(n->rs, keys->rs);
    copy_key(n->psk, keys->psk);
    memcpy(n->symmetric.h, p->name, name_size);
    memcpy(n->symmetric.ck, n->symmetric.h, NOISE_HASH_BYTES);
    mix_hash(&n->symmetric, prologue);
    if (p->knows_initiator)
        mix_hash(&n->symmetric, span_of(initiator ? n->s_public : n->rs, NOISE_KEY_BYTES));
    if (p->knows_responder)
        mix_hash(&n->symmetric, span_of(initiator ? n->rs : n->s_public, NOISE_KEY_BYTES));
}

bool noise_done(const struct noise *n)
{
    return n->message == MESSAGES || pattern_of(n)->tokens[n->message][0] == END;
}

size_t noise_overhead(const struct noise *n)
{
    bool has_k = n->symmetric.has_k;
    size_t size = 0;
    for (const uint8_t *token = pattern_of(n)->tokens[n->message]; *token != END; token++) {
        if (*token == E)
            size += NOISE_KEY_BYTES;
        else if (*token == S)
            size += NOISE_KEY_BYTES + (has_k ? NOISE_TAG_BYTES : 0);
        if (*token != S && (*token != E || pattern_of(n)->psk))
            has_k = true;
    }
    return size + (has_k ? NOISE_TAG_BYTES : 0);
}

/* EE, ES, SE, SS: the first letter is the initiator's key, the second the responder's. */
static int mix_dh(struct noise *n, enum token token)
{
    bool initiators_e = token == EE || token == ES, responders_e = token == EE || token == SE;
    const uint8_t *ours = (n->initiator ? initiators_e : responders_e) ? n->e_private : n->s_private;
    const uint8_t *theirs = (n->initiator ? responders_e : initiators_e) ? n->re : n->rs;
    uint8_t shared[NOISE_KEY_BYTES];
    int error = crypto_scalarmult_curve25519(shared, ours, theirs) == 0 ? 0 : PE_KEY_WEAK;
    if (error == 0)
        mix_key(&n->symmetric, span_of(shared, sizeof shared));
    sodium_memzero(shared, sizeof shared);
    return error;
}

/* An e is hashed, and with psks also mixed into the key (section 9.2). */
static void mix_e(struct noise *n, const uint8_t e_public[NOISE_KEY_BYTES])
{
    mix_hash(&n->symmetric, span_of(e_public, NOISE_KEY_BYTES));
    if (pattern_of(n)->psk)
        mix_key(&n->symmetric, span_of(e_public, NOISE_KEY_BYTES));
}

static int write_token(struct noise *n, enum token token, const uint8_t e[NOISE_KEY_BYTES], uint8_t **at)
{
    switch (token) {
    case E:
        memcpy(n->e_private, e, NOISE_KEY_BYTES);
        crypto_scalarmult_curve25519_base(n->e_public, e);
        memcpy(*at, n->e_public, NOISE_KEY_BYTES);
        *at += NOISE_KEY_BYTES;
        mix_e(n, n->e_public);
        return 0;
    case S:
        *at += encrypt_and_hash(&n->symmetric, span_of(n->s_public, NOISE_KEY_BYTES), *at);
        return 0;
    case PSK:
        mix_key_and_hash(&n->symmetric, span_of(n->psk, NOISE_KEY_BYTES));
        return 0;
    default:
        return mix_dh(n, token);
    }
}

static int read_s(struct noise *n, struct span sealed, const struct noise_gate *gate)
{
    int error = decrypt_and_hash(&n->symmetric, sealed, n->rs);
    n->has_rs = true;
    return error == 0 && gate && !gate->lets_in(gate->context, n->rs) ? PE_UNKNOWN_KEY : error;
}

/* The message's size was checked: it holds all tokens. */
static int read_token(struct noise *n, enum token token, const struct noise_gate *gate, const uint8_t **at)
{
    size_t sealed = NOISE_KEY_BYTES + (n->symmetric.has_k ? NOISE_TAG_BYTES : 0);
    switch (token) {
    case E:
        memcpy(n->re, *at, NOISE_KEY_BYTES);
        *at += NOISE_KEY_BYTES;
        mix_e(n, n->re);
        return 0;
    case S:
        *at += sealed;
        return read_s(n, span_of(*at - sealed, sealed), gate);
    case PSK:
        mix_key_and_hash(&n->symmetric, span_of(n->psk, NOISE_KEY_BYTES));
        return 0;
    default:
        return mix_dh(n, token);
    }
}

static bool our_turn(const struct noise *n)
{
    return !noise_done(n) && n->initiator == (n->message % 2 == 0);
}

/* The end of both: `next` replaces the state if all went well, and is wiped. */
static int commit(struct noise *n, struct noise *next, int error)
{
    if (error == 0) {
        next->message++;
        *n = *next;
    }
    noise_wipe(next);
    return error;
}

int noise_write(struct noise *n, const uint8_t e[NOISE_KEY_BYTES], struct span payload, uint8_t *out)
{
    assert(our_turn(n));
    struct noise next = *n;
    int error = 0;
    for (const uint8_t *token = pattern_of(n)->tokens[n->message]; *token != END && error == 0; token++)
        error = write_token(&next, *token, e, &out);
    if (error == 0)
        encrypt_and_hash(&next.symmetric, payload, out);
    return commit(n, &next, error);
}

int noise_read(struct noise *n, struct span message, uint8_t *payload)
{
    return noise_read_gated(n, message, NULL, payload);
}

int noise_read_gated(struct noise *n, struct span message, const struct noise_gate *gate, uint8_t *payload)
{
    assert(!noise_done(n) && !our_turn(n));
    if (message.size < noise_overhead(n))
        return PE_MALFORMED;
    struct noise next = *n;
    const uint8_t *at = message.data, *end = at + message.size;
    int error = 0;
    for (const uint8_t *token = pattern_of(n)->tokens[n->message]; *token != END && error == 0; token++)
        error = read_token(&next, *token, gate, &at);
    if (error == 0)
        error = decrypt_and_hash(&next.symmetric, span_of(at, (size_t)(end - at)), payload);
    return commit(n, &next, error);
}

void noise_split(const struct noise *n, uint8_t send[NOISE_KEY_BYTES], uint8_t receive[NOISE_KEY_BYTES])
{
    uint8_t out[2][NOISE_HASH_BYTES];
    assert(noise_done(n));
    hkdf(n->symmetric.ck, span_of("", 0), 2, out);
    memcpy(send, out[n->initiator ? 0 : 1], NOISE_KEY_BYTES);
    memcpy(receive, out[n->initiator ? 1 : 0], NOISE_KEY_BYTES);
    sodium_memzero(out, sizeof out);
}

void noise_wipe(struct noise *n)
{
    sodium_memzero(n, sizeof *n);
}
