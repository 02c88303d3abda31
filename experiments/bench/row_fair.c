#include "experiments/bench/row.h"

#include <string.h>

void row_fair_json(FILE *json, const struct row *row)
{
    const struct row_fair *f = &row->fair;
    if (f->rate_s <= 0)
        return;
    fprintf(json, ",\"rate_s\":%.0f,\"ratio\":%.4f", f->rate_s, f->ratio);
    for (unsigned i = 0; i < FAIR_APPS; i++)
        fprintf(json, ",\"ratio_h%u\":%.4f", i + 1, f->app_ratio[i]);
    fprintf(json, ",\"starts\":%u", f->starts);
}

/* Medians of a variant: [0] of all apps together, then of each. False: it was not measured. */
static bool medians_of(const struct row *rows, unsigned count, const char *variant,
                       double medians[1 + FAIR_APPS])
{
    double values[1 + FAIR_APPS][ROUNDS_MAX];
    unsigned rounds = 0;
    for (unsigned i = 0; i < count && rounds < ROUNDS_MAX; i++) {
        if (strcmp(rows[i].variant, variant) != 0 || rows[i].fair.rate_s <= 0)
            continue;
        values[0][rounds] = rows[i].fair.ratio;
        for (unsigned app = 0; app < FAIR_APPS; app++)
            values[1 + app][rounds] = rows[i].fair.app_ratio[app];
        rounds++;
    }
    for (unsigned i = 0; rounds > 0 && i < 1 + FAIR_APPS; i++)
        medians[i] = row_median(values[i], rounds);
    return rounds > 0;
}

void row_fair_summary(FILE *table, FILE *json, const struct row *rows, unsigned count,
                      const char *const *variants)
{
    double alone[1 + FAIR_APPS], beside[1 + FAIR_APPS];
    if (!medians_of(rows, count, variants[0], alone))
        return;
    for (unsigned i = 1; variants[i]; i++) {
        if (!medians_of(rows, count, variants[i], beside))
            continue;
        double least = 1e9;
        for (unsigned app = 1; app <= FAIR_APPS; app++)
            if (alone[app] > 0 && beside[app] / alone[app] < least)
                least = beside[app] / alone[app];
        double all = alone[0] > 0 ? beside[0] / alone[0] : 0;
        fprintf(table, "%-17s %-11s delivered %.3f of alone, the worst app %.3f\n", rows[0].bench,
                variants[i], all, least);
        fprintf(json, ",\"%s_ratio_vs_alone\":%.4f,\"%s_least_vs_alone\":%.4f", variants[i], all, variants[i],
                least);
    }
}
