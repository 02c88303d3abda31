#include "host/sealed_door.h"

#include <errno.h>
#include <stdlib.h>

#define TIME_BYTES 8
#define MAC_BYTES  (SEALED_TICKET_BYTES - TIME_BYTES)

static int by_key(const void *a, const void *b)
{
    const struct sealed_peer *left = a, *right = b;
    return memcmp(left->key, right->key, HOST_KEY_BYTES);
}

static bool may_send(const struct config_peer *peer, const char *app)
{
    for (unsigned i = 0; i < peer->app_count; i++) {
        if (strcmp(peer->apps[i], app) == 0)
            return true;
    }
    return false;
}

static int let_in(struct sealed_door *door, const struct config_peer *config, const struct registry *registry)
{
    struct sealed_peer *peer = &door->peers[door->peer_count];
    bool *apps = calloc(registry->app_count + 1, sizeof *apps);
    if (!apps)
        return -ENOMEM;
    for (unsigned i = 0; i < registry->app_count; i++)
        apps[i] = may_send(config, registry->apps[i]->name);
    *peer = (struct sealed_peer){.name = config->name, .apps = apps};
    memcpy(peer->key, config->key, HOST_KEY_BYTES);
    door->peer_count++;
    return 0;
}

int sealed_door_init(struct sealed_door *door, const struct config *config, const struct registry *registry,
                     const struct host_key *key, const struct noise_random *random, struct log *log)
{
    *door = (struct sealed_door){.key = key, .random = *random, .log = log};
    door->peers = calloc(config->peer_count + 1, sizeof *door->peers);
    int error = door->peers ? 0 : -ENOMEM;
    for (unsigned i = 0; error == 0 && i < config->peer_count; i++)
        error = let_in(door, &config->peers[i], registry);
    if (error < 0)
        sealed_door_dispose(door);
    else
        qsort(door->peers, door->peer_count, sizeof *door->peers, by_key);
    return error;
}

void sealed_door_dispose(struct sealed_door *door)
{
    for (unsigned i = 0; i < door->peer_count; i++)
        free(door->peers[i].apps);
    free(door->peers);
    sodium_memzero(door, sizeof *door);
}

const struct sealed_peer *sealed_door_find(const struct sealed_door *door, const uint8_t key[HOST_KEY_BYTES])
{
    struct sealed_peer like = {0};
    memcpy(like.key, key, HOST_KEY_BYTES);
    return bsearch(&like, door->peers, door->peer_count, sizeof like, by_key);
}

/* The 1st, 2nd, 4th … */
static bool is_said(uint64_t times)
{
    return (times & (times - 1)) == 0;
}

/* Anybody can put a key there that is not his: it is proven only behind this. */
static void say_stranger(struct sealed_door *door, const uint8_t key[HOST_KEY_BYTES])
{
    char text[HOST_KEY_PUBLIC_TEXT];
    if (!is_said(++door->strangers))
        return;
    host_key_public_text(key, text);
    log_line(door->log, LOG_WARNING,
             "sealed: a host that is not let in tried to send here (tries so far: %llu); if it may, add a "
             "section [peer NAME] with key = %s",
             (unsigned long long)door->strangers, text);
}

void sealed_door_disallow(struct sealed_door *door, const struct sealed_peer *peer, const char *app)
{
    if (!is_said(++door->disallowed))
        return;
    log_line(
        door->log, LOG_WARNING,
        "sealed: peer %s tried to send to app %s (such tries so far: %llu); if it may, add %s to apps of "
        "[peer %s]",
        peer->name, app, (unsigned long long)door->disallowed, app, peer->name);
}

struct gate {
    struct sealed_door *door;
    const struct sealed_peer *peer;
};

static bool lets_in(void *context, const uint8_t rs[NOISE_KEY_BYTES])
{
    struct gate *gate = context;
    gate->peer = sealed_door_find(gate->door, rs);
    if (!gate->peer)
        say_stranger(gate->door, rs);
    return gate->peer != NULL;
}

int sealed_door_open(struct sealed_door *door, struct span text, struct sealed_opened *opened,
                     const struct sealed_peer **peer)
{
    struct gate gate = {.door = door};
    const struct noise_gate asked = {lets_in, &gate};
    int error = sealed_request_read(text, door->key, &asked, opened);
    *peer = error == 0 ? gate.peer : NULL;
    return error;
}

/* --- tickets --- */

static void mac(const struct sealed_door *door, const struct sealed_peer *peer, const uint8_t *time,
                uint8_t out[MAC_BYTES])
{
    crypto_generichash_blake2b_state state;
    crypto_generichash_blake2b_init(&state, door->secret, sizeof door->secret, MAC_BYTES);
    crypto_generichash_blake2b_update(&state, time, TIME_BYTES);
    crypto_generichash_blake2b_update(&state, peer->key, HOST_KEY_BYTES);
    crypto_generichash_blake2b_final(&state, out, MAC_BYTES);
    sodium_memzero(&state, sizeof state);
}

void sealed_door_ticket(struct sealed_door *door, const struct sealed_peer *peer, uint64_t now_ns,
                        uint8_t ticket[SEALED_TICKET_BYTES])
{
    if (!door->drawn)
        noise_random_fill(&door->random, door->secret, sizeof door->secret);
    door->drawn = true;
    memcpy(ticket, &now_ns, TIME_BYTES);
    mac(door, peer, ticket, ticket + TIME_BYTES);
}

uint64_t sealed_door_given_ns(const struct sealed_door *door, const struct sealed_peer *peer,
                              const uint8_t ticket[SEALED_TICKET_BYTES])
{
    uint8_t right[MAC_BYTES];
    uint64_t given_ns;
    if (!door->drawn)
        return 0;
    mac(door, peer, ticket, right);
    memcpy(&given_ns, ticket, TIME_BYTES);
    return sodium_memcmp(right, ticket + TIME_BYTES, MAC_BYTES) == 0 ? given_ns : 0;
}
