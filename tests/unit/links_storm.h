/* The storm of test_hosts_links_storm.c: its hosts, its weather, its faults. Their picture is there.
 *
 * Each function draws from the world's random numbers, so that the seed says all. */
#ifndef PURE_TESTS_LINKS_STORM_H
#define PURE_TESTS_LINKS_STORM_H

#include "tests/sim/datagrams.h"
#include "tests/sim/hosts_world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH_MAX     40
#define RECORD_MAX    700 /* bytes; a batch is one unit and less than the smallest queue */
#define FAULTS_MAX    8   /* at once */
#define FAULT_MAX_NS  (20 * NS_PER_S)
#define YEARS_MS      (UINT64_C(10) * 365 * 24 * 3600 * 1000)
#define CAPTURED      64
#define CAPTURED_SIZE 2048
#define HOSTS         3
#define EDGES         6

struct machine {
    struct world_host *host;
    const char *name;
    const char *homes[2]; /* its addresses: it moves from one to the other */
    unsigned home;
    unsigned restarts;
    struct loop *paused[8];
    unsigned paused_count;
};

enum consumer { SRC, HUB, NEAR, SIDE, FAR, DEEP, CONSUMERS };

/* A stream from an app to another. */
struct edge {
    struct machine *from, *to;
    const char *app, *output;
    enum consumer sender, consumer;
    /* the consumer's host has restarted, and the sender's not since: where the new life has to begin */
    bool awaited;
    uint64_t least, most;
};

enum fault_kind { BLACK_HOLE, PAUSE, DOWN, NAME, FAULT_KINDS };

struct fault {
    enum fault_kind kind;
    struct machine *at, *other;
    uint64_t until_ns;
};

struct captured {
    struct sockaddr_storage from, to;
    size_t size;
    uint8_t bytes[CAPTURED_SIZE];
};

struct storm {
    struct hosts_world world;
    struct machine machines[HOSTS];
    unsigned machine_count;
    bool nat, restarts;
    struct tally tallies[CONSUMERS];
    struct edge edges[EDGES];
    unsigned edge_count;
    struct sim_path paths[HOSTS][HOSTS];
    struct fault faults[FAULTS_MAX];
    unsigned fault_count, fault_total;
    struct captured captured[CAPTURED];
    unsigned captured_next;
    struct sim_connection *post; /* NULL: none is under way */
    char body[BATCH_MAX * (RECORD_MAX + 16)];
    uint64_t sent, post_again_ns; /* numbers posted: 1 … sent */
    unsigned descriptors;
    const char *wrong;
    uint64_t lifted_ns, sent_before; /* when the last fault was over */
};

static uint64_t roll(struct storm *s, uint64_t below)
{
    return random_below(sim_random(s->world.sim), below);
}

static void find_wrong(struct storm *s, bool right, const char *what)
{
    if (!right && !s->wrong)
        s->wrong = what;
}

/* --- the hosts --- */

static char *put(char *at, const char *format, ...) __attribute__((format(printf, 2, 3)));

static char *put(char *at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsprintf(at, format, arguments);
    va_end(arguments);
    return at + size;
}

static char *put_app(struct storm *s, char *at, const char *name, const char *module, enum consumer tally)
{
    return put(at, "[app %s]\nmodule = /sim/%s\ninbox = 64K\narg = " WORLD_TALLY "\n", name, module,
               (void *)&s->tallies[tally]);
}

static char *put_peer(struct storm *s, char *at, unsigned index, const char *apps)
{
    return put(at, "[peer %s]\nkey = %s\napps = %s\n", s->machines[index].name, s->world.keys[index], apps);
}

static char *put_link(struct storm *s, char *at, const char *output, unsigned index, const char *app)
{
    return put(at, "[output %s]\nlink = %s.local:7071\nkey = %s\napp = %s\nqueue = %uK\n", output,
               s->machines[index].name, s->world.keys[index], app, 32u << roll(s, 3));
}

static void add_edge(struct storm *s, unsigned from, unsigned to, const char *app, const char *output,
                     enum consumer sender, enum consumer consumer)
{
    s->edges[s->edge_count++] = (struct edge){.from = &s->machines[from],
                                              .to = &s->machines[to],
                                              .app = app,
                                              .output = output,
                                              .sender = sender,
                                              .consumer = consumer};
}

