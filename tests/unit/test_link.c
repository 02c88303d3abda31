/* A link on its loop: records, names, addresses, descriptors, how it stops. Faults of the way and of the
 * system are in test_link_faults.c. */
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

/* --- records --- */

static void records_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    struct link *l = &w->links[0].link;
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned k = 0; k < OUTPUTS; k++)
            push(w, 0, k, 50 + 20 * k);
        run_for(w, 3 * NS_PER_MS);
    }
    run_until_freed(w, 5 * NS_PER_S);
    run_for(w, NS_PER_S);
    for (unsigned k = 0; k < OUTPUTS; k++) {
        struct outlet *o = &w->links[0].outlets[k].outlet;
        assert_int_equal(w->links[0].stores[k].stored, w->links[0].pushed[k]);
        assert_int_equal(w->links[0].stores[k].records, w->links[0].pushed[k]);
        assert_int_equal(counted(&o->report.stored), w->links[0].pushed[k]);
        assert_int_equal(counted(&o->report.bytes), o->queue.freed.bytes);
        assert_int_equal(o->queue.freed.bytes, o->queue.tail.bytes);
        assert_state(w, 0, k, OUTLET_OK, 0);
    }
    assert_int_equal(counted(&l->report.handshakes), 1);
    assert_int_equal(counted(&l->report.ports), 1);
    assert_int_equal(counted(&l->report.lookups), 1);
    assert_int_equal(counted(&l->report.packets), w->datagrams);
    assert_int_equal(counted(&l->report.sends), seam.sends);
    assert_true(seam.sends < w->datagrams); /* they went in batches */
    assert_int_equal(counted(&l->report.packets), counted(&w->receivers[0].listener.report.datagrams));
    assert_int_equal(counted(&l->report.bytes), counted(&w->receivers[0].listener.report.bytes));
    assert_int_equal(counted(&l->report.received), counted(&w->receivers[0].listener.report.sent));
    assert_int_equal(counted(&l->report.lost) + counted(&l->report.dropped), 0);
    assert_int_equal(counted(&l->report.send_errors), 0);
    assert_int_equal(counted(&l->report.segmentation), 1);
    assert_int_equal(counted(&l->report.datagram_bytes), 1472);
    assert_int_equal(said(&w->log, ""), 0);
    world_end(w);
}

static void records_of_several_outlets_go_through_in_order_and_are_counted(void **state)
{
    (void)state;
    each_seed(records_seed);
}

static void an_idle_link_has_no_socket_looks_nothing_up_and_makes_no_steps(void **state)
{
    (void)state;
    struct world *w = world_start(1, 1);
    run_for(w, 3600 * NS_PER_S);
    assert_int_equal(sim_lookups(w->sim, "peer0") + w->datagrams, 0);
    assert_true(w->loop.counters.steps < 10);
    push(w, 0, 0, 10);
    run_until_freed(w, NS_PER_S);
    run_for(w, NS_PER_S);
    uint64_t steps = w->loop.counters.steps;
    run_for(w, 3600 * NS_PER_S); /* with a session that goes to its end */
    assert_true(w->loop.counters.steps - steps < 20);
    world_end(w);
}

static uint64_t most_free_taken;

/* Between two completions of sends, no link hands over more than its buffers. */
static int count_wait(struct io *io, struct io_op *first, struct io_op *cancels, uint64_t deadline_ns)
{
    uint64_t sends[1 << 12] = {0};
    for (struct io_op *op = first; op; op = op->next) {
        if (op->kind == IO_DATAGRAM_SEND)
            most_free_taken = max_u64(most_free_taken, ++sends[op->fd % ARRAY_SIZE(sends)]);
    }
    return seam_wait(io, first, cancels, deadline_ns);
}

static void quota_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 2);
    struct io_backend counting = *w->loop.io->backend;
    counting.wait = count_wait;
    w->loop.io->backend = &counting;
    most_free_taken = 0;
    push(w, 0, 0, 10000); /* some megabytes */
    push(w, 1, 0, 10);
    run_for(w, 20 * NS_PER_MS);
    assert_int_equal(w->links[1].stores[0].stored, 10);
    for (unsigned i = 0; i < 20 && !all_freed(w); i++) {
        push(w, 1, 1, 1);
        run_for(w, 2 * NS_PER_MS);
        assert_int_equal(freed(w, 1, 1), i + 1);
    }
    run_until_freed(w, 10 * NS_PER_S);
    assert_true(most_free_taken > 1 && most_free_taken <= LINK_BUFFERS);
    world_end(w);
}

