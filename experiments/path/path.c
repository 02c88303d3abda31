#include "experiments/path/path.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

static_assert(PATH_PACKETS <= UINT16_MAX + 1u, "packets are named by 16 bits");

int way_init(struct path *p, const struct path_terms *terms, uint64_t seed)
{
    *p = (struct path){.terms = *terms, .random = {seed}, .free_count = PATH_PACKETS, .taken = -1};
    p->packets = malloc(PATH_PACKETS * sizeof *p->packets);
    p->free = malloc(PATH_PACKETS * sizeof *p->free);
    p->heap = malloc(PATH_PACKETS * sizeof *p->heap);
    if (!p->packets || !p->free || !p->heap) {
        way_dispose(p);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < PATH_PACKETS; i++)
        p->free[i] = (uint16_t)(PATH_PACKETS - 1 - i);
    return 0;
}

void way_dispose(struct path *p)
{
    free(p->packets);
    free(p->free);
    free(p->heap);
    *p = (struct path){.taken = -1};
}

static bool by_chance(struct path *p, uint64_t chance)
{
    return random_below(&p->random, PATH_CERTAIN) < chance;
}

/* --- the heap of what is on its way --- */

static bool earlier(const struct path *p, uint16_t a, uint16_t b)
{
    const struct path_packet *x = &p->packets[a], *y = &p->packets[b];
    return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : x->number < y->number;
}

static void swap(uint16_t *a, uint16_t *b)
{
    uint16_t kept = *a;
    *a = *b;
    *b = kept;
}

static void heap_add(struct path *p, uint16_t packet)
{
    uint32_t at = p->heap_count++;
    p->heap[at] = packet;
    for (; at > 0 && earlier(p, p->heap[at], p->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&p->heap[at], &p->heap[(at - 1) / 2]);
}

static uint16_t heap_remove_first(struct path *p)
{
    uint16_t first = p->heap[0];
    p->heap[0] = p->heap[--p->heap_count];
    for (uint32_t at = 0;;) {
        uint32_t least = at, left = 2 * at + 1, right = left + 1;
        if (left < p->heap_count && earlier(p, p->heap[left], p->heap[least]))
            least = left;
        if (right < p->heap_count && earlier(p, p->heap[right], p->heap[least]))
            least = right;
        if (least == at)
            return first;
        swap(&p->heap[at], &p->heap[least]);
        at = least;
    }
}

/* --- packets --- */

static void give_back(struct path *p)
{
    if (p->taken >= 0)
        p->free[p->free_count++] = (uint16_t)p->taken;
    p->taken = -1;
}

/* Puts a copy on its way. False: no slot is free. */
static bool put(struct path *p, uint64_t due_ns, const void *bytes, uint32_t size)
{
    if (p->free_count == 0)
        return false;
    uint16_t slot = p->free[--p->free_count];
    struct path_packet *packet = &p->packets[slot];
    packet->due_ns = due_ns;
    packet->number = p->numbers++;
    packet->size = size;
    memcpy(packet->bytes, bytes, size);
    heap_add(p, slot);
    return true;
}

/* When the bottleneck has sent a packet that comes now; false: there is no room to wait for it. The queue is
 * what it has taken and not sent yet, in bytes of its rate. */
static bool pass_bottleneck(struct path *p, uint64_t now_ns, uint32_t size, uint64_t *sent_ns)
{
    uint64_t start_ns = p->busy_until_ns > now_ns ? p->busy_until_ns : now_ns;
    double queued = (double)(start_ns - now_ns) * (double)p->terms.bits_s / (8.0 * NS_PER_S);
    if (queued + size > (double)p->terms.queue_bytes)
        return false;
    *sent_ns = p->busy_until_ns = start_ns + UINT64_C(8) * size * NS_PER_S / p->terms.bits_s;
    return true;
}

enum path_fate way_offer(struct path *p, uint64_t now_ns, const void *bytes, uint32_t size)
{
    assert(size <= PATH_PACKET_MAX);
    bool lost = by_chance(p, p->terms.loss), twice = by_chance(p, p->terms.duplicate);
    bool ahead = by_chance(p, p->terms.reorder);
    uint64_t sent_ns;
    give_back(p);
    p->report.offered++;
    if (size > p->terms.mtu) {
        p->report.too_big++;
        return PATH_TOO_BIG;
    }
    if (p->terms.blackhole) {
        p->report.swallowed++;
        return PATH_DROPPED;
    }
    if (!pass_bottleneck(p, now_ns, size, &sent_ns)) {
        p->report.overflowed++;
        return PATH_DROPPED;
    }
    if (lost) {
        p->report.lost++;
        return PATH_DROPPED;
    }
    uint64_t due_ns = sent_ns + (ahead ? p->terms.delay_ns / 2 : p->terms.delay_ns);
    if (!put(p, due_ns, bytes, size)) {
        p->report.overflowed++;
        return PATH_DROPPED;
    }
    p->report.reordered += ahead;
    p->report.duplicated += twice && put(p, due_ns, bytes, size);
    return PATH_TAKEN;
}

uint64_t way_next_ns(const struct path *p)
{
    return p->heap_count > 0 ? p->packets[p->heap[0]].due_ns : PATH_NEVER;
}

const struct path_packet *way_take(struct path *p, uint64_t now_ns)
{
    give_back(p);
    if (way_next_ns(p) > now_ns)
        return NULL;
    p->taken = heap_remove_first(p);
    const struct path_packet *packet = &p->packets[p->taken];
    p->report.delivered++;
    p->report.delivered_bytes += packet->size;
    return packet;
}
