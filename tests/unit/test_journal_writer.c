/* The writer on a disk that works: group commit, order, dues, room, segments. */
#include "tests/unit/writer_world.h"

#define KIB 1024

static void many_members_share_one_write(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    uint64_t syncs = sim_disk_syncs(w.disk);
    for (unsigned i = 0; i < WORLD_APPS; i++) {
        world_commit(&w.apps[i], 100, 0);
        world_add(&w.apps[i], 200);
        journal_join(&w.writer, &w.apps[i].member, 0);
    }
    world_run(&w, 100 * NS_PER_MS);
    assert_int_equal(world_writes(&w), 1);
    assert_int_equal(sim_disk_syncs(w.disk), syncs + 1);
    assert_int_equal(counter_read(&w.writer.counters.frames), 2 * WORLD_APPS + 1); /* and the HEADER */
    for (unsigned i = 0; i < WORLD_APPS; i++) {
        assert_int_equal(w.apps[i].placed, 1);
        assert_int_equal(w.apps[i].durable_sequence, 2);
        assert_int_equal(w.apps[i].segment, w.held[0]);
        assert_int_equal(w.apps[i].offset, 0);
    }
    world_close(&w);
}

static bool is_writing(void *context)
{
    return ((struct writer_world *)context)->writer.writing;
}

static void turns_go_on_while_a_write_is_under_way(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    world_commit(&w.apps[0], 10, 0);
    assert_int_equal(sim_run_until(w.sim, is_writing, &w), SIM_DONE);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(journal_room(&w.writer, &w.apps[1].waiter));
        world_commit(&w.apps[0], 10, 0);
        world_commit(&w.apps[1], 10, 0);
    }
    assert_int_equal(w.apps[0].placed, 1);
    world_run(&w, 100 * NS_PER_MS);
    assert_int_equal(world_writes(&w), 2);
    assert_int_equal(w.apps[0].durable, 2);
    assert_int_equal(w.apps[0].durable_sequence, 6);
    assert_true(w.apps[0].offset > 0);
    world_close(&w);
}

static void frames_become_durable_in_order(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    for (unsigned i = 0; i < WORLD_APPS; i++) {
        world_commit(&w.apps[i], 10, 0);
        world_run(&w, 300 * NS_PER_US);
    }
    world_run(&w, 100 * NS_PER_MS);
    for (unsigned i = 1; i < WORLD_APPS; i++)
        assert_true(w.apps[i].order > w.apps[i - 1].order && w.apps[i].offset >= w.apps[i - 1].offset);
    assert_true(world_writes(&w) < WORLD_APPS && world_writes(&w) > 1);
    world_close(&w);
}

static void a_batch_is_on_its_way_when_the_earliest_of_its_members_is_due(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    world_commit(&w.apps[0], 10, world_due(&w, 50 * NS_PER_MS));
    world_commit(&w.apps[1], 10, world_due(&w, 20 * NS_PER_MS));
    world_commit(&w.apps[2], 10, NEVER);
    loop_want(&w.loop, &w.writer.task); /* a round for another reason changes nothing */
    world_run(&w, 19 * NS_PER_MS);
    assert_int_equal(w.apps[0].placed, 0);
    world_run(&w, 2 * NS_PER_MS);
    assert_int_equal(w.apps[0].placed + w.apps[1].placed + w.apps[2].placed, 3);
    world_run(&w, 10 * NS_PER_MS);
    assert_int_equal(w.durable, 3);
    world_commit(&w.apps[0], 10, world_due(&w, NS_PER_S)); /* the next has its own due */
    world_run(&w, 900 * NS_PER_MS);
    assert_int_equal(w.apps[0].placed, 1);
    world_commit(&w.apps[1], 10, 0);
    world_run(&w, 10 * NS_PER_MS);
    assert_int_equal(w.apps[0].durable, 2);
    assert_int_equal(world_writes(&w), 2);
    world_close(&w);
}

static void a_full_batch_does_not_wait_for_its_due(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    world_commit(&w.apps[0], JOURNAL_BATCH_BYTES, NEVER);
    assert_false(journal_room(&w.writer, &w.apps[1].waiter));
    assert_false(journal_room(&w.writer, &w.apps[1].waiter));
    world_run(&w, 10 * NS_PER_MS);
    assert_int_equal(w.apps[0].durable, 1);
    assert_int_equal(w.apps[1].told_room, 1);
    assert_true(journal_room(&w.writer, &w.apps[1].waiter));
    world_close(&w);
}

static void a_batch_without_frames_is_durable_at_once(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    journal_join(&w.writer, &w.apps[0].member, NEVER); /* even before there is a segment */
    world_run(&w, NS_PER_US);
    assert_int_equal(w.apps[0].durable, 1);
    assert_int_equal(w.apps[0].segment, 0);
    world_run(&w, NS_PER_S);
    assert_int_equal(world_writes(&w), 0);
    world_close(&w);
}

