/* Frames, and that nothing else is ever taken for one. */
#include "journal/crc32c.h"
#include "tests/unit/journal_frames.h"

#include <endian.h>
#include <sys/mman.h>

/* --- the buffer --- */

static void frames_lie_behind_each_other_at_multiples_of_eight(void **state)
{
    (void)state;
    struct frame_buffer b;
    struct journal_frame frame;
    frame_buffer_init(&b);
    for (size_t size = 0; size < 100; size++) {
        frame_begin(&b, FRAME_SNAPSHOT);
        for (size_t i = 0; i < size; i++)
            frame_put_u8(&b, (uint8_t)size);
        assert_int_equal(frame_payload_size(&b), size);
        assert_int_equal(frame_end(&b), 0);
    }
    frames_place(&b, STORE, SEGMENT, PLACE);
    size_t at = 0;
    for (size_t size = 0; size < 100; size++) {
        size_t before = at;
        struct journal_frame read;
        assert_true(frames_next(&b, &at, &frame));
        assert_int_equal(at % FRAME_ALIGN, 0);
        assert_int_equal(at - before, (FRAME_HEAD + size + 7) / 8 * 8);
        assert_int_equal(
            frame_read(span_of(b.data + before, at - before), STORE, SEGMENT, PLACE + before, &read),
            FRAME_VALID);
        assert_memory_equal(&read, &frame, sizeof read);
        assert_int_equal(read.kind, FRAME_SNAPSHOT);
        assert_int_equal(read.batch, PLACE);
        assert_int_equal(read.offset, PLACE + before);
        assert_int_equal(read.store, STORE);
        assert_int_equal(read.segment, SEGMENT);
        assert_int_equal(read.payload.size, size);
    }
    assert_false(frames_next(&b, &at, &frame));
    frame_buffer_dispose(&b);
}

static void a_dropped_frame_was_never_there(void **state)
{
    (void)state;
    struct frame_buffer b;
    frame_buffer_init(&b);
    const struct section section = key_section();
    put_commit(&b, &section, 1);
    size_t size = b.size;
    commit_begin(&b, FRAME_COMMIT, span_text("x"), 1);
    commit_put(&b, &section);
    frame_drop(&b);
    assert_int_equal(b.size, size);
    frames_place(&b, STORE, SEGMENT, PLACE);
    only_frame(&b);
    frame_buffer_dispose(&b);
}

static void a_frame_over_the_limit_is_refused_and_the_others_stay(void **state)
{
    (void)state;
    static const uint8_t little[8];
    struct frame_buffer b;
    struct section section = key_section();
    frame_buffer_init(&b);
    put_commit(&b, &section, 1);
    size_t size = b.size;
    section = (struct section){.type = SECTION_STATE, .state = span_of(little, FRAME_MAX)};
    commit_begin(&b, FRAME_SNAPSHOT, span_text("a"), 0);
    commit_put(&b, &section); /* refused by its size: it is not looked at */
    assert_int_equal(b.error, PE_TOO_LARGE);
    commit_put(&b, &section);
    assert_int_equal(commit_end(&b, 0), PE_TOO_LARGE);
    assert_int_equal(b.size, size);
    assert_int_equal(b.error, 0);
    frame_buffer_dispose(&b);
}

/* A frame that is nearly full, in memory of which only the ends are touched. */
static void a_frame_is_as_large_as_the_limit_and_no_larger(void **state)
{
    (void)state;
    static const uint8_t little[9];
    for (size_t more = 7; more <= sizeof little; more++) {
        struct frame_buffer b = {.capacity = FRAME_MAX + 4096, .begun = SIZE_MAX};
        b.data = mmap(NULL, b.capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1, 0);
        assert_ptr_not_equal(b.data, MAP_FAILED);
        frame_begin(&b, FRAME_SNAPSHOT);
        b.size = FRAME_MAX - 8;
        frame_put(&b, little, more);
        assert_int_equal(frame_end(&b), more > 8 ? PE_TOO_LARGE : 0);
        assert_int_equal(b.size, more > 8 ? 0 : FRAME_MAX);
        munmap(b.data, FRAME_MAX + 4096);
    }
}

