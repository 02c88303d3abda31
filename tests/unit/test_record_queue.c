/* The record queue: positions, wrap-around, rollback, limits, and two threads. */
#include "core/outlet.h"
#include "core/random.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void records_come_out_as_they_went_in_over_many_wraps(void **state)
{
    (void)state;
    struct record_queue q;
    assert_int_equal(record_queue_init(&q, 1000), 0);
    uint8_t data[300];
    uint64_t next_in = 0, next_out = 0;
    while (next_out < 20000) {
        size_t size = next_in % sizeof data;
        memset(data, (int)(next_in & 0xff), size);
        if (next_in < 20000 && record_queue_append(&q, data, size) == 0) {
            next_in++;
            continue;
        }
        record_queue_publish(&q);
        struct stream_position end = record_queue_see_published(&q), at = q.freed;
        assert_int_equal(end.records, next_in);
        while (at.bytes < end.bytes) {
            struct span rest = record_queue_span(&q, at.bytes), record;
            size_t framed = record_get(rest.data, rest.data + rest.size, &record);
            assert_int_not_equal(framed, 0);
            assert_int_equal(record.size, next_out % sizeof data);
            for (size_t i = 0; i < record.size; i++)
                assert_int_equal(record.data[i], next_out & 0xff);
            at.bytes += framed;
            at.records++;
            next_out++;
        }
        record_queue_free_to(&q, at);
    }
    record_queue_dispose(&q);
}

static void capacity_is_exact(void **state)
{
    (void)state;
    struct record_queue q;
    assert_int_equal(record_queue_init(&q, 100), 0);
    uint8_t data[99] = {0};
    assert_int_equal(record_queue_append(&q, data, 99), PE_FULL); /* 2 + 99 */
    assert_int_equal(record_queue_append(&q, data, 98), 0);
    assert_int_equal(record_queue_append(&q, data, 0), PE_FULL);
    record_queue_publish(&q);
    record_queue_free_to(&q, record_queue_see_published(&q));
    assert_int_equal(record_queue_append(&q, data, 0), 0);
    record_queue_dispose(&q);
}

static void a_rollback_leaves_no_trace(void **state)
{
    (void)state;
    struct record_queue q;
    assert_int_equal(record_queue_init(&q, 4096), 0);
    assert_int_equal(record_queue_append(&q, "kept", 4), 0);
    record_queue_publish(&q);
    struct stream_position mark = q.tail;
    assert_int_equal(record_queue_append(&q, "undone", 6), 0);
    record_queue_rollback(&q, mark);
    assert_int_equal(record_queue_append(&q, "after", 5), 0);
    record_queue_publish(&q);
    assert_int_equal(record_queue_see_published(&q).records, 2);
    struct span all = record_queue_span(&q, 0);
    assert_memory_equal(all.data,
                        "\x04kept\x05"
                        "after",
                        all.size);
    record_queue_dispose(&q);
}

static struct stream_position append(struct record_queue *q, const char *text)
{
    assert_int_equal(record_queue_append(q, text, strlen(text)), 0);
    return q->tail;
}

static void a_part_of_what_was_appended_is_published(void **state)
{
    (void)state;
    struct record_queue q;
    assert_int_equal(record_queue_init(&q, 4096), 0);
    struct stream_position one = append(&q, "one"), two = append(&q, "two"), three = append(&q, "three");
    record_queue_publish_to(&q, one);
    assert_int_equal(record_queue_see_published(&q).records, 1);
    assert_int_equal(record_queue_span(&q, 0).size, 4);
    record_queue_rollback(&q, two); /* what is not published can be taken back */
    record_queue_publish_to(&q, two);
    record_queue_publish_to(&q, two);
    assert_int_equal(record_queue_see_published(&q).bytes, two.bytes);
    assert_int_equal(three.records, 3);
    assert_int_equal(record_queue_glance(&q).held_records, 2);
    record_queue_dispose(&q);
}

static void numbers_begin_where_they_are_told_to(void **state)
{
    (void)state;
    static const uint64_t starts[] = {1, 77, UINT32_MAX - 1, UINT32_MAX, (UINT64_C(1) << 60) + 3};
    for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
        struct record_queue q;
        assert_int_equal(record_queue_init(&q, 4096), 0);
        record_queue_start(&q, starts[i]);
        assert_int_equal(record_queue_see_published(&q).records, starts[i]);
        assert_true(record_queue_empty(&q));
        append(&q, "a");
        append(&q, "b");
        record_queue_publish(&q);
        assert_int_equal(record_queue_see_published(&q).records, starts[i] + 2);
        assert_int_equal(record_queue_glance(&q).held_records, 2);
        record_queue_free_to(&q, q.published_seen);
        assert_true(record_queue_empty(&q));
        assert_int_equal(q.freed_seen.records, starts[i] + 2);
        record_queue_dispose(&q);
    }
}

