/* A link on its loop, against what ways and systems do to it: silence, NATs, MTUs, segmentation that is
 * refused, errors of sends and receives. */
#include "tests/unit/link_sim.h"

#define SEEDS 5

static void each_seed(void (*test)(uint64_t seed))
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        test(seed);
}

static uint64_t counted(const _Atomic uint64_t *counter)
{
    return counter_read(counter);
}

static struct sim_path slow_path(void)
{
    struct sim_path path = sim_path_default;
    path.latency_min_ns = path.latency_max_ns = 10 * NS_PER_MS;
    path.bytes_s = 2 << 20;
    path.queue_bytes = 256 << 10;
    return path;
}

/* All that was stored was stored once. */
static void assert_once(struct world *w, unsigned output)
{
    assert_int_equal(w->links[0].stores[output].records, w->links[0].pushed[output]);
    assert_int_equal(w->links[0].stores[output].stored, w->links[0].pushed[output]);
}

/* --- silence --- */

static void day_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    struct link *l = &w->links[0].link;
    push(w, 0, 0, 100);
    run_until_freed(w, NS_PER_S);
    unsigned descriptors = sim_open_descriptors(w->sim);
    uint64_t lookups = sim_lookups(w->sim, "peer0"), sends = seam.sends, steps = w->loop.counters.steps;
    sim_silence_host(w->sim, receiver_hosts[0], true);
    push(w, 0, 0, 100), push(w, 0, 1, 100);
    w->longest_pause_ns = 0;
    w->last_ns = sim_now_ns(w->sim);
    for (unsigned hour = 0; hour < 24; hour++) {
        run_for(w, 3600 * NS_PER_S);
        assert_true(sim_open_descriptors(w->sim) <= descriptors + 1);
    }
    assert_true(w->longest_pause_ns <= 75 * NS_PER_S); /* INIT's last interval with its jitter */
    /* Probes and INITs, each once in some 60 s, two packets a probe */
    assert_true(sim_lookups(w->sim, "peer0") - lookups <= 24 * 60 * 2 + 60);
    assert_true(seam.sends - sends <= 24 * 60 * 3 + 100);
    assert_true(w->loop.counters.steps - steps < 24 * 60 * 40);
    assert_int_equal(counted(&l->report.lookups), sim_lookups(w->sim, "peer0"));
    assert_state(w, 0, 0, OUTLET_RESTING, PE_LINK_SILENT);
    assert_int_equal(said(&w->log, ""), 1);
    assert_int_equal(said(&w->log, "<4>link to peer0: the receiver does not answer"), 1);
    sim_silence_host(w->sim, receiver_hosts[0], false);
    run_until_freed(w, 76 * NS_PER_S);
    assert_once(w, 0), assert_once(w, 1);
    for (unsigned k = 0; k < OUTPUTS; k++) {
        assert_state(w, 0, k, OUTLET_OK, 0);
        assert_int_equal(report_of(w, 0, k)->failures, 0);
        assert_true(report_of(w, 0, k)->failures_total > 24 * 60 - 10);
    }
    assert_int_equal(said(&w->log, ""), 2);
    assert_int_equal(said(&w->log, "<5>link to peer0: it answers again, after 864"), 1);
    assert_int_equal(said(&w->log, "; 200 records wait"), 1);
    world_end(w);
}

static void a_day_of_silence_costs_little_and_all_is_delivered_after_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++)
        day_seed(seed);
}

static void lossy_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    struct sim_path lossy = sim_path_default;
    lossy.loss = 350;
    sim_set_path(w->sim, NULL, NULL, &lossy);
    for (unsigned second = 0; second < 1000; second++) {
        push(w, 0, 0, 2);
        run_for(w, NS_PER_S);
    }
    run_until_freed(w, 100 * NS_PER_S);
    assert_true(said(&w->log, "") <= 4);
    world_end(w);
}

static void a_path_that_loses_much_does_not_fill_the_log(void **state)
{
    (void)state;
    each_seed(lossy_seed);
}

static void flapping_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    for (unsigned i = 0; i < 60; i++) {
        sim_silence_host(w->sim, receiver_hosts[0], i % 2 == 0);
        push(w, 0, 0, 2);
        run_for(w, 35 * NS_PER_S);
    }
    sim_silence_host(w->sim, receiver_hosts[0], false);
    run_until_freed(w, 76 * NS_PER_S);
    assert_in_range(said(&w->log, ""), 2, 2 * (60 * 35 / 60 + 1)); /* two lines a minute at most */
    assert_int_equal(said(&w->log, "does not answer"), said(&w->log, "answers again"));
    assert_state(w, 0, 0, OUTLET_OK, 0);
    world_end(w);
}

