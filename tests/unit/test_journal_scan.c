/* Reading segments: which frames are found, and what is said of all that is none. Segments are small and lie
 * in memory. Most tests have this one, which ends in set-aside zeros (batch b: [frames]):
 *
 *     0: [HEADER]   1: [a1 b1 a2]   2: [b2 a3]   3: [a4 b3 a5]   then perhaps a SEAL, then zeros
 */
#include "journal/scan.h"
#include "tests/unit/memory_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define STORE   UINT64_C(0x1122334455667788)
#define SEGMENT 7
#define ZEROS   256
#define FRAMES  10 /* at most, in a segment here */

struct written {
    uint8_t *data;
    size_t size; /* with the zeros */
    size_t used; /* of frames */
    unsigned count;
    uint64_t offset[FRAMES], frame_size[FRAMES], batch[FRAMES];
    bool sealed;
};

/* --- writing --- */

static void put_commit(struct frame_buffer *b, const char *app, uint64_t sequence, size_t bytes)
{
    uint8_t record[300] = {0};
    size_t prefix = varint_put(record, bytes);
    memset(record + prefix, (int)sequence, bytes);
    struct section section = {
        .type = SECTION_SENDS,
        .sends = {span_text("next"), sequence, 1, span_of(record, prefix + bytes)},
    };
    commit_begin(b, FRAME_COMMIT, span_text(app), sequence);
    commit_put(b, &section);
    assert_int_equal(commit_end(b, sequence), 0);
}

static void end_batch(struct written *w, struct frame_buffer *b)
{
    struct journal_frame frame;
    size_t at = 0;
    frames_place(b, STORE, SEGMENT, w->used);
    while (frames_next(b, &at, &frame)) {
        assert_true(w->count < FRAMES);
        w->offset[w->count] = frame.offset;
        w->frame_size[w->count] = frame.size;
        w->batch[w->count++] = frame.batch;
    }
    w->data = realloc(w->data, w->used + b->size + ZEROS);
    assert_non_null(w->data);
    memcpy(w->data + w->used, b->data, b->size);
    w->used += b->size;
    w->size = w->used + ZEROS;
    memset(w->data + w->used, 0, ZEROS);
    frame_buffer_clear(b, SIZE_MAX);
}

static void put_seal(struct written *w, struct frame_buffer *b)
{
    struct seal seal;
    seal_init(&seal);
    assert_int_equal(seal_write(b, &seal), 0);
    end_batch(w, b);
    w->sealed = true;
}

static struct written write_segment(bool sealed)
{
    struct written w = {0};
    struct frame_buffer b;
    frame_buffer_init(&b);
    assert_int_equal(header_write(&b, 1, NULL, 0), 0);
    end_batch(&w, &b);
    put_commit(&b, "a", 1, 1);
    put_commit(&b, "b", 1, 20);
    put_commit(&b, "a", 2, 3);
    end_batch(&w, &b);
    put_commit(&b, "b", 2, 9);
    put_commit(&b, "a", 3, 0);
    end_batch(&w, &b);
    put_commit(&b, "a", 4, 5);
    put_commit(&b, "b", 3, 6);
    put_commit(&b, "a", 5, 7);
    end_batch(&w, &b);
    if (sealed)
        put_seal(&w, &b);
    frame_buffer_dispose(&b);
    return w;
}

/* --- what has to be found, by the definition, frame by frame --- */

/* Whether the frame i is as it was written in `data`, of which there are `size` bytes. */
static bool intact(const struct written *w, unsigned i, const uint8_t *data, size_t size)
{
    return w->offset[i] + w->frame_size[i] <= size &&
           memcmp(data + w->offset[i], w->data + w->offset[i], w->frame_size[i]) == 0;
}

