/* The record queue: positions, wrap-around, rollback, limits, and two threads. */
#include "core/record_queue.h"

#include <pthread.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_out_as_they_went_in_over_many_wraps),
        cmocka_unit_test(capacity_is_exact),
        cmocka_unit_test(a_rollback_leaves_no_trace),
        cmocka_unit_test(two_threads_see_every_record_once_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
