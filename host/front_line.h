/* Visits: who begins requests when, if more come than a round of the front begins.
 *
 * The line: connections whose visit was over before what they sent was. A round visits some, in turn.
 *
 * Held, of an app: connections that were refused for want of room and ask again, though they were told to
 * come back in a second. They are visited in turn, some a round, while the app has room for what the first of
 * them asks for; who has not been for a second is refused again. So they have no more of the processor than a
 * refusal a second each, however fast they ask, and are served one after the other.
 *
 * A connection waits in one of them at most. */
#ifndef PURE_HOST_FRONT_LINE_H
#define PURE_HOST_FRONT_LINE_H

#include "host/front.h"

#define FRONT_HELD_NS NS_PER_S /* as Retry-After says (front_reply.c) */

void front_line_init(struct front *front);

/* The client waits for a visit, behind those who wait already. */
void front_line_wait(struct client *client);

/* The client waits until the app has room for so many bytes. */
void front_line_hold(struct client *client, struct front_app *app, uint64_t bytes);

/* It waits no more. */
void front_line_leave(struct client *client);

/* Whether who was refused and asks the app for room is to be held: others are, or it would be refused, as far
 * as is known without asking. */
bool front_line_crowded(struct front_app *app, uint64_t bytes);

/* Whether the client may ask the app for room that others are held for: in its turn, or if there is enough.
 */
bool front_line_passes(const struct client *client, struct front_app *app);

/* The app's inbox may have got room. */
void front_line_reopen(struct front_app *app);

/* The visits of a round. True: there are more to come. */
bool front_line_visit(struct front *front);

#endif
