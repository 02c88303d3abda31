/* journal-1: wrk posts small events to an app with a store on the disk, `durability = sync`, over 1, 16 or
 * 100 connections: each reply waits for a write and its sync, and whatever came meanwhile shares the next.
 *
 * Over one connection also how much longer a single event takes than a bare write and fdatasync of its bytes,
 * as a program does that appends to a file, and into space set aside, as the journal does; and than one whose
 * app keeps nothing: one of each, in turns. The last is what the way through HTTP and the threads costs on
 * this machine. */
#include "experiments/bench/disk.h"
#include "experiments/bench/drive.h"
#include "experiments/bench/wrk.h"

#include <stdlib.h>
#include <string.h>

#define STATE      "/apps/d1/state"
#define TARGET     "/apps/d1/events/e"
#define IN_MEMORY  "/apps/m1/events/e"
#define EVENT      "12345678901234567890"
#define EVENT_SIZE (sizeof EVENT - 1)
#define TURNS      400u
#define FRAME_MOST 4096u

/* The nanoseconds until its reply; 0 after a line on stderr. */
static uint64_t post_event(struct host *host, const char *target)
{
    struct client_reply reply;
    uint64_t start_ns = monotonic_ns();
    int error = client_send(&host->client, target, "text/plain", EVENT, EVENT_SIZE);
    if (error == 0)
        error = client_reply(&host->client, &reply);
    if (error == 0 && reply.status == 200)
        return monotonic_ns() - start_ns;
    fprintf(stderr, "bench: the front does not take an event; its log is %s\n", host->log);
    return 0;
}

static int take_turns(struct host *host, struct disk_file *grows, struct disk_file *aside, size_t size,
                      struct row *row)
{
    double events_ns[TURNS], memory_ns[TURNS], bare_ns[TURNS], aside_ns[TURNS];
    for (unsigned i = 0; i < TURNS; i++) {
        events_ns[i] = (double)post_event(host, TARGET);
        memory_ns[i] = (double)post_event(host, IN_MEMORY);
        bare_ns[i] = (double)disk_write(grows, size);
        aside_ns[i] = (double)disk_write(aside, size);
        if (events_ns[i] == 0 || memory_ns[i] == 0 || bare_ns[i] == 0 || aside_ns[i] == 0)
            return -1;
    }
    row->disk.event_p50_us = (uint64_t)(row_median(events_ns, TURNS) / 1e3);
    row->disk.memory_p50_us = (uint64_t)(row_median(memory_ns, TURNS) / 1e3);
    row->disk.bare_p50_us = (uint64_t)(row_median(bare_ns, TURNS) / 1e3);
    row->disk.aside_p50_us = (uint64_t)(row_median(aside_ns, TURNS) / 1e3);
    return 0;
}

/* Bare writes have the size of what one event writes, as wrk's single connection has just shown. */
static int compare_with_bare(const struct settings *settings, struct host *host, struct row *row)
{
    struct disk_file grows, aside;
    uint64_t size = row->economy.fsyncs ? row->economy.journal_bytes / row->economy.fsyncs : 0;
    if (size == 0 || size > FRAME_MOST) {
        fprintf(stderr, "bench: one event writes %llu bytes; it should be 1 to %u\n",
                (unsigned long long)size, FRAME_MOST);
        return -1;
    }
    if (disk_open(&grows, settings->run, "grows", 0) != 0)
        return -1;
    int error = disk_open(&aside, settings->run, "aside", TURNS * size);
    if (error == 0)
        error = take_turns(host, &grows, &aside, size, row);
    disk_close(&aside);
    disk_close(&grows);
    return error;
}

/* The app has seen each request that wrk saw answered, and at most one more a connection. */
static int measure(const struct settings *settings, struct host *host, unsigned connections, struct row *row)
{
    struct wrk_load load;
    struct receipt before, after;
    if (post_event(host, TARGET) == 0 || drive_receipt(&host->client, STATE, &before) != 0 ||
        host_measure(host) != 0 || wrk_run(settings, host->port, connections, TARGET, row, &load) != 0 ||
        host_measured(host, row) != 0 || drive_receipt(&host->client, STATE, &after) != 0)
        return -1;
    uint64_t stored = after.records - before.records;
    row->disk.framed_bytes = stored * (EVENT_SIZE + 1);
    row->verified = load.failed == 0 && stored >= load.requests && stored <= load.requests + connections;
    return connections == 1 ? compare_with_bare(settings, host, row) : 0;
}

static int measure_beside_disk(const struct settings *settings, struct host *host, unsigned connections,
                               struct row *row)
{
    uint64_t before = disk_rate(settings->run);
    if (before == 0 || measure(settings, host, connections, row) != 0)
        return -1;
    uint64_t after = disk_rate(settings->run);
    row->disk.bytes_s = (before + after) / 2;
    return after > 0 ? 0 : -1;
}

/* The variants are at-1, at-16, at-100. */
int journal_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    static struct host host;
    char name[64];
    unsigned connections = (unsigned)strtoul(strchr(row->variant, '-') + 1, NULL, 10);
    snprintf(name, sizeof name, "%s-%s", bench->name, row->variant);
    if (host_configure(&host, settings, name) != 0 || host_store(&host, settings, name) != 0)
        return -1;
    host_app(&host, settings, "d1", "dst", "");
    host_app(&host, settings, "m1", "dst", "");
    fprintf(host.text, "durability = memory\n");
    int error = host_start(&host, settings, row->variant, NULL);
    if (error == 0)
        error = measure_beside_disk(settings, &host, connections, row);
    row->verified &= host_stop(&host) == 0;
    return error;
}
