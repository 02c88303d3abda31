/* Names with scripted answers. */
#include "tests/sim/world.h"

#include "core/error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

struct name {
    char name[RESOLVER_NAME_MAX + 1];
    bool scripted; /* else only counted */
    int error;
    unsigned count;
    struct sockaddr_storage addresses[RESOLVER_ADDRESSES];
    uint64_t delay_ns, valid_ns;
    uint64_t lookups;
    struct name *next;
};

/* One lookup under way or answered. */
struct lookup {
    struct event event;
    struct sim_resolver *resolver;
    struct resolver_request *request;
    int error;
    bool answered;
    struct lookup *next;
};

struct sim_resolver {
    struct resolver resolver;
    struct sim *sim;
    struct loop *loop;
    struct task task;
    struct lookup *first, **last;
    struct sim_resolver *next;
};

static struct name *name_of(struct sim *sim, const char *text)
{
    struct name *name = sim->names;
    while (name && strcmp(name->name, text) != 0)
        name = name->next;
    if (name)
        return name;
    assert(strlen(text) <= RESOLVER_NAME_MAX);
    name = sim_allocate(sizeof *name);
    strcpy(name->name, text);
    name->next = sim->names;
    sim->names = name;
    return name;
}

void sim_set_name(struct sim *sim, const char *text, const struct sim_answer *answer)
{
    struct name *name = name_of(sim, text);
    name->scripted = true;
    name->error = answer->error;
    name->delay_ns = answer->delay_ns;
    name->valid_ns = answer->valid_ns;
    name->count = 0;
    while (name->count < RESOLVER_ADDRESSES && answer->addresses[name->count]) {
        name->addresses[name->count] = sim_parse_host(answer->addresses[name->count]);
        name->count++;
    }
}

uint64_t sim_lookups(const struct sim *sim, const char *text)
{
    const struct name *name = sim->names;
    while (name && strcmp(name->name, text) != 0)
        name = name->next;
    return name ? name->lookups : 0;
}

/* A name that is an address answers itself. */
static bool is_address(const char *text)
{
    uint8_t ip[16];
    return inet_pton(AF_INET, text, ip) == 1 || inet_pton(AF_INET6, text, ip) == 1;
}

static void add_address(struct resolver_request *request, struct sockaddr_storage address)
{
    if (address.ss_family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_port = htons(request->port);
    else
        ((struct sockaddr_in6 *)&address)->sin6_port = htons(request->port);
    request->addresses[request->count++] = (struct resolver_address){address, sim_address_len(&address)};
}

static void answer(struct sim *sim, struct event *event)
{
    struct lookup *l = container_of(event, struct lookup, event);
    struct resolver_request *request = l->request;
    const struct name *name = name_of(sim, request->name);
    request->count = 0;
    request->valid_ns = name->valid_ns > 0 ? name->valid_ns : 60 * NS_PER_S;
    l->answered = true;
    if (name->scripted) {
        l->error = name->error;
        for (unsigned i = 0; l->error == 0 && i < name->count; i++)
            add_address(request, name->addresses[i]);
    } else if (is_address(request->name)) {
        add_address(request, sim_parse_host(request->name));
    } else {
        l->error = PE_NAME_NOT_FOUND;
    }
    board_post(&l->resolver->loop->board, l->resolver->task.slot);
}

static void lookup(struct resolver *resolver, struct resolver_request *request)
{
    struct sim_resolver *r = container_of(resolver, struct sim_resolver, resolver);
    struct sim *sim = r->sim;
    assert(!request->in_flight && request->done);
    request->in_flight = true;
    struct name *name = name_of(sim, request->name);
    name->lookups++;
    struct lookup *l = sim_allocate(sizeof *l);
    *l = (struct lookup){.event.happen = answer, .resolver = r, .request = request};
    *r->last = l;
    r->last = &l->next;
    uint64_t delay_ns = name->scripted ? name->delay_ns : is_address(request->name) ? 0 : NS_PER_MS;
    event_set(sim, &l->event, delay_ns == SIM_HANGS ? NEVER : sim->now_ns + delay_ns);
}

static void remove_lookup(struct sim_resolver *r, struct lookup *l)
{
    struct lookup **at = &r->first;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    if (r->last == &l->next)
        r->last = at;
    event_set(r->sim, &l->event, NEVER);
    free(l);
}

static void cancel(struct resolver *resolver, struct resolver_request *request)
{
    struct sim_resolver *r = container_of(resolver, struct sim_resolver, resolver);
    request->in_flight = false;
    for (struct lookup *l = r->first; l; l = l->next) {
        if (l->request == request) {
            remove_lookup(r, l);
            return;
        }
    }
}

/* Any `done` may look up and cancel others, so the list is looked through from its start for each. */
static bool call_answered(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    struct sim_resolver *r = container_of(task, struct sim_resolver, task);
    struct lookup *l = r->first;
    while (l && !l->answered)
        l = l->next;
    if (!l)
        return false;
    struct resolver_request *request = l->request;
    int error = l->error;
    remove_lookup(r, l);
    sim_note(r->sim, 'n', (uint64_t)-error, request->count);
    request->in_flight = false;
    request->done(request, error);
    return true;
}

struct resolver *sim_resolver(struct sim *sim, struct loop *loop)
{
    struct sim_resolver *r = sim_allocate(sizeof *r);
    *r = (struct sim_resolver){
        .resolver = {lookup, cancel}, .sim = sim, .loop = loop, .task.run = call_answered};
    r->last = &r->first;
    r->next = sim->resolvers;
    sim->resolvers = r;
    int error = loop_add(loop, &r->task);
    assert(error == 0 && "the loop has room for the resolver's task");
    return &r->resolver;
}

void resolvers_free(struct sim *sim)
{
    while (sim->resolvers) {
        struct sim_resolver *r = sim->resolvers;
        sim->resolvers = r->next;
        while (r->first)
            remove_lookup(r, r->first);
        free(r);
    }
    while (sim->names) {
        struct name *name = sim->names;
        sim->names = name->next;
        free(name);
    }
}
