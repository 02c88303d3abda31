/* The resolver: real helper threads, a lookup that the test holds back by name, a loop whose clock is a
 * variable. The test's thread waits only for the helpers' notices, never for time. */
#include "core/backoff.h"
#include "core/error.h"
#include "uring/dns.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#define PATIENCE_S 20 /* nothing here takes so long unless it is broken */

/* --- a loop on a clock of ours: a wait lasts until a helper ends it, if one can --- */

struct test_io {
    struct io io;
    sem_t kicks;
    uint64_t now_ns;
    const struct dns *dns;
    const unsigned *until; /* no wait once this is not 0; NULL: it does not matter */
};

static int test_wait(struct io *io, struct io_op *first, struct io_op *cancels, uint64_t deadline_ns)
{
    struct test_io *t = container_of(io, struct test_io, io);
    assert_true(!first && !cancels);
    struct timespec patience;
    clock_gettime(CLOCK_REALTIME, &patience);
    patience.tv_sec += PATIENCE_S;
    bool enough = t->until && *t->until > 0;
    if (deadline_ns > 0 && dns_threads(t->dns) > 0 && !enough)
        assert_int_equal(sem_timedwait(&t->kicks, &patience), 0);
    io_woke(io);
    return 0;
}

static void test_kick(struct io *io)
{
    sem_post(&container_of(io, struct test_io, io)->kicks);
}

static uint64_t test_now(struct io *io)
{
    return container_of(io, struct test_io, io)->now_ns;
}

static const struct io_backend test_backend = {.wait = test_wait, .kick = test_kick, .now_ns = test_now};

/* --- lookups that the test controls: names that begin with "hang" wait for release() --- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned calls;
    char last[RESOLVER_NAME_MAX + 1]; /* name that was looked up last */
    char released[64];                /* names that begin so hang no longer; "" none */
    uint64_t valid_ns;                /* of the answers */
} server = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool hangs(const char *name)
{
    return strncmp(name, "hang", 4) == 0 &&
           (server.released[0] == '\0' || strncmp(name, server.released, strlen(server.released)) != 0);
}

static int scripted(const char *name, struct dns_answer *answer)
{
    pthread_mutex_lock(&server.lock);
    server.calls++;
    snprintf(server.last, sizeof server.last, "%s", name);
    while (hangs(name))
        pthread_cond_wait(&server.changed, &server.lock);
    pthread_mutex_unlock(&server.lock);
    if (strstr(name, "missing"))
        return PE_NAME_NOT_FOUND;
    if (strstr(name, "broken"))
        return PE_NAME_FAILED;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001)};
    struct sockaddr_in6 b = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    memcpy(&answer->addresses[0].address, &a, sizeof a);
    memcpy(&answer->addresses[1].address, &b, sizeof b);
    answer->addresses[0].len = sizeof a;
    answer->addresses[1].len = sizeof b;
    answer->count = 2;
    answer->valid_ns = server.valid_ns;
    return 0;
}

static void release(const char *prefix)
{
    pthread_mutex_lock(&server.lock);
    snprintf(server.released, sizeof server.released, "%s", prefix);
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.lock);
}

static unsigned calls(void)
{
    pthread_mutex_lock(&server.lock);
    unsigned count = server.calls;
    pthread_mutex_unlock(&server.lock);
    return count;
}

/* A lookup's thread that was started makes its call when the machine lets it. */
static void await_calls(unsigned expected)
{
    for (unsigned i = 0; i < 10000000 && calls() < expected; i++)
        sched_yield();
    assert_int_equal(calls(), expected);
}

/* --- the bench --- */

struct bench {
    struct test_io io;
    struct loop loop;
    struct dns *dns;
    struct resolver *resolver;
};

struct asker {
    struct resolver_request request;
    unsigned answers;
    int error;
};

static void answered(struct resolver_request *request, int error)
{
    struct asker *a = container_of(request, struct asker, request);
    a->answers++;
    a->error = error;
}

