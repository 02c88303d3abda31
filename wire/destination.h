/* Where a wire's connections go: the addresses of its host, or of its proxy, when they are looked up, which
 * of them the egress rules permit, and which worked last. All dials of a wire share one destination, and so
 * one lookup.
 *
 * Addresses are looked up before a dial as core/addresses.h says. A lookup that fails, or has no answer in
 * progress_ns, leaves the addresses that are known in use; if there are none the dials that wait fail. Egress
 * rules are applied to each address each time it is about to be connected to, so that a name cannot turn to
 * what is denied between a check and its use. */
#ifndef PURE_WIRE_DESTINATION_H
#define PURE_WIRE_DESTINATION_H

#include "core/addresses.h"
#include "core/loop.h"
#include "wire/options.h"

/* Who waits for a lookup; embedded in its owner. */
struct destination_waiter {
    /* `error` is 0 if there are addresses. From here neither the destination nor anything of it may be
     * waited for, disposed of or stopped: the owner acts later. */
    void (*answered)(struct destination_waiter *waiter, int error);
    struct destination_waiter *next;
    bool waiting;
};

struct destination {
    struct loop *loop;
    struct resolver *resolver;
    struct addresses addresses; /* of the host, or of the proxy */
    const struct networks *egress;
    uint64_t progress_ns;

    /* The rest is private. */
    struct resolver_address literal; /* the URL's host, if that is an address; len 0: it is a name */
    struct resolver_address latest;  /* connected to last, unless that turned out badly: its turn is first
                                        wherever a later lookup has it; len 0: none */
    bool proxied;
    bool tunnelled;      /* proxied, and https */
    char *connect;       /* tunnelled: the CONNECT request; NULL: there was no memory for it. Owned */
    size_t connect_size; /* bytes */
    struct resolver_request name;
    struct timer timer; /* set while a lookup is under way: its end */
    struct destination_waiter *waiters;
};

/* `options` were checked; of them the texts may go afterwards. Takes one timer of the loop. */
void destination_init(struct destination *d, const struct wire_options *options, struct loop *loop,
                      struct resolver *resolver);
/* Nothing of it is looked up any more; its dials have ended. */
void destination_dispose(struct destination *d);

/* The same when its loop's io and its resolver have been disposed of. */
void destination_abandon(struct destination *d);

/* The connection that was made of it turned out well (it carried a reply), or badly before it carried one:
 * the next dial begins with the next address, after a lookup. A dial that failed says so itself. */
void destination_worked(struct destination *d);
void destination_failed(struct destination *d);

/* --- for dials --- */

/* Whether the name is to be looked up before a try. */
bool destination_lookup_due(const struct destination *d, uint64_t now_ns);

/* Waits for a lookup, which is begun unless one is under way; `answered` follows. */
void destination_wait(struct destination *d, struct destination_waiter *waiter, uint64_t now_ns);
void destination_leave(struct destination *d, struct destination_waiter *waiter);

/* Whether the URL's host, if it is an address, may be connected to: also where a proxy would do that. */
bool destination_permitted(const struct destination *d);

/* When that, or every address, may not: which rule forbids the first of them (networks_why). */
void destination_why_denied(const struct destination *d, char text[NETWORKS_WHY_MAX]);

/* The addresses that may be connected to, in the order in which to try them: the one whose turn it is first,
 * then the families in turn (RFC 8305 section 4). Returns how many they are. */
unsigned destination_order(const struct destination *d, struct resolver_address out[RESOLVER_ADDRESSES]);

/* A connection to this address was made. */
void destination_connected(struct destination *d, const struct resolver_address *to);

#endif
