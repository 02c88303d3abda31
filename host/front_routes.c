#include "host/front_routes.h"

#include "host/metrics.h"
#include "host/status.h"

static const struct {
    const char *path;
    enum route route;
} fixed[] = {
    {"/", ROUTE_ROOT},           {"/status", ROUTE_STATUS}, {"/health", ROUTE_HEALTH},
    {"/metrics", ROUTE_METRICS}, {"/sealed", ROUTE_SEALED},
};

struct front_app *route_app(const struct front *front, struct span name)
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
    } else if (span_is(rest, "/resume")) {
        to.route = ROUTE_RESUME;
    } else {
        return to;
    }
    to.app = route_app(front, name);
    if (!to.app)
        to.route = ROUTE_NO_APP;
    return to;
}

#define OUTPUTS "/outputs/"

/* What comes behind "/outputs/". */
static struct routed find_in_output(const struct front *front, struct span path)
{
    static const struct {
        const char *path;
        enum route route;
    } parts[] = {{"/dead", ROUTE_DEAD},
                 {"/dead/replay", ROUTE_DEAD_REPLAY},
                 {"/dead/drop", ROUTE_DEAD_DROP},
                 {"/enable", ROUTE_ENABLE},
                 {"/disable", ROUTE_DISABLE}};
    struct routed to = {.route = ROUTE_NONE};
    const uint8_t *slash = path.size > 0 ? memchr(path.data, '/', path.size) : NULL;
    struct span name = span_of(path.data, slash ? (size_t)(slash - path.data) : 0);
    struct span rest = behind(path, name.size);
    for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
        if (span_is(rest, parts[i].path))
            to.route = parts[i].route;
    }
    if (to.route == ROUTE_NONE)
        return to;
    const uint8_t *dot = name.size > 0 ? memchr(name.data, '.', name.size) : NULL;
    if (dot)
        to.app = route_app(front, span_of(name.data, (size_t)(dot - name.data)));
    if (to.app)
        to.output = behind(name, (size_t)(dot + 1 - name.data));
    else
        to.route = ROUTE_NO_OUTPUT;
    return to;
}

struct routed route_find(const struct front *front, struct span target)
{
    const uint8_t *query = memchr(target.data, '?', target.size);
    struct span path = query ? span_of(target.data, (size_t)(query - target.data)) : target;
    if (begins(path, APPS, sizeof APPS - 1))
        return find_in_app(front, behind(path, sizeof APPS - 1));
    if (begins(path, OUTPUTS, sizeof OUTPUTS - 1)) {
        struct routed to = find_in_output(front, behind(path, sizeof OUTPUTS - 1));
        if (query)
            to.query = behind(target, path.size + 1);
        return to;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(fixed); i++) {
        if (span_is(path, fixed[i].path))
            return (struct routed){.route = fixed[i].route};
    }
    return (struct routed){.route = ROUTE_NONE};
}

bool route_takes_posts(enum route route)
{
    return route == ROUTE_EVENTS || route == ROUTE_RECORDS || route == ROUTE_SEALED ||
           route == ROUTE_DEAD_REPLAY || route == ROUTE_DEAD_DROP || route == ROUTE_ENABLE ||
           route == ROUTE_DISABLE || route == ROUTE_RESUME;
}

const char *route_allows(enum route route)
{
    return route_takes_posts(route) ? "POST" : "GET, HEAD";
}

static void root(struct text *t)
{
    static const char text[] = "pure-host\n\n"
                               "POST /apps/APP/events/EVENT   the body is the event's data\n"
                               "POST /apps/APP/records        records from another host\n"
                               "POST /sealed                  records from another host, sealed\n"
                               "GET  /apps/APP/state          what the app shows\n"
                               "POST /apps/APP/resume         the next start loads it again\n"
                               "GET  /outputs/APP.OUTPUT/dead what it has set aside\n"
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
    case ROUTE_RESUME: /* it was done when it was asked for */
        text_format(text, "{\"resumed\":true}\n");
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
