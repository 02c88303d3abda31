/* A small blocking HTTP client for loopback: one kept-alive connection, requests may be pipelined. */
#ifndef PURE_EXPERIMENTS_BENCH_CLIENT_H
#define PURE_EXPERIMENTS_BENCH_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#define CLIENT_BUFFER (1u << 20) /* the largest reply */

struct client {
    int fd;              /* -1: not connected */
    size_t used, filled; /* in[used, filled) is received and not yet handed out */
    char in[CLIENT_BUFFER];
};

struct client_reply {
    int status;
    size_t size;      /* of the whole message */
    const char *body; /* valid until the next call; not NUL-terminated */
    size_t body_size;
};

/* 0 or a negative errno. A reply is waited for 60 s. */
int client_open(struct client *client, uint16_t port);
void client_close(struct client *client);

/* Writes one request, without waiting for its reply. `type` NULL: no body, GET. 0 or a negative errno. */
int client_send(struct client *client, const char *target, const char *type, const char *body, size_t size);

/* The next reply. 0 or a negative errno: -EBADMSG when it cannot be read, -ECONNRESET at the end. */
int client_reply(struct client *client, struct client_reply *reply);

/* Both. 0 and a reply of any status, or a negative errno. */
int client_get(struct client *client, const char *target, struct client_reply *reply);

#endif
