/* What the files of the host share: host.c joins it, host_run.c runs and stops it, host_reload.c changes it.
 * Private to them. */
#ifndef PURE_HOST_HOST_PRIVATE_H
#define PURE_HOST_HOST_PRIVATE_H

#include "host/front.h"
#include "host/host.h"
#include "host/log_pump.h"
#include "host/log_writer.h"
#include "host/owned_app.h"
#include "wire/wire.h"

#include <pthread.h>
#include <sys/signalfd.h>

struct host;

/* A thread and its loop. */
struct host_thread {
    struct host *host;
    char name[16]; /* the kernel's limit */
    struct io *io;
    struct loop loop;
    struct log log;
    struct timer end_timer;
    pthread_t thread;
    bool looped, logged, started;
    _Atomic bool stop;
    _Atomic int error; /* that ended its loop */
};

enum stop_phase { NOT_STOPPING, CLOSING, DRAINING, STOPPED };

struct host {
    const struct config *config; /* as it was started with: names in it are in use everywhere */
    struct config fitted;        /* `config`, but for connections: no more than there are descriptors for */
    struct config *current;      /* as of the last reload; NULL: none */
    struct host_options options;
    struct host_thread *threads; /* [0]: the front's; then the owners'; then the sending loops' */
    unsigned thread_count, owner_count, sender_count;
    struct resolver **resolvers; /* by sending loop */
    struct owned_app *apps;      /* config->app_count; app_count of them are made */
    unsigned app_count;
    bool *feeds; /* [from * app_count + to] */
    struct wire *wires;
    unsigned wire_count;
    struct outlet *inners;
    unsigned inner_count;
    struct registry registry;
    struct front front;
    bool front_open;
    struct log_writer log_writer;
    bool log_writing;
    struct log_pump log_pump;   /* in host_run */
    uint8_t epoch[EPOCH_BYTES]; /* of every stream from here: new with each start, as nothing outlives it */
    /* stopping; on the front's loop */
    enum stop_phase stop;
    uint64_t phase_ends_ns;
    bool looked_empty;      /* at the last look while draining */
    uint64_t looked_stored; /* the sum of all outlets' stored numbers then */
    struct timer stop_timer;
    struct io_op signal_read;
    struct signalfd_siginfo signal;
    int signal_fd;
};

static inline struct host_thread *front_thread(struct host *h)
{
    return &h->threads[0];
}

/* Times of a stop (host_run.c). */
void host_go_on_stopping(struct timer *timer, uint64_t now_ns);

/* What the wire of this output is told; `source` (SOURCE_NAME_MAX + 1 bytes) is where its text lies. */
void host_wire_options(struct host *h, const struct config_output *config, char *source,
                       struct wire_options *options);

/* The half of host_reload behind the file. `to` is on the heap and becomes the host's. */
void host_take_config(struct host *h, struct config *to);

#endif
