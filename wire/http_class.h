/* Classes of bytes in HTTP/1.1 and in URLs: one table, a bit a class. */
#ifndef PURE_WIRE_HTTP_CLASS_H
#define PURE_WIRE_HTTP_CLASS_H

#include "core/bytes.h"

enum {
    CLASS_TOKEN = 1, /* tchar (RFC 9110 section 5.6.2) */
    CLASS_TEXT = 2,  /* SP, HTAB, VCHAR, obs-text: values, reasons, chunk extensions (RFC 9110 section 5.5) */
    CLASS_KEPT = 4,  /* anything but NUL, CR and LF: what a client may keep in a value (section 5.5) */
    CLASS_TARGET = 8,  /* pchar, '/', '?', '%' (RFC 3986 section 3.3 and 3.4) */
    CLASS_HOST = 16,   /* reg-name, IP-literal, ':', '%' (RFC 3986 section 3.2) */
    CLASS_HEX = 32,    /* HEXDIG of either case */
    CLASS_LABEL = 64,  /* letters, digits, '-', '_': labels of a name to be looked up */
    CLASS_DIGIT = 128, /* DIGIT */
};

extern const uint8_t http_class[256];

static inline bool http_class_is(uint8_t byte, uint8_t classes)
{
    return (http_class[byte] & classes) != 0;
}

/* How many bytes at the front of [at, end) are of a class of `classes`. */
static inline size_t http_class_run(const uint8_t *at, const uint8_t *end, uint8_t classes)
{
    const uint8_t *start = at;
    while (at < end && http_class_is(*at, classes))
        at++;
    return (size_t)(at - start);
}

static inline bool http_class_all(struct span text, uint8_t classes)
{
    return http_class_run(text.data, text.data + text.size, classes) == text.size;
}

/* The value of a CLASS_HEX byte. */
static inline unsigned http_hex(uint8_t byte)
{
    return byte <= '9' ? byte - (unsigned)'0' : (byte | 0x20) - (unsigned)'a' + 10;
}

static inline uint8_t http_lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

/* CLASS_TARGET only, and two hexadecimal digits after each '%' (RFC 3986 section 2.1). */
bool http_target_valid(struct span text);

#endif