static int set_up(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    io_init(&b->io.io, &test_backend);
    sem_init(&b->io.kicks, 0, 0);
    b->io.now_ns = NS_PER_S;
    server.calls = 0;
    server.released[0] = '\0';
    server.valid_ns = 0;
    assert_int_equal(loop_init(&b->loop, &b->io.io, 4, 4), 0);
    assert_int_equal(dns_open(&b->dns, &b->loop, scripted), 0);
    b->io.dns = b->dns;
    b->resolver = dns_resolver(b->dns);
    *state = b;
    return 0;
}

static void step(struct bench *b)
{
    assert_int_equal(loop_step(&b->loop), 0);
}

/* All helpers are let go and have ended but for their last instructions. */
static int tear_down(void **state)
{
    struct bench *b = *state;
    release("hang");
    for (unsigned i = 0; i < 1000 && dns_threads(b->dns) > 0; i++)
        step(b);
    assert_int_equal(dns_threads(b->dns), 0);
    dns_dispose(b->dns);
    loop_dispose(&b->loop);
    free(b);
    return 0;
}

static void ask(struct bench *b, struct asker *a, const char *name, uint16_t port)
{
    *a = (struct asker){.request = {.done = answered, .port = port}};
    snprintf(a->request.name, sizeof a->request.name, "%s", name);
    b->resolver->lookup(b->resolver, &a->request);
    assert_int_equal(a->answers, 0);
}

static void await(struct bench *b, const struct asker *a)
{
    b->io.until = &a->answers;
    for (unsigned i = 0; i < 1000 && a->answers == 0; i++)
        step(b);
    b->io.until = NULL;
    assert_int_equal(a->answers, 1);
    assert_false(a->request.in_flight);
}

/* Steps that cannot wait: what is due now happens. */
static void settle(struct bench *b)
{
    for (int i = 0; i < 3; i++) {
        io_wake(&b->io.io);
        step(b);
    }
}

static void advance(struct bench *b, uint64_t ns)
{
    b->io.now_ns += ns;
    settle(b);
}

static void hang(struct bench *b, struct asker *askers, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        char name[32];
        snprintf(name, sizeof name, "hang-%u.", i);
        ask(b, &askers[i], name, 80);
    }
}

/* --- tests --- */

static void an_answer_carries_all_addresses_with_the_port(void **state)
{
    struct bench *b = *state;
    struct asker a;
    ask(b, &a, "example.test", 8080);
    await(b, &a);
    assert_int_equal(a.error, 0);
    assert_int_equal(a.request.count, 2);
    struct sockaddr_in *v4 = (struct sockaddr_in *)&a.request.addresses[0].address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a.request.addresses[1].address;
    assert_int_equal(v4->sin_family, AF_INET);
    assert_int_equal(ntohs(v4->sin_port), 8080);
    assert_int_equal(v6->sin6_family, AF_INET6);
    assert_int_equal(ntohs(v6->sin6_port), 8080);
    assert_int_equal(a.request.addresses[1].len, sizeof *v6);
}

static void failures_keep_their_kind(void **state)
{
    struct bench *b = *state;
    struct asker missing, broken;
    ask(b, &missing, "missing.test", 80);
    ask(b, &broken, "broken.test", 80);
    await(b, &missing);
    await(b, &broken);
    assert_int_equal(missing.error, PE_NAME_NOT_FOUND);
    assert_int_equal(broken.error, PE_NAME_FAILED);
    assert_int_equal(missing.request.count + broken.request.count, 0);
}

