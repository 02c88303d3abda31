/* An app on its owner: the task that gives it events from its inlets, a turn at a time.
 *
 * Inlets: the inboxes (from the front, and from the listener of links if other hosts may send here over
 * links) and the inner outlets that end here, visited round-robin. A turn ends
 * when the inlets are empty, the budget is spent, or an outlet is over 75 %. Committing it, in this order:
 * the sends are pushed, then what was consumed is freed, then its results go back. With a journal, all three
 * wait for the turn's frame to be durable, while further turns go on (host/app_journal.h).
 *
 * A unit that fails is undone, and tried again TRIES times; then it is refused: its requester is told. A unit
 * that cannot be refused (it came from an inner outlet), or FAILURES_IN_A_ROW refused ones, suspend the app.
 * A unit that finds an outlet full is undone and waits for room; it has not failed. A unit that does not end
 * within the app's turn_limit is undone, refused if it can be, and suspends the app; what the turn did before
 * it takes effect (host/turn_guard.h). A suspended app's state is closed, so that its memory comes back.
 *
 * An app that waits takes nothing from its inboxes or from other apps, except from those that it feeds
 * itself, directly or through others: a cycle of full outlets would never come down otherwise. What comes
 * into a cycle from outside leaves an eighth of each outlet free (docs/decisions/0004). */
#ifndef PURE_HOST_OWNED_APP_H
#define PURE_HOST_OWNED_APP_H

#include "core/log.h"
#include "core/loop.h"
#include "host/app_journal.h"
#include "host/app_state.h"
#include "host/inbox_inlet.h"

#define TURN_EVENTS       8192
#define TURN_BYTES        (256 * 1024)
#define TURN_NS           (2 * NS_PER_MS)
#define SLOW_EVENT_NS     (50 * NS_PER_US)
#define TRIES             3
#define FAILURES_IN_A_ROW 8

/* An inner outlet that ends at this app. */
struct inner_inlet {
    struct outlet *outlet;
    const char *event; /* the name its records get as events */
    char source[2 * OUTLET_NAME_MAX + 1];
    unsigned tries;               /* of the unit at its head, that failed */
    bool cyclic;                  /* this app feeds the outlet's app */
    struct stream_position given; /* before it: given to the app in this turn or earlier */
    uint8_t epoch[EPOCH_BYTES];   /* of the records' numbers: of the app that sends them */
    uint64_t framed;              /* number up to which the journal says that they are given */
    /* `given` as of the batch of the journal that fills, and of the one being written */
    struct stream_position filled, writing;
};

#define APP_INBOXES 2 /* the front's, and that of links */

/* The events being given. It lies here, and not in the functions that give, so that what of it is done
 * outlives a call that is left (host/turn_guard.h). */
struct giving {
    struct events *left; /* what was to be given; NULL: nothing is being given */
    struct pure_event event;
    const uint8_t *at; /* of the records: where the event at hand begins */
    bool whole;        /* they are one unit; else each is one */
};

struct owned_app {
    struct registry_app entry;
    struct loop *loop;
    struct log *log;
    struct task task;
    struct timer retry;
    void *module;
    struct app_state state;
    struct pure_turn turn;
    struct intake intake;
    struct app_journal journal;
    struct app_fare *fares; /* of outputs whose deliverer tells */
    struct fare_request fare;
    /* inlets by number: the inboxes, then the inner ones */
    struct inbox_inlet inboxes[APP_INBOXES];                     /* inbox_count of them; [0] is the front's */
    struct inbox_mark filled[APP_INBOXES], writing[APP_INBOXES]; /* of the journal's batches, likewise */
    unsigned inbox_count;
    struct inner_inlet *inners; /* inner_count of them */
    unsigned inner_count;
    unsigned next_inlet; /* whose turn it is to be the first */
    struct turn_outlet
        *full; /* a unit did not fit in it; it waits until at most `full_until` bytes are held there */
    uint64_t full_until;
    uint64_t needed;     /* what the unit at hand was taken to need when it waited last; 0: it has not */
    unsigned full_inlet; /* the inlet whose unit that is */
    bool in_cycle;       /* some inner inlet is cyclic */
    const struct outlet *waits_said; /* the log has a line that the app waits for it */
    /* of the unit that failed last; the texts are valid until the next run is entered */
    const char *failed_event, *failed_source;
    uint64_t failed_number;
    uint64_t failed_refused;  /* allocations that were refused in it */
    unsigned failures_in_row; /* units refused since one succeeded */
    /* the turn under way */
    unsigned inlet;
    struct giving giving;
    struct events inner_left;         /* of the inner inlet */
    struct stream_position inner_end; /* behind that */
    uint64_t deadline_ns;
    uint64_t events, bytes;
    uint64_t clock_ns, clock_due; /* when the clock was looked at last; at which event it is next */
    uint32_t clock_step;
};

/* Opens `app`; NULL (with the reason in `why`) or an app that does not open is suspended from the start.
 * `guard` may be NULL.
 * Outlets are set into turn.outlets, inner inlets added, before the loop runs. 0 or a negative errno. */
int owned_app_init(struct owned_app *a, const struct config_app *config, const struct pure_app *app,
                   const char *why, struct loop *loop, struct log *log,
                   const struct app_journal_options *journal, struct guard_app *guard);

/* Other hosts may send to the app over links: opens entry.links, of `capacity` bytes. Its front is set by
 * whoever joins it to the listener. Before the loop runs. 0 or a negative errno. */
int owned_app_add_links(struct owned_app *a, uint64_t capacity);

/* `cyclic`: this app feeds outlet's app, by way of inner outlets. `epoch`: of the app it comes from. After
 * the outlet was started. 0 or -ENOMEM. */
int owned_app_add_inner(struct owned_app *a, struct outlet *outlet, const char *event, bool cyclic,
                        const uint8_t epoch[EPOCH_BYTES]);

/* Its state could not be had back from the journal: it is suspended from the start. */
void owned_app_not_restored(struct owned_app *a, int error);

bool owned_app_suspended(const struct owned_app *a);

/* Of its journal: what the turns up to now have done is handed to the disk, is durable, will never be. */
void owned_app_placed(struct owned_app *a);
void owned_app_durable(struct owned_app *a);
void owned_app_store_failed(struct owned_app *a, int error);

void owned_app_dispose(struct owned_app *a);

/* --- owned_app.c's, for owned_app_life.c --- */

/* Takes no more events. `why` is for the log. */
void owned_app_suspend(struct owned_app *a, int error, const char *why);

/* The app's task. */
bool owned_app_run(struct task *task, uint64_t now_ns);

#endif
