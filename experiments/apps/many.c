/* many: an app with twenty outputs, w1 … w20: ten links and ten wires in the benchmark of that name, wires
 * alone in `isolation`. The event `burst` walks its items (items.h) and sends each to the outputs that its
 * argument names.
 *
 * Argument: items=1000 size=20 first=1 last=20. */
#include "experiments/apps/items.h"

#define OUTPUTS 20

struct many {
    struct items items;
    uint32_t first, last; /* outputs by index, both inclusive */
    struct items_sent sent;
};

static const char *const outputs[OUTPUTS + 1] = {"w1",  "w2",  "w3",  "w4",  "w5",  "w6",  "w7",
                                                 "w8",  "w9",  "w10", "w11", "w12", "w13", "w14",
                                                 "w15", "w16", "w17", "w18", "w19", "w20", NULL};

static int many_open(void **state, const char *arg, char *error, size_t error_size)
{
    uint32_t first = items_option(arg, "first", 1), last = items_option(arg, "last", OUTPUTS);
    if (first < 1 || last > OUTPUTS || first > last) {
        snprintf(error, error_size, "first= and last= are outputs, 1 to %u", OUTPUTS);
        return -1;
    }
    struct many *many = calloc(1, sizeof *many);
    if (!many || items_init(&many->items, arg, error, error_size) != 0) {
        free(many);
        return -1;
    }
    many->first = first - 1;
    many->last = last - 1;
    *state = many;
    return 0;
}

static int many_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    struct many *many = state;
    if (strcmp(event->name, "burst") != 0)
        return -1;
    int sent = items_send(&many->items, turn, many->first, many->last);
    if (sent != 0)
        return sent;
    many->sent.bursts++;
    many->sent.records += (uint64_t)many->items.count * (many->last - many->first + 1);
    return 0;
}

static int many_show(void *state, struct pure_sink *sink)
{
    const struct many *many = state;
    return items_sent_show(&many->sent, sink);
}

static int many_snapshot(void *state, struct pure_sink *sink)
{
    const struct many *many = state;
    return items_sent_snapshot(&many->sent, sink);
}

static int many_restore(void *state, const void *data, size_t size)
{
    struct many *many = state;
    return items_sent_restore(&many->sent, data, size);
}

static void many_close(void *state)
{
    struct many *many = state;
    items_dispose(&many->items);
    free(many);
}

const struct pure_app pure_app = {
    .abi = PURE_APP_ABI,
    .outputs = outputs,
    .open = many_open,
    .event = many_event,
    .show = many_show,
    .snapshot = many_snapshot,
    .restore = many_restore,
    .close = many_close,
};
