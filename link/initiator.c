#include "link/initiator.h"

#include "core/error.h"

#include <sodium.h>

int initiator_init(struct initiator *i, const struct host_key *key, uint8_t ciphers,
                   const uint8_t remote_public[LINK_KEY_BYTES], struct indices *indices, void *owner,
                   const struct noise_random *random)
{
    uint8_t shared[LINK_KEY_BYTES];
    assert((ciphers & ~cipher_hardware()) == 0);
    *i = (struct initiator){.key = key,
                            .ciphers = ciphers,
                            .indices = indices,
                            .owner = owner,
                            .random = *random,
                            .previous_end_ns = NEVER};
    int weak = crypto_scalarmult_curve25519(shared, key->private, remote_public);
    sodium_memzero(shared, sizeof shared);
    if (weak)
        return PE_KEY_WEAK;
    memcpy(i->remote_public, remote_public, LINK_KEY_BYTES);
    cookie_keys_derive(&i->cookie_keys, remote_public);
    return 0;
}

static void end_session(struct initiator *i, struct session *s)
{
    if (s->live)
        indices_remove(i->indices, s->index);
    session_wipe(s);
}

static void end_previous(struct initiator *i)
{
    end_session(i, &i->previous);
    i->previous_end_ns = NEVER;
}

static void end_current(struct initiator *i)
{
    end_session(i, &i->current);
    i->confirmed = false;
}

/* Forgets the handshake under way. With `keep_index` its index goes on, as the new session's. */
static void end_handshake(struct initiator *i, bool keep_index)
{
    if (i->waiting && !keep_index)
        indices_remove(i->indices, i->waiting_index);
    noise_wipe(&i->noise);
    sodium_memzero(i->sent_mac1, sizeof i->sent_mac1);
    i->waiting_index = 0;
    i->waiting = false;
}

void initiator_dispose(struct initiator *i)
{
    end_handshake(i, false);
    end_previous(i);
    end_current(i);
    sodium_memzero(i, sizeof *i);
}

void initiator_want(struct initiator *i, bool wanted)
{
    i->wanted = wanted;
}

void initiator_restart(struct initiator *i)
{
    i->restarting = true;
}

void initiator_hurry(struct initiator *i, uint64_t until_ns)
{
    i->retry_ns = min_u64(i->retry_ns, until_ns);
}

/* --- INIT --- */

static uint64_t init_due_ns(const struct initiator *i)
{
    if (!i->wanted)
        return NEVER;
    if (i->waiting || !i->current.live)
        return i->retry_ns;
    if (i->restarting)
        return max_u64(i->retry_ns, i->restart_ns);
    return max_u64(i->retry_ns, session_rekey_ns(&i->current));
}

/* 1, 2, 4 … 60 s, each within ±25 %. */
static uint64_t retry_delay_ns(struct initiator *i)
{
    uint64_t delay = i->retries < 6 ? LINK_INIT_FIRST_NS << i->retries : LINK_INIT_LAST_NS;
    i->retries++;
    return delay - delay / 4 + noise_random_u64(&i->random) % (delay / 2 + 1);
}

static void fill_payload(const struct initiator *i, uint64_t next_packet, struct link_init_payload *payload)
{
    *payload = (struct link_init_payload){.version = LINK_VERSION, .ciphers = i->ciphers};
    memcpy(payload->association, i->association, LINK_ASSOCIATION_BYTES);
    link_put64(payload->next_packet, next_packet);
    link_put64(payload->attempt, i->attempts);
    link_put32(payload->index, i->waiting_index);
}

static void seal_init(struct initiator *i, uint64_t next_packet, struct link_init *init)
{
    struct link_init_payload payload;
    uint8_t e[LINK_KEY_BYTES];
    struct noise_keys keys = {i->key->private, i->key->public, i->remote_public, NULL};
    noise_init(&i->noise, NOISE_IK, true, span_text(LINK_PROLOGUE), &keys);
    fill_payload(i, next_packet, &payload);
    noise_random_fill(&i->random, e, sizeof e);
    int error = noise_write(&i->noise, e, span_of(&payload, sizeof payload), init->e);
    assert(error == 0); /* only a weak key fails, which initiator_init refuses */
    sodium_memzero(e, sizeof e);
}

size_t initiator_write(struct initiator *i, uint64_t now_ns, uint64_t next_packet,
                       uint8_t out[LINK_INIT_BYTES])
{
    struct link_init *init = (struct link_init *)out;
    if (now_ns < init_due_ns(i))
        return 0;
    end_handshake(i, false);
    if (i->restarting)
        i->restart_ns = now_ns + LINK_INIT_FIRST_NS;
    i->waiting = true;
    i->waiting_index = indices_add(i->indices, &i->random, i->owner);
    i->attempts++;
    link_put_head(&init->head, LINK_INIT);
    link_put32(init->sender, i->waiting_index);
    seal_init(i, next_packet, init);
    cookie_sign(&i->cookie, &i->cookie_keys, now_ns, init);
    memcpy(i->sent_mac1, init->mac1, LINK_MAC_BYTES);
    i->cookie_used = i->cookie_due;
    i->cookie_due = false;
    i->retry_ns = now_ns + retry_delay_ns(i);
    return LINK_INIT_BYTES;
}

/* --- REPLY --- */

static bool is_associated(const struct initiator *i)
{
    return !sodium_is_zero(i->association, LINK_ASSOCIATION_BYTES);
}

