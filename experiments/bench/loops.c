/* loops-…: how outlets are driven. One host, whose app sends each item of a burst to N outputs: links or
 * wires of their own, in the five ways of experiments/010-one-loop. The first link leads to the host itself,
 * as all wires do; a link is one a receiving host, so the others lead to hosts of their own. CPU and counters
 * are of all these hosts; threads are the sending host's. */
#include "experiments/bench/drive.h"

#include <string.h>

#define WARM_BURSTS 20 /* untimed: memory is touched, connections are made */
#define POLL_MS     2
#define LINKS_MAX   10

struct run {
    struct host hosts[LINKS_MAX]; /* [0] sends; [i] is where link i leads */
    unsigned host_count;
    unsigned links, wires; /* outputs: links first */
};

static bool is_many(const struct bench *bench)
{
    return strcmp(bench->kind, "many") == 0;
}

static const char *app_of(const struct bench *bench)
{
    return is_many(bench) ? "many" : "src";
}

static void count_outputs(const struct bench *bench, struct run *run)
{
    bool links = strcmp(bench->kind, "link") == 0;
    run->links = is_many(bench) ? bench->outputs / 2 : links ? bench->outputs : 0;
    run->wires = bench->outputs - run->links;
    run->host_count = run->links > 1 ? run->links : 1;
}

/* Where output `i` leads. */
static struct host *receiver(struct run *run, unsigned i)
{
    return &run->hosts[i < run->links ? i : 0];
}

/* As many as there are ways to have: with one outlet there is no second loop. */
static unsigned loops_of(const struct bench *bench, const char *variant)
{
    unsigned wanted = strcmp(variant, "threads") == 0   ? bench->outputs
                      : strcmp(variant, "uring-2") == 0 ? 2
                                                        : 1;
    return wanted < bench->outputs ? wanted : bench->outputs;
}

static unsigned expected_threads(const struct bench *bench, const struct run *run, const char *variant)
{
    return 1 + 2 + loops_of(bench, variant) + (run->links > 0);
}

/* --- configurations --- */

static int configure_host(const struct bench *bench, struct settings *settings, struct run *run, unsigned i,
                          const char *variant)
{
    char file[64];
    snprintf(file, sizeof file, "%s-%s-%u", bench->name, variant, i);
    if (host_configure(&run->hosts[i], settings, file) != 0)
        return -1;
    if (i == 0)
        fprintf(run->hosts[0].text, "loops  = %u\n", loops_of(bench, variant));
    return run->links > 0 ? host_link(&run->hosts[i], settings, "127.0.0.1") : 0;
}

static void configure_output(const struct bench *bench, struct run *run, unsigned i)
{
    struct host *from = &run->hosts[0], *to = receiver(run, i);
    fprintf(from->text, "\n[output %s.", app_of(bench));
    if (bench->outputs == 1)
        fprintf(from->text, "out]\n");
    else
        fprintf(from->text, "%c%u]\n", is_many(bench) ? 'w' : 'o', i + 1);
    if (i < run->links)
        fprintf(from->text, "link   = 127.0.0.1:%u\nmtu    = %u\n", to->link_port, bench->mtu);
    else
        fprintf(from->text, "wire   = http://127.0.0.1:%u\nmode   = pure\n", to->port);
    fprintf(from->text, "app    = d%u\n", i + 1);
    if (run->links > 0) /* wires beside links are sealed, too */
        fprintf(from->text, "key    = %s\n", to->public_key);
}

/* The apps on a host that outputs lead to, and that the sending host may send there. */
static void configure_receiver(const struct bench *bench, struct settings *settings, struct run *run,
                               struct host *host)
{
    char apps[128] = "";
    for (unsigned i = 0; i < bench->outputs; i++) {
        char name[16];
        if (receiver(run, i) != host)
            continue;
        snprintf(name, sizeof name, "d%u", i + 1);
        host_app(host, settings, name, "dst", "");
        snprintf(apps + strlen(apps), sizeof apps - strlen(apps), "%s%s", *apps ? ", " : "", name);
    }
    if (run->links > 0)
        fprintf(host->text, "\n[peer sender]\nkey    = %s\napps   = %s\n", run->hosts[0].public_key, apps);
}

