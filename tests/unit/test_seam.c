/* What the seam promises, asked of all three back ends; of datagrams: test_seam_datagrams.c. Each test runs
 * its io by hand.
 *
 *     one io:  listener --accept--> server end  <---->  client end <--connect-- socket */
#include "tests/unit/seam_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* One operation and what came of it. */
struct probe {
    struct io_op op;
    struct io *io;
    int result;          /* the last */
    unsigned results;    /* how many came */
    bool over;           /* the last completion was seen */
    uint8_t bytes[4096]; /* the first of them */
    size_t size;         /* received */
    unsigned order;      /* when it ended, among all probes */
    bool again;          /* arm it again when it ends though it could go on */
};

static unsigned ended; /* probes that ended, in all tests */

static void done(struct io_op *op, int result, bool more)
{
    struct probe *p = container_of(op, struct probe, op);
    assert_false(p->over);
    p->result = result;
    p->results++;
    if (op->kind == IO_RECV && result > 0) {
        for (size_t i = 0; i < (size_t)result && p->size + i < sizeof p->bytes; i++)
            p->bytes[p->size + i] = op->data[i];
        p->size += (size_t)result;
    }
    assert_int_equal(op->in_flight, more);
    if (more)
        return;
    if (p->again && (result > 0 || result == -ENOBUFS)) {
        io_queue(p->io, op);
        return;
    }
    p->over = true;
    p->order = ++ended;
}

static void prepare(struct world *w, struct probe *p, enum io_kind kind, int fd)
{
    *p = (struct probe){.io = w->io};
    io_prepare(&p->op, kind, fd, done);
}

static void submit(struct world *w, struct probe *p, enum io_kind kind, int fd)
{
    prepare(w, p, kind, fd);
    p->again = kind == IO_RECV;
    io_queue(w->io, &p->op);
}

static void submit_send(struct world *w, struct probe *p, int fd, const void *bytes, size_t size)
{
    struct iovec parts[2] = {{(void *)bytes, size / 2}, {(uint8_t *)bytes + size / 2, size - size / 2}};
    *p = (struct probe){.io = w->io};
    io_prepare_send(&p->op, fd, parts, 2, done);
    io_queue(w->io, &p->op);
}

static int run_close(struct world *w, int fd)
{
    struct probe p;
    submit(w, &p, IO_CLOSE, fd);
    wait_until(w, &p.over);
    return p.result;
}

static void close_world(struct world *w)
{
    const int fds[] = {w->client, w->server, w->listener};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        if (fds[i] >= 0)
            assert_int_equal(run_close(w, fds[i]), 0);
    }
    if (w->sim)
        sim_free(w->sim);
    else
        io_dispose(w->io);
}

/* The kernel chooses the port, the simulated world takes one of ours. */
static void listen_at(struct world *w)
{
    w->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (w->sim)
        w->address.sin_port = htons(7070);
    w->listener = io_listen(w->io, (struct sockaddr *)&w->address, sizeof w->address, 16);
    assert_true(w->listener >= 0);
    socklen_t len = sizeof w->address;
    if (!w->sim)
        assert_int_equal(getsockname(w->listener, (struct sockaddr *)&w->address, &len), 0);
}

static void submit_connect(struct world *w, struct probe *p)
{
    *p = (struct probe){.io = w->io};
    w->client = io_socket(w->io, AF_INET, NULL);
    assert_true(w->client >= 0);
    io_prepare_connect(&p->op, w->client, (struct sockaddr *)&w->address, sizeof w->address, done);
    io_queue(w->io, &p->op);
}

static void cancel(struct world *w, struct probe *p)
{
    io_cancel(w->io, &p->op);
    io_cancel(w->io, &p->op); /* idempotent */
    wait_until(w, &p->over);
    assert_int_equal(p->result, -ECANCELED);
    io_cancel(w->io, &p->op); /* not in flight: nothing */
}

/* Both ends of a connection, nothing in flight. */
static void connect_world(struct world *w, enum back_end back_end)
{
    struct probe accept, connect;
    open_world(w, back_end);
    listen_at(w);
    submit(w, &accept, IO_ACCEPT, w->listener);
    submit_connect(w, &connect);
    for (unsigned i = 0; i < WAITS_MAX && (!connect.over || accept.results == 0); i++)
        wait_once(w);
    assert_int_equal(connect.result, 0);
    assert_true(accept.result >= 0);
    w->server = accept.result;
    cancel(w, &accept);
}

