/* The benchmark runner: `make bench`. docs/benchmarks.md says what is counted and how.
 *
 *     bench [-b BUILD] [-o FILE] [-p PICK,…] [-v VARIANT,…] [-r ROUNDS] [-n RECORDS] [-d SECONDS]
 *
 * It is run from the project's root. Exit status: 0 all measured and verified, 1 not, 2 usage. */
#include "experiments/bench/bench.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VARIANTS_MAX 8
#define MTU          1400 /* of links, so that they compare with others: an Internet path's, about */

static const char *const back_ends[] = {"uring", "epoll", NULL};
static const char *const servers[] = {"uring", "epoll", "reactor", NULL};
static const char *const transports[] = {"uring", "epoll", "enet", "tcp", NULL};
static const char *const clients[] = {"uring", "epoll", "curl", NULL};
static const char *const beside_curl[] = {"uring", "curl", NULL};
static const char *const company[] = {"beside", "alone", NULL};
static const char *const ours[] = {"uring", NULL};
static const char *const beside_tcp[] = {"uring", "tcp-cubic", NULL};
static const char *const stores[] = {"uring", "epoll", "queue", NULL};
static const char *const at_once[] = {"at-1", "at-16", "at-100", NULL};
static const char *const ways[] = {"uring", "epoll", "wake-record", "threads", "uring-2", NULL};
static const char *const mechanisms[] = {"all",      "no-quotas", "no-early", "no-feedback",
                                         "no-share", "none",      NULL};
static const char *const mechanisms_fast[] = {"all",  "no-quotas", "no-early",  "no-feedback", "no-share",
                                              "none", "fast",      "fast-none", NULL};
static const char *const stalls[] = {"uring",    "uring-stall",    "reactor", "reactor-stall",
                                     "reactors", "reactors-stall", NULL};
static const char *const bad_apps[] = {"alone", "quiet", "flood", "loop", "memory", "crash", NULL};
static const char *const targets[] = {"link-port", "elsewhere", NULL};

static const struct bench benches[] = {
    {"inner-1", back_ends, throughput_run, 40000000, "burst", "inner", 1, 20, .batch = 10},
    {"wires-1", back_ends, throughput_run, 40000000, "burst", "wire", 1, 20, .batch = 10},
    {"wires-4", back_ends, throughput_run, 40000000, "burst4", "wire", 4, 20, .batch = 10},
    {"webhook-1", back_ends, throughput_run, 50000, "burst", "webhook", 1, 128, .batch = 1},
    {"webhook-16", back_ends, throughput_run, 200000, "burst16", "webhook", 16, 128, .batch = 1},
    {"https-1", clients, https_run, 50000, .kind = "kept", .record_size = 128, .connections = 1},
    {"https-16", clients, https_run, 100000, .kind = "kept", .record_size = 128, .connections = 16},
    {"tls-handshakes-full", beside_curl, https_run, 3000, .kind = "ec-full", .record_size = 128,
     .connections = 1},
    {"tls-handshakes-full-rsa", beside_curl, https_run, 3000, .kind = "rsa-full", .record_size = 128,
     .connections = 1},
    {"tls-handshakes-resumed", beside_curl, https_run, 3000, .kind = "ec-resumed", .record_size = 128,
     .connections = 1},
    {"links-1", back_ends, throughput_run, 60000000, "burst", "link", 1, 20, .batch = 10, .mtu = MTU},
    {"links-4", back_ends, throughput_run, 60000000, "burst4", "link", 4, 20, .batch = 10, .mtu = MTU},
    {"links-1-jumbo", back_ends, throughput_run, 20000000, "burst", "link", 1, 20, .batch = 10},
    {"many", ours, throughput_run, 20000000, "burst", "many", 20, 20, .batch = 2, .mtu = MTU, .threads = 5},
    {"flood", targets, throughput_run, 20000000, "burst", "link", 1, 20, .batch = 10, .mtu = MTU,
     .flooded = true},
    {"links-1-durable", stores, durable_run, 20000000, "burst", "link", 1, 20, .batch = 25, .mtu = MTU},
    {"links-4-durable", stores, durable_run, 20000000, "burst4", "link", 4, 20, .batch = 7, .mtu = MTU},
    {"wires-1-durable", stores, durable_run, 10000000, "burst", "wire", 1, 20, .batch = 25},
    {"journal-1", at_once, journal_run, .connections = 0},
    {"loops-links-1", ways, loops_run, 15000000, "burst", "link", 1, 20, .batch = 10, .mtu = MTU},
    {"loops-links-4", ways, loops_run, 12000000, "burst4", "link", 4, 20, .batch = 10, .mtu = MTU},
    {"loops-wires-1", ways, loops_run, 20000000, "burst", "wire", 1, 20, .batch = 10},
    {"loops-wires-4", ways, loops_run, 20000000, "burst4", "wire", 4, 20, .batch = 10},
    {"loops-many", ways, loops_run, 6000000, "burst", "many", 20, 20, .batch = 2, .mtu = MTU},
    {"links-lossy-0", beside_tcp, lossy_run, .loss_percent = 0},
    {"links-lossy-1", beside_tcp, lossy_run, .loss_percent = 1},
    {"links-lossy-5", beside_tcp, lossy_run, .loss_percent = 5},
    {"link-raw-32", transports, raw_run, 20000000, NULL, "packets", .record_size = 32},
    {"link-raw-64", transports, raw_run, 20000000, NULL, "packets", .record_size = 64},
    {"link-raw-32-large", back_ends, raw_run, 20000000, NULL, "large", .record_size = 32},
    {"link-raw-64-large", back_ends, raw_run, 20000000, NULL, "large", .record_size = 64},
    {"link-raw-trips", transports, raw_run, 20000, NULL, "trips", .record_size = 32},
    {"front-100", servers, front_run, .connections = 100},
    {"front-352", servers, front_run, .connections = 352},
    {"livelock-front", mechanisms_fast, overload_run, .kind = "front"},
    {"livelock-records", mechanisms, overload_run, .kind = "records"},
    {"livelock-link", mechanisms, overload_run, .kind = "link"},
    {"proactor-16", stalls, proactor_run, .connections = 16},
    {"proactor-100", stalls, proactor_run, .connections = 100},
    {"proactor-352", stalls, proactor_run, .connections = 352},
    {"proactor-1000", stalls, proactor_run, .connections = 1000},
    {"fairness", bad_apps, fairness_run, .connections = 0},
    {"isolation", company, isolation_run, 20000000, "burst", "wire", 10, 20, .batch = 10},
};

