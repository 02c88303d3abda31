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
 * written, and else together with the batch before it if nobody added frames until then.
 *
 * A write is a worker's, so that turns go on. Only where that gains nothing, a small batch of an owner that
 * has nothing else to do, on a disk that was fast just now, the owner waits itself: it saves two wakes.
 *
 * Segments: the next one is made (created, set aside, its name made durable) before the current one is full.
 * Its HEADER is the first frame of the first batch in it, so beginning a segment costs no write of its own;
 * the old one's SEAL is written at the same time. Is there no next one, as the disk is full, the batch waits
 * and the making is tried again each RETRY; apps that ask for room do not get it meanwhile. A write that
 * finds no space, or a read-only file system, is repeated unchanged. Any other failure of a write or a sync
 * ends the store for good: `failed` of all members, and of whoever joins later. A failed sync is never tried
 * again: what the disk has then, nobody knows; a new start finds out.
 *
 * RESERVE bytes of each segment are for its seal, and for what lets segments go (what outputs have
 * delivered) while there is no next one: so a full disk empties itself. For the same end a start that finds
 * too little space for a whole segment makes a small one, which takes no turns but in which that can be said.
 */
#ifndef PURE_JOURNAL_WRITER_H
#define PURE_JOURNAL_WRITER_H

#include "core/log.h"
#include "core/loop.h"
#include "journal/store.h"

/* A batch that has so many is full: no more turns until it is handed over. */
#define JOURNAL_BATCH_BYTES (2u << 20)
#define JOURNAL_RETRY_NS    NS_PER_S
#define JOURNAL_SLOW_NS     NS_PER_S        /* a write that takes longer is worth a line in the log, */
#define JOURNAL_SLOW_LOG_NS (60 * NS_PER_S) /* but one in so long a time only */

/* A batch of at most so many bytes is written in place if the last write took less than so long. */
#define JOURNAL_HERE_BYTES (16u << 10)
#define JOURNAL_HERE_NS    NS_PER_MS

/* At the end of each segment: for batches while there is no next segment; the second half for the seal. A
 * seal that is longer is written all the same, beyond what was set aside, if the disk has space. */
#define JOURNAL_RESERVE_BYTES (128u << 10)
#define JOURNAL_SEAL_BYTES    (JOURNAL_RESERVE_BYTES / 2)

/* Of a segment that is made when there is no space for a whole one. Less than RESERVE: so much at least was
 * free in the segment of the life before, and recovery gives it back. */
#define JOURNAL_SMALL_BYTES (96u << 10)

struct journal_writer;

/* Embedded in an app, which sets the callbacks; zeroes else. In `placed` and `durable` frames may be added
 * and the batch that fills joined. */
struct journal_member {
    struct journal_member *next[2]; /* in the batches' lists, by the parity of their number */
    bool joined[2];
    struct journal_member *next_entered;
    bool told; /* that the store has failed */
    /* Its batch is handed over: the frames in it lie behind `offset` of the segment. What fills from now on
     * is the next batch. Also of a batch without frames (segment 0). */
    void (*placed)(struct journal_member *m, uint64_t segment, uint64_t offset);
    void (*durable)(struct journal_member *m); /* that batch; exactly one after each `placed`, or `failed` */
    void (*failed)(struct journal_member *m, int error); /* the store; once */
};

struct journal_counters {
    _Atomic uint64_t writes; /* durable writes of batches: each is a sync */
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
     * writer's round, when the first batch is on its way; frames may be added. May be NULL. */
    void (*begun)(void *context, uint64_t segment);
    /* A segment, of whichever owner, is about to be unlinked: time to close it, as an open file keeps its
     * space. May be NULL. */
    void (*removing)(void *context, uint64_t segment);
    void *context;
    /* Whether all that runs on the loop waits for this journal, so that the loop may wait for a short write
     * as well as a worker. Does not change while the loop runs. NULL: no */
    const bool *alone;
};

struct journal_waiter {
    struct journal_waiter *next;
    bool waiting;
    void (*room)(struct journal_waiter *waiter);
};

