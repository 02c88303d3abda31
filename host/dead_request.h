/* What somebody at the front wants done with an app's output or its dead letters, and the answer: a place for
 * one request at a time, a word that goes to and fro between two threads.
 *
 *     FREE -- the front fills it, posts the owner --> ASKED
 *     ASKED -- the owner does it, posts the front --> ANSWERED
 *     ANSWERED -- the front takes the text --> FREE
 *
 * It does not go through the app's inbox: an app that waits, as its output is full of what is refused, takes
 * nothing from there. The fields are the writer's of the next step. */
#ifndef PURE_HOST_DEAD_REQUEST_H
#define PURE_HOST_DEAD_REQUEST_H

#include "core/outlet.h"
#include "host/text.h"

#include <stdatomic.h>

/* Letters that one request replays or drops at most; its answer says from where to go on. */
#define DEAD_CHANGE_MAX 1000

enum dead_request_state { DEAD_REQUEST_FREE, DEAD_REQUEST_ASKED, DEAD_REQUEST_ANSWERED };

enum dead_action {
    DEAD_TO_LIST,
    DEAD_TO_REPLAY,
    DEAD_TO_DROP,
    OUTPUT_TO_ENABLE, /* of the output itself: host/app_fare.h; the others: host/app_dead.h */
    OUTPUT_TO_DISABLE,
};

static inline bool dead_action_of_output(enum dead_action action)
{
    return action == OUTPUT_TO_ENABLE || action == OUTPUT_TO_DISABLE;
}

struct dead_request {
    _Atomic int state; /* enum dead_request_state: stored with release, read with acquire */
    enum dead_action action;
    char output[OUTLET_NAME_MAX];
    uint64_t first, last; /* numbers of letters: first <= last */
    /* the answer */
    int error;        /* 0; PE_NO_OUTPUT, PE_FULL, PE_JOURNAL_FAILED or -ENOMEM, and no text */
    const char *why;  /* of the error, for people, static; NULL: the error's own text */
    struct text text; /* JSON. Whoever takes it disposes of it */
};

static inline int dead_request_state(const struct dead_request *r)
{
    return atomic_load_explicit(&r->state, memory_order_acquire);
}

static inline void dead_request_pass(struct dead_request *r, enum dead_request_state state)
{
    atomic_store_explicit(&r->state, state, memory_order_release);
}

#endif
