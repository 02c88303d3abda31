/* Name lookups, seen from a loop: a request embedded in its owner, answered on the loop's thread. uring/dns.c
 * answers from its cache or by helper threads, tests/sim with scripted answers. */
#ifndef PURE_CORE_RESOLVER_H
#define PURE_CORE_RESOLVER_H

#include "core/bytes.h"

#include <sys/socket.h>

#define RESOLVER_NAME_MAX  253 /* RFC 1035 section 2.3.4, without the final dot */
#define RESOLVER_ADDRESSES 8   /* the most that are kept of an answer */

struct resolver_address {
    struct sockaddr_storage address; /* with the request's port */
    socklen_t len;
};

struct resolver;

struct resolver_request {
    /* Called once a lookup, on the loop's thread, unless it was cancelled. `error`: 0, PE_NAME_NOT_FOUND,
     * PE_NAME_FAILED or PE_NAME_BUSY (try again later). The request may be looked up again from here. */
    void (*done)(struct resolver_request *request, int error);
    char name[RESOLVER_NAME_MAX + 1];
    uint16_t port;
    bool doubted;   /* the addresses of an earlier answer do not work: one from a cache will do only if it is
                       a few seconds old at most */
    unsigned count; /* addresses[0, count) */
    uint64_t valid_ns; /* how long the addresses may be used, from `done` on */
    struct resolver_address addresses[RESOLVER_ADDRESSES];
    bool in_flight;
    int result;                    /* the resolver's: what `done` will say, while it waits to be said */
    struct resolver *resolver;     /* the resolver's: who was asked, while in flight */
    struct resolver_request *next; /* the resolver's */
};

struct resolver {
    void (*lookup)(struct resolver *resolver, struct resolver_request *request);
    /* Its `done` is not called any more and its memory may go. */
    void (*cancel)(struct resolver *resolver, struct resolver_request *request);
};

#endif
