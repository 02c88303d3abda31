/* Who was refused for want of room and asks again: it waits for room, in turn, and takes little time from
 * others.
 *
 * An inbox is full here because the test has reserved all that may be. */
#include "host/front_client.h"
#include "host/front_line.h"
#include "tests/sim/front_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HOST   "Host: h\r\n"
#define EVENT  "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi"
#define OTHER  "POST /apps/other/events/up HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi"
#define HEALTH "GET /health HTTP/1.1\r\n" HOST "\r\n"

#define CROWD 100

struct full {
    struct front_world w;
    struct inbox *inbox;
    uint64_t reserved;
};

static void reserve(struct full *f, uint64_t bytes)
{
    assert_int_equal(inbox_reserve(f->inbox, bytes, 0), 0);
    f->reserved += bytes;
}

static void release(struct full *f, uint64_t bytes)
{
    inbox_release(f->inbox, bytes);
    f->reserved -= bytes;
}

static void open_full(struct full *f, uint64_t seed, const struct config *config)
{
    *f = (struct full){0};
    front_world_open(&f->w, seed, config);
    f->inbox = &f->w.apps[0].entry.inbox;
    reserve(f, f->inbox->runs.capacity / 2);
    reserve(f, f->inbox->runs.capacity / 4);
}

static void close_full(struct full *f)
{
    release(f, f->reserved);
    front_world_close(&f->w);
}

static void run_ms(struct full *f, unsigned ms)
{
    sim_run_for(f->w.sim, ms * NS_PER_MS);
}

/* A new client that sends EVENT so many times. */
static struct sim_connection *pipeline(struct full *f, unsigned count)
{
    char all[64 * (sizeof EVENT - 1)];
    assert_in_range(count, 1, 64);
    for (unsigned i = 0; i < count; i++)
        memcpy(all + i * (sizeof EVENT - 1), EVENT, sizeof EVENT - 1);
    return front_world_send(&f->w, all, count * (sizeof EVENT - 1));
}

static unsigned refusals(struct sim_connection *c)
{
    return front_world_count(c, "HTTP/1.1 503 ");
}

static void who_was_refused_waits_for_room(void **state)
{
    (void)state;
    struct full f;
    open_full(&f, 1, NULL);
    struct sim_connection *c = pipeline(&f, 3);
    run_ms(&f, 900);
    assert_int_equal(refusals(c), 1);
    release(&f, f.reserved);
    run_ms(&f, 20);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 2);
    assert_int_equal(f.w.apps[0].events, 2);
    close_full(&f);
}

static void it_is_refused_once_a_second_until_there_is_room(void **state)
{
    (void)state;
    struct full f;
    open_full(&f, 1, NULL);
    struct sim_connection *c = pipeline(&f, 20);
    run_ms(&f, 5500);
    assert_int_equal(refusals(c), 6);
    assert_int_equal(f.w.front.held_look.place == 0, false);
    release(&f, f.reserved);
    run_ms(&f, 20);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 14);
    assert_int_equal(f.w.front.held_look.place, 0); /* nobody is held: nothing is looked at */
    close_full(&f);
}

static void without_quotas_nobody_is_held(void **state)
{
    (void)state;
    struct full f;
    open_full(&f, 1, &(struct config){.without.quotas = true});
    struct sim_connection *c = pipeline(&f, 20);
    run_ms(&f, 20);
    assert_int_equal(refusals(c), 20);
    close_full(&f);
}

static void who_asks_another_app_or_how_the_host_is_does_not_wait(void **state)
{
    (void)state;
    struct full f;
    open_full(&f, 1, NULL);
    struct sim_connection *c = front_world_send(&f.w, EVENT OTHER HEALTH, sizeof EVENT OTHER HEALTH - 1);
    run_ms(&f, 20);
    assert_int_equal(refusals(c), 1);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 2);
    close_full(&f);
}

static void nobody_passes_those_who_are_held(void **state)
{
    (void)state;
    struct full f;
    open_full(&f, 1, NULL);
    struct sim_connection *first = pipeline(&f, 2);
    run_ms(&f, 20);
    release(&f, f.inbox->runs.capacity / 32); /* room for one event, not for those who are held */
    struct sim_connection *second = pipeline(&f, 1);
    run_ms(&f, 20);
    assert_int_equal(refusals(first), 1);
    assert_int_equal(sim_received(second).size, 0); /* it is held, too */
    release(&f, f.reserved);
    run_ms(&f, 20);
    assert_int_equal(front_world_count(first, "HTTP/1.1 200 "), 1);
    assert_int_equal(front_world_count(second, "HTTP/1.1 200 "), 1);
    close_full(&f);
}

