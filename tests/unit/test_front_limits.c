/* The front's bounds and deadlines: slow clients, large bodies, full inboxes, too many connections, its end.
 */
#include "tests/sim/front_world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HOST  "Host: h\r\n"
#define EVENT "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi"

static struct sim_connection *send_text(struct front_world *w, const char *text)
{
    return front_world_send(w, text, strlen(text));
}

static void settle(struct front_world *w)
{
    sim_run_for(w->sim, 20 * NS_PER_MS);
}

static uint64_t seconds_until_end(struct front_world *w, struct sim_connection *c)
{
    uint64_t start_ns = sim_now_ns(w->sim);
    front_world_run_until_end(w, c, 1000 * NS_PER_S);
    return (sim_now_ns(w->sim) - start_ns) / NS_PER_S;
}

/* One more byte a second, until the end. */
static uint64_t drip_until_end(struct front_world *w, struct sim_connection *c, const char *bytes)
{
    uint64_t start_ns = sim_now_ns(w->sim);
    for (size_t i = 0; bytes[i] && !sim_peer_ended(c); i++) {
        sim_peer_send(c, bytes + i, 1);
        sim_run_for(w->sim, NS_PER_S);
    }
    return (sim_now_ns(w->sim) - start_ns) / NS_PER_S;
}

static void a_head_that_drips_is_given_up_on(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    struct sim_connection *c = send_text(&w, "");
    assert_in_range(
        drip_until_end(&w, c, "GET /status HTTP/1.1\r\n" HOST "Some: thing\r\nMore: of it\r\n\r\n"), 30, 31);
    assert_int_equal(front_world_count(c, "HTTP/1.1 408 "), 1);
    front_world_close(&w);
}

static void a_body_that_drips_is_given_up_on(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    struct sim_connection *c =
        send_text(&w, "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\n");
    assert_in_range(drip_until_end(&w, c, "0123456789012345678901234567890123456789"), 30, 31);
    assert_int_equal(front_world_count(c, "HTTP/1.1 408 "), 1);
    assert_int_equal(w.apps[0].events, 0);
    front_world_close(&w);
}

static void each_request_has_the_whole_time(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    struct sim_connection *c = send_text(&w, "");
    for (unsigned i = 0; i < 3; i++)
        drip_until_end(&w, c, "GET / HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 3);
    front_world_close(&w);
}

static void an_idle_connection_is_closed_without_a_word(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    struct sim_connection *c = send_text(&w, EVENT);
    settle(&w);
    size_t size = sim_received(c).size;
    assert_in_range(seconds_until_end(&w, c), 59, 61);
    assert_int_equal(sim_received(c).size, size);
    front_world_close(&w);
}

static void a_client_that_waits_for_its_app_is_not_idle(void **state)
{
    (void)state;
    struct config config = {.request_ns = 400 * NS_PER_S};
    struct front_world w;
    front_world_open(&w, 1, &config);
    w.hold = true;
    struct sim_connection *c = send_text(&w, EVENT);
    sim_run_for(w.sim, 300 * NS_PER_S);
    assert_false(sim_peer_ended(c));
    front_world_release(&w);
    settle(&w);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 1);
    front_world_close(&w);
}

static void a_client_that_does_not_read_is_closed(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
    settle(&w);
    sim_peer_read(c, false);
    for (unsigned i = 0; i < 400; i++)
        sim_peer_send(c, "GET /metrics HTTP/1.1\r\n" HOST "\r\n", 24 + sizeof HOST);
    settle(&w);
    assert_int_equal(w.front.open, 1);
    sim_run_for(w.sim, 9 * NS_PER_S);
    assert_int_equal(w.front.open, 1);
    sim_run_for(w.sim, 2 * NS_PER_S);
    assert_int_equal(w.front.open, 0);
    front_world_close(&w);
}

