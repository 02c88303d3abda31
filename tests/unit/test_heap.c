/* The program's malloc (host/heap.c), which this program brings as pure-host does; sanitizers bring their
 * own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS 1
#include "host/heap.c"
#else
#define COUNTS 0
#include "host/heap.h"
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define LIMIT (1u << 20)

static struct heap_account account;

static uint64_t held(void)
{
    return atomic_load(&account.bytes);
}

/* cmocka allocates, too: only what stands between these is the app's. */
static void begin(void)
{
    heap_count_for(&account);
}

static void end(void)
{
    heap_count_for(NULL);
}

static int setup(void **state)
{
    (void)state;
    account = (struct heap_account){.limit = LIMIT};
    return 0;
}

static void what_is_allocated_in_a_call_is_counted_by_whatever_function(void **state)
{
    (void)state;
    void *made[8] = {0};
    begin();
    made[0] = malloc(1000);
    made[1] = calloc(10, 100);
    made[2] = realloc(NULL, 1000);
    made[3] = reallocarray(NULL, 10, 100);
    made[4] = memalign(256, 1000);
    made[5] = aligned_alloc(64, 1024);
    int failed = posix_memalign(&made[6], 4096, 1000);
    made[7] = strdup("a text of the C library's");
    end();
    assert_int_equal(failed, 0);
    uint64_t usable = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(made); i++) {
        assert_non_null(made[i]);
        usable += malloc_usable_size(made[i]);
    }
    assert_true(!COUNTS || held() == usable);
    assert_int_equal((uintptr_t)made[4] % 256, 0);
    assert_int_equal((uintptr_t)made[6] % 4096, 0);
    begin();
    for (unsigned i = 0; i < ARRAY_SIZE(made); i++)
        free(made[i]);
    end();
    assert_int_equal(held(), 0);
}

static void what_the_host_allocates_meanwhile_is_not(void **state)
{
    (void)state;
    begin();
    struct heap_account *before = heap_host_begin();
    void *memory = malloc(2 * LIMIT);
    heap_host_end(before);
    bool again = heap_here == &account;
    end();
    assert_true(again);
    assert_non_null(memory);
    assert_int_equal(held(), 0);
    free(memory);
}

#if COUNTS
/* What asks for more than there is, which the compiler is not to see. */
static void *ask(void *memory, volatile size_t size)
{
    return memory ? realloc(memory, size) : malloc(size);
}

static void beyond_the_limit_there_is_nothing_and_below_it_all(void **state)
{
    (void)state;
    begin();
    void *most = malloc(LIMIT - 4096);
    bool refuses_growth = ask(most, LIMIT + 1) == NULL;
    end();
    assert_non_null(most);
    assert_true(refuses_growth && held() >= LIMIT - 4096); /* and it is still there */
    begin();
    errno = 0;
    void *more = malloc(8192), *zeroed = calloc(2, 4096), *aligned_one = memalign(64, 8192);
    int error = errno;
    void *little = malloc(100), *huge = ask(NULL, SIZE_MAX - 100);
    end();
    assert_true(!more && !zeroed && !aligned_one && !huge);
    assert_int_equal(error, ENOMEM);
    assert_non_null(little);
    assert_int_equal(atomic_load(&account.refused), 5);
    begin();
    free(most);
    void *now = malloc(8192);
    end();
    assert_non_null(now);
    begin();
    free(now);
    free(little);
    end();
    assert_int_equal(held(), 0);
}

static void what_grows_and_shrinks_counts_as_it_is(void **state)
{
    (void)state;
    begin();
    void *memory = malloc(1000);
    memory = realloc(memory, 100000);
    uint64_t large = held();
    memory = realloc(memory, 10);
    uint64_t small = held();
    memory = realloc(memory, 0);
    end();
    assert_true(large >= 100000 && small < 1000);
    assert_int_equal(held(), 0);
    assert_null(memory);
}

static void memory_of_others_that_is_freed_in_a_call_never_counts_below_nothing(void **state)
{
    (void)state;
    void *others = malloc(50000);
    begin();
    free(others);
    void *own = malloc(10);
    end();
    assert_int_equal(held(), malloc_usable_size(own));
    free(own);
}

static void products_that_overflow_are_refused(void **state)
{
    (void)state;
    volatile size_t much = SIZE_MAX / 2;
    begin();
    void *zeroed = calloc(much, 4), *array = reallocarray(NULL, much, 4), *pages = pvalloc(SIZE_MAX);
    void *odd = NULL;
    int error = posix_memalign(&odd, 24, 100);
    end();
    assert_true(!zeroed && !array && !pages && !odd);
    assert_int_equal(error, EINVAL);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_allocated_in_a_call_is_counted_by_whatever_function, setup),
        cmocka_unit_test_setup(what_the_host_allocates_meanwhile_is_not, setup),
#if COUNTS
        cmocka_unit_test_setup(beyond_the_limit_there_is_nothing_and_below_it_all, setup),
        cmocka_unit_test_setup(what_grows_and_shrinks_counts_as_it_is, setup),
        cmocka_unit_test_setup(memory_of_others_that_is_freed_in_a_call_never_counts_below_nothing, setup),
        cmocka_unit_test_setup(products_that_overflow_are_refused, setup),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
