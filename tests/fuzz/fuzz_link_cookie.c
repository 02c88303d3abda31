/* COOKIE and REPLY at a sender that waits: raw ones, and whole ones whose secret part is the input, sealed
 * with keys that the fuzzer knows. What is refused changes nothing, and the next handshake works.
 *
 * The input: how (1 byte), the bytes. */
#include "tests/unit/link_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum how { RAW_COOKIE, SEALED_COOKIE, RAW_REPLY, SEALED_REPLY, HOWS };

static struct link_world w;

static void overlay(void *bytes, size_t size, struct span input)
{
    memset(bytes, 0, size);
    if (input.size > 0)
        memcpy(bytes, input.data, min_size(size, input.size));
}

static int give_cookie(struct span input, const struct link_init *init, bool sealed)
{
    struct link_cookie message;
    uint8_t cookie[LINK_MAC_BYTES];
    overlay(&message, sizeof message, input);
    overlay(cookie, sizeof cookie, input);
    memcpy(message.sender, init->sender, sizeof message.sender);
    if (sealed)
        crypto_aead_xchacha20poly1305_ietf_encrypt(message.cookie, NULL, cookie, sizeof cookie, init->mac1,
                                                   LINK_MAC_BYTES, NULL, message.nonce,
                                                   w.sender.cookie_keys.cookie);
    int error = initiator_cookie(&w.sender, w.now_ns, &message);
    if (sealed && (error != 0 || memcmp(w.sender.cookie.cookie, cookie, sizeof cookie) != 0))
        abort();
    return error;
}

/* The receiver's answer, with the input as its payload. */
static void seal_reply(struct link_reply *reply, struct span input, const struct link_init *init)
{
    struct noise noise;
    struct link_reply_payload payload;
    static uint8_t ignored[sizeof(struct link_init_payload)];
    uint8_t e[LINK_KEY_BYTES];
    struct noise_keys keys = {w.receiver_key.private, w.receiver_key.public, NULL, NULL};
    overlay(&payload, sizeof payload, input);
    memcpy(reply->receiver, payload.index, sizeof reply->receiver);
    link_world_fill(&w.seed, e, sizeof e);
    noise_init(&noise, NOISE_IK, false, span_text(LINK_PROLOGUE), &keys);
    if (noise_read(&noise, span_of(init->e, offsetof(struct link_init, mac1) - 8), ignored) < 0 ||
        noise_write(&noise, e, span_of(&payload, sizeof payload), reply->e) < 0)
        abort();
    noise_wipe(&noise);
}

static int give_reply(struct span input, const struct link_init *init, bool sealed)
{
    struct link_reply reply;
    struct initiator_terms terms;
    overlay(&reply, sizeof reply, input);
    memcpy(reply.sender, init->sender, sizeof reply.sender);
    if (sealed)
        seal_reply(&reply, input, init);
    int error = initiator_reply(&w.sender, w.now_ns, &reply, &terms);
    if (error == 0 && (!initiator_sealing(&w.sender, w.now_ns) || terms.next_packet > LINK_NUMBER_MAX))
        abort();
    return error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct span input = span_of(data + 1, size - 1);
    enum how how = data[0] % HOWS;
    link_world_start(&w, 1);
    if (data[0] & 0x80)
        link_world_connect(&w);
    initiator_restart(&w.sender);
    struct link_init init = link_world_init(&w);
    struct initiator before = w.sender;
    bool sealed = how == SEALED_COOKIE || how == SEALED_REPLY;
    int error = how <= SEALED_COOKIE ? give_cookie(input, &init, sealed) : give_reply(input, &init, sealed);
    if (error != 0 && memcmp(&before, &w.sender, sizeof before) != 0)
        abort();
    initiator_restart(&w.sender);
    w.sender.cookie.until_ns = 0; /* a forged one would cost a round trip more */
    link_world_connect(&w);
    link_world_end(&w);
    return 0;
}
