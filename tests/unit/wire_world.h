/* One wire in a simulated world, and a receiver that notes what it gets:
 *
 *     test --push--> [ wire on 10.0.0.1 ] ---- simulated TCP ----> [ receiver on 10.0.0.2:80 ]
 *
 * Included by the wire's tests; each is one program. */
#ifndef PURE_TESTS_UNIT_WIRE_WORLD_H
#define PURE_TESTS_UNIT_WIRE_WORLD_H

#include "tests/sim/sim.h"
#include "wire/delivery.h"
#include "wire/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define RECEIVER "10.0.0.2:80"
#define NOTED    256 /* requests noted; more are counted only */

struct noted {
    char id[64]; /* webhook-id, or "" */
    uint64_t first, count;
    char body[64]; /* its beginning, with a NUL */
    size_t body_size;
    uint64_t at_ns;
};

struct world {
    struct sim *sim;
    struct loop loop;
    struct log log;
    struct resolver *resolver;
    struct wire_options options;
    struct wire *wire;
    struct sim_server *server;
    uint64_t pushed;
    uint64_t stop_at; /* world_stored: records */
    /* what the receiver noted */
    unsigned requests;
    struct noted noted[NOTED];
    /* the numbering receiver */
    uint64_t stored;
    uint64_t out_of_order; /* records that came with a wrong content: never */
    uint64_t duplicates;
};

static inline void world_options(struct world *t, const char *url)
{
    const char *why;
    wire_options_default(&t->options);
    assert_int_equal(url_parse(&t->options.url, url, &why), 0);
    t->options.agent = "pure-host/1.0";
    t->options.source = "here/app/out";
    t->options.event = "measured";
    t->options.seed = 7;
    for (int i = 0; i < WIRE_EPOCH_BYTES; i++)
        t->options.epoch[i] = (uint8_t)(0xa0 + i);
}

/* A world with a receiver that runs `script`, and options to change before world_start. */
static inline struct world *world_new(uint64_t seed, const struct sim_step *script, unsigned steps)
{
    struct world *t = aligned_alloc(CACHE_LINE, sizeof *t);
    assert_non_null(t);
    memset(t, 0, sizeof *t);
    t->sim = sim_new(seed);
    assert_int_equal(loop_init(&t->loop, sim_io(t->sim, "10.0.0.1"), 64, 8 * WIRE_TIMERS), 0);
    sim_add_loop(t->sim, &t->loop);
    t->resolver = sim_resolver(t->sim, &t->loop);
    assert_int_equal(log_init(&t->log, NULL, 0), 0);
    world_options(t, "http://10.0.0.2/hook?key=secret");
    if (script)
        t->server = sim_server(t->sim, RECEIVER, script, steps);
    return t;
}

static inline void world_start(struct world *t)
{
    t->wire = aligned_alloc(CACHE_LINE, sizeof *t->wire);
    assert_non_null(t->wire);
    assert_int_equal(
        wire_init(t->wire, &t->options, "app", "out", 1 << 16, 4096, &t->loop, t->resolver, &t->log), 0);
    t->wire->outlet.producer = &t->loop.board;
    t->wire->outlet.producer_slot = 63;
}

static inline bool world_is_stopped(void *context)
{
    return wire_stopped(((struct world *)context)->wire);
}

/* Stops the wire in order and sees that it left nothing open. */
static inline void world_end(struct world *t)
{
    if (t->wire) {
        wire_stop(t->wire);
        assert_int_equal(sim_run_until(t->sim, world_is_stopped, t), SIM_DONE);
        wire_dispose(t->wire);
        free(t->wire);
    }
    sim_remove_loop(t->sim, &t->loop);
    loop_dispose(&t->loop);
    log_dispose(&t->log);
    sim_free(t->sim);
    free(t);
}

static inline void push(struct world *t, const char *text)
{
    assert_int_equal(outlet_queue(&t->wire->outlet, text, strlen(text)), 0);
    outlet_push(&t->wire->outlet);
    t->pushed++;
}

static inline uint64_t stored(const struct world *t)
{
    return t->wire->outlet.queue.freed.records;
}

static inline bool world_all_stored(void *context)
{
    struct world *t = context;
    return stored(t) == t->pushed;
}

static inline void run_until_stored(struct world *t)
{
    assert_int_equal(sim_run_until(t->sim, world_all_stored, t), SIM_DONE);
}

static inline void run_for_s(struct world *t, uint64_t seconds)
{
    sim_run_for(t->sim, seconds * NS_PER_S);
}

static inline int state_of(struct world *t)
{
    return atomic_load(&t->wire->outlet.report.state);
}

