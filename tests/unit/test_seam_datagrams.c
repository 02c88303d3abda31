/* What the seam promises of datagrams, asked of all three back ends.
 *
 *     one io:  client socket (a port of its own) ---- loopback ----> server socket, IO_DATAGRAM_RECV
 *
 * A socket's buffer that is full drops, on every back end, so that tests send no more at a time than fits. */
#include "tests/unit/seam_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <sys/wait.h>

#define SEGMENT 1400
#define BATCH   40

/* The receive of the server and what it gave. */
struct receiver {
    struct io_op op;
    struct io *io;
    unsigned completions, datagrams, ends; /* ends: last completions that were no cancel */
    unsigned no_buffers;
    bool stopped;
    int result;
    uint32_t largest, last_size; /* bytes of a completion; of the last datagram */
    uint16_t segment;            /* of the last completion */
    bool truncated;
    uint64_t bytes, sum; /* sum of all bytes, each with its place in its datagram */
    struct sockaddr_storage source;
    socklen_t source_len;
};

static uint8_t block[IO_DATAGRAM_BYTES + 10000];

static uint64_t sum_of(const uint8_t *bytes, size_t size)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += (uint64_t)bytes[i] * (i + 1);
    return sum;
}

static void take_run(struct receiver *r, const struct io_op *op)
{
    assert_int_equal(op->size, r->result);
    assert_true(op->size == 0 || op->datagram.segment > 0);
    r->segment = op->datagram.segment;
    r->truncated = op->datagram.truncated;
    r->source = op->datagram.address;
    r->source_len = op->datagram.address_len;
    r->bytes += op->size;
    r->largest = op->size > r->largest ? op->size : r->largest;
    r->datagrams += op->size == 0;
    for (uint32_t at = 0; at < op->size; at += op->datagram.segment) {
        r->last_size = (uint32_t)min_size(op->datagram.segment, op->size - at);
        r->sum += sum_of(op->data + at, r->last_size);
        r->datagrams++;
    }
}

static void received(struct io_op *op, int result, bool more)
{
    struct receiver *r = container_of(op, struct receiver, op);
    assert_false(r->stopped);
    r->result = result;
    r->completions++;
    if (result >= 0)
        take_run(r, op);
    r->no_buffers += result == -ENOBUFS;
    if (more)
        return;
    r->stopped = result < 0 && result != -ENOBUFS;
    r->ends++;
    if (!r->stopped)
        io_queue(r->io, op);
}

struct sender {
    struct io_op op;
    int result;
    unsigned order;
    bool over;
};

static unsigned sent; /* sends that ended, in all tests */

static void send_over(struct io_op *op, int result, bool more)
{
    struct sender *s = container_of(op, struct sender, op);
    assert_false(more);
    s->result = result;
    s->order = ++sent;
    s->over = true;
}

static int open_socket(struct world *w, uint16_t port, uint32_t receive_bytes)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct io_datagram_options options = {.receive_bytes = receive_bytes, .send_bytes = receive_bytes};
    int fd = io_datagram_socket(w->io, (struct sockaddr *)&at, sizeof at, &options);
    assert_true(fd >= 0);
    return fd;
}

static void open_pair_with(struct world *w, enum back_end back_end, unsigned buffers, uint32_t buffer_bytes)
{
    open_world_with(w, back_end, buffers, buffer_bytes);
    if (w->sim) {
        struct sim_path loopback = sim_path_default;
        loopback.mtu = 65536;
        loopback.mtu_told = true;
        sim_set_path(w->sim, NULL, NULL, &loopback);
        sim_set_faults(
            w->sim,
            &(struct sim_faults){.batch_max = 64, .buffer_bytes = 4096, .no_buffers = buffers > 0 ? 200 : 0});
        sim_set_datagram_faults(w->sim, &(struct sim_datagram_faults){.buffer_bytes = buffer_bytes});
    }
    w->server = open_socket(w, w->sim ? 7070 : 0, 1 << 20);
    w->client = open_socket(w, 0, 1 << 20);
    w->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(7070)};
    w->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof w->address;
    if (!w->sim)
        assert_int_equal(getsockname(w->server, (struct sockaddr *)&w->address, &len), 0);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(i * 7 + i / 251);
}

