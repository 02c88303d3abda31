/* offer link: sending hosts, each a key, a link and its outputs, all on one loop; a task offers what is due.
 * What is offered waits in its output's queue, QUEUE_BYTES of it at most. */
#include "experiments/offer/offer.h"

#include "host/key_file.h"
#include "link/link.h"
#include "uring/dns.h"
#include "uring/uring.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define QUEUE_BYTES  (64u * 1024)
#define OUTPUTS_MOST 64
#define STOP_NS      UINT64_C(2000000000)

struct sending_host {
    struct host_key key;
    struct link link;
    struct link_outlet outlets[OUTPUTS_MOST];
    char names[OUTPUTS_MOST][16];
};

struct offer {
    const struct offering *offering;
    struct tally *tally;
    struct loop loop;
    struct log log;
    struct dns *dns;
    struct sending_host *hosts;
    uint64_t *numbers; /* of the last record of each output */
    unsigned outputs;  /* of all hosts */
    struct schedule schedule;
    struct task task;
    struct timer timer;
    bool over; /* nothing is offered any more */
};

static void fill_random(void *context, void *bytes, size_t size)
{
    (void)context;
    randombytes_buf(bytes, size);
}

static int failed(const char *what, int error)
{
    fprintf(stderr, "offer: %s: %s\n", what, pure_error_text(error));
    return -1;
}

static struct outlet *outlet_of(const struct offer *o, unsigned i)
{
    return &o->hosts[i % o->offering->key_count].outlets[i / o->offering->key_count].outlet;
}

/* --- offering --- */

static void offer_one(struct offer *o, uint64_t number)
{
    unsigned i = (unsigned)(number % o->outputs);
    uint8_t record[BYTES_MOST];
    size_t bytes = o->offering->bytes;
    assert(bytes <= sizeof record);
    memset(record, '.', bytes);
    put_value(record, o->numbers[i] + 1);
    if (outlet_queue(outlet_of(o, i), record, bytes) != 0) {
        o->tally->dropped++;
        return;
    }
    o->numbers[i]++;
    o->tally->sent++;
}

static void offer_due(struct offer *o, uint64_t now_ns)
{
    uint64_t late, from = o->schedule.number, due = schedule_due(&o->schedule, now_ns, &late);
    for (unsigned i = 0; i < o->outputs; i++)
        record_queue_see_freed(&outlet_of(o, i)->queue);
    for (uint64_t n = from + late; n < from + due; n++)
        offer_one(o, n);
    o->tally->offered += due;
    o->tally->dropped += late;
    for (unsigned i = 0; i < o->outputs; i++)
        outlet_push(outlet_of(o, i));
}

static bool all_stored(const struct offer *o)
{
    for (unsigned i = 0; i < o->outputs; i++)
        if (outlet_of(o, i)->queue.freed.records < o->numbers[i])
            return false;
    return true;
}

static bool run_offer(struct task *task, uint64_t now_ns)
{
    struct offer *o = container_of(task, struct offer, task);
    offer_due(o, now_ns);
    o->over = now_ns >= o->schedule.end_ns && (now_ns >= o->schedule.end_ns + DRAIN_NS || all_stored(o));
    timer_set(&o->loop.timers, &o->timer, now_ns + TICK_NS);
    return false;
}

static void tick(struct timer *timer, uint64_t now_ns)
{
    struct offer *o = container_of(timer, struct offer, timer);
    (void)now_ns;
    loop_want(&o->loop, &o->task);
}

/* --- what it stands on --- */

static int add_outputs(struct offer *o, struct sending_host *host)
{
    int error = 0;
    for (unsigned i = 0; error == 0 && i < o->offering->places; i++) {
        uint8_t epoch[FRAME_EPOCH_BYTES];
        randombytes_buf(epoch, sizeof epoch);
        snprintf(host->names[i], sizeof host->names[i], "o%u", i);
        error = link_add(&host->link, &host->outlets[i], "src", host->names[i], QUEUE_BYTES, BYTES_MOST,
                         epoch, o->offering->apps[0], "e");
        if (error == 0) {
            host->outlets[i].outlet.producer = &o->loop.board;
            host->outlets[i].outlet.producer_slot = o->task.slot;
        }
    }
    return error < 0 ? failed("outputs", error) : 0;
}

