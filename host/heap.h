/* What an app's module holds of the heap.
 *
 * While a thread is in a call of a module, its allocations are the app's: counted by their usable size, and
 * refused (NULL, ENOMEM) where they would exceed the app's limit. What the host allocates meanwhile on the
 * module's behalf (a sink that grows, a backlog's memory) is the host's: heap_host_begin. Memory that a
 * module maps itself, or allocates in threads of its own, is not counted.
 *
 * Only the program brings the functions that count (heap.c, in front of the C library's); tests and
 * sanitizers keep their own, and then nothing is counted.
 *
 * State of a thread, not of a context: malloc has no argument to pass one in. */
#ifndef PURE_HOST_HEAP_H
#define PURE_HOST_HEAP_H

#include "core/bytes.h"

#include <stdatomic.h>

/* Of an app. Written by the thread that is in a call of it, one at a time; read by any. */
struct heap_account {
    _Atomic uint64_t bytes;   /* usable bytes that it holds */
    _Atomic uint64_t refused; /* allocations */
    uint64_t limit;           /* UINT64_MAX: none */
};

/* Whose allocations this thread's are; NULL: the host's. */
extern _Thread_local struct heap_account *heap_here;

/* The fences are for the compiler, which takes it that malloc reads no variable of ours. */
static inline void heap_count_for(struct heap_account *account)
{
    atomic_signal_fence(memory_order_seq_cst);
    heap_here = account;
    atomic_signal_fence(memory_order_seq_cst);
}

/* Host code that a module calls allocates for the host until heap_host_end is given what this returned. */
static inline struct heap_account *heap_host_begin(void)
{
    struct heap_account *account = heap_here;
    heap_count_for(NULL);
    return account;
}

static inline void heap_host_end(struct heap_account *account)
{
    heap_count_for(account);
}

#endif
