/* relay: sends the data of each event to every one of its outputs; those that the configuration leaves out
 * forget it. It keeps no state. */
#include "host/app.h"

static const char *const outputs[] = {"out", "log", "cloud", "next", NULL};

static int relay_open(void **state, const char *arg, char *error, size_t error_size)
{
    (void)arg, (void)error, (void)error_size;
    *state = NULL;
    return 0;
}

static int relay_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    (void)state;
    for (uint32_t i = 0; outputs[i]; i++) {
        int failed = pure_send(turn, i, event->data, event->size);
        if (failed)
            return failed;
    }
    return 0;
}

static void relay_close(void *state)
{
    (void)state;
}

const struct pure_app pure_app = {
    .abi = PURE_APP_ABI,
    .outputs = outputs,
    .open = relay_open,
    .event = relay_event,
    .close = relay_close,
};
