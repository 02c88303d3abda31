/* What both ends know of streams without being told (docs/link-protocol.md, section 7). */
#ifndef PURE_LINK_STREAM_LIMITS_H
#define PURE_LINK_STREAM_LIMITS_H

#define LINK_STREAM_CREDIT (UINT64_C(64) << 10) /* bytes a stream may send before it was told any */
#define LINK_STREAMS_MAX   1024                 /* most places for streams of an association */

#endif
