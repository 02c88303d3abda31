/* RTT and loss detection: RFC 9002, with numbers worked out by hand. */
#include "link/loss.h"

#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define T0 (100 * NS_PER_S)
#define MS NS_PER_MS

/* A sender of packets of one item each, whose offset is the packet's number. */
struct world {
    struct loss loss;
    struct sent sent;
    struct loss_report report;
    uint64_t lost[2000], acked[2000];
    uint32_t lost_count, acked_count;
};

static void note_acked(void *context, const struct sent_item *item)
{
    struct world *w = context;
    for (uint64_t i = 0; i < item->size; i++)
        w->acked[w->acked_count++] = item->offset + i;
}

static void note_lost(void *context, const struct sent_item *item)
{
    struct world *w = context;
    for (uint64_t i = 0; i < item->size; i++)
        w->lost[w->lost_count++] = item->offset + i;
}

static struct world *fresh(void)
{
    static struct world w;
    sent_dispose(&w.sent);
    w = (struct world){.lost_count = 0};
    loss_init(&w.loss);
    assert_int_equal(sent_init(&w.sent, 1024, 0), 0);
    return &w;
}

static void send(struct world *w, uint64_t now_ns)
{
    sent_add(&w->sent, (struct sent_item){w->sent.next, 1, 0, SENT_RECORDS});
    sent_commit(&w->sent, (struct sent_commit_options){.bytes = 1000, .eliciting = true}, now_ns);
}

static void send_many(struct world *w, uint64_t count, uint64_t now_ns)
{
    for (uint64_t i = 0; i < count; i++)
        send(w, now_ns);
}

static int acked_ranges(struct world *w, const struct range *range, uint32_t ranges, uint64_t delay_us,
                        uint64_t now_ns)
{
    uint8_t buffer[FRAME_ACK_MAX_BYTES] = {0};
    struct range memory[FRAME_ACK_RANGES];
    struct ranges set;
    struct frame frame;
    const struct sent_handler handler = {note_acked, note_lost, w};
    ranges_init(&set, memory, FRAME_ACK_RANGES);
    for (uint32_t i = 0; i < ranges; i++)
        ranges_add(&set, range[i].start, range[i].end);
    size_t size = frame_put_ack(buffer, buffer + sizeof buffer, &set, delay_us);
    assert_int_equal(frame_get(buffer, buffer + size, &frame), size);
    return loss_acked(&w->loss, &w->sent, &frame.ack, now_ns, &handler, NULL, &w->report);
}

static void acked(struct world *w, uint64_t start, uint64_t end, uint64_t now_ns)
{
    const struct range range = {start, end};
    assert_int_equal(acked_ranges(w, &range, 1, 0, now_ns), 0);
}

static bool expired(struct world *w, uint64_t now_ns)
{
    const struct sent_handler handler = {note_acked, note_lost, w};
    return loss_expired(&w->loss, &w->sent, now_ns, &handler, NULL, &w->report);
}

static uint64_t deadline(const struct world *w)
{
    return loss_deadline_ns(&w->loss, &w->sent);
}

/* --- RTT --- */

static void the_estimate_follows_rfc_9002(void **state)
{
    (void)state;
    struct rtt r;
    rtt_init(&r);
    assert_false(rtt_known(&r));
    assert_int_equal(rtt_pto_ns(&r, 5 * MS), 605 * MS);
    rtt_sample(&r, 100 * MS, 50 * MS, 5 * MS, T0); /* the first: delay is ignored */
    assert_true(r.smoothed_ns == 100 * MS && r.variation_ns == 50 * MS && r.min_ns == 100 * MS);
    assert_int_equal(r.first_at_ns, T0);
    /* 140 ms of which the peer waited 4: variation (3 * 50 + 36) / 4, smoothed (7 * 100 + 136) / 8 */
    rtt_sample(&r, 140 * MS, 4 * MS, 5 * MS, T0);
    assert_int_equal(r.variation_ns, 46500 * NS_PER_US);
    assert_int_equal(r.smoothed_ns, 104500 * NS_PER_US);
    /* a delay of 50 ms counts as 5: 104.5 + (135 - 104.5) / 8 */
    rtt_sample(&r, 140 * MS, 50 * MS, 5 * MS, T0);
    assert_int_equal(r.smoothed_ns, 108312500);
    /* a delay that would go below the minimum does not count */
    struct rtt before = r;
    rtt_sample(&r, 101 * MS, 4 * MS, 5 * MS, T0);
    assert_int_equal(r.smoothed_ns, (7 * before.smoothed_ns + 101 * MS) / 8);
    assert_int_equal(r.min_ns, 100 * MS);
    assert_int_equal(rtt_pto_ns(&r, 5 * MS), r.smoothed_ns + 4 * r.variation_ns + 5 * MS);
}

