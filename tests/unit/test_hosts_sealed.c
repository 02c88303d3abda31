/* Sealed wires between whole hosts, through somebody who reads, changes, forges and repeats what he likes.
 *
 *     client ──HTTP──▶ one 10.0.0.1: kitchen ──next, sealed──▶ relay 10.0.0.3 ──▶ two 10.0.0.2: parlour */
#include "tests/sim/ledgers.h"
#include "tests/unit/fewer.h"

#include "host/host_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define PATIENCE_NS (600 * NS_PER_S)
#define PUMP_NS     (200 * NS_PER_US)
#define PAIRS       2048

static struct hosts_world world;
static struct world_host *one, *two;
static struct tally tally;

/* --- who is on the way --- */

struct pair {
    struct sim_connection *in, *out; /* from the sender; to the receiver */
    size_t in_seen, out_seen;
    bool over;
};

static struct relay {
    struct sim_server *server;
    struct pair pairs[PAIRS];
    unsigned count;
    unsigned changes;   /* in 10000: chance that a byte is changed, each way */
    unsigned cuts;      /* in 1000: chance that a connection is ended instead of a chunk going on */
    unsigned repeats;   /* in 1000: chance that a chunk's connection is repeated from its start */
    const char *forges; /* what is answered instead of going on; NULL: it goes on */
    bool running;
} relay;

static bool chance(unsigned of, unsigned out_of)
{
    return of > 0 && random_below(sim_random(world.sim), out_of) < of;
}

static void end_pair(struct pair *p)
{
    p->over = true;
    sim_peer_close(p->in);
    sim_peer_close(p->out);
}

static void forward(struct sim_connection *to, struct span bytes)
{
    uint8_t *copy = malloc(bytes.size);
    memcpy(copy, bytes.data, bytes.size);
    for (size_t i = 0; relay.changes > 0 && i < bytes.size; i++) {
        if (chance(relay.changes, 10000))
            copy[i] ^= (uint8_t)(1u << random_below(sim_random(world.sim), 8));
    }
    sim_peer_send(to, copy, bytes.size);
    free(copy);
}

/* All that has come on the way there, again, on a connection of its own; nobody listens to the answers. */
static struct sim_connection *repeat(const struct pair *p)
{
    struct span all = sim_received(p->in);
    struct sim_connection *c = sim_client(world.sim, "10.0.0.3", two->endpoint, NULL, 0);
    if (all.size > 0)
        sim_peer_send(c, all.data, all.size);
    return c;
}

static void pump_to_receiver(struct pair *p)
{
    struct span all = sim_received(p->in);
    if (all.size == p->in_seen)
        return;
    struct span news = span_of(all.data + p->in_seen, all.size - p->in_seen);
    p->in_seen = all.size;
    if (relay.forges) {
        sim_peer_send(p->in, relay.forges, strlen(relay.forges));
        return;
    }
    if (chance(relay.repeats, 1000))
        repeat(p);
    forward(p->out, news);
}

static void pump_to_sender(struct pair *p)
{
    struct span all = sim_received(p->out);
    if (all.size == p->out_seen)
        return;
    struct span news = span_of(all.data + p->out_seen, all.size - p->out_seen);
    p->out_seen = all.size;
    forward(p->in, news);
}

static void pump_pair(struct pair *p)
{
    if (p->over)
        return;
    size_t before = p->in_seen + p->out_seen;
    if (sim_connected(p->out))
        pump_to_receiver(p);
    pump_to_sender(p);
    bool cut = p->in_seen + p->out_seen > before && chance(relay.cuts, 1000);
    if (cut || sim_peer_ended(p->in) || sim_peer_ended(p->out) || sim_peer_error(p->out) < 0)
        end_pair(p);
}

static void pump(void *context)
{
    (void)context;
    if (!relay.running)
        return;
    while (relay.count < sim_server_accepted(relay.server)) {
        assert_true(relay.count < PAIRS);
        struct pair *p = &relay.pairs[relay.count];
        *p = (struct pair){.in = sim_server_connection(relay.server, relay.count)};
        p->out = sim_client(world.sim, "10.0.0.3", two->endpoint, NULL, 0);
        relay.count++;
    }
    for (unsigned i = 0; i < relay.count; i++)
        pump_pair(&relay.pairs[i]);
    sim_at(world.sim, sim_now_ns(world.sim) + PUMP_NS, pump, NULL);
}

static bool captured(const char *text)
{
    for (unsigned i = 0; i < relay.count; i++) {
        struct span in = sim_received(relay.pairs[i].in), out = sim_received(relay.pairs[i].out);
        if (in.size > 0 && memmem(in.data, in.size, text, strlen(text)))
            return true;
        if (out.size > 0 && memmem(out.data, out.size, text, strlen(text)))
            return true;
    }
    return false;
}

/* --- the hosts --- */

static void set_receiver(const char *apps, unsigned key)
{
    snprintf(two->text, sizeof two->text,
             "[app parlour]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n[app other]\nmodule = /sim/src\n"
             "[peer guest]\nkey = %s\napps = %s\n",
             (void *)&tally, world.keys[key], apps);
}

