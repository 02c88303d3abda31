#include "wire/sealed.h"

#include "core/error.h"

#include <sodium.h>

#define NUMBERS_AT 40
#define NAMES_AT   80

_Static_assert(SEALED_MESSAGE_BYTES % 3 == 0 && SEALED_REPLY_BYTES % 3 == 0, "base64 without padding");
_Static_assert(SEALED_PAYLOAD_BYTES >= NAMES_AT + 4 + 3 * SEALED_NAME_MAX + SEALED_EVENT_MAX, "room");
_Static_assert(SEALED_NONCE_BYTES == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, "nonce");

static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
    return at + 8;
}

static uint64_t get_u64(const uint8_t **at)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t)(*at)[i] << 8 * i;
    *at += 8;
    return value;
}

/* Base64 of all bytes, which are a multiple of 3, without a NUL. */
static void put_base64(char *text, size_t text_size, const uint8_t *bytes, size_t size)
{
    char whole[SEALED_TEXT_BYTES + 1];
    assert(text_size < sizeof whole);
    sodium_bin2base64(whole, text_size + 1, bytes, size, sodium_base64_VARIANT_ORIGINAL);
    memcpy(text, whole, text_size);
}

static bool get_base64(struct span text, size_t text_size, uint8_t *bytes, size_t size)
{
    size_t got = 0;
    return text.size == text_size &&
           sodium_base642bin(bytes, size, (const char *)text.data, text.size, NULL, &got, NULL,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           got == size;
}

/* --- the request's head --- */

static uint8_t *put_name(uint8_t *at, struct span name, size_t max)
{
    assert(name.size > 0 && name.size <= max);
    *at++ = (uint8_t)name.size;
    memcpy(at, name.data, name.size);
    return at + name.size;
}

static void put_payload(const struct sealed_request *r, uint8_t payload[SEALED_PAYLOAD_BYTES])
{
    uint8_t *at = payload + NUMBERS_AT;
    memset(payload, 0, SEALED_PAYLOAD_BYTES);
    memcpy(payload, r->ticket, SEALED_TICKET_BYTES);
    memcpy(payload + SEALED_TICKET_BYTES, r->epoch, SEALED_EPOCH_BYTES);
    at = put_u64(at, r->first);
    at = put_u64(at, r->count);
    at = put_u64(at, r->base);
    at = put_u64(at, r->sent);
    at = put_u64(at, r->body_bytes);
    at = put_name(at, r->app, SEALED_NAME_MAX);
    at = put_name(at, r->from, SEALED_NAME_MAX);
    at = put_name(at, r->output, SEALED_NAME_MAX);
    put_name(at, r->event, SEALED_EVENT_MAX);
}

/* A name that does not fit into its bound does not go beyond the payload either: see the assertion above. */
static bool get_name(const uint8_t **at, size_t max, struct span *name)
{
    *name = span_of(*at + 1, **at);
    *at += 1 + name->size;
    return name->size > 0 && name->size <= max;
}

static bool get_payload(const uint8_t payload[SEALED_PAYLOAD_BYTES], struct sealed_request *r)
{
    const uint8_t *at = payload + NUMBERS_AT;
    memcpy(r->ticket, payload, SEALED_TICKET_BYTES);
    memcpy(r->epoch, payload + SEALED_TICKET_BYTES, SEALED_EPOCH_BYTES);
    r->first = get_u64(&at);
    r->count = get_u64(&at);
    r->base = get_u64(&at);
    r->sent = get_u64(&at);
    r->body_bytes = get_u64(&at);
    return get_name(&at, SEALED_NAME_MAX, &r->app) && get_name(&at, SEALED_NAME_MAX, &r->from) &&
           get_name(&at, SEALED_NAME_MAX, &r->output) && get_name(&at, SEALED_EVENT_MAX, &r->event);
}

/* Of both ends alike, whichever is the initiator: the body goes its way, the reply the other. The reply's key
 * is bound to all of the message by its hash. */
static void derive(const struct noise *n, bool initiator, struct sealed_keys *keys)
{
    static const char label[] = "pure-sealed reply";
    uint8_t back[NOISE_KEY_BYTES];
    noise_split(n, initiator ? keys->body : back, initiator ? back : keys->body);
    crypto_generichash_blake2b_state state;
    crypto_generichash_blake2b_init(&state, back, sizeof back, NOISE_KEY_BYTES);
    crypto_generichash_blake2b_update(&state, (const uint8_t *)label, sizeof label - 1);
    crypto_generichash_blake2b_update(&state, noise_hash(n), NOISE_HASH_BYTES);
    crypto_generichash_blake2b_final(&state, keys->reply, NOISE_KEY_BYTES);
    sodium_memzero(&state, sizeof state);
    sodium_memzero(back, sizeof back);
}

int sealed_request_write(const struct sealed_request *request, const struct host_key *with,
                         const uint8_t to[HOST_KEY_BYTES], const uint8_t e[NOISE_KEY_BYTES],
                         char text[SEALED_TEXT_BYTES], struct sealed_keys *keys)
{
    const struct noise_keys statics = {with->private, with->public, to, NULL};
    uint8_t payload[SEALED_PAYLOAD_BYTES], message[SEALED_MESSAGE_BYTES];
    struct noise n;
    put_payload(request, payload);
    noise_init(&n, NOISE_X, true, span_text(SEALED_PROLOGUE), &statics);
    int error = noise_write(&n, e, span_of(payload, sizeof payload), message);
    if (error == 0) {
        derive(&n, true, keys);
        put_base64(text, SEALED_TEXT_BYTES, message, sizeof message);
    }
    noise_wipe(&n);
    sodium_memzero(payload, sizeof payload);
    return error;
}

int sealed_request_read(struct span text, const struct host_key *with, const struct noise_gate *gate,
                        struct sealed_opened *opened)
{
    const struct noise_keys statics = {with->private, with->public, NULL, NULL};
    uint8_t message[SEALED_MESSAGE_BYTES];
    struct noise n;
    if (!get_base64(text, SEALED_TEXT_BYTES, message, sizeof message))
        return PE_MALFORMED;
    noise_init(&n, NOISE_X, false, span_text(SEALED_PROLOGUE), &statics);
    int error = noise_read_gated(&n, span_of(message, sizeof message), gate, opened->payload);
    if (error == 0 && !get_payload(opened->payload, &opened->request))
        error = PE_MALFORMED;
    if (error == 0) {
        derive(&n, false, &opened->keys);
        memcpy(opened->sender, n.rs, HOST_KEY_BYTES);
    } else {
        sodium_memzero(opened, sizeof *opened);
    }
    noise_wipe(&n);
    return error;
}

void sealed_keys_wipe(struct sealed_keys *keys)
{
    sodium_memzero(keys, sizeof *keys);
}

/* --- the body --- */

uint64_t sealed_size(uint64_t body)
{
    uint64_t chunks = body / SEALED_CHUNK_BYTES + (body % SEALED_CHUNK_BYTES > 0);
    return body > UINT64_MAX / 2 ? UINT64_MAX : body + chunks * NOISE_TAG_BYTES;
}

/* Noise, section 12.3: four zero bytes, then the number. */
static void put_nonce(uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES], uint64_t number)
{
    memset(nonce, 0, 4);
    put_u64(nonce + 4, number);
}

