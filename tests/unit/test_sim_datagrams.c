/* The simulated network of datagrams: each fault does what it says, and a seed says all of it.
 *
 *     a (10.0.0.1) --path--> b (10.0.0.2)        each a host with a loop and a socket at port 7070
 *          <--path-- */
#include "tests/sim/datagrams.h"
#include "tests/sim/sim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define A       "10.0.0.1"
#define B       "10.0.0.2"
#define PORT    7070
#define LOG_MAX 4096
#define SENDS   64

/* One datagram that arrived: those sent begin with their number. */
struct arrival {
    uint64_t at_ns;
    uint32_t number, size;
    uint16_t port; /* of its source */
    bool intact;
};

struct host {
    struct sim *sim;
    struct loop loop;
    struct io_op receive;
    int fd;
    unsigned count, runs; /* arrivals; completions they came in */
    struct arrival log[LOG_MAX];
};

struct send {
    struct io_op op;
    int result;
    uint8_t bytes[65000];
};

struct net {
    struct sim *sim;
    struct host a, b;
    uint32_t next; /* number of the next datagram */
    struct send sends[SENDS];
};

static uint8_t fill_byte(uint32_t number, size_t i)
{
    return (uint8_t)(number * 31 + i);
}

static void fill(uint8_t *bytes, size_t size, uint32_t number)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = fill_byte(number, i);
    if (size >= sizeof number)
        memcpy(bytes, &number, sizeof number);
}

static bool intact(const uint8_t *bytes, size_t size)
{
    static uint8_t expected[65536];
    uint32_t number = 0;
    memcpy(&number, bytes, min_size(size, sizeof number));
    fill(expected, size, number);
    return memcmp(bytes, expected, size) == 0;
}

static void note(struct host *h, const struct io_op *op, const uint8_t *bytes, uint32_t size)
{
    assert_true(h->count < LOG_MAX);
    struct arrival *a = &h->log[h->count++];
    *a = (struct arrival){.at_ns = sim_now_ns(h->sim), .size = size, .intact = intact(bytes, size)};
    memcpy(&a->number, bytes, min_size(size, sizeof a->number));
    a->port = ntohs(((const struct sockaddr_in *)&op->datagram.address)->sin_port);
}

static void received(struct io_op *op, int result, bool more)
{
    struct host *h = container_of(op, struct host, receive);
    if (result == -ECANCELED)
        return;
    assert_true(result >= 0 || result == -ENOBUFS);
    h->runs += result >= 0;
    for (uint32_t at = 0; result > 0 && at < op->size; at += op->datagram.segment)
        note(h, op, op->data + at, (uint32_t)min_size(op->datagram.segment, op->size - at));
    if (!more)
        io_queue(h->loop.io, op);
}

static int open_at(struct host *h, uint16_t port)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = io_datagram_socket(h->loop.io, (struct sockaddr *)&any, sizeof any, NULL);
    assert_true(fd >= 0);
    return fd;
}

static void arm(struct host *h)
{
    io_prepare_datagram_receive(&h->receive, h->fd, received);
    io_queue(h->loop.io, &h->receive);
}

static void open_host(struct host *h, struct sim *sim, const char *address)
{
    h->sim = sim;
    loop_init(&h->loop, sim_io(sim, address), 8, 8);
    sim_add_loop(sim, &h->loop);
    h->fd = open_at(h, PORT);
    arm(h);
}

static struct net *open_net(uint64_t seed)
{
    struct net *n = calloc(1, sizeof *n);
    assert_non_null(n);
    n->sim = sim_new(seed);
    open_host(&n->a, n->sim, A);
    open_host(&n->b, n->sim, B);
    return n;
}

static void close_net(struct net *n)
{
    sim_remove_loop(n->sim, &n->a.loop);
    sim_remove_loop(n->sim, &n->b.loop);
    loop_dispose(&n->a.loop);
    loop_dispose(&n->b.loop);
    sim_free(n->sim);
    free(n);
}

static void set_path(struct net *n, const char *from, const char *to, struct sim_path path)
{
    if (path.mtu == 0)
        path.mtu = 1500;
    sim_set_path(n->sim, from, to, &path);
}

static void send_over(struct io_op *op, int result, bool more)
{
    (void)more;
    container_of(op, struct send, op)->result = result;
}

