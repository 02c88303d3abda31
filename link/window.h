/* The replay window of a session, in the way of RFC 6479: a ring of bitmap words, of which those that the
 * window moves over are cleared whole, so that nothing is ever shifted.
 *
 * A number is taken at most once. Refused are numbers that were taken, those below the first, and those more
 * than WINDOW_PACKETS below the largest taken. */
#ifndef PURE_LINK_WINDOW_H
#define PURE_LINK_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_PACKETS 8192
/* One word more than the window: the newest is only partly in use. */
#define WINDOW_WORDS (WINDOW_PACKETS / 64 + 1)

struct window {
    uint64_t first; /* numbers below are refused */
    uint64_t next;  /* one more than the largest taken (or than `first` - 1); never decreases */
    uint64_t taken[WINDOW_WORDS];
};

void window_init(struct window *w, uint64_t first);

/* Whether `number` would be taken. Look before the packet is opened, take after: what is not authentic must
 * not move the window. */
bool window_allows(const struct window *w, uint64_t number);

/* Takes a number that the window allows. */
void window_take(struct window *w, uint64_t number);

#endif
