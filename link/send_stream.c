#include "link/send_stream.h"

void send_stream_init(struct send_stream *s, struct outlet *outlet)
{
    *s = (struct send_stream){.outlet = outlet, .sent_ever = outlet->queue.freed.bytes};
    ranges_init(&s->lost, s->lost_memory, SEND_STREAM_LOST);
}

void send_stream_begin(struct send_stream *s, uint32_t number, uint64_t credit)
{
    s->number = number;
    s->origin = s->outlet->queue.freed;
    s->sent = 0;
    s->credit = credit;
    s->live = true;
    s->broken = false;
    ranges_clear(&s->lost);
}

uint64_t send_stream_end(struct send_stream *s)
{
    s->live = s->broken = false;
    ranges_clear(&s->lost);
    return s->sent;
}

void send_stream_look(struct send_stream *s)
{
    struct record_queue *q = &s->outlet->queue;
    uint64_t before = q->published_seen.bytes, freed = q->freed.records;
    struct stream_position published = outlet_look(s->outlet);
    if (q->freed.records !=
        freed) /* numbers were lost. No mark is left: they are used up with what was freed */
        s->broken = s->live;
    if (published.bytes > before && s->marks_end - s->marks_first < SEND_STREAM_MARKS)
        s->marks[s->marks_end++ % SEND_STREAM_MARKS] = published;
}

static uint64_t freed_offset(const struct send_stream *s)
{
    return s->outlet->queue.freed.bytes - s->origin.bytes;
}

uint64_t send_stream_fresh(const struct send_stream *s)
{
    uint64_t published = s->outlet->queue.published_seen.bytes - s->origin.bytes;
    uint64_t end = min_u64(published, s->credit);
    bool may = s->live && !s->broken && outlet_may_send(s->outlet);
    return may && end > s->sent ? end - s->sent : 0;
}

uint64_t send_stream_next(const struct send_stream *s, uint64_t most_fresh, uint64_t *offset)
{
    if (send_stream_has_lost(s)) {
        *offset = s->lost.item[0].start;
        return s->lost.item[0].end - *offset;
    }
    *offset = s->sent;
    return min_u64(most_fresh, send_stream_fresh(s));
}

const uint8_t *send_stream_take(struct send_stream *s, uint64_t offset, size_t size)
{
    if (offset < s->sent) {
        ranges_remove(&s->lost, offset, offset + size); /* the front of the first: cannot fail */
    } else {
        s->sent += size;
        s->sent_ever = max_u64(s->sent_ever, s->origin.bytes + s->sent);
    }
    return ring_memory_at(&s->outlet->queue.memory, s->origin.bytes + offset);
}

/* Where there is no place for one more range, the gap to a neighbour is lost with it: bytes that were sent
 * before are sent once more, which does no harm. */
static void add_with_gap(struct ranges *lost, uint64_t start, uint64_t end)
{
    uint32_t next = 0;
    while (next < lost->count && lost->item[next].start < start)
        next++;
    if (next > 0)
        start = lost->item[next - 1].end;
    else
        end = lost->item[0].start;
    int error = ranges_add(lost, start, end);
    assert(error == 0);
    (void)error;
}

void send_stream_lost(struct send_stream *s, uint64_t offset, uint64_t size)
{
    uint64_t start = max_u64(offset, freed_offset(s)), end = offset + size;
    assert(end <= s->sent);
    if (s->live && start < end && ranges_add(&s->lost, start, end) < 0)
        add_with_gap(&s->lost, start, end);
}

/* The last place known at or before the end of record `number`; marks up to there are used up. */
static struct stream_position known_place(struct send_stream *s, uint64_t number)
{
    struct stream_position at = s->outlet->queue.freed;
    while (s->marks_first != s->marks_end) {
        struct stream_position mark = s->marks[s->marks_first % SEND_STREAM_MARKS];
        if (mark.records > number)
            break;
        at = mark;
        s->marks_first++;
    }
    return at;
}

static struct stream_position place_of(struct send_stream *s, uint64_t number)
{
    struct stream_position at = known_place(s, number);
    if (at.records < number) {
        struct record_scan scan =
            record_scan(record_queue_span(&s->outlet->queue, at.bytes), SIZE_MAX, number - at.records);
        at.bytes += scan.bytes;
        at.records += scan.records;
        assert(at.records == number);
    }
    return at;
}

int send_stream_stored(struct send_stream *s, uint64_t number)
{
    struct record_queue *q = &s->outlet->queue;
    bool known = number <= s->outlet->sent_before;
    if (known)
        number = min_u64(number, q->published_seen.records);
    if (number <= q->freed.records)
        return 0;
    if (number > q->published_seen.records)
        return PE_STORED_NUMBER;
    struct stream_position to = place_of(s, number);
    bool unsent = to.bytes > (s->live ? s->origin.bytes + s->sent : s->sent_ever);
    if (unsent && !known)
        return PE_STORED_NUMBER;
    outlet_stored(s->outlet, to);
    s->broken |= s->live && unsent;
    if (s->live)
        ranges_drop_below(&s->lost, freed_offset(s));
    return 0;
}

bool send_stream_credit(struct send_stream *s, uint64_t credit)
{
    if (credit <= s->credit)
        return false;
    s->credit = credit;
    return true;
}