/* `count` datagrams of `size` bytes in one send. */
static struct send *send_to(struct net *n, struct host *h, const char *to, uint16_t port, unsigned count,
                            uint16_t size)
{
    struct send *s = n->sends;
    while (s->op.in_flight)
        s++;
    assert_true(s < n->sends + SENDS && (size_t)count * size <= sizeof s->bytes);
    for (unsigned i = 0; i < count; i++)
        fill(s->bytes + (size_t)i * size, size, n->next++);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, to, &at.sin_addr), 1);
    io_prepare_datagram_send(&s->op, h->fd, s->bytes, count * size, count > 1 ? size : 0,
                             (struct sockaddr *)&at, sizeof at, send_over);
    io_queue(h->loop.io, &s->op);
    return s;
}

static void run_for(struct net *n, uint64_t ns)
{
    assert_int_equal(sim_run_for(n->sim, ns), SIM_TIME);
}

/* Sends `count` datagrams one at a time, a millisecond apart, from a to b. */
static void send_many(struct net *n, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        send_to(n, &n->a, B, PORT, 1, 1000);
        run_for(n, NS_PER_MS);
    }
    run_for(n, NS_PER_S);
}

/* ---- The tests ---- */

static uint64_t trace_of(uint64_t seed, unsigned *count)
{
    struct net *n = open_net(seed);
    struct sim_faults faults = {
        .batch_max = 3, .buffer_bytes = 4096, .no_buffers = 100, .multishot_end = 100};
    sim_set_datagram_faults(n->sim, &(struct sim_datagram_faults){.no_coalescing = 300});
    sim_set_faults(n->sim, &faults);
    set_path(n, NULL, NULL,
             (struct sim_path){.latency_max_ns = 5 * NS_PER_MS,
                               .reorder_ns = NS_PER_MS,
                               .loss = 100,
                               .duplicate = 100,
                               .reorder = 100,
                               .corrupt = 100,
                               .bytes_s = 1000000,
                               .queue_bytes = 20000});
    for (unsigned i = 0; i < 20; i++) {
        send_to(n, &n->a, B, PORT, 10, 1200);
        send_to(n, &n->b, A, PORT, 3, 500);
        run_for(n, 10 * NS_PER_MS);
    }
    uint64_t trace = sim_trace(n->sim);
    *count = n->b.count;
    close_net(n);
    return trace;
}

static void the_same_seed_is_the_same_run_and_another_is_not(void **state)
{
    (void)state;
    unsigned first, again, other;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        assert_true(trace_of(seed, &first) == trace_of(seed, &again));
        assert_int_equal(first, again);
        assert_true(trace_of(seed, &first) != trace_of(seed + 100, &other));
    }
}

static void a_clean_path_delivers_all_in_order_and_in_time(void **state)
{
    (void)state;
    struct net *n = open_net(1);
    send_many(n, 500);
    assert_int_equal(n->b.count, 500);
    for (unsigned i = 0; i < 500; i++) {
        assert_int_equal(n->b.log[i].number, i);
        assert_true(n->b.log[i].intact);
        assert_int_equal(n->b.log[i].port, PORT);
        uint64_t sent_ns = SIM_START_NS + i * NS_PER_MS;
        assert_in_range(n->b.log[i].at_ns - sent_ns, 50 * NS_PER_US, 201 * NS_PER_US);
    }
    close_net(n);
}

static void loss_loses_about_as_many_as_it_says(void **state)
{
    (void)state;
    struct net *n = open_net(2);
    set_path(n, A, B, (struct sim_path){.loss = 300});
    send_many(n, 1000);
    assert_in_range(n->b.count, 650, 750);
    close_net(n);
}

static void duplicates_come_twice(void **state)
{
    (void)state;
    struct net *n = open_net(3);
    set_path(n, A, B, (struct sim_path){.duplicate = 200});
    send_many(n, 1000);
    assert_in_range(n->b.count, 1150, 1250);
    close_net(n);
}

static void reordered_ones_are_overtaken_by_no_more_than_their_time(void **state)
{
    (void)state;
    struct net *n = open_net(4);
    set_path(n, A, B, (struct sim_path){.reorder = 200, .reorder_ns = 10 * NS_PER_MS});
    send_many(n, 1000);
    assert_int_equal(n->b.count, 1000);
    unsigned back = 0;
    for (unsigned i = 1; i < 1000; i++) {
        uint32_t before = n->b.log[i - 1].number, number = n->b.log[i].number;
        back += number < before;
        assert_true(number + 11 > before);
    }
    assert_in_range(back, 100, 250);
    close_net(n);
}

