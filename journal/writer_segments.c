#include "journal/writer_segments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

int segments_init(struct journal_writer *w)
{
    struct journal_segments *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->writer = w;
    s->making.fd = s->sealing.fd = -1;
    frame_buffer_init(&s->sealing.frames);
    w->segments = s;
    return 0;
}

void segments_dispose(struct journal_writer *w)
{
    if (w->segments)
        frame_buffer_dispose(&w->segments->sealing.frames);
    free(w->segments);
    w->segments = NULL;
}

static struct store *store_of(const struct journal_segments *s)
{
    return s->writer->options.store;
}

static struct io *io_of(const struct journal_segments *s)
{
    return s->writer->options.loop->io;
}

static void want_round(const struct journal_segments *s)
{
    loop_want(s->writer->options.loop, &s->writer->task);
}

/* --- making --- */

static struct journal_segments *of_making(struct io_op *op)
{
    return container_of(op, struct journal_segments, making.op);
}

static bool is_small(const struct journal_segments *s)
{
    return s->making.bytes < store_of(s)->options.segment_bytes;
}

/* A whole one, or an unlink, is tried again after that. */
static void rest(const struct journal_segments *s)
{
    struct loop *loop = s->writer->options.loop;
    timer_set(&loop->timers, &s->writer->retry, loop->now_ns + JOURNAL_RETRY_NS);
}

static void begin_making(struct journal_segments *s, uint64_t bytes);

/* Without a current segment, even what frees space could not be written: a small one is better than none. */
static bool may_be_smaller(const struct journal_segments *s)
{
    const struct journal_making *m = &s->making;
    return writer_is_no_space(m->error) && !s->writer->segment && m->bytes > m->least && !s->dropping;
}

static void undone(struct journal_segments *s)
{
    struct journal_making *m = &s->making;
    m->step = m->error < 0 ? MAKING_RESTING : MAKING_NONE;
    if (m->step == MAKING_RESTING && s->writer->retry.due_ns == NEVER) /* it fired while this was undone */
        timer_set(&s->writer->options.loop->timers, &s->writer->retry,
                  s->writer->options.loop->now_ns + JOURNAL_RETRY_NS);
    if (may_be_smaller(s))
        begin_making(s, m->least);
    want_round(s);
}

static void made_closed(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    struct journal_segments *s = of_making(op);
    s->making.fd = -1;
    undone(s);
}

static void close_made(struct journal_segments *s)
{
    io_prepare(&s->making.op, IO_CLOSE, s->making.fd, made_closed);
    io_queue(io_of(s), &s->making.op);
}

/* A file that cannot be unlinked is left: a start finds nothing in it, and removes it. */
static void made_unlinked(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    close_made(of_making(op));
}

/* `error` 0: it is not needed. Once the store has failed it is closed only: nothing is changed then. */
static void undo_making(struct journal_segments *s, int error)
{
    struct journal_making *m = &s->making;
    m->step = MAKING_UNDO;
    m->error = error;
    if (error < 0)
        writer_full(s->writer, &s->writer->no_segment, error);
    if (m->fd < 0) {
        undone(s);
    } else if (s->writer->failure) {
        close_made(s);
    } else {
        io_prepare_name(&m->op, IO_FILE_UNLINK, store_of(s)->directory, m->name, 0, 0, made_unlinked);
        io_queue(io_of(s), &m->op);
    }
}

static bool goes_on(struct journal_segments *s, int result)
{
    if (s->dropping || s->writer->failure)
        undo_making(s, 0);
    else if (result < 0)
        undo_making(s, result);
    else
        return true;
    return false;
}

/* A sync that failed for another reason than space says that the disk has failed. */
static bool goes_on_synced(struct journal_segments *s, int result)
{
    if (result < 0 && !writer_is_no_space(result))
        writer_fail(s->writer, result);
    return goes_on(s, result);
}

static void name_synced(struct io_op *op, int result, bool more)
{
    (void)more;
    struct journal_segments *s = of_making(op);
    if (!goes_on_synced(s, result))
        return;
    s->making.step = MAKING_READY;
    if (!is_small(s))
        writer_has_space(s->writer, &s->writer->no_segment);
    else /* the retry that was set may have passed while it was made */
        rest(s);
    want_round(s);
}

