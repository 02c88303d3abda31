/* What an app has in the journal: its turns on their way there, and back from there after a start.
 *
 * A turn's frame says which events were taken, what was sent, and how far each source has come; it is begun
 * by the turn's first event and ended by its commit. The app then joins the writer's batch. When that is
 * durable, everything takes effect that the turn has done: backlogs publish, inner outlets that end here are
 * freed, inboxes are freed and their results go back (with durability `interval` inboxes do not wait).
 *
 * A snapshot has all that is to be known of the app, so that what was journaled before is not needed to know
 * it. One is written after each start, and then every SNAPSHOT_SEGMENTS segments of its owner, and as many
 * more as four times its state fills: what a large state costs is a fraction of what is written anyway.
 *
 * That receivers have stored something is journaled with the app's next frame, or after ACKS_NS in one of its
 * own: losing it means to send again what they know.
 *
 * Part of struct owned_app; functions take that. Without a store, or with durability `memory`, nothing here
 * is in use (`on` is false). */
#ifndef PURE_HOST_APP_JOURNAL_H
#define PURE_HOST_APP_JOURNAL_H

#include "host/app_dead.h"
#include "host/app_fare.h"
#include "host/app_state.h"
#include "host/backlog.h"
#include "host/config.h"
#include "host/inbox.h"

#define SNAPSHOT_SEGMENTS 4
#define ACKS_NS           NS_PER_S

struct owned_app;

/* What the host gives each app whose turns are journaled. */
struct app_journal_options {
    struct store *store;           /* NULL: none */
    struct journal_writer *writer; /* the owner's */
    struct journal_reader *reader; /* the owner's */
    const uint64_t *begun;         /* segments that the writer has begun: counts up */
    enum app_durability durability;
    uint64_t interval_ns;
    void (*fill_random)(void *context, void *bytes, size_t size); /* for epochs */
    void *random_context;
    bool keeps; /* a history of its events is kept: their bytes are journaled, whatever they change */
};

/* An output as the journal knows it; also one that the configuration no longer has. */
struct journal_output {
    char name[JOURNAL_NAME_MAX + 1];
    uint64_t sent, stored; /* as found at the start */
    uint64_t reach;        /* likewise, as of an OUTPUT section; and its epoch */
    uint8_t epoch[EPOCH_BYTES];
    enum dead_batch noted;   /* reach and epoch, as the deliverer waits for (struct outlet_contact) */
    struct backlog *backlog; /* NULL: the configuration has no such output; its records are held */
    struct output_dead dead;
    struct kept_fare fare;
    struct journal_output *next;
};

/* The cursor of an inner outlet that ends at this app, as found at the start. */
struct journal_source {
    char name[JOURNAL_NAME_MAX + 1];
    uint8_t epoch[EPOCH_BYTES];
    uint64_t stored;
    struct journal_source *next;
};

struct app_journal {
    bool on;
    bool failed; /* the store has: nothing is journaled any more */
    struct app_journal_options options;
    struct journal_member member;
    struct journal_waiter room;
    struct timer acks;
    bool acks_due;
    uint64_t sequence; /* of the last commit that is ended */
    uint64_t unknown;  /* records that each output may have sent and of which the journal no longer knows */
    bool framing;      /* the next one is begun */
    bool framed;       /* frames of the app are in the batch that fills */
    struct journal_output *outputs;
    struct journal_source *sources;
    struct app_dead dead;
    /* snapshots */
    bool snapshot_due, snapshot_filled, snapshot_writing;
    uint64_t snapshot_begun;   /* options.begun when the last one was framed */
    uint64_t snapshot_size;    /* bytes of its state */
    uint64_t snapshot_segment; /* of the one being written */
    struct pure_sink snapshot;
    /* segments with frames that are needed to know the app, oldest first, each held */
    uint64_t *segments;
    uint32_t segment_count, segment_room;
};

void app_journal_init(struct owned_app *a, const struct app_journal_options *options);
void app_journal_dispose(struct owned_app *a);

/* --- a start, before the loops run --- */

/* The `each` of store_replay, for this app. 0; PE_APP_FAILED: the state could not be rebuilt, PE_JOURNAL, a
 * negative errno. What there is besides the state is put back in any case. */
int app_journal_restore(struct owned_app *a, const struct commit_head *head,
                        const struct journal_frame *frame, struct span sections);
/* After the last: commits go on behind `sequence`; what was sent in `unknown` bytes of damage, which is no
 * more records than bytes, may have arrived: numbers of all outputs go on behind as many. */
void app_journal_go_on(struct owned_app *a, uint64_t sequence, uint64_t unknown);
/* After the last: the state is whole. 0 or a negative error of it. */
int app_journal_restored(struct owned_app *a);

/* An outlet of the app gets its backlog, and starts where it was. 0 or -ENOMEM. */
int app_journal_add_output(struct owned_app *a, struct outlet *outlet, uint64_t limit,
                           struct backlog **backlog);
/* How far the app has taken an inner outlet that ends here, "APP.OUTPUT"; 0: it has taken nothing. */
uint64_t app_journal_source(const struct owned_app *a, const char *name, const uint8_t epoch[EPOCH_BYTES]);
/* The epoch of the output's stream. NULL: the store's. */
const uint8_t *app_journal_epoch(struct owned_app *a, const char *output);
/* After all outputs are added: says which the configuration no longer has, and holds what they have. */
void app_journal_park(struct owned_app *a);
/* Before app_journal_add_output of the producer: its receiver has all up to `stored`. -ENOMEM or 0. */
int app_journal_stored(struct owned_app *a, const char *output, uint64_t stored);

/* Adds it to j->segments, if it is not the last there: 1, or 0. -ENOMEM. Nothing is held by that. */
int app_journal_note_segment(struct app_journal *j, uint64_t segment);

/* --- turns --- */

/* Events were given, with success. */
void app_journal_events(struct owned_app *a, const struct events *events);

/* Whether a turn may begin. If not, the app's task runs again when it may. */
bool app_journal_room(struct owned_app *a);

/* The app waits for what its last turns have sent: it does not wait for an interval. */
void app_journal_hurry(struct owned_app *a);

/* What is to be done besides turns: bringing records back, snapshots, acknowledgements. Once a round. */
void app_journal_work(struct owned_app *a);

/* The turn has ended: its frame is, too, and the app waits for it to be durable. `marked`: something is to
 * take effect then, whether there is a frame or not. */
void app_journal_commit(struct owned_app *a, bool marked);

/* Between turns, while there is room: the frame that the next commit ends, for sections of others. */
struct frame_buffer *app_journal_frame(struct owned_app *a);

/* The host stops, and turns have ended: journals what receivers have stored. */
void app_journal_stop(struct owned_app *a);

#endif
