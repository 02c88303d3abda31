#include "host/inbox.h"

/* Results are small; shows take what is left, at most half. */
#define RESULTS_BYTES (512 * 1024)

/* How a run begins in the queue; its event, source, identity, key and records follow, in this order. Only
 * between threads of one process: as the machine lays it out. */
struct run_head {
    uint8_t kind;
    uint8_t event_size;
    uint8_t source_size;
    uint8_t identity_size;
    uint8_t key_size;
    uint32_t records;
    uint64_t first;
    uint64_t base;
    uint64_t asks;
    uint64_t fresh_ns;
    uint64_t time_ms;
    uint8_t epoch[EPOCH_BYTES];
};

_Static_assert(EVENT_NAME_MAX <= UINT8_MAX && SOURCE_NAME_MAX <= UINT8_MAX &&
                   IDEMPOTENCY_KEY_MAX <= UINT8_MAX,
               "sizes of a run's strings are one byte");

/* How a result begins; the text follows. */
struct result_head {
    uint64_t stored;
    int32_t error;
};

#define HEAD_BYTES_MAX (sizeof(struct run_head) + EVENT_NAME_MAX + 2 * SOURCE_NAME_MAX)

_Static_assert(IDEMPOTENCY_KEY_MAX <= SOURCE_NAME_MAX, "a run with a key has no identity");

_Static_assert(RESULTS_BYTES / 2 >= INBOX_SHOWS / 2 * (SHOW_MAX + 64), "two shows at least");

bool run_event_name(struct span name)
{
    if (name.size == 0 || name.size > EVENT_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t b = name.data[i];
        bool letter = (b | 0x20) >= 'a' && (b | 0x20) <= 'z';
        if (!letter && !(b >= '0' && b <= '9') && b != '-' && b != '.' && b != '_' && b != '~')
            return false;
    }
    return true;
}

bool run_stream_name(struct span name)
{
    unsigned slashes = 0;
    if (name.size == 0 || name.size > SOURCE_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] <= ' ' || name.data[i] == 0x7f)
            return false;
        if (name.data[i] != '/')
            continue;
        bool empty = i == 0 || i + 1 == name.size || name.data[i - 1] == '/';
        if (empty)
            return false;
        slashes++;
    }
    return slashes == 2;
}

int inbox_init(struct inbox *inbox, uint64_t capacity)
{
    memset(inbox, 0, sizeof *inbox);
    int error = record_queue_init(&inbox->runs, capacity);
    if (error == 0 && (error = record_queue_init(&inbox->results, RESULTS_BYTES)) < 0)
        record_queue_dispose(&inbox->runs);
    return error;
}

void inbox_dispose(struct inbox *inbox)
{
    record_queue_dispose(&inbox->runs);
    record_queue_dispose(&inbox->results);
}

/* --- the front --- */

uint64_t inbox_cost(uint64_t bytes)
{
    uint64_t size = HEAD_BYTES_MAX + bytes;
    return varint_size(size) + size;
}

/* The freed position is looked at only when it could matter: it is another core's cache line. */
static bool over(struct inbox *inbox, uint64_t bytes, uint64_t limit)
{
    if (record_queue_held(&inbox->runs) + inbox->reserved + bytes <= limit)
        return false;
    record_queue_see_freed(&inbox->runs);
    return record_queue_held(&inbox->runs) + inbox->reserved + bytes > limit;
}

/* What is reserved does not keep it refusing: its clients may be slow. */
static bool still_refusing(struct inbox *inbox, uint64_t now_ns)
{
    return inbox->refusing && now_ns - inbox->refusing_ns < INBOX_VALVE_NS &&
           over(inbox, 0, inbox->runs.capacity / 4 + inbox->reserved);
}

static int admit(struct inbox *inbox, uint64_t bytes, uint64_t now_ns)
{
    uint64_t capacity = inbox->runs.capacity;
    if (bytes > capacity / 2)
        return PE_TOO_LARGE;
    if (inbox->without_feedback)
        return over(inbox, bytes, capacity) ? PE_FULL : 0;
    if (still_refusing(inbox, now_ns))
        return PE_FULL;
    bool full = over(inbox, bytes, capacity - capacity / 4);
    if (full && !inbox->refusing)
        inbox->refusing_ns = now_ns;
    inbox->refusing = full;
    return full ? PE_FULL : 0;
}

