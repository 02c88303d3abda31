#include "link/link_listener.h"

#include "core/error.h"
#include "link/link_filter.h"

#include <errno.h>
#include <stdlib.h>

#define RECEIVE_BYTES    (4u << 20) /* of the socket's buffer: some milliseconds of a fast peer */
#define PAUSE_NS         (100 * NS_PER_MS)
#define REPORT_NS        (60 * NS_PER_S)
#define STOP_NS          NS_PER_S
#define ANSWERS_INFLIGHT (LINK_LISTENER_SENDS / 2)

_Static_assert(LINK_ANSWER_BYTES <= LINK_RECEIVER_BYTES, "an answer fits into a send buffer");

/* --- what goes --- */

static void sent(struct io_op *op, int result, bool more)
{
    struct link_listener_send *send = container_of(op, struct link_listener_send, op);
    struct link_listener *l = send->listener;
    (void)more;
    if (result < 0)
        counter_add(&l->report.send_errors, 1);
    bool waited_for = !l->free || l->stopping;
    l->answers_in_flight -= send->answers;
    l->in_flight--;
    send->next = l->free;
    l->free = send;
    if (waited_for)
        loop_want(l->loop, &l->task);
}

/* The first free buffer, which is filled already, leaves. */
static void send_free(struct link_listener *l, size_t size, const struct link_address *to, bool answers)
{
    struct link_listener_send *send = l->free;
    l->free = send->next;
    l->in_flight++;
    l->answers_in_flight += answers;
    send->answers = answers;
    io_prepare_datagram_send(&send->op, l->fd, send->bytes, (uint32_t)size, 0,
                             (const struct sockaddr *)&to->address, to->len, sent);
    io_queue(l->loop->io, &send->op);
    counter_add(&l->report.sent, 1);
    counter_add(&l->report.answers, answers);
}

/* Each peer's turn is a datagram: when the buffers are spent, those who had none go on first. */
static void fill(struct link_listener *l, uint64_t now_ns)
{
    while (l->free) {
        const struct link_address *to;
        size_t size = link_receiver_fill(&l->receiver, now_ns, l->free->bytes, &to);
        if (size == 0)
            return;
        send_free(l, size, to, false);
    }
}

/* --- what comes --- */

/* An INIT for whose answer there is no buffer is not worth its handshake: it comes again. */
static bool answerable(const struct link_listener *l, const uint8_t *datagram, size_t size)
{
    return link_type_of(datagram, size) != LINK_INIT || (l->free && l->answers_in_flight < ANSWERS_INFLIGHT);
}

/* 0, or why it was dropped. */
static int take_datagram(struct link_listener *l, const struct link_address *source, uint8_t *datagram,
                         size_t size)
{
    if (!answerable(l, datagram, size))
        return PE_LINK_BUSY;
    uint8_t *answer = l->free ? l->free->bytes : NULL; /* of an INIT only, which has one */
    int result = link_receiver_receive(&l->receiver, l->loop->now_ns, source, datagram, size, answer);
    if (result > 0)
        send_free(l, (size_t)result, source, true);
    return result < 0 ? result : 0;
}

/* How many bytes of a receive are whole datagrams. */
static size_t whole(const struct io_op *op, size_t size)
{
    if (!op->datagram.truncated || size == 0)
        return size;
    size_t rest = size % op->datagram.segment;
    return size - (rest > 0 ? rest : op->datagram.segment);
}

/* A datagram, or a run of them that the kernel put together. */
static void take_run(struct link_listener *l, struct io_op *op, size_t size)
{
    struct link_address source = {.address = op->datagram.address, .len = op->datagram.address_len};
    size_t end = whole(op, size), segment = op->datagram.segment;
    uint64_t count = 0, dropped = size > end || size == 0, unopened = 0;
    for (size_t at = 0; at < end; at += segment, count++) {
        int error = take_datagram(l, &source, op->data + at, min_size(segment, end - at));
        dropped += error < 0;
        unopened += error == PE_LINK_QUOTA;
    }
    counter_add(&l->report.datagrams, count + (size > end || size == 0));
    counter_add(&l->report.bytes, size);
    counter_add(&l->report.dropped, dropped);
    counter_add(&l->report.unopened, unopened);
}

static void receive(struct link_listener *l);

/* It cannot be told what is wrong, nor for how long: receiving goes on after a pause. */
static void receive_failed(struct link_listener *l, int error)
{
    uint64_t now_ns = l->loop->now_ns;
    l->receive_again_ns = now_ns + PAUSE_NS;
    if (now_ns < l->report_ns)
        return;
    l->report_ns = now_ns + REPORT_NS;
    log_line(l->log, LOG_ERROR, "links: cannot receive: %s; trying on", pure_error_text(error));
}

static void received(struct io_op *op, int result, bool more)
{
    struct link_listener *l = container_of(op, struct link_listener, receive);
    bool passing = result >= 0 || result == -ENOBUFS || result == -EINTR || result == -EAGAIN;
    if (result >= 0 && !l->stopping)
        take_run(l, op, (size_t)result);
    if (!more && !l->stopping && passing)
        receive(l); /* when it is handed over, all buffers of this batch are free again */
    else if (!more && !l->stopping)
        receive_failed(l, result);
    loop_want(l->loop, &l->task);
}

static void receive(struct link_listener *l)
{
    l->receive_again_ns = NEVER;
    io_prepare_datagram_receive(&l->receive, l->fd, received);
    io_queue(l->loop->io, &l->receive);
}

