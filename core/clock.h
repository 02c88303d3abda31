/* Time. Every deadline is monotonic nanoseconds since an arbitrary start; NEVER is no deadline. Protocol code
 * takes `now_ns` as an argument and reads no clock; the wall clock goes only into what people and peers read.
 */
#ifndef PURE_CORE_CLOCK_H
#define PURE_CORE_CLOCK_H

#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)
#define NEVER     UINT64_MAX

#endif
