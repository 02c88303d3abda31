#include "host/front_routes.h"

#include "host/metrics.h"
#include "host/status.h"

static const struct {
    const char *path;
    enum route route;
} fixed[] = {
    {"/", ROUTE_ROOT},
    {"/status", ROUTE_STATUS},
    {"/health", ROUTE_HEALTH},
    {"/metrics", ROUTE_METRICS},
};

static struct front_app *find_app(const struct front *front, struct span name)
{
    struct front_app *app = front->buckets[front_hash(name) & front->bucket_mask];
    while (app && !span_equal(app->name, name))
        app = app->same_hash;
    return app;
}

static bool begins(struct span span, const char *text, size_t size)
{
    return span.size >= size && memcmp(span.data, text, size) == 0;
}

static struct span behind(struct span span, size_t size)
{
    return span_of(span.data + size, span.size - size);
}

#define APPS   "/apps/"
#define EVENTS "/events/"

/* What comes behind "/apps/". */
static struct routed find_in_app(const struct front *front, struct span path)
{
    const uint8_t *slash = path.size > 0 ? memchr(path.data, '/', path.size) : NULL;
    struct routed to = {.route = ROUTE_NONE};
    if (!slash)
        return to;
    struct span name = span_of(path.data, (size_t)(slash - path.data));
    struct span rest = behind(path, name.size);
    if (begins(rest, EVENTS, sizeof EVENTS - 1)) {
        to.route = ROUTE_EVENTS;
        struct span event = behind(rest, sizeof EVENTS - 1);
        if (run_event_name(event))
            to.event = event;
    } else if (span_is(rest, "/records")) {
        to.route = ROUTE_RECORDS;
    } else if (span_is(rest, "/state")) {
        to.route = ROUTE_STATE;
    } else {
        return to;
    }
    to.app = find_app(front, name);
    if (!to.app)
        to.route = ROUTE_NO_APP;
    return to;
}

struct routed route_find(const struct front *front, struct span target)
{
    const uint8_t *query = memchr(target.data, '?', target.size);
    struct span path = query ? span_of(target.data, (size_t)(query - target.data)) : target;
    if (begins(path, APPS, sizeof APPS - 1))
        return find_in_app(front, behind(path, sizeof APPS - 1));
    for (unsigned i = 0; i < ARRAY_SIZE(fixed); i++) {
        if (span_is(path, fixed[i].path))
            return (struct routed){.route = fixed[i].route};
    }
    return (struct routed){.route = ROUTE_NONE};
}

const char *route_allows(enum route route)
{
    return route == ROUTE_EVENTS || route == ROUTE_RECORDS ? "POST" : "GET, HEAD";
}

static void root(struct text *t)
{
    static const char text[] = "pure-host\n\n"
                               "POST /apps/APP/events/EVENT   the body is the event's data\n"
                               "POST /apps/APP/records        records from another host\n"
                               "GET  /apps/APP/state          what the app shows\n"
                               "GET  /status                  apps and outlets\n"
                               "GET  /health                  200, or 503 with what is wrong\n"
                               "GET  /metrics                 for Prometheus\n";
    text_add(t, text, sizeof text - 1);
}

bool route_watches(enum route route)
{
    return route == ROUTE_HEALTH || route == ROUTE_STATUS || route == ROUTE_METRICS;
}

void route_text(struct front *front, enum route route, uint16_t *status, const char **type, struct text *text)
{
    *status = 200;
    *type = "application/json";
    switch (route) {
    case ROUTE_STATUS:
        status_write(front, text);
        break;
    case ROUTE_HEALTH:
        *status = health_write(front, text) ? 200 : 503;
        break;
    case ROUTE_METRICS:
        *type = "text/plain; version=0.0.4; charset=utf-8";
        metrics_write(front, text);
        break;
    default:
        *type = "text/plain; charset=utf-8";
        root(text);
    }
}
