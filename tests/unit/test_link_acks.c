/* When an ACK is due, and what it says. */
#include "link/acks.h"

#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define T0 (100 * NS_PER_S)

/* An ACK is taken out and read. */
static struct frame_ack take(struct acks *a, uint64_t now_ns)
{
    static uint8_t buffer[FRAME_ACK_MAX_BYTES] = {0};
    struct frame frame;
    uint64_t largest;
    size_t size = acks_put(a, buffer, buffer + sizeof buffer, now_ns, &largest);
    assert_true(size > 0);
    assert_int_equal(frame_get(buffer, buffer + size, &frame), size);
    assert_int_equal(frame.type, FRAME_ACK);
    assert_int_equal(frame.ack.largest, largest);
    assert_int_equal(acks_due_ns(a), NEVER);
    assert_false(acks_waiting(a));
    return frame.ack;
}

static void the_first_packet_after_a_pause_is_acknowledged_at_once(void **state)
{
    (void)state;
    struct acks a;
    acks_init(&a, 0);
    assert_int_equal(acks_due_ns(&a), NEVER);
    assert_true(acks_received(&a, 0, true, T0));
    assert_int_equal(acks_due_ns(&a), T0);
    take(&a, T0);
    acks_received(&a, 1, true, T0 + 1);
    assert_int_equal(acks_due_ns(&a), T0 + 1 + ACK_DELAY_NS);
    take(&a, T0 + 2);
    acks_received(&a, 2, true, T0 + 2 + ACK_DELAY_NS);
    assert_int_equal(acks_due_ns(&a), T0 + 2 + ACK_DELAY_NS);
}

static void every_sixteenth_is_acknowledged_at_once_the_others_in_5_ms(void **state)
{
    (void)state;
    struct acks a;
    acks_init(&a, 0);
    acks_received(&a, 0, true, T0);
    take(&a, T0);
    for (uint64_t n = 1; n < ACK_EVERY; n++) {
        acks_received(&a, n, true, T0 + n);
        assert_int_equal(acks_due_ns(&a), T0 + 1 + ACK_DELAY_NS);
    }
    acks_received(&a, ACK_EVERY, true, T0 + 50);
    assert_int_equal(acks_due_ns(&a), T0 + 50);
}

static void a_packet_out_of_order_or_twice_is_acknowledged_at_once(void **state)
{
    (void)state;
    struct acks a;
    acks_init(&a, 0);
    acks_received(&a, 0, true, T0);
    take(&a, T0);
    assert_true(acks_received(&a, 2, true, T0 + 1)); /* a gap */
    assert_int_equal(acks_due_ns(&a), T0 + 1);
    take(&a, T0 + 1);
    acks_received(&a, 3, true, T0 + 2); /* in order again */
    assert_int_equal(acks_due_ns(&a), T0 + 2 + ACK_DELAY_NS);
    assert_true(acks_received(&a, 1, true, T0 + 3)); /* late */
    assert_int_equal(acks_due_ns(&a), T0 + 3);
    take(&a, T0 + 3);
    assert_false(acks_received(&a, 1, true, T0 + 4)); /* twice */
    assert_int_equal(acks_due_ns(&a), T0 + 4);
}

static void a_ping_is_acknowledged_at_once(void **state)
{
    (void)state;
    struct acks a;
    acks_init(&a, 0);
    acks_received(&a, 0, true, T0);
    take(&a, T0);
    acks_received(&a, 1, true, T0 + 1);
    acks_hurry(&a, T0 + 1);
    assert_int_equal(acks_due_ns(&a), T0 + 1);
}

static void packets_that_do_not_elicit_make_nothing_due_and_are_named(void **state)
{
    (void)state;
    struct acks a;
    acks_init(&a, 7);
    assert_true(acks_received(&a, 7, false, T0));
    assert_true(acks_received(&a, 9, false, T0));
    assert_int_equal(acks_due_ns(&a), NEVER);
    assert_false(acks_waiting(&a));
    struct frame_ack ack = take(&a, T0);
    assert_true(ack.largest == 9 && ack.ranges == 2);
}

