/* The I/O seam: the few operations a loop needs, as completions. Three back ends stand behind it: uring/ (the
 * product), a simulated one (tests/sim) and an epoll one (experiments/epoll, the baseline of the benchmarks).
 *
 * An operation is a `struct io_op` embedded in its owner. The owner fills it with io_prepare_*, queues it
 * with io_queue (an append to a list), and hears of it through `done(op, result, more)` from inside io_wait,
 * never from io_queue. All that was queued is handed over in one call a batch. From io_queue to its last
 * completion the op, and the memory it points at, belong to the back end. A completion with `more` is not the
 * last.
 *
 * `result` is what the system call would have returned, or a negative errno. Short sends, ECANCELED, and
 * ENOBUFS on a receive are ordinary results. A receive's bytes are `op->data` [0, result) and are the
 * callback's until it returns.
 *
 * Datagrams (UDP). One send hands over many: with a segment size the kernel cuts the bytes into datagrams
 * (GSO, UDP_SEGMENT, Linux 4.18). Where that cannot be, all of it is refused: EIO, a device or tunnel that
 * cannot checksum; EINVAL, too many segments; EINVAL or EMSGSIZE (it depends on the kernel), larger than the
 * MTU. Nothing was sent then, and the owner sends them one by one. One receive gives many in the same way
 * (GRO, UDP_GRO, 5.0). Datagrams are sent with DF, up to the interface's MTU whatever is known of the path
 * (IP_PMTUDISC_PROBE): the owner probes it. Sockets are not connected, so that no ICMP error of one
 * destination reaches them.
 *
 * An `io` belongs to one thread; only io_wake may be called from others (and from signal handlers). */
#ifndef PURE_CORE_IO_H
#define PURE_CORE_IO_H

#include "core/bytes.h"
#include "core/clock.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum io_kind {
    IO_ACCEPT,   /* multishot: result is a new descriptor */
    IO_CONNECT,  /* result 0 */
    IO_RECV,     /* multishot, into the back end's buffers: result 0 is the end of the stream */
    IO_SEND,     /* on a connected socket, gathered, MSG_NOSIGNAL: result may be short */
    IO_READ,     /* into memory of the owner's, from a descriptor without a position */
    IO_WRITE,    /* likewise to one: the write end of a pipe with no other writer, or a non-blocking one */
    IO_SHUTDOWN, /* the sending half, after what was queued before it completed: result 0 */
    IO_CLOSE,    /* result 0; nothing may be in flight on the descriptor */
    /* Files. `offset`s are the operation's own; several may be in flight on a descriptor, and end in any
     * order. All have to have ended before io_dispose: a kernel thread may be at their memory. What is
     * cancelled may have been done, and may say EINTR */
    IO_FILE_OPEN,     /* `name` in the directory `fd`: result is a descriptor (O_CLOEXEC) */
    IO_FILE_ALLOCATE, /* sets aside the first `offset` bytes, of zeros where nothing was written; the file is
                       * that long then. Result 0; -EOPNOTSUPP where that cannot be */
    IO_FILE_READ,     /* result may be short: at the end of the file it is */
    IO_FILE_WRITE,    /* durable when it completes (RWF_DSYNC, Linux 4.7): result may be short */
    IO_FILE_SYNC,     /* a file, or a directory: the names in it. Result 0 */
    IO_FILE_UNLINK,   /* `name` in the directory `fd`: result 0 */
    /* UDP. All of `data`, or an error. Many may be in flight; they leave in order while there is room */
    IO_DATAGRAM_SEND,
    /* UDP, multishot, into the back end's buffers. Result: bytes of a datagram, or of a run; 0: an empty one.
     * Any completion may be the last (ENOBUFS is; an empty datagram on some kernels): arm it again */
    IO_DATAGRAM_RECV,
    IO_KINDS
};

/* Of an IO_FILE_WRITE: its thread has nothing else to do, so the back end may wait for it in the call, which
 * saves the wakes of a worker and back. */
#define IO_FILE_HERE 1

struct io_op;
typedef void io_done(struct io_op *op, int result, bool more);

/* The longest gather list of an IO_SEND. */
#define IO_SEND_PARTS 8

/* Of one IO_DATAGRAM_SEND: segments that every kernel takes (UDP_MAX_SEGMENTS), bytes that IPv4 does. */
#define IO_SEGMENTS_MAX   64
#define IO_DATAGRAM_BYTES 65507

