/* Bodies into inboxes. What came whole in the receive buffer is framed from there; a body in pieces is kept
 * first; records (SINK_RECORDS) go on in runs of at least 4 KiB while the rest still comes. */
#ifndef PURE_HOST_FRONT_BODY_H
#define PURE_HOST_FRONT_BODY_H

#include "host/front_client.h"

#define FRONT_PIECE_BYTES   4096         /* least bytes of a run of records, the last excepted */
#define FRONT_DISCARD_BYTES (256 * 1024) /* of a refused body, so that its connection goes on */
#define FRONT_LINGER_BYTES  (8u << 20)   /* after the last request, so that its reply is seen */

/* What the reservation of a body of `size` bytes has to cover. */
uint64_t front_body_cost(enum body_sink sink, uint64_t size);

/* Takes bytes of the body; `*used` of them. 0: more to come. 1: complete, the exchange waits for its results
 * at most. Refuses the exchange (client_refuse) if it must end here: then 1, too. */
int front_body_take(struct client *c, struct span bytes, size_t *used);

/* Gives back what the body holds. Idempotent. */
void front_body_release(struct client *c);

/* Grows a kept buffer to `need` bytes under the limit of all bodies. 0, PE_FULL or -ENOMEM. */
int front_keep(struct front *front, uint8_t **bytes, uint32_t *room, uint64_t need);
void front_forget(struct front *front, uint8_t **bytes, uint32_t *room);

#endif
