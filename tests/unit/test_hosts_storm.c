/* Two whole hosts under storms: splits, resets, short sends, receives without buffers, latency, and periods
 * in which one direction between them is lost. Each record comes to both last consumers once and in order.
 *
 *     client ──HTTP──▶ one: src ──pure wire──▶ two: hub ──inner──▶ near        (near, far: dst)
 *                      one: far ◀──pure wire── two: hub
 *
 * test_hosts_storm FIRST [COUNT] runs the seeds FIRST, FIRST + 1 … alone. */
#include "tests/sim/hosts_world.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define SEEDS      1000
#define POSTS      12
#define BATCH_MAX  16 /* of up to 210 bytes: less than a queue, as a batch is one unit */
#define STORM_NS   (3600 * NS_PER_S)
#define STEPS_MAX  (2 * 1000 * 1000)
#define TRIES_MAX  1000 /* of one batch, a second apart */
#define OUTAGES    3
#define OUTAGE_MAX (20 * NS_PER_S)

static uint64_t first_seed = 1, seed_count = SEEDS;

struct storm {
    struct hosts_world world;
    struct world_host *one, *two;
    struct tally near, far;
    struct sim_link link;
    struct sim_connection *posts[POSTS];
    uint64_t sent; /* numbers posted: 1 … sent */
};

static const char *const wire_keys = "mode = pure\n"
                                     "token = t\n"
                                     "queue = 4K\n"
                                     "progress_timeout = 2s\n"
                                     "reply_timeout = 3s\n"
                                     "backoff_max = 1s\n";

/* --- the weather --- */

static uint64_t roll(struct storm *s, uint64_t below)
{
    return random_below(sim_random(s->world.sim), below);
}

static void set_weather(struct storm *s)
{
    s->link = sim_link_default;
    s->link.latency_max_ns = (1 + roll(s, 50)) * NS_PER_MS;
    s->link.reset = (uint32_t)roll(s, 60);
    s->link.window_bytes = (uint32_t)(200 + roll(s, 4000));
    sim_set_link(s->world.sim, s->one->address, s->two->address, &s->link);
    sim_set_link(s->world.sim, s->two->address, s->one->address, &s->link);
    struct sim_faults faults = {.no_buffers = (uint32_t)roll(s, 100),
                                .multishot_end = (uint32_t)roll(s, 200),
                                .short_send = (uint32_t)roll(s, 300),
                                .batch_max = (uint32_t)(1 + roll(s, 16)),
                                .buffer_bytes = (uint32_t)(16 + roll(s, 2000))};
    sim_set_faults(s->world.sim, &faults);
}

static void black_out(void *context)
{
    struct storm *s = context;
    struct sim_link link = s->link;
    link.black_hole = true;
    bool there = roll(s, 2), back = !there || roll(s, 2);
    if (there)
        sim_set_link(s->world.sim, s->one->address, s->two->address, &link);
    if (back)
        sim_set_link(s->world.sim, s->two->address, s->one->address, &link);
}

static void clear_up(void *context)
{
    struct storm *s = context;
    sim_set_link(s->world.sim, s->one->address, s->two->address, &s->link);
    sim_set_link(s->world.sim, s->two->address, s->one->address, &s->link);
}

static void plan_outages(struct storm *s)
{
    uint64_t at_ns = sim_now_ns(s->world.sim);
    for (uint64_t outages = roll(s, OUTAGES + 1); outages > 0; outages--) {
        at_ns += roll(s, 2 * NS_PER_S);
        sim_at(s->world.sim, at_ns, black_out, s);
        at_ns += roll(s, OUTAGE_MAX);
        sim_at(s->world.sim, at_ns, clear_up, s);
    }
}

/* --- the hosts --- */

static void open_storm(struct storm *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    hosts_world_open(&s->world, seed);
    unsigned batch = (unsigned)roll(s, 6);
    s->one = world_add_host(&s->world, "one", "10.0.0.1",
                            "connections = 16\n[app src]\nmodule = /sim/src\ninbox = 64K\n"
                            "[app far]\nmodule = /sim/dst\ninbox = 64K\narg = " WORLD_TALLY "\n"
                            "[output src.out]\nwire = http://10.0.0.2\napp = hub\nbatch_records = %u\n%s",
                            (void *)&s->far, batch, wire_keys);
    s->two = world_add_host(&s->world, "two", "10.0.0.2",
                            "connections = 16\n[app hub]\nmodule = /sim/src\ninbox = 64K\n"
                            "[app near]\nmodule = /sim/dst\ninbox = 64K\narg = " WORLD_TALLY "\n"
                            "[output hub.log]\ninner = near\nqueue = 4K\n"
                            "[output hub.next]\nwire = http://10.0.0.1\napp = far\nbatch_records = %u\n%s",
                            (void *)&s->near, batch, wire_keys);
    world_start(s->one);
    world_start(s->two);
    set_weather(s);
    plan_outages(s);
}

static bool posted(void *context)
{
    return sim_peer_ended(context);
}

/* Again and again while the app waits for an output that does not deliver. A 504 is stored later, as no host
 * goes down here. */
