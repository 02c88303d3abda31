#include "experiments/common/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

int listener_open(uint16_t port, int backlog, bool shared)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (shared)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, backlog) == 0)
        return fd;
    int error = -errno;
    close(fd);
    return error;
}

uint16_t listener_port(int fd)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return 0;
    return ntohs(address.sin_port);
}

uint16_t listener_free_port(void)
{
    int fd = listener_open(0, 1, false);
    if (fd < 0)
        return 0;
    uint16_t port = listener_port(fd);
    close(fd);
    return port;
}

int listener_datagrams(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int error = -errno;
    close(fd);
    return error;
}