static void open_world(uint64_t seed)
{
    memset(&tally, 0, sizeof tally);
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1", "%s", "");
    two = world_add_host(&world, "two", "10.0.0.2", "%s", "");
    snprintf(one->text, sizeof one->text,
             "[app kitchen]\nmodule = /sim/src\n"
             "[output kitchen.next]\nwire = http://10.0.0.3\nmode = pure\napp = parlour\nkey = %s\n"
             "event = dinner\nbatch_bytes = 20K\n",
             world.keys[1]);
    set_receiver("parlour", 0);
    relay = (struct relay){.server = sim_server(world.sim, "10.0.0.3:80", NULL, 0), .running = true};
    sim_at(world.sim, sim_now_ns(world.sim) + PUMP_NS, pump, NULL);
}

static void start_both(void)
{
    world_start(one);
    world_start(two);
}

static void close_world(void)
{
    relay.running = false;
    sim_run_for(world.sim, NS_PER_MS);
    hosts_world_close(&world);
}

static void post(uint64_t first, uint64_t count)
{
    assert_int_equal(numbers_post_all(one, "kitchen", (struct numbers){first, count, 300}, 20, PATIENCE_NS),
                     count);
}

static void assert_delivered(uint64_t first, uint64_t last)
{
    assert_true(tally_await(&world, &tally, last, PATIENCE_NS));
    sim_run_for(world.sim, 2 * NS_PER_S);
    assert_int_equal(tally_not_once(&tally, first, last), 0);
    assert_int_equal(tally.disorder, 0);
}

static int state_of_output(void)
{
    return atomic_load(&world_outlet(one, "kitchen", "next")->report.state);
}

/* --- */

static void records_arrive_once_in_order_and_nothing_is_in_clear(void **state)
{
    (void)state;
    static const char *const secrets[] = {"xxxx",       "kitchen",     "parlour",     "next",
                                          "dinner",     "guest",       "Pure-Stored", "Pure-First",
                                          "Pure-Count", "Pure-Stream", "Pure-Event",  "Pure-Epoch",
                                          "Pure-Base",  "stored",      "/apps/",      "Authorization"};
    for (uint64_t seed = 1; seed <= FEWER(10); seed++) {
        open_world(seed);
        start_both();
        post(1, 400);
        assert_delivered(1, 400);
        assert_true(captured("POST /sealed HTTP/1.1\r\n"));
        assert_true(captured("Pure-Sealed: "));
        for (unsigned i = 0; i < ARRAY_SIZE(secrets); i++)
            assert_false(captured(secrets[i]));
        for (uint64_t n = 1; n <= 400; n++) {
            char record[16];
            snprintf(record, sizeof record, "%llu xx", (unsigned long long)n);
            assert_false(captured(record));
        }
        assert_int_equal(relay.count, 1); /* a stale ticket costs no connection */
        close_world();
    }
}

/* Bytes changed both ways, connections cut, captured ones repeated in between. */
static void whatever_is_done_on_the_way_each_record_arrives_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(40); seed++) {
        open_world(seed);
        relay.changes = (unsigned)random_below(sim_random(world.sim), 8);
        relay.cuts = (unsigned)random_below(sim_random(world.sim), 200);
        relay.repeats = (unsigned)random_below(sim_random(world.sim), 500);
        start_both();
        post(1, 200);
        sim_run_for(world.sim, 30 * NS_PER_S);
        assert_int_not_equal(state_of_output(), OUTLET_DISABLED);
        relay.changes = relay.cuts = 0;
        assert_delivered(1, 200);
        assert_true(output_await(one, "kitchen", "next", 200, PATIENCE_NS)); /* it may rest before it asks */
        assert_int_equal(state_of_output(), OUTLET_OK);
        close_world();
    }
}

/* Each of these would free records, set them aside or stop the output if it came from the receiver. */
static void forged_replies_are_failures_of_the_way(void **state)
{
    (void)state;
    static const char *const forgeries[] = {
        "HTTP/1.1 200 OK\r\nPure-Stored: 20\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 409 Conflict\r\nPure-Error: epoch-retired\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 409 Conflict\r\nPure-Error: rolled-back\r\nPure-Stored: 99\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7000\r\nContent-Length: 0\r\n\r\n",
    };
    for (unsigned i = 0; i < ARRAY_SIZE(forgeries); i++) {
        open_world(1 + i);
        relay.forges = forgeries[i];
        start_both();
        post(1, 20);
        sim_run_for(world.sim, 60 * NS_PER_S);
        assert_int_equal(state_of_output(), OUTLET_RESTING);
        assert_int_equal(world_outlet(one, "kitchen", "next")->queue.freed.records, 0);
        assert_true(world_logged(one, "not proven to be the receiver's") > 0);
        relay.forges = NULL;
        uint64_t since_ns = sim_now_ns(world.sim);
        assert_delivered(1, 20);
        assert_true(sim_now_ns(world.sim) - since_ns < 120 * NS_PER_S);
        close_world();
    }
}

