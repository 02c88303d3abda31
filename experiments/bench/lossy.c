/* links-lossy-N: what one link, and one TCP connection, brings over a path that loses N % of packets. Both
 * ends are in network namespaces of their own, the path between them is experiments/path. Counted where it
 * arrives, for a fixed time, after both have found their rate. */
#include "experiments/bench/drive.h"
#include "experiments/bench/network.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define DELAY_MS    "25" /* one way */
#define RATE_MBIT   "100"
#define QUEUE_BYTES "625000" /* of the bottleneck: rate times two delays */
#define MTU         "1500"
#define WARM_S      5
#define RECORD      1000u       /* bytes */
#define BURST       100u        /* records */
#define REFUSED_MS  20          /* after a 503 */
#define START_S     30          /* for the connection and the first byte */
#define SENDER      "10.77.0.1" /* as experiments/path has it */
#define RECEIVER    "10.77.0.2"

struct run {
    struct process path;
    char networks[2][64];
    struct host sender, receiver;
    struct process giver;
    struct process tcp_sender, tcp_receiver;
};

static int start_path(const struct bench *bench, const struct settings *settings, struct run *run,
                      unsigned round)
{
    char program[300], line[160], loss[8], seed[12];
    snprintf(program, sizeof program, "%s/bench/path", settings->build);
    snprintf(loss, sizeof loss, "%u", bench->loss_percent);
    snprintf(seed, sizeof seed, "%u", round);
    const char *argv[] = {program, "delay", DELAY_MS, "rate", RATE_MBIT, "queue", QUEUE_BYTES,
                          "mtu",   MTU,     "loss",   loss,   "seed",    seed,    NULL};
    if (process_start(&run->path, argv, &(struct process_options){.pipe = true}) == 0 &&
        process_line(&run->path, line, sizeof line) == 0 &&
        sscanf(line, "a %63s b %63s", run->networks[0], run->networks[1]) == 2)
        return 0;
    fprintf(stderr, "bench: %s does not start: it needs root and /dev/net/tun\n", program);
    return -1;
}

/* --- a link --- */

/* Each has to know the other's key, so that both are written side by side. */
static int configure(const struct bench *bench, const struct settings *settings, struct run *run)
{
    struct host *from = &run->sender, *to = &run->receiver;
    char name[64];
    snprintf(name, sizeof name, "%s-sender", bench->name);
    if (host_configure(from, settings, name) != 0 || host_link(from, settings, SENDER) != 0)
        return -1;
    snprintf(name, sizeof name, "%s-receiver", bench->name);
    if (host_configure(to, settings, name) != 0 || host_link(to, settings, RECEIVER) != 0)
        return -1;
    fprintf(from->text, "request_timeout = 5m\n"); /* a full output may take its time on such a path */
    from->network = run->networks[0];
    to->network = run->networks[1];
    snprintf(name, sizeof name, "items=%u size=%u", BURST, RECORD);
    host_app(from, settings, "src", "src", name);
    fprintf(from->text, "\n[output src.out]\nlink   = " RECEIVER ":%u\nkey    = %s\napp    = d1\n",
            to->link_port, to->public_key);
    host_app(to, settings, "d1", "dst", "");
    fprintf(to->text, "\n[peer sender]\nkey    = %s\napps   = d1\n", from->public_key);
    return 0;
}

/* One burst after the other, each once the one before is stored, so that the output is never without work: in
 * a process of its own, which ends with the signal that stops it. */
static _Noreturn void keep_giving(struct client *client)
{
    struct client_reply reply;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (client_send(client, "/apps/src/events/burst", "application/octet-stream", "1", 1) == 0 &&
           client_reply(client, &reply) == 0 && (reply.status == 200 || reply.status == 503))
        if (reply.status == 503)
            pause_ms(REFUSED_MS);
    fprintf(stderr, "bench: the sending host takes no work any more\n");
    _exit(1);
}

/* The child has the connection; we take another. */
static int start_giving(struct run *run)
{
    struct host *from = &run->sender;
    pid_t pid = fork();
    if (pid == 0)
        keep_giving(&from->client);
    run->giver = (struct process){.pid = pid > 0 ? pid : 0, .out = -1};
    client_close(&from->client);
    return pid > 0 ? network_client(&from->client, from->network, from->port) : -1;
}

