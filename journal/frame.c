#include "journal/frame.h"

#include "journal/crc32c.h"
#include "journal/take.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_CAPACITY 4096

/* Where the parts of a frame's head lie (format.h). */
enum {
    AT_MAGIC = 0,
    AT_CRC = 4,
    AT_SIZE = 8,
    AT_KIND = 12,
    AT_PADDING = 13,
    AT_STORE = 16,
    AT_SEGMENT = 24,
    AT_OFFSET = 32,
    AT_BATCH = 40,
};

static void set_u32(uint8_t *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, 4);
}

static void set_u64(uint8_t *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, 8);
}

/* --- the buffer --- */

void frame_buffer_init(struct frame_buffer *b)
{
    *b = (struct frame_buffer){.begun = SIZE_MAX};
}

void frame_buffer_dispose(struct frame_buffer *b)
{
    free(b->data);
    frame_buffer_init(b);
}

void frame_buffer_clear(struct frame_buffer *b, size_t keep)
{
    b->size = 0;
    b->begun = SIZE_MAX;
    b->error = 0;
    if (b->capacity <= keep)
        return;
    uint8_t *less = keep > 0 ? realloc(b->data, keep) : NULL;
    if (keep > 0 && !less)
        return; /* it is kept as it is */
    if (keep == 0)
        free(b->data);
    b->data = less;
    b->capacity = keep;
}

static bool grow(struct frame_buffer *b, size_t size)
{
    size_t capacity = b->capacity > 0 ? b->capacity : FIRST_CAPACITY;
    while (capacity < size)
        capacity *= 2;
    uint8_t *data = realloc(b->data, capacity);
    if (!data)
        return false;
    b->data = data;
    b->capacity = capacity;
    return true;
}

/* Room for `size` bytes more of the frame begun; NULL: b->error. */
static uint8_t *extend(struct frame_buffer *b, size_t size)
{
    assert(b->begun != SIZE_MAX);
    if (b->error == 0 && size > FRAME_MAX - (b->size - b->begun))
        b->error = PE_TOO_LARGE;
    if (b->error == 0 && b->size + size > b->capacity && !grow(b, b->size + size))
        b->error = -ENOMEM;
    if (b->error < 0)
        return NULL;
    uint8_t *at = b->data + b->size;
    b->size += size;
    return at;
}

void frame_begin(struct frame_buffer *b, enum frame_kind kind)
{
    assert(b->begun == SIZE_MAX && b->error == 0 && b->size % FRAME_ALIGN == 0);
    b->begun = b->size;
    uint8_t *head = extend(b, FRAME_HEAD);
    if (!head)
        return;
    memset(head, 0, FRAME_HEAD);
    head[AT_KIND] = (uint8_t)kind;
}

void frame_put(struct frame_buffer *b, const void *data, size_t size)
{
    uint8_t *at = size > 0 ? extend(b, size) : NULL;
    if (at)
        memcpy(at, data, size);
}

void frame_put_u8(struct frame_buffer *b, uint8_t value)
{
    frame_put(b, &value, 1);
}

void frame_put_u32(struct frame_buffer *b, uint32_t value)
{
    uint8_t *at = extend(b, 4);
    if (at)
        set_u32(at, value);
}

void frame_put_u64(struct frame_buffer *b, uint64_t value)
{
    uint8_t *at = extend(b, 8);
    if (at)
        set_u64(at, value);
}

void frame_put_name(struct frame_buffer *b, struct span name)
{
    if (b->error == 0 && name.size > JOURNAL_NAME_MAX)
        b->error = PE_TOO_LARGE;
    if (b->error == 0 && name.size > 0 && memchr(name.data, 0, name.size))
        b->error = PE_MALFORMED;
    frame_put_u8(b, (uint8_t)name.size);
    frame_put(b, name.data, name.size);
}

size_t frame_payload_size(const struct frame_buffer *b)
{
    assert(b->begun != SIZE_MAX);
    size_t size = b->size - b->begun;
    return size > FRAME_HEAD ? size - FRAME_HEAD : 0;
}

void frame_drop(struct frame_buffer *b)
{
    assert(b->begun != SIZE_MAX);
    b->size = b->begun;
    b->begun = SIZE_MAX;
    b->error = 0;
}