static inline int error_of(struct world *t)
{
    return atomic_load(&t->wire->outlet.report.error);
}

static inline uint64_t failures_of(struct world *t)
{
    return atomic_load(&t->wire->outlet.report.failures_total);
}

static inline uint64_t tries_of(struct world *t)
{
    return atomic_load(&t->wire->outlet.report.requests);
}

static inline void assert_error_text(struct world *t, const char *expected)
{
    char text[200];
    outlet_error_text(&t->wire->outlet, text, sizeof text);
    assert_string_equal(text, expected);
}

/* How many lines the log has got and what the last one is (with its NUL); takes them. */
static inline unsigned take_log(struct world *t, char *last, size_t size)
{
    unsigned lines = 0;
    struct record_queue *q = &t->log.lines;
    struct stream_position end = record_queue_see_published(q), at = q->freed;
    struct span line = span_of(NULL, 0);
    for (struct span rest = record_queue_span(q, at.bytes); rest.size > 0; lines++) {
        size_t framed = record_get(rest.data, rest.data + rest.size, &line);
        snprintf(last, size, "%.*s", (int)line.size, line.data);
        rest = span_of(rest.data + framed, rest.size - framed);
    }
    record_queue_free_to(q, end);
    return lines;
}

/* --- the receiver --- */

static inline uint64_t number_field(const struct http_head *head, const char *name)
{
    uint64_t value = 0;
    const struct http_field *field = http_field(head, name);
    if (field)
        assert_int_equal(http_number(field->value, VARINT_MAX, &value), 0);
    return value;
}

/* Parses the request that was taken; its body. */
static inline struct span parse_request(struct span message, struct http_head *head)
{
    size_t scanned = 0;
    int size = http_request_head(message, &scanned, head);
    assert_true(size > 0);
    return span_of(message.data + size, message.size - (size_t)size);
}

/* For SIM_CALL after SIM_EXPECT_HTTP. */
static inline void note_request(struct sim_connection *c, void *context)
{
    struct world *t = *(struct world **)context;
    struct http_head head;
    struct span body = parse_request(sim_taken(c), &head);
    if (t->requests < NOTED) {
        struct noted *n = &t->noted[t->requests];
        const struct http_field *id = http_field(&head, "webhook-id");
        snprintf(n->id, sizeof n->id, "%.*s", id ? (int)id->value.size : 0,
                 id ? (const char *)id->value.data : "");
        snprintf(n->body, sizeof n->body, "%.*s", (int)body.size, (const char *)body.data);
        n->body_size = body.size;
        n->first = number_field(&head, "pure-first");
        n->count = number_field(&head, "pure-count");
        n->at_ns = sim_now_ns(t->sim);
    }
    t->requests++;
}

/* A receiver as docs/records-protocol.md has it: stores what comes next, refuses gaps, forgets duplicates.
 * Record number n is the text of n. Returns the status. */
static inline unsigned store_numbered(struct world *t, struct span message)
{
    struct http_head head;
    struct span body = parse_request(message, &head), record;
    uint64_t number = number_field(&head, "pure-first"), count = number_field(&head, "pure-count");
    if (number > t->stored + 1)
        return 409;
    for (; count > 0; count--, number++) {
        size_t framed = record_get(body.data, body.data + body.size, &record);
        char expected[24];
        snprintf(expected, sizeof expected, "%llu", (unsigned long long)number);
        if (framed == 0 || !span_is(record, expected))
            t->out_of_order++;
        if (number == t->stored + 1)
            t->stored++;
        else
            t->duplicates++;
        body = span_of(body.data + framed, body.size - framed);
    }
    assert_int_equal(body.size, 0);
    return 200;
}

static inline void reply_stored(struct sim_connection *c, struct world *t, unsigned status)
{
    char reply[128];
    int size =
        snprintf(reply, sizeof reply, "HTTP/1.1 %u Said\r\nPure-Stored: %llu\r\nContent-Length: 0\r\n\r\n",
                 status, (unsigned long long)t->stored);
    sim_peer_send(c, reply, (size_t)size);
}

static inline void receive_numbered(struct sim_connection *c, void *context)
{
    struct world *t = *(struct world **)context;
    note_request(c, context);
    reply_stored(c, t, store_numbered(t, sim_taken(c)));
}

static inline void push_numbers(struct world *t, unsigned count)
{
    for (; count > 0; count--) {
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)t->pushed + 1);
        push(t, text);
    }
}

/* The world of the running test, where scripts find it. */
static struct world *here;

#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static inline struct world *begin(uint64_t seed, const struct sim_step *script, unsigned steps)
{
    return here = world_new(seed, script, steps);
}

#endif