static bool durable_behind(const struct written *w, unsigned from, uint64_t gap, const uint8_t *data,
                           size_t size)
{
    for (unsigned i = from; i < w->count; i++) {
        bool seal = w->sealed && i == w->count - 1;
        if (intact(w, i, data, size) && (w->batch[i] > gap || seal))
            return true;
    }
    return false;
}

static bool all_zeros(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] != 0)
            return false;
    }
    return true;
}

static void expect_item(struct scan *s, enum scan_item_kind kind, uint64_t offset, uint64_t size,
                        struct scan_item *item)
{
    assert_int_equal(scan_next(s, item), 0);
    assert_int_equal(item->kind, kind);
    assert_int_equal(item->offset, offset);
    assert_int_equal(item->size, size);
}

static void expect_frame(struct scan *s, const struct written *w, unsigned i)
{
    struct scan_item item;
    expect_item(s, SCAN_FRAME, w->offset[i], w->frame_size[i], &item);
    assert_int_equal(item.frame.offset, w->offset[i]);
    assert_int_equal(item.frame.batch, w->batch[i]);
    assert_memory_equal(item.frame.payload.data, w->data + w->offset[i] + FRAME_HEAD,
                        item.frame.payload.size);
}

static void expect_end(struct scan *s)
{
    struct scan_item item;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(scan_next(s, &item), 0);
        assert_int_equal(item.kind, SCAN_END);
    }
}

static void expect_scan(struct scan *s, const struct written *w, const uint8_t *data, size_t size)
{
    struct scan_item item;
    uint64_t at = 0;
    for (unsigned i = 0; i < w->count; i++) {
        if (!intact(w, i, data, size))
            continue;
        if (w->offset[i] > at) {
            if (!durable_behind(w, i, at, data, size))
                break;
            expect_item(s, SCAN_DAMAGE, at, w->offset[i] - at, &item);
        }
        expect_frame(s, w, i);
        at = w->offset[i] + w->frame_size[i];
    }
    if (!s->sealed && at < size) {
        expect_item(s, SCAN_TAIL, at, size - at, &item);
        assert_int_equal(item.blank, all_zeros(data + at, size - at));
    }
    expect_end(s);
}

static void check_scan(const struct written *w, const uint8_t *data, size_t size, uint64_t store)
{
    struct memory_files files = memory_files_of(data, size);
    struct scan s;
    assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, store, SEGMENT, 0), 0);
    expect_scan(&s, w, data, size);
    assert_int_equal(s.sealed, w->sealed && intact(w, w->count - 1, data, size));
    scan_dispose(&s);
}

static uint8_t *copy_of(const struct written *w)
{
    uint8_t *copy = malloc(w->size);
    assert_non_null(copy);
    return memcpy(copy, w->data, w->size);
}

/* --- tests --- */

static void an_unharmed_segment_gives_all_its_frames(void **state)
{
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        struct written w = write_segment(sealed);
        check_scan(&w, w.data, w.size, STORE);
        check_scan(&w, w.data, w.size, 0);
        check_scan(&w, w.data, w.used, STORE);
        free(w.data);
    }
}

static void nothing_and_zeros_are_no_frames(void **state)
{
    (void)state;
    static const uint8_t zeros[SCAN_WINDOW + 100];
    const struct written none = {0};
    check_scan(&none, zeros, 0, STORE);
    check_scan(&none, zeros, 1, STORE);
    check_scan(&none, zeros, 8, STORE);
    check_scan(&none, zeros, FRAME_HEAD, 0);
    check_scan(&none, zeros, sizeof zeros, STORE);
}

static void every_byte_flipped_costs_its_frame_only(void **state)
{
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        struct written w = write_segment(sealed);
        uint8_t *data = copy_of(&w);
        for (size_t i = 0; i < w.size; i++) {
            for (int bit = 0; bit < 8; bit++) {
                data[i] ^= (uint8_t)(1 << bit);
                check_scan(&w, data, w.size, STORE);
                check_scan(&w, data, w.size, 0);
                data[i] ^= (uint8_t)(1 << bit);
            }
        }
        free(data);
        free(w.data);
    }
}

