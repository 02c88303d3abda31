/* src: the sending app of the benchmarks. An event walks its items (items.h) and sends each one:
 *
 *     burst      to `out`
 *     burst4     to each of o1 … o4
 *     burst16    to each of o1 … o16
 *
 * Argument: items=1000 size=20. */
#include "experiments/apps/items.h"

struct src {
    struct items items;
    struct items_sent sent;
};

static const char *const outputs[] = {"out", "o1",  "o2",  "o3",  "o4",  "o5",  "o6",  "o7",  "o8",
                                      "o9",  "o10", "o11", "o12", "o13", "o14", "o15", "o16", NULL};

/* Outputs [first, last] by index in `outputs`. */
static const struct burst {
    const char *event;
    uint32_t first, last;
} kinds[] = {{"burst", 0, 0}, {"burst4", 1, 4}, {"burst16", 1, 16}};

static int src_open(void **state, const char *arg, char *error, size_t error_size)
{
    struct src *src = calloc(1, sizeof *src);
    if (!src || items_init(&src->items, arg, error, error_size) != 0) {
        free(src);
        return -1;
    }
    *state = src;
    return 0;
}

static int src_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    struct src *src = state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct burst *kind = &kinds[i];
        if (strcmp(event->name, kind->event) != 0)
            continue;
        int sent = items_send(&src->items, turn, kind->first, kind->last);
        if (sent != 0)
            return sent;
        src->sent.bursts++;
        src->sent.records += (uint64_t)src->items.count * (kind->last - kind->first + 1);
        return 0;
    }
    return -1;
}

static int src_show(void *state, struct pure_sink *sink)
{
    const struct src *src = state;
    return items_sent_show(&src->sent, sink);
}

static int src_snapshot(void *state, struct pure_sink *sink)
{
    const struct src *src = state;
    return items_sent_snapshot(&src->sent, sink);
}

static int src_restore(void *state, const void *data, size_t size)
{
    struct src *src = state;
    return items_sent_restore(&src->sent, data, size);
}

static void src_close(void *state)
{
    struct src *src = state;
    items_dispose(&src->items);
    free(src);
}

const struct pure_app pure_app = {
    .abi = PURE_APP_ABI,
    .outputs = outputs,
    .open = src_open,
    .event = src_event,
    .show = src_show,
    .snapshot = src_snapshot,
    .restore = src_restore,
    .close = src_close,
};
