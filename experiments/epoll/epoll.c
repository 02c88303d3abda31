#include "experiments/epoll/entries.h"
#include "core/datagram.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Reads or accepts of one descriptor in one wait, so that a fast one does not starve the others. */
#define VISIT_QUOTA    4
#define DATAGRAM_QUOTA 16

const struct epoll_options epoll_defaults = {.events = 256, .buffer_bytes = 64 * 1024};

static struct epoll_io *epoll_of(struct io *io)
{
    return container_of(io, struct epoll_io, io);
}

/* ---- Entries ---- */

static bool grow_entries(struct epoll_io *e, unsigned fd)
{
    unsigned room = e->entry_room ? e->entry_room : 64;
    while (room <= fd)
        room *= 2;
    struct entry **entries = realloc(e->entries, room * sizeof *entries);
    if (!entries)
        return false;
    memset(entries + e->entry_room, 0, (room - e->entry_room) * sizeof *entries);
    e->entries = entries;
    e->entry_room = room;
    return true;
}

/* NULL: no memory, or no descriptor. */
static struct entry *entry_of(struct epoll_io *e, int fd)
{
    if (fd < 0 || ((unsigned)fd >= e->entry_room && !grow_entries(e, (unsigned)fd)))
        return NULL;
    struct entry *entry = e->entries[fd];
    if (!entry && (entry = calloc(1, sizeof *entry))) {
        *entry = (struct entry){.fd = fd, .writable = true};
        e->entries[fd] = entry;
    }
    return entry;
}

static void visit(struct epoll_io *e, struct entry *entry)
{
    if (entry->visiting)
        return;
    entry->visiting = true;
    entry->visit_next = NULL;
    *e->visits_last = entry;
    e->visits_last = &entry->visit_next;
}

void epoll_result(struct epoll_io *e, struct io_op *op, int value)
{
    op->backend_word = (uint64_t)(int64_t)value;
    op->backend_next = NULL;
    *e->results_last = op;
    e->results_last = &op->backend_next;
}

int epoll_control(struct epoll_io *e, int operation, struct entry *entry, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = entry};
    epoll_count_call(e);
    return epoll_ctl(e->epoll_fd, operation, entry->fd, &event) < 0 ? -errno : 0;
}