static void behind_a_write_a_batch_without_frames_is_durable_with_it(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    world_commit(&w.apps[0], 10, 0);
    assert_int_equal(sim_run_until(w.sim, is_writing, &w), SIM_DONE);
    journal_join(&w.writer, &w.apps[1].member, NEVER);
    w.apps[0].turn = true; /* its next turn comes too late to delay it */
    world_run(&w, 500 * NS_PER_US);
    assert_int_equal(w.apps[1].placed, 0);
    world_run(&w, NS_PER_MS);
    assert_int_equal(w.apps[1].durable, 1);
    assert_int_equal(w.apps[1].order, w.apps[0].order + 1);
    assert_int_equal(world_writes(&w), 1);
    world_run(&w, 10 * NS_PER_MS);
    assert_int_equal(world_writes(&w), 2);
    assert_int_equal(w.apps[1].durable, 1);
    world_close(&w);
}

static void turns_of_those_who_heard_share_the_next_write(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    world_commit(&w.apps[0], 10, 0);
    world_commit(&w.apps[1], 10, 0);
    assert_int_equal(sim_run_until(w.sim, is_writing, &w), SIM_DONE);
    world_commit(&w.apps[2], 10, 0); /* waits already */
    w.apps[0].turn = w.apps[1].turn = true;
    world_run(&w, 10 * NS_PER_MS);
    assert_int_equal(w.apps[0].durable + w.apps[1].durable + w.apps[2].durable, 5);
    assert_int_equal(world_writes(&w), 2);
    world_close(&w);
}

static void members_may_add_frames_when_they_hear_that_theirs_are_durable(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    world_run_ready(&w);
    w.apps[0].again = true;
    world_commit(&w.apps[0], 10, 0);
    journal_join(&w.writer, &w.apps[1].member, 0);
    world_run(&w, 100 * NS_PER_MS);
    assert_int_equal(w.apps[0].durable, 2);
    assert_int_equal(w.apps[0].durable_sequence, 2);
    assert_int_equal(w.apps[1].durable, 1);
    assert_int_equal(world_writes(&w), 2);
    world_close(&w);
}

static void no_memory_is_allocated_for_a_batch_once_it_is_warm(void **state)
{
    (void)state;
    struct writer_world w;
    const uint8_t *data[2] = {0};
    world_open(&w, 1, 0);
    world_run_ready(&w);
    for (unsigned i = 0; i < 40; i++) {
        world_commit(&w.apps[0], i < 2 ? 1000 * KIB : (i * 7919u) % (1000 * KIB), 0);
        if (i >= 4)
            assert_ptr_equal(journal_frames(&w.writer)->data, data[w.writer.batch % 2]);
        data[w.writer.batch % 2] = journal_frames(&w.writer)->data;
        world_run(&w, 10 * NS_PER_MS);
    }
    world_close(&w);
}

/* --- segments --- */

/* Commits of `bytes` until so many segments were begun. Runs in between. */
static void fill_segments(struct writer_world *w, size_t bytes, unsigned segments)
{
    for (unsigned i = 0; w->begun < segments; i++) {
        assert_true(i < 10000);
        struct world_app *app = &w->apps[i % WORLD_APPS];
        if (journal_room(&w->writer, &app->waiter))
            world_commit(app, bytes, 0);
        world_run(w, 2 * NS_PER_MS);
    }
    world_run(w, 100 * NS_PER_MS);
}

/* The segment's first frame. The bytes are the caller's to free. */
static struct header read_header(struct writer_world *w, uint64_t segment, uint8_t **bytes)
{
    char path[40] = "/store/";
    struct journal_frame frame;
    struct header header;
    size_t size;
    segment_name(segment, path + 7);
    assert_true(sim_disk_read(w->disk, path, bytes, &size));
    assert_int_equal(frame_read(span_of(*bytes, size), 0, segment, 0, &frame), FRAME_VALID);
    assert_int_equal(frame.kind, FRAME_HEADER);
    assert_int_equal(header_read(frame.payload, &header), 0);
    return header;
}

/* The seal of a segment is written while the next one begins: the one after that names it. */
static void headers_name_the_seals_of_the_segments_before(void **state)
{
    (void)state;
    struct writer_world w;
    uint8_t *bytes;
    world_open(&w, 1, WORLD_SEGMENT);
    world_run_ready(&w);
    fill_segments(&w, 50 * KIB, 6);
    for (unsigned i = 0; i < 6; i++) {
        struct header header = read_header(&w, w.held[i], &bytes);
        assert_int_equal(header.seal_count, i < 2 ? 0 : i - 1);
        for (unsigned k = 0; k < header.seal_count; k++) {
            struct journal_place place = header_seal(&header, k);
            assert_true(place.segment <= w.held[i - 2]);
            assert_true(place.offset > WORLD_SEGMENT / 2);
        }
        free(bytes);
    }
    world_close(&w);
}

