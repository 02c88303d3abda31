/* Records from another host: put into the inbox while they come, in whole records, however the bytes are cut;
 * what was put stays put, whatever happens to the rest. */
#include "tests/unit/fewer.h"
#include "tests/sim/front_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define RECORDS_MAX 4000
#define BODY_MAX    (600 * 1024)

/* A request with `count` records from number `first` on. */
struct batch_of_records {
    uint8_t bytes[BODY_MAX + 1024]; /* head and body */
    size_t head, size;
    uint64_t count;
    uint64_t hash[RECORDS_MAX + 1]; /* of the first n records, as the owner counts */
};

static uint64_t hash_record(uint64_t hash, const uint8_t *data, size_t size)
{
    hash = (hash ^ size) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static size_t random_size(struct random *r)
{
    uint64_t kind = random_below(r, 100);
    return kind < 80 ? random_below(r, 70) : kind < 98 ? random_below(r, 300) : random_below(r, 20000);
}

static void make_batch(struct batch_of_records *b, struct random *r, uint64_t most)
{
    static uint8_t body[BODY_MAX];
    size_t size = 0;
    b->count = 0;
    b->hash[0] = 0;
    uint64_t count = 1 + random_below(r, most);
    while (b->count < count) {
        size_t bytes = random_size(r);
        if (size + record_framed_size(bytes) > sizeof body)
            break;
        size += varint_put(body + size, bytes);
        for (size_t i = 0; i < bytes; i++)
            body[size + i] = (uint8_t)random_next(r);
        b->hash[b->count + 1] = hash_record(b->hash[b->count], body + size, bytes);
        b->count++;
        size += bytes;
    }
    b->head = (size_t)snprintf((char *)b->bytes, 1024,
                               "POST /apps/counter/records HTTP/1.1\r\nHost: h\r\n"
                               "Content-Type: application/vnd.pure.records\r\nPure-Stream: there/app/out\r\n"
                               "Pure-Epoch: 000102030405060708090a0b0c0d0e0f\r\nPure-Event: e\r\n"
                               "Pure-First: 1\r\nPure-Count: %llu\r\nContent-Length: %zu\r\n\r\n",
                               (unsigned long long)b->count, size);
    memcpy(b->bytes + b->head, body, size);
    b->size = b->head + size;
}

/* Sends in pieces of random sizes, with pauses now and then. */
static void send_in_pieces(struct front_world *w, struct sim_connection *c, const uint8_t *bytes, size_t size)
{
    struct random *r = sim_random(w->sim);
    size_t most = 1 + random_below(r, random_below(r, 2) ? 50000 : 3000);
    for (size_t at = 0; at < size;) {
        size_t piece = min_size(size - at, 1 + random_below(r, most));
        sim_peer_send(c, bytes + at, piece);
        at += piece;
        if (random_below(r, 8) == 0)
            sim_run_for(w->sim, random_below(r, NS_PER_MS));
    }
}

static void harass(struct front_world *w)
{
    struct random *r = sim_random(w->sim);
    struct sim_faults faults = {.no_buffers = (uint32_t)random_below(r, 100),
                                .multishot_end = (uint32_t)random_below(r, 200),
                                .short_send = (uint32_t)random_below(r, 300),
                                .batch_max = 1 + (uint32_t)random_below(r, 64),
                                .buffer_bytes = 1 + (uint32_t)random_below(r, 1u << random_below(r, 17))};
    sim_set_faults(w->sim, &faults);
}

static void all_records_come_in_once_in_order_however_they_are_cut(void **state)
{
    (void)state;
    static struct batch_of_records b;
    for (uint64_t seed = 0; seed < FEWER(1500); seed++) {
        struct front_world w;
        front_world_open(&w, seed, NULL);
        if (seed % 2)
            harass(&w);
        make_batch(&b, sim_random(w.sim), seed % 10 ? 200 : RECORDS_MAX);
        struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
        send_in_pieces(&w, c, b.bytes, b.size);
        sim_run_for(w.sim, NS_PER_S);
        char stored[40];
        snprintf(stored, sizeof stored, "Pure-Stored: %llu\r\n", (unsigned long long)b.count);
        assert_int_equal(front_world_count(c, "HTTP/1.1 200 "), 1);
        assert_int_equal(front_world_count(c, stored), 1);
        assert_int_equal(w.apps[0].events, b.count);
        assert_int_equal(w.apps[0].hash, b.hash[b.count]);
        assert_in_range(w.apps[0].runs, 1, (b.size - b.head) / 4096 + 1);
        assert_false(sim_peer_ended(c));
        front_world_close(&w);
    }
}

static void what_was_put_stays_put_when_the_connection_is_reset(void **state)
{
    (void)state;
    static struct batch_of_records b;
    unsigned partly = 0;
    for (uint64_t seed = 0; seed < FEWER(500); seed++) {
        struct front_world w;
        front_world_open(&w, seed, NULL);
        make_batch(&b, sim_random(w.sim), RECORDS_MAX);
        struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
        send_in_pieces(&w, c, b.bytes, random_below(sim_random(w.sim), b.size));
        sim_run_for(w.sim, random_below(sim_random(w.sim), 5 * NS_PER_MS));
        sim_peer_reset(c);
        sim_run_for(w.sim, NS_PER_S);
        assert_int_equal(w.apps[0].events, w.apps[0].stored);
        assert_int_equal(w.apps[0].hash, b.hash[w.apps[0].stored]);
        partly += w.apps[0].stored > 0 && w.apps[0].stored < b.count;
        assert_int_equal(w.front.open, 0);
        front_world_close(&w);
    }
    assert_true(partly > FEWER(100)); /* or this would test nothing */
}

static void an_owner_works_while_the_rest_still_comes(void **state)
{
    (void)state;
    static struct batch_of_records b;
    struct front_world w;
    front_world_open(&w, 3, NULL);
    do
        make_batch(&b, sim_random(w.sim), RECORDS_MAX);
    while (b.size < 100000);
    struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
    sim_peer_send(c, b.bytes, b.size / 2);
    sim_run_for(w.sim, 20 * NS_PER_MS);
    assert_true(w.apps[0].stored > 0);
    assert_true(w.apps[0].sum > 0);
    assert_true(w.apps[0].smallest_run >= 4096);
    assert_int_equal(sim_received(c).size, 0);
    sim_peer_send(c, b.bytes + b.size / 2, b.size - b.size / 2);
    sim_run_for(w.sim, 20 * NS_PER_MS);
    assert_int_equal(w.apps[0].hash, b.hash[b.count]);
    front_world_close(&w);
}

struct answer_row {
    int error;
    int status;
    const char *field;
};

static void an_error_of_a_run_ends_the_body_and_says_what_is_stored(void **state)
{
    (void)state;
    static const struct answer_row answers[] = {
        {PE_STREAM_GAP, 409, "Pure-Stored: "},
        {PE_STREAM_RETIRED, 409, "Pure-Error: epoch-retired\r\n"},
        {PE_APP_SUSPENDED, 503, "Retry-After: 1\r\n"},
        {PE_APP_FAILED, 500, "Pure-Stored: "},
    };
    static struct batch_of_records b;
    for (unsigned i = 0; i < ARRAY_SIZE(answers); i++) {
        struct front_world w;
        front_world_open(&w, i, NULL);
        do
            make_batch(&b, sim_random(w.sim), RECORDS_MAX);
        while (b.size < 100000 || b.size > 250000);
        w.apps[0].error = answers[i].error;
        w.apps[0].fail_after = 3;
        struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
        for (size_t at = 0; at < b.size; at += 5000) {
            sim_peer_send(c, b.bytes + at, min_size(5000, b.size - at));
            sim_run_for(w.sim, NS_PER_MS);
        }
        sim_run_for(w.sim, 10 * NS_PER_MS);
        char text[40];
        snprintf(text, sizeof text, "HTTP/1.1 %d ", answers[i].status);
        assert_int_equal(front_world_count(c, text), 1);
        assert_int_equal(front_world_count(c, answers[i].field), 1);
        snprintf(text, sizeof text, "Pure-Stored: %llu\r\n", (unsigned long long)w.apps[0].stored);
        assert_int_equal(front_world_count(c, text), 1);
        assert_int_equal(w.apps[0].hash, b.hash[w.apps[0].stored]);
        assert_in_range(w.apps[0].runs, 4, 6); /* few more were under way */
        assert_false(sim_peer_ended(c));
        front_world_close(&w);
    }
}

static void a_full_inbox_refuses_records_at_the_head(void **state)
{
    (void)state;
    static const char head[] =
        "POST /apps/counter/records HTTP/1.1\r\nHost: h\r\nContent-Type: application/vnd.pure.records\r\n"
        "Pure-Stream: a/b/c\r\nPure-Epoch: 000102030405060708090a0b0c0d0e0f\r\nPure-Event: e\r\n"
        "Pure-First: 1\r\nPure-Count: 100000\r\nContent-Length: 1000000\r\n\r\n";
    static const char event_head[] =
        "POST /apps/counter/events/up HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n";
    struct front_world w;
    front_world_open(&w, 1, NULL);
    w.hold = true;
    static char body[1000000]; /* an event */
    for (unsigned i = 0; i < 3; i++) {
        struct sim_connection *event = front_world_send(&w, event_head, sizeof event_head - 1);
        sim_peer_send(event, body, sizeof body);
        sim_run_for(w.sim, 500 * NS_PER_MS);
    }
    struct sim_connection *c = front_world_send(&w, head, sizeof head - 1);
    sim_run_for(w.sim, 10 * NS_PER_MS);
    assert_int_equal(w.apps[0].entry.inbox.puts, 3); /* of 4 MiB, 75 % are taken */
    assert_int_equal(front_world_count(c, "HTTP/1.1 503 "), 1);
    assert_int_equal(front_world_count(c, "Retry-After: 1\r\n"), 1);
    front_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_records_come_in_once_in_order_however_they_are_cut),
        cmocka_unit_test(what_was_put_stays_put_when_the_connection_is_reset),
        cmocka_unit_test(an_owner_works_while_the_rest_still_comes),
        cmocka_unit_test(an_error_of_a_run_ends_the_body_and_says_what_is_stored),
        cmocka_unit_test(a_full_inbox_refuses_records_at_the_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
