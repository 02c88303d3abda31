/* The front under more than it can do: visits, the line, the control plane; and its switches.
 *
 *     10.0.0.9 many clients that pipeline without end ──┐
 *     10.0.0.9 who asks for the host's health ──────────┴──> front (10.0.0.1) ──> apps
 *
 * What is counted is work: rounds of the front and requests that it begins. A step takes a microsecond, so
 * that bytes arrive while the front is busy.
 */
#include "host/front_client.h"
#include "tests/sim/front_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HOST   "Host: h\r\n"
#define EVENT  "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi"
#define HEALTH "GET /health HTTP/1.1\r\n" HOST "\r\n"

#define STATUS "GET /status HTTP/1.1\r\n" HOST "\r\n"

#define FLOODERS 200
#define FLOOD    2000 /* requests of each: more than will be asked for */

static void open_at_once(struct front_world *w, const struct config *config)
{
    static const struct sim_link at_once = {.window_bytes = 65536};
    front_world_open(w, 1, config);
    sim_set_faults(w->sim, &(struct sim_faults){.batch_max = 1 << 30, .buffer_bytes = 65536});
    sim_set_link(w->sim, NULL, NULL, &at_once);
}

/* A new client that sends `count` times EVENT. */
static struct sim_connection *pipeline(struct front_world *w, unsigned count)
{
    size_t size = sizeof EVENT - 1;
    char *all = malloc(count * size);
    for (unsigned i = 0; i < count; i++)
        memcpy(all + i * size, EVENT, size);
    struct sim_connection *c = front_world_send(w, all, count * size);
    free(all);
    return c;
}

/* --- visits --- */

/* The requests that each connection has begun, as of the end of the front's round before. */
struct visits {
    struct front_world *w;
    uint64_t round;
    uint32_t begun[FLOODERS + 64], now[FLOODERS + 64];
    uint32_t most; /* of one connection in one round */
    uint64_t rounds;
};

static bool count_visits(void *context)
{
    struct visits *v = context;
    struct front *front = &v->w->front;
    if (front->round != v->round) {
        memcpy(v->begun, v->now, sizeof v->begun);
        v->round = front->round;
        v->rounds++;
    }
    for (uint32_t i = 0; i < front->pool && i < ARRAY_SIZE(v->now); i++) {
        v->now[i] = front->clients[i].end;
        if (v->now[i] > v->begun[i] && v->now[i] - v->begun[i] > v->most)
            v->most = v->now[i] - v->begun[i];
    }
    return false;
}

static uint32_t most_in_a_visit(const struct overload_without *without)
{
    struct config config = {.without = *without};
    struct front_world w;
    open_at_once(&w, &config);
    struct visits v = {.w = &w};
    struct sim_connection *c[3];
    for (unsigned i = 0; i < 3; i++)
        c[i] = pipeline(&w, 500);
    sim_run(w.sim, sim_now_ns(w.sim) + NS_PER_S, count_visits, &v, 100000);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(front_world_count(c[i], "HTTP/1.1 200 "), 500);
    assert_int_equal(w.apps[0].events, 1500);
    front_world_close(&w);
    return v.most;
}

static void a_round_begins_so_many_requests_of_a_connection_and_all_come_to_their_turn(void **state)
{
    (void)state;
    assert_int_equal(most_in_a_visit(&(struct overload_without){.quotas = false}), FRONT_VISIT);
}

static void without_quotas_a_visit_is_all_that_may_be_unanswered(void **state)
{
    (void)state;
    assert_in_range(most_in_a_visit(&(struct overload_without){.quotas = true}), FRONT_PIPELINE / 2,
                    FRONT_PIPELINE);
}

/* --- the control plane --- */

struct flood {
    struct front_world w;
    struct sim_connection *asked[2]; /* who ask for the host's health, the second on a new connection */
};

static bool step(void *context)
{
    struct flood *f = context;
    sim_pass(f->w.sim, NS_PER_US);
    return false;
}

static bool step_until_answered(void *context)
{
    struct flood *f = context;
    step(f);
    return front_world_count(f->asked[0], "HTTP/1.1 200 ") > 0 &&
           front_world_count(f->asked[1], "HTTP/1.1 200 ") > 0;
}

struct cost {
    uint64_t rounds, begun; /* of the front; requests */
};

/* Clients pipeline `request` without end; asked[0] has only connected. */
static void open_flood(struct flood *f, const char *request)
{
    struct config config = {.connections = FLOODERS + 10};
    size_t size = strlen(request);
    char *requests = malloc(FLOOD * size);
    for (unsigned i = 0; i < FLOOD; i++)
        memcpy(requests + i * size, request, size);
    open_at_once(&f->w, &config);
    f->asked[0] = front_world_send(&f->w, "", 0);
    for (unsigned i = 0; i < FLOODERS; i++)
        front_world_send(&f->w, requests, FLOOD * size);
    free(requests);
    assert_int_equal(sim_run(f->w.sim, NEVER, step, f, 60), SIM_STEPS);
}

