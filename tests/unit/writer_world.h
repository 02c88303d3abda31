/* One owner's journal on a simulated disk: some apps, a writer, nothing else.
 *
 *     apps ── frames, joins ──▶ writer ── one io ──▶ disk "/store" ──▶ crash, store_open, store_replay
 */
#ifndef PURE_TESTS_UNIT_WRITER_WORLD_H
#define PURE_TESTS_UNIT_WRITER_WORLD_H

#include "core/record.h"
#include "journal/writer_segments.h"
#include "tests/sim/disk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define WORLD_SEGMENT   (UINT64_C(1) << 20)
#define WORLD_APPS      8
#define WORLD_BYTES_MAX (4u << 20) /* of a commit */
#define WORLD_HOST      "10.0.0.1"

struct writer_world;

struct world_app {
    struct journal_member member;
    struct journal_waiter waiter;
    struct writer_world *world;
    char name[8];
    uint64_t sequence; /* of its last commit: added, then placed, then durable */
    uint64_t placed_sequence, durable_sequence;
    uint64_t replayed; /* that a start found */
    uint64_t segment, offset;
    unsigned placed, durable, failed, told_room;
    int error;
    struct task task; /* commits once in its round */
    bool turn;        /* its next `durable` wants a round */
    bool again;       /* adds one more commit in its next `durable` */
    unsigned order;   /* when its last `durable` came, counted over all */
};

struct writer_world {
    struct sim *sim;
    struct sim_disk *disk;
    struct sim_disk_policy policy;
    struct store store;
    struct loop loop;
    struct log log;
    struct journal_writer writer;
    struct world_app apps[WORLD_APPS];
    uint64_t segment_bytes;
    bool read_only;   /* the next store_open is */
    bool hold;        /* each segment from its beginning on */
    unsigned durable; /* calls, over all apps */
    unsigned begun;
    uint64_t held[256], removing[256];
    unsigned removings;
    unsigned serious; /* lines of damage */
};

/* --- apps --- */

static void world_add(struct world_app *app, size_t bytes)
{
    struct frame_buffer *b = journal_frames(&app->world->writer);
    static uint8_t framed[WORLD_BYTES_MAX + VARINT_MAX_BYTES];
    assert_true(bytes <= WORLD_BYTES_MAX);
    size_t size = varint_put(framed, bytes);
    memset(framed + size, (int)app->sequence, bytes);
    struct section section = {.type = SECTION_EVENTS,
                              .events = {.event = span_text("e"),
                                         .source = span_text("s"),
                                         .first = app->sequence + 1,
                                         .records = 1,
                                         .bytes = span_of(framed, size + bytes)}};
    commit_begin(b, FRAME_COMMIT, span_text(app->name), ++app->sequence);
    commit_put(b, &section);
    assert_int_equal(commit_end(b, app->sequence), 0);
}

static void world_commit(struct world_app *app, size_t bytes, uint64_t due_ns)
{
    world_add(app, bytes);
    journal_join(&app->world->writer, &app->member, due_ns);
}

static void world_placed(struct journal_member *m, uint64_t segment, uint64_t offset)
{
    struct world_app *app = container_of(m, struct world_app, member);
    assert_int_equal(app->placed, app->durable);
    app->placed++;
    app->placed_sequence = app->sequence;
    app->segment = segment;
    app->offset = offset;
}

static void world_durable(struct journal_member *m)
{
    struct world_app *app = container_of(m, struct world_app, member);
    app->durable++;
    assert_int_equal(app->placed, app->durable);
    app->durable_sequence = app->placed_sequence;
    app->order = ++app->world->durable;
    if (app->again)
        world_commit(app, 10, 0);
    if (app->turn)
        loop_want(&app->world->loop, &app->task);
    app->again = app->turn = false;
}

static void world_failed(struct journal_member *m, int error)
{
    struct world_app *app = container_of(m, struct world_app, member);
    app->failed++;
    app->error = error;
}

