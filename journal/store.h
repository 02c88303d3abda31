/* A store: the directory of segments that all owners of a host write into, what is in each segment, and who
 * still needs it.
 *
 *     DIRECTORY/                    mode 0700
 *         lock                      locked while a process has the store open
 *         0000000000000001.journal  segments (format.h)
 *         damaged/                  copies of damaged bytes: SEGMENT-OFFSET.bytes, never deleted by us
 *         deaths                    of apps (host/turn_mark.h); the store leaves it alone
 *
 * Opening is recovery, and always works unless the directory itself cannot be used or a segment is of a newer
 * format: what each segment holds is read from its seal, and where that is missing or damaged, from the
 * segment. Old segments are never written to again, but for a seal behind the last frame that counts. So time
 * and memory depend on the number of segments and on what was written since the last snapshots, not on the
 * backlog. What is then to be known of an app is replayed from the last snapshot on (store_replay).
 *
 * Which store it is, the frames say; if segments disagree, the majority. What is of another store, or has no
 * segment's name, is reported and left alone. A segment that was made but never written is empty, or zeros.
 * Where the disk fails to read, what was read of the segment before counts, and the rest is damage; such a
 * segment is neither written to nor removed. Damage is copied to damaged/, once, then noted in the segment's
 * seal: the next start knows it already.
 *
 * A segment is removed when nobody holds it: its writer; apps whose newest snapshot is in it, and what they
 * did since; outputs with records in it that are not stored; dead letters; a kept history. Whoever
 * releases a hold has made durable before what allows it. The one with the highest number stays: numbers go
 * on from it.
 *
 * Owners share this under a mutex, which is taken when segments begin, end or are released, never for a
 * record or a turn. store_open and store_replay are called before there are threads. */
#ifndef PURE_JOURNAL_STORE_H
#define PURE_JOURNAL_STORE_H

#include "journal/frame.h"
#include "journal/scan.h"

#include <pthread.h>
#include <stdatomic.h>

#define STORE_DEATHS_NAME     "deaths"
#define SEGMENT_BYTES_DEFAULT (UINT64_C(64) << 20)
#define SEGMENT_BYTES_MIN     (UINT64_C(256) << 10)
#define SEGMENT_NUMBER_MAX    (UINT64_MAX >> 1)
#define DAMAGE_COPY_MAX       (UINT64_C(64) << 20) /* of one place of damage; what is more is only reported */

struct segment {
    uint64_t number; /* from 1 to SEGMENT_NUMBER_MAX */
    uint64_t bytes;  /* set aside on the disk */
    uint64_t
        end; /* behind the last frame that counts (the seal not among them); while it is written: so far */
    uint64_t
        named;    /* a HEADER says that its seal is there, so all in front of it was durable; 0: none does */
    bool writing; /* its writer holds it */
    bool removing;
    bool unreadable; /* the disk fails to read some of it: it is left alone */
    uint32_t holds;
    struct seal seal;           /* while it is written, its writer's */
    struct journal_place place; /* of its seal; offset 0: it has none */
};

/* What opening found that is not as it was written; lines for people go to `say`. */
struct store_report {
    uint64_t damaged_places, damaged_bytes; /* now; those that a recovery before found are in known_… */
    uint64_t known_places;
    uint64_t torn_segments, torn_bytes; /* tails of writes that were not finished: nothing was lost */
    uint64_t foreign_files;             /* that are none of ours, by name or by store; left alone */
    uint64_t lost_commits;              /* gaps in the sequences of apps, seen by store_replay */
    uint64_t lost_records;              /* of outputs, that were not stored at their receivers */
};

struct store_options {
    struct files *files;
    const char *path; /* of the directory: made if its parent is there */
    uint64_t segment_bytes;
    /* Random bytes that nobody can guess: a new store's name. */
    void (*fill_random)(void *context, void *bytes, size_t size);
    void *random_context;
    uint64_t now_ms; /* wall clock */
    bool read_only;  /* fsck, log: nothing is written, locked or made; seals are not added */
    /* A line for the log about damage; `serious` if anything was lost. May be NULL. */
    void (*say)(void *context, bool serious, const char *line);
    void *say_context;
};

struct store {
    struct store_options options;
    int directory, lock_fd;
    uint64_t id; /* of the store; 0 in a read-only store without segments */
    _Atomic uint64_t next_number;
    pthread_mutex_t mutex;
    struct segment **segments; /* count of them, by number, upwards */
    uint32_t count, room;
    struct store_report report;
    /* seals that the next HEADER is to name */
    struct journal_place *new_seals;
    uint32_t new_seal_count, new_seal_room;
    _Atomic uint64_t bytes; /* of all segments, as they are set aside on the disk */
    bool (*kept)(void *context, const struct segment *segment); /* whether a history wants it. May be NULL */
    void *kept_context;
};

