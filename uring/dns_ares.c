/* One lookup by c-ares, from its start to its end on the calling thread. A channel of its own each time: so
 * resolv.conf is read anew, and threads share nothing. */
#include "core/error.h"
#include "uring/dns.h"

#include <ares.h>
#include <poll.h>
#include <pthread.h>

/* No wait is longer, whatever c-ares says: what it says nothing of must not hang. */
#define WAIT_MAX_MS 1000

struct lookup {
    struct dns_answer *answer;
    bool over;
    int error;
};

/* Of the addresses and of the aliases that led to them, whichever is shortest. */
static uint64_t valid_ns(const struct ares_addrinfo *info)
{
    uint64_t ttl_ns = DNS_VALID_MAX_NS;
    for (const struct ares_addrinfo_node *node = info->nodes; node; node = node->ai_next)
        ttl_ns = node->ai_ttl < 0 ? 0 : min_u64(ttl_ns, (uint64_t)node->ai_ttl * NS_PER_S);
    for (const struct ares_addrinfo_cname *alias = info->cnames; alias; alias = alias->next)
        ttl_ns = alias->ttl < 0 ? 0 : min_u64(ttl_ns, (uint64_t)alias->ttl * NS_PER_S);
    return max_u64(ttl_ns, DNS_VALID_MIN_NS);
}

static void take_addresses(struct dns_answer *answer, const struct ares_addrinfo *info)
{
    for (const struct ares_addrinfo_node *node = info->nodes; node && answer->count < RESOLVER_ADDRESSES;
         node = node->ai_next) {
        if (node->ai_family != AF_INET && node->ai_family != AF_INET6)
            continue;
        struct resolver_address *to = &answer->addresses[answer->count++];
        memcpy(&to->address, node->ai_addr, node->ai_addrlen);
        to->len = node->ai_addrlen;
    }
}

static int meaning(int status)
{
    return status == ARES_ENOTFOUND || status == ARES_ENODATA ? PE_NAME_NOT_FOUND : PE_NAME_FAILED;
}

static void answered(void *context, int status, int timeouts, struct ares_addrinfo *info)
{
    (void)timeouts;
    struct lookup *l = context;
    l->over = true;
    l->error = status == ARES_SUCCESS ? 0 : meaning(status);
    if (status != ARES_SUCCESS)
        return;
    take_addresses(l->answer, info);
    l->answer->valid_ns = valid_ns(info);
    if (l->answer->count == 0)
        l->error = PE_NAME_NOT_FOUND;
    ares_freeaddrinfo(info);
}

static int wait_ms(ares_channel channel)
{
    struct timeval most = {.tv_sec = WAIT_MAX_MS / 1000}, left;
    const struct timeval *next = ares_timeout(channel, &most, &left);
    return (int)(next->tv_sec * 1000 + next->tv_usec / 1000 + 1);
}

/* Waits for what the channel waits for, and lets it act, also on what is late. poll, as descriptors here may
 * be above what select takes. */
static void step(ares_channel channel)
{
    ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
    struct pollfd polled[ARES_GETSOCK_MAXNUM];
    unsigned bits = (unsigned)ares_getsock(channel, sockets, ARES_GETSOCK_MAXNUM);
    nfds_t count = 0;
    for (int i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
        /* Not by ARES_GETSOCK_WRITABLE, which shifts into the sign. */
        short events =
            (short)((bits >> i & 1 ? POLLIN : 0) | (bits >> (i + ARES_GETSOCK_MAXNUM) & 1 ? POLLOUT : 0));
        if (events != 0)
            polled[count++] = (struct pollfd){.fd = sockets[i], .events = events};
    }
    int ready = poll(polled, count, wait_ms(channel));
    for (nfds_t i = 0; ready > 0 && i < count; i++) {
        bool readable = polled[i].revents & (POLLIN | POLLERR | POLLHUP);
        bool writable = polled[i].revents & POLLOUT;
        ares_process_fd(channel, readable ? polled[i].fd : ARES_SOCKET_BAD,
                        writable ? polled[i].fd : ARES_SOCKET_BAD);
    }
    if (ready <= 0)
        ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static void begin_library(void)
{
    ares_library_init(ARES_LIB_INIT_ALL);
}

int dns_ares(const char *name, const struct dns_servers *servers, struct dns_answer *answer)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct ares_options options = {.timeout = servers->timeout_ms,
                                   .tries = servers->tries,
                                   .udp_port = servers->port,
                                   .tcp_port = servers->port,
                                   .resolvconf_path = (char *)servers->resolv_conf};
    int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES;
    struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct lookup l = {.answer = answer};
    ares_channel channel;
    answer->count = 0;
    pthread_once(&once, begin_library);
    if (servers->resolv_conf)
        mask |= ARES_OPT_RESOLVCONF;
    if (servers->port > 0)
        mask |= ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT;
    if (ares_init_options(&channel, &options, mask) != ARES_SUCCESS)
        return PE_NAME_FAILED;
    ares_getaddrinfo(channel, name, NULL, &hints, answered, &l);
    while (!l.over)
        step(channel);
    ares_destroy(channel);
    return l.error;
}
