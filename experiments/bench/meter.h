/* The counts of an app `dst` that has a meter (experiments/apps/load.h), read without asking its host. */
#ifndef PURE_EXPERIMENTS_BENCH_METER_H
#define PURE_EXPERIMENTS_BENCH_METER_H

#include "experiments/bench/bench.h"

struct load_meter;

struct meter {
    const struct load_meter *page; /* NULL: not open */
    char path[512];
};

struct count {
    uint64_t records, sum;
};

/* Makes the file NAME.meter among the runs' files, zeroed. 0, or -1 after a line on stderr. */
int meter_open(struct meter *meter, const struct settings *settings, const char *name);
void meter_close(struct meter *meter);

/* As of now. Of an app that is at it, `sum` may be one event behind `records`. */
struct count meter_read(const struct meter *meter);

/* Waits until the counts have stood still for 50 ms, 3 s at most. */
struct count meter_settled(const struct meter *meter);

#endif
