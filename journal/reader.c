#include "journal/reader.h"

#include "core/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

static struct journal_reader *of_op(struct io_op *op)
{
    return container_of(op, struct journal_reader, op);
}

static void want(struct journal_reader *r)
{
    loop_want(r->loop, &r->task);
}

/* --- the line --- */

static void line_add(struct journal_reader *r, struct read_request *q)
{
    q->line = NULL;
    *r->last = q;
    r->last = &q->line;
}

static struct read_request *line_take(struct journal_reader *r)
{
    struct read_request *q = r->first;
    r->first = q->line;
    if (!r->first)
        r->last = &r->first;
    return q;
}

/* --- the window --- */

static void forget_window(struct journal_reader *r)
{
    r->size = 0;
    r->fresh = r->at_end = false;
}

/* What there is from `at` on. */
static struct span window_from(const struct journal_reader *r, uint64_t at)
{
    if (at < r->window_offset || at >= r->window_offset + r->size)
        return span_of(NULL, 0);
    size_t skipped = (size_t)(at - r->window_offset);
    return span_of(r->window + skipped, r->size - skipped);
}

/* A damaged frame may state any size, so memory grows with what is really there: by doubling. */
static int grow(struct journal_reader *r, size_t least)
{
    size_t room = min_size(2 * r->room, least);
    uint8_t *window = realloc(r->window, room);
    if (!window)
        return -ENOMEM;
    r->window = window;
    r->room = room;
    return 0;
}

/* After a turn. */
static void give_back(struct journal_reader *r)
{
    r->fresh = false;
    if (r->room <= READER_WINDOW)
        return;
    forget_window(r);
    uint8_t *window = realloc(r->window, READER_WINDOW);
    if (!window)
        return; /* it is kept as it is */
    r->window = window;
    r->room = READER_WINDOW;
}

/* --- the end of a turn --- */

static void next_in_line(struct journal_reader *r)
{
    give_back(r);
    line_add(r, line_take(r));
}

static void finish(struct journal_reader *r, enum read_end end, int error)
{
    give_back(r);
    struct read_request *q = line_take(r);
    q->waiting = false;
    q->done(q, end, error);
}

/* --- the segment --- */

static void opened(struct io_op *op, int result, bool more)
{
    (void)more;
    struct journal_reader *r = of_op(op);
    r->busy = false;
    want(r);
    if (result >= 0) {
        r->fd = result;
        return;
    }
    r->segment = 0;
    if (!r->stopping)
        finish(r, result == -ENOENT ? READ_LOST : READ_FAILED, result == -ENOENT ? 0 : result);
}

static void open_segment(struct journal_reader *r, uint64_t segment)
{
    r->busy = true;
    r->segment = segment;
    forget_window(r);
    segment_name(segment, r->name);
    io_prepare_name(&r->op, IO_FILE_OPEN, r->store->directory, r->name, O_RDONLY | O_CLOEXEC, 0, opened);
    io_queue(r->loop->io, &r->op);
}

static void closed(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    struct journal_reader *r = of_op(op);
    r->busy = false;
    r->fd = -1;
    r->segment = 0;
    want(r);
}

static void close_segment(struct journal_reader *r)
{
    r->busy = true;
    io_prepare(&r->op, IO_CLOSE, r->fd, closed);
    io_queue(r->loop->io, &r->op);
}

/* --- reading --- */

static void read_done(struct io_op *op, int result, bool more);

static void read_more(struct journal_reader *r)
{
    r->busy = true;
    io_prepare_file(&r->op, IO_FILE_READ, r->fd, r->window + r->size, (uint32_t)(r->room - r->size),
                    r->window_offset + r->size, read_done);
    io_queue(r->loop->io, &r->op);
}

/* A read may be short anywhere; the file ends where nothing is read. */
static void read_done(struct io_op *op, int result, bool more)
{
    (void)more;
    struct journal_reader *r = of_op(op);
    r->busy = false;
    want(r);
    if (r->stopping)
        return;
    if (result < 0) {
        forget_window(r);
        finish(r, READ_FAILED, result);
        return;
    }
    r->size += (size_t)result;
    counter_add(&r->bytes, (uint64_t)result);
    r->at_end = result == 0;
    r->fresh = r->at_end || r->size == r->room;
    if (!r->fresh)
        read_more(r);
}

static void read_from(struct journal_reader *r, uint64_t at)
{
    forget_window(r);
    r->window_offset = at;
    read_more(r);
}

/* --- what frames say --- */

/* Leaves out what was not asked for. */
static void trim(const struct read_request *q, struct section_sends *sends)
{
    if (sends->first < q->next) {
        uint64_t known = q->next - sends->first;
        size_t bytes = record_scan(sends->bytes, SIZE_MAX, known).bytes;
        sends->bytes = span_of(sends->bytes.data + bytes, sends->bytes.size - bytes);
        sends->first = q->next;
        sends->records -= known;
    }
    uint64_t most = q->last - sends->first + 1;
    if (sends->records > most) {
        sends->bytes.size = record_scan(sends->bytes, SIZE_MAX, most).bytes;
        sends->records = most;
    }
}

