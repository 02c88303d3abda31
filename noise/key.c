#include "noise/key.h"

#include "core/error.h"

#include <sodium.h>

#define BASE64_SIZE (HOST_KEY_PUBLIC_TEXT - 1)

_Static_assert(sodium_base64_ENCODED_LEN(HOST_KEY_BYTES, sodium_base64_VARIANT_ORIGINAL) ==
                   HOST_KEY_PUBLIC_TEXT,
               "base64");

void host_key_generate(struct host_key *key, const struct noise_random *random)
{
    noise_random_fill(random, key->private, HOST_KEY_BYTES);
    crypto_scalarmult_curve25519_base(key->public, key->private);
}

void host_key_wipe(struct host_key *key)
{
    sodium_memzero(key, sizeof *key);
}

void host_key_public_text(const uint8_t public[HOST_KEY_BYTES], char text[HOST_KEY_PUBLIC_TEXT])
{
    sodium_bin2base64(text, HOST_KEY_PUBLIC_TEXT, public, HOST_KEY_BYTES, sodium_base64_VARIANT_ORIGINAL);
}

void host_key_private_text(const struct host_key *key, char text[HOST_KEY_PRIVATE_TEXT])
{
    memcpy(text, HOST_KEY_PRIVATE_PREFIX, sizeof HOST_KEY_PRIVATE_PREFIX - 1);
    sodium_bin2base64(text + sizeof HOST_KEY_PRIVATE_PREFIX - 1, HOST_KEY_PUBLIC_TEXT, key->private,
                      HOST_KEY_BYTES, sodium_base64_VARIANT_ORIGINAL);
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct span trim(struct span text)
{
    while (text.size > 0 && is_space(text.data[0]))
        text = span_of(text.data + 1, text.size - 1);
    while (text.size > 0 && is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* Whether the text begins with the prefix, which is then cut off. */
static bool cut_prefix(struct span *text)
{
    size_t size = sizeof HOST_KEY_PRIVATE_PREFIX - 1;
    if (text->size < size || memcmp(text->data, HOST_KEY_PRIVATE_PREFIX, size) != 0)
        return false;
    *text = span_of(text->data + size, text->size - size);
    return true;
}

static int decode(struct span text, uint8_t key[HOST_KEY_BYTES])
{
    size_t size = 0;
    if (text.size != BASE64_SIZE ||
        sodium_base642bin(key, HOST_KEY_BYTES, (const char *)text.data, text.size, NULL, &size, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        size != HOST_KEY_BYTES) {
        sodium_memzero(key, HOST_KEY_BYTES);
        return PE_KEY;
    }
    return 0;
}

int host_key_parse_private(struct span text, struct host_key *key)
{
    *key = (struct host_key){0};
    text = trim(text);
    bool private = cut_prefix(&text);
    int error = decode(text, key->private);
    if (error == 0 && !private)
        error = PE_KEY_IS_PUBLIC;
    if (error == 0)
        crypto_scalarmult_curve25519_base(key->public, key->private);
    else
        host_key_wipe(key);
    return error;
}

/* A point of low order gives zero with every scalar. */
static bool is_weak(const uint8_t public[HOST_KEY_BYTES])
{
    static const uint8_t scalar[HOST_KEY_BYTES] = {1};
    uint8_t product[HOST_KEY_BYTES];
    return crypto_scalarmult_curve25519(product, scalar, public) != 0;
}

int host_key_parse_public(struct span text, uint8_t public[HOST_KEY_BYTES])
{
    text = trim(text);
    bool private = cut_prefix(&text);
    int error = decode(text, public);
    if (private)
        error = PE_KEY_IS_PRIVATE;
    else if (error == 0 && is_weak(public))
        error = PE_KEY_WEAK;
    if (error < 0)
        sodium_memzero(public, HOST_KEY_BYTES);
    return error;
}
