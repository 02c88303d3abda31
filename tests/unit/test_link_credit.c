/* Credit between the streams of one peer: real outputs and real inlets, frame by frame, and apps of which
 * some stand still. No app keeps the records of another from coming.
 *
 *     outlets ──▶ outputs ──packets──▶ inlets ──▶ apps: each has an inbox, which an app that stands still
 *                         ◀──a tick later──┘            leaves full
 */
#include "core/random.h"
#include "link/inlets.h"
#include "link/outputs.h"
#include "link/stream_limits.h"

#include <sys/mman.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB         (UINT64_C(1) << 20)
#define STREAMS     256
#define PACKET      1400
#define PACKETS     100 /* a tick */
#define TICK_NS     NS_PER_MS
#define TICKS_PER_S 1000
#define RECORD      1000
#define INBOX       (64u << 10)

struct app {
    _Alignas(CACHE_LINE) struct outlet outlet;
    struct link_output output;
    size_t record_bytes;
    uint64_t pushed;
    bool stands_still;
    uint64_t slow_ns; /* if not 0, it takes one record each so often */
    struct inlet *inlet;
    uint64_t taken;    /* records into its inbox; those up to here are passed over when they come again */
    uint64_t stored;   /* of those */
    uint64_t again;    /* records that came again */
    uint64_t waits_ns; /* since when what it holds waits */
    uint64_t taken_ns, longest_ns; /* when it took one last; the longest time without */
};

struct world {
    struct app *apps; /* STREAMS of them */
    uint32_t count;
    struct inlets inlets;
    struct outputs outputs;
    struct sent there, back;
    struct random random;
    uint64_t now_ns;
    uint64_t relieved, most_held;
    bool large; /* beginnings of large records may fill the window: those are relieved without waiting */
};

static struct world w;

/* --- the sending host --- */

static uint64_t number_of(struct span record)
{
    uint64_t number;
    memcpy(&number, record.data, sizeof number);
    return number;
}

static void push(struct app *app, uint64_t most)
{
    static uint8_t data[RECORD_MAX_BYTES];
    uint64_t before = app->pushed;
    while (app->pushed - before < most) {
        uint64_t number = app->pushed + 1;
        memcpy(data, &number, sizeof number);
        if (outlet_queue(&app->outlet, data, app->record_bytes) < 0)
            break;
        app->pushed++;
    }
    if (app->pushed == before)
        return;
    record_queue_publish(&app->outlet.queue);
    outputs_pushed(&w.outputs, &app->output);
}

static void stored(void *context, struct link_output *output)
{
    struct app *app = container_of(output, struct app, output);
    (void)context;
    assert_true(app->outlet.queue.freed.records <= app->stored);
}

static void refused(void *context, struct link_output *output, int error, bool for_ever)
{
    (void)context, (void)output;
    assert_int_equal(error, PE_NO_ROOM);
    assert_false(for_ever);
    w.relieved++;
}

/* --- the receiving host --- */

static int admit(void *context, void *peer, const struct frame_open *open, struct inlet *inlet,
                 uint64_t *stored_number)
{
    (void)context, (void)peer;
    struct app *app = &w.apps[atoi((const char *)open->output.data)];
    assert_null(app->inlet);
    assert_true(open->first <= app->stored + 1);
    *stored_number = app->stored;
    app->inlet = inlet;
    inlet->context = app;
    return 0;
}

static void take(struct app *app, uint64_t number)
{
    if (number <= app->taken) {
        app->again++;
        return;
    }
    assert_int_equal(number, app->taken + 1);
    app->taken = number;
    app->longest_ns = max_u64(app->longest_ns, w.now_ns - app->taken_ns);
    app->taken_ns = w.now_ns;
}

static bool takes(const struct app *app)
{
    if (app->stands_still)
        return (app->taken - app->stored) * app->record_bytes < INBOX;
    return app->slow_ns == 0 || w.now_ns - app->taken_ns >= app->slow_ns;
}

/* As many of the records that it holds as it takes. */
static void turn(struct app *app)
{
    struct span held = receive_stream_held(&app->inlet->stream), record;
    uint64_t freed = 0;
    while (freed < held.size && takes(app)) {
        freed += record_get(held.data + freed, held.data + held.size, &record);
        take(app, number_of(record));
    }
    if (freed == 0)
        return;
    app->waits_ns = w.now_ns;
    inlet_freed(app->inlet, freed);
    if (app->stands_still)
        return;
    app->stored = app->taken;
    inlet_stored(app->inlet, app->stored);
}

