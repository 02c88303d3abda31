#include "link/link.h"

#include "link/link_report.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#define SOCKET_BYTES   (1 << 20) /* SO_SNDBUF, SO_RCVBUF asked for */
#define RETRY_FIRST_NS (500 * NS_PER_MS)
#define RETRY_LAST_NS  (30 * NS_PER_S)
#define HURRIED_NS     (200 * NS_PER_MS)
#define SILENCE_NS     (10 * NS_PER_S) /* that is worth a line in the log */
#define LOOKUP_NS      (10 * NS_PER_S) /* a lookup that takes longer has failed */
#define FULL_NS        (3 * NS_PER_S)  /* a socket that takes nothing for so long is given up */
#define STOP_NS        NS_PER_S        /* for what is in flight, and the last words */

static void want(struct link *l)
{
    loop_want(l->loop, &l->task);
}

/* --- what comes --- */

static void take_datagram(struct link *l, uint8_t *bytes, uint32_t size)
{
    unsigned type = link_type_of(bytes, size);
    int error = link_sender_receive(&l->sender, l->loop->now_ns, bytes, size);
    counter_add(error == 0 ? &l->report.received : &l->report.dropped, 1);
    counter_add(&l->report.handshakes, error == 0 && type == LINK_REPLY);
    if (error == 0 && type != LINK_COOKIE) /* by which nothing gets through yet */
        link_heard(l);
}

/* Of a run that was cut off, the last one is not whole. */
static void take(struct link *l, const struct io_op *op)
{
    uint32_t segment = op->datagram.segment, size;
    for (uint32_t at = 0; at < op->size; at += size) {
        size = (uint32_t)min_u64(segment, op->size - at);
        if (op->datagram.truncated && at + size == op->size)
            counter_add(&l->report.dropped, 1);
        else
            take_datagram(l, op->data + at, size);
    }
}

static void end_socket(struct link_socket *s);

/* Nothing can be sent for a while. */
static void rest(struct link *l, int error)
{
    l->rest_until_ns = l->loop->now_ns + backoff_next(&l->backoff);
    link_trouble(l, error, true);
}

/* No error of one datagram ends a receive, and none that came with one is an answer (core/io.h): whatever
 * does is the socket's own trouble. */
static void received(struct io_op *op, int result, bool more)
{
    struct link_socket *s = container_of(op, struct link_socket, receive);
    struct link *l = s->link;
    if (result > 0)
        take(l, op);
    want(l);
    if (more)
        return;
    if (!s->closing && (result >= 0 || result == -ENOBUFS)) {
        io_queue(l->loop->io, op);
        return;
    }
    if (!s->closing)
        rest(l, result);
    end_socket(s);
}

/* --- sockets --- */

static void closed(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    struct link_socket *s = container_of(op, struct link_socket, close);
    s->fd = -1;
    s->closing = false;
    want(s->link);
}

/* As soon as nothing is in flight on it. Called again and again until then. What the system has not taken is
 * given up: it may never take it, and the buffers are needed. */
static void end_socket(struct link_socket *s)
{
    struct link *l = s->link;
    s->closing = true;
    if (l->socket == s)
        l->socket = NULL;
    io_cancel(l->loop->io, &s->receive);
    for (unsigned i = 0; i < LINK_BUFFERS && s->sending > 0; i++) {
        if (l->buffers[i].socket == s)
            io_cancel(l->loop->io, &l->buffers[i].op);
    }
    if (s->receive.in_flight || s->sending > 0 || s->close.in_flight)
        return;
    io_prepare(&s->close, IO_CLOSE, s->fd, closed);
    io_queue(l->loop->io, &s->close);
}

static struct link_socket *unused_socket(struct link *l)
{
    for (unsigned i = 0; i < LINK_SOCKETS; i++) {
        if (l->sockets[i].fd < 0)
            return &l->sockets[i];
    }
    return NULL;
}

/* A socket for the address whose turn it is, in the place of the one there is. 0 or a negative errno, EBUSY
 * while the one before closes: what there was stays. */
