/* An inbox of an app: runs of events one way, their results the other, in the same order.
 *
 * Producer: one thread, below called the front. An app that other hosts reach over links has a second inbox,
 * whose front is the listener (host/link_inlets.h). Consumer: the app's owner. A run is a head, its strings
 * and its records (record.h), appended as one record of a record queue; so is a result. Both queues are
 * bounded, and room for a run's result is set aside when the run is put.
 *
 * Admission is early: at the head of a request the front reserves room for its whole body; above 75 % the
 * inbox refuses until what it holds is below 25 %, so that its owner has a run of work and whoever asks
 * meanwhile costs a head. A valve ends that after INBOX_VALVE_NS: then it takes again whenever it is below
 * 75 %, so that an app that stands still half full does not keep everybody out for good. Bodies that are
 * coming in have half of it reserved at most: clients that announce much and send it slowly, or never, cannot
 * keep others out. The listener reserves nothing: what does not fit waits where it lies. */
#ifndef PURE_HOST_INBOX_H
#define PURE_HOST_INBOX_H

#include "core/board.h"
#include "core/clock.h"
#include "core/record_queue.h"

#define EVENT_NAME_MAX      64
#define SOURCE_NAME_MAX     200 /* HOST/APP/OUTPUT; also of an identity */
#define IDEMPOTENCY_KEY_MAX 128
#define EPOCH_BYTES         16
#define SHOW_MAX            (64 * 1024) /* bytes of a shown state */
#define INBOX_SHOWS         4           /* most shows under way in one inbox */
#define INBOX_VALVE_NS      NS_PER_MS   /* for no longer it refuses below 75 % */

enum run_kind {
    RUN_EVENTS, /* from clients: the host numbers them */
    RUN_STREAM, /* from another host's output: numbered there, stored exactly once */
    RUN_SHOW,   /* no events: the app writes its state */
};

struct run {
    enum run_kind kind;
    uint32_t records;
    uint64_t first;   /* RUN_STREAM: number of the first record, from 1 */
    uint64_t time_ms; /* wall clock of acceptance */
    uint64_t base;    /* RUN_STREAM: how many its sender has been told are stored */
    uint64_t asks; /* RUN_STREAM without records: 1 + the highest number its sender may have sent. 0: else */
    uint64_t
        fresh_ns; /* RUN_STREAM, sealed: when this host has last told its sender that it lives; 0: else */
    uint8_t epoch[EPOCH_BYTES]; /* RUN_STREAM */
    struct span event;          /* name of the events */
    struct span source;         /* as the app sees it */
    struct span identity;       /* RUN_STREAM: what its cursor is known by; empty: the source */
    struct span key;            /* RUN_EVENTS: the Idempotency-Key, or empty */
    struct span bytes;          /* the framed records */
};

struct run_result {
    int error; /* 0, or why the run was not (wholly) stored: PE_APP_FAILED, PE_APP_SUSPENDED, PE_STREAM_GAP,
                  PE_STREAM_RETIRED, PE_STREAM_ROLLED_BACK, PE_TOO_LARGE … */
    uint64_t stored;  /* RUN_EVENTS: number of the last event in the app's count. RUN_STREAM: the stream's
                         stored number, also with an error */
    struct span text; /* RUN_SHOW: what the app wrote. Valid until the next inbox_take_result */
};

struct inbox {
    struct record_queue runs;
    struct record_queue results;
    struct board *owner; /* told of runs */
    uint32_t owner_slot;
    struct board *front; /* told of results */
    uint32_t front_slot;
    /* the front's */
    uint64_t reserved;    /* bytes set aside for bodies that are coming in: held + reserved <= capacity */
    uint64_t result_room; /* bytes of `results` set aside: at most its capacity */
    uint64_t puts, takes; /* runs put; results taken: takes <= puts */
    uint64_t shows[INBOX_SHOWS]; /* which puts were shows and have no result yet, oldest first */
    unsigned show_count;
    struct stream_position taken; /* end of the result that was taken last: freed with the next */
    uint64_t taken_room;          /* what was set aside for it */
    bool refusing;
    uint64_t refusing_ns;  /* since when, if it is */
    bool without_feedback; /* refuses what does not fit, and nothing else (host/overload.h) */
};

/* The name of an event: 1 to EVENT_NAME_MAX letters, digits, "-", ".", "_" and "~" (RFC 3986 section 2.3). */
bool run_event_name(struct span name);

/* The source of a RUN_STREAM: HOST/APP/OUTPUT, none of them empty, without spaces and control bytes, at most
 * SOURCE_NAME_MAX bytes. So it is no identity of a link's stream, which has a space. */
bool run_stream_name(struct span name);

/* `capacity`: bytes of runs. 0 or a negative errno. */
int inbox_init(struct inbox *inbox, uint64_t capacity);
void inbox_dispose(struct inbox *inbox);

/* --- the front --- */

/* Bytes that a run of `bytes` takes with the longest head; a run has no key, or no identity. */
uint64_t inbox_cost(uint64_t bytes);

/* Sets `bytes` (the sum of the inbox_cost of what is to be put) aside for a body that is coming in. PE_FULL:
 * answer 503; PE_TOO_LARGE: over half of the inbox, answer 413. What is reserved must be released, at once or
 * in parts, when it has been put or its request has ended. */
int inbox_reserve(struct inbox *inbox, uint64_t bytes, uint64_t now_ns);

/* The same for a body that is announced and not here yet. `*reserved` is what was set aside: `bytes`, or 0 if
 * half of the inbox is reserved already, or with an error. Then reserve when the bytes are here. */
int inbox_announce(struct inbox *inbox, uint64_t bytes, uint64_t now_ns, uint64_t *reserved);
void inbox_release(struct inbox *inbox, uint64_t bytes);

/* Whether it would take so many bytes, and a sixteenth of it: less is not worth letting those ask who were
 * refused. */
bool inbox_has_room(struct inbox *inbox, uint64_t bytes, uint64_t now_ns);

/* Appends a run. PE_FULL only where nothing was reserved (RUN_SHOW), or too many results are outstanding. */
int inbox_put(struct inbox *inbox, const struct run *run);

/* inbox_put in two steps, for records that are framed on the way: the caller writes `size` bytes of records
 * where this points, then commits the same run and size. NULL is PE_FULL. run->bytes is not looked at. A run
 * that is begun and not committed was never there. */
uint8_t *inbox_begin(struct inbox *inbox, const struct run *run, size_t size);
void inbox_commit(struct inbox *inbox, const struct run *run, size_t size);

/* Lets the owner see what was put: once a step of the front's loop, not once a run. */
void inbox_push(struct inbox *inbox);

/* The next result, in the order of the runs; frees the one before. False: none yet. */
bool inbox_take_result(struct inbox *inbox, struct run_result *result);

/* --- the owner --- */

/* Reads the run at `*at` (from inbox->runs.freed on) and moves `*at` behind it. False: no more. The spans are
 * valid until inbox_free_to. */
bool inbox_next_run(struct inbox *inbox, struct stream_position *at, struct run *run);
void inbox_free_to(struct inbox *inbox, struct stream_position to);

/* Never fails: its room was set aside. */
void inbox_put_result(struct inbox *inbox, const struct run_result *result);
void inbox_push_results(struct inbox *inbox);

/* The same for those before `to`, a position that the results' tail once had. */
void inbox_push_results_to(struct inbox *inbox, struct stream_position to);

/* The results that were not pushed were never put. */
void inbox_drop_results(struct inbox *inbox);

#endif
