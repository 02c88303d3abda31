/* One direction of an emulated path, as a pure state machine: packets and the time go in; packets, and the
 * time of the next one, come out. No socket, clock or device is in here (ends.h, main.c have those).
 *
 *     offered ─ larger than the MTU? ─ black hole? ─ queue of the bottleneck ─ lost? ─ delay ─ due
 *
 * The bottleneck sends `bits_s`, one packet behind the other, and drops at the tail what does not fit into
 * `queue_bytes`. A lost packet has taken its time there, as it does before a bad radio hop. Packets come out
 * in the order in which they came in, but for those that are picked to be reordered: they take half the
 * delay.
 *
 * Chances are parts of PATH_CERTAIN. Each packet takes the same count of draws whatever the terms are: what
 * becomes of packet k by chance depends on the seed and on k. Memory is PATH_PACKETS slots, taken at
 * way_init; what finds none is dropped like what finds no room in the queue. Times are nanoseconds of any
 * clock that does not go back. */
#ifndef PURE_EXPERIMENTS_PATH_PATH_H
#define PURE_EXPERIMENTS_PATH_PATH_H

#include "core/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_PACKETS    8192u
#define PATH_PACKET_MAX 9000u /* bytes: the largest MTU */
#define PATH_MTU_LEAST  576u
#define PATH_CERTAIN    1000000u
#define PATH_NEVER      UINT64_MAX

/* May be changed at any time; packets on their way keep the terms they came under. */
struct path_terms {
    uint64_t delay_ns;
    uint64_t bits_s; /* more than 0 */
    uint64_t queue_bytes;
    uint64_t mtu;                      /* PATH_MTU_LEAST to PATH_PACKET_MAX */
    uint64_t loss, duplicate, reorder; /* chances */
    bool blackhole;                    /* nothing gets through, and nobody is told */
};

/* Packets: offered = delivered - duplicated + lost + overflowed + too_big + swallowed + those on their way.
 */
struct path_report {
    uint64_t offered, delivered, lost, overflowed, too_big, swallowed, duplicated, reordered;
    uint64_t delivered_bytes;
};

struct path_packet {
    uint64_t due_ns;
    uint64_t number; /* of those that were taken: decides between two that are due at one time */
    uint32_t size;
    uint8_t bytes[PATH_PACKET_MAX];
};

struct path {
    struct path_terms terms;
    struct path_report report;
    struct random random;
    uint64_t numbers;       /* of the next packet */
    uint64_t busy_until_ns; /* when the bottleneck has sent all that it took */
    struct path_packet *packets;
    uint16_t *free; /* a stack: what was used last is used next, so that few pages are touched */
    uint16_t *heap; /* packets on their way: heap[0] is due first */
    uint32_t free_count, heap_count; /* free_count + heap_count + (taken ? 1 : 0) == PATH_PACKETS */
    int32_t taken;                   /* the packet that way_take gave out; -1: none */
};

enum path_fate { PATH_TAKEN, PATH_TOO_BIG, PATH_DROPPED };

/* 0 or -ENOMEM. */
int way_init(struct path *p, const struct path_terms *terms, uint64_t seed);
void way_dispose(struct path *p);

/* A packet comes in: copied. size is at most PATH_PACKET_MAX. */
enum path_fate way_offer(struct path *p, uint64_t now_ns, const void *bytes, uint32_t size);

/* When the next packet comes out; PATH_NEVER if none is on its way. */
uint64_t way_next_ns(const struct path *p);

/* A packet that has come out, or NULL. Valid until the next call of way_take or way_offer. */
const struct path_packet *way_take(struct path *p, uint64_t now_ns);

#endif