static bool is_offered(const struct initiator *i, uint8_t cipher)
{
    return cipher == LINK_CHACHA20_POLY1305 ||
           (cipher == LINK_AES_256_GCM && i->ciphers & LINK_OFFERS_AES_256_GCM);
}

static int check_payload(const struct initiator *i, const struct link_reply *reply,
                         const struct link_reply_payload *payload)
{
    bool goes_on = payload->flags & LINK_GOES_ON;
    if (payload->version != LINK_VERSION)
        return PE_LINK_VERSION;
    if (memcmp(payload->index, reply->receiver, sizeof payload->index) != 0)
        return PE_NOT_AUTHENTIC;
    if ((goes_on && !is_associated(i)) || link_get64(payload->next_packet) > LINK_NUMBER_MAX)
        return PE_MALFORMED;
    return is_offered(i, payload->cipher) ? 0 : PE_MALFORMED;
}

static struct initiator_terms terms_of(const struct link_reply_payload *payload)
{
    return (struct initiator_terms){
        .cipher = payload->cipher,
        .goes_on = payload->flags & LINK_GOES_ON,
        .most_streams = link_get32(payload->most_streams),
        .session_credit = link_get64(payload->session_credit),
        .next_packet = payload->flags & LINK_GOES_ON ? link_get64(payload->next_packet) : 0,
    };
}

/* Makes the session of a handshake that is done the current one. */
static void begin_session(struct initiator *i, uint64_t now_ns, const struct noise *noise,
                          const struct link_reply *reply, const struct initiator_terms *terms)
{
    end_previous(i);
    if (terms->goes_on) {
        i->previous = i->current; /* whose index and keys go along */
    } else {
        end_current(i);
        memcpy(i->association, noise_hash(noise), LINK_ASSOCIATION_BYTES);
        i->attempts = 0;
    }
    uint64_t next_number = terms->goes_on ? i->previous.next_number : 0;
    session_init(&i->current, now_ns, next_number, terms->next_packet);
    session_take_keys(&i->current, terms->cipher, noise);
    i->current.index = i->waiting_index;
    i->current.remote_index = link_get32(reply->receiver);
    i->confirmed = false;
    i->restarting = false;
    i->cookie_due = false;
    i->retries = 0;
    i->retry_ns = 0;
    end_handshake(i, true);
}

int initiator_reply(struct initiator *i, uint64_t now_ns, const struct link_reply *reply,
                    struct initiator_terms *terms)
{
    struct link_reply_payload payload;
    if (!i->waiting || link_get32(reply->sender) != i->waiting_index)
        return PE_EXPIRED;
    struct noise noise = i->noise;
    int error =
        noise_read(&noise, span_of(reply->e, sizeof reply->e + sizeof reply->payload), (uint8_t *)&payload);
    if (error == 0)
        error = check_payload(i, reply, &payload);
    if (error == 0) {
        *terms = terms_of(&payload);
        begin_session(i, now_ns, &noise, reply, terms);
    }
    noise_wipe(&noise);
    sodium_memzero(&payload, sizeof payload);
    return error;
}

int initiator_cookie(struct initiator *i, uint64_t now_ns, const struct link_cookie *message)
{
    if (!i->waiting || link_get32(message->sender) != i->waiting_index)
        return PE_EXPIRED;
    int error = cookie_take(&i->cookie, &i->cookie_keys, now_ns, i->sent_mac1, message);
    if (error == 0 && !i->cookie_used) {
        i->cookie_due = true;
        i->retry_ns = now_ns;
    }
    return error;
}

void initiator_moved(struct initiator *i)
{
    i->cookie.until_ns = 0;
    i->cookie_due = false;
}

/* --- sessions --- */

int initiator_open(struct initiator *i, uint64_t now_ns, uint8_t *packet, size_t size,
                   struct session_packet *opened)
{
    uint32_t index = link_index_of(LINK_DATA, packet);
    if (i->previous.live && i->previous.index == index)
        return session_open(&i->previous, now_ns, packet, size, opened);
    if (!i->current.live || i->current.index != index)
        return PE_EXPIRED;
    int error = session_open(&i->current, now_ns, packet, size, opened);
    if (error == 0 && !i->confirmed) {
        i->confirmed = true;
        if (i->previous.live)
            i->previous_end_ns = now_ns + LINK_PREVIOUS_NS;
    }
    return error;
}

struct session *initiator_sealing(struct initiator *i, uint64_t now_ns)
{
    return session_may_seal(&i->current, now_ns) ? &i->current : NULL;
}

static uint64_t previous_end_ns(const struct initiator *i)
{
    return min_u64(i->previous_end_ns, session_end_ns(&i->previous));
}

/* A handshake that nobody waits for any more is kept for as long as a REPLY may still come. */
static uint64_t handshake_end_ns(const struct initiator *i)
{
    return i->waiting && !i->wanted ? i->retry_ns : NEVER;
}

uint64_t initiator_next_ns(const struct initiator *i)
{
    uint64_t ends = min_u64(previous_end_ns(i), session_end_ns(&i->current));
    return min_u64(init_due_ns(i), min_u64(ends, handshake_end_ns(i)));
}

void initiator_tick(struct initiator *i, uint64_t now_ns)
{
    if (now_ns >= previous_end_ns(i))
        end_previous(i);
    if (now_ns >= session_end_ns(&i->current))
        end_current(i);
    if (now_ns >= handshake_end_ns(i))
        end_handshake(i, false);
}
