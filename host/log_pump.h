/* Between the log writer and wherever stderr leads: a pipe of our own and a thread that copies from it.
 *
 * A write to stderr may block, whatever poll said before: a terminal that was stopped (Ctrl-S), a pipe with
 * another writer, a socket, a file on a disk that hangs. To make it non-blocking would make it so for all who
 * share it, the shell among them, and to open it anew is refused where it belongs to somebody else (a
 * container's pipe, a terminal after su). So the front writes to a pipe, which is non-blocking and has no
 * other writer; the thread may wait as long as it likes, and holds up nobody. */
#ifndef PURE_HOST_LOG_PUMP_H
#define PURE_HOST_LOG_PUMP_H

#include <pthread.h>
#include <stdbool.h>

struct log_pump {
    pthread_t thread;
    int fd; /* to write to: non-blocking, with no other writer; -1: it does not run */
};

/* Starts copying to `to`, which stays the caller's and open until the process ends. The thread takes no
 * signals. 0 or a negative errno. */
int log_pump_start(struct log_pump *p, int to);

/* No more is written. Waits, for at most some 300 ms, until all that was is copied; then leaves the thread to
 * itself: it ends with the process. */
void log_pump_stop(struct log_pump *p);

#endif
