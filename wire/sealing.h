/* The sender's side of sealed requests (wire/sealed.h): heads, bodies, and which replies are believed.
 *
 *     sealing_write    a head, as request_write does it: what stands in a Pure-* field elsewhere is sealed
 *                      into Pure-Sealed; the path names no app: "/apps/APP/records" becomes "/sealed"
 *     sealed_body      its body, into memory of sealed_size bytes (sealing_body_room is the most)
 *     sealing_prove    the reply, whose proof answer_read has kept: then it is the receiver's word
 *
 * A ticket of the receiver goes with every request; without a fresh one the answer is SEALED_STALE, and the
 * same request goes again at once with the one that came (docs/records-protocol.md). */
#ifndef PURE_WIRE_SEALING_H
#define PURE_WIRE_SEALING_H

#include "wire/answer.h"
#include "wire/options.h"
#include "wire/request.h"
#include "wire/sealed.h"

struct sealing {
    const struct host_key *with;
    uint8_t to[HOST_KEY_BYTES];
    struct noise_random random;
    char *fixed;       /* what never changes of a head: from the request line to "Pure-Sealed: " */
    size_t fixed_size; /* bytes */
    uint8_t epoch[SEALED_EPOCH_BYTES];
    uint8_t ticket[SEALED_TICKET_BYTES];
    bool stale; /* the last proven answer was SEALED_STALE */
    /* names, as in struct sealed_request */
    uint8_t app_size, from_size, output_size, event_size;
    char app[SEALED_NAME_MAX], from[SEALED_NAME_MAX], output[SEALED_NAME_MAX], event[SEALED_EVENT_MAX];
};

/* Why such options cannot be sealed, or NULL; static. */
const char *sealing_check(const struct wire_options *options);

/* `options` were checked, and seal. 0 or -ENOMEM. */
int sealing_init(struct sealing *s, const struct wire_options *options);
void sealing_dispose(struct sealing *s);

/* The stream has another epoch from now on. */
void sealing_set_epoch(struct sealing *s, const uint8_t epoch[SEALED_EPOCH_BYTES]);

/* The bytes of a head with the longest number. */
size_t sealing_head_room(const struct sealing *s);

/* Writes a head, through its empty line, of a request with a body of `body_bytes` before sealing, to `to`,
 * which has sealing_head_room bytes. `keys` are for its body and its reply: each call draws new ones, also
 * for what goes again. Returns the head's size. */
size_t sealing_write(struct sealing *s, const struct request_numbers *numbers, uint64_t body_bytes, char *to,
                     struct sealed_keys *keys);

/* The most that a body of at most `batch_bytes`, or one record of at most `max_record`, is sealed. */
size_t sealing_body_room(uint64_t batch_bytes, uint64_t max_record);

/* How an answer is to be taken. */
enum sealing_verdict {
    SEALING_PROVEN,   /* it is the receiver's, and `answer` says now what was sealed in it */
    SEALING_STALE,    /* the receiver's, and says only that the ticket was old: send again at once */
    SEALING_UNPROVEN, /* anybody's: a failure of the way (PE_UNPROVEN). Its status is for people only, and
                         nothing else of it is left in `answer` */
};

/* `reply_key`: of the request's keys. The second SEALING_STALE in a row is SEALING_PROVEN with a 409: a
 * failure, so that a receiver that never agrees is not asked without rest. */
enum sealing_verdict sealing_prove(struct sealing *s, const uint8_t reply_key[NOISE_KEY_BYTES],
                                   struct answer *answer);

#endif
