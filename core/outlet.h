/* The one outlet shape: where an app's output goes. An outlet is a record queue between the app's owner
 * (producer) and whoever delivers (consumer): a task in the sending loop for a wire or a link, the receiving
 * app's task for an inner outlet. The owner queues and pushes without knowing which.
 *
 *     queued number   how many records the outlet has taken
 *     stored number   how many of them their receiver has said to have stored; stored <= pushed <= queued
 *     held bytes      framed bytes of those in between, at most the queue's capacity
 *
 * Back-pressure: above 75 % held the outlet is full and its app is not run; at or below 25 % it is so again.
 */
#ifndef PURE_CORE_OUTLET_H
#define PURE_CORE_OUTLET_H

#include "core/board.h"
#include "core/clock.h"
#include "core/record_queue.h"

#include <pthread.h>

#define OUTLET_NAME_MAX   64
#define OUTLET_REASON_MAX 128

enum outlet_state {
    OUTLET_OK,       /* delivering, or nothing to deliver */
    OUTLET_RESTING,  /* its last try failed; the next is due later */
    OUTLET_DISABLED, /* takes no more tries until it is configured anew */
};

/* What its deliverer says of itself; read by the front. Numbers are counters or of one word; the text goes
 * under the lock, which the deliverer only tries for: it never waits. */
struct outlet_report {
    _Atomic int state;               /* enum outlet_state */
    _Atomic int error;               /* of the last failed try; 0: none since the last success */
    _Atomic uint64_t since_ms;       /* wall clock of the last change of state */
    _Atomic uint64_t failures;       /* tries failed in a row */
    _Atomic uint64_t failing_ms;     /* wall clock of the first of them; 0: there are none */
    _Atomic uint64_t failures_total; /* ever */
    _Atomic uint64_t requests;       /* made */
    _Atomic uint64_t stored;         /* the stored number */
    _Atomic uint64_t bytes;          /* of bodies delivered */
    _Atomic uint64_t dead;           /* records set aside, as they were always refused */
    /* of its producer, where its records are journaled */
    _Atomic uint64_t sent;      /* number of the last record in a frame */
    _Atomic uint64_t dead_kept; /* of them, those of earlier lives, too: neither replayed nor dropped */
    _Atomic uint64_t lost;      /* records that the disk has lost */
    _Atomic uint64_t beyond;    /* bytes that wait on the disk, beyond the queue */
    uint64_t beyond_limit;      /* most of those; 0: none do. Never changes once threads run */
    pthread_mutex_t lock;
    char text[200]; /* of the last error, for people; "" if none */
};

/* A record that its receiver always refuses, on its way from the deliverer to whoever keeps dead letters:
 *
 *     NONE -- the deliverer fills it, posts the producer --> ASKED
 *     ASKED -- the producer has it for good, posts the consumer --> TAKEN
 *     TAKEN -- the deliverer frees the record, goes on with the next --> NONE
 *
 * The record stays in the queue until it is freed. The fields are the writer's of the last step. */
enum outlet_dead_state { OUTLET_DEAD_NONE, OUTLET_DEAD_ASKED, OUTLET_DEAD_TAKEN };

struct outlet_dead {
    _Atomic int state;                 /* enum outlet_dead_state: stored with release, read with acquire */
    struct stream_position start, end; /* the record: number end.records, its bytes framed */
    int status;                        /* of the last answer */
    char reason[OUTLET_REASON_MAX];    /* what that said, for people; printable */
};

/* A store may have been put back to an older copy: then the receiver has records under numbers that this host
 * will give to others. So the deliverer of an outlet whose records are journaled asks, once in each life of
 * the host but for the store's first, and before it sends any: does its receiver have more than `reach`, up
 * to which records may have been sent? What comes of it is durable before any behind that is sent:
 *
 *     ASKING -- it does not; the deliverer posts the producer --> AGREED -- noted --> CLEAR
 *     ASKING -- it does; the deliverer posts the producer --> OUTGROWN -- a new epoch is noted --> RENEWED
 *     RENEWED -- the deliverer goes on under it --> CLEAR
 *
 * The fields are the writer's of the last step. */
