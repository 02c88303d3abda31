/* Writes the log lines of all threads (core/log.h) to one descriptor, on the front's loop, at most one write
 * at a time and never waiting: a reader of stderr that stalls costs log lines, which are counted, and nothing
 * else. */
#ifndef PURE_HOST_LOG_WRITER_H
#define PURE_HOST_LOG_WRITER_H

#include "core/log.h"
#include "core/loop.h"

#define LOG_WRITER_BYTES   8192
#define LOG_WRITER_SOURCES 98 /* threads: 64 owners, 32 sending loops, the front, the listener */

struct log_writer {
    struct task task;
    struct loop *loop;
    struct io_op op;
    int fd;
    bool for_people;
    struct log *logs[LOG_WRITER_SOURCES];
    uint64_t dropped_told[LOG_WRITER_SOURCES]; /* of log->dropped, how many a line has told of */
    unsigned count;
    unsigned turn;          /* whose lines come first in the next write */
    uint32_t written, size; /* buffer[written, size) is on its way */
    bool broken;            /* the last write failed: its lines are lost */
    bool stopping;
    uint8_t buffer[LOG_WRITER_BYTES];
};

/* Becomes the reader of no log yet. `for_people`: lines begin with the time and the level in words; else with
 * "<4>", which the systemd journal reads. 0 or PE_FULL. */
int log_writer_init(struct log_writer *w, struct loop *loop, int fd, bool for_people);

/* Before the threads run: the log's lines go to this writer from now on. 0 or PE_FULL. */
int log_writer_add(struct log_writer *w, struct log *log);

/* Whether all lines that were logged until now are written. */
bool log_writer_idle(const struct log_writer *w);

/* Takes no more lines; gives up on a write that does not end. Step the loop until log_writer_stopped. */
void log_writer_stop(struct log_writer *w);
bool log_writer_stopped(const struct log_writer *w);

/* After log_writer_stopped, or when the loop's io has been disposed of and nothing completes any more. */
void log_writer_dispose(struct log_writer *w);

#endif
