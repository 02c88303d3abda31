/* What the files of the host share: host.c joins it, host_outlets.c and host_wires.c what leaves it and
 * host_listen.c what comes in over links; host_run.c runs and stops it, host_reload.c changes it,
 * host_guard.c guards it against its apps' modules. Private to them. */
#ifndef PURE_HOST_HOST_PRIVATE_H
#define PURE_HOST_HOST_PRIVATE_H

#include "host/front.h"
#include "host/host.h"
#include "host/host_tls.h"
#include "host/log_pump.h"
#include "host/log_writer.h"
#include "host/link_inlets.h"
#include "host/owned_app.h"
#include "host/sealed_door.h"
#include "host/turn_guard.h"
#include "journal/reader.h"
#include "journal/writer.h"
#include "link/link.h"
#include "link/link_listener.h"
#include "wire/wire.h"

#include <pthread.h>
#include <sys/signalfd.h>

struct host;
struct host_kept;

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
    _Atomic bool ending; /* it gives no more turns */
    bool unfinished;     /* its loop has ended with writes on their way to the disk */
    _Atomic bool stop;
    _Atomic int error; /* that ended its loop */
};

/* An owner's journal. */
struct host_journal {
    struct host *host;
    struct loop *loop;
    struct journal_writer writer;
    struct journal_reader reader;
    bool writing, reading; /* they are made */
    bool alone;            /* all its apps wait for the disk */
    uint64_t begun;        /* segments that the writer has begun */
};

/* A host that may send here. */
struct host_peer {
    struct link_peer_access access;
    bool *apps; /* by index: whether it may send there */
};

enum stop_phase { NOT_STOPPING, CLOSING, DRAINING, STOPPED };

