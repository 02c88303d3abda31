/* The resolver (core/resolver.h) of the product: getaddrinfo on helper threads, one lookup a thread.
 *
 * Guarantees:
 *   - Requests for a name that is being looked up share its answer, each with its own port.
 *   - A lookup that hangs delays nothing else: at most DNS_FRESH lookups run that are younger than
 *     DNS_SLOW_NS, and, apart from them, at most DNS_SLOW older ones. A name whose last lookup was slow
 *     starts among the slow ones. Only when both kinds are used up do names wait, each kind in its own line.
 *   - Threads: none before the first lookup, and none without a lookup; at most DNS_FRESH + DNS_SLOW. Numeric
 *     addresses take none. They are detached: nobody waits for a lookup that hangs, neither dns_dispose nor
 *     exit.
 *   - Memory: a table of DNS_NAMES names, made at the start. What it cannot take ends with PE_NAME_BUSY.
 *
 * All but the lookup itself happens on the loop's thread; `done` is never called from inside lookup. */
#ifndef PURE_URING_DNS_H
#define PURE_URING_DNS_H

#include "core/loop.h"
#include "core/resolver.h"

#define DNS_NAMES   256 /* being looked up, waiting, or remembered as slow or quick */
#define DNS_FRESH   8
#define DNS_SLOW    24
#define DNS_SLOW_NS NS_PER_S

/* Blocks. Writes at most RESOLVER_ADDRESSES addresses into `out` and their number (with 0, more than none)
 * into `count`. 0, PE_NAME_NOT_FOUND or PE_NAME_FAILED. */
typedef int dns_lookup(const char *name, struct resolver_address *out, unsigned *count);

struct dns;

/* `lookup` NULL: getaddrinfo. Takes a task and a timer of the loop. 0 or a negative code. */
int dns_open(struct dns **dns, struct loop *loop, dns_lookup *lookup);

/* Forgets all requests without a word. On the loop's thread, or after its end. */
void dns_dispose(struct dns *dns);

struct resolver *dns_resolver(struct dns *dns);

/* Helper threads with a lookup now; on the loop's thread. For status and tests. */
unsigned dns_threads(const struct dns *dns);

/* The lookup by getaddrinfo, and what its failures (EAI_…) mean here. */
int dns_getaddrinfo(const char *name, struct resolver_address *out, unsigned *count);
int dns_error(int eai);

#endif
