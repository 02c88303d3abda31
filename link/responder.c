#include "link/responder.h"

#include "core/error.h"
#include "noise/noise.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

int responder_init(struct responder *r, uint64_t now_ns, const struct host_key *key, uint8_t ciphers,
                   uint32_t peer_limit, const struct noise_random *random,
                   const struct responder_events *events)
{
    assert(peer_limit > 0 && peer_limit <= RESPONDER_PEERS_MAX);
    assert((ciphers & ~cipher_hardware()) == 0);
    *r = (struct responder){.key = key,
                            .ciphers = ciphers,
                            .random = *random,
                            .events = *events,
                            .peer_limit = peer_limit,
                            .next_ns = NEVER};
    r->peers = calloc(peer_limit, sizeof *r->peers);
    if (!r->peers)
        return -ENOMEM;
    int error = indices_init(&r->indices, peer_limit * RESPONDER_SESSIONS);
    if (error < 0) {
        free(r->peers);
        return error;
    }
    cookie_keys_derive(&r->cookie_keys, key->public);
    cookie_jar_init(&r->jar, now_ns, random);
    return 0;
}

void responder_dispose(struct responder *r)
{
    for (uint32_t peer = 0; peer < r->peer_limit; peer++)
        responder_forbid(r, peer);
    indices_dispose(&r->indices);
    free(r->peers);
    sodium_memzero(r, sizeof *r);
}

/* --- peers --- */

static int find_peer(const struct responder *r, const uint8_t key[LINK_KEY_BYTES])
{
    for (uint32_t peer = 0; peer < r->peer_limit; peer++)
        if (r->peers[peer].allowed && memcmp(r->peers[peer].key, key, LINK_KEY_BYTES) == 0)
            return (int)peer;
    return PE_UNKNOWN_KEY;
}

int responder_allow(struct responder *r, const uint8_t key[LINK_KEY_BYTES])
{
    int known = find_peer(r, key);
    if (known >= 0)
        return known;
    for (uint32_t peer = 0; peer < r->peer_limit; peer++) {
        if (r->peers[peer].allowed)
            continue;
        r->peers[peer].allowed = true;
        memcpy(r->peers[peer].key, key, LINK_KEY_BYTES);
        return (int)peer;
    }
    return PE_FULL;
}

static void end_session(struct responder *r, struct responder_session *s)
{
    if (s->role == RESPONDER_FREE)
        return;
    indices_remove(&r->indices, s->session.index);
    sodium_memzero(s, sizeof *s);
}

static void end_sessions(struct responder *r, struct responder_peer *peer)
{
    for (unsigned i = 0; i < RESPONDER_SESSIONS; i++)
        end_session(r, &peer->sessions[i]);
}

void responder_forget(struct responder *r, uint32_t peer)
{
    assert(peer < r->peer_limit);
    end_sessions(r, &r->peers[peer]);
    memset(r->peers[peer].association, 0, LINK_ASSOCIATION_BYTES);
    r->peers[peer].attempt = 0;
}

void responder_forbid(struct responder *r, uint32_t peer)
{
    responder_forget(r, peer);
    r->peers[peer] = (struct responder_peer){0};
}

static struct responder_session *session_of(struct responder_peer *peer, enum responder_role role)
{
    for (unsigned i = 0; i < RESPONDER_SESSIONS; i++)
        if (peer->sessions[i].role == role)
            return &peer->sessions[i];
    return NULL;
}

/* --- how much work strangers get --- */

/* Takes one of `rate` a second. The budget lacks what is between now and full_ns. */
static bool spend(struct responder_budget *budget, uint64_t now_ns, uint64_t rate)
{
    uint64_t one_ns = NS_PER_S / rate, full_ns = max_u64(budget->full_ns, now_ns) + one_ns;
    if (full_ns - now_ns > rate * one_ns)
        return false;
    budget->full_ns = full_ns;
    return true;
}

/* Whether an INIT, whose mac1 is right, is worth its handshake now: 1; 0: it is to be answered by a COOKIE. A
 * mac2 that is wrong always is: its sender has to learn that its cookie is no good. */
