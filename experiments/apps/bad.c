/* bad: an app that misbehaves on its event `go`, as its argument says:
 *
 *     do=nothing
 *     do=flood      SEEDS sends to `self`, which leads back here as the event `more`; each of those goes
 * there again, and FLOOD times to `out`: without end. (Two for one to `self` would not be: when that is full
 * the app waits for itself) do=loop       loops without end do=memory     allocates memory and touches it
 * until there is none to be had (or 1 GiB), and keeps it do=crash      writes to address 0 */
#include "experiments/apps/load.h"
#include "host/app.h"

#include <stdbool.h>

#define SEEDS       100
#define FLOOD       8
#define BLOCK_BYTES (1u << 20)
#define BLOCKS_MOST 1024u /* 1 GiB in all: where nobody stops it, the machine lives */

enum { OUTPUT_SELF, OUTPUT_OUT };

enum deed { NOTHING, FLOODING, LOOPING, TAKING_MEMORY, CRASHING, DEEDS };

static const char *const names[DEEDS] = {"nothing", "flood", "loop", "memory", "crash"};

struct bad {
    enum deed deed;
    unsigned blocks;
    void *block[BLOCKS_MOST];
};

static int bad_open(void **state, const char *arg, char *error, size_t error_size)
{
    const char *wanted = load_option(arg, "do");
    struct bad *bad = calloc(1, sizeof *bad);
    while (bad && wanted && bad->deed < DEEDS && strcmp(wanted, names[bad->deed]) != 0)
        bad->deed++;
    if (bad && wanted && bad->deed < DEEDS) {
        *state = bad;
        return 0;
    }
    free(bad);
    snprintf(error, error_size, "do= is nothing, flood, loop, memory or crash");
    return -1;
}

static int flood(struct pure_turn *turn, const char *name)
{
    uint64_t value = 1;
    int sent = 0, again = strcmp(name, "go") == 0 ? SEEDS : 1;
    for (int i = 0; sent == 0 && i < again; i++)
        sent = pure_send(turn, OUTPUT_SELF, &value, sizeof value);
    for (int i = 0; sent == 0 && i < FLOOD; i++)
        sent = pure_send(turn, OUTPUT_OUT, &value, sizeof value);
    return sent;
}

static int take_memory(struct bad *bad)
{
    while (bad->blocks < BLOCKS_MOST) {
        void *block = malloc(BLOCK_BYTES);
        if (!block)
            return -1;
        memset(block, 1, BLOCK_BYTES);
        bad->block[bad->blocks++] = block;
    }
    return 0;
}

static void loop_forever(void)
{
    for (volatile uint64_t i = 0;; i = i + 1)
        ;
}

static void crash(void)
{
    volatile char *volatile nowhere = NULL; /* so that the store is there */
    *nowhere = 1;
}

static int bad_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    struct bad *bad = state;
    if (bad->deed == FLOODING)
        return flood(turn, event->name);
    if (bad->deed == LOOPING)
        loop_forever();
    if (bad->deed == CRASHING)
        crash();
    return bad->deed == TAKING_MEMORY ? take_memory(bad) : 0;
}

static int bad_show(void *state, struct pure_sink *sink)
{
    const struct bad *bad = state;
    char text[64];
    int size = snprintf(text, sizeof text, "{\"blocks\":%u}\n", bad->blocks);
    return pure_write(sink, text, (size_t)size);
}

static void bad_close(void *state)
{
    struct bad *bad = state;
    while (bad->blocks > 0)
        free(bad->block[--bad->blocks]);
    free(bad);
}

const struct pure_app pure_app = {
    .abi = PURE_APP_ABI,
    .outputs = (const char *const[]){"self", "out", NULL},
    .open = bad_open,
    .event = bad_event,
    .show = bad_show,
    .close = bad_close,
};
