/* Both ends of links over a network that fails them in every way: every record once and in order, memory and
 * traffic within bounds. See link_ends.h. */
#include "link_ends.h"

#include <malloc.h>

static uint64_t total_bytes(const struct world *w)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < w->sender_count; i++) {
        for (unsigned k = 0; k < w->output_count; k++)
            bytes += w->senders[i].streams[k].outlet.queue.freed.bytes;
    }
    return bytes;
}

/* Runs until all is stored; says how long that took. */
static uint64_t run_for(struct world *w, uint64_t most_ns)
{
    uint64_t start_ns = w->now_ns;
    bool done = world_run(w, w->now_ns + most_ns);
    if (!done)
        world_print(w);
    assert_true(done);
    return w->now_ns - start_ns;
}

/* Runs until about a third of the first output's records is stored. */
static void run_a_third(struct world *w)
{
    const struct world_stream *stream = &w->senders[0].streams[0];
    for (unsigned steps = 0; stream->stored < stream->total / 3; steps++) {
        assert_true(steps < 100000);
        world_step(w, NEVER);
    }
}

/* --- rates, in virtual time --- */

static double goodput(unsigned loss, uint64_t delay_ns)
{
    struct world *w = world_new(1, 1, 1, 100000);
    w->max_record = 1000;
    w->queue_bytes = 2 << 20;
    w->limits.stream_window = w->limits.session_window = 2 << 20;
    w->there.weather.loss = w->back.weather.loss = loss;
    w->there.weather.delay_ns = w->back.weather.delay_ns = delay_ns;
    w->there.weather.mtu = 1472;
    world_start(w);
    uint64_t took_ns = run_for(w, 300 * NS_PER_S);
    double rate = (double)total_bytes(w) / (double)took_ns * 1e3;
    printf(
        "100 Mbit/s, %lu ms round trip, %u %% loss each way: %.2f MB/s of records, %lu datagrams there, %lu "
        "back\n",
        2 * delay_ns / NS_PER_MS, loss / 10, rate, w->sent_there, w->sent_back);
    world_free(w);
    return rate;
}

static void a_path_is_used_for_what_it_gives(void **state)
{
    (void)state;
    assert_true(goodput(0, NS_PER_MS) > 8);
    assert_true(goodput(0, 25 * NS_PER_MS) > 3);
    assert_true(goodput(10, 25 * NS_PER_MS) > 0.15);
    assert_true(goodput(50, 25 * NS_PER_MS) > 0.05);
    assert_true(goodput(300, 25 * NS_PER_MS) > 0.005);
}

/* --- the way changes --- */

static void a_rebound_nat_is_followed_at_once(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 2, 20000);
    world_start(w);
    run_a_third(w);
    w->senders[0].nat_port = 20000;
    assert_true(run_for(w, 60 * NS_PER_S) < 5 * NS_PER_S);
    assert_int_equal(w->senders[0].lookups, 0);
    world_free(w);
}

static void a_late_packet_from_the_old_address_moves_nothing_back(void **state)
{
    (void)state;
    static struct flight late;
    struct world *w = world_new(1, 1, 2, 20000);
    world_start(w);
    run_a_third(w);
    while (w->flying == 0 || !w->flights[w->heap[0]].to_receiver)
        world_step(w, NEVER);
    late = *world_land(w); /* held up on its way */
    w->senders[0].nat_port = 20000;
    const struct sockaddr_in *source = (const struct sockaddr_in *)&w->receiver.peers[0]->source.address;
    while (ntohs(source->sin_port) != 20000)
        world_step(w, NEVER);
    uint64_t received = w->receiver.peers[0]->acks.received.count;
    world_arrive(w, &late);
    assert_true(w->receiver.peers[0]->acks.received.count != received); /* it is good, and taken */
    assert_int_equal(ntohs(source->sin_port), 20000);
    run_for(w, 60 * NS_PER_S);
    world_free(w);
}

static void a_dead_nat_entry_is_escaped_by_a_new_source_port(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 2, 20000);
    world_start(w);
    run_a_third(w);
    w->senders[0].nat_dead = true;
    assert_true(run_for(w, 60 * NS_PER_S) < 10 * NS_PER_S);
    assert_true(w->senders[0].lookups > 0);
    world_free(w);
}

