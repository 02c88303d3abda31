/* Which stream sends next: deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) over those that have
 * something to send.
 *
 * Each in its turn may send `quantum` bytes and what it saved of its turns before, one record range or many,
 * within a packet or across several; then it goes to the end of the line. One that has nothing to send leaves
 * the line and its savings. So over any while in which two streams both have something to send, what they
 * sent differs by no more than a quantum and a packet, and choosing costs O(1). */
#ifndef PURE_LINK_SCHEDULER_H
#define PURE_LINK_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in what is scheduled. Zeroed: not in line. */
struct scheduled {
    struct scheduled *next; /* in line */
    int64_t deficit;        /* bytes it may still send in this turn; at least -(the largest piece) */
    bool in_line;
};

struct scheduler {
    struct scheduled *head, *tail; /* both NULL: nobody is in line */
    uint32_t quantum;              /* bytes, > 0 */
};

void scheduler_init(struct scheduler *s, uint32_t quantum);

/* `e` has something to send. Nothing happens if it is in line. */
void scheduler_add(struct scheduler *s, struct scheduled *e);

/* Whose turn it is; NULL: nobody's. It stays so until scheduler_sent uses the turn up, or
 * scheduler_remove_head. */
struct scheduled *scheduler_head(struct scheduler *s);

/* The head has sent `bytes`. */
void scheduler_sent(struct scheduler *s, size_t bytes);

/* The head has nothing to send. */
void scheduler_remove_head(struct scheduler *s);

/* Whoever is in line leaves it. */
void scheduler_clear(struct scheduler *s);

#endif
