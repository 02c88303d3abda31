/* Four dead endpoints among twenty, for ten hours, and then all back.
 *
 *     client ──▶ one 10.0.0.1: fan ──o1 … o18──▶ e1.test … e18.test: 10.0.1.1 … 10.0.1.18, scripted
 *                                  ──o19, o20──▶ two.test 10.0.0.2: p1, p2 (dst)
 *
 *     o1 … o12    webhook                          dead: o4, refused
 *     o13, o14    webhook, 8 requests at a time    dead: o13, all is lost
 *     o15, o16    the same, ordered by "k"         dead: o15, its name hangs and fails in turn, from the
 * start o17, o18    batch                            dead: o17, answers 503 and garbage in turn o19, o20 pure
 *
 * An event comes every few seconds, and goes to all. In one variant all is kept in memory; in others on a
 * disk, with queues that take a fraction of what waits, and the host ends in the middle of the outage. Under
 * sanitizers the outage is shorter. */
#include "tests/unit/fewer.h"
#include "tests/sim/ledgers.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define OUTPUTS    20
#define SCRIPTED   18
#define PURE_FIRST 19
#define WIDTH      8  /* requests at a time, of those that send several */
#define KEYS       4  /* of the records: fewer than may be under way at a time */
#define BATCH      50 /* records */

#define HOURS    FEWER(10)
#define EVENT_NS (5 * NS_PER_S) /* in the mean */
#define HOUR     720            /* events in one */
#define CALM     120            /* events before and after the outage */
#define EVENTS   (2 * CALM + HOURS * HOUR)
#define IDS      (2 * EVENTS)
#define ANSWER   (20 * NS_PER_MS) /* what an endpoint takes for it */
#define HURRIED  30               /* tries, at most, of a host that stops */
#define BACK_OFF (60 * NS_PER_S)  /* the longest */

/* From an event's post to its record's arrival at an endpoint that is well. */
#define LATE_MAX (50 * NS_PER_MS)

enum kind { STRICT, WIDE, ORDERED, BATCHED, PURE };

/* The request that came last: numbers of its records. */
struct place {
    unsigned first, last;
};

/* A webhook-id that came, and what with. */
struct identity {
    uint64_t id, content; /* hashes; id 0: none */
};

struct endpoint {
    unsigned number; /* of its output, from 1 */
    enum kind kind;
    bool dies;                 /* in the outage */
    bool dead;                 /* now: does not take what it is sent */
    bool returned;             /* after the outage */
    uint64_t epoch;            /* of the ids; 0: there was none yet */
    unsigned flying;           /* requests that are not answered */
    unsigned most;             /* `flying`, since it returned */
    unsigned requests;         /* in all */
    unsigned answered;         /* with success, since it returned */
    unsigned garbage;          /* answers that were none */
    struct place places[KEYS]; /* of ORDERED: each key's; else the first one */
    uint64_t worst_ns;         /* how late a record was, at most */
    uint64_t failures;         /* before the outage, in this life */
    uint64_t failed;           /* in the outage, in lives before */
    uint64_t lookups;          /* before the outage */
    uint64_t connects;         /* the same */
    struct sim_server *server;
    struct sim_step script[5];
    struct identity ids[IDS];
    uint8_t times[EVENTS + 1]; /* how often a record was taken */
};

static struct {
    struct hosts_world world;
    struct world_host *one, *two;
    struct endpoint endpoints[OUTPUTS + 1]; /* by number */
    struct tally tallies[2];                /* of p1 and p2 */
    struct sim_connection *client;
    unsigned posted, taken;
    uint64_t posted_ns[EVENTS + 1];
    unsigned lives;       /* of one */
    unsigned descriptors; /* most, between events */
    uint64_t memory;      /* bytes of the heap */
} t;

static struct sim *sim(void)
{
    return t.world.sim;
}

static struct outlet *outlet_of(const struct endpoint *e)
{
    char output[8];
    snprintf(output, sizeof output, "o%u", e->number);
    return world_outlet(t.one, "fan", output);
}

