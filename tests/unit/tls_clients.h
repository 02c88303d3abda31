/* Clients that speak TLS to a front in a simulated world: a scripted peer's bytes, with an engine of ours
 * behind them. Included by tests. */
#ifndef PURE_TESTS_UNIT_TLS_CLIENTS_H
#define PURE_TESTS_UNIT_TLS_CLIENTS_H

#include "tests/sim/front_world.h"
#include "tests/sim/tls_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct tls_client {
    struct front_world *w;
    struct sim_connection *c;
    struct tls_end end;
    size_t fed;  /* of what the connection received */
    size_t said; /* bytes of ciphertext */
    size_t cut;  /* the said bytes pause there; 0: nowhere */
    size_t pace; /* most bytes at a time; 0: any */
};

static inline void client_connect(struct tls_client *client, struct front_world *w,
                                  struct tls_context *context)
{
    *client = (struct tls_client){.w = w};
    client->c = sim_client(w->sim, "10.0.0.9", WORLD_SECURED, NULL, 0);
    tls_end_init(&client->end, context, "a.example", NULL);
}

static inline void client_forget(struct tls_client *client)
{
    tls_end_dispose(&client->end);
}

static inline void client_hear(struct tls_client *client)
{
    struct span all = sim_received(client->c);
    if (all.size > client->fed)
        tls_end_feed(&client->end, span_of(all.data + client->fed, all.size - client->fed), SIZE_MAX);
    client->fed = all.size;
}

static inline void client_say_bytes(struct tls_client *client, struct span bytes)
{
    if (client->cut > client->said && client->cut < client->said + bytes.size) {
        size_t first = client->cut - client->said;
        sim_peer_send(client->c, bytes.data, first);
        sim_run_for(client->w->sim, NS_PER_MS);
        client->said += first;
        bytes = span_of(bytes.data + first, bytes.size - first);
    }
    sim_peer_send(client->c, bytes.data, bytes.size);
    client->said += bytes.size;
}

static inline void client_say(struct tls_client *client)
{
    struct span output = tls_engine_output(client->end.engine);
    size_t size = client->pace > 0 ? min_size(client->pace, output.size) : output.size;
    if (size == 0)
        return;
    client_say_bytes(client, span_of(output.data, size));
    tls_engine_took(client->end.engine, size);
    tls_end_step(&client->end);
}

/* A step of so long; what came is heard, what there is to say is said. */
static inline void client_step(struct tls_client *client, uint64_t ns)
{
    client_say(client);
    sim_run_for(client->w->sim, ns);
    client_hear(client);
}

static inline void client_settle(struct tls_client *client)
{
    for (unsigned i = 0; i < 20; i++)
        client_step(client, NS_PER_MS);
}

/* Plain bytes, in records of at most `piece` bytes. */
static inline void client_write(struct tls_client *client, const void *bytes, size_t size, size_t piece)
{
    const uint8_t *at = bytes;
    for (size_t left = size; left > 0;) {
        size_t record = min_size(left, piece);
        tls_end_send(&client->end, span_of(at, record));
        client_say(client);
        at += record;
        left -= record;
    }
}

static inline void client_ask(struct tls_client *client, const char *text)
{
    client_write(client, text, strlen(text), TLS_PLAIN_MAX);
    client_settle(client);
}

static inline void client_greet(struct tls_client *client, struct front_world *w, struct tls_context *context)
{
    client_connect(client, w, context);
    client_settle(client);
    assert_true(client->end.ready);
}

/* How many times `text` is in the plain bytes that came. */
static inline unsigned client_count(const struct tls_client *client, const char *text)
{
    size_t size = strlen(text);
    unsigned count = 0;
    for (size_t i = 0; i + size <= client->end.got_size; i++)
        count += memcmp(client->end.got + i, text, size) == 0;
    return count;
}

#endif
