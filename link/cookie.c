#include "link/cookie.h"

#include "core/error.h"

#include <netinet/in.h>
#include <sodium.h>

#define MAC1_LABEL   "pure-link mac1"
#define COOKIE_LABEL "pure-link cookie"

_Static_assert(LINK_NONCE_BYTES == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, "nonce");

static void derive(uint8_t key[LINK_KEY_BYTES], struct span label,
                   const uint8_t receiver_public[LINK_KEY_BYTES])
{
    crypto_generichash_blake2b_state state;
    crypto_generichash_blake2b_init(&state, NULL, 0, LINK_KEY_BYTES);
    crypto_generichash_blake2b_update(&state, label.data, label.size);
    crypto_generichash_blake2b_update(&state, receiver_public, LINK_KEY_BYTES);
    crypto_generichash_blake2b_final(&state, key, LINK_KEY_BYTES);
}

void cookie_keys_derive(struct cookie_keys *keys, const uint8_t receiver_public[LINK_KEY_BYTES])
{
    derive(keys->mac1, span_text(MAC1_LABEL), receiver_public);
    derive(keys->cookie, span_text(COOKIE_LABEL), receiver_public);
}

struct cookie_source cookie_source_of(const struct sockaddr *address)
{
    struct cookie_source source = {{0}};
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        memset(source.bytes + 10, 0xff, 2);
        memcpy(source.bytes + 12, &in->sin_addr, 4);
        memcpy(source.bytes + 20, &in->sin_port, 2);
        return source;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    memcpy(source.bytes, &in6->sin6_addr, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
        link_put32(source.bytes + 16, in6->sin6_scope_id);
    memcpy(source.bytes + 20, &in6->sin6_port, 2);
    return source;
}

/* --- macs --- */

static void mac(uint8_t out[LINK_MAC_BYTES], struct span data, const uint8_t *key, size_t key_size)
{
    crypto_generichash_blake2b(out, LINK_MAC_BYTES, data.data, data.size, key, key_size);
}

static void mac1(uint8_t out[LINK_MAC_BYTES], const struct cookie_keys *keys, const struct link_init *init)
{
    mac(out, span_of(init, offsetof(struct link_init, mac1)), keys->mac1, LINK_KEY_BYTES);
}

static void mac2(uint8_t out[LINK_MAC_BYTES], const uint8_t cookie[LINK_MAC_BYTES],
                 const struct link_init *init)
{
    mac(out, span_of(init, offsetof(struct link_init, mac2)), cookie, LINK_MAC_BYTES);
}

void cookie_sign(const struct cookie_held *held, const struct cookie_keys *keys, uint64_t now_ns,
                 struct link_init *init)
{
    mac1(init->mac1, keys, init);
    if (now_ns < held->until_ns)
        mac2(init->mac2, held->cookie, init);
    else
        memset(init->mac2, 0, LINK_MAC_BYTES);
}

bool cookie_mac1_right(const struct cookie_keys *keys, const struct link_init *init)
{
    uint8_t right[LINK_MAC_BYTES];
    mac1(right, keys, init);
    return sodium_memcmp(right, init->mac1, LINK_MAC_BYTES) == 0;
}

/* --- the receiver's secrets --- */

void cookie_jar_init(struct cookie_jar *jar, uint64_t now_ns, const struct noise_random *random)
{
    *jar = (struct cookie_jar){.random = *random, .drawn_ns = now_ns};
    noise_random_fill(random, jar->secrets, sizeof jar->secrets);
}

void cookie_jar_wipe(struct cookie_jar *jar)
{
    sodium_memzero(jar, sizeof *jar);
}

static void rotate(struct cookie_jar *jar, uint64_t now_ns)
{
    if (now_ns < jar->drawn_ns + LINK_COOKIE_NS)
        return;
    if (now_ns < jar->drawn_ns + 2 * LINK_COOKIE_NS)
        memcpy(jar->secrets[1], jar->secrets[0], LINK_KEY_BYTES);
    else
        noise_random_fill(&jar->random, jar->secrets[1], LINK_KEY_BYTES); /* both are too old */
    noise_random_fill(&jar->random, jar->secrets[0], LINK_KEY_BYTES);
    jar->drawn_ns = now_ns;
}

static void cookie_for(uint8_t cookie[LINK_MAC_BYTES], const uint8_t secret[LINK_KEY_BYTES],
                       const struct cookie_source *source)
{
    mac(cookie, span_of(source->bytes, sizeof source->bytes), secret, LINK_KEY_BYTES);
}

enum cookie_mac2 cookie_mac2_check(struct cookie_jar *jar, uint64_t now_ns,
                                   const struct cookie_source *source, const struct link_init *init)
{
    if (sodium_is_zero(init->mac2, LINK_MAC_BYTES))
        return COOKIE_NONE;
    enum cookie_mac2 result = COOKIE_WRONG;
    rotate(jar, now_ns);
    for (unsigned i = 0; i < ARRAY_SIZE(jar->secrets); i++) {
        uint8_t cookie[LINK_MAC_BYTES], right[LINK_MAC_BYTES];
        cookie_for(cookie, jar->secrets[i], source);
        mac2(right, cookie, init);
        if (sodium_memcmp(right, init->mac2, LINK_MAC_BYTES) == 0)
            result = COOKIE_RIGHT;
        sodium_memzero(cookie, sizeof cookie);
        sodium_memzero(right, sizeof right);
    }
    return result;
}

/* --- COOKIE --- */

void cookie_answer(struct cookie_jar *jar, const struct cookie_keys *keys, uint64_t now_ns,
                   const struct cookie_source *source, const struct link_init *init,
                   struct link_cookie *message)
{
    uint8_t cookie[LINK_MAC_BYTES];
    rotate(jar, now_ns);
    cookie_for(cookie, jar->secrets[0], source);
    link_put_head(&message->head, LINK_COOKIE);
    memcpy(message->sender, init->sender, sizeof message->sender);
    noise_random_fill(&jar->random, message->nonce, LINK_NONCE_BYTES);
    crypto_aead_xchacha20poly1305_ietf_encrypt(message->cookie, NULL, cookie, LINK_MAC_BYTES, init->mac1,
                                               LINK_MAC_BYTES, NULL, message->nonce, keys->cookie);
    sodium_memzero(cookie, sizeof cookie);
}

int cookie_take(struct cookie_held *held, const struct cookie_keys *keys, uint64_t now_ns,
                const uint8_t sent_mac1[LINK_MAC_BYTES], const struct link_cookie *message)
{
    uint8_t cookie[LINK_MAC_BYTES];
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(cookie, NULL, NULL, message->cookie,
                                                   sizeof message->cookie, sent_mac1, LINK_MAC_BYTES,
                                                   message->nonce, keys->cookie) != 0)
        return PE_NOT_AUTHENTIC;
    memcpy(held->cookie, cookie, LINK_MAC_BYTES);
    held->until_ns = now_ns + LINK_COOKIE_NS;
    sodium_memzero(cookie, sizeof cookie);
    return 0;
}