static void records(void *context, struct inlet *inlet, uint64_t first, struct span bytes, uint64_t count)
{
    struct app *app = inlet->context;
    (void)context, (void)first, (void)count;
    if (receive_stream_held(&inlet->stream).size == bytes.size)
        app->waits_ns = w.now_ns;
    turn(app);
}

static void closed(void *context, struct inlet *inlet)
{
    struct app *app = inlet->context;
    (void)context;
    assert_true(inlet->reason == 0 || inlet->reason == REFUSED_NO_ROOM);
    if (inlet->reason != 0 && !w.large) {
        assert_true(inlet->stream.handed > inlet->stream.freed);
        assert_true(w.now_ns - app->waits_ns >= INLETS_PATIENCE_NS);
    }
    app->inlet = NULL;
}

static void wants(struct inlets *in)
{
    (void)in;
}

static const struct link_consumer consumer = {admit, records, closed, NULL};

/* --- the way --- */

static void acknowledge(struct sent *sent)
{
    for (uint32_t i = 0; i < sent->items_added; i++)
        outputs_acked(&w.outputs, &sent->items[(sent->items_next + i) & sent->items_mask]);
    sent_abandon(sent);
}

static void there(void)
{
    uint8_t packet[PACKET];
    for (unsigned i = 0; i < PACKETS && outputs_ready(&w.outputs); i++) {
        size_t size = outputs_fill(&w.outputs, &w.there, packet, packet + sizeof packet);
        for (const uint8_t *at = packet; at < packet + size;) {
            struct frame frame;
            at += frame_get(at, packet + size, &frame);
            if (frame.type == FRAME_OPEN)
                assert_int_equal(inlets_open(&w.inlets, &frame.open), 0);
            else
                assert_int_equal(inlets_records(&w.inlets, &frame.records), 0);
        }
        acknowledge(&w.there);
    }
    inlets_deliver(&w.inlets);
}

static void hear(const struct frame *frame)
{
    if (frame->type == FRAME_STORED)
        outputs_stored(&w.outputs, &frame->stored, w.now_ns);
    else if (frame->type == FRAME_REFUSED)
        outputs_refused(&w.outputs, &frame->refused, w.now_ns);
    else
        outputs_credit(&w.outputs, frame->credit);
}

static void back(void)
{
    uint8_t packet[PACKET];
    size_t size;
    while ((size = inlets_fill(&w.inlets, &w.back, packet, packet + sizeof packet)) > 0) {
        for (const uint8_t *at = packet; at < packet + size;) {
            struct frame frame;
            at += frame_get(at, packet + size, &frame);
            hear(&frame);
        }
        sent_abandon(&w.back);
    }
}

/* --- the world --- */

static void world_open(uint32_t count, uint64_t window, uint64_t queue_bytes, size_t max_record)
{
    static const uint8_t epoch[FRAME_EPOCH_BYTES] = {1};
    const struct outputs_hooks hooks = {stored, refused, NULL};
    const struct inlet_limits limits = {
        .places = STREAMS, .stream_window = window / 4, .session_window = window, .max_record = max_record};
    w = (struct world){.count = count, .random = {1}, .now_ns = NS_PER_S};
    w.apps = aligned_alloc(CACHE_LINE, STREAMS * sizeof *w.apps);
    assert_non_null(w.apps);
    memset(w.apps, 0, STREAMS * sizeof *w.apps);
    assert_int_equal(inlets_init(&w.inlets, &limits, &consumer, NULL, wants), 0);
    assert_int_equal(outputs_init(&w.outputs, STREAMS, 1, &hooks), 0);
    assert_int_equal(sent_init(&w.there, 64, 0), 0);
    assert_int_equal(sent_init(&w.back, 64, 0), 0);
    for (uint32_t i = 0; i < count; i++) {
        struct app *app = &w.apps[i];
        char name[12];
        snprintf(name, sizeof name, "%03u.", i);
        app->record_bytes = RECORD;
        app->taken_ns = w.now_ns;
        assert_int_equal(outlet_init(&app->outlet, "link", "app", name, queue_bytes, RECORD_MAX_BYTES), 0);
        assert_int_equal(
            outputs_add(&w.outputs, &app->output, &app->outlet, epoch, span_text("app"), span_text("event")),
            0);
    }
    outputs_begin(&w.outputs, STREAMS, window);
}