struct host {
    const struct config *config; /* as it was started with: names in it are in use everywhere */
    struct config fitted;        /* `config`, but for connections: no more than there are descriptors for */
    struct config *current;      /* as of the last reload; NULL: none */
    struct host_options options;
    /* [0]: the front's; then the owners'; then the sending loops'; then the listener's, if links come in */
    struct host_thread *threads;
    unsigned thread_count, owner_count, sender_count;
    struct resolver **resolvers; /* by sending loop; they share a cache */
    struct owned_app *apps;      /* config->app_count; app_count of them are made */
    unsigned app_count;
    bool *feeds; /* [from * app_count + to] */
    struct wire *wires;
    _Atomic uint64_t *wire_digests; /* of what each is told (host_wire_digest) */
    unsigned wire_count;
    struct host_key key;
    struct host_tls tls;
    struct tls_current *https; /* of the front; NULL: it has none */
    struct host_kept *kept;    /* what options of wires point to (host_wires.c) */
    struct link *links;
    unsigned link_count;
    struct link_outlet *link_outlets;
    unsigned link_outlet_count;
    struct link_inlets inlets;
    struct link_listener listener;
    bool inlets_open, listening;
    struct host_peer *peers; /* peer_count of them */
    unsigned peer_count;
    struct outlet *inners;
    unsigned inner_count;
    struct registry registry;
    struct front front;
    bool front_open;
    struct sealed_door door; /* who may send sealed records */
    bool door_open;
    struct log_writer log_writer;
    bool log_writing;
    struct log_pump log_pump; /* in host_run */
    struct turn_guard guard;
    struct guard_watch watch; /* of the front's thread, while its loop does not turn */
    bool guarding;
    struct registry_app **stuck; /* by guarded thread: the app that it is stuck in, or NULL */
    struct timer guard_timer;    /* of looks at the threads, on the front's loop */
    uint64_t look_every_ns;
    struct store store;
    bool storing;
    struct host_journal *journals;    /* by owner; NULL: the store is memory */
    uint8_t store_epoch[EPOCH_BYTES]; /* of streams whose records are journaled */
    uint8_t epoch[EPOCH_BYTES];       /* of the others: new with each start, as nothing outlives it */
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

static inline struct host_thread *listen_thread(struct host *h)
{
    return h->config->link ? &h->threads[h->thread_count - 1] : NULL;
}

static inline struct noise_random host_random(const struct host *h)
{
    return (struct noise_random){h->options.fill_random, h->options.context};
}

/* An array of zeroed structures of any alignment up to a cache line: queues lie in them. */
void *host_allocate(size_t count, size_t size);

/* Its index; negative: none is made. */
int host_find_app(const struct host *h, const char *name);

unsigned host_count_outputs(const struct config *config, enum output_kind kind);
/* What sending loops are dealt: wires, and links, of which one may have several outputs. */
unsigned host_count_sending(const struct config *config);

/* The store, if the configuration has one; each owner's journal (host_store.c). */
int host_open_store(struct host *h, char *why, size_t why_size);
void host_dispose_store(struct host *h);
void host_journal_options(struct host *h, unsigned owner, const struct config_app *config,
                          struct app_journal_options *options);
/* After the apps are opened, before their outlets are. 0 or a negative errno. */
int host_restore_apps(struct host *h);
const uint8_t *host_epoch_of(const struct host *h, const struct owned_app *a);
/* Of the stream of an output to another host. */
const uint8_t *host_stream_epoch(struct host *h, const struct config_output *config);
/* Of an owner's thread; of others there is nothing to stop. */
void host_stop_journal(struct host_thread *t);
bool host_journal_stopped(const struct host_thread *t);

/* The guard of calls into modules, if the options want one; after the store, before the apps (host_guard.c).
 * 0 or -ENOMEM. */
int host_open_guard(struct host *h);
void host_dispose_guard(struct host *h);
/* From the first of host_open until host_run takes the signals over: SIGTERM and SIGINT end the process, and
 * so does a module's call that sleeps, once the guard is open. 0 or a negative errno. */
int host_watch_opening(struct host *h);
/* Modules' calls again, until host_dispose_guard. */
void host_watch_closing(struct host *h);
/* Of an app, by its index; NULL: its calls are not guarded. */
struct guard_app *host_guard_of(struct host *h, unsigned app);
/* Whether the app has ended the process too often to be loaded, and why. */
bool host_app_died(struct host *h, unsigned app, char *why, size_t why_size);
/* The calling thread is this one; an owner's calls modules. Ends with guard_thread_end. */
void host_guard_thread(struct host_thread *t);
void host_start_looking(struct host *h);
void host_look(struct timer *timer, uint64_t now_ns);

/* All outlets, joined to their apps. */
int host_open_outlets(struct host *h, char *why, size_t why_size);
void host_dispose_outlets(struct host *h);

/* What comes in over links, if the configuration has it. */
int host_open_listener(struct host *h, char *why, size_t why_size);
void host_dispose_listener(struct host *h);

/* What the wire of this output is told; `source` (SOURCE_NAME_MAX + 1 bytes) is where its text lies, the
 * other texts are the configuration's. Its TLS context is there after the next look (host_tls.h). 0 or
 * -ENOMEM. */
int host_wire_options(struct host *h, const struct config_output *config, char *source,
                      struct wire_options *options);
/* A digest of what its wire is told, for a later start. */
uint64_t host_wire_digest(const struct config_output *config);
/* Whether the wires of both are told the same. */
bool host_same_wire(const struct config_output *a, const struct config_output *b);
void host_dispose_kept(struct host *h);
/* The places of the TLS contexts of a wire and of the front. 0 or -ENOMEM. */
int host_want_tls(struct host *h, const struct config_wire *wire, struct tls_current **current);
int host_want_https(struct host *h);
/* Whether anything in it needs the host's key. */
bool host_needs_key(const struct config *config);

/* The half of host_reload behind the file. `to` is on the heap and becomes the host's. */
void host_take_config(struct host *h, struct config *to);

#endif
