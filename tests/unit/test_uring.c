/* The io_uring back end on a real ring: loopback sockets and pipes, two threads for the wakes. What holds for
 * every back end is in test_seam.c; here is what is this one's own. */
#include "core/error.h"
#include "core/random.h"
#include "uring/ring.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#define PATIENCE_NS (20 * NS_PER_S) /* nothing here takes so long unless it is broken */

/* An operation that remembers what became of it. */
struct witness {
    struct io_op op;
    int result; /* of the last completion */
    unsigned completions;
    bool over;
};

static void saw(struct io_op *op, int result, bool more)
{
    struct witness *w = container_of(op, struct witness, op);
    w->result = result;
    w->completions++;
    w->over = !more;
}

static struct io *open_io(const struct uring_options *options)
{
    struct io *io;
    assert_int_equal(uring_open(&io, options), 0);
    return io;
}

static void step(struct io *io)
{
    uint64_t deadline_ns = io_now_ns(io) + PATIENCE_NS;
    assert_true(io_wait(io, deadline_ns) >= 0);
    assert_true(io_now_ns(io) < deadline_ns);
}

static void run_until(struct io *io, const bool *happened)
{
    for (unsigned i = 0; i < 100000 && !*happened; i++)
        step(io);
    assert_true(*happened);
}

static int finish(struct io *io, struct witness *w)
{
    run_until(io, &w->over);
    return w->result;
}

static void queue(struct io *io, struct witness *w)
{
    w->completions = 0;
    w->over = false;
    io_queue(io, &w->op);
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listen_anywhere(struct io *io, struct sockaddr_in *address)
{
    *address = loopback(0);
    int fd = io_listen(io, (struct sockaddr *)address, sizeof *address, 16);
    assert_true(fd >= 0);
    socklen_t len = sizeof *address;
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &len), 0);
    return fd;
}

/* Two connected sockets, made by the operations under test. */
struct pair {
    int near, far;
};

static struct pair connect_pair(struct io *io)
{
    struct sockaddr_in address;
    struct witness accept_ = {0}, connect_ = {0};
    int listener = listen_anywhere(io, &address);
    struct pair pair = {.near = io_socket(io, AF_INET, NULL)};
    assert_true(pair.near >= 0);
    io_prepare(&accept_.op, IO_ACCEPT, listener, saw);
    io_prepare_connect(&connect_.op, pair.near, (struct sockaddr *)&address, sizeof address, saw);
    queue(io, &accept_);
    queue(io, &connect_);
    assert_int_equal(finish(io, &connect_), 0);
    while (accept_.completions == 0)
        step(io);
    assert_false(accept_.over);
    pair.far = accept_.result;
    assert_true(pair.far >= 0);
    io_cancel(io, &accept_.op);
    assert_int_equal(finish(io, &accept_), -ECANCELED);
    close(listener);
    return pair;
}

static void close_pair(struct pair pair)
{
    close(pair.near);
    close(pair.far);
}

static void prepare_send(struct witness *w, int fd, const void *data, size_t size)
{
    struct iovec part = {(void *)(uintptr_t)data, size};
    io_prepare_send(&w->op, fd, &part, 1, saw);
}

/* --- streams of bytes --- */

static void accepted_sockets_have_nodelay_and_are_closed_on_exec(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct pair pair = connect_pair(io);
    int fds[] = {pair.near, pair.far};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        int nodelay = 0;
        socklen_t len = sizeof nodelay;
        assert_int_equal(getsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &nodelay, &len), 0);
        assert_true(nodelay);
        assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    }
    close_pair(pair);
    io_dispose(io);
}

static void a_socket_has_the_user_timeout_it_was_asked_for(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    int fd = io_socket(io, AF_INET6, &(struct io_socket_options){.user_timeout_ms = 4321});
    if (fd == -EAFNOSUPPORT)
        fd = io_socket(io, AF_INET, &(struct io_socket_options){.user_timeout_ms = 4321});
    assert_true(fd >= 0);
    unsigned timeout_ms = 0;
    socklen_t len = sizeof timeout_ms;
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, &len), 0);
    assert_int_equal(timeout_ms, 4321);
    close(fd);
    io_dispose(io);
}

