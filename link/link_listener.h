/* The listener on its loop: what joins the receiving end of all links (link_receiver, a state machine) to one
 * UDP socket. What is done with the records is the consumer's (link/inlets.h).
 *
 * It is a task of its loop. Datagrams are opened in the completion that brings them, where the loop received
 * them, as far as the quotas of link_receiver.h go; then, in the round that follows, whole records go to the
 * consumer, and every peer gets its turn of one datagram until nothing is due or no send buffer is free. So a
 * flooding peer starves neither acknowledgements nor the others. Nothing is allocated after the start but by
 * link_receiver_allow, and the rings of streams.
 *
 *     a step takes in    what the receive buffers of the loop's io hold (uring.h: 4 MiB), not more: what is
 *                        queued in the meantime leaves with the next hand-over
 *     send buffers       LINK_LISTENER_SENDS; answers to strangers get half of them at most
 *     an answer          REPLY or COOKIE: leaves at once; an INIT that finds no buffer for it is dropped
 *     an error           of a send is counted, no more: what was lost is sent again. A receive that fails is
 *                        armed again, after a pause if the error is not a passing one */
#ifndef PURE_LINK_LINK_LISTENER_H
#define PURE_LINK_LINK_LISTENER_H

#include "core/log.h"
#include "core/loop.h"
#include "link/link_receiver.h"

#define LINK_LISTENER_SENDS 64 /* of LINK_RECEIVER_BYTES each: datagrams in flight */

struct link_listener_options {
    const struct sockaddr *address; /* to bind to */
    socklen_t address_len;
    struct link_receiver_options receiver; /* `unknown` is the listener's: a line in the log */
};

struct link_listener;

/* Counters; one writer, read by any thread. */
struct link_listener_report {
    _Atomic uint64_t datagrams; /* that came */
    _Atomic uint64_t bytes;
    _Atomic uint64_t dropped;  /* of the datagrams: not authentic, replayed, unknown … */
    _Atomic uint64_t unopened; /* of those: over a quota */
    _Atomic uint64_t sent;     /* datagrams */
    _Atomic uint64_t answers;  /* of those: REPLY and COOKIE */
    _Atomic uint64_t send_errors;
};

/* A datagram on its way into the kernel. */
struct link_listener_send {
    struct link_listener *listener;
    struct link_listener_send *next; /* of the free ones */
    bool answers;                    /* it is a REPLY or COOKIE */
    struct io_op op;
    uint8_t bytes[LINK_RECEIVER_BYTES];
};

struct link_listener {
    struct loop *loop;
    struct log *log;
    struct task task;
    struct timer timer;
    struct link_receiver receiver;
    struct link_listener_report report;
    int fd;
    struct io_op receive, close;
    struct link_listener_send *sends; /* LINK_LISTENER_SENDS of them */
    struct link_listener_send *free;  /* those that are not in flight */
    unsigned in_flight, answers_in_flight;
    uint64_t receive_again_ns; /* after a failure; NEVER while the receive is armed */
    uint64_t report_ns;        /* no failure is logged before */
    bool stopping;
    uint64_t stop_ends_ns; /* sends are given up then */
};

/* Binds, and listens from the loop's first step on. Room for one task and one timer. `consumer` outlives it.
 * 0 or a negative errno. */
int link_listener_init(struct link_listener *l, const struct link_listener_options *options,
                       const struct link_consumer *consumer, struct loop *loop, struct log *log);

/* Peers are let in by link_receiver_allow(&l->receiver, …), before the loop runs or on its thread. */

/* On the loop's thread: the consumer has called inlet_freed, inlet_stored or inlet_refuse outside of the
 * consumer's own calls. */
void link_listener_want(struct link_listener *l);

/* On the loop's thread: tells each peer that its session is over, takes nothing more, closes the socket. A
 * second at most until sends that do not leave are given up. */
void link_listener_stop(struct link_listener *l);

/* Whether that is done: nothing is in flight any more. */
bool link_listener_stopped(const struct link_listener *l);

/* One that never ran or has stopped; or any, when its loop's io has been disposed of. Open inlets are
 * closed. */
void link_listener_dispose(struct link_listener *l);

#endif