static void every_truncation_costs_what_is_behind_it(void **state)
{
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        struct written w = write_segment(sealed);
        for (size_t size = 0; size <= w.size; size++)
            check_scan(&w, w.data, size, STORE);
        free(w.data);
    }
}

static void every_run_of_zeros_costs_the_frames_it_touches(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 8, 50, 100, 200, 400};
    for (int sealed = 0; sealed < 2; sealed++) {
        struct written w = write_segment(sealed);
        for (size_t n = 0; n < ARRAY_SIZE(sizes); n++) {
            for (size_t i = 0; i + sizes[n] <= w.size; i++) {
                uint8_t *data = copy_of(&w);
                memset(data + i, 0, sizes[n]);
                check_scan(&w, data, w.size, STORE);
                free(data);
            }
        }
        free(w.data);
    }
}

/* Two places at once, so that what is known of the first gap is used for the second. */
static void any_two_frames_may_be_missing(void **state)
{
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        struct written w = write_segment(sealed);
        uint8_t *data = copy_of(&w);
        for (unsigned i = 0; i < w.count; i++) {
            for (unsigned k = i + 1; k < w.count; k++) {
                data[w.offset[i] + 20] ^= 1;
                data[w.offset[k] + 20] ^= 1;
                check_scan(&w, data, w.size, STORE);
                data[w.offset[i] + 20] ^= 1;
                data[w.offset[k] + 20] ^= 1;
            }
        }
        free(data);
        free(w.data);
    }
}

/* The same as above, but said by hand: what `expect_scan` computes is right. */
static void a_hole_in_the_last_batch_is_a_tail_and_in_an_earlier_one_damage(void **state)
{
    (void)state;
    struct written w = write_segment(false);
    struct memory_files files = memory_files_of(w.data, w.size);
    struct scan s;
    struct scan_item item;
    w.data[w.offset[2] + 50] ^= 1; /* in batch 1 */
    w.data[w.offset[7] + 50] ^= 1; /* in batch 3: a5 behind it is lost with it */
    assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, STORE, SEGMENT, 0), 0);
    expect_frame(&s, &w, 0);
    expect_frame(&s, &w, 1);
    expect_item(&s, SCAN_DAMAGE, w.offset[2], w.frame_size[2], &item);
    for (unsigned i = 3; i < 7; i++)
        expect_frame(&s, &w, i);
    expect_item(&s, SCAN_TAIL, w.offset[7], w.size - w.offset[7], &item);
    assert_false(item.blank);
    expect_end(&s);
    scan_dispose(&s);
    free(w.data);
}

static void with_a_seal_a_hole_in_the_last_batch_is_damage(void **state)
{
    (void)state;
    struct written w = write_segment(true);
    struct memory_files files = memory_files_of(w.data, w.size);
    struct scan s;
    struct scan_item item;
    w.data[w.offset[7] + 50] ^= 1;
    assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, STORE, SEGMENT, w.offset[6]), 0);
    expect_frame(&s, &w, 6);
    expect_item(&s, SCAN_DAMAGE, w.offset[7], w.frame_size[7], &item);
    expect_frame(&s, &w, 8);
    expect_frame(&s, &w, 9);
    expect_end(&s);
    assert_true(s.sealed);
    scan_dispose(&s);
    free(w.data);
}