/* A receiver that checks a pattern and arms itself again whenever its multishot ends. */
struct reader {
    struct io *io;
    struct io_op op;
    size_t got;
    unsigned endings;
    bool wrong, ended;
};

static uint8_t pattern(size_t at)
{
    return (uint8_t)(at * 7 + (at >> 8));
}

static void reader_got(struct io_op *op, int result, bool more)
{
    struct reader *r = container_of(op, struct reader, op);
    for (int i = 0; i < result; i++)
        r->wrong |= op->data[i] != pattern(r->got + (size_t)i);
    if (result > 0)
        r->got += (size_t)result;
    r->ended |= result == 0;
    r->wrong |= result < 0 && result != -ENOBUFS;
    if (more)
        return;
    r->endings++;
    if (!r->ended)
        io_queue(r->io, op);
}

static void a_stream_longer_than_all_buffers_arrives_whole_and_running_out_of_them_is_ordinary(void **state)
{
    (void)state;
    struct io *io = open_io(&(struct uring_options){8, 64, .buffers = 4, .buffer_bytes = 256});
    struct pair pair = connect_pair(io);
    static uint8_t data[64 * 1024];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = pattern(i);
    struct iovec parts[] = {{data, 1}, {data + 1, 999}, {data + 1000, sizeof data - 1000}};
    struct witness send_ = {0};
    io_prepare_send(&send_.op, pair.near, parts, 3, saw);
    queue(io, &send_);
    assert_int_equal(finish(io, &send_), sizeof data);
    assert_int_equal(shutdown(pair.near, SHUT_WR), 0);

    struct reader reader = {.io = io};
    io_prepare(&reader.op, IO_RECV, pair.far, reader_got);
    io_queue(io, &reader.op);
    run_until(io, &reader.ended);
    assert_false(reader.wrong);
    assert_int_equal(reader.got, sizeof data);
    assert_true(counter_read(&io->counters.no_buffers) > 0);
    assert_true(counter_read(&io->counters.no_buffers) < reader.endings);
    close_pair(pair);
    io_dispose(io);
}

static void a_send_to_a_peer_that_does_not_read_is_short_and_the_next_one_waits_until_it_is_cancelled(
    void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct pair pair = connect_pair(io);
    size_t size = 64 * 1024 * 1024;
    uint8_t *data = calloc(1, size);
    assert_non_null(data);
    struct witness send_ = {0};
    prepare_send(&send_, pair.near, data, size);
    queue(io, &send_);
    int took = finish(io, &send_);
    assert_true(took > 0 && (size_t)took < size);
    do { /* what trickles on until both ends' buffers are full */
        prepare_send(&send_, pair.near, data, size);
        queue(io, &send_);
        io_wait(io, io_now_ns(io) + 50 * NS_PER_MS);
    } while (send_.over);
    io_cancel(io, &send_.op);
    assert_int_equal(finish(io, &send_), -ECANCELED);
    close_pair(pair);
    io_dispose(io);
    free(data);
}

/* Takes all that is there. */
static void drain(int fd)
{
    static uint8_t bytes[64 * 1024];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
}

/* One small send after the other until one does not complete at once; something else is ready all along.
 * Returns how long the last wait took: the one that the send might have delayed. */
