/* What the sending apps of the benchmarks send: a fixed list of items.
 *
 *     item = value (8 bytes, little-endian: 1, 2, … count), then filler up to `size`
 *
 * A receiver that counts the items, sums their values and counts descents (a value not above the one before)
 * can tell whether each came exactly once and in order: after B bursts on one output it has seen B * count
 * items, a sum of B * count * (count + 1) / 2, and B - 1 descents. */
#ifndef PURE_EXPERIMENTS_APPS_ITEMS_H
#define PURE_EXPERIMENTS_APPS_ITEMS_H

#include "experiments/apps/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS_MAX      100000u
#define ITEM_MIN_BYTES 8u
#define ITEM_MAX_BYTES 65536u

struct items {
    uint32_t count;
    uint32_t size;  /* bytes of one item */
    uint8_t *bytes; /* count * size */
};

/* The number after "name=" in an app's argument, words apart by spaces; `otherwise` if it is not there. */
static inline uint32_t items_option(const char *arg, const char *name, uint32_t otherwise)
{
    size_t length = strlen(name);
    for (const char *at = arg; (at = strstr(at, name)); at += length)
        if ((at == arg || at[-1] == ' ') && at[length] == '=')
            return (uint32_t)strtoul(at + length + 1, NULL, 10);
    return otherwise;
}

static inline void items_put_value(uint8_t *item, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        item[i] = (uint8_t)(value >> 8 * i);
}

/* Makes the list of `arg`: items=1000 size=20 are the defaults. 0, or -1 with a reason in `error`. */
static inline int items_init(struct items *items, const char *arg, char *error, size_t error_size)
{
    items->count = items_option(arg, "items", 1000);
    items->size = items_option(arg, "size", 20);
    if (items->count < 1 || items->count > ITEMS_MAX || items->size < ITEM_MIN_BYTES ||
        items->size > ITEM_MAX_BYTES) {
        snprintf(error, error_size, "items= is 1 to %u, size= is %u to %u", ITEMS_MAX, ITEM_MIN_BYTES,
                 ITEM_MAX_BYTES);
        return -1;
    }
    items->bytes = malloc((size_t)items->count * items->size);
    if (!items->bytes) {
        snprintf(error, error_size, "no memory for the items");
        return -1;
    }
    memset(items->bytes, '.', (size_t)items->count * items->size);
    for (uint32_t i = 0; i < items->count; i++)
        items_put_value(items->bytes + (size_t)i * items->size, i + 1);
    return 0;
}

static inline void items_dispose(struct items *items)
{
    free(items->bytes);
}

/* Walks the items and sends each to every output of [first, last]. 0, or what pure_send returned. */
static inline int items_send(const struct items *items, struct pure_turn *turn, uint32_t first, uint32_t last)
{
    const uint8_t *item = items->bytes;
    for (uint32_t i = 0; i < items->count; i++, item += items->size)
        for (uint32_t output = first; output <= last; output++) {
            int sent = pure_send(turn, output, item, items->size);
            if (sent != 0)
                return sent;
        }
    return 0;
}

/* The state of a sending app: what it has sent. */
struct items_sent {
    uint64_t bursts;  /* walks that were sent whole */
    uint64_t records; /* sends of those */
};

static inline int items_sent_show(const struct items_sent *sent, struct pure_sink *sink)
{
    char text[80];
    int size = snprintf(text, sizeof text, "{\"bursts\":%llu,\"records\":%llu}\n",
                        (unsigned long long)sent->bursts, (unsigned long long)sent->records);
    return pure_write(sink, text, (size_t)size);
}

static inline int items_sent_snapshot(const struct items_sent *sent, struct pure_sink *sink)
{
    return words_snapshot(sink, (const uint64_t[]){sent->bursts, sent->records}, 2);
}

static inline int items_sent_restore(struct items_sent *sent, const void *data, size_t size)
{
    uint64_t words[2];
    if (words_restore(data, size, words, 2) != 0)
        return -1;
    *sent = (struct items_sent){words[0], words[1]};
    return 0;
}

#endif