static void requests_for_one_name_share_a_lookup_and_keep_their_ports(void **state)
{
    struct bench *b = *state;
    enum { COUNT = 200 }; /* more than a round answers */
    static struct asker a[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        ask(b, &a[i], i % 2 ? "hang.test" : "HANG.test", (uint16_t)(1000 + i));
    assert_int_equal(dns_threads(b->dns), 1);
    release("hang");
    for (unsigned i = 0; i < COUNT; i++) {
        await(b, &a[i]);
        struct sockaddr_in *v4 = (struct sockaddr_in *)&a[i].request.addresses[0].address;
        assert_int_equal(ntohs(v4->sin_port), 1000 + i);
    }
    assert_int_equal(calls(), 1);
}

static void an_address_in_digits_needs_no_thread(void **state)
{
    struct bench *b = *state;
    struct asker v4, v6;
    ask(b, &v4, "127.0.0.1", 1);
    ask(b, &v6, "::1", 2);
    assert_int_equal(dns_threads(b->dns), 0);
    await(b, &v4);
    await(b, &v6);
    assert_int_equal(v4.error, 0);
    assert_int_equal(v6.error, 0);
    assert_int_equal(v6.request.addresses[0].address.ss_family, AF_INET6);
    assert_int_equal(calls(), 0);
}

static void a_name_of_nothing_is_not_found(void **state)
{
    struct bench *b = *state;
    struct asker a;
    ask(b, &a, "", 1);
    await(b, &a);
    assert_int_equal(a.error, PE_NAME_NOT_FOUND);
}

static void a_lookup_that_hangs_delays_no_other(void **state)
{
    struct bench *b = *state;
    static struct asker stuck[1], a;
    hang(b, stuck, 0, 1);
    ask(b, &a, "example.test", 80);
    await(b, &a);
    assert_int_equal(stuck[0].answers, 0);
}

static void as_many_as_may_hang_at_once_delay_another_for_a_second_at_most(void **state)
{
    struct bench *b = *state;
    static struct asker stuck[DNS_FRESH], a, same;
    hang(b, stuck, 0, DNS_FRESH);
    ask(b, &a, "example.test", 80);
    ask(b, &same, "example.test", 81);
    assert_int_equal(dns_threads(b->dns), DNS_FRESH);
    advance(b, DNS_SLOW_NS - 1);
    assert_int_equal(dns_threads(b->dns), DNS_FRESH);
    advance(b, 1);
    await(b, &a);
    await(b, &same);
    assert_int_equal(a.error, 0);
    await_calls(DNS_FRESH + 1);
    for (unsigned i = 0; i < DNS_FRESH; i++)
        assert_int_equal(stuck[i].answers, 0);
}

static void a_name_that_was_slow_takes_no_place_of_a_fresh_one(void **state)
{
    struct bench *b = *state;
    static struct asker slow, again, stuck[DNS_FRESH];
    ask(b, &slow, "hang-slow", 80);
    advance(b, DNS_SLOW_NS);
    release("hang-slow");
    await(b, &slow);
    release("");
    hang(b, stuck, 0, DNS_FRESH);
    ask(b, &again, "hang-slow", 80);
    assert_int_equal(dns_threads(b->dns), DNS_FRESH + 1);
    release("hang-slow");
    await(b, &again); /* quick this time, and forgiven: its next lookup waits for a fresh place */
    ask(b, &again, "hang-slow", 80);
    assert_int_equal(dns_threads(b->dns), DNS_FRESH);
}

static void threads_and_names_are_bounded_and_all_are_answered_in_the_end(void **state)
{
    struct bench *b = *state;
    static struct asker stuck[DNS_NAMES], busy;
    hang(b, stuck, 0, DNS_NAMES);
    for (unsigned i = 0; i < 10; i++) {
        assert_true(dns_threads(b->dns) <= DNS_FRESH + DNS_SLOW);
        advance(b, DNS_SLOW_NS);
    }
    assert_int_equal(dns_threads(b->dns), DNS_FRESH + DNS_SLOW);
    ask(b, &busy, "one-too-many.test", 80);
    await(b, &busy);
    assert_int_equal(busy.error, PE_NAME_BUSY);
    release("hang");
    for (unsigned i = 0; i < DNS_NAMES; i++) {
        await(b, &stuck[i]);
        assert_int_equal(stuck[i].error, 0);
    }
    ask(b, &busy, "one-too-many.test", 80);
    await(b, &busy);
    assert_int_equal(busy.error, 0);
}

static void waiting_names_start_in_their_order(void **state)
{
    struct bench *b = *state;
    static struct asker stuck[DNS_FRESH], first, second;
    hang(b, stuck, 0, DNS_FRESH);
    ask(b, &first, "hang-first", 80);
    ask(b, &second, "hang-second", 80);
    release("hang-0.");
    await(b, &stuck[0]);
    release("hang-first");
    await(b, &first);
    assert_int_equal(second.answers, 0);
}

static void a_cancelled_request_hears_nothing_whatever_stage_it_is_at(void **state)
{
    struct bench *b = *state;
    static struct asker stuck[DNS_FRESH], running, waiting, ready, other;
    ask(b, &running, "hang-0.", 80);
    hang(b, stuck, 0, DNS_FRESH);
    ask(b, &waiting, "hang-waiting", 80);
    ask(b, &ready, "127.0.0.1", 80);
    ask(b, &other, "127.0.0.2", 80);
    struct asker *cancelled[] = {&running, &waiting, &ready};
    for (size_t i = 0; i < ARRAY_SIZE(cancelled); i++) {
        b->resolver->cancel(b->resolver, &cancelled[i]->request);
        assert_false(cancelled[i]->request.in_flight);
        b->resolver->cancel(b->resolver, &cancelled[i]->request);
    }
    release("hang");
    await(b, &other);
    for (unsigned i = 0; i < DNS_FRESH; i++)
        await(b, &stuck[i]);
    settle(b);
    for (size_t i = 0; i < ARRAY_SIZE(cancelled); i++)
        assert_int_equal(cancelled[i]->answers, 0);
    await_calls(DNS_FRESH); /* the waiting one was never looked up */
}

static struct bench *asking_again;

static void ask_again(struct resolver_request *request, int error)
{
    answered(request, error);
    if (container_of(request, struct asker, request)->answers < 3)
        asking_again->resolver->lookup(asking_again->resolver, request);
}

static void a_request_may_be_looked_up_again_from_its_answer(void **state)
{
    struct bench *b = asking_again = *state;
    struct asker a;
    ask(b, &a, "example.test", 80);
    a.request.done = ask_again;
    for (unsigned i = 0; i < 1000 && a.answers < 3; i++)
        step(b);
    assert_int_equal(a.answers, 3);
    assert_int_equal(a.request.count, 2);
    assert_int_equal(calls(), 3);
}

/* --- what is remembered --- */

/* Asks `count` times at once, and waits for all. */
static void ask_many(struct bench *b, const char *name, bool doubted, unsigned count)
{
    static struct asker a[20];
    for (unsigned i = 0; i < count; i++) {
        a[i] = (struct asker){.request = {.done = answered, .port = (uint16_t)(i + 1), .doubted = doubted}};
        snprintf(a[i].request.name, sizeof a[i].request.name, "%s", name);
        b->resolver->lookup(b->resolver, &a[i].request);
    }
    for (unsigned i = 0; i < count; i++)
        await(b, &a[i]);
}

static void an_answer_is_given_again_while_it_is_valid_whoever_asks(void **state)
{
    struct bench *b = *state;
    struct asker first, again;
    server.valid_ns = 10 * NS_PER_S;
    ask(b, &first, "example.test", 80);
    await(b, &first);
    assert_int_equal(first.request.valid_ns, 10 * NS_PER_S);
    advance(b, 10 * NS_PER_S - 1);
    ask(b, &again, "Example.TEST", 81);
    assert_int_equal(dns_threads(b->dns), 0);
    await(b, &again);
    assert_int_equal(again.error, 0);
    assert_int_equal(again.request.count, 2);
    assert_int_equal(again.request.valid_ns, 1);
    assert_int_equal(ntohs(((struct sockaddr_in *)&again.request.addresses[0].address)->sin_port), 81);
    assert_int_equal(ntohs(((struct sockaddr_in6 *)&again.request.addresses[1].address)->sin6_port), 81);
    assert_int_equal(again.request.addresses[0].len, sizeof(struct sockaddr_in));
    assert_int_equal(again.request.addresses[1].len, sizeof(struct sockaddr_in6));
    assert_int_equal(calls(), 1);
    advance(b, 1);
    ask(b, &again, "example.test", 81);
    await(b, &again);
    assert_int_equal(calls(), 2);
}

static void a_failure_is_remembered_for_a_moment(void **state)
{
    struct bench *b = *state;
    server.valid_ns = NS_PER_S;
    for (unsigned i = 1; i <= 3; i++) {
        ask_many(b, "missing.test", true, 20);
        ask_many(b, "missing.test", false, 20);
        assert_int_equal(calls(), i);
        advance(b, DNS_FAILED_NS);
    }
}

/* --- twenty wires, each with its own back-off, whose name is dead --- */

#define WIRES       20
#define PROGRESS_NS (10 * NS_PER_S) /* after so long a wire gives a lookup up */

struct dead_wire {
    struct asker asker;
    struct backoff backoff;
    uint64_t due_ns;
};

static void make_dead_wires(struct bench *b, struct dead_wire wires[WIRES])
{
    for (unsigned i = 0; i < WIRES; i++) {
        backoff_init(&wires[i].backoff, 100 * NS_PER_MS, 60 * NS_PER_S, i);
        wires[i].due_ns = b->io.now_ns;
    }
}

static struct dead_wire *first_due(struct dead_wire wires[WIRES])
{
    struct dead_wire *first = wires;
    for (unsigned i = 1; i < WIRES; i++) {
        if (wires[i].due_ns < first->due_ns)
            first = &wires[i];
    }
    return first;
}

static void a_dead_name_is_looked_up_once_a_step_and_once_a_second_by_all_wires(void **state)
{
    struct bench *b = *state;
    static struct dead_wire wires[WIRES];
    uint64_t looked_up_ns = 0;
    unsigned steps = 0;
    make_dead_wires(b, wires);
    for (uint64_t end_ns = b->io.now_ns + 900 * NS_PER_S; b->io.now_ns < end_ns; steps++) {
        struct dead_wire *wire = first_due(wires);
        unsigned before = calls();
        advance(b, wire->due_ns - b->io.now_ns);
        ask(b, &wire->asker, "missing.test", 80);
        await(b, &wire->asker);
        wire->due_ns = b->io.now_ns + backoff_next(&wire->backoff);
        if (calls() == before)
            continue;
        assert_int_equal(calls(), before + 1);
        assert_true(looked_up_ns == 0 || b->io.now_ns - looked_up_ns >= DNS_FAILED_NS);
        looked_up_ns = b->io.now_ns;
    }
    assert_true(steps > 2 * WIRES && calls() < steps - steps / 4);
}

static void a_name_that_hangs_is_looked_up_once_however_often_wires_give_up(void **state)
{
    struct bench *b = *state;
    static struct dead_wire wires[WIRES];
    make_dead_wires(b, wires);
    for (unsigned step = 0; step < 10; step++) {
        for (unsigned i = 0; i < WIRES; i++)
            ask(b, &wires[i].asker, "hang.test", 80);
        advance(b, PROGRESS_NS);
        for (unsigned i = 0; i < WIRES; i++)
            b->resolver->cancel(b->resolver, &wires[i].asker.request);
        advance(b, backoff_next(&wires[0].backoff));
    }
    assert_int_equal(dns_threads(b->dns), 1);
    await_calls(1);
}

static void doubted_addresses_are_looked_up_again_but_in_no_storm(void **state)
{
    struct bench *b = *state;
    server.valid_ns = 3600 * NS_PER_S;
    ask_many(b, "example.test", false, 1);
    ask_many(b, "example.test", true, 20);
    assert_int_equal(calls(), 1);
    advance(b, DNS_DOUBTED_NS);
    ask_many(b, "example.test", false, 20);
    assert_int_equal(calls(), 1);
    ask_many(b, "example.test", true, 20);
    ask_many(b, "example.test", true, 20);
    assert_int_equal(calls(), 2);
}

static void what_is_known_is_given_while_a_new_lookup_hangs(void **state)
{
    struct bench *b = *state;
    struct asker doubting = {.request = {.done = answered, .name = "hang.test", .doubted = true}};
    server.valid_ns = 3600 * NS_PER_S;
    release("hang");
    ask_many(b, "hang.test", false, 1);
    release("");
    advance(b, DNS_DOUBTED_NS);
    b->resolver->lookup(b->resolver, &doubting.request);
    ask_many(b, "hang.test", false, 20);
    assert_int_equal(doubting.answers, 0);
    release("hang");
    await(b, &doubting);
    assert_int_equal(doubting.request.count, 2);
    assert_int_equal(calls(), 2);
}

static void more_names_than_can_be_remembered_are_still_looked_up(void **state)
{
    struct bench *b = *state;
    server.valid_ns = 3600 * NS_PER_S;
    for (unsigned i = 0; i < DNS_NAMES + 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "n%u.test", i);
        b->io.now_ns++;
        ask_many(b, name, false, 1);
    }
    assert_int_equal(calls(), DNS_NAMES + 10);
    ask_many(b, "n200.test", false, 1);
    assert_int_equal(calls(), DNS_NAMES + 10);
    ask_many(b, "n0.test", false, 1); /* the oldest went */
    assert_int_equal(calls(), DNS_NAMES + 11);
}

