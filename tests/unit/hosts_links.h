/* Two whole hosts with links between them, in the simulated world; for tests of what one thing does to them.
 *
 *     client ──HTTP──▶ one 10.0.0.1: src ──out, cloud, log, next──▶ two 10.0.0.2: a, b, c, d     (dst)
 *                      one: back ◀──out── two: src                                     if `both`
 *
 * Links go to two.local and one.local. An event that a client posts to src goes to each of its outputs. Apps
 * a and c are on one owner of two, b, d and src on the other. */
#ifndef PURE_TESTS_HOSTS_LINKS_H
#define PURE_TESTS_HOSTS_LINKS_H

#include "tests/sim/datagrams.h"
#include "tests/sim/hosts_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PAIR_STREAMS 4
#define PAIR_BODY    200000 /* bytes of one post */
#define PAIR_SEEDS   3
#define MBIT         125000 /* bytes/s */

struct pair_options {
    unsigned streams;   /* 1 to PAIR_STREAMS; 0: 1 */
    bool both;          /* also the other way */
    const char *module; /* of a; NULL: dst */
    const char *apps;   /* of two that one may send to; NULL: all */
    const char *output; /* more keys of each output; NULL: none */
    bool nobody;        /* src.d1 goes to an app that two has not got */
    bool unknown;       /* two does not know one's key */
};

struct pair {
    struct hosts_world world;
    struct sim *sim;
    struct world_host *one, *two;
    unsigned streams;
    struct tally there[PAIR_STREAMS]; /* of a, b, c, d */
    struct tally back;
    uint64_t posted, posted_back; /* numbers 1 … that were taken */
};

/* Its memory is used again by the next. */
static struct pair pair;

static inline void pair_name(const char *name, const char *address)
{
    struct sim_answer answer = {.addresses = {address}, .delay_ns = NS_PER_MS};
    sim_set_name(pair.sim, name, &answer);
}

/* Adds text to a configuration of 4096 bytes. */
static inline void pair_add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void pair_add(char *text, const char *format, ...)
{
    size_t size = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(text + size, 4096 - size, format, arguments);
    va_end(arguments);
    assert_true((size_t)added < 4096 - size);
}

static inline void pair_write_one(const struct pair_options *o, char *text)
{
    static const char *const outputs[] = {"out", "cloud", "log", "next"};
    pair_add(text, "link = 0.0.0.0:7071\n[app src]\nmodule = /sim/src\n");
    pair_add(text, "[app back]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n", (void *)&pair.back);
    pair_add(text, "[peer two]\nkey = %s\napps = back\n", pair.world.keys[1]);
    for (unsigned i = 0; i < pair.streams; i++)
        pair_add(text, "[output src.%s]\nlink = two.local:7071\nkey = %s\napp = %c\n%s", outputs[i],
                 pair.world.keys[1], 'a' + i, o->output ? o->output : "");
    if (o->nobody)
        pair_add(text, "[output src.d1]\nlink = two.local:7071\nkey = %s\napp = nobody\n",
                 pair.world.keys[1]);
}

static inline void pair_write_two(const struct pair_options *o, char *text)
{
    pair_add(text, "link = 0.0.0.0:7071\nlink_window = 2M\n");
    for (unsigned i = 0; i < PAIR_STREAMS; i++)
        pair_add(text, "[app %c]\nmodule = /sim/%s\ninbox = 512K\narg = " WORLD_TALLY "\n", 'a' + i,
                 i == 0 && o->module ? o->module : "dst", (void *)&pair.there[i]);
    pair_add(text, "[app idle]\nmodule = /sim/src\n[app src]\nmodule = /sim/src\n");
    pair_add(text, "[peer one]\nkey = %s\napps = %s\n", pair.world.keys[o->unknown ? 3 : 0],
             o->apps ? o->apps : "a, b, c, d");
    if (o->both)
        pair_add(text, "[output src.out]\nlink = one.local:7071\nkey = %s\napp = back\n", pair.world.keys[0]);
}

static inline void pair_open(uint64_t seed, const struct pair_options *options)
{
    const struct pair_options none = {0}, *o = options ? options : &none;
    char one[4096] = "", two[4096] = "";
    memset(&pair, 0, sizeof pair);
    hosts_world_open(&pair.world, seed);
    pair.sim = pair.world.sim;
    pair.streams = o->streams ? o->streams : 1;
    pair_write_one(o, one);
    pair_write_two(o, two);
    pair.one = world_add_host(&pair.world, "one", "10.0.0.1", "%s", one);
    pair.two = world_add_host(&pair.world, "two", "10.0.0.2", "%s", two);
    pair_name("one.local", "10.0.0.1");
    pair_name("two.local", "10.0.0.2");
    world_start(pair.one);
    world_start(pair.two);
}