void sealed_body(const struct sealed_keys *keys, struct span body, uint8_t *out)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    for (uint64_t number = 0; body.size > 0; number++) {
        size_t size = min_size(body.size, SEALED_CHUNK_BYTES);
        put_nonce(nonce, number);
        crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, body.data, size, NULL, 0, NULL, nonce,
                                                  keys->body);
        out += size + NOISE_TAG_BYTES;
        body = span_of(body.data + size, body.size - size);
    }
}

int sealed_chunk_open(const uint8_t key[NOISE_KEY_BYTES], uint64_t number, struct span chunk, uint8_t *plain)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    assert(chunk.size >= NOISE_TAG_BYTES);
    put_nonce(nonce, number);
    return crypto_aead_chacha20poly1305_ietf_decrypt(plain, NULL, NULL, chunk.data, chunk.size, NULL, 0,
                                                     nonce, key) == 0
               ? 0
               : PE_NOT_AUTHENTIC;
}

/* --- the reply --- */

#define HAS_STORED 1

static char printable(char c)
{
    return c >= 0x20 && c < 0x7f ? c : '?';
}

static void put_reply(const struct sealed_reply *r, uint8_t payload[SEALED_REPLY_PAYLOAD_BYTES])
{
    memset(payload, 0, SEALED_REPLY_PAYLOAD_BYTES);
    payload[0] = (uint8_t)r->status;
    payload[1] = (uint8_t)(r->status >> 8);
    payload[2] = r->has_stored ? HAS_STORED : 0;
    payload[3] = r->error;
    for (unsigned i = 0; i < 4; i++)
        payload[4 + i] = (uint8_t)(r->retry_after_s >> 8 * i);
    put_u64(payload + 8, r->has_stored ? r->stored : 0);
    memcpy(payload + 16, r->ticket, SEALED_TICKET_BYTES);
    size_t size = strnlen(r->why, SEALED_WHY_MAX);
    payload[40] = (uint8_t)size;
    memcpy(payload + 41, r->why, size);
}

