/* inner-N, wires-N, webhook-N, links-N, many, flood: an app walks its items and sends each to N outputs;
 * timed from the first request until every receiver has all. */
#include "experiments/bench/drive.h"
#include "experiments/bench/flood.h"

#include <string.h>

#define WARM_BURSTS 20 /* untimed: memory is touched, connections are made */
#define POLL_MS     2

struct run {
    struct host host;
    struct process sink;
    struct client sink_client;
    uint16_t sink_port;
    struct flood flood;
};

static bool to_sink(const struct bench *bench)
{
    return strcmp(bench->kind, "webhook") == 0;
}

static bool is_many(const struct bench *bench)
{
    return strcmp(bench->kind, "many") == 0;
}

static bool has_links(const struct bench *bench)
{
    return strcmp(bench->kind, "link") == 0 || is_many(bench);
}

static const char *sender(const struct bench *bench)
{
    return is_many(bench) ? "many" : "src";
}

static void output_name(const struct bench *bench, unsigned i, char *name, size_t size)
{
    if (bench->outputs == 1)
        snprintf(name, size, "out");
    else
        snprintf(name, size, "%c%u", is_many(bench) ? 'w' : 'o', i + 1);
}

/* To the host's own link port. */
static void configure_link(const struct bench *bench, struct run *run, unsigned i)
{
    struct host *host = &run->host;
    fprintf(host->text, "link   = 127.0.0.1:%u\nkey    = %s\napp    = d%u\n", host->link_port,
            host->public_key, i + 1);
    if (bench->mtu)
        fprintf(host->text, "mtu    = %u\n", bench->mtu);
}

static void configure_output(const struct bench *bench, struct run *run, unsigned i)
{
    char name[16];
    FILE *text = run->host.text;
    output_name(bench, i, name, sizeof name);
    fprintf(text, "\n[output %s.%s]\n", sender(bench), name);
    if (has_links(bench) && !(is_many(bench) && i >= bench->outputs / 2))
        configure_link(bench, run, i);
    else if (strcmp(bench->kind, "inner") == 0)
        fprintf(text, "inner  = d%u\n", i + 1);
    else if (to_sink(bench))
        fprintf(text, "wire   = http://127.0.0.1:%u/hook/%s\nmode   = webhook\n", run->sink_port, name);
    else
        fprintf(text, "wire   = http://127.0.0.1:%u\nmode   = pure\napp    = d%u\n", run->host.port, i + 1);
}

/* The host is a peer of its own. */
static void configure_peer(const struct bench *bench, struct run *run)
{
    fprintf(run->host.text, "\n[peer self]\nkey    = %s\napps   = ", run->host.public_key);
    for (unsigned i = 0; i < bench->outputs; i++)
        fprintf(run->host.text, "%sd%u", i ? ", " : "", i + 1);
    fprintf(run->host.text, "\n");
}

static int configure(const struct bench *bench, struct settings *settings, struct run *run,
                     const char *variant)
{
    char file[64], arg[64];
    snprintf(file, sizeof file, "%s-%s", bench->name, variant);
    snprintf(arg, sizeof arg, "items=%u size=%u", ITEMS, bench->record_size);
    if (host_configure(&run->host, settings, file) != 0)
        return -1;
    if (has_links(bench) && host_link(&run->host, settings, "127.0.0.1") != 0)
        return -1;
    host_app(&run->host, settings, sender(bench), sender(bench), arg);
    for (unsigned i = 0; i < bench->outputs; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%u", i + 1);
        if (!to_sink(bench))
            host_app(&run->host, settings, name, "dst", "");
    }
    for (unsigned i = 0; i < bench->outputs; i++)
        configure_output(bench, run, i);
    if (has_links(bench))
        configure_peer(bench, run);
    return 0;
}

