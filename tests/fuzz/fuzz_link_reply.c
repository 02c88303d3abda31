/* REPLYs at a sender: raw, a true one altered in places, and whole ones whose payload is the input, sealed
 * with the receiver's key. Whatever came, the sender holds no more indices than it may, has a session only
 * from what it can believe, and the true receiver's REPLY gives it one afterwards.
 *
 * The input: how (1 byte), how many REPLYs and whether a session is there before (1 byte), the bytes. */
#include "tests/unit/link_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum how { RAW, ALTERED, SEALED, HOWS };

static struct link_world w;

static void overlay(void *bytes, size_t size, struct span input, bool with_xor)
{
    for (size_t i = 0; i < min_size(size, input.size); i++)
        ((uint8_t *)bytes)[i] = with_xor ? ((uint8_t *)bytes)[i] ^ input.data[i] : input.data[i];
}

/* A whole REPLY to the INIT, whose payload is the input. */
static void seal(struct link_reply *reply, const struct link_init *init, struct span input)
{
    struct noise noise;
    struct noise_keys keys = {w.receiver_key.private, w.receiver_key.public, NULL, NULL};
    uint8_t e[LINK_KEY_BYTES], unused[sizeof(struct link_init_payload)];
    uint8_t payload[sizeof(struct link_reply_payload)] = {0};
    overlay(payload, sizeof payload, input, false);
    link_world_fill(&w.seed, e, sizeof e);
    noise_init(&noise, NOISE_IK, false, span_text(LINK_PROLOGUE), &keys);
    size_t noise_bytes = noise_overhead(&noise) + sizeof unused;
    if (noise_read(&noise, span_of(init->e, noise_bytes), unused) < 0 ||
        noise_write(&noise, e, span_of(payload, sizeof payload), reply->e) < 0)
        abort();
    noise_wipe(&noise);
    memcpy(reply->receiver, payload + offsetof(struct link_reply_payload, index), sizeof reply->receiver);
}

static void make(struct link_reply *reply, const struct link_init *init, enum how how, struct span input)
{
    memset(reply, 0, sizeof *reply);
    if (how == ALTERED && link_world_answer(&w, init, (uint8_t *)reply) != LINK_REPLY_BYTES)
        return;
    if (how == SEALED)
        seal(reply, init, input);
    else
        overlay(reply, sizeof *reply, input, how == ALTERED);
    link_put_head(&reply->head, LINK_REPLY);
    if (how == SEALED)
        memcpy(reply->sender, init->sender, sizeof reply->sender);
}

/* Only what was sealed by the receiver can be believed, or is the true REPLY itself. */
static void give(const struct link_reply *reply, enum how how, struct span input)
{
    struct initiator_terms terms;
    int error = initiator_reply(&w.sender, w.now_ns, reply, &terms);
    bool altered = false;
    for (size_t i = sizeof reply->head; i < min_size(LINK_REPLY_BYTES, input.size); i++)
        altered |= input.data[i] != 0;
    if (error == 0 && (how == RAW || (how == ALTERED && altered)))
        abort();
    if (error == 0 && terms.goes_on && link_world_count(&w, RESPONDER_CURRENT) == 0)
        abort(); /* there was nothing to go on with */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct span input = span_of(data + 2, size - 2);
    enum how how = data[0] % HOWS;
    if (sodium_init() < 0)
        abort();
    link_world_start_with(&w, 1, cipher_hardware(), cipher_hardware());
    if (data[1] & 1)
        link_world_connect(&w);
    for (unsigned i = 0; i < 1u + data[1] / 2 % 6; i++) {
        struct link_reply reply;
        initiator_restart(&w.sender);
        struct link_init init = link_world_init(&w);
        make(&reply, &init, how, input);
        give(&reply, how, input);
        if (w.indices.count > INITIATOR_INDICES)
            abort();
        w.now_ns += NS_PER_S;
    }
    w.now_ns += 70 * NS_PER_S; /* the longest back-off */
    initiator_restart(&w.sender);
    link_world_handshake(&w);
    if (!initiator_sealing(&w.sender, w.now_ns))
        abort();
    link_world_end(&w);
    return 0;
}
