#include "wire/wire.h"

#include "wire/delivery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct wire *wire_of_stream(struct stream *s)
{
    return container_of(s, struct wire, stream);
}

static void want(struct wire *w)
{
    loop_want(w->loop, &w->task);
}

static uint64_t now(const struct wire *w)
{
    return w->loop->now_ns; /* of the wait's end, also in the callbacks of its completions */
}

/* Sets the timer only if it would come too late. Deadlines mostly move away from us, request by request; one
 * that fires too early just has a round look. */
static void arm(struct wire *w, uint64_t now_ns)
{
    uint64_t due_ns = connection_deadline_ns(&w->connection);
    if (w->rest_until_ns > now_ns && !w->disabled)
        due_ns = min_u64(due_ns, w->rest_until_ns);
    if (w->looking_up)
        due_ns = min_u64(due_ns, w->lookup_since_ns + w->connection.limits.progress_ns);
    if (due_ns < w->timer.due_ns)
        timer_set(&w->loop->timers, &w->timer, due_ns);
}

static void timer_fired(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    want(container_of(timer, struct wire, timer));
}

/* --- the stream's events: told to the connection, acted on in the next round, when all completions of the
 * batch are in --- */

static void stream_connected(struct stream *s)
{
    struct wire *w = wire_of_stream(s);
    connection_connected(&w->connection, now(w));
    stream_read(s, true);
    want(w);
}

static void stream_data(struct stream *s, const uint8_t *bytes, size_t size)
{
    struct wire *w = wire_of_stream(s);
    connection_received(&w->connection, now(w), span_of(bytes, size));
    want(w);
}

static void stream_ended(struct stream *s)
{
    struct wire *w = wire_of_stream(s);
    connection_ended(&w->connection);
    want(w);
}

static void stream_sent(struct stream *s, size_t size, bool all)
{
    (void)all;
    struct wire *w = wire_of_stream(s);
    uint64_t now_ns = now(w);
    connection_sent(&w->connection, now_ns, size);
    arm(w, now_ns);
    if (connection_ready(&w->connection))
        want(w);
}

static void stream_failed(struct stream *s, int error)
{
    struct wire *w = wire_of_stream(s);
    connection_failed(&w->connection, error);
    want(w);
}

static void stream_closed(struct stream *s)
{
    struct wire *w = wire_of_stream(s);
    connection_closed(&w->connection);
    want(w);
}

static const struct stream_events stream_events = {
    .connected = stream_connected,
    .data = stream_data,
    .ended = stream_ended,
    .sent = stream_sent,
    .failed = stream_failed,
    .closed = stream_closed,
};

/* --- names --- */

static void lookup_failed(struct wire *w, uint64_t now_ns, int error)
{
    if (w->addresses.count > 0)
        addresses_keep(&w->addresses, now_ns);
    else
        delivery_failed(w, now_ns, error, NULL);
}

static void looked_up(struct resolver_request *request, int error)
{
    struct wire *w = container_of(request, struct wire, name);
    uint64_t now_ns = now(w);
    w->looking_up = false;
    if (error == 0 && request->count > 0)
        addresses_learn(&w->addresses, request->addresses, request->count, now_ns);
    else
        lookup_failed(w, now_ns, error < 0 ? error : PE_NAME_NOT_FOUND);
    want(w);
}

static void look_up(struct wire *w, uint64_t now_ns)
{
    w->looking_up = true;
    w->lookup_since_ns = now_ns;
    w->resolver->lookup(w->resolver, &w->name);
}

static void stop_looking_up(struct wire *w)
{
    if (!w->looking_up)
        return;
    w->looking_up = false;
    w->resolver->cancel(w->resolver, &w->name);
}

static void check_lookup(struct wire *w, uint64_t now_ns)
{
    if (!w->looking_up || now_ns < w->lookup_since_ns + w->connection.limits.progress_ns)
        return;
    stop_looking_up(w);
    lookup_failed(w, now_ns, PE_NAME_FAILED);
}

/* --- connecting and sending --- */

