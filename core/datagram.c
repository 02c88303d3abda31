#include "core/datagram.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <unistd.h>

static int set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) < 0 ? -errno : 0;
}

/* An IPv6 socket is for IPv6 only, as listeners are. */
static int set_family(int fd, int family)
{
    if (family != AF_INET6)
        return set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    int error = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    return error < 0 ? error : set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
}

/* The kernel cuts these to its limits and does not fail. */
static int set_buffers(int fd, const struct io_datagram_options *options)
{
    int error = 0;
    if (options->receive_bytes > 0)
        error = set(fd, SOL_SOCKET, SO_RCVBUF, (int)min_u64(options->receive_bytes, INT_MAX));
    if (error == 0 && options->send_bytes > 0)
        error = set(fd, SOL_SOCKET, SO_SNDBUF, (int)min_u64(options->send_bytes, INT_MAX));
    return error;
}

static void set_filter(int fd, const struct io_datagram_options *options)
{
    struct sock_fprog program = {(unsigned short)options->filter_length,
                                 (struct sock_filter *)(uintptr_t)options->filter};
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

int datagram_open(const struct sockaddr *address, socklen_t len, const struct io_datagram_options *options)
{
    int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int error = set_family(fd, address->sa_family);
    if (error == 0 && options)
        error = set_buffers(fd, options);
    if (error == 0 && options && options->filter)
        set_filter(fd, options); /* before the first datagram can come */
    if (error == 0 && bind(fd, address, len) < 0)
        error = -errno;
    set(fd, IPPROTO_UDP, UDP_GRO, 1); /* without it datagrams come one by one */
    if (error < 0)
        close(fd);
    return error < 0 ? error : fd;
}

/* The size that GRO put datagrams together by; 0: it did not. */
static uint16_t segment_of(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        int segment;
        if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO || c->cmsg_len < CMSG_LEN(sizeof segment))
            continue;
        memcpy(&segment, CMSG_DATA(c), sizeof segment);
        return segment > 0 && segment <= UINT16_MAX ? (uint16_t)segment : 0;
    }
    return 0;
}

void datagram_received(struct io_op *op, const struct msghdr *message, uint8_t *data, uint32_t size)
{
    struct msghdr control = {.msg_control = message->msg_control, .msg_controllen = message->msg_controllen};
    uint16_t segment = segment_of(&control);
    op->data = data;
    op->size = size;
    op->datagram.address_len = (socklen_t)min_size(message->msg_namelen, sizeof op->datagram.address);
    if (op->datagram.address_len > 0)
        memcpy(&op->datagram.address, message->msg_name, op->datagram.address_len);
    op->datagram.segment = segment > 0 ? segment : (uint16_t)min_u64(size, UINT16_MAX);
    op->datagram.truncated = message->msg_flags & MSG_TRUNC;
}

static void add_segment(struct io_op *op, uint16_t segment)
{
    struct cmsghdr *head = (struct cmsghdr *)op->datagram.control;
    op->datagram.message.msg_control = head;
    op->datagram.message.msg_controllen = sizeof op->datagram.control;
    head->cmsg_level = IPPROTO_UDP;
    head->cmsg_type = UDP_SEGMENT;
    head->cmsg_len = CMSG_LEN(sizeof segment);
    memcpy(CMSG_DATA(head), &segment, sizeof segment);
}

void io_prepare_datagram_send(struct io_op *op, int fd, const void *data, uint32_t size, uint16_t segment,
                              const struct sockaddr *address, socklen_t len, io_done *done)
{
    assert(len > 0 && len <= sizeof op->datagram.address);
    io_prepare_memory(op, IO_DATAGRAM_SEND, fd, (void *)data, size, done);
    memcpy(&op->datagram.address, address, len);
    op->datagram.address_len = len;
    op->datagram.segment = segment;
    op->datagram.truncated = false;
    op->datagram.part = (struct iovec){op->data, size};
    op->datagram.message = (struct msghdr){.msg_name = &op->datagram.address,
                                           .msg_namelen = len,
                                           .msg_iov = &op->datagram.part,
                                           .msg_iovlen = 1};
    if (segment > 0 && size > segment) /* one datagram needs no segmentation, and is not refused for it */
        add_segment(op, segment);
}
