/* The writer of an owner's journal: group commit. It is a task on the owner's loop.
 *
 *     apps' turns ──frames──▶ the batch that fills ──one write, durable──▶ the segment
 *          ▲                                                                 │
 *          └───────────── durable: pushes, results, freeing ◀────────────────┘
 *
 * Turns go on while a write is under way; what they did goes into the next batch. One batch is written at a
 * time, so frames become durable in order. All apps of an owner share its batches: the number of writes
 * depends on the disk, not on the number of apps.
 *
 * A member (an app) joins the batch that fills, whether it added frames or not, and hears when all of that
 * batch, and so all before it, is durable. A batch without frames is durable at once when nothing is being
 * written.
 *
 * Segments: the next one is made (created, set aside, its name made durable) before the current one is full.
 * Is there none, as the disk is full, the batch waits and the making is tried again each RETRY; apps that ask
 * for room do not get it meanwhile. A write that finds no space is repeated unchanged. Any other failure ends
 * the store for good: `failed` of all members, and of whoever joins later (PE_JOURNAL_FAILED). A failed sync
 * is never tried again: what the disk has then, nobody knows; a new start finds out.
 *
 * RESERVE bytes of each segment are for its seal and for batches of `small` frames only, which let segments
 * go (what outputs have delivered): so a full disk empties itself. */
#ifndef PURE_JOURNAL_WRITER_H
#define PURE_JOURNAL_WRITER_H

#include "core/log.h"
#include "core/loop.h"
#include "journal/store.h"

#define JOURNAL_BATCH_BYTES \
    (2u << 20) /* a batch that has so many is full: no more turns until it is handed over */
#define JOURNAL_RETRY_NS NS_PER_S
#define JOURNAL_SLOW_NS  NS_PER_S /* a write that takes longer is worth a line in the log */

struct journal_writer;

/* Embedded in an app. */
struct journal_member {
    struct journal_member *next[2]; /* in the batches' lists, by the parity of their number */
    bool joined[2];
    /* Its batch is handed over: the frames in it lie behind `offset` of the segment. What fills from now on
     * is the next batch. Also of a batch without frames (segment 0). */
    void (*placed)(struct journal_member *m, uint64_t segment, uint64_t offset);
    void (*durable)(struct journal_member *m); /* that batch; exactly one after each `placed`, or `failed` */
    void (*failed)(struct journal_member *m, int error); /* the store; once */
};

struct journal_counters {
    _Atomic uint64_t writes; /* durable writes: each is a sync */
    _Atomic uint64_t bytes;  /* written */
    _Atomic uint64_t frames;
    _Atomic uint64_t segments; /* begun */
    _Atomic uint64_t removed;
    _Atomic uint64_t full;    /* times there was no space for a segment or a batch */
    _Atomic uint64_t wait_ns; /* in writes, all together */
    _Atomic uint64_t slowest_ns;
};

enum journal_condition { JOURNAL_OK, JOURNAL_FULL, JOURNAL_FAILED };

struct journal_options {
    struct store *store;
    struct loop *loop; /* the owner's: room for a task and two timers */
    struct log *log;
    /* A segment was begun: time for snapshots of apps whose last one is in an old segment. Called from the
     * writer's round; frames may be added. */
    void (*begun)(void *context, uint64_t segment);
    void *context;
};

struct journal_waiter {
    struct journal_waiter *next;
    bool waiting;
    void (*room)(struct journal_waiter *waiter);
};

/* writer.c has the rest. */
struct journal_writer {
    struct journal_options options;
    struct task task;
    struct timer due;   /* of the batch that fills */
    struct timer retry; /* to make a segment, or to repeat a write */
    struct frame_buffer buffers[2];
    struct journal_member *members[2], **members_end[2];
    uint64_t batch;          /* number of the one that fills; its buffer and members are [batch % 2] */
    uint64_t due_ns;         /* when it is to be handed over; NEVER: nobody waits for it */
    bool small;              /* it has frames that may use the reserve only */
    bool writing;            /* the batch before it is under way */
    struct segment *segment; /* current; NULL: none yet */
    int fd;
    uint64_t at;   /* where the next batch goes */
    uint64_t room; /* bytes set aside in the segment */
    struct journal_waiter *waiters;
    struct journal_counters counters;
    _Atomic int condition; /* enum journal_condition; read by status */
    _Atomic int error;     /* that ended it, or of the last failed making */
    int failure;           /* PE_JOURNAL_FAILED once the store has failed */
    bool stopping, stopped;
    struct journal_making *making; /* the next segment, and its operations (writer.c) */
    struct io_op write_op, seal_op, close_op, unlink_op;
    uint64_t write_began_ns;
    size_t written;    /* of the batch under way: short writes go on there */
    uint64_t removing; /* number of the segment that is being unlinked; 0: none */
    char removing_name[SEGMENT_NAME_DIGITS + sizeof SEGMENT_SUFFIX];
};

/* 0, PE_FULL (no place on the loop) or -ENOMEM. Begins to make its first segment when the loop runs. */
int journal_writer_init(struct journal_writer *w, const struct journal_options *options);

/* Where frames go (frame_begin …); one at a time. Only after journal_room said true in this round, or small.
 */
static inline struct frame_buffer *journal_frames(struct journal_writer *w)
{
    return &w->buffers[w->batch % 2];
}

/* Whether a turn may begin: the batch has room, and a place on the disk. Else `waiter` is told, once. */
bool journal_room(struct journal_writer *w, struct journal_waiter *waiter);

/* `due_ns`: when the batch is to be on its way at the latest: 0: at the end of this step of the loop. */
void journal_join(struct journal_writer *w, struct journal_member *member, uint64_t due_ns);

/* Whether a frame of so many bytes that lets a segment go may be added though journal_room says no. */
bool journal_reserve(struct journal_writer *w, size_t bytes);

/* Something was released: looks for segments to remove. */
void journal_released(struct journal_writer *w);

/* On the loop: hands over what there is, seals the segment, closes it. Nothing may be added any more. */
void journal_stop(struct journal_writer *w);
bool journal_stopped(const struct journal_writer *w);

/* After it stopped, or when its io was disposed of. */
void journal_writer_dispose(struct journal_writer *w);

#endif
