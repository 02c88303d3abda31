/* An owner with an app, and the test in the place of the front and of a wire.
 *
 *     test (as the front) ──inbox──▶ app a ──outlet──▶ test (as a wire), or ──inner──▶ app b
 */
#ifndef PURE_TESTS_UNIT_APP_BENCH_H
#define PURE_TESTS_UNIT_APP_BENCH_H

#include "host/owned_app.h"
#include "tests/sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* --- an app that does as its events say: "+N" adds; "send N" sends N bytes; "fail" changes its state, sends,
 * and fails; "echo…" sends itself; "endless" is left by a jump, "pour" by the send after that;
 * "starve" gets no memory and fails, "hungry" gets none and does without --- */

struct tester {
    uint64_t sum, events;
};

static const char *const outputs[] = {"out", NULL};
static uint64_t flaky_failures; /* what a new state starts with: outside of it, as a broken device would be */
static struct tester *left_instance; /* whose call was left */
static uint64_t sent_number;         /* of the last "send N" that was given */

static inline int tester_open(void **state, const char *arg, char *error, size_t error_size)
{
    if (strcmp(arg, "broken") == 0) {
        snprintf(error, error_size, "it is broken");
        return 1;
    }
    *state = calloc(1, sizeof(struct tester));
    return *state ? 0 : 1;
}

static const struct app_journal_options no_journal = {.durability = DURABILITY_MEMORY};
static const uint8_t any_epoch[EPOCH_BYTES] = {1};

static inline int send_filled(struct pure_turn *turn, const char *size_text)
{
    static uint8_t filled[1 << 20];
    return pure_send(turn, 0, filled, (size_t)atol(size_text));
}

static inline int tester_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    struct tester *t = state;
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)event->size, (const char *)event->data);
    t->events++;
    if (text[0] == '+')
        t->sum += (uint64_t)atoll(text + 1);
    if (strncmp(text, "send ", 5) == 0) {
        sent_number = event->number;
        return send_filled(turn, text + 5);
    }
    if (strncmp(text, "ignore ", 7) == 0)
        send_filled(turn, text + 7);
    if (strncmp(text, "echo", 4) == 0)
        return pure_send(turn, 0, event->data, event->size);
    if (strcmp(text, "endless") == 0) { /* as the guard's timer ends it */
        pure_send(turn, 0, "undone", 6);
        left_instance = t;
        guard_jump(guard_here);
    }
    if (strcmp(text, "starve") == 0 || strcmp(text, "hungry") == 0) {
        atomic_fetch_add(&atomic_load(&guard_here->app)->memory.refused, 2);
        return strcmp(text, "starve") == 0;
    }
    if (strcmp(text, "pour") == 0) { /* as one that is interrupted in pure_send */
        left_instance = t;
        guard_judge(guard_here, 0, 0);
        guard_over = true;
        pure_send(turn, 0, "undone", 6);
    }
    if (strcmp(text, "no output") == 0)
        return pure_send(turn, 1, text, 4);
    if (strcmp(text, "fail") == 0 || (strcmp(text, "flaky") == 0 && flaky_failures > 0 && flaky_failures--)) {
        t->sum += 1000000;
        pure_send(turn, 0, "undone", 6);
        return 1;
    }
    return 0;
}

static inline int tester_show(void *state, struct pure_sink *sink)
{
    struct tester *t = state;
    char text[64];
    int size =
        snprintf(text, sizeof text, "%llu/%llu", (unsigned long long)t->sum, (unsigned long long)t->events);
    return pure_write(sink, text, (size_t)size);
}

static inline int tester_snapshot(void *state, struct pure_sink *sink)
{
    return pure_write(sink, state, sizeof(struct tester));
}

static inline int tester_restore(void *state, const void *data, size_t size)
{
    if (size != sizeof(struct tester))
        return 1;
    memcpy(state, data, size);
    return 0;
}

static const struct pure_app tester = {.abi = PURE_APP_ABI,
                                       .outputs = outputs,
                                       .open = tester_open,
                                       .event = tester_event,
                                       .show = tester_show,
                                       .snapshot = tester_snapshot,
                                       .restore = tester_restore,
                                       .close = free};

/* --- the bench: a world, one owner, the test as front and as wire --- */

#define QUEUE_BYTES 4096

struct bench {
    struct sim *sim;
    struct loop loop, other; /* the owner's; the test's own, for the boards it is told at */
    struct log log;
    struct config_app config;
    struct owned_app app;
    struct outlet outlet;
};

static inline void open_app(struct bench *b, struct owned_app *app, struct config_app *config,
                            const char *name)
{
    *config = (struct config_app){.name = (char *)name, .arg = "", .inbox_bytes = 4 << 20};
    assert_int_equal(owned_app_init(app, config, &tester, "", &b->loop, &b->log, &no_journal, NULL), 0);
    app->entry.inbox.front = &b->other.board;
    app->entry.inbox.front_slot = 0;
}