/* 0; PE_JOURNAL_LOCKED, PE_JOURNAL_VERSION, a negative errno; one line in `why`. Nothing is left then. */
int store_open(struct store *s, const struct store_options *options, char *why, size_t why_size);
void store_close(struct store *s);

/* The epoch of the streams from this store: BLAKE2b-128 of its id, so the id stays a secret. */
void store_epoch(const struct store *s, uint8_t epoch[JOURNAL_EPOCH_BYTES]);

/* --- before there are threads --- */

/* Calls `each` of every app that the segments know of, once, by name upwards. The name is valid until then.
 * 0 or -ENOMEM. */
int store_each_app(const struct store *s, void (*each)(void *context, const char *app), void *context);

/* Takes the newest snapshot of each app (those for which `wanted` says so; NULL: all) and then its commits
 * behind it, app by app in order, apps mixed. `frame` has been checked, its sections not. What `each` returns
 * other than 0 ends it for that app, not for others. A snapshot that is damaged is replaced by the one before
 * it, or by all commits that are there. Gaps in sequences are reported through `say` and counted, and so are
 * last commits that a seal knows of and that are not there. 0 or a negative errno. */
struct store_replay {
    bool (*wanted)(void *context, const char *app);
    int (*each)(void *context, const struct commit_head *head, const struct journal_frame *frame,
                struct span sections);
    void *context;
    /* May be NULL. At the end, of each app that `each` did not end. `sequence`: its last commit that is
     * there, or that a seal knows of. `unknown`: bytes of damage behind the last frame given of it, in which
     * it may have had commits and sends of which nothing is known, and which its receivers may have stored:
     * never more records than bytes. So numbers that go on behind as many are not given twice. */
    void (*end)(void *context, const char *app, uint64_t sequence, uint64_t unknown);
};
int store_replay(struct store *s, const struct store_replay *replay);

/* --- what is where --- */

/* Segments with records of an output behind number `after`, in order, but for those that are being written:
 * what is in them, their writer knows. Under the mutex: must not call back. */
struct store_sends {
    uint64_t segment, offset; /* where to begin to look for them */
    uint64_t first, last;     /* numbers: first may be at or below `after` */
    uint64_t bytes;           /* framed, of first to last */
};
void store_each_sends(struct store *s, const char *app, const char *output, uint64_t after,
                      void (*each)(void *context, const struct store_sends *sends), void *context);

/* --- holds --- */

/* Any thread: how many segments there are. */
uint32_t store_segments(struct store *s);
/* Whether there is such a segment; before there are threads, or of one that the caller holds. */
bool store_has(struct store *s, uint64_t number);
/* The segment must exist. */
void store_hold(struct store *s, uint64_t number);
void store_release(struct store *s, uint64_t number);

/* Any thread: the name of a segment that nobody needs, which is then the caller's to unlink (and to say so by
 * store_removed, or store_not_removed if it cannot be). False: there is none. */
bool store_take_removable(struct store *s, uint64_t *number);
void store_removed(struct store *s, uint64_t number);
void store_not_removed(struct store *s, uint64_t number);

/* Damage that was found while the host runs: copies it to damaged/, as a start does with what it finds.
 * Blocks; for what happens once in the life of a disk. 0 or a negative errno. */
int store_set_aside(struct store *s, uint64_t number, uint64_t offset, uint64_t bytes);

/* --- writers --- */

uint64_t store_new_number(struct store *s);
/* A segment that its writer has made, of that many bytes. It is held by its writer. 0 or -ENOMEM. */
int store_begin(struct store *s, uint64_t number, uint64_t bytes, struct segment **segment);
/* What a HEADER written now is to name: seals that no HEADER names yet, which are taken, and then, as far as
 * there is room, the oldest ones again, since the segments whose HEADERs name them go first. Copies at most
 * `room`. */
uint32_t store_take_seals(struct store *s, struct journal_place *seals, uint32_t room);
/* The writer has ended it (its seal lies at `seal_offset`; 0: it could not be written) and lets it go. */
void store_sealed(struct store *s, struct segment *segment, uint64_t seal_offset);

#define SEGMENT_NAME_SIZE (SEGMENT_NAME_DIGITS + sizeof SEGMENT_SUFFIX) /* with its NUL */
void segment_name(uint64_t number, char name[SEGMENT_NAME_SIZE]);
bool segment_number(const char *name, uint64_t *number); /* false: it is none */

#endif
