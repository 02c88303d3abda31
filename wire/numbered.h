/* Mode pure: one numbered stream on one lane, pipelined. docs/records-protocol.md has what is said.
 *
 *     queue.freed <= next <= published      [freed, next) is in flight, [next, published) waits
 *
 * Whatever goes wrong, `next` goes back to `freed`, and the same records go again under the same numbers.
 * Numbers that were lost (record_queue_jump) are passed over when nothing is in flight. Nothing is sent
 * before the outlet's contact is clear, but for the question that it begins with. Parts of the wire. */
#ifndef PURE_WIRE_NUMBERED_H
#define PURE_WIRE_NUMBERED_H

#include "wire/answer.h"
#include "wire/batch.h"
#include "wire/lane.h"
#include "wire/sealing.h"

struct wire;

/* A request in flight. */
struct numbered_flight {
    struct batch batch;
    uint32_t series;                    /* of the stream when it was sent */
    bool question;                      /* it has no records (struct outlet_contact) */
    uint8_t reply_key[NOISE_KEY_BYTES]; /* sealed: what proves its reply */
};

struct numbered {
    struct stream_position next; /* where the next request begins */
    uint64_t sent_records;       /* number of the last record sent in this life; never decreases */
    struct numbered_flight flights[CONNECTION_PIPELINE_MAX]; /* of the connection's exchange n: [n % MAX] */
    bool asking;                                             /* a question is in flight, alone */
    uint32_t
        series; /* counts the times `next` went back: answers to older requests only tell what is stored */
    uint32_t refusals; /* of the record behind queue.freed, sent alone, in a row */
    uint64_t
        suspect; /* number: one of the records behind queue.freed, up to this, is refused; else <= freed */
};

/* As struct wire_ways says. */
void numbered_look(struct wire *w, uint64_t now_ns);
void numbered_go_on(struct wire *w, uint64_t now_ns);
void numbered_answered(struct wire *w, uint64_t now_ns, struct lane *lane, uint64_t number,
                       const struct answer *answer);
bool numbered_closed(struct wire *w, uint64_t now_ns, struct lane *lane);
void numbered_rewind(struct wire *w);
void numbered_settle_dead(struct wire *w);
uint64_t numbered_due_ns(const struct wire *w, uint64_t now_ns);

/* Goes on under the epoch that the owner has found. */
void numbered_settle_contact(struct wire *w);

#endif
