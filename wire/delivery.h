/* What the answers of the peer, and their absence, mean for a wire's records. Parts of the wire. */
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

#endif