static void segments_follow_each_other_and_have_seals(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    world_run_ready(&w);
    fill_segments(&w, 50 * KIB, 10);
    assert_int_equal(counter_read(&w.writer.counters.segments), 10);
    world_stop(&w);
    w.read_only = true; /* so that opening adds none */
    world_check_store(&w);
    assert_int_equal(w.store.count, 10);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(w.store.segments[i]->number, w.held[i]);
        assert_true(w.store.segments[i]->place.offset > 0);
        assert_int_equal(w.store.segments[i]->place.offset, w.store.segments[i]->end);
    }
    assert_int_equal(w.store.report.torn_segments, 0);
    store_close(&w.store);
    sim_free(w.sim);
}

/* The name, the space and its durability are there before the segment is needed: going on in it is one write
 * as any other. */
static void a_segment_begins_without_a_write_of_its_own(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    uint64_t syncs = sim_disk_syncs(w.disk);
    world_run_ready(&w);
    assert_int_equal(sim_disk_syncs(w.disk), syncs + 2); /* the file, the name */
    fill_segments(&w, 20 * KIB, 4);
    assert_int_equal(counter_read(&w.writer.counters.full), 0);
    assert_true(counter_read(&w.writer.counters.slowest_ns) < 2 * NS_PER_MS);
    for (unsigned i = 0; i < WORLD_APPS; i++)
        assert_int_equal(w.apps[i].told_room, 0); /* nobody ever waited */
    world_close(&w);
}

static void a_batch_larger_than_a_segment_gets_one_that_is_large_enough(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    world_run_ready(&w);
    world_commit(&w.apps[0], 10, 0);
    world_commit(&w.apps[1], 3 << 20, 0);
    world_run(&w, 100 * NS_PER_MS);
    assert_int_equal(w.apps[1].durable, 1);
    assert_true(w.writer.room >= (3 << 20) + JOURNAL_RESERVE_BYTES);
    world_commit(&w.apps[0], 10, 0);
    world_run(&w, 100 * NS_PER_MS);
    world_close(&w);
}

static void a_file_in_the_way_is_left_alone(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, 0);
    char path[40] = "/store/";
    segment_name(atomic_load(&w.store.next_number), path + 7);
    sim_disk_write(w.disk, path, "mine", 4);
    world_run_ready(&w);
    world_commit(&w.apps[0], 10, 0);
    world_run(&w, 10 * NS_PER_MS);
    assert_int_equal(w.apps[0].durable, 1);
    assert_int_equal(counter_read(&w.writer.counters.full), 0);
    uint8_t *bytes;
    size_t size;
    assert_true(sim_disk_read(w.disk, path, &bytes, &size));
    assert_memory_equal(bytes, "mine", 4);
    free(bytes);
    world_stop(&w);
    sim_free(w.sim);
}