static int open_host(struct offer *o, unsigned i, const uint8_t receiver[LINK_KEY_BYTES])
{
    struct sending_host *host = &o->hosts[i];
    char why[256];
    if (key_file_read(o->offering->keys[i], &host->key, why, sizeof why) != 0) {
        fprintf(stderr, "offer: %s\n", why);
        return -1;
    }
    struct link_options options = {.name = "receiver",
                                   .host = "127.0.0.1",
                                   .port = o->offering->port,
                                   .literal = true,
                                   .key = &host->key,
                                   .random = {.fill = fill_random},
                                   .ciphers = cipher_hardware(),
                                   .outputs = o->offering->places,
                                   .mtu = 1400};
    memcpy(options.remote_public, receiver, LINK_KEY_BYTES);
    int error = link_init(&host->link, &options, &o->loop, dns_resolver(o->dns), &o->log);
    return error < 0 ? failed("link", error) : add_outputs(o, host);
}

static int open_all(struct offer *o, struct io **io)
{
    const struct offering *offering = o->offering;
    uint8_t receiver[LINK_KEY_BYTES];
    const char *text = offering->receiver ? offering->receiver : "";
    int error = host_key_parse_public((struct span){(const uint8_t *)text, strlen(text)}, receiver);
    if (error == 0)
        error = uring_open(io, NULL);
    if (error == 0)
        error = loop_init(&o->loop, *io, 8 + o->outputs + offering->key_count, 8 + offering->key_count);
    if (error == 0)
        error = log_init(&o->log, NULL, 0);
    if (error == 0)
        error = dns_open(&o->dns, &o->loop, NULL);
    if (error == 0)
        error = loop_add(&o->loop, &o->task);
    if (error < 0)
        return failed("the loop", error);
    for (unsigned i = 0; i < offering->key_count; i++)
        if (open_host(o, i, receiver) != 0)
            return -1;
    return 0;
}

static bool all_stopped(const struct offer *o)
{
    for (unsigned i = 0; i < o->offering->key_count; i++)
        if (!link_stopped(&o->hosts[i].link))
            return false;
    return true;
}

static int run(struct offer *o)
{
    int error = 0;
    uint64_t now_ns = o->loop.now_ns;
    o->schedule = (struct schedule){
        .rate = o->offering->rate, .start_ns = now_ns, .end_ns = now_ns + o->offering->time_ns};
    loop_want(&o->loop, &o->task);
    while (error == 0 && !o->over)
        error = loop_step(&o->loop);
    for (unsigned i = 0; i < o->offering->key_count; i++)
        link_stop(&o->hosts[i].link);
    uint64_t until_ns = o->loop.now_ns + STOP_NS;
    while (error == 0 && !all_stopped(o) && o->loop.now_ns < until_ns)
        error = loop_step(&o->loop);
    return error < 0 ? failed("the loop", error) : 0;
}

static void count(struct offer *o)
{
    for (unsigned i = 0; i < o->outputs; i++) {
        uint64_t stored = outlet_of(o, i)->queue.freed.records;
        o->tally->accepted += stored;
        o->tally->sum += stored * (stored + 1) / 2;
    }
    o->tally->unanswered = o->tally->sent - o->tally->accepted;
}

/* What it holds ends with the process. */
int offer_link(const struct offering *offering, struct tallies *tallies)
{
    static struct offer o;
    struct io *io;
    o.offering = offering;
    o.tally = &tallies->app[0];
    o.outputs = offering->places * offering->key_count;
    o.hosts = calloc(offering->key_count, sizeof *o.hosts);
    o.numbers = calloc(o.outputs, sizeof *o.numbers);
    o.task.run = run_offer;
    timer_init(&o.timer, tick);
    if (!o.hosts || !o.numbers || offering->places > OUTPUTS_MOST || sodium_init() < 0) {
        fprintf(stderr, "offer: no memory, or more than %u outputs\n", OUTPUTS_MOST);
        return -1;
    }
    if (open_all(&o, &io) != 0 || run(&o) != 0)
        return -1;
    count(&o);
    return 0;
}
