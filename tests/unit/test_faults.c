/* The fault table (tests/faults/table.h) on the simulated seam: each row under several seeds, beside a wire
 * that has to notice nothing.
 *
 *     test_faults [NAME [SEED]]    only rows whose names begin so; from that seed on
 */
#include "tests/faults/sim_peer.h"
#include "tests/faults/table.h"
#include "tests/sim/tls_ends.h"
#include "tls/trust.h"
#include "wire/wire.h"

#include <openssl/ssl.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define SEEDS      4
#define OPEN_MOST  16 /* descriptors of both wires, at any time */
#define QUEUE      (1 << 16)
#define RECORD_MAX 4096

static struct fault_identities identities;
static struct tls_current ours; /* the wire's */

static const char *only = "";
static uint64_t first_seed;

struct bench {
    const struct fault_row *row;
    uint64_t seed;
    struct sim *sim;
    struct loop loop;
    struct log log;
    struct resolver *resolver;
    struct wire *wire, *neighbour;
    struct fault_sim_peer peer, elsewhere, other;
    uint64_t neighbour_ns; /* between its records */
    unsigned pushed, sent; /* records of the wire; of the neighbour */
    unsigned late;         /* neighbour's records that were not delivered when the next was due */
    unsigned events;
    int error; /* the first that the wire reported, */
    char text[200];
    unsigned open_most;
    struct sim_link narrow;
};

/* --- what happens, and when --- */

static struct wire *make_wire(struct bench *b, const struct wire_options *options, const char *output,
                              uint32_t slot)
{
    struct wire *w = aligned_alloc(CACHE_LINE, sizeof *w);
    assert_non_null(w);
    assert_int_equal(wire_init(w, options, "app", output, QUEUE, RECORD_MAX, &b->loop, b->resolver, &b->log),
                     0);
    w->outlet.producer = &b->loop.board;
    w->outlet.producer_slot = slot;
    return w;
}

static void push(struct wire *w, const void *record, size_t size)
{
    assert_int_equal(outlet_queue(&w->outlet, record, size), 0);
    outlet_push(&w->outlet);
}

static uint64_t stored(const struct wire *w)
{
    return w->outlet.queue.freed.records;
}

static void push_record(void *context)
{
    struct bench *b = context;
    char record[RECORD_MAX];
    memset(record, 'x', sizeof record);
    int size = snprintf(record, sizeof record, "{\"record\":%u}", ++b->pushed);
    record[size] = ' ';
    push(b->wire, record, b->row->record_bytes > 0 ? b->row->record_bytes : (size_t)size);
}

static void push_neighbours(void *context)
{
    struct bench *b = context;
    b->late += stored(b->neighbour) != b->sent;
    push(b->neighbour, "{}", 2);
    b->sent++;
    sim_at(b->sim, sim_now_ns(b->sim) + b->neighbour_ns, push_neighbours, b);
}

static void hole(struct bench *b, const char *host, bool black)
{
    struct sim_link link = sim_link_default;
    link.black_hole = black;
    sim_set_link(b->sim, NULL, host, &link);
}

static void make_narrow(struct bench *b, int64_t bytes_s)
{
    struct sim_link link = sim_link_default;
    link.window_bytes = 512;
    link.bytes_s = (uint64_t)bytes_s;
    sim_set_link(b->sim, NULL, "10.0.0.2", &link);
}

/* The row's events come in the order of their times. */
static void happen(void *context)
{
    struct bench *b = context;
    const struct fault_event *e = &b->row->events[b->events++];
    switch (e->kind) {
    case EVENT_REFUSE:
    case EVENT_LISTEN:
        sim_server_listen(b->peer.server, e->kind == EVENT_LISTEN);
        break;
    case EVENT_HOLE:
    case EVENT_CLEAR:
        hole(b, "10.0.0.2", e->kind == EVENT_HOLE);
        break;
    case EVENT_SILENT:
    case EVENT_SPEAKS:
        sim_silence_host(b->sim, "10.0.0.2", e->kind == EVENT_SILENT);
        break;
    case EVENT_REBOOT:
        sim_reboot_host(b->sim, "10.0.0.2");
        break;
    case EVENT_NARROW:
        make_narrow(b, e->number);
        break;
    case EVENT_NAME:
        sim_set_name(b->sim, "a.example", &e->answer);
        break;
    case EVENT_CLOCK:
        sim_set_wall_ms(b->sim, (uint64_t)e->number * 1000);
        break;
    case EVENT_DESCRIPTORS:
        sim_limit_descriptors(b->sim, sim_open_descriptors(b->sim) + (unsigned)e->number);
        break;
    case EVENT_NONE:
        break;
    }
}

