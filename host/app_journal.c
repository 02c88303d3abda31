#include "host/app_journal.h"

#include "host/owned_app.h"

#include <errno.h>
#include <stdlib.h>

#define ACK_FRAME_BYTES 4096 /* more than a frame that only says what is stored */
#define LETTER_BYTES    512  /* more than what a snapshot says of a dead letter */

typedef unsigned long long ull;

static struct frame_buffer *frames_of(const struct app_journal *j)
{
    return journal_frames(j->options.writer);
}

/* --- frames --- */

static void begin_frame(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    if (j->framing)
        return;
    commit_begin(frames_of(j), FRAME_COMMIT, span_text(a->entry.name), j->sequence + 1);
    j->framing = true;
}

struct frame_buffer *app_journal_frame(struct owned_app *a)
{
    begin_frame(a);
    return frames_of(&a->journal);
}

void app_journal_events(struct owned_app *a, const struct events *events)
{
    struct app_journal *j = &a->journal;
    if (!j->on || j->failed || events->records == 0)
        return;
    begin_frame(a);
    bool bare = a->state.stateless && !j->options.keeps;
    struct section section = {.type = SECTION_EVENTS,
                              .events = {.event = span_text(events->event),
                                         .source = span_text(events->source),
                                         .first = events->first,
                                         .time_ms = events->time_ms,
                                         .records = events->records,
                                         .bare = bare,
                                         .bytes = bare ? span_of(NULL, 0) : events->bytes}};
    commit_put(frames_of(j), &section);
}

static void key_stored(void *context, struct span key, uint64_t stored)
{
    struct owned_app *a = context;
    struct app_journal *j = &a->journal;
    if (!j->on || j->failed)
        return;
    begin_frame(a);
    struct section section = {.type = SECTION_KEY, .key.stored = stored};
    keys_digest(key, section.key.digest);
    commit_put(frames_of(j), &section);
}

static void put_cursor(struct frame_buffer *frames, const struct stream_cursor *c, bool with_retired)
{
    struct section section = {.type = SECTION_CURSOR,
                              .cursor = {.identity = span_text(c->identity),
                                         .stored = c->stored,
                                         .has_retired = with_retired,
                                         .retired_count = c->retired_count}};
    memcpy(section.cursor.epoch, c->epoch, EPOCH_BYTES);
    /* oldest first, so that the ring goes on where it was */
    for (unsigned i = 0; i < c->retired_count; i++) {
        unsigned at = c->retired_count == RETIRED_EPOCHS ? (c->retired_next + i) % RETIRED_EPOCHS : i;
        memcpy(section.cursor.retired[i], c->retired[at], EPOCH_BYTES);
    }
    commit_put(frames, &section);
}

static void put_inner(struct frame_buffer *frames, const struct inner_inlet *inner)
{
    struct section section = {
        .type = SECTION_CURSOR,
        .cursor = {.identity = span_text(inner->source), .stored = inner->given.records}};
    memcpy(section.cursor.epoch, inner->epoch, EPOCH_BYTES);
    commit_put(frames, &section);
}

static void put_cursors(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    const struct stream_cursor *c;
    bool new_epoch;
    while ((c = streams_take_moved(&a->intake.streams, &new_epoch))) {
        begin_frame(a);
        put_cursor(frames_of(j), c, new_epoch);
    }
    for (unsigned i = 0; i < a->inner_count; i++) {
        struct inner_inlet *inner = &a->inners[i];
        if (inner->given.records == inner->framed)
            continue;
        inner->framed = inner->given.records;
        begin_frame(a);
        put_inner(frames_of(j), inner);
    }
}

static void put_outputs(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    for (struct journal_output *o = j->outputs; o; o = o->next) {
        if (!o->backlog || !backlog_has_news(o->backlog))
            continue;
        begin_frame(a);
        backlog_frame(o->backlog, frames_of(j));
    }
}

/* What cannot be framed can never become durable: nothing that depends on it may take effect. */
static void fail(struct owned_app *a, int error)
{
    struct app_journal *j = &a->journal;
    if (j->failed)
        return;
    j->failed = true;
    if (j->framing)
        frame_drop(frames_of(j));
    j->framing = false;
    owned_app_store_failed(a, error);
    app_dead_failed(a);
    app_fare_failed(a);
}

static bool end_frame(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    if (!j->framing)
        return false;
    j->framing = false;
    int error = commit_end(frames_of(j), counter_read(&a->entry.report.stored));
    if (error < 0) {
        log_line(a->log, LOG_ERROR, "app %s: its turn cannot be journaled: %s", a->entry.name,
                 pure_error_text(error));
        fail(a, error);
        return false;
    }
    j->sequence++;
    j->framed = true;
    return true;
}