static void open_pair(struct world *w, void **state)
{
    open_pair_with(w, back_end_of(state), 0, 0);
}

static void arm(struct world *w, struct receiver *r)
{
    *r = (struct receiver){.io = w->io};
    io_prepare_datagram_receive(&r->op, w->server, received);
    io_queue(w->io, &r->op);
}

static void disarm(struct world *w, struct receiver *r)
{
    io_cancel(w->io, &r->op);
    wait_until(w, &r->stopped);
    assert_int_equal(r->result, -ECANCELED);
}

static void submit(struct world *w, struct sender *s, uint32_t size, uint16_t segment)
{
    *s = (struct sender){0};
    io_prepare_datagram_send(&s->op, w->client, block, size, segment, (struct sockaddr *)&w->address,
                             sizeof w->address, send_over);
    io_queue(w->io, &s->op);
}

static int send_block(struct world *w, uint32_t size, uint16_t segment)
{
    struct sender s;
    submit(w, &s, size, segment);
    wait_until(w, &s.over);
    return s.result;
}

static void wait_for_datagrams(struct world *w, const struct receiver *r, unsigned count)
{
    for (unsigned i = 0; i < WAITS_MAX && r->datagrams < count; i++)
        wait_once(w);
    assert_int_equal(r->datagrams, count);
}

static void close_fd(struct world *w, int fd)
{
    struct sender s = {0};
    io_prepare(&s.op, IO_CLOSE, fd, send_over);
    io_queue(w->io, &s.op);
    wait_until(w, &s.over);
    assert_int_equal(s.result, 0);
}

static void close_pair(struct world *w)
{
    close_fd(w, w->client);
    close_fd(w, w->server);
    if (w->sim)
        sim_free(w->sim);
    else
        io_dispose(w->io);
}

/* ---- The tests ---- */

