#include "host/backlog.h"

#include "host/heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SPILL_KEEP    (256u << 10) /* memory that is kept from turn to turn */
#define READ_RETRY_NS NS_PER_S
#define READ_TRIES    3

typedef unsigned long long ull;

static struct record_queue *queue_of(const struct backlog *b)
{
    return &b->options.outlet->queue;
}

static void set_sent(struct backlog *b, uint64_t sent)
{
    b->sent = sent;
    atomic_store_explicit(&b->options.outlet->report.sent, sent, memory_order_relaxed);
}

static void set_beyond(struct backlog *b, uint64_t bytes)
{
    b->beyond = bytes;
    atomic_store_explicit(&b->options.outlet->report.beyond, bytes, memory_order_relaxed);
}

int backlog_init(struct backlog *b, const struct backlog_options *options)
{
    *b = (struct backlog){.options = *options, .reach = OUTPUT_REACH_ALL};
    return 0;
}

void backlog_dispose(struct backlog *b)
{
    free(b->spill);
    free(b->segments);
    b->spill = NULL;
    b->segments = NULL;
}

/* --- which segments --- */

static bool has_segments(const struct backlog *b)
{
    return b->first_segment != b->segment_end;
}

static int grow_segments(struct backlog *b)
{
    uint32_t count = b->segment_end - b->first_segment;
    if (b->first_segment > count) { /* at least half of it is used up */
        memmove(b->segments, b->segments + b->first_segment, count * sizeof *b->segments);
        b->first_segment = 0;
        b->segment_end = count;
        return 0;
    }
    uint32_t room = b->segment_room ? 2 * b->segment_room : 8;
    struct backlog_segment *segments = realloc(b->segments, room * sizeof *segments);
    if (!segments)
        return -ENOMEM;
    b->segments = segments;
    b->segment_room = room;
    return 0;
}

/* Holds the segment. */
static int add_segment(struct backlog *b, const struct backlog_segment *segment)
{
    if (b->segment_end == b->segment_room && grow_segments(b) < 0)
        return -ENOMEM;
    b->segments[b->segment_end++] = *segment;
    store_hold(b->options.store, segment->segment);
    return 0;
}

static void release_stored(struct backlog *b)
{
    while (has_segments(b) && b->segments[b->first_segment].last <= b->stored_durable)
        store_release(b->options.store, b->segments[b->first_segment++].segment);
    if (!has_segments(b))
        b->first_segment = b->segment_end = 0;
}

struct start {
    struct backlog *b;
    int error;
};

static void add_found(void *context, const struct store_sends *sends)
{
    struct start *start = context;
    struct backlog *b = start->b;
    if (start->error == 0 && b->segment_end == b->segment_room)
        start->error = grow_segments(b);
    if (start->error < 0)
        return;
    b->segments[b->segment_end++] =
        (struct backlog_segment){sends->segment, sends->offset, sends->first, sends->last, sends->offset};
    b->beyond += sends->bytes;
}

int backlog_start(struct backlog *b, uint64_t sent, uint64_t stored)
{
    assert(stored <= sent);
    struct outlet *o = b->options.outlet;
    outlet_start(o, stored, sent);
    b->framed = b->filled = b->writing = o->queue.tail;
    set_sent(b, sent);
    b->placed = b->durable = b->writing_sent = sent;
    b->stored_filled = b->stored_writing = b->stored_durable = stored;
    struct start start = {.b = b};
    store_each_sends(b->options.store, o->app, o->output, stored, add_found, &start);
    for (uint32_t i = b->first_segment; i < b->segment_end; i++)
        store_hold(b->options.store, b->segments[i].segment);
    set_beyond(b, sent == stored ? 0 : b->beyond);
    return start.error;
}

void backlog_ask(struct backlog *b, uint64_t reach)
{
    struct outlet_contact *contact = &b->options.outlet->contact;
    contact->reach = b->reach = reach;
    atomic_store_explicit(&contact->state, OUTLET_ASKING, memory_order_relaxed);
}

