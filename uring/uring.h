/* The io_uring back end of the seam (core/io.h). One ring a thread.
 *
 * Kernel floor: 6.1. Used from there: SINGLE_ISSUER (6.0), DEFER_TASKRUN (6.1), provided buffer rings and
 * multishot accept (5.19), multishot receive and recvmsg (6.0), restrictions (5.10), waiting with a time-out
 * in the one enter (EXT_ARG, 5.11), cancels that say nothing when they succeed (CQE_SKIP, 5.17), a limit
 * to the kernel's worker threads (5.15).
 *
 * Sockets are blocking ones: io_uring itself tries without blocking and waits by an internal poll, whereas an
 * O_NONBLOCK descriptor would make accept and connect end with EAGAIN and EINPROGRESS. */
#ifndef PURE_URING_URING_H
#define PURE_URING_URING_H

#include "core/io.h"

struct uring_options {
    unsigned entries;      /* of the submission ring: 256. More operations a step only mean more enters */
    unsigned completions;  /* of the completion ring: 4096. More at once wait in the kernel, none is lost */
    unsigned buffers;      /* for receives: a power of two, at most 32768; 0: this io receives nothing */
    uint32_t buffer_bytes; /* of each. A datagram's has URING_DATAGRAM_HEAD bytes before the payload */
};

/* What the kernel puts before the bytes of an IO_DATAGRAM_RECV: a head, the source, the segment size. */
#define URING_DATAGRAM_HEAD 72

/* 64 receive buffers of 64 KiB and a little: each holds the longest run of datagrams with its head. */
extern const struct uring_options uring_defaults;

/* Makes an io. Any thread may do so; the thread of the first io_wait is the one it belongs to from then on.
 * `options` may be NULL: the defaults. io_dispose frees it: on its thread, or after that thread has ended.
 * 0 or a negative errno; uring_probe turns the latter into something for people. */
int uring_open(struct io **io, const struct uring_options *options);

/* Whether this kernel, as this process sees it, offers what uring_open and waiting need: sets up a small ring
 * of the same kind and enters it. 0, or PE_KERNEL with one line in `why` that names the cause and the remedy.
 */
int uring_probe(char *why, size_t size);

/* The system calls, in the order in which the probe makes them. */
enum uring_call { URING_SETUP, URING_REGISTER, URING_ENTER };

/* What uring_probe says, as a function of what it saw. `error`: the negative errno of `call`; `sysctl`:
 * kernel.io_uring_disabled, -1 where there is none (it came with 6.6); `release`: uname's. */
void uring_explain(enum uring_call call, int error, int sysctl, const char *release, char *why, size_t size);

#endif