static void corrupted_ones_come_with_other_bytes(void **state)
{
    (void)state;
    struct net *n = open_net(5);
    set_path(n, A, B, (struct sim_path){.corrupt = 200});
    send_many(n, 1000);
    unsigned damaged = 0;
    for (unsigned i = 0; i < n->b.count; i++)
        damaged += !n->b.log[i].intact;
    assert_int_equal(n->b.count, 1000);
    assert_in_range(damaged, 150, 250);
    close_net(n);
}

/* 1028 bytes each on the wire, a queue for ten of them, a thousandth of a second for each. */
static void a_rate_delays_and_a_full_queue_drops(void **state)
{
    (void)state;
    struct net *n = open_net(6);
    set_path(n, A, B, (struct sim_path){.bytes_s = 1028000, .queue_bytes = 10280});
    send_to(n, &n->a, B, PORT, 30, 1000);
    run_for(n, NS_PER_S);
    assert_int_equal(n->b.count, 10);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(n->b.log[i].number, i);
        assert_in_range(n->b.log[i].at_ns - SIM_START_NS, (i + 1) * NS_PER_MS, (i + 1) * NS_PER_MS + 1000);
    }
    close_net(n);
}

static void an_mtu_is_told_or_swallows_in_silence(void **state)
{
    (void)state;
    struct net *n = open_net(7);
    set_path(n, A, B, (struct sim_path){.mtu = 1028});
    struct send *fits = send_to(n, &n->a, B, PORT, 1, 1000), *large = send_to(n, &n->a, B, PORT, 1, 1001);
    run_for(n, NS_PER_S);
    assert_int_equal(fits->result, 1000);
    assert_int_equal(large->result, 1001);
    assert_int_equal(n->b.count, 1);
    set_path(n, A, B, (struct sim_path){.mtu = 1028, .mtu_told = true});
    large = send_to(n, &n->a, B, PORT, 1, 1001);
    struct send *segments = send_to(n, &n->a, B, PORT, 5, 1001);
    run_for(n, NS_PER_S);
    assert_int_equal(large->result, -EMSGSIZE);
    assert_int_equal(segments->result, -EINVAL);
    assert_int_equal(n->b.count, 1);
    close_net(n);
}

static void one_direction_can_fail(void **state)
{
    (void)state;
    struct net *n = open_net(8);
    set_path(n, A, B, (struct sim_path){.black_hole = true});
    send_to(n, &n->a, B, PORT, 1, 100);
    send_to(n, &n->b, A, PORT, 1, 100);
    run_for(n, NS_PER_S);
    assert_int_equal(n->b.count, 0);
    assert_int_equal(n->a.count, 1);
    close_net(n);
}

static void a_silent_host_neither_sends_nor_gets(void **state)
{
    (void)state;
    struct net *n = open_net(9);
    sim_silence_host(n->sim, B, true);
    send_to(n, &n->a, B, PORT, 1, 100);
    send_to(n, &n->b, A, PORT, 1, 100);
    run_for(n, NS_PER_S);
    assert_int_equal(n->a.count + n->b.count, 0);
    sim_silence_host(n->sim, B, false);
    send_to(n, &n->a, B, PORT, 1, 100);
    run_for(n, NS_PER_S);
    assert_int_equal(n->b.count, 1);
    close_net(n);
}

static void a_batch_is_cut_and_put_together_again(void **state)
{
    (void)state;
    struct net *n = open_net(10);
    set_path(n, A, B, (struct sim_path){.latency_min_ns = 1000, .latency_max_ns = 1000});
    struct send *s = send_to(n, &n->a, B, PORT, 40, 1400);
    run_for(n, NS_PER_S);
    assert_int_equal(s->result, 56000);
    assert_int_equal(n->b.count, 40);
    assert_int_equal(n->b.runs, 1);
    for (unsigned i = 0; i < 40; i++)
        assert_true(n->b.log[i].intact && n->b.log[i].number == i);
    close_net(n);
}

