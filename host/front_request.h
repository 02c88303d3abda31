/* From a head to a request. */
#ifndef PURE_HOST_FRONT_REQUEST_H
#define PURE_HOST_FRONT_REQUEST_H

#include "host/front_client.h"

/* Fields of a request that matter here, each given once at most. `data` NULL: absent. */
struct request_fields {
    struct span host, authorization, content_type, content_encoding, expect, key;
    struct span stream, epoch, first, count, event, base, sent, sealed; /* Pure-… */
    bool close, keep_alive;                                             /* elements of Connection */
    bool length, coding; /* Content-Length, Transfer-Encoding */
};

/* Begins the request whose head has been parsed into front->head: adds its exchange and prepares c->body.
 * Errors are exchanges, too, ready at once. */
void front_request_begin(struct client *c);

/* The app that the request in front->head needs room of, or NULL. A sealed one does not say before it is
 * opened: then it is taken for the one that refused the connection last. */
struct front_app *front_request_asks(const struct client *c);

/* Room that it asks the app's inbox for, at most; if its head does not say, it is taken to be as large as the
 * one that was refused. 0: that is not known, or it is more than the inbox ever
 * takes, which it is to be told. */
uint64_t front_request_bytes(const struct client *c, const struct front_app *app);

/* Why the app takes nothing now, whatever its inbox has room for, or NULL. */
const char *front_request_refusal(const struct front *front, const struct front_app *app);

/* Room for a body of `size` bytes (0: not known) in the app's inbox, asked for before it comes, in vain if
 * bodies that are coming in have their share already: then it is asked for again when its bytes are there.
 * Sets the body's app and sink. False: declined. Without overload_without.early nothing is asked before the
 * bytes are here. */
bool front_request_admit(struct client *c, struct front_app *app, enum body_sink sink, uint64_t size);

/* A head that could not be parsed (PE_MALFORMED, PE_TOO_LARGE): adds an exchange that says so and closes. */
void front_request_malformed(struct client *c, struct span bytes, int error);

#endif
