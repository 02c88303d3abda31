/* Whole hosts whose machines lose their power, whose processes are killed and whose disks do what disks do,
 * at any moment of any seed, while events go over a link, a wire and an inner outlet:
 *
 *     client ──HTTP, Idempotency-Key──▶ one: a ──next, link───▶ two: b
 *                                            ──cloud, wire──▶ two: c
 *                                            ──log, inner───▶ one: d
 *
 * All four are /sim/ledger. What must hold, whatever happens: an event that was acknowledged is there after
 * any crash; what a receiver said to have stored, it has; no event counts twice; order is kept; the state
 * after a start is that of a beginning of the events, all of them as they were; every host starts. In the end
 * everything is everywhere.
 *
 *     test_hosts_crash_storm [FIRST [SEEDS]] */
#include "tests/unit/fewer.h"
#include "tests/sim/hosts_world.h"

#include "host/host_private.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define EVENTS_MAX  400
#define LINES_MAX   8
#define STEP_MAX_NS (20 * NS_PER_MS)
#define SETTLE_NS   (600 * NS_PER_S)
#define BODY_BYTES  (LINES_MAX * 4096)
#define SEEDS       FEWER(60)

static uint64_t first_seed = 1, seed_count = SEEDS;

/* What became of all seeds together: that the storm was one. */
static struct felt {
    uint64_t crashes, kills, stops, failures, refusals, repeats, torn, snapshots;
} felt;

static struct storm {
    struct hosts_world world;
    struct sim *sim;
    struct world_host *one, *two;
    struct sim_disk_policy disks[2];
    struct random random; /* of the plan; the world has its own */
    uint64_t events;      /* that will be posted */
    uint32_t data_bytes;  /* of the largest event */
    uint64_t acked;       /* 1 … acked were answered with 200 */
    uint64_t hashes[EVENTS_MAX + 1];
    /* the post under way */
    struct sim_connection *post;
    uint64_t lines, post_at_ns;
    char body[BODY_BYTES];
    /* what each app is known to have, for ever */
    uint64_t has_a, has_b, has_c, has_d;
    unsigned crashes_left;
    uint64_t crash_at_ns;
    uint64_t start_one_ns, start_two_ns; /* when what is down starts again */
    const char *wrong;
    char wrong_text[200];
} s;

static uint64_t below(uint64_t limit)
{
    return random_below(&s.random, limit);
}

static bool chance(unsigned percent)
{
    return below(100) < percent;
}

static void wrong(const char *format, const char *app, uint64_t a, uint64_t b)
{
    if (s.wrong)
        return;
    snprintf(s.wrong_text, sizeof s.wrong_text, format, app, (unsigned long long)a, (unsigned long long)b);
    s.wrong = s.wrong_text;
}

/* --- the plan of a seed --- */

static struct sim_disk_policy disk_of_seed(void)
{
    struct sim_disk_policy policy = sim_disk_default;
    policy.short_write = chance(30) ? 100 : 0;
    policy.short_read = chance(30) ? 100 : 0;
    policy.no_space = chance(20) ? 50 : 0;
    policy.write_error = chance(15) ? 10 : 0;
    policy.slow_sync = chance(20) ? 50 : 0;
    policy.slow_sync_ns = 2 * NS_PER_S;
    policy.no_allocate = chance(20);
    policy.lost = (uint32_t)below(500);
    policy.torn = (uint32_t)below(250);
    policy.garbled = (uint32_t)below(250);
    return policy;
}

static void add_hosts(void)
{
    static const char *const queues[] = {"queue = 4K\nmax_record = 1K\n", "queue = 64K\n", ""};
    static const char *const backlogs[] = {"backlog = 0\n", "backlog = 64K\n", "", "", ""};
    char output[3][128];
    for (unsigned i = 0; i < 3; i++) {
        const char *queue = queues[s.data_bytes > 500 ? 1 + below(2) : below(3)];
        snprintf(output[i], sizeof output[i], "%s%s", queue, backlogs[below(ARRAY_SIZE(backlogs))]);
    }
    s.one = world_add_host(&s.world, "one", "10.0.0.1",
                           "segment = 256K\n"
                           "[app a]\nmodule = /sim/ledger\n[app d]\nmodule = /sim/ledger\n"
                           "[output a.next]\nlink = 10.0.0.2:7071\nkey = %s\napp = b\n%s"
                           "[output a.cloud]\nwire = http://10.0.0.2\nmode = pure\napp = c\ntoken = t\n%s"
                           "[output a.log]\ninner = d\n%s",
                           s.world.keys[1], output[0], output[1], output[2]);
    s.two = world_add_host(&s.world, "two", "10.0.0.2",
                           "segment = 256K\nlink = 0.0.0.0:7071\n"
                           "[app b]\nmodule = /sim/ledger\n[app c]\nmodule = /sim/ledger\n"
                           "[peer one]\nkey = %s\napps = b\n",
                           s.world.keys[0]);
    for (unsigned i = 0; i < 2; i++) {
        world_add_disk(&s.world.hosts[i]);
        s.disks[i] = disk_of_seed();
    }
}