static void write_one(struct storm *s, char *at)
{
    unsigned last = s->machine_count - 1;
    at = put(at, "connections = 16\nlink = 0.0.0.0:7071\nlink_window = 2M\n");
    at = put_app(s, at, "src", "hub", SRC);
    at = put_app(s, at, "far", "dst", FAR);
    at = put_peer(s, at, 1, "far");
    at = put_link(s, at, "src.out", 1, "hub");
    put_link(s, at, "src.cloud", last, "side");
    add_edge(s, 0, 1, "src", "out", SRC, HUB);
    add_edge(s, 0, last, "src", "cloud", SRC, SIDE);
}

static void write_two(struct storm *s, char *at)
{
    bool three = s->machine_count == 3;
    at = put(at, "connections = 16\nlink = 0.0.0.0:7071\nlink_window = 2M\n");
    at = put_app(s, at, "hub", "hub", HUB);
    at = put_app(s, at, "near", "dst", NEAR);
    if (!three)
        at = put_app(s, at, "side", "dst", SIDE);
    at = put_peer(s, at, 0, three ? "hub" : "hub, side");
    at = put(at, "[output hub.log]\ninner = near\nqueue = 32K\n");
    add_edge(s, 1, 1, "hub", "log", HUB, NEAR);
    if (!s->nat) {
        at = put_link(s, at, "hub.next", 0, "far");
        add_edge(s, 1, 0, "hub", "next", HUB, FAR);
    }
    if (three) {
        put_link(s, at, "hub.d1", 2, "deep");
        add_edge(s, 1, 2, "hub", "d1", HUB, DEEP);
    }
}

static void write_three(struct storm *s, char *at)
{
    at = put(at, "connections = 16\nlink = 0.0.0.0:7071\nlink_window = 2M\n");
    at = put_app(s, at, "side", "dst", SIDE);
    at = put_app(s, at, "deep", "dst", DEEP);
    at = put_peer(s, at, 0, "side");
    put_peer(s, at, 1, "deep");
}

static void name_is_right(struct storm *s, const struct machine *m)
{
    char name[16];
    snprintf(name, sizeof name, "%s.local", m->name);
    struct sim_answer answer = {.addresses = {m->homes[m->home]}, .delay_ns = 5 * NS_PER_MS};
    sim_set_name(s->world.sim, name, &answer);
}

static void capture(void *context, const struct sockaddr_storage *from, const struct sockaddr_storage *to,
                    struct span bytes)
{
    struct storm *s = context;
    struct captured *c = &s->captured[s->captured_next++ % CAPTURED];
    c->from = *from;
    c->to = *to;
    c->size = min_size(bytes.size, CAPTURED_SIZE);
    memcpy(c->bytes, bytes.data, c->size);
}

static void open_storm(struct storm *s, uint64_t seed)
{
    static const struct machine machines[HOSTS] = {{.name = "one", .homes = {"10.0.0.1", "10.0.1.1"}},
                                                   {.name = "two", .homes = {"10.0.0.2", "10.0.1.2"}},
                                                   {.name = "three", .homes = {"10.0.0.3", "10.0.1.3"}}};
    static void (*const write[HOSTS])(struct storm * s, char *at) = {write_one, write_two, write_three};
    memset(s, 0, sizeof *s);
    hosts_world_open(&s->world, seed);
    memcpy(s->machines, machines, sizeof machines);
    s->machine_count = 2 + (unsigned)roll(s, 2);
    s->nat = roll(s, 3) == 0;
    s->restarts = roll(s, 2);
    for (unsigned i = 0; i < s->machine_count; i++) {
        struct machine *m = &s->machines[i];
        char text[4096];
        write[i](s, text);
        m->host = world_add_host(&s->world, m->name, m->homes[0], "%s", text);
        world_start(m->host);
        name_is_right(s, m);
    }
    if (s->nat)
        sim_set_nat(s->world.sim, s->machines[0].homes[0], "10.0.2.1");
    sim_set_tap(s->world.sim, capture, s);
    s->descriptors = sim_open_descriptors(s->world.sim);
}

/* --- the weather --- */

static uint64_t often_little(struct storm *s, uint64_t most)
{
    switch (roll(s, 3)) {
    case 0:
        return 0;
    case 1:
        return roll(s, most / 10 + 1);
    default:
        return roll(s, most + 1);
    }
}