static int start_sink(const struct settings *settings, struct run *run)
{
    char program[300], line[64];
    unsigned port = 0;
    snprintf(program, sizeof program, "%s/bench/sink", settings->build);
    const char *argv[] = {program, NULL};
    if (process_start(&run->sink, argv, &(struct process_options){.pipe = true}) != 0 ||
        process_line(&run->sink, line, sizeof line) != 0 || sscanf(line, "port %u", &port) != 1 ||
        client_open(&run->sink_client, (uint16_t)port) != 0) {
        fprintf(stderr, "bench: %s does not start\n", program);
        return -1;
    }
    run->sink_port = (uint16_t)port;
    return 0;
}

/* Waits until the receivers have all of `bursts` bursts; *verified says whether it is what was sent. */
static int wait_for_receivers(const struct bench *bench, struct run *run, uint64_t bursts, bool *verified)
{
    struct receipt receipt;
    *verified = true;
    if (to_sink(bench)) {
        uint64_t records = bursts * bench->outputs * ITEMS;
        if (drive_wait(&run->sink_client, "/count", records, POLL_MS, &receipt) != 0)
            return -1;
        *verified = drive_verify("/count", &receipt, bursts, bench->outputs);
        return 0;
    }
    for (unsigned i = 0; i < bench->outputs; i++) {
        char path[32];
        snprintf(path, sizeof path, "/apps/d%u/state", i + 1);
        if (drive_wait(&run->host.client, path, bursts * ITEMS, POLL_MS, &receipt) != 0)
            return -1;
        *verified &= drive_verify(path, &receipt, bursts, 1);
    }
    return 0;
}

static int measure(const struct bench *bench, const struct settings *settings, struct run *run,
                   struct row *row)
{
    uint64_t records = settings->records ? settings->records : bench->records;
    uint64_t a_burst = (uint64_t)ITEMS * bench->outputs, warm_retries = 0;
    struct drive drive = {
        .app = sender(bench), .event = bench->event, .bursts = WARM_BURSTS, .batch = bench->batch};
    if (to_sink(bench))
        drive.bursts = 1;
    uint64_t warm = drive.bursts;
    if (drive_bursts(&run->host, &drive, &warm_retries) != 0 ||
        wait_for_receivers(bench, run, warm, &row->verified) != 0 || host_measure(&run->host) != 0)
        return -1;
    drive.bursts = records < a_burst ? 1 : records / a_burst;
    uint64_t own_ns = own_cpu_ns(), start_ns = monotonic_ns();
    if (drive_bursts(&run->host, &drive, &row->retries) != 0 ||
        wait_for_receivers(bench, run, warm + drive.bursts, &row->verified) != 0)
        return -1;
    row->elapsed_ns = monotonic_ns() - start_ns;
    row->driver_cpu_ns = own_cpu_ns() - own_ns;
    row->records = drive.bursts * a_burst;
    return host_measured(&run->host, row);
}

static void see_threads(const struct bench *bench, struct row *row)
{
    if (bench->threads == 0 || row->threads == bench->threads)
        return;
    fprintf(stderr, "bench: the host has %u threads; it should be %u\n", row->threads, bench->threads);
    row->verified = false;
}

/* The host is there: the flood, if it is to be, before anything else comes. */
static int measure_flooded(const struct bench *bench, const struct settings *settings, struct run *run,
                           struct row *row)
{
    if (!bench->flooded)
        return measure(bench, settings, run, row);
    bool at_us = strcmp(row->variant, "link-port") == 0;
    int error = flood_start(&run->flood, settings, at_us ? run->host.link_port : 0);
    if (error == 0)
        error = measure(bench, settings, run, row);
    flood_stop(&run->flood, row);
    return error;
}

int throughput_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct run run;
    run.sink = (struct process){.out = -1};
    run.sink_client.fd = -1;
    int error = to_sink(bench) ? start_sink(settings, &run) : 0;
    if (error == 0)
        error = configure(bench, settings, &run, row->variant);
    if (error == 0) {
        error = host_start(&run.host, settings, row->variant, NULL);
        if (error == 0)
            error = measure_flooded(bench, settings, &run, row);
        if (error == 0)
            see_threads(bench, row);
        row->verified &= host_stop(&run.host) == 0;
    }
    client_close(&run.sink_client);
    process_stop(&run.sink);
    return error;
}
