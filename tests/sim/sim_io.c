/* The seam in the world: operations are taken over, and performed when they are delivered, in seeded order.
 * Nothing is kept ready, so that a result is always that of the moment. Those of files take their time
 * first. */
#include "tests/sim/world.h"

#include <errno.h>
#include <stdlib.h>

enum {
    CANCELLED = 1,
    READY_SHIFT = 1
}; /* in op->backend_word; above it: when an operation of a file is ready */

static struct sim_thread *thread_of(struct io *io)
{
    return container_of(io, struct sim_thread, io);
}

static struct descriptor *descriptor_of(struct sim_thread *t, const struct io_op *op)
{
    /* A close of no descriptor, or a file operation on none, is legal: EBADF, as from any kernel. */
    static struct descriptor none = {.kind = FD_SOCKET}, no_file = {.kind = FD_FILE}; /* never written */
    if (op->fd < 0 && file_kind(op))
        return &no_file;
    return op->fd < 0 && op->kind == IO_CLOSE ? &none : descriptor_get(t->sim, op->fd);
}

static struct end *end_of(struct sim_thread *t, const struct io_op *op)
{
    struct descriptor *d = descriptor_of(t, op);
    return d->kind == FD_END ? d->end : NULL;
}

/* ---- Hand-over ---- */

static bool same_direction(const struct io_op *a, const struct io_op *b)
{
    return a->fd == b->fd && a->kind == b->kind;
}

static void check_contract(struct sim_thread *t, const struct io_op *op)
{
    bool memory = op->kind == IO_READ || op->kind == IO_WRITE;
    bool datagrams = op->kind == IO_DATAGRAM_SEND || op->kind == IO_DATAGRAM_RECV;
    assert(op->done);
    assert((op->kind == IO_CLOSE || memory == (descriptor_of(t, op)->kind == FD_PIPE)) && "a kind that fits");
    assert((op->kind == IO_CLOSE || datagrams == (descriptor_of(t, op)->kind == FD_DATAGRAMS)) &&
           "a kind that fits");
    assert((op->kind == IO_CLOSE || file_kind(op) == (descriptor_of(t, op)->kind == FD_FILE)) &&
           "a kind that fits");
    assert((!file_kind(op) || op->fd < 0 || !t->host->disk || file_disk(t->sim, op) == t->host->disk) &&
           "a file of this host's disk");
    assert((op->kind != IO_CLOSE || descriptor_of(t, op)->in_flight == 0) &&
           "closed with operations in flight");
    bool many = op->kind == IO_DATAGRAM_SEND || file_kind(op);
    for (size_t i = 0; op->fd >= 0 && !many && i < t->op_count; i++)
        assert(!same_direction(t->ops[i], op) && "two of a kind in flight on a descriptor");
}

static void start_connect(struct sim_thread *t, struct io_op *op)
{
    struct descriptor *d = descriptor_of(t, op);
    assert(d->kind == FD_SOCKET && d->family == op->address.ss_family);
    struct sockaddr_storage to = {0};
    memcpy(&to, &op->address, op->address_len);
    d->end = network_connect(t->sim, t->host, &to, d->user_timeout_ms);
    d->kind = FD_END;
}

static void hand_over(struct sim_thread *t, struct io_op *first)
{
    for (struct io_op *op = first, *next; op; op = next) {
        next = op->next;
        check_contract(t, op);
        sim_note(t->sim, 'o', op->kind, (uint64_t)op->fd);
        op->backend_word = 0;
        if (op->fd >= 0)
            descriptor_of(t, op)->in_flight++;
        t->ops = sim_grow(t->ops, sizeof *t->ops, t->op_count, t->op_room, &t->op_room);
        t->ops[t->op_count++] = op;
        if (op->kind == IO_CONNECT)
            start_connect(t, op);
        if (file_kind(op))
            op->backend_word = file_ready_ns(t->sim, op) << READY_SHIFT;
        counter_add(&t->io.counters.operations, 1);
    }
}

/* What a disk has begun may be beyond cancelling. */
static bool cancellable(struct sim_thread *t, const struct io_op *op)
{
    return !file_kind(op) || sim_chance(t->sim, 500);
}

static void mark_cancels(struct sim_thread *t, struct io_op *cancels)
{
    for (struct io_op *op = cancels; op; op = op->cancel_next) {
        if (cancellable(t, op))
            op->backend_word |= CANCELLED;
        counter_add(&t->io.counters.operations, 1);
    }
}

