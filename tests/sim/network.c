/* Hosts, the links between them, who listens, and how a connection comes to be. */
#include "tests/sim/world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#define SYN_RETRY_NS    NS_PER_S /* doubled each time */
#define SYN_RETRIES_MAX 6        /* net.ipv4.tcp_syn_retries: gives up after 127 s */

const struct sim_link sim_link_default = {
    .latency_min_ns = 50 * NS_PER_US, .latency_max_ns = 200 * NS_PER_US, .split = 300, .window_bytes = 65536};

/* ---- Addresses ---- */

struct sockaddr_storage sim_parse_host(const char *text)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        address.ss_family = AF_INET;
        return address;
    }
    int valid = inet_pton(AF_INET6, text, &in6->sin6_addr);
    assert(valid == 1 && "an IP address");
    address.ss_family = AF_INET6;
    return address;
}

void set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET)
        ((struct sockaddr_in *)address)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

uint16_t get_port(const struct sockaddr_storage *address)
{
    return ntohs(address->ss_family == AF_INET ? ((const struct sockaddr_in *)address)->sin_port
                                               : ((const struct sockaddr_in6 *)address)->sin6_port);
}

struct sockaddr_storage sim_parse_endpoint(const char *text)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    assert(colon && (size_t)(colon - text) < sizeof host && "an endpoint is HOST:PORT");
    size_t size = (size_t)(colon - text);
    bool brackets = text[0] == '[' && colon[-1] == ']';
    memcpy(host, text + brackets, size - 2 * brackets);
    host[size - 2 * brackets] = 0;
    struct sockaddr_storage address = sim_parse_host(host);
    set_port(&address, (uint16_t)atoi(colon + 1));
    return address;
}

