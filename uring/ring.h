/* What the files of uring/ share: the ring and how it is set up. Private to uring/ and its tests. */
#ifndef PURE_URING_RING_H
#define PURE_URING_RING_H

#include "uring/buffers.h"
#include "uring/uring.h"

#include <liburing.h>

struct uring {
    struct io io;
    struct io_uring ring;
    struct buffers buffers;
    bool enabled;          /* the ring belongs to a thread */
    unsigned in_flight;    /* operations of the seam that are handed over and not at their end */
    _Atomic bool on_futex; /* the last sleep was, or the next will be, on io.sleep and not in the ring */
    bool wake_armed;       /* the poll of wake_fd is in flight: each write to it is a completion */
    unsigned quick_sends;  /* handed over in this wait */
    uint64_t waits;        /* ever; the one under way counts */
    int wake_fd;           /* an eventfd, which nobody reads: it lasts for 2^64 wakes */
    struct io_op
        *here; /* done by calls of this thread in this wait; delivered before it ends: empty between waits */
    struct io_op **here_at; /* the end of that list */
};

/* The kernel's threads for operations on files, at most, for each thread with a ring; besides one for each
 * durable write in flight. What a store has under way at once: the next segment being made, an old one being
 * removed, and some reads. */
#define URING_FILE_WORKERS 8

/* Makes a disabled, restricted ring with its buffers: nothing but ring_enable and the operations of the seam
 * will be possible with it. On failure nothing is left behind. 0 or a negative errno. */
int ring_set_up(struct io_uring *ring, struct buffers *buffers, const struct uring_options *options);

/* Binds the ring to this thread, with its restrictions in force. 0 or a negative errno. */
int ring_enable(struct io_uring *ring);
void ring_tear_down(struct io_uring *ring, struct buffers *buffers);

/* The names of the operations and features that the seam needs and this ring lacks, separated by ", "; "" if
 * none. The ring is not restricted yet: ring_set_up calls this in between. 0, or the negative errno with
 * which the kernel did not answer. */
int ring_missing(struct io_uring *ring, char *names, size_t size);

/* Small calls that do not block (socket.c). */
int uring_socket(struct io *io, int family, const struct io_socket_options *options);
int uring_listen(struct io *io, const struct sockaddr *address, socklen_t len, int backlog);
int uring_datagram_socket(struct io *io, const struct sockaddr *address, socklen_t len,
                          const struct io_datagram_options *options);

#endif
