/* What becomes of a wire's tries, whatever its mode: when it rests and for how long, what is said of it, when
 * it is disabled, which statuses mean what, and how a dead letter gets to its owner. Parts of the wire.
 *
 * A failure is of the destination (no connection, no answer, an answer that says that it is ill), and then
 * the whole wire rests; or it is a refusal: an answer that says something of the request, and not of its
 * sender, its time or its place (options: `refused`). A wire that sends one request at a time rests for that,
 * too, as nothing may go ahead of what is refused; else only that request does.
 *
 * Dead letters. Where they are kept, a batch that is refused is halved until its first record that is refused
 * goes alone: about log2 of the records' number of requests. Refused `attempts` times in a row the record is
 * handed to the owner (struct outlet_dead), one at a time. */
#ifndef PURE_WIRE_DELIVERY_H
#define PURE_WIRE_DELIVERY_H

#include "core/backoff.h"
#include "core/outlet.h"
#include "wire/answer.h"
#include "wire/options.h"

struct wire;

/* The most by which a Retry-After can lengthen the wire's own back-off. */
#define DELIVERY_RETRY_AFTER_MAX_NS (7200 * NS_PER_S)

/* The longest rest of a wire that was told to hurry. */
#define DELIVERY_HURRIED_REST_NS (200 * NS_PER_MS)

/* What of the options it goes by. */
struct delivery_policy {
    struct wire_statuses stored, refused, disables;
    uint32_t attempts;
    uint32_t disable_failures;
    uint64_t disable_ns;
};

struct delivery {
    struct delivery_policy policy;
    struct backoff backoff;
    bool disabled;
    bool down;              /* the destination failed since the last success */
    uint64_t failures;      /* in a row, refusals among them; 0: the last try went well */
    uint64_t refused;       /* refusals, ever */
    uint64_t since_ns;      /* the first of `failures` in this life; meaningless when they are 0 */
    uint32_t status;        /* of the answer that was the last of them; 0: there was none */
    uint64_t before_ns;     /* how much earlier it was, in a life before */
    uint64_t rest_until_ns; /* no tries before this */
};

void delivery_init(struct delivery *d, const struct wire_options *options);

/* As wire_resume. */
void delivery_resume(struct wire *w, uint64_t failures, uint64_t failing_since_ms, bool disabled);

/* The destination failed: rests, says so, and what was sent and is not answered goes again. `answer` if it
 * failed by one, else NULL; `text` adds to what the error says, or is "". */
void delivery_failed(struct wire *w, uint64_t now_ns, int error, const struct answer *answer,
                     const char *text);

/* One request of several was refused. */
void delivery_refused(struct wire *w, uint64_t now_ns, const struct answer *answer);

/* A try went well. */
void delivery_succeeded(struct wire *w, uint64_t now_ns);

/* All is well again, as far as is known. */
void delivery_recover(struct wire *w);

/* Does what somebody wants of the outlet (enum outlet_want), and tells what waits to be told. Once a round.
 */
void delivery_see_want(struct wire *w);

/* How long to rest after the n-th refusal of one request in a row. */
uint64_t delivery_refusal_rest_ns(struct wire *w, uint32_t n, const struct answer *answer);

/* Whether an answer's status is a refusal. */
bool delivery_is_refusal(const struct wire *w, uint16_t status);

/* The error that an answer is which is no success. */
int delivery_error_of(const struct wire *w, const struct answer *answer);

/* --- dead letters --- */

/* Whether records of this wire may become some. */
bool delivery_keeps_dead(const struct wire *w);

/* Whether one is on its way to the owner, or back. */
bool delivery_asking(const struct wire *w);

/* Hands one over, when none is. */
void delivery_ask(struct wire *w, struct stream_position start, struct stream_position end, uint16_t status,
                  const char *reason);

/* Whether the owner has it. Then delivery_bury follows: once its record is done with. */
bool delivery_taken(const struct wire *w);
void delivery_bury(struct wire *w);

#endif