static bool world_turn(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    world_commit(container_of(task, struct world_app, task), 10, 0);
    return false;
}

static void world_told_room(struct journal_waiter *waiter)
{
    container_of(waiter, struct world_app, waiter)->told_room++;
}

/* --- the store --- */

static void world_random(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)random_next(sim_random(context));
}

static void world_say(void *context, bool serious, const char *line)
{
    struct writer_world *w = context;
    (void)line;
    w->serious += serious;
}

static void world_open_store(struct writer_world *w)
{
    char why[200] = "";
    struct store_options options = {.files = sim_disk_files(w->disk),
                                    .path = "/store",
                                    .segment_bytes = w->segment_bytes,
                                    .fill_random = world_random,
                                    .random_context = w->sim,
                                    .now_ms = SIM_START_WALL_MS,
                                    .read_only = w->read_only,
                                    .say = world_say,
                                    .say_context = w};
    if (store_open(&w->store, &options, why, sizeof why) < 0)
        fail_msg("%s", why);
}

static int world_replayed(void *context, const struct commit_head *head, const struct journal_frame *frame,
                          struct span sections)
{
    (void)frame, (void)sections;
    struct writer_world *w = context;
    for (unsigned i = 0; i < WORLD_APPS; i++) {
        if (!span_is(head->app, w->apps[i].name))
            continue;
        assert_int_equal(head->sequence, w->apps[i].replayed + 1);
        w->apps[i].replayed++;
        return 0;
    }
    fail_msg("an app that nobody knows");
    return -1;
}

/* What a new process finds: all that was durable, in order, nothing that was not added. */
static void world_check_store(struct writer_world *w)
{
    w->serious = 0;
    world_open_store(w);
    for (unsigned i = 0; i < WORLD_APPS; i++)
        w->apps[i].replayed = 0;
    struct store_replay replay = {.each = world_replayed, .context = w};
    assert_int_equal(store_replay(&w->store, &replay), 0);
    assert_int_equal(w->serious, 0);
    assert_int_equal(w->store.report.damaged_places, 0);
    for (unsigned i = 0; i < WORLD_APPS; i++) {
        assert_true(w->apps[i].replayed >= w->apps[i].durable_sequence);
        assert_true(w->apps[i].replayed <= w->apps[i].sequence);
    }
}

/* --- the world --- */

static void world_begun(void *context, uint64_t segment)
{
    struct writer_world *w = context;
    assert_true(w->begun < ARRAY_SIZE(w->held));
    w->held[w->begun++] = segment;
    if (w->hold)
        store_hold(&w->store, segment);
}

static void world_removing(void *context, uint64_t segment)
{
    struct writer_world *w = context;
    assert_true(w->removings < ARRAY_SIZE(w->removing));
    w->removing[w->removings++] = segment;
}

static void world_start(struct writer_world *w)
{
    world_open_store(w);
    for (uint32_t i = 0; w->hold && i < w->store.count; i++)
        store_hold(&w->store, w->store.segments[i]->number);
    assert_int_equal(log_init(&w->log, NULL, 0), 0);
    assert_int_equal(loop_init(&w->loop, sim_io(w->sim, WORLD_HOST), 64, 2), 0);
    sim_add_loop(w->sim, &w->loop);
    struct journal_options options = {.store = &w->store,
                                      .loop = &w->loop,
                                      .log = &w->log,
                                      .begun = world_begun,
                                      .removing = world_removing,
                                      .context = w};
    assert_int_equal(journal_writer_init(&w->writer, &options), 0);
    for (unsigned i = 0; i < WORLD_APPS; i++)
        journal_enter(&w->writer, &w->apps[i].member);
}