static bool outstanding(const struct app_journal *j)
{
    bool any = false;
    for (struct journal_output *o = j->outputs; o && !any; o = o->next)
        any = o->backlog && backlog_outstanding(o->backlog);
    return any;
}

static void watch_acks(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    if (j->acks.due_ns == NEVER && outstanding(j))
        timer_set(&a->loop->timers, &j->acks, a->loop->now_ns + ACKS_NS);
}

static void join(struct owned_app *a, bool soon)
{
    struct app_journal *j = &a->journal;
    uint64_t due_ns = 0;
    if (j->options.durability == DURABILITY_INTERVAL && !soon)
        due_ns = a->loop->now_ns + j->options.interval_ns;
    journal_join(j->options.writer, &j->member, due_ns);
}

void app_journal_commit(struct owned_app *a, bool marked)
{
    struct app_journal *j = &a->journal;
    if (j->failed)
        return;
    put_cursors(a);
    put_outputs(a);
    bool framed = end_frame(a);
    if (j->failed || (!framed && !marked))
        return;
    join(a, false);
    watch_acks(a);
}

bool app_journal_room(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    if (!j->on)
        return true;
    bool room = j->failed || journal_room(j->options.writer, &j->room);
    int condition = atomic_load_explicit(&j->options.writer->condition, memory_order_relaxed);
    atomic_store_explicit(&a->entry.report.store_full, !room && condition == JOURNAL_FULL,
                          memory_order_relaxed);
    return room;
}

void app_journal_hurry(struct owned_app *a)
{
    if (a->journal.on && !a->journal.failed)
        journal_hurry(a->journal.options.writer);
}

static void room_came(struct journal_waiter *waiter)
{
    struct owned_app *a = container_of(waiter, struct owned_app, journal.room);
    loop_want(a->loop, &a->task);
}

/* --- snapshots --- */

static void put_keys(struct frame_buffer *frames, const struct keys *keys)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        const struct key_entry *entry = keys_at(keys, i);
        struct section section = {.type = SECTION_KEY, .key.stored = entry->stored};
        memcpy(section.key.digest, entry->digest, KEY_BYTES);
        commit_put(frames, &section);
    }
}

static void put_output_numbers(struct frame_buffer *frames, const struct journal_output *o)
{
    if (o->backlog) {
        backlog_frame_numbers(o->backlog, frames);
        return;
    }
    struct section section = {
        .type = SECTION_OUTPUT,
        .output = {.output = span_text(o->name), .sent = o->sent, .stored = o->stored, .reach = o->reach}};
    memcpy(section.output.epoch, o->epoch, sizeof o->epoch);
    commit_put(frames, &section);
}

static void put_state(struct owned_app *a, struct frame_buffer *frames)
{
    if (a->state.stateless)
        return;
    struct section section = {.type = SECTION_STATE,
                              .state = span_of(a->journal.snapshot.data, a->journal.snapshot.size)};
    commit_put(frames, &section);
}

static int take_state(struct owned_app *a)
{
    struct pure_sink *sink = &a->journal.snapshot;
    sink_init(sink, APP_SNAPSHOT_MAX);
    return a->state.stateless ? 0 : app_state_write(&a->state, sink);
}

static void frame_snapshot(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    struct frame_buffer *frames = frames_of(j);
    commit_begin(frames, FRAME_SNAPSHOT, span_text(a->entry.name), j->sequence);
    for (uint32_t i = 0; i < a->intake.streams.count; i++)
        put_cursor(frames, &a->intake.streams.cursors[i], true);
    for (unsigned i = 0; i < a->inner_count; i++)
        put_inner(frames, &a->inners[i]);
    put_keys(frames, &a->intake.keys);
    for (struct journal_output *o = j->outputs; o; o = o->next) {
        put_output_numbers(frames, o);
        dead_letters_frame_all(&o->dead.letters, o->name, frames);
        if (o->fare.fare.disabled || o->fare.fare.failures > 0)
            app_fare_frame(&o->fare, o->name, frames);
    }
    put_state(a, frames);
}

/* No less than the frame will have. */
static size_t snapshot_bytes(const struct owned_app *a)
{
    const struct app_journal *j = &a->journal;
    size_t cursor = sizeof(struct section_cursor) + JOURNAL_NAME_MAX, outputs = 0;
    for (const struct journal_output *o = j->outputs; o; o = o->next)
        outputs += 4 * JOURNAL_NAME_MAX + (size_t)o->dead.letters.count * LETTER_BYTES;
    return ACK_FRAME_BYTES + j->snapshot.size + (a->intake.streams.count + a->inner_count) * cursor +
           a->intake.keys.count * sizeof(struct section_key) + outputs;
}