enum outlet_contact_state {
    OUTLET_CLEAR, /* records may be sent */
    OUTLET_ASKING,
    OUTLET_AGREED,
    OUTLET_OUTGROWN,
    OUTLET_RENEWED,
};

#define OUTLET_EPOCH_BYTES 16

struct outlet_contact {
    _Atomic int state;                 /* enum outlet_contact_state: stored with release, read with acquire */
    uint64_t reach;                    /* a record's number. Set before loops run */
    uint64_t common;                   /* the deliverer's: as outlet_base */
    uint8_t epoch[OUTLET_EPOCH_BYTES]; /* from RENEWED on: the stream's */
};

/* How an output fares, from its deliverer to whoever keeps it over restarts: the producer's owner.
 *
 *     EMPTY -- the deliverer fills `told`, posts the producer --> TOLD
 *     TOLD -- the producer has copied it, posts the consumer --> EMPTY
 *
 * What has to be told meanwhile waits with the deliverer; of that only the newest is told. */
struct outlet_fare {
    bool disabled;
    bool by_command;   /* disabled: somebody wanted it */
    uint64_t failures; /* in a row */
    uint64_t since_ms; /* wall clock of the first of them, or of being disabled by command; 0: all is well */
    uint32_t status;   /* of the last answer that was a failure; 0: there was none */
    uint32_t wants;    /* how many wants the deliverer has taken: counts up, and wraps */
    char reason[OUTLET_REASON_MAX]; /* for people; printable */
};

enum outlet_want { OUTLET_WANT_NOTHING, OUTLET_WANT_ENABLED, OUTLET_WANT_DISABLED };

#define OUTLET_FARE_NS NS_PER_S /* at least so long between two that are no change of what it can do */

struct outlet_health {
    bool kept;               /* somebody takes what is told. Set before loops run */
    _Atomic bool full;       /* TOLD: stored with release, read with acquire */
    struct outlet_fare told; /* the writer's of the last step */
    _Atomic int want;        /* enum outlet_want: of others, for the deliverer */
    /* the deliverer's */
    struct outlet_fare last; /* that was told, or waits */
    uint64_t told_ns;        /* when that was */
    bool waits;              /* `last` is to be told yet */
};

struct outlet {
    struct record_queue queue;
    const char *kind; /* "wire", "link", "inner" */
    char app[OUTLET_NAME_MAX];
    char output[OUTLET_NAME_MAX];
    uint32_t max_record; /* bytes */
    bool keeps_dead;     /* the producer's owner answers `dead`; else it is not asked. Set before loops run */
    bool asks;           /* its deliverer knows `contact` */
    /* Records up to this number may have been sent by an earlier life of the host under the same epoch: a
     * receiver may know more than it was sent in this one. 0: there was none. Set before loops run. */
    uint64_t sent_before;
    /* who is told of a push */
    struct board *consumer;
    uint32_t consumer_slot;
    /* who is told that there is room again, if it waits for it */
    struct board *producer;
    uint32_t producer_slot;
    _Atomic uint64_t producer_waits; /* 0: no; else 1 + the most bytes held at which it is told */
    struct outlet_dead dead;
    struct outlet_contact contact;
    struct outlet_health health;
    struct outlet_report report;
};

/* `capacity`: the most bytes held. Consumer and producer are set by whoever joins the two. 0 or a negative
 * errno. */
int outlet_init(struct outlet *o, const char *kind, const char *app, const char *output, uint64_t capacity,
                uint32_t max_record);
void outlet_dispose(struct outlet *o);

/* Before loops run: records up to number `stored` are stored at the receiver, up to `sent_before` they may
 * have been sent. The next one queued is number stored + 1. */
void outlet_start(struct outlet *o, uint64_t stored, uint64_t sent_before);

/* --- the producer --- */

/* Appends a record to the turn's sends. 0, PE_TOO_LARGE, or PE_FULL. */
static inline int outlet_queue(struct outlet *o, const void *data, size_t size)
{
    return size > o->max_record ? PE_TOO_LARGE : record_queue_append(&o->queue, data, size);
}