static void a_datagram_arrives_whole_and_says_whence(void **state)
{
    struct world w;
    struct receiver r;
    open_pair(&w, state);
    arm(&w, &r);
    assert_int_equal(send_block(&w, 100, 0), 100);
    wait_for_datagrams(&w, &r, 1);
    assert_int_equal(r.last_size, 100);
    assert_int_equal(r.segment, 100);
    assert_int_equal(r.sum, sum_of(block, 100));
    assert_false(r.truncated);
    assert_int_equal(r.source.ss_family, AF_INET);
    assert_int_equal(r.source_len, sizeof(struct sockaddr_in));
    const struct sockaddr_in *source = (const struct sockaddr_in *)&r.source;
    assert_int_equal(source->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    if (!w.sim) {
        struct sockaddr_in client;
        socklen_t len = sizeof client;
        assert_int_equal(getsockname(w.client, (struct sockaddr *)&client, &len), 0);
        assert_int_equal(source->sin_port, client.sin_port);
    }
    disarm(&w, &r);
    close_pair(&w);
}

/* Loopback passes a batch on as it is; the simulated world puts it together again. */
static void a_segmented_batch_arrives_as_one_run(void **state)
{
    struct world w;
    struct receiver r;
    open_pair(&w, state);
    uint32_t size = SEGMENT * (BATCH - 1) + 17;
    assert_int_equal(send_block(&w, size, SEGMENT), size);
    for (unsigned i = 0; w.sim && i < 100; i++)
        wait_once(&w); /* one jump of the clock each, to the next arrival */
    arm(&w, &r);
    wait_for_datagrams(&w, &r, BATCH);
    assert_int_equal(r.segment, SEGMENT);
    assert_int_equal(r.last_size, 17);
    assert_int_equal(r.largest, size);
    assert_int_equal(r.completions, 1);
    uint64_t sum = 0;
    for (uint32_t at = 0; at < size; at += SEGMENT)
        sum += sum_of(block + at, min_size(SEGMENT, size - at));
    assert_int_equal(r.sum, sum);
    disarm(&w, &r);
    close_pair(&w);
}

/* A size that one datagram is enough for is sent as one. */
static void a_segment_size_that_is_not_reached_changes_nothing(void **state)
{
    struct world w;
    struct receiver r;
    open_pair(&w, state);
    arm(&w, &r);
    assert_int_equal(send_block(&w, SEGMENT, SEGMENT), SEGMENT);
    assert_int_equal(send_block(&w, 300, SEGMENT), 300);
    wait_for_datagrams(&w, &r, 2);
    disarm(&w, &r);
    close_pair(&w);
}

static void a_refused_segmentation_is_a_result_and_the_datagrams_go_singly(void **state)
{
    struct world w;
    struct receiver r;
    open_pair(&w, state);
    arm(&w, &r);
    assert_int_equal(send_block(&w, 1000, 1), -EINVAL); /* a thousand segments */
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(send_block(&w, 100, 0), 100);
    wait_for_datagrams(&w, &r, 10);
    disarm(&w, &r);
    close_pair(&w);
}

/* A network of this process's own, whose loopback has the MTU of an Ethernet. False: not allowed here. */
static bool enter_small_network(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 && unshare(CLONE_NEWNET) < 0)
        return false;
    struct ifreq mtu = {.ifr_name = "lo", .ifr_mtu = 1500}, up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool set = fd >= 0 && ioctl(fd, SIOCSIFMTU, &mtu) == 0 && ioctl(fd, SIOCSIFFLAGS, &up) == 0;
    close(fd);
    return set;
}

static void exceed_mtu(void **state)
{
    struct world w;
    struct receiver r;
    open_pair(&w, state);
    if (w.sim) {
        struct sim_path ethernet = sim_path_default;
        ethernet.mtu_told = true;
        sim_set_path(w.sim, NULL, NULL, &ethernet);
    }
    arm(&w, &r);
    assert_int_equal(send_block(&w, 1473, 0), -EMSGSIZE);
    int result = send_block(&w, 10 * 1473, 1473); /* later kernels say what is wrong */
    assert_true(result == -EINVAL || result == -EMSGSIZE);
    assert_int_equal(send_block(&w, 10 * 1472, 1472), 10 * 1472);
    wait_for_datagrams(&w, &r, 10);
    disarm(&w, &r);
    close_pair(&w);
}

static void datagrams_larger_than_the_mtu_are_refused_and_never_fragmented(void **state)
{
    enum { NOT_ALLOWED = 77 };
    int status;
    if (back_end_of(state) == SIMULATED) {
        exceed_mtu(state);
        return;
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!enter_small_network())
            _exit(NOT_ALLOWED);
        exceed_mtu(state);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_ALLOWED)
        skip();
    assert_int_equal(status, 0);
}

static void a_datagram_that_is_too_large_is_refused(void **state)
{
    struct world w;
    struct receiver r;
    open_pair(&w, state);
    arm(&w, &r);
    assert_int_equal(send_block(&w, IO_DATAGRAM_BYTES + 1, 0), -EMSGSIZE);
    assert_int_equal(send_block(&w, IO_DATAGRAM_BYTES + 1, 1400), -EMSGSIZE);
    assert_int_equal(send_block(&w, IO_DATAGRAM_BYTES, 0), IO_DATAGRAM_BYTES); /* and the largest is not */
    wait_for_datagrams(&w, &r, 1);
    assert_int_equal(r.last_size, IO_DATAGRAM_BYTES);
    assert_int_equal(r.sum, sum_of(block, IO_DATAGRAM_BYTES));
    assert_false(r.truncated);
    disarm(&w, &r);
    close_pair(&w);
}