static size_t record_text(unsigned number, char text[64])
{
    return (size_t)snprintf(text, 64, "{\"n\":%u,\"k\":\"k%u\"}", number, number % KEYS);
}

/* --- what an endpoint sees --- */

/* What is behind that text, which is there. */
static const char *behind(const char *head, const char *text)
{
    const char *at = strstr(head, text);
    if (!at)
        fail_msg("\"%s\" is missing in: %s", text, head);
    return at + strlen(text);
}

/* In order: the one behind the last, or that one again. A new life of the host goes back to what it has not
 * noted as delivered, and on from there. Of BATCHED: batches. */
static void see_order(struct endpoint *e, unsigned first, unsigned count)
{
    struct place *place = &e->places[e->kind == ORDERED ? first % KEYS : 0];
    unsigned step = e->kind == ORDERED ? KEYS : 1;
    bool begins = place->last == 0 && first <= step;
    bool again = first == place->first || (first < place->first && t.lives > 1);
    if (e->kind != WIDE)
        assert_true(begins || again || first == place->last + step);
    *place = (struct place){first, first + count - 1};
}

static void see_record(struct endpoint *e, unsigned number, struct span line)
{
    char text[64];
    assert_true(number >= 1 && number <= t.posted);
    assert_int_equal(line.size, record_text(number, text));
    assert_memory_equal(line.data, text, line.size);
    if (e->dead)
        return;
    if (e->times[number]++ == 0)
        e->worst_ns = max_u64(e->worst_ns, sim_now_ns(sim()) - t.posted_ns[number]);
}

static void see_batch(struct endpoint *e, unsigned first, unsigned count, struct span body)
{
    assert_true(count >= 1 && count <= BATCH && first + count - 1 <= t.posted);
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *end = memchr(body.data, '\n', body.size);
        assert_non_null(end);
        size_t size = (size_t)(end - body.data);
        see_record(e, first + i, span_of(body.data, size));
        body = span_of(end + 1, body.size - size - 1);
    }
    assert_int_equal(body.size, 0);
}

static uint64_t hash(struct span bytes)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < bytes.size; i++)
        hash = ledger_hash(hash, bytes.data[i]);
    return hash;
}

/* The same id has the same content each time. */
static void see_id(struct endpoint *e, struct span id, struct span content)
{
    uint64_t hash_of_id = hash(id), at = hash_of_id % IDS, steps = 0;
    while (e->ids[at].id != 0 && e->ids[at].id != hash_of_id && ++steps < IDS)
        at = (at + 1) % IDS;
    assert_true(steps < IDS);
    if (e->ids[at].id == hash_of_id && e->ids[at].content != hash(content))
        fail_msg("o%u: %.*s came with another content", e->number, (int)id.size, (const char *)id.data);
    e->ids[at] = (struct identity){hash_of_id, hash(content)};
}

static void see_request(struct endpoint *e, struct span request)
{
    char head[1024], *end;
    const uint8_t *body = memmem(request.data, request.size, "\r\n\r\n", 4);
    assert_non_null(body);
    body += 4;
    snprintf(head, sizeof head, "%.*s", (int)(body - request.data), (const char *)request.data);
    const char *id = behind(head, "webhook-id: ");
    uint64_t epoch = strtoull(behind(id, "msg_"), &end, 16);
    assert_int_equal(*end, '_');
    unsigned number = (unsigned)strtoul(end + 1, NULL, 10);
    assert_true(e->epoch == 0 || e->epoch == epoch);
    e->epoch = epoch;
    struct span content = span_of(body, request.size - (size_t)(body - request.data));
    see_id(e, span_of(id, strcspn(id, "\r")), content);
    unsigned count = 1;
    if (e->kind == BATCHED) {
        assert_int_equal(strtoul(behind(head, "Pure-First: "), NULL, 10), number);
        count = (unsigned)strtoul(behind(head, "Pure-Count: "), NULL, 10);
        see_batch(e, number, count, content);
    } else {
        see_record(e, number, content);
    }
    see_order(e, number, count);
}