/* Whatever batch it says it is of: what is in front of a SEAL was durable before it was written. */
static void a_seal_in_the_batch_of_a_hole_makes_it_damage(void **state)
{
    (void)state;
    struct written w = {0};
    struct frame_buffer b;
    struct seal seal;
    frame_buffer_init(&b);
    seal_init(&seal);
    put_commit(&b, "a", 1, 1);
    put_commit(&b, "a", 2, 1);
    assert_int_equal(seal_write(&b, &seal), 0);
    end_batch(&w, &b);
    w.sealed = true;
    w.data[50] ^= 1;
    struct memory_files files = memory_files_of(w.data, w.size);
    struct scan s;
    struct scan_item item;
    assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, STORE, SEGMENT, 0), 0);
    expect_item(&s, SCAN_DAMAGE, 0, w.frame_size[0], &item);
    expect_frame(&s, &w, 1);
    expect_frame(&s, &w, 2);
    expect_end(&s);
    scan_dispose(&s);
    frame_buffer_dispose(&b);
    free(w.data);
}

/* A SEAL that a recovery put over the beginning of a tail. */
static void what_lies_behind_a_seal_is_of_no_interest(void **state)
{
    (void)state;
    struct written w = write_segment(false);
    struct frame_buffer b;
    frame_buffer_init(&b);
    size_t used = w.used;
    w.used = w.offset[7]; /* b3 and a5 were not finished */
    w.count = 7;
    uint8_t *data = copy_of(&w);
    struct written sealed = {0};
    put_seal(&sealed, &b);
    assert_true(sealed.used <= w.frame_size[7]);
    frame_buffer_clear(&b, SIZE_MAX);
    struct seal seal;
    seal_init(&seal);
    assert_int_equal(seal_write(&b, &seal), 0);
    frames_place(&b, STORE, SEGMENT, w.used);
    memcpy(data + w.used, b.data, b.size);
    struct memory_files files = memory_files_of(data, used);
    struct scan s;
    assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, STORE, SEGMENT, 0), 0);
    for (unsigned i = 0; i < 7; i++)
        expect_frame(&s, &w, i);
    struct scan_item item;
    expect_item(&s, SCAN_FRAME, w.used, b.size, &item);
    expect_end(&s);
    scan_dispose(&s);
    frame_buffer_dispose(&b);
    free(sealed.data);
    free(data);
    free(w.data);
}

/* Frames of the same bytes, but written for another place. */
static void frames_of_another_place_are_never_given(void **state)
{
    (void)state;
    static const struct {
        uint64_t store, segment, offset;
    } places[] = {{STORE + 1, SEGMENT, 0}, {STORE, SEGMENT + 1, 0}, {STORE, SEGMENT, 8}};
    for (size_t n = 0; n < ARRAY_SIZE(places); n++) {
        struct frame_buffer b;
        frame_buffer_init(&b);
        put_commit(&b, "a", 1, 10);
        frames_place(&b, places[n].store, places[n].segment, places[n].offset);
        struct memory_files files = memory_files_of(b.data, b.size);
        struct scan s;
        struct scan_item item;
        assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, STORE, SEGMENT, 0), 0);
        expect_item(&s, SCAN_TAIL, 0, b.size, &item);
        assert_false(item.blank);
        expect_end(&s);
        scan_dispose(&s);
        frame_buffer_dispose(&b);
    }
}

/* With any store allowed, the first frame's is that of the segment. */
static void one_segment_is_of_one_store(void **state)
{
    (void)state;
    struct written w = write_segment(false);
    struct frame_buffer b;
    frame_buffer_init(&b);
    put_commit(&b, "a", 9, 10);
    frames_place(&b, STORE + 1, SEGMENT, w.used);
    assert_true(b.size <= ZEROS);
    memcpy(w.data + w.used, b.data, b.size);
    check_scan(&w, w.data, w.size, 0);
    w.data[20] ^= 1; /* the HEADER is gone: the next one tells the store */
    struct memory_files files = memory_files_of(w.data, w.size);
    struct scan s;
    struct scan_item item;
    assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, 0, SEGMENT, 0), 0);
    expect_item(&s, SCAN_DAMAGE, 0, w.frame_size[0], &item);
    expect_frame(&s, &w, 1);
    assert_int_equal(s.store, STORE);
    scan_dispose(&s);
    frame_buffer_dispose(&b);
    free(w.data);
}

