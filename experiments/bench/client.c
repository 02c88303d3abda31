#include "experiments/bench/client.h"

#include "experiments/common/message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define REPLY_S 60

int client_open(struct client *client, uint16_t port)
{
    client->used = client->filled = 0;
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0)
        return -errno;
    int on = 1;
    struct timeval limit = {.tv_sec = REPLY_S};
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(client->fd, (struct sockaddr *)&address, sizeof address) == 0)
        return 0;
    int error = -errno;
    client_close(client);
    return error;
}

void client_close(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
}

int client_send(struct client *client, const char *target, const char *type, const char *body, size_t size)
{
    char head[512];
    int head_size =
        type ? snprintf(head, sizeof head,
                        "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                        target, type, size)
             : snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: bench\r\n\r\n", target);
    struct iovec parts[2] = {{head, (size_t)head_size}, {(void *)(uintptr_t)body, size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = size ? 2 : 1};
    size_t left = (size_t)head_size + size;
    while (left > 0) {
        ssize_t n = sendmsg(client->fd, &message, MSG_NOSIGNAL);
        if (n < 0)
            return -errno;
        left -= (size_t)n;
        while (left > 0 && (size_t)n >= message.msg_iov->iov_len) {
            n -= (ssize_t)message.msg_iov->iov_len;
            message.msg_iov++;
            message.msg_iovlen--;
        }
        message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + n;
        message.msg_iov->iov_len -= (size_t)n;
    }
    return 0;
}

/* Receives more; what was handed out before makes room. */
static int receive(struct client *client)
{
    if (client->used > 0) {
        memmove(client->in, client->in + client->used, client->filled - client->used);
        client->filled -= client->used;
        client->used = 0;
    }
    if (client->filled == CLIENT_BUFFER)
        return -EBADMSG;
    ssize_t n = recv(client->fd, client->in + client->filled, CLIENT_BUFFER - client->filled, 0);
    if (n <= 0)
        return n == 0 ? -ECONNRESET : -errno;
    client->filled += (size_t)n;
    return 0;
}

int client_reply(struct client *client, struct client_reply *reply)
{
    struct message message;
    long size;
    while ((size = message_parse(client->in + client->used, client->filled - client->used, &message)) == 0) {
        int error = receive(client);
        if (error != 0)
            return error;
    }
    if (size < 0 || message.status == 0)
        return -EBADMSG;
    *reply = (struct client_reply){.status = message.status,
                                   .size = (size_t)size,
                                   .body = client->in + client->used + message.head_size,
                                   .body_size = message.body_size};
    client->used += (size_t)size;
    return 0;
}

int client_get(struct client *client, const char *target, struct client_reply *reply)
{
    int error = client_send(client, target, NULL, NULL, 0);
    return error ? error : client_reply(client, reply);
}
