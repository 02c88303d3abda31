#include "experiments/offer/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int connections_init(struct connections *c, uint16_t port, unsigned count)
{
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->port = port;
    c->count = count;
    c->all = calloc(count, sizeof *c->all);
    for (unsigned i = 0; c->all && i < count; i++) {
        struct connection *one = &c->all[i];
        one->fd = -1;
        one->out = malloc(CONNECTION_OUT);
        one->in = malloc(CONNECTION_IN);
        if (!one->out || !one->in)
            c->all = NULL;
    }
    if (c->epoll >= 0 && c->all)
        return 0;
    fprintf(stderr, "offer: no memory for %u connections, or no epoll\n", count);
    return -1;
}

static void end(struct connections *c, unsigned i)
{
    struct connection *one = &c->all[i];
    struct timespec now;
    close(one->fd);
    clock_gettime(CLOCK_MONOTONIC, &now);
    one->fd = -1;
    one->sent = one->filled = one->received = 0;
    one->rest_until_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + CONNECTION_REST;
    c->ended(c->context, i);
}

static void wait_for(struct connections *c, unsigned i, int operation, bool writable)
{
    struct epoll_event event = {.events = EPOLLIN | (writable ? EPOLLOUT : 0u), .data.u32 = i};
    c->all[i].writable = writable;
    epoll_ctl(c->epoll, operation, c->all[i].fd, &event);
}

static void open_one(struct connections *c, unsigned i)
{
    struct connection *one = &c->all[i];
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(c->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    one->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (one->fd < 0)
        return;
    setsockopt(one->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(one->fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS)
        wait_for(c, i, EPOLL_CTL_ADD, true);
    else
        end(c, i);
}

void connections_open(struct connections *c, uint64_t now_ns)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->all[i].fd < 0 && c->all[i].rest_until_ns <= now_ns)
            open_one(c, i);
}

uint8_t *connection_room(struct connections *c, unsigned i, size_t size)
{
    struct connection *one = &c->all[i];
    if (one->fd < 0 || size > CONNECTION_OUT - (one->filled - one->sent))
        return NULL;
    if (size > CONNECTION_OUT - one->filled) {
        memmove(one->out, one->out + one->sent, one->filled - one->sent);
        one->filled -= one->sent;
        one->sent = 0;
    }
    return one->out + one->filled;
}

void connection_commit(struct connections *c, unsigned i, size_t size)
{
    c->all[i].filled += size;
}

static void transmit(struct connections *c, unsigned i)
{
    struct connection *one = &c->all[i];
    while (one->sent < one->filled) {
        ssize_t n = send(one->fd, one->out + one->sent, one->filled - one->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            if (!one->writable)
                wait_for(c, i, EPOLL_CTL_MOD, true);
            return;
        }
        if (n < 0) {
            end(c, i);
            return;
        }
        one->sent += (size_t)n;
    }
    one->sent = one->filled = 0;
    if (one->writable)
        wait_for(c, i, EPOLL_CTL_MOD, false);
}

/* While EPOLLOUT is waited for, nothing would go. */
void connection_flush(struct connections *c, unsigned i)
{
    if (c->all[i].fd >= 0 && !c->all[i].writable && c->all[i].filled > c->all[i].sent)
        transmit(c, i);
}

/* Hands over whole replies. False: it cannot be read. */
static bool take_replies(struct connections *c, unsigned i)
{
    struct connection *one = &c->all[i];
    struct message reply;
    size_t used = 0;
    long size;
    while ((size = message_parse(one->in + used, one->received - used, &reply)) > 0) {
        c->replied(c->context, i, &reply, one->in + used);
        used += (size_t)size;
    }
    one->received -= used;
    memmove(one->in, one->in + used, one->received);
    return size == 0 && one->received < CONNECTION_IN;
}

static void receive(struct connections *c, unsigned i)
{
    struct connection *one = &c->all[i];
    ssize_t n = recv(one->fd, one->in + one->received, CONNECTION_IN - one->received, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    one->received += n > 0 ? (size_t)n : 0;
    if (n <= 0 || !take_replies(c, i))
        end(c, i);
}

void connections_wait(struct connections *c, uint64_t now_ns, uint64_t until_ns)
{
    struct epoll_event events[CONNECTION_BATCH];
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec limit = {(time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u)};
    int count = epoll_pwait2(c->epoll, events, CONNECTION_BATCH, &limit, NULL);
    for (int n = 0; n < count; n++) {
        unsigned i = events[n].data.u32;
        if (c->all[i].fd >= 0 && (events[n].events & ~(unsigned)EPOLLOUT))
            receive(c, i);
        if (c->all[i].fd >= 0 && (events[n].events & EPOLLOUT))
            transmit(c, i);
    }
}
