#include "experiments/bench/text.h"

#include <stdio.h>
#include <string.h>

static uint64_t number_at(const char *at, const char *end)
{
    uint64_t value = 0;
    while (at < end && *at == ' ')
        at++;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    return value;
}

uint64_t text_json_number(const char *text, size_t size, const char *name)
{
    char key[64];
    int length = snprintf(key, sizeof key, "\"%s\":", name);
    const char *found = memmem(text, size, key, (size_t)length);
    return found ? number_at(found + length, text + size) : 0;
}

/* The value of a sample line [at, end): behind its labels, which may hold any byte but a newline. */
static uint64_t sample_value(const char *at, const char *end)
{
    const char *space = memrchr(at, ' ', (size_t)(end - at));
    return space ? number_at(space, end) : 0;
}

uint64_t text_metric_sum(const char *text, size_t size, const char *name)
{
    uint64_t sum = 0;
    size_t length = strlen(name);
    const char *end = text + size;
    for (const char *line = text; line < end;) {
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        line_end = line_end ? line_end : end;
        if ((size_t)(line_end - line) > length && memcmp(line, name, length) == 0 &&
            strchr(" {},\"-", line[length]))
            sum += sample_value(line + length, line_end);
        line = line_end + 1;
    }
    return sum;
}
