/* The listener on its loop: what comes, what goes, what is bounded, and how it ends. See link_hosts.h. */
#include "link_hosts.h"

#include <errno.h>

static struct links w;

static uint64_t counted(const _Atomic uint64_t *counter)
{
    return counter_read(counter);
}

static void set_batches(uint32_t no_buffers, uint32_t multishot_end, uint32_t batch_max)
{
    const struct sim_faults faults = {.no_buffers = no_buffers,
                                      .multishot_end = multishot_end,
                                      .batch_max = batch_max,
                                      .buffer_bytes = 4096};
    sim_set_faults(w.sim, &faults);
}

/* --- receiving --- */

static void records_of_several_hosts_arrive_once_and_in_order(void **state)
{
    (void)state;
    links_open(&w, 1, 3, 2, 20000);
    links_finish(&w);
    const struct link_listener_report *r = &w.listener.report;
    assert_true(counted(&r->datagrams) > 1000 && counted(&r->bytes) > 3 * 2 * 20000 * 20);
    assert_true(counted(&r->sent) > 6 && counted(&r->sent) < counted(&r->datagrams));
    assert_int_equal(counted(&r->answers), 3);
    assert_int_equal(counted(&r->dropped) + counted(&r->unopened) + counted(&r->send_errors), 0);
    assert_int_equal(w.listener.in_flight, 0);
    links_close(&w);
}

static void receiving_goes_on_when_buffers_run_out_or_a_receive_ends(void **state)
{
    (void)state;
    links_open(&w, 2, 2, 2, 20000);
    set_batches(300, 300, 8);
    char line[600];
    links_finish(&w);
    assert_true(counted(&w.io->counters.no_buffers) > 10);
    assert_string_equal(links_log(&w.log, line), ""); /* all in a day's work */
    assert_int_equal(counted(&w.listener.report.dropped), 0);
    links_close(&w);
}

/* -ECANCELED that nobody asked for stands for errors that have no name here. */
static void a_receive_that_fails_is_armed_again_after_a_pause_and_said_once(void **state)
{
    char line[600];
    (void)state;
    links_open(&w, 3, 1, 1, 2000);
    sim_run_for(w.sim, NS_PER_MS);
    uint64_t start_ns = sim_now_ns(w.sim), steps = counted(&w.loop.counters.steps);
    for (unsigned i = 0; i < 5; i++) {
        io_cancel(w.io, &w.listener.receive);
        link_listener_want(&w.listener);
        sim_run_for(w.sim, 90 * NS_PER_MS);
        assert_false(w.listener.receive.in_flight);
        sim_run_for(w.sim, 20 * NS_PER_MS);
        assert_true(w.listener.receive.in_flight);
    }
    assert_true(counted(&w.loop.counters.steps) - steps < 50);
    assert_non_null(strstr(links_log(&w.log, line), "cannot receive"));
    assert_string_equal(links_log(&w.log, line), "");
    links_finish(&w);
    assert_true(sim_now_ns(w.sim) - start_ns < 5 * NS_PER_S);
    links_close(&w);
}

static void what_a_buffer_cuts_off_is_dropped_and_what_is_whole_is_taken(void **state)
{
    (void)state;
    links_open(&w, 4, 1, 1, 3000);
    sim_set_datagram_faults(w.sim, &(struct sim_datagram_faults){.buffer_bytes = 1000});
    links_done(&w);
    sim_run_for(w.sim, 3 * NS_PER_S);
    const struct link_listener_report *r = &w.listener.report;
    assert_true(counted(&r->datagrams) >= 2); /* INITs */
    assert_int_equal(counted(&r->dropped), counted(&r->datagrams));
    assert_int_equal(counted(&r->sent), 0);
    sim_set_datagram_faults(w.sim, &(struct sim_datagram_faults){.buffer_bytes = 3200});
    links_finish(&w);
    assert_true(counted(&r->dropped) > 2);
    links_close(&w);
}

