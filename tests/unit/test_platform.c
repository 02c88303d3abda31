/* What a real process gives the host, as far as it shows without one. */
#include "host/platform.h"

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

static int nice_of_this_thread(void)
{
    return getpriority(PRIO_PROCESS, (id_t)gettid());
}

struct light {
    struct host_options options;
    int error, before, after;
};

static void *lighten(void *argument)
{
    struct light *light = argument;
    light->before = nice_of_this_thread();
    light->error = light->options.lighten(light->options.context);
    light->after = nice_of_this_thread();
    return NULL;
}

static void a_thread_that_is_lightened_weighs_less_and_no_other_does(void **state)
{
    (void)state;
    struct platform platform;
    struct light light;
    pthread_t thread;
    int ours = nice_of_this_thread();
    platform_options(&platform, &light.options);
    assert_int_equal(pthread_create(&thread, NULL, lighten, &light), 0);
    pthread_join(thread, NULL);
    assert_int_equal(light.error, 0);
    assert_int_equal(light.before, ours);
    assert_int_equal(light.after, ours + 5 < 19 ? ours + 5 : 19); /* the most there is */
    assert_int_equal(nice_of_this_thread(), ours);
}

/* Whichever was freed before: a block of its own is a mapping of its own. A sanitizer's malloc has no such
 * thing to show. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void large_blocks_go_back_to_the_kernel_again_and_again(void **state)
{
    (void)state;
    assert_int_equal(platform_prepare(), 0);
    for (unsigned i = 0; i < 3; i++) {
        size_t before = mallinfo2().hblkhd;
        void *volatile block = malloc(2 * LARGE_BLOCK);
        assert_non_null(block);
        assert_true(mallinfo2().hblkhd >= before + 2 * LARGE_BLOCK);
        free(block);
        assert_int_equal(mallinfo2().hblkhd, before);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_is_lightened_weighs_less_and_no_other_does),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(large_blocks_go_back_to_the_kernel_again_and_again),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
