/* A front in a simulated world: it listens at 10.0.0.1:80 (and :443, if told to), its apps are "counter" and
 * "other", and a fake owner takes their runs, remembers them and answers as the test says.
 *
 *     sim client(s) 10.0.0.9 ──TCP──> front loop ──inboxes──> owner loop (both on host 10.0.0.1) */
#ifndef PURE_TESTS_SIM_FRONT_WORLD_H
#define PURE_TESTS_SIM_FRONT_WORLD_H

#include "host/front.h"
#include "tests/sim/sim.h"

#define WORLD_APPS     2
#define WORLD_ENDPOINT "10.0.0.1:80"
#define WORLD_SECURED  "10.0.0.1:443"

/* What the owner has seen of one app. */
struct owner_app {
    struct registry_app entry;
    struct stream_position at;
    uint64_t runs, events;              /* taken */
    uint64_t stored;                    /* RUN_EVENTS: the count; RUN_STREAM: the last number */
    uint64_t hash;                      /* over all records and their sizes, in order */
    uint64_t sum;                       /* of their bytes */
    uint64_t largest_run, smallest_run; /* bytes */
    struct run last;                    /* its strings are copies below */
    char event[EVENT_NAME_MAX + 1], source[SOURCE_NAME_MAX + 1], key[IDEMPOTENCY_KEY_MAX + 1];
    int error;           /* answers every run with it */
    uint64_t fail_after; /* … after so many runs */
    const char *show;
};

struct front_world {
    struct sim *sim;
    struct config config;
    struct registry registry;
    struct registry_app *entries[WORLD_APPS];
    struct registry_loop loops[1];
    struct owner_app apps[WORLD_APPS];
    struct loop loop, owner_loop;
    struct task owner;
    struct log log;
    struct front front;
    struct tls_current *https;
    bool hold;      /* the owner takes nothing */
    unsigned takes; /* or so many runs, and then nothing; 0: all there are */
};

/* Settings of `config` (limits, times) that stand here are kept; zero ones get the defaults of config.h. */
void front_world_open(struct front_world *w, uint64_t seed, const struct config *config);
/* The same with apps of these names, which outlive the world. */
void front_world_open_named(struct front_world *w, uint64_t seed, const struct config *config,
                            const char *const names[WORLD_APPS]);
/* The same, also secured at 10.0.0.1:443; `https` outlives the world. Plain at all only if `plain`. */
void front_world_open_secured(struct front_world *w, uint64_t seed, const struct config *config,
                              struct tls_current *https, bool plain);
void front_world_close(struct front_world *w);

/* The owner works again after `hold`. */
void front_world_release(struct front_world *w);

/* The owner, which holds, takes so many runs. */
void front_world_take(struct front_world *w, unsigned runs);

/* Sends bytes from a new client, which then waits for what comes. */
struct sim_connection *front_world_send(struct front_world *w, const void *bytes, size_t size);

/* Runs until the client has its end of the stream, or `ns` have passed. */
void front_world_run_until_end(struct front_world *w, struct sim_connection *c, uint64_t ns);

/* How many times `text` is in what the client received. */
unsigned front_world_count(struct sim_connection *c, const char *text);

/* The status of the reply that begins there; 0: none does. */
static inline int front_world_status(struct span reply)
{
    int status = 0;
    for (size_t i = 9; i < 12 && i < reply.size; i++)
        status = status * 10 + reply.data[i] - '0';
    return status;
}

#endif
