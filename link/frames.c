#include "link/frames.h"

/* --- reading: a cursor that fails once and for good --- */

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed; /* what was read since is 0 and empty */
};

static uint64_t read_integer(struct reader *r)
{
    uint64_t value = 0;
    size_t size = r->failed ? 0 : varint_get(r->at, r->end, &value);
    if (size == 0) {
        r->failed = true;
        return 0;
    }
    r->at += size;
    return value;
}

/* An integer of at most `most`. */
static uint64_t read_limited(struct reader *r, uint64_t most)
{
    uint64_t value = read_integer(r);
    if (value <= most)
        return value;
    r->failed = true;
    return 0;
}

static uint32_t read_stream(struct reader *r)
{
    return (uint32_t)read_limited(r, FRAME_STREAM_MAX);
}

static struct span read_bytes(struct reader *r, size_t size)
{
    if (r->failed || size > (size_t)(r->end - r->at)) {
        r->failed = true;
        return span_of(NULL, 0);
    }
    r->at += size;
    return span_of(r->at - size, size);
}

static struct span read_text(struct reader *r)
{
    return read_bytes(r, (size_t)read_limited(r, FRAME_TEXT_BYTES));
}

/* Steps from a range that begins at `smallest` to the next lower one. False if that would be below zero. */
static bool next_run(struct reader *r, uint64_t smallest, struct range *next)
{
    uint64_t gap = read_integer(r), run = read_integer(r);
    if (r->failed || smallest < 2 || gap > smallest - 2 || run > smallest - 2 - gap)
        return false;
    uint64_t largest = smallest - 2 - gap;
    *next = (struct range){largest - run, largest + 1};
    return true;
}

static void read_ack(struct reader *r, struct frame_ack *ack)
{
    ack->largest = read_integer(r);
    ack->delay_us = read_integer(r);
    ack->ranges = 1 + (uint32_t)read_limited(r, FRAME_ACK_RANGES - 1);
    ack->first_run = read_limited(r, ack->largest);
    const uint8_t *rest = r->at;
    struct range range = {ack->largest - ack->first_run, ack->largest + 1};
    for (uint32_t i = 1; i < ack->ranges && !r->failed; i++)
        r->failed = !next_run(r, range.start, &range);
    ack->rest = span_of(rest, (size_t)(r->at - rest));
}

static void read_open(struct reader *r, struct frame_open *open)
{
    open->stream = read_stream(r);
    struct span epoch = read_bytes(r, FRAME_EPOCH_BYTES);
    if (!r->failed)
        memcpy(open->epoch, epoch.data, FRAME_EPOCH_BYTES);
    open->base = read_integer(r);
    open->first = read_integer(r);
    open->asks = read_integer(r);
    open->app = read_text(r);
    open->output = read_text(r);
    open->target = read_text(r);
    open->event = read_text(r);
}

static void read_records(struct reader *r, struct frame_records *records)
{
    records->stream = read_stream(r);
    records->offset = read_integer(r);
    records->bytes = read_bytes(r, (size_t)read_limited(r, VARINT_MAX - records->offset));
}

static void read_stored(struct reader *r, struct frame_stored *stored)
{
    stored->stream = read_stream(r);
    stored->stored = read_integer(r);
    stored->credit = read_integer(r);
}

static void read_refused(struct reader *r, struct frame_refused *refused)
{
    refused->stream = read_stream(r);
    refused->reason = read_integer(r);
    refused->stored = read_integer(r);
}

static void read_close(struct reader *r, struct frame_close *close)
{
    close->reason = read_integer(r);
    close->text = read_text(r);
}

static void skip_padding(struct reader *r)
{
    while (r->at < r->end && *r->at == FRAME_PADDING)
        r->at++;
}

ptrdiff_t frame_get(const uint8_t *at, const uint8_t *end, struct frame *frame)
{
    struct reader r = {at, end, false};
    frame->type = (enum frame_type)read_limited(&r, FRAME_CLOSE);
    if (r.failed)
        return PE_MALFORMED;
    switch (frame->type) {
    case FRAME_PADDING:
        skip_padding(&r);
        break;
    case FRAME_PING:
        break;
    case FRAME_ACK:
        read_ack(&r, &frame->ack);
        break;
    case FRAME_OPEN:
        read_open(&r, &frame->open);
        break;
    case FRAME_RECORDS:
        read_records(&r, &frame->records);
        break;
    case FRAME_STORED:
        read_stored(&r, &frame->stored);
        break;
    case FRAME_CREDIT:
        frame->credit = read_integer(&r);
        break;
    case FRAME_REFUSED:
        read_refused(&r, &frame->refused);
        break;
    case FRAME_CLOSE:
        read_close(&r, &frame->close);
        break;
    }
    return r.failed ? PE_MALFORMED : r.at - at;
}

uint32_t frame_ack_ranges(const struct frame_ack *ack, struct range *out)
{
    struct reader r = {ack->rest.data, ack->rest.data + ack->rest.size, false};
    out[0] = (struct range){ack->largest - ack->first_run, ack->largest + 1};
    for (uint32_t i = 1; i < ack->ranges; i++) {
        bool valid = next_run(&r, out[i - 1].start, &out[i]);
        assert(valid); /* frame_get has looked */
    }
    return ack->ranges;
}

/* --- writing: the size is known first, then everything is put --- */