static void a_busy_link_keeps_to_its_quota_and_the_others_get_their_rounds(void **state)
{
    (void)state;
    each_seed(quota_seed);
}

/* --- names --- */

struct name_fault {
    int error;
    uint64_t delay_ns;
    int reported;
};

static void unknown_name(uint64_t seed, const struct name_fault *fault)
{
    struct world *w = world_start(seed, 1);
    struct link *l = &w->links[0].link;
    name_is(w, 0, fault->error, NULL, fault->delay_ns);
    push(w, 0, 0, 100);
    run_for(w, 600 * NS_PER_S);
    assert_state(w, 0, 0, OUTLET_RESTING, fault->reported);
    /* every 15 s in the mean, when the back-off has reached its end; none is spared for the others */
    assert_in_range(counted(&l->report.lookups), 15, 120);
    assert_int_equal(counted(&l->report.lookups), sim_lookups(w->sim, "peer0"));
    assert_int_equal(counted(&l->report.ports), 0);
    assert_int_equal(said(&w->log, ""), 1);
    assert_int_equal(said(&w->log, pure_error_text(fault->reported)), 1);
    assert_true(w->loop.counters.steps < 10 * counted(&l->report.lookups));
    name_is(w, 0, 0, receiver_hosts[0], NS_PER_MS);
    run_until_freed(w, 41 * NS_PER_S); /* a back-off, and a lookup that hangs still */
    assert_state(w, 0, 0, OUTLET_OK, 0);
    assert_int_equal(report_of(w, 0, 0)->failures, 0);
    assert_int_equal(said(&w->log, ""), 2);
    assert_int_equal(said(&w->log, "answers again, after "), 1);
    world_end(w);
}

static void names_seed(uint64_t seed)
{
    static const struct name_fault faults[] = {{PE_NAME_NOT_FOUND, NS_PER_MS, PE_NAME_NOT_FOUND},
                                               {PE_NAME_FAILED, 3 * NS_PER_S, PE_NAME_FAILED},
                                               {PE_NAME_BUSY, 0, PE_NAME_BUSY},
                                               {0, 5 * NS_PER_MS, PE_NAME_NOT_FOUND},
                                               {0, SIM_HANGS, PE_NAME_FAILED}};
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
        unknown_name(seed, &faults[i]);
}

static void a_name_that_is_known_later_is_connected_to_within_one_back_off(void **state)
{
    (void)state;
    each_seed(names_seed);
}

static void failing_lookup_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    push(w, 0, 0, 100);
    run_until_freed(w, NS_PER_S);
    static const struct name_fault faults[] = {{PE_NAME_NOT_FOUND, NS_PER_MS, 0}, {0, SIM_HANGS, 0}};
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        name_is(w, 0, faults[i].error, NULL, faults[i].delay_ns);
        sim_silence_host(w->sim, receiver_hosts[0], true);
        push(w, 0, 0, 100);
        run_for(w, 300 * NS_PER_S);
        assert_state(w, 0, 0, OUTLET_RESTING, PE_LINK_SILENT);
        sim_silence_host(w->sim, receiver_hosts[0], false);
        run_until_freed(w, 76 * NS_PER_S); /* INITs are 60 s apart, + 25 % */
    }
    assert_int_equal(w->links[0].stores[0].records, w->links[0].stores[0].stored);
    world_end(w);
}

static void a_lookup_that_fails_or_hangs_does_not_wipe_an_address_that_works(void **state)
{
    (void)state;
    each_seed(failing_lookup_seed);
}

/* The receiver of the same key and store at the other address. */
static void move_receiver(struct world *w)
{
    sim_silence_host(w->sim, receiver_hosts[0], true);
    w->receivers[1].key = w->receivers[0].key;
    start_receiver(w, 1);
}

