#include "journal/scan.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

int scan_init(struct scan *s, struct files *files, int fd, uint64_t store, uint64_t segment, uint64_t from)
{
    assert(from % FRAME_ALIGN == 0);
    *s = (struct scan){.files = files, .fd = fd, .store = store, .segment = segment, .at = from};
    int64_t size = files->backend->size(files, fd);
    if (size < 0)
        return (int)size;
    s->end = (uint64_t)size;
    return 0;
}

void scan_dispose(struct scan *s)
{
    free(s->window);
    *s = (struct scan){0};
}

/* --- the window --- */

static bool window_has(const struct scan *s, uint64_t offset, uint64_t size)
{
    return offset >= s->window_offset && offset - s->window_offset <= s->window_size &&
           size <= s->window_size - (offset - s->window_offset);
}

static int make_room(struct scan *s, size_t size)
{
    if (size <= s->window_room)
        return 0;
    uint8_t *window = realloc(s->window, size);
    if (!window)
        return -ENOMEM;
    s->window = window;
    s->window_room = size;
    return 0;
}

/* Moves the window to `offset`; what it has of that already is not read again. */
static void slide(struct scan *s, uint64_t offset)
{
    size_t kept = 0;
    if (window_has(s, offset, 0)) {
        kept = s->window_size - (size_t)(offset - s->window_offset);
        memmove(s->window, s->window + (s->window_size - kept), kept);
    }
    s->window_offset = offset;
    s->window_size = kept;
}

/* Reads until the window has [offset, offset + size), or the file ends. 1: it has; 0: the file is shorter; a
 * negative errno. */
static int load(struct scan *s, uint64_t offset, uint64_t size)
{
    if (window_has(s, offset, size))
        return 1;
    if (offset > s->end || size > s->end - offset)
        return 0;
    size_t wanted = (size_t)min_u64(max_u64(size, SCAN_WINDOW), s->end - offset);
    int error = make_room(s, wanted);
    if (error < 0)
        return error;
    slide(s, offset);
    int64_t got = s->files->backend->read(s->files, s->fd, s->window + s->window_size,
                                          wanted - s->window_size, offset + s->window_size);
    if (got < 0)
        return (int)got;
    s->window_size += (size_t)got;
    if (s->window_size < wanted)
        s->end = max_u64(offset + s->window_size, s->at); /* it has been cut since */
    return window_has(s, offset, size);
}

static struct span window_from(const struct scan *s, uint64_t offset)
{
    size_t skipped = (size_t)(offset - s->window_offset);
    return span_of(s->window + skipped, s->window_size - skipped);
}

/* --- finding frames --- */

/* 1: a valid frame lies at `offset`; 0: none; a negative errno. Only what a possible head says is read whole,
 * and only if the file is long enough. */
static int frame_at(struct scan *s, uint64_t offset, struct journal_frame *frame)
{
    int there = load(s, offset, FRAME_HEAD);
    if (there <= 0)
        return there;
    enum frame_verdict verdict = frame_read(window_from(s, offset), s->store, s->segment, offset, frame);
    if (verdict == FRAME_MORE) {
        there = load(s, offset, frame->size);
        if (there <= 0)
            return there;
        verdict = frame_read(window_from(s, offset), s->store, s->segment, offset, frame);
    }
    if (verdict != FRAME_VALID)
        return 0;
    s->store = frame->store;
    return 1;
}

/* The next multiple of 8 in the window, from `*at` on, where a frame may begin; false, and `*at` is behind
 * the window: there is none. */
static bool find_magic(struct scan *s, uint64_t *at)
{
    struct span bytes = window_from(s, *at);
    for (size_t i = 0; i + 8 <= bytes.size; i += 8) {
        uint64_t word;
        memcpy(&word, bytes.data + i, 8);
        if (word == 0)
            continue;
        if ((uint32_t)le64toh(word) == FRAME_MAGIC) {
            *at += i;
            return true;
        }
        s->zeros = max_u64(s->zeros, *at + i + 8);
    }
    *at += bytes.size / 8 * 8;
    return false;
}

/* The last bytes of a file whose size is no multiple of 8: no frame, perhaps no zeros. 0 or a negative
 * errno. */
static int pass_rest(struct scan *s, uint64_t at)
{
    int there = at < s->end ? load(s, at, s->end - at) : 0;
    for (uint64_t i = at; there > 0 && i < s->end; i++) {
        if (*window_from(s, i).data != 0)
            s->zeros = i + 1;
    }
    return there < 0 ? there : 0;
}

