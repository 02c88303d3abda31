/* What is missing of apps and outputs, found by following their numbers through all frames of a store. */
#ifndef PURE_JOURNAL_FSCK_APPS_H
#define PURE_JOURNAL_FSCK_APPS_H

#include "journal/store.h"

/* Numbers that are missing, and between which places: those of the frames in front of and behind them.
 * `after` {0, 0}: there is none in front; `before` with offset UINT64_MAX: the end of that segment. */
struct fsck_gap {
    uint64_t first, last;
    struct journal_place after, before;
};

/* Commits of an app, or records of an output. */
struct fsck_run {
    uint64_t last; /* number of the last that is there */
    struct journal_place place;
    uint64_t claimed; /* number that a seal, or the output's own count, says is there, … */
    struct journal_place claimed_before; /* … in front of this */
    struct fsck_gap *gaps;
    uint32_t gap_count, gap_room;
};

struct fsck_output {
    char name[JOURNAL_NAME_MAX + 1];
    uint64_t stored; /* at its receiver: what is missing of these does not matter */
    struct fsck_run records;
};

struct fsck_app {
    const char *name;
    struct fsck_run commits; /* behind its newest snapshot */
    struct fsck_output *outputs;
    uint32_t output_count, output_room;
};

struct fsck_apps {
    struct fsck_app *apps; /* by name, upwards */
    uint32_t count;
};

/* Of the store's apps, whose names it has; 0 or -ENOMEM. */
int fsck_apps_init(struct fsck_apps *a, const struct store *s);
void fsck_apps_dispose(struct fsck_apps *a);

/* A COMMIT or SNAPSHOT, in order. 0; -ENOMEM; PE_JOURNAL: records in it are not whole. */
int fsck_apps_frame(struct fsck_apps *a, const struct journal_frame *frame);
/* What the seal of a segment says; 0 or -ENOMEM. */
int fsck_apps_seal(struct fsck_apps *a, uint64_t segment, const struct seal *seal);

/* After all frames and seals: each run of missing commits (output NULL) or records. 0 or -ENOMEM. */
int fsck_apps_missing(struct fsck_apps *a,
                      void (*each)(void *context, const char *app, const char *output,
                                   const struct fsck_gap *gap),
                      void *context);

#endif