/* `answer_ns`: of the resolver; 0: it is quicker than the socket before is closed. */
static void moved_name(uint64_t seed, uint64_t answer_ns)
{
    struct world *w = world_start(seed, 1);
    struct sim_path slow = sim_path_default;
    slow.bytes_s = 1 << 20, slow.queue_bytes = 64 << 10;
    slow.latency_min_ns = slow.latency_max_ns = 20 * NS_PER_MS;
    sim_set_path(w->sim, HERE, NULL, &slow);
    for (unsigned k = 0; k < OUTPUTS; k++)
        push(w, 0, k, 1000);
    run_for(w, 300 * NS_PER_MS);
    uint64_t before = w->links[0].stores[0].stored;
    assert_true(before > 0 && before < 1000);
    move_receiver(w);
    name_is(w, 0, 0, receiver_hosts[1], answer_ns);
    run_for(w, 3 * NS_PER_S); /* with the answer, not with the probe after */
    assert_int_equal(((struct sockaddr_in *)&w->links[0].link.to.address)->sin_addr.s_addr,
                     htonl(0x0a000003));
    run_until_freed(w, 30 * NS_PER_S);
    for (unsigned k = 0; k < OUTPUTS; k++)
        assert_int_equal(w->links[0].stores[k].stored, 1000);
    assert_int_equal(counted(&w->links[0].link.report.handshakes), 2);
    assert_in_range(counted(&w->links[0].link.report.lookups), 2, 20);
    world_end(w);
}

static void moved_name_seed(uint64_t seed)
{
    moved_name(seed, 10 * NS_PER_MS);
    moved_name(seed, 0);
}

static void a_name_that_moves_in_mid_transfer_is_followed(void **state)
{
    (void)state;
    each_seed(moved_name_seed);
}

/* Whose addresses come in another order each time. */
static void rotate(void *context)
{
    struct world *w = context;
    static unsigned turn;
    turn++;
    struct sim_answer answer = {.addresses = {receiver_hosts[turn % 2], receiver_hosts[1 - turn % 2]},
                                .delay_ns = 5 * NS_PER_MS};
    sim_set_name(w->sim, peer_names[0], &answer);
    sim_at(w->sim, sim_now_ns(w->sim) + 500 * NS_PER_MS, rotate, w);
}

static void rotating_seed(uint64_t seed)
{
    struct world *w = world_new(seed, 1);
    struct sim_path far = sim_path_default;
    far.latency_min_ns = far.latency_max_ns = 300 * NS_PER_MS;
    sim_set_path(w->sim, NULL, NULL, &far);
    start_link(w, 0);
    rotate(w);
    push(w, 0, 0, 10);
    run_for(w,
            20 * NS_PER_S); /* so that each INIT comes with a lookup, whose answer is there before its own */
    start_receiver(w, 0);
    w->receivers[1].key = w->receivers[0].key;
    start_receiver(w, 1);
    run_until_freed(w, 100 * NS_PER_S);
    world_end(w);
}

static void a_name_whose_addresses_rotate_does_not_lose_the_answers_on_their_way(void **state)
{
    (void)state;
    each_seed(rotating_seed);
}

/* --- refusals --- */

static void refused_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    static const struct {
        int reason, error;
    } cases[] = {{REFUSED_NO_APP, PE_NO_APP}, {REFUSED_NOT_ALLOWED, PE_NOT_ALLOWED}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        w->links[0].stores[1].refuse = cases[i].reason;
        unsigned lines = said(&w->log, "");
        if (i > 0) { /* the receiver starts anew, so that streams are opened anew */
            end_receiver(w, 0);
            start_receiver(w, 0);
        }
        for (unsigned round = 0; round < 200; round++) {
            push(w, 0, 0, 5), push(w, 0, 1, 5), push(w, 0, 2, 5);
            run_for(w, NS_PER_S);
        }
        assert_int_equal(w->links[0].stores[0].stored, w->links[0].pushed[0]);
        assert_int_equal(w->links[0].stores[2].stored, w->links[0].pushed[2]);
        assert_true(w->links[0].stores[1].stored < w->links[0].pushed[1]);
        assert_state(w, 0, 0, OUTLET_OK, 0);
        assert_state(w, 0, 1, OUTLET_RESTING, cases[i].error);
        assert_in_range(report_of(w, 0, 1)->failures, 5, 30);
        assert_int_equal(said(&w->log, pure_error_text(cases[i].error)), 1);
        w->links[0].stores[1].refuse = 0;
        run_until_freed(w, 76 * NS_PER_S);
        assert_state(w, 0, 1, OUTLET_OK, 0);
        assert_int_equal(report_of(w, 0, 1)->failures, 0);
        assert_int_equal(said(&w->log, "output app.1: link to peer0 delivers again"), i + 1);
        assert_true(said(&w->log, "") <= lines + 4);
    }
    world_end(w);
}

