/* Sealed requests and replies: what anybody can send, and what a peer can seal that does not keep to the
 * page. The front is asked whole: it stores only records that are there, and goes on answering.
 *
 * The input: how (1 byte), the bytes. */
#include "host/sealed_door.h"
#include "tests/sim/front_world.h"
#include "wire/sealing.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum how { RAW, PAYLOAD, REPLY, SEALED_REPLY, FRONT, HOWS };

#define BODY_MAX 65536

static struct host_key sender, receiver;
static uint64_t seed;

static void fill(void *context, void *bytes, size_t size)
{
    struct random random = {(*(uint64_t *)context)++};
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)random_next(&random);
}

static const struct noise_random noise_random = {fill, &seed};

static bool lets_in(void *context, const uint8_t rs[NOISE_KEY_BYTES])
{
    (void)context;
    return memcmp(rs, sender.public, NOISE_KEY_BYTES) == 0;
}

static void must(bool holds)
{
    if (!holds)
        abort();
}

static struct span take(struct span *input, size_t size)
{
    struct span taken = span_of(input->data, min_size(size, input->size));
    *input = span_of(input->data + taken.size, input->size - taken.size);
    return taken;
}

/* A head whose payload begins with the input. */
static void seal(struct span input, const uint8_t *ticket, uint64_t body_bytes,
                 char text[SEALED_TEXT_BYTES + 1], uint8_t body_key[NOISE_KEY_BYTES])
{
    const struct noise_keys keys = {sender.private, sender.public, receiver.public, NULL};
    uint8_t e[NOISE_KEY_BYTES], back[NOISE_KEY_BYTES];
    uint8_t payload[SEALED_PAYLOAD_BYTES] = {0}, message[SEALED_MESSAGE_BYTES];
    struct noise n;
    memcpy(payload, input.data, min_size(input.size, sizeof payload));
    if (ticket) {
        memcpy(payload, ticket, SEALED_TICKET_BYTES);
        memcpy(payload + 72, &body_bytes, sizeof body_bytes);
    }
    fill(&seed, e, sizeof e);
    noise_init(&n, NOISE_X, true, span_text(SEALED_PROLOGUE), &keys);
    must(noise_write(&n, e, span_of(payload, sizeof payload), message) == 0);
    noise_split(&n, body_key, back);
    sodium_bin2base64(text, SEALED_TEXT_BYTES + 1, message, sizeof message, sodium_base64_VARIANT_ORIGINAL);
}

static void read_head(struct span text, bool sealed)
{
    static struct sealed_opened opened;
    const struct noise_gate gate = {lets_in, NULL};
    int error = sealed_request_read(text, &receiver, &gate, &opened);
    must(sealed ? error == 0 || error == PE_MALFORMED : error < 0);
    if (error < 0)
        return;
    const struct sealed_request *r = &opened.request;
    must(r->app.size + r->from.size + r->output.size + r->event.size + 84 <= SEALED_PAYLOAD_BYTES);
    must(r->event.data + r->event.size <= opened.payload + sizeof opened.payload);
    char again[SEALED_TEXT_BYTES];
    struct sealed_keys keys;
    uint8_t e[NOISE_KEY_BYTES] = {1};
    must(sealed_request_write(r, &sender, receiver.public, e, again, &keys) == 0);
}

static void read_reply(struct span input, bool sealed)
{
    uint8_t key[NOISE_KEY_BYTES] = {1}, payload[SEALED_REPLY_PAYLOAD_BYTES] = {0},
            bytes[SEALED_REPLY_BYTES] = {0};
    char text[SEALED_REPLY_TEXT_BYTES + 1];
    struct sealed_reply reply;
    if (!sealed) {
        must(sealed_reply_read(input, key, &reply) == PE_NOT_AUTHENTIC);
        return;
    }
    memcpy(payload, input.data, min_size(input.size, sizeof payload));
    crypto_aead_xchacha20poly1305_ietf_encrypt(bytes + SEALED_NONCE_BYTES, NULL, payload, sizeof payload,
                                               NULL, 0, NULL, bytes, key);
    sodium_bin2base64(text, sizeof text, bytes, sizeof bytes, sodium_base64_VARIANT_ORIGINAL);
    if (sealed_reply_read(span_of(text, sizeof text - 1), key, &reply) < 0)
        return;
    must(reply.status >= 200 && reply.status <= 999 && strlen(reply.why) <= SEALED_WHY_MAX);
    for (const char *at = reply.why; *at; at++)
        must(*at >= 0x20 && *at < 0x7f);
}

/* A peer's request with any payload but a good ticket and the size of its body, which is any, too. */
static void ask_front(struct span input)
{
    static char *apps[] = {"counter"};
    static struct front_world w;
    static uint8_t request[BODY_MAX + 4096];
    struct config_peer peer = {.name = "pi1", .apps = apps, .app_count = 1};
    struct config config = {.peers = &peer, .peer_count = 1};
    struct sealed_door door;
    struct sealed_keys keys;
    char text[SEALED_TEXT_BYTES + 1];
    uint8_t ticket[SEALED_TICKET_BYTES];
    struct span payload = take(&input, SEALED_PAYLOAD_BYTES), body = take(&input, BODY_MAX);
    memcpy(peer.key, sender.public, HOST_KEY_BYTES);
    front_world_open(&w, 1, NULL);
    must(sealed_door_init(&door, &config, &w.registry, &receiver, &noise_random, &w.log) == 0);
    w.front.door = &door;
    sealed_door_ticket(&door, sealed_door_find(&door, peer.key), w.loop.now_ns, ticket);
    seal(payload, ticket, body.size, text, keys.body);
    size_t size = (size_t)snprintf((char *)request, 4096,
                                   "POST /sealed HTTP/1.1\r\nHost: h\r\nPure-Sealed: %s\r\nContent-Length: "
                                   "%llu\r\n\r\n",
                                   text, (unsigned long long)sealed_size(body.size));
    sealed_body(&keys, body, request + size);
    struct sim_connection *c = front_world_send(&w, request, size + (size_t)sealed_size(body.size));
    sim_run_for(w.sim, NS_PER_S);
    must(front_world_status(sim_received(c)) >= 200);
    must(w.apps[0].events <= body.size && w.apps[1].runs == 0);
    front_world_close(&w);
    sealed_door_dispose(&door);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[SEALED_TEXT_BYTES + 1];
    uint8_t key[NOISE_KEY_BYTES];
    if (size == 0)
        return 0;
    must(sodium_init() >= 0);
    seed = 1;
    host_key_generate(&sender, &noise_random);
    host_key_generate(&receiver, &noise_random);
    struct span input = span_of(data + 1, size - 1);
    switch (data[0] % HOWS) {
    case RAW:
        read_head(input, false);
        break;
    case PAYLOAD:
        seal(input, NULL, 0, text, key);
        read_head(span_of(text, SEALED_TEXT_BYTES), true);
        break;
    case FRONT:
        ask_front(input);
        break;
    default:
        read_reply(input, data[0] % HOWS == SEALED_REPLY);
    }
    return 0;
}
