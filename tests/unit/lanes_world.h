/* A wire with several lanes in a simulated world, and a receiver that judges each record by what is in it:
 *
 *     test --push--> [ wire, up to N lanes ] ==== simulated TCP ====> [ receiver: takes `delay_ns` a request
 * ]
 *
 * Record n is {"k":"KEY","n":n} and perhaps more. The receiver notes which were delivered how often, how many
 * requests it had at once, and sees that records of one key come one after the other and in order. Included
 * by the tests of lanes; each is one program. */
#ifndef PURE_TESTS_UNIT_LANES_WORLD_H
#define PURE_TESTS_UNIT_LANES_WORLD_H

#include "tests/unit/wire_world.h"

#define LANES_RECORDS 2000
#define LANES_KEYS    8

#define ANSWER(line) "HTTP/1.1 " line "\r\nContent-Length: 0\r\n\r\n"

static struct {
    const char *bad;         /* the answer to records with "bad" in them; NULL: they are as good as others */
    const char *all;         /* the answer to all; NULL: by what is in them */
    uint64_t delay_ns;       /* of each answer */
    unsigned requests, most; /* under way; the most at once */
    unsigned overlaps;       /* records that came while one of their key was under way */
    unsigned disorder;       /* records whose first coming was before an earlier one of their key was done */
    unsigned delivered[LANES_RECORDS + 1]; /* how often record n was */
    unsigned came[LANES_RECORDS + 1];      /* how often it was sent */
    unsigned key_of[LANES_RECORDS + 1];    /* 0: none */
    bool dead[LANES_RECORDS + 1];          /* taken as a dead letter */
    unsigned under_way[LANES_KEYS + 1];    /* by key */
    uint64_t arrived_ns[LANES_RECORDS];    /* of each request, in order */
    unsigned arrivals;
} seen;

static inline unsigned record_in(struct sim_connection *c, bool *bad)
{
    struct http_head head;
    struct span body = parse_request(sim_taken(c), &head);
    const char *at = memmem(body.data, body.size, "\"n\":", 4);
    assert_non_null(at);
    *bad = memmem(body.data, body.size, "bad", 3) != NULL;
    unsigned number = (unsigned)strtoul(at + 4, NULL, 10);
    assert_true(number >= 1 && number <= LANES_RECORDS);
    return number;
}

static inline void look_for_disorder(unsigned number)
{
    unsigned key = seen.key_of[number];
    if (key == 0)
        return;
    seen.overlaps += seen.under_way[key] > 0;
    for (unsigned n = 1; n < number; n++)
        seen.disorder += seen.key_of[n] == key && !seen.delivered[n] && !seen.dead[n];
}

static inline void arrive(struct sim_connection *c, void *context)
{
    (void)context;
    bool bad;
    unsigned number = record_in(c, &bad);
    note_request(c, &here);
    if (seen.arrivals < LANES_RECORDS)
        seen.arrived_ns[seen.arrivals++] = sim_now_ns(here->sim);
    seen.requests++;
    seen.most = seen.requests > seen.most ? seen.requests : seen.most;
    look_for_disorder(number);
    seen.under_way[seen.key_of[number]]++;
    seen.came[number]++;
}

static inline void respond(struct sim_connection *c, void *context)
{
    (void)context;
    bool bad;
    unsigned number = record_in(c, &bad);
    const char *reply = seen.all ? seen.all : bad && seen.bad ? seen.bad : OK_REPLY;
    seen.requests--;
    seen.under_way[seen.key_of[number]]--;
    seen.delivered[number] += memcmp(reply, "HTTP/1.1 2", 10) == 0;
    sim_peer_send(c, reply, strlen(reply));
}

static const struct sim_step judging[] = {SIM_EXPECT_HTTP, SIM_CALL(arrive, NULL), SIM_WAIT(10 * NS_PER_MS),
                                          SIM_CALL(respond, NULL), SIM_AGAIN};

/* Options may be changed until world_start. */
static inline struct world *begin_lanes(uint64_t seed, uint32_t concurrency)
{
    memset(&seen, 0, sizeof seen);
    struct world *t = begin(seed, judging, ARRAY_SIZE(judging));
    t->options.concurrency = concurrency;
    return t;
}

/* Record number t->pushed + 1, of that key (0: none). */
static inline void push_keyed(struct world *t, unsigned key, const char *more)
{
    char text[100], member[20] = "";
    unsigned number = (unsigned)t->pushed + 1;
    assert_true(number <= LANES_RECORDS && key <= LANES_KEYS);
    if (key > 0)
        snprintf(member, sizeof member, "\"k\":\"key%u\",", key);
    seen.key_of[number] = key;
    snprintf(text, sizeof text, "{%s\"n\":%u%s}", member, number, more);
    push(t, text);
}

static inline void push_plain(struct world *t, unsigned count)
{
    for (; count > 0; count--)
        push_keyed(t, 0, "");
}

static inline void assert_delivered_once(unsigned from, unsigned to)
{
    for (unsigned n = from; n <= to; n++) {
        if (seen.delivered[n] != 1)
            fail_msg("record %u was delivered %u times", n, seen.delivered[n]);
    }
}

static inline unsigned delivered_count(void)
{
    unsigned count = 0;
    for (unsigned n = 1; n <= LANES_RECORDS; n++)
        count += seen.delivered[n] > 0;
    return count;
}

/* --- dead letters --- */

static inline int dead_state(struct world *t)
{
    return atomic_load(&t->wire->outlet.dead.state);
}

static inline bool dead_asked(void *context)
{
    return dead_state(context) == OUTLET_DEAD_ASKED;
}

/* What the owner does. */
static inline void take_dead(struct world *t)
{
    assert_int_equal(dead_state(t), OUTLET_DEAD_ASKED);
    seen.dead[t->wire->outlet.dead.end.records] = true;
    atomic_store(&t->wire->outlet.dead.state, OUTLET_DEAD_TAKEN);
    board_post(t->wire->outlet.consumer, t->wire->outlet.consumer_slot);
}

static inline bool stored_or_asked(void *context)
{
    return world_all_stored(context) || dead_asked(context);
}

/* Takes dead letters until all records are stored or set aside. */
static inline void run_taking_dead(struct world *t)
{
    while (!world_all_stored(t)) {
        assert_int_equal(sim_run_until(t->sim, stored_or_asked, t), SIM_DONE);
        if (dead_asked(t))
            take_dead(t);
    }
}

#endif
