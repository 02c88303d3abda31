/* The TLS contexts of a host and the files they are made of: one context for each different set of CA
 * certificates, certificate, key and pins, however many outputs share it; CA certificates are read once for
 * each path.
 *
 * Files that are missing or unusable keep nobody from starting: the context is not there, who needs it fails
 * with PE_TLS_FILES, and it is made once the files can be used. Files that change are read anew; ones that
 * cannot be used leave the context of before in force. What there is to say is said once for each change.
 *
 * Files are looked at and read by host_tls_look, which blocks: the front's thread calls it at the start and
 * when the configuration is read again, which is a file, too; else a thread of its own, `pure-files`, which
 * lives for one look. There is one at most, and none without a context. Nobody waits for it: if it is under
 * way (on a file system that hangs, for as long as that does), another look follows it. */
#ifndef PURE_HOST_HOST_TLS_H
#define PURE_HOST_HOST_TLS_H

#include "core/log.h"
#include "core/loop.h"
#include "host/config.h"
#include "host/tls_report.h"

#include <pthread.h>

#define HOST_TLS_LOOK_NS (10 * NS_PER_S) /* from the end of a look to the next */
#define HOST_TLS_POLL_NS (50 * NS_PER_MS)

/* What a context is made of. */
struct host_tls_files {
    const char *ca; /* NULL: the system's; of a server: no certificates of clients */
    const struct config_pair *pair;
    const uint8_t (*pins)[TLS_PIN_BYTES];
    unsigned pin_count;
    bool server;
};

struct host_tls_trust;
struct host_tls_entry;

struct host_tls {
    pthread_mutex_t
        lock; /* of these two. What is in the lists stays there, and is the look's that is under way */
    struct host_tls_trust *trusts;
    struct host_tls_entry *entries;
    struct tls_report report;
    struct timer timer; /* on the front's loop: the next look, or the next glance at one under way */
    struct loop *loop;
    struct log *log;
    pthread_t thread;
    bool looking;        /* the thread is there and not joined */
    bool again;          /* a look is wanted as soon as that one has ended */
    _Atomic bool looked; /* it is at its end */
};

void host_tls_init(struct host_tls *t);
/* No look is under way, and nobody uses a context. */
void host_tls_dispose(struct host_tls *t);

/* The place of the context of these files, which lasts as long as `t`; a new one is empty until the next
 * look. 0 or -ENOMEM. */
int host_tls_want(struct host_tls *t, const struct host_tls_files *files, struct tls_current **current);

/* Reads what is new or has changed. Blocks. */
void host_tls_look(struct host_tls *t);
/* The same, and says what there is to say; a look that is under way is followed by another instead. On the
 * loop's thread. */
void host_tls_look_and_tell(struct host_tls *t, struct log *log);

/* Every HOST_TLS_LOOK_NS from now on, on the loop's thread, until host_tls_stop. */
void host_tls_start(struct host_tls *t, struct loop *loop, struct log *log);
void host_tls_stop(struct host_tls *t);
/* Whether no look is under way; one that has ended is joined. */
bool host_tls_idle(struct host_tls *t);

#endif
