/* What frames say: every section is read as it was written, and what is none is refused. */
#include "tests/unit/journal_frames.h"

static void expect_events(const struct section_events *a, const struct section_events *b)
{
    expect_span(a->event, b->event);
    expect_span(a->source, b->source);
    expect_span(a->bytes, b->bytes);
    assert_int_equal(a->first, b->first);
    assert_int_equal(a->time_ms, b->time_ms);
    assert_int_equal(a->records, b->records);
    assert_int_equal(a->bare, b->bare);
}

static void expect_cursor(const struct section_cursor *a, const struct section_cursor *b)
{
    expect_span(a->identity, b->identity);
    assert_memory_equal(a->epoch, b->epoch, JOURNAL_EPOCH_BYTES);
    assert_int_equal(a->stored, b->stored);
    assert_int_equal(a->has_retired, b->has_retired);
    assert_int_equal(a->retired_count, b->retired_count);
    assert_memory_equal(a->retired, b->retired, sizeof a->retired);
}

static void expect_dead(const struct section_dead *a, const struct section_dead *b)
{
    expect_span(a->output, b->output);
    expect_span(a->reason, b->reason);
    expect_span(a->record, b->record);
    assert_int_equal(a->number, b->number);
    assert_int_equal(a->time_ms, b->time_ms);
    assert_int_equal(a->segment, b->segment);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->bytes, b->bytes);
}

static void expect_fare(const struct section_fare *a, const struct section_fare *b)
{
    expect_span(a->output, b->output);
    expect_span(a->reason, b->reason);
    assert_true(a->disabled == b->disabled && a->by_command == b->by_command && a->said == b->said);
    assert_true(a->failures == b->failures && a->since_ms == b->since_ms);
    assert_true(a->configuration == b->configuration && a->status == b->status);
}

static void expect_section(const struct section *a, const struct section *b)
{
    assert_int_equal(a->type, b->type);
    switch (a->type) {
    case SECTION_EVENTS:
        expect_events(&a->events, &b->events);
        break;
    case SECTION_SENDS:
        expect_span(a->sends.output, b->sends.output);
        expect_span(a->sends.bytes, b->sends.bytes);
        assert_int_equal(a->sends.first, b->sends.first);
        assert_int_equal(a->sends.records, b->sends.records);
        break;
    case SECTION_CURSOR:
        expect_cursor(&a->cursor, &b->cursor);
        break;
    case SECTION_KEY:
        assert_memory_equal(a->key.digest, b->key.digest, JOURNAL_DIGEST_BYTES);
        assert_int_equal(a->key.stored, b->key.stored);
        break;
    case SECTION_OUTPUT:
        expect_span(a->output.output, b->output.output);
        assert_int_equal(a->output.sent, b->output.sent);
        assert_int_equal(a->output.stored, b->output.stored);
        assert_int_equal(a->output.reach, b->output.reach);
        assert_memory_equal(a->output.epoch, b->output.epoch, JOURNAL_EPOCH_BYTES);
        break;
    case SECTION_STATE:
        expect_span(a->state, b->state);
        break;
    case SECTION_DEAD:
        expect_dead(&a->dead, &b->dead);
        break;
    case SECTION_DEAD_GONE:
        expect_span(a->dead_gone.output, b->dead_gone.output);
        assert_int_equal(a->dead_gone.number, b->dead_gone.number);
        break;
    case SECTION_FARE:
        expect_fare(&a->fare, &b->fare);
        break;
    }
}

static void every_section_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct frame_buffer b;
    struct section sections[SECTIONS], section;
    make_sections(sections);
    frame_buffer_init(&b);
    put_commit(&b, sections, SECTIONS);
    frames_place(&b, STORE, SEGMENT, PLACE);
    struct commit_head head;
    struct span rest;
    assert_int_equal(commit_read_head(only_frame(&b).payload, &head, &rest), 0);
    expect_span(head.app, span_text("counter"));
    assert_int_equal(head.sequence, 12);
    assert_int_equal(head.stored, 99);
    for (unsigned i = 0; i < SECTIONS; i++) {
        assert_int_equal(commit_read_section(&rest, &section), 1);
        expect_section(&section, &sections[i]);
        assert_true(section_records_whole(&section));
    }
    assert_int_equal(commit_read_section(&rest, &section), 0);
    frame_buffer_dispose(&b);
}

