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

static int send_to_all(struct pure_turn *turn, const struct pure_event *event, const char *const *outputs)
{
    for (uint32_t i = 0; outputs[i]; i++) {
        int failed = pure_send(turn, i, event->data, event->size);
        if (failed)
            return failed;
    }
    return 0;
}

static int src_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    (void)state;
    return send_to_all(turn, event, src_outputs);
}

/* --- fan --- */

static const char *const fan_outputs[] = {"o1",  "o2",  "o3",  "o4",  "o5",  "o6",  "o7",
                                          "o8",  "o9",  "o10", "o11", "o12", "o13", "o14",
                                          "o15", "o16", "o17", "o18", "o19", "o20", NULL};

static int fan_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    (void)state;
    return send_to_all(turn, event, fan_outputs);
}

/* --- dst, hub, bad and frail: what they note lies in the test, not in a state that could be put back. They
 * have no snapshot, so that no event that they took is given to them again. --- */

static int dst_open(void **state, const char *arg, char *error, size_t error_size)
{
    void *tally;
    if (sscanf(arg, WORLD_TALLY, &tally) != 1) {
        snprintf(error, error_size, "its argument is no tally");
        return 1;
    }
    struct tally *t = *state = tally;
    t->lives++;
    t->records = t->first = t->last = t->stream_first = t->stream_last = 0;
    return 0;
}

static uint64_t number_of(const struct pure_event *event)
{
    char text[24];
    snprintf(text, sizeof text, "%.*s", (int)event->size, (const char *)event->data);
    return strtoull(text[0] == '{' ? text + strcspn(text, "0123456789") : text, NULL, 10);
}

static void note_start(struct tally *t, uint64_t number)
{
    if (t->start_count < TALLY_STARTS)
        t->starts[t->start_count] = number;
    t->start_count++;
}

static int dst_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    (void)turn;
    struct tally *t = state;
    uint64_t number = number_of(event);
    if (t->records == 0) {
        t->first = number;
        t->stream_first = event->number;
    } else if (number != t->last + 1) {
        t->disorder++;
    }
    if (t->records == 0 || number != t->last + 1)
        note_start(t, number);
    t->records++;
    t->last = number;
    t->stream_last = event->number;
    if (number < TALLY_NUMBERS && t->times[number] < UINT8_MAX)
        t->times[number]++;
    return 0;
}

/* A unit of events that has to wait for an output comes again, from its first event on, as nothing of it has
 * happened: so only what is sure is noted, where a sequence starts. Numbers that follow each other only go
 * back with a new life of this app. */
static int hub_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    struct tally *t = state;
    int failed = src_event(NULL, turn, event);
    if (failed)
        return failed;
    uint64_t number = number_of(event);
    if (t->records == 0 || number > t->last + 1)
        note_start(t, number);
    if (t->records == 0)
        t->first = number, t->stream_first = event->number;
    t->records++;
    t->last = max_u64(t->last, number);
    t->stream_last = event->number;
    return 0;
}

static bool is_bad(const struct pure_event *event)
{
    return event->size >= 3 && memcmp(event->data, "bad", 3) == 0;
}

static int bad_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    return is_bad(event) ? 1 : dst_event(state, turn, event);
}

/* Its state cannot be put back to what it was before the event that failed: that is what suspends an app. */
static int frail_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    const struct tally *t = state;
    return is_bad(event) && !t->cured ? 1 : dst_event(state, turn, event);
}

static int frail_snapshot(void *state, struct pure_sink *sink)
{
    (void)state, (void)sink;
    return 0;
}

static int frail_restore(void *state, const void *data, size_t size)
{
    (void)state, (void)data, (void)size;
    return 1;
}

/* --- ledger: an app whose state says what it was given, and in which order --- */

static const char *const ledger_outputs[] = {"next", "cloud", "log", NULL};

uint64_t ledger_hash(uint64_t hash, uint64_t number)
{
    return (hash ^ number) * UINT64_C(0x100000001b3) + 1;
}

static uint64_t events_given;

