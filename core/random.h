/* Pseudo-random numbers for jitter and simulation (splitmix64, a public-domain generator by S. Vigna). Seeded
 * by its owner, so that a test repeats. Never for keys. */
#ifndef PURE_CORE_RANDOM_H
#define PURE_CORE_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Uniform in [0, bound); bound > 0. The bias for bounds far below 2^64 does not matter to its users. */
static inline uint64_t random_below(struct random *r, uint64_t bound)
{
    return random_next(r) % bound;
}

#endif