/* As every section is longer than each of its beginnings says, none of those is one. */
static void the_beginning_of_a_section_is_none(void **state)
{
    (void)state;
    struct section sections[SECTIONS], section;
    make_sections(sections);
    for (unsigned i = 0; i < SECTIONS; i++) {
        struct frame_buffer b;
        frame_buffer_init(&b);
        frame_begin(&b, FRAME_COMMIT);
        commit_put(&b, &sections[i]);
        size_t whole = frame_payload_size(&b);
        for (size_t size = 1; size <= whole; size++) {
            uint8_t *part = copy_of(span_of(b.data + FRAME_HEAD, size));
            struct span rest = span_of(part, size);
            assert_int_equal(commit_read_section(&rest, &section), size < whole ? PE_JOURNAL : 1);
            assert_int_equal(rest.size, size < whole ? size : 0);
            free(part);
        }
        frame_buffer_dispose(&b);
    }
}

static void a_section_type_that_is_unknown_is_none(void **state)
{
    (void)state;
    static const uint8_t zeros[100];
    for (unsigned type = 0; type < 256; type++) {
        uint8_t bytes[100];
        struct section section;
        memcpy(bytes, zeros, sizeof bytes);
        bytes[0] = (uint8_t)type;
        struct span rest = span_of(bytes, sizeof bytes);
        int result = commit_read_section(&rest, &section);
        if (type < SECTION_EVENTS || type > SECTION_FARE)
            assert_int_equal(result, PE_JOURNAL);
    }
}

/* The flags are in the byte behind the name. */
static void a_fare_that_contradicts_itself_is_none(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags < 256; flags++) {
        struct frame_buffer b;
        struct section fare = {.type = SECTION_FARE, .fare.output = span_text("o")};
        frame_buffer_init(&b);
        frame_begin(&b, FRAME_COMMIT);
        commit_put(&b, &fare);
        b.data[FRAME_HEAD + 3] = (uint8_t)flags;
        struct span rest = span_of(b.data + FRAME_HEAD, frame_payload_size(&b));
        bool possible = flags < 8 && (flags == 0 || (flags & 1));
        assert_int_equal(commit_read_section(&rest, &fare), possible ? 1 : PE_JOURNAL);
        frame_buffer_dispose(&b);
    }
}

static void sends_of_two_pieces_are_one_run(void **state)
{
    (void)state;
    struct frame_buffer b;
    struct section section;
    struct section_sends sends = sends_section("next", 5).sends;
    frame_buffer_init(&b);
    for (size_t cut = 0; cut <= sizeof records; cut++) {
        sends.bytes = span_of(records, cut);
        frame_begin(&b, FRAME_COMMIT);
        commit_put_sends(&b, &sends, span_of(records + cut, sizeof records - cut));
        struct span rest = span_of(b.data + FRAME_HEAD, frame_payload_size(&b));
        assert_int_equal(commit_read_section(&rest, &section), 1);
        expect_span(section.sends.bytes, span_of(records, sizeof records));
        assert_true(section_records_whole(&section));
        frame_drop(&b);
    }
    frame_buffer_dispose(&b);
}

static void records_are_whole_and_as_many_as_stated_or_it_is_said(void **state)
{
    (void)state;
    struct section sections[] = {sends_section("next", 1), events_section(false)};
    for (unsigned i = 0; i < 2; i++) {
        struct section *section = &sections[i];
        uint64_t *count = i == 0 ? &section->sends.records : &section->events.records;
        struct span *bytes = i == 0 ? &section->sends.bytes : &section->events.bytes;
        for (uint64_t stated = 0; stated < 6; stated++) {
            *count = stated;
            assert_int_equal(section_records_whole(section), stated == 3);
        }
        *count = 3;
        for (bytes->size = 0; bytes->size < sizeof records; bytes->size++)
            assert_false(section_records_whole(section));
    }
}

