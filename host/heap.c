/* The program's malloc: the C library's, counted while a thread is in a call of an app (heap.h). Each of the
 * functions that a program may bring instead of the C library's ("Replacing malloc" in its manual) is here,
 * so that modules and libraries alike get them. */
#include "host/heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

/* glibc's own, by the names under which it exports them. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

/* Counters have one writer at a time: a plain sum does. */
static void add(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

static void *refuse(struct heap_account *account)
{
    add(&account->refused, 1);
    errno = ENOMEM;
    return NULL;
}

static bool exceeds(const struct heap_account *account, size_t more)
{
    uint64_t bytes = atomic_load_explicit(&account->bytes, memory_order_relaxed);
    return more > account->limit || bytes > account->limit - more;
}

static void *count(struct heap_account *account, void *memory)
{
    if (memory)
        add(&account->bytes, malloc_usable_size(memory));
    return memory;
}

/* What was allocated in another call, or before it was the app's: never less than nothing is held. */
static void uncount(struct heap_account *account, size_t size)
{
    uint64_t bytes = atomic_load_explicit(&account->bytes, memory_order_relaxed);
    atomic_store_explicit(&account->bytes, bytes - min_u64(size, bytes), memory_order_relaxed);
}

static inline bool counted(void)
{
    return __builtin_expect(heap_here != NULL, 0);
}

void *malloc(size_t size)
{
    if (!counted())
        return __libc_malloc(size);
    return exceeds(heap_here, size) ? refuse(heap_here) : count(heap_here, __libc_malloc(size));
}

void *calloc(size_t number, size_t size)
{
    size_t all;
    if (!counted())
        return __libc_calloc(number, size);
    if (__builtin_mul_overflow(number, size, &all) || exceeds(heap_here, all))
        return refuse(heap_here);
    return count(heap_here, __libc_calloc(number, size));
}

void *realloc(void *memory, size_t size)
{
    struct heap_account *account = heap_here;
    if (!counted())
        return __libc_realloc(memory, size);
    size_t had = memory ? malloc_usable_size(memory) : 0;
    if (size > had && exceeds(account, size - had))
        return refuse(account);
    void *moved = __libc_realloc(memory, size);
    if (!moved && size > 0)
        return NULL; /* what there was is there still */
    uncount(account, had);
    return count(account, moved);
}

void *reallocarray(void *memory, size_t number, size_t size)
{
    size_t all;
    if (!__builtin_mul_overflow(number, size, &all))
        return realloc(memory, all);
    errno = ENOMEM;
    return NULL;
}

void free(void *memory)
{
    if (counted() && memory)
        uncount(heap_here, malloc_usable_size(memory));
    __libc_free(memory);
}

/* --- aligned --- */

static void *aligned(size_t alignment, size_t size)
{
    if (!counted())
        return __libc_memalign(alignment, size);
    return exceeds(heap_here, size) ? refuse(heap_here) : count(heap_here, __libc_memalign(alignment, size));
}

void *memalign(size_t alignment, size_t size)
{
    return aligned(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return aligned(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    int before = errno;
    void *made = aligned(alignment, size);
    errno = before;
    if (!made)
        return ENOMEM;
    *memory = made;
    return 0;
}

void *valloc(size_t size)
{
    return aligned((size_t)sysconf(_SC_PAGESIZE), size);
}

void *pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size <= SIZE_MAX - page)
        return aligned(page, (size + page - 1) / page * page);
    errno = ENOMEM;
    return NULL;
}
