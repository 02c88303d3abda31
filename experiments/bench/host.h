/* A pure-host under test: a real process with a configuration of its own, two owners, and a store in memory
 * (host_store: on the disk). */
#ifndef PURE_EXPERIMENTS_BENCH_HOST_H
#define PURE_EXPERIMENTS_BENCH_HOST_H

#include "experiments/bench/bench.h"
#include "experiments/bench/client.h"
#include "experiments/bench/process.h"

struct host {
    struct process process;
    uint16_t port;
    const char *network;         /* the network namespace it runs in (network.h); NULL: ours. Outlives it */
    const cpu_set_t *processors; /* that it runs on (process.h) */
    uint16_t link_port;          /* of host_link; 0: none */
    char public_key[64];         /* of host_link */
    char store[512];             /* path: of host_store; "": none */
    struct client client;        /* connected once it is started */
    char program[300];           /* path, once it is started */
    char config[512];            /* path */
    char log[512];               /* path: its standard output and error */
    FILE *text;                  /* the configuration being written, between host_configure and host_start */
    struct economy before;
    uint64_t cpu_before_ns;
    struct process_threads threads; /* most seen */
};

/* Opens a configuration for the bench, its [host] section written; the caller adds apps and outputs to
 * host->text. 0, or -1 after a line on stderr. */
int host_configure(struct host *host, const struct settings *settings, const char *name);

/* Before any section: the host has a key of its own, new, and takes links on ADDRESS and a free UDP port. 0,
 * or -1 after a line on stderr. */
int host_link(struct host *host, const struct settings *settings, const char *address);

/* Makes a key file in place of the one that is there; its public half goes to `public_key`. 0, or -1 after a
 * line on stderr. */
int host_key_file(const struct settings *settings, const char *file, char public_key[64]);

/* Before any section: the host has a store on the disk, empty at first, in the directory of the runs, and
 * its apps are `durability = sync`. host_stop removes it. 0, or -1 after a line on stderr. */
int host_store(struct host *host, const struct settings *settings, const char *name);

/* An [app NAME] section with a module of the object tree. */
void host_app(struct host *host, const struct settings *settings, const char *name, const char *module,
              const char *arg);

/* Starts the variant's program and waits until it answers. `resolver` as in process.h. 0, or -1 after a line
 * on stderr; host_stop is due in any case. */
int host_start(struct host *host, const struct settings *settings, const char *variant, const char *resolver);

/* Starts it again as it was, once it has ended: what a supervisor does. Does not wait until it answers, and
 * its client is closed. 0, or -1 after a line on stderr. */
int host_again(struct host *host);

/* Stops it, and removes its store; -1, after a line on stderr, if it does not end by itself within 5 s with
 * status 0: no run is verified then. */
int host_stop(struct host *host);

/* The counters and the CPU clock as of now; host_measured adds what was used since to the row's figures, so
 * that a row may be of two hosts. */
int host_measure(struct host *host);
int host_measured(struct host *host, struct row *row);

/* Looks at its threads; keeps the most. */
void host_see_threads(struct host *host);

#endif
