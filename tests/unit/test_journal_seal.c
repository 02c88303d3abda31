/* HEADER and SEAL, the frames about a segment. */
#include "tests/unit/journal_frames.h"

#include <stdio.h>

/* --- HEADER --- */

static void a_header_is_read_as_it_was_written(void **state)
{
    (void)state;
    static const struct journal_place seals[] = {{1, 8}, {2, UINT64_MAX - 7}, {9, 4096}};
    for (uint32_t count = 0; count <= ARRAY_SIZE(seals); count++) {
        struct frame_buffer b;
        struct header header;
        frame_buffer_init(&b);
        assert_int_equal(header_write(&b, 1234, seals, count), 0);
        frames_place(&b, STORE, SEGMENT, PLACE);
        struct span payload = only_frame(&b).payload;
        assert_int_equal(header_read(payload, &header), 0);
        assert_int_equal(header.version, JOURNAL_VERSION);
        assert_int_equal(header.created_ms, 1234);
        assert_int_equal(header.seal_count, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(header_seal(&header, i).segment, seals[i].segment);
            assert_int_equal(header_seal(&header, i).offset, seals[i].offset);
        }
        for (size_t size = 0; size < payload.size; size++) {
            uint8_t *part = copy_of(span_of(payload.data, size));
            assert_int_equal(header_read(span_of(part, size), &header), PE_JOURNAL);
            free(part);
        }
        frame_buffer_dispose(&b);
    }
}

static void a_newer_version_is_refused_whatever_follows(void **state)
{
    (void)state;
    struct header header;
    for (size_t size = 4; size < 40; size++) {
        uint8_t bytes[40] = {JOURNAL_VERSION + 1};
        assert_int_equal(header_read(span_of(bytes, size), &header), PE_JOURNAL_VERSION);
        assert_int_equal(header.version, JOURNAL_VERSION + 1);
    }
    static const uint8_t zeros[16];
    assert_int_equal(header_read(span_of(zeros, sizeof zeros), &header), PE_JOURNAL);
}

/* --- SEAL --- */

static void note_commit(struct seal *seal, enum frame_kind kind, const char *app, uint64_t sequence,
                        uint64_t offset, uint64_t batch, const struct section *sections, unsigned count)
{
    struct frame_buffer b;
    frame_buffer_init(&b);
    commit_begin(&b, kind, span_text(app), sequence);
    for (unsigned i = 0; i < count; i++)
        commit_put(&b, &sections[i]);
    assert_int_equal(commit_end(&b, sequence), 0);
    frames_place(&b, STORE, SEGMENT, offset);
    struct journal_frame frame;
    size_t at = 0;
    assert_true(frames_next(&b, &at, &frame));
    frame.batch = batch;
    assert_int_equal(seal_note(seal, &frame), 0);
    frame_buffer_dispose(&b);
}

static void make_seal(struct seal *seal)
{
    struct section first[] = {events_section(false), sends_section("x", 1), sends_section("y", 10)};
    const struct section second[] = {sends_section("x", 4), dead_section(0, span_text("r")),
                                     dead_section(0, none), dead_section(1, none)};
    seal_init(seal);
    note_commit(seal, FRAME_COMMIT, "a", 5, 200, 104, first, 3);
    note_commit(seal, FRAME_COMMIT, "b", 1, 400, 104, first + 1, 1);
    note_commit(seal, FRAME_SNAPSHOT, "a", 5, 600, 600, NULL, 0);
    note_commit(seal, FRAME_SNAPSHOT, "c", 0, 800, 600, NULL, 0);
    first[0].events.time_ms += 5;
    note_commit(seal, FRAME_COMMIT, "a", 6, 1000, 1000, first, 1);
    note_commit(seal, FRAME_COMMIT, "a", 7, 1200, 1000, second, 4);
    note_commit(seal, FRAME_SNAPSHOT, "a", 7, 1400, 1400, NULL, 0);
    assert_int_equal(seal_add_hole(seal, 3000, 16), 0);
    assert_int_equal(seal_add_hole(seal, 4000, 8), 0);
}

