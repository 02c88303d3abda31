/* Which resource a request names, and the answers that are texts of the host itself. */
#ifndef PURE_HOST_FRONT_ROUTES_H
#define PURE_HOST_FRONT_ROUTES_H

#include "host/front.h"
#include "host/text.h"

enum route {
    ROUTE_NONE,
    ROUTE_NO_APP,    /* a path of an app that is not there */
    ROUTE_NO_OUTPUT, /* a path of an output of no app */
    ROUTE_EVENTS,    /* /apps/APP/events/EVENT */
    ROUTE_RECORDS,
    ROUTE_SEALED, /* /sealed: records, of an app that the request does not name in clear */
    ROUTE_STATE,
    ROUTE_RESUME, /* /apps/APP/resume */
    ROUTE_DEAD,   /* /outputs/APP.OUTPUT/dead */
    ROUTE_DEAD_REPLAY,
    ROUTE_DEAD_DROP,
    ROUTE_ENABLE, /* /outputs/APP.OUTPUT/enable */
    ROUTE_DISABLE,
    ROUTE_ROOT,
    ROUTE_STATUS,
    ROUTE_HEALTH,
    ROUTE_METRICS,
};

struct routed {
    enum route route;
    struct front_app *app;
    struct span event;  /* ROUTE_EVENTS: as run_event_name has it, or empty: not a name */
    struct span output; /* of paths with OUTPUT; perhaps of no output */
    struct span query;  /* ROUTE_DEAD: without the "?" */
};

/* `target`: a request target in origin or absolute form (RFC 9112 section 3.2); queries are ignored, but
 * for ROUTE_DEAD's. */
struct routed route_find(const struct front *front, struct span target);

/* NULL: there is no such app. */
struct front_app *route_app(const struct front *front, struct span name);

/* Whether it takes POST, and nothing else. */
bool route_takes_posts(enum route route);

/* "GET, HEAD" or "POST". */
const char *route_allows(enum route route);

/* Whether it says how the host is: a connection over the limit may ask for it. */
bool route_watches(enum route route);

/* Writes the text of a resource of the host; `*text` is {0} before. */
void route_text(struct front *front, enum route route, uint16_t *status, const char **type,
                struct text *text);

#endif