/* Nothing came back but ICMP, which is no concern of an unconnected socket. */
static void a_port_that_nobody_has_harms_neither_sends_nor_receives(void **state)
{
    struct world w;
    struct receiver r;
    open_pair(&w, state);
    struct sockaddr_in server = w.address;
    int other = open_socket(&w, w.sim ? 7071 : 0, 0);
    w.address.sin_port = htons(7071);
    socklen_t len = sizeof w.address;
    if (!w.sim)
        assert_int_equal(getsockname(other, (struct sockaddr *)&w.address, &len), 0);
    close_fd(&w, other);
    arm(&w, &r);
    r.op.fd = w.server;
    int client = w.client;
    w.client = w.server; /* the one that receives sends, too */
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(send_block(&w, 100, 0), 100);
        wait_a_little(&w);
    }
    w.client = client;
    w.address = server;
    assert_false(r.stopped);
    assert_int_equal(send_block(&w, 100, 0), 100);
    wait_for_datagrams(&w, &r, 1);
    disarm(&w, &r);
    close_pair(&w);
}

static void an_empty_datagram_is_one_and_receiving_goes_on(void **state)
{
    struct world w;
    struct receiver r;
    open_pair(&w, state);
    arm(&w, &r);
    assert_int_equal(send_block(&w, 0, 0), 0);
    wait_for_datagrams(&w, &r, 1);
    assert_int_equal(r.bytes, 0);
    assert_int_equal(send_block(&w, 5, 0), 5);
    wait_for_datagrams(&w, &r, 2);
    disarm(&w, &r);
    close_pair(&w);
}

static void a_datagram_larger_than_the_buffer_is_flagged(void **state)
{
    struct world w;
    struct receiver r;
    uint32_t head = back_end_of(state) == URING ? URING_DATAGRAM_HEAD : 0;
    open_pair_with(&w, back_end_of(state), 4, head + 200);
    arm(&w, &r);
    assert_int_equal(send_block(&w, 201, 0), 201);
    wait_for_datagrams(&w, &r, 1);
    assert_true(r.truncated);
    assert_int_equal(r.last_size, 200);
    assert_int_equal(r.sum, sum_of(block, 200));
    assert_int_equal(send_block(&w, 200, 0), 200);
    wait_for_datagrams(&w, &r, 2);
    assert_false(r.truncated);
    disarm(&w, &r);
    close_pair(&w);
}

/* Two buffers for bursts of sixty: the receive ends for want of them again and again, and nothing is lost. */
static void thousands_arrive_though_buffers_run_out(void **state)
{
    struct world w;
    struct receiver r;
    struct sender senders[60];
    open_pair_with(&w, back_end_of(state), 2, 8192);
    arm(&w, &r);
    uint64_t sum = 0;
    unsigned count = 0;
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < ARRAY_SIZE(senders); i++) {
            uint32_t size = 1 + (round * 31 + i * 17) % 1400;
            submit(&w, &senders[i], size, 0);
            sum += sum_of(block, size);
        }
        count += ARRAY_SIZE(senders);
        wait_for_datagrams(&w, &r, count);
    }
    assert_int_equal(r.sum, sum);
    if (w.back_end != EPOLL) /* which has one buffer, always free */
        assert_true(r.no_buffers > 0 && counter_read(&w.io->counters.no_buffers) == r.no_buffers);
    disarm(&w, &r);
    close_pair(&w);
}

