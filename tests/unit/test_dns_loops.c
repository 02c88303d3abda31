/* Loops that share names: one cache, one set of helpers, answers to whoever asked. The loops' clock is a
 * variable; lookups of names that begin with "hang" last until the test ends them. */
#include "core/error.h"
#include "uring/dns.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define LOOPS    3
#define PATIENCE (20 * 1000 * 1000) /* steps */

static _Atomic uint64_t now_ns;
static _Atomic bool released;
static _Atomic unsigned calls;
static _Atomic bool no_threads; /* the machine has none to give */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
    return no_threads ? EAGAIN : create(thread, attributes, run, argument);
}

/* --- loops that never sleep --- */

static int test_wait(struct io *io, struct io_op *first, struct io_op *cancels, uint64_t deadline_ns)
{
    (void)first, (void)cancels, (void)deadline_ns;
    io_woke(io);
    sched_yield();
    return 0;
}

static void test_kick(struct io *io)
{
    (void)io;
}

static uint64_t test_now(struct io *io)
{
    (void)io;
    return now_ns;
}

static const struct io_backend backend = {.wait = test_wait, .kick = test_kick, .now_ns = test_now};

static int scripted(const char *name, struct dns_answer *answer)
{
    calls++;
    while (strncmp(name, "hang", 4) == 0 && !released)
        sched_yield();
    const struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001)};
    memcpy(&answer->addresses[0].address, &a, sizeof a);
    answer->addresses[0].len = sizeof a;
    answer->count = 1;
    answer->valid_ns = 60 * NS_PER_S;
    return 0;
}

/* --- the bench --- */

struct end {
    struct io io;
    struct loop loop;
    struct dns *dns; /* NULL: it has left */
    struct resolver *resolver;
};

struct asker {
    struct resolver_request request;
    struct end *end;
    _Atomic unsigned answers;
    pthread_t by;
    int error;
};

static struct end ends[LOOPS];

static void answered(struct resolver_request *request, int error)
{
    struct asker *a = container_of(request, struct asker, request);
    a->error = error;
    a->by = pthread_self();
    a->answers++;
}

static int set_up(void **state)
{
    (void)state;
    now_ns = NS_PER_S;
    released = no_threads = false;
    calls = 0;
    for (unsigned i = 0; i < LOOPS; i++) {
        struct end *e = &ends[i];
        io_init(&e->io, &backend);
        assert_int_equal(loop_init(&e->loop, &e->io, 4, 4), 0);
        int error =
            i > 0 ? dns_open_beside(&e->dns, &e->loop, ends[0].dns) : dns_open(&e->dns, &e->loop, scripted);
        assert_int_equal(error, 0);
        e->resolver = dns_resolver(e->dns);
        assert_ptr_equal(dns_of(e->resolver), e->dns);
    }
    return 0;
}

static void leave(struct end *e)
{
    dns_dispose(e->dns);
    e->dns = NULL;
}

static void step(struct end *e)
{
    assert_int_equal(loop_step(&e->loop), 0);
}

static int tear_down(void **state)
{
    (void)state;
    released = true;
    for (unsigned i = 0; i < LOOPS; i++) {
        for (unsigned n = 0; ends[i].dns && n < PATIENCE && dns_threads(ends[i].dns) > 0; n++)
            step(&ends[i]);
        if (ends[i].dns)
            leave(&ends[i]);
        loop_dispose(&ends[i].loop);
    }
    return 0;
}

static void ask(struct end *e, struct asker *a, const char *name)
{
    *a = (struct asker){.request = {.done = answered, .port = 80}, .end = e};
    snprintf(a->request.name, sizeof a->request.name, "%s", name);
    e->resolver->lookup(e->resolver, &a->request);
}

static void await(struct asker *a)
{
    for (unsigned i = 0; i < PATIENCE && a->answers == 0; i++)
        step(a->end);
    assert_int_equal(a->answers, 1);
    assert_int_equal(a->error, 0);
    assert_int_equal(a->request.count, 1);
}

static void await_calls(unsigned expected)
{
    for (unsigned i = 0; i < PATIENCE && calls < expected; i++)
        sched_yield();
    assert_int_equal(calls, expected);
}

static void settle(void)
{
    for (unsigned i = 0; i < 3 * LOOPS; i++) {
        if (ends[i % LOOPS].dns)
            step(&ends[i % LOOPS]);
    }
}

/* --- tests --- */

static void what_one_loop_has_had_looked_up_the_others_know(void **state)
{
    (void)state;
    struct asker a, b;
    ask(&ends[0], &a, "example.test");
    await(&a);
    ask(&ends[1], &b, "EXAMPLE.test");
    await(&b);
    assert_int_equal(calls, 1);
}

static void loops_that_ask_at_once_share_a_lookup_and_each_is_told(void **state)
{
    (void)state;
    struct asker a[LOOPS];
    for (unsigned i = 0; i < LOOPS; i++)
        ask(&ends[i], &a[i], "hang.test");
    await_calls(1);
    assert_int_equal(dns_threads(ends[2].dns), 1);
    released = true;
    for (unsigned i = LOOPS; i-- > 0;)
        await(&a[i]); /* only its own loop is stepped */
    assert_int_equal(calls, 1);
}

static void one_loop_finds_what_another_waits_for(void **state)
{
    (void)state;
    struct asker a, b;
    ask(&ends[0], &a, "hang.test");
    ask(&ends[1], &b, "hang.test");
    released = true;
    await(&a);
    assert_int_equal(b.answers, 0);
    step(&ends[1]);
    assert_int_equal(b.answers, 1);
}

