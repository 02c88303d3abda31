#include "host/log_writer.h"

#include "core/error.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define DROPPED_LINE_BYTES 96
#define STAMP_BYTES        40

static uint32_t room(const struct log_writer *w)
{
    return LOG_WRITER_BYTES - w->size;
}

static const char *level_name(char digit)
{
    return digit <= '0' + LOG_ERROR ? "error" : digit == '0' + LOG_WARNING ? "warning" : "notice";
}

/* For people: the time (RFC 3339, UTC) and the level in words, instead of the "<4>" that the journal reads.
 */
static void append_for_people(struct log_writer *w, struct span line)
{
    time_t now = (time_t)(io_wall_ms(w->loop->io) / 1000);
    struct tm utc;
    gmtime_r(&now, &utc);
    char *at = (char *)w->buffer + w->size;
    size_t stamp = strftime(at, STAMP_BYTES, "%Y-%m-%dT%H:%M:%SZ ", &utc);
    stamp += (size_t)snprintf(at + stamp, STAMP_BYTES - stamp, "%s: ", level_name((char)line.data[1]));
    memcpy(at + stamp, line.data + 3, line.size - 3);
    w->size += (uint32_t)(stamp + line.size - 3);
}

static void append(struct log_writer *w, struct span line)
{
    if (w->for_people && line.size > 3) {
        append_for_people(w, line);
        return;
    }
    memcpy(w->buffer + w->size, line.data, line.size);
    w->size += (uint32_t)line.size;
}

/* Appends whole lines of one log. True: some are left for want of room. */
static bool gather_lines(struct log_writer *w, struct log *log)
{
    struct stream_position at = log->lines.freed;
    struct stream_position end = record_queue_see_published(&log->lines);
    bool left = false;
    while (at.bytes < end.bytes && !left) {
        struct span rest = record_queue_span(&log->lines, at.bytes), line;
        size_t framed = record_get(rest.data, rest.data + rest.size, &line);
        assert(framed > 0 && line.size <= LOG_WRITER_BYTES);
        left = line.size + STAMP_BYTES > room(w);
        if (left)
            break;
        append(w, line);
        at.bytes += framed;
        at.records++;
    }
    record_queue_free_to(&log->lines, at);
    return left;
}

static void gather_dropped(struct log_writer *w, unsigned i)
{
    uint64_t dropped = atomic_load_explicit(&w->logs[i]->dropped, memory_order_relaxed);
    if (dropped == w->dropped_told[i] || room(w) < DROPPED_LINE_BYTES)
        return;
    char line[DROPPED_LINE_BYTES - STAMP_BYTES];
    int size = snprintf(line, sizeof line, "<%d>%llu log lines were dropped\n", LOG_WARNING,
                        (unsigned long long)(dropped - w->dropped_told[i]));
    append(w, span_of(line, (size_t)size));
    w->dropped_told[i] = dropped;
}

/* The log that ran out of room begins the next write, so that none is starved. */
static void gather(struct log_writer *w)
{
    w->written = w->size = 0;
    for (unsigned i = 0; i < w->count; i++) {
        unsigned which = (w->turn + i) % w->count;
        if (gather_lines(w, w->logs[which])) {
            w->turn = which;
            return;
        }
        gather_dropped(w, which);
    }
}

static void written(struct io_op *op, int result, bool more);

static void write_rest(struct log_writer *w)
{
    io_prepare_memory(&w->op, IO_WRITE, w->fd, w->buffer + w->written, w->size - w->written, written);
    io_queue(w->loop->io, &w->op);
}

static void written(struct io_op *op, int result, bool more)
{
    (void)more;
    struct log_writer *w = container_of(op, struct log_writer, op);
    bool passing = result == -EINTR || result == -EAGAIN;
    if (result > 0)
        w->written += (uint32_t)result;
    w->broken = result <= 0 && !passing;
    if (w->stopping)
        return;
    if (w->written < w->size && !w->broken)
        write_rest(w);
    else
        loop_want(w->loop, &w->task);
}

static bool run(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    struct log_writer *w = container_of(task, struct log_writer, task);
    if (w->op.in_flight || w->stopping)
        return false;
    gather(w);
    if (w->size > 0)
        write_rest(w);
    return false;
}

int log_writer_init(struct log_writer *w, struct loop *loop, int fd, bool for_people)
{
    *w = (struct log_writer){.loop = loop, .fd = fd, .for_people = for_people, .task.run = run};
    return loop_add(loop, &w->task);
}

int log_writer_add(struct log_writer *w, struct log *log)
{
    if (w->count == LOG_WRITER_SOURCES)
        return PE_FULL;
    log->reader = &w->loop->board;
    log->reader_slot = w->task.slot;
    w->logs[w->count++] = log;
    loop_want(w->loop, &w->task); /* lines from before */
    return 0;
}

bool log_writer_idle(const struct log_writer *w)
{
    bool idle = !w->op.in_flight;
    for (unsigned i = 0; i < w->count; i++)
        idle = idle && record_queue_glance(&w->logs[i]->lines).held_records == 0;
    return idle;
}

void log_writer_stop(struct log_writer *w)
{
    w->stopping = true;
    io_cancel(w->loop->io, &w->op);
}

bool log_writer_stopped(const struct log_writer *w)
{
    return w->stopping && !w->op.in_flight;
}

void log_writer_dispose(struct log_writer *w)
{
    for (unsigned i = 0; i < w->count; i++)
        w->logs[i]->reader = NULL;
    loop_remove(w->loop, &w->task);
}
