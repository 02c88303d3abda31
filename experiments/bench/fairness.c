/* fairness: four healthy apps at a steady rate, alone and beside an app that misbehaves
 * (experiments/013-fairness). What counts is how much of what was offered to them was answered as stored. */
#include "experiments/bench/drive.h"
#include "experiments/bench/offering.h"

#include <string.h>

#define HEALTHY     "h1,h2,h3,h4"
#define HEALTHY_ARG "spin=20us"
#define PLACES      512 /* connections, of all four apps together: what they offer in turn_limit finds room */
#define DEPTH       64
#define RUN_MS      10000u
#define LOOK_MS     10u  /* how often the supervisor looks whether the host lives */
#define TELL_MS     100u /* how often the bad app is told to misbehave */
#define SHARE       0.3  /* of what the healthy apps do alone: 0.6 of one of two processors */

#define FIND_MS     500
#define FIND_FIRST  10000.0
#define FIND_STEP   1.25
#define FIND_STEPS  24
#define FIND_BEHIND 0.9

static void add_healthy(struct host *host, const struct settings *settings, bool stored)
{
    const char *const names[FAIR_APPS] = {"h1", "h2", "h3", "h4"};
    for (unsigned i = 0; i < FAIR_APPS; i++) {
        host_app(host, settings, names[i], "dst", HEALTHY_ARG);
        if (stored)
            fprintf(host->text, "durability = memory\n");
    }
}

/* Fifth and sixth, so that `bad` is on the owner of h1 and h3, `drain` on that of h2 and h4. */
static void add_bad(struct host *host, const struct settings *settings, const char *variant)
{
    char deed[32];
    snprintf(deed, sizeof deed, "do=%s", strcmp(variant, "quiet") == 0 ? "nothing" : variant);
    host_app(host, settings, "bad", "bad", deed);
    fprintf(host->text, "turn_limit = 1s\nmemory = 64M\n");
    if (strcmp(variant, "flood") != 0)
        return;
    host_app(host, settings, "drain", "dst", "");
    fprintf(host->text, "\n[output bad.self]\ninner = bad\nevent = more\n"
                        "\n[output bad.out]\ninner = drain\nevent = e\n");
}

static struct offering offering_of(const struct host *host, double rate, unsigned ms)
{
    return (struct offering){.mode = "events",
                             .port = host->port,
                             .rate = rate,
                             .ms = ms,
                             .apps = HEALTHY,
                             .places = PLACES,
                             .depth = DEPTH};
}

/* --- what they do alone --- */

static double raise(const struct settings *settings, const struct host *host)
{
    double most = 0, rate = FIND_FIRST;
    for (unsigned step = 0, behind = 0; step < FIND_STEPS && behind < 2; step++, rate *= FIND_STEP) {
        struct offering offering = offering_of(host, rate, FIND_MS);
        struct process offer;
        struct offered offered;
        if (offering_start(&offer, settings, &offering, NULL) != 0 || offering_end(&offer, &offered) != 0)
            return 0;
        double got = (double)offered.accepted / offered.seconds;
        behind = got < FIND_BEHIND * rate ? behind + 1 : 0;
        most = got > most ? got : most;
    }
    return most;
}

/* Found once; 0 after a line on stderr. */
static double find_saturation(const struct settings *settings)
{
    static struct host host;
    static double found;
    if (found > 0)
        return found;
    if (host_configure(&host, settings, "fairness-saturation") != 0)
        return 0;
    add_healthy(&host, settings, false);
    double most = host_start(&host, settings, "uring", NULL) == 0 ? raise(settings, &host) : 0;
    found = host_stop(&host) == 0 ? most : 0;
    return found;
}

/* --- beside a bad one --- */

/* Tells the bad app to misbehave, and does not wait for what it says to that. */
static void tell_bad(struct client *client, uint16_t port)
{
    if (client->fd < 0 && client_open(client, port) != 0)
        return;
    if (client_send(client, "/apps/bad/events/go", "text/plain", "1", 1) != 0)
        client_close(client);
}

/* Sees to it until offer has ended, that the host runs. Returns how often it was started. */
static unsigned supervise(struct host *host, struct process *offer, bool bad)
{
    static struct client client = {.fd = -1};
    unsigned starts = 1;
    for (unsigned at_ms = 0; process_alive(offer) && at_ms < 3 * RUN_MS; at_ms += LOOK_MS) {
        if (!process_alive(&host->process)) {
            client_close(&client);
            if (host_again(host) != 0)
                break;
            starts++;
        }
        if (bad && at_ms % TELL_MS == 0 && at_ms < RUN_MS)
            tell_bad(&client, host->port);
        pause_ms(LOOK_MS);
    }
    client_close(&client);
    return starts;
}

static void fill(struct row *row, const struct offered *offered)
{
    row->records = offered->accepted;
    row->elapsed_ns = (uint64_t)(offered->seconds * 1e9);
    row->p50_us = offered->p50_us;
    row->p99_us = offered->p99_us;
    row->max_us = offered->max_us;
    row->fair.ratio = (double)offered->accepted / (double)offered->offered;
    for (unsigned i = 0; i < FAIR_APPS; i++)
        row->fair.app_ratio[i] = (double)offered->app_accepted[i] / (double)offered->app_offered[i];
}

/* Each app has what was told to be stored, and together they have no more than was unanswered besides. Not to
 * be asked of a host that was started again: its healthy apps begin anew. */
static bool right(struct host *host, const struct offered *offered)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < FAIR_APPS; i++) {
        char path[32];
        struct receipt receipt;
        snprintf(path, sizeof path, "/apps/h%u/state", i + 1);
        if (drive_receipt(&host->client, path, &receipt) != 0 || receipt.records < offered->app_accepted[i])
            return false;
        all += receipt.records;
    }
    return all <= offered->accepted + offered->unanswered;
}

static int measure(const struct settings *settings, struct host *host, struct row *row)
{
    struct offering offering = offering_of(host, row->fair.rate_s, RUN_MS);
    struct process offer;
    struct offered offered;
    uint64_t before_ns = process_cpu_ns(&host->process);
    if (offering_start(&offer, settings, &offering, NULL) != 0)
        return -1;
    row->fair.starts = supervise(host, &offer, strcmp(row->variant, "alone") != 0);
    if (offering_end(&offer, &offered) != 0 || offered.offered == 0)
        return -1;
    if (row->fair.starts == 1) /* else it was of several processes */
        row->cpu_ns = process_cpu_ns(&host->process) - before_ns;
    fill(row, &offered);
    host_see_threads(host);
    row->threads = host->threads.all;
    row->verified = row->fair.starts > 1 || right(host, &offered);
    return 0;
}

int fairness_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct host host;
    char file[64];
    bool stored = strcmp(row->variant, "crash") == 0;
    row->fair.rate_s = SHARE * find_saturation(settings);
    snprintf(file, sizeof file, "%s-%s", bench->name, row->variant);
    if (row->fair.rate_s <= 0 || host_configure(&host, settings, file) != 0)
        return -1;
    int error = stored ? host_store(&host, settings, file) : 0;
    if (stored)
        fprintf(host.text, "segment = 1M\n"); /* a start is not to be the time that files take */
    add_healthy(&host, settings, stored);
    if (strcmp(row->variant, "alone") != 0)
        add_bad(&host, settings, row->variant);
    if (error == 0)
        error = host_start(&host, settings, row->variant, NULL);
    if (error == 0)
        error = measure(settings, &host, row);
    row->verified &= host_stop(&host) == 0;
    return error;
}
