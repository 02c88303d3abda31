/* What tests of whole hosts with disks do again and again: numbers posted to an app, and awaited at a ledger
 * (tests/sim/hosts_world.h).
 *
 * A record is its number, a space, and as many 'x' as its size wants. Nothing here asserts about the product:
 * what came of it is returned. */
#ifndef PURE_TESTS_SIM_LEDGERS_H
#define PURE_TESTS_SIM_LEDGERS_H

#include "tests/sim/hosts_world.h"

struct numbers {
    uint64_t first, count;
    size_t bytes; /* of each record, about; 0: no more than its number needs */
};

/* Posts them in one request. `key` NULL: without an Idempotency-Key. The connection, nothing has run. */
struct sim_connection *numbers_begin(struct world_host *h, const char *app, const char *key,
                                     struct numbers numbers);
/* Posts and runs until the answer is there: its status; 0: there is none after `patience_ns`. */
unsigned numbers_post(struct world_host *h, const char *app, const char *key, struct numbers numbers,
                      uint64_t patience_ns);
/* In requests of `each`, one after the other, each repeated until it is answered with 200. How many numbers
 * were: fewer if one was not within `patience_ns`. */
uint64_t numbers_post_all(struct world_host *h, const char *app, struct numbers numbers, uint64_t each,
                          uint64_t patience_ns);

/* Runs until the answer is there, or for so long: the status, or 0. */
unsigned answer_await(struct hosts_world *w, struct sim_connection *c, uint64_t patience_ns);

/* Whether the state of a ledger is that of the numbers 1 to `count`, in order, each once. */
bool ledger_is(const struct world_host *h, const char *app, uint64_t count);
/* Runs until it has `count` events, or for so long. Whether it is as ledger_is says, then. */
bool ledger_await(struct world_host *h, const char *app, uint64_t count, uint64_t patience_ns);

/* Runs until a tally has the number, or for so long. */
bool tally_await(struct hosts_world *w, const struct tally *t, uint64_t number, uint64_t patience_ns);
/* How many of the numbers from `first` to `last` came not once. */
uint64_t tally_not_once(const struct tally *t, uint64_t first, uint64_t last);

/* Runs until nothing of the output is held and all that was sent is stored: `count` in all. */
bool output_await(struct world_host *h, const char *app, const char *output, uint64_t stored,
                  uint64_t patience_ns);
uint64_t output_stored(const struct world_host *h, const char *app, const char *output);

/* Ends a host as SIGTERM does. How long it took; NEVER: more than a minute, and it was killed. */
uint64_t world_stop(struct world_host *h);

/* Files in its store with names that end so, and their bytes. */
unsigned store_files(struct world_host *h, const char *suffix, uint64_t *bytes);
/* The path of the segment number `index` (0: the oldest). False: there is none. */
bool store_segment(struct world_host *h, unsigned index, char path[64]);

#endif
