/* The program `offer` (offer.h):
 *
 *     offer events|records|link -p PORT -r RATE -t MS -a APP[,APP…] [-c PLACES] [-d DEPTH] [-s BYTES] [-n
 * NICE]
 *                               [-k KEYFILE[,KEYFILE…]] [-R RECEIVER'S PUBLIC KEY]
 *
 * PLACES: connections, or outputs of each sending host; DEPTH: requests in flight on a connection, or records
 * of a batch. At its end one line of JSON, the numbers of all apps together, and of each `accepted` and
 * `offered` apart. -n: how far below others it does its work, where probes of what it loads run beside it.
 * Exit status: 0; 1 it could not; 2 usage. */
#include "experiments/offer/offer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RATE_MOST 1e8
#define TIME_MOST 600000u /* ms */
#define NAME_MOST 63

uint64_t offer_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const struct {
    const char *name;
    int (*run)(const struct offering *offering, struct tallies *tallies);
} modes[] = {{"events", offer_events}, {"records", offer_records}, {"link", offer_link}};

/* Cuts a list at its commas. How many there are; 0: too many, or one that is empty or too long. */
static unsigned cut(char *list, const char **parts, unsigned most, size_t longest)
{
    unsigned count = 0;
    char *rest = list;
    for (char *part; (part = strsep(&rest, ","));) {
        if (count == most || *part == '\0' || strlen(part) > longest)
            return 0;
        parts[count++] = part;
    }
    return count;
}

static int read_option(struct offering *o, int option, char *value)
{
    unsigned long number = value ? strtoul(value, NULL, 10) : 0;
    if (option == 'p')
        o->port = (uint16_t)number;
    else if (option == 'r')
        o->rate = strtod(value, NULL);
    else if (option == 't')
        o->time_ns = (number < TIME_MOST ? number : TIME_MOST) * UINT64_C(1000000);
    else if (option == 'c')
        o->places = (unsigned)number;
    else if (option == 'd')
        o->depth = (unsigned)number;
    else if (option == 's')
        o->bytes = (unsigned)number;
    else if (option == 'a')
        return (o->app_count = cut(value, o->apps, APPS_MOST, NAME_MOST)) > 0 ? 0 : -1;
    else if (option == 'k')
        return (o->key_count = cut(value, o->keys, KEYS_MOST, 4095)) > 0 ? 0 : -1;
    else if (option == 'n')
        return nice((int)number) == -1 ? -1 : 0;
    else if (option == 'R')
        o->receiver = value;
    else
        return -1;
    return 0;
}

static bool usable(const struct offering *o)
{
    return o->port > 0 && o->rate > 0 && o->rate <= RATE_MOST && o->time_ns > 0 && o->app_count > 0 &&
           o->places > 0 && o->places <= PLACES_MOST && o->depth > 0 && o->bytes >= BYTES_LEAST &&
           o->bytes <= BYTES_MOST;
}

static void tell(const struct offering *o, const struct tallies *t)
{
    struct tally all = {.elapsed_ns = o->time_ns};
    for (unsigned i = 0; i < o->app_count; i++) {
        const struct tally *one = &t->app[i];
        all.offered += one->offered;
        all.dropped += one->dropped;
        all.sent += one->sent;
        all.accepted += one->accepted;
        all.sum += one->sum;
        all.lost += one->lost;
        all.unanswered += one->unanswered;
        all.refused += one->refused;
        all.failed += one->failed;
    }
    double s = (double)all.elapsed_ns / 1e9;
    printf("{\"offered\":%llu,\"dropped\":%llu,\"sent\":%llu,\"accepted\":%llu,\"sum\":%llu,\"lost\":%llu,"
           "\"unanswered\":%llu,\"refused\":%llu,\"failed\":%llu,\"ns\":%llu",
           (unsigned long long)all.offered, (unsigned long long)all.dropped, (unsigned long long)all.sent,
           (unsigned long long)all.accepted, (unsigned long long)all.sum, (unsigned long long)all.lost,
           (unsigned long long)all.unanswered, (unsigned long long)all.refused,
           (unsigned long long)all.failed, (unsigned long long)all.elapsed_ns);
    printf(",\"offered_s\":%.0f,\"sent_s\":%.0f,\"accepted_s\":%.0f,\"refused_s\":%.0f",
           (double)all.offered / s, (double)all.sent / s, (double)all.accepted / s, (double)all.refused / s);
    printf(",\"p50_us\":%llu,\"p99_us\":%llu,\"max_us\":%llu",
           (unsigned long long)latency_percentile_ns(&t->latency, 50) / 1000,
           (unsigned long long)latency_percentile_ns(&t->latency, 99) / 1000,
           (unsigned long long)t->latency.most_ns / 1000);
    for (unsigned i = 0; i < o->app_count; i++)
        printf(",\"offered_%u\":%llu,\"accepted_%u\":%llu", i, (unsigned long long)t->app[i].offered, i,
               (unsigned long long)t->app[i].accepted);
    printf("}\n");
}

int main(int argc, char **argv)
{
    static struct tallies tallies;
    struct offering offering = {.places = 16, .depth = 32, .bytes = 20};
    unsigned mode = 0, modes_count = sizeof modes / sizeof *modes;
    while (argc > 1 && mode < modes_count && strcmp(argv[1], modes[mode].name) != 0)
        mode++;
    bool right = argc > 1 && mode < modes_count;
    optind = 2;
    for (int option; right && (option = getopt(argc, argv, "p:r:t:c:d:s:a:k:R:n:")) != -1;)
        right = read_option(&offering, option, optarg) == 0;
    if (!right || !usable(&offering)) {
        fprintf(stderr, "usage: offer events|records|link -p PORT -r RATE -t MS -a APP[,APP] [-c PLACES] "
                        "[-d DEPTH] [-s BYTES] [-n NICE] [-k KEYFILE[,KEYFILE]] [-R KEY]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (modes[mode].run(&offering, &tallies) != 0)
        return 1;
    tell(&offering, &tallies);
    return 0;
}