socklen_t sim_address_len(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static const void *ip_of(const struct sockaddr_storage *address, size_t *size)
{
    *size = address->ss_family == AF_INET ? 4 : 16;
    return address->ss_family == AF_INET ? (const void *)&((const struct sockaddr_in *)address)->sin_addr
                                         : (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr;
}

bool same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    size_t size;
    if (a->ss_family != b->ss_family)
        return false;
    const void *ip = ip_of(a, &size);
    return memcmp(ip, ip_of(b, &size), size) == 0;
}

bool is_any(const struct sockaddr_storage *address)
{
    static const uint8_t zero[16];
    size_t size;
    const void *ip = ip_of(address, &size);
    return memcmp(ip, zero, size) == 0;
}

/* ---- Hosts and links ---- */

struct sim_host *sim_host_of(struct sim *sim, const struct sockaddr_storage *address)
{
    for (struct sim_host *host = sim->hosts; host; host = host->next) {
        if (same_ip(&host->address, address))
            return host;
    }
    struct sim_host *host = sim_allocate(sizeof *host);
    host->address = *address;
    set_port(&host->address, 0);
    host->next = sim->hosts;
    sim->hosts = host;
    return host;
}

struct sim_host *named_host(struct sim *sim, const char *text)
{
    if (!text)
        return NULL;
    struct sockaddr_storage address = sim_parse_host(text);
    return sim_host_of(sim, &address);
}

struct link_rule {
    struct sim_host *from, *to; /* NULL: any */
    struct sim_link link;
    struct link_rule *next;
};

static struct link_rule *find_rule(const struct sim *sim, const struct sim_host *from,
                                   const struct sim_host *to)
{
    struct link_rule *rule = sim->links;
    while (rule && (rule->from != from || rule->to != to))
        rule = rule->next;
    return rule;
}

void sim_set_link(struct sim *sim, const char *from, const char *to, const struct sim_link *link)
{
    assert(link->latency_min_ns <= link->latency_max_ns && link->window_bytes > 0);
    struct sim_host *a = named_host(sim, from), *b = named_host(sim, to);
    struct link_rule *rule = find_rule(sim, a, b);
    if (!rule) {
        rule = sim_allocate(sizeof *rule);
        *rule = (struct link_rule){.from = a, .to = b, .next = sim->links};
        sim->links = rule;
    }
    rule->link = *link;
}

struct sim_link sim_link_between(struct sim *sim, const struct sim_host *from, const struct sim_host *to)
{
    const struct link_rule *rule = NULL;
    if (sim->links) {
        const struct sim_host *pairs[][2] = {{from, to}, {NULL, to}, {from, NULL}, {NULL, NULL}};
        for (size_t i = 0; !rule && i < ARRAY_SIZE(pairs); i++)
            rule = find_rule(sim, pairs[i][0], pairs[i][1]);
    }
    struct sim_link link = rule ? rule->link : sim_link_default;
    link.black_hole = link.black_hole || from->silent || to->silent;
    return link;
}

void sim_silence_host(struct sim *sim, const char *host, bool silent)
{
    named_host(sim, host)->silent = silent;
}

static bool between(const struct connection *c, const struct sim_host *a, const struct sim_host *b)
{
    const struct sim_host *x = c->ends[0].host, *y = c->ends[1].host;
    return ((!a || a == x) && (!b || b == y)) || ((!a || a == y) && (!b || b == x));
}

void sim_reset_connections(struct sim *sim, const char *a, const char *b)
{
    struct sim_host *x = named_host(sim, a), *y = named_host(sim, b);
    for (struct connection *c = sim->connections; c; c = c->next) {
        if (c->ends[0].connected && between(c, x, y))
            connection_break(c, true);
    }
}

void sim_reboot_host(struct sim *sim, const char *host)
{
    const struct sim_host *h = named_host(sim, host);
    for (struct connection *c = sim->connections; c; c = c->next) {
        for (unsigned i = 0; i < 2; i++) {
            if (c->ends[i].host == h && c->ends[i].connected)
                end_die(&c->ends[i], -ECONNRESET);
        }
    }
    datagrams_reboot(sim, h);
}

/* ---- Listeners ---- */

static bool accepts(const struct listener *l, const struct sockaddr_storage *to)
{
    if (l->address.ss_family != to->ss_family || get_port(&l->address) != get_port(to))
        return false;
    return is_any(&l->address) ? same_ip(&l->host->address, to) : same_ip(&l->address, to);
}

static struct listener *find_listener(struct sim *sim, const struct sockaddr_storage *to)
{
    struct listener *l = sim->listeners;
    while (l && !accepts(l, to))
        l = l->next;
    return l;
}

struct listener *listener_open(struct sim *sim, const struct sockaddr_storage *address, struct sim_host *host,
                               unsigned limit)
{
    for (struct listener *l = sim->listeners; l; l = l->next) {
        bool same = same_ip(&l->address, address) && l->host == host;
        if (same && get_port(&l->address) == get_port(address))
            return NULL;
    }
    struct listener *l = sim_allocate(sizeof *l);
    *l = (struct listener){
        .sim = sim, .address = *address, .host = host, .limit = limit, .next = sim->listeners};
    l->last = &l->first;
    sim->listeners = l;
    return l;
}

struct end *listener_take(struct listener *l)
{
    struct end *end = l->first;
    if (!end)
        return NULL;
    l->first = end->backlog_next;
    if (!l->first)
        l->last = &l->first;
    l->count--;
    return end;
}

void listener_close(struct listener *l)
{
    for (struct end *end; (end = listener_take(l));)
        end_abort(end);
    struct listener **at = &l->sim->listeners;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    free(l);
}

unsigned sim_backlog(struct sim *sim, const char *endpoint)
{
    struct sockaddr_storage address = sim_parse_endpoint(endpoint);
    struct listener *l = find_listener(sim, &address);
    return l ? l->count : 0;
}

/* ---- Connecting ---- */

static uint64_t one_way_ns(struct sim *sim, const struct sim_link *link)
{
    return 1 + link->latency_min_ns +
           random_below(&sim->random, link->latency_max_ns - link->latency_min_ns + 1);
}

static void retry_syn(struct connection *c)
{
    struct sim *sim = c->ends[0].sim;
    if (c->syn_retries >= SYN_RETRIES_MAX)
        end_die(&c->ends[0], -ETIMEDOUT);
    else
        event_set(sim, &c->syn, sim->now_ns + (SYN_RETRY_NS << c->syn_retries++));
}

static void syn_arrives(struct sim *sim, struct event *event)
{
    struct connection *c = container_of(event, struct connection, syn);
    struct end *client = &c->ends[0], *server = &c->ends[1];
    struct listener *l = find_listener(sim, &c->to);
    bool lost = sim_link_between(sim, client->host, server->host).black_hole;
    sim_note(sim, 's', lost, l != NULL);
    if (lost || (l && l->count > l->limit)) { /* as Linux: the backlog holds one more than its limit */
        retry_syn(c);
        return;
    }
    if (!l) {
        end_answer(client, SEGMENT_RESET);
        return;
    }
    server->exists = server->connected = true;
    *l->last = server;
    l->last = &server->backlog_next;
    l->count++;
    end_answer(client, SEGMENT_ACCEPT);
    if (l->arrived)
        l->arrived(l);
}

struct end *network_connect(struct sim *sim, struct sim_host *from, const struct sockaddr_storage *to,
                            uint32_t user_timeout_ms)
{
    struct connection *c = sim_allocate(sizeof *c);
    struct sim_host *host = sim_host_of(sim, to);
    host->connects++;
    c->to = *to;
    c->syn.happen = syn_arrives;
    c->next = sim->connections;
    sim->connections = c;
    struct end *client = &c->ends[0], *server = &c->ends[1];
    client->sim = server->sim = sim;
    end_init(client, c, server, from);
    end_init(server, c, client, host);
    client->exists = true;
    client->user_timeout_ms = user_timeout_ms;
    struct sim_link link = sim_link_between(sim, from, host);
    event_set(sim, &c->syn, sim->now_ns + one_way_ns(sim, &link));
    return client;
}

uint64_t sim_connects(struct sim *sim, const char *host)
{
    struct sockaddr_storage address = sim_parse_host(host);
    return sim_host_of(sim, &address)->connects;
}

void network_free(struct sim *sim)
{
    while (sim->listeners)
        listener_close(sim->listeners);
    connections_free(sim);
    while (sim->links) {
        struct link_rule *rule = sim->links;
        sim->links = rule->next;
        free(rule);
    }
    while (sim->hosts) {
        struct sim_host *host = sim->hosts;
        sim->hosts = host->next;
        free(host);
    }
}
