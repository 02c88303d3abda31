#include "wire/dial.h"

#include "wire/tunnel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct dial_tunnel {
    struct tunnel tunnel;
    struct dial *dial;
};

static struct loop *loop_of(const struct dial *dial)
{
    return dial->destination->loop;
}

static uint64_t now(const struct dial *dial)
{
    return loop_of(dial)->now_ns; /* of the wait's end, also in the callbacks of its completions */
}

/* What is to be done at once is done in the next step, too: `done` is never called from inside a call of its
 * owner's. */
static void wake_at(struct dial *dial, uint64_t due_ns)
{
    timer_set(&loop_of(dial)->timers, &dial->timer, due_ns);
}

static void wake(struct dial *dial)
{
    wake_at(dial, now(dial));
}

/* --- the end --- */

static void closed(struct io_op *op, int result, bool more)
{
    (void)result, (void)more;
    struct dial_attempt *a = container_of(op, struct dial_attempt, op);
    a->fd = -1;
    if (a->dial->phase == DIAL_ENDING)
        wake(a->dial);
}

static void close_attempt(struct dial_attempt *a)
{
    io_prepare(&a->op, IO_CLOSE, a->fd, closed);
    io_queue(loop_of(a->dial)->io, &a->op);
}

/* Of these, the connect's completion closes them. */
static void give_up(struct dial_attempt *a)
{
    a->given_up = true;
    if (a->connecting)
        io_cancel(loop_of(a->dial)->io, &a->op);
}

static void give_up_all(struct dial *dial)
{
    for (unsigned i = 0; i < dial->begun; i++)
        give_up(&dial->attempts[i]);
}

/* `error`: 0 if there is a winner. */
static void end(struct dial *dial, int error)
{
    dial->phase = DIAL_ENDING;
    dial->error = error;
    give_up_all(dial);
    wake(dial);
}

static void fail(struct dial *dial, int error)
{
    destination_failed(dial->destination);
    end(dial, error);
}

static bool all_closed(const struct dial *dial)
{
    for (unsigned i = 0; i < dial->begun; i++) {
        const struct dial_attempt *a = &dial->attempts[i];
        if (a != dial->winner && a->fd >= 0)
            return false;
    }
    return !dial->tunnel_open;
}

static void report_when_closed(struct dial *dial)
{
    if (!all_closed(dial))
        return; /* the last one wakes it */
    int fd = dial->winner ? dial->winner->fd : -1;
    free(dial->tunnel);
    dial->tunnel = NULL;
    dial->phase = DIAL_IDLE;
    dial->done(dial, fd, dial->error);
}

/* --- the tunnel --- */

static void tunnel_done(struct tunnel *t, int error)
{
    struct dial *dial = container_of(t, struct dial_tunnel, tunnel)->dial;
    dial->tunnel_open = false;
    if (dial->phase == DIAL_ENDING) { /* stopped */
        wake(dial);
    } else if (error == 0) {
        dial->winner->fd = tunnel_fd(t);
        end(dial, 0);
    } else {
        dial->winner = NULL;
        snprintf(dial->text, sizeof dial->text, "%s", t->text);
        fail(dial, error);
    }
}

static void start_tunnel(struct dial *dial)
{
    const struct destination *d = dial->destination;
    dial->tunnel = d->connect ? malloc(sizeof *dial->tunnel) : NULL;
    if (!dial->tunnel) {
        close_attempt(dial->winner);
        dial->winner = NULL;
        fail(dial, -ENOMEM);
        return;
    }
    dial->phase = DIAL_TUNNELLING;
    give_up_all(dial);
    dial->tunnel->dial = dial;
    dial->tunnel_open = true;
    tunnel_start(&dial->tunnel->tunnel, d->loop->io, dial->winner->fd, span_of(d->connect, d->connect_size),
                 tunnel_done);
    dial->winner->fd = -1;
    wake_at(dial, now(dial) + d->progress_ns);
}

static void tunnel_late(struct dial *dial)
{
    tunnel_stop(&dial->tunnel->tunnel, PE_CONNECT_TIMEOUT, "the proxy does not answer CONNECT");
}

