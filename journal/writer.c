#include "journal/writer_segments.h"

#include <endian.h>
#include <errno.h>

/* Seals that one HEADER names; more wait for the next one. */
#define HEADER_SEALS     256
#define HEADER_BYTES_MAX (FRAME_HEAD + 16 + HEADER_SEALS * sizeof(struct journal_place) + FRAME_ALIGN)

static unsigned filling(const struct journal_writer *w)
{
    return w->batch % 2;
}

static const struct frame_buffer *filling_frames(const struct journal_writer *w)
{
    return &w->buffers[filling(w)];
}

static void want_round(struct journal_writer *w)
{
    loop_want(w->options.loop, &w->task);
}

/* --- condition --- */

/* No space, or a file system that is read-only at the moment: nothing was written, and it may pass. */
bool writer_is_no_space(int error)
{
    return error == -ENOSPC || error == -EDQUOT || error == -EROFS;
}

static void set_condition(struct journal_writer *w, enum journal_condition condition)
{
    atomic_store_explicit(&w->condition, condition, memory_order_relaxed);
}

void writer_full(struct journal_writer *w, bool *why, int error)
{
    uint64_t now_ns = w->options.loop->now_ns;
    bool before = w->no_segment || w->no_space;
    if (w->failure)
        return;
    *why = true;
    counter_add(&w->counters.full, 1);
    timer_set(&w->options.loop->timers, &w->retry, now_ns + JOURNAL_RETRY_NS);
    atomic_store_explicit(&w->error, error, memory_order_relaxed);
    if (before)
        return;
    w->full_since_ns = now_ns;
    set_condition(w, JOURNAL_FULL);
    log_line(w->options.log, LOG_ERROR,
             "journal: no place on the disk: %s; apps wait, and it is tried again every second",
             pure_error_text(error));
}

void writer_has_space(struct journal_writer *w, bool *why)
{
    if (!*why)
        return;
    *why = false;
    if (w->failure || w->no_segment || w->no_space)
        return;
    set_condition(w, JOURNAL_OK);
    log_line(w->options.log, LOG_NOTICE, "journal: there is place on the disk again, after %.1f s",
             (double)(w->options.loop->now_ns - w->full_since_ns) / (double)NS_PER_S);
}

/* --- members and waiters --- */

static void list_init(struct journal_writer *w, unsigned which)
{
    w->members[which] = NULL;
    w->members_end[which] = &w->members[which];
}

static struct journal_member *take_member(struct journal_writer *w, unsigned which)
{
    struct journal_member *m = w->members[which];
    if (!m)
        return NULL;
    w->members[which] = m->next[which];
    if (!w->members[which])
        list_init(w, which);
    m->joined[which] = false;
    return m;
}

static void tell_placed(struct journal_writer *w, unsigned which, uint64_t segment, uint64_t offset)
{
    struct journal_member *m, *next;
    for (m = w->members[which]; m; m = next) {
        next = m->next[which];
        m->placed(m, segment, offset);
    }
}

/* Those who join meanwhile join the batch that fills, which is another list. */
static void tell_durable(struct journal_writer *w, unsigned which)
{
    struct journal_member *m;
    assert(which != filling(w));
    while ((m = take_member(w, which)))
        m->durable(m);
}

static void give_up_members(struct journal_writer *w, unsigned which)
{
    while (take_member(w, which))
        ;
}

static void tell_failed(struct journal_writer *w)
{
    give_up_members(w, 0);
    give_up_members(w, 1);
    for (struct journal_member *m = w->entered; m; m = m->next_entered) {
        m->told = true;
        m->failed(m, w->failure);
    }
}

/* Whoever finds no room after all waits again, in a new list. */
static void tell_waiters(struct journal_writer *w)
{
    struct journal_waiter *told = w->waiters;
    w->waiters = NULL;
    while (told) {
        struct journal_waiter *waiter = told;
        told = waiter->next;
        waiter->waiting = false;
        waiter->room(waiter);
    }
}

void journal_enter(struct journal_writer *w, struct journal_member *member)
{
    member->next_entered = w->entered;
    w->entered = member;
}

void writer_fail(struct journal_writer *w, int error)
{
    if (w->failure)
        return;
    w->failure = PE_JOURNAL_FAILED;
    atomic_store_explicit(&w->error, error, memory_order_relaxed);
    set_condition(w, JOURNAL_FAILED);
    log_line(w->options.log, LOG_ERROR,
             "journal: writing failed: %s; nothing more is stored until the host is started again",
             pure_error_text(error));
    tell_failed(w);
    tell_waiters(w);
    want_round(w);
}

/* --- room --- */

/* What the turn that begins may add: more only delays it if the disk is full just then. */
static uint64_t turn_margin(const struct journal_writer *w)
{
    return min_u64(JOURNAL_BATCH_BYTES, w->options.store->options.segment_bytes / 4);
}

