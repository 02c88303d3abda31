/* A histogram of times: 32 steps in each power of two, so that a percentile is right to 3 %. The most is
 * kept exactly. */
#ifndef PURE_EXPERIMENTS_OFFER_LATENCY_H
#define PURE_EXPERIMENTS_OFFER_LATENCY_H

#include <stdint.h>

#define LATENCY_STEPS 32u /* a power of two */
#define LATENCY_ROWS  60u

struct latency {
    uint64_t count, most_ns;
    uint64_t times[LATENCY_ROWS][LATENCY_STEPS];
};

/* The row of a time below LATENCY_STEPS is 0 and its step the time itself; above, the row says how far it is
 * shifted. */
static inline unsigned latency_row(uint64_t ns)
{
    return ns < LATENCY_STEPS ? 0 : 64 - (unsigned)__builtin_clzll(ns) - 5;
}

static inline void latency_add(struct latency *l, uint64_t ns)
{
    unsigned row = latency_row(ns);
    uint64_t step = row ? (ns >> (row - 1)) - LATENCY_STEPS : ns;
    l->times[row][step]++;
    l->count++;
    l->most_ns = ns > l->most_ns ? ns : l->most_ns;
}

/* The least time that `percent` of all are not above, to the histogram's precision; 0 if there are none. */
static inline uint64_t latency_percentile_ns(const struct latency *l, double percent)
{
    uint64_t before = 0, wanted = (uint64_t)((double)l->count * percent / 100.0);
    for (unsigned row = 0; row < LATENCY_ROWS; row++)
        for (uint64_t step = 0; step < LATENCY_STEPS; step++) {
            before += l->times[row][step];
            uint64_t ns = row ? (step + LATENCY_STEPS) << (row - 1) : step;
            if (before > wanted)
                return ns < l->most_ns ? ns : l->most_ns;
        }
    return l->most_ns;
}

#endif
