/* Two ends of TLS in memory, for tests: certificates, contexts, and what an engine gave.
 *
 *     CA ── Mid ── a.example, 10.0.0.2     the server's chain: leaf, Mid
 *       └── client                         a client's
 */
#ifndef PURE_TESTS_SIM_TLS_ENDS_H
#define PURE_TESTS_SIM_TLS_ENDS_H

#include "tests/sim/certificates.h"
#include "tls/engine.h"

#define TLS_TEST_NOW_S INT64_C(1900000000) /* in 2030 */

struct tls_trust;

struct tls_world {
    struct test_certificate *ca, *mid, *leaf, *client;
    struct tls_trust *trust;
};

void tls_world_init(struct tls_world *w);
void tls_world_dispose(struct tls_world *w);

/* What differs from: a server with its chain, for anybody; a client without a certificate that trusts the CA.
 */
struct tls_world_options {
    bool server, client_certificate; /* server: wants one; client: has one */
    bool aes_first;
    uint8_t pin[TLS_PIN_BYTES];
    bool pinned;
    const struct test_certificate *leaf; /* servers: instead of the world's, alone */
};
struct tls_context *tls_world_context(struct tls_world *w, const struct tls_world_options *options);

/* Trusts that one certificate. */
struct tls_trust *tls_trust_in(const struct test_certificate *c);

struct tls_end {
    struct tls_engine *engine;
    bool ready, ended;
    int error;
    size_t got_size; /* plain bytes */
    size_t got_room;
    uint8_t *got;
};

/* `name` NULL: a server. */
void tls_end_init(struct tls_end *end, struct tls_context *context, const char *name,
                  struct tls_session *session);
void tls_end_dispose(struct tls_end *end);
/* Steps until it waits, ends or fails. */
void tls_end_step(struct tls_end *end);
/* In pieces of `piece` bytes. */
void tls_end_feed(struct tls_end *end, struct span bytes, size_t piece);
/* What it has to say goes to the other one, in pieces. False: it has nothing to say. */
bool tls_end_say(struct tls_end *from, struct tls_end *to, size_t piece);
/* Both ways until both are quiet; the rounds are bounded. */
void tls_ends_talk(struct tls_end *a, struct tls_end *b, size_t piece);
/* 1.3: new keys to write with, and the other one is asked for new ones of its own. */
void tls_end_update_keys(struct tls_engine *engine);
void tls_end_send(struct tls_end *end, struct span plain);

#endif