static void an_empty_datagram_is_one_that_is_dropped(void **state)
{
    (void)state;
    links_open(&w, 5, 1, 1, 100);
    sim_inject(w.sim, "10.0.7.7:1", LINKS_LISTENER, "", 0);
    sim_run_for(w.sim, NS_PER_MS);
    assert_int_equal(counted(&w.listener.report.datagrams), 1);
    assert_int_equal(counted(&w.listener.report.dropped), 1);
    links_finish(&w);
    links_close(&w);
}

static void an_unknown_key_is_named_in_one_line_a_minute(void **state)
{
    char line[600], key[HOST_KEY_PUBLIC_TEXT];
    (void)state;
    links_open(&w, 6, 2, 1, 100);
    link_receiver_forbid(&w.listener.receiver, 1);
    links_done(&w);
    sim_run_for(w.sim, 50 * NS_PER_S);
    host_key_public_text(w.sender[1].key.public, key);
    assert_non_null(strstr(links_log(&w.log, line), key));
    assert_non_null(strstr(line, "[peer"));
    assert_string_equal(links_log(&w.log, line), "");
    assert_int_equal(w.sender[1].streams[0].stored, 0);
    assert_int_equal(link_receiver_allow(&w.listener.receiver, w.sender[1].key.public, &w.sender[1]), 1);
    links_finish(&w);
    links_close(&w);
}

/* --- sending --- */

static struct link_listener_send *take_all_buffers(void)
{
    struct link_listener_send *all = w.listener.free;
    w.listener.free = NULL;
    return all;
}

static void give_all_buffers(struct link_listener_send *all)
{
    w.listener.free = all;
    link_listener_want(&w.listener);
}

static void without_a_free_buffer_nothing_is_lost_and_nothing_spins(void **state)
{
    (void)state;
    links_open(&w, 7, 2, 1, 200);
    links_finish(&w);
    links_push(&w.sender[0].streams[0]);
    struct link_listener_send *all = take_all_buffers();
    uint64_t sent = counted(&w.listener.report.sent), steps = counted(&w.loop.counters.steps);
    w.sender[0].streams[0].total += 200;
    links_done(&w);
    sim_run_for(w.sim, 2 * NS_PER_S);
    assert_int_equal(w.sender[0].streams[0].stored, 400);
    assert_int_equal(counted(&w.listener.report.sent), sent);
    assert_true(counted(&w.loop.counters.steps) - steps < 100);
    give_all_buffers(all);
    links_finish_more(&w, 200);
    links_close(&w);
}

static void one_free_buffer_serves_all_in_turn(void **state)
{
    (void)state;
    links_open(&w, 17, 3, 1, 200);
    links_finish(&w);
    set_batches(0, 0, 5000);
    struct link_listener_send *rest = w.listener.free->next;
    w.listener.free->next = NULL;
    for (unsigned i = 0; i < 3; i++)
        w.sender[i].streams[0].total++;
    links_done(&w);
    sim_remove_loop(w.sim, &w.loop);
    sim_run_for(w.sim, NS_PER_MS); /* what all three send lies in the socket */
    sim_add_loop(w.sim, &w.loop);
    uint64_t start_ns = sim_now_ns(w.sim);
    links_finish(&w);
    assert_true(sim_now_ns(w.sim) - start_ns < NS_PER_MS);
    w.listener.free->next = rest;
    links_close(&w);
}

static void an_init_without_a_buffer_for_its_answer_makes_no_session(void **state)
{
    (void)state;
    links_open(&w, 8, 1, 1, 200);
    struct link_listener_send *all = take_all_buffers();
    links_done(&w);
    sim_run_for(w.sim, NS_PER_S / 2);
    assert_int_equal(counted(&w.listener.report.dropped), 1);
    assert_int_equal(w.listener.receiver.responder.indices.count, 0);
    give_all_buffers(all);
    links_finish(&w);
    links_close(&w);
}

static struct link_init captured_init;

static void capture_init(void *context, const struct sockaddr_storage *from,
                         const struct sockaddr_storage *to, struct span bytes)
{
    (void)context, (void)from, (void)to;
    if (link_type_of(bytes.data, bytes.size) == LINK_INIT)
        memcpy(&captured_init, bytes.data, sizeof captured_init);
}

