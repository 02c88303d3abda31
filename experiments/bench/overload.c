/* livelock-front, -records, -link: what reaches the app when more is offered than it can do
 * (experiments/011-livelock). A bench's kind is the way in. A variant is a host with mechanisms off; its run
 * is a sweep of offered rates, multiples of what saturates the host with all mechanisms on. */
#include "experiments/bench/overload.h"

#include <string.h>

#define SETTLE_MS    300
#define COUNT_MS     1500
#define FIND_SETTLE  150
#define FIND_COUNT   300
#define FIND_STEP    1.25
#define FIND_STEPS   24
#define FIND_BEHIND  0.9  /* of what is offered is delivered, or */
#define FIND_GROWTH  1.03 /* of the most before is not reached, twice in a row: saturated */
#define FIND_FAST_S  40000.0
#define FIND_FIRST   0.25 /* of what the app's own time would allow */
#define EVERY_SWITCH "quotas, early, feedback, share"

static const struct way_in ways[] = {
    {"front", "events", .spin_us = 20, .places = 256, .depth = 32},
    {"records", "records", .spin_us = 5, .places = 256, .depth = 100},
    {"link", "link", .spin_us = 5, .places = 4, .depth = 1},
};

static const double factors[] = {0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10};

/* What saturates the host, found once a bench: [1] with the fast app. */
static const struct bench *found_of;
static double found[2];

/* What a variant leaves out; NULL: nothing. */
static const char *without_of(const char *variant)
{
    if (strcmp(variant, "none") == 0 || strcmp(variant, "fast-none") == 0)
        return EVERY_SWITCH;
    return strncmp(variant, "no-", 3) == 0 ? variant + 3 : NULL;
}

static const struct way_in *way_of(const struct bench *bench)
{
    const struct way_in *way = ways;
    while (strcmp(way->kind, bench->kind) != 0)
        way++;
    return way;
}

/* Raises the rate until what is delivered falls behind or grows no more. Returns the most delivered, 0 after
 * a line on stderr. */
static double raise(struct overloaded *o, bool fast)
{
    double most = 0, rate = fast ? FIND_FAST_S : FIND_FIRST * 1e6 / o->way->spin_us;
    unsigned level = 0;
    for (unsigned step = 0; step < FIND_STEPS && level < 2; step++, rate *= FIND_STEP) {
        struct point point = {.rate = rate, .settle_ms = FIND_SETTLE, .count_ms = FIND_COUNT};
        struct seen seen;
        if (overloaded_point(o, &point, &seen) != 0)
            return 0;
        bool behind = seen.delivered_s < FIND_BEHIND * rate;
        level = behind || seen.delivered_s < most * FIND_GROWTH ? level + 1 : 0;
        most = seen.delivered_s > most ? seen.delivered_s : most;
    }
    return most;
}

static double find_saturation(const struct bench *bench, const struct settings *settings, bool fast)
{
    static struct overloaded o;
    char name[64];
    if (found_of != bench)
        found[0] = found[1] = 0;
    found_of = bench;
    if (found[fast] > 0)
        return found[fast];
    snprintf(name, sizeof name, "%s-saturation", bench->name);
    double most = overloaded_start(&o, settings, way_of(bench), name, NULL, fast) == 0 ? raise(&o, fast) : 0;
    found[fast] = overloaded_stop(&o) == 0 ? most : 0;
    return found[fast];
}

static uint64_t cpu_ns(const struct shares *s)
{
    return s->front + s->listen + s->owners + s->send + s->others;
}

static void point_table(FILE *table, const struct row *row, const struct point *point, const struct seen *s)
{
    double ns = (double)s->elapsed_ns;
    fprintf(table,
            "%-17s %-11s %5.2f x %9.0f/s, delivered %9.0f/s, health p99 %5llu, %5llu us, CPU %2.0f %% front, "
            "%2.0f %% listen, %2.0f %% owners%s\n",
            row->bench, row->variant, point->factor, point->rate, s->delivered_s,
            (unsigned long long)s->health.new_p99_us, (unsigned long long)s->health.kept_p99_us,
            100 * (double)s->shares.front / ns, 100 * (double)s->shares.listen / ns,
            100 * (double)s->shares.owners / ns, s->verified ? "" : "  NOT VERIFIED");
    fflush(table);
}

