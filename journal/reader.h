/* Reads sends back from segments, for outputs that have more records than their queue holds in memory. One
 * reader an owner, on its loop: it has one buffer and one open segment at most, whatever the number of
 * outputs, none while nobody asks, and serves those that ask in turn. Every frame is checked; damage is
 * passed over to the next valid frame.
 *
 * A turn of a request: the segment is opened, if it is another one than the last; what of the window is
 * still good is used; a window is read from there on; its frames are gone through. Segments only grow, so a
 * frame that was valid once is good as long as it is in the window. What is not valid may have been written
 * since, and is believed only of a window just read. */
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

/* Records `next` to `last` of one output in one segment, looked for from `offset` on. All of them are durable
 * (what is not yet is not asked for), or lost. Embedded in whoever asks; he changes nothing of it until
 * `done`, and may then ask again at once. */
struct read_request {
    const char *app, *output;
    uint64_t segment, offset;
    uint64_t next, last;
    /* Some of them: `first` is `next`, or more where records are missing (they are lost). Returns how many
     * were taken, from the first on; `next` is moved behind them, `offset` to their frame, from where one may
     * go on. Must not call back. */
    uint64_t (*take)(struct read_request *r, const struct section_sends *sends);
    void (*done)(struct read_request *r, enum read_end end, int error);
    /* the reader's */
    struct read_request *line; /* the next one */
    bool waiting;              /* in line */
    uint64_t at;               /* all before is looked at; [offset, at) is no valid frame */
    /* damage passed over since records were taken last: where it begins, and how much of it there is */
    uint64_t damage_offset, damage_bytes;
};

struct journal_reader {
    struct store *store;
    struct loop *loop;
    struct task task;
    struct read_request *first, **last; /* in line; the first is served */
    int fd;                             /* -1: none */
    uint64_t segment;                   /* that is open, or being opened; 0: none */
    uint8_t *window;                    /* `room` bytes, `size` of them read */
    size_t room, size;                  /* room >= READER_WINDOW */
    uint64_t window_offset;             /* in the segment */
    bool fresh;                         /* the window was read in this turn, and has all there is */
    bool at_end;                        /* fresh: it ends where the file does */
    bool busy;                          /* `op` is under way */
    bool stopping;
    struct io_op op;
    char name[SEGMENT_NAME_SIZE];
    _Atomic uint64_t bytes;   /* read */
    _Atomic uint64_t damages; /* places passed over */
};

/* Room for a task on the loop. 0, PE_FULL or -ENOMEM. */
int journal_reader_init(struct journal_reader *r, struct store *store, struct loop *loop);

/* Joins the line. In a turn it gets through READER_WINDOW bytes of its segment at most, or one longer frame.
 */
void journal_read(struct journal_reader *r, struct read_request *request);

/* Ends what is under way; requests are forgotten: no `done` any more. */
void journal_reader_stop(struct journal_reader *r);
bool journal_reader_stopped(const struct journal_reader *r);
/* One that never ran or has stopped; or any, when its loop's io has been disposed of. */
void journal_reader_dispose(struct journal_reader *r);

#endif
