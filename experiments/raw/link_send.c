/* raw-link's sending process: a link with one outlet on a loop, and a producer on that loop or on one of its
 * own, with a thread. The main thread runs the link's. */
#include "experiments/raw/link_end.h"
#include "experiments/raw/producer.h"
#include "link/link.h"
#include "uring/dns.h"

#include <pthread.h>
#include <sodium.h>

struct sender {
    struct link_end end, producing; /* the latter unless run->one_thread */
    const struct raw_run *run;
    struct raw_sent *sent, before; /* before: counters as of the last untimed record */
    struct dns *dns;
    struct link link;
    struct link_outlet outlet;
    struct producer producer;
    struct task stop; /* a task of the link's loop, for the producer to post to */
    bool stopping;
};

/* --- what is measured --- */

static void note_counters(const struct sender *s, struct raw_sent *at)
{
    const struct link_report *report = &s->link.report;
    at->packets = counter_read(&report->packets);
    at->sends = counter_read(&report->sends);
    at->lost = counter_read(&report->lost);
    at->enters = counter_read(&s->end.io->counters.enters);
    at->wakes = counter_read(&s->end.io->counters.wakes);
}

static void end_phase(void *context, bool all)
{
    struct sender *s = context;
    if (!all) {
        note_counters(s, &s->before);
        return;
    }
    note_counters(s, s->sent);
    s->sent->packets -= s->before.packets;
    s->sent->sends -= s->before.sends;
    s->sent->lost -= s->before.lost;
    s->sent->enters -= s->before.enters;
    s->sent->wakes -= s->before.wakes;
    s->sent->datagram_bytes = counter_read(&s->link.report.datagram_bytes);
    s->sent->window_bytes = counter_read(&s->link.report.window_bytes);
    board_post(&s->end.loop.board, s->stop.slot);
}

/* --- the link --- */

static bool run_stop(struct task *task, uint64_t now_ns)
{
    struct sender *s = container_of(task, struct sender, stop);
    (void)now_ns;
    s->stopping = true;
    link_stop(&s->link);
    return false;
}

static int add_outlet(struct sender *s)
{
    uint8_t epoch[FRAME_EPOCH_BYTES];
    randombytes_buf(epoch, sizeof epoch);
    int error = link_add(&s->link, &s->outlet, "src", "out", s->run->queue_bytes, s->run->record_bytes, epoch,
                         "dst", "record");
    return error < 0 ? raw_failed("outlet", error) : 0;
}

static int open_link(struct sender *s, uint16_t port)
{
    struct link_options options = {.name = "receiver",
                                   .host = "127.0.0.1",
                                   .port = port,
                                   .literal = true,
                                   .key = &link_keys.sender,
                                   .random = link_end_random,
                                   .ciphers = cipher_hardware(),
                                   .outputs = 1,
                                   .mtu = s->run->datagram_bytes};
    memcpy(options.remote_public, link_keys.receiver.public, LINK_KEY_BYTES);
    int error = dns_open(&s->dns, &s->end.loop, NULL);
    if (error < 0)
        return raw_failed("resolver", error);
    s->stop.run = run_stop;
    error = loop_add(&s->end.loop, &s->stop);
    if (error == 0)
        error = link_init(&s->link, &options, &s->end.loop, dns_resolver(s->dns), &s->end.log);
    return error < 0 ? raw_failed("link", error) : add_outlet(s);
}

static int run_link(struct sender *s)
{
    int error = 0;
    while (error == 0 && !(s->stopping && link_stopped(&s->link)))
        error = loop_step(&s->end.loop);
    return error < 0 ? raw_failed("loop", error) : 0;
}

/* --- the producer --- */

static void *run_producing(void *argument)
{
    struct sender *s = argument;
    int error = 0;
    while (error == 0 && !s->producer.done)
        error = loop_step(&s->producing.loop);
    if (error < 0)
        raw_failed("the producer's loop", error);
    return NULL;
}

static int open_producer(struct sender *s)
{
    struct link_end *end = s->run->one_thread ? &s->end : &s->producing;
    if (!s->run->one_thread && link_end_open(end, s->run->back_end) != 0)
        return -1;
    s->producer.phase = end_phase;
    s->producer.context = s;
    return producer_init(&s->producer, s->run, s->sent, &s->outlet.outlet, &end->loop);
}

static int run_both(struct sender *s)
{
    pthread_t thread;
    if (s->run->one_thread)
        return run_link(s);
    int error = pthread_create(&thread, NULL, run_producing, s);
    if (error != 0)
        return raw_failed("thread", -error);
    int failed = run_link(s);
    if (failed == 0) /* else it may sleep for ever; the process ends with it */
        pthread_join(thread, NULL);
    return failed;
}

/* Only after a run that went well: else the process is ended as it stands. */
static void close_all(struct sender *s)
{
    link_dispose(&s->link);
    dns_dispose(s->dns);
    if (!s->run->one_thread)
        link_end_close(&s->producing);
    link_end_close(&s->end);
}

int link_send(const struct raw_run *run, uint16_t port, struct raw_sent *sent)
{
    static struct sender s;
    s.run = run;
    s.sent = sent;
    if (link_end_open(&s.end, run->back_end) != 0 || open_link(&s, port) != 0 || open_producer(&s) != 0 ||
        run_both(&s) != 0)
        return -1;
    close_all(&s);
    return 0;
}
