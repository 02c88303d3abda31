/* UDP sockets, and datagrams on their way to them. */
#include "tests/sim/world.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM_BYTES      212992 /* net.core.rmem_default */
#define OVERHEAD_BYTES  256    /* what the kernel charges a datagram's buffer beside its bytes */
#define EPHEMERAL_FIRST 32768
#define GRO_BYTES       65535

/* ---- Sockets ---- */

static bool in_use(const struct sim *sim, const struct sockaddr_storage *address, const struct sim_host *host)
{
    for (const struct datagram_socket *s = sim->datagram_sockets; s; s = s->next) {
        if (s->host == host && s->address.ss_family == address->ss_family &&
            get_port(&s->address) == get_port(address))
            return true;
    }
    return false;
}

static void choose_port(struct sim *sim, struct sockaddr_storage *address, struct sim_host *host)
{
    do
        set_port(address, (uint16_t)(EPHEMERAL_FIRST + host->next_port++ % (65536 - EPHEMERAL_FIRST)));
    while (in_use(sim, address, host));
}

/* It has the host's address, whatever it is bound to: a host has one. */
struct datagram_socket *datagram_socket_open(struct sim *sim, const struct sockaddr_storage *address,
                                             struct sim_host *host, size_t room_bytes)
{
    assert((is_any(address) || same_ip(address, &host->address)) && "an address of the host");
    struct sockaddr_storage at = host->address;
    set_port(&at, get_port(address));
    if (get_port(address) == 0)
        choose_port(sim, &at, host);
    if (in_use(sim, &at, host))
        return NULL;
    struct datagram_socket *s = sim_allocate(sizeof *s);
    *s = (struct datagram_socket){.sim = sim,
                                  .host = host,
                                  .address = at,
                                  .room_bytes = room_bytes > 0 ? room_bytes : ROOM_BYTES,
                                  .next = sim->datagram_sockets};
    s->last = &s->first;
    sim->datagram_sockets = s;
    return s;
}

static void drop_first(struct datagram_socket *s)
{
    struct datagram *d = s->first;
    s->first = d->next;
    if (!s->first)
        s->last = &s->first;
    s->held_bytes -= d->size + OVERHEAD_BYTES;
    free(d);
}

static void drop_all(struct datagram_socket *s)
{
    while (s->first)
        drop_first(s);
}

void datagram_socket_close(struct datagram_socket *s)
{
    struct datagram_socket **at = &s->sim->datagram_sockets;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    drop_all(s);
    free(s);
}

void datagrams_reboot(struct sim *sim, const struct sim_host *host)
{
    for (struct datagram_socket *s = sim->datagram_sockets; s; s = s->next) {
        if (s->host == host)
            drop_all(s);
    }
}

/* ---- On the way ---- */

static void leave_way(struct datagram *d)
{
    *d->at = d->next;
    if (d->next)
        d->next->at = d->at;
}

static struct datagram_socket *socket_at(const struct sim *sim, const struct sockaddr_storage *to)
{
    struct datagram_socket *s = sim->datagram_sockets;
    while (s && !(same_ip(&s->address, to) && get_port(&s->address) == get_port(to)))
        s = s->next;
    return s;
}

static void arrive(struct sim *sim, struct event *event)
{
    struct datagram *d = container_of(event, struct datagram, arrival);
    leave_way(d);
    struct datagram_socket *s = nat_inbound(sim, &d->from, &d->to) ? socket_at(sim, &d->to) : NULL;
    bool taken = s && !s->host->silent && s->held_bytes + d->size + OVERHEAD_BYTES <= s->room_bytes;
    sim_note(sim, 'u', d->size, taken);
    if (!taken) {
        free(d);
        return;
    }
    d->next = NULL;
    *s->last = d;
    s->last = &d->next;
    s->held_bytes += d->size + OVERHEAD_BYTES;
}

static void corrupt(struct sim *sim, struct datagram *d)
{
    for (uint64_t n = d->size > 0 ? 1 + random_below(&sim->random, 3) : 0; n > 0; n--)
        d->bytes[random_below(&sim->random, d->size)] ^= (uint8_t)(1 + random_below(&sim->random, 255));
}

static void depart(struct sim *sim, struct path *path, const struct sockaddr_storage *from,
                   const struct sockaddr_storage *to, struct span bytes)
{
    uint64_t at_ns = path_arrival_ns(sim, path, packet_bytes(to, bytes.size));
    if (at_ns == NEVER)
        return;
    struct datagram *d = sim_allocate(sizeof *d + bytes.size);
    *d =
        (struct datagram){.sim = sim, .arrival.happen = arrive, .from = *from, .to = *to, .size = bytes.size};
    if (bytes.size > 0)
        memcpy(d->bytes, bytes.data, bytes.size);
    if (sim_chance(sim, path_policy(path)->corrupt))
        corrupt(sim, d);
    d->next = sim->datagrams;
    d->at = &sim->datagrams;
    if (d->next)
        d->next->at = &d->next;
    sim->datagrams = d;
    event_set(sim, &d->arrival, at_ns);
}

