/* What a row and a summary say about the journal. */
#include "experiments/bench/row.h"

#include <string.h>

struct figures {
    double bytes_per_fsync, records_per_fsync, write_amplification;
    double journal_bytes_s, disk_bytes_s, vs_disk;
    /* of one event by itself over one bare write and sync, and over one into space set aside; and of what it
     * takes beyond an event that is not written, over the latter. 0: not measured */
    double latency_vs_bare, latency_vs_aside, write_vs_aside;
};

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static struct figures figures_of(const struct row *row)
{
    const struct economy *e = &row->economy;
    const struct row_disk *d = &row->disk;
    double bytes = (double)e->journal_bytes, syncs = (double)e->fsyncs;
    double bytes_s = ratio(bytes * 1e9, (double)row->elapsed_ns);
    return (struct figures){
        .bytes_per_fsync = ratio(bytes, syncs),
        .records_per_fsync = ratio((double)row->records, syncs),
        .write_amplification = ratio(bytes, (double)d->framed_bytes),
        .journal_bytes_s = bytes_s,
        .disk_bytes_s = (double)d->bytes_s,
        .vs_disk = ratio(bytes_s, (double)d->bytes_s),
        .latency_vs_bare = ratio((double)d->event_p50_us, (double)d->bare_p50_us),
        .latency_vs_aside = ratio((double)d->event_p50_us, (double)d->aside_p50_us),
        .write_vs_aside = ratio((double)d->event_p50_us - (double)d->memory_p50_us, (double)d->aside_p50_us),
    };
}

static void figures_json(FILE *json, const struct figures *f)
{
    fprintf(json,
            ",\"bytes_per_fsync\":%.0f,\"records_per_fsync\":%.2f,\"write_amplification\":%.3f,"
            "\"journal_bytes_s\":%.0f,\"disk_bytes_s\":%.0f,\"vs_disk\":%.4f",
            f->bytes_per_fsync, f->records_per_fsync, f->write_amplification, f->journal_bytes_s,
            f->disk_bytes_s, f->vs_disk);
    if (f->latency_vs_bare > 0)
        fprintf(json, ",\"latency_vs_bare\":%.3f,\"latency_vs_aside\":%.3f,\"write_vs_aside\":%.3f",
                f->latency_vs_bare, f->latency_vs_aside, f->write_vs_aside);
}

void row_disk_json(FILE *json, const struct row *row)
{
    const struct row_disk *d = &row->disk;
    if (!d->bytes_s)
        return;
    struct figures f = figures_of(row);
    figures_json(json, &f);
    fprintf(json, ",\"beyond_bytes\":%llu", (unsigned long long)d->beyond_bytes);
    if (d->bare_p50_us)
        fprintf(json,
                ",\"event_p50_us\":%llu,\"memory_p50_us\":%llu,\"bare_p50_us\":%llu,\"aside_p50_us\":%llu",
                (unsigned long long)d->event_p50_us, (unsigned long long)d->memory_p50_us,
                (unsigned long long)d->bare_p50_us, (unsigned long long)d->aside_p50_us);
}

/* The median of one figure, the double at `offset` of figures. */
static double median_of(const struct figures *all, unsigned count, size_t offset)
{
    double values[ROUNDS_MAX];
    for (unsigned i = 0; i < count; i++)
        memcpy(&values[i], (const char *)&all[i] + offset, sizeof *values);
    return row_median(values, count);
}

void row_disk_summary(FILE *table, FILE *json, const struct row *rows, unsigned count, const char *variant)
{
    static struct figures all[ROUNDS_MAX];
    struct figures m;
    unsigned rounds = 0;
    for (unsigned i = 0; i < count && rounds < ROUNDS_MAX; i++) {
        if (strcmp(rows[i].variant, variant) == 0 && rows[i].disk.bytes_s)
            all[rounds++] = figures_of(&rows[i]);
    }
    if (rounds == 0)
        return;
    for (size_t offset = 0; offset < sizeof m; offset += sizeof(double)) {
        double median = median_of(all, rounds, offset);
        memcpy((char *)&m + offset, &median, sizeof median);
    }
    figures_json(json, &m);
    fprintf(table,
            "%-17s %.0f bytes and %.1f records a sync, %.2f bytes written for one, %.0f MB/s of %.0f MB/s\n",
            rows[0].bench, m.bytes_per_fsync, m.records_per_fsync, m.write_amplification,
            m.journal_bytes_s / 1e6, m.disk_bytes_s / 1e6);
    if (m.latency_vs_bare > 0)
        fprintf(table,
                "%-17s one event takes %.2f of one bare write and sync, %.2f of one into space set aside, "
                "of which the disk %.2f\n",
                rows[0].bench, m.latency_vs_bare, m.latency_vs_aside, m.write_vs_aside);
}