/* Whether what is there is the beginning of what was sent, each once and in order. */
static bool is_right(const struct receipt *receipt)
{
    uint64_t bursts = receipt->records / BURST, rest = receipt->records % BURST;
    uint64_t sum = bursts * (BURST * (BURST + 1) / 2) + rest * (rest + 1) / 2;
    uint64_t descents = receipt->records > 0 ? (receipt->records - 1) / BURST : 0;
    if (receipt->sum == sum && receipt->descents == descents)
        return true;
    fprintf(stderr,
            "bench: the receiver has %llu records, sum %llu, %llu descents; it should be %llu and %llu\n",
            (unsigned long long)receipt->records, (unsigned long long)receipt->sum,
            (unsigned long long)receipt->descents, (unsigned long long)sum, (unsigned long long)descents);
    return false;
}

static int measure_link(const struct settings *settings, struct run *run, struct row *row)
{
    static const char state[] = "/apps/d1/state";
    struct host *from = &run->sender, *to = &run->receiver;
    struct receipt before, after;
    if (start_giving(run) != 0 || drive_wait(&to->client, state, 1, 2, &before) != 0)
        return -1;
    pause_ms(WARM_S * 1000);
    if (host_measure(from) != 0 || drive_receipt(&to->client, state, &before) != 0)
        return -1;
    uint64_t start_ns = monotonic_ns();
    pause_ms(settings->seconds * 1000);
    if (drive_receipt(&to->client, state, &after) != 0)
        return -1;
    row->elapsed_ns = monotonic_ns() - start_ns;
    row->records = after.records - before.records;
    row->verified = is_right(&after) && process_alive(&run->giver);
    return host_measured(from, row);
}

static int run_link(const struct bench *bench, const struct settings *settings, struct run *run,
                    struct row *row)
{
    int error = configure(bench, settings, run);
    if (error == 0)
        error = host_start(&run->receiver, settings, row->variant, NULL);
    if (error == 0)
        error = host_start(&run->sender, settings, row->variant, NULL);
    if (error == 0)
        error = measure_link(settings, run, row);
    process_stop(&run->giver);
    bool ended = host_stop(&run->sender) == 0;
    ended &= host_stop(&run->receiver) == 0;
    row->verified &= ended;
    return error;
}

/* --- TCP --- */

static int start_tcp(const struct settings *settings, struct run *run)
{
    char program[300], warm[12], seconds[12], line[64], port[12];
    snprintf(program, sizeof program, "%s/bench/tcp", settings->build);
    snprintf(warm, sizeof warm, "%u", WARM_S);
    snprintf(seconds, sizeof seconds, "%u", settings->seconds);
    const char *receive[] = {program, "receive", RECEIVER, warm, seconds, NULL};
    const char *send[] = {program, "send", RECEIVER, port, "cubic", NULL};
    if (process_start(&run->tcp_receiver, receive,
                      &(struct process_options){.pipe = true, .network = run->networks[1]}) != 0 ||
        process_line(&run->tcp_receiver, line, sizeof line) != 0 || sscanf(line, "port %11s", port) != 1)
        return -1;
    return process_start(&run->tcp_sender, send,
                         &(struct process_options){.pipe = true, .network = run->networks[0]});
}

static int measure_tcp(const struct settings *settings, struct run *run, struct row *row)
{
    char line[96];
    unsigned long long bytes, ns;
    uint64_t end_ns = monotonic_ns() + (uint64_t)(START_S + WARM_S + settings->seconds) * 1000000000u;
    while (process_alive(&run->tcp_receiver) && monotonic_ns() < end_ns)
        pause_ms(20);
    if (process_alive(&run->tcp_receiver) || process_line(&run->tcp_receiver, line, sizeof line) != 0 ||
        sscanf(line, "bytes %llu ns %llu", &bytes, &ns) != 2)
        return -1;
    row->records = bytes / RECORD;
    row->elapsed_ns = ns;
    row->verified = true;
    return 0;
}

static int run_tcp(const struct settings *settings, struct run *run, struct row *row)
{
    int error = start_tcp(settings, run);
    if (error == 0)
        error = measure_tcp(settings, run, row);
    if (error != 0)
        fprintf(stderr, "bench: the TCP transfer did not end as it should\n");
    process_stop(&run->tcp_sender);
    process_stop(&run->tcp_receiver);
    return error;
}

int lossy_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct run run;
    run.path = run.giver = run.tcp_sender = run.tcp_receiver = (struct process){.out = -1};
    memset(&run.sender.process, 0, sizeof run.sender.process);
    memset(&run.receiver.process, 0, sizeof run.receiver.process);
    run.sender.client.fd = run.receiver.client.fd = -1;
    int error = start_path(bench, settings, &run, row->round);
    if (error == 0)
        error = strcmp(row->variant, "tcp-cubic") == 0 ? run_tcp(settings, &run, row)
                                                       : run_link(bench, settings, &run, row);
    process_stop(&run.path);
    return error;
}
