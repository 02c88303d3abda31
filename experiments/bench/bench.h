/* The benchmark runner. A benchmark is a table entry (main.c): its variants run in turn, round by round, each
 * run in processes of its own, and each run fills a row.
 *
 * The order of reading: main.c (the table, the rounds), host.h (a host under test), drive.h (what gives it
 * work and sees that all arrived), then throughput.c, loops.c, front.c, isolation.c, lossy.c, raw.c,
 * durable.c, journal.c, https.c, overload.c, proactor.c, fairness.c. */
#ifndef PURE_EXPERIMENTS_BENCH_H
#define PURE_EXPERIMENTS_BENCH_H

#include "experiments/bench/row.h"

#include <stddef.h>

struct settings {
    char build[256]; /* absolute: the object tree with pure-host, apps/ and bench/ */
    char run[280];   /* absolute: configurations and logs of the runs go here */
    unsigned rounds;
    uint64_t records;     /* 0: each benchmark's own */
    unsigned seconds;     /* of one wrk run */
    const char *variants; /* with commas: only these; "": all of a bench */
    bool skipped_names;   /* isolation: no mount namespace, so no name that hangs; said once */
    size_t reply_size;    /* of the front's reply to an event, as last seen; the reactor's is made the same */
    FILE *json;           /* the results, for rows within a run */
};

struct bench {
    const char *name;
    const char *const *variants; /* NULL at the end; the first is ours */
    /* Measures one run. 0; -1 after a line on stderr; BENCH_LEFT_OUT. */
    int (*run)(const struct bench *bench, struct settings *settings, struct row *row);
    uint64_t records; /* of a run, about */
    /* throughput */
    const char *event;    /* what the app src is given */
    const char *kind;     /* "inner", "wire", "webhook", "link", or "many": half links, half wires;
                             of link-raw see raw.c, of https https.c, of livelock overload.c */
    unsigned outputs;     /* how many the event sends to: 1 (out), 4 or 16 (o1 …); many: 20 (w1 …) */
    unsigned record_size; /* bytes of an item */
    unsigned batch;       /* events in one request of the driver */
    /* front, https, proactor */
    unsigned connections;
    /* links */
    unsigned mtu;          /* bytes of UDP payload; 0: what the path takes */
    unsigned threads;      /* that the host has to have; 0: any */
    unsigned loss_percent; /* lossy */
    bool flooded;          /* garbage comes meanwhile; the variant says where */
};

#define BENCH_LEFT_OUT 1 /* this machine has not what the variant needs */

#define ITEMS 1000u /* items a burst walks */

int throughput_run(const struct bench *bench, struct settings *settings, struct row *row);
int front_run(const struct bench *bench, struct settings *settings, struct row *row);
int lossy_run(const struct bench *bench, struct settings *settings, struct row *row);
int raw_run(const struct bench *bench, struct settings *settings, struct row *row);
int durable_run(const struct bench *bench, struct settings *settings, struct row *row);
int journal_run(const struct bench *bench, struct settings *settings, struct row *row);
int https_run(const struct bench *bench, struct settings *settings, struct row *row);
int loops_run(const struct bench *bench, struct settings *settings, struct row *row);
int isolation_run(const struct bench *bench, struct settings *settings, struct row *row);
int proactor_run(const struct bench *bench, struct settings *settings, struct row *row);
int fairness_run(const struct bench *bench, struct settings *settings, struct row *row);
int overload_run(const struct bench *bench, struct settings *settings, struct row *row);

#endif