static void many_sends_of_a_socket_are_in_flight_and_leave_in_order(void **state)
{
    struct world w;
    struct receiver r;
    struct sender senders[32];
    open_pair(&w, state);
    arm(&w, &r);
    for (unsigned i = 0; i < ARRAY_SIZE(senders); i++)
        submit(&w, &senders[i], 100 + i, 0);
    wait_for_datagrams(&w, &r, ARRAY_SIZE(senders));
    for (unsigned i = 0; i < ARRAY_SIZE(senders); i++) {
        wait_until(&w, &senders[i].over);
        assert_int_equal(senders[i].result, 100 + i);
        if (i > 0)
            assert_true(senders[i].order > senders[i - 1].order);
    }
    assert_int_equal(r.last_size, 100 + ARRAY_SIZE(senders) - 1);
    disarm(&w, &r);
    close_pair(&w);
}

static void a_receive_of_datagrams_is_cancelled_and_armed_again(void **state)
{
    struct world w;
    struct receiver r;
    open_pair(&w, state);
    arm(&w, &r);
    disarm(&w, &r); /* in the batch it was queued in */
    arm(&w, &r);
    wait_a_little(&w);
    disarm(&w, &r);
    assert_int_equal(r.completions, 1);
    send_block(&w, 10, 0); /* kept by the socket meanwhile */
    arm(&w, &r);
    wait_for_datagrams(&w, &r, 1);
    disarm(&w, &r);
    close_pair(&w);
}

/* An ordinary completion does not end it where nothing is amiss. */
static void one_receive_takes_many_datagrams(void **state)
{
    struct world w;
    struct receiver r;
    open_pair(&w, state);
    arm(&w, &r);
    for (unsigned i = 1; i <= 20; i++) {
        assert_int_equal(send_block(&w, 1000, 0), 1000);
        wait_for_datagrams(&w, &r, i);
    }
    assert_int_equal(r.ends, 0);
    disarm(&w, &r);
    close_pair(&w);
}

static void an_address_is_bound_once(void **state)
{
    struct world w;
    open_pair(&w, state);
    int again = io_datagram_socket(w.io, (struct sockaddr *)&w.address, sizeof w.address, NULL);
    assert_int_equal(again, -EADDRINUSE);
    close_pair(&w);
}