/* Whether a frame may be added that lets segments go: on a full disk as far as the reserve goes. */
static bool may_frame(struct owned_app *a, size_t bytes)
{
    struct app_journal *j = &a->journal;
    return journal_room(j->options.writer, &j->room) || journal_reserve(j->options.writer, bytes);
}

/* Between turns: what the app has done is in frames. An app that is not whole (its module is gone, it is
 * suspended) has no snapshot; what it needs is held until it has one again. */
static void snapshot(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    assert(!j->framing);
    if (!may_frame(a, ACK_FRAME_BYTES))
        return;
    int error = take_state(a);
    bool fits = error < 0 || may_frame(a, snapshot_bytes(a));
    if (error == 0 && fits) {
        frame_snapshot(a);
        error = commit_end(frames_of(j), counter_read(&a->entry.report.stored));
    }
    j->snapshot_size = j->snapshot.size;
    sink_dispose(&j->snapshot);
    if (!fits)
        return;
    j->snapshot_due = false;
    j->snapshot_begun = *j->options.begun;
    if (error < 0) {
        log_line(a->log, LOG_ERROR, "app %s: its snapshot for the journal failed: %s", a->entry.name,
                 pure_error_text(error));
        return;
    }
    j->framed = j->snapshot_filled = true;
    join(a, false);
}

/* On a full disk, too: the segments that it lets go may be all that can be had. */
static bool snapshot_is_due(const struct owned_app *a)
{
    const struct app_journal *j = &a->journal;
    uint64_t begun = *j->options.begun - j->snapshot_begun;
    uint64_t often = SNAPSHOT_SEGMENTS + 4 * j->snapshot_size / j->options.store->options.segment_bytes;
    bool full = atomic_load_explicit(&j->options.writer->condition, memory_order_relaxed) == JOURNAL_FULL;
    return a->state.app && !j->snapshot_filled && !j->snapshot_writing &&
           (j->snapshot_due || begun >= often || (full && begun > 0 && j->segment_count > 1));
}

/* --- what is to be done besides turns --- */

static void acks_fired(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    struct owned_app *a = container_of(timer, struct owned_app, journal.acks);
    a->journal.acks_due = true;
    loop_want(a->loop, &a->task);
}

/* A full disk takes what lets a segment go. */
static bool may_frame_acks(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    if (journal_room(j->options.writer, &j->room))
        return true;
    bool would_release = false;
    for (struct journal_output *o = j->outputs; o; o = o->next)
        would_release = would_release || (o->backlog && backlog_would_release(o->backlog));
    return would_release && journal_reserve(j->options.writer, ACK_FRAME_BYTES);
}

static void frame_acks(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    j->acks_due = false;
    if (may_frame_acks(a)) {
        put_outputs(a);
        if (end_frame(a))
            join(a, false);
    }
    watch_acks(a);
}

void app_journal_stop(struct owned_app *a)
{
    if (!a->journal.failed)
        frame_acks(a);
}

/* --- what receivers were asked (struct outlet_contact) --- */

/* Also on a full disk: what is not sent never lets a segment go. */
static void see_contact(struct owned_app *a, struct journal_output *o)
{
    struct app_journal *j = &a->journal;
    struct backlog *b = o->backlog;
    enum outlet_contact_state state = outlet_contact(b->options.outlet);
    if (o->noted != DEAD_NO_BATCH || (state != OUTLET_AGREED && state != OUTLET_OUTGROWN))
        return;
    if (!journal_room(j->options.writer, &j->room) && !journal_reserve(j->options.writer, ACK_FRAME_BYTES))
        return;
    if (state == OUTLET_OUTGROWN) {
        j->options.fill_random(j->options.random_context, b->epoch, sizeof b->epoch);
        b->common = b->reach;
    }
    b->reach = OUTPUT_REACH_ALL;
    backlog_frame_numbers(b, app_journal_frame(a));
    o->noted = DEAD_FILLED;
    app_journal_commit(a, false);
}

static void contact_durable(struct journal_output *o)
{
    if (o->noted != DEAD_WRITING)
        return;
    struct outlet *outlet = o->backlog->options.outlet;
    o->noted = DEAD_NO_BATCH;
    outlet_contact_noted(outlet, outlet_contact(outlet) == OUTLET_OUTGROWN ? o->backlog->epoch : NULL);
}