/* --- large ones --- */

#define LARGE 262000 /* bytes of an event that takes more than a sixteenth of the inbox, and is discarded */

static size_t put_large(char *to)
{
    size_t size = (size_t)sprintf(
        to, "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", LARGE);
    memset(to + size, 'x', LARGE);
    return size + LARGE;
}

static struct sim_connection *pipeline_large(struct full *f, const char *first, unsigned count)
{
    char *all = malloc(strlen(first) + count * (LARGE + 200));
    size_t size = (size_t)sprintf(all, "%s", first);
    for (unsigned i = 0; i < count; i++)
        size += put_large(all + size);
    struct sim_connection *c = front_world_send(&f->w, all, size);
    free(all);
    return c;
}

/* Leaves what admits small requests and is too little for a large one. */
static void leave_a_little(struct full *f)
{
    release(f, f->inbox->runs.capacity / 16 + 100);
}

static void what_finds_room_for_less_than_it_asks_waits_too(void **state)
{
    (void)state;
    struct full f;
    open_full(&f, 1, NULL);
    leave_a_little(&f);
    struct sim_connection *c = pipeline_large(&f, "", 12);
    run_ms(&f, 3500);
    assert_int_equal(refusals(c), 4);
    release(&f, f.reserved);
    run_ms(&f, 5000);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 8);
    close_full(&f);
}

static void small_ones_do_not_take_the_room_that_a_large_one_waits_for(void **state)
{
    (void)state;
    struct full f;
    open_full(&f, 1, NULL);
    struct sim_connection *large = pipeline_large(&f, EVENT, 1);
    run_ms(&f, 20);
    leave_a_little(&f);
    struct sim_connection *small = pipeline(&f, 1);
    run_ms(&f, 20);
    assert_int_equal(sim_received(small).size, 0);
    release(&f, 10000);
    run_ms(&f, 200);
    assert_int_equal(refusals(large), 1);
    assert_int_equal(front_world_count(large, "HTTP/1.1 200 "), 1);
    close_full(&f);
}

/* A body in chunks does not say how large it is: the next is taken to be as large. */
static void who_sends_in_chunks_waits_for_what_there_was_no_room_for(void **state)
{
    (void)state;
    struct full f;
    open_full(&f, 1, NULL);
    leave_a_little(&f);
    char *all = malloc(12 * (LARGE + 200));
    size_t size = 0;
    for (unsigned i = 0; i < 12; i++) {
        size += (size_t)sprintf(all + size,
                                "POST /apps/counter/events/up HTTP/1.1\r\n" HOST
                                "Transfer-Encoding: chunked\r\n\r\n%x\r\n",
                                LARGE);
        memset(all + size, 'x', LARGE);
        size += LARGE;
        size += (size_t)sprintf(all + size, "\r\n0\r\n\r\n");
    }
    struct sim_connection *c = front_world_send(&f.w, all, size);
    free(all);
    run_ms(&f, 3900);
    assert_in_range(refusals(c), 3, 4);
    release(&f, f.reserved);
    run_ms(&f, 5000);
    assert_int_equal(front_world_count(c, "HTTP/1.1 "), 12);
    assert_in_range(refusals(c), 3, 4);
    close_full(&f);
}

/* What no inbox takes is not waited for. */
static void too_large_ones_are_told_so_in_their_turn(void **state)
{
    (void)state;
    static const char huge[] =
        EVENT "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 99000000\r\n\r\n";
    struct full f;
    open_full(&f, 1, NULL);
    struct sim_connection *c = front_world_send(&f.w, huge, sizeof huge - 1);
    run_ms(&f, 20);
    leave_a_little(&f);
    run_ms(&f, 20);
    assert_int_equal(front_world_count(c, "HTTP/1.1 413 "), 1);
    close_full(&f);
}

/* --- many --- */

struct crowd {
    struct full f;
    struct sim_connection *c[CROWD];
    unsigned most;
};