static int open_socket(struct link *l)
{
    const struct resolver_address *to = addresses_current(&l->addresses);
    struct link_socket *s = unused_socket(l);
    if (!s)
        return -EBUSY;
    struct sockaddr_storage any = {.ss_family = to->address.ss_family};
    struct io_datagram_options options = {.receive_bytes = SOCKET_BYTES, .send_bytes = SOCKET_BYTES};
    int fd = io_datagram_socket(l->loop->io, (const struct sockaddr *)&any, to->len, &options);
    if (fd < 0)
        return fd;
    *s = (struct link_socket){.link = l, .fd = fd, .segmentation = true};
    if (l->socket)
        end_socket(l->socket);
    l->socket = s;
    l->to = *to;
    counter_add(&l->report.ports, 1);
    io_prepare_datagram_receive(&s->receive, fd, received);
    io_queue(l->loop->io, &s->receive);
    return 0;
}

/* To the address whose turn it is, from a new port. A socket that still closes does not hold it up for longer
 * than that takes: the next time-out, which would be another occasion, is seconds away. */
static void move(struct link *l, uint64_t now_ns)
{
    int error = open_socket(l);
    l->moving = error == -EBUSY;
    if (error == 0)
        link_sender_moved(&l->sender, now_ns);
}

/* --- names --- */

static void look_up(struct link *l)
{
    if (l->addresses.literal || l->looking_up)
        return;
    l->looking_up = true;
    l->lookup_until_ns = l->loop->now_ns + LOOKUP_NS;
    counter_add(&l->report.lookups, 1);
    l->lookup.doubted = l->addresses.stale;
    l->resolver->lookup(l->resolver, &l->lookup);
}

static void stop_looking_up(struct link *l)
{
    if (l->looking_up)
        l->resolver->cancel(l->resolver, &l->lookup);
    l->looking_up = false;
}

static bool same(const struct resolver_address *a, const struct resolver_address *b)
{
    return a->len == b->len && memcmp(&a->address, &b->address, a->len) == 0;
}

/* The destination is what the name gives now. Where that is still among it, it stays: a name whose addresses
 * come in another order each time must not move a link whose answers are on their way. */
static void learn(struct link *l, uint64_t now_ns)
{
    struct addresses *a = &l->addresses;
    addresses_learn(a, &l->lookup, now_ns);
    for (unsigned i = 0; l->socket && i < a->count; i++) {
        if (!same(&l->to, &a->known[i]))
            continue;
        a->turn = i;
        return;
    }
    if (l->socket)
        move(l, now_ns);
}

/* What is known goes on to be used. */
static void lookup_failed(struct link *l, int error)
{
    addresses_keep(&l->addresses, l->loop->now_ns);
    if (l->addresses.count == 0)
        rest(l, error);
}

static void looked_up(struct resolver_request *request, int error)
{
    struct link *l = container_of(request, struct link, lookup);
    l->looking_up = false;
    if (error == 0 && request->count > 0)
        learn(l, l->loop->now_ns);
    else
        lookup_failed(l, error < 0 ? error : PE_NAME_NOT_FOUND);
    want(l);
}

static void check_lookup(struct link *l, uint64_t now_ns)
{
    if (!l->looking_up || now_ns < l->lookup_until_ns)
        return;
    stop_looking_up(l);
    lookup_failed(l, PE_NAME_FAILED);
}

/* Within link_sender_fill. */
static void want_lookup(void *context)
{
    struct link *l = context;
    uint64_t now_ns = l->loop->now_ns;
    if (l->stopping)
        return;
    link_trouble(l, l->send_error ? l->send_error : PE_LINK_SILENT,
                 now_ns - l->sender.heard_ns >= SILENCE_NS);
    addresses_failed(&l->addresses);
    look_up(l);
    move(l, now_ns);
}

/* Whether there is something to send, and nothing to send it from. */
static bool lacks_socket(const struct link *l)
{
    return !l->socket && !l->stopping && l->sender.outputs.holding > 0;
}