static void nothing_received_is_nothing_to_say(void **state)
{
    (void)state;
    struct acks a;
    uint8_t buffer[64] = {0};
    uint64_t largest;
    acks_init(&a, 7);
    assert_int_equal(acks_put(&a, buffer, buffer + sizeof buffer, T0, &largest), 0);
    acks_received(&a, 7, true, T0);
    assert_int_equal(acks_put(&a, buffer, buffer + 3, T0, &largest), 0); /* no room */
    assert_int_equal(acks_due_ns(&a), T0);
}

static void the_delay_is_since_the_largest_number(void **state)
{
    (void)state;
    struct acks a;
    acks_init(&a, 0);
    acks_received(&a, 5, true, T0);
    acks_received(&a, 4, true, T0 + 300 * NS_PER_US);
    assert_int_equal(take(&a, T0 + 700 * NS_PER_US).delay_us, 700);
}

static void what_the_peer_has_seen_is_not_named_again(void **state)
{
    (void)state;
    struct acks a;
    acks_init(&a, 0);
    for (uint64_t n = 0; n < 20; n += 2)
        acks_received(&a, n, true, T0);
    assert_int_equal(take(&a, T0).ranges, 10);
    acks_received(&a, 20, true, T0);
    acks_seen(&a, 18);
    struct frame_ack ack = take(&a, T0);
    assert_true(ack.largest == 20 && ack.ranges == 2);
    acks_seen(&a, 500); /* never said: ignored */
    acks_seen(&a, 20);
    ack = take(&a, T0);
    assert_true(ack.largest == 20 && ack.ranges == 1 && ack.first_run == 0);
    assert_false(acks_received(&a, 3, true, T0)); /* too late to be named */
    assert_int_equal(acks_due_ns(&a), T0);
    assert_int_equal(take(&a, T0).ranges, 1);
}

static void at_most_64_ranges_are_kept_and_the_oldest_goes(void **state)
{
    (void)state;
    struct acks a;
    acks_init(&a, 0);
    for (uint64_t n = 0; n < 200; n += 2)
        assert_true(acks_received(&a, n, true, T0));
    struct frame_ack ack = take(&a, T0);
    assert_true(ack.ranges == FRAME_ACK_RANGES && ack.largest == 198);
    assert_false(acks_received(&a, 1, true, T0));  /* below all of them */
    assert_true(acks_received(&a, 197, true, T0)); /* joins two */
    assert_int_equal(take(&a, T0).ranges, FRAME_ACK_RANGES - 1);
    assert_true(acks_received(&a, 1000, true, T0));
    ack = take(&a, T0);
    assert_true(ack.ranges == FRAME_ACK_RANGES && ack.largest == 1000);
}

/* Whatever comes in whatever order: an ACK names only what came, and all of it above the floor. */
static void an_ack_is_true(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct random random = {seed};
        struct acks a;
        bool came[2000] = {false};
        acks_init(&a, 0);
        for (uint64_t i = 0; i < 1500; i++) {
            uint64_t n = i + random_below(&random, 1 + seed * 10);
            if (random_below(&random, 100) < 30)
                continue;
            acks_received(&a, n, true, T0 + i);
            came[n] = true;
            if (random_below(&random, 50) == 0)
                acks_seen(&a, a.received.item[a.received.count - 1].end - 1);
            for (uint64_t k = a.floor; k < ARRAY_SIZE(came) && i % 100 == 0; k++)
                assert_int_equal(ranges_have(&a.received, k), came[k]);
        }
        for (uint64_t k = 0; k < a.floor; k++)
            assert_true(!ranges_have(&a.received, k) || came[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_packet_after_a_pause_is_acknowledged_at_once),
        cmocka_unit_test(every_sixteenth_is_acknowledged_at_once_the_others_in_5_ms),
        cmocka_unit_test(a_packet_out_of_order_or_twice_is_acknowledged_at_once),
        cmocka_unit_test(a_ping_is_acknowledged_at_once),
        cmocka_unit_test(packets_that_do_not_elicit_make_nothing_due_and_are_named),
        cmocka_unit_test(nothing_received_is_nothing_to_say),
        cmocka_unit_test(the_delay_is_since_the_largest_number),
        cmocka_unit_test(what_the_peer_has_seen_is_not_named_again),
        cmocka_unit_test(at_most_64_ranges_are_kept_and_the_oldest_goes),
        cmocka_unit_test(an_ack_is_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
