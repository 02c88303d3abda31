/* The emulated path of experiments/path: what links and TCP are measured over has to be what it says it is.
 */
#include "experiments/path/control.h"
#include "experiments/path/icmp.h"
#include "experiments/path/path.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#define MS     UINT64_C(1000000)
#define PACKET 1250u /* bytes: 0.1 ms at the rate below */

static const struct path_terms plain = {
    .delay_ns = 25 * MS, .bits_s = 100000000, .queue_bytes = 625000, .mtu = 1500};

struct fixture {
    struct path path;
    uint64_t now_ns;
    uint8_t packet[PATH_PACKET_MAX];
};

static void begin(struct fixture *f, const struct path_terms *terms, uint64_t seed)
{
    memset(f, 0, sizeof *f);
    assert_int_equal(way_init(&f->path, terms, seed), 0);
}

static enum path_fate offer(struct fixture *f, uint32_t name, uint32_t size)
{
    memcpy(f->packet, &name, sizeof name);
    return way_offer(&f->path, f->now_ns, f->packet, size);
}

/* The next packet, time going on to when it is due. Its name, -1 if there is none. */
static int64_t take(struct fixture *f)
{
    uint32_t name;
    uint64_t next_ns = way_next_ns(&f->path);
    if (next_ns == PATH_NEVER)
        return -1;
    assert_true(next_ns == 0 || !way_take(&f->path, next_ns - 1));
    f->now_ns = next_ns > f->now_ns ? next_ns : f->now_ns;
    const struct path_packet *packet = way_take(&f->path, f->now_ns);
    assert_non_null(packet);
    memcpy(&name, packet->bytes, sizeof name);
    return name;
}

static void a_packet_takes_the_time_of_its_bytes_and_the_delay(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, &plain, 1);
    f.now_ns = 7 * MS;
    assert_int_equal(offer(&f, 1, PACKET), PATH_TAKEN);
    assert_int_equal(take(&f), 1);
    assert_int_equal(f.now_ns, 7 * MS + MS / 10 + 25 * MS);
    way_dispose(&f.path);
}

static void packets_come_in_order_at_the_rate_of_the_bottleneck(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, &plain, 1);
    for (uint32_t i = 0; i < 400; i++)
        assert_int_equal(offer(&f, i, PACKET), PATH_TAKEN);
    for (uint32_t i = 0; i < 400; i++) {
        assert_int_equal(take(&f), i);
        assert_int_equal(f.now_ns, 25 * MS + (i + 1) * MS / 10);
    }
    assert_int_equal(take(&f), -1);
    way_dispose(&f.path);
}

static void the_queue_takes_its_bytes_and_not_one_packet_more(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, &plain, 1);
    uint32_t fit = 625000 / PACKET;
    for (uint32_t i = 0; i < fit + 10; i++)
        assert_int_equal(offer(&f, i, PACKET), i < fit ? PATH_TAKEN : PATH_DROPPED);
    f.now_ns += MS / 10;
    assert_int_equal(offer(&f, 0, PACKET), PATH_TAKEN);
    assert_int_equal(offer(&f, 0, PACKET), PATH_DROPPED);
    assert_int_equal(f.path.report.overflowed, 11);
    way_dispose(&f.path);
}

static void what_finds_no_slot_is_dropped_and_slots_come_back(void **state)
{
    (void)state;
    struct fixture f;
    struct path_terms wide = plain;
    wide.bits_s = UINT64_C(1000000000000); /* all of 100 bytes are due at one time */
    wide.queue_bytes = 1000000000;
    begin(&f, &wide, 1);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < PATH_PACKETS; i++)
            assert_int_equal(offer(&f, i, 100), PATH_TAKEN);
        assert_int_equal(offer(&f, 0, 100), PATH_DROPPED);
        for (uint32_t i = 0; i < PATH_PACKETS; i++)
            assert_int_equal(take(&f), i);
    }
    way_dispose(&f.path);
}

