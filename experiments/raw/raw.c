#include "experiments/raw/raw.h"

#include "core/clock.h"
#include "core/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t raw_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t raw_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void raw_send_begins(struct raw_sent *sent)
{
    sent->cpu_ns = raw_cpu_ns();
    sent->start_ns = raw_now_ns();
}

void raw_send_ends(struct raw_sent *sent)
{
    sent->cpu_ns = raw_cpu_ns() - sent->cpu_ns;
}

int raw_ready(const struct raw_pipes *pipes, uint16_t port)
{
    return write(pipes->ready, &port, sizeof port) == sizeof port ? 0 : -1;
}

int raw_failed(const char *what, int error)
{
    fprintf(stderr, "%s: %s: %s\n", raw_transport.name, what, pure_error_text(error));
    return -1;
}

void raw_tally_init(struct raw_tally *t, const struct raw_run *run, struct raw_received *received)
{
    *t = (struct raw_tally){.mark = run->warm, .run = run, .received = received};
}

void raw_tally_marked(struct raw_tally *t)
{
    uint64_t all = raw_total(t->run);
    if (t->mark < all) {
        t->received->cpu_ns = raw_cpu_ns();
        t->mark = all;
        return;
    }
    t->received->end_ns = raw_now_ns();
    t->received->cpu_ns = raw_cpu_ns() - t->received->cpu_ns;
    t->received->right = t->wrong == 0 && t->sum == all * (all + 1) / 2;
}

int raw_trips_init(struct raw_trips *t, const struct raw_run *run)
{
    *t = (struct raw_trips){0};
    if (!run->one_in_flight)
        return 0;
    t->ns = calloc(run->records, sizeof *t->ns);
    t->most = t->ns ? run->records : 0;
    return t->ns ? 0 : -1;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void raw_trips_end(struct raw_trips *t, struct raw_sent *sent)
{
    if (t->count > 0) {
        qsort(t->ns, t->count, sizeof *t->ns, ascending);
        sent->p50_ns = t->ns[t->count / 2];
        sent->p99_ns = t->ns[t->count * 99 / 100];
    }
    free(t->ns);
    *t = (struct raw_trips){0};
}