static bool is_bench(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        if (strlen(benches[i].name) == length && strncmp(benches[i].name, name, length) == 0)
            return true;
    return false;
}

/* A pick is a bench's name, or the beginning of some up to a dash: `front` is front-100 and front-352. */
static bool picks(const char *list, const char *name)
{
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        if (length <= strlen(name) && strncmp(at, name, length) == 0 &&
            (name[length] == '\0' || (name[length] == '-' && !is_bench(at, length))))
            return true;
        at += length + (at[length] == ',');
    }
    return *list == '\0';
}

/* Whether a name is in a list; in an empty one all are. */
static bool listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return *list == '\0';
}

/* A pick that names nothing is a mistake worth saying. */
static bool all_picks_known(const char *list)
{
    for (const char *at = list; *at;) {
        char pick[64];
        size_t length = strcspn(at, ",");
        bool known = false;
        snprintf(pick, sizeof pick, "%.*s", (int)length, at);
        for (size_t i = 0; length > 0 && i < sizeof benches / sizeof *benches; i++)
            known |= picks(pick, benches[i].name);
        if (!known) {
            fprintf(stderr, "bench: there is no benchmark \"%s\"\n", pick);
            return false;
        }
        at += length + (at[length] == ',');
    }
    return true;
}

/* Rounds of the variants in turn; each round starts with another, so that none profits from its place. */
static int run_bench(const struct bench *bench, struct settings *settings, FILE *json)
{
    static struct row rows[ROUNDS_MAX * VARIANTS_MAX];
    unsigned count = 0, variants = 0;
    int failed = 0;
    while (bench->variants[variants])
        variants++;
    for (unsigned round = 1; round <= settings->rounds; round++)
        for (unsigned i = 0; i < variants; i++) {
            struct row *row = &rows[count];
            *row = (struct row){.bench = bench->name, .round = round};
            row->variant = bench->variants[(round - 1 + i) % variants];
            if (!listed(settings->variants, row->variant))
                continue;
            int result = bench->run(bench, settings, row);
            if (result == BENCH_LEFT_OUT)
                continue;
            if (result != 0) {
                fprintf(stderr, "bench: %s (%s) was not measured\n", bench->name, row->variant);
                failed = -1;
                continue;
            }
            row_table(stdout, row);
            row_json(json, row);
            failed |= row->verified ? 0 : -1;
            count++;
        }
    if (count > 0)
        row_summary(stdout, json, rows, count, bench->variants);
    return failed;
}

static int prepare(struct settings *settings, const char *build)
{
    char path[PATH_MAX];
    if (!realpath(build, path) || strlen(path) >= sizeof settings->build) {
        fprintf(stderr, "bench: %s: %s\n", build, strerror(errno ? errno : ENAMETOOLONG));
        return -1;
    }
    strcpy(settings->build, path);
    snprintf(settings->run, sizeof settings->run, "%s/bench/run", settings->build);
    if (mkdir(settings->run, 0755) != 0 && errno != EEXIST) {
        fprintf(stderr, "bench: %s: %s\n", settings->run, strerror(errno));
        return -1;
    }
    return 0;
}

static int run_picked(struct settings *settings, const char *list, const char *out)
{
    FILE *json = fopen(out, "w");
    if (!json) {
        fprintf(stderr, "bench: %s: %s\n", out, strerror(errno));
        return 1;
    }
    int failed = 0;
    settings->json = json;
    row_table_head(stdout);
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        if (picks(list, benches[i].name))
            failed |= run_bench(&benches[i], settings, json);
    fclose(json);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {.rounds = 5, .seconds = 3, .variants = "", .reply_size = 90};
    const char *build = "build/release", *out = "build/bench.jsonl", *list = "";
    for (int option; (option = getopt(argc, argv, "b:o:p:v:r:n:d:")) != -1;) {
        unsigned long number = optarg ? strtoul(optarg, NULL, 10) : 0;
        if (option == 'b')
            build = optarg;
        else if (option == 'o')
            out = optarg;
        else if (option == 'p')
            list = optarg;
        else if (option == 'v')
            settings.variants = optarg;
        else if (option == 'r')
            settings.rounds = (unsigned)number;
        else if (option == 'n')
            settings.records = number;
        else if (option == 'd')
            settings.seconds = (unsigned)number;
        else
            return 2;
    }
    if (settings.rounds < 1 || settings.rounds > ROUNDS_MAX || settings.seconds < 1 ||
        settings.seconds > 3600) {
        fprintf(stderr, "bench: -r is 1 to %u rounds, -d 1 to 3600 seconds\n", ROUNDS_MAX);
        return 2;
    }
    if (!all_picks_known(list))
        return 2;
    return prepare(&settings, build) == 0 ? run_picked(&settings, list, out) : 1;
}
