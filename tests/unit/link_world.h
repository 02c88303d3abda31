/* Both ends of a handshake, without a network: a test carries each message across, or does to it what it
 * likes.
 *
 *     sender: struct initiator            receiver: struct responder, which lets one peer in
 *       INIT  ----------------------------->
 *             <----------------------------- REPLY, COOKIE
 *       DATA  <---------------------------->   DATA
 */
#ifndef PURE_TESTS_LINK_WORLD_H
#define PURE_TESTS_LINK_WORLD_H

#include "core/error.h"
#include "core/random.h"
#include "noise/random.h"
#include "link/initiator.h"
#include "link/responder.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sodium.h>
#include <cmocka.h>

#define LINK_WORLD_START (5000 * NS_PER_S)
#define LINK_WORLD_PEERS 3
#define LINK_WORLD_RTT   (20 * NS_PER_MS)

/* A DATA packet. */
struct link_world_packet {
    uint8_t bytes[256];
    size_t size;
};

struct link_world {
    uint64_t now_ns;
    struct random seed;
    struct noise_random random;
    struct host_key sender_key, receiver_key;
    uint8_t sender_ciphers, receiver_ciphers; /* enum link_offer; what is started next has them */
    struct indices indices;                   /* the sender's */
    struct initiator sender;
    struct responder receiver;
    uint32_t peer; /* the sender's number at the receiver */
    struct cookie_source source;
    uint64_t next_packet;     /* the sender's */
    uint64_t receiver_packet; /* the receiver's */
    unsigned reports;         /* of unknown keys */
    uint64_t reported_times;
    uint8_t reported_key[LINK_KEY_BYTES];
};

static inline void link_world_fill(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)random_next(context);
}

static inline struct noise_random link_world_random(struct random *seed)
{
    return (struct noise_random){link_world_fill, seed};
}

static inline void link_world_offer(void *context, uint32_t peer, bool goes_on, struct responder_terms *terms)
{
    struct link_world *w = context;
    assert(peer < LINK_WORLD_PEERS);
    *terms = (struct responder_terms){1024, 4 << 20, goes_on ? w->receiver_packet : 77};
}

static inline void link_world_unknown(void *context, const uint8_t key[LINK_KEY_BYTES], uint64_t times)
{
    struct link_world *w = context;
    w->reports++;
    w->reported_times = times;
    memcpy(w->reported_key, key, LINK_KEY_BYTES);
}

static inline struct cookie_source link_world_source(uint32_t address, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(address)}, .sin_port = htons(port)};
    return cookie_source_of((const struct sockaddr *)&in);
}

/* A receiver that starts, with nothing of what one before knew. */
static inline void link_world_start_receiver(struct link_world *w)
{
    struct responder_events events = {link_world_offer, link_world_unknown, w};
    if (responder_init(&w->receiver, w->now_ns, &w->receiver_key, w->receiver_ciphers, LINK_WORLD_PEERS,
                       &w->random, &events) < 0)
        abort();
    w->peer = (uint32_t)responder_allow(&w->receiver, w->sender_key.public);
    w->receiver_packet = 0;
}

static inline void link_world_start_sender(struct link_world *w)
{
    if (indices_init(&w->indices, INITIATOR_INDICES) < 0 ||
        initiator_init(&w->sender, &w->sender_key, w->sender_ciphers, w->receiver_key.public, &w->indices, w,
                       &w->random) < 0)
        abort();
    initiator_want(&w->sender, true);
    w->next_packet = 0;
}

static inline void link_world_end_sender(struct link_world *w)
{
    initiator_dispose(&w->sender);
    assert(w->indices.count == 0);
    indices_dispose(&w->indices);
}

static inline void link_world_start_with(struct link_world *w, uint64_t seed, uint8_t sender_ciphers,
                                         uint8_t receiver_ciphers)
{
    *w = (struct link_world){.now_ns = LINK_WORLD_START,
                             .seed = {seed},
                             .sender_ciphers = sender_ciphers,
                             .receiver_ciphers = receiver_ciphers};
    w->random = link_world_random(&w->seed);
    w->source = link_world_source(0x7f000001, 4000);
    host_key_generate(&w->sender_key, &w->random);
    host_key_generate(&w->receiver_key, &w->random);
    link_world_start_receiver(w);
    link_world_start_sender(w);
}

/* Neither has AES in hardware. */
static inline void link_world_start(struct link_world *w, uint64_t seed)
{
    link_world_start_with(w, seed, 0, 0);
}

static inline void link_world_end(struct link_world *w)
{
    link_world_end_sender(w);
    responder_dispose(&w->receiver);
}

/* --- messages --- */

