#include "wire/destination.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

/* --- lookups --- */

static void answer(struct destination *d, int error)
{
    struct destination_waiter *waiter = d->waiters;
    d->waiters = NULL;
    timer_unset(&d->loop->timers, &d->timer);
    while (waiter) {
        struct destination_waiter *next = waiter->next;
        waiter->waiting = false;
        waiter->answered(waiter, error);
        waiter = next;
    }
}

static void lookup_failed(struct destination *d, int error)
{
    if (d->addresses.count > 0) {
        addresses_keep(&d->addresses, d->loop->now_ns);
        error = 0;
    }
    answer(d, error);
}

static bool same(const struct resolver_address *a, const struct resolver_address *b)
{
    return a->len == b->len && memcmp(&a->address, &b->address, a->len) == 0;
}

static void prefer(struct destination *d, const struct resolver_address *to)
{
    struct addresses *a = &d->addresses;
    for (unsigned i = 0; i < a->count; i++) {
        if (same(&a->known[i], to))
            a->turn = i;
    }
}

static void looked_up(struct resolver_request *request, int error)
{
    struct destination *d = container_of(request, struct destination, name);
    if (error < 0 || request->count == 0) {
        lookup_failed(d, error < 0 ? error : PE_NAME_NOT_FOUND);
        return;
    }
    addresses_learn(&d->addresses, request, d->loop->now_ns);
    if (d->latest.len > 0)
        prefer(d, &d->latest);
    answer(d, 0);
}

static void lookup_hangs(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    struct destination *d = container_of(timer, struct destination, timer);
    d->resolver->cancel(d->resolver, &d->name);
    lookup_failed(d, PE_NAME_FAILED);
}

static void stop_lookup(struct destination *d)
{
    timer_unset(&d->loop->timers, &d->timer);
    if (d->name.in_flight)
        d->resolver->cancel(d->resolver, &d->name);
}

bool destination_lookup_due(const struct destination *d, uint64_t now_ns)
{
    return addresses_lookup_due(&d->addresses, now_ns);
}

void destination_wait(struct destination *d, struct destination_waiter *waiter, uint64_t now_ns)
{
    assert(!waiter->waiting);
    bool first = d->waiters == NULL;
    waiter->waiting = true;
    waiter->next = d->waiters;
    d->waiters = waiter;
    if (!first)
        return;
    timer_set(&d->loop->timers, &d->timer, now_ns + d->progress_ns);
    d->name.doubted = d->addresses.stale;
    d->resolver->lookup(d->resolver, &d->name);
}

void destination_leave(struct destination *d, struct destination_waiter *waiter)
{
    if (!waiter->waiting)
        return;
    struct destination_waiter **at = &d->waiters;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    waiter->waiting = false;
    if (!d->waiters)
        stop_lookup(d);
}

/* --- addresses --- */

static bool permitted(const struct destination *d, const struct resolver_address *a)
{
    return !d->egress || networks_permit(d->egress, (const struct sockaddr *)&a->address);
}

bool destination_permitted(const struct destination *d)
{
    return d->literal.len == 0 || permitted(d, &d->literal);
}

void destination_why_denied(const struct destination *d, char text[NETWORKS_WHY_MAX])
{
    const struct resolver_address *at = destination_permitted(d) ? &d->addresses.known[0] : &d->literal;
    text[0] = '\0';
    if (d->egress && at->len > 0)
        networks_why(d->egress, (const struct sockaddr *)&at->address, text);
}

/* Takes the first of the family from `from`, or the first of all if there is none; returns the family. */
static sa_family_t take(struct resolver_address *from, unsigned *count, sa_family_t family,
                        struct resolver_address *to)
{
    unsigned i = 0;
    while (i < *count && from[i].address.ss_family != family)
        i++;
    if (i == *count)
        i = 0;
    *to = from[i];
    memmove(from + i, from + i + 1, (--*count - i) * sizeof *from);
    return to->address.ss_family;
}

unsigned destination_order(const struct destination *d, struct resolver_address out[RESOLVER_ADDRESSES])
{
    const struct addresses *a = &d->addresses;
    struct resolver_address left[RESOLVER_ADDRESSES];
    unsigned count = 0, taken = 0;
    for (unsigned i = 0; i < a->count; i++) {
        const struct resolver_address *known = &a->known[(a->turn + i) % a->count];
        if (permitted(d, known))
            left[count++] = *known;
    }
    sa_family_t family = count > 0 ? left[0].address.ss_family : AF_UNSPEC;
    while (count > 0) {
        family = take(left, &count, family, &out[taken++]);
        family = family == AF_INET ? AF_INET6 : AF_INET;
    }
    return taken;
}

void destination_connected(struct destination *d, const struct resolver_address *to)
{
    d->latest = *to;
    prefer(d, to);
}

void destination_worked(struct destination *d)
{
    d->addresses.stale = false;
}

void destination_failed(struct destination *d)
{
    d->latest.len = 0;
    addresses_failed(&d->addresses);
}

/* --- its life --- */

/* The target has the port always, and Host says the same (RFC 9112 sections 3.2.3 and 3.2). */
static char *connect_request(const struct wire_options *o)
{
    static const char format[] = "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n";
    char target[RESOLVER_NAME_MAX + 10];
    const char *login = o->proxy.authorization;
    bool brackets = strchr(o->url.host, ':') != NULL;
    snprintf(target, sizeof target, brackets ? "[%s]:%u" : "%s:%u", o->url.host, o->url.port);
    size_t size = sizeof format + 2 * strlen(target) + sizeof "Proxy-Authorization: \r\n";
    size += login ? strlen(login) : 0;
    char *text = malloc(size);
    if (text)
        snprintf(text, size, format, target, target, login ? "Proxy-Authorization: " : "", login ? login : "",
                 login ? "\r\n" : "");
    return text;
}

void destination_init(struct destination *d, const struct wire_options *o, struct loop *loop,
                      struct resolver *resolver)
{
    const struct url *url = o->proxied ? &o->proxy.url : &o->url;
    *d = (struct destination){.loop = loop,
                              .resolver = resolver,
                              .egress = o->egress,
                              .progress_ns = o->progress_ns,
                              .proxied = o->proxied,
                              .tunnelled = o->proxied && o->url.tls,
                              .name = {.done = looked_up, .port = url->port}};
    memcpy(d->name.name, url->host, sizeof d->name.name);
    addresses_init(&d->addresses, url->host, url->port, url->literal);
    timer_init(&d->timer, lookup_hangs);
    if (o->url.literal) {
        struct addresses host;
        addresses_init(&host, o->url.host, o->url.port, true);
        d->literal = host.known[0];
    }
    if (d->tunnelled && (d->connect = connect_request(o)))
        d->connect_size = strlen(d->connect);
}

void destination_abandon(struct destination *d)
{
    timer_unset(&d->loop->timers, &d->timer);
    free(d->connect);
    d->connect = NULL;
}

void destination_dispose(struct destination *d)
{
    assert(!d->waiters);
    stop_lookup(d);
    destination_abandon(d);
}
