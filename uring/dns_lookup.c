/* What a helper thread of dns.c does: getaddrinfo, its hints and its failures. */
#include "core/error.h"
#include "uring/dns.h"

#include <netdb.h>

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
int dns_getaddrinfo(const char *name, struct resolver_address *out, unsigned *count)
{
    struct addrinfo *list = NULL;
    *count = 0;
    int error = look_up(name, AI_ADDRCONFIG, &list);
    if (error == PE_NAME_NOT_FOUND)
        error = look_up(name, 0, &list);
    if (error < 0)
        return error;
    for (const struct addrinfo *info = list; info && *count < RESOLVER_ADDRESSES; info = info->ai_next) {
        if (info->ai_addrlen > sizeof out->address)
            continue;
        memcpy(&out[*count].address, info->ai_addr, info->ai_addrlen);
        out[(*count)++].len = info->ai_addrlen;
    }
    freeaddrinfo(list);
    return *count > 0 ? 0 : PE_NAME_NOT_FOUND;
}
