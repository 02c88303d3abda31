/* The frames of a DATA packet: what is written is read, every prefix is refused, limits hold. */
#include "link/frames.h"

#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define LONG_TEXT                                                                      \
    "0123456789012345678901234567890123456789012345678901234567890123456789" /* 70 */  \
    "0123456789012345678901234567890123456789012345678901234567890123456789" /* 140 */ \
    "0123456789012345678901234567890123456789012345678901234567890123456789" /* 210 */ \
    "012345678901234567890123456789012345678901234"                          /* 255 */

static const uint64_t integers[] = {0, 1, 63, 64, 16383, 16384, (1u << 30) - 1, 1u << 30, VARINT_MAX};

/* Every prefix of `frame` is refused, in memory that ends where it ends. */
static void assert_prefixes_refused(const uint8_t *frame, size_t size)
{
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = malloc(cut + 1);
        struct frame out;
        memcpy(copy, frame, cut);
        assert_int_equal(frame_get(copy, copy + cut, &out), PE_MALFORMED);
        free(copy);
    }
}

static struct frame read_back(const uint8_t *frame, size_t size)
{
    struct frame out = {0};
    assert_true(size > 0);
    assert_int_equal(frame_get(frame, frame + size, &out), size);
    assert_prefixes_refused(frame, size);
    return out;
}

/* An encoder writes nothing into less room than it needs. */
#define ASSERT_NEEDS(size, put)                    \
    for (size_t room = 0; room < (size); room++) { \
        const uint8_t *end = buffer + room;        \
        assert_int_equal(put, 0);                  \
    }

static void numbers_are_read_as_written(void **state)
{
    (void)state;
    uint8_t buffer[FRAME_STORED_MAX_BYTES] = {0};
    for (size_t i = 0; i < ARRAY_SIZE(integers); i++) {
        uint64_t value = integers[i];
        uint32_t stream = (uint32_t)min_u64(value, FRAME_STREAM_MAX);
        struct frame_stored stored = {stream, value, VARINT_MAX - value};
        size_t size = frame_put_stored(buffer, buffer + sizeof buffer, &stored);
        struct frame out = read_back(buffer, size);
        assert_int_equal(out.type, FRAME_STORED);
        assert_true(out.stored.stream == stream && out.stored.stored == value);
        assert_true(out.stored.credit == VARINT_MAX - value);
        ASSERT_NEEDS(size, frame_put_stored(buffer, end, &stored));

        size = frame_put_credit(buffer, buffer + sizeof buffer, value);
        out = read_back(buffer, size);
        assert_int_equal(out.type, FRAME_CREDIT);
        assert_true(out.credit == value);

        struct frame_refused refused = {stream, REFUSED_GAP, value};
        size = frame_put_refused(buffer, buffer + sizeof buffer, &refused);
        out = read_back(buffer, size);
        assert_int_equal(out.type, FRAME_REFUSED);
        assert_true(out.refused.stream == stream && out.refused.stored == value);
        assert_true(out.refused.reason == REFUSED_GAP);
        ASSERT_NEEDS(size, frame_put_refused(buffer, end, &refused));
    }
}

static void an_open_is_read_as_written(void **state)
{
    (void)state;
    uint8_t buffer[FRAME_OPEN_MAX_BYTES] = {0};
    static const char *const names[] = {"", "a", "orders", LONG_TEXT};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct frame_open open = {.stream = 70000,
                                  .epoch = {1, 2, 3, [15] = 255},
                                  .base = VARINT_MAX,
                                  .first = 17,
                                  .asks = 300,
                                  .app = span_text(names[i]),
                                  .output = span_text("out"),
                                  .target = span_text(names[i]),
                                  .event = span_text(LONG_TEXT)};
        size_t size = frame_put_open(buffer, buffer + sizeof buffer, &open);
        struct frame out = read_back(buffer, size);
        assert_int_equal(out.type, FRAME_OPEN);
        assert_true(out.open.stream == 70000 && out.open.base == VARINT_MAX && out.open.first == 17 &&
                    out.open.asks == 300);
        assert_memory_equal(out.open.epoch, open.epoch, FRAME_EPOCH_BYTES);
        assert_true(span_is(out.open.app, names[i]) && span_is(out.open.output, "out"));
        assert_true(span_is(out.open.target, names[i]) && span_is(out.open.event, LONG_TEXT));
        ASSERT_NEEDS(size, frame_put_open(buffer, end, &open));
    }
}

