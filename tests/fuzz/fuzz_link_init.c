/* INITs at a receiver, and DATA: raw, signed with the public key, altered in places, and whole ones whose
 * payload is the input, sealed with the key of a peer that is let in. Nothing is answered by more than a
 * third, all tables stay within their limits, and the true peer gets its session afterwards. Who has its key
 * can use up the attempts of its association; then it is the peer that starts again, which names none.
 *
 * The input: how (1 byte), how many INITs (1 byte), the bytes. */
#include "tests/unit/link_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum how { RAW, SIGNED, ALTERED, SEALED, HOWS };

static struct link_world w;

static void overlay(void *bytes, size_t size, struct span input, bool with_xor)
{
    for (size_t i = 0; i < min_size(size, input.size); i++)
        ((uint8_t *)bytes)[i] = with_xor ? ((uint8_t *)bytes)[i] ^ input.data[i] : input.data[i];
}

/* A whole INIT of the peer, whose payload is the input. */
static void seal(struct link_init *init, struct span input)
{
    struct noise noise;
    uint8_t e[LINK_KEY_BYTES], payload[sizeof(struct link_init_payload)] = {0};
    struct noise_keys keys = {w.sender_key.private, w.sender_key.public, w.receiver_key.public, NULL};
    overlay(payload, sizeof payload, input, false);
    memcpy(init->sender, payload + offsetof(struct link_init_payload, index), sizeof init->sender);
    link_world_fill(&w.seed, e, sizeof e);
    noise_init(&noise, NOISE_IK, true, span_text(LINK_PROLOGUE), &keys);
    if (noise_write(&noise, e, span_of(payload, sizeof payload), init->e) < 0)
        abort();
    noise_wipe(&noise);
}

static void make(struct link_init *init, enum how how, struct span input)
{
    struct cookie_held none = {{0}, 0};
    memset(init, 0, sizeof *init);
    if (how == ALTERED)
        *init = link_world_init(&w);
    if (how == SEALED)
        seal(init, input);
    else
        overlay(init, sizeof *init, input, how == ALTERED);
    if (how == RAW)
        return;
    link_put_head(&init->head, LINK_INIT);
    cookie_sign(&none, &w.receiver.cookie_keys, w.now_ns, init);
}

static void give(struct link_init *init)
{
    uint8_t answer[LINK_ANSWER_BYTES];
    struct responder_packet opened;
    unsigned type = link_type_of((const uint8_t *)init, sizeof *init);
    if (type == LINK_INIT)
        link_world_answer(&w, init, answer);
    if (type == LINK_DATA &&
        responder_open(&w.receiver, w.now_ns, (uint8_t *)init, sizeof *init, &opened) == 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct span input = span_of(data + 2, size - 2);
    if (sodium_init() < 0)
        abort();
    link_world_start_with(&w, 1, cipher_hardware(), cipher_hardware());
    if (data[1] & 1)
        link_world_connect(&w);
    initiator_restart(&w.sender);
    for (unsigned i = 0; i < 1u + data[1] / 2 % 6; i++) {
        struct link_init init;
        make(&init, data[0] % HOWS, input);
        give(&init);
        w.now_ns += NS_PER_MS;
    }
    if (link_world_count(&w, RESPONDER_UNCONFIRMED) > LINK_UNCONFIRMED ||
        w.receiver.indices.count > RESPONDER_SESSIONS)
        abort();
    w.now_ns += NS_PER_S;
    if (data[0] % HOWS == SEALED) {
        link_world_end_sender(&w);
        link_world_start_sender(&w);
    } else {
        initiator_restart(&w.sender);
    }
    link_world_connect(&w);
    link_world_end(&w);
    return 0;
}