static bool has_room(const struct journal_writer *w)
{
    const struct frame_buffer *b = filling_frames(w);
    uint64_t needs = b->size + turn_margin(w) + JOURNAL_RESERVE_BYTES;
    if (b->size >= JOURNAL_BATCH_BYTES || w->no_space)
        return false;
    return w->at + needs <= w->room || segments_ready(w, needs + HEADER_BYTES_MAX);
}

void journal_hurry(struct journal_writer *w)
{
    if (w->failure || w->due_ns == 0 || !(filling_frames(w)->size > 0 || w->members[filling(w)]))
        return;
    w->due_ns = 0;
    want_round(w);
}

bool journal_room(struct journal_writer *w, struct journal_waiter *waiter)
{
    if (w->failure || w->stopping)
        return false;
    if (has_room(w))
        return true;
    journal_hurry(w); /* it is what has filled the room */
    if (!waiter->waiting) {
        waiter->waiting = true;
        waiter->next = w->waiters;
        w->waiters = waiter;
    }
    return false;
}

bool journal_reserve(struct journal_writer *w, size_t bytes)
{
    uint64_t size = filling_frames(w)->size + bytes;
    if (w->failure || w->stopping || size > 2 * JOURNAL_BATCH_BYTES)
        return false;
    return w->at + size + JOURNAL_SEAL_BYTES <= w->room ||
           segments_ready(w, size + HEADER_BYTES_MAX + JOURNAL_SEAL_BYTES);
}

void journal_join(struct journal_writer *w, struct journal_member *member, uint64_t due_ns)
{
    unsigned which = filling(w);
    if (member->told)
        return;
    if (!member->joined[which]) {
        member->joined[which] = true;
        member->next[which] = NULL;
        *w->members_end[which] = member;
        w->members_end[which] = &member->next[which];
    }
    bool now = due_ns <= w->options.loop->now_ns;
    if (due_ns < w->due_ns) {
        w->due_ns = due_ns;
        timer_set(&w->options.loop->timers, &w->due, now ? NEVER : due_ns);
    }
    size_t size = filling_frames(w)->size;
    if (now || size >= JOURNAL_BATCH_BYTES || (size == 0 && !w->writing) || w->failure)
        want_round(w);
}

/* --- the batch under way --- */

static void note_slow(struct journal_writer *w, uint64_t took_ns)
{
    uint64_t now_ns = w->options.loop->now_ns;
    w->slow_unlogged++;
    if (w->slow_logged_ns != NEVER && now_ns - w->slow_logged_ns < JOURNAL_SLOW_LOG_NS)
        return;
    log_line(w->options.log, LOG_WARNING, "journal: a write took %.1f s (%u slow ones since the last line)",
             (double)took_ns / (double)NS_PER_S, w->slow_unlogged);
    w->slow_logged_ns = now_ns;
    w->slow_unlogged = 0;
}

static void count_write(struct journal_writer *w, size_t bytes)
{
    uint64_t took_ns = w->options.loop->now_ns - w->write_began_ns;
    w->last_write_ns = took_ns;
    counter_add(&w->counters.writes, 1);
    counter_add(&w->counters.bytes, bytes);
    counter_add(&w->counters.wait_ns, took_ns);
    if (took_ns > counter_read(&w->counters.slowest_ns))
        atomic_store_explicit(&w->counters.slowest_ns, took_ns, memory_order_relaxed);
    if (took_ns > JOURNAL_SLOW_NS)
        note_slow(w, took_ns);
}

static void next_batch(struct journal_writer *w)
{
    w->batch++;
    w->due_ns = NEVER;
    timer_unset(&w->options.loop->timers, &w->due);
}

/* A batch without frames, and nothing in front of it that is not durable. */
static void pass_empty_batch(struct journal_writer *w)
{
    unsigned which = filling(w);
    if (!w->members[which])
        return;
    next_batch(w);
    tell_placed(w, which, 0, 0);
    tell_durable(w, which);
}

static void batch_durable(struct journal_writer *w)
{
    unsigned which = !filling(w);
    size_t size = w->buffers[which].size;
    count_write(w, size);
    w->segment->end = w->write_at + size;
    frame_buffer_clear(&w->buffers[which], 2 * JOURNAL_BATCH_BYTES);
    w->writing = false;
    writer_has_space(w, &w->no_space);
    tell_durable(w, which);
    if (filling_frames(w)->size == 0)
        pass_empty_batch(w);
    segments_remove(w);
}

static void batch_written(struct io_op *op, int result, bool more);

/* One small batch, on a disk that answers in less time than wakes take, by an owner whose apps all wait for
 * the disk and that has nothing else to do: it may as well wait itself. A disk that is slow once is not
 * trusted again before a worker has found it fast. */
