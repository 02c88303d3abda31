#include "core/datagram.h"
#include "uring/ring.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

static int set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) < 0 ? -errno : 0;
}

static int new_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

static int close_failed(int fd, int error)
{
    close(fd);
    return error;
}

int uring_socket(struct io *io, int family, const struct io_socket_options *options)
{
    (void)io;
    int fd = new_socket(family);
    if (fd < 0)
        return fd;
    int error = set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (error == 0 && options && options->user_timeout_ms > 0)
        error = set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)options->user_timeout_ms);
    return error < 0 ? close_failed(fd, error) : fd;
}

/* Accepted sockets inherit TCP_NODELAY. An IPv6 listener takes IPv6 only, whatever the system's default, so
 * that an address in the configuration means one thing. */
int uring_listen(struct io *io, const struct sockaddr *address, socklen_t len, int backlog)
{
    (void)io;
    int fd = new_socket(address->sa_family);
    if (fd < 0)
        return fd;
    int error = set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (error == 0)
        error = set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (error == 0 && address->sa_family == AF_INET6)
        error = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (error == 0 && (bind(fd, address, len) < 0 || listen(fd, backlog) < 0))
        error = -errno;
    return error < 0 ? close_failed(fd, error) : fd;
}

int uring_datagram_socket(struct io *io, const struct sockaddr *address, socklen_t len,
                          const struct io_datagram_options *options)
{
    (void)io;
    return datagram_open(address, len, options);
}
