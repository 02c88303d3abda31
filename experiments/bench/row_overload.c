#include "experiments/bench/row.h"

#include <string.h>

void row_overload_json(FILE *json, const struct row *row)
{
    const struct row_overload *o = &row->overload;
    if (o->saturation_s > 0)
        fprintf(json,
                ",\"saturation_s\":%.0f,\"peak_s\":%.0f,\"delivered_ratio\":%.4f,\"health_p99_ms\":%.3f,"
                "\"processors\":%u",
                o->saturation_s, o->peak_s, o->delivered_ratio, o->health_p99_ms, o->processors);
}

static void tell_variant(FILE *table, FILE *json, const struct row *rows, unsigned count, const char *variant,
                         const char *prefix)
{
    double ratios[ROUNDS_MAX], health[ROUNDS_MAX];
    unsigned rounds = 0;
    const char *dash = *prefix ? "_" : "";
    for (unsigned i = 0; i < count && rounds < ROUNDS_MAX; i++) {
        if (strcmp(rows[i].variant, variant) != 0 || rows[i].overload.saturation_s <= 0)
            continue;
        ratios[rounds] = rows[i].overload.delivered_ratio;
        health[rounds++] = rows[i].overload.health_p99_ms;
    }
    if (rounds == 0)
        return;
    double ratio = row_median(ratios, rounds), ms = row_median(health, rounds);
    fprintf(table, "%-17s %-11s delivered_ratio %.3f (%.3f to %.3f), health_p99_ms %.1f (%.1f to %.1f)\n",
            rows[0].bench, variant, ratio, ratios[0], ratios[rounds - 1], ms, health[0], health[rounds - 1]);
    fprintf(json, ",\"%s%sdelivered_ratio\":%.4f,\"%s%shealth_p99_ms\":%.3f", prefix, dash, ratio, prefix,
            dash, ms);
}

void row_overload_summary(FILE *table, FILE *json, const struct row *rows, unsigned count,
                          const char *const *variants)
{
    for (unsigned i = 0; variants[i]; i++)
        tell_variant(table, json, rows, count, variants[i], i ? variants[i] : "");
}