/* ---- The tests ---- */

static void one_accept_takes_many_connections(void **state)
{
    struct world w;
    struct probe accept, connect;
    open_world(&w, back_end_of(state));
    listen_at(&w);
    submit(&w, &accept, IO_ACCEPT, w.listener);
    for (unsigned i = 1; i <= 10; i++) {
        submit_connect(&w, &connect);
        for (unsigned n = 0; n < WAITS_MAX && (!connect.over || accept.results < i); n++)
            wait_once(&w);
        assert_int_equal(accept.results, i);
        assert_false(accept.over);
        assert_int_equal(run_close(&w, accept.result), 0);
        assert_int_equal(run_close(&w, w.client), 0);
    }
    cancel(&w, &accept);
    w.client = -1;
    close_world(&w);
}

static void nobody_listening_refuses(void **state)
{
    struct world w;
    struct probe connect;
    open_world(&w, back_end_of(state));
    listen_at(&w);
    run_close(&w, w.listener);
    w.listener = -1;
    submit_connect(&w, &connect);
    wait_until(&w, &connect.over);
    assert_int_equal(connect.result, -ECONNREFUSED);
    close_world(&w);
}

static void bytes_arrive_whole_and_in_order_from_many_sends(void **state)
{
    struct world w;
    struct probe receive, send;
    uint8_t bytes[1000];
    connect_world(&w, back_end_of(state));
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 13);
    submit(&w, &receive, IO_RECV, w.server);
    for (size_t at = 0, size = 1; at < sizeof bytes; at += size, size += 7) {
        size = min_size(size, sizeof bytes - at);
        submit_send(&w, &send, w.client, bytes + at, size);
        wait_until(&w, &send.over);
        assert_int_equal(send.result, size);
    }
    for (unsigned i = 0; i < WAITS_MAX && receive.size < sizeof bytes; i++)
        wait_once(&w);
    assert_memory_equal(receive.bytes, bytes, sizeof bytes);
    assert_false(receive.over);
    cancel(&w, &receive);
    close_world(&w);
}

static void an_op_never_completes_from_inside_io_queue(void **state)
{
    struct world w;
    struct probe send;
    connect_world(&w, back_end_of(state));
    submit_send(&w, &send, w.client, "hello", 5);
    assert_int_equal(send.results, 0);
    assert_true(send.op.in_flight);
    wait_until(&w, &send.over);
    assert_false(send.op.in_flight);
    close_world(&w);
}

static void half_a_close_ends_one_direction(void **state)
{
    struct world w;
    struct probe receive, shutdown, back, answer;
    connect_world(&w, back_end_of(state));
    submit(&w, &receive, IO_RECV, w.server);
    submit(&w, &back, IO_RECV, w.client);
    submit(&w, &shutdown, IO_SHUTDOWN, w.client);
    wait_until(&w, &shutdown.over);
    assert_int_equal(shutdown.result, 0);
    wait_until(&w, &receive.over);
    assert_int_equal(receive.result, 0);
    assert_int_equal(receive.size, 0);
    submit_send(&w, &answer, w.server, "still here", 10);
    wait_until(&w, &answer.over);
    assert_int_equal(answer.result, 10);
    for (unsigned i = 0; i < WAITS_MAX && back.size < 10; i++)
        wait_once(&w);
    assert_false(back.over);
    cancel(&w, &back);
    close_world(&w);
}

static void the_end_comes_after_the_bytes(void **state)
{
    struct world w;
    struct probe receive, send;
    connect_world(&w, back_end_of(state));
    submit_send(&w, &send, w.client, "last words", 10);
    wait_until(&w, &send.over);
    assert_int_equal(run_close(&w, w.client), 0);
    w.client = -1;
    wait_a_little(&w);
    submit(&w, &receive, IO_RECV, w.server); /* armed when all is there already */
    wait_until(&w, &receive.over);
    assert_int_equal(receive.result, 0);
    assert_int_equal(receive.size, 10);
    close_world(&w);
}