/* One at first, and one more with each success. */
static void begin_answer(struct sim_connection *c, void *context)
{
    (void)c;
    struct endpoint *e = context;
    e->requests++;
    e->flying++;
    assert_true(e->flying <= (e->kind == WIDE || e->kind == ORDERED ? WIDTH : 1));
    if (!e->returned)
        return;
    assert_true(e->flying <= 1 + e->answered);
    e->most = e->flying > e->most ? e->flying : e->most;
}

static void end_answer_to(struct sim_connection *c, void *context)
{
    static const char yes[] = "HTTP/1.1 204 No Content\r\n\r\n";
    static const char no[] = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    static const char what[] = "\x16\x03\x01\x02 what?\r\n\r\n";
    struct endpoint *e = context;
    see_request(e, sim_taken(c));
    sim_forget(c);
    e->flying--;
    e->answered += e->returned;
    const char *text = !e->dead ? yes : e->requests % 8 != 0 ? no : what;
    e->garbage += text == what;
    sim_peer_send(c, text, strlen(text));
    if (text == what)
        sim_peer_close(c);
}

/* --- the world --- */

static void address_of(const struct endpoint *e, char text[16])
{
    snprintf(text, 16, "10.0.1.%u", e->number);
}

static void name_of(const struct endpoint *e, char text[16])
{
    snprintf(text, 16, "e%u.test", e->number);
}

static void resolve(const struct endpoint *e)
{
    char name[16], address[16];
    name_of(e, name);
    address_of(e, address);
    sim_set_name(sim(), name, &(struct sim_answer){.addresses = {address}});
}

/* Its answer is another one each time. */
static void confuse(const struct endpoint *e)
{
    static const struct sim_answer answers[] = {{.delay_ns = SIM_HANGS},
                                                {.error = PE_NAME_NOT_FOUND, .delay_ns = NS_PER_MS},
                                                {.error = PE_NAME_FAILED, .delay_ns = 3 * NS_PER_S}};
    char name[16];
    name_of(e, name);
    sim_set_name(sim(), name, &answers[sim_lookups(sim(), name) % ARRAY_SIZE(answers)]);
}

static void make_endpoint(unsigned number)
{
    char address[16], at[24];
    struct endpoint *e = &t.endpoints[number];
    *e = (struct endpoint){.number = number,
                           .kind = number <= 12   ? STRICT
                                   : number <= 14 ? WIDE
                                   : number <= 16 ? ORDERED
                                   : number <= 18 ? BATCHED
                                                  : PURE,
                           .dies = number == 4 || number == 13 || number == 15 || number == 17,
                           .dead = number == 15};
    if (e->kind == PURE)
        return;
    const struct sim_step script[] = {SIM_EXPECT_HTTP, SIM_CALL(begin_answer, e), SIM_WAIT(ANSWER),
                                      SIM_CALL(end_answer_to, e), SIM_AGAIN};
    memcpy(e->script, script, sizeof script);
    address_of(e, address);
    snprintf(at, sizeof at, "%s:80", address);
    e->server = sim_server(sim(), at, e->script, ARRAY_SIZE(script));
    if (e->dead)
        confuse(e);
    else
        resolve(e);
}