/* Numbers that cannot be, in frames whose CRC is right. */
static void numbers_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, records;
        bool possible;
    } runs[] = {{1, 6, true},           {1, 7, false},          {1, 0, false},
                {0, 1, false},          {VARINT_MAX, 1, false}, {VARINT_MAX - 1, 1, true},
                {UINT64_MAX, 1, false}, {1, UINT64_MAX, false}};
    struct frame_buffer b;
    struct section section;
    frame_buffer_init(&b);
    for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
        frame_begin(&b, FRAME_COMMIT);
        frame_put_u8(&b, SECTION_SENDS);
        frame_put_name(&b, span_text("o"));
        frame_put_u64(&b, runs[i].first);
        frame_put_u64(&b, runs[i].records);
        frame_put_u32(&b, sizeof records);
        frame_put(&b, records, sizeof records);
        struct span rest = span_of(b.data + FRAME_HEAD, frame_payload_size(&b));
        assert_int_equal(commit_read_section(&rest, &section), runs[i].possible ? 1 : PE_JOURNAL);
        frame_drop(&b);
    }
    static const uint64_t outputs[][3] = {
        {5, 6, 0}, {VARINT_MAX + 1, 6, 0}, {6, 5, VARINT_MAX + 1}}; /* sent, stored, reach */
    static const uint8_t epoch[JOURNAL_EPOCH_BYTES];
    for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
        frame_begin(&b, FRAME_COMMIT);
        frame_put_u8(&b, SECTION_OUTPUT);
        frame_put_name(&b, span_text("o"));
        frame_put_u64(&b, outputs[i][0]);
        frame_put_u64(&b, outputs[i][1]);
        frame_put_u64(&b, outputs[i][2]);
        frame_put(&b, epoch, sizeof epoch);
        struct span rest = span_of(b.data + FRAME_HEAD, frame_payload_size(&b));
        assert_int_equal(commit_read_section(&rest, &section), PE_JOURNAL);
        frame_drop(&b);
    }
    frame_buffer_dispose(&b);
}

static int read_one(struct frame_buffer *b)
{
    struct section section;
    struct span rest = span_of(b->data + FRAME_HEAD, frame_payload_size(b));
    int result = commit_read_section(&rest, &section);
    frame_drop(b);
    return result;
}

static void put_events_fields(struct frame_buffer *b, uint8_t flags, uint64_t count, uint32_t size)
{
    frame_begin(b, FRAME_COMMIT);
    frame_put_u8(b, SECTION_EVENTS);
    frame_put_u8(b, flags);
    frame_put_name(b, span_text("e"));
    frame_put_name(b, none);
    frame_put_u64(b, 0);
    frame_put_u64(b, 0);
    frame_put_u64(b, count);
    frame_put_u32(b, size);
    frame_put(b, records, size);
}

static void events_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint8_t flags;
        uint64_t count;
        uint32_t size;
        bool possible;
    } cases[] = {{0, 3, 6, true},  {0, 7, 6, false}, {0, 0, 0, false}, {1, 9, 0, true},
                 {1, 3, 6, false}, {2, 3, 6, false}, {1, 0, 0, false}, {0, VARINT_MAX + 1, 6, false}};
    struct frame_buffer b;
    frame_buffer_init(&b);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        put_events_fields(&b, cases[i].flags, cases[i].count, cases[i].size);
        assert_int_equal(read_one(&b), cases[i].possible ? 1 : PE_JOURNAL);
    }
    frame_buffer_dispose(&b);
}

