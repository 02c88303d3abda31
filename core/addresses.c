#include "core/addresses.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static void set_literal(struct resolver_address *to, const char *host, uint16_t port)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&to->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&to->address;
    memset(to, 0, sizeof *to);
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        to->len = sizeof *v4;
        return;
    }
    int valid = inet_pton(AF_INET6, host, &v6->sin6_addr);
    assert(valid == 1);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    to->len = sizeof *v6;
}

void addresses_init(struct addresses *a, const char *host, uint16_t port, bool literal)
{
    *a = (struct addresses){.literal = literal};
    if (!literal)
        return;
    set_literal(&a->known[0], host, port);
    a->count = 1;
}

bool addresses_lookup_due(const struct addresses *a, uint64_t now_ns)
{
    if (a->literal)
        return false;
    return a->count == 0 || a->stale || now_ns - a->looked_up_ns > a->valid_ns;
}

void addresses_learn(struct addresses *a, const struct resolver_request *answer, uint64_t now_ns)
{
    assert(answer->count > 0 && answer->count <= RESOLVER_ADDRESSES);
    memcpy(a->known, answer->addresses, answer->count * sizeof *answer->addresses);
    a->count = answer->count;
    a->turn %= answer->count;
    addresses_keep(a, now_ns);
    a->valid_ns = answer->valid_ns;
}

void addresses_failed(struct addresses *a)
{
    a->stale = true;
    if (a->count > 0)
        a->turn = (a->turn + 1) % a->count;
}