static void plan(struct bench *b)
{
    const struct fault_row *row = b->row;
    uint64_t start_ns = sim_now_ns(b->sim), first_ns = start_ns + FAULT_FIRST_MS * NS_PER_MS;
    for (unsigned i = 0; i < FAULT_EVENTS && row->events[i].kind; i++)
        sim_at(b->sim, start_ns + row->events[i].at_ms * NS_PER_MS, happen, b);
    sim_at(b->sim, first_ns, push_record, b);
    sim_at(b->sim, first_ns + (row->gap_ms ? row->gap_ms : 500) * NS_PER_MS, push_record, b);
    push_neighbours(b);
}

/* Asked after each step of the loop. */
static bool look(void *context)
{
    struct bench *b = context;
    struct outlet_report *report = &b->wire->outlet.report;
    int error = atomic_load(&report->error);
    unsigned open = sim_open_descriptors(b->sim);
    b->open_most = open > b->open_most ? open : b->open_most;
    if (error != 0 && b->error == 0) {
        b->error = error;
        outlet_error_text(&b->wire->outlet, b->text, sizeof b->text);
    }
    return false;
}

/* --- the world of a row --- */

static void listen_at(struct bench *b, struct fault_sim_peer *peer, const char *host, bool tls)
{
    char endpoint[32];
    snprintf(endpoint, sizeof endpoint, "%s:%d", host, tls ? 443 : 80);
    peer->sim = b->sim;
    peer->then = tls ? fault_behaves_tls : fault_behaves;
    if (tls)
        peer->identity = fault_identity(&identities, &b->row->tls);
    fault_sim_listen(peer, endpoint);
}

static void set_faults(struct bench *b)
{
    struct sim_faults faults = {.batch_max = 64, .buffer_bytes = 4096};
    if (b->seed % 2 == 1)
        faults = (struct sim_faults){
            .no_buffers = 50, .multishot_end = 100, .short_send = 300, .batch_max = 4, .buffer_bytes = 512};
    sim_set_faults(b->sim, &faults);
}

static void bench_init(struct bench *b, const struct fault_row *row, uint64_t seed)
{
    unsigned for_ms = row->for_ms ? row->for_ms : 3500;
    *b = (struct bench){.row = row, .seed = seed, .sim = sim_new(seed)};
    b->neighbour_ns = max_u64(FAULT_NEIGHBOUR_MS, for_ms / 200) * NS_PER_MS;
    assert_int_equal(loop_init(&b->loop, sim_io(b->sim, "10.0.0.1"), 64, 4 * WIRE_TIMERS), 0);
    sim_add_loop(b->sim, &b->loop);
    set_faults(b);
    b->resolver = sim_resolver(b->sim, &b->loop);
    assert_int_equal(log_init(&b->log, NULL, 0), 0);
    sim_set_wall_ms(b->sim, (uint64_t)TLS_TEST_NOW_S * 1000);
    sim_set_name(b->sim, "a.example", &(struct sim_answer){.addresses = {"10.0.0.2"}});
    hole(b, "10.0.0.9", true);
    hole(b, "fd00::9", true);
    b->peer.first = row->first;
    b->peer.first_times = row->first_times;
    listen_at(b, &b->peer, "10.0.0.2", row->tls.on);
    listen_at(b, &b->elsewhere, "10.0.0.3", row->tls.on);
    listen_at(b, &b->other, "10.0.0.7", false);
    struct wire_options options;
    fault_options(row, &options);
    options.tls = &ours;
    b->wire = make_wire(b, &options, "out", 62);
    fault_options(&(struct fault_row){.url = "http://10.0.0.7/"}, &options);
    b->neighbour = make_wire(b, &options, "neighbour", 63);
    plan(b);
}

static bool all_stopped(void *context)
{
    struct bench *b = context;
    return wire_stopped(b->wire) && wire_stopped(b->neighbour);
}

static void dispose_peer(struct fault_sim_peer *peer)
{
    fault_sim_dispose(peer);
    SSL_CTX_free(peer->identity);
}