static void an_outlet_that_is_refused_rests_is_retried_and_harms_no_other(void **state)
{
    (void)state;
    each_seed(refused_seed);
}

static void silence_of_a_refused_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    w->links[0].stores[1].refuse = REFUSED_NO_APP;
    push(w, 0, 0, 5), push(w, 0, 1, 5);
    run_for(w, 5 * NS_PER_S);
    sim_silence_host(w->sim, receiver_hosts[0], true);
    push(w, 0, 0, 5);
    run_for(w, 100 * NS_PER_S);
    assert_state(w, 0, 0, OUTLET_RESTING, PE_LINK_SILENT);
    assert_state(w, 0, 1, OUTLET_RESTING, PE_NO_APP);
    sim_silence_host(w->sim, receiver_hosts[0], false);
    run_for(w, 80 * NS_PER_S);
    assert_state(w, 0, 0, OUTLET_OK, 0);
    assert_state(w, 0, 1, OUTLET_RESTING, PE_NO_APP); /* still */
    assert_int_equal(said(&w->log, "delivers again"), 0);
    world_end(w);
}

static void what_the_receiver_said_of_an_outlet_stands_through_a_silence(void **state)
{
    (void)state;
    each_seed(silence_of_a_refused_seed);
}

static void a_refusal_that_says_more_is_stored_does_not_count_as_delivering(void **state)
{
    (void)state;
    struct world *w = world_start(1, 1);
    push(w, 0, 1, 50);
    run_until_freed(w, NS_PER_S);
    end_receiver(w, 0); /* it knows of more than it has said */
    w->links[0].stores[1].refuse = REFUSED_APP_SUSPENDED;
    push(w, 0, 1, 50);
    w->links[0].stores[1].stored += 20;
    start_receiver(w, 0);
    run_for(w, 90 * NS_PER_S);
    assert_int_equal(freed(w, 0, 1), 70);
    assert_state(w, 0, 1, OUTLET_RESTING, PE_APP_SUSPENDED);
    assert_int_equal(said(&w->log, "delivers again"), 0);
    w->links[0].stores[1].refuse = 0;
    run_until_freed(w, 76 * NS_PER_S);
    assert_state(w, 0, 1, OUTLET_OK, 0);
    assert_int_equal(said(&w->log, "delivers again"), 1);
    world_end(w);
}

static void a_refusal_for_ever_disables_its_outlet(void **state)
{
    (void)state;
    struct world *w = world_start(1, 1);
    w->links[0].stores[1].refuse = REFUSED_RETIRED;
    push(w, 0, 0, 5), push(w, 0, 1, 5);
    run_for(w, 500 * NS_PER_S);
    assert_state(w, 0, 0, OUTLET_OK, 0);
    assert_state(w, 0, 1, OUTLET_DISABLED, PE_STREAM_RETIRED);
    assert_int_equal(said(&w->log, "it is disabled"), 1);
    assert_int_equal(said(&w->log, ""), 1);
    assert_int_equal(report_of(w, 0, 1)->failures, 1);
    world_end(w);
}

/* --- descriptors --- */