bool inbox_has_room(struct inbox *inbox, uint64_t bytes, uint64_t now_ns)
{
    uint64_t capacity = inbox->runs.capacity;
    uint64_t limit = inbox->without_feedback ? capacity : capacity - capacity / 4;
    return !still_refusing(inbox, now_ns) && !over(inbox, max_u64(bytes, capacity / 16), limit);
}

int inbox_reserve(struct inbox *inbox, uint64_t bytes, uint64_t now_ns)
{
    int error = admit(inbox, bytes, now_ns);
    inbox->reserved += error == 0 ? bytes : 0;
    return error;
}

int inbox_announce(struct inbox *inbox, uint64_t bytes, uint64_t now_ns, uint64_t *reserved)
{
    int error = admit(inbox, bytes, now_ns);
    bool room = inbox->reserved + bytes <= inbox->runs.capacity / 2;
    *reserved = error == 0 && room ? bytes : 0;
    inbox->reserved += *reserved;
    return error;
}

void inbox_release(struct inbox *inbox, uint64_t bytes)
{
    assert(bytes <= inbox->reserved);
    inbox->reserved -= bytes;
}

static size_t run_size(const struct run *run, size_t size)
{
    return sizeof(struct run_head) + run->event.size + run->source.size + run->identity.size + run->key.size +
           size;
}

static uint64_t result_bytes(bool show)
{
    return record_framed_size(sizeof(struct result_head) + (show ? SHOW_MAX : 0));
}

/* Shows leave room for other results, and nothing that was not reserved takes what was. */
static bool show_fits(struct inbox *inbox, size_t size)
{
    return inbox->show_count < INBOX_SHOWS &&
           inbox->result_room + result_bytes(true) <= inbox->results.capacity / 2 &&
           !over(inbox, record_framed_size(size), inbox->runs.capacity);
}

static uint8_t *put_span(uint8_t *at, struct span span)
{
    if (span.size > 0)
        memcpy(at, span.data, span.size);
    return at + span.size;
}

uint8_t *inbox_begin(struct inbox *inbox, const struct run *run, size_t size)
{
    assert(run->event.size <= EVENT_NAME_MAX && run->source.size <= SOURCE_NAME_MAX &&
           run->identity.size <= SOURCE_NAME_MAX && run->key.size <= IDEMPOTENCY_KEY_MAX);
    bool show = run->kind == RUN_SHOW;
    if (show ? !show_fits(inbox, run_size(run, size))
             : inbox->result_room + result_bytes(false) > inbox->results.capacity)
        return NULL;
    uint8_t *at = record_queue_reserve(&inbox->runs, run_size(run, size));
    if (!at)
        return NULL;
    struct run_head head = {
        .kind = (uint8_t)run->kind,
        .event_size = (uint8_t)run->event.size,
        .source_size = (uint8_t)run->source.size,
        .identity_size = (uint8_t)run->identity.size,
        .key_size = (uint8_t)run->key.size,
        .records = run->records,
        .first = run->first,
        .base = run->base,
        .asks = run->asks,
        .fresh_ns = run->fresh_ns,
        .time_ms = run->time_ms,
    };
    memcpy(head.epoch, run->epoch, EPOCH_BYTES);
    memcpy(at, &head, sizeof head);
    at = put_span(at + sizeof head, run->event);
    at = put_span(at, run->source);
    at = put_span(at, run->identity);
    return put_span(at, run->key);
}

void inbox_commit(struct inbox *inbox, const struct run *run, size_t size)
{
    record_queue_commit(&inbox->runs, run_size(run, size));
    bool show = run->kind == RUN_SHOW;
    if (show)
        inbox->shows[inbox->show_count++] = inbox->puts;
    inbox->puts++;
    inbox->result_room += result_bytes(show);
}

int inbox_put(struct inbox *inbox, const struct run *run)
{
    uint8_t *at = inbox_begin(inbox, run, run->bytes.size);
    if (!at)
        return PE_FULL;
    put_span(at, run->bytes);
    inbox_commit(inbox, run, run->bytes.size);
    return 0;
}