static void unanswered_requests_are_limited_and_all_are_answered(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    w.hold = true;
    struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
    for (unsigned i = 0; i < 5000; i++)
        sim_peer_send(c, EVENT, sizeof EVENT - 1);
    settle(&w);
    assert_int_equal(w.apps[0].entry.inbox.puts, 64);
    front_world_release(&w);
    sim_run_for(w.sim, NS_PER_S);
    assert_int_equal(w.apps[0].events, 5000);
    assert_int_equal(front_world_count(c, "{\"stored\":5000}"), 1);
    front_world_close(&w);
}

/* A body of `size` bytes. */
static int status_of_body(struct front_world *w, size_t size, bool chunked)
{
    char *request = malloc(size + 256);
    int head =
        chunked
            ? sprintf(request,
                      "POST /apps/counter/events/up HTTP/1.1\r\n" HOST
                      "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
                      size)
            : sprintf(request, "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
                      size);
    memset(request + head, 'x', size);
    memcpy(request + head + size, "\r\n0\r\n\r\n", 7);
    struct sim_connection *c = front_world_send(w, request, (size_t)head + size + (chunked ? 7 : 0));
    sim_run_for(w->sim, 500 * NS_PER_MS);
    free(request);
    assert_int_equal(sim_peer_error(c), 0); /* the reply is seen, not a reset */
    assert_true(sim_received(c).size > 12);
    return front_world_status(sim_received(c));
}

static void a_body_may_have_max_body_bytes(void **state)
{
    (void)state;
    struct config config = {.max_body = 1000000};
    for (int chunked = 0; chunked < 2; chunked++) {
        struct front_world w;
        front_world_open(&w, 1, &config);
        assert_int_equal(status_of_body(&w, 999999, chunked), 200);
        assert_int_equal(status_of_body(&w, 1000000, chunked), 200);
        assert_int_equal(status_of_body(&w, 1000001, chunked), 413);
        assert_int_equal(w.apps[0].events, 2);
        front_world_close(&w);
    }
}

/* Neither a body nobody asked for nor the rest of a refused one is read without end. */
static void a_body_that_is_not_stored_is_read_within_bounds(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "GET / HTTP/1.1\r\n" HOST "Content-Length: 100000000\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n4000000\r\n",
        "POST /apps/none/events/up HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n4000000\r\n"};
    static char part[10000];
    for (unsigned i = 0; i < ARRAY_SIZE(heads); i++) {
        struct front_world w;
        front_world_open(&w, i, NULL);
        struct sim_connection *c = send_text(&w, heads[i]);
        unsigned parts = 0;
        for (; parts < 1000 && !sim_peer_ended(c); parts++) {
            sim_peer_send(c, part, sizeof part);
            sim_run_for(w.sim, NS_PER_MS);
        }
        assert_in_range(parts, 20, 40); /* 256 KiB, and what is under way */
        assert_int_equal(front_world_count(c, "HTTP/1.1 "), 1);
        front_world_close(&w);
    }
}

static void bodies_together_have_body_memory(void **state)
{
    (void)state;
    struct config config = {.body_memory = 100000};
    struct front_world w;
    front_world_open(&w, 1, &config);
    static char part[40000];
    memset(part, 'x', sizeof part);
    struct sim_connection *c[5];
    unsigned refused = 0;
    for (unsigned i = 0; i < 5; i++) {
        c[i] =
            send_text(&w, "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 50000\r\n\r\n");
        sim_peer_send(c[i], part, sizeof part);
        settle(&w);
        assert_true(w.front.kept_bytes <= 100000);
        refused += front_world_count(c[i], "HTTP/1.1 503 ");
    }
    assert_int_equal(refused, 4); /* rooms double: 64 KiB fit once */
    front_world_close(&w);
}

