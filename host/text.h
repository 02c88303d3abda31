/* Text that grows while it is written, for answers that are not on a hot path. Growing without memory, or
 * over its limit, makes it `failed`; what follows is then ignored, so that a writer looks once, at the end.
 */
#ifndef PURE_HOST_TEXT_H
#define PURE_HOST_TEXT_H

#include "core/bytes.h"

#define TEXT_MAX (64u << 20)

struct text {
    char *data; /* malloc'ed; whoever takes it frees it */
    size_t size;
    size_t room;
    bool failed;
};

void text_add(struct text *t, const void *data, size_t size);
void text_format(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_dispose(struct text *t);

/* Bytes of the UTF-8 sequence at the front of `bytes`, 0 if it is none (RFC 3629 section 4). */
size_t text_utf8(struct span bytes);

/* A JSON string (RFC 8259 section 7), quotes included. Bytes that are not UTF-8 become U+FFFD. */
void text_json(struct text *t, const char *string);

/* The value of a Prometheus label, quotes included: backslash, quote and newline are escaped. */
void text_label(struct text *t, const char *string);

#endif