static void released_segments_are_unlinked(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    world_run_ready(&w);
    fill_segments(&w, 50 * KIB, 6);
    assert_int_equal(counter_read(&w.writer.counters.removed), 0);
    for (unsigned i = 0; i < 4; i++)
        store_release(&w.store, w.held[i]);
    journal_released(&w.writer);
    world_run(&w, 10 * NS_PER_MS);
    assert_int_equal(counter_read(&w.writer.counters.removed), 4);
    assert_int_equal(w.store.count, 2);
    assert_int_equal(w.store.segments[0]->number, w.held[4]);
    assert_int_equal(w.removings, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(w.removing[i], w.held[i]);
    world_stop(&w);
    sim_free(w.sim);
}

static void what_nobody_holds_is_unlinked_once_it_is_sealed(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    w.hold = false;
    world_run_ready(&w);
    fill_segments(&w, 50 * KIB, 6);
    assert_int_equal(counter_read(&w.writer.counters.removed), 5);
    world_stop(&w);
    sim_free(w.sim);
}

static void an_unlink_that_fails_is_tried_again_later(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    world_run_ready(&w);
    fill_segments(&w, 50 * KIB, 3);
    w.policy.read_only = true;
    world_set_policy(&w);
    store_release(&w.store, w.held[0]);
    journal_released(&w.writer);
    world_run(&w, 10 * NS_PER_MS);
    assert_int_equal(counter_read(&w.writer.counters.removed), 0);
    w.policy.read_only = false;
    world_set_policy(&w);
    world_run(&w, 2 * NS_PER_S);
    assert_int_equal(counter_read(&w.writer.counters.removed), 1);
    world_stop(&w);
    sim_free(w.sim);
}

static void a_new_process_goes_on_behind_the_old_one(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    for (unsigned run = 1; run <= 5; run++) {
        world_run_ready(&w);
        fill_segments(&w, 50 * KIB, 2 * run);
        world_stop(&w);
        world_check_store(&w);
        assert_int_equal(w.store.count, 2 * run);
        assert_int_equal(w.store.report.torn_segments, 0);
        store_close(&w.store);
        world_start(&w);
    }
    world_close(&w);
}

/* How the next commit of so many bytes is written. */
static bool is_waited_for_here(struct writer_world *w, size_t bytes)
{
    world_commit(&w->apps[0], bytes, 0);
    world_run(w, 50 * NS_PER_MS);
    assert_int_equal(w->apps[0].durable_sequence, w->apps[0].sequence);
    return w->writer.write_op.file.flags & IO_FILE_HERE;
}

static void an_owner_waits_itself_only_for_a_small_write_on_a_fast_disk(void **state)
{
    (void)state;
    static const bool yes = true, no = false;
    struct writer_world w;
    world_open(&w, 1, WORLD_SEGMENT);
    w.policy.sync_min_ns = w.policy.sync_max_ns = NS_PER_MS / 10;
    world_set_policy(&w);
    world_run_ready(&w);
    w.writer.options.alone = &yes;
    assert_false(is_waited_for_here(&w, 100)); /* nobody knows yet how fast it is */
    assert_true(is_waited_for_here(&w, 100));
    assert_false(is_waited_for_here(&w, 50 * KIB));
    assert_true(is_waited_for_here(&w, 100));
    w.policy.sync_min_ns = w.policy.sync_max_ns = 5 * NS_PER_MS;
    world_set_policy(&w);
    assert_true(is_waited_for_here(&w, 100)); /* once */
    assert_false(is_waited_for_here(&w, 100));
    assert_false(is_waited_for_here(&w, 100));
    w.policy.sync_min_ns = w.policy.sync_max_ns = NS_PER_MS / 10;
    world_set_policy(&w);
    assert_false(is_waited_for_here(&w, 100));
    assert_true(is_waited_for_here(&w, 100));
    w.writer.options.alone = &no; /* somebody on the loop does not wait for the disk */
    assert_false(is_waited_for_here(&w, 100));
    world_close(&w);
}

/* What fills the room is on its way at once then, whatever its interval. */
static void whoever_waits_for_room_does_not_wait_for_an_interval(void **state)
{
    (void)state;
    struct writer_world w;
    world_open(&w, 1, SEGMENT_BYTES_MIN);
    world_run_ready(&w);
    uint64_t began_ns = sim_now_ns(w.sim);
    for (unsigned i = 0; i < 20; i++) {
        while (!journal_room(&w.writer, &w.apps[0].waiter)) {
            world_run(&w, NS_PER_MS);
            assert_true(sim_now_ns(w.sim) < began_ns + 2 * NS_PER_S);
        }
        world_commit(&w.apps[0], 20 * KIB, sim_now_ns(w.sim) + 60 * NS_PER_S);
    }
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_waits_itself_only_for_a_small_write_on_a_fast_disk),
        cmocka_unit_test(whoever_waits_for_room_does_not_wait_for_an_interval),
        cmocka_unit_test(many_members_share_one_write),
        cmocka_unit_test(turns_go_on_while_a_write_is_under_way),
        cmocka_unit_test(frames_become_durable_in_order),
        cmocka_unit_test(a_batch_is_on_its_way_when_the_earliest_of_its_members_is_due),
        cmocka_unit_test(a_full_batch_does_not_wait_for_its_due),
        cmocka_unit_test(a_batch_without_frames_is_durable_at_once),
        cmocka_unit_test(behind_a_write_a_batch_without_frames_is_durable_with_it),
        cmocka_unit_test(turns_of_those_who_heard_share_the_next_write),
        cmocka_unit_test(members_may_add_frames_when_they_hear_that_theirs_are_durable),
        cmocka_unit_test(no_memory_is_allocated_for_a_batch_once_it_is_warm),
        cmocka_unit_test(headers_name_the_seals_of_the_segments_before),
        cmocka_unit_test(segments_follow_each_other_and_have_seals),
        cmocka_unit_test(a_segment_begins_without_a_write_of_its_own),
        cmocka_unit_test(a_batch_larger_than_a_segment_gets_one_that_is_large_enough),
        cmocka_unit_test(a_file_in_the_way_is_left_alone),
        cmocka_unit_test(released_segments_are_unlinked),
        cmocka_unit_test(what_nobody_holds_is_unlinked_once_it_is_sealed),
        cmocka_unit_test(an_unlink_that_fails_is_tried_again_later),
        cmocka_unit_test(a_new_process_goes_on_behind_the_old_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
