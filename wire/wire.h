/* The wire: the outlet that delivers an output's records by HTTP/1.1 over TCP. docs/wires.md says what it
 * does to whom; docs/records-protocol.md what it says to another host.
 *
 * It is a task of a sending loop. One round a step of the loop: what the completions of the last step brought
 * is settled, at most one request is handed to the stream, the timer is seen to. Nothing is allocated after
 * the first request. The hard part is cut out of it, into parts without a socket or a clock:
 *
 *     options     what it is told                  request        heads
 *     connection  exchanges, their deadlines       batch          which records, and the body
 *     answer      what a reply says                retry_after    how long the peer asks to be left alone
 *     and of core: addresses (where to), backoff (how long to rest by itself)
 *     delivery    what answers mean for the records: stored, to be sent again, disabled
 *
 * The records lie in the outlet's queue:
 *
 *     queue.freed <= next <= published      [freed, next) is in flight, [next, published) waits
 *
 * and are sent from there without a copy (but for NDJSON). Whatever goes wrong, `next` goes back to `freed`,
 * and the same records go again under the same numbers. Numbers that were lost (record_queue_jump) are passed
 * over when nothing is in flight. In mode pure nothing is sent before the outlet's contact is clear, but for
 * the question that it begins with. */
#ifndef PURE_WIRE_WIRE_H
#define PURE_WIRE_WIRE_H

#include "core/log.h"
#include "core/loop.h"
#include "core/outlet.h"
#include "core/resolver.h"
#include "core/stream.h"
#include "core/addresses.h"
#include "core/backoff.h"
#include "wire/batch.h"
#include "wire/connection.h"
#include "wire/options.h"
#include "wire/request.h"

/* A request in flight. */
struct wire_flight {
    struct batch batch;
    uint32_t series; /* the wire's `series` when it was sent */
    bool question;   /* pure: it has no records (struct outlet_contact) */
};

/* New options for a wire that runs, made ready by another thread. */
struct wire_change {
    struct wire_options options; /* but for its texts, which are in `request` */
    struct request request;
    char *head; /* request_room bytes */
};

/* Aligned as its queue is: to a cache line, also on the heap. */
struct wire {
    struct outlet outlet; /* first: what the app's owner sees */
    struct task task;
    struct timer timer; /* at or before the next deadline, not always at it: it is rarely moved */
    struct loop *loop;
    struct resolver *resolver;
    struct log *log;
    enum wire_mode mode;
    uint8_t epoch[WIRE_EPOCH_BYTES]; /* the stream's: options do not change it, the outlet's contact may */
    char endpoint[128]; /* "http://host" for people: the path and the query of a webhook may be secrets */
    bool stopping;
    _Atomic bool hurried;               /* rests are short from now on */
    struct wire_change *_Atomic change; /* handed over and not taken yet; NULL: none */

    struct request request;
    char *head; /* of the request that is being sent: one is at a time. request_room bytes */
    struct batch_limits limits;
    uint8_t *lines;    /* batch: the body; NULL until first needed */
    size_t lines_size; /* bytes */

    struct connection connection;
    struct stream stream; /* in use unless connection.phase is CONNECTION_NONE or CONNECTION_CLOSED */
    uint32_t user_timeout_ms;
    struct addresses addresses;
    struct resolver_request name;
    bool looking_up;
    uint64_t lookup_since_ns;

    struct stream_position next; /* where the next request begins */
    struct stream_position
        promised;          /* batch: where the batch ended that begins at queue.freed, if it was sent
                              before: it goes again unchanged. Before that: not above queue.freed */
    uint64_t sent_records; /* number of the last record sent in this life; never decreases */
    struct wire_flight flights[CONNECTION_PIPELINE_MAX]; /* of the connection's exchange n: [n % MAX] */
    bool asking;                                         /* a question is in flight, alone */
    uint32_t
        series; /* counts the times `next` went back: answers to older requests only tell what is stored */

    /* Dead letters (delivery.h), for an outlet that keeps them and `attempts` above 0. */
    uint32_t attempts;
    uint32_t refusals; /* of the record behind queue.freed, sent alone, in a row */
    uint64_t
        suspect; /* number: one of the records behind queue.freed, up to this, is refused; else <= freed */

    struct backoff backoff;
    bool disabled;
    uint64_t failures; /* in a row; 0: the last try went well */
    uint64_t down_since_ns;
    uint64_t rest_until_ns; /* no tries before this */
};

/* Joins `loop` (before it runs, or on its thread), which has room for a task and a timer more. `queue_bytes`:
 * most bytes of records held; `max_record`: of one. Loop, resolver and log outlive it. Who produces is for
 * the caller to set in w->outlet. Returns 0, PE_CONFIG (see wire_options_check), PE_FULL or a negative errno,
 * and has then left nothing. */
int wire_init(struct wire *w, const struct wire_options *options, const char *app, const char *output,
              uint64_t queue_bytes, uint32_t max_record, struct loop *loop, struct resolver *resolver,
              struct log *log);

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

#endif
