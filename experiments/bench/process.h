/* The processes a benchmark starts: how they are started, measured and stopped. */
#ifndef PURE_EXPERIMENTS_BENCH_PROCESS_H
#define PURE_EXPERIMENTS_BENCH_PROCESS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    pid_t pid; /* 0: none */
    int out;   /* the read end of its standard output; -1: none */
};

struct process_options {
    const char *log;      /* file for its standard error; NULL: ours */
    bool pipe;            /* its standard output comes to `out`; else into the log */
    const char *resolver; /* a file to take the place of /etc/resolv.conf, in a mount namespace of its own */
    const char *network;  /* the network namespace to be in, by its file (network.h); NULL: ours */
    const cpu_set_t *processors; /* those that it may run on; NULL: all that we may */
};

/* Starts argv[0] (searched in PATH), with nothing to read. It dies with us. 0 or a negative errno; that the
 * program could not be executed shows as its exit status, 127. */
int process_start(struct process *process, const char *const *argv, const struct process_options *options);

/* Whether we may give a process its own /etc/resolv.conf. */
bool process_can_replace_resolver(const char *file);

/* SIGTERM, then SIGKILL after 5 s. Returns the exit status, or -1 if it had to be killed or died by a signal.
 */
int process_stop(struct process *process);

bool process_alive(struct process *process);

/* Waits for its end. Its exit status (or -1), and the CPU time it used. */
int process_wait(struct process *process, uint64_t *cpu_ns);

/* Reads one line of its output, without the newline; waits at most 5 s. 0 or -1. */
int process_line(struct process *process, char *line, size_t size);

/* User + system CPU time of all its threads, those that ended included. */
uint64_t process_cpu_ns(const struct process *process);

/* The same of this process, which drives. */
uint64_t own_cpu_ns(void);

/* Its own threads now, and how many of them have a name that contains `name`. The workers that the kernel
 * adds for its files (iou-wrk-…) are not among them: it makes and ends them as it likes. Their time is
 * counted above. */
struct process_threads {
    unsigned all, named;
};
struct process_threads process_threads(const struct process *process, const char *name);

uint64_t monotonic_ns(void);
void pause_ms(unsigned ms);

#endif