struct io_op {
    struct io_op *next; /* the back end's from io_queue on */
    io_done *done;
    uint8_t kind;
    bool in_flight;  /* queued and its last completion not delivered */
    bool cancelling; /* on the io's list of cancels */
    int fd;
    uint8_t *data;         /* receives: the bytes of this completion. Else the owner's memory */
    uint32_t size;         /* bytes at `data`, but for IO_RECV, whose result says */
    socklen_t address_len; /* IO_CONNECT */
    union {
        struct sockaddr_storage address; /* IO_CONNECT */
        struct {                         /* IO_FILE_… */
            uint64_t offset;
            const char *name; /* the owner's memory, until the last completion */
            int flags;        /* OPEN: of openat. WRITE: 0 or IO_FILE_HERE */
            unsigned mode;
        } file;
        struct { /* IO_SEND: parts[0, message.msg_iovlen) */
            struct msghdr message;
            struct iovec parts[IO_SEND_PARTS];
            bool prompt; /* its owner has more to send after it: a wait is not to go on past its end */
        } send;
        struct {
            struct sockaddr_storage address; /* SEND: where to. RECV: whence */
            socklen_t address_len;
            /* Bytes of each datagram in `data` but the last, which may be shorter. SEND: 0 is one datagram.
             * RECV: at least 1 where there are bytes. */
            uint16_t segment;
            bool truncated;        /* RECV: the buffer was too small; what is behind `size` is lost */
            struct msghdr message; /* from here on the back end's */
            struct iovec part;
            _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))];
        } datagram;
    };
    struct io_op *cancel_next;
    struct io_op *backend_next; /* scratch of the back end */
    uint64_t backend_word;
};

/* What a back end counts; each written by the io's own thread only, read by any. */
struct io_counters {
    _Atomic uint64_t enters;      /* hand-overs to the kernel */
    _Atomic uint64_t operations;  /* operations handed over (SQEs) */
    _Atomic uint64_t completions; /* results taken (CQEs) */
    _Atomic uint64_t sleeps;      /* hand-overs that were prepared to wait */
    _Atomic uint64_t wakes;       /* times another thread had to wake this one */
    _Atomic uint64_t no_buffers;  /* receives that found no free buffer */
};