/* Delays differ by more than the time between them. */
static void an_uneven_path_keeps_the_order(void **state)
{
    (void)state;
    struct net *n = open_net(18);
    set_path(n, A, B, (struct sim_path){.latency_max_ns = 50 * NS_PER_MS});
    for (unsigned i = 0; i < 20; i++) {
        send_to(n, &n->a, B, PORT, 10, 1000);
        run_for(n, NS_PER_MS);
    }
    run_for(n, NS_PER_S);
    assert_int_equal(n->b.count, 200);
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(n->b.log[i].number, i);
    close_net(n);
}

/* A shorter one ends a run, a longer one begins the next. */
static void datagrams_of_different_sizes_keep_their_bounds(void **state)
{
    (void)state;
    const uint16_t sizes[] = {100, 100, 200, 200, 50, 200, 1, 300};
    struct net *n = open_net(19);
    io_cancel(n->b.loop.io, &n->b.receive);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        send_to(n, &n->a, B, PORT, 1, sizes[i]);
        run_for(n, NS_PER_MS);
    }
    arm(&n->b);
    run_for(n, NS_PER_S);
    assert_int_equal(n->b.count, ARRAY_SIZE(sizes));
    assert_int_equal(n->b.runs, 4);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        assert_int_equal(n->b.log[i].size, sizes[i]);
    close_net(n);
}

static void segmentation_can_be_refused_at_any_time(void **state)
{
    (void)state;
    struct net *n = open_net(11);
    const int errors[] = {-EIO, -EINVAL};
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        sim_refuse_segmentation(n->sim, A, errors[i]);
        struct send *batch = send_to(n, &n->a, B, PORT, 10, 1000), *one = send_to(n, &n->a, B, PORT, 1, 1000);
        run_for(n, NS_PER_S);
        assert_int_equal(batch->result, errors[i]);
        assert_int_equal(one->result, 1000);
    }
    assert_int_equal(n->b.count, 2);
    sim_refuse_segmentation(n->sim, A, 0);
    send_to(n, &n->a, B, PORT, 10, 1000);
    run_for(n, NS_PER_S);
    assert_int_equal(n->b.count, 12);
    close_net(n);
}

/* 212992 bytes, as Linux gives; what does not fit is lost. */
static void a_buffer_that_nobody_reads_overflows(void **state)
{
    (void)state;
    struct net *n = open_net(12);
    io_cancel(n->b.loop.io, &n->b.receive);
    run_for(n, NS_PER_MS);
    for (unsigned i = 0; i < 20; i++)
        send_to(n, &n->a, B, PORT, 40, 1400);
    run_for(n, NS_PER_S);
    arm(&n->b);
    run_for(n, NS_PER_S);
    assert_int_equal(n->b.count, 212992 / (1400 + 256));
    close_net(n);
}

static void a_reboot_forgets_what_was_not_read(void **state)
{
    (void)state;
    struct net *n = open_net(13);
    io_cancel(n->b.loop.io, &n->b.receive);
    send_to(n, &n->a, B, PORT, 5, 100);
    run_for(n, NS_PER_S);
    sim_reboot_host(n->sim, B);
    arm(&n->b);
    send_to(n, &n->a, B, PORT, 1, 100);
    run_for(n, NS_PER_S);
    assert_int_equal(n->b.count, 1);
    assert_int_equal(n->b.log[0].number, 5);
    close_net(n);
}

/* ---- NATs: a behind 192.0.2.1 ---- */

static uint16_t port_seen(struct net *n)
{
    unsigned before = n->b.count;
    send_to(n, &n->a, B, PORT, 1, 100);
    run_for(n, NS_PER_S);
    return n->b.count > before ? n->b.log[n->b.count - 1].port : 0;
}

static bool answered_at(struct net *n, uint16_t port)
{
    unsigned before = n->a.count;
    send_to(n, &n->b, "192.0.2.1", port, 1, 100);
    run_for(n, NS_PER_S);
    return n->a.count > before;
}

static void a_nat_hides_a_host_and_lets_answers_in(void **state)
{
    (void)state;
    struct net *n = open_net(14);
    sim_set_nat(n->sim, A, "192.0.2.1");
    assert_false(answered_at(n, 20000)); /* nobody was asked */
    uint16_t port = port_seen(n);
    assert_true(port != 0 && port != PORT);
    assert_int_equal(port_seen(n), port);
    assert_true(answered_at(n, port));
    sim_inject(n->sim, "10.0.0.3:9", "192.0.2.1:20000", "x", 1); /* a stranger */
    run_for(n, NS_PER_S);
    assert_int_equal(n->a.count, 1);
    close_net(n);
}