int frame_end(struct frame_buffer *b)
{
    assert(b->begun != SIZE_MAX);
    size_t padding = -(b->size - b->begun) % FRAME_ALIGN;
    uint8_t *end = extend(b, padding);
    if (!end) {
        int error = b->error;
        frame_drop(b);
        return error;
    }
    memset(end, 0, padding);
    uint8_t *head = b->data + b->begun;
    set_u32(head + AT_MAGIC, FRAME_MAGIC);
    set_u32(head + AT_SIZE, (uint32_t)(b->size - b->begun));
    head[AT_PADDING] = (uint8_t)padding;
    b->begun = SIZE_MAX;
    return 0;
}

/* --- heads --- */

struct head {
    uint32_t magic, crc, size;
    uint8_t kind, padding;
    uint16_t zero;
    uint64_t store, segment, offset, batch;
};

static struct head head_get(const uint8_t *bytes)
{
    struct taker t = taker_of(span_of(bytes, FRAME_HEAD));
    struct head h;
    h.magic = take_u32(&t);
    h.crc = take_u32(&t);
    h.size = take_u32(&t);
    h.kind = take_u8(&t);
    h.padding = take_u8(&t);
    h.zero = take_u8(&t);
    h.zero |= take_u8(&t);
    h.store = take_u64(&t);
    h.segment = take_u64(&t);
    h.offset = take_u64(&t);
    h.batch = take_u64(&t);
    return h;
}

/* All of the validity rule but what is behind the head. */
static bool head_possible(const struct head *h, uint64_t store, uint64_t segment, uint64_t offset)
{
    return h->magic == FRAME_MAGIC && h->size % FRAME_ALIGN == 0 && h->size >= FRAME_HEAD &&
           h->size <= FRAME_MAX && h->kind >= FRAME_HEADER && h->kind <= FRAME_SEAL &&
           h->padding < FRAME_ALIGN && h->padding <= h->size - FRAME_HEAD && h->zero == 0 && h->store != 0 &&
           (store == 0 || h->store == store) && h->segment == segment && h->offset == offset &&
           offset % FRAME_ALIGN == 0 && h->batch % FRAME_ALIGN == 0 && h->batch <= offset;
}

static struct journal_frame frame_of(const struct head *h, const uint8_t *bytes)
{
    return (struct journal_frame){
        .kind = (enum frame_kind)h->kind,
        .size = h->size,
        .store = h->store,
        .segment = h->segment,
        .offset = h->offset,
        .batch = h->batch,
        .payload = span_of(bytes + FRAME_HEAD, h->size - FRAME_HEAD - h->padding),
    };
}

static uint32_t crc_of(const uint8_t *bytes, uint32_t size)
{
    return crc32c(0, bytes + AT_SIZE, size - AT_SIZE);
}

void frames_place(struct frame_buffer *b, uint64_t store, uint64_t segment, uint64_t offset)
{
    assert(b->begun == SIZE_MAX && store != 0 && offset % FRAME_ALIGN == 0);
    for (size_t at = 0; at < b->size;) {
        uint8_t *bytes = b->data + at;
        uint32_t size = head_get(bytes).size;
        set_u64(bytes + AT_STORE, store);
        set_u64(bytes + AT_SEGMENT, segment);
        set_u64(bytes + AT_OFFSET, offset + at);
        set_u64(bytes + AT_BATCH, offset);
        set_u32(bytes + AT_CRC, crc_of(bytes, size));
        at += size;
    }
}

bool frames_next(const struct frame_buffer *b, size_t *at, struct journal_frame *frame)
{
    if (*at >= b->size || *at == b->begun)
        return false;
    struct head h = head_get(b->data + *at);
    *frame = frame_of(&h, b->data + *at);
    *at += h.size;
    return true;
}

enum frame_verdict frame_read(struct span bytes, uint64_t store, uint64_t segment, uint64_t offset,
                              struct journal_frame *frame)
{
    *frame = (struct journal_frame){.size = FRAME_HEAD};
    if (bytes.size < FRAME_HEAD)
        return FRAME_MORE;
    struct head h = head_get(bytes.data);
    if (!head_possible(&h, store, segment, offset))
        return FRAME_INVALID;
    if (h.size > bytes.size) {
        frame->kind = (enum frame_kind)h.kind;
        frame->size = h.size;
        return FRAME_MORE;
    }
    if (crc_of(bytes.data, h.size) != h.crc)
        return FRAME_INVALID;
    *frame = frame_of(&h, bytes.data);
    return FRAME_VALID;
}
