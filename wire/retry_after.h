/* Retry-After (RFC 9110 section 10.2.3): seconds, or a date in any of the three forms of section 5.6.7. Pure
 * functions. */
#ifndef PURE_WIRE_RETRY_AFTER_H
#define PURE_WIRE_RETRY_AFTER_H

#include "core/bytes.h"
#include "core/error.h"

/* What is asked for never exceeds this; whoever rests caps it far lower. */
#define RETRY_AFTER_MAX_NS (UINT64_C(366) * 86400 * 1000000000)

/* An HTTP-date as seconds since 1970, before it negative. `base_s` is the present for the two-digit years of
 * the RFC 850 form: a date over 50 years after it is in the past. 0, or PE_MALFORMED: not one of the three
 * forms to the letter, or no such day or time. The day's name is not compared with the date. */
int http_date_parse(struct span text, int64_t base_s, int64_t *seconds);

/* How long the peer asks to be left alone, in nanoseconds. 0 for nonsense, for the past and for an empty
 * `value`. A date counts from the reply's own Date field if that is valid (so our clock may be wrong), else
 * from `wall_ms`. */
uint64_t retry_after_ns(struct span value, struct span date, uint64_t wall_ms);

#endif
