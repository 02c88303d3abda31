/* raw-link's receiving process: a listener on its loop, and a consumer that counts at once. */
#include "experiments/raw/link_end.h"
#include "link/link_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* Of the sender's one stream. */
#define WINDOW_BYTES (8 << 20)

struct receiver {
    struct link_end end;
    struct link_consumer consumer;
    struct link_listener listener;
    struct raw_tally tally;
    struct io_op ended; /* reads until the sender is gone: it has seen the last acknowledgement by then */
    uint8_t byte;
    bool sender_gone;
    uint64_t enters; /* as of the last untimed record */
};

static int admit(void *context, void *peer, const struct frame_open *open, struct inlet *inlet,
                 uint64_t *stored)
{
    (void)peer, (void)open, (void)stored;
    inlet->context = context;
    return 0;
}

static void take_records(void *context, struct inlet *inlet, uint64_t first, struct span records,
                         uint64_t count)
{
    struct receiver *r = context;
    struct span record;
    const uint8_t *at = records.data, *end = at + records.size;
    bool warm = r->tally.records < r->tally.run->warm;
    for (size_t framed; (framed = record_get(at, end, &record)) > 0; at += framed)
        raw_tally_add(&r->tally, record.data, record.size);
    if (warm && r->tally.records >= r->tally.run->warm)
        r->enters = counter_read(&r->end.io->counters.enters);
    inlet_freed(inlet, records.size);
    inlet_stored(inlet, first + count - 1);
}

/* What it holds it has counted: nothing depends on it. */
static void stream_closed(void *context, struct inlet *inlet)
{
    (void)context, (void)inlet;
}

static int listen_on_loopback(struct receiver *r, const struct raw_run *run)
{
    r->consumer = (struct link_consumer){
        .admit = admit, .records = take_records, .closed = stream_closed, .context = r};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct link_listener_options options = {
        .address = (struct sockaddr *)&address,
        .address_len = sizeof address,
        .receiver = {.key = &link_keys.receiver,
                     .random = link_end_random,
                     .ciphers = cipher_hardware(),
                     .peers = 1,
                     .limits = {.places = 1,
                                .stream_window = WINDOW_BYTES,
                                .session_window = WINDOW_BYTES,
                                .max_record = run->record_bytes}},
    };
    int error = link_listener_init(&r->listener, &options, &r->consumer, &r->end.loop, &r->end.log);
    if (error < 0)
        return raw_failed("listener", error);
    int peer = link_receiver_allow(&r->listener.receiver, link_keys.sender.public, NULL);
    return peer < 0 ? raw_failed("peer", peer) : 0;
}

static int tell_port(const struct receiver *r, const struct raw_pipes *pipes)
{
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    if (getsockname(r->listener.fd, (struct sockaddr *)&address, &len) < 0)
        return -1;
    return raw_ready(pipes, ntohs(address.sin_port));
}

static void sender_ended(struct io_op *op, int result, bool more)
{
    struct receiver *r = container_of(op, struct receiver, ended);
    (void)result, (void)more;
    r->sender_gone = true;
}

static int run_all(struct receiver *r, const struct raw_pipes *pipes)
{
    int error = 0;
    io_prepare_memory(&r->ended, IO_READ, pipes->ended, &r->byte, 1, sender_ended);
    io_queue(r->end.io, &r->ended);
    while (error == 0 && !r->sender_gone)
        error = loop_step(&r->end.loop);
    return error < 0 ? raw_failed("loop", error) : 0;
}

static int stop(struct receiver *r)
{
    int error = 0;
    link_listener_stop(&r->listener);
    while (error == 0 && !link_listener_stopped(&r->listener))
        error = loop_step(&r->end.loop);
    return error < 0 ? raw_failed("loop", error) : 0;
}

static void note_counters(struct receiver *r, struct raw_received *received)
{
    received->enters = counter_read(&r->end.io->counters.enters) - r->enters;
    received->datagrams = counter_read(&r->listener.report.sent);
}

int link_receive(const struct raw_run *run, const struct raw_pipes *pipes, struct raw_received *received)
{
    static struct receiver r;
    raw_tally_init(&r.tally, run, received);
    if (link_end_open(&r.end, run->back_end) != 0)
        return -1;
    int error = listen_on_loopback(&r, run);
    if (error == 0)
        error = tell_port(&r, pipes);
    if (error == 0)
        error = run_all(&r, pipes);
    note_counters(&r, received);
    if (error == 0)
        error = stop(&r);
    if (error == 0)
        link_listener_dispose(&r.listener);
    link_end_close(&r.end);
    return error == 0 && raw_tally_complete(&r.tally) ? 0 : -1;
}