static void open_crowd(struct crowd *crowd, uint64_t seed, unsigned requests)
{
    open_full(&crowd->f, seed, &(struct config){.connections = CROWD + 10});
    for (unsigned i = 0; i < CROWD; i++)
        crowd->c[i] = pipeline(&crowd->f, requests);
    run_ms(&crowd->f, 100);
}

static unsigned all_refusals(struct crowd *crowd)
{
    unsigned count = 0;
    for (unsigned i = 0; i < CROWD; i++)
        count += refusals(crowd->c[i]);
    return count;
}

static void a_crowd_is_refused_a_few_at_a_time(void **state)
{
    (void)state;
    struct crowd crowd;
    open_crowd(&crowd, 1, 4);
    assert_int_equal(all_refusals(&crowd), 1); /* then there was one who was held */
    unsigned before = 1, most = 0;
    for (unsigned ms = 0; ms < 1200; ms += 10) {
        run_ms(&crowd.f, 10);
        unsigned now = all_refusals(&crowd);
        most = now - before > most ? now - before : most;
        before = now;
    }
    assert_int_equal(before, CROWD + 1);
    assert_in_range(most, 1, 2 * 32); /* two looks may fall into 10 ms */
    close_full(&crowd.f);
}

/* How far the requests that are begun of one client are ahead of another's. */
static bool see_spread(void *context)
{
    struct crowd *crowd = context;
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < crowd->f.w.front.pool; i++) {
        const struct client *c = &crowd->f.w.front.clients[i];
        if (!c->used)
            continue;
        least = c->end < least ? c->end : least;
        most = c->end > most ? c->end : most;
    }
    crowd->most = most - least > crowd->most ? most - least : crowd->most;
    return false;
}

static void those_who_are_held_are_served_in_turn(void **state)
{
    (void)state;
    struct crowd crowd = {0};
    open_crowd(&crowd, 1, 60);
    crowd.most = 0;
    release(&crowd.f, crowd.f.reserved);
    sim_run(crowd.f.w.sim, sim_now_ns(crowd.f.w.sim) + NS_PER_S, see_spread, &crowd, 1000000);
    unsigned served = 0;
    for (unsigned i = 0; i < CROWD; i++)
        served += front_world_count(crowd.c[i], "HTTP/1.1 200 ");
    assert_int_equal(served, 60 * CROWD - 1);        /* all but the first of all */
    assert_in_range(crowd.most, 1, FRONT_VISIT + 1); /* and the one that was refused */
    close_full(&crowd.f);
}

/* --- an app that is slower than those who ask --- */

#define SLOW_CROWD 25
#define LARGISH    150000 /* bytes of an event: the inbox takes some 20 of them */

/* The app takes one event after the other, ten a second: those of the crowd are served in 2.5 s. */
static void take_slowly(struct full *f, unsigned events)
{
    for (unsigned i = 0; i < events; i++) {
        front_world_take(&f->w, 1);
        run_ms(f, 100);
    }
}

/* A new client that sends so many such events. */
static struct sim_connection *pipeline_largish(struct full *f, unsigned count)
{
    static char all[20 * (LARGISH + 200)];
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        size += (size_t)sprintf(all + size,
                                "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n",
                                LARGISH);
        memset(all + size, 'x', LARGISH);
        size += LARGISH;
    }
    return front_world_send(&f->w, all, size);
}

static void open_slow(struct crowd *crowd)
{
    front_world_open(&crowd->f.w, 1, NULL);
    crowd->f.w.hold = true;
    crowd->f.reserved = 0;
    crowd->f.inbox = &crowd->f.w.apps[0].entry.inbox;
    for (unsigned i = 0; i < SLOW_CROWD; i++)
        crowd->c[i] = pipeline_largish(&crowd->f, 20);
    run_ms(&crowd->f, 1000);
}

static void all_who_ask_again_are_served_in_turn_though_it_takes_longer_than_they_are_held(void **state)
{
    (void)state;
    struct crowd crowd;
    open_slow(&crowd);
    take_slowly(&crowd.f, 5 * SLOW_CROWD);
    for (unsigned i = 0; i < SLOW_CROWD; i++)
        assert_in_range(front_world_count(crowd.c[i], "HTTP/1.1 200 "), 4, 6);
    close_full(&crowd.f);
}

