/* What one unit of a journaled turn may send, and what becomes of the memory that it took (host/turn.h). */
#include "host/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define OUTPUTS      3
#define QUEUE_BYTES  (64u << 10)
#define RECORD_BYTES 16000u
#define FRAMED_BYTES (RECORD_BYTES + 2)
#define KEPT_BYTES   (256u << 10) /* what a backlog may keep from turn to turn */

static const uint8_t record[RECORD_BYTES];

struct rig {
    struct outlet outlets[OUTPUTS];
    struct backlog backlogs[OUTPUTS];
    struct pure_turn turn;
};

static void rig_open(struct rig *r, uint64_t queue, uint64_t limit)
{
    assert_int_equal(turn_init(&r->turn, OUTPUTS), 0);
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        assert_int_equal(outlet_init(&r->outlets[i], "test", "a", "out", queue, RECORD_BYTES), 0);
        struct backlog_options options = {.outlet = &r->outlets[i], .limit = limit};
        assert_int_equal(backlog_init(&r->backlogs[i], &options), 0);
        turn_join(&r->turn, i, &r->outlets[i], &r->backlogs[i]);
    }
    turn_begin_unit(&r->turn);
}

static void rig_close(struct rig *r)
{
    turn_dispose(&r->turn);
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        backlog_dispose(&r->backlogs[i]);
        outlet_dispose(&r->outlets[i]);
    }
}

/* Sends to the outputs in turn, but no more than `most` records. How many of them were taken. */
static uint64_t send_records(struct rig *r, uint64_t most)
{
    uint64_t taken = 0;
    while (taken < most && pure_send(&r->turn, taken % OUTPUTS, record, RECORD_BYTES) == 0)
        taken++;
    return taken;
}

static uint64_t held(const struct rig *r)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < OUTPUTS; i++)
        bytes += r->outlets[i].queue.tail.bytes + r->backlogs[i].spill_size;
    return bytes;
}

static uint64_t grown(const struct rig *r)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < OUTPUTS; i++)
        bytes += r->backlogs[i].spill_room;
    return bytes;
}

static void a_unit_sends_what_queues_take_and_16_mib_more_to_all_outputs_together(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, QUEUE_BYTES, UINT64_C(1) << 30);
    uint64_t most = (OUTPUTS * QUEUE_BYTES + UNIT_SENT_BYTES) / FRAMED_BYTES;
    assert_int_equal(send_records(&r, UINT64_MAX), most);
    assert_int_equal(held(&r), most * FRAMED_BYTES);
    assert_int_equal(r.turn.error, PE_TOO_MUCH);
    assert_int_equal(r.turn.failed_output, most % OUTPUTS);
    assert_null(r.turn.full); /* no room that comes helps it */
    rig_close(&r);
}

static void a_unit_that_is_undone_gives_its_memory_back(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, QUEUE_BYTES, UINT64_C(1) << 30);
    assert_int_equal(send_records(&r, 5), 5);
    turn_begin_unit(&r.turn);
    assert_true(send_records(&r, UINT64_MAX) > 1000);
    assert_true(grown(&r) >= UNIT_SENT_BYTES);
    turn_undo_unit(&r.turn);
    assert_int_equal(held(&r), 5 * FRAMED_BYTES);
    assert_int_equal(r.turn.sends, 5);
    assert_true(grown(&r) <= OUTPUTS * KEPT_BYTES);
    turn_begin_unit(&r.turn);
    assert_int_equal(send_records(&r, 900), 900); /* the next one may send as much as any */
    assert_int_equal(held(&r), 905 * FRAMED_BYTES);
    rig_close(&r);
}

static void what_is_kept_from_turn_to_turn_is_not_allocated_anew(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, QUEUE_BYTES, UINT64_C(1) << 30);
    send_records(&r, 30);
    const uint8_t *memory = r.backlogs[0].spill;
    assert_non_null(memory);
    turn_undo_unit(&r.turn);
    assert_ptr_equal(r.backlogs[0].spill, memory);
    rig_close(&r);
}

static void a_full_backlog_is_waited_for_before_the_bound_is_reached(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, QUEUE_BYTES, QUEUE_BYTES);
    assert_true(send_records(&r, UINT64_MAX) <= OUTPUTS * 2 * QUEUE_BYTES / FRAMED_BYTES);
    assert_int_equal(r.turn.error, PE_FULL);
    assert_non_null(r.turn.full);
    assert_string_equal(turn_capacity_key(r.turn.full), "backlog");
    rig_close(&r);
    rig_open(&r, QUEUE_BYTES, 0);
    send_records(&r, UINT64_MAX);
    assert_string_equal(turn_capacity_key(r.turn.full), "queue");
    rig_close(&r);
}

static void a_turn_of_many_units_is_over_when_they_have_sent_enough(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 16u << 20, UINT64_C(1) << 30);
    uint64_t units = 0;
    for (; !r.turn.over; units++) {
        assert_true(units < 2 * TURN_SENT_BYTES);
        turn_begin_unit(&r.turn);
        assert_int_equal(pure_send(&r.turn, 0, NULL, 0), 0); /* a byte, in its frame */
    }
    assert_int_equal(units, TURN_SENT_BYTES + 1);
    rig_close(&r);
}

static void a_unit_never_sends_more_than_a_frame_holds(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 128u << 20, UINT64_C(1) << 30);
    assert_int_equal(turn_unit_most(&r.turn), UNIT_SENT_MAX);
    assert_true(turn_unit_most(&r.turn) < FRAME_MAX);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_sends_what_queues_take_and_16_mib_more_to_all_outputs_together),
        cmocka_unit_test(a_unit_that_is_undone_gives_its_memory_back),
        cmocka_unit_test(what_is_kept_from_turn_to_turn_is_not_allocated_anew),
        cmocka_unit_test(a_full_backlog_is_waited_for_before_the_bound_is_reached),
        cmocka_unit_test(a_turn_of_many_units_is_over_when_they_have_sent_enough),
        cmocka_unit_test(a_unit_never_sends_more_than_a_frame_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
