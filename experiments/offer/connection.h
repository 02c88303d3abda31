/* The connections of offer: non-blocking, kept, opened again when they end. What is to be sent waits in a
 * buffer of bounded size; replies are handed over whole, in order. */
#ifndef PURE_EXPERIMENTS_OFFER_CONNECTION_H
#define PURE_EXPERIMENTS_OFFER_CONNECTION_H

#include "experiments/common/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONNECTION_OUT   (64u * 1024)
#define CONNECTION_IN    (32u * 1024)
#define CONNECTION_REST  UINT64_C(10000000) /* ns, from an end to the next try */
#define CONNECTION_BATCH 256                /* events of epoll at a time */

struct connection {
    int fd;        /* -1: none */
    bool writable; /* EPOLLOUT is waited for: connecting, or the socket is full */
    uint64_t rest_until_ns;
    size_t sent, filled; /* out[sent, filled) is to be sent */
    size_t received;     /* in[0, received) is not a whole reply yet */
    uint8_t *out;        /* CONNECTION_OUT */
    char *in;            /* CONNECTION_IN */
};

struct connections {
    int epoll;
    uint16_t port;
    unsigned count;
    struct connection *all;
    /* Connection i has a reply; or its end: whatever was in flight has no answer. */
    void (*replied)(void *context, unsigned i, const struct message *reply, const char *bytes);
    void (*ended)(void *context, unsigned i);
    void *context;
};

/* 0, or -1 after a line on stderr. What it holds is freed with the process. */
int connections_init(struct connections *c, uint16_t port, unsigned count);

static inline bool connection_open(const struct connections *c, unsigned i)
{
    return c->all[i].fd >= 0;
}

/* Room for `size` bytes to be sent, NULL if there is none or no connection. They are the request once
 * connection_commit says so. */
uint8_t *connection_room(struct connections *c, unsigned i, size_t size);
void connection_commit(struct connections *c, unsigned i, size_t size);

/* Sends what waits, as far as the socket takes it. */
void connection_flush(struct connections *c, unsigned i);

/* Opens those that have rested. */
void connections_open(struct connections *c, uint64_t now_ns);

/* Waits until `until_ns` at most, and handles what comes. */
void connections_wait(struct connections *c, uint64_t now_ns, uint64_t until_ns);

#endif
