/* pure/app.h: the interface between pure-host and an app, a shared object that exports one symbol,
 * `pure_app`.
 *
 * An app reacts to events, keeps state, and sends records to its outputs. All calls to one app come one at a
 * time, though not always from the same thread. State may change only by events, and only depending on them
 * (no clock, no random numbers, no files): the host may rebuild it by giving the same events again. Time is
 * in the event.
 *
 * A turn is a batch of events. What they stored and sent takes effect together, after the turn. */
#ifndef PURE_APP_H
#define PURE_APP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PURE_APP_ABI 1

struct pure_turn; /* the turn under way */
struct pure_sink; /* where show and snapshot write */

struct pure_event {
    const char *name; /* NUL-terminated, at most 64 bytes */
    const char
        *source;     /* who it came from: "http", "APP.OUTPUT" in this host, "HOST/APP/OUTPUT" from another */
    uint64_t number; /* from a stream: the record's number there, from 1, without gaps. From "http": the app's
                        own count of events */
    uint64_t time_ms; /* wall clock when the host accepted it, milliseconds since 1970 */
    const void *data; /* `size` bytes, the app's until `event` returns */
    size_t size;
};

struct pure_app {
    uint32_t abi;               /* PURE_APP_ABI */
    const char *const *outputs; /* names, NULL at the end; an output's index is what pure_send takes */

    /* Makes a new state. `arg` is the configuration's, "" if there is none. 0, or anything else with a reason
     * in `error`. */
    int (*open)(void **state, const char *arg, char *error, size_t error_size);

    /* One event. 0, or anything else: the event failed. Then its sends are undone, and the state is put back
     * to what it was before (restore, then the events since). A failed event is tried again, then refused.
     * When pure_send fails, return what it returned. */
    int (*event)(void *state, struct pure_turn *turn, const struct pure_event *event);

    /* Writes the state for people, usually JSON; answers GET /apps/APP/state. May be NULL. */
    int (*show)(void *state, struct pure_sink *sink);

    /* snapshot writes all of the state, restore reads it into a state that open has just made. 0 or failure.
     * Both are NULL in an app whose events change nothing that later events or show depend on. */
    int (*snapshot)(void *state, struct pure_sink *sink);
    int (*restore)(void *state, const void *data, size_t size);

    void (*close)(void *state);
};

extern const struct pure_app pure_app;

/* Sends `size` bytes to an output, in this turn. Copies. 0, or a negative code the event returns to the host:
 * there is no such output, the record is larger than its limit, the outlet is full (the host then waits
 * until it is not and gives the event again), or the event has sent as much as one may: with a store, 16 MiB
 * more than the queues of the app's outputs take, in all. An output that the configuration leaves out takes
 * and forgets. */
int pure_send(struct pure_turn *turn, uint32_t output, const void *data, size_t size);

/* Writes to a sink, any number of times. 0, or a negative code when the sink's limit is reached: return it.
 */
int pure_write(struct pure_sink *sink, const void *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