static void file_synced(struct io_op *op, int result, bool more)
{
    (void)more;
    struct journal_segments *s = of_making(op);
    if (!goes_on_synced(s, result))
        return;
    io_prepare_file(op, IO_FILE_SYNC, store_of(s)->directory, NULL, 0, 0, name_synced);
    io_queue(io_of(s), op);
}

static void allocated(struct io_op *op, int result, bool more)
{
    (void)more;
    struct journal_segments *s = of_making(op);
    if (!goes_on(s, result == -EOPNOTSUPP ? 0 : result))
        return;
    /* Batches are durable without it: it spares the first ones what setting aside has changed. */
    io_prepare_file(op, IO_FILE_SYNC, s->making.fd, NULL, 0, 0, file_synced);
    io_queue(io_of(s), op);
}

static void opened(struct io_op *op, int result, bool more)
{
    (void)more;
    struct journal_segments *s = of_making(op);
    struct journal_making *m = &s->making;
    if (result == -EEXIST && !s->dropping) { /* a file that is none of ours: left alone */
        begin_making(s, m->bytes);
        return;
    }
    m->fd = result >= 0 ? result : -1;
    if (!goes_on(s, result))
        return;
    io_prepare_file(op, IO_FILE_ALLOCATE, m->fd, NULL, 0, m->bytes, allocated);
    io_queue(io_of(s), op);
}

static void begin_making(struct journal_segments *s, uint64_t bytes)
{
    struct journal_making *m = &s->making;
    m->step = MAKING;
    m->bytes = bytes;
    m->error = 0;
    m->number = store_new_number(store_of(s));
    segment_name(m->number, m->name);
    io_prepare_name(&m->op, IO_FILE_OPEN, store_of(s)->directory, m->name, O_CREAT | O_EXCL | O_RDWR, 0600,
                    opened);
    io_queue(io_of(s), &m->op);
}

void segments_make(struct journal_writer *w, uint64_t bytes)
{
    struct journal_segments *s = w->segments;
    struct journal_making *m = &s->making;
    if (m->step == MAKING_READY && m->bytes < bytes) {
        undo_making(s, 0);
    } else if (m->step == MAKING_NONE) {
        m->least = max_u64(bytes, JOURNAL_SMALL_BYTES);
        begin_making(s, max_u64(bytes, w->options.store->options.segment_bytes));
    }
}

void segments_retry(struct journal_writer *w)
{
    struct journal_segments *s = w->segments;
    if (s->making.step == MAKING_RESTING)
        s->making.step = MAKING_NONE;
    else if (s->making.step == MAKING_READY && is_small(s))
        undo_making(s, 0);
    s->removing.resting = false;
    segments_remove(w);
}

bool segments_ready(const struct journal_writer *w, uint64_t bytes)
{
    const struct journal_making *m = &w->segments->making;
    return m->step == MAKING_READY && m->bytes >= bytes && !segments_sealing(w);
}

int segments_rotate(struct journal_writer *w)
{
    struct journal_segments *s = w->segments;
    struct journal_making *m = &s->making;
    struct segment *segment;
    assert(m->step == MAKING_READY && !w->writing);
    int error = store_begin(w->options.store, m->number, m->bytes, &segment);
    if (error < 0)
        return error;
    if (w->segment)
        segments_end(w);
    w->segment = segment;
    w->fd = m->fd;
    w->at = 0;
    w->room = m->bytes;
    m->fd = -1;
    m->step = MAKING_NONE;
    counter_add(&w->counters.segments, 1);
    if (!is_small(s))
        writer_has_space(w, &w->no_segment);
    return 0;
}

void segments_drop(struct journal_writer *w)
{
    struct journal_segments *s = w->segments;
    s->dropping = true;
    if (s->making.step == MAKING_READY)
        undo_making(s, 0);
    else if (s->making.step == MAKING_RESTING)
        s->making.step = MAKING_NONE;
}

/* --- sealing --- */

static struct journal_segments *of_sealing(struct io_op *op)
{
    return container_of(op, struct journal_segments, sealing.op);
}

