/* An app's state, kept so that it can be put back: a snapshot and the log of the events since. The state is
 * at any time what the log, given to the snapshot, makes of it; undoing a failed unit is doing that again.
 * This is the store of a host whose store is `memory`.
 *
 * The log is settled into a new snapshot when it has grown past a bound, at the end of a turn: its cost is
 * then a copy of each event's bytes and, per bound, one snapshot. */
#ifndef PURE_HOST_APP_STATE_H
#define PURE_HOST_APP_STATE_H

#include "host/sink.h"
#include "host/turn.h"
#include "host/turn_guard.h"

/* Events of one name and source, numbered upwards. */
struct events {
    const char *event, *source; /* NUL-terminated */
    uint64_t first;             /* number of the first event */
    uint64_t time_ms;
    struct span bytes; /* `records` framed records */
    uint64_t records;
};

#define APP_SNAPSHOT_MAX (64u << 20) /* bytes */

struct app_state {
    const struct pure_app *app; /* NULL: there is no state, and nothing of the module is called */
    struct guard_app *guard;    /* of calls of it; NULL: they are not guarded */
    const char *arg;
    void *state;
    bool stateless; /* the app has no snapshot: its events change nothing */
    struct pure_sink snapshot;
    struct pure_sink log; /* runs of events, each a head, its strings, its records */
};

/* Opens the app and takes the first snapshot. 0, or PE_APP_FAILED or PE_TOO_LARGE with a reason in `why`. */
int app_state_open(struct app_state *s, const struct pure_app *app, struct guard_app *guard, const char *arg,
                   char *why, size_t why_size);
/* Also gives its memory back while its app is suspended; then there is no state. */
void app_state_dispose(struct app_state *s);

/* A call of the module was left: its instance lies as it is, and is never called again, not even to close. */
void app_state_abandon(struct app_state *s);

/* The state written to `sink`, for people, or as a whole. 0, the sink's error, or PE_APP_FAILED. */
int app_state_show(const struct app_state *s, struct pure_sink *sink);
int app_state_write(const struct app_state *s, struct pure_sink *sink);

/* These events have been given, with success. 0, PE_TOO_LARGE or -ENOMEM: the state can no longer be
 * put back, its app must stop. */
int app_state_keep(struct app_state *s, const struct events *events);

/* Keeps the state as it is now in place of all events kept so far. As app_state_keep. */
int app_state_snapshot(struct app_state *s);

/* Puts the state back to what the kept events make of it. 0 or PE_APP_FAILED. */
int app_state_undo(struct app_state *s, struct pure_turn *turn);

/* Recovery: puts the state back to what an earlier host's snapshot says, before any event; gives events of an
 * earlier life again. Events follow each other through app_state_replay, then app_state_snapshot. 0 or
 * PE_APP_FAILED. */
int app_state_restore(struct app_state *s, struct span snapshot);
int app_state_replay(struct app_state *s, struct pure_turn *turn, const struct events *events);

/* At the end of a turn. As app_state_keep. */
int app_state_settle(struct app_state *s);

#endif
