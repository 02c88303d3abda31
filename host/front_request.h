/* From a head to a request. */
#ifndef PURE_HOST_FRONT_REQUEST_H
#define PURE_HOST_FRONT_REQUEST_H

#include "host/front_client.h"

/* Fields of a request that matter here, each given once at most. `data` NULL: absent. */
struct request_fields {
    struct span host, authorization, content_type, content_encoding, expect, key;
    struct span stream, epoch, first, count, event, base, sent; /* Pure-… */
    bool close, keep_alive;                                     /* elements of Connection */
    bool length, coding;                                        /* Content-Length, Transfer-Encoding */
};

/* Begins the request whose head has been parsed into front->head: adds its exchange and prepares c->body.
 * Errors are exchanges, too, ready at once. */
void front_request_begin(struct client *c);

/* A head that could not be parsed (PE_MALFORMED, PE_TOO_LARGE): adds an exchange that says so and closes. */
void front_request_malformed(struct client *c, struct span bytes, int error);

#endif
