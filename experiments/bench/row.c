#include "experiments/bench/row.h"

#include <stdlib.h>
#include <string.h>

double row_records_s(const struct row *row)
{
    return row->elapsed_ns ? (double)row->records * 1e9 / (double)row->elapsed_ns : 0;
}

static double us_per_record(const struct row *row, uint64_t ns)
{
    return row->records ? (double)ns / 1e3 / (double)row->records : 0;
}

double row_cpu_us(const struct row *row)
{
    return us_per_record(row, row->cpu_ns);
}

double row_driver_us(const struct row *row)
{
    return us_per_record(row, row->driver_cpu_ns);
}

void row_table_head(FILE *table)
{
    fprintf(table, "%-17s %-11s %5s %12s %11s %11s %7s %10s %10s  %s\n", "bench", "variant", "round",
            "records/s", "CPU us/rec", "driver us", "threads", "enters", "wakes", "verified");
}

void row_table(FILE *table, const struct row *row)
{
    fprintf(table, "%-17s %-11s %5u %12.0f %11.4f %11.4f %7u %10llu %10llu  %s\n", row->bench, row->variant,
            row->round, row_records_s(row), row_cpu_us(row), row_driver_us(row), row->threads,
            (unsigned long long)row->economy.enters, (unsigned long long)row->economy.wakes,
            row->verified ? "yes" : "NO");
    fflush(table);
}