/* A frame's head of a size; nothing of it is right but what can be looked at without its payload. */
static void put_false_head(uint8_t *data, uint64_t offset, uint32_t size)
{
    struct frame_buffer b;
    frame_buffer_init(&b);
    put_commit(&b, "a", 1, 1);
    frames_place(&b, STORE, SEGMENT, offset);
    memcpy(data + offset, b.data, FRAME_HEAD);
    size = htole32(size);
    memcpy(data + offset + 8, &size, 4);
    frame_buffer_dispose(&b);
}

static void a_false_head_that_states_a_huge_size_costs_nothing(void **state)
{
    (void)state;
    size_t size = 4 * SCAN_WINDOW;
    uint8_t *data = calloc(1, size);
    assert_non_null(data);
    for (uint64_t at = 0; at + FRAME_HEAD <= size; at += 1000)
        put_false_head(data, at, FRAME_MAX);
    struct memory_files files = memory_files_of(data, size);
    struct scan s;
    struct scan_item item;
    assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, STORE, SEGMENT, 0), 0);
    expect_item(&s, SCAN_TAIL, 0, size, &item);
    assert_true(files.largest <= SCAN_WINDOW);
    assert_true(files.read_bytes <= 2 * size);
    scan_dispose(&s);
    struct journal_frame frame;
    uint8_t *memory;
    files.read_bytes = 0;
    assert_int_equal(scan_frame_at(&files.files, MEMORY_FD, STORE, SEGMENT, 0, &frame, &memory), PE_JOURNAL);
    assert_null(memory);
    assert_true(files.read_bytes <= FRAME_HEAD);
    free(data);
}

/* Longer than a window, across windows, and damaged: found, given whole, passed over. */
static void frames_longer_than_the_window_are_read(void **state)
{
    (void)state;
    struct frame_buffer b;
    frame_buffer_init(&b);
    uint8_t *payload = malloc(3 * SCAN_WINDOW);
    assert_non_null(payload);
    for (size_t i = 0; i < 3 * SCAN_WINDOW; i++)
        payload[i] = (uint8_t)(i * 7);
    for (uint64_t n = 1; n < 6; n++) {
        struct section section = {.type = SECTION_STATE, .state = span_of(payload, n % 2 ? n * 100000 : 99)};
        commit_begin(&b, FRAME_SNAPSHOT, span_text("a"), n);
        commit_put(&b, &section);
        assert_int_equal(commit_end(&b, n), 0);
    }
    frames_place(&b, STORE, SEGMENT, 0);
    struct memory_files files = memory_files_of(b.data, b.size);
    struct scan s;
    struct scan_item item;
    struct commit_head head;
    struct span rest;
    assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, STORE, SEGMENT, 0), 0);
    uint64_t last = 0;
    for (uint64_t n = 1; n < 6; n++) {
        assert_int_equal(scan_next(&s, &item), 0);
        assert_int_equal(item.kind, SCAN_FRAME);
        assert_int_equal(commit_read_head(item.frame.payload, &head, &rest), 0);
        assert_int_equal(head.sequence, n);
        last = item.offset;
    }
    expect_end(&s);
    assert_true(files.read_bytes <= 2 * b.size);
    scan_dispose(&s);
    b.data[last - 100] ^= 1; /* the one before the last, which is of the same batch */
    assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, STORE, SEGMENT, 0), 0);
    for (int n = 0; n < 3; n++)
        assert_int_equal(scan_next(&s, &item), 0);
    assert_int_equal(scan_next(&s, &item), 0);
    assert_int_equal(item.kind, SCAN_TAIL);
    expect_end(&s);
    scan_dispose(&s);
    free(payload);
    frame_buffer_dispose(&b);
}