/* Whether that was the end. */
static bool give(struct read_request *q, struct section_sends *sends, enum read_end *end)
{
    if (sends->first + sends->records <= q->next)
        return false;
    *end = READ_LOST;
    if (sends->first > q->last) /* numbers only go up: they do not come any more */
        return true;
    trim(q, sends);
    uint64_t taken = q->take(q, sends);
    assert(taken <= sends->records);
    if (taken > 0) {
        q->next = sends->first + taken;
        q->damage_bytes = 0;
    }
    *end = taken < sends->records ? READ_FULL : READ_DONE;
    return taken < sends->records || q->next > q->last;
}

/* Looks for sends in a valid frame. Whether that was the end. */
static bool look_into(struct journal_reader *r, struct read_request *q, const struct journal_frame *frame,
                      enum read_end *end)
{
    struct commit_head head;
    struct span rest;
    struct section section;
    *end = READ_LOST;
    if (frame->kind == FRAME_SEAL)
        return true;
    if (frame->kind != FRAME_COMMIT || commit_read_head(frame->payload, &head, &rest) < 0 ||
        !span_is(head.app, q->app))
        return false;
    int found;
    while ((found = commit_read_section(&rest, &section)) > 0) {
        if (section.type == SECTION_SENDS && span_is(section.sends.output, q->output) &&
            give(q, &section.sends, end))
            return true;
    }
    if (found < 0)
        counter_add(&r->damages, 1);
    return false;
}

/* --- the turn --- */

enum passed {
    PASSED_ALL,  /* the rest of the window is no whole valid frame, or there is none */
    PASSED_LONG, /* the frame that the request is at goes on behind the window */
    PASSED_END,  /* the request is at its end */
};

/* What lies in front of a valid frame, behind the one before. */
static void note_damage(struct journal_reader *r, struct read_request *q)
{
    counter_add(&r->damages, 1);
    if (q->damage_bytes == 0)
        q->damage_offset = q->offset;
    q->damage_bytes += q->at - q->offset;
}

static enum passed go_through(struct journal_reader *r, struct read_request *q, enum read_end *end,
                              uint32_t *frame_size)
{
    struct span bytes;
    while ((bytes = window_from(r, q->at)).size > 0) {
        struct journal_frame frame;
        enum frame_verdict verdict = frame_read(bytes, r->store->id, q->segment, q->at, &frame);
        *frame_size = frame.size;
        if (verdict == FRAME_MORE && !r->at_end)
            return PASSED_LONG;
        if (verdict != FRAME_VALID && !r->fresh)
            return PASSED_ALL;
        if (verdict != FRAME_VALID) {
            q->at += FRAME_ALIGN;
            continue;
        }
        if (q->at > q->offset)
            note_damage(r, q);
        q->offset = q->at;
        if (look_into(r, q, &frame, end))
            return PASSED_END;
        q->offset = q->at += frame.size;
    }
    return PASSED_ALL;
}

static void serve(struct journal_reader *r, struct read_request *q)
{
    enum read_end end;
    uint32_t frame_size;
    enum passed passed = go_through(r, q, &end, &frame_size);
    if (passed == PASSED_END) {
        finish(r, end, 0);
    } else if (!r->fresh) {
        read_from(r, q->at);
    } else if (passed == PASSED_ALL && r->at_end) {
        finish(r, READ_LOST, 0);
    } else if (passed == PASSED_ALL || q->at > r->window_offset) {
        next_in_line(r);
    } else {
        int error = grow(r, frame_size);
        if (error < 0)
            finish(r, READ_FAILED, error);
        else
            read_more(r);
    }
}

/* --- the task --- */

static bool stays_open(const struct journal_reader *r)
{
    if (r->stopping)
        return false;
    return r->first && r->first->segment == r->segment;
}

static bool run(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    struct journal_reader *r = container_of(task, struct journal_reader, task);
    struct read_request *q = r->first;
    if (r->busy)
        return false;
    if (r->fd >= 0 && !stays_open(r))
        close_segment(r);
    else if (q && r->fd < 0)
        open_segment(r, q->segment);
    else if (q)
        serve(r, q);
    return !r->busy && (r->first || r->fd >= 0);
}

int journal_reader_init(struct journal_reader *r, struct store *store, struct loop *loop)
{
    *r = (struct journal_reader){
        .store = store, .loop = loop, .task.run = run, .fd = -1, .room = READER_WINDOW};
    r->last = &r->first;
    r->window = malloc(READER_WINDOW);
    if (!r->window)
        return -ENOMEM;
    int error = loop_add(loop, &r->task);
    if (error < 0)
        free(r->window);
    return error;
}

void journal_read(struct journal_reader *r, struct read_request *q)
{
    assert(!q->waiting && q->next <= q->last);
    if (r->stopping)
        return;
    q->offset = (q->offset + FRAME_ALIGN - 1) / FRAME_ALIGN * FRAME_ALIGN;
    q->at = q->offset;
    q->waiting = true;
    line_add(r, q);
    want(r);
}

void journal_reader_stop(struct journal_reader *r)
{
    r->stopping = true;
    while (r->first)
        line_take(r)->waiting = false;
    want(r);
}

bool journal_reader_stopped(const struct journal_reader *r)
{
    return r->stopping && !r->busy && r->fd < 0;
}

void journal_reader_dispose(struct journal_reader *r)
{
    loop_remove(r->loop, &r->task);
    free(r->window);
}
