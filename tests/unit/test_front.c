/* The front: each request of a table, whole, split, byte by byte and behind another, has the same outcome. */
#include "tests/unit/fewer.h"
#include "tests/sim/front_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HOST "Host: h\r\n"
#define LONG_KEY                                                                                           \
    "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk" \
    "kkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define RECORDS_HEAD                                                                                \
    "POST /apps/counter/records HTTP/1.1\r\n" HOST "Content-Type: application/vnd.pure.records\r\n" \
    "Pure-Stream: there/app/out\r\nPure-Epoch: 000102030405060708090a0b0c0d0e0F\r\nPure-Event: e\r\n"

struct row {
    const char *name;
    const char *request;
    int status;
    unsigned events;   /* stored by the app */
    bool closes;       /* the connection ends after the reply */
    const char *reply; /* in the reply, or NULL */
};

static const struct row rows[] = {
    {"an event", "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 200, 1,
     false, "{\"stored\":"},
    {"an event in absolute form",
     "POST http://h/apps/counter/events/up?x=1 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 200, 1,
     false, NULL},
    {"an empty event", "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "\r\n", 200, 1, false, NULL},
    {"a chunked event",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST
     "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nT: t\r\n\r\n",
     200, 1, false, NULL},
    {"lines",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST
     "Content-Type: Application/X-NDJSON; charset=utf-8\r\nContent-Length: 13\r\n\r\n{1}\r\n\r\n{2}\n{3",
     200, 3, false, "{\"stored\":"},
    {"chunked lines",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST
     "Content-Type: application/x-ndjson\r\nTransfer-Encoding: "
     "chunked\r\n\r\n5\r\n{1}\n{\r\n3\r\n2}\n\r\n0\r\n\r\n",
     200, 2, false, NULL},
    {"no lines",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST
     "Content-Type: application/x-ndjson\r\nContent-Length: 3\r\n\r\n\n\r\n",
     400, 0, false, "no line"},
    {"a key of 128 bytes",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Idempotency-Key: " LONG_KEY
     "\r\nContent-Length: 2\r\n\r\nhi",
     200, 1, false, NULL},
    {"a key of 129 bytes",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Idempotency-Key: k" LONG_KEY
     "\r\nContent-Length: 2\r\n\r\nhi",
     400, 0, false, "Idempotency-Key"},
    {"an unknown app", "POST /apps/none/events/up HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 404, 0,
     false, NULL},
    {"an app's name that is a prefix",
     "POST /apps/count/events/up HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 404, 0, false, NULL},
    {"a name that is none", "POST /apps/counter/events/a%20b HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi",
     400, 0, false, NULL},
    {"records", RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 3\r\nContent-Length: 8\r\n\r\n\1a\2bc\2de", 200, 3,
     false, "Pure-Stored: 3\r\n"},
    {"records behind a gap",
     RECORDS_HEAD "Pure-First: 5\r\nPure-Count: 3\r\nContent-Length: 8\r\n\r\n\1a\2bc\2de", 409, 0, false,
     "Pure-Stored: 0\r\n"},
    {"records, one too few",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 4\r\nContent-Length: 8\r\n\r\n\1a\2bc\2de", 400, 3, false,
     "Pure-Stored: 3\r\n"},
    {"records, one too many",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 2\r\nContent-Length: 8\r\n\r\n\1a\2bc\2de", 400, 2, false,
     "Pure-Stored: 2\r\n"},
    {"records, the last one cut",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 3\r\nContent-Length: 7\r\n\r\n\1a\2bc\2d", 400, 2, false,
     "Pure-Stored: 2\r\n"},
    {"records over their limit",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 2\r\nContent-Length: 6\r\n\r\n\1a\xbf\xff\xff\xff", 413, 1,
     false, NULL},
    {"records without a length",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\1a\r\n0\r\n\r\n",
     411, 0, false, NULL},
    {"records number 0", RECORDS_HEAD "Pure-First: 0\r\nPure-Count: 1\r\nContent-Length: 2\r\n\r\n\1a", 400,
     0, false, NULL},
    {"records up to the last number there is",
     RECORDS_HEAD "Pure-First: 4611686018427387902\r\nPure-Count: 2\r\nContent-Length: 4\r\n\r\n\1a\1b", 409,
     0, false, "Pure-Stored: 0\r\n"},
    {"records past the last number there is",
     RECORDS_HEAD "Pure-First: 4611686018427387903\r\nPure-Count: 2\r\nContent-Length: 4\r\n\r\n\1a\1b", 400,
     0, false, "more than numbers go"},
    {"records, the first one over its limit",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 1\r\nContent-Length: 4\r\n\r\n\xbf\xff\xff\xff", 413, 0,
     false, NULL},
    {"records from a base",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Base: 0\r\nPure-Count: 1\r\nContent-Length: 2\r\n\r\n\1a", 200, 1,
     false, "Pure-Stored: 1\r\n"},
    {"records below their base",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Base: 1\r\nPure-Count: 1\r\nContent-Length: 2\r\n\r\n\1a", 200, 1,
     false, "Pure-Stored: 1\r\n"},
    {"records from a base that is no number",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Base: -1\r\nPure-Count: 1\r\nContent-Length: 2\r\n\r\n\1a", 400, 0,
     false, "Pure-Base"},
    {"a question about records",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Sent: 7\r\nPure-Count: 0\r\nContent-Length: 0\r\n\r\n", 200, 0,
     false, "Pure-Stored: 0\r\n"},
    {"no records, and no question",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 0\r\nContent-Length: 0\r\n\r\n", 400, 0, false, "Pure-Sent"},
    {"a question about records, with a body",
     RECORDS_HEAD "Pure-First: 1\r\nPure-Sent: 7\r\nPure-Count: 0\r\nContent-Length: 2\r\n\r\n\1a", 400, 0,
     false, "without a body"},
    {"records of a stream that claims to be a link's",
     "POST /apps/counter/records HTTP/1.1\r\n" HOST "Content-Type: application/vnd.pure.records\r\n"
     "Pure-Stream: link KEY/app/out\r\nPure-Epoch: 000102030405060708090a0b0c0d0e0F\r\nPure-Event: e\r\n"
     "Pure-First: 1\r\nPure-Count: 1\r\nContent-Length: 2\r\n\r\n\1a",
     400, 0, false, "HOST/APP/OUTPUT"},
    {"no records", RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 0\r\nContent-Length: 0\r\n\r\n", 400, 0, false,
     NULL},
    {"records of another type",
     "POST /apps/counter/records HTTP/1.1\r\n" HOST
     "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n\1a",
     415, 0, false, NULL},
    {"a state", "GET /apps/counter/state HTTP/1.1\r\n" HOST "\r\n", 200, 0, false, "{\"count\":7}"},
    {"a state's head", "HEAD /apps/counter/state HTTP/1.1\r\n" HOST "\r\n", 200, 0, false,
     "Content-Length: 11\r\n"},
    {"the status", "GET /status HTTP/1.1\r\n" HOST "\r\n", 200, 0, false, "\"condition\":\"running\""},
    {"the health", "GET /health HTTP/1.1\r\n" HOST "\r\n", 200, 0, false, "\"healthy\":true"},
    {"the metrics", "GET /metrics HTTP/1.1\r\n" HOST "\r\n", 200, 0, false,
     "pure_io_enters_total{loop=\"pure-front\"} "},
    {"the root", "GET / HTTP/1.1\r\n" HOST "\r\n", 200, 0, false, "/apps/APP/state"},
    {"a body that nobody wants", "GET / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 200, 0, false,
     NULL},
    {"nothing there", "GET /x HTTP/1.1\r\n" HOST "\r\n", 404, 0, false, NULL},
    {"GET of events", "GET /apps/counter/events/up HTTP/1.1\r\n" HOST "\r\n", 405, 0, false,
     "Allow: POST\r\n"},
    {"DELETE of the status", "DELETE /status HTTP/1.1\r\n" HOST "\r\n", 405, 0, false,
     "Allow: GET, HEAD\r\n"},
    {"an unknown method", "BREW / HTTP/1.1\r\n" HOST "\r\n", 501, 0, false, NULL},
    {"a content coding",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi",
     415, 0, false, NULL},
    {"another expectation",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Expect: gold\r\nContent-Length: 2\r\n\r\nhi", 417, 0,
     false, NULL},
    {"a close that was asked for",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Connection: x, Close\r\nContent-Length: 2\r\n\r\nhi",
     200, 1, true, "Connection: close\r\n"},
    {"HTTP/1.0", "POST /apps/counter/events/up HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", 200, 1, true, NULL},
    {"HTTP/1.0 that stays",
     "POST /apps/counter/events/up HTTP/1.0\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi", 200, 1,
     false, "Connection: keep-alive\r\n"},
    {"HTTP/2.0", "GET / HTTP/2.0\r\n" HOST "\r\n", 505, 0, true, NULL},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", 400, 0, true, NULL},
    {"two Hosts", "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400, 0, true, NULL},
    {"two types",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST
     "Content-Type: a/b\r\nContent-Type: application/x-ndjson\r\nContent-Length: 2\r\n\r\nhi",
     400, 0, true, NULL},
    {"garbage", "\x16\x03\x01\x02\r\n\r\n", 400, 0, true, NULL},
    {"smuggling: length and coding",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST
     "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
     400, 0, true, NULL},
    {"smuggling: two lengths",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
     400, 0, true, NULL},
    {"smuggling: a list of lengths",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 2, 2\r\n\r\nhi", 400, 0, true, NULL},
    {"smuggling: a signed length",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: +2\r\n\r\nhi", 400, 0, true, NULL},
    {"smuggling: a folded coding",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400,
     0, true, NULL},
    {"smuggling: a coding with a space before its colon",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400, 0,
     true, NULL},
    {"smuggling: a coding that is not chunked",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400, 0,
     true, NULL},
    {"smuggling: chunked in HTTP/1.0",
     "POST /apps/counter/events/up HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 0, true,
     NULL},
    {"a coding that is not known",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
     501, 0, true, NULL},
    {"a malformed chunk",
     "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nx\r\n", 400, 0, true,
     NULL},
};

/* The request, and how it is sent. */
struct way {
    size_t cut;    /* sent as [0, cut), then the rest once the first part has been dealt with; 0: whole */
    bool bytewise; /* each byte by itself */
    bool behind;   /* another event stands before it, in the same bytes */
};

static const char before[] = "POST /apps/other/events/x HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n1";

static void put_parts(struct front_world *w, struct sim_connection *c, const char *request, struct way way)
{
    size_t size = strlen(request);
    if (way.behind)
        sim_peer_send(c, before, sizeof before - 1);
    for (size_t i = 0; way.bytewise && i < size; i++) {
        sim_peer_send(c, request + i, 1);
        sim_run_for(w->sim, NS_PER_MS);
    }
    if (way.bytewise)
        return;
    if (way.cut > 0) {
        sim_peer_send(c, request, way.cut);
        sim_run_for(w->sim, 2 * NS_PER_MS);
    }
    sim_peer_send(c, request + way.cut, size - way.cut);
}

static bool begins_with(struct span bytes, const char *text)
{
    return bytes.size >= strlen(text) && memcmp(bytes.data, text, strlen(text)) == 0;
}

static struct span last_reply(struct span bytes)
{
    for (size_t i = bytes.size; i-- > 0;) {
        struct span tail = span_of(bytes.data + i, bytes.size - i);
        if (begins_with(tail, "HTTP/1.1 "))
            return tail;
    }
    return span_of(bytes.data, 0);
}

static void check_row(const struct row *row, struct way way)
{
    struct front_world w;
    front_world_open(&w, 1, NULL);
    struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
    put_parts(&w, c, row->request, way);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    struct span reply = last_reply(sim_received(c));
    char status[32];
    snprintf(status, sizeof status, "HTTP/1.1 %d ", row->status);
    bool fits = begins_with(reply, status) && front_world_count(c, "HTTP/1.1 ") == (way.behind ? 2 : 1) &&
                w.apps[0].events == row->events && w.apps[1].events == way.behind &&
                (!row->reply || front_world_count(c, row->reply) > 0) && sim_peer_ended(c) == row->closes;
    if (!fits)
        print_error("%s, cut %zu, bytewise %d, behind %d: events %u, ended %d, %.*s\n", row->name, way.cut,
                    way.bytewise, way.behind, (unsigned)w.apps[0].events, sim_peer_ended(c),
                    (int)sim_received(c).size, (const char *)sim_received(c).data);
    assert_true(fits);
    front_world_close(&w);
}

static void every_request_has_its_outcome(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
        check_row(&rows[i], (struct way){0});
}

static void a_request_behind_another_has_the_same_outcome(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
        check_row(&rows[i], (struct way){.behind = true});
}

static void a_request_split_anywhere_has_the_same_outcome(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        for (size_t cut = 1; cut < strlen(rows[i].request); cut += 7 - FEWER(6))
            check_row(&rows[i], (struct way){.cut = cut, .behind = cut % 2});
    }
}

static void a_request_byte_by_byte_has_the_same_outcome(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
        check_row(&rows[i], (struct way){.bytewise = true});
}

/* Many requests of the table in a row on one connection, in random pieces. */
static void a_long_pipeline_is_answered_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < FEWER(200); seed++) {
        struct front_world w;
        front_world_open(&w, seed, NULL);
        struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
        int expected[300];
        unsigned count = 0;
        while (count < ARRAY_SIZE(expected)) {
            const struct row *row = &rows[random_below(sim_random(w.sim), ARRAY_SIZE(rows))];
            if (row->closes || strstr(row->request, "HEAD") || strstr(row->name, "records") ||
                strstr(row->name, "state"))
                continue;
            sim_peer_send(c, row->request, strlen(row->request));
            expected[count++] = row->status;
        }
        sim_run_for(w.sim, NS_PER_S);
        struct span bytes = sim_received(c);
        unsigned seen = 0;
        for (size_t i = 0; i < bytes.size; i++) {
            struct span tail = span_of(bytes.data + i, bytes.size - i);
            if (begins_with(tail, "HTTP/1.1 "))
                assert_int_equal(front_world_status(tail), expected[seen++]);
        }
        assert_int_equal(seen, count);
        front_world_close(&w);
    }
}

static void a_run_says_what_was_posted(void **state)
{
    (void)state;
    struct front_world w;
    static const char request[] =
        "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Idempotency-Key: k1\r\nContent-Length: 2\r\n\r\nhi";
    front_world_open(&w, 1, NULL);
    front_world_send(&w, request, sizeof request - 1);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    assert_string_equal(w.apps[0].event, "up");
    assert_string_equal(w.apps[0].source, "http");
    assert_string_equal(w.apps[0].key, "k1");
    assert_int_equal(w.apps[0].last.kind, RUN_EVENTS);
    assert_in_range(w.apps[0].last.time_ms, SIM_START_WALL_MS, SIM_START_WALL_MS + 10);
    front_world_close(&w);
}

static void a_question_is_a_run_without_records(void **state)
{
    (void)state;
    struct front_world w;
    static const char question[] =
        RECORDS_HEAD "Pure-First: 3\r\nPure-Base: 2\r\nPure-Sent: 7\r\nPure-Count: 0\r\n"
                     "Content-Length: 0\r\n\r\n";
    static const char records[] =
        RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 1\r\nContent-Length: 2\r\n\r\n\1a";
    front_world_open(&w, 1, NULL);
    struct sim_connection *c = front_world_send(&w, question, sizeof question - 1);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    assert_int_equal(w.apps[0].last.kind, RUN_STREAM);
    assert_int_equal(w.apps[0].last.records, 0);
    assert_int_equal(w.apps[0].last.first, 3);
    assert_int_equal(w.apps[0].last.base, 2);
    assert_int_equal(w.apps[0].last.asks, 8);
    sim_peer_send(c, records, sizeof records - 1);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    assert_int_equal(w.apps[0].last.records, 1);
    assert_int_equal(w.apps[0].last.asks, 0);
    front_world_close(&w);
}

static void a_run_of_records_says_whose_they_are(void **state)
{
    (void)state;
    struct front_world w;
    static const char first[] = RECORDS_HEAD "Pure-First: 1\r\nPure-Count: 1\r\nContent-Length: 2\r\n\r\n\1a";
    static const char second[] =
        RECORDS_HEAD "Pure-First: 2\r\nPure-Base: 1\r\nPure-Count: 1\r\nContent-Length: 2\r\n\r\n\1b";
    static const char third[] = RECORDS_HEAD "Pure-First: 3\r\nPure-Count: 1\r\nContent-Length: 2\r\n\r\n\1c";
    static const uint8_t epoch[EPOCH_BYTES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    front_world_open(&w, 1, NULL);
    struct sim_connection *c = front_world_send(&w, first, sizeof first - 1);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    assert_int_equal(w.apps[0].last.kind, RUN_STREAM);
    assert_int_equal(w.apps[0].last.first, 1);
    assert_memory_equal(w.apps[0].last.epoch, epoch, EPOCH_BYTES);
    assert_string_equal(w.apps[0].event, "e");
    assert_string_equal(w.apps[0].source, "there/app/out");
    assert_string_equal(w.apps[0].key, "");
    sim_peer_send(c, second, sizeof second - 1);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    assert_int_equal(w.apps[0].last.first, 2);
    assert_int_equal(w.apps[0].last.base, 1);
    sim_peer_send(c, third, sizeof third - 1);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    assert_int_equal(w.apps[0].last.first, 3);
    assert_int_equal(w.apps[0].last.base, 0); /* not what the request before said */
    front_world_close(&w);
}

static void a_body_is_waited_for_with_100_continue(void **state)
{
    (void)state;
    struct front_world w;
    static const char head[] =
        "POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    front_world_open(&w, 1, NULL);
    struct sim_connection *c = front_world_send(&w, head, sizeof head - 1);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    assert_true(span_is(sim_received(c), "HTTP/1.1 100 Continue\r\n\r\n"));
    sim_peer_send(c, "hi", 2);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 1);
    assert_int_equal(w.apps[0].events, 1);
    front_world_close(&w);
}

static void a_body_that_is_refused_is_not_waited_for(void **state)
{
    (void)state;
    struct front_world w;
    static const char head[] =
        "POST /apps/none/events/up HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    front_world_open(&w, 1, NULL);
    struct sim_connection *c = front_world_send(&w, head, sizeof head - 1);
    front_world_run_until_end(&w, c, NS_PER_S);
    assert_int_equal(front_world_count(c, "HTTP/1.1 404 "), 1);
    assert_int_equal(front_world_count(c, "100 Continue"), 0);
    assert_int_equal(front_world_count(c, "Connection: close\r\n"), 1);
    assert_true(sim_peer_ended(c));
    front_world_close(&w);
}

struct token_row {
    const char *request;
    int status;
};

static void a_token_is_needed_everywhere_but_for_health(void **state)
{
    (void)state;
    static const struct token_row token_rows[] = {
        {"GET /status HTTP/1.1\r\n" HOST "\r\n", 401},
        {"GET /status HTTP/1.1\r\n" HOST "Authorization: Bearer secreT\r\n\r\n", 401},
        {"GET /status HTTP/1.1\r\n" HOST "Authorization: Bearer secre\r\n\r\n", 401},
        {"GET /status HTTP/1.1\r\n" HOST "Authorization: Basic secret\r\n\r\n", 401},
        {"GET /status HTTP/1.1\r\n" HOST "Authorization: bearer secret\r\n\r\n", 200},
        {"GET /none HTTP/1.1\r\n" HOST "\r\n", 401},
        {"GET /health HTTP/1.1\r\n" HOST "\r\n", 200},
        {"POST /apps/counter/events/up HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 401},
    };
    struct config config = {.token = "secret"};
    for (unsigned i = 0; i < ARRAY_SIZE(token_rows); i++) {
        struct front_world w;
        front_world_open(&w, 1, &config);
        struct sim_connection *c = front_world_send(&w, token_rows[i].request, strlen(token_rows[i].request));
        sim_run_for(w.sim, 10 * NS_PER_MS);
        assert_int_equal(front_world_status(sim_received(c)), token_rows[i].status);
        bool wrong = strstr(token_rows[i].request, "Bearer") != NULL;
        assert_int_equal(front_world_count(c, "the token is wrong"), wrong);
        assert_int_equal(w.apps[0].events, 0);
        front_world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_has_its_outcome),
        cmocka_unit_test(a_request_behind_another_has_the_same_outcome),
        cmocka_unit_test(a_request_split_anywhere_has_the_same_outcome),
        cmocka_unit_test(a_request_byte_by_byte_has_the_same_outcome),
        cmocka_unit_test(a_long_pipeline_is_answered_in_order),
        cmocka_unit_test(a_run_says_what_was_posted),
        cmocka_unit_test(a_question_is_a_run_without_records),
        cmocka_unit_test(a_run_of_records_says_whose_they_are),
        cmocka_unit_test(a_body_is_waited_for_with_100_continue),
        cmocka_unit_test(a_body_that_is_refused_is_not_waited_for),
        cmocka_unit_test(a_token_is_needed_everywhere_but_for_health),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
