/* Streams of a link without packets: pieces sent, lost and sent again from an outlet's queue; put together in
 * a ring; who sends next. */
#include "core/random.h"
#include "link/receive_stream.h"
#include "link/scheduler.h"
#include "link/send_stream.h"
#include "link/stream_limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define MAX_RECORD 100000
#define WINDOW     (128 << 10)

struct ends {
    struct outlet outlet;
    struct send_stream out;
    struct receive_stream in;
    uint64_t pushed;  /* records appended */
    uint64_t checked; /* records that came out, each compared with what went in */
};

static struct ends *ends_new(uint64_t queue_bytes)
{
    struct ends *e = aligned_alloc(CACHE_LINE, (sizeof *e + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    assert_non_null(e);
    memset(e, 0, sizeof *e);
    assert_int_equal(outlet_init(&e->outlet, "link", "app", "out", queue_bytes, MAX_RECORD), 0);
    assert_int_equal(receive_stream_init(&e->in, WINDOW, MAX_RECORD), 0);
    send_stream_init(&e->out, &e->outlet);
    send_stream_begin(&e->out, 0, LINK_STREAM_CREDIT);
    receive_stream_begin(&e->in, 1, LINK_STREAM_CREDIT);
    return e;
}

static void ends_free(struct ends *e)
{
    receive_stream_dispose(&e->in);
    outlet_dispose(&e->outlet);
    free(e);
}

/* At most `size` bytes of the next piece; empty: there is none. */
static struct span take_piece(struct send_stream *s, size_t size, uint64_t most_fresh, uint64_t *offset)
{
    size = (size_t)min_u64(size, send_stream_next(s, most_fresh, offset));
    return size > 0 ? span_of(send_stream_take(s, *offset, size), size) : span_of(NULL, 0);
}

/* Record n is of this size, and all of its bytes are (uint8_t)n. */
static size_t size_of(uint64_t n)
{
    return n % 211 == 0 ? 50000 + n % 50000 : n % 7 == 0 ? 0 : n % 90;
}

static void push(struct ends *e, uint64_t most)
{
    static uint8_t data[MAX_RECORD];
    for (uint64_t i = 0; i < most; i++) {
        uint64_t n = e->pushed + 1;
        memset(data, (int)(n & 0xff), size_of(n));
        if (outlet_queue(&e->outlet, data, size_of(n)) < 0)
            break;
        e->pushed = n;
    }
    record_queue_publish(&e->outlet.queue);
    send_stream_look(&e->out);
}

static void check_records(struct ends *e, const struct received_records *records)
{
    assert_int_equal(records->first, e->checked + 1);
    const uint8_t *at = records->bytes.data, *end = at + records->bytes.size;
    for (uint64_t i = 0; i < records->count; i++) {
        struct span record;
        at += record_get(at, end, &record);
        uint64_t n = ++e->checked;
        assert_int_equal(record.size, size_of(n));
        for (size_t b = 0; b < record.size; b++)
            assert_int_equal(record.data[b], n & 0xff);
    }
    assert_ptr_equal(at, end);
}

static void take_records(struct ends *e)
{
    struct received_records records = receive_stream_take(&e->in);
    assert_int_equal(records.error, 0);
    check_records(e, &records);
    receive_stream_free(&e->in, records.bytes.size);
}

static void store(struct ends *e, uint64_t number)
{
    if (receive_stream_store(&e->in, number))
        assert_int_equal(send_stream_stored(&e->out, e->in.stored), 0);
    e->in.credit = receive_stream_credit(&e->in);
    send_stream_credit(&e->out, e->in.credit);
}

/* A piece on its way: its bytes are copied, as a packet would. */
struct piece {
    uint64_t offset;
    size_t size;
    uint8_t bytes[2000];
};

#define ON_THE_WAY 32

static void run_seed(uint64_t seed)
{
    struct random random = {seed};
    struct ends *e = ends_new(300000);
    static struct piece way[ON_THE_WAY];
    unsigned count = 0;
    uint64_t total = 2000, turns = 0;
    while (e->outlet.queue.freed.records < total) {
        assert_true(++turns < 200000);
        if (e->pushed < total)
            push(e, random_below(&random, min_u64(total - e->pushed, 100)) + 1);
        while (count < ON_THE_WAY) {
            struct piece *p = &way[count];
            struct span bytes =
                take_piece(&e->out, 1 + random_below(&random, sizeof p->bytes), UINT64_MAX, &p->offset);
            if (bytes.size == 0)
                break;
            p->size = bytes.size;
            memcpy(p->bytes, bytes.data, bytes.size);
            count++;
        }
        if (count > 0) {
            unsigned which = (unsigned)random_below(&random, count);
            struct piece *p = &way[which];
            if (random_below(&random, 100) < 30)
                send_stream_lost(&e->out, p->offset, p->size);
            else
                assert_int_equal(receive_stream_put(&e->in, p->offset, span_of(p->bytes, p->size)), 0);
            if (random_below(&random, 10) > 0) /* else it comes, or is taken for lost, once more */
                way[which] = way[--count];
        }
        if (random_below(&random, 4) == 0)
            take_records(e);
        if (random_below(&random, 8) == 0)
            store(e, e->checked - random_below(&random, e->checked + 1) / 4);
        if (count == 0) {
            take_records(e);
            store(e, e->checked);
        }
    }
    assert_int_equal(e->checked, total);
    assert_true(record_queue_held(&e->outlet.queue) <= 300000);
    ends_free(e);
}

static void records_come_once_in_order_whatever_their_pieces_meet(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++)
        run_seed(seed);
}

static void take_and_drop(struct ends *e, size_t size, bool deliver)
{
    uint64_t offset;
    struct span bytes = take_piece(&e->out, size, UINT64_MAX, &offset);
    assert_int_equal(bytes.size, size);
    if (deliver)
        assert_int_equal(receive_stream_put(&e->in, offset, bytes), 0);
    else
        send_stream_lost(&e->out, offset, size);
}

static void more_losses_than_ranges_cost_bytes_and_no_records(void **state)
{
    (void)state;
    struct ends *e = ends_new(300000);
    push(e, 200);
    /* losses are told late: else each would go again at once */
    struct range lost[3 * SEND_STREAM_LOST / 2];
    unsigned count = 0;
    while (send_stream_fresh(&e->out) >= 20 && count < ARRAY_SIZE(lost)) {
        uint64_t offset;
        struct span bytes = take_piece(&e->out, 10, UINT64_MAX, &offset);
        lost[count++] = (struct range){offset, offset + bytes.size};
        take_and_drop(e, 10, true);
    }
    assert_int_equal(count, ARRAY_SIZE(lost));
    for (unsigned i = count; i-- > 0;)
        send_stream_lost(&e->out, lost[i].start, lost[i].end - lost[i].start);
    assert_true(e->out.lost.count <= SEND_STREAM_LOST);
    while (send_stream_has_lost(&e->out) || send_stream_fresh(&e->out) > 0) {
        uint64_t offset;
        struct span bytes = take_piece(&e->out, 1000, UINT64_MAX, &offset);
        assert_int_equal(receive_stream_put(&e->in, offset, bytes), 0);
    }
    take_records(e);
    assert_int_equal(e->checked, 200);
    ends_free(e);
}

static void more_holes_than_places_keep_nothing_and_lose_nothing(void **state)
{
    (void)state;
    struct ends *e = ends_new(300000);
    uint8_t byte = 0;
    for (uint64_t i = 0; i < RECEIVE_STREAM_PIECES; i++)
        assert_int_equal(receive_stream_put(&e->in, 2 + 2 * i, span_of(&byte, 1)), 0);
    uint64_t highest = e->in.highest;
    assert_int_equal(receive_stream_put(&e->in, 2 + 2 * RECEIVE_STREAM_PIECES, span_of(&byte, 1)), PE_FULL);
    assert_int_equal(e->in.highest, highest);
    assert_int_equal(receive_stream_put(&e->in, 0, span_of(&byte, 1)), 0);
    assert_int_equal(receive_stream_put(&e->in, 1, span_of(&byte, 1)), 0);
    assert_int_equal(e->in.contiguous, 3);
    assert_int_equal(receive_stream_put(&e->in, 2 + 2 * RECEIVE_STREAM_PIECES, span_of(&byte, 1)), 0);
    ends_free(e);
}

static void nothing_is_kept_beyond_the_credit_and_nothing_sent(void **state)
{
    (void)state;
    struct ends *e = ends_new(300000);
    push(e, 500);
    assert_true(e->outlet.queue.published_seen.bytes > LINK_STREAM_CREDIT);
    uint64_t offset, sent = 0;
    struct span bytes;
    while ((bytes = take_piece(&e->out, 1000, UINT64_MAX, &offset)).size > 0)
        sent += bytes.size;
    assert_int_equal(sent, LINK_STREAM_CREDIT);
    uint8_t two[2] = {0};
    assert_int_equal(receive_stream_put(&e->in, LINK_STREAM_CREDIT - 1, span_of(two, 2)), PE_TOO_LARGE);
    assert_int_equal(receive_stream_put(&e->in, LINK_STREAM_CREDIT - 1, span_of(two, 1)), 0);
    send_stream_credit(&e->out, LINK_STREAM_CREDIT + 5);
    assert_int_equal(take_piece(&e->out, 1000, 3, &offset).size, 3); /* what the session lets it */
    assert_int_equal(take_piece(&e->out, 1000, UINT64_MAX, &offset).size, 2);
    ends_free(e);
}

static void a_stored_number_that_cannot_be_frees_nothing(void **state)
{
    (void)state;
    struct ends *e = ends_new(300000);
    push(e, 10);
    take_and_drop(e, 30, true);
    assert_int_equal(send_stream_stored(&e->out, 11), PE_STORED_NUMBER);
    assert_int_equal(send_stream_stored(&e->out, UINT64_MAX), PE_STORED_NUMBER);
    assert_int_equal(send_stream_stored(&e->out, 10), PE_STORED_NUMBER); /* not sent yet */
    assert_int_equal(e->outlet.queue.freed.records, 0);
    assert_int_equal(send_stream_stored(&e->out, 5), 0);
    assert_int_equal(e->outlet.queue.freed.records, 5);
    assert_int_equal(e->outlet.queue.freed.bytes, 5 + 1 + 2 + 3 + 4 + 5);
    ends_free(e);
}

static void a_receiver_that_remembers_more_is_believed_of_what_was_ever_sent(void **state)
{
    (void)state;
    struct ends *e = ends_new(300000);
    push(e, 10);
    take_and_drop(e, 30, true);
    assert_int_equal(send_stream_end(&e->out), 30);
    assert_int_equal(send_stream_fresh(&e->out), 0);
    send_stream_begin(&e->out, 7, LINK_STREAM_CREDIT);
    assert_int_equal(send_stream_stored(&e->out, 5), PE_STORED_NUMBER);
    send_stream_end(&e->out);
    assert_int_equal(send_stream_stored(&e->out, 5), 0);
    send_stream_begin(&e->out, 8, LINK_STREAM_CREDIT);
    assert_int_equal(e->out.origin.records, 5);
    uint64_t offset;
    struct span bytes = take_piece(&e->out, 3, UINT64_MAX, &offset);
    assert_int_equal(offset, 0);
    assert_memory_equal(bytes.data, "\x06\x06\x06", 3); /* record 6: its size, its first bytes */
    ends_free(e);
}

static void stores_of_whole_pushes_count_no_records(void **state)
{
    (void)state;
    struct ends *e = ends_new(300000);
    for (unsigned i = 0; i < 20; i++)
        push(e, 5);
    uint64_t offset;
    while (take_piece(&e->out, 1000, UINT64_MAX, &offset).size > 0)
        ;
    /* no longer records: whoever counts them here goes astray */
    memset(ring_memory_at(&e->outlet.queue.memory, 0), 0xff, e->outlet.queue.published_seen.bytes);
    assert_int_equal(send_stream_stored(&e->out, 50), 0);
    assert_int_equal(send_stream_stored(&e->out, 55), 0);
    assert_int_equal(e->outlet.queue.freed.records, 55);
    ends_free(e);
}

static void stored_is_told_only_of_what_came_on_this_stream(void **state)
{
    (void)state;
    struct ends *e = ends_new(300000);
    uint8_t three[] = {1, 'a', 1, 'b', 1};
    receive_stream_begin(&e->in, 5, LINK_STREAM_CREDIT);
    assert_false(receive_stream_store(&e->in, 100));
    assert_int_equal(receive_stream_put(&e->in, 0, span_of(three, 5)), 0);
    assert_int_equal(receive_stream_take(&e->in).count, 2);
    assert_true(receive_stream_store(&e->in, 100));
    assert_int_equal(e->in.stored, 6);
    ends_free(e);
}

static void the_largest_record_fits_and_a_larger_one_is_an_error(void **state)
{
    (void)state;
    struct ends *e = ends_new(300000);
    static uint8_t record[MAX_RECORD + 8];
    size_t framed = varint_put(record, MAX_RECORD) + MAX_RECORD;
    e->in.credit = receive_stream_credit(&e->in);
    for (uint64_t round = 0; round < 5; round++) {
        assert_int_equal(receive_stream_put(&e->in, round * framed, span_of(record, framed)), 0);
        struct received_records records = receive_stream_take(&e->in);
        assert_int_equal(records.count, 1);
        assert_memory_equal(records.bytes.data, record, framed);
        receive_stream_free(&e->in, framed);
        e->in.credit = receive_stream_credit(&e->in);
    }
    varint_put(record, MAX_RECORD + 1);
    assert_int_equal(receive_stream_put(&e->in, 5 * framed, span_of(record, 10)), 0);
    assert_int_equal(receive_stream_take(&e->in).error, PE_TOO_LARGE);
    ends_free(e);
}

static void what_has_come_is_handed_on_in_pieces_of_whole_records(void **state)
{
    (void)state;
    enum { RECORDS = 6000, FRAMED = 21 };
    static uint8_t bytes[RECORDS * FRAMED];
    struct ends *e = ends_new(300000);
    for (unsigned i = 0; i < RECORDS; i++)
        bytes[i * FRAMED] = FRAMED - 1;
    e->in.credit = receive_stream_credit(&e->in);
    assert_int_equal(receive_stream_put(&e->in, 0, span_of(bytes, sizeof bytes)), 0);
    uint64_t records = 0;
    struct received_records piece;
    do {
        piece = receive_stream_take(&e->in);
        assert_int_equal(piece.first, records + 1);
        assert_int_equal(piece.bytes.size, piece.count * FRAMED);
        assert_true(piece.bytes.size <= RECEIVE_STREAM_TAKE);
        records += piece.count;
        assert_int_equal(piece.more, records < RECORDS);
    } while (piece.more);
    assert_int_equal(records, RECORDS);
    ends_free(e);
}

/* Whoever takes while there is more would never end. */
static void of_a_record_larger_than_a_piece_there_is_no_more_until_it_is_whole(void **state)
{
    (void)state;
    enum { SIZE = MAX_RECORD };
    assert_true(SIZE > RECEIVE_STREAM_TAKE);
    static uint8_t bytes[SIZE + VARINT_MAX_BYTES];
    struct ends *e = ends_new(300000);
    size_t framed = varint_put(bytes, SIZE) + SIZE;
    e->in.credit = receive_stream_credit(&e->in);
    assert_int_equal(receive_stream_put(&e->in, 0, span_of(bytes, framed - 1)), 0);
    struct received_records piece = receive_stream_take(&e->in);
    assert_int_equal(piece.count, 0);
    assert_false(piece.more);
    assert_int_equal(receive_stream_put(&e->in, framed - 1, span_of(bytes, 1)), 0);
    piece = receive_stream_take(&e->in);
    assert_int_equal(piece.count, 1);
    assert_int_equal(piece.bytes.size, framed);
    ends_free(e);
}

static void a_stream_that_is_over_uses_no_memory(void **state)
{
    (void)state;
    struct ends *e = ends_new(300000);
    push(e, 10);
    take_and_drop(e, 30, true);
    receive_stream_end(&e->in);
    for (uint64_t i = 0; i < 2 * e->in.ring.size; i++) /* fresh pages */
        assert_int_equal(e->in.ring.base[i], 0);
    receive_stream_begin(&e->in, 1, LINK_STREAM_CREDIT);
    assert_int_equal(receive_stream_put(&e->in, 0, span_of((const uint8_t *)"\1a", 2)), 0);
    assert_int_equal(receive_stream_take(&e->in).count, 1);
    ends_free(e);
}

static void a_record_that_is_coming_needs_credit_once_all_before_is_freed(void **state)
{
    (void)state;
    struct ends *e = ends_new(300000);
    uint8_t bytes[8] = {1, 'a'};
    size_t prefix = varint_put(bytes + 2, MAX_RECORD);
    assert_int_equal(receive_stream_need(&e->in), 0);
    assert_int_equal(receive_stream_put(&e->in, 0, span_of(bytes, 3)), 0);
    assert_int_equal(receive_stream_take(&e->in).count, 1);
    receive_stream_free(&e->in, 2);
    assert_int_equal(receive_stream_need(&e->in), 0); /* its size is not known yet */
    assert_int_equal(receive_stream_put(&e->in, 3, span_of(bytes + 3, prefix - 1)), 0);
    assert_int_equal(receive_stream_need(&e->in), 2 + prefix + MAX_RECORD);
    receive_stream_begin(&e->in, 1, LINK_STREAM_CREDIT);
    assert_int_equal(receive_stream_put(&e->in, 0, span_of(bytes, 2 + prefix)), 0);
    assert_int_equal(receive_stream_take(&e->in).count, 1);
    assert_int_equal(receive_stream_need(&e->in), 0); /* the one before is held */
    ends_free(e);
}

static void turns_are_fair_whatever_the_sizes(void **state)
{
    (void)state;
    struct scheduler scheduler;
    struct scheduled streams[3] = {{0}};
    uint64_t sent[3] = {0};
    static const size_t piece[3] = {1400, 10, 600};
    scheduler_init(&scheduler, 4096);
    for (unsigned i = 0; i < 3; i++)
        scheduler_add(&scheduler, &streams[i]);
    for (unsigned i = 0; i < 100000; i++) {
        size_t who = (size_t)(scheduler_head(&scheduler) - streams);
        sent[who] += piece[who];
        scheduler_sent(&scheduler, piece[who]);
        for (unsigned k = 1; k < 3; k++) {
            uint64_t more = max_u64(sent[0], sent[k]), less = min_u64(sent[0], sent[k]);
            assert_true(more - less <= 4096 + 1400);
        }
    }
    scheduler_remove_head(&scheduler);
    scheduler_clear(&scheduler);
    assert_null(scheduler_head(&scheduler));
    scheduler_add(&scheduler, &streams[2]);
    scheduler_add(&scheduler, &streams[2]);
    assert_ptr_equal(scheduler_head(&scheduler), &streams[2]);
    scheduler_remove_head(&scheduler);
    assert_null(scheduler_head(&scheduler));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_once_in_order_whatever_their_pieces_meet),
        cmocka_unit_test(more_losses_than_ranges_cost_bytes_and_no_records),
        cmocka_unit_test(more_holes_than_places_keep_nothing_and_lose_nothing),
        cmocka_unit_test(nothing_is_kept_beyond_the_credit_and_nothing_sent),
        cmocka_unit_test(a_stored_number_that_cannot_be_frees_nothing),
        cmocka_unit_test(a_receiver_that_remembers_more_is_believed_of_what_was_ever_sent),
        cmocka_unit_test(stores_of_whole_pushes_count_no_records),
        cmocka_unit_test(stored_is_told_only_of_what_came_on_this_stream),
        cmocka_unit_test(the_largest_record_fits_and_a_larger_one_is_an_error),
        cmocka_unit_test(what_has_come_is_handed_on_in_pieces_of_whole_records),
        cmocka_unit_test(of_a_record_larger_than_a_piece_there_is_no_more_until_it_is_whole),
        cmocka_unit_test(a_stream_that_is_over_uses_no_memory),
        cmocka_unit_test(a_record_that_is_coming_needs_credit_once_all_before_is_freed),
        cmocka_unit_test(turns_are_fair_whatever_the_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