static void a_close_is_read_as_written(void **state)
{
    (void)state;
    uint8_t buffer[FRAME_CLOSE_MAX_BYTES] = {0};
    size_t size = frame_put_close(buffer, buffer + sizeof buffer, CLOSE_MALFORMED, span_text(LONG_TEXT));
    struct frame out = read_back(buffer, size);
    assert_int_equal(out.type, FRAME_CLOSE);
    assert_true(out.close.reason == CLOSE_MALFORMED && span_is(out.close.text, LONG_TEXT));
    ASSERT_NEEDS(size, frame_put_close(buffer, end, CLOSE_MALFORMED, span_text(LONG_TEXT)));
}

static void pings_and_padding_are_single_bytes(void **state)
{
    (void)state;
    uint8_t buffer[8] = {0};
    struct frame out;
    assert_int_equal(frame_put_ping(buffer, buffer + 1), 1);
    assert_int_equal(frame_put_ping(buffer, buffer), 0);
    assert_int_equal(frame_put_padding(buffer + 1, buffer + 8, 7), 7);
    assert_int_equal(frame_put_padding(buffer + 1, buffer + 8, 8), 0);
    assert_int_equal(frame_get(buffer, buffer + 8, &out), 1);
    assert_int_equal(out.type, FRAME_PING);
    assert_int_equal(frame_get(buffer + 1, buffer + 8, &out), 7);
    assert_int_equal(out.type, FRAME_PADDING);
    assert_true(!frame_elicits(FRAME_PADDING) && !frame_elicits(FRAME_ACK) && !frame_elicits(FRAME_CLOSE));
    assert_true(frame_elicits(FRAME_PING) && frame_elicits(FRAME_STORED) && frame_elicits(FRAME_RECORDS));
}

/* Wherever the room ends, what is fitted fits, and one byte more would not. */
static void records_fill_their_room(void **state)
{
    (void)state;
    static uint8_t buffer[20000] = {0};
    for (size_t i = 0; i < ARRAY_SIZE(integers) - 1; i++) {
        uint32_t stream = (uint32_t)min_u64(integers[i], FRAME_STREAM_MAX);
        for (size_t room = 0; room < sizeof buffer; room += room < 200 || room > 16300 ? 1 : 97) {
            size_t fit = frame_records_fit(room, stream, integers[i], 100000);
            if (fit == 0) {
                assert_true(room < 1 + varint_size(stream) + varint_size(integers[i]) + 2);
                continue;
            }
            size_t head = frame_put_records_head(buffer, stream, integers[i], fit);
            assert_true(head + fit <= room && head <= FRAME_RECORDS_MAX_HEAD);
            assert_true(head - varint_size(fit) + varint_size(fit + 1) + fit + 1 > room);
            struct frame out;
            assert_int_equal(frame_get(buffer, buffer + head + fit, &out), head + fit);
            assert_true(out.records.stream == stream && out.records.offset == integers[i]);
            assert_true(out.records.bytes.size == fit && out.records.bytes.data == buffer + head);
        }
        assert_int_equal(frame_records_fit(1000, stream, integers[i], 10), 10);
        assert_int_equal(frame_records_fit(1000, stream, integers[i], 0), 0);
    }
    size_t head = frame_put_records_head(buffer, 5, 70, 9);
    assert_prefixes_refused(buffer, head + 9);
}

/* --- ACK --- */

static void assert_ack(const struct ranges *set, size_t room, uint32_t expect)
{
    uint8_t buffer[FRAME_ACK_MAX_BYTES] = {0};
    struct range out[FRAME_ACK_RANGES];
    size_t size = frame_put_ack(buffer, buffer + room, set, 1234);
    struct frame frame = read_back(buffer, size);
    assert_int_equal(frame.type, FRAME_ACK);
    assert_true(frame.ack.delay_us == 1234 && frame.ack.ranges == expect);
    assert_true(frame.ack.largest == set->item[set->count - 1].end - 1);
    assert_int_equal(frame_ack_ranges(&frame.ack, out), expect);
    for (uint32_t i = 0; i < expect; i++) {
        assert_true(out[i].start == set->item[set->count - 1 - i].start);
        assert_true(out[i].end == set->item[set->count - 1 - i].end);
    }
}

static void an_ack_names_the_newest_ranges(void **state)
{
    (void)state;
    struct range memory[FRAME_ACK_RANGES + 10];
    struct ranges set;
    struct random random = {1};
    for (uint32_t count = 1; count <= ARRAY_SIZE(memory); count++) {
        uint64_t at = count % 2 ? 0 : VARINT_MAX / 2;
        ranges_init(&set, memory, ARRAY_SIZE(memory));
        for (uint32_t i = 0; i < count; i++) {
            uint64_t start = at + 1 + random_below(&random, 100000),
                     end = start + 1 + random_below(&random, 70);
            assert_int_equal(ranges_add(&set, i == 0 ? at : start, end), 0);
            at = end;
        }
        assert_ack(&set, FRAME_ACK_MAX_BYTES, count < FRAME_ACK_RANGES ? count : FRAME_ACK_RANGES);
    }
}