static void start_connecting(struct wire *w, uint64_t now_ns)
{
    const struct resolver_address *to = addresses_current(&w->addresses);
    struct io_socket_options options = {.user_timeout_ms = w->user_timeout_ms};
    stream_init(&w->stream, w->loop->io, &stream_events, -1);
    int error = stream_connect(&w->stream, (const struct sockaddr *)&to->address, to->len, &options);
    if (error < 0) {
        addresses_failed(&w->addresses); /* its family may be what this system has not got */
        delivery_failed(w, now_ns, error, NULL);
        return;
    }
    connection_connect(&w->connection, now_ns);
}

/* A batch that was sent before is made of the same records again, so that its id stays true of it. */
static struct batch_limits lines_limits(const struct wire *w)
{
    if (w->promised.bytes <= w->next.bytes)
        return delivery_limits(w);
    return (struct batch_limits){.bytes = w->lines_size, .records = w->promised.records - w->next.records};
}

static int next_batch(struct wire *w, struct batch *batch)
{
    const struct record_queue *q = &w->outlet.queue;
    if (w->mode == WIRE_PURE) {
        struct batch_limits limits = delivery_limits(w);
        *batch = batch_framed(q, w->next, &limits);
    } else if (w->mode == WIRE_WEBHOOK) {
        *batch = batch_single(q, w->next);
    } else {
        if (!w->lines && !(w->lines = malloc(w->lines_size)))
            return -ENOMEM;
        struct batch_limits limits = lines_limits(w);
        *batch = batch_lines(q, w->next, &limits, w->lines);
        w->promised = batch->end;
    }
    return 0;
}

static void send_head_and_body(struct wire *w, uint64_t now_ns, const struct batch *batch, bool question)
{
    struct request_numbers numbers = {.first = batch->start.records + 1,
                                      .count = batch_count(batch),
                                      .base = outlet_base(&w->outlet),
                                      .sent = w->outlet.contact.reach,
                                      .attempt = w->failures + 1};
    if (w->mode != WIRE_PURE)
        numbers.wall_s = io_wall_ms(w->loop->io) / 1000;
    struct request_body body = {.content = batch->body, .bytes = batch->body.size};
    size_t head_size = request_write(&w->request, &numbers, &body, w->head, request_room(&w->request));
    uint64_t number = connection_begin(&w->connection, now_ns, head_size + batch->body.size);
    w->flights[number % CONNECTION_PIPELINE_MAX] = (struct wire_flight){*batch, w->series, question};
    counter_add(&w->outlet.report.requests, 1);
    struct iovec parts[] = {{w->head, head_size}, {(void *)batch->body.data, batch->body.size}};
    stream_send(&w->stream, parts, batch->body.size > 0 ? 2 : 1);
}

static void send_question(struct wire *w, uint64_t now_ns)
{
    struct batch none = {.start = w->next, .end = w->next};
    w->asking = true;
    send_head_and_body(w, now_ns, &none, true);
}

static void send_records(struct wire *w, uint64_t now_ns)
{
    struct batch batch;
    int error = next_batch(w, &batch);
    if (error < 0) {
        delivery_failed(w, now_ns, error, NULL);
        return;
    }
    send_head_and_body(w, now_ns, &batch, false);
    w->next = batch.end;
    w->sent_records = max_u64(w->sent_records, batch.end.records);
}

/* What is published, with `next` at or behind `freed`. Numbers that were lost are passed over. */
static void look(struct wire *w)
{
    outlet_look(&w->outlet);
    if (w->next.bytes <= w->outlet.queue.freed.bytes)
        w->next = w->outlet.queue.freed;
}

static bool waiting_records(struct wire *w)
{
    return w->outlet.queue.published_seen.bytes > w->next.bytes && !delivery_asking(w);
}

/* Whether records have to wait for what the receiver, and then the owner, says. */
static bool unclear(const struct wire *w)
{
    return w->mode == WIRE_PURE && !outlet_may_send(&w->outlet);
}

static bool may_send(const struct wire *w)
{
    return !unclear(w) || (outlet_contact(&w->outlet) == OUTLET_ASKING && !w->asking);
}

