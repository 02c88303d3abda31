#include "experiments/bench/drive.h"

#include "experiments/bench/text.h"

#include <string.h>

#define DEPTH     4 /* requests in flight: enough to keep the host busy while one reply travels */
#define BATCH_MAX 1000

/* Events of the requests in flight, in their order. */
struct flight {
    unsigned events[DEPTH];
    unsigned first, count;
};

static int post(struct client *client, const struct drive *drive, unsigned events)
{
    char target[160], body[2 * BATCH_MAX];
    snprintf(target, sizeof target, "/apps/%s/events/%s", drive->app, drive->event);
    for (unsigned i = 0; i < events; i++)
        memcpy(body + 2 * i, "1\n", 2);
    return client_send(client, target, "application/x-ndjson", body, 2 * (size_t)events);
}

/* Takes one reply; adds what was refused, to be tried again, back to *left. */
static int settle(struct client *client, struct flight *flight, uint64_t *left, uint64_t *retries)
{
    struct client_reply reply;
    int error = client_reply(client, &reply);
    if (error != 0) {
        fprintf(stderr, "bench: no reply to a burst: %s\n", strerror(-error));
        return -1;
    }
    unsigned events = flight->events[flight->first];
    flight->first = (flight->first + 1) % DEPTH;
    flight->count--;
    if (reply.status == 200)
        return 0;
    if (reply.status != 503) {
        fprintf(stderr, "bench: a burst was answered %d: %.*s\n", reply.status,
                (int)(reply.body_size < 200 ? reply.body_size : 200), reply.body);
        return -1;
    }
    *left += events;
    ++*retries;
    pause_ms(1);
    return 0;
}

int drive_bursts(struct host *host, const struct drive *drive, uint64_t *retries)
{
    struct flight flight = {.first = 0};
    uint64_t left = drive->bursts;
    while (left > 0 || flight.count > 0) {
        if (left == 0 || flight.count == DEPTH) {
            if (settle(&host->client, &flight, &left, retries) != 0)
                return -1;
            continue;
        }
        unsigned events = left < drive->batch ? (unsigned)left : drive->batch;
        int error = post(&host->client, drive, events);
        if (error != 0) {
            fprintf(stderr, "bench: cannot post a burst: %s\n", strerror(-error));
            return -1;
        }
        flight.events[(flight.first + flight.count++) % DEPTH] = events;
        left -= events;
    }
    return 0;
}

int drive_receipt(struct client *client, const char *path, struct receipt *receipt)
{
    struct client_reply reply;
    int error = client_get(client, path, &reply);
    if (error != 0 || reply.status != 200) {
        fprintf(stderr, "bench: %s: %s (%d)\n", path, error ? strerror(-error) : "wrong status",
                error ? 0 : reply.status);
        return -1;
    }
    bool sink = strcmp(path, "/count") == 0;
    receipt->records = text_json_number(reply.body, reply.body_size, sink ? "requests" : "records");
    receipt->sum = text_json_number(reply.body, reply.body_size, "sum");
    receipt->descents = text_json_number(reply.body, reply.body_size, "descents");
    return 0;
}

int drive_wait(struct client *client, const char *path, uint64_t records, unsigned poll_ms,
               struct receipt *receipt)
{
    uint64_t seen = 0, moved_ns = monotonic_ns();
    for (;;) {
        if (drive_receipt(client, path, receipt) != 0)
            return -1;
        if (receipt->records >= records)
            return 0;
        if (receipt->records != seen) {
            seen = receipt->records;
            moved_ns = monotonic_ns();
        } else if (monotonic_ns() - moved_ns > STALL_NS) {
            fprintf(stderr, "bench: %s stands at %llu of %llu\n", path, (unsigned long long)seen,
                    (unsigned long long)records);
            return -1;
        }
        pause_ms(poll_ms);
    }
}

/* Each stream descends once at the start of each burst but its first. A stream that came over several
 * connections starts anew on each, so that the sink may see fewer. */
bool drive_verify(const char *path, const struct receipt *receipt, uint64_t bursts, unsigned streams)
{
    uint64_t records = bursts * streams * ITEMS, sum = bursts * streams * (ITEMS * (ITEMS + 1) / 2);
    uint64_t descents = (bursts - 1) * streams;
    if (receipt->records == records && receipt->sum == sum && receipt->descents <= descents)
        return true;
    fprintf(stderr,
            "bench: %s has %llu records, sum %llu, %llu descents; it should be %llu, %llu, at most %llu\n",
            path, (unsigned long long)receipt->records, (unsigned long long)receipt->sum,
            (unsigned long long)receipt->descents, (unsigned long long)records, (unsigned long long)sum,
            (unsigned long long)descents);
    return false;
}