/* Turns are committed up to `to` (as record_queue_publish_to's): one publication and one notice for all their
 * sends. */
static inline void outlet_push_to(struct outlet *o, struct stream_position to)
{
    record_queue_publish_to(&o->queue, to);
    board_post(o->consumer, o->consumer_slot);
}

static inline void outlet_push(struct outlet *o)
{
    outlet_push_to(o, o->queue.tail);
}

/* Records up to number `records` are lost: record_queue_jump, and a notice. The producer gets one, too, once
 * they are passed over. */
static inline void outlet_jump(struct outlet *o, uint64_t records)
{
    record_queue_jump(&o->queue, records);
    board_post(o->consumer, o->consumer_slot);
}

static inline bool outlet_over(const struct outlet *o)
{
    return record_queue_held(&o->queue) > o->queue.capacity - o->queue.capacity / 4;
}

/* The receiver was asked, and what came of it is durable. `epoch`: the new one; NULL: the stream's stays. */
void outlet_contact_noted(struct outlet *o, const uint8_t *epoch);

/* Takes what the deliverer tells of how it fares. False: nothing is told. */
bool outlet_take_fare(struct outlet *o, struct outlet_fare *fare);

/* Whether more than `most_bytes` are held. If so, a notice to the producer follows once they are not. */
bool outlet_wait(struct outlet *o, uint64_t most_bytes);

/* --- the consumer --- */

/* Looks at what was pushed. Numbers that were lost are passed over as if they were stored: `freed` moves,
 * with no bytes in between. Returns the position. */
struct stream_position outlet_look(struct outlet *o);

/* Everything before `to` is stored at its receiver. Tells the producer if it waits and there is room. */
void outlet_stored(struct outlet *o, struct stream_position to);

static inline enum outlet_contact_state outlet_contact(const struct outlet *o)
{
    return (enum outlet_contact_state)atomic_load_explicit(&o->contact.state, memory_order_acquire);
}

/* Whether records may be sent: of what is not noted yet, those that may have been sent before in any case. */
static inline bool outlet_may_send(const struct outlet *o)
{
    enum outlet_contact_state state = outlet_contact(o);
    return state == OUTLET_CLEAR ||
           (state == OUTLET_AGREED && o->queue.published_seen.records <= o->contact.reach);
}

/* ASKING: the receiver has answered. `agreed`: it has no more than may have been sent. */
void outlet_contact_answered(struct outlet *o, bool agreed);

/* RENEWED: `epoch` is the stream's from now on. False: it is not. */
bool outlet_contact_renewed(struct outlet *o, uint8_t epoch[OUTLET_EPOCH_BYTES]);

/* Records up to this number are stored: freed, or known to the receiver from before it was outgrown, and
 * perhaps still to be freed. */
static inline uint64_t outlet_base(const struct outlet *o)
{
    uint64_t freed = o->queue.freed.records;
    return freed > o->contact.common ? freed : o->contact.common;
}

/* Tells the producer, once in a while, or at once when it becomes disabled, is enabled, delivers again, or
 * has taken a want. `fare->wants` is not looked at. Each round that a deliverer has news, and each after
 * outlet_take_want returned some. */
void outlet_tell_fare(struct outlet *o, const struct outlet_fare *fare, uint64_t now_ns);

/* What was to be told and could not is told now, if it can be. Once a round. */
void outlet_go_on_telling(struct outlet *o);

/* What somebody wants of it since the last call, to be done now. */
enum outlet_want outlet_take_want(struct outlet *o);

/* Changes what the outlet says of itself. `text` may be NULL: unchanged. Never waits. */
void outlet_report(struct outlet *o, enum outlet_state state, int error, const char *text, uint64_t wall_ms);

/* --- anyone --- */

/* Wants it to be delivered again, or no more. A want that was not taken yet is replaced. */
void outlet_want(struct outlet *o, enum outlet_want want);

/* Copies the last error's text, at most `size` bytes with its NUL. */
void outlet_error_text(struct outlet *o, char *text, size_t size);

#endif
