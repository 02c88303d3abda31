/* counter: counts events and adds up what they carry: the value if the data is a whole decimal number, else
 * nothing; the bytes in any case. Then it passes the data on to every output. Argument: "step=N", how much
 * an event counts for (1). */
#include "host/app.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 18 /* of a number: fits an int64_t whatever they are */

static const char *const outputs[] = {"log", "cloud", "next", "far", NULL};

/* What a snapshot holds, in the order of the fields. */
struct totals {
    uint64_t count; /* events times step, modulo 2^64 */
    int64_t sum;    /* stays at its limit rather than overflow */
    uint64_t bytes; /* modulo 2^64 */
};

struct counter {
    uint64_t step;
    struct totals totals;
};

static int read_step(const char *arg, uint64_t *step)
{
    char *end;
    *step = 1;
    if (arg[0] == '\0')
        return 0;
    if (strncmp(arg, "step=", 5) != 0 || arg[5] < '0' || arg[5] > '9')
        return -1;
    errno = 0;
    *step = strtoull(arg + 5, &end, 10);
    return *end || errno ? -1 : 0;
}

static int counter_open(void **state, const char *arg, char *error, size_t error_size)
{
    uint64_t step;
    if (read_step(arg, &step) < 0) {
        snprintf(error, error_size, "arg = step=N is all that counter knows, N a whole number");
        return -1;
    }
    struct counter *c = calloc(1, sizeof(*c));
    if (!c) {
        snprintf(error, error_size, "out of memory");
        return -1;
    }
    c->step = step;
    *state = c;
    return 0;
}

/* The value of [-]DIGITS, with one newline at the end or none; 0 for anything else. */
static int64_t number_of(const char *text, size_t size)
{
    int64_t value = 0;
    if (size > 0 && text[size - 1] == '\n')
        size--;
    size_t sign = size > 0 && text[0] == '-';
    if (size == sign || size - sign > DIGITS_MAX)
        return 0;
    for (size_t i = sign; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        value = value * 10 + (text[i] - '0');
    }
    return sign ? -value : value;
}

/* Sends first: if an outlet is full the state is as it was. */
static int counter_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    struct counter *c = state;
    for (uint32_t i = 0; outputs[i]; i++) {
        int failed = pure_send(turn, i, event->data, event->size);
        if (failed)
            return failed;
    }
    int64_t value = number_of(event->data, event->size);
    if (__builtin_add_overflow(c->totals.sum, value, &c->totals.sum))
        c->totals.sum = value < 0 ? INT64_MIN : INT64_MAX;
    c->totals.count += c->step;
    c->totals.bytes += event->size;
    return 0;
}

static int counter_show(void *state, struct pure_sink *sink)
{
    const struct counter *c = state;
    char text[128];
    int size =
        snprintf(text, sizeof(text), "{\"count\":%" PRIu64 ",\"sum\":%" PRId64 ",\"bytes\":%" PRIu64 "}\n",
                 c->totals.count, c->totals.sum, c->totals.bytes);
    return pure_write(sink, text, (size_t)size);
}

static int counter_snapshot(void *state, struct pure_sink *sink)
{
    const struct counter *c = state;
    return pure_write(sink, &c->totals, sizeof(c->totals));
}

static int counter_restore(void *state, const void *data, size_t size)
{
    struct counter *c = state;
    if (size != sizeof(c->totals))
        return -1;
    memcpy(&c->totals, data, size);
    return 0;
}

static void counter_close(void *state)
{
    free(state);
}

const struct pure_app pure_app = {
    .abi = PURE_APP_ABI,
    .outputs = outputs,
    .open = counter_open,
    .event = counter_event,
    .show = counter_show,
    .snapshot = counter_snapshot,
    .restore = counter_restore,
    .close = counter_close,
};
