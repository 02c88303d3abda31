/* What gives a host its work, and what sees that all of it arrived. */
#ifndef PURE_EXPERIMENTS_BENCH_DRIVE_H
#define PURE_EXPERIMENTS_BENCH_DRIVE_H

#include "experiments/bench/host.h"

#define STALL_NS UINT64_C(60000000000) /* after so long without progress a run has failed */

/* Bursts, given as events over HTTP: `batch` events a request (NDJSON), several requests in flight. */
struct drive {
    const char *app, *event;
    uint64_t bursts;
    unsigned batch;
};

/* Returns 0 once each was answered as stored, or -1 after a line on stderr. A 503 is waited out and counted
 * in *retries. */
int drive_bursts(struct host *host, const struct drive *drive, uint64_t *retries);

/* What a receiver has to say: an app `dst`, or the sink. */
struct receipt {
    uint64_t records;
    uint64_t sum;
    uint64_t descents;
};

/* Asks once. `path`: /apps/APP/state or /count. 0, or -1 after a line on stderr. */
int drive_receipt(struct client *client, const char *path, struct receipt *receipt);

/* Asks every `poll_ms` until `records` are there. 0, or -1 after a line on stderr when nothing more came for
 * a minute. */
int drive_wait(struct client *client, const char *path, uint64_t records, unsigned poll_ms,
               struct receipt *receipt);

/* Whether a receiver has what `bursts` bursts to each of `streams` outputs send (experiments/apps/items.h);
 * says on stderr what is wrong if not. */
bool drive_verify(const char *path, const struct receipt *receipt, uint64_t bursts, unsigned streams);

#endif