static void world_close(void)
{
    for (uint32_t i = 0; i < w.count; i++)
        w.apps[i].inlet = NULL;
    inlets_begin(&w.inlets);
    inlets_dispose(&w.inlets);
    outputs_dispose(&w.outputs);
    sent_dispose(&w.there);
    sent_dispose(&w.back);
    for (uint32_t i = 0; i < w.count; i++)
        outlet_dispose(&w.apps[i].outlet);
    free(w.apps);
}

static void check(void)
{
    const struct inlets *in = &w.inlets;
    uint64_t promised = 0, held = in->session_received - in->session_freed;
    for (uint32_t i = 0; i < w.count; i++) {
        const struct receive_stream *s = &in->list[i].stream;
        if (in->list[i].state == INLET_OPEN)
            promised += s->credit - s->freed;
    }
    assert_int_equal(in->promised, promised);
    assert_true(held <= in->limits.session_window + in->extra);
    assert_int_equal(in->session_received, w.outputs.session_sent); /* nothing is on the way now */
    w.most_held = max_u64(w.most_held, held);
}

/* `each` is pushed to every output that is well, in each tick, if there is room; all of it to the others. */
static void tick(uint64_t each)
{
    w.now_ns += TICK_NS;
    back();
    outputs_expired(&w.outputs, w.now_ns);
    for (uint32_t i = 0; i < w.count; i++)
        push(&w.apps[i], w.apps[i].stands_still ? UINT64_MAX : each);
    there();
    for (uint32_t i = 0; i < w.count; i++) {
        if (w.apps[i].inlet)
            turn(w.apps[i].inlet->context);
    }
    inlets_relieve(&w.inlets, w.now_ns);
}

static void run_s(uint64_t seconds, uint64_t each)
{
    for (uint64_t i = 0; i < seconds * TICKS_PER_S; i++) {
        tick(each);
        if (i % 16 == 0)
            check();
    }
}

static void stand_still(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        w.apps[i].stands_still = true;
}

/* Those that stood still go on: all that was pushed comes to each, once and in order. */
static void expect_all_stored_in(uint64_t seconds)
{
    for (uint32_t i = 0; i < w.count; i++)
        w.apps[i].stands_still = false;
    run_s(seconds, 0);
    back();
    for (uint32_t i = 0; i < w.count; i++) {
        assert_int_equal(w.apps[i].stored, w.apps[i].pushed);
        assert_int_equal(w.apps[i].outlet.queue.freed.records, w.apps[i].pushed);
    }
}

static uint64_t held_of(uint32_t i)
{
    const struct receive_stream *s = &w.inlets.list[i].stream;
    return s->highest - s->freed;
}

/* --- tests --- */

static void a_stream_alone_gets_its_whole_window_once_it_has_shown_that_it_takes(void **state)
{
    (void)state;
    world_open(1, 16 * MIB, 8 * MIB, RECORD_MAX_BYTES);
    push(&w.apps[0], 1);
    there();
    back();
    assert_true(w.apps[0].output.stream.credit <= LINK_STREAM_CREDIT + 2 * (RECORD + 2));
    run_s(1, UINT64_MAX);
    stand_still(0, 1);
    run_s(5, 0);
    assert_in_range(held_of(0), 3 * MIB, 4 * MIB);
    assert_int_equal(w.relieved, 0); /* there is room for others */
    expect_all_stored_in(2);
    world_close();
}

static void what_never_took_gets_little(void **state)
{
    (void)state;
    world_open(20, 16 * MIB, MIB, RECORD_MAX_BYTES);
    stand_still(0, 20);
    run_s(5, 0);
    for (uint32_t i = 0; i < 20; i++)
        assert_true(held_of(i) <= LINK_STREAM_CREDIT + INBOX + RECORD + 2);
    assert_int_equal(w.relieved, 0);
    expect_all_stored_in(2);
    world_close();
}

