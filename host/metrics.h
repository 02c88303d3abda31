/* Everything that is counted, in the Prometheus text format 0.0.4: one family after the other, each with its
 * type, label values escaped. The loops' counters show their economy: enters and completions against steps,
 * notices and wakes against turns. */
#ifndef PURE_HOST_METRICS_H
#define PURE_HOST_METRICS_H

#include "host/front.h"
#include "host/text.h"

void metrics_write(struct front *front, struct text *t);

#endif
