/* rogue: the app of tests/checks/apps.sh that misbehaves. What an event does is its data's first word;
 * anything else, and `arg = tame`, is sent on and counted.
 *
 *     crash   writes to where nothing is        exit    calls exit
 *     loop    never returns                     hang    sleeps for ever
 *     eat     allocates until there is no more, and says how much that was
 *     starve  does so, and fails                choke   does so, and crashes
 *     flood   sends the event 1000 times        pour    never ends to send it
 *
 * `arg = CALL WORD` does that in another call: open, close. */
#include "host/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE (1u << 20)

struct rogue {
    unsigned long events, eaten; /* pieces that the last `eat` got */
    int tame;
    const char *arg;
};

static const char *const outputs[] = {"out", NULL};

/* Each piece holds the place of the one before. */
static unsigned long eat(void)
{
    unsigned long count = 0;
    void **last = NULL, **piece;
    while (count < 4096 && (piece = malloc(PIECE))) {
        *piece = last;
        last = piece;
        count++;
    }
    while ((piece = last)) {
        last = *piece;
        free(piece);
    }
    return count;
}

static volatile unsigned long turned;

static int begins(const char *data, size_t size, const char *word)
{
    return size >= strlen(word) && memcmp(data, word, strlen(word)) == 0;
}

/* What needs no turn. */
static void end_badly(const char *data, size_t size)
{
    volatile int *volatile nowhere = NULL;
    if (begins(data, size, "choke"))
        eat();
    if (begins(data, size, "crash") || begins(data, size, "choke"))
        *nowhere = 1;
    if (begins(data, size, "exit"))
        exit(0);
    while (begins(data, size, "loop"))
        turned++;
    while (begins(data, size, "hang"))
        pause();
}

/* `arg`, if it is about that call. */
static void end_badly_in(const char *call, const char *arg)
{
    size_t size = strlen(call);
    if (begins(arg, strlen(arg), call) && arg[size] == ' ')
        end_badly(arg + size + 1, strlen(arg) - size - 1);
}

static int misbehave(struct rogue *r, struct pure_turn *turn, const struct pure_event *e)
{
    end_badly(e->data, e->size);
    if (begins(e->data, e->size, "eat"))
        r->eaten = eat();
    if (begins(e->data, e->size, "starve")) {
        eat();
        return -1;
    }
    while (begins(e->data, e->size, "pour"))
        pure_send(turn, 0, e->data, e->size);
    for (int i = 0; begins(e->data, e->size, "flood") && i < 1000; i++) {
        int error = pure_send(turn, 0, e->data, e->size);
        if (error < 0)
            return error;
    }
    return 0;
}

static int rogue_open(void **state, const char *arg, char *error, size_t error_size)
{
    end_badly_in("open", arg);
    struct rogue *r = calloc(1, sizeof *r);
    if (!r) {
        snprintf(error, error_size, "no memory");
        return -1;
    }
    r->tame = strcmp(arg, "tame") == 0;
    r->arg = arg;
    *state = r;
    return 0;
}

static int rogue_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    struct rogue *r = state;
    int error = r->tame ? 0 : misbehave(r, turn, event);
    if (error == 0)
        error = pure_send(turn, 0, event->data, event->size);
    if (error == 0)
        r->events++;
    return error;
}

static int rogue_show(void *state, struct pure_sink *sink)
{
    const struct rogue *r = state;
    char text[80];
    int size = snprintf(text, sizeof text, "{\"events\":%lu,\"eaten\":%lu}\n", r->events, r->eaten);
    return pure_write(sink, text, (size_t)size);
}

static int rogue_snapshot(void *state, struct pure_sink *sink)
{
    const struct rogue *r = state;
    return pure_write(sink, &r->events, sizeof r->events);
}

static int rogue_restore(void *state, const void *data, size_t size)
{
    struct rogue *r = state;
    if (size != sizeof r->events)
        return -1;
    memcpy(&r->events, data, size);
    return 0;
}

static void rogue_close(void *state)
{
    struct rogue *r = state;
    end_badly_in("close", r->arg);
    free(r);
}

const struct pure_app pure_app = {.abi = PURE_APP_ABI,
                                  .outputs = outputs,
                                  .open = rogue_open,
                                  .event = rogue_event,
                                  .show = rogue_show,
                                  .snapshot = rogue_snapshot,
                                  .restore = rogue_restore,
                                  .close = rogue_close};
