#include "link/mtu.h"

/* UDP payloads of paths that there are: tunnels, clouds, PPPoE, Ethernet with IPv6 and IPv4, jumbo frames,
 * InfiniBand, loopback with IPv6. */
static const uint32_t usual[] = {1372, 1432, 1452, 1472, 1952, 4016, 8852, 8952, 16356, 32767, 65487};

static bool may_try(const struct mtu *m, uint32_t bytes)
{
    return bytes > m->current && bytes < m->failed;
}

static void try_size(struct mtu *m, uint32_t bytes)
{
    m->probe = bytes;
    m->tries = 0;
    m->again_ns = NEVER;
}

static void rest(struct mtu *m, uint64_t now_ns)
{
    m->probe = 0;
    m->again_ns = m->current < m->limit ? now_ns + MTU_AGAIN_NS : NEVER;
}

/* The next size of the search: what the interface takes, if nothing has failed; what is usual; the middle. */
static void choose(struct mtu *m, uint64_t now_ns)
{
    if (may_try(m, m->limit)) {
        try_size(m, m->limit);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
        if (may_try(m, usual[i])) {
            try_size(m, usual[i]);
            return;
        }
    }
    if (m->failed - m->current > MTU_CLOSE)
        try_size(m, m->current + (m->failed - m->current) / 2);
    else
        rest(m, now_ns);
}

void mtu_init(struct mtu *m, uint32_t limit, uint64_t now_ns)
{
    limit = limit < MTU_BASE ? MTU_BASE : limit > MTU_MAX ? MTU_MAX : limit;
    *m = (struct mtu){.current = MTU_BASE, .limit = limit, .failed = limit + 1, .again_ns = NEVER};
    choose(m, now_ns);
}

uint32_t mtu_probe_size(struct mtu *m, uint64_t now_ns)
{
    if (m->again_ns <= now_ns) {
        m->failed = m->limit + 1;
        choose(m, now_ns);
    }
    return m->probe_out ? 0 : m->probe;
}

void mtu_probe_sent(struct mtu *m, uint64_t number)
{
    assert(m->probe != 0 && !m->probe_out);
    m->probe_out = true;
    m->probe_number = number;
    m->probe_bytes = m->probe;
}

static bool is_probe(const struct mtu *m, uint64_t number)
{
    return m->probe_out && number == m->probe_number;
}

/* The search may have turned to another size while the probe was out. */
static bool probe_acked(struct mtu *m, uint64_t now_ns)
{
    m->probe_out = false;
    if (!may_try(m, m->probe_bytes))
        return false;
    m->current = m->probe_bytes;
    choose(m, now_ns);
    return true;
}

static void probe_lost(struct mtu *m, uint64_t now_ns)
{
    m->probe_out = false;
    if (m->probe_bytes != m->probe || ++m->tries < MTU_TRIES)
        return;
    m->failed = m->probe;
    choose(m, now_ns);
}

bool mtu_acked(struct mtu *m, uint64_t number, uint32_t bytes, uint64_t now_ns)
{
    if (bytes > MTU_BASE) {
        m->large_acked = max_u64(m->large_acked, number + 1);
        m->large_lost = 0;
    }
    return is_probe(m, number) && probe_acked(m, now_ns);
}

/* To the base, and the search begins with `first`. */
static bool fall_back(struct mtu *m, uint32_t first)
{
    bool changed = m->current != MTU_BASE;
    m->current = MTU_BASE;
    m->large_lost = 0;
    try_size(m, first);
    return changed;
}

bool mtu_lost(struct mtu *m, uint64_t number, uint32_t bytes, uint64_t now_ns)
{
    if (is_probe(m, number)) {
        probe_lost(m, now_ns);
        return false;
    }
    if (m->current == MTU_BASE || bytes <= MTU_BASE || number < m->large_acked)
        return false;
    return ++m->large_lost >= MTU_BLACK_HOLE && fall_back(m, m->current);
}

bool mtu_hint(struct mtu *m, uint32_t bytes, uint64_t now_ns)
{
    if (bytes >= m->limit || bytes + 1 >= m->failed)
        return false;
    bytes = bytes < MTU_BASE ? MTU_BASE : bytes;
    m->failed = bytes + 1;
    if (bytes >= m->current) {
        choose(m, now_ns);
        return false;
    }
    bool changed = fall_back(m, bytes);
    if (!may_try(m, bytes))
        choose(m, now_ns);
    return changed;
}