void app_journal_work(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    for (struct journal_output *o = j->outputs; o; o = o->next) {
        if (o->backlog)
            backlog_pump(o->backlog);
    }
    app_dead_work(a);
    for (struct journal_output *o = j->outputs; o && !j->failed; o = o->next) {
        if (o->backlog)
            see_contact(a, o);
    }
    if (j->failed)
        return;
    if (j->acks_due)
        frame_acks(a);
    if (!j->failed && snapshot_is_due(a) && !owned_app_suspended(a))
        snapshot(a);
}

/* --- durable --- */

int app_journal_note_segment(struct app_journal *j, uint64_t segment)
{
    if (j->segment_count > 0 && j->segments[j->segment_count - 1] == segment)
        return 0;
    if (j->segment_count == j->segment_room) {
        uint32_t room = j->segment_room ? 2 * j->segment_room : 8;
        uint64_t *segments = realloc(j->segments, room * sizeof *segments);
        if (!segments)
            return -ENOMEM;
        j->segments = segments;
        j->segment_room = room;
    }
    j->segments[j->segment_count++] = segment;
    return 1;
}

/* What is not held may be removed though it is needed: the app cannot go on without. */
static void hold_segment(struct owned_app *a, uint64_t segment)
{
    int added = app_journal_note_segment(&a->journal, segment);
    if (added > 0)
        store_hold(a->journal.options.store, segment);
    else if (added < 0)
        fail(a, added);
}

/* All before the snapshot's is not needed any more. */
static void release_segments(struct app_journal *j, uint64_t before)
{
    uint32_t gone = 0;
    while (gone < j->segment_count && j->segments[gone] < before)
        store_release(j->options.store, j->segments[gone++]);
    j->segment_count -= gone;
    memmove(j->segments, j->segments + gone, j->segment_count * sizeof *j->segments);
}

static void placed(struct journal_member *m, uint64_t segment, uint64_t offset)
{
    struct owned_app *a = container_of(m, struct owned_app, journal.member);
    struct app_journal *j = &a->journal;
    owned_app_placed(a);
    for (struct journal_output *o = j->outputs; o; o = o->next) {
        if (o->backlog && backlog_placed(o->backlog, segment, offset) < 0)
            fail(a, -ENOMEM);
        if (o->noted == DEAD_FILLED)
            o->noted = DEAD_WRITING;
    }
    app_dead_placed(a);
    app_fare_placed(a);
    if (j->framed)
        hold_segment(a, segment);
    j->framed = false;
    if (j->snapshot_filled)
        j->snapshot_segment = segment;
    j->snapshot_writing = j->snapshot_filled;
    j->snapshot_filled = false;
}

static void durable(struct journal_member *m)
{
    struct owned_app *a = container_of(m, struct owned_app, journal.member);
    struct app_journal *j = &a->journal;
    for (struct journal_output *o = j->outputs; o; o = o->next) {
        if (o->backlog)
            backlog_durable(o->backlog);
        contact_durable(o);
    }
    app_dead_durable(a);
    app_fare_durable(a);
    if (j->snapshot_writing)
        release_segments(j, j->snapshot_segment);
    j->snapshot_writing = false;
    if (!j->failed)
        owned_app_durable(a);
    journal_released(j->options.writer);
}

static void failed(struct journal_member *m, int error)
{
    fail(container_of(m, struct owned_app, journal.member), error);
}

/* --- life --- */

void app_journal_init(struct owned_app *a, const struct app_journal_options *options)
{
    struct app_journal *j = &a->journal;
    *j = (struct app_journal){.options = *options,
                              .on = options->store && options->durability != DURABILITY_MEMORY,
                              .member = {.placed = placed, .durable = durable, .failed = failed},
                              .room.room = room_came};
    timer_init(&j->acks, acks_fired);
    sink_init(&j->snapshot, 0);
    if (!j->on)
        return;
    journal_enter(options->writer, &j->member);
    a->entry.durability = options->durability;
    a->intake.key_stored = key_stored;
    a->intake.context = a;
    j->snapshot_due = true;
}

static void dispose_output(struct journal_output *o)
{
    if (o->backlog) {
        backlog_dispose(o->backlog);
        free(o->backlog);
    }
    dead_letters_dispose(&o->dead.letters);
    free(o);
}

void app_journal_dispose(struct owned_app *a)
{
    struct app_journal *j = &a->journal;
    while (j->outputs) {
        struct journal_output *o = j->outputs;
        j->outputs = o->next;
        dispose_output(o);
    }
    while (j->sources) {
        struct journal_source *source = j->sources;
        j->sources = source->next;
        free(source);
    }
    app_dead_dispose(a);
    sink_dispose(&j->snapshot);
    free(j->segments);
    j->segments = NULL;
}