/* ---- What can complete ---- */

static bool sending(const struct sim_thread *t, int fd)
{
    for (size_t i = 0; i < t->op_count; i++) {
        if (t->ops[i]->fd == fd && t->ops[i]->kind == IO_SEND)
            return true;
    }
    return false;
}

/* Datagrams of one socket leave in the order they were queued. */
static bool sent_before(const struct sim_thread *t, const struct io_op *op)
{
    size_t i = 0;
    while (t->ops[i] != op && (t->ops[i]->fd != op->fd || t->ops[i]->kind != IO_DATAGRAM_SEND))
        i++;
    return t->ops[i] != op;
}

static bool can_complete(struct sim_thread *t, const struct io_op *op)
{
    const struct descriptor *d = descriptor_of(t, op);
    const struct end *end = d->kind == FD_END ? d->end : NULL;
    if (op->backend_word & CANCELLED)
        return true;
    switch (op->kind) {
    case IO_ACCEPT:
        return d->kind != FD_LISTENER || d->listener->count > 0;
    case IO_CONNECT:
        return end->connected || end->dead;
    case IO_RECV:
        return !end || end->dead || end->ended || bytes_size(&end->received) > 0;
    case IO_SEND:
        return !end || end->dead || end->shut || end_room(end) > 0;
    case IO_READ:
        return pipe_readable(d->pipe);
    case IO_WRITE:
        return pipe_writable(d->pipe);
    case IO_SHUTDOWN:
        return !sending(t, op->fd);
    case IO_DATAGRAM_RECV:
        return d->datagrams->first != NULL;
    case IO_DATAGRAM_SEND:
        return !sent_before(t, op);
    default:
        return !file_kind(op) || op->backend_word >> READY_SHIFT <= t->sim->now_ns;
    }
}

bool thread_ready(struct sim_thread *t)
{
    for (size_t i = 0; i < t->op_count; i++) {
        if (can_complete(t, t->ops[i]))
            return true;
    }
    return false;
}

uint64_t thread_next_ns(const struct sim_thread *t)
{
    uint64_t next = NEVER;
    for (size_t i = 0; i < t->op_count; i++) {
        uint64_t ready = t->ops[i]->backend_word >> READY_SHIFT;
        if (file_kind(t->ops[i]) && ready > t->sim->now_ns)
            next = min_u64(next, ready);
    }
    return next;
}

/* ---- Results ---- */

/* A pending error is told once; `after` is what comes then. */
static int take_error(struct end *end, int after)
{
    int error = end->error ? end->error : after;
    end->error = 0;
    return error;
}

static int perform_accept(struct sim_thread *t, struct io_op *op, bool *more)
{
    struct listener *l = descriptor_of(t, op)->listener;
    int fd = descriptor_open(t->sim, FD_END);
    if (fd < 0)
        return fd;
    struct end *end = listener_take(l);
    descriptor_get(t->sim, fd)->end = end;
    *more = !sim_chance(t->sim, t->sim->faults.multishot_end);
    return fd;
}

static int perform_receive(struct sim_thread *t, struct io_op *op, bool *more)
{
    struct sim *sim = t->sim;
    struct end *end = end_of(t, op);
    if (!end)
        return -ENOTCONN;
    size_t size = min_size(bytes_size(&end->received), sim->faults.buffer_bytes);
    if (size == 0)
        return end->dead ? take_error(end, 0) : 0;
    if (sim_chance(sim, sim->faults.no_buffers)) {
        counter_add(&t->io.counters.no_buffers, 1);
        return -ENOBUFS;
    }
    op->data = sim_allocate(size); /* of its own, so that a use after the callback is found */
    memcpy(op->data, end->received.data + end->received.start, size);
    end_took(end, size);
    *more = !sim_chance(sim, sim->faults.multishot_end);
    return (int)size;
}

static int perform_send(struct sim_thread *t, struct io_op *op)
{
    struct sim *sim = t->sim;
    struct end *end = end_of(t, op);
    if (!end || !(end->connected || end->dead))
        return -ENOTCONN;
    if (end->dead)
        return take_error(end, -EPIPE);
    if (end->shut)
        return -EPIPE;
    size_t room = end_room(end), sent = 0;
    if (room > 1 && sim_chance(sim, sim->faults.short_send))
        room = 1 + random_below(&sim->random, room - 1);
    for (size_t i = 0; i < op->send.message.msg_iovlen && sent < room; i++) {
        const struct iovec *part = &op->send.parts[i];
        size_t size = min_size(part->iov_len, room - sent);
        if (size > 0)
            end_send(end, part->iov_base, size);
        sent += size;
    }
    return (int)sent;
}

