/* A client and a server of ours, for tests/unit/test_tls_*.c. */
#ifndef PURE_TESTS_UNIT_TLS_PAIR_H
#define PURE_TESTS_UNIT_TLS_PAIR_H

#include "tests/sim/tls_ends.h"
#include "tls/context_private.h"

#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define WHOLE SIZE_MAX

static struct tls_world world;

struct pair {
    struct tls_context *server_context, *client_context;
    struct tls_end server, client;
};

static inline void pair_contexts(struct pair *p, bool client_certificates)
{
    p->server_context = tls_world_context(
        &world, &(struct tls_world_options){.server = true, .client_certificate = client_certificates});
    p->client_context =
        tls_world_context(&world, &(struct tls_world_options){.client_certificate = client_certificates});
}

static inline void pair_drop(struct pair *p)
{
    tls_context_drop(p->server_context);
    tls_context_drop(p->client_context);
}

static inline void pair_start(struct pair *p, struct tls_session *session)
{
    tls_end_init(&p->server, p->server_context, NULL, NULL);
    tls_end_init(&p->client, p->client_context, "a.example", session);
}

static inline void pair_stop(struct pair *p)
{
    tls_end_dispose(&p->server);
    tls_end_dispose(&p->client);
}

static inline void not_1_3(struct tls_context *context)
{
    wolfSSL_CTX_set_options(context->wolf, WOLFSSL_OP_NO_TLSv1_3);
}

static inline void assert_got(const struct tls_end *end, const char *text)
{
    assert_int_equal(end->got_size, strlen(text));
    assert_memory_equal(end->got, text, strlen(text));
}

static inline void assert_ready(struct pair *p, size_t piece)
{
    tls_ends_talk(&p->client, &p->server, piece);
    assert_int_equal(p->client.error, 0);
    assert_int_equal(p->server.error, 0);
    assert_true(p->client.ready && p->server.ready);
}

static inline void assert_talks(struct pair *p, size_t piece)
{
    assert_ready(p, piece);
    tls_end_send(&p->client, span_text("question"));
    tls_end_send(&p->server, span_text("answer"));
    tls_ends_talk(&p->client, &p->server, piece);
    assert_got(&p->server, "question");
    assert_got(&p->client, "answer");
}

static inline int set_up(void **state)
{
    (void)state;
    tls_world_init(&world);
    return sodium_init() < 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    tls_world_dispose(&world);
    return 0;
}

#endif
