#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

#define LOG_QUEUE_BYTES (64 * 1024)
#define LOG_LINE_BYTES  512

int log_init(struct log *log, struct board *reader, uint32_t reader_slot)
{
    *log = (struct log){.reader = reader, .reader_slot = reader_slot};
    return record_queue_init(&log->lines, LOG_QUEUE_BYTES);
}

void log_dispose(struct log *log)
{
    record_queue_dispose(&log->lines);
}

void log_line(struct log *log, enum log_level level, const char *format, ...)
{
    char line[LOG_LINE_BYTES];
    int prefix = snprintf(line, sizeof line, "<%d>", level);
    va_list arguments;
    va_start(arguments, format);
    int text = vsnprintf(line + prefix, sizeof line - (size_t)prefix - 1, format, arguments);
    va_end(arguments);
    size_t size = min_size((size_t)(prefix + (text > 0 ? text : 0)), sizeof line - 2);
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    }
    line[size++] = '\n';
    if (record_queue_append(&log->lines, line, size) < 0) {
        counter_add(&log->dropped, 1);
        return;
    }
    record_queue_publish(&log->lines);
    if (log->reader)
        board_post(log->reader, log->reader_slot);
}