static int perform_receive_datagrams(struct sim_thread *t, struct io_op *op, bool *more)
{
    struct sim *sim = t->sim;
    if (sim_chance(sim, sim->faults.no_buffers)) {
        counter_add(&t->io.counters.no_buffers, 1);
        return -ENOBUFS;
    }
    int size = datagram_receive(descriptor_of(t, op)->datagrams, op);
    *more = size > 0 && !sim_chance(sim, sim->faults.multishot_end);
    return size;
}

static int perform_shutdown(struct sim_thread *t, struct io_op *op)
{
    struct end *end = end_of(t, op);
    if (!end || !end->connected || end->dead)
        return -ENOTCONN;
    end_shutdown(end);
    return 0;
}

static int perform_connect(struct sim_thread *t, struct io_op *op)
{
    struct end *end = end_of(t, op);
    return end->dead ? take_error(end, -ECONNABORTED) : 0;
}

static int perform(struct sim_thread *t, struct io_op *op, bool *more)
{
    struct descriptor *d = descriptor_of(t, op);
    *more = false;
    if (op->backend_word & CANCELLED)
        return -ECANCELED;
    switch (op->kind) {
    case IO_ACCEPT:
        return d->kind == FD_LISTENER ? perform_accept(t, op, more) : -EINVAL;
    case IO_CONNECT:
        return perform_connect(t, op);
    case IO_RECV:
        return perform_receive(t, op, more);
    case IO_SEND:
        return perform_send(t, op);
    case IO_READ:
        return pipe_read(d->pipe, op->data, op->size);
    case IO_WRITE:
        return pipe_write(d->pipe, op->data, op->size);
    case IO_SHUTDOWN:
        return perform_shutdown(t, op);
    case IO_DATAGRAM_SEND:
        return datagram_send(d->datagrams, op);
    case IO_DATAGRAM_RECV:
        return perform_receive_datagrams(t, op, more);
    case IO_CLOSE:
        return op->fd < 0 ? -EBADF : 0; /* the descriptor goes with the operation */
    default:
        return file_perform(t->sim, op);
    }
}

/* ---- Delivery ---- */

static void remove_op(struct sim_thread *t, size_t index)
{
    struct io_op *op = t->ops[index];
    t->op_count--;
    memmove(t->ops + index, t->ops + index + 1, (t->op_count - index) * sizeof *t->ops);
    if (op->fd < 0)
        return;
    descriptor_of(t, op)->in_flight--;
    if (op->kind == IO_CLOSE)
        descriptor_close(t->sim, op->fd);
}

static void deliver(struct sim_thread *t, size_t index)
{
    struct io_op *op = t->ops[index];
    bool more;
    int result = perform(t, op, &more);
    sim_note(t->sim, 'c', (uint64_t)op->fd << 8 | op->kind, (uint64_t)(int64_t)result);
    if (!more)
        remove_op(t, index);
    /* The callback may reuse the op, so its buffer is remembered here. */
    bool received = op->kind == IO_RECV ? result > 0 : op->kind == IO_DATAGRAM_RECV && result >= 0;
    uint8_t *buffer = received ? op->data : NULL;
    counter_add(&t->io.counters.completions, 1);
    io_complete(&t->io, op, result, more);
    free(buffer);
}

/* The index of one that can complete, each with the same chance; op_count if none can. */
static size_t choose(struct sim_thread *t)
{
    size_t chosen = t->op_count;
    uint64_t seen = 0;
    for (size_t i = 0; i < t->op_count; i++) {
        if (can_complete(t, t->ops[i]) && random_below(&t->sim->random, ++seen) == 0)
            chosen = i;
    }
    return chosen;
}

