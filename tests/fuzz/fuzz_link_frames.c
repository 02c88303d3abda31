/* The frames of a packet: whatever decodes is within the packet and its limits, and what is written of it
 * again decodes to the same. */
#include "link/frames.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void within(struct span inner, const uint8_t *at, const uint8_t *end)
{
    require(inner.size == 0 || (inner.data >= at && inner.data + inner.size <= end));
}

/* Ascending and disjoint, as the encoder wants them. */
static size_t put_ack(uint8_t *out, const uint8_t *end, const struct frame_ack *ack)
{
    struct range range[FRAME_ACK_RANGES], memory[FRAME_ACK_RANGES];
    struct ranges set = {memory, ack->ranges, FRAME_ACK_RANGES};
    require(ack->ranges >= 1 && ack->ranges <= FRAME_ACK_RANGES);
    require(frame_ack_ranges(ack, range) == ack->ranges);
    require(range[0].end == ack->largest + 1);
    for (uint32_t i = 0; i < ack->ranges; i++) {
        require(range[i].start < range[i].end);
        require(i == 0 || range[i].end < range[i - 1].start);
        memory[ack->ranges - 1 - i] = range[i];
    }
    return frame_put_ack(out, end, &set, ack->delay_us);
}

static size_t put_records(uint8_t *out, const uint8_t *end, const struct frame_records *records)
{
    size_t fit =
        frame_records_fit((size_t)(end - out), records->stream, records->offset, records->bytes.size);
    require(fit == records->bytes.size);
    size_t head = frame_put_records_head(out, records->stream, records->offset, fit);
    if (fit > 0)
        memcpy(out + head, records->bytes.data, fit);
    return head + fit;
}

static size_t put_frame(uint8_t *out, const uint8_t *end, const struct frame *frame)
{
    switch (frame->type) {
    case FRAME_PADDING:
        return frame_put_padding(out, end, 1);
    case FRAME_PING:
        return frame_put_ping(out, end);
    case FRAME_ACK:
        return put_ack(out, end, &frame->ack);
    case FRAME_OPEN:
        return frame_put_open(out, end, &frame->open);
    case FRAME_RECORDS:
        return put_records(out, end, &frame->records);
    case FRAME_STORED:
        return frame_put_stored(out, end, &frame->stored);
    case FRAME_CREDIT:
        return frame_put_credit(out, end, frame->credit);
    case FRAME_REFUSED:
        return frame_put_refused(out, end, &frame->refused);
    case FRAME_CLOSE:
        return frame_put_close(out, end, frame->close.reason, frame->close.text);
    }
    abort();
}

static void check_spans(const struct frame *frame, const uint8_t *at, const uint8_t *end)
{
    if (frame->type == FRAME_OPEN) {
        within(frame->open.app, at, end);
        within(frame->open.output, at, end);
        within(frame->open.target, at, end);
        within(frame->open.event, at, end);
    } else if (frame->type == FRAME_RECORDS) {
        within(frame->records.bytes, at, end);
        require(frame->records.bytes.size <= VARINT_MAX - frame->records.offset);
    } else if (frame->type == FRAME_CLOSE) {
        within(frame->close.text, at, end);
    }
}

/* Shortest forms are no longer than what was read, and are written again as they are. */
static void check_again(const struct frame *frame, size_t size)
{
    uint8_t *once = calloc(1, size + 1), *twice = calloc(1, size + 1);
    struct frame again;
    require(once && twice);
    size_t written = put_frame(once, once + size, frame);
    require(written > 0 && written <= size);
    require(frame_get(once, once + written, &again) == (ptrdiff_t)written && again.type == frame->type);
    require(put_frame(twice, twice + size, &again) == written && memcmp(once, twice, written) == 0);
    free(once);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1); /* ends where the packet ends: a read beyond is seen */
    require(copy != NULL);
    if (size > 0)
        memcpy(copy + 1, data, size);
    const uint8_t *at = copy + 1, *end = at + size;
    while (at < end) {
        struct frame frame;
        ptrdiff_t taken = frame_get(at, end, &frame);
        if (taken == PE_MALFORMED)
            break;
        require(taken > 0 && taken <= end - at);
        check_spans(&frame, at, at + taken);
        if (frame.type != FRAME_RECORDS || frame.records.bytes.size > 0)
            check_again(&frame, (size_t)taken);
        at += taken;
    }
    free(copy);
    return 0;
}
