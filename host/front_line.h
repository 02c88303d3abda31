/* Visits: who begins requests when, if more come than a round of the front begins.
 *
 * The line: connections whose visit was over before what they sent was. A round visits some, in turn.
 *
 * Held, of an app that has no room: for a second at most, then they are refused; or visited, some a round,
 * while there is room for what the next of them asks for. In two lines:
 *
 *     again   who was refused, or had its turn, less than a second ago, and asks again all the same
 *     new     others that come meanwhile
 *
 * Next is who has waited longest, in *again* since it was first refused after it was last served, so that a
 * refusal costs nobody its place; but where that is one of *again*, each second turn is one of *new*: else,
 * beside many who ask again, others had none within their second.
 *
 * So who asks again has no more of the processor than a refusal a second, however fast it asks, all of them
 * are served in turn, and who keeps to the second of Retry-After is served before them. Who comes while
 * nobody is held is refused at once.
 *
 * A connection waits in one line at most. */
#ifndef PURE_HOST_FRONT_LINE_H
#define PURE_HOST_FRONT_LINE_H

#include "host/front.h"

#define FRONT_HELD_NS NS_PER_S /* as Retry-After says (front_reply.c) */

void front_line_init(struct front *front);

/* The client waits for a visit, behind those who wait already. */
void front_line_wait(struct client *client);

/* Before a client may ask the app for room of so many bytes: whether it has to wait for its turn. Then it
 * does.
 */
bool front_line_hold(struct client *client, struct front_app *app, uint64_t bytes);

/* The client, whose turn it was, has had room. */
void front_line_served(struct client *client, struct front_app *app);

/* The app has refused it for want of room for so many bytes; 0: not known. */
void front_line_refused(struct client *client, struct front_app *app, uint64_t bytes);

/* Whether clients are held, of any app. */
static inline bool front_line_holds(const struct front *front)
{
    return front->held_look.place > 0;
}

/* It waits no more. */
void front_line_leave(struct client *client);

/* Whether the client may ask the app for room that others are held for: in its turn, or if there is enough.
 */
bool front_line_passes(const struct client *client, const struct front_app *app);

/* The app's inbox may have got room. */
void front_line_reopen(struct front_app *app);

/* The visits of a round. True: there are more to come. */
bool front_line_visit(struct front *front);

#endif