static int admit(struct responder *r, uint64_t now_ns, const struct cookie_source *source,
                 const struct link_init *init)
{
    switch (cookie_mac2_check(&r->jar, now_ns, source, init)) {
    case COOKIE_RIGHT:
        return spend(&r->proven, now_ns, LINK_PROVEN_HANDSHAKES) ? 1 : PE_LINK_BUSY;
    case COOKIE_NONE:
        return spend(&r->handshakes, now_ns, LINK_HANDSHAKES) ? 1 : 0;
    default:
        return 0;
    }
}

/* --- INIT --- */

static void report_unknown(struct responder *r, uint64_t now_ns, const uint8_t key[LINK_KEY_BYTES])
{
    r->unreported++;
    if (now_ns < r->report_ns)
        return;
    r->report_ns = now_ns + RESPONDER_REPORT_NS;
    r->events.unknown(r->events.context, key, r->unreported);
    r->unreported = 0;
}

static bool is_duplicate(const struct responder_peer *peer, const struct link_init *init)
{
    for (unsigned i = 0; i < RESPONDER_SESSIONS; i++)
        if (peer->sessions[i].role != RESPONDER_FREE &&
            memcmp(peer->sessions[i].e, init->e, LINK_KEY_BYTES) == 0)
            return true;
    return false;
}

static bool names_current(const struct responder_peer *peer, const struct link_init_payload *payload)
{
    return !sodium_is_zero(peer->association, LINK_ASSOCIATION_BYTES) &&
           memcmp(peer->association, payload->association, LINK_ASSOCIATION_BYTES) == 0;
}

/* What an authentic INIT of a peer says: is it one to answer? */
static int check_init(const struct responder_peer *peer, const struct link_init *init,
                      const struct link_init_payload *payload)
{
    if (payload->version != LINK_VERSION)
        return PE_LINK_VERSION;
    if (memcmp(payload->index, init->sender, sizeof payload->index) != 0)
        return PE_NOT_AUTHENTIC;
    if (link_get64(payload->next_packet) > LINK_NUMBER_MAX)
        return PE_MALFORMED;
    if (is_duplicate(peer, init))
        return PE_REPLAYED;
    if (names_current(peer, payload) && link_get64(payload->attempt) <= peer->attempt)
        return PE_REPLAYED;
    return 0;
}

/* Where the next unconfirmed session goes. One that goes on takes the place of the one before that did: its
 * sender has forgotten that. Any other, which may be a replay, the place of the oldest other: it displaces
 * none that goes on. */
static struct responder_session *choose_place(struct responder *r, struct responder_peer *peer, bool goes_on)
{
    struct responder_session *oldest = NULL, *before = NULL;
    unsigned unconfirmed = 0;
    for (unsigned i = 0; i < RESPONDER_SESSIONS; i++) {
        struct responder_session *s = &peer->sessions[i];
        if (s->role != RESPONDER_UNCONFIRMED)
            continue;
        unconfirmed++;
        if (s->goes_on)
            before = s;
        else if (!oldest || s->session.born_ns < oldest->session.born_ns)
            oldest = s;
    }
    if (goes_on && before)
        end_session(r, before);
    else if (unconfirmed == LINK_UNCONFIRMED)
        end_session(r, oldest);
    return session_of(peer, RESPONDER_FREE);
}

/* AES-256-GCM if both ends have it in hardware. */
static enum link_cipher choose_cipher(const struct responder *r, const struct link_init_payload *init)
{
    return r->ciphers & init->ciphers & LINK_OFFERS_AES_256_GCM ? LINK_AES_256_GCM : LINK_CHACHA20_POLY1305;
}

static void fill_reply(struct responder *r, const struct responder_session *made, enum link_cipher cipher,
                       struct link_reply_payload *payload)
{
    struct responder_terms terms = {0};
    r->events.offer(r->events.context, made->peer, made->goes_on, &terms);
    *payload = (struct link_reply_payload){
        .version = LINK_VERSION, .flags = made->goes_on ? LINK_GOES_ON : 0, .cipher = (uint8_t)cipher};
    link_put32(payload->most_streams, terms.most_streams);
    link_put64(payload->session_credit, terms.session_credit);
    link_put64(payload->next_packet, made->goes_on ? terms.next_packet : 0);
    link_put32(payload->index, made->session.index);
}

