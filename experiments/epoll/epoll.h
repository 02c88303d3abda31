/* The epoll back end of the seam (core/io.h): the source documents' design, kept as the baseline that each
 * benchmark runs beside uring/. It is as good as readiness gets:
 *
 *   - each descriptor is registered once, edge-triggered, for both directions: no epoll_ctl later;
 *   - sends and connects are tried at hand-over, and parked until writable only on EAGAIN or a short send;
 *   - a receive that did not fill the buffer has emptied the socket: no read that only says EAGAIN;
 *   - UDP sockets are watched for room only while a send waits for it, or each datagram that leaves would be
 *     an event; GSO and GRO are used as by uring/;
 *   - operations on files are calls that block, made at hand-over: a disk has no readiness;
 *   - the wake's eventfd is edge-triggered, too, and never read;
 *   - when results are there already, the look at epoll is left out, at most once in a row.
 *
 * Counters: `enters` are all system calls of the loop: epoll_wait, epoll_ctl, and each read, send, accept,
 * connect, shutdown, close and call on a file it makes; with readiness every operation is a call of its own.
 */
#ifndef PURE_EXPERIMENTS_EPOLL_EPOLL_H
#define PURE_EXPERIMENTS_EPOLL_EPOLL_H

#include "core/io.h"

struct epoll_options {
    unsigned events;       /* taken from one epoll_wait */
    uint32_t buffer_bytes; /* of the one receive buffer */
};

/* 256 events, a buffer of 64 KiB, as uring_defaults. */
extern const struct epoll_options epoll_defaults;

/* Makes an io; `options` may be NULL: the defaults. io_dispose frees it. 0 or a negative errno. */
int epoll_open(struct io **io, const struct epoll_options *options);

#endif
