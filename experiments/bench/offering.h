/* The programs `offer` and `probe` (experiments/offer) beside a host. */
#ifndef PURE_EXPERIMENTS_BENCH_OFFERING_H
#define PURE_EXPERIMENTS_BENCH_OFFERING_H

#include "experiments/bench/bench.h"
#include "experiments/bench/process.h"

#define OFFERING_APPS 8

/* What offer is asked; its own meanings (experiments/offer/offer.h). */
struct offering {
    const char *mode; /* "events", "records", "link" */
    uint16_t port;
    double rate;
    unsigned ms;
    const char *apps; /* with commas */
    unsigned places, depth;
    unsigned nice;
    const char *keys;     /* NULL, or of links */
    const char *receiver; /* of links */
};

struct offered {
    uint64_t offered, dropped, sent, accepted, sum, lost, unanswered, refused, failed;
    uint64_t p50_us, p99_us, max_us;
    double seconds;
    uint64_t app_offered[OFFERING_APPS], app_accepted[OFFERING_APPS];
};

/* The probe's figures. */
struct health {
    uint64_t new_p50_us, new_p99_us, kept_p50_us, kept_p99_us;
    uint64_t failed;
};

/* `processors`: as in process.h. Each 0, or -1 after a line on stderr. */
int offering_start(struct process *process, const struct settings *settings, const struct offering *offering,
                   const cpu_set_t *processors);
int offering_end(struct process *process, struct offered *offered);
int health_start(struct process *process, const struct settings *settings, uint16_t port, unsigned ms,
                 const cpu_set_t *processors);
int health_end(struct process *process, struct health *health);

#endif