static void configure(char *text, size_t room, bool disk)
{
    static const char *const keys[] = {
        [STRICT] = "",
        [WIDE] = "concurrency = 8\n",
        [ORDERED] = "concurrency = 8\norder_by = k\n",
        [BATCHED] = "mode = batch\nbatch_records = 50\n",
    };
    const char *output_keys = disk ? "queue = 16K\n" : "";
    size_t size =
        (size_t)snprintf(text, room, "%s[app fan]\nmodule = /sim/fan\n", disk ? "segment = 256K\n" : "");
    for (unsigned i = 1; i <= SCRIPTED; i++)
        size += (size_t)snprintf(text + size, room - size, "[output fan.o%u]\nwire = http://e%u.test/\n%s%s",
                                 i, i, keys[t.endpoints[i].kind], output_keys);
    for (unsigned i = PURE_FIRST; i <= OUTPUTS; i++)
        size += (size_t)snprintf(
            text + size, room - size,
            "[output fan.o%u]\nwire = http://two.test\nmode = pure\ntoken = t\napp = p%u\n%s", i,
            i - PURE_FIRST + 1, output_keys);
    assert_true(size < room);
}

static void count_post(struct sim_connection *c, void *context)
{
    (void)context;
    struct span reply = sim_taken(c);
    assert_memory_equal(reply.data, "HTTP/1.1 200", strlen("HTTP/1.1 200"));
    t.taken++;
    sim_forget(c);
}

static const struct sim_step posting[] = {SIM_EXPECT_HTTP, SIM_CALL(count_post, NULL), SIM_AGAIN};

static void connect_client(void)
{
    t.client = sim_client(sim(), "10.0.0.9", t.one->endpoint, posting, ARRAY_SIZE(posting));
}

static void start_one(void)
{
    world_start(t.one);
    t.lives++;
    connect_client();
}

static void open_world(uint64_t seed, bool disk)
{
    static char text[8192];
    memset(&t, 0, sizeof t);
    hosts_world_open(&t.world, seed);
    for (unsigned i = 1; i <= OUTPUTS; i++)
        make_endpoint(i);
    sim_set_name(sim(), "two.test", &(struct sim_answer){.addresses = {"10.0.0.2"}});
    configure(text, sizeof text, disk);
    t.one = world_add_host(&t.world, "one", "10.0.0.1", "%s", text);
    t.two = world_add_host(&t.world, "two", "10.0.0.2",
                           "[app p1]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n"
                           "[app p2]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n",
                           (void *)&t.tallies[0], (void *)&t.tallies[1]);
    if (disk)
        world_add_disk(t.one);
    start_one();
    world_start(t.two);
}

/* --- what is always so --- */

static void post_next(void)
{
    char request[256], body[64];
    size_t size = record_text(++t.posted, body);
    int length = snprintf(request, sizeof request,
                          "POST /apps/fan/events/e HTTP/1.1\r\nHost: one\r\nAuthorization: Bearer t\r\n"
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                          size, body);
    t.posted_ns[t.posted] = sim_now_ns(sim());
    sim_peer_send(t.client, request, (size_t)length);
}

/* All that are well have all that was posted, and had each of it in time. */
static void assert_the_healthy_keep_up(void)
{
    for (unsigned i = 1; i <= SCRIPTED; i++) {
        const struct endpoint *e = &t.endpoints[i];
        assert_true(e->dies || e->times[t.posted] > 0);
        assert_true(e->dies || e->worst_ns < LATE_MAX);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(t.tallies); i++) {
        assert_int_equal(t.tallies[i].last, t.posted);
        assert_int_equal(t.tallies[i].records, t.posted);
        assert_int_equal(t.tallies[i].disorder, 0);
    }
}

static void run_events(unsigned count)
{
    for (; count > 0; count--) {
        if (t.endpoints[15].dead)
            confuse(&t.endpoints[15]);
        post_next();
        sim_run_for(sim(), EVENT_NS / 2 + random_below(sim_random(sim()), EVENT_NS));
        assert_int_equal(t.taken, t.posted);
        assert_the_healthy_keep_up();
        t.descriptors = max_u64(t.descriptors, sim_open_descriptors(sim()));
    }
}

/* Those that are open when nothing has happened for a while. */
static unsigned descriptors_at_rest(void)
{
    sim_peer_close(t.client);
    sim_run_for(sim(), 60 * NS_PER_S);
    unsigned descriptors = sim_open_descriptors(sim());
    connect_client();
    return descriptors;
}