static void a_link_that_comes_and_goes_says_so_once_a_minute_at_most(void **state)
{
    (void)state;
    each_seed(flapping_seed);
}

/* --- NATs --- */

static void dead_nat_seed(uint64_t seed)
{
    struct world *w = world_new(seed, 1);
    sim_set_nat(w->sim, HERE, "10.9.9.9");
    start_receiver(w, 0), start_link(w, 0);
    struct sim_path path = slow_path();
    sim_set_path(w->sim, NULL, NULL, &path);
    push(w, 0, 0, 3000);
    run_for(w, 200 * NS_PER_MS);
    assert_false(all_freed(w));
    uint64_t ports = counted(&w->links[0].link.report.ports);
    sim_kill_nat_entries(w->sim, HERE);
    run_until_freed(w, 10 * NS_PER_S);
    assert_true(counted(&w->links[0].link.report.ports) > ports);
    assert_int_equal(counted(&w->links[0].link.report.handshakes), 1); /* the session goes on */
    assert_once(w, 0);
    world_end(w);
}

static void a_dead_nat_entry_is_escaped_by_a_new_source_port(void **state)
{
    (void)state;
    each_seed(dead_nat_seed);
}

static void rebound_nat_seed(uint64_t seed)
{
    struct world *w = world_new(seed, 1);
    sim_set_nat(w->sim, HERE, "10.9.9.9");
    start_receiver(w, 0), start_link(w, 0);
    struct sim_path path = slow_path();
    sim_set_path(w->sim, NULL, NULL, &path);
    push(w, 0, 0, 5000);
    for (unsigned i = 0; i < 5; i++) {
        run_for(w, 100 * NS_PER_MS);
        assert_false(all_freed(w));
        sim_rebind_nat(w->sim, HERE);
    }
    /* where credit was on its way to the old port, and all that was sent is acknowledged: a keep-alive */
    run_until_freed(w, 8 * NS_PER_S);
    assert_int_equal(counted(&w->links[0].link.report.handshakes), 1);
    assert_int_equal(counted(&w->links[0].link.report.ports), 1);
    assert_once(w, 0);
    world_end(w);
}

static void a_nat_that_rebinds_stops_nothing(void **state)
{
    (void)state;
    each_seed(rebound_nat_seed);
}

/* --- segmentation --- */

static void no_segmentation_at_first(uint64_t seed, int error)
{
    struct world *w = world_start(seed, 1);
    sim_refuse_segmentation(w->sim, HERE, error);
    push(w, 0, 0, 3000);
    run_until_freed(w, 10 * NS_PER_S);
    run_for(w, NS_PER_S);
    struct link_report *r = &w->links[0].link.report;
    assert_in_range(seam.batches, 1, LINK_BUFFERS); /* those that were under way when the first was refused */
    assert_int_equal(counted(&r->segmentation), 0);
    assert_int_equal(counted(&r->lost), 0);
    assert_int_equal(counted(&r->send_errors), seam.batches);
    assert_int_equal(counted(&r->packets), w->datagrams);
    assert_int_equal(counted(&r->packets), counted(&w->receivers[0].listener.report.datagrams));
    assert_int_equal(said(&w->log, "does not segment"), 1);
    assert_once(w, 0);
    world_end(w);
}

static void segmentation_refused_seed(uint64_t seed)
{
    no_segmentation_at_first(seed, -EIO);
    no_segmentation_at_first(seed, -EINVAL);
    no_segmentation_at_first(seed, -EOPNOTSUPP);
}

static void where_segmentation_is_refused_all_goes_again_one_by_one(void **state)
{
    (void)state;
    each_seed(segmentation_refused_seed);
}

static void segmentation_ends_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    struct link_report *r = &w->links[0].link.report;
    push(w, 0, 0, 3000);
    run_until_freed(w, 10 * NS_PER_S);
    assert_int_equal(counted(&r->segmentation), 1);
    sim_refuse_segmentation(w->sim, HERE, -EIO);
    push(w, 0, 0, 3000);
    run_until_freed(w, 10 * NS_PER_S);
    assert_int_equal(counted(&r->segmentation), 0);
    /* single datagrams that were queued behind a batch overtake it, once: all of it may seem to be lost */
    uint64_t batches = seam.batches, lost = counted(&r->lost);
    assert_true(lost <= LINK_BATCH_PACKETS);
    push(w, 0, 0, 3000);
    run_until_freed(w, 10 * NS_PER_S);
    assert_int_equal(seam.batches, batches);
    assert_int_equal(counted(&r->lost), lost);
    run_for(w, NS_PER_S);
    assert_int_equal(counted(&r->packets), counted(&w->receivers[0].listener.report.datagrams));
    /* each new socket tries it again; that is said once */
    for (unsigned i = 0; i < 3; i++) {
        sim_silence_host(w->sim, receiver_hosts[0], true);
        push(w, 0, 0, 1000);
        run_for(w, 5 * NS_PER_S);
        sim_silence_host(w->sim, receiver_hosts[0], false);
        run_until_freed(w, 20 * NS_PER_S);
    }
    assert_true(seam.batches > batches);
    assert_int_equal(said(&w->log, "does not segment"), 1);
    assert_once(w, 0);
    world_end(w);
}