static uint64_t lost_of(uint64_t chance, uint64_t seed, uint32_t packets)
{
    struct fixture f;
    struct path_terms terms = plain;
    terms.loss = chance;
    begin(&f, &terms, seed);
    for (uint32_t i = 0; i < packets; i++) {
        offer(&f, i, PACKET);
        f.now_ns += MS / 10;
        while (way_take(&f.path, f.now_ns))
            ;
    }
    assert_int_equal(f.path.report.overflowed, 0);
    while (take(&f) >= 0)
        ;
    assert_int_equal(f.path.report.delivered + f.path.report.lost, packets);
    uint64_t lost = f.path.report.lost;
    way_dispose(&f.path);
    return lost;
}

/* 100,000 packets: a standard deviation is 31 at 1 % and 69 at 5 %. */
static void loss_is_what_was_asked_for(void **state)
{
    (void)state;
    assert_int_equal(lost_of(0, 1, 1000), 0);
    assert_int_equal(lost_of(PATH_CERTAIN, 1, 1000), 1000);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        assert_in_range(lost_of(PATH_CERTAIN / 100, seed, 100000), 1000 - 4 * 31, 1000 + 4 * 31);
        assert_in_range(lost_of(PATH_CERTAIN / 20, seed, 100000), 5000 - 4 * 69, 5000 + 4 * 69);
    }
}

static void the_same_seed_loses_the_same_packets_whatever_else_is_set(void **state)
{
    (void)state;
    struct fixture a, b;
    struct path_terms terms = plain, others;
    terms.loss = PATH_CERTAIN / 10;
    others = terms;
    others.duplicate = others.reorder = PATH_CERTAIN / 3;
    others.delay_ns = 0;
    begin(&a, &terms, 42);
    begin(&b, &others, 42);
    for (uint32_t i = 0; i < 450; i++)
        assert_int_equal(offer(&a, i, PACKET), offer(&b, i, PACKET));
    assert_true(a.path.report.lost > 20);
    way_dispose(&a.path);
    way_dispose(&b.path);
}

static void a_duplicate_comes_right_behind_its_packet(void **state)
{
    (void)state;
    struct fixture f;
    struct path_terms terms = plain;
    terms.duplicate = PATH_CERTAIN;
    begin(&f, &terms, 1);
    offer(&f, 5, PACKET);
    offer(&f, 6, PACKET);
    const int64_t expected[] = {5, 5, 6, 6, -1};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(take(&f), expected[i]);
    way_dispose(&f.path);
}

static void a_reordered_packet_overtakes_and_none_is_missing(void **state)
{
    (void)state;
    struct fixture f;
    struct path_terms terms = plain;
    terms.reorder = PATH_CERTAIN / 10;
    begin(&f, &terms, 1);
    bool seen[400] = {false};
    unsigned overtook = 0;
    for (uint32_t i = 0; i < 400; i++)
        offer(&f, i, PACKET);
    int64_t last = -1;
    for (uint32_t i = 0; i < 400; i++) {
        int64_t name = take(&f);
        assert_in_range(name, 0, 399);
        assert_false(seen[name]);
        seen[name] = true;
        overtook += name < last;
        last = name;
    }
    assert_true(overtook > 0 && f.path.report.reordered > 0);
    way_dispose(&f.path);
}

static void a_black_hole_swallows_and_what_is_on_its_way_still_comes(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, &plain, 1);
    offer(&f, 1, PACKET);
    f.path.terms.blackhole = true;
    assert_int_equal(offer(&f, 2, PACKET), PATH_DROPPED);
    assert_int_equal(take(&f), 1);
    assert_int_equal(take(&f), -1);
    way_dispose(&f.path);
}

static void a_packet_over_the_mtu_is_told_of_and_one_at_it_passes(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, &plain, 1);
    assert_int_equal(offer(&f, 1, 1500), PATH_TAKEN);
    assert_int_equal(offer(&f, 2, 1501), PATH_TOO_BIG);
    f.path.terms.mtu = 1300;
    assert_int_equal(offer(&f, 3, 1500), PATH_TOO_BIG);
    way_dispose(&f.path);
}

/* --- settings --- */

static bool line(struct control *control, const char *text)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%s", text);
    return control_line(control, copy);
}