static void names_that_dns_has_no_say_in_are_told_apart(void **state)
{
    (void)state;
    static const char *const global[] = {"example.com", "a.b.c", "local.example", "x.localhost.example"};
    static const char *const other[] = {"localhost", "printer", "printer.local", "PRINTER.Local",
                                        "a.localhost"};
    for (size_t i = 0; i < ARRAY_SIZE(global); i++)
        assert_true(dns_is_global(global[i]));
    for (size_t i = 0; i < ARRAY_SIZE(other); i++)
        assert_false(dns_is_global(other[i]));
}

static void disposing_waits_for_no_lookup(void **state)
{
    struct bench *b = *state;
    static struct asker stuck[3];
    hang(b, stuck, 0, 3);
    dns_dispose(b->dns); /* would hang here; what the helpers find later goes nowhere */
    release("hang");
    assert_int_equal(dns_open(&b->dns, &b->loop, scripted), 0);
    b->io.dns = b->dns;
    settle(b);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(stuck[i].answers, 0);
}

static void failures_of_getaddrinfo_have_their_meaning(void **state)
{
    (void)state;
    static const struct {
        int eai, error;
    } cases[] = {
        {0, 0},
        {EAI_NONAME, PE_NAME_NOT_FOUND},
        {EAI_NODATA, PE_NAME_NOT_FOUND},
        {EAI_ADDRFAMILY, PE_NAME_NOT_FOUND},
        {EAI_AGAIN, PE_NAME_FAILED},
        {EAI_FAIL, PE_NAME_FAILED},
        {EAI_MEMORY, PE_NAME_FAILED},
        {EAI_SYSTEM, PE_NAME_FAILED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(dns_error(cases[i].eai), cases[i].error);
}

static void localhost_needs_no_network(void **state)
{
    (void)state;
    struct dns_answer answer;
    assert_int_equal(dns_find("localhost", &answer), 0);
    assert_in_range(answer.count, 1, RESOLVER_ADDRESSES);
    assert_int_equal(answer.valid_ns, DNS_VALID_NS);
}

#define WITH_BENCH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(an_answer_carries_all_addresses_with_the_port),
        WITH_BENCH(failures_keep_their_kind),
        WITH_BENCH(requests_for_one_name_share_a_lookup_and_keep_their_ports),
        WITH_BENCH(an_address_in_digits_needs_no_thread),
        WITH_BENCH(a_name_of_nothing_is_not_found),
        WITH_BENCH(a_lookup_that_hangs_delays_no_other),
        WITH_BENCH(as_many_as_may_hang_at_once_delay_another_for_a_second_at_most),
        WITH_BENCH(a_name_that_was_slow_takes_no_place_of_a_fresh_one),
        WITH_BENCH(threads_and_names_are_bounded_and_all_are_answered_in_the_end),
        WITH_BENCH(waiting_names_start_in_their_order),
        WITH_BENCH(a_cancelled_request_hears_nothing_whatever_stage_it_is_at),
        WITH_BENCH(a_request_may_be_looked_up_again_from_its_answer),
        WITH_BENCH(an_answer_is_given_again_while_it_is_valid_whoever_asks),
        WITH_BENCH(a_failure_is_remembered_for_a_moment),
        WITH_BENCH(a_dead_name_is_looked_up_once_a_step_and_once_a_second_by_all_wires),
        WITH_BENCH(a_name_that_hangs_is_looked_up_once_however_often_wires_give_up),
        WITH_BENCH(doubted_addresses_are_looked_up_again_but_in_no_storm),
        WITH_BENCH(what_is_known_is_given_while_a_new_lookup_hangs),
        WITH_BENCH(more_names_than_can_be_remembered_are_still_looked_up),
        cmocka_unit_test(names_that_dns_has_no_say_in_are_told_apart),
        WITH_BENCH(disposing_waits_for_no_lookup),
        cmocka_unit_test(failures_of_getaddrinfo_have_their_meaning),
        cmocka_unit_test(localhost_needs_no_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