/* A counter has one writer; this avoids a locked instruction. */
static inline void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline uint64_t counter_read(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

struct io;

/* Options of a new connection. */
struct io_socket_options {
    uint32_t user_timeout_ms; /* TCP_USER_TIMEOUT: unacknowledged for so long ends it; 0: the system's own */
};

struct sock_filter;

/* Options of a new datagram socket. The kernel gives at most net.core.rmem_max, wmem_max. */
struct io_datagram_options {
    uint32_t receive_bytes, send_bytes; /* SO_RCVBUF, SO_SNDBUF; 0: the system's own */
    /* What the kernel drops before anybody sees it (SO_ATTACH_FILTER): a saving, which a back end, or a
     * kernel that refuses it, may leave out. NULL: nothing */
    const struct sock_filter *filter;
    uint32_t filter_length; /* instructions */
};

struct io_backend {
    /* Hands over all of [first …] (linked by next, in order), then cancels [cancels …] (linked by
     * cancel_next; they are off the list when this is called: each completes, with -ECANCELED or its result),
     * waits until `deadline_ns` (0: does not wait, NEVER: no end) or a completion or a wake, and calls `done`
     * of what completed: at most a bounded batch. Under simulation it never waits. Returns the number of
     * completions delivered, or a negative errno that ends the loop. */
    int (*wait)(struct io *io, struct io_op *first, struct io_op *cancels, uint64_t deadline_ns);
    void (*kick)(struct io *io); /* ends a wait; any thread, signal-safe */
    uint64_t (*now_ns)(struct io *io);
    uint64_t (*wall_ms)(struct io *io); /* since 1970, for people and peers only */
    /* Small calls that do not block. A descriptor or a negative errno. */
    int (*socket)(struct io *io, int family, const struct io_socket_options *options);
    int (*listen)(struct io *io, const struct sockaddr *address, socklen_t len, int backlog);
    int (*datagram_socket)(struct io *io, const struct sockaddr *address, socklen_t len,
                           const struct io_datagram_options *options);
    void (*dispose)(struct io *io);
};

/* Whether the owner of an io sleeps in a wait: the whole protocol of waking once, only when it is needed. */
enum io_sleep { IO_AWAKE, IO_ASLEEP, IO_NOTIFIED };

struct io {
    const struct io_backend *backend;
    struct io_op *first, **last; /* queued, not handed over */
    struct io_op *cancels;       /* in flight and to be cancelled */
    _Atomic int sleep;           /* enum io_sleep */
    /* The owner's, for experiments: a wait goes on until nothing completes any more, so that it has no bound
     */
    bool drains;
    uint64_t *clock_ns; /* the owner's: set at the end of each wait, before completions; NULL: not wanted */
    struct io_counters counters;
};

void io_init(struct io *io, const struct io_backend *backend);

static inline void io_queue(struct io *io, struct io_op *op)
{
    assert(!op->in_flight);
    op->in_flight = true;
    op->next = NULL;
    *io->last = op;
    io->last = &op->next;
}

/* Hands over what is queued, waits as io_backend.wait says unless a wake came, delivers completions: a batch,
 * or, if io->drains, until there are none. Returns their number or a negative errno. */
int io_wait(struct io *io, uint64_t deadline_ns);

/* Makes the owner's current or next io_wait return at once. One system call at most, and only if it sleeps.
 * All that the waker wrote before is seen by the owner after that io_wait. */
void io_wake(struct io *io);

/* For back ends: the end of a wait (before completions are delivered). */
static inline void io_woke(struct io *io)
{
    atomic_exchange_explicit(&io->sleep, IO_AWAKE, memory_order_acq_rel);
    if (io->clock_ns)
        *io->clock_ns = io->backend->now_ns(io);
}

void io_forget_cancel(struct io *io, struct io_op *op);

/* For back ends: delivers one result. */
static inline void io_complete(struct io *io, struct io_op *op, int result, bool more)
{
    if (!more) {
        op->in_flight = false;
        if (op->cancelling)
            io_forget_cancel(io, op);
    }
    op->done(op, result, more);
}

static inline uint64_t io_now_ns(struct io *io)
{
    return io->backend->now_ns(io);
}

static inline uint64_t io_wall_ms(struct io *io)
{
    return io->backend->wall_ms(io);
}

/* Asks for an early end of an op in flight; its last completion still comes. */
void io_cancel(struct io *io, struct io_op *op);

static inline int io_socket(struct io *io, int family, const struct io_socket_options *options)
{
    return io->backend->socket(io, family, options);
}

static inline int io_listen(struct io *io, const struct sockaddr *address, socklen_t len, int backlog)
{
    return io->backend->listen(io, address, len, backlog);
}

/* A UDP socket bound to `address`; of zeros but for the family: any address, a port that the kernel chooses.
 * `options` may be NULL. */
static inline int io_datagram_socket(struct io *io, const struct sockaddr *address, socklen_t len,
                                     const struct io_datagram_options *options)
{
    return io->backend->datagram_socket(io, address, len, options);
}

static inline void io_dispose(struct io *io)
{
    io->backend->dispose(io);
}

static inline void io_prepare(struct io_op *op, enum io_kind kind, int fd, io_done *done)
{
    assert(!op->in_flight);
    op->kind = (uint8_t)kind;
    op->fd = fd;
    op->done = done;
    op->data = NULL;
    op->size = 0;
}

static inline void io_prepare_memory(struct io_op *op, enum io_kind kind, int fd, void *data, uint32_t size,
                                     io_done *done)
{
    io_prepare(op, kind, fd, done);
    op->data = data;
    op->size = size;
}

static inline void io_prepare_connect(struct io_op *op, int fd, const struct sockaddr *address, socklen_t len,
                                      io_done *done)
{
    assert(len <= sizeof op->address);
    io_prepare(op, IO_CONNECT, fd, done);
    memcpy(&op->address, address, len);
    op->address_len = len;
}

/* READ, WRITE: `size` bytes at `offset` of the file. ALLOCATE: `offset` bytes. SYNC: neither. */
static inline void io_prepare_file(struct io_op *op, enum io_kind kind, int fd, void *data, uint32_t size,
                                   uint64_t offset, io_done *done)
{
    io_prepare_memory(op, kind, fd, data, size, done);
    op->file.offset = offset;
    op->file.flags = 0;
}

/* OPEN, UNLINK: `name` is the owner's. `flags` and `mode` of OPEN as openat takes them. */
static inline void io_prepare_name(struct io_op *op, enum io_kind kind, int directory, const char *name,
                                   int flags, unsigned mode, io_done *done)
{
    io_prepare(op, kind, directory, done);
    op->file.name = name;
    op->file.flags = flags;
    op->file.mode = mode;
}

/* The parts are copied, not what they point at. */
static inline void io_prepare_send(struct io_op *op, int fd, const struct iovec *parts, unsigned count,
                                   io_done *done)
{
    assert(count > 0 && count <= IO_SEND_PARTS);
    io_prepare(op, IO_SEND, fd, done);
    memcpy(op->send.parts, parts, count * sizeof *parts);
    op->send.message = (struct msghdr){.msg_iov = op->send.parts, .msg_iovlen = count};
    op->send.prompt = false;
}

/* `segment` 0: one datagram. The address is copied, the bytes are not. */
void io_prepare_datagram_send(struct io_op *op, int fd, const void *data, uint32_t size, uint16_t segment,
                              const struct sockaddr *address, socklen_t len, io_done *done);

static inline void io_prepare_datagram_receive(struct io_op *op, int fd, io_done *done)
{
    io_prepare(op, IO_DATAGRAM_RECV, fd, done);
    memset(&op->datagram, 0, sizeof op->datagram);
}

#endif
