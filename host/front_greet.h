/* TLS handshakes of the front's connections: how many at a time, how long, and what is said of those that
 * fail. A context that cannot be made yet (host/host_tls.h) fails them, too. */
#ifndef PURE_HOST_FRONT_GREET_H
#define PURE_HOST_FRONT_GREET_H

#include "host/front.h"

#define FRONT_GREET_NS     (10 * NS_PER_S) /* for the whole handshake, or request_timeout if that is less */
#define FRONT_GREET_SAY_NS (60 * NS_PER_S) /* from a line about failed ones to the next */

/* Three quarters of the connections: the others are for clients that have been greeted, and plain ones. */
static inline uint32_t front_greet_most(const struct config *config)
{
    return config->connections - config->connections / 4;
}

static inline bool front_greet_full(const struct front *front)
{
    return front->greeting >= front_greet_most(front->config);
}

/* The connection was accepted: begins its handshake with what is in force now, or ends it. */
void front_greet(struct client *c);

/* Its handshake is over, or it is; without one, nothing. */
void front_greet_ends(struct client *c);

/* Counts a handshake that has failed, before front_greet_ends, and says so now and then: whoever can connect
 * can make them fail, so that a line each would fill the log. */
void front_greet_failed(struct client *c, int error);

#endif