static void a_full_inbox_says_503_and_takes_more_once_it_is_empty(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    w.hold = true;
    char head[200];
    static char body[500000];
    struct sim_connection *c[12];
    int size = sprintf(head, "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
                       sizeof body);
    unsigned refused = 0;
    for (unsigned i = 0; i < 12; i++) {
        c[i] = front_world_send(&w, head, (size_t)size);
        sim_peer_send(c[i], body, sizeof body);
        sim_run_for(w.sim, 300 * NS_PER_MS);
        refused += front_world_count(c[i], "HTTP/1.1 503 ") == 1 &&
                   front_world_count(c[i], "Retry-After: 1\r\n") == 1;
    }
    assert_int_equal(refused, 6); /* 3 MiB are taken */
    struct sim_connection *other =
        send_text(&w, "POST /apps/other/events/up HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi");
    front_world_release(&w);
    settle(&w);
    assert_int_equal(front_world_count(other, "HTTP/1.1 200 "), 1);
    assert_int_equal(w.apps[0].events, 6);
    struct sim_connection *again = send_text(&w, EVENT);
    settle(&w);
    assert_int_equal(front_world_count(again, "{\"stored\":7}"), 1);
    front_world_close(&w);
}

struct error_row {
    int error;
    int status;
};

static void errors_of_runs_have_their_status(void **state)
{
    (void)state;
    static const struct error_row errors[] = {{PE_APP_FAILED, 500},
                                              {PE_APP_SUSPENDED, 503},
                                              {PE_TOO_LARGE, 413},
                                              {PE_STOPPING, 503},
                                              {-ENOMEM, 500}};
    for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
        struct front_world w;
        front_world_open(&w, i, NULL);
        w.apps[0].error = errors[i].error;
        struct sim_connection *c = send_text(&w, EVENT);
        settle(&w);
        char status[32];
        snprintf(status, sizeof status, "HTTP/1.1 %d ", errors[i].status);
        assert_int_equal(front_world_count(c, status), 1);
        assert_int_equal(front_world_count(c, pure_error_text(errors[i].error)), 1);
        front_world_close(&w);
    }
}

static void a_suspended_app_says_why(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    snprintf(w.apps[0].entry.failure, sizeof w.apps[0].entry.failure, "counter.so: no \"pure_app\"");
    atomic_store(&w.apps[1].entry.report.condition, APP_SUSPENDED);
    atomic_store(&w.apps[1].entry.report.error, PE_APP_FAILED);
    struct sim_connection *c = send_text(&w, EVENT "GET /apps/counter/state HTTP/1.1\r\n" HOST "\r\n"
                                                   "POST /apps/other/events/x HTTP/1.1\r\n" HOST "\r\n"
                                                   "GET /health HTTP/1.1\r\n" HOST "\r\n");
    sim_run_for(w.sim, 3 * NS_PER_S); /* each that asks for room behind a refusal is held for a second */
    assert_int_equal(front_world_count(c, "HTTP/1.1 503 "), 4);
    assert_int_equal(front_world_count(c, "{\"error\":\"counter.so: no \\\"pure_app\\\"\"}"), 2);
    assert_int_equal(front_world_count(c, "{\"error\":\"the app failed the event\"}"), 1);
    assert_int_equal(front_world_count(c, "\"healthy\":false"), 1);
    assert_int_equal(w.apps[0].runs + w.apps[1].runs, 0);
    front_world_close(&w);
}

static struct sim_connection *ask_resume(struct front_world *w)
{
    struct sim_connection *c =
        send_text(w, "POST /apps/counter/resume HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n");
    settle(w);
    return c;
}

static void who_resumes_is_told_what_comes_next_or_what_to_do_instead(void **state)
{
    (void)state;
    struct front_world w;
    struct store store = {0};
    struct mark_app marks[WORLD_APPS] = {{.deaths = MARK_DEATHS}};
    struct turn_guard guard = {.mark = {.fd = -1, .app_count = WORLD_APPS, .apps = marks}};
    struct guard_app died = {.died = true, .memory.limit = 4096};
    struct registry_app *app = &w.apps[0].entry;
    front_world_open(&w, 1, NULL);
    assert_int_equal(front_world_count(ask_resume(&w), "no deaths: its store is memory"), 1);
    w.registry.store = &store;
    assert_int_equal(front_world_count(ask_resume(&w), "no deaths of the app are counted"), 1);
    snprintf(app->failure, sizeof app->failure, "died");
    assert_int_equal(front_world_count(ask_resume(&w), "once its cause is gone, restart the host"), 1);
    w.registry.guard = &guard;
    app->guard = &died;
    assert_string_equal(registry_app_suspended(app), "died");
    assert_int_equal(front_world_count(ask_resume(&w), "{\"resumed\":true}"), 1);
    assert_string_equal(registry_app_suspended(app), "it is resumed; the next start loads it");
    struct sim_connection *c = send_text(&w, "GET /health HTTP/1.1\r\n" HOST "\r\n");
    settle(&w);
    assert_int_equal(front_world_count(c, "it is resumed; the next start loads it\",\"resumed\":true"), 1);
    assert_int_equal(front_world_count(ask_resume(&w), "HTTP/1.1 409 "), 1);
    w.registry.store = NULL;
    w.registry.guard = NULL;
    front_world_close(&w);
}