static void lost_numbers_are_passed_over_whenever_the_consumer_looks(void **state)
{
    (void)state;
    static const uint64_t jumps[] = {1, 1000, UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 33) + 5};
    for (size_t i = 0; i < 2 * ARRAY_SIZE(jumps); i++) {
        bool look_at_once = i % 2;
        struct record_queue q;
        assert_int_equal(record_queue_init(&q, 4096), 0);
        record_queue_start(&q, 10);
        append(&q, "a");
        record_queue_publish(&q);
        assert_false(record_queue_empty(&q));
        record_queue_free_to(&q, record_queue_see_published(&q));
        assert_true(record_queue_empty(&q));
        uint64_t to = 11 + jumps[i / 2];
        record_queue_jump(&q, to);
        if (look_at_once && jumps[i / 2] % (UINT64_C(1) << 32) != 0) {
            assert_false(record_queue_empty(&q));
            assert_int_equal(record_queue_see_published(&q).records, to);
            assert_int_equal(q.freed.records, to);
            assert_int_equal(record_queue_glance(&q).held_records, 0);
            assert_true(record_queue_empty(&q));
        }
        append(&q, "b");
        append(&q, "c");
        record_queue_publish(&q);
        record_queue_see_freed(&q);
        assert_int_equal(record_queue_held(&q), 4);
        assert_int_equal(record_queue_see_published(&q).records, to + 2);
        assert_int_equal(q.freed.records, to);
        assert_int_equal(q.freed.bytes, 2);
        assert_int_equal(record_queue_glance(&q).held_records, 2);
        assert_int_equal(record_queue_glance(&q).held_bytes, 4);
        record_queue_free_to(&q, q.published_seen);
        assert_true(record_queue_empty(&q));
        assert_int_equal(q.freed_seen.records, to + 2);
        record_queue_dispose(&q);
    }
}

static void an_outlet_begins_where_its_store_says(void **state)
{
    (void)state;
    struct outlet o;
    assert_int_equal(outlet_init(&o, "wire", "app", "out", 4096, 100), 0);
    outlet_start(&o, 5, 9);
    assert_int_equal(atomic_load(&o.report.stored), 5);
    assert_int_equal(o.sent_before, 9);
    assert_int_equal(o.queue.tail.records, 5);
    outlet_dispose(&o);
}

#define THREADED 300000

static void *consume(void *argument)
{
    struct record_queue *q = argument;
    uint64_t expected = 0;
    while (expected < THREADED) {
        struct stream_position end = record_queue_see_published(q), at = q->freed;
        while (at.bytes < end.bytes) {
            struct span rest = record_queue_span(q, at.bytes), record;
            size_t framed = record_get(rest.data, rest.data + rest.size, &record);
            uint64_t value;
            if (framed == 0 || record.size != sizeof value)
                abort();
            memcpy(&value, record.data, sizeof value);
            if (value != expected++)
                abort();
            at.bytes += framed;
            at.records++;
        }
        record_queue_free_to(q, at);
    }
    return NULL;
}

static void two_threads_see_every_record_once_in_order(void **state)
{
    (void)state;
    struct record_queue q;
    assert_int_equal(record_queue_init(&q, 8192), 0);
    pthread_t consumer;
    assert_int_equal(pthread_create(&consumer, NULL, consume, &q), 0);
    for (uint64_t i = 0; i < THREADED;) {
        if (record_queue_append(&q, &i, sizeof i) == 0)
            i++;
        record_queue_publish(&q);
    }
    pthread_join(consumer, NULL);
    record_queue_see_freed(&q);
    assert_int_equal(record_queue_held(&q), 0);
    record_queue_dispose(&q);
}

#define JUMPING 100000

/* Each record says its number. */
static void *check_numbers(void *argument)
{
    struct record_queue *q = argument;
    uint64_t records = 0;
    while (records < JUMPING) {
        struct stream_position end = record_queue_see_published(q), at = q->freed;
        while (at.bytes < end.bytes) {
            struct span rest = record_queue_span(q, at.bytes), record;
            uint64_t value;
            at.bytes += record_get(rest.data, rest.data + rest.size, &record);
            at.records++;
            records++;
            memcpy(&value, record.data, sizeof value);
            if (value != at.records)
                abort();
        }
        record_queue_free_to(q, at);
    }
    return NULL;
}

static void two_threads_agree_on_numbers_over_jumps(void **state)
{
    (void)state;
    struct record_queue q;
    struct random random = {1};
    assert_int_equal(record_queue_init(&q, 200), 0);
    pthread_t consumer;
    assert_int_equal(pthread_create(&consumer, NULL, check_numbers, &q), 0);
    uint64_t jumps = 0;
    for (uint64_t i = 0; i < JUMPING;) {
        while (i == 100 * jumps && !record_queue_empty(&q)) { /* it jumps only then */
            record_queue_see_freed(&q);
            sched_yield();
        }
        if (i == 100 * jumps) {
            record_queue_jump(&q, q.tail.records + 1 + random_below(&random, UINT64_C(1) << 33));
            jumps++;
        }
        uint64_t number = q.tail.records + 1;
        if (record_queue_append(&q, &number, sizeof number) == 0)
            i++;
        record_queue_publish(&q);
    }
    pthread_join(consumer, NULL);
    assert_int_equal(jumps, JUMPING / 100);
    assert_true(record_queue_empty(&q));
    record_queue_dispose(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_out_as_they_went_in_over_many_wraps),
        cmocka_unit_test(capacity_is_exact),
        cmocka_unit_test(a_rollback_leaves_no_trace),
        cmocka_unit_test(a_part_of_what_was_appended_is_published),
        cmocka_unit_test(numbers_begin_where_they_are_told_to),
        cmocka_unit_test(lost_numbers_are_passed_over_whenever_the_consumer_looks),
        cmocka_unit_test(an_outlet_begins_where_its_store_says),
        cmocka_unit_test(two_threads_agree_on_numbers_over_jumps),
        cmocka_unit_test(two_threads_see_every_record_once_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