static void segmentation_refused_later_on_loses_nothing(void **state)
{
    (void)state;
    each_seed(segmentation_ends_seed);
}

/* --- MTUs --- */

static void cut_mtu(uint64_t seed, bool told, uint32_t mtu)
{
    struct world *w = world_start(seed, 1);
    struct sim_path path = slow_path();
    sim_set_path(w->sim, HERE, NULL, &path);
    push(w, 0, 0, 5000);
    run_for(w, 300 * NS_PER_MS);
    assert_false(all_freed(w));
    assert_int_equal(counted(&w->links[0].link.report.datagram_bytes), 1472);
    path.mtu = mtu, path.mtu_told = told;
    sim_set_path(w->sim, HERE, NULL, &path);
    uint64_t before = w->links[0].stores[0].stored;
    run_for(w, 50 * NS_PER_MS);
    assert_true(!told || counted(&w->links[0].link.report.datagram_bytes) <= mtu - 28); /* at once */
    run_for(w, NS_PER_S);
    assert_true(w->links[0].stores[0].stored > before + 100);
    run_until_freed(w, 10 * NS_PER_S);
    assert_in_range(counted(&w->links[0].link.report.datagram_bytes), MTU_BASE, mtu - 28);
    assert_true(counted(&w->links[0].link.report.datagram_bytes) + MTU_CLOSE >= mtu - 28);
    assert_int_equal(counted(&w->links[0].link.report.segmentation), 1); /* it was not that */
    assert_int_equal(said(&w->log, ""), 0);
    assert_once(w, 0);
    world_end(w);
}

static void cut_mtu_seed(uint64_t seed)
{
    cut_mtu(seed, true, 1400);
    cut_mtu(seed, true, 1300);
    cut_mtu(seed, false, 1400);
    cut_mtu(seed, false, 1300);
}

static void an_mtu_that_shrinks_in_mid_transfer_stalls_nothing(void **state)
{
    (void)state;
    each_seed(cut_mtu_seed);
}

static void told_mtu_seed(uint64_t seed)
{
    struct world *w = world_new(seed, 1);
    struct sim_path path = sim_path_default;
    path.mtu = 9000, path.mtu_told = true;
    sim_set_path(w->sim, HERE, NULL, &path);
    w->mtu = MTU_MAX;
    start_receiver(w, 0), start_link(w, 0);
    push(w, 0, 0, 5000);
    run_until_freed(w, 5 * NS_PER_S);
    for (unsigned i = 0; i < 100; i++) {
        push(w, 0, 0, 100);
        run_for(w, 100 * NS_PER_MS);
    }
    assert_in_range(counted(&w->links[0].link.report.datagram_bytes), 9000 - 28 - MTU_CLOSE - 20, 9000 - 28);
    assert_once(w, 0);
    world_end(w);
}

static void what_the_interface_takes_is_found(void **state)
{
    (void)state;
    each_seed(told_mtu_seed);
}

/* --- errors of sends and receives --- */

static void send_errors_seed(uint64_t seed)
{
    static const int errors[] = {-ENETUNREACH, -EPERM, -ENOBUFS, -EIO, -EMSGSIZE};
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        struct world *w = world_start(seed, 1);
        push(w, 0, 0, 100);
        run_until_freed(w, NS_PER_S);
        uint64_t steps = w->loop.counters.steps;
        seam.send_error = errors[i];
        push(w, 0, 0, 3000);
        run_for(w, 300 * NS_PER_S);
        assert_true(w->loop.counters.steps - steps < 2000);
        assert_state(w, 0, 0, OUTLET_RESTING, errors[i] == -EMSGSIZE ? PE_LINK_SILENT : errors[i]);
        assert_int_equal(said(&w->log, ""), 1);
        assert_true(counted(&w->links[0].link.report.send_errors) > 5);
        seam.send_error = 0;
        run_until_freed(w, 80 * NS_PER_S);
        assert_state(w, 0, 0, OUTLET_OK, 0);
        assert_int_equal(said(&w->log, ""), 2);
        assert_int_equal(counted(&w->links[0].link.report.segmentation), 1);
        assert_once(w, 0);
        world_end(w);
    }
}