/* From here on edges of both directions come; the state at this moment comes as the first. */
static int watch(struct epoll_io *e, struct entry *entry)
{
    if (entry->registered)
        return 0;
    int error = epoll_control(e, EPOLL_CTL_ADD, entry, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    entry->registered = error == 0;
    return error;
}

/* ---- Operations at hand-over ---- */

static void start_in(struct epoll_io *e, struct entry *entry, struct io_op *op)
{
    int error = op->kind == IO_DATAGRAM_RECV ? epoll_watch_datagrams(e, entry) : watch(e, entry);
    if (error < 0) {
        epoll_result(e, op, error);
        return;
    }
    entry->in = op;
    if (entry->readable)
        visit(e, entry);
}

static size_t parts_size(const struct io_op *op)
{
    size_t size = 0;
    for (size_t i = 0; i < op->send.message.msg_iovlen; i++)
        size += op->send.parts[i].iov_len;
    return size;
}

static void park_out(struct epoll_io *e, struct entry *entry, struct io_op *op)
{
    int error = watch(e, entry);
    if (error < 0)
        epoll_result(e, op, error);
    else
        entry->out = op;
}

static void try_send(struct epoll_io *e, struct entry *entry, struct io_op *op)
{
    entry->out = NULL;
    if (entry->writable) {
        epoll_count_call(e);
        ssize_t sent = sendmsg(entry->fd, &op->send.message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0 || errno != EAGAIN) {
            /* After a short send the kernel says when there is room, as after EAGAIN. */
            if (sent >= 0 && entry->registered)
                entry->writable = (size_t)sent == parts_size(op);
            epoll_result(e, op, sent < 0 ? -errno : (int)sent);
            return;
        }
        entry->writable = false;
    }
    park_out(e, entry, op);
}

static void try_connect(struct epoll_io *e, struct entry *entry, struct io_op *op)
{
    epoll_count_call(e);
    if (connect(entry->fd, (struct sockaddr *)&op->address, op->address_len) == 0) {
        epoll_result(e, op, 0);
    } else if (errno == EINPROGRESS) {
        entry->writable = false;
        park_out(e, entry, op);
    } else {
        epoll_result(e, op, -errno);
    }
}

static void finish_connect(struct epoll_io *e, struct entry *entry)
{
    int error = 0;
    socklen_t len = sizeof error;
    epoll_count_call(e);
    if (getsockopt(entry->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    epoll_result(e, entry->out, -error);
    entry->out = NULL;
}

static void shut_down(struct epoll_io *e, struct entry *entry, struct io_op *op)
{
    if (entry->out) {
        entry->shutting = op;
        return;
    }
    epoll_count_call(e);
    epoll_result(e, op, shutdown(entry->fd, SHUT_WR) < 0 ? -errno : 0);
}

static void close_entry(struct epoll_io *e, struct entry *entry, struct io_op *op)
{
    assert(!entry->in && !entry->out && !entry->sends && !entry->shutting && !entry->visiting);
    *entry = (struct entry){.fd = entry->fd, .writable = true}; /* the kernel forgets the registration */
    epoll_count_call(e);
    epoll_result(e, op, close(entry->fd) < 0 && errno != EINTR ? -errno : 0);
}

/* ---- IO_READ, IO_WRITE: descriptors that may block, and may not be known to epoll ---- */

static void transfer(struct epoll_io *e, struct entry *entry, struct io_op *op)
{
    epoll_count_call(e);
    ssize_t moved;
    if (op->kind == IO_READ)
        moved = read(entry->fd, op->data, op->size);
    else /* a pipe that is writable takes PIPE_BUF bytes without blocking */
        moved = write(entry->fd, op->data, entry->oneshot ? min_size(op->size, PIPE_BUF) : op->size);
    epoll_result(e, op, moved < 0 ? -errno : (int)moved);
}

static int arm_once(struct epoll_io *e, struct entry *entry)
{
    uint32_t events =
        EPOLLONESHOT | (entry->in ? (uint32_t)EPOLLIN : 0) | (entry->out ? (uint32_t)EPOLLOUT : 0);
    int error = epoll_control(e, entry->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, entry, events);
    entry->registered = entry->registered || error == 0;
    entry->oneshot = entry->registered;
    return error;
}

static void start_transfer(struct epoll_io *e, struct entry *entry, struct io_op *op)
{
    struct io_op **place = op->kind == IO_READ ? &entry->in : &entry->out;
    *place = op;
    int error = arm_once(e, entry);
    if (error == 0)
        return;
    *place = NULL;
    if (error == -EPERM) /* a file: always ready */
        transfer(e, entry, op);
    else
        epoll_result(e, op, error);
}

static void transfer_ready(struct epoll_io *e, struct entry *entry, uint32_t events)
{
    struct io_op *in = entry->in, *out = entry->out;
    if (in && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        entry->in = NULL;
        transfer(e, entry, in);
    }
    if (out && events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) {
        entry->out = NULL;
        transfer(e, entry, out);
    }
    if (entry->in || entry->out)
        arm_once(e, entry);
}

/* ---- Hand-over ---- */

static void start(struct epoll_io *e, struct io_op *op)
{
    counter_add(&e->io.counters.operations, 1);
    if (epoll_run_file(e, op))
        return;
    struct entry *entry = entry_of(e, op->fd);
    if (!entry) {
        epoll_result(e, op, op->fd < 0 ? -EBADF : -ENOMEM);
        return;
    }
    switch (op->kind) {
    case IO_ACCEPT:
    case IO_RECV:
    case IO_DATAGRAM_RECV:
        start_in(e, entry, op);
        break;
    case IO_CONNECT:
        try_connect(e, entry, op);
        break;
    case IO_SEND:
        try_send(e, entry, op);
        break;
    case IO_READ:
    case IO_WRITE:
        start_transfer(e, entry, op);
        break;
    case IO_DATAGRAM_SEND:
        epoll_send_datagram(e, entry, op);
        break;
    case IO_SHUTDOWN:
        shut_down(e, entry, op);
        break;
    default:
        close_entry(e, entry, op);
    }
}

/* Takes a parked operation out of its entry; one that has its result already keeps it. */
static void cancel(struct epoll_io *e, struct io_op *op)
{
    struct entry *entry = entry_of(e, op->fd);
    counter_add(&e->io.counters.operations, 1);
    if (!entry || epoll_cancel_datagram(e, entry, op))
        return;
    struct io_op **places[] = {&entry->in, &entry->out, &entry->shutting};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (*places[i] != op)
            continue;
        *places[i] = NULL;
        epoll_result(e, op, -ECANCELED);
    }
    if (entry->shutting && !entry->out) {
        struct io_op *shutting = entry->shutting;
        entry->shutting = NULL;
        shut_down(e, entry, shutting);
    }
}

static void hand_over(struct epoll_io *e, struct io_op *first, struct io_op *cancels)
{
    for (struct io_op *op = first, *next; op; op = next) {
        next = op->next;
        start(e, op);
    }
    for (struct io_op *op = cancels, *next; op; op = next) {
        next = op->cancel_next;
        cancel(e, op);
    }
}

/* ---- Readiness ---- */

static void ready_out(struct epoll_io *e, struct entry *entry)
{
    entry->writable = true;
    if (entry->datagrams)
        epoll_send_datagrams(e, entry);
    if (!entry->out)
        return;
    if (entry->out->kind == IO_CONNECT)
        finish_connect(e, entry);
    else
        try_send(e, entry, entry->out);
    if (entry->shutting && !entry->out) {
        struct io_op *shutting = entry->shutting;
        entry->shutting = NULL;
        shut_down(e, entry, shutting);
    }
}

static void ready(struct epoll_io *e, struct entry *entry, uint32_t events)
{
    if (entry->oneshot) {
        transfer_ready(e, entry, events);
        return;
    }
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        entry->hung_up = true;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        entry->readable = true;
        if (entry->in)
            visit(e, entry);
    }
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        ready_out(e, entry);
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* epoll_pwait2 came with Linux 5.11; without it the wait ends up to a millisecond late. */
static int wait_events(struct epoll_io *e, uint64_t deadline_ns)
{
    uint64_t now_ns = deadline_ns == 0 || deadline_ns == NEVER ? 0 : clock_ns(CLOCK_MONOTONIC);
    struct timespec left = timespec_of(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
    const struct timespec *timeout = deadline_ns == NEVER ? NULL : &left;
    epoll_count_call(e);
    int count = epoll_pwait2(e->epoll_fd, e->events, (int)e->event_limit, timeout, NULL);
    if (count < 0 && errno == ENOSYS) {
        int ms =
            deadline_ns == NEVER ? -1 : (int)min_u64((deadline_ns - now_ns + 999999) / NS_PER_MS, INT_MAX);
        count = epoll_wait(e->epoll_fd, e->events, (int)e->event_limit, deadline_ns > now_ns ? ms : 0);
    }
    return count >= 0 ? count : errno == EINTR ? 0 : -errno;
}

/* ---- Delivery ---- */

static void complete(struct epoll_io *e, struct io_op *op, int value, bool more)
{
    e->delivered++;
    io_complete(&e->io, op, value, more);
}

static void deliver_results(struct epoll_io *e)
{
    struct io_op *op = e->results;
    e->results = NULL;
    e->results_last = &e->results;
    for (struct io_op *next; op; op = next) {
        next = op->backend_next;
        complete(e, op, (int)(int64_t)op->backend_word, false);
    }
}

static int take_in(struct epoll_io *e, struct io_op *op)
{
    epoll_count_call(e);
    int got;
    if (op->kind == IO_DATAGRAM_RECV)
        return epoll_receive_datagram(e, op);
    if (op->kind == IO_ACCEPT)
        got = accept4(op->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    else
        got = (int)recv(op->fd, e->buffer, e->buffer_bytes, MSG_DONTWAIT);
    return got < 0 ? -errno : got;
}

/* One accept or receive. False: nothing more is to be had from the entry now. */
static bool take(struct epoll_io *e, struct entry *entry)
{
    struct io_op *op = entry->in;
    int got = take_in(e, op);
    if (got == -EAGAIN) {
        entry->readable = false;
        return false;
    }
    bool more = op->kind == IO_RECV ? got > 0 : got >= 0;
    if (!more)
        entry->in = NULL;
    if (op->kind == IO_RECV) {
        op->data = e->buffer;
        if (got > 0 && (uint32_t)got < e->buffer_bytes && !entry->hung_up)
            entry->readable = false;
    }
    complete(e, op, got, more);
    return more && entry->readable && !op->cancelling;
}

static void visit_entry(struct epoll_io *e, struct entry *entry)
{
    unsigned quota = entry->datagrams ? DATAGRAM_QUOTA : VISIT_QUOTA;
    for (unsigned taken = 0; taken < quota && entry->in && take(e, entry);)
        taken++;
    if (entry->in && entry->readable)
        visit(e, entry); /* next time, behind the others */
}

static void deliver_visits(struct epoll_io *e)
{
    struct entry *entry = e->visits;
    e->visits = NULL;
    e->visits_last = &e->visits;
    for (struct entry *next; entry; entry = next) {
        next = entry->visit_next;
        entry->visiting = false;
        visit_entry(e, entry);
    }
}

static int epoll_io_wait(struct io *io, struct io_op *first, struct io_op *cancels, uint64_t deadline_ns)
{
    struct epoll_io *e = epoll_of(io);
    hand_over(e, first, cancels);
    e->skipped = e->results && !e->skipped;
    if (!e->skipped) {
        int count = wait_events(e, e->results || e->visits ? 0 : deadline_ns);
        if (count < 0)
            return count;
        for (int i = 0; i < count; i++) {
            if (e->events[i].data.ptr)
                ready(e, e->events[i].data.ptr, e->events[i].events);
            else
                counter_add(&io->counters.wakes, 1);
        }
    }
    io_woke(io);
    e->delivered = 0;
    deliver_results(e);
    deliver_visits(e);
    counter_add(&io->counters.completions, e->delivered);
    return (int)e->delivered;
}

/* ---- The rest of the back end ---- */

/* Edge-triggered: each write is an event, so nobody has to read. The counter lasts for 2^64 wakes. */
static void epoll_kick(struct io *io)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t written = write(epoll_of(io)->wake_fd, &one, sizeof one);
    (void)written;
    errno = saved;
}

static uint64_t epoll_now_ns(struct io *io)
{
    (void)io;
    return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t epoll_wall_ms(struct io *io)
{
    (void)io;
    return clock_ns(CLOCK_REALTIME) / NS_PER_MS;
}

static int new_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0)
        return fd;
    int error = -errno;
    close(fd);
    return error;
}

static int epoll_socket(struct io *io, int family, const struct io_socket_options *options)
{
    (void)io;
    int fd = new_socket(family);
    if (fd < 0 || !options || options->user_timeout_ms == 0)
        return fd;
    unsigned ms = options->user_timeout_ms;
    if (setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms) == 0)
        return fd;
    int error = -errno;
    close(fd);
    return error;
}

static int epoll_listen(struct io *io, const struct sockaddr *address, socklen_t len, int backlog)
{
    (void)io;
    int fd = new_socket(address->sa_family), one = 1;
    if (fd < 0)
        return fd;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, address, len) == 0 && listen(fd, backlog) == 0)
        return fd;
    int error = -errno;
    close(fd);
    return error;
}