static bool too_many_answers(void *context)
{
    (void)context;
    return w.listener.answers_in_flight > LINK_LISTENER_SENDS / 2;
}

/* Cookies are cheap, so there may be many: they are not to take the place of acknowledgements. */
static void answers_to_strangers_hold_half_of_the_buffers_at_most(void **state)
{
    (void)state;
    links_open(&w, 9, 1, 1, 2000);
    sim_set_tap(w.sim, capture_init, NULL);
    links_finish(&w);
    sim_set_tap(w.sim, NULL, NULL);
    set_batches(0, 0, 5000);
    uint64_t answers = counted(&w.listener.report.answers);
    for (unsigned i = 0; i < 2000; i++) {
        char from[32];
        snprintf(from, sizeof from, "10.0.7.7:%u", 1000 + i);
        sim_inject(w.sim, from, LINKS_LISTENER, &captured_init, sizeof captured_init);
    }
    assert_int_equal(sim_run(w.sim, sim_now_ns(w.sim) + NS_PER_S / 2, too_many_answers, NULL, 100000),
                     SIM_TIME);
    assert_true(counted(&w.listener.report.answers) - answers > 100);
    assert_int_equal(w.listener.answers_in_flight, 0);
    links_finish_more(&w, 1000);
    links_close(&w);
}

/* --- quotas --- */

/* How long it takes to deliver some more records, while the rogue sends `flood` packets of `size` bytes at
 * once, again and again. */
static uint64_t time_under_flood(unsigned flood, size_t size)
{
    links_open(&w, 10, 1, 1, 2000);
    links_finish(&w);
    links_rogue_start(&w);
    set_batches(0, 0, 5000);
    struct sim_path path = sim_path_default;
    path.latency_min_ns = path.latency_max_ns = 100 * NS_PER_US; /* all at one moment */
    sim_set_path(w.sim, NULL, NULL, &path);
    uint64_t start_ns = sim_now_ns(w.sim);
    w.sender[0].streams[0].total += 5000;
    for (unsigned i = 0; i < 400 && !links_done(&w); i++) {
        for (unsigned k = 0; k < flood; k++)
            links_rogue_ping(&w, size);
        sim_run(w.sim, sim_now_ns(w.sim) + NS_PER_MS, links_done, &w, 10000);
    }
    assert_true(links_done(&w));
    return sim_now_ns(w.sim) - start_ns;
}

static void a_peer_that_floods_is_cut_to_its_quota_and_delays_nobody(void **state)
{
    (void)state;
    uint64_t alone_ns = time_under_flood(0, 0);
    links_rogue_end(&w);
    links_close(&w);
    uint64_t flooded_ns = time_under_flood(2300, 1400);
    const struct link_listener_report *r = &w.listener.report;
    assert_true(counted(&r->unopened) > 500);
    assert_int_equal(counted(&r->dropped), counted(&r->unopened));
    assert_true(flooded_ns < 2 * alone_ns + 5 * NS_PER_MS);
    links_rogue_end(&w);
    links_close(&w);
}

/* In one round, whatever it looks like; the others have theirs whole. */
static void a_quota_is_a_peers_own_and_begins_anew_with_each_round(void **state)
{
    (void)state;
    enum { SIZE = 1400, FITS = LINK_QUOTA / (SIZE + LINK_QUOTA_BASE), OVER = 100 };
    links_open(&w, 11, 1, 1, 0);
    links_rogue_start(&w);
    struct link_receiver *receiver = &w.listener.receiver;
    struct link_address source = {.len = sizeof(struct sockaddr_in)};
    source.address.ss_family = AF_INET;
    for (unsigned round = 0; round < 3; round++) {
        unsigned opened = 0;
        link_receiver_deliver(receiver);
        for (unsigned i = 0; i < FITS + OVER; i++) {
            uint8_t packet[SIZE] = {0};
            bool garbage = i % 2 == 1;
            struct session *session = initiator_sealing(&w.rogue.initiator, sim_now_ns(w.sim));
            session_seal(session, sim_now_ns(w.sim), w.rogue.number++, packet, SIZE - LINK_DATA_OVERHEAD);
            packet[SIZE - 1] ^= garbage;
            int error = link_receiver_receive(receiver, sim_now_ns(w.sim), &source, packet, SIZE, NULL);
            assert_int_equal(error, i >= FITS ? PE_LINK_QUOTA : garbage ? PE_NOT_AUTHENTIC : 0);
            opened += error == 0;
        }
        assert_int_equal(opened, (FITS + 1) / 2);
    }
    links_rogue_end(&w);
    links_close(&w);
}