static void ipv6_works_alike(void **state)
{
    struct world w;
    struct receiver r;
    struct sender s = {0};
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    socklen_t len = sizeof at;
    open_world(&w, back_end_of(state));
    if (w.sim) {
        io_dispose(w.io); /* of a host with an IPv4 address */
        w.io = sim_io(w.sim, "::1");
        at.sin6_port = htons(7070);
    }
    w.server = io_datagram_socket(w.io, (struct sockaddr *)&at, sizeof at, NULL);
    if (w.server == -EADDRNOTAVAIL || w.server == -EAFNOSUPPORT) { /* a machine without IPv6 */
        io_dispose(w.io);
        skip();
    }
    assert_true(w.server >= 0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    w.client = io_datagram_socket(w.io, (struct sockaddr *)&any, sizeof any, NULL);
    assert_true(w.client >= 0);
    if (!w.sim)
        assert_int_equal(getsockname(w.server, (struct sockaddr *)&at, &len), 0);
    arm(&w, &r);
    io_prepare_datagram_send(&s.op, w.client, block, 3000, 1000, (struct sockaddr *)&at, sizeof at,
                             send_over);
    io_queue(w.io, &s.op);
    wait_until(&w, &s.over);
    assert_int_equal(s.result, 3000);
    wait_for_datagrams(&w, &r, 3);
    assert_int_equal(r.source.ss_family, AF_INET6);
    assert_int_equal(r.source_len, sizeof at);
    disarm(&w, &r);
    close_pair(&w);
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static void sockets_never_fragment_and_ignore_what_is_known_of_the_path(void **state)
{
    struct world w;
    open_pair(&w, state);
    if (!w.sim) {
        assert_int_equal(option_of(w.client, IPPROTO_IP, IP_MTU_DISCOVER), IP_PMTUDISC_PROBE);
        assert_int_equal(option_of(w.client, IPPROTO_UDP, UDP_GRO), 1);
        assert_true(option_of(w.client, SOL_SOCKET, SO_RCVBUF) > 0);
    }
    close_pair(&w);
}

/* Datagrams of AF_UNIX stay in the sender's buffer until they are received, so that it is full after a few,
 * as a slow device's is: on loopback UDP leaves it at once. The simulated world has room always. */
static void open_unix_pair(struct world *w, enum back_end back_end, struct sockaddr_un *server,
                           socklen_t *len)
{
    int least = 1;
    open_world(w, back_end);
    w->server = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    w->client = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(w->server >= 0 && w->client >= 0);
    *server = (struct sockaddr_un){.sun_family = AF_UNIX};
    assert_int_equal(bind(w->server, (struct sockaddr *)server, sizeof server->sun_family), 0);
    *len = sizeof *server;
    assert_int_equal(getsockname(w->server, (struct sockaddr *)server, len), 0);
    assert_int_equal(setsockopt(w->client, SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
}

static void sends_that_find_no_room_wait_can_be_cancelled_and_leave_later(void **state)
{
    enum { SENDS = 20, CANCELLED = 17 };
    struct world w;
    struct receiver r;
    struct sender senders[SENDS];
    struct sockaddr_un server;
    socklen_t len;
    if (back_end_of(state) == SIMULATED)
        return;
    open_unix_pair(&w, back_end_of(state), &server, &len);
    for (unsigned i = 0; i < SENDS; i++) {
        senders[i] = (struct sender){0};
        io_prepare_datagram_send(&senders[i].op, w.client, block, 1000 + i, 0, (struct sockaddr *)&server,
                                 len, send_over);
        io_queue(w.io, &senders[i].op);
    }
    wait_a_little(&w);
    assert_true(senders[0].over);
    assert_false(senders[CANCELLED].over);
    io_cancel(w.io, &senders[CANCELLED].op);
    wait_until(&w, &senders[CANCELLED].over);
    assert_int_equal(senders[CANCELLED].result, -ECANCELED);
    arm(&w, &r);
    for (unsigned i = 0; i < SENDS; i++) {
        wait_until(&w, &senders[i].over);
        if (i != CANCELLED)
            assert_int_equal(senders[i].result, 1000 + i);
    }
    wait_for_datagrams(&w, &r, SENDS - 1);
    disarm(&w, &r);
    close_pair(&w);
}

static const struct CMUnitTest promises[] = {
    cmocka_unit_test(a_datagram_arrives_whole_and_says_whence),
    cmocka_unit_test(a_segmented_batch_arrives_as_one_run),
    cmocka_unit_test(a_segment_size_that_is_not_reached_changes_nothing),
    cmocka_unit_test(a_refused_segmentation_is_a_result_and_the_datagrams_go_singly),
    cmocka_unit_test(datagrams_larger_than_the_mtu_are_refused_and_never_fragmented),
    cmocka_unit_test(a_datagram_that_is_too_large_is_refused),
    cmocka_unit_test(a_port_that_nobody_has_harms_neither_sends_nor_receives),
    cmocka_unit_test(an_empty_datagram_is_one_and_receiving_goes_on),
    cmocka_unit_test(a_datagram_larger_than_the_buffer_is_flagged),
    cmocka_unit_test(thousands_arrive_though_buffers_run_out),
    cmocka_unit_test(many_sends_of_a_socket_are_in_flight_and_leave_in_order),
    cmocka_unit_test(a_receive_of_datagrams_is_cancelled_and_armed_again),
    cmocka_unit_test(one_receive_takes_many_datagrams),
    cmocka_unit_test(an_address_is_bound_once),
    cmocka_unit_test(ipv6_works_alike),
    cmocka_unit_test(sockets_never_fragment_and_ignore_what_is_known_of_the_path),
    cmocka_unit_test(sends_that_find_no_room_wait_can_be_cancelled_and_leave_later),
};

int main(void)
{
    return run_promises(promises, ARRAY_SIZE(promises));
}