static void over_the_limit_connections_are_told_and_others_wait(void **state)
{
    (void)state;
    struct config config = {.connections = 4};
    struct front_world w;
    front_world_open(&w, 1, &config);
    struct sim_connection *c[40];
    for (unsigned i = 0; i < 40; i++) {
        c[i] = send_text(&w, "");
        sim_peer_read(c[i], true);
        settle(&w);
    }
    assert_int_equal(w.front.open, 28);
    assert_true(sim_backlog(w.sim, WORLD_ENDPOINT) > 0);
    sim_run_for(w.sim, 2 * NS_PER_S); /* they ask nothing */
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(sim_received(c[i]).size, 0);
    for (unsigned i = 4; i < 28; i++)
        assert_int_equal(front_world_count(c[i], "HTTP/1.1 503 "), 1);
    sim_run_for(w.sim, 10 * NS_PER_S); /* the lingering ones go */
    for (unsigned i = 28; i < 40; i++) /* of those that waited, some may have come all at once */
        assert_true(front_world_count(c[i], "HTTP/1.1 503 ") == 1 || sim_peer_ended(c[i]));
    assert_int_equal(w.front.counters.refused, 36);
    assert_int_equal(w.front.open, 4);
    sim_peer_close(c[0]);
    settle(&w);
    struct sim_connection *next = send_text(&w, EVENT);
    settle(&w);
    assert_int_equal(front_world_count(next, "HTTP/1.1 200 "), 1);
    front_world_close(&w);
}

static void no_descriptors_is_backed_off_from(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    sim_limit_descriptors(w.sim, sim_open_descriptors(w.sim));
    struct sim_connection *c = send_text(&w, EVENT);
    sim_run_for(w.sim, 10 * NS_PER_S);
    assert_int_equal(sim_received(c).size, 0);
    assert_in_range(w.front.counters.accept_fails, 8, 20);
    sim_limit_descriptors(w.sim, 1000);
    sim_run_for(w.sim, 2 * NS_PER_S);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 1);
    front_world_close(&w);
}

static void a_late_result_finds_nobody_in_a_reused_connection(void **state)
{
    (void)state;
    struct config config = {.connections = 1};
    struct front_world w;
    front_world_open(&w, 1, &config);
    w.hold = true;
    struct sim_connection *gone = send_text(&w, EVENT);
    settle(&w);
    sim_peer_reset(gone);
    settle(&w);
    assert_int_equal(w.front.open, 0);
    struct sim_connection *next = send_text(&w, EVENT);
    settle(&w);
    front_world_release(&w);
    settle(&w);
    assert_int_equal(w.apps[0].events, 2);
    assert_int_equal(front_world_count(next, "{\"stored\":2}"), 1);
    assert_int_equal(front_world_count(next, "HTTP/1.1 "), 1);
    front_world_close(&w);
}

static void a_client_that_has_ended_its_half_is_answered(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    w.hold = true;
    struct sim_connection *c = send_text(&w, EVENT);
    sim_peer_shutdown(c);
    settle(&w);
    front_world_release(&w);
    settle(&w);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 1);
    assert_true(sim_peer_ended(c));
    assert_int_equal(w.front.open, 0);
    front_world_close(&w);
}