/* A start is not one on a disk that fails just then: there, nothing can be done but to say so. */
static void start(struct world_host *h)
{
    struct sim_disk_policy policy = s.disks[h->index];
    policy.write_error = policy.read_error = policy.no_space = 0;
    sim_disk_set(h->disk, &policy);
    world_start(h);
    sim_disk_set(h->disk, &s.disks[h->index]);
}

static void open_storm(uint64_t seed)
{
    memset(&s, 0, sizeof s);
    hosts_world_open(&s.world, seed);
    s.sim = s.world.sim;
    s.random = (struct random){seed * UINT64_C(0x9e3779b97f4a7c15)};
    s.data_bytes = chance(30) ? 4000 : chance(50) ? 400 : 20;
    s.events = 20 + below(s.data_bytes == 4000 ? EVENTS_MAX - 20 : 120);
    s.crashes_left = 1 + (unsigned)below(5);
    for (uint64_t i = 1; i <= s.events; i++)
        s.hashes[i] = ledger_hash(s.hashes[i - 1], i);
    add_hosts();
    start(s.one);
    start(s.two);
    s.crash_at_ns = sim_now_ns(s.sim) + below(2 * NS_PER_S);
}

/* --- what must hold --- */

/* The state is that of the first `count` events, and of no fewer than are known to be there. */
static void look_at(const struct world_host *h, const char *app, uint64_t *has)
{
    const struct ledger *l = world_app_state(h, app);
    if (!l) /* suspended: its store has failed, and a start is due */
        return;
    if (l->disorder > 0)
        wrong("app %s: %llu events out of order, the last was %llu", app, l->disorder, l->last);
    else if (l->count > s.events || l->count != l->last || l->hash != s.hashes[l->count])
        wrong("app %s: its %llu events, up to %llu, are not the first ones as they were", app, l->count,
              l->last);
    else if (l->count < *has)
        wrong("app %s has %llu events, and was known to have %llu", app, l->count, *has);
}

static void look(void)
{
    if (s.one->host) {
        look_at(s.one, "a", &s.has_a);
        look_at(s.one, "d", &s.has_d);
    }
    if (s.two->host) {
        look_at(s.two, "b", &s.has_b);
        look_at(s.two, "c", &s.has_c);
    }
}

static uint64_t stored_of(const char *output)
{
    return counter_read(&world_outlet(s.one, "a", output)->report.stored);
}

/* What senders have been told is there for ever. */
static void learn(void)
{
    if (!s.one->host)
        return;
    s.has_a = max_u64(s.has_a, s.acked);
    s.has_b = max_u64(s.has_b, stored_of("next"));
    s.has_c = max_u64(s.has_c, stored_of("cloud"));
    s.has_d = max_u64(s.has_d, stored_of("log"));
}

/* --- crashes --- */

static bool store_failed(const struct world_host *h)
{
    bool failed = false;
    for (unsigned i = 0; h->host && i < h->host->owner_count; i++)
        failed = failed || atomic_load(&h->host->journals[i].writer.condition) == JOURNAL_FAILED;
    return failed;
}

static bool stop_is_over(void *context)
{
    return host_stopped(((struct world_host *)context)->host);
}

static void stop_in_order(struct world_host *h)
{
    host_stop(h->host);
    if (sim_run(s.sim, sim_now_ns(s.sim) + 20 * NS_PER_S, stop_is_over, h, 1000 * 1000) != SIM_DONE)
        wrong("%s: a stop takes longer than %llu s (%llu)", h->name, 20, 0);
    learn();
    world_kill(h);
    felt.stops++;
}

static void end_host(struct world_host *h, uint64_t *start_ns)
{
    learn();
    felt.torn += world_logged(h, "not finished") > 0;
    unsigned how = (unsigned)below(100);
    if (how < 55)
        world_crash(h), felt.crashes++;
    else if (how < 85)
        world_kill(h), felt.kills++;
    else
        stop_in_order(h);
    *start_ns = sim_now_ns(s.sim) + below(2 * NS_PER_S);
}

