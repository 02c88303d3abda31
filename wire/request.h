/* Request heads of a wire. What never changes is written once; of each request only the last lines are, with
 * its numbers. */
#ifndef PURE_WIRE_REQUEST_H
#define PURE_WIRE_REQUEST_H

#include "wire/options.h"

struct request_numbers {
    uint64_t body_bytes;
    uint64_t first;  /* number of the first record, from 1 */
    uint64_t count;  /* records in the body; pure: 0 is a question */
    uint64_t base;   /* pure: how many records are known to be stored */
    uint64_t sent;   /* pure, a question: the highest number that may have been sent */
    uint64_t wall_s; /* seconds since 1970; webhook, batch */
};

struct request {
    enum wire_mode mode;
    char id[32];    /* webhook, batch: what the webhook-id begins with */
    char *text;     /* [0, fixed) is the part that never changes */
    size_t fixed;   /* bytes */
    size_t epoch;   /* pure: where the epoch's digits begin */
    size_t largest; /* bytes allocated: room for the longest head */
};

/* `options` were checked. 0 or -ENOMEM. */
int request_init(struct request *r, const struct wire_options *options);
void request_dispose(struct request *r);

/* The stream has another epoch from now on. */
void request_set_epoch(struct request *r, const uint8_t epoch[WIRE_EPOCH_BYTES]);

/* The head of a request, valid until the next call. */
struct span request_head(struct request *r, const struct request_numbers *numbers);

#endif