static void sealed_closed(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    struct journal_segments *s = of_sealing(op);
    s->sealing.fd = -1;
    segments_remove(s->writer);
    want_round(s);
}

/* Once the store has failed its segments stay as they are, and held. */
static void let_go(struct journal_segments *s, uint64_t seal_offset)
{
    struct journal_sealing *g = &s->sealing;
    if (!s->writer->failure)
        store_sealed(store_of(s), g->segment, seal_offset);
    g->segment = NULL;
    io_prepare(&g->op, IO_CLOSE, g->fd, sealed_closed);
    io_queue(io_of(s), &g->op);
}

static void seal_written(struct io_op *op, int result, bool more);

static void write_seal(struct journal_segments *s)
{
    struct journal_sealing *g = &s->sealing;
    io_prepare_file(&g->op, IO_FILE_WRITE, g->fd, g->frames.data + g->written,
                    (uint32_t)(g->frames.size - g->written), g->at + g->written, seal_written);
    io_queue(io_of(s), &g->op);
}

static void seal_written(struct io_op *op, int result, bool more)
{
    (void)more;
    struct journal_segments *s = of_sealing(op);
    struct journal_sealing *g = &s->sealing;
    if (result > 0)
        g->written += (size_t)result;
    if (g->written == g->frames.size) {
        let_go(s, g->at);
    } else if (result > 0 || result == -EINTR || result == -EAGAIN) {
        write_seal(s);
    } else {
        if (!writer_is_no_space(result))
            writer_fail(s->writer, result < 0 ? result : -EIO);
        let_go(s, 0); /* a start reads the segment instead */
    }
}

void segments_end(struct journal_writer *w)
{
    struct journal_segments *s = w->segments;
    struct journal_sealing *g = &s->sealing;
    assert(g->fd < 0);
    g->segment = w->segment;
    g->fd = w->fd;
    g->at = w->at;
    g->written = 0;
    frame_buffer_clear(&g->frames, JOURNAL_SEAL_BYTES);
    bool seal = !w->torn && !w->failure && seal_write(&g->frames, &g->segment->seal) == 0;
    w->segment = NULL;
    w->fd = -1;
    w->at = w->room = 0;
    if (seal) {
        frames_place(&g->frames, store_of(s)->id, g->segment->number, g->at);
        write_seal(s);
    } else {
        let_go(s, 0);
    }
}

bool segments_sealing(const struct journal_writer *w)
{
    return w->segments->sealing.fd >= 0;
}

/* --- removing --- */

static void removed(struct io_op *op, int result, bool more)
{
    (void)more;
    struct journal_segments *s = container_of(op, struct journal_segments, removing.op);
    struct journal_writer *w = s->writer;
    uint64_t number = s->removing.number;
    s->removing.number = 0;
    if (result == 0 || result == -ENOENT) {
        store_removed(store_of(s), number);
        counter_add(&w->counters.removed, 1);
        if (w->no_segment || w->no_space) /* there is space now, perhaps */
            timer_set(&w->options.loop->timers, &w->retry, w->options.loop->now_ns);
        segments_remove(w);
    } else {
        store_not_removed(store_of(s), number);
        s->removing.resting = true;
        rest(s);
    }
    want_round(s);
}

/* An unlink that a crash undoes does no harm: a start finds again that nobody needs the segment. So the
 * directory is not synced for it. */
void segments_remove(struct journal_writer *w)
{
    struct journal_segments *s = w->segments;
    struct journal_removing *r = &s->removing;
    if (r->number != 0 || w->failure || w->stopping || r->resting ||
        !store_take_removable(store_of(s), &r->number))
        return;
    if (w->options.removing)
        w->options.removing(w->options.context, r->number);
    segment_name(r->number, r->name);
    io_prepare_name(&r->op, IO_FILE_UNLINK, store_of(s)->directory, r->name, 0, 0, removed);
    io_queue(io_of(s), &r->op);
}

bool segments_idle(const struct journal_writer *w)
{
    const struct journal_segments *s = w->segments;
    return s->making.step == MAKING_NONE && s->sealing.fd < 0 && s->removing.number == 0;
}