static void memory_over_what_is_kept_is_given_back(void **state)
{
    (void)state;
    static const uint8_t much[100000];
    struct frame_buffer b;
    frame_buffer_init(&b);
    assert_null(b.data);
    frame_begin(&b, FRAME_SNAPSHOT);
    frame_put(&b, much, sizeof much);
    assert_int_equal(frame_end(&b), 0);
    size_t capacity = b.capacity;
    frame_buffer_clear(&b, capacity);
    assert_int_equal(b.capacity, capacity);
    assert_int_equal(b.size, 0);
    frame_buffer_clear(&b, 1000);
    assert_int_equal(b.capacity, 1000);
    put_commit(&b, NULL, 0);
    frame_buffer_clear(&b, 0);
    assert_null(b.data);
    put_commit(&b, NULL, 0);
    frame_buffer_dispose(&b);
}

static void names_have_a_limit_and_no_zero_bytes(void **state)
{
    (void)state;
    struct frame_buffer b;
    char name[JOURNAL_NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    frame_buffer_init(&b);
    for (size_t size = JOURNAL_NAME_MAX; size < sizeof name; size++) {
        frame_begin(&b, FRAME_COMMIT);
        frame_put_name(&b, span_of(name, size));
        assert_int_equal(frame_end(&b), size > JOURNAL_NAME_MAX ? PE_TOO_LARGE : 0);
    }
    frame_begin(&b, FRAME_COMMIT);
    frame_put_name(&b, span_of("a\0b", 3));
    assert_int_equal(frame_end(&b), PE_MALFORMED);
    frame_buffer_dispose(&b);
}

/* The same frame for two places: a write that is repeated in another segment. */
static void frames_may_be_placed_again(void **state)
{
    (void)state;
    struct frame_buffer b;
    struct journal_frame frame;
    const struct section section = key_section();
    frame_buffer_init(&b);
    put_commit(&b, &section, 1);
    frames_place(&b, STORE, SEGMENT + 1, 8);
    frames_place(&b, STORE, SEGMENT, PLACE);
    only_frame(&b);
    assert_int_equal(frame_read(span_of(b.data, b.size), STORE, SEGMENT + 1, 8, &frame), FRAME_INVALID);
    frame_buffer_dispose(&b);
}

/* --- validity --- */

static void every_bit_counts(void **state)
{
    (void)state;
    struct frame_buffer b;
    struct journal_frame frame;
    struct section sections[SECTIONS];
    make_sections(sections);
    frame_buffer_init(&b);
    put_commit(&b, sections, SECTIONS);
    frames_place(&b, STORE, SEGMENT, PLACE);
    for (size_t i = 0; i < b.size * 8; i++) {
        b.data[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_not_equal(frame_read(span_of(b.data, b.size), STORE, SEGMENT, PLACE, &frame), FRAME_VALID);
        b.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    only_frame(&b);
    frame_buffer_dispose(&b);
}

static void a_part_of_a_frame_asks_for_more(void **state)
{
    (void)state;
    struct frame_buffer b;
    struct journal_frame frame;
    const struct section section = key_section();
    frame_buffer_init(&b);
    put_commit(&b, &section, 1);
    frames_place(&b, STORE, SEGMENT, PLACE);
    for (size_t size = 0; size < b.size; size++) {
        uint8_t *part = copy_of(span_of(b.data, size));
        assert_int_equal(frame_read(span_of(part, size), STORE, SEGMENT, PLACE, &frame), FRAME_MORE);
        assert_int_equal(frame.size, size < FRAME_HEAD ? FRAME_HEAD : b.size);
        free(part);
    }
    frame_buffer_dispose(&b);
}

static void a_frame_of_another_place_or_store_is_none(void **state)
{
    (void)state;
    struct frame_buffer b;
    struct journal_frame frame;
    const struct section section = key_section();
    frame_buffer_init(&b);
    put_commit(&b, &section, 1);
    frames_place(&b, STORE, SEGMENT, PLACE);
    struct span bytes = span_of(b.data, b.size);
    assert_int_equal(frame_read(bytes, 0, SEGMENT, PLACE, &frame), FRAME_VALID);
    assert_int_equal(frame_read(bytes, STORE + 1, SEGMENT, PLACE, &frame), FRAME_INVALID);
    assert_int_equal(frame_read(bytes, STORE, SEGMENT - 1, PLACE, &frame), FRAME_INVALID);
    assert_int_equal(frame_read(bytes, STORE, SEGMENT, PLACE + 8, &frame), FRAME_INVALID);
    assert_int_equal(frame_read(bytes, 0, SEGMENT, PLACE - 8, &frame), FRAME_INVALID);
    frame_buffer_dispose(&b);
}

/* What no writer writes, with a CRC that is right. */
static void a_head_that_cannot_be_is_none_whatever_its_crc(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint64_t value;
        size_t size;
    } wrong[] = {
        {0, FRAME_MAGIC + 1, 4},
        {8, 0, 4},
        {8, FRAME_HEAD - 8, 4},
        {8, FRAME_HEAD + 4, 4},
        {12, 0, 1},
        {12, 5, 1},
        {13, 8, 1},
        {14, 1, 1},
        {15, 1, 1},
        {16, 0, 8},
        {24, SEGMENT + 1, 8},
        {32, PLACE + 8, 8},
        {40, PLACE + 8, 8},
        {40, PLACE - 1, 8},
    };
    struct frame_buffer b;
    struct journal_frame frame;
    const struct section section = key_section();
    frame_buffer_init(&b);
    put_commit(&b, &section, 1);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        frames_place(&b, STORE, SEGMENT, PLACE);
        uint8_t *copy = copy_of(span_of(b.data, b.size));
        uint64_t value = htole64(wrong[i].value);
        memcpy(copy + wrong[i].at, &value, wrong[i].size);
        uint32_t size;
        memcpy(&size, copy + 8, 4);
        uint32_t crc = htole32(crc32c(0, copy + 8, le32toh(size) >= 8 ? le32toh(size) - 8 : 0));
        memcpy(copy + 4, &crc, 4);
        assert_int_equal(frame_read(span_of(copy, b.size), 0, SEGMENT, PLACE, &frame), FRAME_INVALID);
        free(copy);
    }
    frame_buffer_dispose(&b);
}

/* A frame of its head alone has no room for padding. */
static void padding_lies_behind_the_head(void **state)
{
    (void)state;
    struct frame_buffer b;
    struct journal_frame frame;
    frame_buffer_init(&b);
    frame_begin(&b, FRAME_SNAPSHOT);
    assert_int_equal(frame_end(&b), 0);
    b.data[13] = 7;
    frames_place(&b, STORE, SEGMENT, PLACE);
    assert_int_equal(frame_read(span_of(b.data, b.size), STORE, SEGMENT, PLACE, &frame), FRAME_INVALID);
    frame_buffer_dispose(&b);
}

/* Refused by what it says: nobody reads so much for it. */
static void a_size_over_the_limit_is_refused_by_the_head_alone(void **state)
{
    (void)state;
    struct frame_buffer b;
    struct journal_frame frame;
    const struct section section = key_section();
    frame_buffer_init(&b);
    put_commit(&b, &section, 1);
    frames_place(&b, STORE, SEGMENT, PLACE);
    for (uint32_t over = 0; over < 2; over++) {
        uint32_t size = htole32(FRAME_MAX + FRAME_ALIGN * over);
        memcpy(b.data + 8, &size, 4);
        assert_int_equal(frame_read(span_of(b.data, b.size), STORE, SEGMENT, PLACE, &frame),
                         over ? FRAME_INVALID : FRAME_MORE);
    }
    frame_buffer_dispose(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_lie_behind_each_other_at_multiples_of_eight),
        cmocka_unit_test(a_dropped_frame_was_never_there),
        cmocka_unit_test(a_frame_over_the_limit_is_refused_and_the_others_stay),
        cmocka_unit_test(a_frame_is_as_large_as_the_limit_and_no_larger),
        cmocka_unit_test(memory_over_what_is_kept_is_given_back),
        cmocka_unit_test(names_have_a_limit_and_no_zero_bytes),
        cmocka_unit_test(frames_may_be_placed_again),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(a_part_of_a_frame_asks_for_more),
        cmocka_unit_test(a_frame_of_another_place_or_store_is_none),
        cmocka_unit_test(a_head_that_cannot_be_is_none_whatever_its_crc),
        cmocka_unit_test(padding_lies_behind_the_head),
        cmocka_unit_test(a_size_over_the_limit_is_refused_by_the_head_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
