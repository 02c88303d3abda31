/* Apps that keep their clients waiting: who is refused at once, who is answered without a result, and that
 * neither takes the front away from others. */
#include "tests/sim/front_world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HOST  "Host: h\r\n"
#define EVENT "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi"
#define OTHER "POST /apps/other/events/up HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi"
#define STATE "GET /apps/counter/state HTTP/1.1\r\n" HOST "\r\n"
#define RECORDS_HEAD                                                                                \
    "POST /apps/counter/records HTTP/1.1\r\n" HOST "Content-Type: application/vnd.pure.records\r\n" \
    "Pure-Stream: there/app/out\r\nPure-Epoch: 000102030405060708090a0b0c0d0e0f\r\nPure-Event: e\r\n"

static struct sim_connection *send_text(struct front_world *w, const char *text)
{
    return front_world_send(w, text, strlen(text));
}

static void settle(struct front_world *w)
{
    sim_run_for(w->sim, 20 * NS_PER_MS);
}

static void run_seconds(struct front_world *w, unsigned seconds)
{
    sim_run_for(w->sim, seconds * NS_PER_S);
}

static void set_waiting(struct front_world *w, bool waiting, struct outlet *full)
{
    atomic_store(&w->apps[0].entry.report.waits_for, full);
    atomic_store(&w->apps[0].entry.report.condition, waiting ? APP_WAITING : APP_RUNNING);
}