static void without_quotas_everything_is_opened(void **state)
{
    (void)state;
    links_open(&w, 10, 1, 1, 0);
    w.listener.receiver.without_quotas = true;
    links_rogue_start(&w);
    sim_run_for(w.sim, NS_PER_S);
    for (unsigned k = 0; k < 2300; k++)
        links_rogue_ping(&w, 1400);
    sim_run_for(w.sim, NS_PER_S);
    assert_true(counted(&w.listener.report.datagrams) > 2300);
    assert_int_equal(counted(&w.listener.report.unopened), 0);
    links_rogue_end(&w);
    links_close(&w);
}

static void strangers_share_one_quota_and_use_nobody_elses(void **state)
{
    (void)state;
    enum { FITS = LINK_QUOTA / (LINK_INIT_BYTES + LINK_QUOTA_BASE) };
    links_open(&w, 12, 1, 1, 1000);
    links_finish(&w);
    struct link_receiver *receiver = &w.listener.receiver;
    struct link_init init = {.head.type = LINK_INIT};
    uint8_t answer[LINK_ANSWER_BYTES];
    link_receiver_deliver(receiver);
    for (unsigned i = 0; i < FITS + 50; i++) {
        struct link_address source = {.len = sizeof(struct sockaddr_in)};
        *(struct sockaddr_in *)&source.address =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_port = (in_port_t)i};
        int error = link_receiver_receive(receiver, sim_now_ns(w.sim), &source, (uint8_t *)&init, sizeof init,
                                          answer);
        assert_int_equal(error, i < FITS ? PE_NOT_AUTHENTIC : PE_LINK_QUOTA);
    }
    links_finish_more(&w, 1000);
    assert_int_equal(counted(&w.listener.report.unopened), 0);
    links_close(&w);
}

/* --- the end --- */

static bool stopped(void *context)
{
    (void)context;
    return link_listener_stopped(&w.listener);
}

static void each_peer_is_told_of_a_stop_and_finds_the_next_start_at_once(void **state)
{
    (void)state;
    links_open(&w, 13, 3, 1, 2000);
    links_finish(&w);
    unsigned open = sim_open_descriptors(w.sim);
    uint64_t start_ns = sim_now_ns(w.sim), sent = counted(&w.listener.report.sent);
    link_listener_stop(&w.listener);
    link_listener_stop(&w.listener); /* once is enough */
    assert_int_equal(sim_run(w.sim, start_ns + NS_PER_S, stopped, NULL, 1000), SIM_DONE);
    assert_true(sim_now_ns(w.sim) - start_ns < 10 * NS_PER_MS);
    assert_int_equal(counted(&w.listener.report.sent) - sent, 3);
    assert_int_equal(sim_open_descriptors(w.sim), open - 1);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    links_restart_listener(&w);
    start_ns = sim_now_ns(w.sim);
    links_finish_more(&w, 1000);
    assert_true(sim_now_ns(w.sim) - start_ns < NS_PER_S / 2);
    links_close(&w);
}