static void go_on(struct wire *w, uint64_t now_ns)
{
    struct connection *c = &w->connection;
    if (w->looking_up || now_ns < w->rest_until_ns || !waiting_records(w) || !may_send(w))
        return;
    if (c->phase == CONNECTION_NONE && addresses_lookup_due(&w->addresses, now_ns))
        look_up(w, now_ns);
    else if (c->phase == CONNECTION_NONE)
        start_connecting(w, now_ns);
    else if (connection_ready(c) && unclear(w))
        send_question(w, now_ns);
    else if (connection_ready(c))
        send_records(w, now_ns);
}

/* --- the round --- */

static bool changing(const struct wire *w)
{
    return atomic_load_explicit(&w->change, memory_order_relaxed) != NULL;
}

static void settle_answers(struct wire *w, uint64_t now_ns)
{
    uint64_t number;
    const struct answer *answer;
    while (connection_take(&w->connection, &number, &answer))
        delivery_answered(w, now_ns, &w->flights[number % CONNECTION_PIPELINE_MAX], answer);
}

/* The connection is gone and its answers are settled. What has none goes again: at once if a reused
 * connection just was not there any more, else as a failure, unless an answer before was the failure. A
 * connection that never carried an answer is a failure, whatever ended it. */
static void settle_closed(struct wire *w, uint64_t now_ns)
{
    struct connection *c = &w->connection;
    const struct wire_flight *oldest = &w->flights[c->answered % CONNECTION_PIPELINE_MAX];
    bool unanswered = connection_unanswered(c) && oldest->series == w->series;
    bool useless = c->begun == 0;
    bool failed = useless || (unanswered && !connection_go_again(c));
    if (unanswered)
        delivery_rewind(w);
    if (failed && !w->stopping && !w->disabled && !changing(w)) {
        addresses_failed(&w->addresses);
        delivery_failed(w, now_ns, c->error, NULL);
    }
    w->asking = false;
    connection_clear(c);
}

static void set_options(struct wire *w, const struct wire_options *o);

/* There is no connection, so nothing of the old request is in use. */
static void take_change(struct wire *w)
{
    struct wire_change *change = atomic_exchange(&w->change, NULL);
    stop_looking_up(w);
    request_dispose(&w->request);
    free(w->head);
    w->request = change->request;
    w->head = change->head;
    request_set_epoch(&w->request, w->epoch);
    set_options(w, &change->options);
    free(change);
    w->disabled = false;
    w->failures = 0;
    w->rest_until_ns = 0;
    outlet_report(&w->outlet, OUTLET_OK, 0, "", io_wall_ms(w->loop->io));
}

static bool run(struct task *task, uint64_t now_ns)
{
    struct wire *w = container_of(task, struct wire, task);
    struct connection *c = &w->connection;
    connection_tick(c, now_ns);
    check_lookup(w, now_ns);
    if (atomic_load_explicit(&w->hurried, memory_order_relaxed))
        w->rest_until_ns = min_u64(w->rest_until_ns, now_ns + DELIVERY_HURRIED_REST_NS);
    settle_answers(w, now_ns);
    delivery_settle_dead(w);
    delivery_settle_contact(w);
    look(w);
    if (c->phase == CONNECTION_CLOSED)
        settle_closed(w, now_ns);
    if (changing(w) && c->phase == CONNECTION_NONE)
        take_change(w);
    bool quiet = w->stopping || w->disabled;
    bool idle = c->done == c->begun; /* what ends no exchange waits for those that are under way */
    bool leave = w->stopping || ((w->disabled || changing(w)) && idle);
    if (c->phase != CONNECTION_NONE && (c->ending || leave))
        stream_close(&w->stream);
    else if (!quiet && !changing(w))
        go_on(w, now_ns);
    arm(w, now_ns);
    return false;
}

/* --- its life --- */

