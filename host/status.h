/* The host's state for people and monitors, as JSON.
 *
 * /status: everything, /health: the verdict and, per app and destination, the truth:
 *
 *     app          running, waiting (an outlet is full), retrying (an event), suspended
 *     destination  ok, resting (its last try failed; another follows), stuck (resting for more than 5
 *                  minutes), disabled (no more tries until it is configured anew)
 *
 *     journal      ok, full (no space: it goes on by itself), failed (until the host is restarted)
 *
 * The host is healthy (200) while no app is suspended, no destination is stuck or disabled, and all journals
 * are ok. A destination that rests for a while is what outlets are for: it shows, with `degraded`, but it is
 * no alarm. Nor is what the store has lost: nobody can bring it back by restarting the host. */
#ifndef PURE_HOST_STATUS_H
#define PURE_HOST_STATUS_H

#include "host/front.h"
#include "host/text.h"

#define STATUS_STUCK_MS (5 * 60 * 1000)

void status_write(struct front *front, struct text *t);

/* Whether this start has found damage that cost something, or records were lost since. */
bool status_store_degraded(const struct registry *r);

/* Records that the outlet's app has sent and its receiver has not stored, on the disk and in memory. */
uint64_t status_waiting(struct outlet *o);

/* Returns whether the host is healthy. */
bool health_write(struct front *front, struct text *t);

#endif
