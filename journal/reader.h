/* Reads sends back from segments, for outputs that have more records than their queue holds in memory. One
 * reader an owner, on its loop: it has one buffer and one open segment, whatever the number of outputs, and
 * serves those that ask in turn. Every frame is checked; damage is passed over to the next valid frame. */
#ifndef PURE_JOURNAL_READER_H
#define PURE_JOURNAL_READER_H

#include "core/loop.h"
#include "journal/store.h"

#define READER_WINDOW (256u << 10) /* bytes read at once; more for a longer frame, given back afterwards */

enum read_end {
    READ_DONE,   /* `next` is behind `last` */
    READ_FULL,   /* `take` took less than all */
    READ_LOST,   /* the segment ends, or is not there: the records from `next` to `last` are not in it */
    READ_FAILED, /* `error`: the disk; nothing is known of the records */
};

/* Records `next` to `last` of one output in one segment, looked for from `offset` on. Embedded in whoever
 * asks; nothing of it but `take` and `done` may change until `done`. */
struct read_request {
    const char *app, *output;
    uint64_t segment, offset;
    uint64_t next, last;
    /* Some of them: `first` is `next`, or more where records are missing (they are lost). Returns how many
     * were taken; `next` is moved behind them, `offset` to their frame. Must not call back. */
    uint64_t (*take)(struct read_request *r, const struct section_sends *sends);
    void (*done)(struct read_request *r, enum read_end end, int error);
    struct read_request *line;
    bool waiting;
};

struct journal_reader {
    struct store *store;
    struct loop *loop;
    struct task task;
    struct read_request *first, **last; /* in line; the first is served */
    int fd;
    uint64_t segment; /* that fd is of; 0: none */
    uint8_t *window;
    size_t room, size;
    uint64_t window_offset; /* in the segment */
    bool busy, stopping;
    struct io_op op;
    char name[SEGMENT_NAME_DIGITS + sizeof SEGMENT_SUFFIX];
    _Atomic uint64_t bytes;   /* read */
    _Atomic uint64_t damages; /* places passed over */
};

/* Room for a task on the loop. 0, PE_FULL or -ENOMEM. */
int journal_reader_init(struct journal_reader *r, struct store *store, struct loop *loop);

/* It is served when its turn comes; a request serves at most READER_WINDOW bytes of the segment a turn. */
void journal_read(struct journal_reader *r, struct read_request *request);

/* The segment is to be unlinked, or its writer went on: it is closed if it is open and nobody reads it. */
void journal_reader_forget(struct journal_reader *r, uint64_t segment);

/* Ends what is under way; requests get no `done` any more. */
void journal_reader_stop(struct journal_reader *r);
bool journal_reader_stopped(const struct journal_reader *r);
void journal_reader_dispose(struct journal_reader *r);

#endif