/* Of what the world keeps of itself only ended connections of peers grow, with each that is accepted. */
#define PEER_BYTES    512
#define SEGMENT_BYTES (OUTPUTS * 600) /* what a store knows of a segment: a little of each output */
#define HEAP_NOISE    (16 * 1024)     /* bytes */

/* Of all, as nothing is mapped (main). Sanitizers know no sizes: then it is 0. */
static uint64_t heap_bytes(void)
{
    struct mallinfo2 heap = mallinfo2();
    uint64_t bytes = heap.uordblks;
    return bytes > 0 && t.one->disk ? bytes - sim_disk_memory(t.one->disk) : bytes;
}

struct use {
    uint64_t heap_bytes;
    unsigned descriptors; /* most, since the last one */
    unsigned peers;       /* connections that were accepted */
    unsigned segments;    /* of the store */
};

static struct use use_now(void)
{
    struct use use = {.heap_bytes = heap_bytes(), .descriptors = t.descriptors};
    for (unsigned i = 1; i <= SCRIPTED; i++)
        use.peers += sim_server_accepted(t.endpoints[i].server);
    if (t.one->disk)
        use.segments = store_files(t.one, ".journal", NULL);
    t.descriptors = 0;
    return use;
}

/* --- the outage --- */

static void begin_outage(void)
{
    char name[16], address[16];
    for (unsigned i = 1; i <= SCRIPTED; i++) {
        struct endpoint *e = &t.endpoints[i];
        if (!e->dies)
            continue;
        name_of(e, name);
        address_of(e, address);
        e->failures = counter_read(&outlet_of(e)->report.failures_total);
        e->lookups = sim_lookups(sim(), name);
        e->connects = sim_connects(sim(), address);
        e->dead = true;
    }
    sim_server_listen(t.endpoints[4].server, false);
    sim_reset_connections(sim(), "10.0.0.1", "10.0.1.4");
    sim_silence_host(sim(), "10.0.1.13", true);
}

static void end_outage(void)
{
    for (unsigned i = 1; i <= SCRIPTED; i++) {
        struct endpoint *e = &t.endpoints[i];
        e->returned = e->dies;
        e->dead = false;
    }
    sim_server_listen(t.endpoints[4].server, true);
    sim_silence_host(sim(), "10.0.1.13", false);
    resolve(&t.endpoints[15]);
}

/* In the outage. */
static uint64_t failed(const struct endpoint *e)
{
    return e->failed + counter_read(&outlet_of(e)->report.failures_total) - e->failures;
}

/* One lookup and one connection a back-off step, and as many steps as the schedule has: each rests for half
 * of the longest rest in the mean. Before the first step all that may fly at a time do. */
static void assert_tries_by_schedule(const struct endpoint *e)
{
    char name[16], address[16];
    name_of(e, name);
    address_of(e, address);
    uint64_t steps = failed(e), expected = HOURS * 3600 * NS_PER_S / (BACK_OFF / 2);
    assert_true(steps > expected / 2 && steps < expected + expected / 6);
    steps += (t.lives - 1) * HURRIED;
    assert_true(sim_lookups(sim(), name) - e->lookups <= steps + 1);
    assert_true(sim_connects(sim(), address) - e->connects <= steps + WIDTH);
}

/* Of the failures in a row all are known afterwards, but for the last, if that was not written yet; and those
 * of the last tries of a host that stops. */
static void restart(void (*end)(struct world_host *h))
{
    uint64_t in_a_row[OUTPUTS + 1] = {0};
    for (unsigned i = 1; i <= SCRIPTED; i++) {
        struct endpoint *e = &t.endpoints[i];
        if (!e->dies)
            continue;
        in_a_row[i] = atomic_load(&outlet_of(e)->report.failures);
        e->failed = failed(e);
        e->failures = 0;
    }
    end(t.one);
    sim_run_for(sim(), NS_PER_S); /* endpoints forget what they had begun to answer */
    start_one();
    for (unsigned i = 1; i <= SCRIPTED; i++) {
        if (!t.endpoints[i].dies)
            continue;
        uint64_t now = atomic_load(&outlet_of(&t.endpoints[i])->report.failures);
        assert_true(now + 1 >= in_a_row[i] && now <= in_a_row[i] + HURRIED);
    }
}

