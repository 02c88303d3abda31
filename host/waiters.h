/* Who waits for which result of an app: results come in the order of the runs (inbox.h), so this is a queue
 * that runs beside the inbox. A waiter names its connection by index and generation: a connection that has
 * gone leaves its waiters behind, and their results are dropped. (Of links, the index alone names the stream,
 * which stays until its last result: host/link_inlets.c.) Memory follows what is outstanding, in
 * chunks; the inbox bounds that (room for results). */
#ifndef PURE_HOST_WAITERS_H
#define PURE_HOST_WAITERS_H

#include "core/bytes.h"

struct waiter {
    uint32_t client;     /* index in the pool */
    uint32_t generation; /* of that connection, when the run was put */
    uint32_t exchange;   /* number of the exchange on it */
};

struct waiter_chunk;

struct waiters {
    struct waiter_chunk *first, *last; /* NULL: nobody waits */
    struct waiter_chunk *spare;        /* one is kept */
    uint32_t taken;                    /* of the first chunk */
    uint32_t filled;                   /* of the last chunk */
};

void waiters_dispose(struct waiters *w);

/* Makes sure that the next waiters_add succeeds. 0 or -ENOMEM. */
int waiters_prepare(struct waiters *w);
void waiters_add(struct waiters *w, struct waiter waiter);

/* The one who waits longest. Asserts that there is one. */
struct waiter waiters_take(struct waiters *w);

#endif