static void send_one(struct sim *sim, struct path *path, const struct sockaddr_storage *from,
                     const struct sockaddr_storage *to, struct span bytes)
{
    depart(sim, path, from, to, bytes);
    if (sim_chance(sim, path_policy(path)->duplicate))
        depart(sim, path, from, to, bytes);
}

/* ---- Sending ---- */

/* As udp_send_skb of Linux 6.1 has it. */
static int refusal(const struct datagram_socket *s, const struct sim_path *p, const struct io_op *op,
                   const struct sockaddr_storage *to, bool segmented)
{
    size_t largest = segmented ? op->datagram.segment : op->size;
    if (get_port(to) == 0 || (segmented && op->size > (size_t)op->datagram.segment * IO_SEGMENTS_MAX))
        return -EINVAL;
    if (op->size > (to->ss_family == AF_INET ? IO_DATAGRAM_BYTES : IO_DATAGRAM_BYTES + 20))
        return -EMSGSIZE;
    if (p->mtu_told && packet_bytes(to, largest) > p->mtu)
        return segmented ? -EINVAL : -EMSGSIZE;
    return segmented ? s->host->segmentation_error : 0;
}

int datagram_send(struct datagram_socket *s, const struct io_op *op)
{
    struct sim *sim = s->sim;
    struct sockaddr_storage from = s->address, to = {0};
    memcpy(&to, &op->datagram.address, op->datagram.address_len);
    if (to.ss_family != from.ss_family)
        return -EAFNOSUPPORT;
    struct path *path = path_between(sim, s->host, sim_host_of(sim, &to));
    bool segmented = op->datagram.segment > 0 && op->size > op->datagram.segment;
    int error = refusal(s, path_policy(path), op, &to, segmented);
    if (error < 0)
        return error;
    if (!nat_outbound(sim, s->host, &from, &to))
        return (int)op->size;
    size_t at = 0, segment = segmented ? op->datagram.segment : op->size;
    do {
        struct span bytes = span_of(op->data + at, min_size(segment, op->size - at));
        if (sim->tap)
            sim->tap(sim->tap_context, &from, &to, bytes);
        send_one(sim, path, &from, &to, bytes);
        at += bytes.size;
    } while (at < op->size);
    return (int)op->size;
}

void sim_replay(struct sim *sim, const struct sockaddr_storage *from, const struct sockaddr_storage *to,
                struct span bytes)
{
    send_one(sim, path_between(sim, sim_host_of(sim, from), sim_host_of(sim, to)), from, to, bytes);
}

void sim_inject(struct sim *sim, const char *from, const char *to, const void *bytes, size_t size)
{
    struct sockaddr_storage source = sim_parse_endpoint(from), destination = sim_parse_endpoint(to);
    sim_replay(sim, &source, &destination, span_of(bytes, size));
}

void sim_set_tap(struct sim *sim, sim_tap *tap, void *context)
{
    sim->tap = tap;
    sim->tap_context = context;
}

void sim_refuse_segmentation(struct sim *sim, const char *host, int error)
{
    assert(error <= 0);
    named_host(sim, host)->segmentation_error = error;
}

/* ---- Receiving ---- */

void sim_set_datagram_faults(struct sim *sim, const struct sim_datagram_faults *faults)
{
    sim->datagram_faults = *faults;
}

static bool goes_on(const struct datagram *first, const struct datagram *last, const struct datagram *next)
{
    return next && last->size == first->size && next->size > 0 && next->size <= first->size &&
           same_ip(&first->from, &next->from) && get_port(&first->from) == get_port(&next->from);
}

/* How many of the queue go into one receive: of one source, of one size but for the last. */
static unsigned run_length(const struct datagram_socket *s, size_t *size)
{
    const struct datagram *last = s->first;
    unsigned count = 1;
    *size = last->size;
    if (last->size == 0 || sim_chance(s->sim, s->sim->datagram_faults.no_coalescing))
        return 1;
    while (goes_on(s->first, last, last->next) && count < IO_SEGMENTS_MAX &&
           *size + last->next->size <= GRO_BYTES) {
        last = last->next;
        *size += last->size;
        count++;
    }
    return count;
}

int datagram_receive(struct datagram_socket *s, struct io_op *op)
{
    size_t size, at = 0, room = s->sim->datagram_faults.buffer_bytes;
    unsigned count = run_length(s, &size);
    size_t kept = room > 0 ? min_size(size, room) : size;
    op->data = sim_allocate(kept + 1); /* of its own, so that a use after the callback is found */
    op->size = (uint32_t)kept;
    op->datagram.address = s->first->from;
    op->datagram.address_len = sim_address_len(&s->first->from);
    op->datagram.segment = (uint16_t)min_size(s->first->size, kept);
    op->datagram.truncated = kept < size;
    for (; count > 0; count--) {
        size_t part = min_size(s->first->size, kept - at);
        memcpy(op->data + at, s->first->bytes, part);
        at += part;
        drop_first(s);
    }
    return (int)kept;
}

void datagrams_free(struct sim *sim)
{
    while (sim->datagrams) {
        struct datagram *d = sim->datagrams;
        leave_way(d);
        event_set(sim, &d->arrival, NEVER);
        free(d);
    }
}