static inline void pair_close(void)
{
    hosts_world_close(&pair.world);
}

/* Both ways. */
static inline void pair_path(const struct sim_path *path)
{
    sim_set_path(pair.sim, "10.0.0.1", "10.0.0.2", path);
    sim_set_path(pair.sim, "10.0.0.2", "10.0.0.1", path);
}

/* On which a transfer takes a while. */
static inline struct sim_path pair_slow(void)
{
    struct sim_path path = sim_path_default;
    path.latency_min_ns = path.latency_max_ns = 20 * NS_PER_MS;
    path.bytes_s = 4 * MBIT;
    path.queue_bytes = 64 << 10;
    return path;
}

static inline void pair_run(uint64_t ns)
{
    assert_int_equal(sim_run_for(pair.sim, ns), SIM_TIME);
}

/* Takes lines of `size` bytes each, one request, and waits for the answer. */
static inline void pair_post_some(struct world_host *h, uint64_t first, uint64_t count, unsigned size)
{
    static char body[PAIR_BODY + 1024];
    size_t used = 0;
    for (uint64_t n = first; n < first + count; n++) {
        size_t start = used;
        used += (size_t)snprintf(body + used, 32, "%llu ", (unsigned long long)n);
        while (used < start + size - 1)
            body[used++] = '.';
        body[used++] = '\n';
    }
    body[used] = '\0';
    struct sim_connection *c = world_post(h, "/apps/src/events/line", "application/x-ndjson", body);
    for (unsigned i = 0; i < 5000 && world_status(c) == 0; i++)
        pair_run(NS_PER_MS);
    assert_int_equal(world_status(c), 200);
}

static inline void pair_post(uint64_t count, unsigned size)
{
    while (count > 0) {
        uint64_t some = min_u64(count, PAIR_BODY / size);
        pair_post_some(pair.one, pair.posted + 1, some, size);
        pair.posted += some;
        count -= some;
    }
}

static inline void pair_post_back(uint64_t count, unsigned size)
{
    pair_post_some(pair.two, pair.posted_back + 1, count, size);
    pair.posted_back += count;
}

static inline bool pair_arrived(void *context)
{
    (void)context;
    bool arrived = pair.back.last == pair.posted_back;
    for (unsigned i = 0; i < pair.streams; i++)
        arrived = arrived && pair.there[i].last == pair.posted;
    return arrived && world_host_empty(pair.one) && world_host_empty(pair.two);
}

static inline void pair_arrive_within(uint64_t ns)
{
    enum sim_end end = sim_run(pair.sim, sim_now_ns(pair.sim) + ns, pair_arrived, NULL, 20 * 1000 * 1000);
    assert_int_equal(end, SIM_DONE);
}

static uint64_t pair_awaited;

static inline bool pair_came(void *context)
{
    (void)context;
    return pair.there[0].last >= pair_awaited;
}

/* Until a has that number. */
static inline void pair_run_until(uint64_t number)
{
    pair_awaited = number;
    assert_int_equal(sim_run_until(pair.sim, pair_came, NULL), SIM_DONE);
}

static inline void assert_exact(const struct tally *t, uint64_t posted)
{
    assert_int_equal(t->lives, 1);
    assert_int_equal(t->records, posted);
    assert_int_equal(t->disorder, 0);
    assert_int_equal(t->first, posted > 0);
    assert_int_equal(t->last, posted);
}

/* All of both ways, where no host restarted. */
static inline void assert_all_exact(void)
{
    for (unsigned i = 0; i < pair.streams; i++)
        assert_exact(&pair.there[i], pair.posted);
    assert_exact(&pair.back, pair.posted_back);
}

static inline struct outlet *pair_outlet(const char *output)
{
    return world_outlet(pair.one, "src", output);
}

static inline uint32_t pair_held(const char *output)
{
    return record_queue_glance(&pair_outlet(output)->queue).held_records;
}

static inline void assert_resting(const char *output, const char *text)
{
    char said[256];
    struct outlet *o = pair_outlet(output);
    outlet_error_text(o, said, sizeof said);
    assert_int_equal(atomic_load(&o->report.state), OUTLET_RESTING);
    assert_non_null(strstr(said, text));
}

static inline struct link_report *pair_report(void)
{
    return &world_link(pair.one, 0)->report;
}

static inline void pair_each_seed(void (*test)(uint64_t seed))
{
    for (uint64_t seed = 1; seed <= PAIR_SEEDS; seed++) {
        test(seed);
        pair_close();
    }
}

/* A test of all seeds, by the function of one. */
#define PAIR_TEST(name, seed_function) \
    static void name(void **state)     \
    {                                  \
        (void)state;                   \
        pair_each_seed(seed_function); \
    }

#endif
