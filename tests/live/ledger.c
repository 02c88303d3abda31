/* ledger: the app of the checks with real processes. Each record is a number, in digits, and dots after it,
 * as many as one likes. Whoever sends numbers them without a gap; so each was stored once and in order if
 * there are no breaks and `records` is last - first + 1. A break is a number that is not the one before plus
 * one, or a record that is not such a one. The hash is that of the numbers in the order they came (ledger.h).
 *
 * It sends each record on, as it is, on its three outputs; those that the configuration leaves out take and
 * forget. */
#include "tests/live/ledger.h"

#include "host/app.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUTS 3

struct ledger {
    uint64_t records, first, last, breaks; /* first, last: 0 as long as there are no records */
    uint64_t hash;
};

static int ledger_open(void **state, const char *arg, char *error, size_t error_size)
{
    (void)arg;
    *state = calloc(1, sizeof(struct ledger));
    if (*state)
        return 0;
    snprintf(error, error_size, "no memory");
    return -1;
}

/* 0: it is not such a record. */
static uint64_t number_of(const struct pure_event *event)
{
    const char *text = event->data;
    uint64_t number = 0;
    size_t i = 0;
    while (i < event->size && i < 18 && text[i] >= '0' && text[i] <= '9')
        number = number * 10 + (uint64_t)(text[i++] - '0');
    while (i < event->size && text[i] == '.')
        i++;
    return i == event->size ? number : 0;
}

static int ledger_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    struct ledger *l = state;
    uint64_t number = number_of(event);
    if (l->records++ == 0)
        l->first = number;
    else
        l->breaks += number != l->last + 1;
    l->breaks += number == 0;
    l->last = number;
    l->hash = ledger_hash(l->hash, number);
    for (uint32_t output = 0; output < OUTPUTS; output++) {
        int error = pure_send(turn, output, event->data, event->size);
        if (error < 0)
            return error;
    }
    return 0;
}

static int ledger_show(void *state, struct pure_sink *sink)
{
    const struct ledger *l = state;
    char text[200];
    int size = snprintf(text, sizeof text,
                        "{\"records\":%" PRIu64 ",\"first\":%" PRIu64 ",\"last\":%" PRIu64
                        ",\"breaks\":%" PRIu64 ",\"hash\":%" PRIu64 "}\n",
                        l->records, l->first, l->last, l->breaks, l->hash);
    return pure_write(sink, text, (size_t)size);
}

static int ledger_snapshot(void *state, struct pure_sink *sink)
{
    return pure_write(sink, state, sizeof(struct ledger));
}

static int ledger_restore(void *state, const void *data, size_t size)
{
    if (size != sizeof(struct ledger))
        return -1;
    memcpy(state, data, size);
    return 0;
}

static void ledger_close(void *state)
{
    free(state);
}

const struct pure_app pure_app = {
    .abi = PURE_APP_ABI,
    .outputs = (const char *const[OUTPUTS + 1]){"link", "wire", "inner"},
    .open = ledger_open,
    .event = ledger_event,
    .show = ledger_show,
    .snapshot = ledger_snapshot,
    .restore = ledger_restore,
    .close = ledger_close,
};
