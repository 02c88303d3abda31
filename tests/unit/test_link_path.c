/* The whole of loss recovery, congestion control, pacing and MTU discovery over a simulated bottleneck.
 *
 *     path.c --> [ queue | rate ] --> loss, delay, jitter --> acks.c
 *        ^------------------ delay ------------------ ACKs ----'
 */
#include "tests/unit/link_bottleneck.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define MBIT 125000 /* bytes a second */
#define MS   NS_PER_MS

static struct net net_of(uint64_t mbit, uint64_t rtt_ms, uint64_t queue_tenths_of_bdp, uint32_t loss_per_1000)
{
    uint64_t bdp = mbit * MBIT * rtt_ms / 1000;
    return (struct net){.rate = mbit * MBIT,
                        .delay_ns = rtt_ms * MS / 2,
                        .queue_bytes = max_u64(bdp * queue_tenths_of_bdp / 10, 12000),
                        .loss_per_1000 = loss_per_1000};
}

/* Sent again only what was lost: 3 % more, and a window's worth that may be on its way at the end. */
static void assert_no_storm(const struct result *r)
{
    assert_true(r->sent_packets <= (r->chunks + r->lost_packets) * 103 / 100 + 9000);
}

static void goodput_is_within_a_tenth_of_cubic_over_tcp(void **state)
{
    (void)state;
    static const struct {
        uint64_t mbit, rtt_ms, seconds;
    } paths[] = {{1, 1, 30},   {1, 50, 60}, {1, 200, 100}, {10, 1, 20},  {10, 20, 30},
                 {10, 50, 60}, {100, 1, 5}, {100, 20, 10}, {100, 50, 10}};
    static const uint32_t losses[] = {0, 10, 50}, queues[] = {5, 40};
    for (size_t p = 0; p < ARRAY_SIZE(paths); p++) {
        for (size_t k = 0; k < ARRAY_SIZE(losses) * ARRAY_SIZE(queues); k++) {
            struct net net = net_of(paths[p].mbit, paths[p].rtt_ms, queues[k % 2], losses[k / 2]);
            struct result ours = bulk_path(&net, UINT64_MAX, paths[p].seconds, MTU_BASE, k);
            struct result cubic = bulk_reference(&net, true, paths[p].seconds, MTU_BASE, k);
            struct result reno = bulk_reference(&net, false, paths[p].seconds, MTU_BASE, k);
            assert_true(ours.delivered_bytes * 10 >= cubic.delivered_bytes * 9);
            assert_true(ours.delivered_bytes * 10 >= reno.delivered_bytes * 9);
            assert_true(ours.sent_packets <= (ours.chunks + ours.lost_packets) * 103 / 100 + 400);
        }
    }
}

static void an_idle_path_is_filled_to_nine_tenths(void **state)
{
    (void)state;
    static const uint64_t paths[][2] = {{1, 10}, {10, 100}, {100, 1}, {100, 100}, {1000, 1}, {1000, 20}};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct net net = net_of(paths[i][0], paths[i][1], 10, 0);
        struct result r = bulk_path(&net, UINT64_MAX, 10, 1472, i);
        assert_true(r.delivered_bytes * 10 >= net.rate * 10 * 9);
    }
}

/* HyStart++ earns its place: slow start into a deep queue loses less than a quarter of what it would without.
 */
static void slow_start_does_not_overrun_a_deep_queue(void **state)
{
    (void)state;
    struct net net = net_of(100, 50, 40, 0);
    struct result ours = bulk_path(&net, UINT64_MAX, 4, MTU_BASE, 1);
    struct result cubic = bulk_reference(&net, true, 4, MTU_BASE, 1);
    assert_true(cubic.lost_packets > 1000);
    assert_true(ours.lost_packets * 4 < cubic.lost_packets);
}

static void everything_arrives_through_thirty_percent_loss(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct net net = net_of(10, 20, 10, 300);
        struct result r = bulk_path(&net, 500 * MTU_BASE, 300, MTU_BASE, seed);
        assert_int_equal(r.chunks, 500);
        assert_true(r.sent_packets < 500 * 2);
    }
}

static void reordering_is_soon_no_loss(void **state)
{
    (void)state;
    for (uint64_t jitter_ms = 1; jitter_ms <= 16; jitter_ms *= 2) {
        struct net net = net_of(100, 40, 20, 0);
        net.jitter_ns = jitter_ms * MS; /* at 100 Mbit/s ten packets a millisecond */
        struct result r = bulk_path(&net, UINT64_MAX, 10, MTU_BASE, jitter_ms);
        assert_true(r.packet_threshold > LOSS_PACKET_THRESHOLD);
        assert_no_storm(&r);
        assert_true(r.delivered_bytes * 10 >= net.rate * 10 * 8);
    }
}