static void check_seal(const struct seal *seal)
{
    const uint64_t time_ms = events_section(false).events.time_ms;
    const struct seal_app *a = seal_find_app(seal, span_text("a")), *b = seal_find_app(seal, span_text("b")),
                          *c = seal_find_app(seal, span_text("c"));
    assert_int_equal(seal->app_count, 3);
    assert_null(seal_find_app(seal, span_text("aa")));
    assert_null(seal_find_app(seal, none));
    assert_true(a && a->first_sequence == 5 && a->last_sequence == 7);
    assert_true(a->snapshot_offset == 1400 && a->dead == 2 && a->output_count == 2);
    assert_true(a->first_ms == time_ms && a->last_ms == time_ms + 5);
    assert_string_equal(a->name, "a");
    assert_true(b && b->first_sequence == 1 && b->last_sequence == 1 && b->snapshot_offset == 0);
    assert_true(b->first_ms == 0 && b->last_ms == 0 && b->dead == 0);
    assert_true(c && c->first_sequence == 0 && c->last_sequence == 0 && c->snapshot_offset == 800);
    const struct seal_output *x = seal_find_output(a, span_text("x")),
                             *y = seal_find_output(a, span_text("y"));
    assert_true(x && x->first == 1 && x->last == 6 && x->first_offset == 104);
    assert_int_equal(x->bytes, 2 * sizeof records);
    assert_true(y && y->first == 10 && y->last == 12 && y->bytes == sizeof records);
    assert_string_equal(y->name, "y");
    assert_null(seal_find_output(c, span_text("x")));
    assert_int_equal(seal->hole_count, 2);
    assert_true(seal->holes[0].offset == 3000 && seal->holes[1].size == 8);
}

static void a_seal_says_what_is_in_a_segment(void **state)
{
    (void)state;
    struct seal seal, read;
    struct frame_buffer b;
    make_seal(&seal);
    check_seal(&seal);
    frame_buffer_init(&b);
    assert_int_equal(seal_write(&b, &seal), 0);
    frames_place(&b, STORE, SEGMENT, PLACE);
    struct span payload = only_frame(&b).payload;
    seal_init(&read);
    assert_int_equal(seal_read(payload, &read), 0);
    check_seal(&read);
    seal_dispose(&read);
    for (size_t size = 0; size < payload.size; size++) {
        uint8_t *part = copy_of(span_of(payload.data, size));
        assert_int_equal(seal_read(span_of(part, size), &read), PE_JOURNAL);
        assert_null(read.apps);
        free(part);
    }
    frame_buffer_dispose(&b);
    seal_dispose(&seal);
}

static void many_apps_and_outputs_are_found_in_any_order(void **state)
{
    (void)state;
    struct seal seal;
    seal_init(&seal);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 40; i++) {
            char app[16], output[16];
            snprintf(app, sizeof app, "app%u", round == 1 ? 39 - i : i);
            snprintf(output, sizeof output, "out%u", i % 7);
            struct section section = sends_section(output, 1 + 3 * round);
            note_commit(&seal, FRAME_COMMIT, app, 1 + round, 1000 * round + 8, 1000 * round, &section, 1);
        }
    }
    assert_int_equal(seal.app_count, 40);
    for (unsigned i = 0; i < 40; i++) {
        char app[16];
        snprintf(app, sizeof app, "app%u", i);
        const struct seal_app *a = seal_find_app(&seal, span_text(app));
        assert_true(a && a->first_sequence == 1 && a->last_sequence == 3);
        assert_int_equal(a->output_count, i % 7 == (39 - i) % 7 ? 1 : 2);
    }
    seal_dispose(&seal);
}

static void what_is_known_is_noted_without_memory(void **state)
{
    (void)state;
    struct seal seal;
    make_seal(&seal);
    const struct seal_app *apps = seal.apps;
    const struct seal_output *outputs = seal.apps[0].outputs;
    const uint32_t room = seal.app_room;
    const struct section section = sends_section("y", 13);
    for (uint64_t n = 8; n < 1000; n++)
        note_commit(&seal, FRAME_COMMIT, "a", n, 2000, 2000, &section, 1);
    assert_ptr_equal(seal.apps, apps);
    assert_ptr_equal(seal.apps[0].outputs, outputs);
    assert_int_equal(seal.app_room, room);
    assert_int_equal(seal.apps[0].output_count, 2);
    seal_dispose(&seal);
}