/* A completion that the back end had already when the cancel was queued. */
static void after_a_stop_nothing_is_taken(void **state)
{
    (void)state;
    links_open(&w, 14, 1, 1, 2000);
    links_finish(&w);
    uint64_t datagrams = counted(&w.listener.report.datagrams);
    uint8_t datagram[LINK_INIT_BYTES] = {LINK_INIT};
    struct io_op *receive = &w.listener.receive;
    link_listener_stop(&w.listener);
    receive->data = datagram;
    receive->size = receive->datagram.segment = sizeof datagram;
    receive->done(receive, sizeof datagram, true);
    assert_int_equal(sim_run(w.sim, sim_now_ns(w.sim) + NS_PER_S, stopped, NULL, 1000), SIM_DONE);
    assert_int_equal(counted(&w.listener.report.datagrams), datagrams);
    links_close(&w);
}

/* A send that hangs, as one on a socket whose device takes nothing: here, a read of an empty pipe. */
static void a_stop_waits_a_second_for_sends_that_do_not_leave(void **state)
{
    (void)state;
    links_open(&w, 15, 2, 1, 2000);
    links_finish(&w);
    uint8_t byte;
    struct link_listener_send *send = w.listener.free;
    io_done *sent = w.listener.sends[0].op.done;
    assert_non_null(sent);
    w.listener.free = send->next;
    w.listener.in_flight++;
    io_prepare_memory(&send->op, IO_READ, sim_pipe(w.sim, 10), &byte, 1, sent);
    io_queue(w.io, &send->op);
    sim_run_for(w.sim, NS_PER_MS);
    uint64_t start_ns = sim_now_ns(w.sim);
    link_listener_stop(&w.listener);
    assert_int_equal(sim_run(w.sim, start_ns + 10 * NS_PER_S, stopped, NULL, 1000), SIM_DONE);
    assert_in_range(sim_now_ns(w.sim) - start_ns, NS_PER_S * 9 / 10, NS_PER_S * 11 / 10);
    assert_int_equal(w.listener.in_flight, 0);
    assert_int_equal(counted(&w.listener.report.send_errors), 1);
    links_close(&w);
}

static void an_address_that_is_taken_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    static struct link_listener second;
    links_open(&w, 16, 1, 1, 100);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(7071), .sin_addr.s_addr = htonl(0x0a000001)};
    const struct link_listener_options options = {
        .address = (const struct sockaddr *)&at,
        .address_len = sizeof at,
        .receiver = {.key = &w.key, .random = links_random(&w), .peers = 1}};
    const struct link_consumer consumer = {links_admit, links_records, links_closed, &w};
    assert_int_equal(link_listener_init(&second, &options, &consumer, &w.loop, &w.log), -EADDRINUSE);
    links_finish(&w);
    links_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_several_hosts_arrive_once_and_in_order),
        cmocka_unit_test(receiving_goes_on_when_buffers_run_out_or_a_receive_ends),
        cmocka_unit_test(a_receive_that_fails_is_armed_again_after_a_pause_and_said_once),
        cmocka_unit_test(what_a_buffer_cuts_off_is_dropped_and_what_is_whole_is_taken),
        cmocka_unit_test(an_empty_datagram_is_one_that_is_dropped),
        cmocka_unit_test(an_unknown_key_is_named_in_one_line_a_minute),
        cmocka_unit_test(without_a_free_buffer_nothing_is_lost_and_nothing_spins),
        cmocka_unit_test(one_free_buffer_serves_all_in_turn),
        cmocka_unit_test(an_init_without_a_buffer_for_its_answer_makes_no_session),
        cmocka_unit_test(answers_to_strangers_hold_half_of_the_buffers_at_most),
        cmocka_unit_test(a_peer_that_floods_is_cut_to_its_quota_and_delays_nobody),
        cmocka_unit_test(a_quota_is_a_peers_own_and_begins_anew_with_each_round),
        cmocka_unit_test(without_quotas_everything_is_opened),
        cmocka_unit_test(strangers_share_one_quota_and_use_nobody_elses),
        cmocka_unit_test(each_peer_is_told_of_a_stop_and_finds_the_next_start_at_once),
        cmocka_unit_test(after_a_stop_nothing_is_taken),
        cmocka_unit_test(a_stop_waits_a_second_for_sends_that_do_not_leave),
        cmocka_unit_test(an_address_that_is_taken_is_an_error_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