static void a_dark_path_is_probed_rarely_and_found_again(void **state)
{
    (void)state;
    struct net net = net_of(10, 50, 10, 0);
    net.dark_from_ns = 5 * NS_PER_S;
    net.dark_to_ns = 605 * NS_PER_S;
    struct result r = bulk_path(&net, UINT64_MAX, 700, MTU_BASE, 1);
    /* what was under way when it went dark, then two a time-out: 9 doublings to a minute, then nine */
    assert_true(r.sent_in_dark < 200 + 2 * 25);
    assert_true(r.longest_gap_ns <= LOSS_PTO_MAX_NS + NS_PER_S);
    assert_true(r.delivered_bytes * 10 >= net.rate * (700 - 600 - 60) * 8);
    assert_int_equal(r.unanswered, 0);
}

static void a_dead_path_is_probed_for_ever(void **state)
{
    (void)state;
    struct net net = net_of(10, 50, 10, 0);
    net.dark_to_ns = 100000 * NS_PER_S;
    struct result r = bulk_path(&net, UINT64_MAX, 86400, MTU_BASE, 1);
    assert_in_range(r.unanswered, 86400 / 60, 86400 / 60 + 10);
    assert_in_range(r.sent_packets, 2 * 86400 / 60, 2 * 86400 / 60 + 40);
    assert_int_equal(r.chunks, 0);
}

static void the_path_mtu_is_found_while_data_flows(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {
        {1472, 1472}, {1472, 1400}, {8972, 8972}, {8972, 1472}, {65507, 16356}};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct net net = net_of(100, 10, 20, 10 * (i % 2));
        net.queue_bytes = 400000;
        net.mtu = sizes[i][1];
        struct result r = bulk_path(&net, UINT64_MAX, 20, sizes[i][0], i);
        assert_true(r.mtu <= net.mtu && r.mtu + MTU_CLOSE >= net.mtu);
        assert_true(r.chunks > 1000);
    }
}

static void a_path_that_shrinks_without_icmp_stalls_nothing(void **state)
{
    (void)state;
    static const uint32_t later[] = {1200, 1300, 1452, 8000};
    for (size_t i = 0; i < ARRAY_SIZE(later); i++) {
        struct net net = net_of(10, 20, 20, 0);
        net.queue_bytes = 200000;
        net.mtu = 8972;
        net.later_mtu = later[i];
        net.later_ns = 10 * NS_PER_S;
        struct result whole = bulk_path(&net, UINT64_MAX, 10, 8972, i);
        assert_int_equal(whole.mtu, 8972);
        struct result r = bulk_path(&net, UINT64_MAX, 20, 8972, i);
        assert_true(r.mtu <= later[i] && r.mtu + MTU_CLOSE >= later[i]);
        /* in the second half at least seven tenths of what the first half had */
        assert_true((r.delivered_bytes - whole.delivered_bytes) * 10 >= whole.delivered_bytes * 7);
    }
}

static void a_short_transfer_needs_no_time_out(void **state)
{
    (void)state;
    struct net net = net_of(100, 20, 20, 0);
    struct result r = bulk_path(&net, 10 * MTU_BASE, 5, MTU_BASE, 1); /* the initial window */
    assert_int_equal(r.chunks, 10);
    assert_true(r.last_delivered_ns < START_NS + 13 * MS);
    assert_int_equal(r.sent_packets, 10);
}

/* --- without a network --- */

static void ignore(void *context, const struct sent_item *item)
{
    (void)context;
    (void)item;
}

static const struct sent_handler nobody = {ignore, ignore, NULL};
static const struct sent_commit_options full = {.bytes = MTU_BASE, .eliciting = true};

static void fill(struct path *p, uint64_t now_ns)
{
    for (int i = 0; i < 100000 && path_when_ns(p, now_ns) != NEVER; i++) {
        now_ns = path_when_ns(p, now_ns);
        path_sent(p, full, now_ns);
    }
    assert_int_equal(path_room(p, now_ns + NS_PER_S / 10), 0);
}

static void a_time_out_lets_two_packets_of_the_base_size_out(void **state)
{
    (void)state;
    struct path p;
    assert_int_equal(path_init(&p, 64, 0, 1472, START_NS), 0);
    fill(&p, START_NS);
    assert_int_equal(p.sent.outstanding, CONGESTION_INITIAL_PACKETS);
    uint64_t at_ns = path_deadline_ns(&p);
    path_expired(&p, at_ns - 1, &nobody);
    assert_false(path_must_probe(&p));
    path_expired(&p, at_ns, &nobody);
    assert_true(path_must_probe(&p) && path_unanswered(&p) == 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(path_room(&p, at_ns), MTU_BASE);
        path_sent(&p, full, at_ns);
    }
    assert_int_equal(path_room(&p, at_ns), 0);
    assert_false(path_must_probe(&p));
    path_dispose(&p);
}