/* Those of the crowd wait for longer than a second. What is taken in is answered 2 s later. */
static void who_does_not_ask_again_at_once_is_served_before_them(void **state)
{
    (void)state;
    struct crowd crowd;
    struct sim_connection *fresh[10];
    open_slow(&crowd);
    take_slowly(&crowd.f, 20);
    for (unsigned i = 0; i < 10; i++) {
        fresh[i] = pipeline_largish(&crowd.f, 1);
        take_slowly(&crowd.f, 12);
    }
    take_slowly(&crowd.f, 30);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(front_world_count(fresh[i], "HTTP/1.1 200 "), 1);
    close_full(&crowd.f);
}

static void who_comes_back_a_second_later_is_answered_at_once(void **state)
{
    (void)state;
    struct full f;
    open_full(&f, 1, NULL);
    struct sim_connection *c = pipeline(&f, 1);
    for (unsigned i = 1; i < 5; i++) {
        run_ms(&f, 20);
        assert_int_equal(refusals(c), i);
        run_ms(&f, 1000);
        sim_peer_send(c, EVENT, sizeof EVENT - 1);
    }
    close_full(&f);
}

static void a_stop_does_not_wait_for_room(void **state)
{
    (void)state;
    struct full f;
    open_full(&f, 1, NULL);
    struct sim_connection *c = pipeline(&f, 3);
    run_ms(&f, 20);
    uint64_t from_ns = sim_now_ns(f.w.sim);
    front_stop(&f.w.front);
    front_world_run_until_end(&f.w, c, 10 * NS_PER_S);
    assert_in_range(sim_now_ns(f.w.sim) - from_ns, 0, 100 * NS_PER_MS);
    assert_int_equal(sim_peer_error(c), 0);
    assert_int_equal(refusals(c), 1);
    close_full(&f);
}

/* Some go while they wait, others come in their places; who stays is served. */
static void who_leaves_while_it_waits_is_not_waited_for(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct crowd crowd;
        open_crowd(&crowd, seed, 4);
        struct random *random = sim_random(crowd.f.w.sim);
        for (unsigned i = 0; i < CROWD; i++) {
            if (random_below(random, 3) > 0)
                continue;
            sim_peer_reset(crowd.c[i]);
            run_ms(&crowd.f, (unsigned)random_below(random, 30));
            crowd.c[i] = pipeline(&crowd.f, 4);
        }
        release(&crowd.f, crowd.f.reserved);
        run_ms(&crowd.f, 1000);
        for (unsigned i = 0; i < CROWD; i++)
            assert_int_equal(refusals(crowd.c[i]) + front_world_count(crowd.c[i], "HTTP/1.1 200 "), 4);
        assert_null(crowd.f.w.front.line.first);
        assert_null(crowd.f.w.front.apps[0].held[HELD_AGAIN].first);
        assert_null(crowd.f.w.front.apps[0].held[HELD_NEW].first);
        close_full(&crowd.f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_was_refused_waits_for_room),
        cmocka_unit_test(it_is_refused_once_a_second_until_there_is_room),
        cmocka_unit_test(without_quotas_nobody_is_held),
        cmocka_unit_test(who_asks_another_app_or_how_the_host_is_does_not_wait),
        cmocka_unit_test(nobody_passes_those_who_are_held),
        cmocka_unit_test(what_finds_room_for_less_than_it_asks_waits_too),
        cmocka_unit_test(small_ones_do_not_take_the_room_that_a_large_one_waits_for),
        cmocka_unit_test(who_sends_in_chunks_waits_for_what_there_was_no_room_for),
        cmocka_unit_test(too_large_ones_are_told_so_in_their_turn),
        cmocka_unit_test(a_crowd_is_refused_a_few_at_a_time),
        cmocka_unit_test(those_who_are_held_are_served_in_turn),
        cmocka_unit_test(all_who_ask_again_are_served_in_turn_though_it_takes_longer_than_they_are_held),
        cmocka_unit_test(who_does_not_ask_again_at_once_is_served_before_them),
        cmocka_unit_test(who_comes_back_a_second_later_is_answered_at_once),
        cmocka_unit_test(a_stop_does_not_wait_for_room),
        cmocka_unit_test(who_leaves_while_it_waits_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