void row_json(FILE *json, const struct row *row)
{
    fprintf(json,
            "{\"bench\":\"%s\",\"variant\":\"%s\",\"round\":%u,\"records\":%llu,\"records_s\":%.0f,"
            "\"cpu_us_record\":%.5f,\"packets\":%llu,\"threads\":%u,\"verified\":%s,\"seconds\":%.4f,"
            "\"driver_cpu_us_record\":%.5f,\"retries\":%llu,\"name_threads\":%u",
            row->bench, row->variant, row->round, (unsigned long long)row->records, row_records_s(row),
            row_cpu_us(row), (unsigned long long)row->packets, row->threads, row->verified ? "true" : "false",
            (double)row->elapsed_ns / 1e9, row_driver_us(row), (unsigned long long)row->retries,
            row->name_threads);
    if (row->p50_us)
        fprintf(json, ",\"p50_us\":%llu,\"p99_us\":%llu", (unsigned long long)row->p50_us,
                (unsigned long long)row->p99_us);
    if (row->max_us)
        fprintf(json, ",\"max_us\":%llu", (unsigned long long)row->max_us);
    if (row->garbage_s)
        fprintf(json, ",\"garbage_s\":%llu", (unsigned long long)row->garbage_s);
#define X(field, metric) fprintf(json, ",\"" #field "\":%llu", (unsigned long long)row->economy.field);
    if (row->has_economy) {
        ECONOMY(X)
    }
#undef X
    row_disk_json(json, row);
    row_overload_json(json, row);
    row_others_json(json, row);
    row_fair_json(json, row);
    fprintf(json, "}\n");
    fflush(json);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct medians {
    unsigned rounds;
    double records_s, cpu_us;
    double least, most; /* records/s */
    bool verified;
    uint64_t records; /* sums over the rounds, these and */
    struct economy economy;
};

double row_median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static struct medians medians_of(const struct row *rows, unsigned count, const char *variant)
{
    double rates[ROUNDS_MAX], costs[ROUNDS_MAX];
    struct medians m = {.verified = true};
    for (unsigned i = 0; i < count && m.rounds < ROUNDS_MAX; i++) {
        if (strcmp(rows[i].variant, variant) != 0)
            continue;
        rates[m.rounds] = row_records_s(&rows[i]);
        costs[m.rounds++] = row_cpu_us(&rows[i]);
        m.verified &= rows[i].verified;
        m.records += rows[i].records;
#define X(field, metric) m.economy.field += rows[i].economy.field;
        ECONOMY(X)
#undef X
    }
    if (m.rounds == 0)
        return m;
    m.records_s = row_median(rates, m.rounds);
    m.cpu_us = row_median(costs, m.rounds);
    m.least = rates[0];
    m.most = rates[m.rounds - 1];
    return m;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static double each(uint64_t a, uint64_t b)
{
    return ratio((double)a, (double)b);
}

static void tell_medians(FILE *table, const char *bench, const char *variant, const struct medians *m)
{
    fprintf(table, "%-17s %-11s median %11.0f %11.4f   (%.0f to %.0f)\n", bench, variant, m->records_s,
            m->cpu_us, m->least, m->most);
}

struct figure {
    const char *name;
    uint64_t of, each;
};

/* The economy, as the least it must keep is stated: so many a turn, so many a request, of all loops together
 * and of the sending loop; so many records a packet. The requests are those that wires made, or, where there
 * are none, those that the front took. */
static void tell_economy(FILE *table, FILE *json, const char *bench, const struct medians *m)
{
    const struct economy *e = &m->economy;
    uint64_t requests = e->requests ? e->requests : e->front_requests;
    const struct figure figures[] = {
        {"enters_per_request", e->enters, requests},
        {"wakes_per_turn", e->wakes, e->turns},
        {"notices_per_turn", e->notices, e->turns},
        {"send_enters_per_request", e->send_enters, requests},
        {"send_wakes_per_turn", e->send_wakes, e->turns},
        {"send_notices_per_turn", e->send_notices, e->turns},
        {"records_per_packet", m->records, e->link_packets},
        {"packets_per_send", e->link_packets, e->link_sends},
    };
    const size_t count = sizeof figures / sizeof *figures - (e->link_packets ? 0 : 2);
    if (e->turns == 0)
        return;
    fprintf(table, "%-17s", bench);
    for (size_t i = 0; i < count; i++) {
        fprintf(table, " %s %.3f", figures[i].name, each(figures[i].of, figures[i].each));
        fprintf(json, ",\"%s\":%.4f", figures[i].name, each(figures[i].of, figures[i].each));
    }
    fprintf(table, "\n");
}

void row_summary(FILE *table, FILE *json, const struct row *rows, unsigned count, const char *const *variants)
{
    struct medians ours = medians_of(rows, count, variants[0]);
    if (ours.rounds == 0)
        return;
    const char *bench = rows[0].bench;
    bool verified = ours.verified;
    tell_medians(table, bench, variants[0], &ours);
    fprintf(
        json,
        "{\"bench\":\"%s\",\"variant\":\"summary\",\"rounds\":%u,\"records_s\":%.0f,\"cpu_us_record\":%.5f,"
        "\"records_s_least\":%.0f,\"records_s_most\":%.0f",
        bench, ours.rounds, ours.records_s, ours.cpu_us, ours.least, ours.most);
    for (unsigned i = 1; variants[i]; i++) {
        struct medians other = medians_of(rows, count, variants[i]);
        if (other.rounds == 0)
            continue;
        verified &= other.verified;
        double rate = ratio(ours.records_s, other.records_s), cpu = ratio(ours.cpu_us, other.cpu_us);
        tell_medians(table, bench, variants[i], &other);
        fprintf(table, "%-17s %s / %s: %.3f of the records/s, %.3f of the CPU per record\n", bench,
                variants[0], variants[i], rate, cpu);
        fprintf(json,
                ",\"vs_%s\":%.4f,\"cpu_vs_%s\":%.4f,\"%s_records_s\":%.0f,\"%s_cpu_us_record\":%.5f,"
                "\"%s_records_s_least\":%.0f,\"%s_records_s_most\":%.0f",
                variants[i], rate, variants[i], cpu, variants[i], other.records_s, variants[i], other.cpu_us,
                variants[i], other.least, variants[i], other.most);
    }
    tell_economy(table, json, bench, &ours);
    row_disk_summary(table, json, rows, count, variants[0]);
    for (unsigned i = 0; variants[i]; i++)
        row_sends_summary(table, json, rows, count, variants[i]);
    row_overload_summary(table, json, rows, count, variants);
    row_others_summary(table, json, rows, count, variants);
    row_fair_summary(table, json, rows, count, variants);
    fprintf(json, ",\"verified\":%s}\n", verified ? "true" : "false");
    fprintf(table, "\n");
    fflush(json);
    fflush(table);
}