static void another_end_that_is_found_elsewhere_is_asked_again_at_once(void **state)
{
    (void)state;
    struct path p;
    assert_int_equal(path_init(&p, 64, 0, 1472, START_NS), 0);
    path_sent(&p, full, START_NS);
    path_found(&p); /* nothing is overdue */
    assert_false(path_must_probe(&p));
    for (int i = 0; i < 5; i++) {
        uint64_t at_ns = path_deadline_ns(&p);
        path_expired(&p, at_ns, &nobody);
        path_sent(&p, full, at_ns), path_sent(&p, full, at_ns);
    }
    assert_false(path_must_probe(&p));
    assert_int_equal(path_unanswered(&p), 5);
    path_found(&p);
    assert_true(path_must_probe(&p));
    assert_int_equal(path_unanswered(&p), 0);
    path_dispose(&p);
}

static void a_full_map_stops_sending(void **state)
{
    (void)state;
    struct path p;
    assert_int_equal(path_init(&p, 16, 0, MTU_BASE, START_NS), 0);
    p.congestion.cubic.window_bytes = 1000000;
    for (int i = 0; i < 16; i++)
        path_sent(&p, full, START_NS);
    assert_int_equal(path_room(&p, START_NS + NS_PER_S), 0);
    assert_int_equal(path_when_ns(&p, START_NS + NS_PER_S), NEVER);
    path_dispose(&p);
}

static void a_moved_path_begins_anew_and_forgets_nothing_sent(void **state)
{
    (void)state;
    struct path p;
    assert_int_equal(path_init(&p, 64, 0, 1472, START_NS), 0);
    fill(&p, START_NS);
    uint64_t at_ns = START_NS + 50 * MS;
    const struct frame_ack first = {.largest = 0, .ranges = 1};
    assert_int_equal(path_acked(&p, &first, at_ns, &nobody), 0);
    assert_int_equal(p.loss.rtt.smoothed_ns, 50 * MS);
    path_moved(&p, 1472, at_ns + 1);
    assert_int_equal(p.loss.rtt.smoothed_ns, RTT_INITIAL_NS);
    assert_int_equal(p.sent.outstanding, CONGESTION_INITIAL_PACKETS - 1);
    uint64_t window = p.congestion.cubic.window_bytes;
    /* the old path's packets are lost: no reason to slow down on this one */
    path_sent(&p, full, at_ns + 2);
    const struct frame_ack last = {.largest = p.sent.next - 1, .ranges = 1};
    assert_int_equal(path_acked(&p, &last, at_ns + 60 * MS, &nobody), 0);
    assert_true(p.congestion.cubic.window_bytes >= window);
    path_dispose(&p);
}

static void an_ack_of_what_was_not_sent_is_malformed(void **state)
{
    (void)state;
    struct path p;
    assert_int_equal(path_init(&p, 64, 5, 1472, START_NS), 0);
    path_sent(&p, full, START_NS);
    const struct frame_ack ack = {.largest = 6, .ranges = 1};
    assert_int_equal(path_acked(&p, &ack, START_NS + MS, &nobody), PE_MALFORMED);
    assert_int_equal(p.sent.outstanding, 1);
    path_dispose(&p);
}

static void a_hint_of_the_system_lowers_the_datagram(void **state)
{
    (void)state;
    struct path p;
    assert_int_equal(path_init(&p, 64, 0, 1472, START_NS), 0);
    p.mtu.current = 1472;
    path_mtu_hint(&p, 1400, START_NS);
    assert_int_equal(path_datagram(&p), MTU_BASE);
    assert_int_equal(p.congestion.datagram_bytes, MTU_BASE);
    path_dispose(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goodput_is_within_a_tenth_of_cubic_over_tcp),
        cmocka_unit_test(an_idle_path_is_filled_to_nine_tenths),
        cmocka_unit_test(slow_start_does_not_overrun_a_deep_queue),
        cmocka_unit_test(everything_arrives_through_thirty_percent_loss),
        cmocka_unit_test(reordering_is_soon_no_loss),
        cmocka_unit_test(a_dark_path_is_probed_rarely_and_found_again),
        cmocka_unit_test(a_dead_path_is_probed_for_ever),
        cmocka_unit_test(the_path_mtu_is_found_while_data_flows),
        cmocka_unit_test(a_path_that_shrinks_without_icmp_stalls_nothing),
        cmocka_unit_test(a_short_transfer_needs_no_time_out),
        cmocka_unit_test(a_time_out_lets_two_packets_of_the_base_size_out),
        cmocka_unit_test(another_end_that_is_found_elsewhere_is_asked_again_at_once),
        cmocka_unit_test(a_full_map_stops_sending),
        cmocka_unit_test(a_moved_path_begins_anew_and_forgets_nothing_sent),
        cmocka_unit_test(an_ack_of_what_was_not_sent_is_malformed),
        cmocka_unit_test(a_hint_of_the_system_lowers_the_datagram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