static void a_loop_that_leaves_takes_its_requests_along_and_no_others(void **state)
{
    (void)state;
    struct asker a, b, c;
    ask(&ends[0], &a, "hang.test");
    ask(&ends[1], &b, "hang.test");
    ask(&ends[0], &c, "10.0.0.9");
    leave(&ends[0]);
    released = true;
    await(&b);
    assert_int_equal(a.answers + c.answers, 0);
}

static void cancelled_requests_leave_those_of_other_loops(void **state)
{
    (void)state;
    struct asker a, b;
    ask(&ends[0], &a, "hang.test");
    ask(&ends[1], &b, "hang.test");
    ends[0].resolver->cancel(ends[0].resolver, &a.request);
    released = true;
    await(&b);
    settle();
    assert_int_equal(a.answers, 0);
}

static void the_limits_are_of_all_loops_together(void **state)
{
    (void)state;
    static struct asker a[DNS_FRESH + 1];
    for (unsigned i = 0; i <= DNS_FRESH; i++) {
        char name[16];
        snprintf(name, sizeof name, "hang-%u", i);
        ask(&ends[i % LOOPS], &a[i], name);
    }
    await_calls(DNS_FRESH);
    settle();
    assert_int_equal(dns_threads(ends[0].dns), DNS_FRESH);
}

/* Each loop that waits for it sees to it. */
static void a_name_that_waits_gets_its_thread_though_a_loop_has_left(void **state)
{
    (void)state;
    static struct asker a[DNS_FRESH], late, same;
    for (unsigned i = 0; i < DNS_FRESH; i++) {
        char name[16];
        snprintf(name, sizeof name, "hang-%u", i);
        ask(&ends[0], &a[i], name);
    }
    ask(&ends[0], &late, "late");
    ask(&ends[1], &same, "late");
    await_calls(DNS_FRESH);
    leave(&ends[0]);
    settle();
    now_ns += DNS_SLOW_NS; /* the others are slow by now */
    await(&same);
    assert_int_equal(late.answers, 0);
}

static void a_name_that_gets_no_thread_is_told_to_the_loop_that_asked(void **state)
{
    (void)state;
    static struct asker a[DNS_FRESH], late, same;
    for (unsigned i = 0; i < DNS_FRESH; i++) {
        char name[16];
        snprintf(name, sizeof name, "hang-%u", i);
        ask(&ends[0], &a[i], name);
    }
    ask(&ends[1], &late, "late");
    ask(&ends[2], &same, "late");
    await_calls(DNS_FRESH);
    settle();
    no_threads = true;
    now_ns += DNS_SLOW_NS;
    step(&ends[2]); /* sees the time */
    step(&ends[2]); /* there is room for late, and no thread */
    assert_int_equal(same.answers, 1);
    assert_int_equal(late.answers, 0);
    step(&ends[1]);
    assert_int_equal(late.answers, 1);
    assert_int_equal(late.error, PE_NAME_BUSY);
}

/* Loops look at the clock at moments of their own. */
static void an_answer_from_the_future_is_fresh(void **state)
{
    (void)state;
    struct asker a, b;
    now_ns += NS_PER_S;
    ask(&ends[0], &a, "example.test");
    await(&a);
    ends[1].loop.now_ns = now_ns - NS_PER_MS;
    b = (struct asker){.request = {.done = answered, .port = 80, .doubted = true}, .end = &ends[1]};
    snprintf(b.request.name, sizeof b.request.name, "example.test");
    ends[1].resolver->lookup(ends[1].resolver, &b.request);
    await(&b);
    assert_int_equal(calls, 1);
}

/* --- each loop on a thread of its own --- */

#define ROUNDS 200
#define NAMES  24

static void *ask_and_cancel(void *argument)
{
    struct end *e = argument;
    static _Thread_local struct asker a[NAMES];
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < NAMES; i++) {
            char name[32];
            snprintf(name, sizeof name, i % 4 ? "name-%u" : "10.0.0.%u", 1 + (round / 8 + i) % 100);
            ask(e, &a[i], name);
        }
        e->resolver->cancel(e->resolver, &a[round % NAMES].request);
        for (unsigned i = 0; i < NAMES; i++) {
            if (i != round % NAMES)
                await(&a[i]);
            assert_true(a[i].answers == 0 || pthread_equal(a[i].by, pthread_self()));
        }
    }
    return NULL;
}

static void loops_on_threads_of_their_own_get_all_their_answers(void **state)
{
    (void)state;
    pthread_t threads[LOOPS];
    for (unsigned i = 0; i < LOOPS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_and_cancel, &ends[i]), 0);
    for (unsigned i = 0; i < LOOPS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_in_range(calls, 1, 100);
}

#define WITH_BENCH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(what_one_loop_has_had_looked_up_the_others_know),
        WITH_BENCH(loops_that_ask_at_once_share_a_lookup_and_each_is_told),
        WITH_BENCH(one_loop_finds_what_another_waits_for),
        WITH_BENCH(a_loop_that_leaves_takes_its_requests_along_and_no_others),
        WITH_BENCH(cancelled_requests_leave_those_of_other_loops),
        WITH_BENCH(the_limits_are_of_all_loops_together),
        WITH_BENCH(a_name_that_waits_gets_its_thread_though_a_loop_has_left),
        WITH_BENCH(a_name_that_gets_no_thread_is_told_to_the_loop_that_asked),
        WITH_BENCH(an_answer_from_the_future_is_fresh),
        WITH_BENCH(loops_on_threads_of_their_own_get_all_their_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