static int sim_wait(struct io *io, struct io_op *first, struct io_op *cancels, uint64_t deadline_ns)
{
    struct sim_thread *t = thread_of(io);
    struct sim *sim = t->sim;
    if (first || cancels || deadline_ns > 0)
        counter_add(&io->counters.enters, 1);
    hand_over(t, first);
    mark_cancels(t, cancels);
    if (!thread_ready(t)) {
        if (deadline_ns > sim->now_ns)
            t->deadline_ns = deadline_ns; /* asleep until the scheduler ends the wait */
        else
            io_woke(io);
        return 0;
    }
    io_woke(io);
    uint64_t most = 1 + random_below(&sim->random, sim->faults.batch_max), count = 0;
    for (size_t index; count < most && (index = choose(t)) < t->op_count; count++)
        deliver(t, index);
    return (int)count;
}

/* ---- The rest of the back end ---- */

static void sim_kick(struct io *io)
{
    counter_add(&io->counters.wakes, 1); /* the scheduler looks at io->sleep */
}

static uint64_t sim_io_now_ns(struct io *io)
{
    return thread_of(io)->sim->now_ns;
}

static uint64_t sim_wall_ms(struct io *io)
{
    const struct sim *sim = thread_of(io)->sim;
    return sim->wall_ms + (sim->now_ns - SIM_START_NS) / NS_PER_MS;
}

static int sim_socket(struct io *io, int family, const struct io_socket_options *options)
{
    struct sim *sim = thread_of(io)->sim;
    int fd = family == sim->lacking_family ? -EAFNOSUPPORT : descriptor_open(sim, FD_SOCKET);
    if (fd < 0)
        return fd;
    struct descriptor *d = descriptor_get(sim, fd);
    d->family = family;
    d->user_timeout_ms = options ? options->user_timeout_ms : 0;
    return fd;
}

static int sim_listen(struct io *io, const struct sockaddr *address, socklen_t len, int backlog)
{
    struct sim_thread *t = thread_of(io);
    struct sockaddr_storage at = {0};
    memcpy(&at, address, len);
    int fd = descriptor_open(t->sim, FD_LISTENER);
    if (fd < 0)
        return fd;
    struct descriptor *d = descriptor_get(t->sim, fd);
    d->listener = listener_open(t->sim, &at, t->host, backlog > 0 ? (unsigned)backlog : 0);
    if (d->listener)
        return fd;
    d->kind = FD_SOCKET;
    descriptor_close(t->sim, fd);
    return -EADDRINUSE;
}

static int sim_datagram_socket(struct io *io, const struct sockaddr *address, socklen_t len,
                               const struct io_datagram_options *options)
{
    struct sim_thread *t = thread_of(io);
    struct sockaddr_storage at = {0};
    memcpy(&at, address, len);
    int fd = descriptor_open(t->sim, FD_SOCKET);
    if (fd < 0)
        return fd;
    struct datagram_socket *s =
        datagram_socket_open(t->sim, &at, t->host, options ? options->receive_bytes : 0);
    if (!s) {
        descriptor_close(t->sim, fd);
        return -EADDRINUSE;
    }
    struct descriptor *d = descriptor_get(t->sim, fd);
    d->kind = FD_DATAGRAMS;
    d->datagrams = s;
    return fd;
}

static void remove_thread(struct sim_thread *t)
{
    struct sim_thread **at = &t->sim->threads;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    free(t->ops);
    free(t);
}

/* What is in flight on files ends somehow; the rest is nobody's any more. */
static void sim_dispose(struct io *io)
{
    struct sim_thread *t = thread_of(io);
    for (size_t i = 0; i < t->op_count; i++) {
        if (file_kind(t->ops[i]))
            file_abandon(t->sim, t->ops[i]);
    }
    remove_thread(t);
}

static const struct io_backend backend = {.wait = sim_wait,
                                          .kick = sim_kick,
                                          .now_ns = sim_io_now_ns,
                                          .wall_ms = sim_wall_ms,
                                          .socket = sim_socket,
                                          .listen = sim_listen,
                                          .datagram_socket = sim_datagram_socket,
                                          .dispose = sim_dispose};

struct io *sim_io(struct sim *sim, const char *host)
{
    struct sim_thread *t = sim_allocate(sizeof *t);
    struct sockaddr_storage address = sim_parse_host(host ? host : "127.0.0.1");
    io_init(&t->io, &backend);
    t->sim = sim;
    t->host = sim_host_of(sim, &address);
    t->deadline_ns = NEVER;
    t->next = sim->threads;
    sim->threads = t;
    return &t->io;
}

void threads_free(struct sim *sim)
{
    while (sim->threads)
        remove_thread(sim->threads); /* the owners of what is in flight may be gone */
}
