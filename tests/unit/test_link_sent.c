/* The sent map: each item comes back once; memory is bounded. */
#include "link/sent.h"

#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct sent_commit_options data = {.bytes = 1200, .eliciting = true};

struct told {
    struct sent_item item[100];
    uint32_t count;
};

static void tell(void *context, const struct sent_item *item)
{
    struct told *told = context;
    assert_true(told->count < 100);
    told->item[told->count++] = *item;
}

static uint64_t send_records(struct sent *s, uint32_t stream, uint64_t offset, uint64_t size, uint64_t now_ns)
{
    assert_true(sent_add(s, (struct sent_item){offset, size, stream, SENT_RECORDS}));
    return sent_commit(s, data, now_ns);
}

static void take(struct sent *s, uint64_t number, struct sent_run *run, struct told *told)
{
    sent_take(s, sent_at(s, number), run, tell, told);
}

static void neighbours_come_back_as_one(void **state)
{
    (void)state;
    struct sent s;
    struct told told = {.count = 0};
    struct sent_run run = {.any = false};
    assert_int_equal(sent_init(&s, 16, 5), 0);
    assert_int_equal(send_records(&s, 1, 0, 100, 1), 5);
    send_records(&s, 1, 100, 50, 2); /* goes on */
    send_records(&s, 2, 150, 50, 3); /* another stream */
    send_records(&s, 2, 300, 50, 4); /* a hole before it */
    sent_add(&s, (struct sent_item){350, 0, 2, SENT_STORED});
    sent_commit(&s, data, 5); /* another kind */
    assert_true(s.outstanding == 5 && s.bytes_in_flight == 6000 && s.last_eliciting_ns == 5);
    for (uint64_t n = 5; n < 10; n++)
        take(&s, n, &run, &told);
    sent_run_end(&run, tell, &told);
    sent_advance(&s);
    assert_int_equal(told.count, 4);
    assert_true(told.item[0].stream == 1 && told.item[0].offset == 0 && told.item[0].size == 150);
    assert_true(told.item[1].stream == 2 && told.item[1].offset == 150 && told.item[1].size == 50);
    assert_true(told.item[2].offset == 300 && told.item[3].kind == SENT_STORED);
    assert_true(s.first == 10 && s.outstanding == 0 && s.bytes_in_flight == 0);
    assert_true(s.items_first == s.items_next);
    sent_dispose(&s);
}

static void the_map_is_full_at_its_capacity_and_drains(void **state)
{
    (void)state;
    struct sent s;
    struct told told = {.count = 0};
    struct sent_run run = {.any = false};
    assert_int_equal(sent_init(&s, 16, 0), 0);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 16; i++) {
            assert_true(sent_room(&s));
            send_records(&s, 0, 0, 1, 1);
        }
        assert_false(sent_room(&s));
        take(&s, s.first + 1, &run, &told); /* not the oldest: no room yet */
        sent_advance(&s);
        assert_false(sent_room(&s));
        for (uint64_t n = s.first; n < s.next; n++)
            if (sent_at(&s, n)->outstanding)
                take(&s, n, &run, &told);
        sent_advance(&s);
        told.count = 0;
    }
    sent_dispose(&s);
}

static void packets_full_of_items_fill_it_sooner(void **state)
{
    (void)state;
    struct sent s;
    assert_int_equal(sent_init(&s, 64, 0), 0);
    uint32_t packets = 0;
    for (; sent_room(&s); packets++) {
        for (uint32_t i = 0; i < SENT_ITEMS_PER_PACKET; i++)
            assert_true(sent_add(&s, (struct sent_item){.kind = SENT_OPEN, .stream = packets}));
        assert_false(sent_add(&s, (struct sent_item){.kind = SENT_OPEN}));
        sent_commit(&s, data, 1);
    }
    assert_int_equal(packets, 16); /* four items a packet on average */
    sent_dispose(&s);
}

static void packets_that_do_not_elicit_leave_no_trace(void **state)
{
    (void)state;
    struct sent s;
    assert_int_equal(sent_init(&s, 16, 0), 0);
    for (int i = 0; i < 1000; i++) {
        sent_add(&s, (struct sent_item){.kind = SENT_ACK});
        assert_true(sent_room(&s));
        assert_int_equal(sent_commit(&s, (struct sent_commit_options){.bytes = 60}, 1), i);
    }
    assert_true(s.bytes_in_flight == 0 && s.outstanding == 0 && s.items_next == 0);
    sent_dispose(&s);
}

static void an_abandoned_packet_takes_no_number(void **state)
{
    (void)state;
    struct sent s;
    struct told told = {.count = 0};
    struct sent_run run = {.any = false};
    assert_int_equal(sent_init(&s, 16, 3), 0);
    sent_add(&s, (struct sent_item){.kind = SENT_OPEN});
    sent_abandon(&s);
    assert_int_equal(send_records(&s, 0, 7, 1, 1), 3);
    take(&s, 3, &run, &told);
    sent_run_end(&run, tell, &told);
    assert_true(told.count == 1 && told.item[0].kind == SENT_RECORDS && told.item[0].offset == 7);
    sent_dispose(&s);
}

/* Any order of taking: every item once, sums right. */
static void each_item_comes_back_once(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random random = {seed};
        struct sent s;
        struct told told = {.count = 0};
        uint64_t items_sent = 0, items_back = 0;
        assert_int_equal(sent_init(&s, 64, seed), 0);
        for (int i = 0; i < 5000; i++) {
            if (sent_room(&s) && random_below(&random, 2)) {
                uint64_t items = random_below(&random, SENT_ITEMS_PER_PACKET + 1);
                for (uint64_t k = 0; k < items; k++)
                    sent_add(&s, (struct sent_item){.kind = SENT_OPEN});
                sent_commit(&s, data, 1);
                items_sent += items;
            } else if (s.next > s.first) {
                struct sent_run run = {.any = false};
                uint64_t number = s.first + random_below(&random, s.next - s.first);
                if (sent_at(&s, number)->outstanding)
                    take(&s, number, &run, &told);
                sent_run_end(&run, tell, &told);
                sent_advance(&s);
                items_back += told.count;
                told.count = 0;
            }
            assert_true(s.bytes_in_flight == 1200 * (uint64_t)s.outstanding);
            assert_true(s.next - s.first <= 64);
        }
        for (uint64_t n = s.first; n < s.next; n++)
            items_back += sent_at(&s, n)->outstanding ? sent_at(&s, n)->items : 0;
        assert_int_equal(items_sent, items_back);
        sent_dispose(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_come_back_as_one),
        cmocka_unit_test(the_map_is_full_at_its_capacity_and_drains),
        cmocka_unit_test(packets_full_of_items_fill_it_sooner),
        cmocka_unit_test(packets_that_do_not_elicit_leave_no_trace),
        cmocka_unit_test(an_abandoned_packet_takes_no_number),
        cmocka_unit_test(each_item_comes_back_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
