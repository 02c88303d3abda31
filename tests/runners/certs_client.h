/* The client of the certs runner: the product's secured stream on the product's ring, with the wall clock of
 * the case. Included by programs of one file. */
#ifndef PURE_TESTS_RUNNERS_CERTS_CLIENT_H
#define PURE_TESTS_RUNNERS_CERTS_CLIENT_H

#include "tests/runners/certs_cases.h"
#include "tls/context.h"
#include "tls/secure_stream.h"
#include "uring/uring.h"

#include <netinet/in.h>

#define CLIENT_PATIENCE_NS (10 * NS_PER_S)

struct cert_client {
    struct secure_stream stream; /* first: what the events are given */
    struct io *io;
    struct io_backend backend; /* the ring's, but for the wall clock */
    struct tls_context *context;
    const char *name;
    bool plain, verdict, closed; /* connected without TLS yet; there is a verdict; it is over */
    int error;
};

static uint64_t client_wall_ms; /* of the case that runs: io_backend.wall_ms has no room for it */

static uint64_t client_wall(struct io *io)
{
    (void)io;
    return client_wall_ms;
}

static struct cert_client *client_of(struct stream *s)
{
    return (struct cert_client *)container_of(s, struct secure_stream, stream);
}

static void client_conclude(struct cert_client *client, int error)
{
    client->verdict = true;
    client->error = error;
    secure_close(&client->stream);
}

static void client_connected(struct stream *s)
{
    struct cert_client *client = client_of(s);
    bool was_plain = client->plain;
    client->plain = false;
    int error = was_plain ? secure_start(&client->stream, client->context, client->name, NULL) : 0;
    if (!was_plain || error < 0)
        client_conclude(client, error);
}

static void client_data(struct stream *s, const uint8_t *bytes, size_t size)
{
    (void)s, (void)bytes, (void)size;
}

static void client_sent(struct stream *s, size_t size, bool all)
{
    (void)s, (void)size, (void)all;
}

static void client_ended(struct stream *s)
{
    client_conclude(client_of(s), PE_CLOSED);
}

static void client_failed(struct stream *s, int error)
{
    client_conclude(client_of(s), error);
}

static void client_closed(struct stream *s)
{
    client_of(s)->closed = true;
}

static const struct stream_events client_events = {.connected = client_connected,
                                                   .data = client_data,
                                                   .ended = client_ended,
                                                   .sent = client_sent,
                                                   .failed = client_failed,
                                                   .closed = client_closed};

static void client_init(struct cert_client *client)
{
    char why[256] = "";
    if (uring_probe(why, sizeof why) < 0 || uring_open(&client->io, NULL) < 0)
        case_wrong("io_uring", "%s", why);
    client->backend = *client->io->backend;
    client->backend.wall_ms = client_wall;
    client->io->backend = &client->backend;
}

static void client_dispose(struct cert_client *client)
{
    io_dispose(client->io);
}

/* 0: the peer is believed; or what the wire would get. */
static int client_ask(struct cert_client *client, const struct cert_case *c, struct tls_trust *trust,
                      const char *name, const struct sockaddr_in *address)
{
    struct tls_options options = {.trust = trust};
    char why[256];
    int error = tls_context_make(&client->context, &options, why, sizeof why);
    if (error < 0)
        case_wrong(c->id, "%s", why);
    client->name = name;
    client->plain = true;
    client->verdict = client->closed = false;
    client_wall_ms = c->now_s > 0 ? 1000 * (uint64_t)c->now_s : 0;
    secure_init(&client->stream, client->io, &client_events, -1);
    error = secure_connect(&client->stream, (const struct sockaddr *)address, sizeof *address, NULL);
    if (error < 0)
        case_wrong(c->id, "no connection to the loopback interface");
    uint64_t deadline_ns = io_now_ns(client->io) + CLIENT_PATIENCE_NS;
    while (!client->closed && io_now_ns(client->io) < deadline_ns) {
        if (io_wait(client->io, deadline_ns) < 0)
            case_wrong(c->id, "the ring failed");
    }
    if (!client->closed)
        case_wrong(c->id, "no verdict in time");
    tls_context_drop(client->context);
    return client->error;
}

#endif