static struct sim_path some_path(struct storm *s)
{
    static const uint32_t mtus[] = {1228, 1300, 1420, 1500, 1500, 9000, 65535};
    struct sim_path p = sim_path_default;
    p.latency_min_ns = often_little(s, 300 * NS_PER_MS);
    p.latency_max_ns = p.latency_min_ns + often_little(s, 50 * NS_PER_MS);
    p.loss = (uint32_t)often_little(s, 300);
    p.duplicate = (uint32_t)often_little(s, 200);
    p.reorder = (uint32_t)often_little(s, 300);
    p.reorder_ns = often_little(s, 100 * NS_PER_MS);
    p.corrupt = (uint32_t)often_little(s, 100);
    p.mtu = mtus[roll(s, ARRAY_SIZE(mtus))];
    p.mtu_told = roll(s, 2);
    if (roll(s, 3) == 0) {
        p.bytes_s = 20000 + roll(s, 1000000);
        p.queue_bytes = 4000 + roll(s, 60000);
    }
    return p;
}

/* Between all addresses that the two have at any time. */
static void set_path(struct storm *s, const struct machine *from, const struct machine *to,
                     const struct sim_path *path)
{
    for (unsigned i = 0; i < 4; i++)
        sim_set_path(s->world.sim, from->homes[i % 2], to->homes[i / 2], path);
    if (s->nat && to == &s->machines[0])
        sim_set_path(s->world.sim, from->homes[0], "10.0.2.1", path);
}

static struct sim_path *path_of(struct storm *s, const struct machine *from, const struct machine *to)
{
    return &s->paths[from - s->machines][to - s->machines];
}

static struct machine *any(struct storm *s)
{
    return &s->machines[roll(s, s->machine_count)];
}

static void change_path(struct storm *s)
{
    struct machine *from = any(s), *to = any(s);
    *path_of(s, from, to) = some_path(s);
    set_path(s, from, to, path_of(s, from, to));
}

static void set_all_paths(struct storm *s, bool fair)
{
    for (unsigned i = 0; i < s->machine_count; i++) {
        for (unsigned j = 0; j < s->machine_count; j++) {
            s->paths[i][j] = fair ? sim_path_default : some_path(s);
            set_path(s, &s->machines[i], &s->machines[j], &s->paths[i][j]);
        }
    }
}

static void change_kernels(struct storm *s)
{
    struct sim_faults faults = {.no_buffers = (uint32_t)often_little(s, 100),
                                .multishot_end = (uint32_t)often_little(s, 200),
                                .short_send = (uint32_t)often_little(s, 300),
                                .batch_max = (uint32_t)(1 + roll(s, 16)),
                                .buffer_bytes = (uint32_t)(64 + roll(s, 4000))};
    sim_set_faults(s->world.sim, &faults);
    struct sim_datagram_faults datagrams = {.buffer_bytes = (uint32_t)(2048 + roll(s, 60000)),
                                            .no_coalescing = (uint32_t)often_little(s, 1000)};
    sim_set_datagram_faults(s->world.sim, &datagrams);
    static const int errors[] = {0, -EIO, -EINVAL};
    sim_refuse_segmentation(s->world.sim, any(s)->host->address, errors[roll(s, 3)]);
}

static void repair_kernels(struct storm *s)
{
    const struct sim_faults none = {.batch_max = 64, .buffer_bytes = 4096};
    const struct sim_datagram_faults no_datagram = {0};
    sim_set_faults(s->world.sim, &none);
    sim_set_datagram_faults(s->world.sim, &no_datagram);
}

static void jump_clock(struct storm *s)
{
    sim_set_wall_ms(s->world.sim, SIM_START_WALL_MS - YEARS_MS + roll(s, 2 * YEARS_MS));
}

static void replay(struct storm *s)
{
    unsigned there = (unsigned)min_u64(s->captured_next, CAPTURED);
    for (uint64_t n = roll(s, 20); there > 0 && n > 0; n--) {
        const struct captured *c = &s->captured[roll(s, there)];
        sim_replay(s->world.sim, &c->from, &c->to, span_of(c->bytes, c->size));
    }
}

static void trouble_nat(struct storm *s)
{
    if (!s->nat || s->machines[0].home != 0)
        return;
    if (roll(s, 2))
        sim_rebind_nat(s->world.sim, s->machines[0].homes[0]);
    else
        sim_kill_nat_entries(s->world.sim, s->machines[0].homes[0]);
}

/* --- faults that last --- */

static void resume(struct storm *s, struct machine *m)
{
    while (m->paused_count > 0)
        sim_add_loop(s->world.sim, m->paused[--m->paused_count]);
}