static uint64_t send_until_it_waits(struct io *io, struct witness *send_, int fd, int ready)
{
    static const uint8_t data[1000];
    for (unsigned i = 0; i < 100000; i++) {
        char in[8];
        struct witness other = {0};
        prepare_send(send_, fd, data, sizeof data);
        queue(io, send_);
        io_prepare_memory(&other.op, IO_READ, ready, in, sizeof in, saw);
        queue(io, &other);
        uint64_t begun_ns = io_now_ns(io);
        assert_true(io_wait(io, begun_ns + PATIENCE_NS) >= 0);
        uint64_t took_ns = io_now_ns(io) - begun_ns;
        finish(io, &other);
        uint64_t one = 1;
        assert_int_equal(write(ready, &one, sizeof one), sizeof one);
        if (!send_->over)
            return took_ns;
    }
    fail();
    return 0;
}

/* A wait leaves quick sends some time to complete (10 ms): one that does not, for want of room, delays what
 * else has completed. That may happen once a connection. The shortest of some waits is taken, as others'
 * processes may delay any of them. */
static void a_peer_that_does_not_read_delays_others_at_most_once(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct pair pair = connect_pair(io);
    int small = 8192, ready = eventfd(1, EFD_CLOEXEC);
    assert_int_equal(setsockopt(pair.near, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    struct witness send_ = {0};
    send_until_it_waits(io, &send_, pair.near, ready);
    uint64_t shortest_ns = NEVER;
    for (unsigned i = 0; i < 20; i++) {
        for (unsigned j = 0; j < 100000 && !send_.over; j++) {
            drain(pair.far);
            assert_true(io_wait(io, io_now_ns(io) + NS_PER_MS) >= 0);
        }
        assert_true(send_.over);
        shortest_ns = min_u64(shortest_ns, send_until_it_waits(io, &send_, pair.near, ready));
    }
    assert_true(shortest_ns < 5 * NS_PER_MS);
    io_cancel(io, &send_.op);
    finish(io, &send_);
    close(ready);
    close_pair(pair);
    io_dispose(io);
}

static void a_send_to_a_peer_that_is_gone_is_an_error_and_no_signal(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct pair pair = connect_pair(io);
    assert_int_equal(shutdown(pair.near, SHUT_WR), 0);
    struct witness one = {0}, several = {0};
    prepare_send(&one, pair.near, "x", 1);
    io_prepare_send(&several.op, pair.near, (struct iovec[]){{"x", 1}, {"y", 1}}, 2, saw);
    queue(io, &one);
    queue(io, &several);
    assert_int_equal(finish(io, &one), -EPIPE);
    assert_int_equal(finish(io, &several), -EPIPE);
    close_pair(pair);
    io_dispose(io);
}

static unsigned threads_of_this_process(void)
{
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    unsigned count = 0;
    while (readdir(tasks))
        count++;
    closedir(tasks);
    return count - 2;
}

static void a_shutdown_sends_what_was_queued_before_and_takes_no_kernel_worker(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct pair pair = connect_pair(io);
    unsigned threads = threads_of_this_process();
    uint8_t data[1000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = pattern(i);
    struct witness send_ = {0}, shut = {0};
    struct reader reader = {.io = io};
    prepare_send(&send_, pair.near, data, sizeof data);
    queue(io, &send_);
    io_prepare(&shut.op, IO_SHUTDOWN, pair.near, saw);
    queue(io, &shut);
    io_prepare(&reader.op, IO_RECV, pair.far, reader_got);
    io_queue(io, &reader.op);
    run_until(io, &reader.ended);
    assert_int_equal(finish(io, &shut), 0);
    assert_int_equal(send_.result, sizeof data);
    assert_int_equal(reader.got, sizeof data);
    assert_false(reader.wrong);
    assert_int_equal(threads_of_this_process(), threads);
    close_pair(pair);
    queue(io, &shut);
    assert_int_equal(finish(io, &shut), -EBADF);
    io_dispose(io);
}

static void a_refused_connect_says_so(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct sockaddr_in address;
    int listener = listen_anywhere(io, &address);
    close(listener);
    int fd = io_socket(io, AF_INET, NULL);
    struct witness w = {0};
    io_prepare_connect(&w.op, fd, (struct sockaddr *)&address, sizeof address, saw);
    queue(io, &w);
    assert_int_equal(finish(io, &w), -ECONNREFUSED);
    close(fd);
    io_dispose(io);
}

static void a_close_closes(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct pair pair = connect_pair(io);
    struct witness w = {0};
    io_prepare(&w.op, IO_CLOSE, pair.near, saw);
    queue(io, &w);
    assert_int_equal(finish(io, &w), 0);
    assert_int_equal(fcntl(pair.near, F_GETFD), -1);
    close(pair.far);
    io_dispose(io);
}

static void a_receive_is_cancelled_in_the_hand_over_that_starts_it_and_later(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct pair pair = connect_pair(io);
    struct witness w = {0};
    for (int later = 0; later < 2; later++) {
        io_prepare(&w.op, IO_RECV, pair.near, saw);
        queue(io, &w);
        if (later)
            assert_true(io_wait(io, 0) >= 0);
        io_cancel(io, &w.op);
        assert_int_equal(finish(io, &w), -ECANCELED);
        assert_int_equal(w.completions, 1);
    }
    close_pair(pair);
    io_dispose(io);
}

static void no_descriptors_left_is_an_error_of_the_socket(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct sockaddr_in address = loopback(0);
    int fd = io_socket(io, AF_INET, NULL);
    int listener = io_listen(io, (struct sockaddr *)&address, sizeof address, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(fd, -EMFILE);
    assert_int_equal(listener, -EMFILE);
    io_dispose(io);
}

/* --- memory, pipes, full rings --- */

static void reads_and_writes_go_to_pipes_and_event_counters(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    int fds[2], counter = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    char in[8] = {0}, out[] = "hello";
    uint64_t count = 0, three = 3;
    struct witness read_ = {0}, write_ = {0}, count_ = {0}, add = {0};
    io_prepare_memory(&read_.op, IO_READ, fds[0], in, sizeof in, saw);
    io_prepare_memory(&count_.op, IO_READ, counter, &count, sizeof count, saw);
    queue(io, &read_);
    queue(io, &count_);
    assert_true(io_wait(io, 0) >= 0);
    assert_false(read_.over || count_.over);
    io_prepare_memory(&write_.op, IO_WRITE, fds[1], out, 5, saw);
    io_prepare_memory(&add.op, IO_WRITE, counter, &three, sizeof three, saw);
    queue(io, &write_);
    queue(io, &add);
    assert_int_equal(finish(io, &write_), 5);
    assert_int_equal(finish(io, &add), sizeof three);
    assert_int_equal(finish(io, &read_), 5);
    assert_int_equal(finish(io, &count_), sizeof count);
    assert_string_equal(in, "hello");
    assert_int_equal(count, 3);
    close(fds[0]);
    close(fds[1]);
    close(counter);
    io_dispose(io);
}

#define MANY 1000

/* MANY operations queued at once, on rings that may hold far fewer. */
static void many_writes_complete(const struct uring_options *options)
{
    struct io *io = open_io(options);
    static struct witness w[MANY];
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t i = 0; i < MANY; i++) {
        w[i] = (struct witness){0};
        io_prepare_memory(&w[i].op, IO_WRITE, fd, (void *)(uintptr_t) "x", 1, saw);
        io_queue(io, &w[i].op);
    }
    int delivered = 0;
    for (unsigned i = 0; i < MANY && delivered < MANY; i++) {
        int got = io_wait(io, 0);
        assert_in_range(got, 0, 256);
        if (options->completions > MANY) /* else the kernel may ask to be relieved first */
            assert_int_equal(counter_read(&io->counters.operations), MANY);
        delivered += got;
    }
    assert_int_equal(delivered, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(w[i].completions, 1);
        assert_int_equal(w[i].result, 1);
    }
    assert_int_equal(counter_read(&io->counters.operations), MANY);
    assert_int_equal(counter_read(&io->counters.completions), MANY);
    close(fd);
    io_dispose(io);
}

static void a_wait_delivers_a_bounded_batch(void **state)
{
    (void)state;
    many_writes_complete(&(struct uring_options){2048, 4096, 0, 0});
}

/* Each byte that is received has the next one sent. */
struct chain {
    struct io_op op;
    int far;
    unsigned received;
};

#define LINKS 40

static void pass_on(struct io_op *op, int result, bool more)
{
    struct chain *chain = container_of(op, struct chain, op);
    if (!more) /* cancelled */
        return;
    assert_int_equal(result, 1);
    chain->received++;
    if (chain->received < LINKS)
        assert_int_equal(write(chain->far, "x", 1), 1);
}

static void a_wait_goes_on_with_what_comes_while_it_delivers_but_not_without_end(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct chain chain = {.far = fds[1]};
    io_prepare(&chain.op, IO_RECV, fds[0], pass_on);
    io_queue(io, &chain.op);
    assert_int_equal(io_wait(io, 0), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(io_wait(io, 0), 16);
    assert_int_equal(io_wait(io, 0), 16);
    assert_int_equal(io_wait(io, 0), LINKS - 2 * 16);
    io_cancel(io, &chain.op);
    for (unsigned i = 0; i < 1000 && chain.op.in_flight; i++)
        step(io);
    assert_false(chain.op.in_flight);
    close(fds[0]);
    close(fds[1]);
    io_dispose(io);
}

/* Many connections with little each want more buffers; one that fills them wants few, hot ones. */
static void more_buffers_are_offered_while_little_comes_in_each(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct buffers *b = &container_of(io, struct uring, io)->buffers;
    assert_int_equal(b->wanted, BUFFERS_WANTED);
    for (int i = 0; i < 10; i++) {
        b->exhausted = true;
        b->batch_buffers = BUFFERS_WANTED;
        buffers_offer(b);
    }
    assert_int_equal(b->wanted, b->count);
    assert_int_equal(b->offered, b->count);
    for (int i = 0; i < 10; i++) {
        b->exhausted = true;
        b->batch_buffers = 1;
        b->batch_bytes = b->bytes;
        buffers_offer(b);
    }
    assert_int_equal(b->wanted, BUFFERS_WANTED);
    io_dispose(io);
}

static void a_full_submission_ring_only_costs_more_enters(void **state)
{
    (void)state;
    many_writes_complete(&(struct uring_options){4, 4096, 0, 0});
}

static void a_full_completion_ring_loses_nothing(void **state)
{
    (void)state;
    many_writes_complete(&(struct uring_options){4, 8, 0, 0});
}

/* --- waiting and waking --- */

static void a_wait_lasts_until_its_deadline_and_not_at_all_when_that_is_past(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    uint64_t start = io_now_ns(io);
    assert_int_equal(io_wait(io, start + 5 * NS_PER_MS), 0);
    assert_true(io_now_ns(io) >= start + 5 * NS_PER_MS);
    assert_int_equal(io_wait(io, 1), 0);
    assert_int_equal(io_wait(io, start), 0);
    io_dispose(io);
}

static void a_wait_with_nothing_to_do_does_not_enter_the_kernel(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    for (int i = 0; i < 10; i++)
        assert_int_equal(io_wait(io, 0), 0);
    assert_int_equal(counter_read(&io->counters.enters), 0);
    io_dispose(io);
}

/* Bytes that come while the loop is busy show in a wait that does not wait. */
static void a_wait_without_waiting_finds_what_has_come(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    char in[4];
    struct witness w = {0};
    io_prepare_memory(&w.op, IO_READ, fds[0], in, sizeof in, saw);
    queue(io, &w);
    assert_int_equal(io_wait(io, 0), 0);
    assert_int_equal(write(fds[1], "ab", 2), 2);
    for (int i = 0; i < 10000000 && !w.over; i++) /* an older kernel may use a worker for a pipe */
        assert_true(io_wait(io, 0) >= 0);
    assert_int_equal(w.result, 2);
    close(fds[0]);
    close(fds[1]);
    io_dispose(io);
}

/* One small datagram, an acknowledgement say, is sent and the wait goes on; a batch is, and its owner may
 * have the next. */
static void a_small_datagram_does_not_end_a_wait_and_a_batch_does(void **state)
{
    (void)state;
    static uint8_t batch[40 * 1400];
    struct io *io = open_io(NULL);
    struct sockaddr_in nowhere = loopback(htons(9)), own = loopback(0);
    int fd = io_datagram_socket(io, (struct sockaddr *)&own, sizeof own, NULL);
    struct witness small = {0}, large = {0};
    io_prepare_datagram_send(&small.op, fd, batch, 100, 0, (struct sockaddr *)&nowhere, sizeof nowhere, saw);
    queue(io, &small);
    uint64_t deadline_ns = io_now_ns(io) + 3 * NS_PER_MS;
    assert_int_equal(io_wait(io, deadline_ns), 1);
    assert_int_equal(small.result, 100);
    assert_true(io_now_ns(io) >= deadline_ns);
    io_prepare_datagram_send(&large.op, fd, batch, sizeof batch, 1400, (struct sockaddr *)&nowhere,
                             sizeof nowhere, saw);
    queue(io, &large);
    step(io);
    assert_int_equal(large.result, sizeof batch);
    close(fd);
    io_dispose(io);
}

static void *wake_the_sleeper(void *argument)
{
    struct io *io = argument;
    while (atomic_load(&io->sleep) != IO_ASLEEP)
        sched_yield();
    io_wake(io);
    io_wake(io);
    return NULL;
}

static void only_a_sleeper_costs_a_wake_and_only_one(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    io_wake(io);
    assert_int_equal(io_wait(io, NEVER), 0);
    assert_int_equal(counter_read(&io->counters.wakes), 0);
    assert_int_equal(counter_read(&io->counters.sleeps), 0);

    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wake_the_sleeper, io), 0);
    assert_int_equal(io_wait(io, NEVER), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(io_wait(io, 0) >= 0);
    assert_int_equal(counter_read(&io->counters.wakes), 1);
    assert_int_equal(counter_read(&io->counters.sleeps), 1);
    io_dispose(io);
}

#define PINGS 100000

/* Two threads in turn: each raises the other's number and wakes it, then sleeps until its own was raised. */
struct player {
    struct io *io; /* made by the main thread, used by its own */
    struct player *other;
    _Atomic unsigned turns;
    bool lost;
};

static void *play(void *argument)
{
    struct player *p = argument;
    for (unsigned turn = 1; turn <= PINGS && !p->lost; turn++) {
        while (atomic_load_explicit(&p->turns, memory_order_acquire) < turn && !p->lost) {
            uint64_t deadline_ns = io_now_ns(p->io) + PATIENCE_NS;
            p->lost = io_wait(p->io, deadline_ns) < 0 || io_now_ns(p->io) >= deadline_ns;
        }
        atomic_store_explicit(&p->other->turns, turn + (p->other < p), memory_order_release);
        io_wake(p->other->io);
    }
    return NULL;
}

static void two_threads_wake_each_other_a_hundred_thousand_times_without_losing_one(void **state)
{
    (void)state;
    struct player players[2] = {{.other = &players[1]}, {.other = &players[0]}};
    pthread_t threads[2];
    atomic_store(&players[0].turns, 1);
    for (int i = 0; i < 2; i++)
        players[i].io = open_io(&(struct uring_options){4, 8, 0, 0});
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_false(players[i].lost);
        assert_true(counter_read(&players[i].io->counters.wakes) <= PINGS);
        io_dispose(players[i].io);
    }
}

#define SWITCHES 20000

/* Two threads in turn again; but each now and then has a read in flight, so that it sleeps now in the ring
 * and now on the futex, and the other has to hit the right one. */
struct switcher {
    struct io *io;
    struct switcher *other;
    _Atomic unsigned turns;
    struct witness read_;
    int pipe[2];
    char in[8];
    struct random random;
    bool lost;
};

static void switch_place(struct switcher *s)
{
    if (random_below(&s->random, 2) == 0)
        return;
    if (s->read_.op.in_flight) {
        io_cancel(s->io, &s->read_.op);
    } else {
        io_prepare_memory(&s->read_.op, IO_READ, s->pipe[0], s->in, sizeof s->in, saw);
        queue(s->io, &s->read_);
    }
}

static void *play_switching(void *argument)
{
    struct switcher *s = argument;
    for (unsigned turn = 1; turn <= SWITCHES && !s->lost; turn++) {
        while (atomic_load_explicit(&s->turns, memory_order_acquire) < turn && !s->lost) {
            switch_place(s);
            uint64_t deadline_ns = io_now_ns(s->io) + PATIENCE_NS;
            s->lost = io_wait(s->io, deadline_ns) < 0 || io_now_ns(s->io) >= deadline_ns;
        }
        atomic_store_explicit(&s->other->turns, turn + (s->other < s), memory_order_release);
        io_wake(s->other->io);
    }
    return NULL;
}

static void a_wake_finds_a_sleeper_in_the_ring_and_on_the_futex_alike(void **state)
{
    (void)state;
    struct switcher players[2] = {{.other = &players[1], .random = {1}},
                                  {.other = &players[0], .random = {2}}};
    pthread_t threads[2];
    atomic_store(&players[0].turns, 1);
    for (int i = 0; i < 2; i++) {
        players[i].io = open_io(&(struct uring_options){4, 8, 0, 0});
        assert_int_equal(pipe2(players[i].pipe, O_CLOEXEC), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play_switching, &players[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_false(players[i].lost);
        assert_true(counter_read(&players[i].io->counters.wakes) > 0);
        /* a wake that comes while its sleeper changes places may be seen twice: by the futex, then by the
         * read of the counter */
        assert_true(counter_read(&players[i].io->counters.wakes) <= 2 * SWITCHES);
        io_dispose(players[i].io);
        close(players[i].pipe[0]);
        close(players[i].pipe[1]);
    }
}

static struct io_uring *ring_of(struct io *io)
{
    return &container_of(io, struct uring, io)->ring;
}

/* --- files: what all back ends promise is in test_seam_files.c --- */

/* Entries stay as they were handed over. */
static const struct io_uring_sqe *entry_of(struct io *io, const struct io_op *op)
{
    const struct io_uring *ring = ring_of(io);
    for (unsigned i = 0; i < *ring->sq.kring_entries; i++) {
        if (ring->sq.sqes[i].user_data == (uintptr_t)op)
            return &ring->sq.sqes[i];
    }
    fail();
    return NULL;
}

/* Few file systems sync while a write is submitted, and this need not be one of them: so look at the entry.
 */
static void a_durable_write_never_runs_on_the_thread_that_hands_it_over(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    struct witness w = {0};
    int fd = memfd_create("file", MFD_CLOEXEC);
    assert_true(fd >= 0);
    io_prepare_file(&w.op, IO_FILE_WRITE, fd, "bytes", 5, 0, saw);
    queue(io, &w);
    assert_int_equal(finish(io, &w), 5);
    assert_int_equal(entry_of(io, &w.op)->flags, IOSQE_ASYNC);
    assert_int_equal(entry_of(io, &w.op)->rw_flags, RWF_DSYNC);
    close(fd);
    io_dispose(io);
}

static void the_kernels_threads_for_files_are_bounded(void **state)
{
    (void)state;
    struct io_uring ring;
    struct buffers buffers;
    unsigned limits[2] = {0, 0}; /* 0: only tells */
    assert_int_equal(ring_set_up(&ring, &buffers, &uring_defaults), 0);
    assert_int_equal(io_uring_register_iowq_max_workers(&ring, limits), 0);
    assert_int_equal(limits[0], URING_FILE_WORKERS);
    assert_true(limits[1] > URING_FILE_WORKERS);
    ring_tear_down(&ring, &buffers);
}

/* --- restrictions --- */

static void a_ring_refuses_what_the_seam_does_not_use(void **state)
{
    (void)state;
    struct io *io = open_io(NULL);
    assert_int_equal(io_wait(io, 0), 0);
    struct witness w = {.op = {.done = saw, .in_flight = true}};
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring_of(io));
    io_uring_prep_mkdirat(sqe, AT_FDCWD, "/none/such", 0700);
    io_uring_sqe_set_data(sqe, &w.op);
    assert_int_equal(finish(io, &w), -EACCES);

    w = (struct witness){.op = {.done = saw, .in_flight = true}};
    sqe = io_uring_get_sqe(ring_of(io));
    io_uring_prep_close(sqe, -1);
    io_uring_sqe_set_flags(sqe, IOSQE_IO_LINK);
    io_uring_sqe_set_data(sqe, &w.op);
    assert_int_equal(finish(io, &w), -EACCES);

    int fd = 0;
    assert_int_equal(io_uring_register_files(ring_of(io), &fd, 1), -EACCES);
    io_dispose(io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted_sockets_have_nodelay_and_are_closed_on_exec),
        cmocka_unit_test(a_socket_has_the_user_timeout_it_was_asked_for),
        cmocka_unit_test(a_stream_longer_than_all_buffers_arrives_whole_and_running_out_of_them_is_ordinary),
        cmocka_unit_test(
            a_send_to_a_peer_that_does_not_read_is_short_and_the_next_one_waits_until_it_is_cancelled),
        cmocka_unit_test(a_peer_that_does_not_read_delays_others_at_most_once),
        cmocka_unit_test(a_send_to_a_peer_that_is_gone_is_an_error_and_no_signal),
        cmocka_unit_test(a_shutdown_sends_what_was_queued_before_and_takes_no_kernel_worker),
        cmocka_unit_test(a_refused_connect_says_so),
        cmocka_unit_test(a_close_closes),
        cmocka_unit_test(a_receive_is_cancelled_in_the_hand_over_that_starts_it_and_later),
        cmocka_unit_test(no_descriptors_left_is_an_error_of_the_socket),
        cmocka_unit_test(reads_and_writes_go_to_pipes_and_event_counters),
        cmocka_unit_test(a_wait_delivers_a_bounded_batch),
        cmocka_unit_test(a_wait_goes_on_with_what_comes_while_it_delivers_but_not_without_end),
        cmocka_unit_test(more_buffers_are_offered_while_little_comes_in_each),
        cmocka_unit_test(a_full_submission_ring_only_costs_more_enters),
        cmocka_unit_test(a_full_completion_ring_loses_nothing),
        cmocka_unit_test(a_wait_lasts_until_its_deadline_and_not_at_all_when_that_is_past),
        cmocka_unit_test(a_wait_with_nothing_to_do_does_not_enter_the_kernel),
        cmocka_unit_test(a_wait_without_waiting_finds_what_has_come),
        cmocka_unit_test(a_small_datagram_does_not_end_a_wait_and_a_batch_does),
        cmocka_unit_test(only_a_sleeper_costs_a_wake_and_only_one),
        cmocka_unit_test(two_threads_wake_each_other_a_hundred_thousand_times_without_losing_one),
        cmocka_unit_test(a_wake_finds_a_sleeper_in_the_ring_and_on_the_futex_alike),
        cmocka_unit_test(a_durable_write_never_runs_on_the_thread_that_hands_it_over),
        cmocka_unit_test(the_kernels_threads_for_files_are_bounded),
        cmocka_unit_test(a_ring_refuses_what_the_seam_does_not_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
