/* How the deliveries of an app's outputs go, on its owner: takes what deliverers tell (struct outlet_fare),
 * keeps it in the journal, and knows it after a restart. Part of struct owned_app; works whether the app does
 * or not, and without a journal, too: then nothing of it outlives the host.
 *
 * An output that is disabled stays so, over restarts, until somebody enables it, or what its deliverer is
 * told changes. If it disabled itself, another output of the app (`on_disable`) is sent a record that says
 * so, in the frame of the FARE that says `said`: once, whatever crashes. If that output has no room, the two
 * follow when it has; FARE without `said` goes ahead.
 *
 * Somebody at the front may want an output enabled or disabled (host/dead_request.h): the deliverer is asked,
 * and the answer follows once what it then tells is durable. */
#ifndef PURE_HOST_APP_FARE_H
#define PURE_HOST_APP_FARE_H

#include "core/outlet.h"
#include "host/app_dead.h"
#include "host/backlog.h"
#include "journal/frame.h"

struct owned_app;

/* What is known of an output. */
struct kept_fare {
    struct outlet_fare fare;
    bool said;              /* disabled: whoever is to hear of it has a record, or nobody is to hear */
    uint64_t configuration; /* digest of the options under which it fares so */
};

/* One whose deliverer tells. */
struct app_fare {
    struct app_fare *next;
    struct outlet *outlet;
    struct kept_fare *kept; /* its journal_output's, or `own` */
    struct kept_fare own;
    const _Atomic uint64_t *configuration; /* of the options in force; of the front's thread */
    struct outlet *hears;                  /* of its end; NULL: none does */
    struct backlog *hears_backlog;         /* NULL: nothing is journaled */
    bool waits_said;                       /* the log has a line that `hears` has no room */
};

/* A want of the front's, under way. */
struct fare_request {
    bool busy;
    struct app_fare *of;
    uint32_t wants; /* of the fare that was the newest when it was asked: the answer's is another one */
    enum dead_batch batch; /* after which it is answered */
};

/* --- a start --- */

struct journal_output;
void app_fare_restore(struct kept_fare *kept, const struct section_fare *fare);
/* The outlet's deliverer tells how it fares; what was known of it comes back in `*kept`, if it was told the
 * same (`configuration`, which outlives the app), else all is well. Before loops run, after the output was
 * added to the journal, if there is one. 0 or -ENOMEM. */
int app_fare_watch(struct owned_app *a, struct outlet *outlet, const _Atomic uint64_t *configuration,
                   struct kept_fare *kept);
/* When the outlet disables itself, `hears` is told; once all outputs are added. */
void app_fare_hears(struct owned_app *a, const struct outlet *outlet, struct outlet *hears);

/* Puts what a snapshot has to say of an output. */
void app_fare_frame(const struct kept_fare *kept, const char *output, struct frame_buffer *frames);

/* --- parts of the functions of the same names --- */

void app_fare_work(struct owned_app *a);
void app_fare_placed(struct owned_app *a);
void app_fare_durable(struct owned_app *a);
void app_fare_failed(struct owned_app *a);
void app_fare_dispose(struct owned_app *a);

#endif
