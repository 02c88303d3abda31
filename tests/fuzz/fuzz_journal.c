/* What is read back from a store. The first byte says what the others are: the payload of a COMMIT, of a
 * HEADER, of a SEAL, or a segment; of a segment also whether its CRCs are made right first, so that what lies
 * behind them is reached. What is read is written again as it was; a segment is scanned as a slow reading of
 * the rule in journal/scan.h says. */
#include "journal/crc32c.h"
#include "journal/scan.h"
#include "tests/unit/memory_files.h"

#include <endian.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STORE       UINT64_C(0x0123456789abcdef)
#define SEGMENT     3
#define SEGMENT_MAX 16384

static struct frame_buffer out;

static void check(bool right)
{
    if (!right)
        abort();
}

static void check_written(struct span payload)
{
    struct journal_frame frame;
    size_t at = 0;
    check(frames_next(&out, &at, &frame) && span_equal(frame.payload, payload));
    frame_buffer_clear(&out, SIZE_MAX);
}

/* --- payloads --- */

static void read_commit(struct span payload)
{
    struct commit_head head;
    struct section section;
    struct span rest;
    int more;
    if (commit_read_head(payload, &head, &rest) < 0)
        return;
    commit_begin(&out, FRAME_SNAPSHOT, head.app, head.sequence);
    while ((more = commit_read_section(&rest, &section)) > 0) {
        section_records_whole(&section);
        commit_put(&out, &section);
    }
    check(commit_end(&out, head.stored) == 0);
    if (more == 0)
        check_written(payload);
    frame_buffer_clear(&out, SIZE_MAX);
}

static void note_commit(enum frame_kind kind, struct span payload)
{
    const struct journal_frame frame = {.kind = kind, .offset = 8, .batch = 8, .payload = payload};
    struct seal seal;
    seal_init(&seal);
    seal_note(&seal, &frame);
    seal_note(&seal, &frame);
    check(seal.app_count <= 1);
    check(seal_write(&out, &seal) == 0);
    frame_buffer_clear(&out, SIZE_MAX);
    seal_dispose(&seal);
}

static void read_seal(struct span payload)
{
    struct seal seal;
    seal_init(&seal);
    if (seal_read(payload, &seal) == 0) {
        check(seal_write(&out, &seal) == 0);
        check_written(payload);
    }
    seal_dispose(&seal);
}

static void read_header(struct span payload)
{
    struct header header;
    if (header_read(payload, &header) < 0)
        return;
    struct journal_place *seals = calloc(header.seal_count + 1, sizeof *seals);
    check(seals != NULL);
    for (uint32_t i = 0; i < header.seal_count; i++)
        seals[i] = header_seal(&header, i);
    check(header_write(&out, header.created_ms, seals, header.seal_count) == 0);
    if (header.version == JOURNAL_VERSION) /* an older one is read, and written as the newest */
        check_written(payload);
    else
        frame_buffer_clear(&out, SIZE_MAX);
    free(seals);
}

/* --- segments --- */

/* Where there is a magic number, the place and the CRC become right, if the size is possible. */
static void make_right(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + FRAME_HEAD <= size; at += FRAME_ALIGN) {
        uint32_t magic, frame_size;
        memcpy(&magic, data + at, 4);
        memcpy(&frame_size, data + at + 8, 4);
        frame_size = le32toh(frame_size);
        if (le32toh(magic) != FRAME_MAGIC || frame_size < FRAME_HEAD || frame_size > size - at)
            continue;
        const uint64_t place[] = {htole64(STORE), htole64(SEGMENT), htole64(at)};
        memcpy(data + at + 16, place, sizeof place);
        uint32_t crc = htole32(crc32c(0, data + at + 8, frame_size - 8));
        memcpy(data + at + 4, &crc, 4);
    }
}

static bool valid_at(struct span segment, uint64_t at, struct journal_frame *frame)
{
    struct span rest = span_of(segment.data + at, segment.size - at);
    return frame_read(rest, STORE, SEGMENT, at, frame) == FRAME_VALID;
}

/* The next valid frame from `at` on. */
static bool next_valid(struct span segment, uint64_t at, struct journal_frame *frame)
{
    for (; at < segment.size; at += FRAME_ALIGN) {
        if (valid_at(segment, at, frame))
            return true;
    }
    return false;
}

static bool durable_behind(struct span segment, uint64_t gap)
{
    struct journal_frame frame;
    for (uint64_t at = gap; next_valid(segment, at, &frame); at = frame.offset + frame.size) {
        if (frame.batch > gap || frame.kind == FRAME_SEAL)
            return true;
        check(frame.size >= FRAME_HEAD);
    }
    return false;
}

static bool blank_from(struct span segment, uint64_t at)
{
    while (at < segment.size && segment.data[at] == 0)
        at++;
    return at == segment.size;
}

static enum scan_item_kind expected(struct span segment, uint64_t at, bool sealed)
{
    struct journal_frame frame;
    if (sealed || at >= segment.size)
        return SCAN_END;
    if (valid_at(segment, at, &frame))
        return SCAN_FRAME;
    return durable_behind(segment, at) ? SCAN_DAMAGE : SCAN_TAIL;
}

static void check_frame(struct files *files, const struct scan_item *item)
{
    struct journal_frame frame;
    uint8_t *memory;
    check(scan_frame_at(files, MEMORY_FD, STORE, SEGMENT, item->offset, &frame, &memory) == 0);
    check(frame.size == item->size && span_equal(frame.payload, item->frame.payload));
    free(memory);
    if (frame.kind == FRAME_COMMIT || frame.kind == FRAME_SNAPSHOT)
        note_commit(frame.kind, item->frame.payload);
}

static void read_segment(struct span segment)
{
    struct memory_files files = memory_files_of(segment.data, segment.size);
    struct scan scan;
    struct scan_item item;
    uint64_t at = 0;
    bool sealed = false;
    check(scan_init(&scan, &files.files, MEMORY_FD, STORE, SEGMENT, 0) == 0);
    do {
        check(scan_next(&scan, &item) == 0);
        check(item.kind == expected(segment, at, sealed) && item.offset == at);
        if (item.kind == SCAN_FRAME)
            check_frame(&files.files, &item);
        if (item.kind == SCAN_TAIL)
            check(item.blank == blank_from(segment, at) && item.size == segment.size - at);
        sealed = scan.sealed;
        check(item.kind != SCAN_FRAME || sealed == (item.frame.kind == FRAME_SEAL));
        at += item.size;
    } while (item.kind != SCAN_END);
    check(sealed || at == segment.size);
    scan_dispose(&scan);
}

static void read_part(uint8_t what, uint8_t *data, size_t size)
{
    struct span bytes = span_of(data, size);
    switch (what) {
    case 'c':
        read_commit(bytes);
        note_commit(FRAME_COMMIT, bytes);
        note_commit(FRAME_SNAPSHOT, bytes);
        break;
    case 'h':
        read_header(bytes);
        break;
    case 's':
        read_seal(bytes);
        break;
    case 'r':
        make_right(data, size);
        read_segment(bytes);
        break;
    case 'f':
        read_segment(bytes);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > SEGMENT_MAX)
        return 0;
    uint8_t *copy = malloc(size > 1 ? size - 1 : 1); /* no byte more, so that what reads beyond is seen */
    check(copy != NULL);
    if (out.capacity == 0)
        frame_buffer_init(&out);
    memcpy(copy, data + 1, size - 1);
    read_part(data[0], copy, size - 1);
    free(copy);
    return 0;
}