static int epoll_datagram_socket(struct io *io, const struct sockaddr *address, socklen_t len,
                                 const struct io_datagram_options *options)
{
    (void)io;
    return datagram_open(address, len, options); /* blocking, but each call says MSG_DONTWAIT */
}

static void epoll_dispose(struct io *io)
{
    struct epoll_io *e = epoll_of(io);
    for (unsigned fd = 0; fd < e->entry_room; fd++)
        free(e->entries[fd]);
    free(e->entries);
    free(e->buffer);
    free(e->events);
    if (e->wake_fd >= 0)
        close(e->wake_fd);
    if (e->epoll_fd >= 0)
        close(e->epoll_fd);
    free(e);
}

static const struct io_backend backend = {.wait = epoll_io_wait,
                                          .kick = epoll_kick,
                                          .now_ns = epoll_now_ns,
                                          .wall_ms = epoll_wall_ms,
                                          .socket = epoll_socket,
                                          .listen = epoll_listen,
                                          .datagram_socket = epoll_datagram_socket,
                                          .dispose = epoll_dispose};

static int set_up(struct epoll_io *e)
{
    e->events = calloc(e->event_limit, sizeof *e->events);
    e->buffer = malloc(e->buffer_bytes);
    if (!e->events || !e->buffer)
        return -ENOMEM;
    if ((e->epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return -errno;
    if ((e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return -errno;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    return epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, e->wake_fd, &event) < 0 ? -errno : 0;
}

int epoll_open(struct io **io, const struct epoll_options *options)
{
    struct epoll_io *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    io_init(&e->io, &backend);
    e->epoll_fd = e->wake_fd = -1;
    e->visits_last = &e->visits;
    e->results_last = &e->results;
    e->event_limit = (options ? options : &epoll_defaults)->events;
    e->buffer_bytes = (options ? options : &epoll_defaults)->buffer_bytes;
    int error = set_up(e);
    if (error < 0)
        epoll_dispose(&e->io);
    else
        *io = &e->io;
    return error;
}