static void a_path_that_takes_less_than_before_stalls_nothing(void **state)
{
    (void)state;
    for (int icmp = 0; icmp < 2; icmp++) {
        struct world *w = world_new(1, 1, 2, 40000);
        world_start(w);
        run_a_third(w);
        assert_true(w->senders[0].link.path.mtu.current > 5000);
        w->there.weather.mtu = 1300;
        w->there.weather.icmp = icmp;
        assert_true(run_for(w, 60 * NS_PER_S) < 10 * NS_PER_S);
        assert_true(w->senders[0].link.path.mtu.current <= 1300);
        world_free(w);
    }
}

/* Everything that there is room for in the sent map is on its way, and is lost: time-outs have to get through
 * all the same. */
static void a_full_map_that_is_lost_as_a_whole_stalls_nothing(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 1, 100000);
    w->max_record = 1000;
    w->queue_bytes = 4 << 20;
    w->limits.stream_window = w->limits.session_window = 4 << 20;
    w->there.weather.delay_ns = w->back.weather.delay_ns = 100 * NS_PER_MS;
    w->there.weather.mtu = 1472;
    world_start(w);
    const struct sent *sent = &w->senders[0].link.path.sent;
    for (unsigned steps = 0; sent_room(sent); steps++) {
        assert_true(steps < 1000000);
        world_step(w, NEVER);
    }
    w->there.weather.blocked = w->back.weather.blocked = true;
    w->flying = 0;
    world_run(w, w->now_ns + 2 * NS_PER_S);
    w->there.weather.blocked = w->back.weather.blocked = false;
    assert_true(run_for(w, 120 * NS_PER_S) < 60 * NS_PER_S);
    world_free(w);
}

static void keys_change_every_two_minutes_and_nothing_waits(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 1, 120000);
    w->there.weather.bytes_s = 10000;
    w->there.weather.queue_bytes = 10000;
    w->there.weather.mtu = 1472;
    w->max_record = 500;
    world_start(w);
    struct world_sender *s = &w->senders[0];
    uint64_t born_ns = 0, keys = 0, stored = 0, stored_ns = w->now_ns, longest_ns = 0;
    while (!world_done(w)) {
        world_step(w, w->now_ns + NS_PER_S);
        keys += s->link.initiator.current.live && s->link.initiator.current.born_ns != born_ns;
        born_ns = s->link.initiator.current.born_ns;
        if (s->streams[0].stored != stored) {
            longest_ns = max_u64(longest_ns, w->now_ns - stored_ns);
            stored = s->streams[0].stored;
            stored_ns = w->now_ns;
        }
        assert_true(w->now_ns < 1000 * NS_PER_S);
    }
    assert_true(keys >= 2 && keys <= w->now_ns / (115 * NS_PER_S) + 1);
    assert_true(longest_ns < 4 * NS_PER_S);
    assert_int_equal(s->link.outputs.list[0]->life, 0);
    world_free(w);
}

static void a_day_of_silence_is_survived_with_few_datagrams(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 2, 20000);
    world_start(w);
    run_a_third(w);
    uint64_t before = w->sent_there + w->sent_back, day_ns = 86400 * NS_PER_S;
    w->there.weather.blocked = true;
    assert_false(world_run(w, w->now_ns + day_ns));
    assert_true(w->sent_there + w->sent_back - before < 86400 / 40 * 3);
    w->there.weather.blocked = false;
    assert_true(run_for(w, 90 * NS_PER_S) < 80 * NS_PER_S);
    world_free(w);
}

/* --- the ends change --- */

static void a_receiver_that_stores_nothing_is_waited_for(void **state)
{
    (void)state;
    struct world *w = world_new(1, 2, 2, 20000);
    world_start(w);
    w->consumer_full = true;
    assert_false(world_run(w, w->now_ns + 10 * NS_PER_S));
    for (unsigned i = 0; i < 2; i++) {
        const struct inlets *in = &w->receiver.peers[i]->inlets;
        assert_true(in->session_received > 0 && in->session_received <= in->session_credit);
        assert_true(in->session_credit <= w->limits.session_window);
    }
    uint64_t before = w->sent_there + w->sent_back;
    assert_false(world_run(w, w->now_ns + 1000 * NS_PER_S));
    assert_true(w->sent_there + w->sent_back - before < 500);
    w->consumer_full = false;
    assert_true(run_for(w, 60 * NS_PER_S) < 10 * NS_PER_S);
    world_free(w);
}

