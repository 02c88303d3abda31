/* The listener on its loop: what joins the receiving end of all links (link_receiver, a state machine) to one
 * UDP socket. What is done with the records is the consumer's (link/inlets.h).
 *
 * It is a task of its loop. Datagrams are opened in the completion that brings them, where the loop received
 * them, at most LINK_LISTENER_QUOTA of one peer a round (what is beyond is dropped unopened, as a full socket
 * would have dropped it); then, in the round that follows, whole records go to the consumer, and every peer
 * gets its turn of one datagram until nothing is due or no send buffer is free. So a flooding peer starves
 * neither acknowledgements nor the others. Nothing is allocated after the start but by link_receiver_allow,
 * and the rings of streams. */
#ifndef PURE_LINK_LINK_LISTENER_H
#define PURE_LINK_LINK_LISTENER_H

#include "core/log.h"
#include "core/loop.h"
#include "link/link_receiver.h"

#define LINK_LISTENER_SENDS 64 /* buffers of LINK_RECEIVER_BYTES: datagrams in flight */

struct link_listener_options {
    const struct sockaddr *address; /* to bind to */
    socklen_t address_len;
    struct link_receiver_options receiver; /* `unknown` is the listener's: a line in the log */
};

/* Counters; one writer, read by any thread. */
struct link_listener_report {
    _Atomic uint64_t datagrams; /* that came */
    _Atomic uint64_t bytes;
    _Atomic uint64_t dropped;  /* of those: not authentic, replayed, unknown … */
    _Atomic uint64_t unopened; /* of those: over the quota of their peer */
    _Atomic uint64_t sent;     /* datagrams */
    _Atomic uint64_t answers;  /* of those: REPLY and COOKIE */
    _Atomic uint64_t send_errors;
};

struct link_listener_send; /* link_listener.c */

struct link_listener {
    struct loop *loop;
    struct log *log;
    struct task task;
    struct timer timer;
    struct link_receiver receiver;
    struct link_listener_report report;
    int fd;
    struct io_op receive, close;
    struct link_listener_send *sends, *free;
    unsigned in_flight;
    bool stopping;
};

/* Binds, and listens from the loop's first step on. Room for one task and one timer. `consumer` outlives it.
 * 0 or a negative errno. */
int link_listener_init(struct link_listener *l, const struct link_listener_options *options,
                       const struct link_consumer *consumer, struct loop *loop, struct log *log);

/* Peers are let in by link_receiver_allow(&l->receiver, …), before the loop runs or on its thread. */

/* On the loop's thread: the consumer has called inlet_freed, inlet_stored or inlet_refuse outside of the
 * consumer's own calls. */
void link_listener_want(struct link_listener *l);

/* On the loop's thread: tells each peer that its session is over, takes nothing more, closes the socket. */
void link_listener_stop(struct link_listener *l);

/* Whether that is done: nothing is in flight any more. */
bool link_listener_stopped(const struct link_listener *l);

/* One that never ran or has stopped; or any, when its loop's io has been disposed of. Open inlets are
 * closed. */
void link_listener_dispose(struct link_listener *l);

#endif
