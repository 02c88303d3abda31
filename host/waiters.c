#include "host/waiters.h"

#include <errno.h>
#include <stdlib.h>

#define CHUNK_WAITERS 168 /* a chunk is about half a small page */

struct waiter_chunk {
    struct waiter_chunk *next;
    struct waiter waiters[CHUNK_WAITERS];
};

void waiters_dispose(struct waiters *w)
{
    while (w->first) {
        struct waiter_chunk *chunk = w->first;
        w->first = chunk->next;
        free(chunk);
    }
    free(w->spare);
    *w = (struct waiters){0};
}

static bool has_room(const struct waiters *w)
{
    return w->last && w->filled < CHUNK_WAITERS;
}

int waiters_prepare(struct waiters *w)
{
    if (has_room(w) || w->spare)
        return 0;
    w->spare = malloc(sizeof *w->spare);
    return w->spare ? 0 : -ENOMEM;
}

void waiters_add(struct waiters *w, struct waiter waiter)
{
    if (!has_room(w)) {
        struct waiter_chunk *chunk = w->spare;
        assert(chunk);
        w->spare = NULL;
        chunk->next = NULL;
        if (w->last)
            w->last->next = chunk;
        else
            w->first = chunk;
        w->last = chunk;
        w->filled = 0;
    }
    w->last->waiters[w->filled++] = waiter;
}

static void drop_first_chunk(struct waiters *w)
{
    struct waiter_chunk *chunk = w->first;
    w->first = chunk->next;
    if (!w->first)
        w->last = NULL;
    w->taken = 0;
    if (w->spare)
        free(chunk);
    else
        w->spare = chunk;
}

struct waiter waiters_take(struct waiters *w)
{
    assert(w->first);
    struct waiter waiter = w->first->waiters[w->taken++];
    bool spent = w->taken == CHUNK_WAITERS || (w->first == w->last && w->taken == w->filled);
    if (spent)
        drop_first_chunk(w);
    return waiter;
}
