/* Storms of clients at a front whose apps take too little: requests of all kinds and sizes, pipelined, cut,
 * half-closed and reset; apps that hold, wait, or have no disk; little memory; each mechanism of overload on
 * and off. Whatever comes, each request is answered or its connection ended, and nobody is left waiting.
 *
 *     test_front_storm [FIRST [COUNT]]     seeds; 60 by itself */
#include "host/front_client.h"
#include "host/front_line.h"
#include "tests/sim/front_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HOST        "Host: h\r\n"
#define CLIENTS     50 /* for 40 connections */
#define STEPS       150
#define MOST_AHEAD  12
#define REQUEST_MAX 80000
#define INBOX_BYTES 65536 /* the least there is */

static uint64_t first_seed = 1, seed_count = 60;

struct client_side {
    struct sim_connection *c;
    unsigned asked;
    bool reset;
    bool last; /* it has said, or will be told, that nothing more comes */
};

struct storm {
    struct front_world w;
    struct random random;
    struct client_side clients[CLIENTS];
    char bytes[MOST_AHEAD * REQUEST_MAX];
};

static uint64_t below(struct storm *s, uint64_t bound)
{
    return random_below(&s->random, bound);
}

static bool one_in(struct storm *s, unsigned times)
{
    return below(s, times) == 0;
}

static void shrink_inbox(struct storm *s, struct owner_app *app)
{
    struct inbox *inbox = &app->entry.inbox, was = *inbox;
    inbox_dispose(inbox);
    assert_int_equal(inbox_init(inbox, INBOX_BYTES), 0);
    inbox->owner = was.owner;
    inbox->owner_slot = was.owner_slot;
    inbox->front = was.front;
    inbox->front_slot = was.front_slot;
    inbox->without_feedback = s->w.config.without.feedback;
}

static void open_storm(struct storm *s, uint64_t seed)
{
    *s = (struct storm){.random = {seed * 77 + 5}};
    struct config config = {
        .connections = 40,
        .body_memory = one_in(s, 3) ? 1 << 20 : 64 << 20,
        .without.early = one_in(s, 6),
        .without.feedback = one_in(s, 8),
        .without.quotas = one_in(s, 8),
    };
    front_world_open(&s->w, seed, &config);
    for (unsigned i = 0; i < WORLD_APPS; i++)
        shrink_inbox(s, &s->w.apps[i]);
}

/* --- requests --- */

static size_t put_event(struct storm *s, char *to, const char *app, const char *connection, bool *last)
{
    static const unsigned sizes[] = {0, 2, 300, 4000, 9000, 17000, 33000, 70000};
    unsigned size = sizes[below(s, ARRAY_SIZE(sizes))];
    bool expects = one_in(s, 12), lines = one_in(s, 3);
    size_t at =
        (size_t)sprintf(to, "POST /apps/%s/events/up HTTP/1.1\r\n" HOST "%s%s%sContent-Length: %u\r\n\r\n",
                        app, connection, expects ? "Expect: 100-continue\r\n" : "",
                        lines ? "Content-Type: application/x-ndjson\r\n" : "", size);
    memset(to + at, 'x', size);
    for (unsigned i = 40; i < size; i += 50)
        to[at + i] = '\n';
    *last |= expects; /* refused, it ends the connection */
    return at + size;
}

static size_t put_chunked(struct storm *s, char *to, const char *app, const char *connection)
{
    unsigned chunk = 1 + (unsigned)below(s, 12000);
    size_t at = (size_t)sprintf(
        to, "POST /apps/%s/events/up HTTP/1.1\r\n" HOST "%sTransfer-Encoding: chunked\r\n\r\n", app,
        connection);
    for (unsigned i = 0; i < 5; i++) {
        at += (size_t)sprintf(to + at, "%x\r\n", chunk);
        memset(to + at, 'y', chunk);
        at += chunk;
        at += (size_t)sprintf(to + at, "\r\n");
    }
    return at + (size_t)sprintf(to + at, "0\r\n\r\n");
}

