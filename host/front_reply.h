/* Replies into a connection's output, by hand: they are on the hot path. */
#ifndef PURE_HOST_FRONT_REPLY_H
#define PURE_HOST_FRONT_REPLY_H

#include "host/front_client.h"

/* Room that any reply (without its text) takes at most. */
#define FRONT_REPLY_MAX 1024

/* Writes the text of an EXCHANGE_TEXT whose reply is the next to go out; without memory for it, the reply is
 * 503. False: no more texts in this round. */
bool front_reply_text(struct front *front, struct exchange *x);

/* Appends the reply of a ready exchange to the output, which has FRONT_REPLY_MAX of room. A text moves to
 * c->text: nothing may follow it in this send. Returns the status. */
uint16_t front_reply_put(struct client *c, struct exchange *x);

/* Appends 100 (Continue). */
void front_reply_continue(struct client *c);

/* The wall clock, read once a step. */
uint64_t front_wall_ms(struct front *front);

#endif
