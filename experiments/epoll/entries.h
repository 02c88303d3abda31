/* What the files of experiments/epoll share; private to them. */
#ifndef PURE_EXPERIMENTS_EPOLL_ENTRIES_H
#define PURE_EXPERIMENTS_EPOLL_ENTRIES_H

#include "experiments/epoll/epoll.h"

/* One descriptor. Of each direction at most one operation is parked. */
struct entry {
    int fd;
    bool registered;
    bool oneshot;            /* not a socket: armed for each operation */
    bool readable, writable; /* since the last edge, as far as we know */
    bool hung_up;            /* the end of the stream is behind what can be read */
    bool visiting;           /* on the visit list */
    bool datagrams;          /* a UDP socket: `in` and `sends` only */
    struct io_op *in, *out;  /* accept, recv, read; connect, send, write */
    struct io_op *shutting;  /* waits for `out` */
    struct io_op *sends;     /* IO_DATAGRAM_SENDs that found no room, in order; linked by backend_next */
    struct entry *visit_next;
};

struct epoll_io {
    struct io io;
    int epoll_fd, wake_fd;
    struct epoll_event *events;
    unsigned event_limit;
    uint8_t *buffer;
    uint32_t buffer_bytes;
    struct entry **entries; /* by descriptor; NULL: never used. Kept, as the kernel reuses the numbers */
    unsigned entry_room;
    struct entry *visits, **visits_last;   /* readable and with an `in` */
    struct io_op *results, **results_last; /* over, op->backend_word is the result; linked by backend_next */
    uint64_t delivered;                    /* completions of this wait */
    bool skipped;                          /* the last wait did not look at epoll */
};

/* A system call of the loop is about to be made. */
static inline void epoll_count_call(struct epoll_io *e)
{
    counter_add(&e->io.counters.enters, 1);
}

/* Puts an operation that is over among the results. */
void epoll_result(struct epoll_io *e, struct io_op *op, int value);
/* EPOLL_CTL_…: 0 or a negative errno. */
int epoll_control(struct epoll_io *e, int operation, struct entry *entry, uint32_t events);

/* ---- files.c ---- */

/* Whether it is an operation on a file; it has its result then. */
bool epoll_run_file(struct epoll_io *e, struct io_op *op);

/* ---- datagrams.c ---- */

void epoll_send_datagram(struct epoll_io *e, struct entry *entry, struct io_op *op);
/* There is room again. */
void epoll_send_datagrams(struct epoll_io *e, struct entry *entry);
/* Whether it was among those that wait; it has its result then. */
bool epoll_cancel_datagram(struct epoll_io *e, struct entry *entry, struct io_op *op);
/* Edges of what comes in, and only those: a UDP socket has one of the other direction for each datagram that
 * leaves the machine. 0 or a negative errno. */
int epoll_watch_datagrams(struct epoll_io *e, struct entry *entry);
/* One recvmsg into the io's buffer. Its result, with the op filled in; -EAGAIN: there is none. */
int epoll_receive_datagram(struct epoll_io *e, struct io_op *op);

#endif
