#include "tests/sim/tls_ends.h"

#include "tls/engine_private.h"
#include "tls/trust.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS_MAX 1000000

void tls_world_init(struct tls_world *w)
{
    w->ca = test_certificate(&(struct test_certificate_options){.subject = "CA", .ca = true});
    w->mid =
        test_certificate(&(struct test_certificate_options){.subject = "Mid", .ca = true, .issuer = w->ca});
    w->leaf = test_certificate(&(struct test_certificate_options){
        .subject = "a.example", .names = "DNS:a.example,IP:10.0.0.2", .issuer = w->mid});
    w->client = test_certificate(&(struct test_certificate_options){
        .subject = "client", .names = "DNS:client.example", .issuer = w->ca});
    w->trust = tls_trust_in(w->ca);
}

void tls_world_dispose(struct tls_world *w)
{
    tls_trust_drop(w->trust);
    test_certificate_free(w->ca);
    test_certificate_free(w->mid);
    test_certificate_free(w->leaf);
    test_certificate_free(w->client);
    test_files_close();
}

struct tls_trust *tls_trust_in(const struct test_certificate *c)
{
    struct tls_trust *trust;
    char why[200];
    unsigned passed_over;
    int error = tls_trust_read(&trust, test_chain_file(&c, 1), &passed_over, why, sizeof why);
    assert(error == 0);
    (void)error;
    return trust;
}

struct tls_context *tls_world_context(struct tls_world *w, const struct tls_world_options *o)
{
    const struct test_certificate *chain[] = {o->server ? w->leaf : w->client, w->mid};
    if (o->leaf)
        chain[0] = o->leaf;
    struct tls_options options = {.server = o->server, .aes_first = o->aes_first, .pin_count = o->pinned};
    memcpy(options.pins[0], o->pin, sizeof o->pin);
    if (!o->server || o->client_certificate)
        options.trust = w->trust;
    if (o->server || o->client_certificate) {
        options.certificate = test_chain_file(chain, o->server && !o->leaf ? 2 : 1);
        options.key = test_key_file(chain[0]);
    }
    struct tls_context *context;
    char why[200];
    int error = tls_context_make(&context, &options, why, sizeof why);
    if (error < 0)
        fprintf(stderr, "%s\n", why);
    assert(error == 0);
    return context;
}

void tls_end_init(struct tls_end *end, struct tls_context *context, const char *name,
                  struct tls_session *session)
{
    *end = (struct tls_end){0};
    int error = tls_engine_make(&end->engine, context, name, session, TLS_TEST_NOW_S);
    assert(error == 0);
    (void)error;
    tls_end_step(end);
}

void tls_end_dispose(struct tls_end *end)
{
    tls_engine_free(end->engine);
    free(end->got);
}

static void keep(struct tls_end *end, const uint8_t *plain, size_t size)
{
    if (end->got_size + size > end->got_room) {
        end->got_room = 2 * (end->got_size + size);
        end->got = realloc(end->got, end->got_room);
        assert(end->got);
    }
    memcpy(end->got + end->got_size, plain, size);
    end->got_size += size;
}

void tls_end_step(struct tls_end *end)
{
    uint8_t plain[TLS_PLAIN_MAX];
    size_t size;
    for (unsigned i = 0; i < ROUNDS_MAX; i++) {
        switch (tls_engine_step(end->engine, plain, sizeof plain, &size)) {
        case TLS_READY:
            assert(!end->ready);
            end->ready = true;
            break;
        case TLS_PLAIN:
            assert(end->ready && size > 0);
            keep(end, plain, size);
            break;
        case TLS_WAITS:
            return;
        case TLS_ENDED:
            end->ended = true;
            return;
        case TLS_FAILED:
            end->error = tls_engine_error(end->engine);
            assert(end->error < 0);
            return;
        }
    }
    assert(!"bounded");
}

void tls_end_feed(struct tls_end *end, struct span bytes, size_t piece)
{
    while (bytes.size > 0) {
        size_t size = min_size(piece, bytes.size);
        uint8_t *copy = malloc(size); /* of just that size: reads behind it are seen */
        assert(copy);
        memcpy(copy, bytes.data, size);
        tls_engine_feed(end->engine, span_of(copy, size), TLS_TEST_NOW_S);
        tls_end_step(end);
        free(copy);
        bytes = span_of(bytes.data + size, bytes.size - size);
    }
}

bool tls_end_say(struct tls_end *from, struct tls_end *to, size_t piece)
{
    struct span output = tls_engine_output(from->engine);
    if (output.size == 0)
        return false;
    tls_end_feed(to, output, piece);
    tls_engine_took(from->engine, output.size);
    tls_end_step(from);
    return true;
}

void tls_ends_talk(struct tls_end *a, struct tls_end *b, size_t piece)
{
    bool quiet = false;
    for (unsigned i = 0; !quiet; i++) {
        assert(i < ROUNDS_MAX);
        quiet = !tls_end_say(a, b, piece);
        quiet = !tls_end_say(b, a, piece) && quiet;
    }
}

void tls_end_send(struct tls_end *end, struct span plain)
{
    int error = tls_engine_write(end->engine, plain.data, plain.size);
    assert(error == 0);
    (void)error;
}

void tls_end_update_keys(struct tls_engine *engine)
{
    int result = wolfSSL_update_keys(engine->wolf);
    assert(result == WOLFSSL_SUCCESS);
    (void)result;
}