static bool may_wait_here(const struct journal_writer *w)
{
    return w->options.alone && *w->options.alone && w->buffers[!filling(w)].size <= JOURNAL_HERE_BYTES &&
           w->last_write_ns > 0 && w->last_write_ns < JOURNAL_HERE_NS && !w->options.loop->first &&
           !w->stopping && !w->no_space && w->written == 0;
}

static void write_rest(struct journal_writer *w)
{
    const struct frame_buffer *b = &w->buffers[!filling(w)];
    io_prepare_file(&w->write_op, IO_FILE_WRITE, w->fd, b->data + w->written,
                    (uint32_t)(b->size - w->written), w->write_at + w->written, batch_written);
    if (may_wait_here(w))
        w->write_op.file.flags = IO_FILE_HERE;
    io_queue(w->options.loop->io, &w->write_op);
}

static void batch_written(struct io_op *op, int result, bool more)
{
    (void)more;
    struct journal_writer *w = container_of(op, struct journal_writer, write_op);
    if (result > 0)
        w->written += (size_t)result;
    if (w->failure) /* by something else meanwhile: nobody waits for it any more */
        w->writing = false;
    else if (w->written == w->buffers[!filling(w)].size)
        batch_durable(w);
    else if (result > 0 || result == -EINTR || result == -EAGAIN)
        write_rest(w);
    else if (writer_is_no_space(result))
        writer_full(w, &w->no_space, result);
    else {
        w->writing = false;
        writer_fail(w, result < 0 ? result : -EIO);
    }
    want_round(w); /* behind the apps that heard: what they do now is in the next batch */
}

/* --- handing over --- */

static bool is_due(const struct journal_writer *w, uint64_t now_ns)
{
    const struct frame_buffer *b = filling_frames(w);
    if (b->size == 0)
        return w->members[filling(w)];
    return w->due_ns <= now_ns || b->size >= JOURNAL_BATCH_BYTES || w->stopping;
}

/* Whether the current segment takes the batch; if it takes no more and the next one is ready, that is the
 * current one then. What is left free is for the seal, and while there is a next one to be had for small
 * frames, too. */
static bool find_place(struct journal_writer *w, uint64_t size)
{
    uint64_t end = w->at + size, in_new = size + HEADER_BYTES_MAX;
    in_new += w->no_segment ? JOURNAL_SEAL_BYTES : JOURNAL_RESERVE_BYTES;
    if (end + JOURNAL_RESERVE_BYTES <= w->room)
        return true;
    if (segments_ready(w, in_new)) {
        int error = segments_rotate(w);
        if (error < 0)
            writer_full(w, &w->no_segment, error);
        else
            return true;
    }
    if (w->no_segment && end + JOURNAL_SEAL_BYTES <= w->room)
        return true;
    segments_make(w, in_new);
    return false;
}

/* The first frame of a segment, in front of those that are there. 0 or -ENOMEM. */
static int put_header(struct journal_writer *w, struct frame_buffer *b)
{
    struct journal_place seals[HEADER_SEALS];
    uint8_t header[HEADER_BYTES_MAX];
    size_t frames = b->size;
    uint32_t count = store_take_seals(w->options.store, seals, HEADER_SEALS);
    int error = header_write(b, io_wall_ms(w->options.loop->io), seals, count);
    if (error < 0)
        return error;
    size_t size = b->size - frames;
    assert(size <= sizeof header);
    memcpy(header, b->data + frames, size);
    memmove(b->data + size, b->data, frames);
    memcpy(b->data, header, size);
    return 0;
}

static uint32_t load_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

/* Into the segment's seal. The frames are our own: their heads are believed. */
static int note_frames(struct journal_writer *w, const struct frame_buffer *b)
{
    int error = 0;
    for (size_t at = 0; at < b->size && error == 0;) {
        const uint8_t *head = b->data + at;
        struct journal_frame frame = {.kind = head[12],
                                      .size = load_u32(head + 8),
                                      .store = w->options.store->id,
                                      .segment = w->segment->number,
                                      .offset = w->at + at,
                                      .batch = w->at};
        frame.payload = span_of(head + FRAME_HEAD, frame.size - FRAME_HEAD - head[13]);
        if (frame.kind == FRAME_COMMIT || frame.kind == FRAME_SNAPSHOT)
            error = seal_note(&w->segment->seal, &frame);
        counter_add(&w->counters.frames, 1);
        at += frame.size;
    }
    assert(error == 0 || error == -ENOMEM);
    return error;
}

static void start_write(struct journal_writer *w, uint64_t now_ns)
{
    unsigned which = filling(w);
    w->writing = true;
    w->write_at = w->at;
    w->write_began_ns = now_ns;
    w->written = 0;
    w->at += w->buffers[which].size;
    next_batch(w);
    tell_placed(w, which, w->segment->number, w->write_at);
    write_rest(w);
}