static void the_rtt_is_that_of_the_largest_newly_acknowledged(void **state)
{
    (void)state;
    struct world *w = fresh();
    send(w, T0);
    send(w, T0 + 10 * MS);
    const struct range both = {0, 2};
    assert_int_equal(acked_ranges(w, &both, 1, 3000, T0 + 40 * MS), 0);
    assert_true(w->report.rtt_sampled && w->loss.rtt.latest_ns == 30 * MS);
    assert_true(w->report.acked_packets == 2 && w->report.acked_bytes == 2000);
    assert_true(w->report.in_flight_before == 2000 && w->report.acked_newest_sent_ns == T0 + 10 * MS);
    acked(w, 0, 2, T0 + 50 * MS); /* nothing new */
    assert_true(!w->report.rtt_sampled && w->report.acked_packets == 0);
    assert_int_equal(w->acked_count, 2);
}

/* --- thresholds --- */

static void the_third_packet_behind_is_lost(void **state)
{
    (void)state;
    struct world *w = fresh();
    send_many(w, 5, T0);
    acked(w, 2, 3, T0 + 100 * MS);
    assert_int_equal(w->lost_count, 0);
    acked(w, 3, 4, T0 + 100 * MS);
    assert_true(w->lost_count == 1 && w->lost[0] == 0);
    assert_true(w->report.lost_packets == 1 && w->report.lost_bytes == 1000);
    acked(w, 4, 5, T0 + 100 * MS);
    assert_true(w->lost_count == 2 && w->lost[1] == 1);
    assert_true(w->sent.outstanding == 0 && deadline(w) == NEVER);
}

static void a_packet_is_late_after_nine_eighths_of_the_rtt(void **state)
{
    (void)state;
    struct world *w = fresh();
    send_many(w, 2, T0);
    acked(w, 1, 2, T0 + 80 * MS);
    assert_int_equal(deadline(w), T0 + 90 * MS);
    assert_false(expired(w, T0 + 90 * MS - 1));
    assert_int_equal(w->lost_count, 0);
    assert_false(expired(w, T0 + 90 * MS));
    assert_true(w->lost_count == 1 && w->lost[0] == 0 && w->loss.pto_count == 0);
    assert_int_equal(deadline(w), NEVER);
}

static void packets_behind_nothing_acknowledged_are_never_lost(void **state)
{
    (void)state;
    struct world *w = fresh();
    send_many(w, 10, T0);
    acked(w, 0, 1, T0 + 10 * MS);
    for (int i = 0; i < 20; i++)
        assert_true(expired(w, deadline(w)));
    assert_int_equal(w->lost_count, 0);
    assert_int_equal(w->sent.outstanding, 9);
}

static void acknowledging_what_was_not_sent_changes_nothing(void **state)
{
    (void)state;
    struct world *w = fresh();
    send_many(w, 4, T0);
    const struct range beyond = {0, 5};
    assert_int_equal(acked_ranges(w, &beyond, 1, 0, T0 + MS), PE_MALFORMED);
    assert_true(w->acked_count == 0 && w->sent.outstanding == 4 && w->loss.largest_acked == 0);
}

/* --- reordering --- */

static void a_loss_that_was_none_raises_the_packet_threshold(void **state)
{
    (void)state;
    struct world *w = fresh();
    send_many(w, 1000, T0);
    acked(w, 10, 11, T0 + 100 * MS);
    assert_int_equal(w->lost_count, 8);
    acked(w, 0, 1, T0 + 100 * MS); /* overtaken by ten */
    assert_int_equal(w->report.spurious, 1);
    assert_int_equal(w->loss.packet_threshold, 11);
    acked(w, 0, 1, T0 + 100 * MS); /* found once only */
    assert_int_equal(w->report.spurious, 0);
    acked(w, 21, 22, T0 + 100 * MS);
    assert_int_equal(w->lost_count, 10); /* 8 and 9 are more than ten behind; 11 is not */
    assert_true(w->sent.first == 11);
}

