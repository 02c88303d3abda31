#include "experiments/common/message.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BODY_MAX (SIZE_MAX / 4)

/* The value of the field line [at, end) if its name is `name` (with the colon), else NULL. */
static const char *value_of(const char *at, const char *end, const char *name)
{
    size_t length = strlen(name);
    if ((size_t)(end - at) < length || strncasecmp(at, name, length) != 0)
        return NULL;
    at += length;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static int read_size(const char *at, const char *end, size_t *size)
{
    size_t value = 0;
    const char *digit = at;
    for (; digit < end && *digit >= '0' && *digit <= '9'; digit++) {
        if (value > BODY_MAX / 10)
            return -1;
        value = value * 10 + (size_t)(*digit - '0');
    }
    *size = value;
    return digit == at ? -1 : 0;
}

static int read_field(const char *at, const char *end, struct message *message)
{
    const char *value;
    if ((*at | 0x20) == 'c') {
        if ((value = value_of(at, end, "content-length:")))
            return read_size(value, end, &message->body_size);
        if ((value = value_of(at, end, "connection:")))
            message->close = end - value >= 5 && strncasecmp(value, "close", 5) == 0;
    } else if ((*at | 0x20) == 't' && value_of(at, end, "transfer-encoding:")) {
        return -1;
    }
    return 0;
}

static int read_status(const char *at, const char *end)
{
    if (end - at < 12 || memcmp(at, "HTTP/1.", 7) != 0)
        return 0;
    return atoi(at + 9);
}

long message_parse(const char *bytes, size_t size, struct message *message)
{
    *message = (struct message){0};
    const char *at = bytes, *end = bytes + size;
    for (bool first = true;; first = false) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline)
            return 0;
        const char *line_end = newline > at && newline[-1] == '\r' ? newline - 1 : newline;
        if (first)
            message->status = read_status(at, line_end);
        else if (line_end == at) {
            at = newline + 1;
            break;
        } else if (read_field(at, line_end, message) != 0)
            return -1;
        at = newline + 1;
    }
    message->head_size = (size_t)(at - bytes);
    size_t whole = message->head_size + message->body_size;
    return whole <= size ? (long)whole : 0;
}
