/* Request heads of a wire. What never changes is written once; each request gets a copy of it and behind it
 * the lines with its own numbers, in memory of the caller, so that a wire may have several in flight. */
#ifndef PURE_WIRE_REQUEST_H
#define PURE_WIRE_REQUEST_H

#include "wire/options.h"

struct request_numbers {
    uint64_t first;   /* number of the first record, from 1 */
    uint64_t count;   /* records in the body; pure: 0 is a question */
    uint64_t base;    /* pure: how many records are known to be stored */
    uint64_t sent;    /* pure, a question: the highest number that may have been sent */
    uint64_t wall_s;  /* seconds since 1970, of this attempt; webhook, batch */
    uint64_t attempt; /* from 1: how often these records go; webhook, batch */
};

struct request_body {
    struct span content; /* as the receiver's program gets it: what is signed, and looked for members in */
    uint64_t bytes;      /* on the wire */
    bool gzip;           /* they are the content's gzip form, else the content itself */
};

struct request {
    enum wire_mode mode;
    char *fixed;                          /* from the request line on: what never changes */
    size_t fixed_size;                    /* bytes */
    size_t room;                          /* bytes of the longest head */
    char id[32];                          /* webhook, batch: what the webhook-id begins with */
    char epoch[2 * WIRE_EPOCH_BYTES + 1]; /* hexadecimal; the rest is of mode pure */
    char stream[WIRE_SOURCE_MAX + 1];
    char event[WIRE_EVENT_MAX + 1];
};

/* `options` were checked; its texts are not looked at any more afterwards. 0 or -ENOMEM. */
int request_init(struct request *r, const struct wire_options *options);
void request_dispose(struct request *r);

/* The stream has another epoch from now on. */
void request_set_epoch(struct request *r, const uint8_t epoch[WIRE_EPOCH_BYTES]);

/* The most bytes that request_write writes. Never changes. */
size_t request_room(const struct request *r);

/* Writes the head of a request, through its empty line: the body's bytes go right behind it. `room` is at
 * least request_room(r). Returns the head's size. */
size_t request_write(const struct request *r, const struct request_numbers *numbers,
                     const struct request_body *body, char *to, size_t room);

#endif
