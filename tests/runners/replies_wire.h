/* The wire that a row is played to: it delivers one record, and then one more on whatever connection it would
 * use. Where its loop and its server live is for the includer to say (replies_sim.h, replies_live.h). */
#ifndef PURE_TESTS_RUNNERS_REPLIES_WIRE_H
#define PURE_TESTS_RUNNERS_REPLIES_WIRE_H

#include "tests/runners/replies.h"

/* How a reply is sent: whole, in two pieces, or byte by byte. */
struct cut {
    size_t at; /* 0: not cut there */
    bool every;
};

/* The end of the piece that begins at `from`. */
static inline size_t cut_end(const struct cut *cut, size_t from, size_t size)
{
    if (cut->every)
        return min_size(from + 1, size);
    return from < cut->at && cut->at < size ? cut->at : size;
}

struct rig {
    struct wire *wire;
    struct wire_options options;
    struct seen seen;
    uint64_t pushed;
};

/* No try is made again before the wire is told to hurry: what comes before that is the first exchange. */
#define RIG_REST_NS (3600 * NS_PER_S)

static inline void rig_options(struct rig *r, const char *url, uint64_t limit_ns)
{
    const char *why;
    struct wire_options *o = &r->options;
    wire_options_default(o);
    int error = url_parse(&o->url, url, &why);
    assert(error == 0);
    (void)error;
    o->mode = WIRE_WEBHOOK;
    o->agent = "pure-host/1.0";
    o->source = "here/app/out";
    o->event = "measured";
    o->seed = 1;
    o->backoff_min_ns = o->backoff_max_ns = RIG_REST_NS;
    o->progress_ns = o->reply_ns = limit_ns;
    o->total_ns = 2 * limit_ns;
}

static inline struct connection *rig_connection(struct rig *r)
{
    return &r->wire->lanes[0]->connection; /* without `concurrency`, its only one */
}

static inline void rig_open(struct rig *r, struct loop *loop, struct resolver *resolver, struct log *log)
{
    r->wire = aligned_alloc(CACHE_LINE, sizeof *r->wire);
    if (!r->wire || wire_init(r->wire, &r->options, "app", "out", 1 << 16, 4096, loop, resolver, log) < 0)
        abort();
    r->wire->outlet.producer = &loop->board;
    r->wire->outlet.producer_slot = 63; /* nobody's: nothing waits for room */
    r->pushed = 0;
    seen_init(&r->seen);
    rig_connection(r)->reader = &r->seen.reader;
}

static inline void rig_push(struct rig *r)
{
    static const char record[] = "{\"t\":21.5}";
    int error = outlet_queue(&r->wire->outlet, record, sizeof record - 1);
    assert(error == 0);
    (void)error;
    outlet_push(&r->wire->outlet);
    r->pushed++;
}

static inline uint64_t rig_stored(const struct rig *r)
{
    return r->wire->outlet.queue.freed.records;
}

/* Whether the exchange is over, however it went: nothing is on its way. */
static inline bool rig_quiet(struct rig *r)
{
    const struct connection *c = rig_connection(r);
    return c->phase == CONNECTION_NONE || (c->phase == CONNECTION_OPEN && !c->ending && c->done == c->begun);
}

/* What the first exchange was. The body of a reply that was not whole is forgotten. */
static inline void rig_note_first(struct rig *r, struct played *p)
{
    p->first_whole = r->seen.count;
    p->first_stored = rig_stored(r);
    seen_clear_body(&r->seen);
}

/* The second exchange; before it, the first record's again if it is not stored. Options given anew end a rest
 * at once, but close the connection: that would hide what is left on one that the wire would use again. */
static inline void rig_push_second(struct rig *r)
{
    bool disabled = atomic_load(&r->wire->outlet.report.state) == OUTLET_DISABLED;
    bool gone = rig_stored(r) == 0 && rig_connection(r)->phase == CONNECTION_NONE;
    if ((disabled || gone) && wire_change(r->wire, &r->options) < 0)
        abort();
    wire_hurry(r->wire);
    rig_push(r);
}

/* Looked at after every step, so that new options, which begin with a new connection, are seen before
 * anything comes on it. */
static inline bool rig_all_stored(struct rig *r)
{
    rig_connection(r)->reader = &r->seen.reader;
    return rig_stored(r) == r->pushed && rig_quiet(r);
}

#endif
