/* What dns.c, the loops' side, and dns_names.c, the table they share, have between them; private to them. */
#ifndef PURE_URING_DNS_PRIVATE_H
#define PURE_URING_DNS_PRIVATE_H

#include "uring/dns.h"

#include <netinet/in.h>
#include <pthread.h>

/* What a thread works on: the thread's from its start until it stands in table.finished. */
struct job {
    struct table *table;
    struct job *next;
    dns_lookup *lookup;
    uint32_t place; /* of its name in the table */
    char name[RESOLVER_NAME_MAX + 1];
    int error;
    struct dns_answer answer;
};

enum name_state {
    NAME_IDLE,    /* only remembered: the place may go to another name */
    NAME_WAITING, /* in a line */
    NAME_RUNNING  /* a thread looks it up */
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct name {
    char name[RESOLVER_NAME_MAX + 1]; /* "": never used */
    enum name_state state;
    bool slow;         /* WAITING, RUNNING: counts among the slow. IDLE: its last lookup was */
    uint64_t since_ns; /* RUNNING: its start. IDLE: when it became so; the oldest goes first */
    struct name *next; /* WAITING: in its line */
    struct resolver_request *requests; /* none while IDLE */

    /* The last answer. */
    uint64_t answered_ns;
    uint64_t until_ns; /* it may be given until then; 0: there is none */
    int error;
    unsigned count; /* known[0, count); 0 if there is an error */
    union address known[RESOLVER_ADDRESSES];
};

struct line {
    struct name *first, **last;
};

/* Where loops and helpers meet. It outlives the loops while a lookup hangs: the last user frees it. */
struct table {
    _Atomic unsigned users; /* loops and threads */
    pthread_mutex_t lock; /* guards all below, and what it says of in each dns. Held for microseconds: while a
                             name is found, a thread is started, an answer is copied */
    struct dns *loops;    /* none: answers are of no use any more */
    dns_lookup *lookup;   /* never changes */
    struct job *finished;
    struct job *idle;       /* jobs without a thread: as many as `running` is below its limits */
    unsigned running[2];    /* [slow]: lookups with a thread, at most limits[slow] */
    struct line waiting[2]; /* [slow]: not empty only while running[slow] is at its limit */
    struct job jobs[DNS_FRESH + DNS_SLOW];
    struct name names[DNS_NAMES];
};

/* A loop that asks. Whichever of them comes first does what there is to do in the table. */
struct dns {
    struct resolver resolver;
    struct loop *loop;
    struct task task;
    struct timer timer; /* set while fresh names wait, as of its last look: due when the oldest fresh lookup
                           becomes slow */
    struct table *table;
    /* under the table's lock */
    struct dns *next;
    struct resolver_request *ready, **ready_last; /* answered, `done` not called yet */
};

/* Appends an address with the request's port. */
void dns_add_address(struct resolver_request *request, const void *address, socklen_t len);

/* ---- the table; its one user is the caller ---- */

struct table *names_new(dns_lookup *lookup); /* NULL: no memory */
void names_hold(struct table *table);
void names_drop(struct table *table);

/* ---- under its lock, on the loop's thread ---- */

/* The request gets an answer now, soon, or once a thread has found it. */
void names_ask(struct dns *dns, struct resolver_request *request);
/* It has its answer; also one of another loop, which is told then. */
void names_ready(struct dns *dns, struct resolver_request *request, int result);
/* It is in flight, and asked by this loop: nobody knows it any more. */
void names_cancel(struct dns *dns, struct resolver_request *request);
/* Takes what the helpers have found, and starts what waits for one. */
void names_look_after(struct dns *dns);
/* The loop is not among the table's any more: its requests go unanswered, those of others do not. */
void names_forget(struct dns *dns);

#endif
