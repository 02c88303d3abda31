/* Where links end: the records that the listener of links has whole go into apps, each once and in order, and
 * what the apps have stored goes back. It implements link/inlets.h's consumer, for all peers of the host.
 *
 *     stream's ring ──copy, a piece──▶ the app's second inbox ──▶ its owner
 *     STORED, REFUSED ◀── once a round and stream ── results ◀──────┘
 *
 * Records go on as they come, while nobody waits for the app's inbox and it has room; the app hears of them
 * at once. Each linked app is also a task on the listener's loop. A round takes the results that are there,
 * tells the streams, and puts pieces of the streams that wait, in turn, while there is room; then it pushes
 * once. A piece's ring memory is freed when it is copied. What finds no room stays in its stream's ring, so
 * the credit closes: nothing is dropped, and whatever waits is bounded by the rings and the inbox.
 *
 * A stream's cursor is known by the sender's key ("link KEY/APP/OUTPUT", host/streams.h); the app sees the
 * name that this host's configuration gives the peer ("PEER/APP/OUTPUT"). Exactly once is the cursor's doing:
 * a record may come again on a later stream.
 *
 * A stored number that moves by less than LINK_TELL_BYTES (or a quarter of the stream's ring) is held back
 * for LINK_HOLD_NS at most, so that not every turn of the app costs a datagram; never when nothing more is
 * outstanding, as then the sender waits for it.
 *
 * All calls are on the thread of the listener's loop. */
#ifndef PURE_HOST_LINK_INLETS_H
#define PURE_HOST_LINK_INLETS_H

#include "core/log.h"
#include "core/loop.h"
#include "host/registry.h"
#include "link/inlets.h"
#include "noise/key.h"

/* Of one run; less where the inbox is small; one record may be more. What comes is cut so already. */
#define LINK_PIECE_BYTES  RECEIVE_STREAM_TAKE
#define LINK_ROUND_PIECES 16 /* that one round of an app puts */
#define LINK_TELL_BYTES   (64 * 1024)
#define LINK_HOLD_NS      (5 * NS_PER_MS)

/* Which refusals of a peer the log has a line about: one a target and reason, until records are stored there.
 * Beyond LINK_REFUSALS_SAID lines at most one a second. */
#define LINK_REFUSALS_SAID 16
struct link_refusals {
    struct link_refusal_said {
        uint64_t target;  /* hash of its name; 0: none */
        uint32_t reasons; /* bits, by reason */
    } said[LINK_REFUSALS_SAID];
    unsigned next; /* the entry to be replaced */
    uint64_t lines;
    uint64_t last_ns; /* of the last line */
};

/* What a peer may do: the `context` of link_receiver_allow. Outlives the link_inlets. */
struct link_peer_access {
    const char *name; /* at most CONFIG_NAME_MAX bytes, without '/', spaces or control bytes */
    uint8_t key[LINK_KEY_BYTES];
    const bool *apps; /* by index in link_inlets_options.apps: whether it may send there. May be changed: it
                         counts for streams that begin then */
    /* of link_inlets */
    struct link_refusals refusals;
    uint32_t streams; /* that it has, as bounded by link_inlets_options.peer_streams */
};

struct link_inlets_options {
    struct registry_app *const *apps; /* tasks are made for the linked ones; outlive the link_inlets */
    unsigned app_count;
    uint32_t peer_streams; /* of one peer at once: open ones, and ended ones whose records are in an inbox;
                              twice the places that a peer has is plenty */
    struct loop *loop;     /* the listener's: room for a task a linked app, and one timer */
    struct log *log;
    /* Called when inlets were told something outside of the consumer's calls: link_listener_want. */
    void (*want)(void *context);
    void *want_context;
};

struct linked_app;  /* link_inlets.c */
struct link_stream; /* link_inlets.c */

/* Streams one behind the other; each is in a line of a kind once at most. */
struct link_stream_line {
    struct link_stream *first, *last; /* NULL: empty */
};

struct link_inlets {
    struct link_consumer consumer; /* for link_listener_init */
    struct link_inlets_options options;
    struct linked_app *apps;      /* by index in options.apps */
    struct link_stream **streams; /* stream_count of them, by their index; those that are free are kept */
    uint32_t stream_count, stream_capacity;
    struct link_stream *free;
    _Atomic bool holding;         /* nothing more is put into the apps */
    struct link_stream_line held; /* whose stored numbers are held back, until the timer fires */
    struct timer timer;
};

/* Becomes the front of the linked apps' second inboxes. 0, PE_FULL or -ENOMEM. */
int link_inlets_init(struct link_inlets *li, const struct link_inlets_options *options);

/* Any thread: the host stops, so nothing more goes into the apps; what they store is still told. */
void link_inlets_hold(struct link_inlets *li);

/* When all inlets are closed (the listener is disposed of), and before the loop is. */
void link_inlets_dispose(struct link_inlets *li);

#endif
