/* What a link says of itself: its outlets' states, its gauges, lines in the log.
 *
 * An outlet's state is of the link as a whole (nothing gets through, or it does), or, from a refusal until
 * something is stored, of the outlet alone. A trouble is one line at its beginning and one at its end,
 * however long it takes and however often it is met. Called on the link's loop only. */
#ifndef PURE_LINK_LINK_REPORT_H
#define PURE_LINK_LINK_REPORT_H

#include "link/link.h"

/* Nothing gets through, and this is why. It is said in the log if it `lasts`: a path that just loses much is
 * silent for a moment again and again. */
void link_trouble(struct link *l, int error, bool lasts);

/* A packet of the receiver was opened: whatever the trouble was, it is over. */
void link_heard(struct link *l);

/* outputs_hooks; `context` is the link. */
void link_stored(void *context, struct link_output *output);
void link_refused(void *context, struct link_output *output, int error, bool for_ever);

/* Brings the gauges of the report up to date. */
void link_report(struct link *l);

#endif
