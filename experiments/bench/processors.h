/* Who runs where, when the host under test is to have one processor of its own. */
#ifndef PURE_EXPERIMENTS_BENCH_PROCESSORS_H
#define PURE_EXPERIMENTS_BENCH_PROCESSORS_H

#include "experiments/bench/process.h"

struct processors {
    cpu_set_t host;   /* the first that we may run on */
    cpu_set_t others; /* the rest of them; the same one, if there is none */
    unsigned count;   /* that we may run on */
};

void processors_split(struct processors *p);

/* The time on a processor of a host's threads, by what they do, in nanoseconds; zeros where the kernel does
 * not count it (schedstat). */
struct shares {
    uint64_t front, listen, owners, send, others;
};
struct shares processors_shares(const struct process *host);

#endif
