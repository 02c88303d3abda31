/* What store*.c and fsck.c share. */
#ifndef PURE_JOURNAL_STORE_PRIVATE_H
#define PURE_JOURNAL_STORE_PRIVATE_H

#include "journal/store.h"

#define STORE_LOCK_NAME    "lock"
#define STORE_DAMAGED_NAME "damaged"
#define STORE_LINE_SIZE    512
#define SURVEY_HOLES_MAX   1024 /* of a segment: each is a file in damaged/ and an entry in its seal */

/* NULL: there is none of that number. */
struct segment *store_find(const struct store *s, uint64_t number);
/* A new one, in its place among the others; the caller has the mutex if there are threads. NULL: no memory.
 */
struct segment *store_insert(struct store *s, uint64_t number, uint64_t bytes);
/* A seal that no HEADER names yet. Without memory it is not named: it will be found by reading. */
void store_name_seal(struct store *s, struct journal_place place);

void store_say(const struct store *s, bool serious, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* -ELOOP: there is a symbolic link of that name. It may be no regular file: then it has no size. */
int store_open_segment(const struct store *s, uint64_t number,
                       int flags); /* a descriptor or a negative errno */

/* --- store_replay.c --- */

/* Names, upwards, each once; they lie in the segments' seals. `*names` is the caller's to free. 0, -ENOMEM.
 */
int store_app_names(const struct store *s, const char ***names, uint32_t *count);

/* Negative, 0 or positive, in the order of those names. */
static inline int store_name_order(struct span a, const char *b)
{
    size_t size = strlen(b);
    int order = memcmp(a.data, b, min_size(a.size, size));
    return order != 0 ? order : a.size < size ? -1 : a.size > size;
}

/* --- store_survey.c: what is in a segment --- */

struct survey {
    bool sealed;         /* a valid SEAL ends it */
    struct seal stored;  /* sealed: what that says */
    struct seal found;   /* what is there: its frames if `note`; its holes are all damage, new and known */
    uint64_t end;        /* behind the last frame that counts: where the seal is, or belongs */
    uint64_t tail_bytes; /* of a write that was not finished; 0: there are none but zeros */
    bool seal_lost;      /* a HEADER names a seal, all in front of which is there, but there is none */
    int error;           /* of a read: what lies from there on is the last hole */
    uint64_t frames;     /* valid ones */
};

/* Reads a segment from `from` on (0, or the place of a frame), calls `each` (may be NULL) of every COMMIT and
 * SNAPSHOT that counts, and notes them in `found` if `note`. 0, and `v` is to be disposed of; -ENOMEM. */
int survey_segment(struct store *s, const struct segment *segment, uint64_t from, bool note,
                   void (*each)(void *context, const struct journal_frame *frame), void *context,
                   struct survey *v);
void survey_dispose(struct survey *v);

/* --- store_damage.c: what is done about it --- */

/* Whether the segment's seal names the bytes as damaged already. */
bool damage_known(const struct segment *segment, const struct seal_hole *hole);

/* Reports all damage in v->found that the segment's seal does not know of, copies it aside unless the store
 * is read-only, and adds it to that seal in memory. *added: how many there were; all copies are there unless
 * *kept is false. 0 or -ENOMEM. */
int damage_take(struct store *s, struct segment *segment, const struct survey *v, uint32_t *added,
                bool *kept);

/* Writes what segment->seal says behind its last frame that counts (segment->end > 0), durably. 0 or a
 * negative errno. */
int damage_write_seal(struct store *s, struct segment *segment);

#endif