/* What it takes is what it took once each backlog was beyond its queue, but for what it knows of each segment
 * that is kept. */
static void assert_no_more_is_used(const struct use *first, const struct use *now)
{
    uint64_t heap_bytes = first->heap_bytes + HEAP_NOISE + (now->peers - first->peers) * PEER_BYTES +
                          (now->segments - first->segments) * SEGMENT_BYTES;
    assert_true(now->heap_bytes <= heap_bytes);
    assert_true(now->descriptors <= first->descriptors);
}

static void sit_out_the_outage(void (*end)(struct world_host *h))
{
    struct use first = use_now();
    unsigned descriptors = first.descriptors;
    begin_outage();
    for (unsigned hour = 1; hour <= HOURS; hour++) {
        if (end && hour == HOURS / 2 + 1)
            restart(end);
        run_events(HOUR);
        struct use now = use_now();
        if (hour <= 2 || (end && hour <= HOURS / 2 + 2))
            first = now;
        assert_true(now.descriptors <= descriptors + WIDTH);
        assert_no_more_is_used(&first, &now);
    }
    for (unsigned i = 1; i <= SCRIPTED; i++) {
        if (t.endpoints[i].dies)
            assert_tries_by_schedule(&t.endpoints[i]);
    }
}

/* --- afterwards --- */

static bool drained(void *context)
{
    (void)context;
    return world_host_empty(t.one);
}

static void everything_drains(void)
{
    enum sim_end end = sim_run(sim(), sim_now_ns(sim()) + 3600 * NS_PER_S, drained, NULL, 100 * 1000 * 1000);
    assert_int_equal(end, SIM_DONE);
    for (unsigned i = 1; i <= SCRIPTED; i++) {
        const struct endpoint *e = &t.endpoints[i];
        for (unsigned n = 1; n <= EVENTS; n++) {
            assert_true(e->times[n] >= 1);
            assert_true(e->times[n] == 1 || t.lives > 1);
        }
        assert_int_equal(atomic_load(&outlet_of(e)->report.state), OUTLET_OK);
        if (e->returned)
            assert_int_equal(e->most, e->kind == WIDE ? WIDTH : e->kind == ORDERED ? KEYS : 1);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(t.tallies); i++)
        assert_int_equal(tally_not_once(&t.tallies[i], 1, EVENTS), 0);
}

static void go_through_an_outage(uint64_t seed, bool disk, void (*end)(struct world_host *h))
{
    open_world(seed, disk);
    run_events(CALM);
    unsigned descriptors = descriptors_at_rest();
    sit_out_the_outage(end);
    end_outage();
    run_events(CALM);
    everything_drains();
    /* One more, to o15, whose name there was not; one fewer where the connection that is kept was given up.
     */
    assert_in_range(descriptors_at_rest(), descriptors - 2, descriptors + 1);
    hosts_world_close(&t.world);
}

static void in_memory(void **state)
{
    (void)state;
    go_through_an_outage(1, false, NULL);
}

static void on_disk(void **state)
{
    (void)state;
    go_through_an_outage(2, true, NULL);
}

static void stop(struct world_host *h)
{
    assert_true(world_stop(h) < 6 * NS_PER_S);
}

static void with_restarts(void **state)
{
    (void)state;
    static void (*const ends[])(struct world_host *) = {stop, world_kill, world_crash};
    for (unsigned i = 0; i < FEWER(ARRAY_SIZE(ends)); i++)
        go_through_an_outage(3 + i, true, ends[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_memory),
        cmocka_unit_test(on_disk),
        cmocka_unit_test(with_restarts),
    };
    mallopt(M_MMAP_MAX, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