static void pause_loop(struct storm *s, struct machine *m)
{
    const struct registry *r = host_registry(m->host->host);
    struct loop *loop = r->loops[roll(s, r->loop_count)].loop;
    for (unsigned i = 0; i < m->paused_count; i++) {
        if (m->paused[i] == loop)
            return;
    }
    if (m->paused_count == ARRAY_SIZE(m->paused))
        return;
    sim_remove_loop(s->world.sim, loop);
    m->paused[m->paused_count++] = loop;
}

static uint64_t stored_of(const struct edge *e)
{
    return world_outlet(e->from->host, e->app, e->output)->queue.freed.records;
}

/* What has to be true of where the streams go on, after this host's end. */
static void foresee(struct storm *s, const struct machine *ending)
{
    for (unsigned i = 0; i < s->edge_count; i++) {
        struct edge *e = &s->edges[i];
        const struct tally *t = &s->tallies[e->consumer];
        if (e->from == ending) {
            e->awaited = false;
            continue;
        }
        if (e->to != ending || !e->from->host->host)
            continue;
        if (t->records > 0 || !e->awaited) {
            e->least = stored_of(e);
            e->most = max_u64(t->records > 0 ? t->stream_last : 0, e->least);
        }
        e->awaited = true;
    }
}

/* Whatever was being posted to it may have been taken or not. */
static void end_host(struct storm *s, struct machine *m)
{
    resume(s, m);
    foresee(s, m);
    if (m == &s->machines[0]) {
        s->post = NULL;
        s->post_again_ns = 0;
    }
    if (roll(s, 2))
        world_crash(m->host);
    else
        world_kill(m->host);
    m->restarts++;
}

static void start_host(struct storm *s, struct machine *m)
{
    bool moves = roll(s, 3) == 0 && !(s->nat && m == &s->machines[0]);
    if (moves) {
        m->home = !m->home;
        world_move(m->host, m->homes[m->home]);
        name_is_right(s, m);
    }
    world_start(m->host);
}

static void trouble_name(struct storm *s, const struct machine *m)
{
    static const struct sim_answer answers[] = {
        {.error = PE_NAME_NOT_FOUND, .delay_ns = NS_PER_MS},
        {.error = PE_NAME_FAILED, .delay_ns = 3 * NS_PER_S},
        {.delay_ns = SIM_HANGS},
        {.addresses = {"10.0.3.3"}, .delay_ns = NS_PER_MS}, /* where nobody is */
    };
    char name[16];
    snprintf(name, sizeof name, "%s.local", m->name);
    sim_set_name(s->world.sim, name, &answers[roll(s, ARRAY_SIZE(answers))]);
}

static void begin_fault(struct storm *s)
{
    struct fault f = {.kind = (enum fault_kind)roll(s, FAULT_KINDS),
                      .at = any(s),
                      .other = any(s),
                      .until_ns = sim_now_ns(s->world.sim) + roll(s, FAULT_MAX_NS)};
    if (s->fault_count == FAULTS_MAX || !f.at->host->host || (f.kind == DOWN && !s->restarts))
        return;
    struct sim_path hole = *path_of(s, f.at, f.other);
    hole.black_hole = true;
    if (f.kind == BLACK_HOLE)
        set_path(s, f.at, f.other, &hole);
    else if (f.kind == PAUSE)
        pause_loop(s, f.at);
    else if (f.kind == DOWN)
        end_host(s, f.at);
    else
        trouble_name(s, f.at);
    s->faults[s->fault_count++] = f;
    s->fault_total++;
}

static void end_fault(struct storm *s, const struct fault *f)
{
    if (f->kind == BLACK_HOLE)
        set_path(s, f->at, f->other, path_of(s, f->at, f->other));
    else if (f->kind == PAUSE)
        resume(s, f->at);
    else if (f->kind == DOWN)
        start_host(s, f->at);
    else
        name_is_right(s, f->at);
}

static void end_faults(struct storm *s, uint64_t now_ns)
{
    for (unsigned i = 0; i < s->fault_count;) {
        struct fault f = s->faults[i];
        if (now_ns < f.until_ns) {
            i++;
            continue;
        }
        s->faults[i] = s->faults[--s->fault_count];
        end_fault(s, &f);
    }
}

static void change_something(struct storm *s)
{
    static void (*const changes[])(struct storm * s) = {
        change_path, change_path, change_kernels, jump_clock, replay, trouble_nat, begin_fault, begin_fault};
    changes[roll(s, ARRAY_SIZE(changes))](s);
}

#endif