/* What is done until two that ask for the host's health have their answers. */
static struct cost cost_of_health(const char *request)
{
    struct flood f;
    open_flood(&f, request);
    struct cost before = {f.w.front.round, f.w.front.counters.requests};
    assert_in_range(before.begun, FLOODERS, FLOODERS * FLOOD / 2);
    sim_peer_send(f.asked[0], HEALTH, sizeof HEALTH - 1);
    f.asked[1] = front_world_send(&f.w, HEALTH, sizeof HEALTH - 1);
    assert_int_equal(sim_run(f.w.sim, NEVER, step_until_answered, &f, 100000), SIM_DONE);
    struct cost cost = {f.w.front.round - before.rounds, f.w.front.counters.requests - before.begun};
    front_world_close(&f.w);
    return cost;
}

/* A connection is made, accepted, read, answered, and the answer is sent: a step each. */
#define HEALTH_ROUNDS 8

/* Of a round: 16 visits of the line (front_line.c). */
#define LINE_REQUESTS (16 * FRONT_VISIT)

static void health_is_answered_within_rounds_of_a_flood(void **state)
{
    (void)state;
    struct cost cost = cost_of_health(EVENT);
    assert_in_range(cost.rounds, 1, HEALTH_ROUNDS);
    assert_in_range(cost.begun, FLOODERS,
                    FLOODERS + cost.rounds * LINE_REQUESTS + 2); /* and the two that ask */
}

/* Two of them are written in a round, and hundreds wait: not who asks for the health. */
static void health_is_answered_before_texts_that_wait(void **state)
{
    (void)state;
    struct cost cost = cost_of_health(STATUS);
    assert_in_range(cost.rounds, 1, HEALTH_ROUNDS);
}

struct asker {
    struct flood f;
    unsigned answers; /* of asked[0] that are awaited */
    bool waited;      /* it was in line meanwhile */
};

static bool see_line(void *context)
{
    struct asker *a = context;
    step(&a->f);
    a->waited |= a->f.w.front.clients[0].line != NULL;
    return front_world_count(a->f.asked[0], "HTTP/1.1 200 ") == a->answers;
}

/* Whether it has to wait in line with one more. */
static bool ask(struct asker *a)
{
    a->answers++;
    a->waited = false;
    sim_peer_send(a->f.asked[0], EVENT, sizeof EVENT - 1);
    assert_int_equal(sim_run(a->f.w.sim, NEVER, see_line, a, 100000), SIM_DONE);
    return a->waited;
}

static void who_asks_little_passes_the_line_and_who_asks_much_does_not(void **state)
{
    (void)state;
    struct asker a = {0};
    open_flood(&a.f, EVENT);
    assert_false(ask(&a));
    assert_true(ask(&a));
    for (unsigned i = 0; i < 11; i++)
        sim_pass(a.f.w.sim, NS_PER_MS);
    assert_false(ask(&a));
    front_world_close(&a.f.w);
}

/* --- what waits in line --- */

/* Requests of many sizes, cut and delivered in many ways, from clients that say no more after them. */
static void what_waits_in_line_is_answered_in_order_whatever_comes(void **state)
{
    (void)state;
    static char requests[600 * 200];
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct front_world w;
        front_world_open(&w, seed, NULL);
        sim_set_faults(w.sim,
                       &(struct sim_faults){.batch_max = 8, .buffer_bytes = 700, .multishot_end = 100});
        size_t size = 0;
        uint64_t sum = 0;
        for (unsigned i = 0; i < 600; i++) {
            unsigned body = (unsigned)random_below(sim_random(w.sim), 60);
            size += (size_t)sprintf(
                requests + size,
                "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: %u\r\n\r\n%.*s", body,
                (int)body, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
            sum += body * (uint64_t)'x';
        }
        struct sim_connection *c = front_world_send(&w, requests, size);
        sim_peer_shutdown(c);
        front_world_run_until_end(&w, c, 10 * NS_PER_S);
        assert_int_equal(sim_peer_error(c), 0);
        assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 600);
        assert_int_equal(w.apps[0].events, 600);
        assert_true(w.apps[0].sum == sum);
        front_world_close(&w);
    }
}

static bool see_kept(void *context)
{
    struct flood *f = context;
    assert_in_range(f->w.front.kept_bytes, 0, 256 * 1024);
    return step(f);
}

/* Rooms double: FRONT_KEEP_BYTES, what comes until the receive has ended (here 64 KiB), and as much again
 * that was taken and is not overwritten yet. */
