#include "wire/wire.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(WIRE_CONCURRENCY_MAX <= 64, "sets of lanes are 64 bits");

static const struct wire_ways numbered_ways = {
    .look = numbered_look,
    .go_on = numbered_go_on,
    .answered = numbered_answered,
    .closed = numbered_closed,
    .rewind = numbered_rewind,
    .settle_dead = numbered_settle_dead,
    .due_ns = numbered_due_ns,
};

static const struct wire_ways posting_ways = {
    .look = posting_look,
    .go_on = posting_go_on,
    .answered = posting_answered,
    .closed = posting_closed,
    .rewind = posting_rewind,
    .settle_dead = posting_settle_dead,
    .due_ns = posting_due_ns,
};

static void want(struct wire *w)
{
    loop_want(w->loop, &w->task);
}

/* Calls `call` for each lane of `set`. */
static void each_lane(struct wire *w, uint64_t now_ns, uint64_t set,
                      void (*call)(struct wire *w, uint64_t now_ns, struct lane *lane))
{
    for (; set; set &= set - 1)
        call(w, now_ns, w->lanes[__builtin_ctzll(set)]);
}

static uint64_t all_lanes(const struct wire *w)
{
    uint64_t set = 0;
    for (unsigned n = 0; n < w->concurrency; n++)
        set |= (uint64_t)(w->lanes[n] != NULL) << n;
    return set;
}

static bool all_gone(const struct wire *w)
{
    for (unsigned n = 0; n < w->concurrency; n++) {
        if (w->lanes[n] && !lane_gone(w->lanes[n]))
            return false;
    }
    return true;
}

/* --- time: the timer is set only if it would come too late. Deadlines mostly move away from us, request by
 * request; one that fires too early just has a round look at every lane, which sets it anew --- */

static void arm(struct wire *w, uint64_t due_ns)
{
    if (due_ns < w->timer.due_ns)
        timer_set(&w->loop->timers, &w->timer, due_ns);
}

static void arm_lane(struct wire *w, uint64_t now_ns, struct lane *lane)
{
    (void)now_ns;
    arm(w, lane_due_ns(lane));
}

/* What is past was acted on in this round, or waits for something else. */
static void arm_later(struct wire *w, uint64_t now_ns, uint64_t due_ns)
{
    if (due_ns > now_ns)
        arm(w, due_ns);
}

static void timer_fired(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    struct wire *w = container_of(timer, struct wire, timer);
    w->stirred = all_lanes(w);
    want(w);
}

/* --- lanes --- */

static struct wire *wire_of(struct lane *lane)
{
    return container_of(lane->shared, struct wire, shared);
}

static void lane_stirred(struct lane *lane)
{
    struct wire *w = wire_of(lane);
    w->stirred |= UINT64_C(1) << lane->index;
    want(w);
}

static void lane_due(struct lane *lane)
{
    arm(wire_of(lane), lane_due_ns(lane));
}

struct lane *wire_lane(struct wire *w, unsigned n)
{
    if (!w->lanes[n] && (w->lanes[n] = malloc(sizeof *w->lanes[n])))
        lane_init(w->lanes[n], &w->shared, n);
    return w->lanes[n];
}

uint64_t wire_send(struct wire *w, uint64_t now_ns, struct lane *lane, const struct request_numbers *numbers,
                   const struct request_body *body, struct span bytes)
{
    size_t head_size = request_write(&w->request, numbers, body, lane->head, w->shared.head_room);
    return wire_send_made(w, now_ns, lane, head_size, bytes);
}

uint64_t wire_send_made(struct wire *w, uint64_t now_ns, struct lane *lane, size_t head_size,
                        struct span bytes)
{
    w->round |= UINT64_C(1) << lane->index;
    counter_add(&w->outlet.report.requests, 1);
    return lane_send(lane, now_ns, head_size, bytes);
}

/* --- the round --- */

static bool changing(const struct wire *w)
{
    return atomic_load_explicit(&w->change, memory_order_relaxed) != NULL;
}