static void a_read_that_fails_is_said_and_ends_it(void **state)
{
    (void)state;
    struct written w = write_segment(false);
    w.data[w.offset[3] + 50] ^= 1;
    struct memory_files files = memory_files_of(w.data, w.size);
    struct scan s;
    struct scan_item item;
    files.reads_left = 0;
    assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, STORE, SEGMENT, 0), 0);
    assert_int_equal(scan_next(&s, &item), -EIO);
    assert_int_equal(item.kind, SCAN_END);
    files.reads_left = UINT64_MAX;
    assert_int_equal(scan_next(&s, &item), -EIO);
    scan_dispose(&s);
    struct journal_frame frame;
    uint8_t *memory;
    for (uint64_t n = 0; n < 2; n++) {
        files.reads_left = n;
        assert_int_equal(scan_frame_at(&files.files, MEMORY_FD, STORE, SEGMENT, 0, &frame, &memory), -EIO);
        assert_null(memory);
    }
    free(w.data);
}

static void a_file_that_was_cut_since_ends_there(void **state)
{
    (void)state;
    struct written w = write_segment(true);
    for (size_t size = 0; size < w.size; size++) {
        struct memory_files files = memory_files_of(w.data, size);
        files.seen = w.size;
        struct scan s;
        assert_int_equal(scan_init(&s, &files.files, MEMORY_FD, STORE, SEGMENT, 0), 0);
        expect_scan(&s, &w, w.data, size);
        scan_dispose(&s);
    }
    free(w.data);
}

static void one_frame_is_read_where_it_lies_and_nowhere_else(void **state)
{
    (void)state;
    struct written w = write_segment(true);
    struct memory_files files = memory_files_of(w.data, w.size);
    struct journal_frame frame;
    uint8_t *memory;
    unsigned found = 0;
    for (uint64_t at = 0; at < w.size + 64; at++) {
        int error = scan_frame_at(&files.files, MEMORY_FD, STORE, SEGMENT, at, &frame, &memory);
        if (found < w.count && at == w.offset[found]) {
            assert_int_equal(error, 0);
            assert_int_equal(frame.offset, at);
            assert_int_equal(frame.size, w.frame_size[found]);
            assert_ptr_equal(frame.payload.data, memory + FRAME_HEAD);
            free(memory);
            found++;
        } else {
            assert_int_equal(error, PE_JOURNAL);
            assert_null(memory);
        }
    }
    assert_int_equal(found, w.count);
    assert_int_equal(scan_frame_at(&files.files, MEMORY_FD, STORE + 1, SEGMENT, 0, &frame, &memory),
                     PE_JOURNAL);
    free(w.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unharmed_segment_gives_all_its_frames),
        cmocka_unit_test(nothing_and_zeros_are_no_frames),
        cmocka_unit_test(every_byte_flipped_costs_its_frame_only),
        cmocka_unit_test(every_truncation_costs_what_is_behind_it),
        cmocka_unit_test(every_run_of_zeros_costs_the_frames_it_touches),
        cmocka_unit_test(any_two_frames_may_be_missing),
        cmocka_unit_test(a_hole_in_the_last_batch_is_a_tail_and_in_an_earlier_one_damage),
        cmocka_unit_test(with_a_seal_a_hole_in_the_last_batch_is_damage),
        cmocka_unit_test(a_seal_in_the_batch_of_a_hole_makes_it_damage),
        cmocka_unit_test(what_lies_behind_a_seal_is_of_no_interest),
        cmocka_unit_test(frames_of_another_place_are_never_given),
        cmocka_unit_test(one_segment_is_of_one_store),
        cmocka_unit_test(a_false_head_that_states_a_huge_size_costs_nothing),
        cmocka_unit_test(frames_longer_than_the_window_are_read),
        cmocka_unit_test(a_read_that_fails_is_said_and_ends_it),
        cmocka_unit_test(a_file_that_was_cut_since_ends_there),
        cmocka_unit_test(one_frame_is_read_where_it_lies_and_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
