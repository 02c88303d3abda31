/* isolation: ten healthy wires, alone and beside ten dead ones that are tried all the time. The dead must not
 * change what the healthy ones do, nor add threads other than those that look names up. */
#include "experiments/bench/drive.h"

#include <string.h>

#define HEALTHY      10
#define DEAD_BURSTS  20  /* a backlog of 20,000 records each, never delivered */
#define SETTLE_MS    500 /* the dead are tried, and names hang, before the clock starts */
#define WARM_BURSTS  10
#define POLL_MS      2
#define BASE_THREADS 4            /* three, and one sending loop */
#define RESOLVER     "127.77.7.7" /* where the faults program takes queries and answers none */

struct ports {
    unsigned garbage, drip, silent, blackhole, refused;
};

struct run {
    struct host host;
    struct process faults;
    struct ports ports;
    bool names; /* lookups hang: a resolver that never answers is in place */
    char resolver[512];
};

static int start_faults(const struct settings *settings, struct run *run)
{
    char program[300], line[160];
    int names = 0;
    snprintf(program, sizeof program, "%s/bench/faults", settings->build);
    const char *argv[] = {program, "-n", RESOLVER, NULL};
    struct ports *p = &run->ports;
    if (process_start(&run->faults, argv, &(struct process_options){.pipe = true}) != 0 ||
        process_line(&run->faults, line, sizeof line) != 0 ||
        sscanf(line, "garbage %u drip %u silent %u blackhole %u names %d", &p->garbage, &p->drip, &p->silent,
               &p->blackhole, &names) != 5) {
        fprintf(stderr, "bench: %s does not start\n", program);
        return -1;
    }
    p->refused = 1; /* tcpmux: nobody listens there */
    run->names = names;
    return 0;
}

static void make_resolver(struct settings *settings, struct run *run)
{
    snprintf(run->resolver, sizeof run->resolver, "%s/resolv.conf", settings->run);
    FILE *file = fopen(run->resolver, "w");
    if (file) {
        fprintf(file, "nameserver " RESOLVER "\n");
        fclose(file);
    }
    run->names = run->names && file && process_can_replace_resolver(run->resolver);
    if (!run->names && !settings->skipped_names)
        fprintf(stderr, "bench: isolation: the name that never answers is skipped: it needs root, port 53 of "
                        "127.77.7.7 and mount namespaces; a silent server takes its place\n");
    settings->skipped_names = !run->names;
}

static void dead_output(struct run *run, unsigned number, const char *mode, const char *host, unsigned port)
{
    fprintf(run->host.text,
            "\n[output dead.w%u]\n"
            "wire = http://%s:%u/dead\n"
            "mode = %s\n"
            "progress_timeout = 1s\n"
            "reply_timeout = 1s\n"
            "backoff_min = 50ms\n"
            "backoff_max = 500ms\n",
            number, host, port, mode);
    if (strcmp(mode, "pure") == 0)
        fprintf(run->host.text, "app = nobody\n");
}

static void dead_outputs(struct run *run)
{
    const struct ports *p = &run->ports;
    const char *loopback = "127.0.0.1";
    dead_output(run, 11, "webhook", loopback, p->refused);
    dead_output(run, 12, "pure", loopback, p->refused);
    dead_output(run, 13, "webhook", loopback, p->blackhole);
    dead_output(run, 14, "pure", loopback, p->blackhole);
    dead_output(run, 15, "batch", loopback, p->drip);
    dead_output(run, 16, "pure", loopback, p->drip);
    dead_output(run, 17, "webhook", loopback, p->garbage);
    dead_output(run, 18, "pure", loopback, p->garbage);
    dead_output(run, 19, "webhook", run->names ? "never-1.pure.test" : loopback, p->silent);
    dead_output(run, 20, "pure", run->names ? "never-2.pure.test" : loopback, p->silent);
}

static int configure(struct settings *settings, struct run *run, bool beside)
{
    if (host_configure(&run->host, settings, beside ? "isolation-beside" : "isolation-alone") != 0)
        return -1;
    host_app(&run->host, settings, "healthy", "many", "items=1000 size=20 first=1 last=10");
    for (unsigned i = 1; i <= HEALTHY; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%u", i);
        host_app(&run->host, settings, name, "dst", "");
    }
    for (unsigned i = 1; i <= HEALTHY; i++)
        fprintf(run->host.text,
                "\n[output healthy.w%u]\nwire = http://127.0.0.1:%u\nmode = pure\napp  = d%u\n", i,
                run->host.port, i);
    if (beside) {
        host_app(&run->host, settings, "dead", "many", "items=1000 size=20 first=11 last=20");
        dead_outputs(run);
    }
    return 0;
}

static int wait_for_healthy(struct run *run, uint64_t bursts, bool *verified)
{
    *verified = true;
    for (unsigned i = 1; i <= HEALTHY; i++) {
        char path[32];
        struct receipt receipt;
        snprintf(path, sizeof path, "/apps/d%u/state", i);
        if (drive_wait(&run->host.client, path, bursts * ITEMS, POLL_MS, &receipt) != 0)
            return -1;
        *verified &= drive_verify(path, &receipt, bursts, 1);
    }
    return 0;
}

static int warm_up(struct run *run, bool beside, struct row *row)
{
    uint64_t retries = 0;
    struct drive healthy = {"healthy", "burst", WARM_BURSTS, 2}, dead = {"dead", "burst", DEAD_BURSTS, 2};
    if (beside && drive_bursts(&run->host, &dead, &retries) != 0)
        return -1;
    if (drive_bursts(&run->host, &healthy, &retries) != 0 ||
        wait_for_healthy(run, WARM_BURSTS, &row->verified) != 0)
        return -1;
    pause_ms(SETTLE_MS);
    host_see_threads(&run->host);
    return 0;
}

static int measure(const struct bench *bench, const struct settings *settings, struct run *run,
                   struct row *row)
{
    uint64_t records = settings->records ? settings->records : bench->records;
    struct drive drive = {"healthy", "burst", 1 + records / (ITEMS * HEALTHY), bench->batch};
    if (warm_up(run, strcmp(row->variant, "beside") == 0, row) != 0 || host_measure(&run->host) != 0)
        return -1;
    uint64_t start_ns = monotonic_ns();
    if (drive_bursts(&run->host, &drive, &row->retries) != 0)
        return -1;
    host_see_threads(&run->host);
    if (wait_for_healthy(run, WARM_BURSTS + drive.bursts, &row->verified) != 0)
        return -1;
    row->elapsed_ns = monotonic_ns() - start_ns;
    row->records = drive.bursts * ITEMS * HEALTHY;
    int error = host_measured(&run->host, row);
    if (row->threads - row->name_threads > BASE_THREADS) {
        fprintf(stderr, "bench: the host has %u threads besides %u for names; it should be %u at most\n",
                row->threads - row->name_threads, row->name_threads, BASE_THREADS);
        row->verified = false;
    }
    return error;
}

int isolation_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct run run;
    bool beside = strcmp(row->variant, "beside") == 0;
    if (start_faults(settings, &run) != 0)
        return -1;
    make_resolver(settings, &run);
    int error = configure(settings, &run, beside);
    if (error == 0) {
        error = host_start(&run.host, settings, "uring", run.names ? run.resolver : NULL);
        if (error == 0)
            error = measure(bench, settings, &run, row);
        row->verified &= host_stop(&run.host) == 0;
    }
    process_stop(&run.faults);
    return error;
}