static bool quiet(const struct wire *w)
{
    return w->stopping || w->delivery.disabled || changing(w);
}

static void tick(struct wire *w, uint64_t now_ns, struct lane *lane)
{
    (void)w;
    connection_tick(&lane->connection, now_ns);
}

static void settle_answers(struct wire *w, uint64_t now_ns, struct lane *lane)
{
    uint64_t number;
    const struct answer *answer;
    while (connection_take(&lane->connection, &number, &answer)) {
        if (number == 0)
            destination_worked(&w->destination);
        w->ways->answered(w, now_ns, lane, number, answer);
    }
}

/* The connection is gone and its answers are settled. */
static void settle_closed(struct wire *w, uint64_t now_ns, struct lane *lane)
{
    if (lane->connection.phase != CONNECTION_CLOSED)
        return;
    bool failed = w->ways->closed(w, now_ns, lane);
    if (failed && !lane->leaving && !quiet(w)) {
        if (lane->made)
            destination_failed(&w->destination);
        delivery_failed(w, now_ns, lane->connection.error, NULL, lane->detail);
    }
    lane_clear(lane);
}

/* Ends what is to be ended. A wire that makes no more tries waits for the answers that are on their way. */
static void see_end(struct wire *w, uint64_t now_ns, struct lane *lane)
{
    if (lane->connection.ending || w->stopping)
        lane_close(lane);
    else if (lane_tired(lane, now_ns) || (quiet(w) && (lane_idle(lane) || lane_opening(lane))))
        lane_leave(lane);
}

static void hurry(struct wire *w, uint64_t now_ns)
{
    uint64_t until_ns = now_ns + DELIVERY_HURRIED_REST_NS;
    w->delivery.rest_until_ns = min_u64(w->delivery.rest_until_ns, until_ns);
    slots_hurry(&w->posting.slots, until_ns);
}

static void take_change(struct wire *w);

static bool run(struct task *task, uint64_t now_ns)
{
    struct wire *w = container_of(task, struct wire, task);
    w->round = w->stirred;
    w->stirred = 0;
    each_lane(w, now_ns, w->round, tick);
    if (wire_hurried(w))
        hurry(w, now_ns);
    each_lane(w, now_ns, w->round, settle_answers);
    delivery_see_want(w);
    w->ways->settle_dead(w);
    numbered_settle_contact(w);
    w->ways->look(w, now_ns);
    each_lane(w, now_ns, w->round, settle_closed);
    if (changing(w) && all_gone(w))
        take_change(w);
    if (quiet(w))
        w->round = all_lanes(w);
    each_lane(w, now_ns, w->round, see_end);
    if (!quiet(w)) {
        w->ways->go_on(w, now_ns);
        arm_later(w, now_ns, w->delivery.rest_until_ns);
        arm_later(w, now_ns, w->ways->due_ns(w, now_ns));
    }
    each_lane(w, now_ns, w->round, arm_lane);
    return false;
}

/* --- options --- */

static void set_limits(struct wire *w, const struct wire_options *o)
{
    w->limits = (struct batch_limits){o->batch_bytes, o->batch_records ? o->batch_records : UINT64_MAX};
    w->shared.limits = (struct connection_limits){.progress_ns = o->progress_ns,
                                                  .reply_ns = o->reply_ns,
                                                  .total_ns = o->total_ns,
                                                  .pipeline = o->pipeline            ? o->pipeline
                                                              : o->mode == WIRE_PURE ? 2
                                                                                     : 1};
    w->shared.age_ns = o->connection_age_ns ? o->connection_age_ns : NEVER;
    w->shared.head_room = request_room(&w->request);
    w->shared.body_room =
        o->mode == WIRE_BATCH ? (size_t)max_u64(o->batch_bytes, (uint64_t)w->outlet.max_record + 1) : 0;
    if (w->request.sealing)
        w->shared.body_room = sealing_body_room(o->batch_bytes, w->outlet.max_record);
    w->shared.packed_room = o->gzip ? (size_t)max_u64(w->shared.body_room, w->outlet.max_record) : 0;
}