static void repeat_all(void)
{
    unsigned count = relay.count;
    for (unsigned i = 0; i < count; i++) {
        struct sim_connection *c = repeat(&relay.pairs[i]);
        sim_run_for(world.sim, NS_PER_S);
        sim_peer_close(c);
    }
    sim_run_for(world.sim, NS_PER_S);
}

/* A sender without a store begins an epoch with each life. Of more of them than the receiver remembers, all
 * that was ever sent comes again; then again to a receiver that has lost its store. */
static void what_was_captured_stores_nothing_and_stops_nothing(void **state)
{
    (void)state;
    open_world(3);
    start_both();
    unsigned lives = RETIRED_EPOCHS + 4;
    for (unsigned life = 0; life < lives; life++) {
        post(1 + 10 * life, 10);
        assert_true(tally_await(&world, &tally, 10 * life + 10, PATIENCE_NS));
        world_kill(one);
        sim_run_for(world.sim, NS_PER_S);
        world_start(one);
    }
    uint64_t records = tally.records;
    assert_int_equal(records, 10 * lives);
    repeat_all();
    assert_int_equal(tally.records, records);
    post(1001, 10);
    assert_true(tally_await(&world, &tally, 1010, PATIENCE_NS));
    assert_int_equal(state_of_output(), OUTLET_OK);
    repeat_all();
    post(1011, 10); /* the stream goes on: nothing has taken its place */
    assert_true(tally_await(&world, &tally, 1020, PATIENCE_NS));
    assert_int_equal(state_of_output(), OUTLET_OK);
    records = tally.records;
    assert_int_equal(tally_not_once(&tally, 1, 10 * lives) + tally_not_once(&tally, 1001, 1020), 0);
    world_kill(one);
    world_kill(two);
    world_start(two);
    uint64_t before = tally.records; /* of this life */
    repeat_all();
    assert_int_equal(tally.records, before);
    close_world();
}

static void who_is_not_let_in_waits_until_he_is(void **state)
{
    (void)state;
    static const struct {
        const char *apps;
        unsigned key;
        const char *said_by_two, *said_by_one;
    } cases[] = {
        {"parlour", 3, "sealed: a host that is not let in tried to send here", "not proven"},
        {"other", 0, "", "403 apps = of the [peer] does not name this app"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        open_world(7 + i);
        set_receiver(cases[i].apps, cases[i].key);
        start_both();
        post(1, 20);
        sim_run_for(world.sim, 20 * NS_PER_S);
        assert_int_equal(state_of_output(), OUTLET_RESTING);
        assert_int_equal(tally.records, 0);
        assert_true(world_logged(two, cases[i].said_by_two) > 0);
        assert_true(world_logged(one, cases[i].said_by_one) > 0);
        if (cases[i].key != 0)
            assert_int_equal(world_logged(two, world.keys[0]), world_logged(two, cases[i].said_by_two));
        world_kill(two);
        set_receiver("parlour", 0);
        world_start(two);
        assert_delivered(1, 20);
        close_world();
    }
}

/* Both ends have stores, and end in every way, while much is on its way. */
static void with_stores_both_ends_may_restart_at_any_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(12); seed++) {
        open_world(seed);
        relay.repeats = seed % 2 ? 300 : 0;
        snprintf(
            two->text, sizeof two->text,
            "segment = 256K\n[app parlour]\nmodule = /sim/ledger\n[peer guest]\nkey = %s\napps = parlour\n",
            world.keys[0]);
        snprintf(one->text, sizeof one->text,
                 "segment = 256K\n[app kitchen]\nmodule = /sim/ledger\n"
                 "[output kitchen.next]\nwire = http://10.0.0.3\nmode = pure\napp = parlour\nkey = %s\n"
                 "batch_bytes = 20K\nqueue = 64K\n",
                 world.keys[1]);
        world_add_disk(one);
        world_add_disk(two);
        start_both();
        for (unsigned round = 0; round < 8; round++) {
            struct world_host *ends = round % 2 ? one : two;
            post(1 + 50 * round, 50);
            sim_run_for(world.sim, random_below(sim_random(world.sim), 3 * NS_PER_MS));
            (round & 2) ? world_crash(ends) : world_kill(ends);
            sim_run_for(world.sim, random_below(sim_random(world.sim), NS_PER_S));
            world_start(ends);
        }
        assert_true(ledger_await(two, "parlour", 400, PATIENCE_NS));
        sim_run_for(world.sim, 2 * NS_PER_S);
        assert_true(ledger_is(two, "parlour", 400));
        close_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_arrive_once_in_order_and_nothing_is_in_clear),
        cmocka_unit_test(whatever_is_done_on_the_way_each_record_arrives_once),
        cmocka_unit_test(forged_replies_are_failures_of_the_way),
        cmocka_unit_test(what_was_captured_stores_nothing_and_stops_nothing),
        cmocka_unit_test(who_is_not_let_in_waits_until_he_is),
        cmocka_unit_test(with_stores_both_ends_may_restart_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
