/* The front's part of dead letters, and of outputs that are enabled and disabled: requests for
 * /outputs/APP.OUTPUT/… go to the app's owner, one at a
 * time for an app (host/dead_request.h), and come back as replies. */
#ifndef PURE_HOST_FRONT_DEAD_H
#define PURE_HOST_FRONT_DEAD_H

#include "host/front_client.h"

/* GET …/dead?from=N: the last exchange of the client awaits the list, or is declined. */
void front_dead_list(struct client *c, const struct routed *to);

/* POST …/dead/replay and …/dead/drop: the body says which. POST …/enable and …/disable: what little body
 * there may be means nothing. */
void front_dead_change(struct client *c, const struct routed *to);
/* Bytes of that body. */
void front_dead_take(struct client *c, struct span content, bool complete);

/* Gives the answer, if there is one, to whoever waits for it. */
void front_dead_answered(struct front *front, struct front_app *app);

#endif