/* Writes REPLY, and the keys that come of it into the session. */
static int seal_reply(struct responder *r, struct noise *noise, struct responder_session *made,
                      enum link_cipher cipher, struct link_reply *reply)
{
    struct link_reply_payload payload;
    uint8_t e[LINK_KEY_BYTES];
    fill_reply(r, made, cipher, &payload);
    link_put_head(&reply->head, LINK_REPLY);
    link_put32(reply->receiver, made->session.index);
    link_put32(reply->sender, made->session.remote_index);
    noise_random_fill(&r->random, e, sizeof e);
    int error = noise_write(noise, e, span_of(&payload, sizeof payload), reply->e);
    if (error == 0)
        session_take_keys(&made->session, cipher, noise);
    sodium_memzero(e, sizeof e);
    sodium_memzero(&payload, sizeof payload);
    return error;
}

static void fill_session(struct responder_session *made, uint64_t now_ns, uint32_t peer, bool goes_on,
                         const struct link_init *init, const struct link_init_payload *payload)
{
    *made = (struct responder_session){
        .role = RESPONDER_UNCONFIRMED, .peer = peer, .goes_on = goes_on, .end_ns = now_ns + LINK_OPEN_NS};
    memcpy(made->e, init->e, LINK_KEY_BYTES);
    session_init(&made->session, now_ns, 0, goes_on ? link_get64(payload->next_packet) : 0);
    made->session.remote_index = link_get32(init->sender);
}

/* An INIT that is to be answered: the session it makes, and its REPLY. */
static int accept_init(struct responder *r, uint64_t now_ns, uint32_t number, const struct link_init *init,
                       const struct link_init_payload *payload, struct noise *noise, struct link_reply *reply)
{
    struct responder_peer *peer = &r->peers[number];
    bool goes_on = names_current(peer, payload);
    struct responder_session *made = choose_place(r, peer, goes_on);
    fill_session(made, now_ns, number, goes_on, init, payload);
    made->session.index = indices_add(&r->indices, &r->random, made);
    int error = seal_reply(r, noise, made, choose_cipher(r, payload), reply);
    if (error < 0) {
        end_session(r, made);
        return error;
    }
    memcpy(made->association, goes_on ? peer->association : noise_hash(noise), LINK_ASSOCIATION_BYTES);
    if (goes_on)
        peer->attempt = link_get64(payload->attempt);
    r->next_ns = min_u64(r->next_ns, made->end_ns);
    return LINK_REPLY_BYTES;
}

static int handshake(struct responder *r, uint64_t now_ns, const struct link_init *init,
                     struct link_reply *reply)
{
    struct noise noise;
    struct link_init_payload payload;
    struct noise_keys keys = {r->key->private, r->key->public, NULL, NULL};
    size_t size = offsetof(struct link_init, mac1) - offsetof(struct link_init, e);
    noise_init(&noise, NOISE_IK, false, span_text(LINK_PROLOGUE), &keys);
    int error = noise_read(&noise, span_of(init->e, size), (uint8_t *)&payload);
    int peer = error < 0 ? error : find_peer(r, noise.rs);
    if (peer == PE_UNKNOWN_KEY)
        report_unknown(r, now_ns, noise.rs);
    if (peer >= 0)
        error = check_init(&r->peers[peer], init, &payload);
    int answer = peer < 0 ? peer : error;
    if (answer == 0)
        answer = accept_init(r, now_ns, (uint32_t)peer, init, &payload, &noise, reply);
    noise_wipe(&noise);
    sodium_memzero(&payload, sizeof payload);
    return answer;
}

