/* UDP on readiness. The socket is watched for what comes in; for room only while a send waits for it. */
#include "core/datagram.h"
#include "experiments/epoll/entries.h"

#include <errno.h>
#include <sys/epoll.h>

int epoll_watch_datagrams(struct epoll_io *e, struct entry *entry)
{
    entry->datagrams = true;
    if (entry->registered)
        return 0;
    int error = epoll_control(e, EPOLL_CTL_ADD, entry, EPOLLIN | EPOLLET);
    entry->registered = error == 0;
    return error;
}

/* Modifying makes the state at this moment the first edge. */
static int watch_for_room(struct epoll_io *e, struct entry *entry, bool room)
{
    int error = epoll_watch_datagrams(e, entry);
    uint32_t events = EPOLLIN | EPOLLET | (room ? (uint32_t)EPOLLOUT : 0);
    return error < 0 ? error : epoll_control(e, EPOLL_CTL_MOD, entry, events);
}

/* False: there is no room. */
static bool try_send(struct epoll_io *e, struct io_op *op)
{
    epoll_count_call(e);
    ssize_t sent = sendmsg(op->fd, &op->datagram.message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN)
        return false;
    epoll_result(e, op, sent < 0 ? -errno : (int)sent);
    return true;
}

static void append(struct entry *entry, struct io_op *op)
{
    struct io_op **last = &entry->sends;
    while (*last)
        last = &(*last)->backend_next;
    op->backend_next = NULL;
    *last = op;
}

void epoll_send_datagram(struct epoll_io *e, struct entry *entry, struct io_op *op)
{
    if (entry->sends) {
        append(entry, op);
        return;
    }
    if (try_send(e, op))
        return;
    int error = watch_for_room(e, entry, true);
    if (error < 0)
        epoll_result(e, op, error);
    else
        append(entry, op);
}

void epoll_send_datagrams(struct epoll_io *e, struct entry *entry)
{
    for (struct io_op *next; entry->sends; entry->sends = next) {
        next = entry->sends->backend_next;
        if (!try_send(e, entry->sends))
            return;
    }
    watch_for_room(e, entry, false);
}

bool epoll_cancel_datagram(struct epoll_io *e, struct entry *entry, struct io_op *op)
{
    struct io_op **at = &entry->sends;
    while (*at && *at != op)
        at = &(*at)->backend_next;
    if (!*at)
        return false;
    *at = op->backend_next;
    epoll_result(e, op, -ECANCELED);
    return true;
}

int epoll_receive_datagram(struct epoll_io *e, struct io_op *op)
{
    _Alignas(struct cmsghdr) uint8_t control[DATAGRAM_CONTROL_BYTES];
    struct sockaddr_storage source;
    struct iovec part = {e->buffer, e->buffer_bytes};
    struct msghdr message = {.msg_name = &source,
                             .msg_namelen = sizeof source,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(op->fd, &message, MSG_DONTWAIT);
    if (got < 0)
        return -errno;
    datagram_received(op, &message, e->buffer, (uint32_t)got);
    return (int)got;
}