/* Without early refusal: more is promised than there is room for, and what comes of it is not acknowledged.
 */
static void what_was_promised_without_room_is_dropped_and_comes_again(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct world *w = world_new(seed, 2, 3, 5000);
        w->limits.overpromise = UINT64_C(1) << 40;
        w->limits.session_window = UINT64_C(65536) << (seed % 3);
        world_start(w);
        w->consumer_full = true;
        assert_false(world_run(w, w->now_ns + 300 * NS_PER_MS));
        bool beyond = false;
        for (unsigned i = 0; i < 2; i++) {
            const struct inlets *in = &w->receiver.peers[i]->inlets;
            beyond |= w->senders[i].link.outputs.session_sent > in->session_credit;
            assert_true(in->session_received <= in->session_credit);
            assert_true(in->session_credit <= in->session_freed + w->limits.session_window + in->extra);
        }
        assert_true(beyond);
        w->consumer_full = false;
        assert_true(world_run(w, w->now_ns + 600 * NS_PER_S));
        world_free(w);
    }
}

static void streams_that_fill_the_window_and_wait_are_relieved_and_come_again(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 3, 20000);
    w->limits.session_window = 128 << 10;
    world_start(w);
    w->consumer_full = true;
    assert_false(world_run(w, w->now_ns + 3 * NS_PER_S)); /* nothing comes any more: by the timer */
    uint64_t relieved = 0;
    for (unsigned k = 0; k < 3; k++) {
        const struct world_stream *stream = &w->senders[0].streams[k];
        relieved += stream->refused;
        assert_true(stream->refused == 0 || stream->error == PE_NO_ROOM);
    }
    assert_true(relieved > 0);
    w->consumer_full = false;
    run_for(w, 60 * NS_PER_S);
    world_free(w);
}

static void a_packet_that_cannot_be_kept_comes_again(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 1, 150000);
    w->max_record = 500;
    w->queue_bytes = 4 << 20;
    w->limits.stream_window = w->limits.session_window = 4 << 20;
    w->there.weather.mtu = 1200;
    w->there.weather.bytes_s = 125000000;
    w->there.weather.queue_bytes = 4 << 20;
    world_start(w);
    const struct world_sender *s = &w->senders[0];
    while (s->link.path.sent.outstanding < 400) { /* a window so large that half of it is many holes */
        assert_false(world_done(w));
        world_step(w, NEVER);
    }
    w->there.weather.loss = 500;
    uint32_t most = 0;
    for (uint64_t until_ns = w->now_ns + 40 * NS_PER_MS; w->now_ns < until_ns;) {
        world_step(w, until_ns);
        if (s->streams[0].inlet)
            most = (uint32_t)max_u64(most, s->streams[0].inlet->stream.pieces.count);
    }
    assert_int_equal(most, RECEIVE_STREAM_PIECES);
    w->there.weather.loss = 0;
    run_for(w, 60 * NS_PER_S);
    world_free(w);
}

static void a_stop_is_told_and_the_next_start_begins_at_once(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 2, 20000);
    world_start(w);
    run_a_third(w);
    link_sender_close(&w->senders[0].link);
    world_fill_sender(w, 0);
    assert_int_equal(link_sender_deadline_ns(&w->senders[0].link, w->now_ns), NEVER);
    assert_false(world_run(w, w->now_ns + NS_PER_S));
    assert_false(w->receiver.peers[0]->associated);
    world_restart_sender(w, 0);
    assert_true(run_for(w, 60 * NS_PER_S) < 3 * NS_PER_S);
    world_free(w);
}

static void a_receiver_that_stops_says_so_and_is_found_again_at_once(void **state)
{
    (void)state;
    struct world *w = world_new(1, 2, 2, 20000);
    world_start(w);
    run_a_third(w);
    link_receiver_close(&w->receiver);
    world_fill_receiver(w);
    for (unsigned i = 0; i < 2; i++)
        assert_false(w->receiver.peers[i]->associated);
    world_restart_receiver(w);
    assert_true(run_for(w, 60 * NS_PER_S) < 4 * NS_PER_S); /* silence would take 10 s to tell */
    world_free(w);
}