static void a_connection_in_line_is_not_read_beyond_what_is_kept(void **state)
{
    (void)state;
    struct flood f;
    front_world_open(&f.w, 1, NULL);
    struct sim_connection *c = pipeline(&f.w, 20000);
    sim_run(f.w.sim, sim_now_ns(f.w.sim) + 20 * NS_PER_S, see_kept, &f, 1000000);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 20000);
    front_world_close(&f.w);
}

static bool some_are_stored(void *context)
{
    return ((struct flood *)context)->w.apps[0].events > 100;
}

/* What was begun is answered, the last answer says that it is the last, and no reset takes it away. */
static void a_stop_answers_what_has_begun_and_no_more_of_the_line(void **state)
{
    (void)state;
    struct flood f;
    front_world_open(&f.w, 1, NULL);
    struct sim_connection *c = pipeline(&f.w, 20000);
    assert_int_equal(sim_run_until(f.w.sim, some_are_stored, &f), SIM_DONE);
    front_stop(&f.w.front);
    front_world_run_until_end(&f.w, c, 10 * NS_PER_S);
    assert_int_equal(sim_peer_error(c), 0);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), f.w.apps[0].events);
    assert_int_equal(front_world_count(c, "Connection: close\r\n"), 1);
    assert_in_range(f.w.apps[0].events, 101, 1000);
    front_world_close(&f.w);
}

/* --- early --- */

#define ANNOUNCED "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n"
#define RECORDS                                                                                     \
    "POST /apps/counter/records HTTP/1.1\r\n" HOST "Content-Type: application/vnd.pure.records\r\n" \
    "Pure-Stream: h/a/o\r\nPure-Epoch: 00112233445566778899aabbccddeeff\r\nPure-First: 1\r\n"       \
    "Pure-Count: 1\r\nPure-Event: e\r\nContent-Length: 1000\r\n\r\n"

/* How many answers are there before the body of a request for a full inbox, and when it is there. */
static void refuse(const char *head, bool early, unsigned before, unsigned after)
{
    struct config config = {.without.early = !early};
    struct front_world w;
    front_world_open(&w, 1, &config);
    w.hold = true;
    struct inbox *inbox = &w.apps[0].entry.inbox;
    uint64_t reserved = inbox->runs.capacity / 2;
    assert_int_equal(inbox_reserve(inbox, reserved, 0), 0);
    assert_int_equal(inbox_reserve(inbox, reserved / 2, 0), 0);
    struct sim_connection *c = front_world_send(&w, head, strlen(head));
    sim_run_for(w.sim, 20 * NS_PER_MS);
    assert_int_equal(front_world_count(c, "HTTP/1.1 503 "), before);
    static uint8_t body[1000];
    varint_put(body, sizeof body - 2);
    sim_peer_send(c, body, sizeof body);
    sim_run_for(w.sim, 20 * NS_PER_MS);
    assert_int_equal(front_world_count(c, "HTTP/1.1 503 "), after);
    assert_int_equal(inbox->puts, 0);
    inbox_release(inbox, reserved + reserved / 2);
    front_world_close(&w);
}

static void a_request_is_refused_at_its_head_or_without_early_behind_its_body(void **state)
{
    (void)state;
    refuse(ANNOUNCED, true, 1, 1);
    refuse(ANNOUNCED, false, 0, 1);
    refuse(RECORDS, true, 1, 1);
    refuse(RECORDS, false, 0, 1);
}

static void without_early_an_app_that_is_suspended_is_still_said_to_be(void **state)
{
    (void)state;
    struct config config = {.without.early = true};
    struct front_world w;
    front_world_open(&w, 1, &config);
    atomic_store(&w.apps[0].entry.report.condition, APP_SUSPENDED);
    struct sim_connection *c = pipeline(&w, 1);
    sim_run_for(w.sim, 20 * NS_PER_MS);
    assert_int_equal(front_world_count(c, "HTTP/1.1 503 "), 1);
    assert_int_equal(w.apps[0].entry.inbox.puts, 0);
    front_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_begins_so_many_requests_of_a_connection_and_all_come_to_their_turn),
        cmocka_unit_test(without_quotas_a_visit_is_all_that_may_be_unanswered),
        cmocka_unit_test(health_is_answered_within_rounds_of_a_flood),
        cmocka_unit_test(health_is_answered_before_texts_that_wait),
        cmocka_unit_test(who_asks_little_passes_the_line_and_who_asks_much_does_not),
        cmocka_unit_test(what_waits_in_line_is_answered_in_order_whatever_comes),
        cmocka_unit_test(a_connection_in_line_is_not_read_beyond_what_is_kept),
        cmocka_unit_test(a_stop_answers_what_has_begun_and_no_more_of_the_line),
        cmocka_unit_test(a_request_is_refused_at_its_head_or_without_early_behind_its_body),
        cmocka_unit_test(without_early_an_app_that_is_suspended_is_still_said_to_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