static void no_descriptor_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    push(w, 0, 0, 100);
    sim_limit_descriptors(w->sim, sim_open_descriptors(w->sim));
    run_for(w, 600 * NS_PER_S);
    assert_state(w, 0, 0, OUTLET_RESTING, -EMFILE);
    assert_int_equal(counted(&w->links[0].link.report.ports), 0);
    assert_in_range(report_of(w, 0, 0)->failures, 15, 120);
    assert_true(w->loop.counters.steps < 10 * report_of(w, 0, 0)->failures);
    assert_int_equal(said(&w->log, ""), 1);
    sim_limit_descriptors(w->sim, 100);
    run_until_freed(w, 32 * NS_PER_S);
    assert_state(w, 0, 0, OUTLET_OK, 0);
    /* one for the socket, none for a new port: the one there is goes on */
    sim_limit_descriptors(w->sim, sim_open_descriptors(w->sim));
    sim_silence_host(w->sim, receiver_hosts[0], true);
    push(w, 0, 0, 100);
    run_for(w, 100 * NS_PER_S);
    sim_silence_host(w->sim, receiver_hosts[0], false);
    run_until_freed(w, 61 * NS_PER_S);
    assert_int_equal(counted(&w->links[0].link.report.ports), 1);
    world_end(w);
}

static void without_a_descriptor_it_rests_and_recovers(void **state)
{
    (void)state;
    each_seed(no_descriptor_seed);
}

/* --- stopping --- */

static bool has_session(struct world *w)
{
    struct receiving *r = &w->receivers[0];
    return responder_sealing(&r->listener.receiver.responder, r->peer, r->loop.now_ns) != NULL;
}

static void stop_seed(uint64_t seed)
{
    for (unsigned busy = 0; busy < 3; busy++) {
        struct world *w = world_start(seed, 1);
        push(w, 0, 0, 10);
        run_until_freed(w, NS_PER_S);
        assert_true(has_session(w));
        if (busy > 0) {
            push(w, 0, 0, 5000);
            run_for(w, busy * 300 * NS_PER_US);
        }
        world_stop_links(w);
        run_for(w, NS_PER_S);
        assert_false(has_session(w));
        world_end(w);
    }
}

static void stopping_tells_the_receiver_and_closes_the_sockets(void **state)
{
    (void)state;
    each_seed(stop_seed);
}

static void full_buffers_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    push(w, 0, 0, 10);
    run_until_freed(w, NS_PER_S);
    seam.stuck = true;
    push(w, 0, 0, 5000);
    run_for(w, 5 * NS_PER_MS);
    assert_null(w->links[0].link.free);
    /* the socket goes on: what waited leaves, and then the last words */
    link_stop(&w->links[0].link);
    run_for(w, 100 * NS_PER_MS);
    assert_false(link_stopped(&w->links[0].link));
    seam.stuck = false;
    for (struct io_op *op = seam.held, *next; op; op = next) {
        next = op->next;
        io_complete(w->loop.io, op, (int)op->size, false);
    }
    seam.held = NULL;
    world_stop_links(w);
    run_for(w, NS_PER_S);
    assert_false(has_session(w));
    world_end(w);
}

static void the_last_words_wait_for_a_free_buffer(void **state)
{
    (void)state;
    each_seed(full_buffers_seed);
}

static void stuck_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    push(w, 0, 0, 10);
    run_until_freed(w, NS_PER_S);
    seam.stuck = true;
    push(w, 0, 0, 5000);
    run_for(w, 5 * NS_PER_MS);
    world_end(w);
    assert_null(seam.held);
}

static void stopping_does_not_wait_for_ever_for_a_socket_that_is_stuck(void **state)
{
    (void)state;
    each_seed(stuck_seed);
}

static void stopping_works_before_anything_was_sent(void **state)
{
    (void)state;
    for (unsigned when = 0; when < 3; when++) {
        struct world *w = world_start(1, 1);
        if (when > 0)
            push(w, 0, 0, 10);
        if (when == 2)
            name_is(w, 0, 0, receiver_hosts[0], SIM_HANGS);
        if (when > 0)
            run_for(w, 500 * NS_PER_US); /* its name is being looked up */
        assert_int_equal(w->links[0].link.looking_up, when > 0);
        world_end(w);
    }
}

static void a_link_never_run_is_disposed_of(void **state)
{
    (void)state;
    struct world *w = world_start(1, 1);
    link_dispose(&w->links[0].link);
    w->links[0].up = false;
    world_end(w);
}

static void stop_now(void *context)
{
    struct world *w = context;
    assert_int_equal(sim_now_ns(w->sim), w->links[0].link.timer.due_ns);
    link_stop(&w->links[0].link);
}