static void get_ready(struct link *l, uint64_t now_ns)
{
    if (l->looking_up || now_ns < l->rest_until_ns || !unused_socket(l))
        return;
    if (addresses_lookup_due(&l->addresses, now_ns)) {
        look_up(l);
        return;
    }
    int error = open_socket(l);
    if (error == 0) {
        link_sender_moved(&l->sender, now_ns);
        return;
    }
    addresses_failed(&l->addresses); /* its family may be what this system has not got */
    rest(l, error);
}

/* --- what goes --- */

static void free_buffer(struct link_buffer *b)
{
    struct link *l = b->link;
    b->next = l->free;
    l->free = b;
    l->full_ns = NEVER;
    b->socket->sending--;
    if (b->socket->closing)
        end_socket(b->socket);
    want(l);
}

static void sent(struct io_op *op, int result, bool more);

static void send_bytes(struct link_buffer *b, uint32_t from, uint32_t bytes)
{
    struct link *l = b->link;
    uint16_t segment = bytes > b->batch.segment ? (uint16_t)b->batch.segment : 0;
    io_prepare_datagram_send(&b->op, b->socket->fd, b->bytes + from, bytes, segment,
                             (const struct sockaddr *)&l->to.address, l->to.len, sent);
    io_queue(l->loop->io, &b->op);
    counter_add(&l->report.sends, 1);
}

/* All of a batch is refused where the system cannot cut it up; it does not say so in one way only. If its
 * datagrams are taken, that was why. */
static bool refuses_segments(const struct link_buffer *b, int result)
{
    return b->gone == 0 && b->batch.count > 1 &&
           (result == -EIO || result == -EINVAL || result == -EMSGSIZE || result == -EOPNOTSUPP);
}

static void end_refused(struct link_buffer *b)
{
    struct link *l = b->link;
    if (!b->refused || b->failed || b->gone < b->batch.bytes)
        return;
    b->socket->segmentation = false;
    if (l->told_segmentation)
        return;
    l->told_segmentation = true;
    log_line(l->log, LOG_NOTICE,
             "link to %s: the system does not segment datagrams on this path; they are sent one by one",
             l->name);
}

/* Errors are losses, as on the way: the destination may be reachable soon, or elsewhere. */
static void judge(struct link_buffer *b, int result)
{
    struct link *l = b->link;
    b->failed |= result < 0;
    if (result == -EMSGSIZE) {
        b->too_large = true;
        link_sender_too_large(&l->sender, l->loop->now_ns, b->op.size - 1);
    } else if (!b->socket->closing) {
        l->send_error = result < 0 ? result : 0;
    }
}

/* The next datagram of a batch that goes one by one. False: there is none. */
static bool send_next(struct link_buffer *b)
{
    uint32_t left = b->batch.bytes - b->gone, bytes = (uint32_t)min_u64(left, b->batch.segment);
    if (left == 0 || b->too_large || b->socket->closing)
        return false;
    send_bytes(b, b->gone, bytes);
    b->gone += bytes;
    return true;
}

/* The line of a socket is of batches that go one by one, one batch at a time: all at once they would get
 * there in such disorder that much were taken as lost. */
static void advance(struct link_socket *s)
{
    while (s->line && !send_next(s->line)) {
        struct link_buffer *b = s->line;
        s->line = b->next;
        end_refused(b);
        free_buffer(b);
    }
    want(s->link); /* the loop must not wait before it has handed over what comes next */
}

static void line_up(struct link_buffer *b)
{
    struct link_buffer **at = &b->socket->line;
    while (*at)
        at = &(*at)->next;
    b->next = NULL;
    *at = b;
    if (b->socket->line == b)
        advance(b->socket);
}

static void sent(struct io_op *op, int result, bool more)
{
    (void)more;
    struct link_buffer *b = container_of(op, struct link_buffer, op);
    struct link_socket *s = b->socket;
    if (result < 0)
        counter_add(&b->link->report.send_errors, 1);
    if (refuses_segments(b, result)) {
        b->refused = true;
        line_up(b);
        return;
    }
    judge(b, result);
    if (s->line == b)
        advance(s);
    else
        free_buffer(b);
}

