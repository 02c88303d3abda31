/* Apps that keep their clients waiting. While results are awaited the front looks once a second; a request
 * pays for it with the note of when it was in. An app is *stalled* if runs wait in its inbox and a whole
 * second went by without a result.
 *
 *     at a head      503 if the app waits for space on the store's disk, or for an output that does not
 * deliver, or is stalled and waits for room or has FRONT_CROWD runs before it: nothing of the request is
 * taken at a look      an exchange whose app has not answered in time is given up on (client_give_up); when
 *                    connections run out, so are those that wait for a stalled app, above FRONT_CROWD */
#ifndef PURE_HOST_FRONT_WATCH_H
#define PURE_HOST_FRONT_WATCH_H

#include "host/front.h"

#define FRONT_PATIENCE_NS (10 * NS_PER_S) /* for a state; for a client that has ended its half */

/* How many may wait for a stalled app. */
static inline uint32_t front_crowd(const struct config *config)
{
    return config->connections / 4 > 16 ? config->connections / 4 : 16;
}

void front_watch_init(struct front *front);

/* Results are awaited from now on. */
void front_watch_begin(struct front *front);

/* Why an event for the app would wait for long, or NULL. */
const char *front_watch_refusal(const struct front *front, const struct front_app *app);

#endif
