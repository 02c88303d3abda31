/* dst: the receiving app of the benchmarks. It counts its events, sums their values (the first 8 bytes,
 * little-endian, of items.h) and counts descents: values not above the one before. It costs a few
 * instructions a record, so that what is measured is the host; more, if its argument says so (load.h):
 * spin=20us stall=5ms/1000 meter=FILE. */
#include "experiments/apps/load.h"
#include "experiments/apps/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dst {
    uint64_t records;
    uint64_t sum; /* modulo 2^64 */
    uint64_t last;
    uint64_t descents;
    struct load load;
};

static int dst_open(void **state, const char *arg, char *error, size_t error_size)
{
    struct dst *dst = calloc(1, sizeof *dst);
    if (!dst) {
        snprintf(error, error_size, "no memory");
        return -1;
    }
    if (load_init(&dst->load, arg, error, error_size) != 0) {
        free(dst);
        return -1;
    }
    *state = dst;
    return 0;
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
    load_event(&dst->load, dst->records, dst->sum);
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
    dst->records = words[0];
    dst->sum = words[1];
    dst->last = words[2];
    dst->descents = words[3];
    return 0;
}

static void dst_close(void *state)
{
    struct dst *dst = state;
    load_dispose(&dst->load);
    free(dst);
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
