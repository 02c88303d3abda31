/* The HTTP front: an HTTP/1.1 server (RFC 9110, RFC 9112) on one loop of its own thread. It takes events into
 * the apps' inboxes, answers once their results are there, and shows the host's state.
 *
 *     front.c              the pool of connections; tasks: pushes, results
 *     front_listen.c       accepts, plain and by TLS
 *     front_greet.c        TLS handshakes
 *     front_client.c       one connection: input, the order of replies, deadlines, its end
 *     front_line.c         visits: whose requests begin when
 *     front_exchange.c     its requests that are not answered yet
 *     front_request.c      from a head to a request: what is wanted, by whom, how the body comes
 *     front_routes.c       which resource, which app; the answers that are texts
 *     front_body.c         bodies into inboxes: events, lines, records
 *     front_sealed.c       sealed records: heads, chunks of bodies, proofs of replies
 *     front_dead.c         requests for dead letters
 *     front_watch.c        apps that keep their clients waiting
 *     front_reply.c        replies into a connection's output
 *
 * One step: completions (bytes come in, are parsed in place and put into inboxes) mark apps and connections;
 * the front's task then pushes each touched inbox once and sends each touched connection's ready replies in
 * one send. An app's task takes results as a batch and does the same for the connections they complete.
 *
 * Visits: a round begins at most FRONT_VISIT requests of a connection; with what else has come it waits in
 * line, of which a round visits a few (front_line.h). While others wait, who has begun a request within
 * FRONT_LIGHT_NS waits behind them; who has not begins one at once. So whatever clients send without end, who
 * asks how the host is, or stops it, waits for a few rounds of bounded work, and for one batch of completions
 * each, whose bytes the receive buffers of the io bound. Texts are few a round but for the health, which is
 * not counted. While the host stops, a connection with an open request begins no other.
 *
 * Bounds: connections and bodies as configured; 64 unanswered requests a connection, then it is not read; a
 * head of HTTP_HEAD_MAX; a body that is not stored is discarded up to 256 KiB; deadlines on everything a
 * client does, and on the wait for an app. Above the limit of connections a few more are accepted for one
 * request each, which is answered if it asks how the host is and is told 503 if not; above these, none
 * (they wait in the kernel's backlog; those that come in the same batch as the last are closed). Three
 * quarters of the connections may be in TLS handshakes, which end within 10 s; then that listener waits in
 * the same way, and whoever is at the other one, or known by now, has the rest. */
#ifndef PURE_HOST_FRONT_H
#define PURE_HOST_FRONT_H

#include "host/front_listen.h"
#include "host/registry.h"
#include "host/waiters.h"
#include "wire/http.h"

struct client;
struct sealed_door;
struct tls_current;

/* Connections that wait (front_line.h). */
struct client_line {
    struct client *first, *last;
};

enum held_line { HELD_AGAIN, HELD_NEW, HELD_LINES };

/* One app, as the front sees it. */
struct front_app {
    struct task task; /* results are there */
    struct front *front;
    struct registry_app *app;
    struct span name;
    struct waiters waiters;
    struct front_app *same_hash; /* next in the bucket */
    struct front_app *touched_next;
    bool touched; /* its inbox has runs that are not pushed */
    /* front_line.c */
    struct client_line held[HELD_LINES];
    enum held_line next_held; /* has the next turn, if somebody waits there */
    struct front_app *open_next;
    bool open; /* it may admit those */
    /* front_watch.c */
    bool stalled;                   /* runs wait, and no result came between the last two looks */
    uint32_t crowd;                 /* connections that wait for it, as counted by one look */
    uint64_t puts_seen, takes_seen; /* of its inbox, at the last look */
    /* front_dead.c */
    struct waiter dead_waiter; /* who asked for the app's dead letters */
    bool dead_awaited;
};

struct front_counters {
    uint64_t accepted;
    uint64_t refused;        /* connections over the limit */
    uint64_t accept_fails;   /* mostly for want of descriptors */
    uint64_t requests;       /* begun, whatever became of them */
    uint64_t whole_requests; /* of those: head and body are in, and well-formed */
    uint64_t held;           /* that waited for room (front_line.h) */
    uint64_t replies[6];     /* by status / 100 */
    uint64_t timeouts;       /* slow handshakes, heads, bodies and readers */
    uint64_t handshakes;     /* by TLS, that were completed */
    uint64_t handshake_fails;
    uint64_t body_bytes; /* taken in */
};