/* Each took much before it stood still, one after the other: the worst that few can do. */
static void a_few_that_stand_still_leave_most_of_the_rest_to_others(void **state)
{
    (void)state;
    world_open(7, 16 * MIB, 8 * MIB, RECORD_MAX_BYTES);
    for (uint32_t i = 0; i < 6; i++) {
        run_s(1, 50);
        stand_still(i, i + 1);
        run_s(1, 50);
    }
    w.apps[6].longest_ns = 0;
    run_s(4, 50);
    assert_true(w.most_held > 8 * MIB); /* more than half: yet credit is given on */
    assert_int_equal(w.relieved, 0);
    assert_true(w.apps[6].longest_ns <= 5 * TICK_NS);
    expect_all_stored_in(5);
    world_close();
}

static void many_stand_still(uint32_t still, uint64_t window, uint64_t queue_bytes)
{
    world_open(still + 1, window, queue_bytes, RECORD_MAX_BYTES);
    run_s(1, 1);
    stand_still(0, still);
    struct app *well = &w.apps[still];
    well->longest_ns = 0;
    run_s(5, 1);
    printf("%u of %u stand still, window %lu MiB: %lu relieved, at most %lu MiB held; the other took %lu "
           "records of %lu, waited %lu ms at most\n",
           still, still + 1, window / MIB, w.relieved, w.most_held / MIB, well->taken, well->pushed,
           well->longest_ns / NS_PER_MS);
    assert_true(w.relieved > 0);
    assert_true(w.most_held <= window);
    assert_true(well->longest_ns <= 2 * NS_PER_S);
    assert_true(well->taken >= well->pushed / 2);
    expect_all_stored_in(90); /* a rest is 75 s at most */
    assert_int_equal(w.inlets.session_freed, w.inlets.session_received);
    world_close();
}

static void however_many_stand_still_another_goes_on(void **state)
{
    (void)state;
    many_stand_still(STREAMS - 1, 16 * MIB, MIB / 4);
    many_stand_still(40, 2 * MIB, MIB / 4);
    many_stand_still(STREAMS - 1, 2 * MIB, MIB / 4);
}

static void what_makes_progress_is_not_relieved(void **state)
{
    (void)state;
    world_open(41, 2 * MIB, MIB / 4, RECORD_MAX_BYTES);
    for (uint32_t i = 0; i < 40; i++)
        w.apps[i].slow_ns = 900 * NS_PER_MS;
    for (uint32_t i = 0; i < 40; i++)
        push(&w.apps[i], UINT64_MAX);
    run_s(20, 1);
    assert_true(w.most_held > 2 * MIB - MIB / 4);
    assert_int_equal(w.relieved, 0);
    world_close();
}

/* `count` records wait in the ring of stream `i`, whose app takes none. */
static void hold(uint32_t i, unsigned count)
{
    struct frame_open open = {.stream = i,
                              .first = 1,
                              .app = span_text("app"),
                              .output = span_text(w.apps[i].outlet.output),
                              .target = span_text("app"),
                              .event = span_text("event")};
    uint8_t record[2 + RECORD] = {0};
    varint_put(record, RECORD);
    w.apps[i].stands_still = true;
    w.apps[i].taken = INBOX;
    assert_int_equal(inlets_open(&w.inlets, &open), 0);
    for (unsigned k = 0; k < count; k++) {
        struct frame_records frame = {i, k * sizeof record, span_of(record, sizeof record)};
        assert_int_equal(inlets_records(&w.inlets, &frame), 0);
    }
    inlets_deliver(&w.inlets);
}

static unsigned still_open(uint32_t from, uint32_t to)
{
    unsigned count = 0;
    for (uint32_t i = from; i < to; i++)
        count += w.apps[i].inlet != NULL;
    return count;
}

static void patience_is_with_each_stream(void **state)
{
    (void)state;
    world_open(10, MIB / 2, MIB / 4, RECORD);
    uint64_t start_ns = w.now_ns;
    for (uint32_t i = 0; i < 8; i++)
        hold(i, 50);
    inlets_relieve(&w.inlets, w.now_ns);
    assert_int_equal(w.inlets.look_ns, NEVER); /* there is room left */
    hold(8, 60);
    inlets_relieve(&w.inlets, w.now_ns);
    assert_int_equal(w.inlets.look_ns, start_ns + INLETS_PATIENCE_NS);
    w.now_ns = w.inlets.look_ns - 1;
    hold(9, 61); /* the most, but not for long */
    inlets_relieve(&w.inlets, w.now_ns);
    assert_int_equal(still_open(0, 10), 10);
    w.now_ns++;
    inlets_relieve(&w.inlets, w.now_ns);
    assert_null(w.apps[8].inlet); /* which held most, and most of the others, until half is free */
    assert_non_null(w.apps[9].inlet);
    assert_int_equal(still_open(0, 8), 4);
    assert_int_equal(w.inlets.look_ns, NEVER);
    world_close();
}

