/* Text written piece behind piece: each puts at `to`, where the caller knows that there is room, and returns
 * the place behind it. No NUL is left there. */
#ifndef PURE_WIRE_PUT_H
#define PURE_WIRE_PUT_H

#include "core/bytes.h"

#define PUT_NUMBER_MAX 20 /* digits of a 64-bit number */

static inline char *put_span(char *to, struct span bytes)
{
    return bytes.size > 0 ? mempcpy(to, bytes.data, bytes.size) : to;
}

static inline char *put_text(char *to, const char *text)
{
    return put_span(to, span_text(text));
}

static inline char *put_number(char *to, uint64_t value)
{
    char digits[PUT_NUMBER_MAX];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    return mempcpy(to, digits + at, sizeof digits - at);
}

#endif
