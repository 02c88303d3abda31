/* The frames inside a DATA packet: docs/link-protocol.md section 4.
 *
 * Decoding is bounded and copies nothing: spans in a frame point into the packet. Whatever decodes is valid
 * by itself: an ACK's ranges do not run below zero and are at most FRAME_ACK_RANGES, a RECORDS frame ends at
 * or before VARINT_MAX. Whether it is true (acknowledges what was sent, names a stream that is there) is for
 * those who use it. Encoders write shortest forms and never past `end`. */
#ifndef PURE_LINK_FRAMES_H
#define PURE_LINK_FRAMES_H

#include "core/bytes.h"
#include "core/error.h"
#include "link/ranges.h"

enum frame_type {
    FRAME_PADDING = 0,
    FRAME_PING = 1,
    FRAME_ACK = 2,
    FRAME_OPEN = 3,
    FRAME_RECORDS = 4,
    FRAME_STORED = 5,
    FRAME_CREDIT = 6,
    FRAME_REFUSED = 7,
    FRAME_CLOSE = 8,
};

#define FRAMES_PER_PACKET 64 /* the most; each may cost far more work than its bytes do */
#define FRAME_ACK_RANGES  64 /* in one ACK, the first included */
#define FRAME_EPOCH_BYTES 16
#define FRAME_TEXT_BYTES  255 /* the most in each name of OPEN, and in CLOSE's text */
#define FRAME_STREAM_MAX  UINT32_MAX

/* The largest encoding of each frame without its bytes: type and every field of 8. */
#define FRAME_ACK_MAX_BYTES     (1 + 4 * 8 + (FRAME_ACK_RANGES - 1) * 2 * 8)
#define FRAME_RECORDS_MAX_HEAD  (1 + 3 * 8)
#define FRAME_STORED_MAX_BYTES  (1 + 3 * 8)
#define FRAME_CREDIT_MAX_BYTES  (1 + 8)
#define FRAME_REFUSED_MAX_BYTES (1 + 3 * 8)
#define FRAME_OPEN_MAX_BYTES    (1 + 4 * 8 + FRAME_EPOCH_BYTES + 4 * (2 + FRAME_TEXT_BYTES))
#define FRAME_CLOSE_MAX_BYTES   (1 + 8 + 2 + FRAME_TEXT_BYTES)

/* Read its ranges with frame_ack_ranges. */
struct frame_ack {
    uint64_t largest;
    uint64_t delay_us;  /* from the largest's arrival to the ACK's departure */
    uint32_t ranges;    /* 1 to FRAME_ACK_RANGES */
    uint64_t first_run; /* how many more than `largest` the first range has, downwards */
    struct span rest;   /* (gap, run) pairs, checked */
};

struct frame_open {
    uint32_t stream;
    uint8_t epoch[FRAME_EPOCH_BYTES];
    uint64_t base;  /* records that the sender was told are stored */
    uint64_t first; /* number of the record at offset 0 */
    uint64_t asks;  /* 0; or 1 + the highest number that may have been sent: is more of the stream stored? */
    struct span app, output, target, event;
};

struct frame_records {
    uint32_t stream;
    uint64_t offset;
    struct span bytes;
};

struct frame_stored {
    uint32_t stream;
    uint64_t stored; /* records stored for good */
    uint64_t credit; /* the offset up to which bytes may be sent, exclusive */
};

/* Reasons of REFUSED: section 6. */
enum frame_refusal {
    REFUSED_NO_APP = 1,
    REFUSED_NOT_ALLOWED = 2,
    REFUSED_RETIRED = 3,
    REFUSED_GAP = 4,
    REFUSED_APP_FAILED = 5,
    REFUSED_APP_SUSPENDED = 6,
    REFUSED_NO_ROOM = 7, /* for another stream; or its records wait, and take the room of others */
    REFUSED_RECORD_TOO_LARGE = 8,
    REFUSED_ROLLED_BACK = 9, /* the answer to an OPEN that asks: more is stored */
};

struct frame_refused {
    uint32_t stream;
    uint64_t reason; /* enum frame_refusal, or one that a later version has */
    uint64_t stored;
};

/* Reasons of CLOSE. */
enum frame_close_reason {
    CLOSE_DONE = 0,      /* the host is stopping, or does not want the link any more */
    CLOSE_MALFORMED = 1, /* a packet opened but did not parse, or said what cannot be */
};

struct frame_close {
    uint64_t reason;
    struct span text; /* UTF-8 by convention, not checked: for a log, escaped */
};

struct frame {
    enum frame_type type;
    union {
        struct frame_ack ack;
        struct frame_open open;
        struct frame_records records;
        struct frame_stored stored;
        uint64_t credit; /* session credit: bytes from the association's start */
        struct frame_refused refused;
        struct frame_close close;
    };
};

/* Reads the frame at `at` < `end`. Returns its size (> 0; a run of PADDING is one frame) or PE_MALFORMED. */
ptrdiff_t frame_get(const uint8_t *at, const uint8_t *end, struct frame *frame);

static inline bool frame_elicits(enum frame_type type)
{
    return type != FRAME_PADDING && type != FRAME_ACK && type != FRAME_CLOSE;
}

/* The ranges of packet numbers that a decoded ACK names, newest first; `out` has room for FRAME_ACK_RANGES.
 * Returns how many: ack->ranges. */
uint32_t frame_ack_ranges(const struct frame_ack *ack, struct range *out);

/* Each writes one frame at `at` and returns its size, or 0 if it does not fit before `end`. */
size_t frame_put_ping(uint8_t *at, const uint8_t *end);
size_t frame_put_padding(uint8_t *at, const uint8_t *end, size_t size);
size_t frame_put_open(uint8_t *at, const uint8_t *end, const struct frame_open *open);
size_t frame_put_stored(uint8_t *at, const uint8_t *end, const struct frame_stored *stored);
size_t frame_put_credit(uint8_t *at, const uint8_t *end, uint64_t credit);
size_t frame_put_refused(uint8_t *at, const uint8_t *end, const struct frame_refused *refused);
size_t frame_put_close(uint8_t *at, const uint8_t *end, uint64_t reason, struct span text);

/* An ACK of the newest of `received` (not empty): at most FRAME_ACK_RANGES of them, and as many as fit; the
 * first fits or nothing is written. */
size_t frame_put_ack(uint8_t *at, const uint8_t *end, const struct ranges *received, uint64_t delay_us);

/* How many of `want` bytes from `offset` a RECORDS frame in `room` bytes carries, its head included; 0 if
 * none do. */
size_t frame_records_fit(size_t room, uint32_t stream, uint64_t offset, size_t want);

/* Writes only the head (type, stream, offset, size) of a RECORDS frame whose `size` bytes the caller puts
 * behind it: they were fitted with frame_records_fit. Returns the head's size. */
size_t frame_put_records_head(uint8_t *at, uint32_t stream, uint64_t offset, size_t size);

#endif
