/* A state that is a few 64-bit words, as a snapshot: little-endian, one behind the other. */
#ifndef PURE_EXPERIMENTS_APPS_WORDS_H
#define PURE_EXPERIMENTS_APPS_WORDS_H

#include "host/app.h"

static inline int words_snapshot(struct pure_sink *sink, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[8];
        for (unsigned j = 0; j < 8; j++)
            bytes[j] = (uint8_t)(words[i] >> 8 * j);
        int written = pure_write(sink, bytes, sizeof bytes);
        if (written != 0)
            return written;
    }
    return 0;
}

/* 0, or -1 if `size` is not that of `count` words. */
static inline int words_restore(const void *data, size_t size, uint64_t *words, size_t count)
{
    const uint8_t *bytes = data;
    if (size != 8 * count)
        return -1;
    for (size_t i = 0; i < count; i++) {
        words[i] = 0;
        for (unsigned j = 0; j < 8; j++)
            words[i] |= (uint64_t)bytes[8 * i + j] << 8 * j;
    }
    return 0;
}

#endif