static void a_receiver_that_ends_each_session_at_once_costs_a_handshake_a_second(void **state)
{
    (void)state;
    enum { SECONDS = 10 };
    struct world *w = world_new(1, 1, 1, 1000);
    world_start(w);
    w->consumer_full = true;
    uint64_t until_ns = w->now_ns + SECONDS * NS_PER_S;
    unsigned associations = 0;
    for (unsigned steps = 0; w->now_ns < until_ns; steps++) {
        assert_true(steps < 100000);
        associations += w->receiver.peers[0]->associated && !w->receiver.peers[0]->close_due;
        link_receiver_close(&w->receiver);
        world_step(w, until_ns);
    }
    assert_in_range(associations, SECONDS / 2, SECONDS + 1);
    w->consumer_full = false;
    run_for(w, 10 * NS_PER_S);
    world_free(w);
}

static void records_that_overfill_the_session_together_all_arrive(void **state)
{
    (void)state;
    for (unsigned promised = 0; promised < 2; promised++) {
        struct world *w = world_new(1, 1, 3, 400);
        w->max_record = 150000;
        w->queue_bytes = 1 << 20;
        w->limits.stream_window = w->limits.session_window = 64 << 10;
        w->limits.overpromise = promised << 30;
        world_start(w);
        run_for(w, 300 * NS_PER_S);
        world_free(w);
    }
}

/* --- refusals --- */

static void a_refusal_for_ever_disables_one_output_and_harms_no_other(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 2, 5000);
    w->senders[0].streams[1].total = 0;
    world_start(w);
    w->refuse = REFUSED_RETIRED;
    assert_false(world_run(w, w->now_ns + 5 * NS_PER_S));
    assert_int_equal(w->senders[0].streams[0].output.state, OUTPUT_DISABLED);
    assert_int_equal(w->senders[0].streams[0].refused, 1);
    assert_int_equal(w->senders[0].streams[0].error, PE_STREAM_RETIRED);
    w->refuse = 0;
    w->senders[0].streams[1].total = 5000;
    assert_false(world_run(w, w->now_ns + 20 * NS_PER_S));
    assert_int_equal(w->senders[0].streams[1].outlet.queue.freed.records, 5000);
    assert_int_equal(w->senders[0].streams[0].outlet.queue.freed.records, 0);
    world_free(w);
}

static void a_refusal_for_now_rests_the_output_and_costs_no_credit(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 3, 5000);
    w->there.weather.loss = w->back.weather.loss =
        200; /* what was lost of an ended stream never comes again */
    world_start(w);
    w->refuse = REFUSED_APP_SUSPENDED;
    assert_false(world_run(w, w->now_ns + 100 * NS_PER_S));
    for (unsigned k = 0; k < 3; k++) {
        assert_true(w->senders[0].streams[k].refused >= 4 && w->senders[0].streams[k].refused < 10);
        assert_int_equal(w->senders[0].streams[k].error, PE_APP_SUSPENDED);
    }
    w->refuse = 0;
    run_for(w, 100 * NS_PER_S);
    const struct inlets *in = &w->receiver.peers[0]->inlets;
    assert_int_equal(in->session_received, in->session_freed);
    assert_int_equal(in->session_received, w->senders[0].link.outputs.session_sent);
    world_free(w);
}

static void a_record_over_the_receivers_limit_stops_its_output_only(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 2, 300);
    world_start(w);
    w->limits.max_record = 19; /* record 12 of either has 20 bytes */
    world_restart_receiver(w);
    w->consumer_full = true;
    assert_false(world_run(w, w->now_ns + 20 * NS_PER_S));
    assert_int_equal(w->senders[0].streams[0].refused, 0); /* the records in front of it are not stored yet */
    w->consumer_full = false;
    assert_false(world_run(w, w->now_ns + 20 * NS_PER_S));
    for (unsigned k = 0; k < 2; k++) {
        assert_int_equal(w->senders[0].streams[k].stored, 11);
        assert_int_equal(w->senders[0].streams[k].error, PE_TOO_LARGE);
        assert_int_equal(w->senders[0].streams[k].output.state, OUTPUT_RESTING);
    }
    w->limits.max_record = w->max_record;
    world_restart_receiver(w);
    run_for(w, 200 * NS_PER_S);
    world_free(w);
}

