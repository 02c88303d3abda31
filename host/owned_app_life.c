/* An app on its owner: how it is made, and its end (host/owned_app.h). */
#include "host/owned_app.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void retry(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    struct owned_app *a = container_of(timer, struct owned_app, retry);
    loop_want(a->loop, &a->task);
}

static void suspend_from_the_start(struct owned_app *a, const char *why)
{
    bool died = a->entry.guard && a->entry.guard->died;
    snprintf(a->entry.failure, sizeof a->entry.failure, "%s", why);
    owned_app_suspend(a, died ? PE_APP_DIED : PE_MODULE, why);
}

static int open_inbox(struct owned_app *a, struct inbox *inbox, uint64_t capacity)
{
    int error = inbox_init(inbox, capacity);
    if (error < 0)
        return error;
    inbox->owner = &a->loop->board;
    inbox->owner_slot = a->task.slot;
    inbox_inlet_init(&a->inboxes[a->inbox_count++], inbox, &a->intake);
    return 0;
}

static int init_parts(struct owned_app *a, const struct config_app *config, const struct pure_app *app)
{
    uint32_t outputs = 0;
    while (app && app->outputs[outputs])
        outputs++;
    int error = turn_init(&a->turn, outputs);
    if (error == 0)
        error = loop_add(a->loop, &a->task);
    if (error == 0)
        error = open_inbox(a, &a->entry.inbox, config->inbox_bytes);
    return error;
}

int owned_app_init(struct owned_app *a, const struct config_app *config, const struct pure_app *app,
                   const char *why, struct loop *loop, struct log *log,
                   const struct app_journal_options *journal, struct guard_app *guard)
{
    *a = (struct owned_app){.loop = loop, .log = log, .task.run = owned_app_run};
    a->entry.name = config->name;
    a->entry.guard = guard;
    a->entry.durability = DURABILITY_MEMORY;
    timer_init(&a->retry, retry);
    intake_init(&a->intake, &a->entry, &a->state, log);
    app_journal_init(a, journal);
    int error = init_parts(a, config, app);
    if (error < 0)
        return error;
    char reason[256];
    if (!app)
        suspend_from_the_start(a, why);
    else if (app_state_open(&a->state, app, guard, config->arg, reason, sizeof reason) < 0)
        suspend_from_the_start(a, reason);
    return 0;
}

int owned_app_add_links(struct owned_app *a, uint64_t capacity)
{
    assert(a->inbox_count < APP_INBOXES);
    return open_inbox(a, &a->entry.links, capacity);
}

void owned_app_not_restored(struct owned_app *a, int error)
{
    if (!owned_app_suspended(a)) {
        snprintf(a->entry.failure, sizeof a->entry.failure, "its state could not be rebuilt from the store");
        owned_app_suspend(a, error, a->entry.failure);
    }
}

int owned_app_add_inner(struct owned_app *a, struct outlet *outlet, const char *event, bool cyclic,
                        const uint8_t epoch[EPOCH_BYTES])
{
    struct inner_inlet *inners = realloc(a->inners, (a->inner_count + 1) * sizeof *inners);
    if (!inners)
        return -ENOMEM;
    a->inners = inners;
    struct inner_inlet *inner = &inners[a->inner_count++];
    struct stream_position start = outlet->queue.tail;
    *inner = (struct inner_inlet){.outlet = outlet,
                                  .event = event,
                                  .cyclic = cyclic,
                                  .given = start,
                                  .framed = start.records,
                                  .filled = start,
                                  .writing = start};
    memcpy(inner->epoch, epoch, EPOCH_BYTES);
    snprintf(inner->source, sizeof inner->source, "%s.%s", outlet->app, outlet->output);
    outlet->consumer = &a->loop->board;
    outlet->consumer_slot = a->task.slot;
    a->in_cycle |= cyclic;
    return 0;
}

void owned_app_dispose(struct owned_app *a)
{
    app_journal_dispose(a);
    app_fare_dispose(a);
    app_state_dispose(&a->state);
    inbox_dispose(&a->entry.inbox);
    inbox_dispose(&a->entry.links);
    turn_dispose(&a->turn);
    intake_dispose(&a->intake);
    free(a->inners);
}
