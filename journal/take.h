/* Taking a payload apart: numbers are little-endian, names are a byte with their size and then they. What
 * does not hold what is taken from it fails, and stays failed: everything taken then is zero and empty. */
#ifndef PURE_JOURNAL_TAKE_H
#define PURE_JOURNAL_TAKE_H

#include "core/bytes.h"
#include "journal/format.h"

#include <endian.h>

struct taker {
    const uint8_t *at, *end;
    bool failed;
};

static inline struct taker taker_of(struct span bytes)
{
    return (struct taker){bytes.data, bytes.data + bytes.size, false};
}

static inline size_t take_left(const struct taker *t)
{
    return (size_t)(t->end - t->at);
}

static inline struct span take_bytes(struct taker *t, uint64_t size)
{
    if (t->failed || size > take_left(t)) {
        t->failed = true;
        return span_of(t->at, 0);
    }
    struct span bytes = span_of(t->at, (size_t)size);
    t->at += size;
    return bytes;
}

static inline uint8_t take_u8(struct taker *t)
{
    struct span bytes = take_bytes(t, 1);
    return bytes.size == 1 ? bytes.data[0] : 0;
}

static inline uint32_t take_u32(struct taker *t)
{
    struct span bytes = take_bytes(t, 4);
    uint32_t value = 0;
    if (bytes.size == 4)
        memcpy(&value, bytes.data, 4);
    return le32toh(value);
}

static inline uint64_t take_u64(struct taker *t)
{
    struct span bytes = take_bytes(t, 8);
    uint64_t value = 0;
    if (bytes.size == 8)
        memcpy(&value, bytes.data, 8);
    return le64toh(value);
}

/* A text that may be empty. Without zero bytes, so that it can become a C string. */
static inline struct span take_text(struct taker *t)
{
    struct span text = take_bytes(t, take_u8(t));
    if (text.size > JOURNAL_NAME_MAX || (text.size > 0 && memchr(text.data, 0, text.size)))
        t->failed = true;
    return text;
}

/* The same, not empty. */
static inline struct span take_name(struct taker *t)
{
    struct span name = take_text(t);
    if (name.size == 0)
        t->failed = true;
    return name;
}

#endif