/* --- a turn --- */

static int spill(struct backlog *b, const void *data, size_t size)
{
    size_t framed = record_framed_size(size);
    if (b->spill_size + framed > b->spill_room) {
        size_t room = b->spill_room ? b->spill_room : SPILL_KEEP;
        while (room < b->spill_size + framed)
            room *= 2;
        struct heap_account *account = heap_host_begin();
        uint8_t *memory = realloc(b->spill, room);
        heap_host_end(account);
        if (!memory)
            return -ENOMEM;
        b->spill = memory;
        b->spill_room = room;
    }
    uint8_t *at = b->spill + b->spill_size;
    at += varint_put(at, size);
    if (size > 0)
        memcpy(at, data, size);
    b->spill_size += framed;
    b->spill_records++;
    return 0;
}

/* Whether the queue takes a record and leaves `spare` bytes free. */
static bool queue_fits(struct record_queue *q, size_t size, uint64_t spare)
{
    uint64_t needs = record_framed_size(size) + spare;
    if (record_queue_held(q) + needs <= q->capacity)
        return true;
    record_queue_see_freed(q);
    return record_queue_held(q) + needs <= q->capacity;
}

static void give_spill_back(struct backlog *b)
{
    if (b->spill_size > 0 || b->spill_room <= SPILL_KEEP)
        return;
    free(b->spill);
    b->spill = NULL;
    b->spill_room = 0;
}

int backlog_send(struct backlog *b, const void *data, size_t size, uint64_t spare)
{
    uint64_t limit = b->options.limit;
    if (!backlog_behind(b) && queue_fits(queue_of(b), size, limit > 0 ? 0 : spare))
        return record_queue_append(queue_of(b), data, size);
    if (b->beyond + b->spill_size + record_framed_size(size) + spare > limit)
        return PE_FULL;
    return spill(b, data, size);
}

void backlog_undo(struct backlog *b, const struct backlog_mark *mark)
{
    record_queue_rollback(queue_of(b), mark->tail);
    b->spill_size = mark->spill_size;
    b->spill_records = mark->spill_records;
    give_spill_back(b);
}

bool backlog_within(struct backlog *b, uint64_t most)
{
    if (b->options.limit > 0 || backlog_behind(b))
        return backlog_held(b) <= most && (b->options.limit > 0 || !backlog_behind(b));
    return !outlet_wait(b->options.outlet, most);
}

/* --- its commit --- */

static uint64_t stored_now(const struct backlog *b)
{
    record_queue_see_freed(queue_of(b));
    return queue_of(b)->freed_seen.records;
}

bool backlog_has_news(struct backlog *b)
{
    return queue_of(b)->tail.records > b->sent || b->spill_records > 0 || stored_now(b) > b->stored_filled;
}

void backlog_frame_numbers(struct backlog *b, struct frame_buffer *frames)
{
    struct section section = {.type = SECTION_OUTPUT,
                              .output = {.output = span_text(b->options.outlet->output),
                                         .sent = b->sent,
                                         .stored = max_u64(queue_of(b)->freed_seen.records, b->common),
                                         .reach = b->reach}};
    memcpy(section.output.epoch, b->epoch, sizeof b->epoch);
    commit_put(frames, &section);
    b->said = true;
}