int responder_answer(struct responder *r, uint64_t now_ns, const struct cookie_source *source,
                     const struct link_init *init, uint8_t out[LINK_ANSWER_BYTES])
{
    if (!cookie_mac1_right(&r->cookie_keys, init))
        return PE_NOT_AUTHENTIC;
    int admitted = admit(r, now_ns, source, init);
    if (admitted < 0)
        return admitted;
    if (admitted > 0)
        return handshake(r, now_ns, init, (struct link_reply *)out);
    cookie_answer(&r->jar, &r->cookie_keys, now_ns, source, init, (struct link_cookie *)out);
    return LINK_COOKIE_BYTES;
}

/* --- DATA --- */

/* Ends the unconfirmed sessions that began before `s`: their sender has forgotten them. */
static void end_older(struct responder *r, struct responder_peer *peer, const struct responder_session *s)
{
    for (unsigned i = 0; i < RESPONDER_SESSIONS; i++) {
        struct responder_session *other = &peer->sessions[i];
        if (other->role == RESPONDER_UNCONFIRMED && other != s &&
            other->session.born_ns <= s->session.born_ns)
            end_session(r, other);
    }
}

/* Makes an unconfirmed session the current one, and the current one the previous one, or nothing if its
 * association is over. */
static void confirm(struct responder *r, struct responder_peer *peer, uint64_t now_ns,
                    struct responder_session *s)
{
    struct responder_session *current = session_of(peer, RESPONDER_CURRENT);
    struct responder_session *previous = session_of(peer, RESPONDER_PREVIOUS);
    end_older(r, peer, s);
    if (previous)
        end_session(r, previous);
    if (current && s->goes_on) {
        current->role = RESPONDER_PREVIOUS;
        current->end_ns = min_u64(current->end_ns, now_ns + LINK_PREVIOUS_NS);
        r->next_ns = min_u64(r->next_ns, current->end_ns);
    } else if (current) {
        end_session(r, current);
    }
    s->role = RESPONDER_CURRENT;
    if (!s->goes_on) {
        memcpy(peer->association, s->association, LINK_ASSOCIATION_BYTES);
        peer->attempt = 0;
    }
}

int responder_named(const struct responder *r, const uint8_t *packet)
{
    const struct responder_session *s = indices_find(&r->indices, link_index_of(LINK_DATA, packet));
    return s ? (int)s->peer : PE_EXPIRED;
}

int responder_open(struct responder *r, uint64_t now_ns, uint8_t *packet, size_t size,
                   struct responder_packet *opened)
{
    struct responder_session *s = indices_find(&r->indices, link_index_of(LINK_DATA, packet));
    if (!s || now_ns >= s->end_ns)
        return PE_EXPIRED;
    struct responder_peer *peer = &r->peers[s->peer];
    if (s->goes_on && memcmp(s->association, peer->association, LINK_ASSOCIATION_BYTES) != 0)
        return PE_EXPIRED; /* another began before this one was confirmed */
    int error = session_open(&s->session, now_ns, packet, size, &opened->packet);
    if (error < 0)
        return error;
    opened->peer = s->peer;
    opened->confirmed = s->role == RESPONDER_UNCONFIRMED;
    opened->begins = opened->confirmed && !s->goes_on;
    if (opened->confirmed)
        confirm(r, peer, now_ns, s);
    return 0;
}

struct session *responder_sealing(struct responder *r, uint32_t peer, uint64_t now_ns)
{
    assert(peer < r->peer_limit);
    struct responder_session *s = session_of(&r->peers[peer], RESPONDER_CURRENT);
    return s && session_may_seal(&s->session, now_ns) ? &s->session : NULL;
}

void responder_tick(struct responder *r, uint64_t now_ns)
{
    if (now_ns < r->next_ns)
        return;
    r->next_ns = NEVER;
    for (uint32_t peer = 0; peer < r->peer_limit; peer++) {
        for (unsigned i = 0; i < RESPONDER_SESSIONS; i++) {
            struct responder_session *s = &r->peers[peer].sessions[i];
            if (s->role != RESPONDER_FREE && now_ns >= s->end_ns)
                end_session(r, s);
            else if (s->role != RESPONDER_FREE)
                r->next_ns = min_u64(r->next_ns, s->end_ns);
        }
    }
}