static void the_packet_threshold_has_a_limit(void **state)
{
    (void)state;
    struct world *w = fresh();
    uint32_t before = 0;
    for (int i = 0; i < 10; i++) {
        uint64_t first = w->sent.next;
        send_many(w, 700, T0);
        acked(w, first + 699, first + 700, T0 + 100 * MS);
        if (w->lost_count == 0)
            break;
        uint64_t oldest = w->loss.lost[w->loss.lost_next].number; /* that is remembered */
        acked(w, oldest, oldest + 1, T0 + 100 * MS);
        assert_true(w->loss.packet_threshold > before || before == LOSS_PACKET_THRESHOLD_MAX);
        before = w->loss.packet_threshold;
        acked(w, first, first + 700, T0 + 100 * MS);
        assert_true(w->loss.packet_threshold >= before); /* never decreases */
        w->lost_count = w->acked_count = 0;
    }
    assert_int_equal(w->loss.packet_threshold, LOSS_PACKET_THRESHOLD_MAX);
}

static void a_late_packet_raises_the_time_threshold(void **state)
{
    (void)state;
    struct world *w = fresh();
    uint64_t now_ns = T0;
    for (uint32_t i = 0; i < 20; i++) {
        uint64_t first = w->sent.next;
        send_many(w, 2, now_ns);
        acked(w, first + 1, first + 2, now_ns + 80 * MS);
        uint64_t eighths = w->loss.time_eighths;
        assert_int_equal(deadline(w), now_ns + 10 * MS * eighths);
        expired(w, deadline(w));
        assert_int_equal(w->lost_count, i + 1);
        acked(w, first, first + 1, now_ns + 170 * MS);
        assert_int_equal(w->report.spurious, 1);
        assert_int_equal(w->loss.time_eighths, min_u64(eighths + 1, LOSS_TIME_EIGHTHS_MAX));
        now_ns += NS_PER_S;
    }
    assert_int_equal(w->loss.packet_threshold, LOSS_PACKET_THRESHOLD);
}

static void many_losses_are_remembered_up_to_a_limit(void **state)
{
    (void)state;
    struct world *w = fresh();
    send_many(w, 1000, T0);
    acked(w, 999, 1000, T0 + 100 * MS);
    assert_int_equal(w->lost_count, 997);
    w->loss.packet_threshold = LOSS_PACKET_THRESHOLD_MAX;
    acked(w, 0, 997, T0 + 101 * MS);
    assert_int_equal(w->report.spurious, LOSS_REMEMBERED);
    assert_int_equal(w->loss.lost_live, 0);
}

/* --- probe time-outs --- */

static void probe_timeouts_double_up_to_a_minute_and_never_end(void **state)
{
    (void)state;
    struct world *w = fresh();
    send(w, T0);
    uint64_t at_ns = T0, interval_ns = 605 * MS;
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(deadline(w), at_ns + interval_ns);
        at_ns += interval_ns;
        assert_false(expired(w, at_ns - 1));
        assert_true(expired(w, at_ns));
        assert_int_equal(w->loss.pto_count, i + 1);
        send(w, at_ns);
        interval_ns = min_u64(2 * interval_ns, LOSS_PTO_MAX_NS);
    }
    acked(w, 50, 51, at_ns + 10 * MS);
    assert_int_equal(w->loss.pto_count, 0);
}

static void an_owner_that_sends_no_probe_is_not_called_at_once_again(void **state)
{
    (void)state;
    struct world *w = fresh();
    send(w, T0);
    assert_true(expired(w, T0 + 605 * MS));
    assert_int_equal(deadline(w), T0 + (605 + 1210) * MS);
    assert_false(expired(w, T0 + 606 * MS));
}

/* --- persistent congestion: RFC 9002 section 7.6.3's example --- */

/* Packets at 0, 1 (acknowledged), 2 … 7, 8, 12.2; the acknowledgement of the last comes. */
static bool persistent_with_gap(bool gap)
{
    struct world *w = fresh();
    send(w, T0);
    acked(w, 0, 1,
          T0 + 200 * MS); /* the sample: smoothed 200 ms, variation 100; PTO 605 ms, three of them 1.8 s */
    for (uint64_t i = 0; i < 8; i++)
        send(w, T0 + (2 + i) * NS_PER_S);
    send(w, T0 + 13 * NS_PER_S);
    const struct range range[] = {{5, 6}, {9, 10}};
    if (gap)
        assert_int_equal(acked_ranges(w, range, 2, 0, T0 + 13200 * MS), 0);
    else
        acked(w, 9, 10, T0 + 13200 * MS);
    return w->report.persistent;
}

