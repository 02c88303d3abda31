/* Paths and NATs. */
#include "tests/sim/world.h"

#include <stdlib.h>

#define NAT_FIRST_PORT 20000

const struct sim_path sim_path_default = {
    .latency_min_ns = 50 * NS_PER_US, .latency_max_ns = 200 * NS_PER_US, .mtu = 1500};

/* ---- Paths: policies, where a host may be any (NULL), and the states of pairs ---- */

struct path {
    struct sim_host *from, *to;
    bool set;               /* by a test */
    struct sim_path policy; /* in force: of a pair, refreshed by path_between */
    uint64_t last_ns;       /* arrival of the last that came in order */
    uint64_t free_ns;       /* when what is in the queue has left */
    struct path *next;
};

static struct path *find(const struct sim *sim, const struct sim_host *from, const struct sim_host *to)
{
    struct path *path = sim->paths;
    while (path && (path->from != from || path->to != to))
        path = path->next;
    return path;
}

static struct path *find_or_make(struct sim *sim, struct sim_host *from, struct sim_host *to)
{
    struct path *path = find(sim, from, to);
    if (path)
        return path;
    path = sim_allocate(sizeof *path);
    *path = (struct path){.from = from, .to = to, .next = sim->paths};
    sim->paths = path;
    return path;
}

void sim_set_path(struct sim *sim, const char *from, const char *to, const struct sim_path *policy)
{
    assert(policy->latency_min_ns <= policy->latency_max_ns && policy->mtu > 0);
    assert(policy->bytes_s == 0 || policy->queue_bytes > 0);
    struct path *path = find_or_make(sim, named_host(sim, from), named_host(sim, to));
    path->set = true;
    path->policy = *policy;
}

struct path *path_between(struct sim *sim, struct sim_host *from, struct sim_host *to)
{
    struct path *path = find_or_make(sim, from, to);
    if (path->set)
        return path;
    const struct sim_host *general[][2] = {{NULL, to}, {from, NULL}, {NULL, NULL}};
    path->policy = sim_path_default;
    for (size_t i = 0; i < ARRAY_SIZE(general); i++) {
        const struct path *rule = find(sim, general[i][0], general[i][1]);
        if (rule) {
            path->policy = rule->policy;
            break;
        }
    }
    return path;
}

const struct sim_path *path_policy(const struct path *path)
{
    return &path->policy;
}

size_t packet_bytes(const struct sockaddr_storage *to, size_t size)
{
    return size + (to->ss_family == AF_INET ? 20 : 40) + 8;
}

/* When it has left the queue; NEVER: it did not fit. */
static uint64_t through_queue_ns(struct sim *sim, struct path *path, size_t size)
{
    const struct sim_path *p = &path->policy;
    if (p->bytes_s == 0)
        return sim->now_ns;
    uint64_t starts_ns = max_u64(path->free_ns, sim->now_ns);
    double queued_bytes = (double)(starts_ns - sim->now_ns) * (double)p->bytes_s / (double)NS_PER_S;
    if (queued_bytes + (double)size > (double)p->queue_bytes)
        return NEVER;
    path->free_ns = starts_ns + size * NS_PER_S / p->bytes_s;
    return path->free_ns;
}

uint64_t path_arrival_ns(struct sim *sim, struct path *path, size_t size)
{
    const struct sim_path *p = &path->policy;
    bool cut = p->black_hole || path->from->silent || path->to->silent;
    if (cut || size > p->mtu || sim_chance(sim, p->loss))
        return NEVER;
    uint64_t left_ns = through_queue_ns(sim, path, size);
    if (left_ns == NEVER)
        return NEVER;
    uint64_t at_ns = left_ns + 1 + p->latency_min_ns;
    at_ns += random_below(&sim->random, p->latency_max_ns - p->latency_min_ns + 1);
    at_ns = max_u64(at_ns, path->last_ns);
    if (sim_chance(sim, p->reorder))
        return at_ns + random_below(&sim->random, p->reorder_ns + 1);
    path->last_ns = at_ns;
    return at_ns;
}

/* ---- NATs ---- */