static bool fill(struct link *l, uint64_t now_ns)
{
    struct link_buffer *b = l->free;
    struct link_batch batch;
    if (!link_sender_fill(&l->sender, now_ns, b->bytes, LINK_BATCH_BYTES, &batch))
        return false;
    l->free = b->next;
    b->socket = l->socket;
    b->batch = batch;
    b->gone = 0;
    b->refused = b->failed = b->too_large = false;
    b->socket->sending++;
    counter_add(&l->report.packets, batch.count);
    counter_add(&l->report.bytes, batch.bytes);
    if (b->socket->line || (batch.count > 1 && !b->socket->segmentation))
        line_up(b);
    else
        send_bytes(b, 0, batch.bytes);
    return true;
}

/* --- the round --- */

static void arm(struct link *l, uint64_t now_ns)
{
    uint64_t due_ns = NEVER;
    if (l->socket)
        due_ns = l->free ? link_sender_deadline_ns(&l->sender, now_ns) : l->full_ns + FULL_NS;
    else if (lacks_socket(l) && !l->looking_up && unused_socket(l))
        due_ns = max_u64(l->rest_until_ns, now_ns);
    if (l->looking_up)
        due_ns = min_u64(due_ns, l->lookup_until_ns);
    if (due_ns < l->timer.due_ns)
        timer_set(&l->loop->timers, &l->timer, due_ns);
}

static void timer_fired(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    want(container_of(timer, struct link, timer));
}

/* What is in flight and the last words leave, for STOP_NS at most; then the sockets close. */
static void stop_round(struct link *l, uint64_t now_ns)
{
    bool words =
        l->socket && (l->socket->sending > 0 || link_sender_deadline_ns(&l->sender, now_ns) != NEVER);
    if (words && now_ns < l->stop_until_ns) {
        timer_set(&l->loop->timers, &l->timer, l->stop_until_ns);
        return;
    }
    timer_unset(&l->loop->timers, &l->timer);
    for (unsigned i = 0; i < LINK_SOCKETS; i++) {
        if (l->sockets[i].fd >= 0)
            end_socket(&l->sockets[i]);
    }
}

/* Time-outs pass within link_sender_fill, which wants a free buffer: it is not waited for without end. */
static void check_full(struct link *l, uint64_t now_ns)
{
    if (l->free || !l->socket)
        return;
    if (l->full_ns == NEVER)
        l->full_ns = now_ns;
    if (now_ns - l->full_ns < FULL_NS)
        return;
    rest(l, -ENOBUFS);
    end_socket(l->socket);
}

static void hurry(struct link *l, uint64_t now_ns)
{
    if (!atomic_load_explicit(&l->hurried, memory_order_relaxed))
        return;
    l->rest_until_ns = min_u64(l->rest_until_ns, now_ns + HURRIED_NS);
    link_sender_hurry(&l->sender, now_ns + HURRIED_NS);
}

static bool run(struct task *task, uint64_t now_ns)
{
    struct link *l = container_of(task, struct link, task);
    hurry(l, now_ns);
    check_lookup(l, now_ns);
    if (lacks_socket(l))
        get_ready(l, now_ns);
    else if (l->moving && l->socket && !l->stopping && unused_socket(l))
        move(l, now_ns);
    bool more = l->socket && l->free;
    while (more)
        more = fill(l, now_ns) && l->socket && l->free;
    check_full(l, now_ns);
    if (l->stopping)
        stop_round(l, now_ns);
    else
        arm(l, now_ns);
    link_report(l);
    return false;
}

static bool pushed(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    struct link_outlet *o = container_of(task, struct link_outlet, task);
    outputs_pushed(&o->link->sender.outputs, &o->output);
    want(o->link);
    return false;
}

/* --- its life --- */

static int init_buffers(struct link *l)
{
    l->memory = malloc((size_t)LINK_BUFFERS * LINK_BATCH_BYTES);
    if (!l->memory)
        return -ENOMEM;
    for (unsigned i = 0; i < LINK_BUFFERS; i++) {
        l->buffers[i] = (struct link_buffer){
            .link = l, .next = l->free, .bytes = l->memory + (size_t)i * LINK_BATCH_BYTES};
        l->free = &l->buffers[i];
    }
    return 0;
}

