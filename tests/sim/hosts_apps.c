/* The apps of the simulated hosts. */
#include "tests/sim/hosts_world.h"

#include <stdio.h>
#include <stdlib.h>

static int take_any(void **state, const char *arg, char *error, size_t error_size)
{
    (void)arg, (void)error, (void)error_size;
    *state = NULL;
    return 0;
}

static void leave(void *state)
{
    (void)state;
}

/* --- src --- */

static const char *const src_outputs[] = {"out", "cloud", "log", "next", "d1", "d2", "d3",
                                          "d4",  "d5",    "d6",  "d7",   "d8", NULL};

static int src_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    (void)state;
    for (uint32_t i = 0; src_outputs[i]; i++) {
        int failed = pure_send(turn, i, event->data, event->size);
        if (failed)
            return failed;
    }
    return 0;
}

/* --- dst and bad: what they note lies in the test, not in a state that could be put back. They have no
 * snapshot, so that no event that they took is given to them again. --- */

static int dst_open(void **state, const char *arg, char *error, size_t error_size)
{
    void *tally;
    if (sscanf(arg, WORLD_TALLY, &tally) != 1) {
        snprintf(error, error_size, "its argument is no tally");
        return 1;
    }
    struct tally *t = *state = tally;
    t->lives++;
    t->records = t->first = t->last = 0;
    return 0;
}

static int dst_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    (void)turn;
    struct tally *t = state;
    char text[24];
    snprintf(text, sizeof text, "%.*s", (int)event->size, (const char *)event->data);
    uint64_t number = strtoull(text, NULL, 10);
    if (t->records == 0) {
        t->first = number;
        t->stream_first = event->number;
    } else if (number != t->last + 1) {
        t->disorder++;
    }
    t->records++;
    t->last = number;
    if (number < TALLY_NUMBERS && t->times[number] < UINT8_MAX)
        t->times[number]++;
    return 0;
}

static int bad_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    if (event->size >= 3 && memcmp(event->data, "bad", 3) == 0)
        return 1;
    return dst_event(state, turn, event);
}

static const char *const no_outputs[] = {NULL};

static const struct {
    const char *path;
    struct pure_app app;
} apps[] = {
    {"/sim/src",
     {.abi = PURE_APP_ABI, .outputs = src_outputs, .open = take_any, .event = src_event, .close = leave}},
    {"/sim/dst",
     {.abi = PURE_APP_ABI, .outputs = no_outputs, .open = dst_open, .event = dst_event, .close = leave}},
    {"/sim/bad",
     {.abi = PURE_APP_ABI, .outputs = no_outputs, .open = dst_open, .event = bad_event, .close = leave}},
};

const struct pure_app *hosts_app(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(apps); i++) {
        if (strcmp(apps[i].path, path) == 0)
            return &apps[i].app;
    }
    return NULL;
}