static void crash_what_is_due(void)
{
    uint64_t now_ns = sim_now_ns(s.sim);
    if (s.crashes_left > 0 && now_ns >= s.crash_at_ns) {
        bool both = chance(10), first = chance(60);
        if (s.one->host && (both || first))
            end_host(s.one, &s.start_one_ns);
        if (s.two->host && (both || !first))
            end_host(s.two, &s.start_two_ns);
        s.crashes_left--;
        s.crash_at_ns = sim_now_ns(s.sim) + below(chance(50) ? 100 * NS_PER_MS : 3 * NS_PER_S);
    }
    if (store_failed(s.one))
        end_host(s.one, &s.start_one_ns), felt.failures++;
    if (store_failed(s.two))
        end_host(s.two, &s.start_two_ns), felt.failures++;
}

static void start_what_is_due(void)
{
    uint64_t now_ns = sim_now_ns(s.sim);
    if (!s.one->host && now_ns >= s.start_one_ns)
        start(s.one);
    if (!s.two->host && now_ns >= s.start_two_ns)
        start(s.two);
}

/* --- the client --- */

static void put_lines(void)
{
    size_t size = 0;
    s.lines = min_u64(1 + below(LINES_MAX), s.events - s.acked);
    for (uint64_t i = 1; i <= s.lines; i++) {
        int digits = snprintf(s.body + size, BODY_BYTES - size, "%llu ", (unsigned long long)(s.acked + i));
        size += (size_t)digits;
        size_t fill = below(s.data_bytes);
        memset(s.body + size, 'x', fill);
        size += fill;
        s.body[size++] = '\n';
    }
    s.body[size] = '\0';
}

static void post_again(void)
{
    char key[32];
    snprintf(key, sizeof key, "k%llu", (unsigned long long)s.acked);
    s.post = world_post_key(s.one, "/apps/a/events/e", "application/x-ndjson", key, s.body);
    s.post_at_ns = sim_now_ns(s.sim) + 15 * NS_PER_S;
}

/* One request after the other; one that was not answered with success goes again, as it was. */
static void post(void)
{
    uint64_t now_ns = sim_now_ns(s.sim);
    if (!s.post) {
        if (s.acked == s.events || now_ns < s.post_at_ns || !s.one->host)
            return;
        if (s.lines == 0)
            put_lines();
        post_again();
        return;
    }
    unsigned status = world_status(s.post);
    if (status == 200) {
        s.acked += s.lines;
        s.lines = 0;
        s.post = NULL;
        s.post_at_ns = now_ns + (chance(30) ? below(200 * NS_PER_MS) : 0);
    } else if (status != 0 || sim_peer_ended(s.post) || now_ns >= s.post_at_ns) {
        felt.refusals += status != 0;
        felt.repeats++;
        s.post = NULL;
        s.post_at_ns = now_ns + below(100 * NS_PER_MS);
    }
}

/* --- a seed --- */

static bool all_there(void)
{
    if (s.acked < s.events || s.crashes_left > 0 || !s.one->host || !s.two->host)
        return false;
    const struct ledger *b = world_app_state(s.two, "b"), *c = world_app_state(s.two, "c"),
                        *d = world_app_state(s.one, "d");
    if (!b || !c || !d)
        return false;
    return b->count == s.events && c->count == s.events && d->count == s.events && world_host_empty(s.one);
}

static void tell_writers(const struct world_host *h)
{
    for (unsigned i = 0; h->host && i < h->host->owner_count; i++) {
        const struct journal_writer *w = &h->host->journals[i].writer;
        fprintf(stderr, "%s, journal %u: condition %d, batch %llu, %s, at %llu of %llu%s\n", h->name, i,
                atomic_load(&w->condition), (unsigned long long)w->batch,
                w->writing ? "being written" : "nothing under way", (unsigned long long)w->at,
                (unsigned long long)w->room, w->waiters ? ", apps wait for room" : "");
    }
}