static inline void open_outlet(struct bench *b, struct owned_app *app, struct outlet *outlet)
{
    assert_int_equal(outlet_init(outlet, "test", app->entry.name, "out", QUEUE_BYTES, 1 << 20), 0);
    outlet->consumer = &b->other.board;
    outlet->consumer_slot = 1;
    outlet->producer = &b->loop.board;
    outlet->producer_slot = app->task.slot;
    app->turn.outlets[0].outlet = outlet;
}

static inline void bench_open_seeded(struct bench *b, uint64_t seed)
{
    flaky_failures = 0;
    b->sim = sim_new(seed);
    assert_int_equal(loop_init(&b->loop, sim_io(b->sim, NULL), 64, 64), 0);
    assert_int_equal(loop_init(&b->other, sim_io(b->sim, NULL), 64, 64), 0);
    assert_int_equal(log_init(&b->log, NULL, 0), 0);
    sim_add_loop(b->sim, &b->loop);
    open_app(b, &b->app, &b->config, "a");
    open_outlet(b, &b->app, &b->outlet);
}

static inline void bench_open(struct bench *b)
{
    bench_open_seeded(b, 1);
}

static inline void bench_close(struct bench *b)
{
    owned_app_dispose(&b->app);
    outlet_dispose(&b->outlet);
    log_dispose(&b->log);
    sim_remove_loop(b->sim, &b->loop);
    loop_dispose(&b->loop);
    loop_dispose(&b->other);
    sim_free(b->sim);
}

static inline void settle(struct bench *b)
{
    assert_int_equal(sim_run_for(b->sim, NS_PER_S), SIM_TIME);
}

static inline size_t frame(uint8_t *to, const char *const *records)
{
    size_t size = 0;
    for (; *records; records++) {
        size += varint_put(to + size, strlen(*records));
        memcpy(to + size, *records, strlen(*records));
        size += strlen(*records);
    }
    return size;
}

static uint8_t put_with_epoch;

static inline void put_in(struct inbox *inbox, enum run_kind kind, const char *const *records, uint64_t first,
                          uint64_t base, const char *key)
{
    uint8_t bytes[4096];
    uint32_t count = 0;
    while (records[count])
        count++;
    struct run run = {.kind = kind,
                      .records = count,
                      .first = first,
                      .base = base,
                      .event = span_text("e"),
                      .source = span_text(kind == RUN_STREAM ? "other/x/out" : "http"),
                      .key = span_text(key),
                      .bytes = span_of(bytes, frame(bytes, records))};
    memset(run.epoch, put_with_epoch, sizeof run.epoch);
    assert_int_equal(inbox_reserve(inbox, run.bytes.size, 0), 0);
    assert_int_equal(inbox_put(inbox, &run), 0);
    inbox_release(inbox, run.bytes.size);
    inbox_push(inbox);
}

static inline void put(struct owned_app *app, enum run_kind kind, const char *const *records, uint64_t first,
                       uint64_t base, const char *key)
{
    put_in(&app->entry.inbox, kind, records, first, base, key);
}

static inline void put_link(struct owned_app *app, const char *const *records, uint64_t first)
{
    put_in(&app->entry.links, RUN_STREAM, records, first, first - 1, "");
}

static inline void put_epoch(struct owned_app *app, const char *const *records, uint64_t first, uint64_t base,
                             uint8_t epoch)
{
    put_with_epoch = epoch;
    put(app, RUN_STREAM, records, first, base, "");
    put_with_epoch = 0;
}

#define RECORDS(...)      \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

static inline void expect_in(struct inbox *inbox, int error, uint64_t stored)
{
    struct run_result result;
    assert_true(inbox_take_result(inbox, &result));
    assert_int_equal(result.error, error);
    assert_int_equal(result.stored, stored);
}

static inline void expect(struct owned_app *app, int error, uint64_t stored)
{
    expect_in(&app->entry.inbox, error, stored);
}

static inline void expect_nothing(struct owned_app *app)
{
    struct run_result result;
    assert_false(inbox_take_result(&app->entry.inbox, &result));
}

static inline void expect_state(struct bench *b, struct owned_app *app, const char *shown)
{
    struct run run = {.kind = RUN_SHOW};
    assert_int_equal(inbox_put(&app->entry.inbox, &run), 0);
    inbox_push(&app->entry.inbox);
    settle(b);
    struct run_result result;
    assert_true(inbox_take_result(&app->entry.inbox, &result));
    assert_int_equal(result.error, 0);
    assert_true(span_is(result.text, shown));
}

/* Takes all that the outlet holds as stored; returns how many records that were. */
static inline uint64_t drain(struct outlet *o)
{
    uint64_t before = o->queue.freed.records;
    struct stream_position end = record_queue_see_published(&o->queue);
    outlet_stored(o, end);
    return end.records - before;
}

static inline int condition(const struct owned_app *app)
{
    return atomic_load(&app->entry.report.condition);
}

static inline bool logged(struct bench *b, const char *text)
{
    record_queue_see_published(&b->log.lines);
    struct span lines = record_queue_span(&b->log.lines, b->log.lines.freed.bytes);
    return memmem(lines.data, lines.size, text, strlen(text)) != NULL;
}

#endif