static bool get_reply(const uint8_t payload[SEALED_REPLY_PAYLOAD_BYTES], struct sealed_reply *r)
{
    const uint8_t *stored = payload + 8;
    *r = (struct sealed_reply){.status = (uint16_t)(payload[0] | payload[1] << 8),
                               .has_stored = payload[2] & HAS_STORED,
                               .error = payload[3],
                               .stored = get_u64(&stored)};
    for (unsigned i = 0; i < 4; i++)
        r->retry_after_s |= (uint32_t)payload[4 + i] << 8 * i;
    memcpy(r->ticket, payload + 16, SEALED_TICKET_BYTES);
    for (size_t i = 0; i < min_size(payload[40], SEALED_WHY_MAX); i++)
        r->why[i] = printable((char)payload[41 + i]);
    return r->status >= 200 && r->status <= 999 && r->stored <= VARINT_MAX;
}

void sealed_reply_write(const struct sealed_reply *reply, const uint8_t key[NOISE_KEY_BYTES],
                        const uint8_t nonce[SEALED_NONCE_BYTES], char text[SEALED_REPLY_TEXT_BYTES])
{
    uint8_t payload[SEALED_REPLY_PAYLOAD_BYTES], bytes[SEALED_REPLY_BYTES];
    put_reply(reply, payload);
    memcpy(bytes, nonce, SEALED_NONCE_BYTES);
    crypto_aead_xchacha20poly1305_ietf_encrypt(bytes + SEALED_NONCE_BYTES, NULL, payload, sizeof payload,
                                               NULL, 0, NULL, nonce, key);
    put_base64(text, SEALED_REPLY_TEXT_BYTES, bytes, sizeof bytes);
}

int sealed_reply_read(struct span text, const uint8_t key[NOISE_KEY_BYTES], struct sealed_reply *reply)
{
    uint8_t payload[SEALED_REPLY_PAYLOAD_BYTES], bytes[SEALED_REPLY_BYTES];
    bool opened = get_base64(text, SEALED_REPLY_TEXT_BYTES, bytes, sizeof bytes) &&
                  crypto_aead_xchacha20poly1305_ietf_decrypt(payload, NULL, NULL, bytes + SEALED_NONCE_BYTES,
                                                             sizeof bytes - SEALED_NONCE_BYTES, NULL, 0,
                                                             bytes, key) == 0;
    return opened && get_reply(payload, reply) ? 0 : PE_NOT_AUTHENTIC;
}
