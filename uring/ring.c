/* The phases of a wait, and why in this order:
 *
 *   1. hand over   operations, then cancels (which may name operations of the same batch), then the poll
 *                  that lets other threads end the wait: all into the submission ring, without a system call
 *   2. enter       one system call submits them, runs the work that the kernel has deferred, and waits
 *   3. woke        from here on a notice is seen by the loop without a wake
 *   4. take        a bounded batch of completions, copied out so that the kernel has its room back
 *   5. deliver     into the callbacks, which only append to the lists of core/io.h: nothing they do touches
 *                  the rings
 *   6. offer       receive buffers go back to the kernel, with one store
 *
 * After a scant batch 3 to 6 are done again with what has come meanwhile, without handing anything over. */
#include "core/datagram.h"
#include "uring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BATCH            256 /* completions a wait delivers */
#define SCANT            16  /* with fewer than that it looks for more */
#define SMALL_SEND_BYTES 16384
#define PATIENCE_NS      (10 * NS_PER_MS)

/* user_data of what is not an io_op; those are aligned, so never 0 or 1. */
enum { DATA_CANCEL = 0, DATA_WAKE = 1 };

static struct uring *uring_of(struct io *io)
{
    return container_of(io, struct uring, io);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(struct io *io)
{
    (void)io;
    return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t wall_ms(struct io *io)
{
    (void)io;
    return clock_ns(CLOCK_REALTIME) / NS_PER_MS;
}

/* --- 1. hand over --- */

static void submit(struct uring *u)
{
    counter_add(&u->io.counters.enters, 1);
    io_uring_submit(
        &u->ring); /* a failure leaves the entries where they are, which is what callers look at */
}

/* A free entry; NULL if the ring is full and the kernel takes nothing now (no memory, or too many completions
 * are waiting for us). */
static struct io_uring_sqe *take_entry(struct uring *u)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    if (!sqe) {
        submit(u);
        sqe = io_uring_get_sqe(&u->ring);
    }
    if (sqe)
        counter_add(&u->io.counters.operations, 1);
    return sqe;
}

static void prepare_send(struct io_uring_sqe *sqe, struct io_op *op)
{
    const struct iovec *part = op->send.parts;
    if (op->send.message.msg_iovlen == 1)
        io_uring_prep_send(sqe, op->fd, part->iov_base, part->iov_len, MSG_NOSIGNAL);
    else
        io_uring_prep_sendmsg(sqe, op->fd, &op->send.message, MSG_NOSIGNAL);
}

static void prepare_receive(struct io_uring_sqe *sqe, struct io_op *op)
{
    io_uring_prep_recv_multishot(sqe, op->fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFERS_GROUP;
}

_Static_assert(sizeof(struct io_uring_recvmsg_out) + DATAGRAM_NAME_BYTES + DATAGRAM_CONTROL_BYTES ==
                   URING_DATAGRAM_HEAD,
               "uring.h says so");

/* The kernel takes of the message how much of each buffer to leave for a source and control messages. */
static void prepare_datagram_receive(struct io_uring_sqe *sqe, struct io_op *op)
{
    op->datagram.message =
        (struct msghdr){.msg_namelen = DATAGRAM_NAME_BYTES, .msg_controllen = DATAGRAM_CONTROL_BYTES};
    io_uring_prep_recvmsg_multishot(sqe, op->fd, &op->datagram.message, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFERS_GROUP;
}

/* Straight to a worker thread. Most file systems have the kernel do so with any write through the page cache,
 * but XFS (6.0) and btrfs (6.1) take one that finds room while it is submitted, and then sync there: this
 * thread would stand still for as long as the disk takes. */
static void prepare_durable_write(struct io_uring_sqe *sqe, struct io_op *op)
{
    io_uring_prep_write(sqe, op->fd, op->data, op->size, op->file.offset);
    sqe->rw_flags = RWF_DSYNC;
    sqe->flags |= IOSQE_ASYNC;
}

static void prepare(struct io_uring_sqe *sqe, struct io_op *op)
{
    switch ((enum io_kind)op->kind) {
    case IO_ACCEPT:
        io_uring_prep_multishot_accept(sqe, op->fd, NULL, NULL, SOCK_CLOEXEC);
        break;
    case IO_CONNECT:
        io_uring_prep_connect(sqe, op->fd, (const struct sockaddr *)&op->address, op->address_len);
        break;
    case IO_RECV:
        prepare_receive(sqe, op);
        break;
    case IO_SEND:
        prepare_send(sqe, op);
        break;
    case IO_READ:
        io_uring_prep_poll_add(sqe, op->fd, POLLIN);
        break;
    case IO_WRITE:
        io_uring_prep_poll_add(sqe, op->fd, POLLOUT);
        break;
    case IO_CLOSE:
        io_uring_prep_close(sqe, op->fd);
        break;
    case IO_FILE_OPEN:
        io_uring_prep_openat(sqe, op->fd, op->file.name, op->file.flags | O_CLOEXEC, op->file.mode);
        break;
    case IO_FILE_ALLOCATE:
        io_uring_prep_fallocate(sqe, op->fd, 0, 0, (off_t)op->file.offset);
        break;
    case IO_FILE_READ:
        io_uring_prep_read(sqe, op->fd, op->data, op->size, op->file.offset);
        break;
    case IO_FILE_WRITE:
        prepare_durable_write(sqe, op);
        break;
    case IO_FILE_SYNC:
        io_uring_prep_fsync(sqe, op->fd, 0);
        break;
    case IO_FILE_UNLINK:
        io_uring_prep_unlinkat(sqe, op->fd, op->file.name, 0);
        break;
    case IO_DATAGRAM_SEND:
        io_uring_prep_sendmsg(sqe, op->fd, &op->datagram.message, MSG_NOSIGNAL);
        break;
    case IO_DATAGRAM_RECV:
        prepare_datagram_receive(sqe, op);
        break;
    case IO_SHUTDOWN:
    case IO_KINDS:
        assert(!"has no entry");
    }
    io_uring_sqe_set_data64(sqe, (uintptr_t)op);
}

/* What is done by a system call of this thread; what was queued before has to be issued first. */
static bool issue_all(struct uring *u)
{
    if (io_uring_sq_ready(&u->ring) > 0)
        submit(u);
    return io_uring_sq_ready(&u->ring) == 0;
}

static void done_here(struct uring *u, struct io_op *op, int64_t result)
{
    op->backend_word = (uint64_t)result;
    op->next = NULL;
    *u->here_at = op;
    u->here_at = &op->next;
}

/* The kernel gives every IORING_OP_SHUTDOWN to a worker thread, which it may have to start; the system call
 * itself does not block. */
static bool shut_down(struct uring *u, struct io_op *op)
{
    if (!issue_all(u))
        return false;
    done_here(u, op, shutdown(op->fd, SHUT_WR) < 0 ? -errno : 0);
    return true;
}

static bool write_here(struct uring *u, struct io_op *op)
{
    if (!issue_all(u))
        return false;
    struct iovec part = {op->data, op->size};
    ssize_t written = pwritev2(op->fd, &part, 1, (off_t)op->file.offset, RWF_DSYNC);
    done_here(u, op, written < 0 ? -errno : written);
    return true;
}

/* The kernel gives reads and writes of files that know no non-blocking way (signals, terminals, many file
 * systems) to a worker thread as well. Instead the ring polls, and the call is made once it will not block:
 * for a pipe with no other writer that is so for PIPE_BUF bytes (io.h); a socket is not waited for. */
static int transfer(const struct io_op *op)
{
    size_t size = min_size(op->size, PIPE_BUF);
    ssize_t result;
    if (op->kind == IO_READ)
        result = read(op->fd, op->data, op->size);
    else if ((result = send(op->fd, op->data, size, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 && errno == ENOTSOCK)
        result = write(op->fd, op->data, size);
    return result < 0 ? -errno : (int)result;
}

static size_t send_bytes(const struct io_op *op)
{
    size_t bytes = 0;
    for (size_t i = 0; i < op->send.message.msg_iovlen; i++)
        bytes += op->send.parts[i].iov_len;
    return bytes;
}

/* The backend_word of an IO_SEND: in which wait it was handed over, and whether one of this op had to wait
 * for room before. The owner uses one op for all sends of a connection and zeroes it for the next. */
#define SEND_WAITED UINT64_C(1)

static uint64_t handed_over_now(const struct uring *u)
{
    return u->waits << 1;
}

static void note_send(const struct uring *u, struct io_op *op, int result)
{
    bool waited = (op->backend_word & ~SEND_WAITED) != handed_over_now(u);
    if (waited || (result >= 0 && (size_t)result < send_bytes(op)))
        op->backend_word |= SEND_WAITED;
}

/* Whether the send will most likely complete, if only in part, while it is submitted: it is small, or all
 * that was sent before on its socket has been acknowledged, so that there is room. Where a send had to wait
 * once, being small says nothing any more: so a peer that does not read can delay others by PATIENCE_NS once
 * a connection, not once a send. */
static bool ends_at_once(const struct io_op *op)
{
    int unacknowledged;
    if (op->kind == IO_DATAGRAM_SEND) /* a large one is a batch: its owner may have the next one waiting */
        return op->size <= SMALL_SEND_BYTES;
    return (send_bytes(op) <= SMALL_SEND_BYTES && !(op->backend_word & SEND_WAITED)) ||
           (ioctl(op->fd, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0);
}

static void count_send(struct uring *u, struct io_op *op)
{
    bool prompt = op->kind == IO_SEND && op->send.prompt;
    u->quick_sends += !prompt && ends_at_once(op);
    op->backend_word = handed_over_now(u) | (op->backend_word & SEND_WAITED);
}

static bool receives(const struct io_op *op)
{
    return op->kind == IO_RECV || op->kind == IO_DATAGRAM_RECV;
}

static bool hand_over(struct uring *u, struct io_op *op)
{
    assert(!receives(op) || u->buffers.count > 0);
    if (op->kind == IO_SHUTDOWN)
        return shut_down(u, op);
    if (op->kind == IO_FILE_WRITE && op->file.flags & IO_FILE_HERE)
        return write_here(u, op);
    struct io_uring_sqe *sqe = take_entry(u);
    if (!sqe)
        return false;
    prepare(sqe, op);
    u->in_flight++;
    if (op->kind == IO_SEND || op->kind == IO_DATAGRAM_SEND)
        count_send(u, op);
    return true;
}

/* Those that the kernel does not take now are queued again, for the next wait. */
static bool hand_over_all(struct uring *u, struct io_op *first)
{
    while (first) {
        struct io_op *next = first->next;
        if (!hand_over(u, first))
            break;
        first = next;
    }
    if (!first)
        return true;
    u->io.first = first;
    u->io.last = &first->next;
    while (*u->io.last)
        u->io.last = &(*u->io.last)->next;
    return false;
}

static bool hand_over_cancel(struct uring *u, struct io_op *op)
{
    struct io_uring_sqe *sqe = take_entry(u);
    if (!sqe)
        return false;
    io_uring_prep_cancel64(sqe, (uintptr_t)op, 0);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, DATA_CANCEL);
    return true;
}

/* A cancel must not overtake its operation, nor outlive it: those that cannot go now are the io's again. */
static bool hand_over_cancels(struct uring *u, struct io_op *cancels, bool possible)
{
    while (cancels) {
        struct io_op *op = cancels;
        cancels = op->cancel_next;
        possible = possible && hand_over_cancel(u, op);
        if (!possible)
            io_cancel(&u->io, op);
    }
    return possible;
}

static bool arm_wake(struct uring *u)
{
    if (u->wake_armed)
        return true;
    struct io_uring_sqe *sqe = take_entry(u);
    if (!sqe)
        return false;
    io_uring_prep_poll_multishot(sqe, u->wake_fd, POLLIN);
    io_uring_sqe_set_data64(sqe, DATA_WAKE);
    u->wake_armed = true;
    return true;
}

/* --- 2. enter --- */

/* Whether there is nothing an enter would bring: to submit, to run, or to move out of the kernel's overflow
 * list. */
static bool quiet(struct uring *u)
{
    unsigned flags = __atomic_load_n(u->ring.sq.kflags, __ATOMIC_RELAXED);
    return io_uring_sq_ready(&u->ring) == 0 && !(flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW));
}

/* So as not to return for quick sends alone, and enter again to wait for what matters, the wait is for one
 * completion more than there are quick sends: but not for longer than PATIENCE_NS, as one of them may not
 * complete while others do. (A shorter time would cost more than it saves: the kernel has to set a timer for
 * what its tick does not cover.) A send after which its owner has more to send is none of these: its end is
 * what matters. */
static int enter_until(struct uring *u, uint64_t deadline_ns)
{
    unsigned sends = u->quick_sends;
    if (deadline_ns == NEVER && sends == 0)
        return io_uring_submit_and_wait(&u->ring, 1);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (sends > 0)
        deadline_ns = min_u64(deadline_ns, now + PATIENCE_NS);
    uint64_t left_ns = deadline_ns > now ? deadline_ns - now : 0;
    struct __kernel_timespec left = {.tv_sec = (int64_t)(left_ns / NS_PER_S),
                                     .tv_nsec = (int64_t)(left_ns % NS_PER_S)};
    struct io_uring_cqe *cqe;
    return io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1 + sends, &left, NULL);
}

static bool ordinary(int result)
{
    return result >= 0 || result == -ETIME || result == -EINTR || result == -EAGAIN || result == -EBUSY;
}

static int enter(struct uring *u, uint64_t deadline_ns)
{
    if (io_uring_cq_ready(&u->ring) > 0)
        deadline_ns = 0;
    if (deadline_ns == 0 && quiet(u))
        return 0;
    counter_add(&u->io.counters.enters, 1);
    int result = deadline_ns == 0 ? io_uring_submit_and_get_events(&u->ring) : enter_until(u, deadline_ns);
    return ordinary(result) ? 0 : result;
}

/* An io with nothing in flight waits for wakes alone, as an owner whose store is memory always does. A futex
 * on the very word that says so costs half of what an enter and an eventfd do. */
static void sleep_on_futex(struct uring *u, uint64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                             .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    int failed = (int)syscall(SYS_futex, &u->io.sleep, FUTEX_WAIT_BITSET_PRIVATE, IO_ASLEEP,
                              deadline_ns == NEVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
    if (!failed || errno == EAGAIN)
        counter_add(&u->io.counters.wakes, 1);
}

/* Waits where the next wake will come to. Both this thread and the one that wakes it write one word and then
 * read the other's (sleep, on_futex), so that at least one of them sees that the other was first. */
static int sleep_or_enter(struct uring *u, uint64_t deadline_ns)
{
    bool idle = u->in_flight == 0 && deadline_ns > 0 && quiet(u) && io_uring_cq_ready(&u->ring) == 0;
    atomic_store(&u->on_futex, idle);
    if (idle) {
        sleep_on_futex(u, deadline_ns);
        return 0;
    }
    if (deadline_ns > 0 && (atomic_load(&u->io.sleep) == IO_NOTIFIED || !arm_wake(u)))
        deadline_ns = 0;
    return enter(u, deadline_ns);
}

/* --- 4. to 6. take, deliver, offer --- */

static int deliver_here(struct uring *u)
{
    int delivered = 0;
    struct io_op *op = u->here;
    u->here = NULL;
    u->here_at = &u->here;
    while (op) {
        struct io_op *next = op->next;
        io_complete(&u->io, op, (int)(int64_t)op->backend_word, false);
        delivered++;
        op = next;
    }
    return delivered;
}

static unsigned take(struct uring *u, struct io_uring_cqe *batch, unsigned most)
{
    unsigned head, taken = 0;
    struct io_uring_cqe *cqe;
    io_uring_for_each_cqe(&u->ring, head, cqe)
    {
        if (taken == most)
            break;
        batch[taken++] = *cqe;
    }
    io_uring_cq_advance(&u->ring, taken);
    counter_add(&u->io.counters.completions, taken);
    return taken;
}

/* A buffer is filled with a head, room for the source, room for control messages, and the payload. */
static int unpack_datagram(struct io_op *op, uint8_t *buffer, int filled)
{
    struct msghdr *room = &op->datagram.message;
    struct io_uring_recvmsg_out *out = io_uring_recvmsg_validate(buffer, filled, room);
    if (!out)
        return filled < 0 ? filled : -EMSGSIZE;
    struct msghdr message = {.msg_name = io_uring_recvmsg_name(out),
                             .msg_namelen = (socklen_t)min_size(out->namelen, room->msg_namelen),
                             .msg_control = io_uring_recvmsg_cmsg_firsthdr(out, room),
                             .msg_controllen = min_size(out->controllen, room->msg_controllen),
                             .msg_flags = (int)out->flags};
    uint32_t size = io_uring_recvmsg_payload_length(out, filled, room);
    datagram_received(op, &message, io_uring_recvmsg_payload(out, room), size);
    return (int)size;
}

static int unpack(struct io_op *op, uint8_t *buffer, int filled)
{
    op->data = buffer;
    return op->kind == IO_DATAGRAM_RECV ? unpack_datagram(op, buffer, filled) : filled;
}

static void deliver_op(struct uring *u, const struct io_uring_cqe *cqe)
{
    struct io_op *op = (struct io_op *)(uintptr_t)cqe->user_data;
    bool more = cqe->flags & IORING_CQE_F_MORE;
    u->in_flight -= !more;
    if (cqe->flags & IORING_CQE_F_BUFFER) { /* also at the end of a stream, on some kernels */
        unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
        buffers_taken(&u->buffers, cqe->res > 0 ? (uint32_t)cqe->res : 0);
        io_complete(&u->io, op, unpack(op, buffers_at(&u->buffers, id), cqe->res), more);
        buffers_return(&u->buffers, id);
        return;
    }
    if (cqe->res == -ENOBUFS && receives(op)) {
        counter_add(&u->io.counters.no_buffers, 1);
        u->buffers.exhausted = true;
    }
    if (op->kind == IO_SEND)
        note_send(u, op, cqe->res);
    bool ready = cqe->res >= 0 && (op->kind == IO_READ || op->kind == IO_WRITE);
    io_complete(&u->io, op, ready ? transfer(op) : cqe->res, more);
}

/* Returns whether it was an operation of the seam. */
static bool deliver(struct uring *u, const struct io_uring_cqe *cqe)
{
    if (cqe->user_data == DATA_CANCEL)
        return false; /* found nothing: what it named has completed */
    if (cqe->user_data == DATA_WAKE) {
        u->wake_armed = cqe->flags & IORING_CQE_F_MORE;
        if (cqe->res > 0)
            counter_add(&u->io.counters.wakes, 1);
        return false;
    }
    deliver_op(u, cqe);
    return true;
}

/* `most`: at most BATCH. */
static int deliver_batch(struct uring *u, unsigned most)
{
    struct io_uring_cqe batch[BATCH];
    unsigned taken = take(u, batch, most);
    int delivered = deliver_here(u);
    for (unsigned i = 0; i < taken; i++)
        delivered += deliver(u, &batch[i]);
    if (u->buffers.count > 0)
        buffers_offer(&u->buffers);
    return delivered;
}

/* Whether more has come meanwhile. What the kernel has deferred runs now. */
static bool look_again(struct uring *u)
{
    unsigned flags = __atomic_load_n(u->ring.sq.kflags, __ATOMIC_RELAXED);
    if (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) {
        counter_add(&u->io.counters.enters, 1);
        io_uring_get_events(&u->ring);
    }
    return io_uring_cq_ready(&u->ring) > 0;
}

/* A batch is what had come when the kernel was entered. While it is delivered more comes, and a loop that
 * took that in its next step would do what it does once a step (push, answer, wake another thread) for a few
 * datagrams each. So a scant batch is followed by another in the same wait. */
static int deliver_batches(struct uring *u)
{
    int delivered = deliver_batch(u, BATCH);
    while (delivered < SCANT && look_again(u)) {
        io_woke(&u->io);
        int more = deliver_batch(u, BATCH - SCANT);
        if (more == 0)
            break;
        delivered += more;
    }
    return delivered;
}

/* The whole of it. */
static int wait_for(struct io *io, struct io_op *first, struct io_op *cancels, uint64_t deadline_ns)
{
    struct uring *u = uring_of(io);
    if (!u->enabled) {
        int error = ring_enable(&u->ring);
        if (error < 0)
            return error;
        u->enabled = true;
    }
    u->waits++;
    bool all = hand_over_all(u, first);
    all = hand_over_cancels(u, cancels, all);
    if (!all || u->here)
        deadline_ns = 0;
    int error = sleep_or_enter(u, deadline_ns);
    u->quick_sends = 0;
    io_woke(io);
    return error < 0 ? error : deliver_batches(u);
}

static void kick(struct io *io)
{
    static const uint64_t one = 1;
    struct uring *u = uring_of(io);
    int saved = errno; /* this may be a signal handler */
    ssize_t written;
    if (atomic_load(&u->on_futex)) {
        syscall(SYS_futex, &u->io.sleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    } else {
        do
            written = write(u->wake_fd, &one, sizeof one);
        while (written < 0 && errno == EINTR);
    }
    errno = saved;
}

static void dispose(struct io *io)
{
    struct uring *u = uring_of(io);
    ring_tear_down(&u->ring, &u->buffers);
    close(u->wake_fd);
    free(u);
}

static const struct io_backend backend = {
    .wait = wait_for,
    .kick = kick,
    .now_ns = now_ns,
    .wall_ms = wall_ms,
    .socket = uring_socket,
    .listen = uring_listen,
    .datagram_socket = uring_datagram_socket,
    .dispose = dispose,
};

int uring_open(struct io **io, const struct uring_options *options)
{
    struct uring *u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    io_init(&u->io, &backend);
    u->here_at = &u->here;
    u->wake_fd = eventfd(0, EFD_CLOEXEC);
    int error = u->wake_fd < 0 ? -errno : 0;
    if (error == 0)
        error = ring_set_up(&u->ring, &u->buffers, options ? options : &uring_defaults);
    if (error < 0) {
        if (u->wake_fd >= 0)
            close(u->wake_fd);
        free(u);
        return error;
    }
    *io = &u->io;
    return 0;
}
