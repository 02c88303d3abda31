/* Where the log writer writes: a way to stderr that never blocks, and that changes nothing for whoever shares
 * stderr (to make it non-blocking would make it so for the shell, too).
 *
 *     a regular file      itself: it takes what it is given
 *     a socket            itself: the ring sends without waiting (uring/ring.c)
 *     terminal, pipe      opened anew, non-blocking, for us alone
 *
 * A terminal or a pipe that belongs to somebody else (after su, in a container) cannot be opened anew. Then,
 * and only then, a thread copies to it from a pipe of our own: it may wait as long as it likes, and holds up
 * nobody. */
#ifndef PURE_HOST_LOG_PUMP_H
#define PURE_HOST_LOG_PUMP_H

#include <pthread.h>
#include <stdbool.h>

struct log_pump {
    int fd;        /* to write to; -1: it does not run */
    bool threaded; /* a thread copies from there */
    pthread_t thread;
};

/* Opens a way to `to`, which stays the caller's and open until the process ends. A thread takes no signals. 0
 * or a negative errno. */
int log_pump_start(struct log_pump *p, int to);

/* The way with the thread, whatever `to` is; for log_pump_start, and its tests. */
int log_pump_start_thread(struct log_pump *p, int to);

/* No more is written. Waits, for at most some 300 ms, until a thread has copied all; then leaves it to
 * itself: it ends with the process. */
void log_pump_stop(struct log_pump *p);

#endif
