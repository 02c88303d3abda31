/* What one run of one variant measured, and how it is told: a line on the terminal, a JSON object in the
 * results file, medians and ratios at the end of a benchmark. */
#ifndef PURE_EXPERIMENTS_BENCH_ROW_H
#define PURE_EXPERIMENTS_BENCH_ROW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS_MAX 100

/* The host's own counters over a run, all its loops together but where the name says send or own: (field of
 * the row, metric of the host). */
#define ECONOMY(X)                                              \
    X(enters, "pure_io_enters_total")                           \
    X(operations, "pure_io_sqes_total")                         \
    X(completions, "pure_io_cqes_total")                        \
    X(sleeps, "pure_io_sleeps_total")                           \
    X(wakes, "pure_io_wakes_total")                             \
    X(rounds, "pure_loop_rounds_total")                         \
    X(notices, "pure_loop_notices_total")                       \
    X(send_enters, "pure_io_enters_total{loop=\"pure-send")     \
    X(send_sleeps, "pure_io_sleeps_total{loop=\"pure-send")     \
    X(send_wakes, "pure_io_wakes_total{loop=\"pure-send")       \
    X(send_steps, "pure_loop_steps_total{loop=\"pure-send")     \
    X(send_rounds, "pure_loop_rounds_total{loop=\"pure-send")   \
    X(send_notices, "pure_loop_notices_total{loop=\"pure-send") \
    X(own_notices, "pure_loop_notices_total{loop=\"pure-own")   \
    X(requests, "pure_outlet_requests_total")                   \
    X(front_requests, "pure_front_requests_total")              \
    X(turns, "pure_app_turns_total")                            \
    X(link_packets, "pure_link_packets_total")                  \
    X(link_sends, "pure_link_sends_total")                      \
    X(link_bytes, "pure_link_bytes_total")                      \
    X(link_lost, "pure_link_lost_total")                        \
    X(link_back, "pure_link_received_total")                    \
    X(listen_datagrams, "pure_listen_datagrams_total")          \
    X(listen_dropped, "pure_listen_dropped_total")              \
    X(listen_unopened, "pure_listen_unopened_total")            \
    X(fsyncs, "pure_journal_writes_total")                      \
    X(journal_bytes, "pure_journal_written_bytes_total")        \
    X(journal_frames, "pure_journal_frames_total")

struct economy {
#define X(field, metric) uint64_t field;
    ECONOMY(X)
#undef X
};

/* Of hosts with a store on the disk. */
struct row_disk {
    uint64_t bytes_s;       /* what the disk takes by itself, 1 MiB and a sync at a time; 0: no such row */
    uint64_t framed_bytes;  /* of the records delivered, or of the events taken */
    uint64_t beyond_bytes;  /* most seen waiting on the disk beyond the queues */
    uint64_t event_p50_us;  /* journal at-1: one event by itself, in turns with */
    uint64_t memory_p50_us; /* one event to an app that keeps nothing, and */
    uint64_t bare_p50_us;   /* one bare write and sync of the same size, behind a file's end, and */
    uint64_t aside_p50_us;  /* into space that was set aside */
};

/* Of a sweep of offered rates (overload.c). */
struct row_overload {
    double saturation_s;    /* what offered rates are multiples of; 0: no such row */
    double peak_s;          /* most that was delivered at any of them */
    double delivered_ratio; /* delivered at the highest over the peak */
    double health_p99_ms;   /* of /health at the highest: new or kept connections, whichever is worse */
    unsigned processors;    /* 1: the host and what loads it share one */
};

/* Of requests to an app beside the one that is measured (proactor.c). */
struct row_others {
    uint64_t requests; /* answered; 0: no such row */
    uint64_t p50_us, p99_us, max_us;
};

#define FAIR_APPS 4

/* Of healthy apps beside a bad one (fairness.c). */
struct row_fair {
    double rate_s; /* offered to all of them; 0: no such row */
    double ratio;  /* answered as stored, of what was offered to all of them; */
    double app_ratio[FAIR_APPS];
    unsigned starts; /* of the host */
};

struct row {
    const char *bench, *variant;
    unsigned round;                  /* from 1 */
    uint64_t records;                /* that reached their last consumer; requests in webhook and front */
    uint64_t elapsed_ns;             /* from the first request until the last consumer had all */
    uint64_t cpu_ns;                 /* user + system of what is measured: one process or two */
    uint64_t driver_cpu_ns;          /* of what drives it: not in cpu_ns */
    uint64_t packets;                /* datagrams that carried them, all that were sent; 0: none did */
    uint64_t retries;                /* requests of the driver that were answered 503 and sent again */
    unsigned threads;                /* most seen in what is measured */
    unsigned name_threads;           /* those of them that look names up */
    bool verified;                   /* counts, sums and order at the receivers are what they must be */
    uint64_t p50_us, p99_us, max_us; /* front, proactor: latency of a request. max 0: not known */
    uint64_t garbage_s;              /* flood: datagrams a second, as sent */
    struct row_disk disk;
    bool sends; /* its sending loops are what is measured: row_sends_summary */
    struct row_overload overload;
    struct row_others others;
    struct row_fair fair;
    bool has_economy;
    struct economy economy;
};

double row_records_s(const struct row *row);
double row_cpu_us(const struct row *row);
double row_driver_us(const struct row *row);

void row_table_head(FILE *table);
void row_table(FILE *table, const struct row *row);
void row_json(FILE *json, const struct row *row);

/* Medians of rows[0, count), which are of one bench: variants[0] is ours and is set against each other one
 * ("vs_NAME", of records/s; "cpu_vs_NAME", of CPU per record). */
void row_summary(FILE *table, FILE *json, const struct row *rows, unsigned count,
                 const char *const *variants);

/* The parts of both that are about the journal: nothing without disk.bytes_s. */
void row_disk_json(FILE *json, const struct row *row);
void row_disk_summary(FILE *table, FILE *json, const struct row *rows, unsigned count, const char *variant);

/* The part of the summary that is about the sending loops, of one variant: nothing unless its rows say so. */
void row_sends_summary(FILE *table, FILE *json, const struct row *rows, unsigned count, const char *variant);
/* The same for sweeps: of each variant the medians of the two ratios. */
void row_overload_json(FILE *json, const struct row *row);
void row_overload_summary(FILE *table, FILE *json, const struct row *rows, unsigned count,
                          const char *const *variants);

/* The same for what is beside: percentiles, and for a variant X-stall what they are of X's. */
void row_others_json(FILE *json, const struct row *row);
void row_others_summary(FILE *table, FILE *json, const struct row *rows, unsigned count,
                        const char *const *variants);

/* The same for fairness: each variant's ratios over those of the first. */
void row_fair_json(FILE *json, const struct row *row);
void row_fair_summary(FILE *table, FILE *json, const struct row *rows, unsigned count,
                      const char *const *variants);

/* Sorts values[0, count); count is at least 1. */
double row_median(double *values, unsigned count);

#endif
