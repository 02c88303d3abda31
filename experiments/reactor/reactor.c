#include "experiments/reactor/reactor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 256

struct handler {
    reactor_callback *callback; /* NULL: not registered */
    void *arg;
};

struct reactor {
    int epoll;
    int size;                 /* handlers[0, size), by descriptor */
    struct handler *handlers; /* grows to the highest descriptor */
};

struct reactor *reactor_new(void)
{
    struct reactor *reactor = calloc(1, sizeof *reactor);
    if (!reactor)
        return NULL;
    reactor->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (reactor->epoll >= 0)
        return reactor;
    free(reactor);
    return NULL;
}

void reactor_destroy(struct reactor *reactor)
{
    close(reactor->epoll);
    free(reactor->handlers);
    free(reactor);
}

static int reserve(struct reactor *reactor, int fd)
{
    if (fd < reactor->size)
        return 0;
    int size = reactor->size ? reactor->size : 64;
    while (size <= fd)
        size *= 2;
    struct handler *handlers = realloc(reactor->handlers, (size_t)size * sizeof *handlers);
    if (!handlers)
        return -ENOMEM;
    memset(handlers + reactor->size, 0, (size_t)(size - reactor->size) * sizeof *handlers);
    reactor->handlers = handlers;
    reactor->size = size;
    return 0;
}

static int control(struct reactor *reactor, int operation, int fd, uint32_t interest)
{
    struct epoll_event event = {.events = interest, .data.fd = fd};
    return epoll_ctl(reactor->epoll, operation, fd, &event) == 0 ? 0 : -errno;
}

int reactor_register(struct reactor *reactor, int fd, uint32_t interest, reactor_callback *callback,
                     void *arg)
{
    int error = reserve(reactor, fd);
    if (error == 0)
        error = control(reactor, EPOLL_CTL_ADD, fd, interest);
    if (error == 0)
        reactor->handlers[fd] = (struct handler){callback, arg};
    return error;
}

int reactor_reregister(struct reactor *reactor, int fd, uint32_t interest)
{
    return control(reactor, EPOLL_CTL_MOD, fd, interest);
}

int reactor_deregister(struct reactor *reactor, int fd)
{
    reactor->handlers[fd].callback = NULL;
    return control(reactor, EPOLL_CTL_DEL, fd, 0);
}

int reactor_run(struct reactor *reactor, int timeout_ms)
{
    struct epoll_event events[BATCH];
    int count = epoll_wait(reactor->epoll, events, BATCH, timeout_ms);
    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < count; i++) {
        int fd = events[i].data.fd;
        struct handler handler = reactor->handlers[fd];
        if (handler.callback)
            handler.callback(handler.arg, fd, events[i].events);
    }
    return count;
}
