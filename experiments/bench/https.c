/* https-N, tls-handshakes-…: a webhook wire over TLS to the sink, and libcurl's multi interface doing the
 * same (experiments/curl). The CPU is the sender's: the host's whole process, with the app that sends and the
 * front that is told to; libcurl's.
 *
 * A bench's kind is "kept", or "ec-full", "rsa-full", "ec-resumed": the sink ends each connection after one
 * reply, has a key of that kind, and lets sessions be resumed or not. */
#include "experiments/bench/drive.h"
#include "experiments/bench/text.h"

#include <string.h>
#include <unistd.h>

#define POLL_MS    2
#define LINE_BYTES 256

struct https {
    struct host host;
    struct process sink;
    struct client sink_client;
    unsigned port; /* of TLS */
    char ca_file[512];
};

static bool is_curl(const struct row *row)
{
    return strcmp(row->variant, "curl") == 0;
}

/* Each request on a connection of its own. */
static bool is_handshakes(const struct bench *bench)
{
    return strcmp(bench->kind, "kept") != 0;
}

static bool is_resumed(const struct bench *bench)
{
    return strstr(bench->kind, "resumed") != NULL;
}

static int start_sink(const struct bench *bench, const struct settings *settings, struct https *run)
{
    char program[300], line[64];
    unsigned port = 0;
    snprintf(program, sizeof program, "%s/bench/sink", settings->build);
    snprintf(run->ca_file, sizeof run->ca_file, "%s/%s-ca.pem", settings->run, bench->name);
    const char *argv[8] = {program, "-s", run->ca_file};
    unsigned filled = 3;
    if (is_handshakes(bench))
        argv[filled++] = "-c";
    if (is_handshakes(bench) && strncmp(bench->kind, "rsa", 3) == 0)
        argv[filled++] = "-r";
    if (is_handshakes(bench) && !is_resumed(bench))
        argv[filled++] = "-n";
    if (process_start(&run->sink, argv, &(struct process_options){.pipe = true}) == 0 &&
        process_line(&run->sink, line, sizeof line) == 0 && sscanf(line, "port %u", &port) == 1 &&
        process_line(&run->sink, line, sizeof line) == 0 && sscanf(line, "tls %u", &run->port) == 1 &&
        client_open(&run->sink_client, (uint16_t)port) == 0)
        return 0;
    fprintf(stderr, "bench: %s does not start\n", program);
    return -1;
}

/* How many connections the sink has seen, and of them those on an older session. */
static int count_handshakes(struct https *run, uint64_t *handshakes, uint64_t *resumed)
{
    struct client_reply reply;
    if (client_get(&run->sink_client, "/count", &reply) != 0)
        return -1;
    *handshakes = text_json_number(reply.body, reply.body_size, "handshakes");
    *resumed = text_json_number(reply.body, reply.body_size, "resumed");
    return 0;
}

/* Each request had its handshake, and each was resumed or none; over kept connections there were few. */
static bool right_handshakes(const struct bench *bench, const struct row *row, uint64_t handshakes,
                             uint64_t resumed)
{
    bool right = is_handshakes(bench) ? handshakes >= row->records : handshakes <= 4 * bench->connections;
    if (is_handshakes(bench))
        right &= is_resumed(bench) ? resumed >= row->records - bench->connections : resumed == 0;
    if (!right)
        fprintf(stderr, "bench: %s (%s): %llu handshakes, %llu of them resumed, for %llu requests\n",
                bench->name, row->variant, (unsigned long long)handshakes, (unsigned long long)resumed,
                (unsigned long long)row->records);
    return right;
}

/* Values come from several connections at once, so their order says nothing. */
static bool right_sum(const struct receipt *receipt, uint64_t bursts)
{
    uint64_t sum = bursts * (ITEMS * (uint64_t)(ITEMS + 1) / 2);
    if (receipt->records == bursts * ITEMS && receipt->sum == sum)
        return true;
    fprintf(stderr, "bench: the sink has %llu requests with the sum %llu; it should be %llu, %llu\n",
            (unsigned long long)receipt->records, (unsigned long long)receipt->sum,
            (unsigned long long)(bursts * ITEMS), (unsigned long long)sum);
    return false;
}