static struct seal_output wrong_output(uint64_t first_offset, uint64_t first, uint64_t last)
{
    return (struct seal_output){"o", 1, first_offset, first, last, 1};
}

static void a_seal_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct seal_output outputs[] = {wrong_output(8, 1, 1), wrong_output(9, 1, 1), wrong_output(8, 0, 1),
                                    wrong_output(8, 2, 1), wrong_output(8, 1, VARINT_MAX + 1)};
    for (size_t i = 0; i <= ARRAY_SIZE(outputs); i++) {
        struct seal_app app = {.name = "a", .name_size = 1, .first_sequence = 1, .last_sequence = 1};
        app.output_count = i < ARRAY_SIZE(outputs);
        app.outputs = &outputs[i < ARRAY_SIZE(outputs) ? i : 0];
        app.first_sequence += app.output_count == 0; /* the last case: it is behind the last one */
        const struct seal seal = {.app_count = 1, .apps = &app};
        struct seal read;
        struct frame_buffer b;
        frame_buffer_init(&b);
        assert_int_equal(seal_write(&b, &seal), 0);
        frames_place(&b, STORE, SEGMENT, PLACE);
        seal_init(&read);
        assert_int_equal(seal_read(only_frame(&b).payload, &read), i == 0 ? 0 : PE_JOURNAL);
        seal_dispose(&read);
        frame_buffer_dispose(&b);
    }
}

static void nothing_lies_behind_what_is_stated(void **state)
{
    (void)state;
    static const uint8_t seal_and_a_byte[9], header_and_a_byte[17] = {JOURNAL_VERSION};
    struct seal seal;
    struct header header;
    seal_init(&seal);
    assert_int_equal(seal_read(span_of(seal_and_a_byte, 8), &seal), 0);
    assert_int_equal(seal_read(span_of(seal_and_a_byte, 9), &seal), PE_JOURNAL);
    assert_int_equal(header_read(span_of(header_and_a_byte, 16), &header), 0);
    assert_int_equal(header_read(span_of(header_and_a_byte, 17), &header), PE_JOURNAL);
}

/* Millions are stated, nothing is there: no memory is asked for. */
static void a_seal_that_states_much_is_refused_at_once(void **state)
{
    (void)state;
    static const uint8_t bytes[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct seal seal;
    seal_init(&seal);
    assert_int_equal(seal_read(span_of(bytes, sizeof bytes), &seal), PE_JOURNAL);
    assert_null(seal.apps);
}

static void a_commit_that_is_none_is_not_noted(void **state)
{
    (void)state;
    struct seal seal;
    struct journal_frame frame = {.kind = FRAME_COMMIT, .payload = span_text("\1a")};
    seal_init(&seal);
    assert_int_equal(seal_note(&seal, &frame), PE_JOURNAL);
    assert_int_equal(seal.app_count, 0);
    static const uint8_t sequence_zero[18] = {1, 'a'};
    frame.payload = span_of(sequence_zero, sizeof sequence_zero);
    assert_int_equal(seal_note(&seal, &frame), PE_JOURNAL);
    static const uint8_t bad_section[19] = {1, 'a', 1, [18] = 99};
    frame.payload = span_of(bad_section, sizeof bad_section);
    assert_int_equal(seal_note(&seal, &frame), PE_JOURNAL);
    seal_dispose(&seal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_read_as_it_was_written),
        cmocka_unit_test(a_newer_version_is_refused_whatever_follows),
        cmocka_unit_test(a_seal_says_what_is_in_a_segment),
        cmocka_unit_test(many_apps_and_outputs_are_found_in_any_order),
        cmocka_unit_test(what_is_known_is_noted_without_memory),
        cmocka_unit_test(a_seal_that_cannot_be_is_refused),
        cmocka_unit_test(nothing_lies_behind_what_is_stated),
        cmocka_unit_test(a_seal_that_states_much_is_refused_at_once),
        cmocka_unit_test(a_commit_that_is_none_is_not_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