static void settings_go_to_one_way_or_both(void **state)
{
    (void)state;
    struct path_terms a = plain, b = plain;
    struct control control = {.terms = {&a, &b}};
    assert_true(line(&control, "loss 1.5"));
    assert_int_equal(a.loss, 15000);
    assert_int_equal(b.loss, 15000);
    assert_true(line(&control, "b  mtu 1300 "));
    assert_int_equal(a.mtu, 1500);
    assert_int_equal(b.mtu, 1300);
    assert_true(line(&control, "a blackhole on"));
    assert_true(a.blackhole && !b.blackhole);
    assert_true(line(&control, "icmp on"));
    assert_true(control.icmp[0] && control.icmp[1]);
    assert_true(line(&control, "delay 0.25"));
    assert_int_equal(a.delay_ns, 250000);
}

static void a_wrong_setting_changes_nothing(void **state)
{
    (void)state;
    struct path_terms a = plain, b = plain;
    struct control control = {.terms = {&a, &b}};
    static const char *const wrong[] = {"",          "loss",   "loss 101", "loss x",       "mtu 100",
                                        "loss 1 2",  "rate 0", "delay -1", "delay 5 more", "c loss",
                                        "queue nan", "icmp 1", "a",        "a b c d",      "blackhole 1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(line(&control, wrong[i]));
    assert_memory_equal(&a, &plain, sizeof a);
    assert_memory_equal(&b, &plain, sizeof b);
}

/* --- ICMP --- */

static uint32_t sum16(const uint8_t *bytes, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i += 2)
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    return (sum & 0xffff) + (sum >> 16);
}

static const uint8_t udp[32] = {0x45, 0,  5, 220, 0,   1, 0x40, 0, 64, 17, 0, 0, 10,  77,  0,   1,
                                10,   77, 0, 2,   249, 9, 248,  8, 0,  40, 0, 0, 'd', 'a', 't', 'a'};
static const uint8_t router[4] = {10, 77, 0, 254};

static void the_answer_to_a_packet_too_big_is_rfc_1191s(void **state)
{
    (void)state;
    uint8_t out[ICMP_TOO_BIG_BYTES];
    assert_int_equal(icmp_too_big(udp, sizeof udp, 1300, router, out), ICMP_TOO_BIG_BYTES);
    assert_int_equal(sum16(out, 20), 0xffff);
    assert_int_equal(sum16(out + 20, 36), 0xffff);
    assert_memory_equal(out + 12, router, 4);
    assert_memory_equal(out + 16, udp + 12, 4);
    assert_int_equal(out[20], 3);
    assert_int_equal(out[21], 4);
    assert_int_equal(out[26] << 8 | out[27], 1300);
    assert_memory_equal(out + 28, udp, 28);
}

static void what_must_not_be_answered_is_not(void **state)
{
    (void)state;
    uint8_t out[ICMP_TOO_BIG_BYTES], packet[sizeof udp];
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {{6, 0}, {6, 0x41}, {7, 1}, {9, 1}, {0, 0x46}, {0, 0x60}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(packet, udp, sizeof udp);
        packet[changes[i].at] = changes[i].value;
        assert_int_equal(icmp_too_big(packet, sizeof packet, 1300, router, out), 0);
    }
    for (size_t size = 0; size < 28; size++)
        assert_int_equal(icmp_too_big(udp, size, 1300, router, out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_takes_the_time_of_its_bytes_and_the_delay),
        cmocka_unit_test(packets_come_in_order_at_the_rate_of_the_bottleneck),
        cmocka_unit_test(the_queue_takes_its_bytes_and_not_one_packet_more),
        cmocka_unit_test(what_finds_no_slot_is_dropped_and_slots_come_back),
        cmocka_unit_test(loss_is_what_was_asked_for),
        cmocka_unit_test(the_same_seed_loses_the_same_packets_whatever_else_is_set),
        cmocka_unit_test(a_duplicate_comes_right_behind_its_packet),
        cmocka_unit_test(a_reordered_packet_overtakes_and_none_is_missing),
        cmocka_unit_test(a_black_hole_swallows_and_what_is_on_its_way_still_comes),
        cmocka_unit_test(a_packet_over_the_mtu_is_told_of_and_one_at_it_passes),
        cmocka_unit_test(settings_go_to_one_way_or_both),
        cmocka_unit_test(a_wrong_setting_changes_nothing),
        cmocka_unit_test(the_answer_to_a_packet_too_big_is_rfc_1191s),
        cmocka_unit_test(what_must_not_be_answered_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
