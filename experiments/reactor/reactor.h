/* The I/O reactor of document 3: readiness by epoll, one callback a descriptor. What is registered is called
 * with (arg, fd, events) whenever the kernel says it is ready, level-triggered. Belongs to one thread.
 *
 * A callback may register, reregister and deregister any descriptor. One that was closed and opened anew
 * within the same batch of events can be called once without being ready: callbacks read and write without
 * blocking. */
#ifndef PURE_EXPERIMENTS_REACTOR_H
#define PURE_EXPERIMENTS_REACTOR_H

#include <stdint.h>
#include <sys/epoll.h>

struct reactor;
typedef void reactor_callback(void *arg, int fd, uint32_t events);

/* NULL: no memory, or no epoll. */
struct reactor *reactor_new(void);
void reactor_destroy(struct reactor *reactor);

/* `interest`: EPOLLIN, EPOLLOUT. Each returns 0 or a negative errno. */
int reactor_register(struct reactor *reactor, int fd, uint32_t interest, reactor_callback *callback,
                     void *arg);
int reactor_reregister(struct reactor *reactor, int fd, uint32_t interest);
int reactor_deregister(struct reactor *reactor, int fd);

/* Waits at most `timeout_ms` (-1: no end) for one batch of events and calls their callbacks. Returns how many
 * events there were, or a negative errno. */
int reactor_run(struct reactor *reactor, int timeout_ms);

#endif
