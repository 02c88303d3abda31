/* Request heads of a wire. What never changes is written once; each request gets a copy of it and behind it
 * the lines with its own numbers, in memory of the caller, so that a wire may have several in flight.
 *
 * Requests of modes webhook and batch are signed by their content, which is the body before Content-Encoding:
 * that is what most frameworks hand to the program that verifies. */
#ifndef PURE_WIRE_REQUEST_H
#define PURE_WIRE_REQUEST_H

#include "wire/options.h"
#include "wire/signature.h"
#include "wire/template.h"

struct sealing;

struct request_numbers {
    uint64_t first;   /* number of the first record, from 1 */
    uint64_t count;   /* records in the body; pure: 0 is a question */
    uint64_t base;    /* pure: how many records are known to be stored */
    uint64_t sent;    /* pure, a question: the highest number that may have been sent */
    uint64_t wall_s;  /* seconds since 1970, of this attempt; webhook, batch */
    uint64_t attempt; /* from 1: how often these records go; webhook, batch */
};

struct request_body {
    struct span content; /* what is signed, and where {data.MEMBER} is looked for */
    uint64_t bytes;      /* on the wire */
    bool gzip;           /* they are the content's gzip form, else the content itself */
};

/* A header whose value is another for each request. */
struct request_header {
    char *name;
    struct header_template value;
};

struct request {
    enum wire_mode mode;
    char *fixed;       /* from the request line on: what never changes */
    size_t fixed_size; /* bytes */
    size_t room;       /* bytes of the longest head */

    /* webhook, batch */
    char id[24];          /* what the webhook-id begins with */
    struct signer signer; /* secret */
    struct request_header *headers;
    unsigned header_count;

    /* pure */
    char epoch[2 * WIRE_EPOCH_BYTES + 1]; /* hexadecimal */
    char stream[WIRE_SOURCE_MAX + 1];
    char event[WIRE_EVENT_MAX + 1];
    struct sealing *sealing; /* sealed: then it writes the heads (wire/sealing.h). NULL: not sealed */
};

/* `options` were checked; nothing of them is looked at afterwards. 0 or -ENOMEM. */
int request_init(struct request *r, const struct wire_options *options);
void request_dispose(struct request *r);

/* The stream has another epoch from now on. */
void request_set_epoch(struct request *r, const uint8_t epoch[WIRE_EPOCH_BYTES]);

/* The most bytes that request_write writes. Never changes. */
size_t request_room(const struct request *r);

/* Writes the head of a request, through its empty line: the body's bytes go right behind it. `room` is at
 * least request_room(r). Returns the head's size. Allocates nothing. A header whose template gives nothing is
 * left out. */
size_t request_write(const struct request *r, const struct request_numbers *numbers,
                     const struct request_body *body, char *to, size_t room);

#endif