static void a_nat_rebinds(void **state)
{
    (void)state;
    struct net *n = open_net(15);
    sim_set_nat(n->sim, A, "192.0.2.1");
    uint16_t port = port_seen(n);
    sim_rebind_nat(n->sim, A);
    assert_false(answered_at(n, port));
    uint16_t other = port_seen(n);
    assert_true(other != 0 && other != port);
    assert_true(answered_at(n, other));
    assert_false(answered_at(n, port));
    close_net(n);
}

static void a_dead_nat_entry_is_escaped_by_a_new_source_port_only(void **state)
{
    (void)state;
    struct net *n = open_net(16);
    sim_set_nat(n->sim, A, "192.0.2.1");
    uint16_t port = port_seen(n);
    sim_kill_nat_entries(n->sim, A);
    assert_int_equal(port_seen(n), 0);
    assert_false(answered_at(n, port));
    io_cancel(n->a.loop.io, &n->a.receive);
    run_for(n, NS_PER_MS);
    n->a.fd = open_at(&n->a, 0);
    arm(&n->a);
    uint16_t other = port_seen(n);
    assert_true(other != 0);
    assert_true(answered_at(n, other));
    close_net(n);
}

/* ---- Attackers ---- */

struct captured {
    struct sockaddr_storage from, to;
    uint8_t bytes[100];
    unsigned count;
};

static void capture(void *context, const struct sockaddr_storage *from, const struct sockaddr_storage *to,
                    struct span bytes)
{
    struct captured *c = context;
    c->from = *from;
    c->to = *to;
    memcpy(c->bytes, bytes.data, min_size(bytes.size, sizeof c->bytes));
    c->count++;
}

static void what_was_sent_can_be_seen_and_put_on_the_path_again(void **state)
{
    (void)state;
    struct net *n = open_net(17);
    struct captured c = {.count = 0};
    sim_set_tap(n->sim, capture, &c);
    set_path(n, A, B, (struct sim_path){.loss = 1000});
    send_to(n, &n->a, B, PORT, 3, 100);
    run_for(n, NS_PER_S);
    assert_int_equal(c.count, 3);
    assert_int_equal(n->b.count, 0);
    set_path(n, A, B, sim_path_default);
    sim_replay(n->sim, &c.from, &c.to, span_of(c.bytes, sizeof c.bytes));
    run_for(n, NS_PER_S);
    assert_int_equal(n->b.count, 1);
    assert_true(n->b.log[0].intact);
    assert_int_equal(n->b.log[0].number, 2);
    assert_int_equal(n->b.log[0].port, PORT);
    close_net(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_is_the_same_run_and_another_is_not),
        cmocka_unit_test(a_clean_path_delivers_all_in_order_and_in_time),
        cmocka_unit_test(loss_loses_about_as_many_as_it_says),
        cmocka_unit_test(duplicates_come_twice),
        cmocka_unit_test(reordered_ones_are_overtaken_by_no_more_than_their_time),
        cmocka_unit_test(corrupted_ones_come_with_other_bytes),
        cmocka_unit_test(a_rate_delays_and_a_full_queue_drops),
        cmocka_unit_test(an_mtu_is_told_or_swallows_in_silence),
        cmocka_unit_test(one_direction_can_fail),
        cmocka_unit_test(a_silent_host_neither_sends_nor_gets),
        cmocka_unit_test(a_batch_is_cut_and_put_together_again),
        cmocka_unit_test(an_uneven_path_keeps_the_order),
        cmocka_unit_test(datagrams_of_different_sizes_keep_their_bounds),
        cmocka_unit_test(segmentation_can_be_refused_at_any_time),
        cmocka_unit_test(a_buffer_that_nobody_reads_overflows),
        cmocka_unit_test(a_reboot_forgets_what_was_not_read),
        cmocka_unit_test(a_nat_hides_a_host_and_lets_answers_in),
        cmocka_unit_test(a_nat_rebinds),
        cmocka_unit_test(a_dead_nat_entry_is_escaped_by_a_new_source_port_only),
        cmocka_unit_test(what_was_sent_can_be_seen_and_put_on_the_path_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