static void bench_dispose(struct bench *b)
{
    wire_dispose(b->wire);
    wire_dispose(b->neighbour);
    free(b->wire);
    free(b->neighbour);
    sim_remove_loop(b->sim, &b->loop);
    loop_dispose(&b->loop);
    log_dispose(&b->log);
    sim_free(b->sim);
    dispose_peer(&b->peer);
    dispose_peer(&b->elsewhere);
    dispose_peer(&b->other);
}

/* --- what must be seen --- */

static unsigned wrong; /* findings, of all rows */

static void compare(const struct bench *b, const char *what, uint64_t is, uint64_t expected)
{
    if (is == expected || expected == FAULT_ANY)
        return;
    print_error("%s (seed %d): %s: %d, not %d [%s]\n", b->row->name, (int)b->seed, what, (int)is,
                (int)expected, b->text);
    wrong++;
}

static void find(const struct bench *b, bool fine, const char *what)
{
    if (fine)
        return;
    print_error("%s (seed %d): %s [%d: %s]\n", b->row->name, (int)b->seed, what, b->error, b->text);
    wrong++;
}

static void check_ids(const struct bench *b, const struct fault_account *a)
{
    compare(b, "requests whose id had another body", a->changed, 0);
    find(b, a->ids <= FAULT_RECORDS, "more ids than records: not the same over all tries");
}

static void check(const struct bench *b)
{
    const struct fault_expectation *e = &b->row->expect;
    const struct outlet_report *report = &b->wire->outlet.report;
    compare(b, "delivered", stored(b->wire), e->delivered);
    compare(b, "requests", b->peer.account.requests, e->requests);
    compare(b, "connections", b->peer.account.connections, e->connections);
    compare(b, "requests elsewhere", b->elsewhere.account.requests, e->elsewhere);
    compare(b, "failures", counter_read(&report->failures_total), e->failures);
    compare(b, "state", (uint64_t)atomic_load(&report->state), e->state);
    find(b, e->error == FAULT_UNSAID || b->error == e->error, pure_error_text(e->error));
    find(b, !e->says || strstr(b->text, e->says), e->says);
    find(b, e->lookups == 0 || sim_lookups(b->sim, "a.example") <= e->lookups, "a storm of lookups");
    find(b, b->peer.account.resumed >= e->resumed, "sessions are not resumed");
    check_ids(b, &b->peer.account);
    check_ids(b, &b->elsewhere.account);
    find(b, b->open_most <= OPEN_MOST, "too many descriptors");
    compare(b, "late records of the neighbour", b->late, 0);
    compare(b, "failures of the neighbour", counter_read(&b->neighbour->outlet.report.failures_total), 0);
    find(b, b->sent > 20, "the neighbour had something to do");
}

static void run_row(const struct fault_row *row, uint64_t seed)
{
    struct bench b;
    bench_init(&b, row, seed);
    uint64_t for_ms = FAULT_FIRST_MS + (row->for_ms ? row->for_ms : 3500);
    enum sim_end end = sim_run(b.sim, sim_now_ns(b.sim) + for_ms * NS_PER_MS, look, &b, 10000000);
    assert_int_equal(end, SIM_TIME);
    check(&b);
    wire_stop(b.wire);
    wire_stop(b.neighbour);
    assert_int_equal(sim_run_until(b.sim, all_stopped, &b), SIM_DONE);
    compare(&b, "descriptors at the end", sim_open_descriptors(b.sim), 0);
    bench_dispose(&b);
}

static void run_table(void **state)
{
    const struct fault_row *row = *state;
    wrong = 0;
    for (; row->name; row++) {
        for (uint64_t seed = first_seed; seed < first_seed + SEEDS; seed++) {
            if (strncmp(row->name, only, strlen(only)) == 0)
                run_row(row, seed);
        }
    }
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : "";
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    static const char *const names[] = {"transport", "replies", "policy", "TLS", "names"};
    struct CMUnitTest tests[ARRAY_SIZE(names)];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = run_table, .initial_state = (void *)fault_tables[i]};
    if (sodium_init() < 0)
        return 1;
    fault_identities_init(&identities);
    struct tls_trust *trust = tls_trust_in(identities.ca);
    struct tls_context *context;
    char why[200];
    if (tls_context_make(&context, &(struct tls_options){.trust = trust}, why, sizeof why) < 0)
        return 1;
    tls_current_replace(&ours, context);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tls_current_replace(&ours, NULL);
    tls_trust_drop(trust);
    fault_identities_dispose(&identities);
    test_files_close();
    return failed;
}