/* --- the race --- */

/* What says that there is no way to the address from here tells less than what came from there. */
static bool no_way(int error)
{
    return error == -EAFNOSUPPORT || error == -ENETUNREACH || error == -EHOSTUNREACH ||
           error == -EADDRNOTAVAIL;
}

static void blame(struct dial *dial, const struct dial_attempt *a, int error)
{
    if (dial->error < 0 && (!no_way(dial->error) || no_way(error)))
        return;
    dial->error = error;
    dial->blamed = (unsigned)(a - dial->attempts);
}

static void won(struct dial *dial, struct dial_attempt *a)
{
    dial->winner = a;
    destination_connected(dial->destination, &a->to);
    if (dial->destination->tunnelled)
        start_tunnel(dial);
    else
        end(dial, 0);
}

static void connected(struct io_op *op, int result, bool more)
{
    (void)more;
    struct dial_attempt *a = container_of(op, struct dial_attempt, op);
    struct dial *dial = a->dial;
    a->connecting = false;
    if (result == 0 && !a->given_up) {
        won(dial, a);
        return;
    }
    close_attempt(a);
    if (a->given_up)
        return;
    blame(dial, a, result);
    dial->next_ns = now(dial);
    wake(dial);
}

/* Returns whether there is something to wait for. */
static bool begin_attempt(struct dial *dial, uint64_t now_ns)
{
    const struct destination *d = dial->destination;
    struct dial_attempt *a = &dial->attempts[dial->begun++];
    struct io_socket_options options = {
        .user_timeout_ms = (uint32_t)min_u64(max_u64(d->progress_ns / NS_PER_MS, 1), INT32_MAX)};
    a->fd = io_socket(d->loop->io, a->to.address.ss_family, &options);
    if (a->fd < 0) {
        blame(dial, a, a->fd);
        return false;
    }
    a->connecting = true;
    a->since_ns = now_ns;
    io_prepare_connect(&a->op, a->fd, (const struct sockaddr *)&a->to.address, a->to.len, connected);
    io_queue(d->loop->io, &a->op);
    return true;
}

static void give_up_late(struct dial *dial, uint64_t now_ns)
{
    for (unsigned i = 0; i < dial->begun; i++) {
        struct dial_attempt *a = &dial->attempts[i];
        if (!a->connecting || a->given_up || now_ns < a->since_ns + dial->destination->progress_ns)
            continue;
        blame(dial, a, PE_CONNECT_TIMEOUT);
        give_up(a);
        dial->next_ns = now_ns;
    }
}

/* When the first of the attempts is late; NEVER if none is under way. */
static uint64_t late_ns(const struct dial *dial)
{
    uint64_t due_ns = NEVER;
    for (unsigned i = 0; i < dial->begun; i++) {
        const struct dial_attempt *a = &dial->attempts[i];
        if (a->connecting && !a->given_up)
            due_ns = min_u64(due_ns, a->since_ns + dial->destination->progress_ns);
    }
    return due_ns;
}

/* Names the attempt that is blamed, for people. */
static void describe(struct dial *dial)
{
    char host[INET6_ADDRSTRLEN] = "", others[24] = "";
    const struct sockaddr_storage *at = &dial->attempts[dial->blamed].to.address;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)at;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)at;
    bool six = at->ss_family == AF_INET6;
    const void *ip = six ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr;
    inet_ntop(at->ss_family, ip, host, sizeof host);
    if (dial->count > 1)
        snprintf(others, sizeof others, " and %u other%s", dial->count - 1, dial->count > 2 ? "s" : "");
    snprintf(dial->text, sizeof dial->text, six ? "%s[%s]:%u%s" : "%s%s:%u%s",
             dial->destination->proxied ? "the proxy " : "", host, ntohs(six ? v6->sin6_port : v4->sin_port),
             others);
}