static void set_destination(struct wire *w, const struct wire_options *o)
{
    snprintf(w->endpoint, sizeof w->endpoint, "http%s://%.80s%s%.60s", o->url.tls ? "s" : "",
             o->url.authority, o->proxied ? " by way of the proxy " : "",
             o->proxied ? o->proxy.url.authority : "");
    memcpy(w->host, o->url.host, sizeof w->host);
    w->shared.tls = o->url.tls ? o->tls : NULL;
    destination_init(&w->destination, o, w->loop, w->resolver);
}

/* Of its lanes there is none, or they are gone. w->request is made of the same options. */
static void set_options(struct wire *w, const struct wire_options *o)
{
    w->mode = o->mode;
    w->ways = o->mode == WIRE_PURE ? &numbered_ways : &posting_ways;
    w->concurrency = max_u64(o->concurrency, 1);
    set_limits(w, o);
    set_destination(w, o);
    posting_set(&w->posting, o);
    delivery_init(&w->delivery, o);
}

static void free_lanes(struct wire *w, unsigned from)
{
    for (unsigned n = from; n < WIRE_CONCURRENCY_MAX; n++) {
        if (w->lanes[n])
            lane_dispose(w->lanes[n]);
        free(w->lanes[n]);
        w->lanes[n] = NULL;
    }
}

/* New options for a wire that runs, made ready by another thread. */
struct wire_change {
    struct wire_options options; /* its texts are in `request`, or here */
    struct request request;
    struct slots slots;
    struct gzip *gzip;
    char order_by[WIRE_MEMBER_MAX + 1];
    char *authorization; /* of the proxy */
};

/* 0 or -ENOMEM. `*made` is NULL if bodies are not compressed. */
static int make_gzip(struct gzip **made, int level)
{
    *made = NULL;
    if (level == 0)
        return 0;
    struct gzip *gzip = malloc(sizeof *gzip);
    int error = gzip ? gzip_init(gzip, level) : -ENOMEM;
    if (error == 0)
        *made = gzip;
    else
        free(gzip);
    return error;
}

static void dispose_gzip(struct gzip *gzip)
{
    if (gzip)
        gzip_dispose(gzip);
    free(gzip);
}

static void drop_change(struct wire_change *change)
{
    if (!change)
        return;
    sodium_memzero(&change->options, sizeof change->options); /* secrets, too */
    request_dispose(&change->request);
    slots_dispose(&change->slots);
    dispose_gzip(change->gzip);
    if (change->authorization)
        sodium_memzero(change->authorization, strlen(change->authorization));
    free(change->authorization);
    free(change);
}

/* There is no connection, so nothing of the old options is in use. */
static void take_change(struct wire *w)
{
    struct wire_change *change = atomic_exchange(&w->change, NULL);
    enum wire_mode before = w->mode;
    struct request request = w->request;
    w->request = change->request;
    change->request = request;
    struct gzip *gzip = w->posting.gzip;
    w->posting.gzip = change->gzip;
    change->gzip = gzip;
    request_set_epoch(&w->request, w->epoch);
    free_lanes(w, 1);
    lane_dispose(w->lanes[0]);
    w->stirred = w->round = 0;
    destination_dispose(&w->destination);
    tls_session_dispose(&w->shared.session);
    set_options(w, &change->options);
    lane_init(w->lanes[0], &w->shared, 0);
    posting_change(w, &change->slots, before == w->mode);
    numbered_rewind(w);
    drop_change(change);
    delivery_recover(w);
}

static int copy_texts(struct wire_change *change, const struct wire_options *o)
{
    if (o->order_by) {
        snprintf(change->order_by, sizeof change->order_by, "%s", o->order_by);
        change->options.order_by = change->order_by;
    }
    if (o->proxied && o->proxy.authorization) {
        change->authorization = strdup(o->proxy.authorization);
        change->options.proxy.authorization = change->authorization;
        return change->authorization ? 0 : -ENOMEM;
    }
    return 0;
}

