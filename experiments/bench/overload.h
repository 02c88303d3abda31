/* A host on one processor, and one point of offered load (overload.c has the sweep). */
#ifndef PURE_EXPERIMENTS_BENCH_OVERLOAD_H
#define PURE_EXPERIMENTS_BENCH_OVERLOAD_H

#include "experiments/bench/host.h"
#include "experiments/bench/meter.h"
#include "experiments/bench/offering.h"
#include "experiments/bench/processors.h"

#define PEERS 4

/* One way in, by the bench's kind. */
struct way_in {
    const char *kind, *mode;
    unsigned spin_us; /* what an event costs the app */
    unsigned places, depth;
};

struct overloaded {
    const struct settings *settings;
    const struct way_in *way;
    struct processors processors;
    struct host host;
    struct meter meter;
    char keys[PEERS * 520]; /* paths, with commas; of links */
};

struct point {
    double factor; /* of saturation */
    double rate;   /* offered, a second */
    unsigned settle_ms, count_ms;
    bool probed; /* with /health beside it */
};

struct seen {
    double delivered_s;
    uint64_t delivered, elapsed_ns;
    struct offered offered; /* of the whole point, settling included */
    struct health health;
    struct shares shares; /* of the counted time */
    bool verified;
};

/* Starts the host with `without` (NULL: nothing) and an app that costs the way's time, or none (`fast`). 0,
 * or -1 after a line on stderr; overloaded_stop is due in any case. */
int overloaded_start(struct overloaded *o, const struct settings *settings, const struct way_in *way,
                     const char *name, const char *without, bool fast);
int overloaded_stop(struct overloaded *o);

/* 0, or -1 after a line on stderr. */
int overloaded_point(struct overloaded *o, const struct point *point, struct seen *seen);

#endif