static void sends_that_fail_are_losses_and_are_named(void **state)
{
    (void)state;
    each_seed(send_errors_seed);
}

static void receive_errors_seed(uint64_t seed)
{
    static const int errors[] = {-ENOMEM, -EAGAIN, -EINTR};
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        struct world *w = world_start(seed, 1);
        seam.receive_error = errors[i];
        push(w, 0, 0, 100);
        run_for(w, 300 * NS_PER_S);
        uint64_t ports = counted(&w->links[0].link.report.ports);
        assert_in_range(ports, 5, 100);
        assert_true(w->loop.counters.steps < 30 * ports);
        assert_int_equal(report_of(w, 0, 0)->state, OUTLET_RESTING);
        assert_int_equal(said(&w->log, ""), 1);
        assert_int_equal(said(&w->log, pure_error_text(errors[i])), 1);
        assert_true(sim_open_descriptors(w->sim) <= 3);
        seam.receive_error = 0;
        run_until_freed(w, 100 * NS_PER_S);
        assert_state(w, 0, 0, OUTLET_OK, 0);
        world_end(w);
    }
}

static void receives_that_fail_are_tried_again_with_back_off(void **state)
{
    (void)state;
    each_seed(receive_errors_seed);
}

static void kernel_faults_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 2);
    struct sim_faults faults = {
        .no_buffers = 200, .multishot_end = 300, .batch_max = 8, .buffer_bytes = 4096};
    struct sim_datagram_faults datagrams = {.buffer_bytes = 1500, .no_coalescing = 300};
    sim_set_faults(w->sim, &faults);
    sim_set_datagram_faults(w->sim, &datagrams);
    for (unsigned i = 0; i < LINKS; i++) {
        push(w, i, 0, 1000);
        push(w, i, 1, 1000);
    }
    run_until_freed(w, 30 * NS_PER_S);
    assert_int_equal(counted(&w->links[0].link.report.ports), 1);
    world_end(w);
}

static void receives_that_end_or_find_no_buffer_are_begun_again(void **state)
{
    (void)state;
    each_seed(kernel_faults_seed);
}

static bool no_buffer(void *context)
{
    struct world *w = context;
    return !w->links[0].link.free;
}

static bool under_way(void *context)
{
    return freed(context, 0, 0) > 5000;
}

static void stuck_socket_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 2);
    push(w, 1, 0, 100);
    run_until_freed(w, NS_PER_S);
    run_for(w, 100 * NS_PER_MS); /* the other has nothing more to acknowledge */
    push(w, 0, 0, 10000);
    assert_int_equal(sim_run_until(w->sim, under_way, w), SIM_DONE); /* its window takes all buffers now */
    seam.stuck = true;
    assert_int_equal(sim_run_until(w->sim, no_buffer, w), SIM_DONE);
    run_for(w, 1); /* the last one is handed over, too */
    assert_null(w->links[0].link.free);
    seam.stuck = false; /* for other sends: these stay where they are */
    push(w, 1, 0, 100);
    run_for(w, 100 * NS_PER_MS);
    assert_int_equal(freed(w, 1, 0), 200);
    run_until_freed(w, 20 * NS_PER_S); /* by a new socket */
    run_for(w, NS_PER_S);
    for (struct io_op *op = seam.held; op; op = op->next) /* the other's may still be there */
        assert_ptr_equal(container_of(op, struct link_buffer, op)->link, &w->links[1].link);
    assert_once(w, 0);
    world_end(w);
}

static void a_socket_that_takes_nothing_any_more_is_replaced(void **state)
{
    (void)state;
    each_seed(stuck_socket_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_day_of_silence_costs_little_and_all_is_delivered_after_it),
        cmocka_unit_test(a_path_that_loses_much_does_not_fill_the_log),
        cmocka_unit_test(a_link_that_comes_and_goes_says_so_once_a_minute_at_most),
        cmocka_unit_test(a_dead_nat_entry_is_escaped_by_a_new_source_port),
        cmocka_unit_test(a_nat_that_rebinds_stops_nothing),
        cmocka_unit_test(where_segmentation_is_refused_all_goes_again_one_by_one),
        cmocka_unit_test(segmentation_refused_later_on_loses_nothing),
        cmocka_unit_test(an_mtu_that_shrinks_in_mid_transfer_stalls_nothing),
        cmocka_unit_test(what_the_interface_takes_is_found),
        cmocka_unit_test(sends_that_fail_are_losses_and_are_named),
        cmocka_unit_test(receives_that_fail_are_tried_again_with_back_off),
        cmocka_unit_test(receives_that_end_or_find_no_buffer_are_begun_again),
        cmocka_unit_test(a_socket_that_takes_nothing_any_more_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