/* --- foreign datagrams --- */

static void what_was_captured_stores_nothing_and_resets_nothing(void **state)
{
    (void)state;
    static struct flight captured[300];
    struct world *w = world_new(1, 1, 1, 5000);
    world_start(w);
    unsigned count = 0;
    while (!world_done(w)) {
        world_step(w, NEVER);
        if (w->flying > 0 && w->flights[w->heap[0]].to_receiver && count < ARRAY_SIZE(captured))
            captured[count++] = w->flights[w->heap[0]];
    }
    assert_true(count > 50);
    uint64_t later_ns = w->now_ns + NS_PER_S;
    while (w->now_ns < later_ns) /* what is on its way arrives: it was fresh */
        world_step(w, later_ns);
    for (int restart = 0; restart < 2; restart++) {
        uint64_t stored = w->senders[0].streams[0].stored;
        struct link_peer *peer = w->receiver.peers[0];
        uint64_t next = peer->path.sent.next, newest = peer->newest, received = peer->inlets.session_received;
        for (unsigned i = 0; i < count; i++) {
            struct flight copy = captured[i];
            copy.port = 666;
            world_arrive(w, &copy);
        }
        link_receiver_deliver(&w->receiver);
        world_turns(w);
        assert_int_equal(w->senders[0].streams[0].stored, stored);
        assert_int_equal(peer->path.sent.next, next);
        assert_int_equal(peer->newest, newest);
        assert_int_equal(peer->inlets.session_received, received);
        world_restart_receiver(w);
    }
    w->senders[0].streams[0].total = 10000;
    run_for(w, 60 * NS_PER_S);
    world_free(w);
}

/* --- the storm: everything at once, by the seed --- */

static struct weather bad_weather(struct random *r)
{
    static const unsigned losses[] = {0, 10, 50, 150, 300};
    static const uint64_t rates[] = {100000, 1000000, 12500000, 125000000};
    struct weather weather = {.loss = losses[random_below(r, ARRAY_SIZE(losses))],
                              .duplicate = (unsigned)random_below(r, 3) * 50,
                              .corrupt = (unsigned)random_below(r, 3) * 20,
                              .delay_ns = (1 + random_below(r, 10) * random_below(r, 30)) * NS_PER_MS,
                              .bytes_s = rates[random_below(r, ARRAY_SIZE(rates))],
                              .mtu = 1200 + (uint32_t)random_below(r, 3) * 700,
                              .icmp = random_below(r, 2)};
    weather.jitter_ns = random_below(r, 2) * random_below(r, 20 * NS_PER_MS);
    weather.queue_bytes = 20000 + random_below(r, 200000);
    return weather;
}

/* One fault now, that may last for some time. */
static void fault(struct world *w, struct random *r)
{
    struct world_sender *s = &w->senders[random_below(r, w->sender_count)];
    switch (random_below(r, 9)) {
    case 0:
        s->nat_port = ++s->port;
        break;
    case 1:
        s->nat_dead = true;
        break;
    case 2:
        w->there.weather.blocked = !w->there.weather.blocked;
        break;
    case 3:
        w->back.weather.blocked = !w->back.weather.blocked;
        break;
    case 4:
        world_restart_receiver(w);
        break;
    case 5:
        world_restart_sender(w, (unsigned)(s - w->senders));
        break;
    case 6:
        w->there.weather.mtu = 1200 + (uint32_t)random_below(r, 600);
        break;
    case 7:
        w->consumer_full = !w->consumer_full;
        break;
    default:
        w->there.weather = bad_weather(r);
        w->back.weather = bad_weather(r);
    }
}

static void weather_clears(struct world *w)
{
    w->there.weather.blocked = w->back.weather.blocked = w->consumer_full = false;
}

#define STORM_RECORDS 1500

/* No storm of ours: a few times the records' own bytes, and some packets a second for as long as it took.
 * What comes back is of the same order as what is sent. */