static void set_limits(struct wire *w, const struct wire_options *o)
{
    struct connection_limits limits = {.progress_ns = o->progress_ns,
                                       .reply_ns = o->reply_ns,
                                       .total_ns = o->total_ns,
                                       .pipeline = o->pipeline            ? o->pipeline
                                                   : o->mode == WIRE_PURE ? 2
                                                                          : 1};
    connection_init(&w->connection, &limits);
    w->user_timeout_ms = (uint32_t)min_u64(max_u64(o->progress_ns / NS_PER_MS, 1), INT32_MAX);
    w->limits = (struct batch_limits){o->batch_bytes, o->batch_records ? o->batch_records : UINT64_MAX};
    free(w->lines); /* made anew, in the new size, when it is needed */
    w->lines = NULL;
    w->lines_size = (size_t)max_u64(o->batch_bytes, (uint64_t)w->outlet.max_record + 1);
    backoff_init(&w->backoff, o->backoff_min_ns, o->backoff_max_ns, o->seed);
}

static void set_destination(struct wire *w, const struct url *url)
{
    snprintf(w->endpoint, sizeof w->endpoint, "http://%.100s", url->authority);
    addresses_init(&w->addresses, url->host, url->port, url->literal);
    w->name = (struct resolver_request){.done = looked_up, .port = url->port};
    memcpy(w->name.name, url->host, sizeof w->name.name);
}

static void set_options(struct wire *w, const struct wire_options *o)
{
    w->mode = o->mode;
    w->attempts = o->attempts;
    set_limits(w, o);
    set_destination(w, &o->url);
}

/* The request of these options, and memory for its heads. 0 or -ENOMEM. */
static int make_request(struct request *request, char **head, const struct wire_options *options)
{
    int error = request_init(request, options);
    if (error < 0)
        return error;
    *head = malloc(request_room(request));
    if (*head)
        return 0;
    request_dispose(request);
    return -ENOMEM;
}

int wire_init(struct wire *w, const struct wire_options *options, const char *app, const char *output,
              uint64_t queue_bytes, uint32_t max_record, struct loop *loop, struct resolver *resolver,
              struct log *log)
{
    const char *why;
    int error = wire_options_check(options, &why);
    if (error < 0)
        return error;
    *w = (struct wire){.loop = loop, .resolver = resolver, .log = log};
    error = outlet_init(&w->outlet, "wire", app, output, queue_bytes, max_record);
    if (error == 0)
        error = make_request(&w->request, &w->head, options);
    w->task.run = run;
    if (error == 0)
        error = loop_add(loop, &w->task);
    if (error < 0) {
        request_dispose(&w->request);
        free(w->head);
        outlet_dispose(&w->outlet);
        return error;
    }
    timer_init(&w->timer, timer_fired);
    memcpy(w->epoch, options->epoch, sizeof w->epoch);
    set_options(w, options);
    w->outlet.asks = true;
    w->outlet.consumer = &loop->board;
    w->outlet.consumer_slot = w->task.slot;
    return 0;
}

static void drop_change(struct wire_change *change)
{
    if (!change)
        return;
    request_dispose(&change->request);
    free(change->head);
    free(change);
}

int wire_change(struct wire *w, const struct wire_options *options)
{
    const char *why;
    int error = wire_options_check(options, &why);
    if (error < 0)
        return error;
    struct wire_change *change = malloc(sizeof *change);
    if (!change)
        return -ENOMEM;
    change->options = *options;
    error = make_request(&change->request, &change->head, &change->options);
    if (error < 0) {
        free(change);
        return error;
    }
    drop_change(atomic_exchange(&w->change, change));
    board_post(&w->loop->board, w->task.slot);
    return 0;
}

void wire_hurry(struct wire *w)
{
    atomic_store_explicit(&w->hurried, true, memory_order_relaxed);
    board_post(&w->loop->board, w->task.slot);
}

void wire_stop(struct wire *w)
{
    w->stopping = true;
    stop_looking_up(w);
    want(w);
}

bool wire_stopped(const struct wire *w)
{
    return w->stopping && w->connection.phase == CONNECTION_NONE;
}

void wire_dispose(struct wire *w)
{
    timer_unset(&w->loop->timers, &w->timer);
    loop_remove(w->loop, &w->task);
    drop_change(w->change);
    connection_clear(&w->connection);
    free(w->lines);
    request_dispose(&w->request);
    free(w->head);
    outlet_dispose(&w->outlet);
}
