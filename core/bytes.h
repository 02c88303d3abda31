/* Bytes: spans, little-endian integers and the variable-length integer of RFC 9000 section 16. */
#ifndef PURE_CORE_BYTES_H
#define PURE_CORE_BYTES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_SIZE(a)                       (sizeof(a) / sizeof((a)[0]))
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* Somebody else's bytes; whoever hands a span out says how long they live. Not NUL-terminated. */
struct span {
    const uint8_t *data;
    size_t size;
};

static inline struct span span_of(const void *data, size_t size)
{
    return (struct span){data, size};
}

static inline struct span span_text(const char *text)
{
    return (struct span){(const uint8_t *)text, strlen(text)};
}

static inline bool span_equal(struct span a, struct span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool span_is(struct span a, const char *text)
{
    return span_equal(a, span_text(text));
}

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* RFC 9000 section 16: the two high bits of the first byte give the length (1, 2, 4 or 8 bytes), the rest is
 * the value in network order. Writers here use the shortest form; readers take any. */
#define VARINT_MAX       ((UINT64_C(1) << 62) - 1)
#define VARINT_MAX_BYTES 8

static inline size_t varint_size(uint64_t value)
{
    return value < 64 ? 1 : value < 16384 ? 2 : value < (1u << 30) ? 4 : 8;
}

/* Writes `value` (at most VARINT_MAX) at `out`, which has room for varint_size(value); returns that size. */
static inline size_t varint_put(uint8_t *out, uint64_t value)
{
    if (value < 64) {
        out[0] = (uint8_t)value;
        return 1;
    }
    if (value < 16384) {
        out[0] = (uint8_t)(0x40 | value >> 8);
        out[1] = (uint8_t)value;
        return 2;
    }
    size_t size = varint_size(value);
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(value >> 8 * (size - 1 - i));
    out[0] |= size == 4 ? 0x80 : 0xc0;
    return size;
}

/* Reads one integer from [at, end). Returns its size, or 0 if it is incomplete. */
static inline size_t varint_get(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    if (at >= end)
        return 0;
    size_t size = (size_t)1 << (*at >> 6);
    if (size == 1) {
        *value = *at;
        return 1;
    }
    if ((size_t)(end - at) < size)
        return 0;
    uint64_t v = *at & 0x3f;
    for (size_t i = 1; i < size; i++)
        v = v << 8 | at[i];
    *value = v;
    return size;
}

#endif
