/* What a summary says about the sending loops: the figures of the source documents' table, of each variant.
 */
#include "experiments/bench/row.h"

#include <string.h>

struct figure {
    const char *name;
    uint64_t (*of)(const struct row *row);
};

static uint64_t packets(const struct row *row)
{
    return row->packets;
}

static uint64_t threads(const struct row *row)
{
    return row->threads;
}

static uint64_t waits(const struct row *row)
{
    return row->economy.send_steps;
}

/* Another round was wanted, or a notice had come. */
static uint64_t waits_at_once(const struct row *row)
{
    return row->economy.send_steps - row->economy.send_sleeps;
}

static uint64_t wakes(const struct row *row)
{
    return row->economy.send_wakes;
}

static uint64_t rounds(const struct row *row)
{
    return row->economy.send_rounds;
}

static uint64_t owner_notices(const struct row *row)
{
    return row->economy.own_notices;
}

static const struct figure figures[] = {
    {"packets", packets},
    {"threads", threads},
    {"waits", waits},
    {"waits_at_once", waits_at_once},
    {"wakes", wakes},
    {"rounds", rounds},
    {"owner_notices", owner_notices},
};

void row_sends_summary(FILE *table, FILE *json, const struct row *rows, unsigned count, const char *variant)
{
    for (size_t f = 0; f < sizeof figures / sizeof *figures; f++) {
        double values[ROUNDS_MAX];
        unsigned found = 0;
        for (unsigned i = 0; i < count && found < ROUNDS_MAX; i++) {
            if (rows[i].sends && strcmp(rows[i].variant, variant) == 0)
                values[found++] = (double)figures[f].of(&rows[i]);
        }
        if (found == 0)
            return;
        double median = row_median(values, found);
        if (f == 0)
            fprintf(table, "%-17s %-11s", rows[0].bench, variant);
        fprintf(table, " %s %.0f", figures[f].name, median);
        fprintf(json, ",\"%s_%s\":%.0f", variant, figures[f].name, median);
    }
    fprintf(table, "\n");
}
