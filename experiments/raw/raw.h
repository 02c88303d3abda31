/* link-raw: a transport alone between two processes. One program a transport (raw-link, raw-tcp, raw-enet):
 * main.c forks a receiving and a sending process, and prints what both have measured as one line of JSON.
 *
 * Records are of one size and begin with their number (1, 2, …; 8 bytes, little-endian). The first `warm` go
 * ahead, untimed: windows open, path MTU is found, memory is touched. Once they have arrived the clock
 * starts, at the sender, with the first of the others; it ends at the receiver with the last. */
#ifndef PURE_EXPERIMENTS_RAW_H
#define PURE_EXPERIMENTS_RAW_H

#include "core/bytes.h"

#define RAW_RECORD_MIN 8
#define RAW_RECORD_MAX 1024

struct raw_run {
    const char *back_end;    /* of a link: "uring" or "epoll"; else "sockets" */
    uint64_t warm, records;  /* > 0 */
    bool one_in_flight;      /* the next record is sent once the sender knows that this one has arrived */
    bool one_thread;         /* a link's producer runs on the loop that sends, else on a loop of its own */
    uint32_t record_bytes;   /* RAW_RECORD_MIN to RAW_RECORD_MAX */
    uint32_t datagram_bytes; /* the most UDP payload */
    uint32_t batch;          /* records in one push */
    uint32_t queue_bytes;    /* of the sender's queue */
};

static inline uint64_t raw_total(const struct raw_run *run)
{
    return run->warm + run->records;
}

/* What an end has measured. Lies in memory that both processes and their parent share; each end writes its
 * own, the parent reads when both have ended. CPU, packets and enters are of the timed part. */
struct raw_sent {
    uint64_t start_ns; /* CLOCK_MONOTONIC, which is one for all processes */
    uint64_t cpu_ns;
    uint64_t packets; /* datagrams; 0: not known */
    uint64_t sends;   /* operations that carried them */
    uint64_t lost;    /* packets taken as lost, by right or not */
    uint64_t enters;  /* hand-overs to the kernel of the sending loop */
    uint64_t wakes;   /* of the sending loop, by the producer */
    uint64_t datagram_bytes;
    uint64_t window_bytes;
    uint64_t p50_ns, p99_ns; /* one_in_flight: from the push until its arrival is known */
};

struct raw_received {
    uint64_t end_ns;
    uint64_t cpu_ns;
    uint64_t enters;
    uint64_t datagrams; /* that the receiver sent back */
    bool right;         /* each record came once, whole, and in order */
};

/* What the receiver has of its parent; descriptors. */
struct raw_pipes {
    int ready; /* to be written to */
    int ended; /* to be read from: at its end when the sending process has ended */
};

/* The two ends of a transport, each in a process of its own. 0, or -1 after a line on stderr. */
struct raw_transport {
    const char *name;
    const char *back_end;  /* unless it is asked for another */
    void (*prepare)(void); /* before the fork; may be NULL */
    /* Listens on a port of 127.0.0.1, tells it with raw_ready, and receives all records. */
    int (*receive)(const struct raw_run *run, const struct raw_pipes *pipes, struct raw_received *received);
    int (*send)(const struct raw_run *run, uint16_t port, struct raw_sent *sent);
};

extern const struct raw_transport raw_transport; /* of the program */

uint64_t raw_now_ns(void);
uint64_t raw_cpu_ns(void); /* user + system, of all threads of this process */

/* The sender's clock. `begins` leaves the CPU clock's reading in sent->cpu_ns until `ends`. */
void raw_send_begins(struct raw_sent *sent);
void raw_send_ends(struct raw_sent *sent);

/* Tells the parent. 0 or -1. */
int raw_ready(const struct raw_pipes *pipes, uint16_t port);

/* Says what failed, with a negative code of core/error.h. Returns -1. */
int raw_failed(const char *what, int error);

/* --- records --- */

static inline void raw_put_number(uint8_t *record, uint64_t number)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    number = __builtin_bswap64(number);
#endif
    memcpy(record, &number, sizeof number);
}

/* What the last consumer counts. */
struct raw_tally {
    uint64_t records, sum;
    uint64_t wrong; /* not the number that had to be next, or not of the right size */
    uint64_t mark;  /* raw_tally_marked is called when so many have come: run->warm, then all */
    const struct raw_run *run;
    struct raw_received *received;
};

void raw_tally_init(struct raw_tally *t, const struct raw_run *run, struct raw_received *received);
void raw_tally_marked(struct raw_tally *t);

static inline bool raw_tally_complete(const struct raw_tally *t)
{
    return t->records >= raw_total(t->run);
}

static inline void raw_tally_add(struct raw_tally *t, const uint8_t *record, size_t size)
{
    uint64_t number = 0;
    if (size >= sizeof number)
        memcpy(&number, record, sizeof number);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    number = __builtin_bswap64(number);
#endif
    t->records++;
    t->sum += number;
    t->wrong += number != t->records || size != t->run->record_bytes;
    if (t->records == t->mark)
        raw_tally_marked(t);
}

/* --- round trips, one in flight --- */

struct raw_trips {
    uint64_t *ns; /* count of them; NULL: not wanted */
    uint64_t count, most;
};

/* Room for run->records, if they go one in flight. 0 or -1 after a line on stderr. */
int raw_trips_init(struct raw_trips *t, const struct raw_run *run);
/* Sorts them, and says what they were. */
void raw_trips_end(struct raw_trips *t, struct raw_sent *sent);

static inline void raw_trips_add(struct raw_trips *t, uint64_t ns)
{
    if (t->count < t->most)
        t->ns[t->count++] = ns;
}

#endif