struct journal_segments; /* the next segment, the old one's seal, unlinking (writer_segments.h) */

/* Read from outside: `counters`, `condition`, `error` (any thread), `failure` (the owner's). */
struct journal_writer {
    struct journal_options options;
    struct task task;
    struct timer due;   /* of the batch that fills */
    struct timer retry; /* to make a segment, or to repeat a write */
    struct frame_buffer buffers[2];
    struct journal_member *entered; /* all of them */
    struct journal_member *members[2], **members_end[2];
    uint64_t batch;  /* number of the one that fills; its buffer and members are [batch % 2] */
    uint64_t due_ns; /* when it is to be handed over; NEVER: nobody waits for it */
    struct journal_waiter *waiters;

    /* The batch before it, while `writing`: placed, perhaps on the disk, not durable. */
    bool writing;
    struct io_op write_op;
    uint64_t write_at;       /* where it begins in the current segment */
    size_t written;          /* of it: a short write goes on there */
    uint64_t write_began_ns; /* when it was handed over */
    uint64_t last_write_ns;  /* how long the one before took; 0: there was none */

    /* The current segment; NULL: none, and then fd is -1 and the rest 0. */
    struct segment *segment;
    int fd;
    uint64_t at;   /* where the next batch goes: behind all that was placed. 0: only before its first */
    uint64_t room; /* bytes set aside in it */
    bool torn;     /* its last batch was given up: it gets no seal */
    struct journal_segments *segments;

    struct journal_counters counters;
    _Atomic int condition;   /* enum journal_condition */
    _Atomic int error;       /* negative: that ended it, or for which the last making failed */
    int failure;             /* 0, or PE_JOURNAL_FAILED: the store has failed */
    bool no_segment;         /* making the next one failed, and is tried again */
    bool no_space;           /* the write under way found none, and is repeated; not in flight */
    uint64_t full_since_ns;  /* while FULL */
    uint64_t slow_logged_ns; /* NEVER: never yet */
    uint32_t slow_unlogged;  /* slow writes since */
    bool stopping, stopped;
};

/* 0, PE_FULL (no place on the loop) or -ENOMEM. Begins to make its first segment when the loop runs. */
int journal_writer_init(struct journal_writer *w, const struct journal_options *options);

/* Where frames go (frame_begin …); one at a time. Only after journal_room said true in this round, or
 * journal_reserve. */
static inline struct frame_buffer *journal_frames(struct journal_writer *w)
{
    return &w->buffers[w->batch % 2];
}

/* Whether a turn may begin: the batch has room, and a place on the disk. Else `waiter` is told, once. False
 * and nothing more once the store has failed, or stops: waiters from before are told of a failure. */
bool journal_room(struct journal_writer *w, struct journal_waiter *waiter);

/* `due_ns`: when the batch is to be on its way at the latest: 0: at the end of this step of the loop, behind
 * the rounds of tasks that wanted one before. */
void journal_join(struct journal_writer *w, struct journal_member *member, uint64_t due_ns);

/* Somebody waits for what is in the batch that fills: it is due now. */
void journal_hurry(struct journal_writer *w);

/* Whether a frame of so many bytes that lets a segment go may be added though journal_room says no. */
bool journal_reserve(struct journal_writer *w, size_t bytes);

/* Something was released: looks for segments to remove. */
void journal_released(struct journal_writer *w);

/* Once, before it joins or waits for room: it hears it if the store fails, whether it has joined a batch then
 * or not. It outlives the writer's last step. */
void journal_enter(struct journal_writer *w, struct journal_member *member);

/* On the loop: hands over what there is, seals the segment, closes it, unlinks the next one. Nothing may be
 * added any more but in `durable`. What cannot be written now is given up: its members hear nothing. */
void journal_stop(struct journal_writer *w);
bool journal_stopped(const struct journal_writer *w);

/* After it stopped, or when its io was disposed of: its descriptors are the io's then. Frees memory only. */
void journal_writer_dispose(struct journal_writer *w);

#endif