static int measure_curl(const struct bench *bench, const struct settings *settings, struct https *run,
                        uint64_t bursts, struct row *row)
{
    char program[300], url[64], requests[24], connections[16], line[LINE_BYTES];
    struct process process;
    struct receipt receipt;
    snprintf(program, sizeof program, "%s/bench/curl-multi", settings->build);
    if (access(program, X_OK) != 0)
        return BENCH_LEFT_OUT;
    snprintf(url, sizeof url, "https://localhost:%u/hook/out", run->port);
    snprintf(requests, sizeof requests, "%llu", (unsigned long long)(bursts * ITEMS));
    snprintf(connections, sizeof connections, "%u", bench->connections);
    const char *argv[] = {program, "-u", url, "-s", run->ca_file, "-n", requests, "-c", connections, NULL};
    if (process_start(&process, argv, &(struct process_options){.pipe = true}) != 0)
        return -1;
    int error = drive_wait(&run->sink_client, "/count", bursts * ITEMS, POLL_MS, &receipt);
    uint64_t whole_ns; /* with what comes before the first request and after the last */
    if (error == 0)
        error = process_line(&process, line, sizeof line);
    if (error != 0 || process_wait(&process, &whole_ns) != 0) {
        process_stop(&process);
        return -1;
    }
    row->records = text_json_number(line, strlen(line), "requests");
    row->elapsed_ns = text_json_number(line, strlen(line), "elapsed_ns");
    row->cpu_ns = text_json_number(line, strlen(line), "cpu_ns");
    row->threads = 1;
    row->verified = right_sum(&receipt, bursts);
    return 0;
}

static int configure(const struct bench *bench, struct settings *settings, struct https *run,
                     const struct row *row)
{
    char name[64], arg[64];
    snprintf(name, sizeof name, "%s-%s", bench->name, row->variant);
    snprintf(arg, sizeof arg, "items=%u size=%u", ITEMS, bench->record_size);
    if (host_configure(&run->host, settings, name) != 0)
        return -1;
    host_app(&run->host, settings, "src", "src", arg);
    fprintf(run->host.text, "\n[output src.out]\nwire   = https://localhost:%u/hook/out\nca     = %s\n",
            run->port, run->ca_file);
    if (bench->connections > 1)
        fprintf(run->host.text, "concurrency = %u\n", bench->connections);
    return 0;
}

/* The first burst is not timed: it makes the connections. */
static int measure_host(struct https *run, uint64_t bursts, struct row *row)
{
    struct drive drive = {.app = "src", .event = "burst", .bursts = 1, .batch = 1};
    struct receipt receipt;
    uint64_t retries = 0;
    if (drive_bursts(&run->host, &drive, &retries) != 0 ||
        drive_wait(&run->sink_client, "/count", ITEMS, POLL_MS, &receipt) != 0 ||
        host_measure(&run->host) != 0)
        return -1;
    drive.bursts = bursts;
    uint64_t start_ns = monotonic_ns();
    if (drive_bursts(&run->host, &drive, &row->retries) != 0 ||
        drive_wait(&run->sink_client, "/count", (bursts + 1) * ITEMS, POLL_MS, &receipt) != 0)
        return -1;
    row->elapsed_ns = monotonic_ns() - start_ns;
    row->records = bursts * ITEMS;
    row->verified = right_sum(&receipt, bursts + 1);
    return host_measured(&run->host, row);
}

static int measure(const struct bench *bench, struct settings *settings, struct https *run, struct row *row)
{
    uint64_t records = settings->records ? settings->records : bench->records;
    uint64_t bursts = records < ITEMS ? 1 : records / ITEMS;
    if (is_curl(row))
        return measure_curl(bench, settings, run, bursts, row);
    int error = configure(bench, settings, run, row);
    if (error != 0)
        return error;
    const char *program = strcmp(row->variant, "epoll") == 0 ? "epoll" : "uring";
    error = host_start(&run->host, settings, program, NULL);
    if (error == 0)
        error = measure_host(run, bursts, row);
    row->verified &= host_stop(&run->host) == 0;
    return error;
}

int https_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct https run;
    uint64_t handshakes, resumed;
    run.sink = (struct process){.out = -1};
    run.sink_client.fd = -1;
    int error = start_sink(bench, settings, &run);
    if (error == 0)
        error = measure(bench, settings, &run, row);
    if (error == 0)
        error = count_handshakes(&run, &handshakes, &resumed);
    if (error == 0)
        row->verified &= right_handshakes(bench, row, handshakes, resumed);
    client_close(&run.sink_client);
    process_stop(&run.sink);
    return error;
}
