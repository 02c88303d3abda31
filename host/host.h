/* The host: apps on owners, outlets on the sending loops, the front, joined as the configuration says.
 *
 * Threads: the front's (the caller's own), one an owner, as many sending loops as the configuration has, but
 * none without a wire or a link. Each runs one loop (core/loop.h). host_open makes everything, host_run
 * starts the threads and serves until SIGTERM or SIGINT; a simulation steps the loops of several hosts itself
 * instead. */
#ifndef PURE_HOST_HOST_H
#define PURE_HOST_HOST_H

#include "core/files.h"
#include "core/resolver.h"
#include "host/app.h"
#include "host/registry.h"

#define PURE_VERSION "0.1.0"

/* What a host stands on; tests and the epoll variant give their own. */
struct host_options {
    void *context;
    /* A back end for one loop. 0; PE_KERNEL or a negative errno, with a reason in `why`. */
    int (*open_io)(void *context, struct io **io, char *why, size_t why_size);
    /* Name lookups for a loop. 0 or a negative errno. */
    int (*open_resolver)(void *context, struct loop *loop, struct resolver **resolver);
    void (*close_resolver)(void *context, struct resolver *resolver);
    /* A module by its path. 0, or PE_MODULE with a reason in `why`. `*handle` goes to unload_module. */
    int (*load_module)(void *context, const char *path, const struct pure_app **app, void **handle, char *why,
                       size_t why_size);
    void (*unload_module)(void *context, void *handle);
    /* Bytes that nobody can guess: epochs, and what spreads retries. */
    void (*fill_random)(void *context, void *bytes, size_t size);
    bool guards; /* a process of its own: modules that misbehave are noted, left and counted (turn_guard.h) */
    /* An address that this host is to listen on is in use, for the `tries`th time: pauses, and says whether
     * to try again. NULL: no. */
    bool (*await_address)(void *context, unsigned tries);
    /* The calling thread weighs a third of the process's others from now on, where they want one processor. 0
     * or a negative errno. NULL: nobody does (overload_without.share) */
    int (*lighten)(void *context);
    struct files *files;  /* the calls that block with which it opens its store; NULL: the system's */
    uint32_t descriptors; /* the most this process may have open; 0: any number. Too few for all connections
                             of the configuration: the front takes fewer, and the log says so */
    bool log_for_people;  /* lines with time and level, rather than with the journal's "<4>" */
    int log_fd;           /* where the lines of the log go; not the host's to close */
};

struct host;

/* Opens the host: 0, PE_KERNEL, PE_CONFIG or a negative errno, with one line in `why`. A module that cannot
 * be used suspends its app only. */
int host_open(struct host **host, const struct config *config, const struct host_options *options, char *why,
              size_t why_size);

/* First thing of a process that is to run a host, before it has threads: SIGTERM, SIGINT and SIGHUP wait from
 * now on; SIGHUP for host_run, the others for host_open, where they end the process at once: what was
 * acknowledged is stored, and nothing more is taken yet. */
void host_hold_signals(void);

/* Serves until SIGTERM or SIGINT, drains, and returns 0 or a negative errno; all within 5 s of the signal. A
 * thread that an app then does not give back cannot be waited for: the process exits with status 1, and the
 * log has the thread's name. SIGHUP is host_reload; so is the one by which a terminal says that it has gone:
 * that does no harm, and a host in the foreground goes on without it. */
int host_run(struct host *host);

/* Also of a host that host_run has given up because a loop of it failed: what is in flight then ends with its
 * back end. */
void host_close(struct host *host);

/* Reads the configuration file again, as SIGHUP does, on the front's loop. What can change while the host
 * runs changes: the options of wires that were wires before, under the same name; the token, limits and times
 * of the front. What cannot is named in the log, a line each, and waits for a restart. A file that is wrong
 * changes nothing: PE_CONFIG, with the error in the log; the configuration in force stays. */
int host_reload(struct host *host);

/* For a simulation: the host's loops, to be stepped; and a stop as SIGTERM makes it: stopped is true once it
 * is done. */
const struct registry *host_registry(const struct host *host);
void host_stop(struct host *host);
bool host_stopped(const struct host *host);

/* For a simulation, in the place of host_run's end, after host_stop or without it: gives up all that is in
 * flight and closes it, as the end of a process does; after host_stop journals are ended in order, without it
 * they stay as they are. Step the loops until host_ended, then host_close. */
void host_end(struct host *host);
bool host_ended(const struct host *host);

#endif