void backlog_frame(struct backlog *b, struct frame_buffer *frames)
{
    struct record_queue *q = queue_of(b);
    uint64_t queued = q->tail.records > b->sent ? q->tail.records - b->sent : 0;
    if (queued + b->spill_records > 0) {
        struct section_sends sends = {.output = span_text(b->options.outlet->output),
                                      .first = b->sent + 1,
                                      .records = queued + b->spill_records};
        if (queued > 0)
            sends.bytes =
                span_of(ring_memory_at(&q->memory, b->framed.bytes), q->tail.bytes - b->framed.bytes);
        commit_put_sends(frames, &sends, span_of(b->spill, b->spill_size));
        set_sent(b, b->sent + sends.records);
        set_beyond(b, b->beyond + b->spill_size);
        b->spill_size = b->spill_records = 0;
    }
    if (queued > 0)
        b->framed = b->filled = q->tail;
    /* No records of this life are durable before it is that those behind `reach` have not left. */
    bool unsaid = !b->said && b->reach != OUTPUT_REACH_ALL;
    if (stored_now(b) > b->stored_filled || unsaid) {
        b->stored_filled = q->freed_seen.records;
        backlog_frame_numbers(b, frames);
    }
    give_spill_back(b);
}

bool backlog_would_release(struct backlog *b)
{
    return has_segments(b) && b->segments[b->first_segment].last > b->stored_filled &&
           b->segments[b->first_segment].last <= stored_now(b);
}

bool backlog_outstanding(struct backlog *b)
{
    return b->stored_filled < b->sent;
}

int backlog_placed(struct backlog *b, uint64_t segment, uint64_t offset)
{
    b->writing = b->filled;
    b->writing_sent = b->sent;
    b->stored_writing = b->stored_filled;
    if (b->sent == b->placed)
        return 0;
    struct backlog_segment *last = has_segments(b) ? &b->segments[b->segment_end - 1] : NULL;
    if (last && last->segment == segment) {
        last->last = b->sent;
    } else {
        struct backlog_segment next = {segment, offset, b->placed + 1, b->sent, offset};
        if (add_segment(b, &next) < 0)
            return -ENOMEM;
    }
    b->placed = b->sent;
    return 0;
}

void backlog_durable(struct backlog *b)
{
    b->durable = b->writing_sent;
    b->stored_durable = b->stored_writing;
    if (b->writing.bytes > queue_of(b)->published.bytes)
        outlet_push_to(b->options.outlet, b->writing);
    release_stored(b);
    backlog_pump(b);
}

/* --- bringing records back --- */

static void say_lost(struct backlog *b, uint64_t first, uint64_t last, const char *why)
{
    log_line(b->options.log, LOG_ERROR,
             "output %s.%s: records %llu to %llu are lost, as far as there were such: %s",
             b->options.outlet->app, b->options.outlet->output, (ull)first, (ull)last, why);
    counter_add(&b->options.outlet->report.lost, last - first + 1);
}

static void lose_to(struct backlog *b, uint64_t number, const char *why)
{
    uint64_t from = max_u64(queue_of(b)->tail.records, b->lost_to);
    if (number <= from)
        return;
    say_lost(b, from + 1, number, why);
    b->lost_to = number;
}

/* Whether there is no hole, or it could be passed over: all in front of it is stored. */
static bool pass_hole(struct backlog *b)
{
    struct record_queue *q = queue_of(b);
    if (b->lost_to <= q->tail.records)
        return true;
    if (outlet_wait(b->options.outlet, 0) || !record_queue_empty(q))
        return false;
    outlet_jump(b->options.outlet, b->lost_to);
    b->framed = b->filled = b->writing = q->tail;
    return true;
}

static void lose_in_segment(struct backlog *b, uint64_t number, const char *what)
{
    char name[SEGMENT_NAME_SIZE], why[sizeof name + 160];
    segment_name(b->read.segment, name);
    if (b->read.damage_bytes > 0) {
        int error =
            store_set_aside(b->options.store, b->read.segment, b->read.damage_offset, b->read.damage_bytes);
        snprintf(why, sizeof why, "%s: offset %llu: %llu bytes are damaged (%s)", name,
                 (ull)b->read.damage_offset, (ull)b->read.damage_bytes,
                 error < 0 ? "they cannot be copied" : "a copy is in damaged");
    } else
        snprintf(why, sizeof why, "%s: offset %llu: %s", name, (ull)b->read.offset, what);
    lose_to(b, number, why);
}