static void bytes_that_came_before_the_receive_are_received(void **state)
{
    struct world w;
    struct probe receive, send;
    connect_world(&w, back_end_of(state));
    for (unsigned round = 1; round <= 3; round++) {
        submit_send(&w, &send, w.client, "early", 5);
        wait_until(&w, &send.over);
        wait_a_little(&w);
        submit(&w, &receive, IO_RECV, w.server);
        for (unsigned i = 0; i < WAITS_MAX && receive.size < 5; i++)
            wait_once(&w);
        cancel(&w, &receive);
        assert_int_equal(receive.size, 5);
    }
    close_world(&w);
}

static void a_receive_can_be_cancelled_and_armed_again(void **state)
{
    struct world w;
    struct probe receive, send;
    connect_world(&w, back_end_of(state));
    submit(&w, &receive, IO_RECV, w.server);
    wait_a_little(&w);
    assert_int_equal(receive.results, 0);
    cancel(&w, &receive);
    submit(&w, &receive, IO_RECV, w.server);
    submit_send(&w, &send, w.client, "x", 1);
    for (unsigned i = 0; i < WAITS_MAX && receive.size < 1; i++)
        wait_once(&w);
    cancel(&w, &receive);
    close_world(&w);
}

static void what_is_queued_and_cancelled_in_one_batch_ends(void **state)
{
    struct world w;
    struct probe receive;
    connect_world(&w, back_end_of(state));
    submit(&w, &receive, IO_RECV, w.server);
    cancel(&w, &receive);
    close_world(&w);
}

static void an_accept_can_be_cancelled(void **state)
{
    struct world w;
    struct probe accept;
    open_world(&w, back_end_of(state));
    listen_at(&w);
    submit(&w, &accept, IO_ACCEPT, w.listener);
    wait_a_little(&w);
    cancel(&w, &accept);
    assert_int_equal(accept.results, 1);
    close_world(&w);
}

