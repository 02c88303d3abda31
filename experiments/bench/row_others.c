#include "experiments/bench/row.h"

#include <string.h>

void row_others_json(FILE *json, const struct row *row)
{
    const struct row_others *o = &row->others;
    if (o->requests > 0)
        fprintf(json, ",\"others\":%llu,\"others_p50_us\":%llu,\"others_p99_us\":%llu,\"others_max_us\":%llu",
                (unsigned long long)o->requests, (unsigned long long)o->p50_us, (unsigned long long)o->p99_us,
                (unsigned long long)o->max_us);
}

/* The medians of a variant; others 0: there are none. */
struct latencies {
    double all, others; /* 99th percentiles, microseconds */
};

/* The variant is the first `length` bytes of `name`. */
static struct latencies medians_of(const struct row *rows, unsigned count, const char *name, size_t length)
{
    double all[ROUNDS_MAX], others[ROUNDS_MAX];
    unsigned rounds = 0;
    for (unsigned i = 0; i < count && rounds < ROUNDS_MAX; i++) {
        if (strlen(rows[i].variant) != length || strncmp(rows[i].variant, name, length) != 0 ||
            rows[i].others.requests == 0)
            continue;
        all[rounds] = (double)rows[i].p99_us;
        others[rounds++] = (double)rows[i].others.p99_us;
    }
    if (rounds == 0)
        return (struct latencies){0, 0};
    return (struct latencies){row_median(all, rounds), row_median(others, rounds)};
}

void row_others_summary(FILE *table, FILE *json, const struct row *rows, unsigned count,
                        const char *const *variants)
{
    for (unsigned i = 0; variants[i]; i++) {
        const char *dash = strchr(variants[i], '-');
        struct latencies own = medians_of(rows, count, variants[i], strlen(variants[i]));
        if (own.others <= 0)
            continue;
        fprintf(table, "%-17s %-14s p99 %.0f us, of the others %.0f us\n", rows[0].bench, variants[i],
                own.all, own.others);
        fprintf(json, ",\"%s_p99_us\":%.0f,\"%s_others_p99_us\":%.0f", variants[i], own.all, variants[i],
                own.others);
        struct latencies calm = {0, 0};
        if (dash)
            calm = medians_of(rows, count, variants[i], (size_t)(dash - variants[i]));
        if (calm.others > 0)
            fprintf(json, ",\"%s_others_vs_calm\":%.3f", variants[i], own.others / calm.others);
    }
}