uint64_t ledger_events_given(void)
{
    return events_given;
}

static int ledger_open(void **state, const char *arg, char *error, size_t error_size)
{
    (void)arg, (void)error, (void)error_size;
    *state = calloc(1, sizeof(struct ledger));
    return *state ? 0 : 1;
}

static int ledger_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    struct ledger *l = state;
    uint64_t number = number_of(event);
    events_given++;
    l->disorder += number != l->last + 1;
    l->hash = ledger_hash(l->hash, number);
    l->last = number;
    l->count++;
    return send_to_all(turn, event, ledger_outputs);
}

static int ledger_snapshot(void *state, struct pure_sink *sink)
{
    return pure_write(sink, state, sizeof(struct ledger));
}

static int ledger_restore(void *state, const void *data, size_t size)
{
    if (size != sizeof(struct ledger))
        return 1;
    memcpy(state, data, size);
    return 0;
}

static int ledger_show(void *state, struct pure_sink *sink)
{
    const struct ledger *l = state;
    char text[100];
    int size = snprintf(text, sizeof text, "count %llu last %llu hash %llx\n", (unsigned long long)l->count,
                        (unsigned long long)l->last, (unsigned long long)l->hash);
    return pure_write(sink, text, (size_t)size);
}

/* --- wide: a ledger that brings a page filled from its hash, so that its snapshots are large --- */

struct wide {
    struct ledger ledger; /* must be the first: tests look at it */
    uint64_t page[WIDE_BYTES / sizeof(uint64_t)];
};

static void fill_page(struct wide *w)
{
    for (size_t i = 0; i < ARRAY_SIZE(w->page); i++)
        w->page[i] = w->ledger.hash + i;
}

static int wide_open(void **state, const char *arg, char *error, size_t error_size)
{
    (void)arg, (void)error, (void)error_size;
    *state = calloc(1, sizeof(struct wide));
    return *state ? 0 : 1;
}

static int wide_snapshot(void *state, struct pure_sink *sink)
{
    fill_page(state);
    return pure_write(sink, state, sizeof(struct wide));
}

static int wide_restore(void *state, const void *data, size_t size)
{
    struct wide *w = state;
    if (size != sizeof *w)
        return 1;
    memcpy(w, data, size);
    for (size_t i = 0; i < ARRAY_SIZE(w->page); i++) {
        if (w->page[i] != w->ledger.hash + i)
            return 1;
    }
    return 0;
}

static const char *const no_outputs[] = {NULL};

static const struct {
    const char *path;
    struct pure_app app;
} apps[] = {
    {"/sim/src",
     {.abi = PURE_APP_ABI, .outputs = src_outputs, .open = take_any, .event = src_event, .close = leave}},
    {"/sim/fan",
     {.abi = PURE_APP_ABI, .outputs = fan_outputs, .open = take_any, .event = fan_event, .close = leave}},
    {"/sim/dst",
     {.abi = PURE_APP_ABI, .outputs = no_outputs, .open = dst_open, .event = dst_event, .close = leave}},
    {"/sim/hub",
     {.abi = PURE_APP_ABI, .outputs = src_outputs, .open = dst_open, .event = hub_event, .close = leave}},
    {"/sim/frail",
     {.abi = PURE_APP_ABI,
      .outputs = no_outputs,
      .open = dst_open,
      .event = frail_event,
      .snapshot = frail_snapshot,
      .restore = frail_restore,
      .close = leave}},
    {"/sim/ledger",
     {.abi = PURE_APP_ABI,
      .outputs = ledger_outputs,
      .open = ledger_open,
      .event = ledger_event,
      .snapshot = ledger_snapshot,
      .restore = ledger_restore,
      .show = ledger_show,
      .close = free}},
    {"/sim/wide",
     {.abi = PURE_APP_ABI,
      .outputs = ledger_outputs,
      .open = wide_open,
      .event = ledger_event,
      .snapshot = wide_snapshot,
      .restore = wide_restore,
      .show = ledger_show,
      .close = free}},
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