static uint64_t take(struct read_request *r, const struct section_sends *sends)
{
    struct backlog *b = container_of(r, struct backlog, read);
    struct record_queue *q = queue_of(b);
    if (sends->first > r->next) {
        lose_in_segment(b, sends->first - 1, "they are not in it");
        return 0;
    }
    assert(sends->first == q->tail.records + 1);
    record_queue_see_freed(q);
    uint64_t room = q->capacity - record_queue_held(q);
    struct record_scan scan = {.bytes = sends->bytes.size, .records = sends->records};
    if (room < sends->bytes.size)
        scan = record_scan(span_of(sends->bytes.data, room), SIZE_MAX, sends->records);
    record_queue_append_framed(q, span_of(sends->bytes.data, scan.bytes), scan.records);
    set_beyond(b, b->beyond - min_u64(b->beyond, scan.bytes));
    return scan.records;
}

static void read_failed(struct backlog *b, int error)
{
    log_line(b->options.log, LOG_ERROR, "output %s.%s: segment %llu of the journal cannot be read: %s",
             b->options.outlet->app, b->options.outlet->output, (ull)b->read.segment, pure_error_text(error));
    if (++b->read_failures < READ_TRIES) {
        b->read_after_ns = b->options.loop->now_ns + READ_RETRY_NS;
        return;
    }
    b->read_failures = 0;
    lose_to(b, b->read.last, "their segment cannot be read");
}

static void read_ended(struct read_request *r, enum read_end end, int error)
{
    struct backlog *b = container_of(r, struct backlog, read);
    struct record_queue *q = queue_of(b);
    b->reading = false;
    if (q->tail.bytes != q->published.bytes) {
        b->framed = b->filled = b->writing = q->tail;
        outlet_push(b->options.outlet);
    }
    for (uint32_t i = b->first_segment; i < b->segment_end; i++) {
        if (b->segments[i].segment == r->segment)
            b->segments[i].offset = r->offset;
    }
    if (end == READ_FAILED)
        read_failed(b, error);
    else
        b->read_failures = 0;
    if (end == READ_LOST)
        lose_in_segment(b, r->last, "it ends before them");
    if (!backlog_behind(b))
        set_beyond(b, 0);
    loop_want(b->options.loop, b->options.task);
}

static const struct backlog_segment *segment_with(const struct backlog *b, uint64_t number)
{
    for (uint32_t i = b->first_segment; i < b->segment_end; i++) {
        if (b->segments[i].last >= number)
            return &b->segments[i];
    }
    return NULL;
}

bool backlog_find(const struct backlog *b, uint64_t number, uint64_t *segment, uint64_t *offset)
{
    const struct backlog_segment *s = segment_with(b, number);
    if (!s || s->first > number)
        return false;
    *segment = s->segment;
    *offset = s->begin;
    return true;
}

void backlog_pump(struct backlog *b)
{
    struct record_queue *q = queue_of(b);
    if (b->reading || q->published.bytes != q->tail.bytes || b->durable <= q->tail.records ||
        b->options.loop->now_ns < b->read_after_ns || !pass_hole(b) || b->durable <= q->tail.records)
        return;
    uint64_t next = q->tail.records + 1;
    const struct backlog_segment *s = segment_with(b, next);
    if (!s || s->first > next) {
        lose_to(b, s ? s->first - 1 : b->durable, "the journal has them no more");
        loop_want(b->options.loop, b->options.task);
        return;
    }
    if (outlet_wait(b->options.outlet, q->capacity / 2))
        return;
    b->read = (struct read_request){.app = b->options.outlet->app,
                                    .output = b->options.outlet->output,
                                    .segment = s->segment,
                                    .offset = s->offset,
                                    .next = next,
                                    .last = min_u64(s->last, b->durable),
                                    .take = take,
                                    .done = read_ended};
    b->reading = true;
    journal_read(b->options.reader, &b->read);
}
