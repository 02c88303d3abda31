/* The wire: the outlet that delivers an output's records by HTTP/1.1 over TCP or TLS. docs/wires.md says what
 * it does to whom; docs/records-protocol.md what it says to another host.
 *
 * It is a task of a sending loop. One round a step of the loop: what the completions of the last step brought
 * is settled, requests are handed to lanes, the timer is seen to. Nothing is allocated after the first
 * request of a lane. The parts, in the order in which to read them (P: pure, without a socket or a clock):
 *
 *     options     what it is told               P
 *     request     heads; signing, templates     P   batch     which records, and the body          P
 *     connection  exchanges, their deadlines    P   answer    what a reply says                    P
 *     destination, dial   from a host's name to a connected descriptor
 *     lane        one connection: dialed, secured, used
 *     delivery    what tries and failures mean for the wire; dead letters; disabling
 *     slots       what is sent when, in modes webhook and batch                                    P
 *     posting     those modes: slots onto lanes, answers back
 *     numbered    mode pure: one stream on one lane, pipelined
 *     rate, retry_after   when not to send      P   backoff (core)                                 P
 *     wire        the task: rounds, options, life
 *
 * posting and numbered are two ways to do the same (struct wire_ways); wire.c knows no mode beyond that. The
 * records lie in the outlet's queue and are sent from there without a copy, but for NDJSON and gzip; they are
 * freed in order, when all before them are delivered or set aside. */
#ifndef PURE_WIRE_WIRE_H
#define PURE_WIRE_WIRE_H

#include "core/log.h"
#include "core/loop.h"
#include "core/outlet.h"
#include "core/resolver.h"
#include "wire/delivery.h"
#include "wire/numbered.h"
#include "wire/options.h"
#include "wire/posting.h"
#include "wire/request.h"

/* Timers that a wire takes of its loop: its own, its destination's, its lanes'. */
#define WIRE_TIMERS (2 + WIRE_CONCURRENCY_MAX)

/* How a mode is delivered. All on the loop's thread, all in the wire's round. */
struct wire_ways {
    /* Looks at what was published. */
    void (*look)(struct wire *w, uint64_t now_ns);
    /* Sends what may be sent, opens lanes for what waits. */
    void (*go_on)(struct wire *w, uint64_t now_ns);
    /* Exchange `number` of the lane has its answer. */
    void (*answered)(struct wire *w, uint64_t now_ns, struct lane *lane, uint64_t number,
                     const struct answer *answer);
    /* The lane is closed, all its answers are told. What it left goes again. True: that is a failure of the
     * destination. */
    bool (*closed)(struct wire *w, uint64_t now_ns, struct lane *lane);
    /* The destination failed. */
    void (*rewind)(struct wire *w);
    /* Goes on behind a dead letter that the owner has; hands the next one over. */
    void (*settle_dead)(struct wire *w);
    /* When there is something to do, deadlines of lanes and the wire's rest aside; NEVER. */
    uint64_t (*due_ns)(const struct wire *w, uint64_t now_ns);
};

struct wire_change;

/* Aligned as its queue is: to a cache line, also on the heap. */
struct wire {
    struct outlet outlet; /* first: what the app's owner sees */
    struct task task;
    struct timer timer; /* at or before the next deadline, not always at it: it is rarely moved */
    struct loop *loop;
    struct resolver *resolver;
    struct log *log;
    enum wire_mode mode;
    const struct wire_ways *ways;    /* of the mode */
    uint8_t epoch[WIRE_EPOCH_BYTES]; /* the stream's: options do not change it, the outlet's contact may */
    char endpoint[176]; /* "http://host" for people, and the proxy: the path and the query of a webhook may be
                           secrets */
    char host[RESOLVER_NAME_MAX + 1];
    bool stopping;
    _Atomic bool hurried;               /* rests are short from now on */
    struct wire_change *_Atomic change; /* handed over and not taken yet; NULL: none */

    struct request request;
    struct batch_limits limits;
    struct destination destination;
    struct lane_shared shared;
    unsigned concurrency;
    struct lane *lanes[WIRE_CONCURRENCY_MAX]; /* NULL until first needed, but for lanes[0] */
    uint64_t stirred;                         /* bit n: something happened to lanes[n] since the last round */
    uint64_t round;                           /* the same of the round under way, and what it used */

    struct delivery delivery;
    struct numbered numbered; /* mode pure */
    struct posting posting;   /* modes webhook and batch */
};

/* Joins `loop` (before it runs, or on its thread), which has room for a task and WIRE_TIMERS more.
 * `queue_bytes`: most bytes of records held; `max_record`: of one. Loop, resolver and log outlive it. Who
 * produces is for the caller to set in w->outlet. Returns 0, PE_CONFIG (see wire_options_check), PE_FULL or a
 * negative errno, and has then left nothing. */
int wire_init(struct wire *w, const struct wire_options *options, const char *app, const char *output,
              uint64_t queue_bytes, uint32_t max_record, struct loop *loop, struct resolver *resolver,
              struct log *log);

/* Before its loop runs: an earlier life of the host had `failures` in a row, since that wall clock (0: it is
 * not known), and has disabled it or not. */
void wire_resume(struct wire *w, uint64_t failures, uint64_t failing_since_ms, bool disabled);

/* Any one thread other than the loop's, at any time: the wire goes on under new options once
 * the requests in flight are answered or given up; a disabled wire is tried again; records, their numbers and
 * the epoch stay (options->epoch is not looked at). 0, PE_CONFIG or -ENOMEM: nothing has changed. */
int wire_change(struct wire *w, const struct wire_options *options);

/* Any thread: the host stops, so that this is the last chance for what is held. Rests, the one under way
 * included, are cut to DELIVERY_HURRIED_REST_NS, whatever back-off and peer say. */
void wire_hurry(struct wire *w);

/* On the loop's thread: ends the wire in order. What is not answered counts as not delivered. */
void wire_stop(struct wire *w);

/* Whether that is over: nothing of the wire is in flight any more. */
bool wire_stopped(const struct wire *w);

/* A wire that never ran or has stopped; or any, when its loop's io and its resolver have been disposed of and
 * nothing of it completes any more. */
void wire_dispose(struct wire *w);

/* --- for its parts --- */

/* Lane n, made if there is none; NULL: there is no memory. */
struct lane *wire_lane(struct wire *w, unsigned n);

/* Sends a request whose head is in lane->head[0, head_size) on a ready lane. Returns the exchange's number.
 */
uint64_t wire_send_made(struct wire *w, uint64_t now_ns, struct lane *lane, size_t head_size,
                        struct span bytes);

/* Sends a request on a ready lane: the head for these numbers, and the body. Returns the exchange's number.
 */
uint64_t wire_send(struct wire *w, uint64_t now_ns, struct lane *lane, const struct request_numbers *numbers,
                   const struct request_body *body, struct span bytes);

static inline bool wire_hurried(const struct wire *w)
{
    return atomic_load_explicit(&w->hurried, memory_order_relaxed);
}

#endif