/* `segment_bytes` 0: as the default. The disk is good and takes 20 us an operation, 1 ms a sync. */
static void world_open(struct writer_world *w, uint64_t seed, uint64_t segment_bytes)
{
    *w = (struct writer_world){.segment_bytes = segment_bytes > 0 ? segment_bytes : SEGMENT_BYTES_DEFAULT,
                               .hold = true};
    w->sim = sim_new(seed);
    w->disk = sim_disk_new(w->sim);
    w->policy = (struct sim_disk_policy){.operation_min_ns = 20 * NS_PER_US,
                                         .operation_max_ns = 20 * NS_PER_US,
                                         .sync_min_ns = NS_PER_MS,
                                         .sync_max_ns = NS_PER_MS};
    sim_disk_set(w->disk, &w->policy);
    sim_host_disk(w->sim, WORLD_HOST, w->disk);
    for (unsigned i = 0; i < WORLD_APPS; i++) {
        struct world_app *app = &w->apps[i];
        app->world = w;
        snprintf(app->name, sizeof app->name, "app-%u", i);
        app->member.placed = world_placed;
        app->member.durable = world_durable;
        app->member.failed = world_failed;
        app->waiter.room = world_told_room;
        app->task.run = world_turn;
    }
    world_start(w);
}

static void world_run(struct writer_world *w, uint64_t ns)
{
    assert_int_equal(sim_run_for(w->sim, ns), SIM_TIME);
}

static inline bool world_has_stopped(void *context)
{
    return journal_stopped(context);
}

/* Until the first segment is there. */
static bool world_is_ready(void *context)
{
    struct writer_world *w = context;
    return segments_ready(&w->writer, 0);
}

static void world_run_ready(struct writer_world *w)
{
    assert_int_equal(sim_run_until(w->sim, world_is_ready, w), SIM_DONE);
    world_run(w, NS_PER_US);
}

static void world_dispose(struct writer_world *w)
{
    journal_writer_dispose(&w->writer);
    loop_dispose(&w->loop);
    log_dispose(&w->log);
    store_close(&w->store);
}

static void world_stop(struct writer_world *w)
{
    journal_stop(&w->writer);
    assert_int_equal(sim_run_until(w->sim, world_has_stopped, &w->writer), SIM_DONE);
    sim_remove_loop(w->sim, &w->loop);
    io_dispose(w->loop.io);
    world_dispose(w);
    assert_int_equal(sim_open_descriptors(w->sim), 0);
}

static inline void world_crash(struct writer_world *w)
{
    sim_remove_loop(w->sim, &w->loop);
    io_dispose(w->loop.io);
    world_dispose(w);
    sim_disk_crash(w->disk);
}

/* Stops, and looks at what is there then. */
static void world_close(struct writer_world *w)
{
    world_stop(w);
    world_check_store(w);
    store_close(&w->store);
    sim_free(w->sim);
}

static void world_set_policy(struct writer_world *w)
{
    sim_disk_set(w->disk, &w->policy);
}

static inline uint64_t world_due(const struct writer_world *w, uint64_t ns)
{
    return w->loop.now_ns + ns;
}

static void world_count_name(void *context, const char *name)
{
    uint64_t number;
    *(unsigned *)context += segment_number(name, &number);
}

/* Files with the name of a segment. */
static inline unsigned world_files(struct writer_world *w)
{
    unsigned count = 0;
    sim_disk_list(w->disk, "/store", world_count_name, &count);
    return count;
}

static inline uint64_t world_writes(const struct writer_world *w)
{
    return counter_read(&w->writer.counters.writes);
}

static inline int world_condition(const struct writer_world *w)
{
    return atomic_load(&w->writer.condition);
}

/* How many lines with the text were logged. */
static inline unsigned world_log_lines(struct writer_world *w, const char *text)
{
    struct stream_position at = w->log.lines.freed, end = record_queue_see_published(&w->log.lines);
    unsigned count = 0;
    while (at.bytes < end.bytes) {
        struct span rest = record_queue_span(&w->log.lines, at.bytes), line;
        at.bytes += record_get(rest.data, rest.data + rest.size, &line);
        count += memmem(line.data, line.size, text, strlen(text)) != NULL;
    }
    return count;
}

#endif
