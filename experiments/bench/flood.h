/* Garbage that comes to a UDP port while something is measured. */
#ifndef PURE_EXPERIMENTS_BENCH_FLOOD_H
#define PURE_EXPERIMENTS_BENCH_FLOOD_H

#include "experiments/bench/bench.h"
#include "experiments/bench/process.h"

struct flood {
    struct process process;
    int elsewhere; /* a UDP socket that nobody reads; -1: none */
};

/* Begins to send; to a port of our own that nobody reads if `port` is 0. 0, or -1 after a line on stderr;
 * flood_stop is due in any case. */
int flood_start(struct flood *flood, const struct settings *settings, uint16_t port);

/* Ends it. Sets row->garbage_s, and row->verified to false, after a line on stderr, if less was sent than it
 * should have been or more was answered than an unproven address may get. */
void flood_stop(struct flood *flood, struct row *row);

#endif