static int init_sender(struct link *l, const struct link_options *options)
{
    const struct link_sender_options sender = {.key = options->key,
                                               .remote_public = options->remote_public,
                                               .indices = &l->indices,
                                               .random = options->random,
                                               .ciphers = options->ciphers,
                                               .outputs = options->outputs,
                                               .sent_packets = SENT_PACKETS,
                                               .mtu_limit = options->mtu};
    const struct link_sender_events events = {
        .outputs = {link_stored, link_refused, l}, .want_lookup = want_lookup, .context = l};
    int error = indices_init(&l->indices, INITIATOR_INDICES);
    if (error == 0 && (error = link_sender_init(&l->sender, &sender, &events, l->loop->now_ns)) < 0)
        indices_dispose(&l->indices);
    return error;
}

int link_init(struct link *l, const struct link_options *options, struct loop *loop,
              struct resolver *resolver, struct log *log)
{
    *l = (struct link){
        .loop = loop, .log = log, .resolver = resolver, .name = options->name, .full_ns = NEVER};
    l->task.run = run;
    timer_init(&l->timer, timer_fired);
    for (unsigned i = 0; i < LINK_SOCKETS; i++)
        l->sockets[i] = (struct link_socket){.link = l, .fd = -1};
    addresses_init(&l->addresses, options->host, options->port, options->literal);
    l->lookup = (struct resolver_request){.done = looked_up, .port = options->port};
    snprintf(l->lookup.name, sizeof l->lookup.name, "%s", options->host);
    backoff_init(&l->backoff, RETRY_FIRST_NS, RETRY_LAST_NS, noise_random_u64(&options->random));
    int error = init_buffers(l);
    if (error == 0)
        error = init_sender(l, options);
    if (error == 0 && (error = loop_add(loop, &l->task)) < 0) {
        link_sender_dispose(&l->sender);
        indices_dispose(&l->indices);
    }
    if (error < 0)
        free(l->memory);
    return error;
}

int link_add(struct link *l, struct link_outlet *o, const char *app, const char *output, uint64_t queue_bytes,
             uint32_t max_record, const uint8_t epoch[FRAME_EPOCH_BYTES], const char *target,
             const char *event)
{
    *o = (struct link_outlet){.link = l, .task.run = pushed};
    int error = outlet_init(&o->outlet, "link", app, output, queue_bytes, max_record);
    if (error == 0)
        error = loop_add(l->loop, &o->task);
    if (error == 0 && (error = outputs_add(&l->sender.outputs, &o->output, &o->outlet, epoch,
                                           span_text(target), span_text(event))) < 0)
        loop_remove(l->loop, &o->task);
    if (error < 0) {
        outlet_dispose(&o->outlet);
        return error;
    }
    o->outlet.asks = true;
    o->outlet.consumer = &l->loop->board;
    o->outlet.consumer_slot = o->task.slot;
    return 0;
}

void link_hurry(struct link *l)
{
    atomic_store_explicit(&l->hurried, true, memory_order_relaxed);
    board_post(&l->loop->board, l->task.slot);
}

void link_stop(struct link *l)
{
    if (l->stopping)
        return;
    l->stopping = true;
    l->stop_until_ns = l->loop->now_ns + STOP_NS;
    stop_looking_up(l);
    link_sender_close(&l->sender);
    want(l);
}

bool link_stopped(const struct link *l)
{
    for (unsigned i = 0; i < LINK_SOCKETS; i++) {
        if (l->sockets[i].fd >= 0)
            return false;
    }
    return l->stopping;
}

void link_dispose(struct link *l)
{
    timer_unset(&l->loop->timers, &l->timer);
    loop_remove(l->loop, &l->task);
    for (uint32_t i = 0; i < l->sender.outputs.count; i++) {
        struct link_outlet *o = container_of(l->sender.outputs.list[i], struct link_outlet, output);
        loop_remove(l->loop, &o->task);
        outlet_dispose(&o->outlet);
    }
    link_sender_dispose(&l->sender);
    indices_dispose(&l->indices);
    free(l->memory);
}
