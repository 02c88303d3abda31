/* What the answers of the peer, and their absence, mean for a wire's records. Parts of the wire.
 *
 * Dead letters. A refusal is an answer 4xx that says something of the request and not of its sender, its time
 * or its place: all but 401, 403, 407, 408, 410, 425, 429, and in mode pure 409, which is about the stream.
 * Where dead letters are kept, a batch that is refused is halved until its first record that is refused goes
 * alone: about log2 of the records' number of requests. Refused `attempts` times in a row the record is
 * handed to the owner (struct outlet_dead), and nothing is sent until he has it. */
#ifndef PURE_WIRE_DELIVERY_H
#define PURE_WIRE_DELIVERY_H

#include "wire/wire.h"

/* The most by which a Retry-After can lengthen the wire's own back-off. */
#define DELIVERY_RETRY_AFTER_MAX_NS (7200 * NS_PER_S)

/* The longest rest of a wire that was told to hurry. */
#define DELIVERY_HURRIED_REST_NS (200 * NS_PER_MS)

/* The peer answered a request. */
void delivery_answered(struct wire *w, uint64_t now_ns, const struct wire_flight *flight,
                       const struct answer *answer);

/* A try failed: rests, says so, and sends again from the first record that is not stored. `answer` if it
 * failed by one, else NULL. */
void delivery_failed(struct wire *w, uint64_t now_ns, int error, const struct answer *answer);

/* What was sent and not stored goes again. */
void delivery_rewind(struct wire *w);

/* Of the batch that begins at w->next. */
struct batch_limits delivery_limits(const struct wire *w);

/* Whether a dead letter is on its way to the owner. */
bool delivery_asking(const struct wire *w);

/* Goes on under the epoch that the owner has found. */
void delivery_settle_contact(struct wire *w);

/* Goes on behind a dead letter that the owner has. */
void delivery_settle_dead(struct wire *w);

#endif