/* The first valid frame at or behind `at`. 1, 0: there is none, or a negative errno. */
static int find_frame(struct scan *s, uint64_t at, struct journal_frame *frame)
{
    int there;
    while ((there = load(s, at, 8)) > 0) {
        if (!find_magic(s, &at))
            continue;
        there = frame_at(s, at, frame);
        if (there != 0)
            return there;
        s->zeros = max_u64(s->zeros, at + 8);
        at += FRAME_ALIGN;
    }
    return there < 0 ? there : pass_rest(s, at);
}

/* Goes through all that is behind a gap once, so that this and each gap that follows is known for what it
 * is. */
static int look_ahead(struct scan *s)
{
    struct journal_frame frame;
    uint64_t at = s->at;
    int there;
    while ((there = find_frame(s, at, &frame)) > 0) {
        at = frame.offset + frame.size;
        s->zeros = max_u64(s->zeros, at);
        s->durable = max_u64(s->durable, frame.kind == FRAME_SEAL ? UINT64_MAX : frame.batch);
        if (frame.kind == FRAME_SEAL)
            break;
    }
    s->looked_ahead = there >= 0;
    return there < 0 ? there : 0;
}

/* --- items --- */

static void give_frame(struct scan *s, const struct journal_frame *frame, struct scan_item *item)
{
    *item = (struct scan_item){SCAN_FRAME, frame->offset, frame->size, false, *frame};
    s->at = frame->offset + frame->size;
    s->sealed = frame->kind == FRAME_SEAL;
}

static void give_tail(struct scan *s, struct scan_item *item)
{
    *item = (struct scan_item){
        .kind = s->at < s->end ? SCAN_TAIL : SCAN_END,
        .offset = s->at,
        .size = s->end - s->at,
        .blank = s->zeros <= s->at,
    };
    s->at = s->end;
}

static int give_gap(struct scan *s, struct scan_item *item)
{
    int there = s->looked_ahead ? 0 : look_ahead(s);
    struct journal_frame next;
    if (there == 0 && s->at < s->durable)
        there = find_frame(s, s->at, &next);
    if (there < 0)
        return there;
    if (there == 0) {
        give_tail(s, item);
        return 0;
    }
    *item = (struct scan_item){.kind = SCAN_DAMAGE, .offset = s->at, .size = next.offset - s->at};
    s->at = next.offset;
    return 0;
}

int scan_next(struct scan *s, struct scan_item *item)
{
    *item = (struct scan_item){.kind = SCAN_END, .offset = s->at};
    if (s->error < 0)
        return s->error;
    if (s->sealed || s->at >= s->end)
        return 0;
    struct journal_frame frame;
    int there = frame_at(s, s->at, &frame);
    if (there > 0)
        give_frame(s, &frame, item);
    else
        s->error = there < 0 ? there : give_gap(s, item);
    return s->error;
}

/* --- one frame --- */

static int read_whole(struct files *files, int fd, uint64_t offset, uint8_t *bytes, uint64_t size)
{
    int64_t got = files->backend->read(files, fd, bytes, size, offset);
    if (got < 0)
        return (int)got;
    return (uint64_t)got == size ? 0 : PE_JOURNAL;
}

static int read_frame(struct files *files, int fd, uint64_t store, uint64_t segment, uint64_t offset,
                      struct journal_frame *frame, uint8_t **memory)
{
    uint8_t head[FRAME_HEAD];
    int64_t end = files->backend->size(files, fd);
    int error = end < 0 ? (int)end : read_whole(files, fd, offset, head, sizeof head);
    if (error < 0)
        return error;
    if (frame_read(span_of(head, sizeof head), store, segment, offset, frame) == FRAME_INVALID ||
        frame->size > (uint64_t)end - offset)
        return PE_JOURNAL;
    size_t size = frame->size;
    *memory = malloc(size);
    error = *memory ? read_whole(files, fd, offset, *memory, size) : -ENOMEM;
    if (error == 0 && frame_read(span_of(*memory, size), store, segment, offset, frame) != FRAME_VALID)
        error = PE_JOURNAL;
    return error;
}

int scan_frame_at(struct files *files, int fd, uint64_t store, uint64_t segment, uint64_t offset,
                  struct journal_frame *frame, uint8_t **memory)
{
    *memory = NULL;
    int error = read_frame(files, fd, store, segment, offset, frame, memory);
    if (error < 0) {
        free(*memory);
        *memory = NULL;
    }
    return error;
}