static void unknown(void *context, const uint8_t key[LINK_KEY_BYTES], uint64_t times)
{
    const struct link_listener *l = context;
    char text[HOST_KEY_PUBLIC_TEXT];
    host_key_public_text(key, text);
    log_line(
        l->log, LOG_WARNING,
        "links: a host that is not let in tried to send here (tries since the last such line: %llu); if it "
        "may, add a section [peer NAME] with key = %s",
        (unsigned long long)times, text);
}

/* --- rounds --- */

static void closed(struct io_op *op, int result, bool more)
{
    struct link_listener *l = container_of(op, struct link_listener, close);
    (void)result, (void)more;
    l->fd = -1;
}

static void cancel_sends(struct link_listener *l)
{
    for (unsigned i = 0; i < LINK_LISTENER_SENDS; i++)
        io_cancel(l->loop->io, &l->sends[i].op);
}

/* The last words leave, for STOP_NS at most; then what is in flight is given up, then the socket. */
static void stop_round(struct link_listener *l, uint64_t now_ns)
{
    if (now_ns < l->stop_ends_ns)
        fill(l, now_ns);
    else
        cancel_sends(l);
    if (l->in_flight > 0 || l->receive.in_flight) {
        timer_set(&l->loop->timers, &l->timer, now_ns < l->stop_ends_ns ? l->stop_ends_ns : NEVER);
        return;
    }
    timer_unset(&l->loop->timers, &l->timer);
    if (l->fd < 0 || l->close.in_flight)
        return;
    io_prepare(&l->close, IO_CLOSE, l->fd, closed);
    io_queue(l->loop->io, &l->close);
}

/* Without a free buffer the next completion of a send brings the next round. */
static uint64_t next_ns(const struct link_listener *l)
{
    uint64_t due_ns = l->free ? link_receiver_deadline_ns(&l->receiver) : NEVER;
    return min_u64(due_ns, l->receive_again_ns);
}

static bool run(struct task *task, uint64_t now_ns)
{
    struct link_listener *l = container_of(task, struct link_listener, task);
    if (l->stopping) {
        stop_round(l, now_ns);
        return false;
    }
    if (now_ns >= l->receive_again_ns)
        receive(l);
    link_receiver_deliver(&l->receiver);
    fill(l, now_ns);
    timer_set(&l->loop->timers, &l->timer, next_ns(l));
    return false;
}

static void timer_fired(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    link_listener_want(container_of(timer, struct link_listener, timer));
}

void link_listener_want(struct link_listener *l)
{
    loop_want(l->loop, &l->task);
}

/* --- beginning and end --- */

static int make_sends(struct link_listener *l)
{
    l->sends = calloc(LINK_LISTENER_SENDS, sizeof *l->sends);
    if (!l->sends)
        return -ENOMEM;
    for (unsigned i = LINK_LISTENER_SENDS; i-- > 0;) {
        l->sends[i].listener = l;
        l->sends[i].next = l->free;
        l->free = &l->sends[i];
    }
    return 0;
}

static int make_receiver(struct link_listener *l, const struct link_listener_options *options,
                         const struct link_consumer *consumer)
{
    struct link_receiver_options receiver = options->receiver;
    receiver.unknown = unknown;
    receiver.unknown_context = l;
    return link_receiver_init(&l->receiver, &receiver, consumer, l->loop->now_ns);
}

static int start(struct link_listener *l, const struct link_listener_options *options)
{
    struct sock_filter filter[LINK_FILTER_LENGTH];
    uint8_t mark = (uint8_t)noise_random_u64(&l->receiver.responder.random);
    link_filter_make(filter, mark);
    indices_mark(&l->receiver.responder.indices, mark);
    const struct io_datagram_options sockets = {
        .receive_bytes = RECEIVE_BYTES, .filter = filter, .filter_length = LINK_FILTER_LENGTH};
    int error = loop_add(l->loop, &l->task);
    if (error < 0)
        return error;
    l->fd = io_datagram_socket(l->loop->io, options->address, options->address_len, &sockets);
    if (l->fd < 0) {
        loop_remove(l->loop, &l->task);
        return l->fd;
    }
    receive(l);
    return 0;
}

int link_listener_init(struct link_listener *l, const struct link_listener_options *options,
                       const struct link_consumer *consumer, struct loop *loop, struct log *log)
{
    *l = (struct link_listener){
        .loop = loop, .log = log, .task.run = run, .fd = -1, .receive_again_ns = NEVER};
    timer_init(&l->timer, timer_fired);
    int error = make_sends(l);
    if (error < 0)
        return error;
    error = make_receiver(l, options, consumer);
    if (error == 0 && (error = start(l, options)) < 0)
        link_receiver_dispose(&l->receiver);
    if (error < 0)
        free(l->sends);
    return error;
}

void link_listener_stop(struct link_listener *l)
{
    if (l->stopping)
        return;
    l->stopping = true;
    l->stop_ends_ns = l->loop->now_ns + STOP_NS;
    link_receiver_close(&l->receiver);
    io_cancel(l->loop->io, &l->receive);
    loop_want(l->loop, &l->task);
}

bool link_listener_stopped(const struct link_listener *l)
{
    return l->stopping && l->fd < 0;
}

void link_listener_dispose(struct link_listener *l)
{
    loop_remove(l->loop, &l->task);
    timer_unset(&l->loop->timers, &l->timer);
    link_receiver_dispose(&l->receiver);
    free(l->sends);
}