static const char *storm(uint64_t seed)
{
    open_storm(seed);
    uint64_t ends_ns = sim_now_ns(s.sim) + SETTLE_NS;
    while (!s.wrong && !all_there() && sim_now_ns(s.sim) < ends_ns) {
        crash_what_is_due();
        start_what_is_due();
        post();
        look();
        enum sim_end end =
            sim_run(s.sim, sim_now_ns(s.sim) + 1 + below(STEP_MAX_NS), NULL, NULL, 20 * 1000 * 1000);
        if (end != SIM_TIME && end != SIM_STUCK)
            wrong("the world ended%s (%llu, %llu)", "", end, 0);
        if (end == SIM_STUCK)
            sim_run_for(s.sim, STEP_MAX_NS);
    }
    look();
    if (!s.wrong && !all_there())
        wrong("not all is there%s: %llu of %llu events are acknowledged", "", s.acked, s.events);
    if (s.wrong) {
        for (unsigned i = 0; i < s.world.host_count; i++) {
            world_logged(&s.world.hosts[i], "");
            fprintf(stderr, "--- log of %s\n%s", s.world.hosts[i].name, s.world.hosts[i].log);
        }
        struct registry_app *a = s.one->host ? world_app(s.one, "a") : NULL;
        fprintf(stderr, "%llu requests repeated; a: condition %d, stored %llu, %llu bytes in its inbox\n",
                (unsigned long long)felt.repeats, a ? atomic_load(&a->report.condition) : -1,
                (unsigned long long)(a ? counter_read(&a->report.stored) : 0),
                (unsigned long long)(a ? registry_app_held(a) : 0));
        tell_writers(s.one);
        tell_writers(s.two);
        for (unsigned i = 0; s.one->host && i < 3; i++) {
            static const char *const names[] = {"next", "cloud", "log"};
            struct outlet *o = world_outlet(s.one, "a", names[i]);
            fprintf(stderr, "a.%s: stored %llu published %llu tail %llu beyond %llu\n", names[i],
                    (unsigned long long)o->queue.freed.records,
                    (unsigned long long)o->queue.published.records, (unsigned long long)o->queue.tail.records,
                    (unsigned long long)counter_read(&o->report.beyond));
        }
        return s.wrong;
    }
    hosts_world_close(&s.world);
    return NULL;
}

static char replay_text[160];
static const char *program = "test_hosts_crash_storm";

static void note_seed(uint64_t seed)
{
    snprintf(replay_text, sizeof replay_text, "seed %llu failed; replay it with: %.80s %llu\n",
             (unsigned long long)seed, program, (unsigned long long)seed);
}

/* An assertion of the product ends the process: then, too, the seed is told. */
static void tell_seed(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, replay_text, strlen(replay_text)) < 0)
        _exit(1);
}

static void crashes_lose_double_and_reorder_nothing(void **state)
{
    (void)state;
    signal(SIGABRT, tell_seed);
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
        note_seed(seed);
        const char *why = storm(seed);
        if (why)
            fail_msg("%s; %s", why, replay_text);
    }
    signal(SIGABRT, SIG_DFL);
    printf("%llu seeds: %llu crashes, %llu kills, %llu stops, %llu failed stores, %llu requests repeated\n",
           (unsigned long long)seed_count, (unsigned long long)felt.crashes, (unsigned long long)felt.kills,
           (unsigned long long)felt.stops, (unsigned long long)felt.failures,
           (unsigned long long)felt.repeats);
    if (seed_count < 60)
        return;
    assert_true(felt.crashes > seed_count / 2);
    assert_true(felt.kills > seed_count / 4);
    assert_true(felt.stops > 0);
    assert_true(felt.failures > 0);
    assert_true(felt.repeats > seed_count / 4);
}

/* What they found: that a start believed a cache which showed what a disk never got, after a write had failed
 * (534, 1456, 2411, 4067, 4416); that nobody tried again to make a segment when undoing the last try took
 * longer than the time until the next (4162, 6444); that a stop closed a segment into which a write was just
 * being tried again (10039, 17449). */
static void seeds_that_failed_once(void **state)
{
    static const uint64_t seeds[] = {534, 1456, 2411, 4067, 4416, 4162, 6444, 10039, 17449};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
        note_seed(seeds[i]);
        assert_null(storm(seeds[i]));
    }
}

static uint64_t trace_of(uint64_t seed)
{
    assert_null(storm(seed));
    open_storm(seed);
    sim_run_for(s.sim, NS_PER_S);
    uint64_t trace = sim_trace(s.sim);
    hosts_world_close(&s.world);
    return trace;
}

static void a_seed_is_replayed_exactly(void **state)
{
    (void)state;
    assert_true(trace_of(7) == trace_of(7));
    assert_true(trace_of(7) != trace_of(8));
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        seed_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_is_replayed_exactly),
        cmocka_unit_test(seeds_that_failed_once),
        cmocka_unit_test(crashes_lose_double_and_reorder_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