/* A backlog that is full drops SYNs, on loopback, too: the connect hangs. */
static void a_connect_can_be_cancelled(void **state)
{
    struct world w;
    struct probe fill[4], connect = {0};
    int fds[ARRAY_SIZE(fill) + 1];
    open_world(&w, back_end_of(state));
    w.address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    w.address.sin_port = htons(w.sim ? 7070 : 0);
    w.listener = io_listen(w.io, (struct sockaddr *)&w.address, sizeof w.address, 1);
    assert_true(w.listener >= 0);
    socklen_t len = sizeof w.address;
    if (!w.sim)
        assert_int_equal(getsockname(w.listener, (struct sockaddr *)&w.address, &len), 0);
    for (size_t i = 0; i < ARRAY_SIZE(fill); i++) {
        submit_connect(&w, &fill[i]);
        fds[i] = w.client;
    }
    wait_a_little(&w);
    submit_connect(&w, &connect);
    fds[ARRAY_SIZE(fill)] = w.client;
    wait_a_little(&w);
    assert_false(connect.over);
    cancel(&w, &connect);
    for (size_t i = 0; i < ARRAY_SIZE(fill); i++) {
        if (!fill[i].over)
            cancel(&w, &fill[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        assert_int_equal(run_close(&w, fds[i]), 0);
    w.client = -1;
    close_world(&w);
}

/* Sends until one does not complete: the peer does not read. */
static size_t fill_up(struct world *w, struct probe *send, const uint8_t *bytes, size_t size)
{
    size_t sent = 0;
    for (unsigned i = 0; i < 10000; i++) {
        submit_send(w, send, w->client, bytes, size);
        wait_a_little(w);
        if (!send->over)
            return sent;
        assert_in_range(send->result, 1, size);
        sent += (size_t)send->result;
    }
    fail();
    return 0;
}

static uint8_t block[4 << 20];

static void a_send_waits_for_a_reader_and_then_goes_on(void **state)
{
    struct world w;
    struct probe send, receive;
    connect_world(&w, back_end_of(state));
    size_t sent = fill_up(&w, &send, block, sizeof block);
    submit(&w, &receive, IO_RECV, w.server);
    wait_until(&w, &send.over);
    assert_true(send.result > 0);
    for (unsigned i = 0; i < WAITS_MAX && receive.size < sent + (size_t)send.result; i++)
        wait_once(&w);
    assert_int_equal(receive.size, sent + (size_t)send.result);
    cancel(&w, &receive);
    close_world(&w);
}

static void a_send_that_waits_can_be_cancelled(void **state)
{
    struct world w;
    struct probe send;
    connect_world(&w, back_end_of(state));
    fill_up(&w, &send, block, sizeof block);
    cancel(&w, &send);
    close_world(&w);
}

static void a_send_to_a_closed_peer_fails_without_a_signal(void **state)
{
    struct world w;
    struct probe send = {0};
    connect_world(&w, back_end_of(state));
    assert_int_equal(run_close(&w, w.server), 0);
    w.server = -1;
    for (unsigned i = 0; i < 1000 && send.result >= 0; i++) {
        submit_send(&w, &send, w.client, "hello", 5);
        wait_until(&w, &send.over);
        wait_a_little(&w);
    }
    assert_true(send.result == -EPIPE || send.result == -ECONNRESET);
    close_world(&w);
}

static void a_close_with_unread_bytes_resets(void **state)
{
    struct world w;
    struct probe send, receive;
    connect_world(&w, back_end_of(state));
    submit_send(&w, &send, w.client, "unread", 6);
    wait_until(&w, &send.over);
    wait_a_little(&w);
    submit(&w, &receive, IO_RECV, w.client);
    assert_int_equal(run_close(&w, w.server), 0);
    w.server = -1;
    wait_until(&w, &receive.over);
    assert_int_equal(receive.result, -ECONNRESET);
    close_world(&w);
}

static void deadline_zero_does_not_wait_and_a_deadline_ends_a_wait(void **state)
{
    struct world w;
    open_world(&w, back_end_of(state));
    assert_int_equal(io_wait(w.io, 0), 0);
    uint64_t before_ns = io_now_ns(w.io), deadline_ns = before_ns + 3 * NS_PER_MS;
    assert_int_equal(io_wait(w.io, before_ns), 0); /* the past */
    assert_int_equal(io_wait(w.io, deadline_ns), 0);
    if (w.sim)
        sim_advance(w.sim);
    assert_true(io_now_ns(w.io) >= deadline_ns);
    close_world(&w);
}

static void a_wake_before_a_wait_ends_it(void **state)
{
    struct world w;
    open_world(&w, back_end_of(state));
    for (unsigned i = 0; i < 10; i++) {
        io_wake(w.io);
        io_wake(w.io);
        assert_int_equal(io_wait(w.io, NEVER), 0);
    }
    assert_int_equal(counter_read(&w.io->counters.wakes), 0); /* nobody slept */
    close_world(&w);
}

struct waker {
    struct io *io;
    _Atomic unsigned asked; /* by the loop */
    unsigned wakes;
};

static void *wake_each_sleep(void *context)
{
    struct waker *waker = context;
    for (unsigned i = 1; i <= waker->wakes; i++) {
        while (atomic_load(&waker->asked) < i)
            sched_yield();
        io_wake(waker->io);
    }
    return NULL;
}

/* The wake comes before, while, or after the wait begins, as threads have it; none is lost, or this hangs. */
static void a_wake_from_another_thread_ends_a_wait_without_a_deadline(void **state)
{
    struct world w;
    pthread_t thread;
    open_world(&w, back_end_of(state));
    if (!w.sim) { /* its io is not for threads */
        struct waker waker = {.io = w.io, .wakes = 2000};
        assert_int_equal(pthread_create(&thread, NULL, wake_each_sleep, &waker), 0);
        for (unsigned i = 0; i < waker.wakes; i++) {
            atomic_fetch_add(&waker.asked, 1);
            assert_true(io_wait(w.io, NEVER) >= 0);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    close_world(&w);
}

static void completions_of_one_descriptor_come_in_order(void **state)
{
    struct world w;
    struct probe send, close;
    connect_world(&w, back_end_of(state));
    submit_send(&w, &send, w.client, "a", 1);
    wait_until(&w, &send.over);
    submit(&w, &close, IO_CLOSE, w.client);
    w.client = -1;
    wait_until(&w, &close.over);
    assert_true(send.order < close.order);
    close_world(&w);
}

static void closing_no_descriptor_is_an_error_not_a_crash(void **state)
{
    struct world w;
    open_world(&w, back_end_of(state));
    assert_int_equal(run_close(&w, -1), -EBADF);
    close_world(&w);
}

static void an_op_may_be_queued_again_from_its_own_completion(void **state)
{
    struct world w;
    struct probe receive, send;
    connect_world(&w, back_end_of(state));
    submit(&w, &receive, IO_RECV, w.server);
    for (unsigned i = 0; i < 100; i++) {
        submit_send(&w, &send, w.client, "0123456789", 10);
        wait_until(&w, &send.over);
    }
    for (unsigned i = 0; i < WAITS_MAX && receive.size < 1000; i++)
        wait_once(&w);
    assert_int_equal(receive.size, 1000);
    cancel(&w, &receive);
    close_world(&w);
}

static void a_pipe_is_written_and_read(void **state)
{
    struct world w;
    struct probe in = {0}, out = {0};
    int fds[2];
    uint8_t got[16] = "";
    open_world(&w, back_end_of(state));
    if (w.sim)
        fds[0] = fds[1] = sim_pipe(w.sim, 100);
    else
        assert_int_equal(pipe(fds), 0);
    io_prepare_memory(&in.op, IO_READ, fds[0], got, sizeof got, done);
    io_queue(w.io, &in.op);
    wait_a_little(&w);
    assert_false(in.over);
    io_prepare_memory(&out.op, IO_WRITE, fds[1], "a line\n", 7, done);
    io_queue(w.io, &out.op);
    wait_until(&w, &out.over);
    wait_until(&w, &in.over);
    assert_int_equal(out.result, 7);
    assert_int_equal(in.result, 7);
    assert_memory_equal(got, "a line\n", 7);
    assert_int_equal(run_close(&w, fds[0]), 0);
    if (!w.sim)
        assert_int_equal(run_close(&w, fds[1]), 0);
    close_world(&w);
}

/* Counters tell what was handed over and what came back. */
static void operations_and_completions_are_counted(void **state)
{
    struct world w;
    struct probe send;
    connect_world(&w, back_end_of(state));
    uint64_t operations = counter_read(&w.io->counters.operations);
    uint64_t completions = counter_read(&w.io->counters.completions);
    submit_send(&w, &send, w.client, "hello", 5);
    wait_until(&w, &send.over);
    assert_true(counter_read(&w.io->counters.operations) > operations);
    assert_true(counter_read(&w.io->counters.completions) > completions);
    close_world(&w);
}

static const struct CMUnitTest promises[] = {
    cmocka_unit_test(one_accept_takes_many_connections),
    cmocka_unit_test(nobody_listening_refuses),
    cmocka_unit_test(bytes_arrive_whole_and_in_order_from_many_sends),
    cmocka_unit_test(an_op_never_completes_from_inside_io_queue),
    cmocka_unit_test(half_a_close_ends_one_direction),
    cmocka_unit_test(the_end_comes_after_the_bytes),
    cmocka_unit_test(bytes_that_came_before_the_receive_are_received),
    cmocka_unit_test(a_receive_can_be_cancelled_and_armed_again),
    cmocka_unit_test(what_is_queued_and_cancelled_in_one_batch_ends),
    cmocka_unit_test(an_accept_can_be_cancelled),
    cmocka_unit_test(a_connect_can_be_cancelled),
    cmocka_unit_test(a_send_waits_for_a_reader_and_then_goes_on),
    cmocka_unit_test(a_send_that_waits_can_be_cancelled),
    cmocka_unit_test(a_send_to_a_closed_peer_fails_without_a_signal),
    cmocka_unit_test(a_close_with_unread_bytes_resets),
    cmocka_unit_test(deadline_zero_does_not_wait_and_a_deadline_ends_a_wait),
    cmocka_unit_test(a_wake_before_a_wait_ends_it),
    cmocka_unit_test(a_wake_from_another_thread_ends_a_wait_without_a_deadline),
    cmocka_unit_test(completions_of_one_descriptor_come_in_order),
    cmocka_unit_test(closing_no_descriptor_is_an_error_not_a_crash),
    cmocka_unit_test(an_op_may_be_queued_again_from_its_own_completion),
    cmocka_unit_test(a_pipe_is_written_and_read),
    cmocka_unit_test(operations_and_completions_are_counted),
};

int main(void)
{
    return run_promises(promises, ARRAY_SIZE(promises));
}
