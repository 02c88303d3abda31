/* links-N-durable, wires-N-durable: a host sends to another, each with a store on the disk and
 * `durability = sync`. Timed from the first request until the sender knows that the receiver's disk has all:
 * by then each record was made durable at both. */
#include "experiments/bench/disk.h"
#include "experiments/bench/drive.h"
#include "experiments/bench/text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define WARM_BURSTS 20 /* untimed: memory is touched, connections are made, segments are there */
#define POLL_MS     2
#define WATCH_MS    50
#define SENDER      "127.0.0.1"

struct run {
    struct host sender, receiver;
    /* Looks at the sender meanwhile. */
    struct {
        pthread_t thread;
        struct client client;
        atomic_bool over;
        uint64_t beyond_bytes; /* the most; read once the thread has ended */
        bool failed;
    } watch;
};

/* --- the two hosts --- */

static bool is_link(const struct bench *bench)
{
    return strcmp(bench->kind, "link") == 0;
}

static int configure_host(const struct bench *bench, const struct settings *settings, struct host *host,
                          const char *variant, const char *role)
{
    char name[64];
    snprintf(name, sizeof name, "%s-%s-%s", bench->name, variant, role);
    if (host_configure(host, settings, name) != 0 || host_store(host, settings, name) != 0)
        return -1;
    return is_link(bench) ? host_link(host, settings, SENDER) : 0;
}

static void configure_output(const struct bench *bench, struct run *run, unsigned i, bool queue_only)
{
    FILE *text = run->sender.text;
    struct host *to = &run->receiver;
    if (bench->outputs == 1)
        fprintf(text, "\n[output src.out]\n");
    else
        fprintf(text, "\n[output src.o%u]\n", i + 1);
    if (is_link(bench))
        fprintf(text, "link   = 127.0.0.1:%u\nkey    = %s\nmtu    = %u\n", to->link_port, to->public_key,
                bench->mtu);
    else
        fprintf(text, "wire   = http://127.0.0.1:%u\nmode   = pure\n", to->port);
    fprintf(text, "app    = d%u\n", i + 1);
    if (queue_only)
        fprintf(text, "backlog = 0\n");
}

static void configure_peer(const struct bench *bench, struct run *run)
{
    FILE *text = run->receiver.text;
    fprintf(text, "\n[peer sender]\nkey    = %s\napps   = ", run->sender.public_key);
    for (unsigned i = 0; i < bench->outputs; i++)
        fprintf(text, "%sd%u", i ? ", " : "", i + 1);
    fprintf(text, "\n");
}

static int configure(const struct bench *bench, const struct settings *settings, struct run *run,
                     const char *variant)
{
    char text[64];
    if (configure_host(bench, settings, &run->sender, variant, "sender") != 0 ||
        configure_host(bench, settings, &run->receiver, variant, "receiver") != 0)
        return -1;
    snprintf(text, sizeof text, "items=%u size=%u", ITEMS, bench->record_size);
    host_app(&run->sender, settings, "src", "src", text);
    for (unsigned i = 0; i < bench->outputs; i++) {
        snprintf(text, sizeof text, "d%u", i + 1);
        host_app(&run->receiver, settings, text, "dst", "");
        configure_output(bench, run, i, strcmp(variant, "queue") == 0);
    }
    if (is_link(bench))
        configure_peer(bench, run);
    return 0;
}

/* --- while it runs --- */

static int read_metric(struct client *client, const char *name, uint64_t *value)
{
    struct client_reply reply;
    if (client_get(client, "/metrics", &reply) != 0 || reply.status != 200)
        return -1;
    *value = text_metric_sum(reply.body, reply.body_size, name);
    return 0;
}

static void *watch(void *context)
{
    struct run *run = context;
    while (!atomic_load(&run->watch.over) && !run->watch.failed) {
        uint64_t beyond = 0;
        run->watch.failed = read_metric(&run->watch.client, "pure_outlet_beyond_bytes", &beyond) != 0;
        if (beyond > run->watch.beyond_bytes)
            run->watch.beyond_bytes = beyond;
        pause_ms(WATCH_MS);
    }
    return NULL;
}

static int watch_start(struct run *run)
{
    run->watch.over = run->watch.failed = false;
    run->watch.beyond_bytes = 0;
    if (client_open(&run->watch.client, run->sender.port) != 0)
        return -1;
    if (pthread_create(&run->watch.thread, NULL, watch, run) == 0)
        return 0;
    client_close(&run->watch.client);
    return -1;
}

