/* dst: the receiving app of the benchmarks. It counts its events, sums their values (the first 8 bytes,
 * little-endian, of items.h) and counts descents: values not above the one before. It costs a few
 * instructions a record, so that what is measured is the host. */
#include "experiments/apps/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dst {
    uint64_t records;
    uint64_t sum; /* modulo 2^64 */
    uint64_t last;
    uint64_t descents;
};

static int dst_open(void **state, const char *arg, char *error, size_t error_size)
{
    (void)arg;
    *state = calloc(1, sizeof(struct dst));
    if (*state)
        return 0;
    snprintf(error, error_size, "no memory");
    return -1;
}

static uint64_t value_of(const struct pure_event *event)
{
    uint64_t value = 0;
    if (event->size >= sizeof value)
        memcpy(&value, event->data, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static int dst_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    (void)turn;
    struct dst *dst = state;
    uint64_t value = value_of(event);
    dst->records++;
    dst->sum += value;
    dst->descents += value <= dst->last;
    dst->last = value;
    return 0;
}

static int dst_show(void *state, struct pure_sink *sink)
{
    const struct dst *dst = state;
    char text[128];
    int size = snprintf(text, sizeof text, "{\"records\":%llu,\"sum\":%llu,\"descents\":%llu}\n",
                        (unsigned long long)dst->records, (unsigned long long)dst->sum,
                        (unsigned long long)dst->descents);
    return pure_write(sink, text, (size_t)size);
}

static int dst_snapshot(void *state, struct pure_sink *sink)
{
    const struct dst *dst = state;
    return words_snapshot(sink, (const uint64_t[]){dst->records, dst->sum, dst->last, dst->descents}, 4);
}

static int dst_restore(void *state, const void *data, size_t size)
{
    struct dst *dst = state;
    uint64_t words[4];
    if (words_restore(data, size, words, 4) != 0)
        return -1;
    *dst = (struct dst){words[0], words[1], words[2], words[3]};
    return 0;
}

static void dst_close(void *state)
{
    free(state);
}

const struct pure_app pure_app = {
    .abi = PURE_APP_ABI,
    .outputs = (const char *const[]){NULL},
    .open = dst_open,
    .event = dst_event,
    .show = dst_show,
    .snapshot = dst_snapshot,
    .restore = dst_restore,
    .close = dst_close,
};
