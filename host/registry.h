/* What runs in this host, as the front sees it: apps, outlets, links and loops, by name. Made before the
 * threads start. */
#ifndef PURE_HOST_REGISTRY_H
#define PURE_HOST_REGISTRY_H

#include "core/log.h"
#include "core/loop.h"
#include "core/outlet.h"
#include "host/config.h"
#include "host/dead_request.h"
#include "host/inbox.h"
#include "host/tls_report.h"
#include "host/turn_guard.h"
#include "journal/writer.h"
#include "link/link.h"
#include "link/link_listener.h"

enum app_condition {
    APP_RUNNING,
    APP_WAITING,   /* an outlet is full */
    APP_RETRYING,  /* an event failed and is tried again soon */
    APP_SUSPENDED, /* takes no events until the host is restarted */
};

/* What an app's owner says of it. Single writer: the owner. */
struct app_report {
    _Atomic int condition;            /* enum app_condition */
    struct outlet *_Atomic waits_for; /* APP_WAITING: a full outlet */
    _Atomic bool store_full;          /* its turns wait for space on the store's disk */
    _Atomic int error;                /* why it is suspended */
    _Atomic uint64_t stored;          /* events stored: the number of the last */
    _Atomic uint64_t turns;
    _Atomic uint64_t failures;   /* tries of events that failed */
    _Atomic uint64_t refused;    /* events given up on after their tries */
    _Atomic uint64_t duplicates; /* records of streams that were stored already */
    _Atomic uint64_t sends;
    _Atomic uint64_t pushes;
    _Atomic uint64_t waits;  /* times it had to wait for a full outlet */
    _Atomic uint64_t epochs; /* times a known stream began a new epoch */
    /* The front's: since when the app is in a call that does not return, milliseconds since 1970; 0: it is in
     * none */
    _Atomic uint64_t stuck_ms;
    _Atomic uint64_t turned_away; /* the front's: requests for the app that were answered 503 for its sake */
};

struct registry_app {
    const char *name;
    struct inbox inbox; /* from the front */
    struct inbox links; /* from the listener of links; all zero where no peer may send to the app */
    struct app_report report;
    enum app_durability durability; /* DURABILITY_MEMORY: nothing of it is on the disk. Never changes */
    struct dead_request dead;
    char failure[320];       /* why it is suspended from the start (its module), or ""; never changes */
    _Atomic bool resumed;    /* the front's: its deaths, for which it is suspended, are forgotten */
    char reason[256];        /* why it is suspended since, or "". Complete before
                                report.condition (stored with release) says that it is, and never changes then */
    struct guard_app *guard; /* NULL: its calls are not guarded */
};

/* Why it is suspended, or that it was resumed since; NULL: it is not suspended. Any thread. */
const char *registry_app_suspended(const struct registry_app *app);

static inline bool registry_app_linked(const struct registry_app *app)
{
    return app->links.owner != NULL;
}

/* Any thread: bytes of runs in the app's inboxes, at about this moment. */
static inline uint64_t registry_app_held(struct registry_app *app)
{
    return (uint64_t)record_queue_glance(&app->inbox.runs).held_bytes +
           record_queue_glance(&app->links.runs).held_bytes;
}

static inline uint64_t registry_app_capacity(const struct registry_app *app)
{
    return app->inbox.runs.capacity + app->links.runs.capacity;
}

struct registry_loop {
    const char *name; /* the thread's: pure-front, pure-own-0, pure-send, pure-send-2 … */
    struct loop *loop;
    struct log *log;
};

/* Whether opening the store has found damage that cost something, or records were lost since. A start that
 * finds all whole again ends it. */
static inline bool registry_store_lost(const struct store_report *found)
{
    return found->damaged_places + found->lost_commits + found->lost_records > 0;
}

struct registry_link {
    const char *name; /* of the destination, "pi2.local:7071"; no two links have the same */
    struct link_report *report;
};

/* An owner's journal. */
struct registry_journal {
    const char *name; /* the owner's thread: pure-own-0 … */
    const struct journal_writer *writer;
};

struct registry {
    const struct config *config;
    unsigned app_count;
    struct registry_app **apps;
    unsigned outlet_count;
    struct outlet **outlets;
    unsigned loop_count;
    struct registry_loop *loops;
    unsigned link_count;
    struct registry_link *links;
    struct store *store; /* NULL: memory, and no journals */
    unsigned journal_count;
    struct registry_journal *journals;
    struct link_listener_report *listener; /* NULL: no links come in */
    struct tls_report *tls;                /* NULL: no files of TLS are looked at */
    struct turn_guard *guard;              /* NULL: calls of modules are not guarded */
};

/* The front's thread: the deaths in a row of the process that were the app's (host/turn_mark.h). */
static inline uint32_t registry_deaths(const struct registry *r, unsigned app)
{
    return r->guard ? r->guard->mark.apps[app].deaths : 0;
}

/* The front's thread: forgets the app's deaths, so that the next start loads it, and logs that to `log`. 0;
 * -ENOENT: none are counted, and `why` says what to do instead (static); or the negative errno for which the
 * store does not take it. */
int registry_resume(const struct registry *r, struct registry_app *app, struct log *log, const char **why);

#endif
