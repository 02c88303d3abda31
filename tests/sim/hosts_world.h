/* Whole hosts in a simulated world: host_open on simulated ios, names and modules. The loops of all hosts are
 * stepped by one scheduler from one seed; epochs and back-off come from it, too.
 *
 *     client 10.0.0.9 ──HTTP──▶ host "one" 10.0.0.1:80 ──wires──▶ host "two" 10.0.0.2:80, scripted servers …
 *                               pure-front, pure-own-N,  ──links──▶ its link = port
 *                               pure-send, pure-listen              (the same loops)
 *
 * Each front wants the token "t". Each has a key of its own, which follows from the seed. Modules are static
 * apps, found by the path in the configuration:
 *
 *     /sim/src     sends the data of each event to each of its outputs: out, cloud, log, next, d1 … d8
 *
 *     /sim/fan     sends the data of each event to each of its outputs: o1 … o20
 *
 *     /sim/dst     notes the number that each event's data begins with (of an object: the first in it) in a
 *                  tally (below)
 *
 *     /sim/hub     as src, and notes where its numbers start anew, and how far it came
 *
 *     /sim/bad     as dst, but fails each event whose data begins with "bad"
 *
 *     /sim/frail   as dst, but is suspended by an event whose data begins with "bad", unless its tally is
 * cured
 *
 *     /sim/ledger  keeps, in a state with snapshots, what the numbers of its events were (below), and sends
 * each to next, cloud and log
 *
 *     /sim/wide    as ledger, with snapshots of WIDE_BYTES more
 *
 *     /sim/gone    does not load
 *
 * Mistakes of a test, and hosts that do not open, are assertions. */
#ifndef PURE_TESTS_SIM_HOSTS_WORLD_H
#define PURE_TESTS_SIM_HOSTS_WORLD_H

#include "host/host.h"
#include "noise/key.h"
#include "tests/sim/disk.h"
#include "tests/sim/sim.h"

#define WORLD_HOSTS   4
#define TALLY_NUMBERS 8192
#define TALLY_STARTS  64
#define WIDE_BYTES    (1u << 20)

/* What the last consumer has seen. */
struct tally {
    uint64_t lives;       /* how often its app was opened */
    uint64_t records;     /* in this life */
    uint64_t first, last; /* numbers of this life's first and last record */
    uint64_t disorder; /* records that were not the number after the one before in their life; of all lives */
    /* event numbers of this life's first and last record, as their stream counts */
    uint64_t stream_first, stream_last;
    /* the numbers that did not come behind the one before: of all lives, each one's first among them */
    uint64_t starts[TALLY_STARTS];
    unsigned start_count;         /* may be more than there is room for */
    bool cured;                   /* of /sim/frail */
    uint8_t times[TALLY_NUMBERS]; /* how often each number came, in all lives; at most 255 */
};

/* The argument of dst and bad; a configuration is given (void *)&tally for it. */
#define WORLD_TALLY "tally=%p"

/* The state of /sim/ledger. */
struct ledger {
    uint64_t count, last; /* events; number of the last */
    uint64_t disorder;    /* those that were not the number after the one before, the first of all being 1 */
    uint64_t hash;        /* of all numbers, in their order: ledger_hash of 0 and the first, and so on */
};

uint64_t ledger_hash(uint64_t hash, uint64_t number);
/* How many events all ledgers of this process were given, ever: also those of a replay. */
uint64_t ledger_events_given(void);

struct hosts_world;

struct world_host {
    struct hosts_world *world;
    char name[16], address[16], endpoint[24];
    unsigned index;      /* in the world */
    char text[8192];     /* the configuration, but for the head that world_start writes */
    const char *without; /* the path of a module that does not load in this life, or NULL */
    struct config config;
    struct host *host;     /* NULL: it does not run */
    struct sim_disk *disk; /* NULL: its store is memory */
    int log_fd;            /* a pipe; lasts over restarts */
    char log[1 << 16];     /* what it has said; NUL-terminated */
    size_t log_size;
    uint8_t epoch[16]; /* of its streams in this life */
};

struct hosts_world {
    struct sim *sim;
    char keys[WORLD_HOSTS][HOST_KEY_PUBLIC_TEXT]; /* public, of each host, also before it is added */
    struct world_host hosts[WORLD_HOSTS];
    unsigned host_count;
};

void hosts_world_open(struct hosts_world *w, uint64_t seed);
/* Ends all hosts and asserts that none of their descriptors is left. */
void hosts_world_close(struct hosts_world *w);

/* A host that listens at port 80 of `address` and has two owners; `format`: the configuration's other keys of
 * [host], then sections. Not started. */
struct world_host *world_add_host(struct hosts_world *w, const char *name, const char *address,
                                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Gives it a disk, from its next start on: its store is the directory "/store" there, which is empty. Lasts
 * over restarts; a good one but for its crashes (sim_disk_default). */
struct sim_disk *world_add_disk(struct world_host *h);
void world_start(struct world_host *h);
/* Ends it as a process ends: its connections close, its links' sessions, too; its memory store is lost. Its
 * disk is cut off at once (sim_disk_cut_off), and keeps what it was given before. */
void world_kill(struct world_host *h);
/* Ends it as a machine ends that loses power: nobody is told, and its disk crashes. */
void world_crash(struct world_host *h);
/* One that does not run has another address from now on. */
void world_move(struct world_host *h, const char *address);
/* Closes it as it stands, with all that is in flight, as after a loop that failed. Its descriptors stay, but
 * for those of files: the world is then freed by sim_free. */
void world_drop(struct world_host *h);

/* A request from the client, on a connection of its own. `type` NULL: application/json. */
struct sim_connection *world_post(struct world_host *h, const char *path, const char *type, const char *body);
/* The same with an Idempotency-Key. */
struct sim_connection *world_post_key(struct world_host *h, const char *path, const char *type,
                                      const char *key, const char *body);
/* Of the reply so far; 0: not known yet. */
unsigned world_status(struct sim_connection *c);
/* Posts (`body` NULL: gets) and runs until the connection has ended. The connection. */
struct sim_connection *world_ask(struct world_host *h, const char *path, const char *body);
bool world_reply_has(struct sim_connection *c, const char *text);

/* How often the log has said this; "\n": its lines. */
unsigned world_logged(struct world_host *h, const char *text);

/* Whether all that the host holds of records is within what its configuration says: in outlets, in inboxes,
 * and of each peer of its listener. */
bool world_within_limits(const struct world_host *h);

/* Whether no inbox and no outlet of the host holds anything. */
bool world_host_empty(const struct world_host *h);
struct outlet *world_outlet(const struct world_host *h, const char *app, const char *output);
struct registry_app *world_app(const struct world_host *h, const char *app);
/* What the app is made of; its state is that of the module. NULL: it has none. */
void *world_app_state(const struct world_host *h, const char *app);
struct loop *world_loop(const struct world_host *h, const char *thread);
/* Those that are open, in the order of the configuration; the listener of links. */
struct link *world_link(const struct world_host *h, unsigned index);
unsigned world_link_count(const struct world_host *h);
struct link_listener *world_listener(const struct world_host *h);

/* The apps; NULL if there is none of that path. */
const struct pure_app *hosts_app(const char *path);

#endif