static void an_app_behind_an_output_that_does_not_deliver_takes_nothing(void **state)
{
    (void)state;
    struct front_world w;
    struct outlet outlet = {.kind = "wire"};
    front_world_open(&w, 1, NULL);
    w.hold = true;
    set_waiting(&w, true, &outlet);
    atomic_store(&outlet.report.state, OUTLET_RESTING);
    struct sim_connection *c = send_text(
        &w, EVENT RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 1\r\nContent-Length: 2\r\n\r\n\1a" OTHER);
    run_seconds(&w, 2); /* the second is held for one */
    assert_int_equal(front_world_count(c, "HTTP/1.1 503 "), 2);
    assert_int_equal(front_world_count(c, "Retry-After: 1\r\n"), 2);
    assert_int_equal(w.apps[0].entry.inbox.puts, 0);
    assert_int_equal(w.apps[1].entry.inbox.puts, 1);
    atomic_store(&outlet.report.state, OUTLET_OK); /* full for a moment: ordinary */
    front_world_release(&w);
    sim_peer_send(c, EVENT, sizeof EVENT - 1);
    settle(&w);
    assert_int_equal(w.apps[0].events, 1);
    front_world_close(&w);
}

static void an_app_that_waits_for_room_for_long_takes_nothing_until_it_answers(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    w.hold = true;
    set_waiting(&w, true, NULL);
    struct sim_connection *first = send_text(&w, EVENT);
    run_seconds(&w, 3);
    struct sim_connection *second = send_text(&w, EVENT);
    settle(&w);
    assert_int_equal(front_world_count(second, "HTTP/1.1 503 "), 1);
    front_world_release(&w);
    settle(&w);
    assert_int_equal(front_world_count(first, "HTTP/1.1 200 "), 1);
    sim_peer_send(second, EVENT, sizeof EVENT - 1);
    settle(&w);
    assert_int_equal(front_world_count(second, "HTTP/1.1 200 "), 1);
    front_world_close(&w);
}

static void an_app_that_does_not_answer_has_few_that_wait(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    w.hold = true;
    for (unsigned i = 0; i < 16; i++) /* a quarter of 64 connections */
        send_text(&w, EVENT);
    run_seconds(&w, 3);
    struct sim_connection *more = send_text(&w, EVENT);
    settle(&w);
    assert_int_equal(front_world_count(more, "HTTP/1.1 503 "), 1);
    assert_int_equal(w.apps[0].entry.inbox.puts, 16);
    front_world_close(&w);
}

static void an_app_that_answers_may_have_all_connections_wait(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    struct sim_connection *c[64];
    for (unsigned second = 0; second < 5; second++) {
        w.hold = true;
        for (unsigned i = 0; i < 64; i++) {
            if (second == 0)
                c[i] = send_text(&w, EVENT);
            else
                sim_peer_send(c[i], EVENT, sizeof EVENT - 1);
        }
        run_seconds(&w, 1);
        front_world_release(&w);
        settle(&w);
    }
    assert_int_equal(w.apps[0].events, 5 * 64);
    front_world_close(&w);
}

static void a_client_is_told_that_its_event_may_still_be_stored(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    w.hold = true;
    struct sim_connection *c = send_text(&w, EVENT);
    run_seconds(&w, 29);
    assert_int_equal(sim_received(c).size, 0);
    run_seconds(&w, 3);
    assert_int_equal(front_world_count(c, "HTTP/1.1 504 "), 1);
    assert_int_equal(front_world_count(c, "may still be"), 1);
    front_world_release(&w);
    settle(&w);
    assert_int_equal(w.apps[0].events, 1); /* it was: its result finds nobody */
    sim_peer_send(c, EVENT, sizeof EVENT - 1);
    settle(&w);
    assert_int_equal(front_world_count(c, "{\"stored\":2}"), 1);
    assert_int_equal(front_world_count(c, "HTTP/1.1 "), 2);
    front_world_close(&w);
}

static void a_client_that_has_ended_its_half_waits_for_ten_seconds(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    w.hold = true;
    struct sim_connection *c = send_text(&w, EVENT EVENT);
    sim_peer_shutdown(c);
    run_seconds(&w, 9);
    assert_false(sim_peer_ended(c));
    run_seconds(&w, 3);
    assert_int_equal(front_world_count(c, "HTTP/1.1 504 "), 2);
    assert_true(sim_peer_ended(c));
    assert_int_equal(w.front.open, 0);
    front_world_close(&w);
}

static void a_state_that_is_not_shown_is_waited_for_for_ten_seconds(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    w.hold = true;
    struct sim_connection *c = send_text(&w, STATE);
    run_seconds(&w, 9);
    assert_int_equal(sim_received(c).size, 0);
    run_seconds(&w, 3);
    assert_int_equal(front_world_count(c, "HTTP/1.1 503 "), 1);
    front_world_release(&w);
    settle(&w);
    assert_int_equal(w.front.kept_bytes, 0);
    front_world_close(&w);
}

static void records_that_wait_are_told_how_far_they_came(void **state)
{
    (void)state;
    struct front_world w;
    static char body[10000]; /* of empty records */
    front_world_open(&w, 1, NULL);
    struct sim_connection *c =
        send_text(&w, RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 10000\r\nContent-Length: 10000\r\n\r\n");
    sim_peer_send(c, body, 5000);
    settle(&w);
    w.hold = true;
    sim_peer_send(c, body, 5000);
    run_seconds(&w, 32);
    char stored[40];
    snprintf(stored, sizeof stored, "Pure-Stored: %u\r\n", (unsigned)w.apps[0].stored);
    assert_in_range(w.apps[0].stored, 4000, 5000);
    assert_int_equal(front_world_count(c, "HTTP/1.1 503 "), 1);
    assert_int_equal(front_world_count(c, stored), 1);
    front_world_close(&w);
}

static void one_app_does_not_take_the_connections_of_all(void **state)
{
    (void)state;
    struct front_world w;
    struct sim_connection *c[64];
    front_world_open(&w, 1, NULL);
    w.hold = true;
    for (unsigned i = 0; i < 64; i++)
        c[i] = send_text(&w, EVENT);
    run_seconds(&w, 4);
    unsigned told = 0;
    for (unsigned i = 0; i < 64; i++)
        told += front_world_count(c[i], "HTTP/1.1 504 ") == 1 && sim_peer_ended(c[i]);
    assert_int_equal(told, 48);
    run_seconds(&w, 3);
    assert_int_equal(w.front.open, 16);
    struct sim_connection *other = send_text(&w, OTHER);
    settle(&w);
    front_world_release(&w);
    settle(&w);
    assert_int_equal(front_world_count(other, "HTTP/1.1 200 "), 1);
    front_world_close(&w);
}

static void over_the_limit_the_hosts_health_can_be_asked_for(void **state)
{
    (void)state;
    static const char *const asks[] = {"GET /health HTTP/1.1\r\n" HOST "\r\n",
                                       "GET /status HTTP/1.1\r\n" HOST "\r\n",
                                       "HEAD /metrics HTTP/1.1\r\n" HOST "\r\n", STATE, EVENT};
    struct config config = {.connections = 2};
    struct front_world w;
    front_world_open(&w, 1, &config);
    send_text(&w, "");
    send_text(&w, "");
    settle(&w);
    for (unsigned i = 0; i < ARRAY_SIZE(asks); i++) {
        struct sim_connection *c = send_text(&w, asks[i]);
        front_world_run_until_end(&w, c, 5 * NS_PER_S);
        assert_int_equal(front_world_count(c, i < 3 ? "HTTP/1.1 200 " : "HTTP/1.1 503 "), 1);
        assert_int_equal(front_world_count(c, "Connection: close\r\n"), 1);
        assert_true(sim_peer_ended(c));
    }
    assert_int_equal(w.front.counters.refused, 2);
    assert_int_equal(w.apps[0].entry.inbox.puts, 0);
    front_world_close(&w);
}

/* Unread replies hold one text a connection, whatever is asked for. */
static void texts_are_written_when_they_are_sent(void **state)
{
    (void)state;
    static const char ask[] = "GET /metrics HTTP/1.1\r\n" HOST "\r\n";
    struct front_world w;
    struct sim_connection *c[8];
    front_world_open(&w, 1, NULL);
    uint64_t most = 0;
    for (unsigned i = 0; i < 8; i++) {
        c[i] = send_text(&w, "");
        sim_peer_read(c[i], false);
        for (unsigned n = 0; n < 64; n++)
            sim_peer_send(c[i], ask, sizeof ask - 1);
        for (unsigned step = 0; step < 20; step++) {
            sim_run_for(w.sim, NS_PER_MS);
            most = max_u64(most, w.front.kept_bytes);
        }
    }
    assert_in_range(most, 8 * 1024, 8 * 20 * 1024); /* 64 of each would be over 2 MiB */
    for (unsigned i = 0; i < 8; i++)
        sim_peer_read(c[i], true);
    run_seconds(&w, 1);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(front_world_count(c[i], "HTTP/1.1 200 "), 64);
    assert_int_equal(w.front.kept_bytes, 0);
    front_world_close(&w);
}

static void texts_are_within_body_memory(void **state)
{
    (void)state;
    struct config config = {.body_memory = 100};
    struct front_world w;
    front_world_open(&w, 1, &config);
    struct sim_connection *c = send_text(&w, "GET /status HTTP/1.1\r\n" HOST "\r\n" STATE EVENT);
    settle(&w);
    assert_int_equal(front_world_count(c, "HTTP/1.1 503 "), 2);
    assert_int_equal(front_world_count(c, "Retry-After: 1\r\n"), 2);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 1);
    front_world_close(&w);
}

/* Many who announce a megabyte and send nothing of it. */
static void bodies_that_do_not_come_keep_nobody_out(void **state)
{
    (void)state;
    static const char *const heads[] = {
        RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 100000\r\nContent-Length: 1000000\r\n\r\n",
        "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n"};
    static char body[400000]; /* of empty records */
    for (unsigned kind = 0; kind < ARRAY_SIZE(heads); kind++) {
        struct front_world w;
        front_world_open(&w, 1, NULL);
        for (unsigned i = 0; i < 20; i++)
            send_text(&w, heads[kind]);
        settle(&w);
        assert_in_range(w.apps[0].entry.inbox.reserved, 1000000, 2 << 20); /* half of 4 MiB */
        struct sim_connection *c = send_text(&w, EVENT);
        settle(&w);
        assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 1);
        w.apps[0].stored = 0;
        sim_peer_send(
            c, RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 400000\r\nContent-Length: 400000\r\n\r\n",
            sizeof RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 400000\r\nContent-Length: 400000\r\n\r\n" - 1);
        sim_peer_send(c, body, sizeof body);
        run_seconds(&w, 1);
        assert_int_equal(front_world_count(c, "Pure-Stored: 400000\r\n"), 1);
        front_world_close(&w);
    }
}

static unsigned lines_of(struct log *log)
{
    struct stream_position end = record_queue_see_published(&log->lines);
    return (unsigned)end.records;
}

static void failing_accepts_are_said_ever_more_rarely(void **state)
{
    (void)state;
    struct front_world w;
    front_world_open(&w, 1, NULL);
    sim_limit_descriptors(w.sim, sim_open_descriptors(w.sim));
    send_text(&w, EVENT);
    run_seconds(&w, 1000);
    assert_in_range(w.front.counters.accept_fails, 900, 1023);
    assert_int_equal(lines_of(&w.log), 10); /* 1, 2, 4 … 512 */
    sim_limit_descriptors(w.sim, 1000);
    run_seconds(&w, 20);
    assert_int_equal(lines_of(&w.log), 10);
    send_text(&w, EVENT);
    settle(&w);
    assert_int_equal(lines_of(&w.log), 11); /* all is well again */
    assert_int_equal(w.front.accept_fails, 0);
    front_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_app_behind_an_output_that_does_not_deliver_takes_nothing),
        cmocka_unit_test(an_app_that_waits_for_room_for_long_takes_nothing_until_it_answers),
        cmocka_unit_test(an_app_that_does_not_answer_has_few_that_wait),
        cmocka_unit_test(an_app_that_answers_may_have_all_connections_wait),
        cmocka_unit_test(a_client_is_told_that_its_event_may_still_be_stored),
        cmocka_unit_test(a_client_that_has_ended_its_half_waits_for_ten_seconds),
        cmocka_unit_test(a_state_that_is_not_shown_is_waited_for_for_ten_seconds),
        cmocka_unit_test(records_that_wait_are_told_how_far_they_came),
        cmocka_unit_test(one_app_does_not_take_the_connections_of_all),
        cmocka_unit_test(over_the_limit_the_hosts_health_can_be_asked_for),
        cmocka_unit_test(texts_are_written_when_they_are_sent),
        cmocka_unit_test(texts_are_within_body_memory),
        cmocka_unit_test(bodies_that_do_not_come_keep_nobody_out),
        cmocka_unit_test(failing_accepts_are_said_ever_more_rarely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