void inbox_push(struct inbox *inbox)
{
    if (inbox->runs.published.bytes == inbox->runs.tail.bytes)
        return;
    record_queue_publish(&inbox->runs);
    board_post(inbox->owner, inbox->owner_slot);
}

/* What was set aside for the result that is next: a show's is larger. */
static uint64_t next_room(struct inbox *inbox)
{
    assert(inbox->takes < inbox->puts);
    bool show = inbox->show_count > 0 && inbox->shows[0] == inbox->takes;
    if (show)
        memmove(inbox->shows, inbox->shows + 1, --inbox->show_count * sizeof *inbox->shows);
    inbox->takes++;
    return result_bytes(show);
}

bool inbox_take_result(struct inbox *inbox, struct run_result *result)
{
    struct record_queue *q = &inbox->results;
    if (inbox->taken_room > 0) {
        record_queue_free_to(q, inbox->taken);
        inbox->result_room -= inbox->taken_room;
        inbox->taken_room = 0;
    }
    if (q->freed.bytes == q->published_seen.bytes && record_queue_see_published(q).bytes == q->freed.bytes)
        return false;
    struct span bytes = record_queue_span(q, q->freed.bytes), record;
    size_t framed = record_get(bytes.data, bytes.data + bytes.size, &record);
    struct result_head head;
    assert(framed > 0 && record.size >= sizeof head);
    memcpy(&head, record.data, sizeof head);
    *result = (struct run_result){head.error, head.stored,
                                  span_of(record.data + sizeof head, record.size - sizeof head)};
    inbox->taken = (struct stream_position){q->freed.bytes + framed, q->freed.records + 1};
    inbox->taken_room = next_room(inbox);
    return true;
}

/* --- the owner --- */

static struct span take_span(const uint8_t **at, size_t size)
{
    struct span span = span_of(*at, size);
    *at += size;
    return span;
}

bool inbox_next_run(struct inbox *inbox, struct stream_position *at, struct run *run)
{
    struct record_queue *q = &inbox->runs;
    if (at->bytes == q->published_seen.bytes && record_queue_see_published(q).bytes == at->bytes)
        return false;
    struct span bytes = record_queue_span(q, at->bytes), record;
    size_t framed = record_get(bytes.data, bytes.data + bytes.size, &record);
    struct run_head head;
    assert(framed > 0 && record.size >= sizeof head);
    memcpy(&head, record.data, sizeof head);
    *run = (struct run){
        .kind = head.kind,
        .records = head.records,
        .first = head.first,
        .base = head.base,
        .asks = head.asks,
        .fresh_ns = head.fresh_ns,
        .time_ms = head.time_ms,
    };
    memcpy(run->epoch, head.epoch, EPOCH_BYTES);
    const uint8_t *next = record.data + sizeof head;
    run->event = take_span(&next, head.event_size);
    run->source = take_span(&next, head.source_size);
    run->identity = take_span(&next, head.identity_size);
    run->key = take_span(&next, head.key_size);
    run->bytes = take_span(&next, (size_t)(record.data + record.size - next));
    at->bytes += framed;
    at->records++;
    return true;
}

void inbox_free_to(struct inbox *inbox, struct stream_position to)
{
    record_queue_free_to(&inbox->runs, to);
}

void inbox_put_result(struct inbox *inbox, const struct run_result *result)
{
    assert(result->text.size <= SHOW_MAX);
    struct result_head head = {.stored = result->stored, .error = result->error};
    uint8_t *at = record_queue_reserve(&inbox->results, sizeof head + result->text.size);
    assert(at);
    memcpy(at, &head, sizeof head);
    put_span(at + sizeof head, result->text);
    record_queue_commit(&inbox->results, sizeof head + result->text.size);
}

void inbox_push_results_to(struct inbox *inbox, struct stream_position to)
{
    if (inbox->results.published.bytes == to.bytes)
        return;
    record_queue_publish_to(&inbox->results, to);
    board_post(inbox->front, inbox->front_slot);
}

void inbox_push_results(struct inbox *inbox)
{
    inbox_push_results_to(inbox, inbox->results.tail);
}

void inbox_drop_results(struct inbox *inbox)
{
    record_queue_rollback(&inbox->results, inbox->results.published);
}