static void race(struct dial *dial, uint64_t now_ns)
{
    give_up_late(dial, now_ns);
    while (dial->begun < dial->count && now_ns >= dial->next_ns) {
        if (begin_attempt(dial, now_ns))
            dial->next_ns = now_ns + DIAL_DELAY_NS;
    }
    uint64_t due_ns = late_ns(dial);
    if (dial->begun < dial->count)
        due_ns = min_u64(due_ns, dial->next_ns);
    if (due_ns < NEVER) {
        wake_at(dial, due_ns);
        return;
    }
    describe(dial);
    fail(dial, dial->error);
}

/* --- the start --- */

static void fail_without_address(struct dial *dial, int error)
{
    snprintf(dial->text, sizeof dial->text, "%s", dial->destination->proxied ? "the proxy" : "");
    fail(dial, error);
}

static void fail_denied(struct dial *dial)
{
    char why[NETWORKS_WHY_MAX];
    bool proxy = dial->destination->proxied && destination_permitted(dial->destination);
    destination_why_denied(dial->destination, why);
    snprintf(dial->text, sizeof dial->text, "%s%.110s", proxy ? "the proxy: " : "", why);
    fail(dial, PE_NAME_DENIED);
}

static void start_race(struct dial *dial, uint64_t now_ns)
{
    struct resolver_address order[RESOLVER_ADDRESSES];
    dial->count = destination_order(dial->destination, order);
    if (dial->count == 0) {
        fail_denied(dial);
        return;
    }
    for (unsigned i = 0; i < dial->count; i++) {
        struct dial_attempt *a = &dial->attempts[i];
        *a = (struct dial_attempt){.dial = dial, .to = order[i], .fd = -1};
    }
    dial->phase = DIAL_RACING;
    dial->next_ns = now_ns;
    race(dial, now_ns);
}

static void answered(struct destination_waiter *waiter, int error)
{
    struct dial *dial = container_of(waiter, struct dial, waiter);
    dial->error = error;
    wake(dial);
}

/* The lookup is over, or there was no need for one. */
static void go_on(struct dial *dial, uint64_t now_ns)
{
    if (dial->error < 0)
        fail_without_address(dial, dial->error);
    else if (!destination_permitted(dial->destination))
        fail_denied(dial);
    else
        start_race(dial, now_ns);
}

static void due(struct timer *timer, uint64_t now_ns)
{
    struct dial *dial = container_of(timer, struct dial, timer);
    switch (dial->phase) {
    case DIAL_IDLE:
        break;
    case DIAL_LOOKING:
        go_on(dial, now_ns);
        break;
    case DIAL_RACING:
        race(dial, now_ns);
        break;
    case DIAL_TUNNELLING:
        tunnel_late(dial);
        break;
    case DIAL_ENDING:
        report_when_closed(dial);
        break;
    }
}

void dial_init(struct dial *dial, struct destination *destination, void (*done)(struct dial *, int, int))
{
    *dial = (struct dial){.destination = destination, .done = done, .waiter.answered = answered};
    timer_init(&dial->timer, due);
}

void dial_start(struct dial *dial, uint64_t now_ns)
{
    assert(dial->phase == DIAL_IDLE);
    dial->phase = DIAL_LOOKING;
    dial->error = 0;
    dial->count = dial->begun = 0;
    dial->winner = NULL;
    dial->text[0] = '\0';
    if (destination_lookup_due(dial->destination, now_ns))
        destination_wait(dial->destination, &dial->waiter, now_ns);
    else
        wake_at(dial, now_ns);
}

void dial_stop(struct dial *dial)
{
    if (dial->phase == DIAL_IDLE)
        return;
    destination_leave(dial->destination, &dial->waiter);
    if (dial->tunnel_open)
        tunnel_stop(&dial->tunnel->tunnel, PE_STOPPING, "");
    else if (dial->winner)
        close_attempt(dial->winner);
    dial->winner = NULL;
    dial->text[0] = '\0';
    end(dial, PE_STOPPING);
}

void dial_abandon(struct dial *dial)
{
    timer_unset(&dial->destination->loop->timers, &dial->timer);
    free(dial->tunnel);
    dial->tunnel = NULL;
    dial->phase = DIAL_IDLE;
}
