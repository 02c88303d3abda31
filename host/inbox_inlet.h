/* An inbox as an inlet of its app: from what a run says to the events of it that are to be given, and from
 * what was given to its result.
 *
 * Here is what makes a run count once: records of a stream that are stored already are left out, and its
 * cursor moves with each event that is given, in the same turn; a request whose key is known gets the answer
 * it got then. Runs without events to be given (duplicates, shows, refused ones) have their result at once.
 * Turns, tries and their failures are the app's (host/owned_app.c). */
#ifndef PURE_HOST_INBOX_INLET_H
#define PURE_HOST_INBOX_INLET_H

#include "core/log.h"
#include "host/app_state.h"
#include "host/keys.h"
#include "host/registry.h"
#include "host/sink.h"
#include "host/streams.h"

/* What the inboxes of one app share. */
struct intake {
    struct registry_app *entry;
    const struct app_state *state;
    struct log *log;
    /* A request with this Idempotency-Key is stored now: for the journal. NULL: there is none */
    void (*key_stored)(void *context, struct span key, uint64_t stored);
    void *context;
    struct streams streams;
    struct keys keys;
    struct pure_sink show;
    uint64_t rolled_back; /* streams refused as PE_STREAM_ROLLED_BACK */
};

/* What a turn has done with an inbox, to take effect when it is committed. */
struct inbox_mark {
    struct stream_position runs;    /* those before have their results */
    struct stream_position results; /* that may be seen */
};

struct inbox_inlet {
    struct inbox *inbox;
    struct intake *intake;
    /* the run under way */
    bool under_way;
    struct run run;     /* its spans are valid until it has its result */
    struct events left; /* of it, to be given */
    char event[EVENT_NAME_MAX + 1], source[SOURCE_NAME_MAX + 1];
    unsigned tries;              /* of the unit at its head, that failed */
    struct stream_position at;   /* behind the run under way */
    struct stream_position done; /* behind the last one that has its result; done <= at */
    int failure;                 /* why everything is refused; 0: it is not */
};

void intake_init(struct intake *intake, struct registry_app *entry, const struct app_state *state,
                 struct log *log);
void intake_dispose(struct intake *intake);

void inbox_inlet_init(struct inbox_inlet *in, struct inbox *inbox, struct intake *intake);

/* None is under way: reads the next run. False: there is none. */
bool inbox_inlet_next(struct inbox_inlet *in);

/* Begins the run just read. False: it has its result already. */
bool inbox_inlet_enter(struct inbox_inlet *in);

/* The events to be given. Events of clients take their numbers now, as other inlets may have been given some
 * since. */
struct events *inbox_inlet_left(struct inbox_inlet *in);

/* Some of them were given, and `left` is moved behind these: so is the cursor of their stream. */
void inbox_inlet_given(struct inbox_inlet *in);

/* Ends the run under way: all of it is stored; or what is left of it is refused. */
void inbox_inlet_stored(struct inbox_inlet *in);
void inbox_inlet_refuse(struct inbox_inlet *in, int error);

/* Answers those who ask for the state, if no events came before them. */
void inbox_inlet_show(struct inbox_inlet *in);

/* The app is suspended, or its store has failed: refuses all that is there. */
void inbox_inlet_refuse_all(struct inbox_inlet *in);

/* The turn's end: what is done up to now; whether anything of it has not taken effect yet. */
bool inbox_inlet_mark(const struct inbox_inlet *in, struct inbox_mark *mark);

/* It is committed: what has its result is freed, then the results go back. */
void inbox_inlet_commit(struct inbox_inlet *in, const struct inbox_mark *mark);

/* What is not committed never will be: its runs are refused, as all that comes is from now on. */
void inbox_inlet_fail(struct inbox_inlet *in, int error);

#endif