/* A name as it lies in a frame, written by hand. */
static void put_dead_gone(struct frame_buffer *b, const uint8_t *name, uint8_t size)
{
    frame_begin(b, FRAME_COMMIT);
    frame_put_u8(b, SECTION_DEAD_GONE);
    frame_put_u8(b, size);
    frame_put(b, name, size);
    frame_put_u64(b, 1);
}

static void names_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct frame_buffer b;
    uint8_t name[JOURNAL_NAME_MAX + 1];
    memset(name, 'n', sizeof name);
    frame_buffer_init(&b);
    put_dead_gone(&b, name, JOURNAL_NAME_MAX);
    assert_int_equal(read_one(&b), 1);
    put_dead_gone(&b, name, JOURNAL_NAME_MAX + 1);
    assert_int_equal(read_one(&b), PE_JOURNAL);
    put_dead_gone(&b, name, 0);
    assert_int_equal(read_one(&b), PE_JOURNAL);
    name[3] = 0;
    put_dead_gone(&b, name, 10);
    assert_int_equal(read_one(&b), PE_JOURNAL);
    frame_buffer_dispose(&b);
}

static void a_cursor_of_too_many_epochs_is_refused(void **state)
{
    (void)state;
    static const uint8_t epochs[JOURNAL_EPOCH_BYTES * (JOURNAL_RETIRED_MAX + 2)];
    struct frame_buffer b;
    frame_buffer_init(&b);
    for (uint8_t count = JOURNAL_RETIRED_MAX; count <= JOURNAL_RETIRED_MAX + 1; count++) {
        frame_begin(&b, FRAME_COMMIT);
        frame_put_u8(&b, SECTION_CURSOR);
        frame_put_name(&b, span_text("k"));
        frame_put(&b, epochs, JOURNAL_EPOCH_BYTES);
        frame_put_u64(&b, 1);
        frame_put_u8(&b, count);
        frame_put(&b, epochs, (size_t)count * JOURNAL_EPOCH_BYTES);
        assert_int_equal(read_one(&b), count > JOURNAL_RETIRED_MAX ? PE_JOURNAL : 1);
    }
    frame_buffer_dispose(&b);
}

/* A dead record lies here or in another segment, not in both. */
static void a_dead_record_that_lies_twice_is_refused(void **state)
{
    (void)state;
    struct frame_buffer b;
    struct section section = dead_section(5, span_text("record"));
    frame_buffer_init(&b);
    frame_begin(&b, FRAME_COMMIT);
    commit_put(&b, &section);
    assert_int_equal(read_one(&b), PE_JOURNAL);
    frame_buffer_dispose(&b);
}

static void a_reason_that_is_too_long_is_cut(void **state)
{
    (void)state;
    struct frame_buffer b;
    char reason[JOURNAL_NAME_MAX + 50];
    memset(reason, 'r', sizeof reason);
    struct section section = dead_section(0, none), read;
    section.dead.reason = span_of(reason, sizeof reason);
    frame_buffer_init(&b);
    frame_begin(&b, FRAME_COMMIT);
    commit_put(&b, &section);
    struct span rest = span_of(b.data + FRAME_HEAD, frame_payload_size(&b));
    assert_int_equal(commit_read_section(&rest, &read), 1);
    assert_int_equal(read.dead.reason.size, JOURNAL_NAME_MAX);
    frame_buffer_dispose(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_section_is_read_as_it_was_written),
        cmocka_unit_test(the_beginning_of_a_section_is_none),
        cmocka_unit_test(a_section_type_that_is_unknown_is_none),
        cmocka_unit_test(a_fare_that_contradicts_itself_is_none),
        cmocka_unit_test(sends_of_two_pieces_are_one_run),
        cmocka_unit_test(records_are_whole_and_as_many_as_stated_or_it_is_said),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(events_that_cannot_be_are_refused),
        cmocka_unit_test(names_that_cannot_be_are_refused),
        cmocka_unit_test(a_cursor_of_too_many_epochs_is_refused),
        cmocka_unit_test(a_dead_record_that_lies_twice_is_refused),
        cmocka_unit_test(a_reason_that_is_too_long_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