static void a_stop_answers_what_is_open_and_closes(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    w.hold = true;
    struct sim_connection *idle = send_text(&w, ""), *open = send_text(&w, EVENT EVENT);
    settle(&w);
    front_stop(&w.front);
    settle(&w);
    assert_true(sim_peer_ended(idle));
    assert_false(sim_peer_ended(open));
    assert_false(front_stopped(&w.front));
    struct sim_connection *late = send_text(&w, EVENT);
    settle(&w);
    assert_int_equal(sim_peer_error(late), -ECONNREFUSED);
    front_world_release(&w);
    settle(&w);
    assert_int_equal(front_world_count(open, "HTTP/1.1 200 "), 2);
    assert_int_equal(front_world_count(open, "Connection: close\r\n"), 1);
    assert_true(sim_peer_ended(open));
    sim_peer_close(open);
    settle(&w);
    assert_true(front_stopped(&w.front));
    front_world_close(&w);
}

/* Everything at once, many seeds: nothing leaks, no reservation stays (front_world_close looks). */
static void chaos_leaves_nothing_behind(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        EVENT,
        EVENT EVENT,
        "GET /metrics HTTP/1.1\r\n" HOST "\r\n",
        "GET /apps/counter/state HTTP/1.1\r\n" HOST "\r\n",
        "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nhal",
        "x\r\n",
        "\r\n",
        "GET ",
        "POST /apps/other/events/x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"};
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct config config = {.connections = 8};
        struct front_world w;
        front_world_open(&w, seed, &config);
        struct random *r = sim_random(w.sim);
        struct sim_faults faults = {50, 100, 200, 16, 512};
        sim_set_faults(w.sim, &faults);
        struct sim_connection *c[16];
        for (unsigned i = 0; i < 16; i++)
            c[i] = send_text(&w, "");
        for (unsigned step = 0; step < 150; step++) {
            struct sim_connection *one = c[random_below(r, 16)];
            const char *piece = pieces[random_below(r, ARRAY_SIZE(pieces))];
            uint64_t what = random_below(r, 40);
            if (what == 0)
                sim_peer_reset(one);
            else if (what == 1)
                sim_peer_close(one);
            else if (what == 2)
                sim_peer_shutdown(one);
            else
                sim_peer_send(one, piece, strlen(piece));
            w.hold = random_below(r, 4) == 0;
            if (!w.hold)
                front_world_release(&w);
            sim_run_for(w.sim, random_below(r, NS_PER_MS));
        }
        front_world_release(&w);
        sim_run_for(w.sim, 200 * NS_PER_S);
        assert_int_equal(w.front.open, 0);
        assert_int_equal(w.apps[0].entry.inbox.result_room + w.apps[1].entry.inbox.result_room, 0);
        front_world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_that_drips_is_given_up_on),
        cmocka_unit_test(a_body_that_drips_is_given_up_on),
        cmocka_unit_test(each_request_has_the_whole_time),
        cmocka_unit_test(an_idle_connection_is_closed_without_a_word),
        cmocka_unit_test(a_client_that_waits_for_its_app_is_not_idle),
        cmocka_unit_test(a_client_that_does_not_read_is_closed),
        cmocka_unit_test(unanswered_requests_are_limited_and_all_are_answered),
        cmocka_unit_test(a_body_may_have_max_body_bytes),
        cmocka_unit_test(a_body_that_is_not_stored_is_read_within_bounds),
        cmocka_unit_test(bodies_together_have_body_memory),
        cmocka_unit_test(a_full_inbox_says_503_and_takes_more_once_it_is_empty),
        cmocka_unit_test(errors_of_runs_have_their_status),
        cmocka_unit_test(a_suspended_app_says_why),
        cmocka_unit_test(who_resumes_is_told_what_comes_next_or_what_to_do_instead),
        cmocka_unit_test(over_the_limit_connections_are_told_and_others_wait),
        cmocka_unit_test(no_descriptors_is_backed_off_from),
        cmocka_unit_test(a_late_result_finds_nobody_in_a_reused_connection),
        cmocka_unit_test(a_client_that_has_ended_its_half_is_answered),
        cmocka_unit_test(a_stop_answers_what_is_open_and_closes),
        cmocka_unit_test(chaos_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
