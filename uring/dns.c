#include "uring/dns_private.h"

#include "core/error.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>

/* Requests answered in one round of the task. */
#define ROUND_REQUESTS 64

/* --- a loop's side: its task and its timer --- */

static void look_after(struct dns *dns)
{
    pthread_mutex_lock(&dns->table->lock);
    names_look_after(dns);
    pthread_mutex_unlock(&dns->table->lock);
}

static void one_became_slow(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    look_after(container_of(timer, struct dns, timer));
}

static struct resolver_request *take_ready(struct dns *dns)
{
    pthread_mutex_lock(&dns->table->lock);
    struct resolver_request *request = dns->ready;
    if (request)
        dns->ready = request->next;
    if (!dns->ready)
        dns->ready_last = &dns->ready;
    pthread_mutex_unlock(&dns->table->lock);
    return request;
}

/* One round too many costs less than a look at what is ready. */
static bool run(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    struct dns *dns = container_of(task, struct dns, task);
    look_after(dns);
    for (unsigned i = 0; i < ROUND_REQUESTS; i++) {
        struct resolver_request *request = take_ready(dns);
        if (!request)
            return false;
        request->in_flight = false;
        request->done(request, request->result);
    }
    return true;
}

/* --- requests --- */

/* An address in digits is answered without a thread: AI_NUMERICHOST asks nobody. */
static bool literal(struct resolver_request *request)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *list;
    if (getaddrinfo(request->name, NULL, &hints, &list) != 0)
        return false;
    dns_add_address(request, list->ai_addr, list->ai_addrlen);
    request->valid_ns = DNS_VALID_MAX_NS;
    freeaddrinfo(list);
    return true;
}

static void look_up(struct resolver *resolver, struct resolver_request *request)
{
    struct dns *dns = container_of(resolver, struct dns, resolver);
    assert(!request->in_flight);
    request->in_flight = true;
    request->resolver = resolver;
    request->count = 0;
    bool decided = request->name[0] == '\0' || literal(request);
    pthread_mutex_lock(&dns->table->lock);
    if (decided)
        names_ready(dns, request, request->count > 0 ? 0 : PE_NAME_NOT_FOUND);
    else
        names_ask(dns, request);
    pthread_mutex_unlock(&dns->table->lock);
}

static void cancel(struct resolver *resolver, struct resolver_request *request)
{
    struct dns *dns = container_of(resolver, struct dns, resolver);
    if (!request->in_flight)
        return;
    request->in_flight = false;
    pthread_mutex_lock(&dns->table->lock);
    names_cancel(dns, request);
    pthread_mutex_unlock(&dns->table->lock);
}

/* --- life --- */

/* The table gets a user. 0 or PE_FULL. */
static int join(struct dns *dns, struct table *table)
{
    int error = loop_add(dns->loop, &dns->task);
    if (error < 0)
        return error;
    names_hold(table);
    pthread_mutex_lock(&table->lock);
    dns->table = table;
    dns->next = table->loops;
    table->loops = dns;
    pthread_mutex_unlock(&table->lock);
    return 0;
}

static struct dns *dns_new(struct loop *loop)
{
    struct dns *dns = calloc(1, sizeof *dns);
    if (!dns)
        return NULL;
    dns->resolver = (struct resolver){.lookup = look_up, .cancel = cancel};
    dns->loop = loop;
    dns->task.run = run;
    dns->ready_last = &dns->ready;
    timer_init(&dns->timer, one_became_slow);
    return dns;
}

int dns_open_beside(struct dns **opened, struct loop *loop, struct dns *other)
{
    struct dns *dns = dns_new(loop);
    if (!dns)
        return -ENOMEM;
    int error = join(dns, other->table);
    if (error < 0)
        free(dns);
    else
        *opened = dns;
    return error;
}

int dns_open(struct dns **opened, struct loop *loop, dns_lookup *lookup)
{
    struct dns first = {.table = names_new(lookup ? lookup : dns_find)};
    if (!first.table)
        return -ENOMEM;
    int error = dns_open_beside(opened, loop, &first);
    names_drop(first.table);
    return error;
}

void dns_dispose(struct dns *dns)
{
    struct table *table = dns->table;
    pthread_mutex_lock(&table->lock);
    struct dns **at = &table->loops;
    while (*at != dns)
        at = &(*at)->next;
    *at = dns->next;
    names_forget(dns);
    pthread_mutex_unlock(&table->lock);
    names_drop(table);
    timer_unset(&dns->loop->timers, &dns->timer);
    loop_remove(dns->loop, &dns->task);
    free(dns);
}

struct resolver *dns_resolver(struct dns *dns)
{
    return &dns->resolver;
}

struct dns *dns_of(struct resolver *resolver)
{
    return container_of(resolver, struct dns, resolver);
}

unsigned dns_threads(const struct dns *dns)
{
    pthread_mutex_lock(&dns->table->lock);
    unsigned threads = dns->table->running[false] + dns->table->running[true];
    pthread_mutex_unlock(&dns->table->lock);
    return threads;
}
