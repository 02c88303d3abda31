/* The resolver (core/resolver.h) of the product: a cache, and lookups on helper threads, one a thread. Loops
 * may share both: each has a `struct dns` of its own.
 *
 * A name in DNS is asked for by c-ares, which reads resolv.conf and /etc/hosts each time and knows times to
 * live; what that does not find, and what DNS has no say in, by getaddrinfo (dns_find). An answer is kept for
 * its time to live, within [DNS_VALID_MIN_NS, DNS_VALID_MAX_NS]; getaddrinfo's, which has none, DNS_VALID_NS;
 * that there is none, DNS_FAILED_NS.
 *
 * Guarantees:
 *   - Requests for a name that is being looked up share its answer, each with its own port. Whoever asks, a
 *     name is looked up at most once in the times above; if its addresses are doubted, in DNS_DOUBTED_NS.
 *   - A lookup that hangs delays nothing else: at most DNS_FRESH lookups run that are younger than
 *     DNS_SLOW_NS, and, apart from them, at most DNS_SLOW older ones. A name whose last lookup was slow
 *     starts among the slow ones. Only when both kinds are used up do names wait, each kind in its own line.
 *   - Threads: none before the first lookup, and none without a lookup; at most DNS_FRESH + DNS_SLOW. Numeric
 *     addresses take none. They are detached: nobody waits for a lookup that hangs, neither dns_dispose nor
 *     exit.
 *   - Memory: a table of DNS_NAMES names, made at the start. What it cannot take ends with PE_NAME_BUSY.
 *
 *   - What one loop has had looked up the others that share it know, too; all limits are of all together. A
 *     loop waits for another for microseconds at most (the lock of the table).
 *
 * `done` is called on the loop's thread that asked, never from inside lookup. */
#ifndef PURE_URING_DNS_H
#define PURE_URING_DNS_H

#include "core/loop.h"
#include "core/resolver.h"

#define DNS_NAMES   256 /* being looked up, waiting, or remembered with their answers */
#define DNS_FRESH   8
#define DNS_SLOW    24
#define DNS_SLOW_NS NS_PER_S

#define DNS_VALID_NS     (60 * NS_PER_S)
#define DNS_VALID_MIN_NS (5 * NS_PER_S)
#define DNS_VALID_MAX_NS (3600 * NS_PER_S)
#define DNS_DOUBTED_NS   (5 * NS_PER_S)
#define DNS_FAILED_NS    NS_PER_S

struct dns_answer {
    uint64_t valid_ns;                                     /* 0: for those who ask now only */
    unsigned count;                                        /* addresses[0, count) */
    struct resolver_address addresses[RESOLVER_ADDRESSES]; /* AF_INET, AF_INET6 */
};

/* Blocks. 0 and an answer with addresses, PE_NAME_NOT_FOUND or PE_NAME_FAILED. */
typedef int dns_lookup(const char *name, struct dns_answer *answer);

struct dns;

/* `lookup` NULL: dns_find. Takes a task and a timer of the loop. 0 or a negative code. */
int dns_open(struct dns **dns, struct loop *loop, dns_lookup *lookup);

/* For another loop: shares the cache and the helpers of `other`, which may be disposed of before it. */
int dns_open_beside(struct dns **dns, struct loop *loop, struct dns *other);

/* Forgets all requests of this loop without a word. On the loop's thread, or after its end. */
void dns_dispose(struct dns *dns);

struct resolver *dns_resolver(struct dns *dns);
struct dns *dns_of(struct resolver *resolver);

/* Helper threads with a lookup now, for all loops that share them. For status and tests. */
unsigned dns_threads(const struct dns *dns);

/* By c-ares if DNS may know the name, else or if that finds nothing by getaddrinfo, which decides. */
int dns_find(const char *name, struct dns_answer *answer);

/* Whether DNS may know it: names with a dot, but for .local (RFC 6762) and .localhost (RFC 6761). */
bool dns_is_global(const char *name);

/* The lookup by getaddrinfo, and what its failures (EAI_…) mean here. */
int dns_getaddrinfo(const char *name, struct dns_answer *answer);
int dns_error(int eai);

/* Where c-ares asks, and how long. */
struct dns_servers {
    const char *resolv_conf; /* NULL: the system's */
    uint16_t port;           /* 0: 53 */
    int timeout_ms;          /* of the first try; twice that of the next, and so on */
    int tries;               /* of each server */
};

/* The lookup by c-ares: /etc/hosts and DNS in the order of nsswitch.conf, search domains as resolv.conf says.
 */
int dns_ares(const char *name, const struct dns_servers *servers, struct dns_answer *answer);

#endif
