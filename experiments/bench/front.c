/* front-N: wrk posts small events over N connections, to the host's front and to the bare reactor of document
 * 3, which parses as little as it can and does nothing. Ours runs a turn and stores. What is compared is
 * requests per second and per CPU second of the server. */
#include "experiments/bench/drive.h"

#include "experiments/bench/wrk.h"

#include <string.h>

#define STATE   "/apps/d1/state"
#define TARGET  "/apps/d1/events/e"
#define WARM_UP "12345678901234567890"

static int run_reactor(const struct bench *bench, const struct settings *settings, struct row *row)
{
    char program[300], bytes[16], line[64];
    unsigned port = 0;
    struct wrk_load load;
    struct process server;
    snprintf(program, sizeof program, "%s/bench/reactor", settings->build);
    snprintf(bytes, sizeof bytes, "%zu", settings->reply_size);
    const char *argv[] = {program, "-b", bytes, NULL};
    if (process_start(&server, argv, &(struct process_options){.pipe = true}) != 0)
        return -1;
    int error = -1;
    if (process_line(&server, line, sizeof line) != 0 || sscanf(line, "port %u", &port) != 1) {
        fprintf(stderr, "bench: %s does not start\n", program);
    } else {
        uint64_t before_ns = process_cpu_ns(&server);
        error = wrk_run(settings, (uint16_t)port, bench->connections, TARGET, row, &load);
        row->cpu_ns = process_cpu_ns(&server) - before_ns;
        row->threads = process_threads(&server, "dns").all;
        row->verified = error == 0 && load.failed == 0;
    }
    process_stop(&server);
    return error;
}

/* One event before the clock starts; its reply tells the size of the front's replies. */
static int warm_up(struct host *host, struct settings *settings)
{
    struct client_reply reply;
    int error = client_send(&host->client, TARGET, "text/plain", WARM_UP, sizeof WARM_UP - 1);
    if (error == 0)
        error = client_reply(&host->client, &reply);
    if (error != 0 || reply.status != 200) {
        fprintf(stderr, "bench: the front does not take an event; its log is %s\n", host->log);
        return -1;
    }
    settings->reply_size = reply.size + 5; /* the numbers that follow have some five digits more */
    return 0;
}

/* The app has seen each request that wrk saw answered, and at most one more a connection. */
static int measure(const struct bench *bench, struct settings *settings, struct host *host, struct row *row)
{
    struct wrk_load load;
    struct receipt before, after;
    if (warm_up(host, settings) != 0 || drive_receipt(&host->client, STATE, &before) != 0 ||
        host_measure(host) != 0 ||
        wrk_run(settings, host->port, bench->connections, TARGET, row, &load) != 0 ||
        host_measured(host, row) != 0 || drive_receipt(&host->client, STATE, &after) != 0)
        return -1;
    uint64_t stored = after.records - before.records;
    row->verified =
        load.failed == 0 && stored >= load.requests && stored <= load.requests + bench->connections;
    return 0;
}

int front_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct host host;
    char file[64];
    if (strcmp(row->variant, "reactor") == 0)
        return run_reactor(bench, settings, row);
    snprintf(file, sizeof file, "%s-%s", bench->name, row->variant);
    if (host_configure(&host, settings, file) != 0)
        return -1;
    host_app(&host, settings, "d1", "dst", "");
    int error = host_start(&host, settings, row->variant, NULL);
    if (error == 0)
        error = measure(bench, settings, &host, row);
    row->verified &= host_stop(&host) == 0;
    return error;
}