struct front {
    const struct registry *registry;
    const struct config *config;
    struct overload_without without; /* as it was started with */
    struct loop *loop;
    struct log *log;
    struct task task; /* pushes and sends what completions have marked */
    /* front_listen.c */
    struct front_listener listeners[FRONT_LISTENERS];
    unsigned listener_count;
    struct timer accept_again; /* after a failed accept */
    uint64_t accept_backoff_ns;
    uint64_t accept_fails;     /* since the last time that all was well */
    uint64_t accept_failed_ns; /* the last of them */
    /* connections */
    struct client *clients; /* [pool] */
    uint32_t pool;          /* the configured number, and some for one request each */
    uint32_t open;          /* not free, not yet closed: at most pool */
    struct client *free;
    struct client *ready_first, *ready_last; /* have something to send or to look at */
    bool in_round;                           /* a task of the front runs: it will look at them */
    uint32_t closing_surplus;                /* descriptors over the pool, being closed */
    bool stopping;
    uint64_t round; /* of `task`: in each, a connection has one visit at most */
    /* front_line.c */
    struct client_line line; /* wait for a visit */
    struct front_app *open_first, *open_last;
    struct timer held_look; /* set while connections are held */
    unsigned held_at;
    /* front_greet.c */
    struct tls_current *https; /* NULL: nobody comes by TLS. Outlives the front */
    uint32_t greeting;         /* connections in the handshake */
    uint64_t greet_said_ns;    /* the last line about a failed one; 0: none yet */
    uint64_t greet_unsaid;     /* that failed since */
    /* apps */
    struct front_app *apps; /* [registry->app_count] */
    unsigned joined;        /* of them, how many have their task */
    struct front_app **buckets;
    uint32_t bucket_mask;
    struct front_app *touched;
    struct timer watch; /* set while results are awaited */
    /* bodies, texts of replies and other kept bytes of all connections: at most config->body_memory */
    uint64_t kept_bytes;
    unsigned texts_left; /* that may be written in this round */
    /* scratch of one request; caches of one step and one second */
    struct http_head head;
    uint64_t wall_ms, wall_at_ns; /* the wall clock as of loop->now_ns == wall_at_ns */
    uint64_t date_s;              /* second of `date` */
    char date[30];                /* IMF-fixdate, RFC 9110 section 5.6.7 */
    struct sealed_door *door;     /* who may send sealed records; NULL: nobody. Outlives the front */
    uint64_t started_ns;
    struct front_counters counters;
};

/* Room that the front needs in its loop. */
uint32_t front_tasks(const struct registry *registry);
uint32_t front_timers(const struct config *config);

struct front_options {
    /* What host_options.await_address says; NULL: an address that is in use is an error at once. */
    bool (*await_address)(void *context, unsigned tries);
    void *context;
    const struct registry *registry;
    struct tls_current *https; /* what connections to config->https are secured with; NULL: there is none */
    struct loop *loop;
    struct log *log;
};

/* Listens where the configuration says and joins every inbox (inbox->front, front_slot) to its loop. Before
 * the threads run. 0, or a negative errno with nothing left to dispose, and one line in `why` if it cannot
 * listen. */
int front_init(struct front *front, const struct front_options *options, char *why, size_t why_size);

/* Accepts no more, closes idle connections, answers the requests that are open and closes. On the loop's
 * thread. Step the loop until front_stopped; a client that is slow, or an app that does not answer, delays
 * that by the deadlines at most, which may be longer than the caller's: it has the last word. */
void front_stop(struct front *front);
bool front_stopped(const struct front *front);

/* Closes what is open, without answers: then, too, step until front_stopped. */
void front_abort(struct front *front);

/* After front_stopped, or when the loop's io has been disposed of and nothing completes any more. */
void front_dispose(struct front *front);

/* --- for the front's own parts --- */

/* The client is to be run (client_run) in this step, or the next if none is under way. */
void front_want(struct front *front, struct client *client);

/* The app's inbox has runs to push. */
void front_touch(struct front *front, struct front_app *app);

/* The client has closed: it may serve another connection. */
void front_release(struct front *front, struct client *client);

/* FNV-1a: for the names of apps, which the configuration gives. */
static inline uint32_t front_hash(struct span name)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ name.data[i]) * 16777619u;
    return hash;
}

#endif