static int configure(const struct bench *bench, struct settings *settings, struct run *run,
                     const char *variant)
{
    char arg[64];
    snprintf(arg, sizeof arg, "items=%u size=%u", ITEMS, bench->record_size);
    for (unsigned i = 0; i < run->host_count; i++) {
        if (configure_host(bench, settings, run, i, variant) != 0)
            return -1;
    }
    host_app(&run->hosts[0], settings, app_of(bench), app_of(bench), arg);
    for (unsigned i = 0; i < run->host_count; i++)
        configure_receiver(bench, settings, run, &run->hosts[i]);
    for (unsigned i = 0; i < bench->outputs; i++)
        configure_output(bench, run, i);
    return 0;
}

/* --- a run --- */

static int wait_for_receivers(const struct bench *bench, struct run *run, uint64_t bursts, bool *verified)
{
    *verified = true;
    for (unsigned i = 0; i < bench->outputs; i++) {
        struct receipt receipt;
        char path[32];
        snprintf(path, sizeof path, "/apps/d%u/state", i + 1);
        if (drive_wait(&receiver(run, i)->client, path, bursts * ITEMS, POLL_MS, &receipt) != 0)
            return -1;
        *verified &= drive_verify(path, &receipt, bursts, 1);
    }
    return 0;
}

static int measured(struct run *run, struct row *row)
{
    int error = 0;
    for (unsigned i = run->host_count; error == 0 && i-- > 0;) {
        row->threads = 0; /* the last is the sending host */
        error = host_measured(&run->hosts[i], row);
    }
    return error;
}

static int measure(const struct bench *bench, const struct settings *settings, struct run *run,
                   struct row *row)
{
    uint64_t records = settings->records ? settings->records : bench->records, warm_retries = 0;
    uint64_t a_burst = (uint64_t)ITEMS * bench->outputs;
    struct drive drive = {
        .app = app_of(bench), .event = bench->event, .bursts = WARM_BURSTS, .batch = bench->batch};
    if (drive_bursts(&run->hosts[0], &drive, &warm_retries) != 0 ||
        wait_for_receivers(bench, run, WARM_BURSTS, &row->verified) != 0)
        return -1;
    for (unsigned i = 0; i < run->host_count; i++) {
        if (host_measure(&run->hosts[i]) != 0)
            return -1;
    }
    drive.bursts = records < a_burst ? 1 : records / a_burst;
    uint64_t own_ns = own_cpu_ns(), start_ns = monotonic_ns();
    if (drive_bursts(&run->hosts[0], &drive, &row->retries) != 0 ||
        wait_for_receivers(bench, run, WARM_BURSTS + drive.bursts, &row->verified) != 0)
        return -1;
    row->elapsed_ns = monotonic_ns() - start_ns;
    row->driver_cpu_ns = own_cpu_ns() - own_ns;
    row->records = drive.bursts * a_burst;
    return measured(run, row);
}

static void see_threads(const struct bench *bench, const struct run *run, struct row *row)
{
    unsigned expected = expected_threads(bench, run, row->variant);
    if (row->threads == expected)
        return;
    fprintf(stderr, "bench: the host has %u threads; it should be %u\n", row->threads, expected);
    row->verified = false;
}

int loops_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct run run;
    int error;
    count_outputs(bench, &run);
    for (unsigned i = 0; i < run.host_count; i++) {
        memset(&run.hosts[i], 0, offsetof(struct host, client));
        run.hosts[i].client.fd = -1;
    }
    row->sends = true;
    error = configure(bench, settings, &run, row->variant);
    for (unsigned i = run.host_count; error == 0 && i-- > 0;)
        error = host_start(&run.hosts[i], settings, row->variant, NULL);
    if (error == 0)
        error = measure(bench, settings, &run, row);
    if (error == 0)
        see_threads(bench, &run, row);
    for (unsigned i = 0; i < run.host_count; i++)
        row->verified &= host_stop(&run.hosts[i]) == 0;
    return error;
}