static void point_json(FILE *json, const struct row *row, const struct point *point, const struct seen *s)
{
    double ns = (double)s->elapsed_ns, seconds = s->offered.seconds, cpu_s = (double)cpu_ns(&s->shares) / 1e9;
    fprintf(json,
            "{\"bench\":\"%s\",\"variant\":\"%s\",\"round\":%u,\"point\":%.2f,\"rate_s\":%.0f,"
            "\"delivered_s\":%.0f,\"offered_s\":%.0f,\"dropped_s\":%.0f,\"sent_s\":%.0f,\"accepted_s\":%.0f,"
            "\"refused_s\":%.0f,\"unanswered\":%llu,\"failed\":%llu",
            row->bench, row->variant, row->round, point->factor, point->rate, s->delivered_s,
            (double)s->offered.offered / seconds, (double)s->offered.dropped / seconds,
            (double)s->offered.sent / seconds, (double)s->offered.accepted / seconds,
            (double)s->offered.refused / seconds, (unsigned long long)s->offered.unanswered,
            (unsigned long long)s->offered.failed);
    fprintf(json,
            ",\"p50_us\":%llu,\"p99_us\":%llu,\"max_us\":%llu,\"health_new_p50_us\":%llu,"
            "\"health_new_p99_us\":%llu,\"health_kept_p50_us\":%llu,\"health_kept_p99_us\":%llu,"
            "\"health_failed\":%llu",
            (unsigned long long)s->offered.p50_us, (unsigned long long)s->offered.p99_us,
            (unsigned long long)s->offered.max_us, (unsigned long long)s->health.new_p50_us,
            (unsigned long long)s->health.new_p99_us, (unsigned long long)s->health.kept_p50_us,
            (unsigned long long)s->health.kept_p99_us, (unsigned long long)s->health.failed);
    fprintf(json,
            ",\"cpu_front\":%.3f,\"cpu_listen\":%.3f,\"cpu_owners\":%.3f,\"cpu_others\":%.3f,\"delivered_cpu_"
            "s\":%.0f,\"verified\":%s}\n",
            (double)s->shares.front / ns, (double)s->shares.listen / ns, (double)s->shares.owners / ns,
            (double)(s->shares.send + s->shares.others) / ns, cpu_s > 0 ? (double)s->delivered / cpu_s : 0,
            s->verified ? "true" : "false");
    fflush(json);
}

/* The row is of the highest point, where the ratio is taken. */
static void fill(struct row *row, const struct seen *last)
{
    const struct health *h = &last->health;
    uint64_t worse_us = h->new_p99_us > h->kept_p99_us ? h->new_p99_us : h->kept_p99_us;
    row->records = last->delivered;
    row->elapsed_ns = last->elapsed_ns;
    row->cpu_ns = cpu_ns(&last->shares);
    row->p50_us = last->offered.p50_us;
    row->p99_us = last->offered.p99_us;
    row->overload.delivered_ratio = last->delivered_s / row->overload.peak_s;
    row->overload.health_p99_ms = (double)worse_us / 1e3;
}

static int sweep(struct overloaded *o, FILE *json, struct row *row)
{
    struct seen seen = {.verified = false};
    row->verified = true;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        struct point point = {.factor = factors[i],
                              .rate = factors[i] * row->overload.saturation_s,
                              .settle_ms = SETTLE_MS,
                              .count_ms = COUNT_MS,
                              .probed = true};
        if (overloaded_point(o, &point, &seen) != 0)
            return -1;
        point_table(stdout, row, &point, &seen);
        point_json(json, row, &point, &seen);
        row->verified &= seen.verified;
        if (seen.delivered_s > row->overload.peak_s)
            row->overload.peak_s = seen.delivered_s;
    }
    host_see_threads(&o->host);
    row->threads = o->host.threads.all;
    fill(row, &seen);
    return 0;
}

int overload_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct overloaded o;
    char name[64];
    bool fast = strncmp(row->variant, "fast", 4) == 0;
    row->overload.saturation_s = find_saturation(bench, settings, fast);
    if (row->overload.saturation_s <= 0)
        return -1;
    snprintf(name, sizeof name, "%s-%s", bench->name, row->variant);
    int error = overloaded_start(&o, settings, way_of(bench), name, without_of(row->variant), fast);
    row->overload.processors = o.processors.count;
    if (error == 0)
        error = sweep(&o, settings->json, row);
    row->verified &= overloaded_stop(&o) == 0;
    return error;
}