static int watch_stop(struct run *run, struct row *row)
{
    atomic_store(&run->watch.over, true);
    pthread_join(run->watch.thread, NULL);
    client_close(&run->watch.client);
    row->disk.beyond_bytes = run->watch.beyond_bytes;
    if (run->watch.failed)
        fprintf(stderr, "bench: the sender gives no metrics; its log is %s\n", run->sender.log);
    return run->watch.failed ? -1 : 0;
}

/* Waits until the receivers have all and the sender knows it. */
static int wait_until_stored(const struct bench *bench, struct run *run, uint64_t bursts, bool *verified)
{
    struct receipt receipt;
    uint64_t known = 0, all = bursts * ITEMS * bench->outputs;
    *verified = true;
    for (unsigned i = 0; i < bench->outputs; i++) {
        char path[32];
        snprintf(path, sizeof path, "/apps/d%u/state", i + 1);
        if (drive_wait(&run->receiver.client, path, bursts * ITEMS, POLL_MS, &receipt) != 0)
            return -1;
        *verified &= drive_verify(path, &receipt, bursts, 1);
    }
    for (uint64_t limit_ns = monotonic_ns() + STALL_NS; known < all; pause_ms(POLL_MS)) {
        if (read_metric(&run->sender.client, "pure_outlet_stored_records_total", &known) == 0 &&
            monotonic_ns() < limit_ns)
            continue;
        fprintf(stderr, "bench: the sender knows of %llu records of %llu that they are stored\n",
                (unsigned long long)known, (unsigned long long)all);
        return -1;
    }
    return 0;
}

static int give(const struct bench *bench, struct run *run, uint64_t bursts, uint64_t before, struct row *row)
{
    struct drive drive = {.app = "src", .event = bench->event, .bursts = bursts, .batch = bench->batch};
    if (drive_bursts(&run->sender, &drive, &row->retries) != 0)
        return -1;
    return wait_until_stored(bench, run, before + bursts, &row->verified);
}

static int measure(const struct bench *bench, const struct settings *settings, struct run *run,
                   struct row *row)
{
    uint64_t a_burst = (uint64_t)ITEMS * bench->outputs;
    uint64_t records = settings->records ? settings->records : bench->records;
    uint64_t bursts = records < a_burst ? 1 : records / a_burst;
    if (give(bench, run, WARM_BURSTS, 0, row) != 0 || host_measure(&run->sender) != 0 ||
        host_measure(&run->receiver) != 0 || watch_start(run) != 0)
        return -1;
    row->retries = 0;
    uint64_t own_ns = own_cpu_ns(), start_ns = monotonic_ns();
    int error = give(bench, run, bursts, WARM_BURSTS, row);
    row->elapsed_ns = monotonic_ns() - start_ns;
    row->driver_cpu_ns = own_cpu_ns() - own_ns;
    row->records = bursts * a_burst;
    row->disk.framed_bytes = row->records * (bench->record_size + 1); /* a varint in front of each */
    if (watch_stop(run, row) != 0 || error != 0 || host_measured(&run->sender, row) != 0)
        return -1;
    return host_measured(&run->receiver, row);
}

/* The disk by itself just before and just after: its rate changes with what else the machine does. */
static int measure_beside_disk(const struct bench *bench, const struct settings *settings, struct run *run,
                               struct row *row)
{
    uint64_t before = disk_rate(settings->run);
    if (before == 0 || measure(bench, settings, run, row) != 0)
        return -1;
    uint64_t after = disk_rate(settings->run);
    row->disk.bytes_s = (before + after) / 2;
    return after > 0 ? 0 : -1;
}

int durable_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct run run;
    memset(&run.sender, 0, offsetof(struct host, client));
    memset(&run.receiver, 0, offsetof(struct host, client));
    run.sender.client.fd = run.receiver.client.fd = -1;
    int error = configure(bench, settings, &run, row->variant);
    if (error == 0)
        error = host_start(&run.receiver, settings, row->variant, NULL);
    if (error == 0)
        error = host_start(&run.sender, settings, row->variant, NULL);
    if (error == 0)
        error = measure_beside_disk(bench, settings, &run, row);
    bool ended = host_stop(&run.sender) == 0;
    ended &= host_stop(&run.receiver) == 0;
    row->verified &= ended;
    return error;
}