static void a_long_row_of_losses_is_persistent_congestion(void **state)
{
    (void)state;
    assert_true(persistent_with_gap(false));
    assert_true(persistent_with_gap(true)); /* 1 … 4: three seconds still */
}

static void losses_close_together_or_interrupted_are_not_persistent(void **state)
{
    (void)state;
    struct world *w = fresh();
    send(w, T0);
    acked(w, 0, 1, T0 + 200 * MS);
    for (uint64_t i = 0; i < 6; i++) /* one each 600 ms, every third arrives */
        send(w, T0 + NS_PER_S + i * 600 * MS);
    send(w, T0 + 9 * NS_PER_S);
    const struct range range[] = {{3, 4}, {6, 7}, {7, 8}};
    assert_int_equal(acked_ranges(w, range, 3, 0, T0 + 9200 * MS), 0);
    assert_true(w->report.lost_packets == 4 && !w->report.persistent);
}

static void losses_before_the_first_sample_are_not_persistent(void **state)
{
    (void)state;
    struct world *w = fresh();
    for (uint64_t i = 0; i < 9; i++)
        send(w, T0 + i * 5 * NS_PER_S);
    acked(w, 8, 9, T0 + 40200 * MS);
    assert_true(w->report.lost_packets == 8 && !w->report.persistent);
}

static void a_lost_mtu_probe_is_no_sign_of_congestion(void **state)
{
    (void)state;
    struct world *w = fresh();
    sent_add(&w->sent, (struct sent_item){.kind = SENT_PING});
    sent_commit(&w->sent, (struct sent_commit_options){.bytes = 1400, .eliciting = true, .mtu_probe = true},
                T0);
    send_many(w, 4, T0);
    acked(w, 1, 5, T0 + 100 * MS);
    assert_true(w->report.lost_packets == 0 && w->report.lost_bytes == 0);
    assert_true(w->sent.outstanding == 0 && w->sent.bytes_in_flight == 0);
}

/* Any order and loss: each packet is told once, acknowledged or lost. */
static void each_packet_is_told_once(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct world *w = fresh();
        struct random random = {seed};
        uint8_t fate[900] = {0};
        send_many(w, 900, T0);
        for (uint64_t at = 0, i = 0; i < 400; i++) {
            at = min_u64(899, at + random_below(&random, 8));
            uint64_t start = at - min_u64(at, random_below(&random, 40));
            acked(w, start, start + 1 + random_below(&random, at - start + 1), T0 + 100 * MS + i);
        }
        for (uint32_t i = 0; i < w->acked_count; i++)
            fate[w->acked[i]]++;
        for (uint32_t i = 0; i < w->lost_count; i++)
            fate[w->lost[i]]++;
        uint32_t told = 0;
        for (uint32_t n = 0; n < 900; n++) {
            assert_true(fate[n] <= 1);
            told += fate[n];
        }
        assert_int_equal(told + w->sent.outstanding, 900);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_estimate_follows_rfc_9002),
        cmocka_unit_test(the_rtt_is_that_of_the_largest_newly_acknowledged),
        cmocka_unit_test(the_third_packet_behind_is_lost),
        cmocka_unit_test(a_packet_is_late_after_nine_eighths_of_the_rtt),
        cmocka_unit_test(packets_behind_nothing_acknowledged_are_never_lost),
        cmocka_unit_test(acknowledging_what_was_not_sent_changes_nothing),
        cmocka_unit_test(a_loss_that_was_none_raises_the_packet_threshold),
        cmocka_unit_test(the_packet_threshold_has_a_limit),
        cmocka_unit_test(a_late_packet_raises_the_time_threshold),
        cmocka_unit_test(many_losses_are_remembered_up_to_a_limit),
        cmocka_unit_test(probe_timeouts_double_up_to_a_minute_and_never_end),
        cmocka_unit_test(an_owner_that_sends_no_probe_is_not_called_at_once_again),
        cmocka_unit_test(a_long_row_of_losses_is_persistent_congestion),
        cmocka_unit_test(losses_close_together_or_interrupted_are_not_persistent),
        cmocka_unit_test(losses_before_the_first_sample_are_not_persistent),
        cmocka_unit_test(a_lost_mtu_probe_is_no_sign_of_congestion),
        cmocka_unit_test(each_packet_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