/* A probe is due in the very round that stops. */
static void a_link_that_stops_begins_no_lookup(void **state)
{
    (void)state;
    struct world *w = world_start(1, 1);
    push(w, 0, 0, 10);
    run_until_freed(w, NS_PER_S);
    sim_silence_host(w->sim, receiver_hosts[0], true);
    push(w, 0, 0, 10);
    run_for(w, 5 * NS_PER_S);
    uint64_t lookups = sim_lookups(w->sim, "peer0");
    assert_true(lookups > 1);
    sim_at(w->sim, w->links[0].link.timer.due_ns, stop_now, w);
    run_for(w, 20 * NS_PER_S);
    assert_true(world_stopped(w));
    assert_int_equal(sim_lookups(w->sim, "peer0"), lookups);
    world_end(w);
}

/* --- hurry --- */

static void hurry_seed(uint64_t seed)
{
    struct world *w = world_new(seed, 1);
    start_link(w, 0);
    push(w, 0, 0, 10);
    run_for(w, 300 * NS_PER_S);
    start_receiver(w, 0);
    w->links[0].stores[0].refuse = REFUSED_NO_APP;
    link_hurry(&w->links[0].link);
    run_for(w, 250 * NS_PER_MS);
    assert_true(w->links[0].link.sender.associated);
    run_for(w, NS_PER_S);
    assert_state(w, 0, 0, OUTLET_RESTING, PE_NO_APP);
    assert_true(report_of(w, 0, 0)->failures < 20);
    w->links[0].stores[0].refuse = 0;
    run_until_freed(w, 250 * NS_PER_MS);
    world_end(w);
}

static void hurrying_cuts_back_offs_and_rests(void **state)
{
    (void)state;
    each_seed(hurry_seed);
}

static void hurried_name_seed(uint64_t seed)
{
    struct world *w = world_start(seed, 1);
    name_is(w, 0, PE_NAME_NOT_FOUND, NULL, NS_PER_MS);
    push(w, 0, 0, 10);
    run_for(w, 300 * NS_PER_S);
    name_is(w, 0, 0, receiver_hosts[0], NS_PER_MS);
    link_hurry(&w->links[0].link);
    run_until_freed(w, 250 * NS_PER_MS);
    world_end(w);
}

static void hurrying_cuts_the_rest_before_a_lookup(void **state)
{
    (void)state;
    each_seed(hurried_name_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_several_outlets_go_through_in_order_and_are_counted),
        cmocka_unit_test(an_idle_link_has_no_socket_looks_nothing_up_and_makes_no_steps),
        cmocka_unit_test(a_busy_link_keeps_to_its_quota_and_the_others_get_their_rounds),
        cmocka_unit_test(a_name_that_is_known_later_is_connected_to_within_one_back_off),
        cmocka_unit_test(a_lookup_that_fails_or_hangs_does_not_wipe_an_address_that_works),
        cmocka_unit_test(a_name_that_moves_in_mid_transfer_is_followed),
        cmocka_unit_test(a_name_whose_addresses_rotate_does_not_lose_the_answers_on_their_way),
        cmocka_unit_test(an_outlet_that_is_refused_rests_is_retried_and_harms_no_other),
        cmocka_unit_test(what_the_receiver_said_of_an_outlet_stands_through_a_silence),
        cmocka_unit_test(a_refusal_that_says_more_is_stored_does_not_count_as_delivering),
        cmocka_unit_test(a_refusal_for_ever_disables_its_outlet),
        cmocka_unit_test(without_a_descriptor_it_rests_and_recovers),
        cmocka_unit_test(stopping_tells_the_receiver_and_closes_the_sockets),
        cmocka_unit_test(the_last_words_wait_for_a_free_buffer),
        cmocka_unit_test(stopping_does_not_wait_for_ever_for_a_socket_that_is_stuck),
        cmocka_unit_test(stopping_works_before_anything_was_sent),
        cmocka_unit_test(a_link_never_run_is_disposed_of),
        cmocka_unit_test(a_link_that_stops_begins_no_lookup),
        cmocka_unit_test(hurrying_cuts_back_offs_and_rests),
        cmocka_unit_test(hurrying_cuts_the_rest_before_a_lookup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