/* Puts the type and `count` integers, if they and `more` bytes behind them fit. The size put, or 0. */
static size_t put_integers(uint8_t *at, const uint8_t *end, enum frame_type type, const uint64_t *value,
                           uint32_t count, size_t more)
{
    size_t size = 1;
    for (uint32_t i = 0; i < count; i++)
        size += varint_size(value[i]);
    if (size + more > (size_t)(end - at))
        return 0;
    uint8_t *to = at;
    *to++ = (uint8_t)type;
    for (uint32_t i = 0; i < count; i++)
        to += varint_put(to, value[i]);
    return size;
}

static size_t text_size(struct span text)
{
    assert(text.size <= FRAME_TEXT_BYTES);
    return varint_size(text.size) + text.size;
}

static size_t put_text(uint8_t *at, struct span text)
{
    size_t prefix = varint_put(at, text.size);
    if (text.size > 0)
        memcpy(at + prefix, text.data, text.size);
    return prefix + text.size;
}

size_t frame_put_ping(uint8_t *at, const uint8_t *end)
{
    return put_integers(at, end, FRAME_PING, NULL, 0, 0);
}

size_t frame_put_padding(uint8_t *at, const uint8_t *end, size_t size)
{
    if (size > (size_t)(end - at))
        return 0;
    memset(at, FRAME_PADDING, size);
    return size;
}

size_t frame_put_open(uint8_t *at, const uint8_t *end, const struct frame_open *open)
{
    size_t size = 1 + varint_size(open->stream) + FRAME_EPOCH_BYTES + varint_size(open->base) +
                  varint_size(open->first) + varint_size(open->asks) + text_size(open->app) +
                  text_size(open->output) + text_size(open->target) + text_size(open->event);
    if (size > (size_t)(end - at))
        return 0;
    uint8_t *to = at;
    *to++ = FRAME_OPEN;
    to += varint_put(to, open->stream);
    memcpy(to, open->epoch, FRAME_EPOCH_BYTES);
    to += FRAME_EPOCH_BYTES;
    to += varint_put(to, open->base);
    to += varint_put(to, open->first);
    to += varint_put(to, open->asks);
    to += put_text(to, open->app);
    to += put_text(to, open->output);
    to += put_text(to, open->target);
    to += put_text(to, open->event);
    return (size_t)(to - at);
}

size_t frame_put_stored(uint8_t *at, const uint8_t *end, const struct frame_stored *stored)
{
    const uint64_t value[] = {stored->stream, stored->stored, stored->credit};
    return put_integers(at, end, FRAME_STORED, value, 3, 0);
}

size_t frame_put_credit(uint8_t *at, const uint8_t *end, uint64_t credit)
{
    return put_integers(at, end, FRAME_CREDIT, &credit, 1, 0);
}

size_t frame_put_refused(uint8_t *at, const uint8_t *end, const struct frame_refused *refused)
{
    const uint64_t value[] = {refused->stream, refused->reason, refused->stored};
    return put_integers(at, end, FRAME_REFUSED, value, 3, 0);
}

size_t frame_put_close(uint8_t *at, const uint8_t *end, uint64_t reason, struct span text)
{
    size_t head = put_integers(at, end, FRAME_CLOSE, &reason, 1, text_size(text));
    return head == 0 ? 0 : head + put_text(at + head, text);
}

/* The newest range goes first; `count` of them. */
static size_t put_ranges(uint8_t *at, const struct ranges *received, uint32_t count)
{
    uint8_t *to = at;
    for (uint32_t i = 1; i < count; i++) {
        const struct range *range = &received->item[received->count - 1 - i];
        to += varint_put(to, range[1].start - range->end - 1);
        to += varint_put(to, range->end - range->start - 1);
    }
    return (size_t)(to - at);
}

/* How many ranges fit in `room` bytes behind the first. */
static uint32_t count_ranges(const struct ranges *received, size_t room)
{
    uint32_t most = received->count < FRAME_ACK_RANGES ? received->count : FRAME_ACK_RANGES, count = 1;
    for (size_t size = 0; count < most; count++) {
        const struct range *range = &received->item[received->count - 1 - count];
        size += varint_size(range[1].start - range->end - 1) + varint_size(range->end - range->start - 1);
        if (size > room)
            break;
    }
    return count;
}

size_t frame_put_ack(uint8_t *at, const uint8_t *end, const struct ranges *received, uint64_t delay_us)
{
    const struct range *newest = &received->item[received->count - 1];
    uint64_t value[] = {newest->end - 1, delay_us, 0, newest->end - newest->start - 1};
    size_t head = 2; /* the type and the count, which is below 64 */
    for (int i = 0; i < 4; i++)
        head += i == 2 ? 0 : varint_size(value[i]);
    if (head > (size_t)(end - at))
        return 0;
    uint32_t count = count_ranges(received, (size_t)(end - at) - head);
    value[2] = count - 1;
    put_integers(at, end, FRAME_ACK, value, 4, 0);
    return head + put_ranges(at + head, received, count);
}

size_t frame_records_fit(size_t room, uint32_t stream, uint64_t offset, size_t want)
{
    size_t head = 1 + varint_size(stream) + varint_size(offset);
    if (room <= head + 1)
        return 0;
    size_t left = room - head;
    size_t fit = min_size(want, left - 1);
    while (fit + varint_size(fit) > left) /* at most the bytes of the size's own length */
        fit--;
    return fit;
}

size_t frame_put_records_head(uint8_t *at, uint32_t stream, uint64_t offset, size_t size)
{
    uint8_t *to = at;
    *to++ = FRAME_RECORDS;
    to += varint_put(to, stream);
    to += varint_put(to, offset);
    to += varint_put(to, size);
    return (size_t)(to - at);
}
