/* offer: offers work to a host at a rate that does not depend on how the host fares (open loop), and says
 * what became of it. Three ways in:
 *
 *     offer events  …    HTTP: an event a request, several in flight on each of some connections. A 503 is a
 *                        lost event
 *     offer records …    the records protocol: a stream a connection, one batch in flight. After a 503 the
 *                        same batch at once, whatever Retry-After says: the worst client
 *     offer link    …    links: our own sending end, a producer for each of its outputs
 *
 * Number k is due at k / rate after the start, whatever came of those before. What is due and finds the place
 * full where it would wait, or is more than LATE_NS late, is dropped at the source: it is offered all the
 * same. After the time is over nothing is offered, and what is unanswered is waited for, DRAIN_NS at most.
 *
 * Each thing begins with a value (8 bytes, little-endian) whose sum the receiving app adds up, too. */
#ifndef PURE_EXPERIMENTS_OFFER_H
#define PURE_EXPERIMENTS_OFFER_H

#include "experiments/offer/latency.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TICK_NS     UINT64_C(500000)     /* how often what is due is looked at */
#define LATE_NS     UINT64_C(20000000)   /* what is later is dropped */
#define DRAIN_NS    UINT64_C(3000000000) /* after the time */
#define APPS_MOST   8
#define KEYS_MOST   16
#define PLACES_MOST 4096 /* connections, or outputs */
#define BYTES_MOST  1024
#define BYTES_LEAST 8

struct offering {
    uint16_t port; /* of 127.0.0.1 */
    double rate;   /* a second, of all places together */
    uint64_t time_ns;
    unsigned places; /* connections; of links: outputs of each */
    unsigned depth;  /* events: requests in flight on a connection. records: of a batch */
    unsigned bytes;  /* of an event or record: BYTES_LEAST to BYTES_MOST */
    const char *apps[APPS_MOST];
    unsigned app_count;          /* > 0: place i offers to apps[i % app_count] */
    const char *keys[KEYS_MOST]; /* of links: key files, one a sending host */
    unsigned key_count;
    const char *receiver; /* of links: the receiving host's public key */
};

/* What became of it, in events or records; offered = dropped + sent, sent = accepted + lost + unanswered. */
struct tally {
    uint64_t offered;
    uint64_t dropped;    /* at the source */
    uint64_t sent;       /* handed to a connection, or to a link's queue */
    uint64_t accepted;   /* told to be stored */
    uint64_t sum;        /* of the values of those, modulo 2^64 */
    uint64_t lost;       /* events: answered 503 */
    uint64_t unanswered; /* at the end, or when their connection ended */
    uint64_t refused;    /* replies that were 503 */
    uint64_t failed;     /* replies of other kinds, connections that ended */
    uint64_t elapsed_ns; /* in which it was offered */
};

/* Of each app its own, as the sums tell of apps. */
struct tallies {
    struct tally app[APPS_MOST];
    struct latency latency; /* from the sending of what is accepted until its reply; links have none */
};

/* What is due. */
struct schedule {
    double rate;
    uint64_t start_ns, end_ns;
    uint64_t number; /* due so far */
};

/* How many more are due at `now_ns`; `*late` of them too late. */
static inline uint64_t schedule_due(struct schedule *s, uint64_t now_ns, uint64_t *late)
{
    uint64_t until_ns = now_ns < s->end_ns ? now_ns : s->end_ns;
    uint64_t due = (uint64_t)((double)(until_ns - s->start_ns) * s->rate / 1e9);
    uint64_t more = due > s->number ? due - s->number : 0, most = (uint64_t)(s->rate * (LATE_NS / 1e9)) + 1;
    s->number = due > s->number ? due : s->number;
    *late = more > most ? more - most : 0;
    return more;
}

static inline void put_value(uint8_t *at, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

uint64_t offer_now_ns(void);

/* Each offers and waits. 0, or -1 after a line on stderr. */
int offer_events(const struct offering *offering, struct tallies *tallies);
int offer_records(const struct offering *offering, struct tallies *tallies);
int offer_link(const struct offering *offering, struct tallies *tallies);

#endif
