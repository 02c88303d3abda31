/* Examines a store: every frame of every segment, and what apps and outputs have of commits and records.
 *
 * What opening and replaying a store finds, this finds, too, and more, since it reads everything:
 *  - bytes that are no valid frame, though they were durable (scan.h);
 *  - frames whose sections or records are none;
 *  - commits of an app that are missing behind its newest snapshot; records of an output that are missing and
 *    not stored at their receiver;
 *  - seals that are damaged, or do not say what is in their segment.
 * Tails of writes that were not finished are listed, and are no damage; nor is what a recovery or a repair
 * has found before and noted in a seal. */
#ifndef PURE_JOURNAL_FSCK_H
#define PURE_JOURNAL_FSCK_H

#include "core/files.h"

#include <stdbool.h>
#include <stdint.h>

/* What was found, before a repair. */
struct fsck_report {
    bool running; /* a host has the store open */
    uint64_t segments, bytes;
    uint64_t frames; /* valid ones */
    uint64_t damaged_places, damaged_bytes;
    uint64_t known_places; /* places of damage that were noted before */
    uint64_t wrong_seals;  /* that do not say what is there */
    uint64_t wrong_frames; /* valid, with records that are not whole */
    uint64_t torn_segments, torn_bytes;
    uint64_t foreign_files;
    /* not noted before: */
    uint64_t lost_commits, lost_records;
    uint64_t unexplained; /* runs of them that no damage explains: a segment is missing */
};

/* `line` is called of each line for people. `repair`: damaged bytes are copied to damaged/, and seals are
 * written that name the places; nothing else is changed. 0: nothing is wrong, or all of it was repaired;
 * PE_JOURNAL: something is; PE_JOURNAL_LOCKED: a running host has the store, so nothing is repaired;
 * PE_JOURNAL_VERSION or a negative errno: it cannot be examined. */
int fsck_store(struct files *files, const char *path, bool repair,
               void (*line)(void *context, const char *text), void *context, struct fsck_report *report);

#endif