static void records_that_are_larger_than_a_share_come(void **state)
{
    (void)state;
    world_open(12, 2 * MIB, 4 * MIB, RECORD_MAX_BYTES);
    for (uint32_t i = 8; i < 12; i++)
        w.apps[i].record_bytes = RECORD_MAX_BYTES - 8 * i;
    run_s(1, 1);
    stand_still(0, 8);
    run_s(3, 1);
    for (uint32_t i = 8; i < 12; i++) {
        assert_true(w.apps[i].taken > 30);
        assert_true(w.apps[i].longest_ns <= 2 * NS_PER_S);
    }
    expect_all_stored_in(90);
    world_close();
}

/* Of all rings, what uses memory now. */
static uint64_t resident_bytes(void)
{
    static unsigned char pages[8 * MIB / 4096];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = 0;
    for (uint32_t i = 0; i < STREAMS; i++) {
        const struct ring_memory *ring = &w.inlets.list[i].stream.ring;
        if (!ring->base)
            continue;
        assert_true(ring->size / page <= sizeof pages);
        assert_int_equal(mincore(ring->base, ring->size, pages), 0);
        for (uint64_t k = 0; k < ring->size / page; k++)
            bytes += (pages[k] & 1) * page;
    }
    return bytes;
}

static uint64_t allowed_bytes(void)
{
    const struct inlet_limits *limits = &w.inlets.limits;
    uint64_t pages = 3 * (uint64_t)sysconf(_SC_PAGESIZE) * w.count; /* ends that are not whole */
    return 3 * limits->session_window + record_framed_size(limits->max_record) + pages;
}

/* Each always has the beginning of a record in its ring, so that it goes round and round. */
static void what_was_freed_of_rings_that_are_never_empty_uses_no_memory(void **state)
{
    (void)state;
    world_open(10, 2 * MIB, 1 * MIB, RECORD_MAX_BYTES);
    for (unsigned s = 0; s < 4; s++) {
        run_s(1, 40);
        assert_true(resident_bytes() <= allowed_bytes());
        assert_true(w.inlets.touched <= 3 * w.inlets.limits.session_window);
    }
    for (uint32_t i = 0; i < w.count; i++)
        assert_true(w.apps[i].taken * RECORD > w.inlets.list[i].stream.ring.size);
    expect_all_stored_in(10);
    world_close();
}

static void beginnings_of_large_records_use_so_much_memory_and_no_more(void **state)
{
    (void)state;
    world_open(24, 2 * MIB, 2 * MIB, RECORD_MAX_BYTES);
    w.large = true;
    for (uint32_t i = 0; i < w.count; i++)
        w.apps[i].record_bytes = RECORD_MAX_BYTES - i;
    for (unsigned s = 0; s < 6; s++) {
        run_s(1, s < 3 ? 1 : 0);
        assert_true(resident_bytes() <= allowed_bytes());
        assert_true(w.inlets.extra <= w.inlets.limits.session_window + record_framed_size(RECORD_MAX_BYTES));
    }
    expect_all_stored_in(120);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_alone_gets_its_whole_window_once_it_has_shown_that_it_takes),
        cmocka_unit_test(what_never_took_gets_little),
        cmocka_unit_test(a_few_that_stand_still_leave_most_of_the_rest_to_others),
        cmocka_unit_test(however_many_stand_still_another_goes_on),
        cmocka_unit_test(what_makes_progress_is_not_relieved),
        cmocka_unit_test(patience_is_with_each_stream),
        cmocka_unit_test(records_that_are_larger_than_a_share_come),
        cmocka_unit_test(what_was_freed_of_rings_that_are_never_empty_uses_no_memory),
        cmocka_unit_test(beginnings_of_large_records_use_so_much_memory_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
