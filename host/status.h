/* The host's state for people and monitors, as JSON.
 *
 * /status: everything, /health: the verdict and, per app and destination, the truth:
 *
 *     app          running, waiting (an outlet is full), retrying (an event), suspended
 *     destination  ok, resting (its last try failed; another follows), stuck (resting for more than 5
 *                  minutes), disabled (no more tries until it is configured anew)
 *
 * The host is healthy (200) while no app is suspended and no destination is stuck or disabled. A destination
 * that rests for a while is what outlets are for: it shows, with `degraded`, but it is no alarm. */
#ifndef PURE_HOST_STATUS_H
#define PURE_HOST_STATUS_H

#include "host/front.h"
#include "host/text.h"

#define STATUS_STUCK_MS (5 * 60 * 1000)

void status_write(struct front *front, struct text *t);

/* Returns whether the host is healthy. */
bool health_write(struct front *front, struct text *t);

#endif