static void an_ack_has_as_many_ranges_as_fit(void **state)
{
    (void)state;
    struct range memory[8] = {{0, 1}, {3, 4}, {6, 7}, {9, 10}, {12, 13}};
    struct ranges set = {memory, 5, 8};
    uint8_t buffer[32] = {0};
    /* type, largest, delay (2 bytes), count, first range; then two bytes a range */
    for (size_t room = 0; room < 6; room++)
        assert_int_equal(frame_put_ack(buffer, buffer + room, &set, 1234), 0);
    for (uint32_t ranges = 1; ranges <= 5; ranges++) {
        assert_ack(&set, 6 + 2 * (ranges - 1), ranges);
        assert_ack(&set, 6 + 2 * (ranges - 1) + (ranges < 5), ranges);
    }
}

static void what_cannot_be_is_malformed(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[40];
        size_t size;
    } cases[] = {
        {{9}, 1},                                              /* no such type */
        {{0x40, 9}, 2},                                        /* nor in a longer form */
        {{FRAME_ACK, 5, 0, 0, 6}, 5},                          /* the first range runs below 0 */
        {{FRAME_ACK, 5, 0, 1, 5, 0, 0}, 7},                    /* nothing is left below 0 */
        {{FRAME_ACK, 9, 0, 1, 4, 4, 0}, 7},                    /* the gap runs below 0: 5 - 4 - 2 */
        {{FRAME_ACK, 9, 0, 1, 4, 3, 1}, 7},                    /* the range does: 5 - 3 - 2 = 0 */
        {{FRAME_STORED, 0xc0, 0, 0, 1, 0, 0, 0, 0, 1, 1}, 11}, /* stream 2^32 */
        {{FRAME_RECORDS, 0, 0xff, 255, 255, 255, 255, 255, 255, 255, 1, 'x'}, 12}, /* ends past 2^62 - 1 */
        {{FRAME_CLOSE, 0, 0x41, 0}, 4},                                            /* a text of 256 bytes */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct frame out;
        assert_int_equal(frame_get(cases[i].bytes, cases[i].bytes + cases[i].size, &out), PE_MALFORMED);
    }
    static const uint8_t lowest[] = {FRAME_ACK, 9, 0, 1, 4, 3, 0};
    struct frame out;
    assert_int_equal(frame_get(lowest, lowest + sizeof lowest, &out), sizeof lowest);
}

static void an_ack_of_65_ranges_is_malformed(void **state)
{
    (void)state;
    uint8_t frame[7 + 2 * FRAME_ACK_RANGES] = {FRAME_ACK, 0x41, 0, 0, 0x40, FRAME_ACK_RANGES - 1, 0};
    struct frame out; /* single packets, from 256 downwards: gaps and runs of 0 */
    assert_int_equal(frame_get(frame, frame + sizeof frame, &out), sizeof frame - 2);
    assert_int_equal(out.ack.ranges, FRAME_ACK_RANGES);
    frame[5]++;
    assert_int_equal(frame_get(frame, frame + sizeof frame, &out), PE_MALFORMED);
}

static void longer_forms_of_integers_are_read(void **state)
{
    (void)state;
    static const uint8_t ping[] = {0x40, 1}, credit[] = {0x80, 0, 0, 6, 0xc0, 0, 0, 0, 0, 0, 0, 7};
    struct frame out;
    assert_int_equal(frame_get(ping, ping + 2, &out), 2);
    assert_int_equal(out.type, FRAME_PING);
    assert_int_equal(frame_get(credit, credit + sizeof credit, &out), sizeof credit);
    assert_true(out.type == FRAME_CREDIT && out.credit == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_as_written),
        cmocka_unit_test(an_open_is_read_as_written),
        cmocka_unit_test(a_close_is_read_as_written),
        cmocka_unit_test(pings_and_padding_are_single_bytes),
        cmocka_unit_test(records_fill_their_room),
        cmocka_unit_test(an_ack_names_the_newest_ranges),
        cmocka_unit_test(an_ack_has_as_many_ranges_as_fit),
        cmocka_unit_test(what_cannot_be_is_malformed),
        cmocka_unit_test(an_ack_of_65_ranges_is_malformed),
        cmocka_unit_test(longer_forms_of_integers_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
