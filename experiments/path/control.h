/* The words by which a path is told what it is, on its command line and while it runs:
 *
 *     delay MS   loss PERCENT   duplicate PERCENT   reorder PERCENT   rate MBIT   queue BYTES   mtu BYTES
 *     blackhole on|off   icmp on|off
 *
 * each of both directions, or, with `a` or `b` before it, of what end a (b) sends. Numbers may have
 * fractions. */
#ifndef PURE_EXPERIMENTS_PATH_CONTROL_H
#define PURE_EXPERIMENTS_PATH_CONTROL_H

#include "experiments/path/path.h"

#define CONTROL_WAYS 2

struct control {
    struct path_terms *terms[CONTROL_WAYS]; /* what a sends, what b sends */
    bool icmp[CONTROL_WAYS];                /* a packet over the MTU is answered */
};

/* Obeys one setting. `way` is 'a', 'b', or 0 for both. False, and nothing changed: no such word, or a value
 * that it does not take. */
bool control_set(struct control *control, char way, const char *word, const char *value);

/* Obeys a line: "loss 5", "a blackhole on". It is cut up. */
bool control_line(struct control *control, char *line);

#endif