/* The INIT that is due now, or at the sender's next deadline. */
static inline struct link_init link_world_init(struct link_world *w)
{
    struct link_init init;
    for (unsigned i = 0; i < 4; i++) { /* some deadlines only wipe */
        w->now_ns = max_u64(w->now_ns, initiator_next_ns(&w->sender));
        initiator_tick(&w->sender, w->now_ns);
        if (initiator_write(&w->sender, w->now_ns, w->next_packet, (uint8_t *)&init) == LINK_INIT_BYTES)
            return init;
    }
    abort();
}

static inline int link_world_answer(struct link_world *w, const struct link_init *init,
                                    uint8_t out[LINK_ANSWER_BYTES])
{
    assert(link_type_of((const uint8_t *)init, sizeof *init) == LINK_INIT);
    int size = responder_answer(&w->receiver, w->now_ns, &w->source, init, out);
    assert(size <= LINK_INIT_BYTES / 3);
    return size;
}

/* INIT across, REPLY not yet. */
static inline struct link_reply link_world_reply(struct link_world *w)
{
    struct link_init init = link_world_init(w);
    struct link_reply reply;
    if (link_world_answer(w, &init, (uint8_t *)&reply) != LINK_REPLY_BYTES)
        abort();
    return reply;
}

/* INIT and REPLY: the sender has a session, the receiver has it unconfirmed. */
static inline struct initiator_terms link_world_handshake(struct link_world *w)
{
    struct link_reply reply = link_world_reply(w);
    struct initiator_terms terms;
    w->now_ns += LINK_WORLD_RTT;
    if (initiator_reply(&w->sender, w->now_ns, &reply, &terms) < 0)
        abort();
    if (!terms.goes_on)
        w->next_packet = 0;
    return terms;
}

/* One packet with a PING in it. */
static inline struct link_world_packet link_world_seal(struct session *s, uint64_t now_ns, uint64_t number)
{
    struct link_world_packet packet = {{0}, 0};
    packet.bytes[LINK_DATA_HEAD] = 1;
    packet.size = session_seal(s, now_ns, number, packet.bytes, 1);
    return packet;
}

static inline struct link_world_packet link_world_packet(struct link_world *w)
{
    struct session *s = initiator_sealing(&w->sender, w->now_ns);
    if (!s)
        abort();
    return link_world_seal(s, w->now_ns, w->next_packet++);
}

/* By value: what opens is destroyed. */
static inline int link_world_open(struct link_world *w, struct link_world_packet packet,
                                  struct responder_packet *opened)
{
    return responder_open(&w->receiver, w->now_ns, packet.bytes, packet.size, opened);
}

static inline int link_world_open_back(struct link_world *w, struct link_world_packet packet)
{
    struct session_packet opened;
    return initiator_open(&w->sender, w->now_ns, packet.bytes, packet.size, &opened);
}

/* A packet each way, which must open. */
static inline struct responder_packet link_world_ping(struct link_world *w)
{
    struct responder_packet opened;
    if (link_world_open(w, link_world_packet(w), &opened) < 0)
        abort();
    if (opened.begins)
        w->receiver_packet = 0;
    struct session *s = responder_sealing(&w->receiver, w->peer, w->now_ns);
    if (!s || link_world_open_back(w, link_world_seal(s, w->now_ns, w->receiver_packet++)) < 0)
        abort();
    return opened;
}

/* A whole handshake, confirmed. */
static inline void link_world_connect(struct link_world *w)
{
    link_world_handshake(w);
    link_world_ping(w);
}

static inline unsigned link_world_count(const struct link_world *w, enum responder_role role)
{
    unsigned count = 0;
    for (unsigned i = 0; i < RESPONDER_SESSIONS; i++)
        count += w->receiver.peers[w->peer].sessions[i].role == role;
    return count;
}

/* --- all that a receiver knows --- */

struct link_world_memory {
    struct responder responder;
    struct responder_peer peers[LINK_WORLD_PEERS];
    struct indices_slot slots[64];
};

static inline void link_world_remember(const struct link_world *w, struct link_world_memory *memory)
{
    size_t slots = w->receiver.indices.mask + 1u;
    assert(slots <= ARRAY_SIZE(memory->slots));
    memset(memory, 0, sizeof *memory);
    memcpy(&memory->responder, &w->receiver, sizeof memory->responder);
    memcpy(memory->peers, w->receiver.peers, sizeof memory->peers);
    memcpy(memory->slots, w->receiver.indices.slots, slots * sizeof memory->slots[0]);
}

/* Whether it knows the same still. With `but_budgets`, the work that it has left for strangers does not
 * count. */
static inline bool link_world_same(const struct link_world *w, const struct link_world_memory *memory,
                                   bool but_budgets)
{
    static struct link_world_memory now;
    link_world_remember(w, &now);
    if (but_budgets) {
        now.responder.handshakes = memory->responder.handshakes;
        now.responder.proven = memory->responder.proven;
    }
    return memcmp(&now, memory, sizeof now) == 0;
}

#endif