int wire_change(struct wire *w, const struct wire_options *options)
{
    const char *why;
    int error = wire_options_check(options, &why);
    if (error < 0)
        return error;
    struct wire_change *change = calloc(1, sizeof *change);
    if (!change)
        return -ENOMEM;
    change->options = *options;
    error = copy_texts(change, options);
    if (error == 0)
        error = request_init(&change->request, options);
    if (error == 0)
        error = slots_init(&change->slots, slots_limit(options->concurrency));
    if (error == 0)
        error = make_gzip(&change->gzip, options->gzip);
    if (error < 0) {
        drop_change(change);
        return error;
    }
    drop_change(atomic_exchange(&w->change, change));
    board_post(&w->loop->board, w->task.slot);
    return 0;
}

/* --- its life --- */

static int allocate(struct wire *w, const struct wire_options *options, const char *app, const char *output,
                    uint64_t queue_bytes, uint32_t max_record)
{
    int error = outlet_init(&w->outlet, "wire", app, output, queue_bytes, max_record);
    if (error == 0)
        error = request_init(&w->request, options);
    if (error == 0)
        error = slots_init(&w->posting.slots, slots_limit(options->concurrency));
    if (error == 0)
        error = make_gzip(&w->posting.gzip, options->gzip);
    if (error == 0 && !(w->lanes[0] = malloc(sizeof *w->lanes[0])))
        error = -ENOMEM;
    if (error == 0)
        error = loop_add(w->loop, &w->task);
    return error;
}

static void release(struct wire *w)
{
    free(w->lanes[0]);
    dispose_gzip(w->posting.gzip);
    slots_dispose(&w->posting.slots);
    request_dispose(&w->request);
    outlet_dispose(&w->outlet);
}

int wire_init(struct wire *w, const struct wire_options *options, const char *app, const char *output,
              uint64_t queue_bytes, uint32_t max_record, struct loop *loop, struct resolver *resolver,
              struct log *log)
{
    const char *why;
    int error = wire_options_check(options, &why);
    if (error < 0)
        return error;
    *w = (struct wire){.loop = loop, .resolver = resolver, .log = log, .task.run = run};
    error = allocate(w, options, app, output, queue_bytes, max_record);
    if (error < 0) {
        release(w);
        return error;
    }
    timer_init(&w->timer, timer_fired);
    memcpy(w->epoch, options->epoch, sizeof w->epoch);
    w->shared = (struct lane_shared){.loop = loop,
                                     .destination = &w->destination,
                                     .host = w->host,
                                     .stirred = lane_stirred,
                                     .due = lane_due};
    set_options(w, options);
    lane_init(w->lanes[0], &w->shared, 0);
    w->outlet.asks = true;
    w->outlet.consumer = &loop->board;
    w->outlet.consumer_slot = w->task.slot;
    return 0;
}

void wire_resume(struct wire *w, uint64_t failures, uint64_t failing_since_ms, bool disabled)
{
    delivery_resume(w, failures, failing_since_ms, disabled);
}

void wire_hurry(struct wire *w)
{
    atomic_store_explicit(&w->hurried, true, memory_order_relaxed);
    board_post(&w->loop->board, w->task.slot);
}

void wire_stop(struct wire *w)
{
    w->stopping = true;
    want(w);
}

bool wire_stopped(const struct wire *w)
{
    return w->stopping && all_gone(w);
}

void wire_dispose(struct wire *w)
{
    timer_unset(&w->loop->timers, &w->timer);
    loop_remove(w->loop, &w->task);
    drop_change(w->change);
    bool in_order = all_gone(w);
    free_lanes(w, 0);
    if (in_order)
        destination_dispose(&w->destination);
    else
        destination_abandon(&w->destination);
    tls_session_dispose(&w->shared.session);
    release(w);
}