static void assert_traffic_bounded(const struct world *w, uint64_t start_ns)
{
    uint64_t records = 0, seconds = (w->now_ns - start_ns) / NS_PER_S + 1;
    for (unsigned i = 0; i < w->sender_count; i++) {
        for (unsigned k = 0; k < w->output_count; k++)
            records += w->senders[i].streams[k].outlet.queue.freed.bytes;
    }
    assert_true(w->bytes_there < 5 * records + 5000 * seconds);
    assert_true(w->sent_back < 2 * w->sent_there + 5 * seconds);
}

static void storm(uint64_t seed, bool tell)
{
    struct random r = {seed * 77 + 5};
    struct world *w = world_new(seed, 1 + (unsigned)random_below(&r, WORLD_SENDERS),
                                1 + (unsigned)random_below(&r, WORLD_OUTPUTS), STORM_RECORDS);
    w->max_record = 1000 + (uint32_t)random_below(&r, 4) * 5000;
    w->limits.session_window = UINT64_C(32768) << random_below(&r, 4);
    w->there.weather = bad_weather(&r);
    w->back.weather = bad_weather(&r);
    world_start(w);
    uint64_t start_ns = w->now_ns, faults = random_below(&r, 12), fault_ns = w->now_ns;
    while (faults-- > 0) {
        fault_ns += random_below(&r, 8 * NS_PER_S);
        if (world_run(w, fault_ns))
            break;
        fault(w, &r);
    }
    weather_clears(w);
    uint64_t cleared_ns = w->now_ns;
    bool done = world_run(w, w->now_ns + 1200 * NS_PER_S);
    if (tell || !done) {
        printf("seed %lu: %s after %.1f s, %.1f s after the last fault; %lu datagrams there, %lu back\n",
               seed, done ? "done" : "NOT DONE", (double)(w->now_ns - start_ns) / 1e9,
               (double)(w->now_ns - cleared_ns) / 1e9, w->sent_there, w->sent_back);
    }
    if (!done)
        world_print(w);
    assert_true(done);
    assert_traffic_bounded(w, start_ns);
    world_free(w);
}

static uint64_t first_seed = 0, seeds = 250, last_seed = 0;

static void in_a_storm_every_record_arrives_once_in_order(void **state)
{
    (void)state;
    for (last_seed = first_seed; last_seed < first_seed + seeds; last_seed++)
        storm(last_seed, seeds <= 50);
}

int main(int argc, char **argv)
{
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* a world's memory serves the next */
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 1)
        seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_used_for_what_it_gives),
        cmocka_unit_test(a_rebound_nat_is_followed_at_once),
        cmocka_unit_test(a_late_packet_from_the_old_address_moves_nothing_back),
        cmocka_unit_test(a_dead_nat_entry_is_escaped_by_a_new_source_port),
        cmocka_unit_test(a_path_that_takes_less_than_before_stalls_nothing),
        cmocka_unit_test(a_full_map_that_is_lost_as_a_whole_stalls_nothing),
        cmocka_unit_test(keys_change_every_two_minutes_and_nothing_waits),
        cmocka_unit_test(a_day_of_silence_is_survived_with_few_datagrams),
        cmocka_unit_test(a_receiver_that_stores_nothing_is_waited_for),
        cmocka_unit_test(what_was_promised_without_room_is_dropped_and_comes_again),
        cmocka_unit_test(streams_that_fill_the_window_and_wait_are_relieved_and_come_again),
        cmocka_unit_test(a_packet_that_cannot_be_kept_comes_again),
        cmocka_unit_test(a_stop_is_told_and_the_next_start_begins_at_once),
        cmocka_unit_test(a_receiver_that_stops_says_so_and_is_found_again_at_once),
        cmocka_unit_test(a_receiver_that_ends_each_session_at_once_costs_a_handshake_a_second),
        cmocka_unit_test(records_that_overfill_the_session_together_all_arrive),
        cmocka_unit_test(a_refusal_for_ever_disables_one_output_and_harms_no_other),
        cmocka_unit_test(a_refusal_for_now_rests_the_output_and_costs_no_credit),
        cmocka_unit_test(a_record_over_the_receivers_limit_stops_its_output_only),
        cmocka_unit_test(what_was_captured_stores_nothing_and_resets_nothing),
        cmocka_unit_test(in_a_storm_every_record_arrives_once_in_order),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed && last_seed < first_seed + seeds)
        printf("the storm's last seed was %lu: %s %lu runs it alone\n", last_seed, argv[0], last_seed);
    return failed;
}
