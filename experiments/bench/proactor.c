/* proactor-N: what a handler that blocks does to the others (experiments/012-proactor). wrk asks the app d1
 * over N connections, in a `-stall` variant one of a thousand turns of which sleeps; offer asks d2 beside it
 * at a steady rate. The host's front against document 3's reactor, whose handler sleeps likewise: one thread,
 * or one a processor. */
#include "experiments/bench/drive.h"
#include "experiments/bench/offering.h"
#include "experiments/bench/wrk.h"

#include <string.h>
#include <unistd.h>

#define TARGET        "/apps/d1/events/e"
#define APP_STALL     "stall=5ms/1000"
#define REACTOR_STALL "5000/1000"
#define OTHERS_S      1000
#define OTHERS_PLACES 16
#define OTHERS_DEPTH  8
#define EARLY_MS      100 /* so much before wrk's end that of the others is due */

static bool stalls(const char *variant)
{
    return strstr(variant, "-stall") != NULL;
}

/* Both loads, side by side; the row's figures are wrk's, those of `others` offer's. */
static int load(const struct bench *bench, const struct settings *settings, uint16_t port, struct row *row,
                struct wrk_load *wrk, struct offered *others)
{
    struct process offer;
    struct offering offering = {.mode = "events",
                                .port = port,
                                .rate = OTHERS_S,
                                .ms = settings->seconds * 1000 - EARLY_MS,
                                .apps = "d2",
                                .places = OTHERS_PLACES,
                                .depth = OTHERS_DEPTH};
    if (offering_start(&offer, settings, &offering, NULL) != 0)
        return -1;
    int error = wrk_run(settings, port, bench->connections, TARGET, row, wrk);
    if (offering_end(&offer, others) != 0)
        return -1;
    row->others = (struct row_others){others->accepted, others->p50_us, others->p99_us, others->max_us};
    row->verified = wrk->failed == 0 && others->lost == 0 && others->failed == 0 && others->unanswered == 0 &&
                    others->accepted > 0;
    return error;
}

static int run_reactor(const struct bench *bench, const struct settings *settings, struct row *row)
{
    char program[300], bytes[16], threads[16], line[64];
    unsigned port = 0;
    bool many = strncmp(row->variant, "reactors", 8) == 0;
    struct wrk_load wrk;
    struct offered others;
    struct process server;
    snprintf(program, sizeof program, "%s/bench/reactor", settings->build);
    snprintf(bytes, sizeof bytes, "%zu", settings->reply_size);
    snprintf(threads, sizeof threads, "%ld", many ? sysconf(_SC_NPROCESSORS_ONLN) : 1);
    const char *argv[] = {program,       "-b", bytes, "-t", threads, stalls(row->variant) ? "-s" : NULL,
                          REACTOR_STALL, NULL};
    if (process_start(&server, argv, &(struct process_options){.pipe = true}) != 0)
        return -1;
    int error = -1;
    if (process_line(&server, line, sizeof line) != 0 || sscanf(line, "port %u", &port) != 1) {
        fprintf(stderr, "bench: %s does not start\n", program);
    } else {
        uint64_t before_ns = process_cpu_ns(&server);
        error = load(bench, settings, (uint16_t)port, row, &wrk, &others);
        row->cpu_ns = process_cpu_ns(&server) - before_ns;
        row->threads = process_threads(&server, "dns").all;
    }
    process_stop(&server);
    return error;
}

/* The apps have what was answered, and of wrk's at most one more a connection. */
static int measure(const struct bench *bench, struct settings *settings, struct host *host, struct row *row)
{
    struct wrk_load wrk;
    struct offered others;
    struct receipt d1, d2;
    if (host_measure(host) != 0 || load(bench, settings, host->port, row, &wrk, &others) != 0 ||
        host_measured(host, row) != 0 || drive_receipt(&host->client, "/apps/d1/state", &d1) != 0 ||
        drive_receipt(&host->client, "/apps/d2/state", &d2) != 0)
        return -1;
    row->verified &= d1.records >= wrk.requests && d1.records <= wrk.requests + bench->connections &&
                     d2.records == others.accepted;
    return 0;
}

int proactor_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct host host;
    char file[64];
    if (strncmp(row->variant, "reactor", 7) == 0)
        return run_reactor(bench, settings, row);
    snprintf(file, sizeof file, "%s-%s", bench->name, row->variant);
    if (host_configure(&host, settings, file) != 0)
        return -1;
    fprintf(host.text, "connections = %u\n", bench->connections + 2 * OTHERS_PLACES + 16);
    host_app(&host, settings, "d1", "dst", stalls(row->variant) ? APP_STALL : "");
    host_app(&host, settings, "d2", "dst", "");
    int error = host_start(&host, settings, row->variant, NULL);
    if (error == 0)
        error = measure(bench, settings, &host, row);
    row->verified &= host_stop(&host) == 0;
    return error;
}
