/* The segments of a writer, but for what is written into them: the next one is made, the old one sealed, and
 * those that nobody needs are unlinked. Each of the three is one operation at a time, at most; they go on
 * beside the write of the batch.
 *
 *     making: NONE ─▶ open ─▶ allocate ─▶ sync the file ─▶ sync the directory ─▶ READY ─▶ current
 *               ▲       │        │              │                  │              │ (dropped)
 *               │       └────────┴──────────────┴──────────────────┴──────────────┤
 *               └── RESTING, if it failed: until the writer's retry ◀── close ◀── unlink
 *
 * Private to writer.c and writer_segments.c. */
#ifndef PURE_JOURNAL_WRITER_SEGMENTS_H
#define PURE_JOURNAL_WRITER_SEGMENTS_H

#include "journal/writer.h"

enum making_step {
    MAKING_NONE,
    MAKING, /* `op` is in flight */
    MAKING_READY,
    MAKING_UNDO, /* `op` is in flight */
    MAKING_RESTING,
};

struct journal_making {
    enum making_step step;
    uint64_t number; /* of the segment */
    uint64_t bytes;  /* to be set aside, or set aside */
    uint64_t least;  /* with how many it is of use; fewer than a segment has */
    int fd;          /* -1: not open */
    int error;       /* for which it is undone; 0: it is not needed any more */
    struct io_op op;
    char name[SEGMENT_NAME_DIGITS + sizeof SEGMENT_SUFFIX];
};

struct journal_sealing {
    struct segment *segment; /* NULL: none is being sealed */
    int fd;
    uint64_t at; /* where the seal goes */
    size_t written;
    struct frame_buffer frames;
    struct io_op op; /* the write, then the close */
};

struct journal_removing {
    uint64_t number; /* of the segment being unlinked; 0: none */
    bool resting;    /* the last unlink failed: until the writer's retry */
    struct io_op op;
    char name[SEGMENT_NAME_DIGITS + sizeof SEGMENT_SUFFIX];
};

struct journal_segments {
    struct journal_writer *writer;
    struct journal_making making;
    struct journal_sealing sealing;
    struct journal_removing removing;
    bool dropping; /* the writer stops: no next segment is wanted any more */
};

/* 0 or -ENOMEM. */
int segments_init(struct journal_writer *w);
void segments_dispose(struct journal_writer *w);

/* The next one: makes it, of at least that many bytes, if it is not being made or at rest; makes a ready one
 * anew if it is smaller. */
void segments_make(struct journal_writer *w, uint64_t bytes);
/* The rest is over: what could not be made or unlinked may be tried again. */
void segments_retry(struct journal_writer *w);
/* Whether it can become the current one, with so many bytes in it. */
bool segments_ready(const struct journal_writer *w, uint64_t bytes);
/* It becomes the current one; the one before is being sealed from now on. Nothing may be under way there. 0,
 * or -ENOMEM and nothing has changed. */
int segments_rotate(struct journal_writer *w);
/* It is not needed any more: it is unlinked. */
void segments_drop(struct journal_writer *w);

/* Seals and closes the current one, which has no batch under way; without a seal if it is torn or the store
 * has failed. Only if segments_sealing is false. */
void segments_end(struct journal_writer *w);
bool segments_sealing(const struct journal_writer *w);

/* Unlinks what nobody needs. */
void segments_remove(struct journal_writer *w);

/* Whether nothing is in flight and no next one is there. */
bool segments_idle(const struct journal_writer *w);

/* --- of writer.c --- */

/* ENOSPC, EDQUOT: it may go away. */
bool writer_is_no_space(int error);
/* One of w->no_segment, w->no_space begins to hold: the condition, the log, the retry. */
void writer_full(struct journal_writer *w, bool *why, int error);
void writer_has_space(struct journal_writer *w, bool *why);
/* Ends the store. */
void writer_fail(struct journal_writer *w, int error);

#endif