/* A socket's port, and one endpoint that it sent to by it. */
struct mapping {
    struct sockaddr_storage inside, outside, peer;
    bool dead, forgotten;
    struct mapping *next;
};

struct nat {
    struct sim_host *host;
    struct sockaddr_storage address;
    uint16_t next_port;
    struct mapping *mappings;
    struct nat *next;
};

static struct nat *nat_of(struct sim *sim, const struct sim_host *host)
{
    struct nat *nat = sim->nats;
    while (nat && nat->host != host)
        nat = nat->next;
    return nat;
}

static struct nat *named_nat(struct sim *sim, const char *host)
{
    struct nat *nat = nat_of(sim, named_host(sim, host));
    assert(nat && "a host behind a NAT");
    return nat;
}

/* Each has a range of ports, so that several may share an address. */
void sim_set_nat(struct sim *sim, const char *host, const char *public_address)
{
    struct nat *nat = sim_allocate(sizeof *nat);
    nat->host = named_host(sim, host);
    assert(!nat_of(sim, nat->host) && "one NAT a host");
    nat->address = sim_parse_host(public_address);
    nat->next_port = NAT_FIRST_PORT;
    for (const struct nat *other = sim->nats; other; other = other->next)
        nat->next_port += 1000;
    nat->next = sim->nats;
    sim->nats = nat;
}

void sim_rebind_nat(struct sim *sim, const char *host)
{
    for (struct mapping *m = named_nat(sim, host)->mappings; m; m = m->next)
        m->forgotten = !m->dead;
}

void sim_kill_nat_entries(struct sim *sim, const char *host)
{
    for (struct mapping *m = named_nat(sim, host)->mappings; m; m = m->next)
        m->dead = true;
}

static bool same_endpoint(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    return same_ip(a, b) && get_port(a) == get_port(b);
}

/* The mapping to that peer; else any of the socket's, whose port the new one shares; else NULL. */
static const struct mapping *find_mapping(const struct nat *nat, const struct sockaddr_storage *inside,
                                          const struct sockaddr_storage *peer)
{
    const struct mapping *found = NULL;
    for (const struct mapping *m = nat->mappings; m; m = m->next) {
        if (m->forgotten || !same_endpoint(&m->inside, inside))
            continue;
        found = m;
        if (same_endpoint(&m->peer, peer))
            break;
    }
    return found;
}

bool nat_outbound(struct sim *sim, struct sim_host *host, struct sockaddr_storage *from,
                  const struct sockaddr_storage *to)
{
    struct nat *nat = nat_of(sim, host);
    if (!nat)
        return true;
    const struct mapping *known = find_mapping(nat, from, to);
    if (known && known->dead)
        return false;
    struct sockaddr_storage outside = known ? known->outside : nat->address;
    if (!known)
        set_port(&outside, nat->next_port++);
    if (!known || !same_endpoint(&known->peer, to)) {
        struct mapping *m = sim_allocate(sizeof *m);
        *m = (struct mapping){.inside = *from, .outside = outside, .peer = *to, .next = nat->mappings};
        nat->mappings = m;
    }
    *from = outside;
    return true;
}

bool nat_inbound(struct sim *sim, const struct sockaddr_storage *from, struct sockaddr_storage *to)
{
    bool public = false;
    for (const struct nat *nat = sim->nats; nat; nat = nat->next) {
        public = public || same_ip(&nat->address, to);
        for (const struct mapping *m = nat->mappings; m; m = m->next) {
            if (m->dead || m->forgotten || !same_endpoint(&m->outside, to) || !same_endpoint(&m->peer, from))
                continue;
            *to = m->inside;
            return !nat->host->silent;
        }
    }
    return !public;
}

void paths_free(struct sim *sim)
{
    while (sim->paths) {
        struct path *path = sim->paths;
        sim->paths = path->next;
        free(path);
    }
    while (sim->nats) {
        struct nat *nat = sim->nats;
        sim->nats = nat->next;
        while (nat->mappings) {
            struct mapping *m = nat->mappings;
            nat->mappings = m->next;
            free(m);
        }
        free(nat);
    }
}
