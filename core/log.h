/* The log of one thread: lines into a bounded queue that the front writes to stderr without blocking. A full
 * queue drops lines and counts them; a thread never waits for whoever reads the log. */
#ifndef PURE_CORE_LOG_H
#define PURE_CORE_LOG_H

#include "core/board.h"
#include "core/record_queue.h"

enum log_level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_NOTICE = 5, LOG_INFO = 6 }; /* syslog's, RFC 5424 */

struct log {
    struct record_queue lines;
    struct board *reader; /* NULL: nobody is told */
    uint32_t reader_slot;
    _Atomic uint64_t dropped;
};

int log_init(struct log *log, struct board *reader, uint32_t reader_slot);
void log_dispose(struct log *log);

/* One line, without a newline; longer than 500 bytes is cut. Control bytes become '?'. Begins with the level
 * as "<4>", as systemd reads it. */
void log_line(struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
