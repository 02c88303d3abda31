/* What a helper thread of dns.c does: c-ares or getaddrinfo, the latter's hints and failures. */
#include "core/error.h"
#include "uring/dns.h"

#include <netdb.h>
#include <strings.h>

int dns_error(int eai)
{
    switch (eai) {
    case 0:
        return 0;
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return PE_NAME_NOT_FOUND;
    default:
        return PE_NAME_FAILED;
    }
}

static int look_up(const char *name, int flags, struct addrinfo **list)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    return dns_error(getaddrinfo(name, NULL, &hints, list));
}

/* AI_ADDRCONFIG keeps hosts without IPv6 from asking for it, but a loopback address does not count as having
 * a family: what is not found is asked for once more without it, so that a host with no network, or one of
 * the other family, finds "localhost" and what /etc/hosts says. */
int dns_getaddrinfo(const char *name, struct dns_answer *answer)
{
    struct addrinfo *list = NULL;
    answer->count = 0;
    answer->valid_ns = DNS_VALID_NS;
    int error = look_up(name, AI_ADDRCONFIG, &list);
    if (error == PE_NAME_NOT_FOUND)
        error = look_up(name, 0, &list);
    if (error < 0)
        return error;
    for (const struct addrinfo *info = list; info && answer->count < RESOLVER_ADDRESSES;
         info = info->ai_next) {
        if (info->ai_family != AF_INET && info->ai_family != AF_INET6)
            continue;
        struct resolver_address *to = &answer->addresses[answer->count++];
        memcpy(&to->address, info->ai_addr, info->ai_addrlen);
        to->len = info->ai_addrlen;
    }
    freeaddrinfo(list);
    return answer->count > 0 ? 0 : PE_NAME_NOT_FOUND;
}

static bool ends_with(const char *name, const char *end)
{
    size_t size = strlen(name), end_size = strlen(end);
    return size >= end_size && strcasecmp(name + size - end_size, end) == 0;
}

bool dns_is_global(const char *name)
{
    return strchr(name, '.') && !ends_with(name, ".local") && !ends_with(name, ".localhost");
}

int dns_find(const char *name, struct dns_answer *answer)
{
    static const struct dns_servers system_servers = {.timeout_ms = 2000, .tries = 2};
    if (dns_is_global(name) && dns_ares(name, &system_servers, answer) == 0)
        return 0;
    return dns_getaddrinfo(name, answer);
}