static bool post_until_taken(struct storm *s, unsigned post, const char *body)
{
    unsigned status = 503;
    for (unsigned tries = 0; status == 503 && tries < TRIES_MAX; tries++) {
        s->posts[post] = world_post(s->one, "/apps/src/events/line", "application/x-ndjson", body);
        sim_run(s->world.sim, sim_now_ns(s->world.sim) + STORM_NS, posted, s->posts[post], STEPS_MAX);
        status = world_status(s->posts[post]);
        if (status == 503)
            sim_run_for(s->world.sim, NS_PER_S);
    }
    return status == 200 || status == 504;
}

/* A batch of lines: numbers, each with filler behind it. */
static bool post_numbers(struct storm *s, unsigned post)
{
    char body[BATCH_MAX * 256] = "", filler[200];
    size_t size = 0;
    for (uint64_t count = 1 + roll(s, BATCH_MAX); count > 0; count--) {
        memset(filler, '.', sizeof filler);
        filler[roll(s, sizeof filler)] = '\0';
        size += (size_t)snprintf(body + size, sizeof body - size, "%llu %s\n", (unsigned long long)++s->sent,
                                 filler);
    }
    return post_until_taken(s, post, body);
}

static bool tallied(const struct tally *t, uint64_t sent)
{
    return t->records >= sent;
}

static bool arrived(void *context)
{
    struct storm *s = context;
    return tallied(&s->near, s->sent) && tallied(&s->far, s->sent) && world_host_empty(s->one) &&
           world_host_empty(s->two);
}

/* NULL, or what is wrong. */
static const char *judge(const struct storm *s, const struct tally *t)
{
    if (t->disorder > 0)
        return "out of order, doubled or missing in the middle";
    if (t->records != s->sent || t->first != 1 || t->last != s->sent)
        return "not all once";
    return NULL;
}

/* One batch after the other was taken: the order of the numbers is that of the answers. */
static const char *post_all(struct storm *s)
{
    for (unsigned i = 0; i < POSTS; i++) {
        if (!post_numbers(s, i))
            return "the front did not take a batch";
        sim_run_for(s->world.sim, roll(s, NS_PER_S));
    }
    return NULL;
}

/* What all storms together did: were they fair weather, the test would show nothing. */
static struct {
    uint64_t failures, duplicates, waits;
} felt;

static void feel(const struct storm *s)
{
    felt.failures += counter_read(&world_outlet(s->one, "src", "out")->report.failures_total);
    felt.failures += counter_read(&world_outlet(s->two, "hub", "next")->report.failures_total);
    felt.duplicates += counter_read(&world_app(s->two, "hub")->report.duplicates);
    felt.duplicates += counter_read(&world_app(s->one, "far")->report.duplicates);
    felt.waits += counter_read(&world_app(s->one, "src")->report.waits);
    felt.waits += counter_read(&world_app(s->two, "hub")->report.waits);
}

static const char *storm(uint64_t seed)
{
    static struct storm s;
    open_storm(&s, seed);
    const char *wrong = post_all(&s);
    enum sim_end end = sim_run(s.world.sim, sim_now_ns(s.world.sim) + STORM_NS, arrived, &s, STEPS_MAX);
    if (!wrong && end != SIM_DONE)
        wrong = "the records did not arrive";
    if (!wrong)
        wrong = judge(&s, &s.near);
    if (!wrong)
        wrong = judge(&s, &s.far);
    sim_run_for(s.world.sim, NS_PER_S); /* nor does anything come after */
    if (!wrong && (s.near.records != s.sent || s.far.records != s.sent))
        wrong = "records came after the end";
    if (wrong)
        return wrong;
    feel(&s);
    hosts_world_close(&s.world);
    return NULL;
}

/* --- seeds --- */

static char replay[160];

/* An assertion of the product ends the process: then, too, the seed is told. */
static void tell_seed(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, replay, strlen(replay)) < 0)
        _exit(1);
}

static void note_seed(uint64_t seed, const char *program)
{
    snprintf(replay, sizeof replay, "seed %llu failed; replay it with: %.80s %llu\n",
             (unsigned long long)seed, program, (unsigned long long)seed);
}

static const char *program = "test_hosts_storm";

static void storms_between_two_hosts_lose_double_and_reorder_nothing(void **state)
{
    (void)state;
    signal(SIGABRT, tell_seed);
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
        note_seed(seed, program);
        const char *wrong = storm(seed);
        if (wrong)
            fail_msg("%s; %s", wrong, replay);
    }
    signal(SIGABRT, SIG_DFL);
    if (seed_count < 100)
        return;
    assert_true(felt.failures > 3 * seed_count);
    assert_true(felt.duplicates > 3 * seed_count);
    assert_true(felt.waits > seed_count / 10);
}

static uint64_t trace_of(uint64_t seed)
{
    static struct storm s;
    open_storm(&s, seed);
    assert_null(post_all(&s));
    sim_run(s.world.sim, sim_now_ns(s.world.sim) + STORM_NS, arrived, &s, STEPS_MAX);
    uint64_t trace = sim_trace(s.world.sim);
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
        cmocka_unit_test(storms_between_two_hosts_lose_double_and_reorder_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