static size_t put_request(struct storm *s, char *to, bool *last)
{
    const char *app = one_in(s, 4) ? "other" : "counter";
    const char *connection = one_in(s, 60) ? "Connection: close\r\n" : "";
    *last |= connection[0] != '\0';
    switch (below(s, 12)) {
    case 0:
        return (size_t)sprintf(to, "GET /health HTTP/1.1\r\n" HOST "%s\r\n", connection);
    case 1:
        return (size_t)sprintf(to, "GET /apps/%s/state HTTP/1.1\r\n" HOST "%s\r\n", app, connection);
    case 2:
        return (size_t)sprintf(to, "GET /apps/%s/events/up HTTP/1.1\r\n" HOST "%s\r\n", app, connection);
    case 3:
        return (size_t)sprintf(to,
                               "POST /apps/%s/events/up HTTP/1.0\r\n"
                               "Connection: keep-alive\r\nContent-Length: 2\r\n\r\nab",
                               app);
    case 4:
    case 5:
        return put_chunked(s, to, app, connection);
    default:
        return put_event(s, to, app, connection, last);
    }
}

static void pass(struct storm *s, uint64_t most_ms)
{
    sim_run_for(s->w.sim, below(s, most_ms) * NS_PER_MS);
}

static void ask(struct storm *s, struct client_side *client)
{
    size_t size = 0;
    for (uint64_t left = 1 + below(s, MOST_AHEAD); left > 0 && !client->last; left--) {
        size += put_request(s, s->bytes + size, &client->last);
        client->asked++;
    }
    size_t cut = one_in(s, 2) ? below(s, size) : size;
    sim_peer_send(client->c, s->bytes, cut);
    if (cut == size)
        return;
    pass(s, 50);
    sim_peer_send(client->c, s->bytes + cut, size - cut);
}

/* --- what happens --- */

static void step_client(struct storm *s, struct client_side *client)
{
    if (!client->c || (client->reset && one_in(s, 2)))
        *client = (struct client_side){.c = sim_client(s->w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0)};
    if (!client->reset && !client->last)
        ask(s, client);
    else if (!client->reset && one_in(s, 14))
        sim_peer_shutdown(client->c);
    if (!client->reset && one_in(s, 14)) {
        sim_peer_reset(client->c);
        client->reset = true;
    }
}

static void step_apps(struct storm *s)
{
    switch (below(s, 14)) {
    case 0:
        s->w.hold = true;
        break;
    case 1:
    case 2:
        front_world_release(&s->w);
        break;
    case 3:
        atomic_store(&s->w.apps[0].entry.report.condition, one_in(s, 2) ? APP_WAITING : APP_RUNNING);
        break;
    case 4:
        atomic_store(&s->w.apps[1].entry.report.store_full, one_in(s, 2));
        break;
    default:
        break;
    }
}

static void calm(struct storm *s)
{
    atomic_store(&s->w.apps[0].entry.report.condition, APP_RUNNING);
    atomic_store(&s->w.apps[1].entry.report.store_full, false);
    front_world_release(&s->w);
    sim_run_for(s->w.sim, 30 * NS_PER_S);
}

static void check_client(const struct client_side *client, uint64_t seed, unsigned index)
{
    unsigned answers =
        front_world_count(client->c, "HTTP/1.1 ") - front_world_count(client->c, "HTTP/1.1 100 ");
    if (answers < client->asked && !sim_peer_ended(client->c))
        fail_msg("seed %lu, client %u: %u of %u are answered, and it is not ended", seed, index, answers,
                 client->asked);
    assert_in_range(answers, 0, client->asked + 1); /* 408 of a rest that never came */
}

static void storm_of(uint64_t seed)
{
    static struct storm s;
    open_storm(&s, seed);
    for (unsigned i = 0; i < STEPS; i++) {
        step_client(&s, &s.clients[below(&s, CLIENTS)]);
        step_apps(&s);
        pass(&s, 120);
    }
    bool stops = one_in(&s, 3);
    if (stops)
        front_stop(&s.w.front);
    calm(&s);
    assert_null(s.w.front.line.first);
    assert_int_equal(s.w.front.held_look.place, 0);
    for (unsigned a = 0; a < WORLD_APPS; a++) {
        assert_null(s.w.front.apps[a].held[HELD_AGAIN].first);
        assert_null(s.w.front.apps[a].held[HELD_NEW].first);
        assert_int_equal(s.w.apps[a].entry.inbox.reserved, 0);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (s.clients[i].c && !s.clients[i].reset)
            check_client(&s.clients[i], seed, i);
    }
    assert_true(!stops || front_stopped(&s.w.front));
    front_world_close(&s.w);
}

static void each_request_is_answered_or_its_connection_ended(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++)
        storm_of(seed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_request_is_answered_or_its_connection_ended)};
    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed_count = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