/* What there is goes on its way, if it has a place. */
static void hand_over(struct journal_writer *w, uint64_t now_ns)
{
    struct frame_buffer *b = journal_frames(w);
    assert(b->begun == SIZE_MAX);
    if (b->size == 0) {
        pass_empty_batch(w);
        return;
    }
    if (!find_place(w, b->size))
        return;
    bool first = w->at == 0;
    int error = first ? put_header(w, b) : 0;
    if (error == 0) {
        frames_place(b, w->options.store->id, w->segment->number, w->at);
        error = note_frames(w, b);
    }
    if (error < 0) { /* a seal that lacks a frame would hide it */
        writer_fail(w, error);
        return;
    }
    start_write(w, now_ns);
    if (first && w->options.begun)
        w->options.begun(w->options.context, w->segment->number);
}

/* --- rounds --- */

/* The next segment is wanted before it is needed: from the middle of the current one on, or once that has no
 * room for a turn (which in a small one is earlier). */
static void look_ahead(struct journal_writer *w)
{
    uint64_t whole = w->options.store->options.segment_bytes;
    bool short_of_room = w->at + filling_frames(w)->size + turn_margin(w) + JOURNAL_RESERVE_BYTES > w->room;
    if (!w->segment || w->at > w->room / 2 || w->room < whole || short_of_room)
        segments_make(w, 0);
}

/* The disk is full: what waits is given up. */
static void give_up(struct journal_writer *w)
{
    if (w->no_space) {
        w->no_space = w->writing = false;
        w->torn = true;
        give_up_members(w, !filling(w));
    }
    give_up_members(w, filling(w));
    frame_buffer_clear(journal_frames(w), 0);
}

static bool is_waiting(const struct journal_writer *w)
{
    return w->writing || filling_frames(w)->size > 0 || w->members[filling(w)];
}

static void go_on_stopping(struct journal_writer *w)
{
    if (w->no_space && w->write_op.in_flight)
        return; /* it is being tried again just now */
    if (w->no_space || (w->no_segment && !w->writing))
        give_up(w);
    if (w->writing || (is_waiting(w) && !w->failure))
        return;
    if (w->segment && !segments_sealing(w))
        segments_end(w);
    segments_drop(w);
    w->stopped = !w->segment && segments_idle(w);
    if (w->stopped) {
        timer_unset(&w->options.loop->timers, &w->due);
        timer_unset(&w->options.loop->timers, &w->retry);
    }
}

static bool run(struct task *task, uint64_t now_ns)
{
    struct journal_writer *w = container_of(task, struct journal_writer, task);
    if (w->stopped)
        return false;
    if (!w->failure && !w->writing && is_due(w, now_ns))
        hand_over(w, now_ns);
    if (w->failure)
        frame_buffer_clear(journal_frames(w), 0);
    if (w->stopping) {
        go_on_stopping(w);
    } else if (!w->failure) {
        look_ahead(w);
        if (w->waiters && has_room(w))
            tell_waiters(w);
    }
    return false;
}

static void due_fired(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    want_round(container_of(timer, struct journal_writer, due));
}

static void retry_fired(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    struct journal_writer *w = container_of(timer, struct journal_writer, retry);
    if (!w->failure && w->no_space && !w->write_op.in_flight)
        write_rest(w);
    segments_retry(w);
    want_round(w);
}

void journal_released(struct journal_writer *w)
{
    segments_remove(w);
}

int journal_writer_init(struct journal_writer *w, const struct journal_options *options)
{
    *w = (struct journal_writer){
        .options = *options, .task.run = run, .due_ns = NEVER, .fd = -1, .slow_logged_ns = NEVER};
    timer_init(&w->due, due_fired);
    timer_init(&w->retry, retry_fired);
    for (unsigned i = 0; i < 2; i++) {
        frame_buffer_init(&w->buffers[i]);
        list_init(w, i);
    }
    int error = segments_init(w);
    if (error == 0)
        error = loop_add(options->loop, &w->task);
    if (error < 0)
        segments_dispose(w);
    else
        want_round(w);
    return error;
}

void journal_stop(struct journal_writer *w)
{
    w->stopping = true;
    want_round(w);
}

bool journal_stopped(const struct journal_writer *w)
{
    return w->stopped;
}

void journal_writer_dispose(struct journal_writer *w)
{
    timer_unset(&w->options.loop->timers, &w->due);
    timer_unset(&w->options.loop->timers, &w->retry);
    loop_remove(w->options.loop, &w->task);
    for (unsigned i = 0; i < 2; i++)
        frame_buffer_dispose(&w->buffers[i]);
    segments_dispose(w);
}
