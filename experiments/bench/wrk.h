/* wrk, which posts events of 20 bytes over many connections, one in flight on each (post.lua). */
#ifndef PURE_EXPERIMENTS_BENCH_WRK_H
#define PURE_EXPERIMENTS_BENCH_WRK_H

#include "experiments/bench/bench.h"

struct wrk_load {
    uint64_t requests; /* answered 200 */
    uint64_t failed;   /* other statuses, and what went wrong on sockets */
};

/* For settings->seconds, to a port of loopback; fills the row's requests, time, latencies and the driver's
 * CPU. 0, or -1 after a line on stderr. */
int wrk_run(const struct settings *settings, uint16_t port, unsigned connections, const char *target,
            struct row *row, struct wrk_load *load);

#endif
